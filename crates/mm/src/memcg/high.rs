//! `memory.high`: how long a task waits that lets its group grow above it.
//!
//! Rule: a task that charged while its group, or one above it, was above `memory.high` reclaims as much before it returns
//! to user mode, and then waits. The wait grows with the square of the relative overage, and with what the task has
//! charged, and is 2 seconds at most; one of no more than 10 ms is left out. As long as reclaim makes progress the task
//! reclaims again instead, and up to 16 times without.
//! Source: `mem_cgroup_handle_over_high()`, `calculate_high_delay()`, `calculate_overage()`, `reclaim_high()`
//! (mm/memcontrol.c); 6.1.

use units::{MemcgId, Nanos};

use super::charge::CHARGE_BATCH;
use super::{Memcg, MemcgEvent, ROOT, UNLIMITED};
use crate::Mm;
use crate::env::JIFFY;

/// Longest wait (`MEMCG_MAX_HIGH_DELAY_JIFFIES`).
pub const MAX_HIGH_DELAY: Nanos = Nanos::secs(2);
/// A wait that is not worth while (`HZ / 100`).
pub const MIN_HIGH_DELAY: Nanos = Nanos::millis(10);
/// Fixed-point bits of an overage (`MEMCG_DELAY_PRECISION_SHIFT`).
const PRECISION_SHIFT: u32 = 20;
/// By how much the square is scaled down (`MEMCG_DELAY_SCALING_SHIFT`).
const SCALING_SHIFT: u32 = 14;
/// Timer ticks in a second.
const HZ: u64 = Nanos::secs(1).0 / JIFFY.0;

/// By how much a usage is above a limit, relative to the limit, in fixed point.
fn overage(usage: u64, high: u64) -> u64 {
    if usage <= high {
        return 0;
    }
    let high = high.max(1);
    ((u128::from(usage - high) << PRECISION_SHIFT) / u128::from(high)) as u64
}

/// Wait for a relative overage and pages charged above the limit.
fn delay(overage: u64, pages: u64) -> Nanos {
    let square = u128::from(overage) * u128::from(overage) * u128::from(HZ);
    let jiffies = (square >> PRECISION_SHIFT >> SCALING_SHIFT) * u128::from(pages) / u128::from(CHARGE_BATCH);
    Nanos((jiffies * u128::from(JIFFY.0)).min(u128::from(u64::MAX)) as u64)
}

impl Mm {
    /// Notes that a task has charged pages while a group was above `memory.high` or `memory.swap.high`.
    pub(super) fn memcg_note_high(&mut self, memcg: MemcgId, pages: u64) {
        let above = |group: &Memcg| group.usage > group.limits.high || group.swap > group.limits.swap_high;
        if self.memcg.upwards(memcg).any(|id| above(&self.memcg[id])) {
            self.memcg.over_high += pages;
        }
    }

    /// Pages that the calling task charged above `memory.high` since this was last called.
    #[inline]
    pub fn memcg_take_over_high(&mut self) -> u64 {
        std::mem::take(&mut self.memcg.over_high)
    }

    /// The groups from this one upwards that are above `memory.high`, which are to be reclaimed (`reclaim_high()`).
    pub fn memcg_above_high(&mut self, memcg: MemcgId) -> Vec<MemcgId> {
        let above = |id: &MemcgId| *id != ROOT && self.memcg[*id].usage > self.memcg[*id].limits.high;
        let groups: Vec<MemcgId> = self.memcg.upwards(memcg).filter(above).collect();
        for id in &groups {
            self.memcg_event(*id, MemcgEvent::High);
        }
        groups
    }

    /// How long a task of a group waits that charged so many pages above `memory.high`.
    pub fn memcg_high_delay(&self, memcg: MemcgId, pages: u64) -> Nanos {
        let most = |of: &dyn Fn(&Memcg) -> (u64, u64)| {
            let groups = self.memcg.upwards(memcg).filter(|id| *id != ROOT).map(|id| of(&self.memcg[id]));
            groups.filter(|(_, high)| *high != UNLIMITED).map(|(usage, high)| overage(usage, high)).max().unwrap_or(0)
        };
        let memory = delay(most(&|group| (group.usage, group.limits.high)), pages);
        let swap = delay(most(&|group| (group.swap, group.limits.swap_high)), pages);
        Nanos(memory.0.saturating_add(swap.0)).min(MAX_HIGH_DELAY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_grows_with_the_square_of_the_overage_and_with_what_is_charged() {
        // A tenth above the limit: 2^20 / 10 = 104857; squared times 250 / 2^34 = 159.9: 159 jiffies for 64 pages.
        assert_eq!(overage(1100, 1000), 104_857);
        assert_eq!(delay(overage(1100, 1000), 64), Nanos(159 * JIFFY.0));
        assert_eq!(delay(overage(1100, 1000), 32), Nanos(159 * 32 / 64 * JIFFY.0));
        // A fifth: four times that, of the unrounded figure: 639.
        assert_eq!(delay(overage(1200, 1000), 64), Nanos(639 * JIFFY.0));
        assert_eq!(overage(1000, 1000), 0, "at the limit is not above it");
        assert_eq!(overage(5, 0), 4 << 20, "a limit of nothing counts as one page");
    }
}
