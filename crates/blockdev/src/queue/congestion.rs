//! When a queue is congested and when it is full.
//!
//! **Rule.** Requests are counted from submission to completion, synchronous and asynchronous apart. A side becomes
//! congested when it reaches 7/8 of `nr_requests` plus one, stays so until it falls below 13/16 minus one, and
//! is full at `nr_requests`. In a multi-queue (blk-mq) both sides share these, and nothing ever says that it is
//! congested.
//! **Source.** `queue_congestion_on_threshold()`, `blk_queue_congestion_threshold()`, `__get_request()` and
//! `freed_request()`, block/blk-core.c, 2.6 to 4.20 (the legacy queue); `blk_mq_get_tag()`, block/blk-mq-tag.c (4.20).
//! **Omitted.** The batch of 32 requests that a task may allocate beyond a full queue (`ioc_batching()`).

/// One side of the queue.
#[derive(Clone, Copy, Debug, Default)]
struct Side {
    count: u32,
    congested: bool,
}

/// The counts of both sides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Congestion {
    sides: [Side; 2],
    nr_requests: u32,
    /// Both sides share them.
    shared: bool,
    on: u32,
    off: u32,
}

impl Congestion {
    pub(crate) fn new(nr_requests: u32, shared: bool) -> Congestion {
        Congestion {
            sides: [Side::default(); 2],
            nr_requests,
            shared,
            on: (nr_requests - nr_requests / 8 + 1).min(nr_requests),
            off: (nr_requests - nr_requests / 8 - nr_requests / 16 - 1).max(1),
        }
    }

    /// A request was made.
    pub(crate) fn add(&mut self, sync: bool) {
        let side = &mut self.sides[usize::from(sync)];
        side.count += 1;
        side.congested |= !self.shared && side.count >= self.on;
    }

    /// A request completed or was merged into another.
    pub(crate) fn remove(&mut self, sync: bool) {
        let side = &mut self.sides[usize::from(sync)];
        assert!(side.count > 0, "a request leaves once");
        side.count -= 1;
        side.congested &= side.count >= self.off;
    }

    pub(crate) fn is_congested(&self, sync: bool) -> bool {
        self.sides[usize::from(sync)].congested
    }

    pub(crate) fn is_full(&self, sync: bool) -> bool {
        let [asynchronous, synchronous] = self.sides.map(|side| side.count);
        let queued = match (self.shared, sync) {
            (true, _) => asynchronous + synchronous,
            (false, true) => synchronous,
            (false, false) => asynchronous,
        };
        queued >= self.nr_requests
    }
}

#[cfg(test)]
mod tests {
    use super::Congestion;

    #[test]
    fn on_at_113_of_128_and_off_below_103() {
        // on: 128 - 16 + 1 = 113; off: 128 - 16 - 8 - 1 = 103
        let mut congestion = Congestion::new(128, false);
        for _ in 0..112 {
            congestion.add(false);
        }
        assert!(!congestion.is_congested(false));
        congestion.add(false);
        assert!(congestion.is_congested(false));
        assert!(!congestion.is_congested(true), "sides are apart");
        for _ in 103..113 {
            congestion.remove(false);
            assert!(congestion.is_congested(false));
        }
        congestion.remove(false);
        assert!(!congestion.is_congested(false));
    }

    #[test]
    fn a_multi_queue_is_never_congested() {
        let mut congestion = Congestion::new(128, true);
        for _ in 0..128 {
            congestion.add(false);
        }
        assert!(congestion.is_full(false));
        assert!(!congestion.is_congested(false));
    }

    #[test]
    fn full_at_nr_requests() {
        for shared in [false, true] {
            let mut congestion = Congestion::new(4, shared);
            for _ in 0..3 {
                congestion.add(true);
            }
            assert!(!congestion.is_full(true));
            congestion.add(true);
            assert!(congestion.is_full(true));
            assert_eq!(congestion.is_full(false), shared, "the other side");
        }
    }
}
