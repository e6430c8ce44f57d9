//! Why a task of the twin sleeps; every sleep site names one.

/// A sleep site.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SleepReason {
    /// The workload sleeps by itself.
    Workload,
    /// It waits for a thread to end.
    Join,
    /// The first thread of a process that ends waits for the others.
    ThreadGroup,
    /// It waits at a barrier.
    Barrier,
    /// A pipe is empty or full (`pipe_wait`, since 5.5 `pipe_read`, `pipe_write`).
    Pipe,
    /// It waits for a page to be read or written (`folio_wait_bit`).
    PageBit,
    /// It waits for metadata from a device (`xfs_buf_iowait`).
    Metadata,
    /// It waits for a block of ext4 to be read or logged (`wait_on_buffer`).
    Buffer,
    /// It waits for the journal to have what it wants to change (`do_get_write_access`).
    Journal,
    /// It waits for others to give back what they reserved of the journal (`add_transaction_credits`).
    JournalCredits,
    /// It waits for a flusher to be through with what was asked of it (`wb_wait_for_completion`), or for the journal's thread
    /// (`jbd2_log_wait_commit`).
    SyncWork,
    /// It waits until the data of a file is on the device (`filemap_fdatawait`).
    Fsync,
    /// It dirtied too much (`balance_dirty_pages`).
    DirtyThrottle,
    /// The request queue is full (`get_request`).
    RequestQueue,
    /// There is no memory for the bio of a page that it writes to swap (`mempool_alloc`).
    BioPool,
    /// Reclaim waits for the device or for other reclaimers (`congestion_wait`, `reclaim_throttle`).
    ReclaimThrottle,
    /// It waits for kswapd because the reserves are nearly used up (`throttle_direct_reclaim`).
    DirectReclaimThrottle,
    /// It waits for others to begin a new generation (`try_to_inc_max_seq()`).
    Generation,
    /// It sleeps off what it charged above `memory.high` (`mem_cgroup_handle_over_high`).
    MemcgHigh,
    /// It waits for the memory of an OOM victim.
    OutOfMemory,
    /// kswapd has nothing to do.
    KswapdIdle,
    /// kswapd sleeps a moment to see whether the node stays balanced (`kswapd_try_to_sleep`).
    KswapdNap,
    /// kcompactd has nothing to do.
    KcompactdIdle,
    /// khugepaged has nothing to do, or waits for its next round.
    KhugepagedIdle,
    /// It found no huge page, and waits before it asks again (`khugepaged_alloc_sleep()`).
    KhugepagedAlloc,
    /// A flusher has nothing to do.
    FlusherIdle,
    /// Other tasks write all inodes that a flusher could write (`inode_wait_for_writeback`).
    FlusherBusy,
    /// A CPU's worker has nothing to do.
    WorkerIdle,
    /// zswap's pool is within its limit.
    ZswapIdle,
    /// No bio that a limit held back is to be gone on with.
    DispatchIdle,
}

impl SleepReason {
    /// Whether the kernel waits by `io_schedule()`. XFS waits for its metadata by `wait_for_completion()`.
    pub(crate) fn is_io(self) -> bool {
        use SleepReason::{BioPool, Buffer, DirtyThrottle, Fsync, Journal, PageBit, RequestQueue};
        matches!(self, PageBit | DirtyThrottle | Buffer | Fsync | Journal | RequestQueue | BioPool)
    }

    /// Whether a signal that kills ends the sleep (`TASK_INTERRUPTIBLE`, `TASK_KILLABLE`).
    /// Abstracted: waits for a page under I/O, some of them killable, are left to the end of the I/O.
    pub(crate) fn is_killable(self) -> bool {
        use SleepReason::{Barrier, DirectReclaimThrottle, DirtyThrottle, Join, MemcgHigh, Pipe, Workload};
        matches!(self, Workload | Join | Barrier | Pipe | DirtyThrottle | DirectReclaimThrottle | MemcgHigh)
    }
}
