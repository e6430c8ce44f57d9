//! What a task may ask of a full queue.
//!
//! **Rule.** A task that fills a queue, or that slept because one was full, may take 32 requests beyond the limit, all but the
//! first of them within 20 ms from then on. What it takes below the limit does not count. Queues share this, as it belongs to the task.
//! **Source.** `ioc_batching()`, `ioc_set_batching()`, block/blk-core.c, 2.6 to 4.20 (the legacy queue).
//! **Abstracted.** The kernel counts the time in ticks.

use units::Nanos;

/// Requests of a batch (`BLK_BATCH_REQ`).
const BATCH_REQUESTS: u32 = 32;
/// How long a batch may take (`BLK_BATCH_TIME`).
const BATCH_TIME: Nanos = Nanos::millis(20);

/// A task's batch (`nr_batch_requests` and `last_waited` of `struct io_context`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Batch {
    left: u32,
    since: Nanos,
}

impl Batch {
    /// The task begins a batch, unless it is amidst one.
    pub fn begin(&mut self, now: Nanos) {
        if !self.is_open(now) {
            *self = Batch { left: BATCH_REQUESTS, since: now };
        }
    }

    /// Whether the task may go on.
    pub(crate) fn is_open(&self, now: Nanos) -> bool {
        self.left == BATCH_REQUESTS || self.left > 0 && now < self.since + BATCH_TIME
    }

    /// The task took a request of a queue that is full with it.
    pub(crate) fn take(&mut self, now: Nanos) {
        self.left -= u32::from(self.is_open(now));
    }
}

#[cfg(test)]
mod tests {
    use super::Batch;
    use units::Nanos;

    #[test]
    fn thirty_two_requests() {
        let mut batch = Batch::default();
        assert!(!batch.is_open(Nanos::ZERO), "nobody begins with one");
        batch.begin(Nanos::ZERO);
        for _ in 0..32 {
            assert!(batch.is_open(Nanos::ZERO));
            batch.begin(Nanos::ZERO);
            batch.take(Nanos::ZERO);
        }
        assert!(!batch.is_open(Nanos::ZERO), "beginning amidst it adds nothing");
    }

    #[test]
    fn within_twenty_milliseconds_of_the_wait() {
        let mut batch = Batch::default();
        batch.begin(Nanos::ZERO);
        assert!(batch.is_open(Nanos::secs(1)), "the first request may come at any time");
        batch.take(Nanos::millis(1));
        assert!(batch.is_open(Nanos(19_999_999)));
        assert!(!batch.is_open(Nanos::millis(20)));
    }
}
