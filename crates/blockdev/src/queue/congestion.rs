//! When a queue is congested and when it is full.
//!
//! **Rule.** Requests are counted from submission to completion, synchronous and asynchronous apart. A side becomes
//! congested when it reaches 7/8 of `nr_requests` plus one, stays so until it falls below 13/16 minus one, and
//! is full at `nr_requests`. Who fills it begins a [`Batch`]; others have to sleep for a request until one is freed that leaves fewer than
//! `nr_requests`, which wakes who has waited longest, and lets anybody fill the queue again. Those with a batch may take
//! up to half as many again. Every request that is freed while its side is not congested says so again, and thereby wakes whoever waits
//! for congestion to end, of whatever device. In a multi-queue (blk-mq) both sides share `nr_requests`, nobody takes more, and
//! nothing ever says that it is congested, or not.
//! **Source.** `queue_congestion_on_threshold()`, `blk_queue_congestion_threshold()`, `__get_request()`, `freed_request()` and
//! `blk_clear_congested()`, block/blk-core.c, `clear_wb_congested()`, mm/backing-dev.c, 2.6 to 4.20 (the legacy queue);
//! `blk_mq_get_tag()`, block/blk-mq-tag.c (4.20).
//! **Abstracted.** Who has to sleep gets the request all the same, and is told to; a multi-queue wakes all who wait, and so does an empty
//! queue, for those who were woken may have had nothing to write any more. Readers never wait.

use super::batch::Batch;
use units::Nanos;

/// One side of the queue.
#[derive(Clone, Copy, Debug, Default)]
struct Side {
    count: u32,
    congested: bool,
    /// Somebody filled it, and nothing that was freed has made room since (`QUEUE_FLAG_ASYNCFULL`).
    full: bool,
    /// Requests freed that each wake a waiter.
    wakes: u32,
    /// A request was freed that left it below the threshold of congestion.
    eased: bool,
}

/// Which of the tasks that wait for requests are to be woken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wakes {
    /// So many, those first that have waited longest.
    Oldest(u32),
    /// All.
    All,
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

    /// A request is made; says whether its submitter would have had to sleep for it.
    pub(crate) fn add(&mut self, now: Nanos, sync: bool, batch: &mut Batch) -> bool {
        let refused = self.refuses(now, sync, batch);
        let side = &mut self.sides[usize::from(sync)];
        if !self.shared && side.count + 1 >= self.nr_requests {
            if !side.full {
                batch.begin(now);
                side.full = true;
            }
            batch.take(now);
        }
        side.count += 1;
        side.congested |= !self.shared && side.count >= self.on;
        refused
    }

    /// A request completed or was merged into another.
    pub(crate) fn remove(&mut self, sync: bool) {
        let side = &mut self.sides[usize::from(sync)];
        assert!(side.count > 0, "a request leaves once");
        side.count -= 1;
        if !self.shared && side.count < self.off {
            side.congested = false;
            side.eased = true;
        }
        if side.count < self.nr_requests {
            side.full = false;
            side.wakes += 1;
        }
    }

    /// Whether a task that asks for a request must sleep.
    pub(crate) fn refuses(&self, now: Nanos, sync: bool, batch: &Batch) -> bool {
        if self.shared {
            return self.sides.iter().map(|side| side.count).sum::<u32>() >= self.nr_requests;
        }
        let side = &self.sides[usize::from(sync)];
        let others = side.full && side.count + 1 >= self.nr_requests && !batch.is_open(now);
        others || side.count >= self.nr_requests * 3 / 2
    }

    /// How many of those who wait for asynchronous requests are to be woken.
    pub(crate) fn take_wakes(&mut self) -> Wakes {
        let [asynchronous, synchronous] = &mut self.sides;
        let freed = std::mem::take(&mut asynchronous.wakes);
        match self.shared {
            true if freed + std::mem::take(&mut synchronous.wakes) > 0 => Wakes::All,
            false if freed > 0 && asynchronous.count == 0 => Wakes::All,
            true => Wakes::Oldest(0),
            false => Wakes::Oldest(freed),
        }
    }

    /// Whether a freed write has said since this was asked last that there is no congestion.
    pub(crate) fn take_eased(&mut self) -> bool {
        std::mem::take(&mut self.sides[0].eased)
    }

    pub(crate) fn is_congested(&self, sync: bool) -> bool {
        self.sides[usize::from(sync)].congested
    }
}

#[cfg(test)]
mod tests {
    use super::{Batch, Congestion, Wakes};
    use units::Nanos;

    /// A queue to which tasks without a batch have added so many asynchronous requests.
    fn with(count: u32, nr_requests: u32, shared: bool) -> Congestion {
        let mut congestion = Congestion::new(nr_requests, shared);
        for _ in 0..count {
            add(&mut congestion, &mut Batch::default());
        }
        congestion.take_wakes();
        congestion
    }

