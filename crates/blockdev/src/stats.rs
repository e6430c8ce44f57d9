//! Counters as in `/proc/diskstats`.
//!
//! **Rule.** A request counts once when it completes; a bio or request merged into another counts as a merge; the
//! device is busy while a request is queued or in it. **Source.** `blk_account_io_*()`, block/blk-mq.c, and
//! Documentation/admin-guide/iostats.rst (6.12). **Abstracted.** Times are exact, where Linux counts jiffies
//! (busy) or milliseconds. **Omitted.** Discards; partitions.

use crate::bio::Op;
use units::Nanos;

/// Counters of one kind of operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OpStats {
    /// Requests completed.
    pub ios: u64,
    /// Bios and requests that were merged into another request.
    pub merges: u64,
    /// Sectors of 512 bytes of the completed requests.
    pub sectors: u64,
    /// Sum over completed requests of the time from submission to completion.
    pub time: Nanos,
}

/// Counters of a device since it was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DeviceStats {
    /// Reads.
    pub read: OpStats,
    /// Writes.
    pub write: OpStats,
    /// Flushes; those that shared one are one.
    pub flush: OpStats,
    /// Time with at least one request queued or in the device (`io_ticks`), up to the last call.
    pub busy: Nanos,
    /// Requests queued or in the device, integrated over time (`time_in_queue` up to 4.x), up to the last call. 6.12 prints
    /// the sum of the three `time`s instead, which lacks requests under way and those that another absorbed.
    pub time_in_queue: Nanos,
}

/// Keeps the counters of one device.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Accounting {
    per_op: [OpStats; 3],
    busy: Nanos,
    time_in_queue: Nanos,
    outstanding: u32,
    last: Nanos,
}

impl Accounting {
    /// A request was made of a bio.
    pub(crate) fn start(&mut self, now: Nanos) {
        self.settle(now);
        self.outstanding += 1;
    }

    /// A bio was merged into a queued request.
    pub(crate) fn merge_bio(&mut self, op: Op) {
        self.per_op[op.index()].merges += 1;
    }

    /// Two queued requests became one.
    pub(crate) fn merge_request(&mut self, now: Nanos, op: Op) {
        self.settle(now);
        self.outstanding -= 1;
        self.per_op[op.index()].merges += 1;
    }

    /// A request that was `started` completes now.
    pub(crate) fn complete(&mut self, now: Nanos, op: Op, sectors: u64, started: Nanos) {
        self.settle(now);
        self.outstanding -= 1;
        let stats = &mut self.per_op[op.index()];
        stats.ios += 1;
        stats.sectors += sectors;
        stats.time += now - started;
    }

    /// Brings the integrals over time up to `now`.
    pub(crate) fn settle(&mut self, now: Nanos) {
        let elapsed = now - self.last;
        self.last = now;
        if self.outstanding > 0 {
            self.busy += elapsed;
            self.time_in_queue += Nanos(elapsed.0 * u64::from(self.outstanding));
        }
    }

    /// Requests queued or in the device.
    pub(crate) fn outstanding(&self) -> usize {
        self.outstanding as usize
    }

    pub(crate) fn stats(&self) -> DeviceStats {
        DeviceStats {
            read: self.per_op[Op::Read.index()],
            write: self.per_op[Op::Write.index()],
            flush: self.per_op[Op::Flush.index()],
            busy: self.busy,
            time_in_queue: self.time_in_queue,
        }
    }
}
