//! What a swarm test runs, as data.

use sys::{Access, Advice, FileAdvice};

/// Slots for mappings, and for descriptors, that the threads of a process share.
pub(super) const MAPPINGS: u8 = 3;
pub(super) const FDS: u8 = 4;
/// Names of files in a directory that single operations use.
pub(super) const NAMES: u8 = 6;

/// A size between one page and all of the machine's memory, on a logarithmic scale: 0 is one page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share(pub(super) u8);

impl Share {
    /// Pages of it on a machine of so many.
    pub(super) fn of(self, machine: u64) -> u64 {
        (machine as f64).powf(f64::from(self.0) / 255.0) as u64
    }
}

/// A kind of disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum DiskKind {
    Ram,
    Ssd,
    Hdd,
}

/// A file system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FsKind {
    Xfs,
    Ext4,
}

/// A machine.
#[derive(Clone, Debug)]
pub(super) struct MachineCase {
    pub(super) node_mib: Vec<u64>,
    pub(super) cpus: u32,
    pub(super) disk: DiskKind,
    pub(super) disk_mib: u64,
    /// Kind and size of a swap area on a disk of its own.
    pub(super) swap: Option<(DiskKind, u64)>,
    /// Size of a zram that is swapped to.
    pub(super) zram: Option<u64>,
    pub(super) fs: FsKind,
}

impl MachineCase {
    /// Its memory, in pages.
    pub(super) fn pages(&self) -> u64 {
        self.node_mib.iter().sum::<u64>() << 8
    }
}

/// Something goes wrong with a disk.
#[derive(Clone, Copy, Debug)]
pub(super) struct FaultCase {
    /// When, in virtual ms.
    pub(super) at_ms: u64,
    /// The disk of the swap area, if there is one.
    pub(super) swap: bool,
    /// Requests that fail; 0: the device stalls for 200 ms instead.
    pub(super) requests: u32,
}

/// One call, or a few that belong together.
#[derive(Clone, Debug)]
pub(super) enum Op {
    Map {
        slot: u8,
        size: Share,
        huge_aligned: bool,
    },
    /// Maps memory, asks for huge pages or not, writes all of it, and reads it some times.
    Fill {
        slot: u8,
        size: Share,
        huge: bool,
        reads: u8,
    },
    Unmap {
        slot: u8,
    },
    Advise {
        slot: u8,
        advice: Advice,
    },
    Touch {
        slot: u8,
        from: u8,
        size: Share,
        access: Access,
    },
    Open {
        fd: u8,
        name: u8,
        shared: bool,
        create: bool,
    },
    Close {
        fd: u8,
    },
    Write {
        fd: u8,
        from: Share,
        size: Share,
        odd: u16,
    },
    Read {
        fd: u8,
        from: Share,
        size: Share,
        odd: u16,
    },
    Truncate {
        fd: u8,
        size: Share,
    },
    Fsync {
        fd: u8,
    },
    Fadvise {
        fd: u8,
        advice: FileAdvice,
    },
    Unlink {
        name: u8,
        shared: bool,
    },
    /// Removes a directory with what is in it, or tries to, and makes it again.
    Rmdir {
        shared: bool,
        emptied: bool,
    },
    Sync,
    /// Writes a file and reads it back.
    Stream {
        name: u8,
        shared: bool,
        size: Share,
        reads: u8,
    },
    /// Makes small files, or removes them.
    Many {
        first: u8,
        size: Share,
        pages: u8,
        remove: bool,
    },
    /// Has one process write to another, which may read less than that.
    Pipe {
        written: Share,
        read: Share,
        /// Bytes of each call less than pages.
        odd: u16,
    },
    Sleep {
        us: u32,
    },
    Compute {
        us: u32,
    },
}

/// A process: in each round its threads start together and run their lists.
#[derive(Clone, Debug)]
pub(super) struct ProcessCase {
    pub(super) rounds: Vec<Vec<Vec<Op>>>,
    /// It does not wait for its threads at its end.
    pub(super) leaves_threads: bool,
    /// It is asked to stop after so many ms.
    pub(super) stop_ms: Option<u64>,
}

/// A run.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) machine: MachineCase,
    pub(super) kernel: &'static str,
    pub(super) tunables: Vec<(&'static str, String)>,
    pub(super) seed: u64,
    pub(super) faults: Vec<FaultCase>,
    pub(super) processes: Vec<ProcessCase>,
}
