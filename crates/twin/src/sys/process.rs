//! Processes of the workload: their mappings and open files.

use mm::Mm;
use mm::vfs::DirId;
use sim::WaitQueueId;
use units::{FileId, Pfn, SpaceId};

use super::descriptors::Descriptors;

/// An anonymous mapping.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mapped {
    /// First virtual page.
    pub(crate) vpn: u32,
    /// Pages.
    pub(crate) pages: u32,
}

/// A process.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) space: SpaceId,
    pub(crate) mappings: Vec<Option<Mapped>>,
    pub(crate) files: Descriptors,
}

/// A directory of the workload.
#[derive(Debug)]
pub(crate) struct Directory {
    pub(crate) id: DirId,
    /// Its files by number, or [`Directory::NO_FILE`].
    files: Vec<FileId>,
}

impl Directory {
    const NO_FILE: FileId = FileId(u32::MAX);

    pub(crate) fn new(id: DirId) -> Directory {
        Directory { id, files: Vec::new() }
    }

    /// The file of a number, if there is one.
    pub(crate) fn file(&self, number: u64) -> Option<FileId> {
        self.files.get(number as usize).copied().filter(|file| *file != Directory::NO_FILE)
    }

    /// Gives a number to a file, or takes it away.
    pub(crate) fn set_file(&mut self, number: u64, file: Option<FileId>) {
        let number = number as usize;
        if number >= self.files.len() {
            mm::table::grow(&mut self.files, number + 1, Directory::NO_FILE);
        }
        self.files[number] = file.unwrap_or(Directory::NO_FILE);
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
    pub(crate) list: Vec<Process>,
    pub(crate) directories: Vec<Directory>,
    pub(crate) barriers: Vec<BarrierState>,
    /// Blocks that a kernel module holds.
    pub(crate) blocks: Vec<Option<Pfn>>,
    /// Seed of the run, for the workload's own draws.
    pub(crate) seed: u64,
    /// The mounted file system.
    pub(crate) fs: Option<mm::vfs::FsId>,
}

impl Processes {
    pub(crate) fn new(seed: u64, fs: Option<mm::vfs::FsId>) -> Processes {
        Processes { list: Vec::new(), directories: Vec::new(), barriers: Vec::new(), blocks: Vec::new(), seed, fs }
    }

    /// A new process with an empty address space.
    pub(crate) fn create(&mut self, mm: &mut Mm) -> u32 {
        let space = mm.space_create();
        self.list.push(Process { space, mappings: Vec::new(), files: Descriptors::new() });
        self.list.len() as u32 - 1
    }

    /// Host bytes that grow with the number of files.
    pub(crate) fn host_bytes(&self) -> usize {
        let names: usize = self.directories.iter().map(|d| d.files.capacity() * size_of::<FileId>()).sum();
        let open: usize = self.list.iter().map(|p| p.files.host_bytes()).sum();
        names + open
    }
}
