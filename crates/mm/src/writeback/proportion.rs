//! Floating proportions: which share of the recent writeback was done on each device for each group, of the whole machine's and of the
//! group's, and of the pages dirtied each task's.
//!
//! Rule ([`DeviceShare`]): until 3.5 a share is of the pages since the present period began and of one period, which is a power of
//! two of pages near twice the dirty limit; with each period what counts of the past is halved. So a device that begins to write gets half of
//! its share by the first period, three quarters by the second. Tasks' shares are of that kind.
//! Since 3.6 every page written counts for its device and for all. At the end of a period of 3 s the sums are halved, once
//! for each period that passed; a device's own sum is halved when it is next looked at.
//! Source: lib/proportions.c (3.1), `calc_period_shift()`, mm/page-writeback.c (3.1); lib/flex_proportions.c, `writeout_period()`, `wb_domain_writeout_inc()`, mm/page-writeback.c (4.20; 6.12).
//! Abstracted: the timer; periods are accounted when the proportions are used. Per-CPU batches.
//! Omitted: a device's upper share (`max_prop_frac`).

use rules::DeviceShare;

use super::{HZ, WbId};
use crate::Mm;
use crate::memcg::ROOT;

/// Length of a period in jiffies (`VM_COMPLETIONS_PERIOD_LEN`).
const PERIOD: u64 = 3 * HZ;

/// Everybody's events.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Total {
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

    /// Counts events for a device.
    pub(super) fn count(&mut self, share: &mut Share, events: u64, now: u64) {
        self.advance(now);
        share.reflect(self.period);
        share.events += events;
        self.events += events;
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

/// Pages of one device or task, as a share of the last pages of everybody (`struct prop_local_percpu`, `struct
/// prop_local_single`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct PageShare {
    events: u64,
    period: u64,
}

impl PageShare {
    /// Halves what is counted for each `length` events of everybody that have passed.
    fn reflect(&mut self, everybody: u64, length: u64) {
        let passed = (everybody / length).saturating_sub(self.period);
        self.events = if passed < 64 { self.events >> passed } else { 0 };
        self.period = everybody / length;
    }

    /// There are so many pages more; `everybody` counts them too.
    pub(super) fn count(&mut self, pages: u64, everybody: u64, length: u64) {
        self.reflect(everybody, length);
        self.events += pages;
    }

    /// The share as numerator and denominator.
    pub(super) fn fraction(&mut self, everybody: u64, length: u64) -> (u64, u64) {
        self.reflect(everybody, length);
        let denominator = length + everybody % length;
        (self.events.min(denominator), denominator)
    }
}

impl Mm {
    /// Pages have been written: they count for the machine, and for the group.
    #[inline]
    pub(super) fn count_share(&mut self, id: WbId, pages: u64, now: u64) {
        let wb = &mut self.writeback.wbs[id];
        match self.rules.device_share {
            DeviceShare::ByTime => self.writeback.total.count(&mut wb.share, pages, now),
            DeviceShare::ByPages => {
                let length = self.writeback.completion_period;
                self.writeback.completions += pages;
                wb.page_share.count(pages, self.writeback.completions, length);
            }
        }
        if id.group != ROOT {
            self.memcg[id.group].domain.total.count(&mut wb.group_share, pages, now);
        }
    }

    /// Its share of what was written lately, as numerator and denominator.
    pub(super) fn wb_share(&mut self, id: WbId, now: u64) -> (u64, u64) {
        self.writeback.wbs.get_mut(id);
        let wb = &mut self.writeback.wbs[id];
        match self.rules.device_share {
            DeviceShare::ByTime => self.writeback.total.fraction(&mut wb.share, now),
            DeviceShare::ByPages => {
                let length = self.writeback.completion_period;
                wb.page_share.fraction(self.writeback.completions, length)
            }
        }
    }

    /// Its share of what was written lately for its group.
    pub(super) fn wb_share_of_group(&mut self, id: WbId, now: u64) -> (u64, u64) {
        let wb = &mut self.writeback.wbs[id];
        self.memcg[id.group].domain.total.fraction(&mut wb.group_share, now)
    }
}

/// Pages after which shares are halved, by the dirty limit (`calc_period_shift()`).
pub(super) fn page_period(limit: u64) -> u64 {
    1 << (1 + (limit.max(2) - 1).ilog2())
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
            total.count(&mut a, 1, 0);
        }
        for _ in 0..100 {
            total.count(&mut b, 1, 0);
        }
        assert_eq!(total.fraction(&mut a, PERIOD - 1), (300, 400));
        // One period later all are halved, and 150 events of b count fully: 150 of 200 + 150.
        assert_eq!(total.fraction(&mut a, PERIOD), (150, 200));
        for _ in 0..150 {
            total.count(&mut b, 1, PERIOD);
        }
        assert_eq!(total.fraction(&mut b, PERIOD), (200, 350));
        // Two more periods: a quarter.
        assert_eq!(total.fraction(&mut a, 3 * PERIOD), (37, 87));
    }

    #[test]
    fn a_share_of_pages_halves_with_each_period_of_everybody() {
        let mut share = PageShare::default();
        // Alone through one period of 100 pages: 100 of 100 + 0.
        share.count(99, 99, 100);
        share.count(1, 100, 100);
        assert_eq!(share.fraction(100, 100), (50, 100), "what was counted before the period's end is halved with it");
        // Two more periods without a page of its own.
        assert_eq!(share.fraction(350, 100), (12, 150));
    }

    #[test]
    fn the_only_device_gets_half_of_what_it_lacks_with_each_period() {
        let (mut share, length) = (PageShare::default(), page_period(50_000));
        assert_eq!(length, 1 << 16, "50000 takes 16 bits");
        let mut fractions = Vec::new();
        for period in 1..=3 {
            for page in (period - 1) * length + 1..=period * length {
                share.count(1, page, length);
            }
            let (num, den) = share.fraction(period * length, length);
            assert_eq!(den, length);
            fractions.push((num as f64 / den as f64 * 1000.0).round());
        }
        assert_eq!(fractions, [500.0, 750.0, 875.0]);
    }

    #[test]
    fn a_machine_at_rest_stops_counting_periods() {
        let (mut total, mut a) = (Total::default(), Share::default());
        total.count(&mut a, 1, 0);
        total.fraction(&mut a, 100 * PERIOD);
        assert_eq!((total.ends, total.period), (None, 0));
    }
}
