//! The things that a workload handles: plain identifiers, so that they can go to another thread.

use units::{Bytes, Pages};

/// Sizes of the machine, from which workloads scale themselves.
#[derive(Clone, PartialEq, Debug)]
pub struct SystemInfo {
    /// Memory of the machine (`MemTotal`).
    pub mem_total: Pages,
    /// Memory of each node (`Node N MemTotal`).
    pub node_mem: Vec<Pages>,
    /// Logical CPUs.
    pub cpus: u32,
    /// How fast a CPU is, relative to the one that programs' own times are given for; 1 where that is not known.
    pub cpu_speed: f64,
}

/// A thread of the workload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Thread(pub u32);

/// A barrier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Barrier(pub u32);

/// A mapping of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mapping {
    /// Its number in the process.
    pub id: u32,
    /// Length.
    pub length: Bytes,
}

/// An open file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fd(pub u32);

/// A pipe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pipe(pub u32);

/// A directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dir(pub u32);

/// A block of pages that a kernel module holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageBlock(pub u32);

/// Name of a file: a number in its directory, so that millions of names cost nothing. On disk it is
/// `workfile.NUMBER`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileName {
    /// The directory.
    pub dir: Dir,
    /// The number.
    pub number: u64,
}

/// Whether a file must exist.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpenMode {
    /// It must exist.
    Existing,
    /// It is created if it does not exist (`O_CREAT`).
    Create,
}

/// Reading or writing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Loads.
    Read,
    /// Stores.
    Write,
}

/// Advice about a mapping (`madvise`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Advice {
    /// `MADV_HUGEPAGE`.
    HugePage,
    /// `MADV_NOHUGEPAGE`.
    NoHugePage,
    /// `MADV_DONTNEED`.
    DontNeed,
    /// `MADV_RANDOM`: of a mapped file nothing is read that is not touched.
    Random,
}

/// Advice about a file (`posix_fadvise`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileAdvice {
    /// `POSIX_FADV_NORMAL`.
    Normal,
    /// `POSIX_FADV_SEQUENTIAL`.
    Sequential,
    /// `POSIX_FADV_RANDOM`.
    Random,
    /// `POSIX_FADV_DONTNEED`.
    DontNeed,
}

/// A memory cgroup.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cgroup(pub u32);

/// What a memory cgroup may use, and is promised.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CgroupLimit {
    /// `memory.min`.
    Min,
    /// `memory.low`.
    Low,
    /// `memory.high`.
    High,
    /// `memory.max`.
    Max,
    /// `memory.swap.high`.
    SwapHigh,
    /// `memory.swap.max`.
    SwapMax,
}

impl CgroupLimit {
    /// The file that it is written to.
    pub fn file(self) -> &'static str {
        match self {
            CgroupLimit::Min => "memory.min",
            CgroupLimit::Low => "memory.low",
            CgroupLimit::High => "memory.high",
            CgroupLimit::Max => "memory.max",
            CgroupLimit::SwapHigh => "memory.swap.high",
            CgroupLimit::SwapMax => "memory.swap.max",
        }
    }
}

/// How a thread starts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SpawnOptions {
    /// Its name (`comm`).
    pub name: String,
    /// Whether it is a process with an address space of its own.
    pub process: bool,
    /// Nice level, -20 to 19.
    pub nice: i8,
    /// Whether it runs in the kernel, as a module's thread: its CPU time is system time.
    pub kernel: bool,
    /// Whether the run goes on if a real kernel kills it (a process out of memory); the twin's runs always do.
    pub may_be_killed: bool,
    /// Pages of its stack, its libraries' data and its heap that its program writes to whenever it runs: the twin gives it as many, where
    /// a real world's threads have them anyway.
    pub own_pages: u32,
    /// The pipe that a process reads from by [`Sys::read_stdin`](crate::Sys::read_stdin); a thread has its process's.
    pub stdin: Option<Pipe>,
    /// The pipe that it writes to by [`Sys::write_stdout`](crate::Sys::write_stdout).
    pub stdout: Option<Pipe>,
}

impl SpawnOptions {
    /// A thread of this process.
    pub fn thread(name: impl Into<String>) -> SpawnOptions {
        SpawnOptions {
            name: name.into(),
            process: false,
            nice: 0,
            kernel: false,
            may_be_killed: false,
            own_pages: 0,
            stdin: None,
            stdout: None,
        }
    }

    /// A process of its own.
    pub fn process(name: impl Into<String>) -> SpawnOptions {
        SpawnOptions { process: true, ..SpawnOptions::thread(name) }
    }

    /// A thread that a kernel module starts; in the real world any thread.
    pub fn module(name: impl Into<String>) -> SpawnOptions {
        SpawnOptions { kernel: true, ..SpawnOptions::thread(name) }
    }

    /// The same thread with so many pages of its own in use.
    #[must_use]
    pub fn own_pages(self, own_pages: u32) -> SpawnOptions {
        SpawnOptions { own_pages, ..self }
    }

    /// The same process with a pipe as its stdin, whose read end the spawning process holds.
    #[must_use]
    pub fn stdin(self, pipe: Pipe) -> SpawnOptions {
        SpawnOptions { stdin: Some(pipe), ..self }
    }

    /// The same process with a pipe as its stdout, whose write end the spawning process holds.
    #[must_use]
    pub fn stdout(self, pipe: Pipe) -> SpawnOptions {
        SpawnOptions { stdout: Some(pipe), ..self }
    }
}
