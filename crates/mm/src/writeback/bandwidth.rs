//! How fast a device writes, and how fast each of its writers may dirty pages.
//!
//! Rule: every 200 ms the pages written since give a bandwidth, which is mixed into the estimate in proportion to the
//! time out of 4.096 s (1024 jiffies of 250), and that into a smoother one. The rate of a writer moves towards what the
//! N writers would need to be balanced, `task rate * bandwidth / dirty rate`, in small steps, and only if that also
//! brings the dirty pages nearer to the set point. The limit of the machine follows up at once and down by 1/32.
//! Source: `wb_update_write_bandwidth()`, `wb_update_dirty_ratelimit()`, `update_dirty_limit()`,
//! `__wb_update_bandwidth()`, mm/page-writeback.c (4.20).
//! Since/until: since 5.16 the flusher restarts the measurement when it begins instead of skipping quiet periods; here
//! always as 4.20.

use super::position::{DirtyControl, RATIO_SHIFT};
use super::{HZ, Wb, Writeback};
use crate::memcg::GroupDomain;

/// Jiffies between updates (`BANDWIDTH_INTERVAL`).
pub(super) const INTERVAL: u64 = HZ / 5;
/// Jiffies over which the bandwidth is smoothed: the next power of two of 3 s.
const PERIOD: u64 = (3 * HZ).next_power_of_two();

/// The new estimates, plain and smoothed, when `pages` were written in `elapsed` jiffies.
fn smoothed(bandwidth: u64, average: u64, pages: u64, elapsed: u64) -> (u64, u64) {
    let rate = pages * HZ;
    if elapsed > PERIOD {
        let rate = rate / elapsed;
        return (rate, rate.max(1));
    }
    let new = (rate + bandwidth * (PERIOD - elapsed)) / PERIOD;
    let mut average = average;
    if average > bandwidth && bandwidth >= new {
        average -= (average - bandwidth) >> 3;
    }
    if average < bandwidth && bandwidth <= new {
        average += (bandwidth - average) >> 3;
    }
    (new, average.max(1))
}

/// The new limit: up at once, down slowly, and never below what is dirty.
fn slow_limit(limit: u64, thresh: u64, dirty: u64) -> u64 {
    if limit < thresh {
        return thresh;
    }
    let target = thresh.max(dirty);
    if limit > target { limit - ((limit - target) >> 5) } else { limit }
}

impl Wb {
    /// Moves the writers' rate; `pages` were dirtied in `elapsed` jiffies, `ratio` is the position factor.
    fn update_ratelimit(&mut self, control: &DirtyControl, ratio: u64, pages: u64, elapsed: u64) {
        let old = self.dirty_ratelimit;
        let dirty_rate = pages * HZ / elapsed;
        let task_rate = ((old * ratio) >> RATIO_SHIFT) + 1;
        let balanced = (task_rate * self.avg_write_bandwidth / (dirty_rate | 1)).min(self.avg_write_bandwidth);
        let three = [self.balanced_dirty_ratelimit, balanced, task_rate];
        let step = if control.dirty < control.setpoint() {
            three.into_iter().min().unwrap_or(0).saturating_sub(old)
        } else {
            old.saturating_sub(three.into_iter().max().unwrap_or(0))
        };
        let shift = old / (2 * step + 1);
        let step = if shift < 64 { (step >> shift).div_ceil(8) } else { 0 };
        let new = if old < balanced { old + step } else { old - step };
        self.dirty_ratelimit = new.max(1);
        self.balanced_dirty_ratelimit = balanced;
    }

    /// Whether an update now would measure something: the last was 200 ms ago, and at most a second if it was before
    /// this writer or flusher began.
    pub(super) fn measures(&self, now: u64, since: u64) -> bool {
        let elapsed = now - self.bw_time_stamp;
        elapsed >= INTERVAL && !(elapsed > HZ && self.bw_time_stamp < since)
    }

    /// Updates the estimates if 200 ms have passed; for each of `throttle`, by which a writer is throttled, also its rate.
    pub(super) fn update_bandwidth(&mut self, now: u64, since: u64, throttle: &[(DirtyControl, u64)]) {
        let elapsed = now - self.bw_time_stamp;
        if elapsed < INTERVAL {
            return;
        }
        if self.measures(now, since) {
            for (control, ratio) in throttle {
                self.update_ratelimit(control, *ratio, self.dirtied - self.dirtied_stamp, elapsed);
            }
            let pages = self.written - self.written_stamp;
            let (plain, average) = smoothed(self.write_bandwidth, self.avg_write_bandwidth, pages, elapsed);
            (self.write_bandwidth, self.avg_write_bandwidth) = (plain, average);
        }
        (self.dirtied_stamp, self.written_stamp, self.bw_time_stamp) = (self.dirtied, self.written, now);
    }
}

