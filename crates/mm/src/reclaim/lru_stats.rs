//! What balances the LRU lists against each other knows of them.
//!
//! Rule: sizes of the lists and activations of refaulting pages come from the statistics of the memory cgroup whose memory is
//! short, which is root where nobody made one. CPUs gather changes for themselves; a worker adds them up every 2
//! seconds, who reads `memory.stat` too, and reclaim only when that worker is a whole period late. Between two flushes a list is thus as long, and
//! refaults as many, as at the first of them: pages are deactivated in few passes, and page cache is trimmed first for longer.
//! Source: `mem_cgroup_flush_stats_ratelimited()`, `flush_memcg_stats_dwork()`, `lruvec_page_state()`, `FLUSH_TIME`
//! (mm/memcontrol.c, 6.12); their callers `prepare_scan_control()`, `inactive_is_low()`, `snapshot_refaults()` (mm/vmscan.c),
//! `workingset_test_recent()` (mm/workingset.c), `lru_note_cost()` (mm/swap.c); `memcg_stat_format()` (mm/memcontrol.c).
//! Since/until: [`LruStatistics`]; flushes by a pass of reclaim: stat_flush.rs. How much a pass scans goes by the lists' true sizes in every kernel.
//! Omitted: that a reader does not if less than a batch for each CPU has changed.

use rules::LruStatistics;
use units::NodeId;

use crate::{LruList, LruvecId, Mm};

/// Statistics of LRU lists, in base pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LruStats {
    /// On each list that reclaim scans, all zones and all groups below together.
    sizes: [u64; LruList::EVICTABLE.len()],
    /// Refaults that were activated at once, of [anon, file].
    pub(super) activated: [u64; 2],
}

impl LruStats {
    pub(super) fn size(&self, list: LruList) -> u64 {
        self.sizes[list as usize]
    }

    /// All that reclaim scans.
    pub(super) fn total(&self) -> u64 {
        self.sizes.iter().sum()
    }
}

impl Mm {
    /// Adds the statistics up (`do_flush_stats()`).
    pub fn flush_lru_stats(&mut self) {
        for node in (0..self.nodes.len()).map(|node| NodeId(node as u8)) {
            for lru in self.lruvecs_of(node) {
                self.lruvec_mut(lru).flushed = self.live_lru_stats(lru);
            }
        }
        self.flush_memcg_dirty();
    }

    /// What there is to know of these lists.
    pub(super) fn lru_stats(&self, lru: LruvecId) -> LruStats {
        match self.rules.lru_statistics {
            LruStatistics::Live => self.live_lru_stats(lru),
            LruStatistics::Flushed | LruStatistics::ByThreshold => self.lruvec(lru).flushed,
        }
    }

    /// Pages on some of the lists as the statistics know them.
    pub(crate) fn known_list_pages<const N: usize>(&self, lru: LruvecId, lists: [LruList; N]) -> u64 {
        let stats = self.lru_stats(lru);
        lists.into_iter().map(|list| stats.size(list)).sum()
    }

    pub(super) fn live_lru_stats(&self, lru: LruvecId) -> LruStats {
        LruStats {
            sizes: LruList::EVICTABLE.map(|list| self.lru_size_below(lru, list)),
            activated: self.activated_below(lru),
        }
    }
}

#[cfg(test)]
mod tests {
    use rules::Rules;
    use units::Order;

    use super::super::ScanControl;
    use super::super::fixture::{LRU, Machine};
    use super::*;
    use crate::{Frame, Kind, ZoneKind};

    /// A machine with more active than inactive page cache, all of it newer than the last flush.
    fn unbalanced(rule: LruStatistics) -> Machine {
        let mut m = Machine::new(Rules { lru_statistics: rule, ..Rules::newest() });
        m.mm.flush_lru_stats();
        m.add("a b", Kind::File, 0);
        m.add("J K L", Kind::File, Frame::ACTIVE);
        m
    }

    fn may_deactivate_file(m: &mut Machine) -> bool {
        let mut sc = ScanControl::kswapd(Order(0), ZoneKind::Normal);
        m.mm.prepare_scan_control(LRU, &mut sc);
        sc.may_deactivate[1]
    }

    #[test]
    fn an_inactive_list_is_low_once_the_statistics_say_so() {
        let mut m = unbalanced(LruStatistics::Flushed);
        assert!(!may_deactivate_file(&mut m), "2 inactive pages against 3 active ones, but nobody has counted them");
        m.mm.flush_lru_stats();
        assert!(may_deactivate_file(&mut m));
        assert_eq!(m.mm.lru_stats(LRU).total(), 5);
    }

    #[test]
    fn live_statistics_need_no_flush() {
        assert!(may_deactivate_file(&mut unbalanced(LruStatistics::Live)));
    }
}
