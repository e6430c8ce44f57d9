//! Freeing what a batch of reclaim has taken from its owners.
//!
//! Rule ([`ReclaimedPages`]): the list of pages to free is a stack, so that the last goes first. Until 4.14 they go to the cold end of the CPU's
//! list, since no cache holds them, and hence back to the buddy lists before what was freed there earlier: a block that was taken whole is one
//! again soon. Until 3.2 they go by 14 (`PAGEVEC_SIZE`), of which the one that came in last is freed first.
//! Source: `free_page_list()` (mm/vmscan.c), `__pagevec_free()`, `free_hot_cold_page()` (mm/page_alloc.c), 2.6.39; `free_hot_cold_page_list()`, 3.19;
//! `free_unref_page_list()`, 4.20.
//! Since/until: [`ReclaimedPages`].

use rules::ReclaimedPages;
use units::Pfn;

use super::pagevec::PAGEVEC;
use crate::{Env, Mm};

impl Mm {
    /// Frees pages, given in the order in which they were reclaimed.
    pub(super) fn free_reclaimed(&mut self, env: &Env, pages: &[Pfn]) {
        match self.rules.reclaimed_pages {
            ReclaimedPages::PagevecsAtColdEnd => {
                pages.rchunks(PAGEVEC).flatten().for_each(|pfn| self.free_cold_page(env, *pfn));
            }
            ReclaimedPages::ColdEnd => pages.iter().rev().for_each(|pfn| self.free_cold_page(env, *pfn)),
            ReclaimedPages::HotEnd => {
                pages.iter().rev().for_each(|pfn| self.free_pages(env, *pfn, self.frames[*pfn].order()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rules::Rules;
    use units::{Gfp, Order};

    use super::super::fixture::{Machine, rules_4_20};
    use super::*;
    use crate::{AllocRequest, Kind};

    /// The places, among pages given to be freed, of what the CPU's list gives then from an end, after one that had been freed before.
    fn taken_back(rule: ReclaimedPages, pages: usize, gfp: Gfp) -> Vec<Option<usize>> {
        let mut m = Machine::new(Rules { reclaimed_pages: rule, ..rules_4_20() });
        let env = m.env;
        m.mm.pcps.set_high(1000);
        m.mm.drain_pcp_all();
        let request = AllocRequest { gfp, order: Order(0), node: env.node };
        let mut held: Vec<Pfn> =
            (0..=pages).map(|_| m.mm.alloc_pages(&env, request).expect("memory is plentiful")).collect();
        // What a refill has left on the list would come between.
        m.mm.drain_pcp_all();
        let before = held.pop().expect("one more");
        m.mm.free_pages(&env, before, Order(0));
        for pfn in &held {
            assert_eq!(m.mm.frames[*pfn].kind(), Kind::Held);
        }
        m.mm.free_reclaimed(&env, &held);
        (0..=pages)
            .map(|_| m.mm.alloc_pages(&env, request).expect("they are on the list"))
            .map(|pfn| held.iter().position(|freed| *freed == pfn))
            .collect()
    }

    #[test]
    fn reclaimed_pages_go_to_the_cold_end_until_4_14_where_reads_take_from() {
        let (hot, cold) = (Gfp::HIGHUSER_MOVABLE, Gfp::HIGHUSER_MOVABLE.with(Gfp::COLD));
        let places = |places: &[i32]| places.iter().map(|place| usize::try_from(*place).ok()).collect::<Vec<_>>();
        // The one that was freed before is -1. The last to be freed is the first that the end gives that it went to.
        assert_eq!(taken_back(ReclaimedPages::HotEnd, 3, hot), places(&[0, 1, 2, -1]));
        assert_eq!(taken_back(ReclaimedPages::ColdEnd, 3, hot), places(&[-1, 2, 1, 0]));
        assert_eq!(taken_back(ReclaimedPages::ColdEnd, 3, cold), places(&[0, 1, 2, -1]));
        // Of 16 the last 14 go first, in their order, then the other two.
        let by_pagevec: Vec<i32> = [-1].into_iter().chain(2..16).chain(0..2).collect();
        assert_eq!(taken_back(ReclaimedPages::PagevecsAtColdEnd, 16, hot), places(&by_pagevec));
    }
}
