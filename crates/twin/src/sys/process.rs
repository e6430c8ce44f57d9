//! Processes of the workload: their mappings and open files.

use mm::Mm;
use mm::pagecache::Readahead;
use mm::vfs::{DirId, Handle};
use sim::WaitQueueId;
use units::{FileId, Pfn, SpaceId};

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
}

/// A process.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) space: SpaceId,
    pub(crate) mappings: Vec<Option<Mapped>>,
    pub(crate) files: Vec<Option<OpenFile>>,
    pub(crate) free_fds: Vec<u32>,
}

/// A directory of the workload: files by number.
#[derive(Debug)]
pub(crate) struct Directory {
    pub(crate) id: DirId,
    pub(crate) files: Vec<Option<FileId>>,
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
        self.list.push(Process { space, mappings: Vec::new(), files: Vec::new(), free_fds: Vec::new() });
        self.list.len() as u32 - 1
    }

    /// Host bytes that grow with the number of files.
    pub(crate) fn host_bytes(&self) -> usize {
        let dirs: usize = self.directories.iter().map(|d| d.files.capacity() * size_of::<Option<FileId>>()).sum();
        let fds: usize = self.list.iter().map(|p| p.files.capacity() * size_of::<Option<OpenFile>>()).sum();
        dirs + fds
    }
}