    /// Whether the task would have had to sleep.
    fn add(congestion: &mut Congestion, batch: &mut Batch) -> bool {
        congestion.add(Nanos::ZERO, false, batch)
    }

    fn refuses(congestion: &Congestion, batch: &Batch) -> bool {
        congestion.refuses(Nanos::ZERO, false, batch)
    }

    #[test]
    fn on_at_113_of_128_and_off_below_103() {
        // on: 128 - 16 + 1 = 113; off: 128 - 16 - 8 - 1 = 103
        let mut congestion = with(112, 128, false);
        assert!(!congestion.is_congested(false));
        add(&mut congestion, &mut Batch::default());
        assert!(congestion.is_congested(false));
        assert!(!congestion.is_congested(true), "sides are apart");
        for _ in 103..113 {
            congestion.remove(false);
            assert!(congestion.is_congested(false));
        }
        assert!(!congestion.take_eased(), "nothing was freed below the threshold");
        congestion.remove(false);
        assert!(!congestion.is_congested(false));
        assert!(congestion.take_eased());
        assert!(!congestion.take_eased());
    }

    #[test]
    fn every_write_that_is_freed_without_congestion_says_so() {
        let mut congestion = with(2, 128, false);
        congestion.remove(false);
        assert!(congestion.take_eased(), "though it was not congested");
        assert!(!congestion.add(Nanos::ZERO, true, &mut Batch::default()));
        congestion.remove(true);
        assert!(!congestion.take_eased(), "a read does not");
        let mut shared = with(2, 128, true);
        shared.remove(false);
        assert!(!shared.take_eased(), "nor does a multi-queue");
    }

    #[test]
    fn a_multi_queue_is_never_congested_and_takes_nr_requests_of_both_kinds() {
        let mut congestion = with(127, 128, true);
        assert!(!refuses(&congestion, &Batch::default()));
        let mut batch = Batch::default();
        batch.begin(Nanos::ZERO);
        assert!(!congestion.add(Nanos::ZERO, true, &mut batch));
        assert!(refuses(&congestion, &batch), "a batch is worth nothing here");
        assert!(!congestion.is_congested(false));
        congestion.remove(true);
        assert_eq!(congestion.take_wakes(), Wakes::All);
        assert_eq!(congestion.take_wakes(), Wakes::Oldest(0));
    }

    #[test]
    fn who_fills_a_queue_goes_on_for_a_batch_and_others_wait() {
        let mut congestion = with(127, 128, false);
        let (mut filler, other) = (Batch::default(), Batch::default());
        assert!(!refuses(&congestion, &other));
        // The request that fills it is the first of 32.
        for _ in 0..32 {
            assert!(!add(&mut congestion, &mut filler));
            assert!(refuses(&congestion, &other));
        }
        assert!(refuses(&congestion, &filler));
        assert!(!congestion.refuses(Nanos::ZERO, true, &other), "sides are apart");
        // 159 of them; who asks may be woken once 127 are left.
        for left in (128..159).rev() {
            congestion.remove(false);
            assert_eq!(
                (congestion.take_wakes(), refuses(&congestion, &other)),
                (Wakes::Oldest(0), true),
                "{left} are left"
            );
        }
        congestion.remove(false);
        assert_eq!((congestion.take_wakes(), refuses(&congestion, &other)), (Wakes::Oldest(1), false));
    }

    #[test]
    fn what_is_taken_below_the_limit_leaves_a_batch_whole() {
        let mut congestion = with(100, 128, false);
        let mut batch = Batch::default();
        batch.begin(Nanos::ZERO);
        // 27 bring it to 127, 32 to 159.
        for _ in 0..27 + 32 {
            assert!(!add(&mut congestion, &mut batch));
        }
        assert!(refuses(&congestion, &batch));
    }

    #[test]
    fn nobody_takes_more_than_half_as_many_again() {
        let mut congestion = with(191, 128, false);
        let mut batch = Batch::default();
        batch.begin(Nanos::ZERO);
        assert!(!add(&mut congestion, &mut batch));
        assert!(refuses(&congestion, &batch));
        assert!(add(&mut congestion, &mut batch), "it is told to sleep, and gets the request");
    }

    #[test]
    fn each_request_that_leaves_room_wakes_one_and_the_last_all() {
        let mut congestion = with(3, 4, false);
        for _ in 0..2 {
            congestion.remove(false);
        }
        assert_eq!(congestion.take_wakes(), Wakes::Oldest(2));
        assert_eq!(congestion.take_wakes(), Wakes::Oldest(0));
        congestion.remove(false);
        assert_eq!(congestion.take_wakes(), Wakes::All);
        assert_eq!(congestion.take_wakes(), Wakes::Oldest(0));
    }
}
