//! Moving a batch from an active list to its inactive list.
//!
//! Rule: up to 32 entries from the tail of the active list go to the head of the inactive one, referenced or not, and
//! remember that they were part of the working set. The references found are taken and, until 5.7, count as rotations.
//! Source: `shrink_active_list()`, `move_active_pages_to_lru()` (mm/vmscan.c, 4.20; 6.12).
//! Omitted: mapped executable file pages staying active.

use super::lru::End;
use super::{SWAP_CLUSTER_MAX, ScanControl};
use units::NodeId;

use crate::contention::ONCE;
use crate::memcg::{MemcgWalk, ROOT};
use crate::stat::VmEvent;
use crate::{Env, Frame, LruList, LruvecId, Mm};

impl Mm {
    /// Deactivates up to `nr_to_scan` entries of an active list.
    pub(super) fn shrink_active_list(
        &mut self,
        env: &Env,
        lru: LruvecId,
        list: LruList,
        nr_to_scan: u32,
        sc: &ScanControl,
    ) {
        debug_assert!(list.is_active());
        let isolated = self.isolate_lru_pages(lru, list, nr_to_scan, sc);
        if self.trace.filter.vmscan {
            self.trace_isolate(list, nr_to_scan, &isolated, sc);
        }
        if sc.is_global() {
            self.stat.count(VmEvent::Pgrefill, isolated.scanned);
        }
        self.note_pages_scanned(lru, isolated.scanned);
        let (mut rotated, mut moved) = (0, 0);
        for &pfn in &isolated.pages {
            let frame = &self.frames[pfn];
            let nr_pages = u64::from(frame.nr_pages());
            if frame.has(Frame::MAPPED) && !frame.has(Frame::UNEVICTABLE) && self.page_referenced(env, pfn) > 0 {
                rotated += nr_pages;
            }
            self.lru_forget_isolated(pfn);
            let frame = &mut self.frames[pfn];
            if !frame.has(Frame::UNEVICTABLE) {
                frame.clear(Frame::ACTIVE);
                frame.set(Frame::WORKINGSET);
                moved += nr_pages;
            }
            self.lru_link(pfn, End::Front);
        }
        self.note_recent(lru, list.is_file(), isolated.taken, rotated);
        self.stat.count(VmEvent::Pgdeactivate, moved);
        if self.trace.filter.vmscan {
            self.trace_shrink_active(lru, list.is_file(), isolated.taken, (moved, rotated), sc.priority);
        }
        self.charge(isolated.pages.len() as u64 * (self.costs.scan_page + self.costs.lru_move));
        self.lru_lock(lru, 2 * isolated.pages.len() as u64, 2 * ONCE);
    }

    /// Ages the active anonymous lists of all groups of a node by one batch if the node's inactive one is low
    /// (`age_active_anon()`).
    pub(super) fn age_active_anon_of_all(&mut self, env: &Env, node: NodeId, sc: &ScanControl) -> bool {
        let ages = self.anon_wants_aging(LruvecId::of_node(node), sc);
        let mut walk = MemcgWalk::full(ROOT, node);
        while ages && let Some(memcg) = walk.next(self) {
            self.shrink_active_list(env, self.lruvec_of_memcg(node, memcg), LruList::ActiveAnon, SWAP_CLUSTER_MAX, sc);
        }
        ages
    }

    /// Ages the active anonymous list by one batch if its inactive list is low (`shrink_lruvec()`).
    pub(super) fn age_active_anon(&mut self, env: &Env, lru: LruvecId, sc: &ScanControl) -> bool {
        let ages = self.anon_wants_aging(lru, sc);
        if ages {
            self.shrink_active_list(env, lru, LruList::ActiveAnon, SWAP_CLUSTER_MAX, sc);
        }
        ages
    }
}

#[cfg(test)]
mod tests {
    use rules::Rules;
    use units::Order;

    use super::super::fixture::{LRU, Machine, rules_4_20};
    use super::*;
    use crate::{Kind, ZoneKind};

    #[test]
    fn the_oldest_active_pages_become_the_newest_inactive_ones() {
        let mut m = Machine::new(rules_4_20());
        m.add("a b", Kind::File, 0);
        m.add("J K L", Kind::File, Frame::ACTIVE);
        let sc = ScanControl::kswapd(Order(0), ZoneKind::Normal);
        m.mm.shrink_active_list(&m.env, LRU, LruList::ActiveFile, 2, &sc);
        assert_eq!(m.draw(), "inactive: K J b a | active: L");
        assert!(m.frame('J').has(Frame::WORKINGSET) && !m.frame('L').has(Frame::WORKINGSET));
        assert_eq!((m.mm.stat.event(VmEvent::Pgrefill), m.mm.stat.event(VmEvent::Pgdeactivate)), (2, 2));
        m.check();
    }

    #[test]
    fn without_swap_the_anonymous_lists_are_left_alone() {
        for rules in [rules_4_20(), Rules::newest()] {
            let mut m = Machine::new(rules);
            m.add("x y z", Kind::Anon, Frame::ACTIVE);
            let sc = ScanControl::kswapd(Order(0), ZoneKind::Normal);
            let env = m.env;
            assert!(!m.mm.age_active_anon(&env, LRU, &sc));
            assert_eq!(m.draw_anon(), "inactive: | active: z y x");
        }
    }
}
