//! Tunables of CFQ.

use crate::spec::{SpecError, check};
use serde::{Deserialize, Serialize};
use units::Nanos;

/// The files under `queue/iosched/` of CFQ.
#[derive(Deserialize, Serialize, Clone, PartialEq, Eq, Debug)]
#[serde(default, deny_unknown_fields)]
pub struct CfqSpec {
    /// Time on the disk of a process that waits for it; 1 to 10,000 ms. Default 100.
    pub slice_sync_ms: u64,
    /// Time on the disk of all asynchronous writes; 1 to 10,000 ms. Default 40.
    pub slice_async_ms: u64,
    /// Requests of a slice of asynchronous writes, a quarter of what one of them may have at middle priority; 1 to 1000. Default 2.
    pub slice_async_rq: u32,
    /// How long the disk is kept free for the next request of a process; 0 to 1000 ms. Default 8.
    pub slice_idle_ms: u64,
    /// Requests of one process in the disk while others wait; 2 to 1000. Default 8.
    pub quantum: u32,
    /// A synchronous request's deadline after its submission; 0 to 3,600,000 ms. Default 125.
    pub fifo_expire_sync_ms: u64,
    /// An asynchronous request's; 0 to 3,600,000 ms. Default 250.
    pub fifo_expire_async_ms: u64,
    /// Whether all processes shall have had their turn after 300 ms, and few writes are in the disk after a read that was late. Default true.
    pub low_latency: bool,
}

impl Default for CfqSpec {
    fn default() -> Self {
        CfqSpec {
            slice_sync_ms: 100,
            slice_async_ms: 40,
            slice_async_rq: 2,
            slice_idle_ms: 8,
            quantum: 8,
            fifo_expire_sync_ms: 125,
            fifo_expire_async_ms: 250,
            low_latency: true,
        }
    }
}

impl CfqSpec {
    pub(in crate::queue) fn validate(&self) -> Result<(), SpecError> {
        const EXPIRE_MS_MAX: u64 = 3_600_000;
        check("queue.cfq.slice_sync_ms", self.slice_sync_ms, 1..=10_000)?;
        check("queue.cfq.slice_async_ms", self.slice_async_ms, 1..=10_000)?;
        check("queue.cfq.slice_async_rq", u64::from(self.slice_async_rq), 1..=1000)?;
        check("queue.cfq.slice_idle_ms", self.slice_idle_ms, 0..=1000)?;
        check("queue.cfq.quantum", u64::from(self.quantum), 2..=1000)?;
        check("queue.cfq.fifo_expire_sync_ms", self.fifo_expire_sync_ms, 0..=EXPIRE_MS_MAX)?;
        check("queue.cfq.fifo_expire_async_ms", self.fifo_expire_async_ms, 0..=EXPIRE_MS_MAX)
    }

    pub(super) fn slice(&self, sync: bool) -> Nanos {
        Nanos::millis(if sync { self.slice_sync_ms } else { self.slice_async_ms })
    }

    pub(super) fn fifo_expire(&self, sync: bool) -> Nanos {
        Nanos::millis(if sync { self.fifo_expire_sync_ms } else { self.fifo_expire_async_ms })
    }

    pub(super) fn slice_idle(&self) -> Nanos {
        Nanos::millis(self.slice_idle_ms)
    }

    /// Requests that asynchronous writes may have in a slice: twice the base for each of the four levels above the
    /// middle one (`cfq_prio_to_maxrq()`).
    pub(super) fn async_requests_max(&self) -> u32 {
        2 * (self.slice_async_rq + 3 * self.slice_async_rq)
    }
}
