//! mq-deadline: sector order in batches, reads before writes, with deadlines.
//!
//! **Rule.** Requests go in ascending sector order within one direction, up to `fifo_batch` in a row. Then a direction
//! is chosen: reads, unless reads have been preferred to waiting writes `writes_starved` times. The new batch begins at
//! the oldest request of that direction if its deadline has passed or nothing lies ahead, else where it left off.
//! **Source.** `__dd_dispatch_request()`, `deadline_check_fifo()`, `dd_merged_requests()`, block/mq-deadline.c, 6.12.
//! **Omitted.** I/O priority classes and their aging, `async_depth`, zoned devices.

use super::Request;
use super::sorted::Sorted;
use crate::bio::Op;
use crate::slab::Slab;
use crate::spec::{SpecError, check};
use serde::{Deserialize, Serialize};
use units::Nanos;

/// Tunables of mq-deadline.
#[derive(Deserialize, Serialize, Clone, PartialEq, Eq, Debug)]
#[serde(default, deny_unknown_fields)]
pub struct DeadlineSpec {
    /// A read's deadline after its submission; 0 to 3,600,000 ms. Default 500.
    pub read_expire_ms: u64,
    /// A write's deadline after its submission; 0 to 3,600,000 ms. Default 5000.
    pub write_expire_ms: u64,
    /// How often reads are preferred to waiting writes; 0 to 1000. Default 2.
    pub writes_starved: u32,
    /// Requests in a row in sector order; 1 to 10,000. Default 16.
    pub fifo_batch: u32,
    /// Whether a bio may join the front of a request. Default true.
    pub front_merges: bool,
}

impl Default for DeadlineSpec {
    fn default() -> Self {
        DeadlineSpec {
            read_expire_ms: 500,
            write_expire_ms: 5000,
            writes_starved: 2,
            fifo_batch: 16,
            front_merges: true,
        }
    }
}

impl DeadlineSpec {
    pub(super) fn validate(&self) -> Result<(), SpecError> {
        const EXPIRE_MS_MAX: u64 = 3_600_000;
        check("queue.deadline.read_expire_ms", self.read_expire_ms, 0..=EXPIRE_MS_MAX)?;
        check("queue.deadline.write_expire_ms", self.write_expire_ms, 0..=EXPIRE_MS_MAX)?;
        check("queue.deadline.writes_starved", u64::from(self.writes_starved), 0..=1000)?;
        check("queue.deadline.fifo_batch", u64::from(self.fifo_batch), 1..=10_000)
    }
}

/// The requests of one direction.
#[derive(Clone, Debug)]
struct Direction {
    queued: Sorted,
    /// Where the last request dispatched in this direction began (`latest_pos`).
    position: u64,
}

impl Direction {
    fn new(expire_ms: u64) -> Direction {
        Direction { queued: Sorted::new(Nanos::millis(expire_ms)), position: 0 }
    }

    /// The next request in sector order from where the last one began.
    fn ahead(&self) -> Option<u32> {
        self.queued.from(self.position)
    }

    /// Where a new batch begins.
    fn batch_start(&self, requests: &Slab<Request>, now: Nanos) -> u32 {
        let expired = self.queued.expired(requests, now);
        expired.or_else(|| self.ahead()).unwrap_or(self.queued.oldest())
    }
}

/// Both directions and the state of the current batch.
#[derive(Clone, Debug)]
pub(super) struct Deadline {
    directions: [Direction; 2],
    /// Direction of the current batch.
    last: usize,
    batched: u32,
    starved: u32,
    fifo_batch: u32,
    writes_starved: u32,
    front_merges: bool,
}

impl Deadline {
    pub(super) fn new(spec: &DeadlineSpec) -> Deadline {
        Deadline {
            directions: [Direction::new(spec.read_expire_ms), Direction::new(spec.write_expire_ms)],
            last: Op::Read.index(),
            batched: 0,
            starved: 0,
            fifo_batch: spec.fifo_batch,
            writes_starved: spec.writes_starved,
            front_merges: spec.front_merges,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.directions.iter().all(|d| d.queued.is_empty())
    }

    /// The requests that one could join.
    pub(super) fn like(&self, request: &Request) -> &Sorted {
        &self.directions[request.op.index()].queued
    }

    pub(super) fn like_mut(&mut self, request: &Request) -> &mut Sorted {
        &mut self.directions[request.op.index()].queued
    }

    pub(super) fn front_merges(&self) -> bool {
        self.front_merges
    }

    pub(super) fn insert(&mut self, requests: &mut Slab<Request>, slot: u32, now: Nanos) {
        let request = requests[slot];
        self.like_mut(&request).insert(requests, slot, now);
    }

    pub(super) fn pop(&mut self, requests: &mut Slab<Request>, now: Nanos) -> Option<u32> {
        let slot = self.choose(requests, now)?;
        let request = requests[slot];
        let direction = &mut self.directions[request.op.index()];
        direction.queued.remove(requests, slot);
        direction.position = request.sector;
        self.batched += 1;
        Some(slot)
    }

    fn choose(&mut self, requests: &Slab<Request>, now: Nanos) -> Option<u32> {
        if self.batched < self.fifo_batch
            && let Some(slot) = self.directions[self.last].ahead()
        {
            return Some(slot);
        }
        let [reads, writes] = &self.directions;
        let direction = match (reads.queued.is_empty(), writes.queued.is_empty()) {
            (true, true) => return None,
            (false, true) => Op::Read,
            (true, false) => Op::Write,
            (false, false) if self.starved >= self.writes_starved => Op::Write,
            (false, false) => {
                self.starved += 1;
                Op::Read
            }
        };
        if direction == Op::Write {
            self.starved = 0;
        }
        self.last = direction.index();
        self.batched = 0;
        Some(self.directions[self.last].batch_start(requests, now))
    }
}