impl GroupDomain {
    /// Moves the limit of a group if 200 ms have passed.
    pub(super) fn update_dirty_limit(&mut self, control: &DirtyControl, now: u64) {
        if now >= self.updated + INTERVAL {
            self.dirty_limit = slow_limit(self.dirty_limit, control.limits.dirty, control.dirty);
            self.updated = now;
        }
    }
}

impl Writeback {
    /// Moves the limit of the machine if 200 ms have passed.
    pub(super) fn update_dirty_limit(&mut self, control: &DirtyControl, now: u64) {
        self.track_dirty_limit(control.limits.dirty, control.dirty, now);
    }

    /// The same, for so high a limit and so many dirty pages.
    pub(super) fn track_dirty_limit(&mut self, thresh: u64, dirty: u64, now: u64) {
        if now >= self.dirty_limit_tstamp + INTERVAL {
            self.dirty_limit = slow_limit(self.dirty_limit, thresh, dirty);
            self.dirty_limit_tstamp = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::writeback::DirtyLimits;

    #[test]
    fn a_fifth_of_a_second_counts_for_50_of_1024_jiffies() {
        // 10000 pages in 50 jiffies are 50000 a second: (50000 * 50 + 25600 * 974) / 1024.
        assert_eq!(smoothed(25_600, 25_600, 10_000, 50), ((2_500_000 + 25_600 * 974) / 1024, 25_600));
        // The smooth one follows an eighth of the way to the old plain one while that rises.
        assert_eq!(smoothed(30_000, 25_600, 10_000, 50).1, 25_600 + (4400 >> 3));
        // After more than 1024 jiffies only the last measurement counts.
        assert_eq!(smoothed(25_600, 25_600, 10_000, 1025), (2_500_000 / 1025, 2_500_000 / 1025));
        assert_eq!(smoothed(0, 1, 0, 2000), (0, 1), "never 0");
    }

    #[test]
    fn the_limit_follows_up_at_once_and_down_by_a_32nd() {
        assert_eq!(slow_limit(1000, 2000, 0), 2000);
        assert_eq!(slow_limit(2000, 1000, 0), 2000 - (1000 >> 5));
        assert_eq!(slow_limit(2000, 1000, 1900), 2000 - (100 >> 5));
        assert_eq!(slow_limit(2000, 1000, 2500), 2000);
    }

    fn above_setpoint() -> DirtyControl {
        let limits = DirtyLimits { dirty: 2000, background: 1000 };
        DirtyControl { limits, dirty: 1900, slow_limit: 2000, ..DirtyControl::default() }
    }

    #[test]
    fn the_rate_falls_towards_the_balanced_one_when_too_much_is_dirty() {
        let mut wb = Wb::new();
        // 25600 pages a second allowed and as fast a disk, but 51200 a second dirtied (10240 in 50 jiffies), factor
        // 1/2: task rate 12801, balanced 12801 * 25600 / 51201 = 6400. Above the set point the largest of the three
        // counts, the old balanced rate of 25600: no step.
        wb.update_ratelimit(&above_setpoint(), 512, 10_240, 50);
        assert_eq!((wb.dirty_ratelimit, wb.balanced_dirty_ratelimit), (25_600, 6400));
        // Next time the task rate does: step 25600 - 12801 = 12799, shift 25600 / 25599 = 1, (12799 >> 1) / 8 = 800.
        wb.update_ratelimit(&above_setpoint(), 512, 10_240, 50);
        assert_eq!(wb.dirty_ratelimit, 25_600 - 800);
    }

    #[test]
    fn the_estimates_change_every_200_ms_and_not_before() {
        let mut wb = Wb::new();
        wb.written = 1000;
        wb.update_bandwidth(INTERVAL - 1, 0, &[]);
        assert_eq!((wb.write_bandwidth, wb.bw_time_stamp), (25_600, 0));
        wb.update_bandwidth(INTERVAL, 0, &[]);
        assert_eq!(wb.write_bandwidth, (1000 * 250 + 25_600 * 974) / 1024);
        assert_eq!((wb.written_stamp, wb.bw_time_stamp), (1000, INTERVAL));
    }

    #[test]
    fn a_quiet_second_is_not_measured() {
        let mut wb = Wb::new();
        assert!(wb.measures(HZ, 1) && !wb.measures(HZ + 1, 1) && wb.measures(HZ + 1, 0));
        wb.update_bandwidth(HZ + 1, 1, &[]);
        assert_eq!((wb.write_bandwidth, wb.bw_time_stamp), (25_600, HZ + 1));
    }
}
