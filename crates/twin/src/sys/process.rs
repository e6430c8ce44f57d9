//! Processes of the workload: their mappings, open files and pipes.

use std::collections::BTreeMap;

use mm::Mm;
use mm::column::Column;
use mm::vfs::{DirId, Handle};
use sim::{Ctl, TaskId, WaitQueueId};
use sys::{Dir, Result, SysError};
use units::{Bytes, FileId, PAGE_SIZE, Pages, Pfn, SpaceId};

use super::descriptors::Descriptors;
use super::names::{Names, NamesOf};
use super::pipes::{HeldEnds, PipeQueues};
use crate::world::World;

/// A mapping.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mapped {
    /// First virtual page.
    pub(crate) vpn: u32,
    /// Pages.
    pub(crate) pages: u32,
    /// The file that it maps, open until it is unmapped.
    pub(crate) file: Option<Handle>,
}

impl Mapped {
    /// Where a part of the mapping ends, in bytes from its start, if all of it lies there.
    pub(super) fn part(self, offset: Bytes, length: Bytes) -> Result<u64> {
        let end = offset.0.checked_add(length.0).ok_or(SysError::Invalid)?;
        if end <= Pages(u64::from(self.pages)).bytes().0 { Ok(end) } else { Err(SysError::Invalid) }
    }
}

/// A process.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) space: SpaceId,
    pub(crate) mappings: Vec<Option<Mapped>>,
    pub(crate) files: Descriptors,
    pub(crate) pipes: HeldEnds,
    /// Its threads that have not ended.
    pub(crate) threads: Vec<TaskId>,
    /// All of its threads are to end (`SIGNAL_GROUP_EXIT`): it was killed, or its first thread has ended.
    pub(crate) exiting: bool,
    /// Its memory and its files are given back.
    pub(crate) gone: bool,
    /// Where its first thread waits until that is so.
    pub(crate) exited: WaitQueueId,
}

/// A directory of the workload.
#[derive(Debug)]
pub(crate) struct Directory {
    /// None once it was removed, until one of the same name is made.
    id: Option<DirId>,
    /// Its files by number.
    names: NamesOf,
    /// Directories in it.
    pub(crate) below: BTreeMap<Box<str>, Dir>,
}

impl Directory {
    pub(crate) fn new(id: DirId) -> Directory {
        Directory { id: Some(id), names: NamesOf::default(), below: BTreeMap::new() }
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
    /// Numbers of those that are not gone, ascending.
    present: Vec<u32>,
    /// Directories of the mounted file system, its root first; none without one.
    pub(crate) directories: Vec<Directory>,
    names: Names,
    pub(crate) barriers: Vec<BarrierState>,
    pub(crate) pipe_queues: PipeQueues,
    /// Blocks that a kernel module holds.
    pub(crate) blocks: Vec<Option<Pfn>>,
    /// Seed of the run, for the workload's own draws.
    pub(crate) seed: u64,
    /// Bytes of each file's last page that belong to it, by the file's id; 0: all. `mm` counts whole pages.
    last_bytes: Column,
}

impl Processes {
    pub(crate) fn new(seed: u64, root: Option<DirId>) -> Processes {
        let directories = root.map(Directory::new).into_iter().collect();
        Processes {
            list: Vec::new(),
            present: Vec::new(),
            directories,
            names: Names::default(),
            barriers: Vec::new(),
            pipe_queues: PipeQueues::default(),
            blocks: Vec::new(),
            seed,
            last_bytes: Column::default(),
        }
    }

    /// Root of the mounted file system.
    pub(crate) fn root(&self) -> Option<Dir> {
        (!self.directories.is_empty()).then_some(Dir(0))
    }

    /// Gives a name to a file, or takes it away.
    pub(crate) fn set_name(&mut self, dir: Dir, number: u32, file: Option<FileId>) {
        self.names.set(&mut self.directories[dir.0 as usize].names, number, file);
    }

