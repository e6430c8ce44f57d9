//! One queue of CFQ: the synchronous requests of a process, or all asynchronous ones.

use super::super::sorted::Sorted;
use super::CfqSpec;
use super::cooperators::Sharing;
use crate::bio::Op;
use crate::queue::Request;
use crate::slab::{NIL, Slab};
use units::Nanos;

/// How far apart requests are that cost a seek: 400 KiB in sectors (`CFQQ_SEEK_THR`).
const SEEK_SECTORS: u64 = 8 * 100;
/// Of the last 32 requests, those after a seek from which on a process seeks (`CFQQ_SEEKY`).
const SEEKS_MAX: u32 = 32 / 8;
/// Requests queued at once that make a queue deep.
const DEEP: usize = 4;
/// How far behind the head a request may lie: 16 MiB in sectors (`cfq_back_max`), and how much farther that counts.
const BACK_MAX: u64 = 16 * 1024 * 2;
const BACK_PENALTY: u64 = 2;

/// Which service tree a queue is in (`wl_type_t`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Workload {
    /// Asynchronous writes.
    Async,
    /// Processes that the disk does not wait for.
    SyncNoIdle,
    /// Processes that the disk waits for.
    Sync,
}

/// How long a process takes between the end of a request and its next one (`cfq_io_context`): means with weights of 1/8.
#[derive(Clone, Copy, Debug)]
pub(super) struct ThinkTime {
    /// End of its last synchronous request.
    pub(super) last_end: Nanos,
    samples: u64,
    total: u64,
    mean: u64,
}

impl ThinkTime {
    pub(super) fn new(now: Nanos) -> ThinkTime {
        ThinkTime { last_end: now, samples: 0, total: 0, mean: 0 }
    }

    /// A request arrives; more than twice `idle` counts as that (`cfq_update_io_thinktime()`).
    pub(super) fn note(&mut self, now: Nanos, idle: Nanos) {
        let time = now.since(self.last_end).0.min(2 * idle.0);
        self.samples = (7 * self.samples + 256) / 8;
        self.total = (7 * self.total + 256 * time) / 8;
        self.mean = (self.total + 128) / self.samples;
    }

    /// The mean, once enough is known.
    pub(super) fn mean(&self) -> Option<Nanos> {
        (self.samples > 80).then_some(Nanos(self.mean))
    }
}

/// The turn of a queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Slice {
    /// No request of it has completed, so that it has no end yet.
    pub(super) new: bool,
    pub(super) start: Nanos,
    pub(super) end: Nanos,
    /// Requests dispatched in it.
    pub(super) dispatched: u32,
    /// Whether the oldest request's deadline was looked at in it.
    pub(super) fifo_checked: bool,
    /// It goes on until a further request comes (`wait_busy`).
    pub(super) wait_busy: bool,
}

impl Slice {
    /// Whether its time is over (`cfq_slice_used()`).
    pub(super) fn is_used(&self, now: Nanos) -> bool {
        !self.new && now >= self.end
    }

    /// What is left of it.
    pub(super) fn left(&self, now: Nanos) -> Nanos {
        self.end.since(now)
    }
}

/// A queue (`cfq_queue`).
#[derive(Clone, Debug)]
pub(super) struct ServiceQueue {
    pub(super) requests: Sorted,
    pub(super) sync: bool,
    /// Its next request in sector order.
    pub(super) next: u32,
    /// The tree that it waits in for its turn, or has its turn of.
    pub(super) tree: Option<Workload>,
    /// Its place in that: lower ones come first.
    pub(super) key: i64,
    /// Requests in the device.
    pub(super) in_flight: u32,
    pub(super) slice: Slice,
    /// What it had left of its last slice, or took too much.
    pub(super) residue: i64,
    /// The disk waits for its next request.
    pub(super) idle_window: bool,
    pub(super) deep: bool,
    /// Metadata queued.
    pub(super) meta: u32,
    pub(super) sharing: Sharing,
    seek_history: u32,
    last_end: Option<u64>,
}

impl ServiceQueue {
    pub(super) fn new(spec: &CfqSpec, sync: bool) -> ServiceQueue {
        ServiceQueue {
            requests: Sorted::new(spec.fifo_expire(sync)),
            sync,
            next: NIL,
            tree: None,
            key: 0,
            in_flight: 0,
            slice: Slice::default(),
            residue: 0,
            idle_window: sync,
            deep: false,
            meta: 0,
            sharing: Sharing::default(),
            seek_history: 0,
            last_end: None,
        }
    }

    /// The tree that it belongs in now.
    pub(super) fn workload(&self) -> Workload {
        match (self.sync, self.idle_window) {
            (false, _) => Workload::Async,
            (true, false) => Workload::SyncNoIdle,
            (true, true) => Workload::Sync,
        }
    }

    /// Whether it has no request and no turn.
    pub(super) fn is_idle(&self) -> bool {
        self.requests.is_empty() && self.in_flight == 0 && self.tree.is_none()
    }

    pub(super) fn is_seeky(&self) -> bool {
        self.seek_history.count_ones() > SEEKS_MAX
    }

