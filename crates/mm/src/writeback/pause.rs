//! How long a throttled writer pauses, and how many pages it may dirty before the next look.
//!
//! Rule: at most 200 ms, and less while the device would otherwise run dry; at least what makes the pauses worth their
//! overhead: 10 ms for one writer, more for many. Below freerun a writer looks again after the square root of the pages
//! left to the limit.
//! Source: `wb_max_pause()`, `wb_min_pause()`, `dirty_poll_interval()`, mm/page-writeback.c (4.20; 6.12 the same).

use super::HZ;

/// Longest pause in jiffies (`MAX_PAUSE`).
pub(super) const MAX_PAUSE: u64 = HZ / 5;
/// Pages below which looking more often hurts (`DIRTY_POLL_THRESH`): 128 KiB.
pub(super) const POLL_THRESH: u64 = 32;

/// Pages that may be dirtied before the next look.
pub(super) fn poll_interval(dirty: u64, thresh: u64) -> u64 {
    if thresh > dirty { 1 << ((thresh - dirty).ilog2() / 2) } else { 1 }
}

/// Longest pause in jiffies of a writer to a device with so many dirty pages.
pub(super) fn max_pause(bandwidth: u64, wb_dirty: u64) -> u64 {
    let eighth = (1 + HZ / 8).next_power_of_two();
    (wb_dirty / (1 + bandwidth / eighth) + 1).min(MAX_PAUSE)
}

/// Shortest pause in jiffies, and the pages to dirty before the next look.
pub(super) fn min_pause(bandwidth: u64, max_pause: u64, task_rate: u64, dirty_rate: u64) -> (u64, u64) {
    let second = HZ.next_power_of_two();
    let mut target = (HZ / 100).max(1);
    let (hi, lo) = (u64::from(bandwidth.ilog2()), u64::from(dirty_rate.ilog2()));
    if hi > lo {
        target += (hi - lo) * (10 * HZ) / 1024;
    }
    target = target.min(1 + max_pause / 2);
    let mut pages = dirty_rate * target / second;
    if pages < POLL_THRESH {
        target = max_pause;
        pages = dirty_rate * target / second;
        if pages > POLL_THRESH {
            pages = POLL_THRESH;
            target = HZ * POLL_THRESH / dirty_rate;
        }
    }
    if HZ * pages / (task_rate + 1) > max_pause {
        target = max_pause;
        pages = task_rate * target / second;
    }
    (if pages >= POLL_THRESH { 1 + target / 2 } else { target }, pages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writer_looks_again_after_the_root_of_what_is_left() {
        // log2 of 10000 is 13, half of it 6: 64 pages.
        assert_eq!(poll_interval(10_000, 20_000), 64);
        assert_eq!((poll_interval(20_000, 20_000), poll_interval(19_999, 20_000)), (1, 1));
        assert_eq!(poll_interval(0, 4), 2);
    }

    #[test]
    fn pauses_are_short_while_little_is_dirty() {
        // 25600 pages a second, 1 + 250/8 rounded up to 32: 800 pages; 8010 dirty pages: 10 jiffies and one.
        assert_eq!(max_pause(25_600, 8010), 8010 / 801 + 1);
        assert_eq!(max_pause(25_600, 0), 1);
        assert_eq!(max_pause(25_600, 1_000_000), 50);
    }

    #[test]
    fn one_writer_at_full_rate_pauses_10_ms_at_a_time() {
        // target 2 jiffies: 25600 * 2 / 256 = 200 pages; half the target and one.
        assert_eq!(min_pause(25_600, 50, 25_600, 25_600), (2, 200));
    }

    #[test]
    fn many_writers_pause_longer() {
        // A 16th of the bandwidth each: 2 + 4 * 2500 / 1024 = 11 jiffies, 1600 * 11 / 256 = 68 pages.
        assert_eq!(min_pause(25_600, 50, 1600, 1600), (1 + 11 / 2, 68));
    }

    #[test]
    fn a_slow_writer_dirties_32_pages_or_pauses_longest() {
        // 100 pages a second: 50 jiffies are 100 * 50 / 256 = 19 pages, below 32. At the task's own rate those take
        // 250 * 19 / 101 = 47 jiffies, which fits.
        assert_eq!(min_pause(25_600, 50, 100, 100), (50, 19));
        // 400 a second: 78 in the longest pause, so 32 pages in 250 * 32 / 400 = 20 jiffies.
        assert_eq!(min_pause(25_600, 50, 400, 400), (1 + 20 / 2, 32));
        // The same with a task rate of a quarter: 250 * 32 / 101 = 79 jiffies would be too long: 100 * 50 / 256 pages.
        assert_eq!(min_pause(25_600, 50, 100, 400), (50, 19));
    }
}
