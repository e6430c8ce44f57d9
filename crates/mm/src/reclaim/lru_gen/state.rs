//! Switching between generations and active and inactive lists while the system runs.
//!
//! Rule: a write to `/sys/kernel/mm/lru_gen/enabled` that turns generations on or off moves every page: those of each list,
//! the oldest first, join a generation as new pages do, active ones the youngest; those of each generation go to the active
//! list if their generation counted as active, else to the inactive one. What the generations know of evictions and
//! refaults is kept; who is reclaiming meanwhile finds its lists empty. Shadows of the other kind are read as if they were of this one.
//! Source: `enabled_store()`, `lru_gen_change_state()`, `fill_evictable()`, `drain_evictable()` (mm/vmscan.c), 6.12.
//! Abstracted: all pages move at once, at the cost of two moves each; where the page-table walks had come is forgotten.

use rules::LruPolicy;
use units::{NodeId, Pfn};

use super::super::lru::End;
use super::MmState;
use crate::{LruList, LruvecId, Mm};

impl Mm {
    /// Has pages kept in generations from now on, or on active and inactive lists. A kernel without generations keeps its lists.
    pub(crate) fn lru_gen_change_state(&mut self, enabled: bool) {
        if self.rules.lru_policy == LruPolicy::TwoLists || enabled == self.lru_gen_enabled() {
            return;
        }
        let lruvecs: Vec<LruvecId> = (0..self.nodes.len()).flat_map(|n| self.lruvecs_of(NodeId(n as u8))).collect();
        let pages: Vec<Pfn> = lruvecs.iter().flat_map(|lru| self.evictable_pages(*lru, !enabled)).collect();
        for pfn in &pages {
            self.lru_unlink(*pfn);
        }
        for lru in lruvecs {
            let lru_gen = self.lruvec_mut(lru).lru_gen.get_or_insert_default();
            lru_gen.enabled = enabled;
            lru_gen.mm_state = MmState::new(lru_gen.max_seq - 1);
        }
        for pfn in &pages {
            self.lru_link(*pfn, End::Front);
        }
        self.charge(2 * pages.len() as u64 * self.costs.lru_move);
        self.spaces.mm_lists.clear();
        for space in self.spaces.live().collect::<Vec<_>>() {
            self.lru_gen_add_mm(space);
        }
    }

    /// Pages that may be evicted, list by list, the oldest of each first.
    fn evictable_pages(&self, lru: LruvecId, in_generations: bool) -> Vec<Pfn> {
        let frames = &self.frames;
        let oldest_first = |mut list: Vec<Pfn>| {
            list.reverse();
            list
        };
        if !in_generations {
            let lists = LruList::EVICTABLE.map(|list| self.lruvec(lru).lists[list as usize].iter(frames).collect());
            return lists.into_iter().flat_map(oldest_first).collect();
        }
        let lists = self.lru_gen(lru).lists.iter().flatten().flatten();
        lists.flat_map(|list| oldest_first(list.iter(frames).collect())).collect()
    }
}

#[cfg(test)]
mod tests {
    use rules::{LruPolicy, Rules};

    use super::super::super::fixture::Machine as Lists;
    use super::super::{FILE, gen_of};
    use crate::{Frame, Kind};

    #[test]
    fn active_pages_become_the_youngest_and_come_back_in_their_order() {
        let mut m = Lists::new(Rules::newest());
        m.add("a b c", Kind::File, 0);
        m.add("J K", Kind::File, Frame::ACTIVE);
        let before = m.draw();
        m.mm.lru_gen_change_state(true);
        m.check();
        let lru_gen = m.mm.lru_gen(super::super::super::fixture::LRU);
        // Three generations 0, 2 and 3 of those that a new page may join: inactive ones the second oldest.
        let of = |seq: u64| lru_gen.nr_pages[gen_of(seq)][FILE].iter().sum::<u64>();
        assert_eq!((of(lru_gen.max_seq), of(lru_gen.min_seq[FILE] + 1)), (2, 3));
        m.mm.lru_gen_change_state(false);
        m.check();
        assert_eq!(m.draw(), before);
    }

    #[test]
    fn a_kernel_without_generations_keeps_its_lists() {
        let mut m = Lists::new(Rules { lru_policy: LruPolicy::TwoLists, ..Rules::newest() });
        m.add("a b", Kind::File, 0);
        m.mm.lru_gen_change_state(true);
        assert!(!m.mm.lru_gen_enabled() && m.draw().starts_with("inactive: b a"));
    }
}