    /// Notes how far a new request is from the one before (`cfq_update_io_seektime()`).
    pub(super) fn note_seek(&mut self, request: &Request) {
        let distance = self.last_end.map_or(0, |last| last.abs_diff(request.sector));
        self.seek_history = (self.seek_history << 1) | u32::from(distance > SEEK_SECTORS);
        self.last_end = Some(request.end());
    }

    /// Whether the disk is to wait for it from now on, by the mean that its process thinks (`cfq_update_idle_window()`).
    pub(super) fn update_idle_window(&mut self, requests: &Slab<Request>, idle: Nanos, think: Option<Nanos>) {
        if !self.sync {
            return;
        }
        self.deep |= self.requests.len() >= DEEP;
        // Writes that someone waits for come alone (`REQ_NOIDLE`).
        let alone = self.next != NIL && requests[self.next].op == Op::Write;
        if alone || idle == Nanos::ZERO || !self.deep && self.is_seeky() {
            self.idle_window = false;
        } else if let Some(mean) = think {
            self.idle_window = mean <= idle;
        }
    }

    /// Takes a request that was added into account.
    pub(super) fn consider(&mut self, requests: &Slab<Request>, slot: u32, head: u64) {
        self.next = if self.next == NIL { slot } else { choose(requests, self.next, slot, head) };
    }

    /// What follows `slot`, which is going to leave (`cfq_find_next_rq()`).
    pub(super) fn following(&self, requests: &Slab<Request>, slot: u32) -> u32 {
        let (before, behind) = self.requests.around(requests, slot);
        let first = || self.requests.from(0).filter(|first| *first != slot);
        match (behind.or_else(first), before) {
            (Some(next), Some(previous)) => choose(requests, next, previous, requests[slot].sector),
            (next, previous) => next.or(previous).unwrap_or(NIL),
        }
    }
}

/// Which of two requests is better served with the head at a sector: a synchronous one, metadata, the nearer ahead; what lies
/// behind counts double, and far behind only if nothing else is left (`cfq_choose_req()`).
fn choose(requests: &Slab<Request>, a: u32, b: u32, head: u64) -> u32 {
    let rank = |slot: u32| {
        let Request { sector, meta, .. } = requests[slot];
        let distance = if sector >= head {
            Some(sector - head)
        } else {
            (sector + BACK_MAX >= head).then(|| (head - sector) * BACK_PENALTY)
        };
        // Of two that are too far behind the first is better; at one distance the one ahead.
        (!meta, distance.is_none(), distance.unwrap_or(sector), sector < head)
    };
    if rank(b) < rank(a) { b } else { a }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(requests: &mut Slab<Request>, sector: u64) -> u32 {
        requests.insert(Request::new(Nanos::ZERO, Op::Read, true, (sector, 8), NIL))
    }

    #[test]
    fn behind_counts_double_and_far_behind_last() {
        let mut requests = Slab::new();
        let head = 100_000;
        let [near_behind, ahead, far_behind] = [head - 1000, head + 1999, head - BACK_MAX - 1];
        let [near_behind, ahead, far_behind] = [near_behind, ahead, far_behind].map(|s| at(&mut requests, s));
        assert_eq!(choose(&requests, near_behind, ahead, head), ahead, "1999 are less than 2 x 1000");
        let farther = at(&mut requests, head + 2001);
        assert_eq!(choose(&requests, farther, near_behind, head), near_behind);
        let very_far = at(&mut requests, head + 1_000_000_000);
        assert_eq!(choose(&requests, far_behind, very_far, head), very_far);
        let farther_behind = at(&mut requests, 7);
        assert_eq!(choose(&requests, far_behind, farther_behind, head), farther_behind, "one seek back is enough");
    }

    #[test]
    fn a_mean_needs_three_samples_and_follows_them() {
        let idle = Nanos::millis(8);
        let mut think = ThinkTime::new(Nanos::ZERO);
        // Samples weigh 256: 32, 60, 84 after one, two, three.
        think.note(Nanos::millis(4), idle);
        think.note(Nanos::millis(4), idle);
        assert_eq!(think.mean(), None);
        think.note(Nanos::millis(4), idle);
        let mean = think.mean().expect("84 > 80");
        assert!(mean.0.abs_diff(4_000_000 * 169 / 168) < 10_000, "84 stand for 84.5: {mean:?}");
        for _ in 0..100 {
            think.note(Nanos::secs(1), idle);
        }
        // The number of samples ends at 249 of 256: (7 * 249 + 256) / 8 is 249.
        let mean = think.mean().expect("known").0;
        assert!(mean.abs_diff(16_000_000 * 256 / 249) < 100_000, "no more than twice the idle time: {mean}");
    }

    #[test]
    fn five_seeks_of_32_make_a_seeker() {
        let mut queue = ServiceQueue::new(&CfqSpec::default(), true);
        let mut sector = 1_000_000;
        let mut request = |queue: &mut ServiceQueue, gap: u64| {
            sector += gap;
            queue.note_seek(&Request::new(Nanos::ZERO, Op::Read, true, (sector, 8), NIL));
            sector += 8;
        };
        for _ in 0..4 {
            request(&mut queue, 0);
            request(&mut queue, 801);
        }
        request(&mut queue, 800);
        assert!(!queue.is_seeky());
        request(&mut queue, 801);
        assert!(queue.is_seeky());
    }
}
