//! What the eviction finds in the page tables is used at once, and told to the aging.
//!
//! Rule: when a page that was to be evicted turns out to have been accessed, the 64 entries around its own are looked at
//! too, inside its area and its page table: pages that were accessed belong to the youngest generation. If one entry for
//! each cache line was, the table goes into the filter, so that the next walk looks at it.
//! Source: `lru_gen_look_around()` (mm/vmscan.c); 6.12.
//! Abstracted: all page tables that map a page of a file share one accessed bit, so that each of them is looked at. A page takes as long under the
//! LRU lock as in a walk, which has seen it just before, too.
//! Since/until: who has no walk of its own moves the pages to the list of the youngest generation as an activation does; in 6.1 if they are
//! fewer than a pagevec holds, else they stay where they are listed, and the LRU lock is held for all of them. In 6.1 the page's own entry still
//! says that it was accessed, so that the page, which is isolated, is marked, too, and activated for that.

use std::ops::Range;

use rules::LruPolicy;
use units::{Order, Pfn, SpaceId};

use super::super::isolate::Batch;
use super::walk::suitable_to_scan;
use super::{MIN_LRU_BATCH, gen_of, lists::clear_refs};
use crate::anon::{REGION_PAGES, Region, Slot};
use crate::{Frame, Kind, LruvecId, Mm};

/// Pages of a pagevec in 6.1 (`PAGEVEC_SIZE`).
const PAGEVEC: usize = 15;

/// Entries around the one for `vpn`, of an area.
fn window(vpn: u32, area: Range<u32>) -> Range<u32> {
    const BATCH: u32 = MIN_LRU_BATCH as u32;
    let table = vpn & !(REGION_PAGES - 1);
    let (start, end) = (area.start.max(table), area.end.min(table + REGION_PAGES));
    if end - start <= BATCH {
        start..end
    } else if vpn - start < BATCH / 2 {
        start..start + BATCH
    } else if end - vpn < BATCH / 2 {
        end - BATCH..end
    } else {
        vpn - BATCH / 2..vpn + BATCH / 2
    }
}

impl Mm {
    /// Looks around a base page whose accessed bit has just been taken.
    pub(in crate::reclaim) fn lru_gen_look_around(&mut self, pfn: Pfn, has_walk: bool) {
        let frame = &self.frames[pfn];
        if frame.kind() == Kind::File {
            for (space, vpn) in self.mappings_of(pfn) {
                self.look_around_entry(pfn, (space, vpn), has_walk);
            }
        } else if frame.order() == Order(0) {
            self.look_around_entry(pfn, self.anon_home(pfn), has_walk);
        }
    }

    fn look_around_entry(&mut self, pfn: Pfn, (space, vpn): (SpaceId, u32), has_walk: bool) {
        let lru = self.lruvec_of(pfn);
        let area = self.spaces[space].area(vpn);
        let window = window(vpn, area);
        let Region::Table(leaf) = self.spaces[space].tables.region(vpn) else {
            panic!("{pfn:?} is mapped by no page table of {space:?}");
        };
        let by_kswapd = self.rules.lru_policy == LruPolicy::MultiGenByKswapd;
        if by_kswapd {
            self.frames[pfn].set(Frame::REFERENCED);
        } else if window.len() == 1 {
            return;
        }
        let (entries, mut young) = (window.len() as u32, 1);
        let youngest = gen_of(self.lru_gen(lru).max_seq);
        let mut older = Batch::new();
        for at in window {
            if let Slot::Page(near) = self.spaces.leaves.get(leaf, at)
                && self.lru_gen_on(lru, near)
                && self.frames[near].take(Frame::YOUNG)
            {
                young += 1;
                match self.frames[near].lru_gen() {
                    None => self.frames[near].set(Frame::REFERENCED),
                    Some(at) if at != youngest => older.push(near),
                    Some(_) => {}
                }
            }
        }
        self.charge(u64::from(entries) * self.costs.walk_pte);
        if suitable_to_scan(entries, young) {
            let entry = self.spaces[space].tables.pmd_entry(vpn);
            let lrugen = self.lru_gen_mut(lru);
            lrugen.filters.add(lrugen.max_seq, entry);
        }
        self.found_young(lru, &older, has_walk);
    }

    /// Has pages of these lists that were accessed belong to the youngest generation.
    fn found_young(&mut self, lru: LruvecId, older: &[Pfn], has_walk: bool) {
        let by_kswapd = self.rules.lru_policy == LruPolicy::MultiGenByKswapd;
        let at_once = by_kswapd && older.len() >= PAGEVEC;
        if at_once && !has_walk {
            let takes = older.len() as u64 * self.costs.promote_page;
            self.charge(takes);
            self.lru_lock_for(lru, takes);
        }
        if has_walk || at_once {
            older.iter().for_each(|&pfn| self.lru_gen_promote(pfn));
            return;
        }
        for &pfn in older {
            if !by_kswapd {
                clear_refs(&mut self.frames[pfn]);
            }
            self.activate_page(pfn);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixty_four_entries_are_looked_at_inside_area_and_table() {
        let area = 512..2048;
        assert_eq!(window(1024, area.clone()), 1024..1088, "at the start of its table");
        assert_eq!(window(1055, area.clone()), 1024..1088, "31 entries from it");
        assert_eq!(window(1056, area.clone()), 1024..1088, "32: half before, half behind");
        assert_eq!(window(1057, area.clone()), 1025..1089);
        assert_eq!(window(1535, area), 1472..1536, "at its end");
        assert_eq!(window(700, 690..720), 690..720, "all of a small area");
        assert_eq!(window(700, 690..760), 690..754, "10 entries from the start of the area");
    }
}
