//! Floating proportions: which share of the recent writeback each device did.
//!
//! Rule: every page written counts for its device and for all. At the end of a period of 3 s the sums are halved, once
//! for each period that passed; a device's own sum is halved when it is next looked at.
//! Source: lib/flex_proportions.c, `writeout_period()`, `wb_domain_writeout_inc()`, mm/page-writeback.c (4.20; 6.12).
//! Abstracted: the timer; periods are accounted when the proportions are used. Per-CPU batches.
//! Omitted: a device's upper share (`max_prop_frac`).

use super::HZ;

/// Length of a period in jiffies (`VM_COMPLETIONS_PERIOD_LEN`).
const PERIOD: u64 = 3 * HZ;

/// Everybody's events.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Total {
    events: u64,
    period: u64,
    /// End of the present period in jiffies; `None` while nothing is counted.
    ends: Option<u64>,
}

/// One device's events.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Share {
    events: u64,
    period: u64,
}

impl Total {
    /// Ends the periods that have passed.
    fn advance(&mut self, now: u64) {
        let Some(ends) = self.ends.filter(|&ends| now >= ends) else { return };
        let passed = (now - ends) / PERIOD + 1;
        if self.events <= 1 {
            self.ends = None;
            return;
        }
        if passed < 64 {
            self.events >>= passed;
        } else {
            self.events = 0;
        }
        self.period += passed;
        self.ends = Some(ends + passed * PERIOD);
    }

    /// Counts an event for a device.
    pub(super) fn count(&mut self, share: &mut Share, now: u64) {
        self.advance(now);
        share.reflect(self.period);
        share.events += 1;
        self.events += 1;
        self.ends.get_or_insert(now + PERIOD);
    }

    /// A device's share as numerator and denominator.
    pub(super) fn fraction(&mut self, share: &mut Share, now: u64) -> (u64, u64) {
        self.advance(now);
        share.reflect(self.period);
        let (num, den) = (share.events, self.events);
        if den <= num { (num, num.max(1)) } else { (num, den) }
    }
}

impl Share {
    fn reflect(&mut self, period: u64) {
        let missed = period - self.period;
        self.events = if missed < 64 { self.events >> missed } else { 0 };
        self.period = period;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_follow_the_events_and_old_ones_fade() {
        let (mut total, mut a, mut b) = (Total::default(), Share::default(), Share::default());
        assert_eq!(total.fraction(&mut a, 0), (0, 1));
        for _ in 0..300 {
            total.count(&mut a, 0);
        }
        for _ in 0..100 {
            total.count(&mut b, 0);
        }
        assert_eq!(total.fraction(&mut a, PERIOD - 1), (300, 400));
        // One period later all are halved, and 150 events of b count fully: 150 of 200 + 150.
        assert_eq!(total.fraction(&mut a, PERIOD), (150, 200));
        for _ in 0..150 {
            total.count(&mut b, PERIOD);
        }
        assert_eq!(total.fraction(&mut b, PERIOD), (200, 350));
        // Two more periods: a quarter.
        assert_eq!(total.fraction(&mut a, 3 * PERIOD), (37, 87));
    }

    #[test]
    fn a_machine_at_rest_stops_counting_periods() {
        let (mut total, mut a) = (Total::default(), Share::default());
        total.count(&mut a, 0);
        total.fraction(&mut a, 100 * PERIOD);
        assert_eq!((total.ends, total.period), (None, 0));
    }
}
