//! mq-deadline: sector order in batches, reads before writes, with deadlines.
//!
//! **Rule.** Requests go in ascending sector order within one direction, up to `fifo_batch` in a row. Then a direction
//! is chosen: reads, unless reads have been preferred to waiting writes `writes_starved` times. The new batch begins at
//! the oldest request of that direction if its deadline has passed or nothing lies ahead, else where it left off.
//! **Source.** `__dd_dispatch_request()`, `deadline_check_fifo()`, `dd_merged_requests()`, block/mq-deadline.c, 6.12.
//! **Abstracted.** Sorted arrays in place of red-black trees. **Omitted.** I/O priority classes and their aging,
//! `async_depth`, zoned devices.

use super::{Request, Side};
use crate::bio::Op;
use crate::slab::{NIL, Slab};
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

/// The requests of one direction, in both orders.
#[derive(Clone, Debug)]
struct Direction {
    /// First sector and slot, ascending.
    sorted: Vec<(u64, u32)>,
    oldest: u32,
    youngest: u32,
    expire: Nanos,
    /// Where the last request dispatched in this direction began (`latest_pos`).
    position: u64,
}

impl Direction {
    fn new(expire_ms: u64) -> Direction {
        Direction { sorted: Vec::new(), oldest: NIL, youngest: NIL, expire: Nanos::millis(expire_ms), position: 0 }
    }

    /// Index of the first request at or after `key`.
    fn lower_bound(&self, key: (u64, u32)) -> usize {
        self.sorted.partition_point(|&entry| entry < key)
    }

    fn sort_in(&mut self, key: (u64, u32)) {
        let at = self.lower_bound(key);
        self.sorted.insert(at, key);
    }

    fn sort_out(&mut self, key: (u64, u32)) {
        let at = self.lower_bound(key);
        let removed = self.sorted.remove(at);
        assert_eq!(removed, key, "a queued request is in sector order");
    }

    fn push_youngest(&mut self, requests: &mut Slab<Request>, slot: u32) {
        requests[slot].older = self.youngest;
        requests[slot].younger = NIL;
        match self.youngest {
            NIL => self.oldest = slot,
            youngest => requests[youngest].younger = slot,
        }
        self.youngest = slot;
    }

    fn unlink(&mut self, requests: &mut Slab<Request>, slot: u32) {
        let Request { older, younger, .. } = requests[slot];
        match older {
            NIL => self.oldest = younger,
            older => requests[older].younger = younger,
        }
        match younger {
            NIL => self.youngest = older,
            younger => requests[younger].older = older,
        }
    }

    /// Puts `slot`, which is not linked, where `place` is, and unlinks `place`.
    fn replace(&mut self, requests: &mut Slab<Request>, place: u32, slot: u32) {
        let Request { older, younger, .. } = requests[place];
        requests[slot].older = older;
        requests[slot].younger = younger;
        match older {
            NIL => self.oldest = slot,
            older => requests[older].younger = slot,
        }
        match younger {
            NIL => self.youngest = slot,
            younger => requests[younger].older = slot,
        }
    }

    /// The next request in sector order from where the last one began.
    fn ahead(&self) -> Option<u32> {
        let at = self.lower_bound((self.position, 0));
        self.sorted.get(at).map(|&(_, slot)| slot)
    }

    /// Where a new batch begins.
    fn batch_start(&self, requests: &Slab<Request>, now: Nanos) -> u32 {
        let expired = requests[self.oldest].expires <= now;
        self.ahead().filter(|_| !expired).unwrap_or(self.oldest)
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
        self.directions.iter().all(|d| d.sorted.is_empty())
    }

    pub(super) fn insert(&mut self, requests: &mut Slab<Request>, slot: u32, now: Nanos) {
        let request = &mut requests[slot];
        let direction = &mut self.directions[request.op.index()];
        request.expires = now + direction.expire;
        direction.sort_in((request.sector, slot));
        direction.push_youngest(requests, slot);
    }

    pub(super) fn pop(&mut self, requests: &mut Slab<Request>, now: Nanos) -> Option<u32> {
        let slot = self.choose(requests, now)?;
        let request = requests[slot];
        let direction = &mut self.directions[request.op.index()];
        direction.sort_out((request.sector, slot));
        direction.unlink(requests, slot);
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
        let direction = match (reads.sorted.is_empty(), writes.sorted.is_empty()) {
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

    pub(super) fn find_merge(&self, requests: &Slab<Request>, part: &Request, sectors_max: u32) -> Option<(u32, Side)> {
        let direction = &self.directions[part.op.index()];
        let at = direction.lower_bound((part.sector, 0));
        let joins = |slot: u32, side| {
            let request = &requests[slot];
            let fits = request.sectors + part.sectors <= sectors_max;
            (fits && request.touches(part) == Some(side)).then_some((slot, side))
        };
        let before = at.checked_sub(1).map(|i| direction.sorted[i].1);
        let back = before.and_then(|slot| joins(slot, Side::Back));
        back.or_else(|| {
            let from = direction.lower_bound((part.end(), 0));
            let after = direction.sorted.get(from).filter(|_| self.front_merges);
            after.and_then(|&(_, slot)| joins(slot, Side::Front))
        })
    }

    /// `slot` now begins earlier than at `before`.
    pub(super) fn moved(&mut self, requests: &Slab<Request>, slot: u32, before: u64) {
        let request = &requests[slot];
        let direction = &mut self.directions[request.op.index()];
        direction.sort_out((before, slot));
        direction.sort_in((request.sector, slot));
    }

    /// `slot` and its neighbour on `side`, in sector order.
    pub(super) fn neighbours(&self, requests: &Slab<Request>, slot: u32, side: Side) -> Option<(u32, u32)> {
        let request = &requests[slot];
        let sorted = &self.directions[request.op.index()].sorted;
        let at = sorted.partition_point(|&entry| entry < (request.sector, slot));
        match side {
            Side::Back => sorted.get(at + 1).map(|&(_, next)| (slot, next)),
            Side::Front => Some((sorted[at.checked_sub(1)?].1, slot)),
        }
    }

    /// Takes `second` out, which joins `first`; `first` inherits the earlier deadline and its place.
    pub(super) fn absorb(&mut self, requests: &mut Slab<Request>, first: u32, second: u32) {
        let (a, b) = (requests[first], requests[second]);
        let direction = &mut self.directions[a.op.index()];
        direction.sort_out((b.sector, second));
        if b.expires < a.expires {
            direction.unlink(requests, first);
            requests[first].expires = b.expires;
            direction.replace(requests, second, first);
        } else {
            direction.unlink(requests, second);
        }
    }
}
