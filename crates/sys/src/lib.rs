//! What a workload may do, whichever world runs it.
//!
//! A workload is an async function generic over [`Sys`]. The twin implements `Sys` over its model, where an
//! await may let virtual time pass; on a real kernel each call blocks and the future is ready at once. A workload
//! must not notice which world it is in.

mod error;
mod types;

use std::future::Future;

use units::{Bytes, Gfp, Nanos, Order};

pub use error::SysError;
pub use types::{
    Access, Advice, Barrier, Cgroup, CgroupLimit, Dir, Fd, FileAdvice, FileName, Mapping, OpenMode, PageBlock, Pipe,
    SpawnOptions, SystemInfo, Thread,
};

/// What [`Sys::seed`] answers in a run: the experiment's seed and the number of the run in it, mixed.
pub fn workload_seed(seed: u64, iteration: u32) -> u64 {
    seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(u64::from(iteration))
}

/// Result of a call that the system may refuse.
pub type Result<T> = std::result::Result<T, SysError>;

/// The system as a thread of a workload sees it. Cloning gives another handle for the same thread.
#[allow(async_fn_in_trait)] // Workloads are generic over one Sys; nobody needs these futures to be Send.
pub trait Sys: Clone + 'static {
    /// Sizes of the machine.
    fn info(&self) -> SystemInfo;
    /// Seed of the run, from which a workload derives its own draws: the same in both worlds.
    fn seed(&self) -> u64;
    /// Time since the start of the run (`CLOCK_MONOTONIC`).
    fn clock(&self) -> Nanos;
    /// Lets time pass.
    async fn sleep(&self, time: Nanos);
    /// Uses the CPU for so long.
    async fn compute(&self, time: Nanos);
    /// CPU time that this thread has used (`CLOCK_THREAD_CPUTIME_ID`).
    fn cpu_time(&self) -> Nanos;

    /// Starts a thread. The closure must be `Send` because the real world runs it on a thread of its own; its
    /// future need not be. A process has of its parent's pipes those ends only that are its stdin and its stdout; the run fails
    /// with [`SysError::BadFd`] if the parent does not hold them.
    fn spawn<F, Fut>(&self, options: SpawnOptions, body: F) -> Thread
    where
        F: FnOnce(Self) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + 'static;
    /// Waits until a thread has ended, in the process that spawned it.
    async fn join(&self, thread: Thread);
    /// Asks a thread to stop, with all that it spawned or will spawn (`SIGINT` to its process group): their
    /// [`Sys::stopping`] turns true.
    fn stop(&self, thread: Thread);
    /// Whether this thread, or one that it comes from, was asked to stop.
    fn stopping(&self) -> bool;
    /// A barrier for `parties` threads.
    fn barrier(&self, parties: u32) -> Barrier;
    /// Waits until all parties of the barrier have come.
    async fn barrier_wait(&self, barrier: Barrier);

    /// Maps private anonymous memory, aligned to `align` bytes.
    async fn mmap(&self, length: Bytes, align: Bytes) -> Result<Mapping>;
    /// Maps the first `length` bytes of a file, shared (`MAP_SHARED`).
    ///
    /// # Errors
    /// [`SysError::NotSupported`] in a world without file mappings.
    async fn mmap_file(&self, fd: Fd, length: Bytes) -> Result<Mapping>;
    /// Unmaps a whole mapping.
    async fn munmap(&self, mapping: Mapping) -> Result<()>;
    /// Advises about a whole mapping.
    async fn madvise(&self, mapping: Mapping, advice: Advice) -> Result<()>;
    /// Reads or writes every byte of a part of a mapping; an empty part is none.
    ///
    /// # Errors
    /// [`SysError::Invalid`], before anything is touched, for what does not lie in the mapping.
    async fn touch(&self, mapping: Mapping, offset: Bytes, length: Bytes, access: Access) -> Result<()>;
    /// Accesses one byte: what a first store into a region does.
    async fn poke(&self, mapping: Mapping, offset: Bytes, access: Access) -> Result<()>;
    /// Accesses one byte each at many offsets, as fast as the program can: what a server does with requests at hand.
    async fn poke_many(&self, mapping: Mapping, offsets: &[u64], access: Access) -> Result<()> {
        for offset in offsets {
            self.poke(mapping, Bytes(*offset), access).await?;
        }
        Ok(())
    }
    /// Whether the page at this offset is resident.
    fn mincore(&self, mapping: Mapping, offset: Bytes) -> bool;

    /// Makes a directory below the test mount, with those above it that are missing (`mkdir -p`): one that exists is
    /// not an error.
    async fn mkdir(&self, name: &str) -> Result<Dir>;
    /// Looks a file up; its size (`stat`).
    async fn stat(&self, name: FileName) -> Result<Bytes>;
    /// Opens a file, creating it if the mode says so.
    async fn open(&self, name: FileName, mode: OpenMode) -> Result<Fd>;
    /// Closes a file.
    async fn close(&self, fd: Fd) -> Result<()>;
    /// Reads; at the end of the file it reads less.
    async fn read(&self, fd: Fd, offset: Bytes, length: Bytes) -> Result<Bytes>;
    /// Reads whole pages of a file, all submitted with one call (`io_uring_enter`); a world without io_uring reads one
    /// after the other.
    async fn read_batch(&self, fd: Fd, pages: &[u32]) -> Result<()> {
        for page in pages {
            self.read(fd, Bytes(u64::from(*page) * units::PAGE_SIZE), Bytes(units::PAGE_SIZE)).await?;
        }
        Ok(())
    }
    /// Writes. What was written before an error (`ENOSPC`) stays.
    async fn write(&self, fd: Fd, offset: Bytes, length: Bytes) -> Result<()>;
    /// Writes the first `length` bytes of a mapping: each page of it is read as its page of the file is written, so that one that was
    /// reclaimed meanwhile is waited for. The source of [`Sys::write`] is always there on the twin; real worlds have a buffer of their own
    /// for it, which is memory like any other.
    ///
    /// # Errors
    /// Those of [`Sys::write`]; [`SysError::Invalid`], before anything is written, for what does not lie in the mapping.
    async fn write_from(&self, fd: Fd, offset: Bytes, source: Mapping, length: Bytes) -> Result<()>;
    /// Says how the file will be read (`posix_fadvise`).
    async fn fadvise(&self, fd: Fd, advice: FileAdvice) -> Result<()>;
    /// Writes a file's dirty data and waits for it.
    async fn fsync(&self, fd: Fd) -> Result<()>;
    /// Cuts or extends a file.
    async fn truncate(&self, fd: Fd, length: Bytes) -> Result<()>;
    /// Removes a file.
    async fn unlink(&self, name: FileName) -> Result<()>;
    /// Removes an empty directory. Nothing is found or made in it until [`Sys::mkdir`] makes one of the same name, which is the same
    /// [`Dir`] again.
    ///
    /// # Errors
    /// [`SysError::NotEmpty`] while there is a file or directory in it, [`SysError::NoEntry`] if it is gone.
    async fn rmdir(&self, dir: Dir) -> Result<()>;
    /// Writes all dirty data and waits for it.
    async fn sync(&self) -> Result<()>;

    /// Makes a pipe (`pipe()`), both ends of which the calling process holds: until it closes them, whoever reads sees no end and whoever
    /// writes no lack of readers. An end is closed when no process holds it any more; a process that ends, or is killed, holds none.
    async fn pipe(&self) -> Result<Pipe>;
    /// Closes all ends of a pipe that the calling process holds, be it its stdin or its stdout.
    ///
    /// # Errors
    /// [`SysError::BadFd`] if it holds none.
    async fn close_pipe(&self, pipe: Pipe) -> Result<()>;
    /// Reads from stdin (`read()`), once there is something or nobody is left who could write: what is there, but `length` bytes at most.
    /// None are the end.
    ///
    /// # Errors
    /// [`SysError::BadFd`] without stdin.
    async fn read_stdin(&self, length: Bytes) -> Result<Bytes>;
    /// Writes to stdout, and waits while the pipe is full.
    ///
    /// # Errors
    /// [`SysError::BrokenPipe`] if nobody is left who could read, [`SysError::BadFd`] without stdout.
    async fn write_stdout(&self, length: Bytes) -> Result<()>;

    /// Allocates `1 << order` pages in one block with these flags, as a kernel module does (`alloc_pages()`); none if the
    /// allocation fails. A world without such a module refuses.
    async fn alloc_pages(&self, _gfp: Gfp, _order: Order) -> Result<Option<PageBlock>> {
        Err(SysError::NeedsModule)
    }
    /// Gives a block back (`__free_pages()`).
    async fn free_pages(&self, _block: PageBlock) -> Result<()> {
        Err(SysError::NeedsModule)
    }
    /// Makes a memory cgroup (version 2); `path` begins at the group that the run is in. Nobody is in it.
    async fn cgroup(&self, _path: &str) -> Result<Cgroup> {
        Err(SysError::NotSupported)
    }
    /// Sets a limit of a group; none is `max`.
    async fn cgroup_set(&self, _group: Cgroup, _limit: CgroupLimit, _value: Option<Bytes>) -> Result<()> {
        Err(SysError::NotSupported)
    }
    /// Puts the calling process into a group; the processes that it spawns are in it too.
    async fn cgroup_enter(&self, _group: Cgroup) -> Result<()> {
        Err(SysError::NotSupported)
    }
    /// Reads a file of a group as the kernel prints it, such as `memory.events`.
    async fn cgroup_file(&self, _group: Cgroup, _file: &str) -> Result<String> {
        Err(SysError::NotSupported)
    }
    /// Value of a sysctl that is one whole number, such as `vm.min_free_kbytes`.
    async fn sysctl(&self, _name: &str) -> Result<u64> {
        Err(SysError::NoSysctl)
    }
    /// Writes a number to a sysctl; `vm.drop_caches` and `vm.compact_memory` act at once.
    async fn set_sysctl(&self, _name: &str, _value: u64) -> Result<()> {
        Err(SysError::NoSysctl)
    }

    /// Records one sample of a metric.
    fn sample(&self, metric: &'static str, value: f64);
    /// The workload cannot go on; the run fails with this error.
    fn fail(&self, error: SysError);
    /// Says which part of the workload begins; it stands in the run's log and in its time series.
    fn phase(&self, name: &str);
    /// Says how much of the workload is done, from 0 to 1, to those who wait for it. The run does not depend on it.
    fn progress(&self, _done: f64) {}
}
