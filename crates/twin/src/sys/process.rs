//! Processes of the workload: their mappings and open files.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use mm::Mm;
use mm::pagecache::Readahead;
use mm::vfs::{DirId, Handle};
use sim::{Ctl, TaskId, WaitQueueId};
use sys::Dir;
use units::{FileId, SpaceId};

use crate::world::World;

/// An anonymous mapping.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mapped {
    /// First virtual page.
    pub(crate) vpn: u32,
    /// Pages.
    pub(crate) pages: u32,
}

/// An open file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenFile {
    pub(crate) handle: Handle,
    pub(crate) readahead: Readahead,
    /// Calls that work on it.
    pub(crate) users: u32,
    /// It was closed while calls worked on it.
    pub(crate) closed: bool,
}

/// A process.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) space: SpaceId,
    pub(crate) mappings: Vec<Option<Mapped>>,
    /// Open files by their descriptors.
    files: Vec<Option<OpenFile>>,
    /// Descriptors that were closed.
    free_fds: BinaryHeap<Reverse<u32>>,
    /// Its threads that have not ended.
    pub(crate) threads: Vec<TaskId>,
    /// All of its threads are to end (`SIGNAL_GROUP_EXIT`): it was killed, or its first thread has ended.
    pub(crate) exiting: bool,
    /// Its memory and its files are given back.
    pub(crate) gone: bool,
    /// Where its first thread waits until that is so.
    pub(crate) exited: WaitQueueId,
}

impl Process {
    /// Gives an open file the lowest free descriptor (`alloc_fd()`).
    pub(crate) fn install(&mut self, file: OpenFile) -> u32 {
        if let Some(Reverse(fd)) = self.free_fds.pop() {
            self.files[fd as usize] = Some(file);
            return fd;
        }
        self.files.push(Some(file));
        self.files.len() as u32 - 1
    }

    /// The open file of a descriptor.
    pub(crate) fn file_mut(&mut self, fd: u32) -> Option<&mut OpenFile> {
        self.files.get_mut(fd as usize).and_then(Option::as_mut)
    }

    /// Takes an open file out of the table.
    pub(crate) fn uninstall(&mut self, fd: u32) -> Option<OpenFile> {
        let file = self.files.get_mut(fd as usize)?.take()?;
        self.free_fds.push(Reverse(fd));
        Some(file)
    }

    /// Takes the whole table away, in the order of the descriptors.
    pub(crate) fn take_files(&mut self) -> impl Iterator<Item = OpenFile> + use<> {
        self.free_fds = BinaryHeap::new();
        std::mem::take(&mut self.files).into_iter().flatten()
    }
}

/// A directory of the workload: files by number.
#[derive(Debug)]
pub(crate) struct Directory {
    pub(crate) id: DirId,
    files: Vec<Option<FileId>>,
    /// Directories in it.
    pub(crate) below: BTreeMap<Box<str>, Dir>,
}

impl Directory {
    pub(crate) fn new(id: DirId) -> Directory {
        Directory { id, files: Vec::new(), below: BTreeMap::new() }
    }
}

/// A barrier.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BarrierState {
    pub(crate) queue: WaitQueueId,
    pub(crate) parties: u32,
    pub(crate) waiting: u32,
    pub(crate) round: u64,
}

/// All processes of the workload, and what they share.
#[derive(Debug)]
pub(crate) struct Processes {
    list: Vec<Process>,
    /// Directories of the mounted file system, its root first; none without one.
    pub(crate) directories: Vec<Directory>,
    pub(crate) barriers: Vec<BarrierState>,
    /// Seed of the run, for the workload's own draws.
    pub(crate) seed: u64,
}

impl Processes {
    pub(crate) fn new(seed: u64, root: Option<DirId>) -> Processes {
        let directories = root.map(Directory::new).into_iter().collect();
        Processes { list: Vec::new(), directories, barriers: Vec::new(), seed }
    }

    /// Root of the mounted file system.
    pub(crate) fn root(&self) -> Option<Dir> {
        (!self.directories.is_empty()).then_some(Dir(0))
    }

    /// The file of a name.
    pub(crate) fn file_named(&self, dir: Dir, number: usize) -> Option<FileId> {
        self.directories.get(dir.0 as usize)?.files.get(number).copied().flatten()
    }

    /// Gives a name to a file, or takes it away.
    pub(crate) fn set_name(&mut self, dir: Dir, number: usize, file: Option<FileId>) {
        let files = &mut self.directories[dir.0 as usize].files;
        if number >= files.len() {
            files.resize(number + 1, None);
        }
        files[number] = file;
    }

    /// A new process with an empty address space.
    pub(crate) fn create(&mut self, mm: &mut Mm, ctl: &mut Ctl<World>) -> u32 {
        self.list.push(Process {
            space: mm.space_create(),
            mappings: Vec::new(),
            files: Vec::new(),
            free_fds: BinaryHeap::new(),
            threads: Vec::new(),
            exiting: false,
            gone: false,
            exited: ctl.new_wait_queue(),
        });
        self.list.len() as u32 - 1
    }

    /// The process of a thread.
    pub(crate) fn of(&self, number: u32) -> &Process {
        &self.list[number as usize]
    }

    /// The same, to be changed.
    pub(crate) fn of_mut(&mut self, number: u32) -> &mut Process {
        &mut self.list[number as usize]
    }

    /// The process with this address space.
    pub(crate) fn with_space(&self, space: SpaceId) -> Option<u32> {
        self.list.iter().position(|process| !process.gone && process.space == space).map(|at| at as u32)
    }

    /// Host bytes that grow with the number of files.
    pub(crate) fn host_bytes(&self) -> usize {
        let dirs: usize = self.directories.iter().map(|d| d.files.capacity() * size_of::<Option<FileId>>()).sum();
        let fds: usize = self.list.iter().map(|p| p.files.capacity() * size_of::<Option<OpenFile>>()).sum();
        dirs + fds
    }
}