    /// A directory of the workload, if it exists.
    pub(super) fn directory(&self, dir: Dir) -> Option<(DirId, &Directory)> {
        let directory = self.directories.get(dir.0 as usize)?;
        directory.id.map(|id| (id, directory))
    }

    /// A directory exists again.
    pub(super) fn make_again(&mut self, dir: Dir, id: DirId) {
        self.directories[dir.0 as usize].id = Some(id);
    }

    /// A directory is gone, with all that was known of names in it.
    pub(super) fn remove_directory(&mut self, dir: Dir) {
        let Processes { directories, names, .. } = self;
        let directory = &mut directories[dir.0 as usize];
        directory.id = None;
        names.clear(&mut directory.names);
    }

    /// What a name was when it was last looked up: a file, or a negative dentry's record.
    pub(super) fn named(&self, directory: &Directory, number: u32) -> Option<FileId> {
        self.names.get(&directory.names, number)
    }

    /// Size in bytes of a file that has so many pages.
    pub(crate) fn size(&self, file: FileId, pages: Pages) -> Bytes {
        let last = self.last_bytes.get(file.0);
        let whole = pages.bytes();
        if last == 0 || pages == Pages(0) { whole } else { Bytes(whole.0 - PAGE_SIZE + u64::from(last)) }
    }

    /// Notes where in its last page a file of this size ends.
    pub(crate) fn set_end(&mut self, file: FileId, size: Bytes) {
        let last = (size.0 % PAGE_SIZE) as u32;
        if self.last_bytes.get(file.0) != last {
            // A column grows by what it is given: files up to this one that were not noted end with their pages.
            self.last_bytes.set(file.0, 0);
            self.last_bytes.set(file.0, last);
        }
    }

    /// A new process with an empty address space.
    pub(crate) fn create(&mut self, mm: &mut Mm, ctl: &mut Ctl<World>) -> u32 {
        self.list.push(Process {
            space: mm.space_create(),
            mappings: Vec::new(),
            files: Descriptors::default(),
            pipes: HeldEnds::default(),
            threads: Vec::new(),
            exiting: false,
            gone: false,
            exited: ctl.new_wait_queue(),
        });
        let number = self.list.len() as u32 - 1;
        self.present.push(number);
        number
    }

    /// A process has given back its memory and its files; says where its first thread waits for that.
    pub(crate) fn leave(&mut self, number: u32) -> WaitQueueId {
        let at = self.present.binary_search(&number).expect("a process goes once");
        self.present.remove(at);
        let process = self.of_mut(number);
        process.gone = true;
        process.exited
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
        self.present.iter().copied().find(|number| self.of(*number).space == space)
    }

    /// Host bytes that grow with the number of files.
    pub(crate) fn host_bytes(&self) -> usize {
        let names = self.names.host_bytes(self.directories.iter().map(|directory| &directory.names));
        let open: usize = self.present.iter().map(|number| self.of(*number).files.host_bytes()).sum();
        names + open + self.last_bytes.host_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_nobody_noted_end_with_their_pages() {
        let mut processes = Processes::new(0, None);
        let sizes = |processes: &Processes| [0, 63, 199, 200, 201].map(|file| processes.size(FileId(file), Pages(2)).0);
        processes.set_end(FileId(200), Bytes(5000));
        assert_eq!(sizes(&processes), [8192, 8192, 8192, 5000, 8192]);
        processes.set_end(FileId(63), Bytes(4097));
        processes.set_end(FileId(0), Bytes(8192));
        processes.set_end(FileId(200), Bytes(8191));
        assert_eq!(sizes(&processes), [8192, 4097, 8192, 8191, 8192]);
        processes.set_end(FileId(200), Bytes(8192));
        assert_eq!(sizes(&processes), [8192, 4097, 8192, 8192, 8192]);
        assert_eq!(processes.size(FileId(63), Pages(0)), Bytes(0), "it was cut since");
    }
}
