//! A walk over the page tables of one space.
//!
//! Rule: the accessed bit of each entry that maps a page of the node is taken; a page that had it belongs to the youngest
//! generation. A page table is looked at only if its own accessed bit is set, where that is used, and if the filter of this
//! generation knows it. One in which at least one entry for each cache line was accessed goes into the filter of the next
//! generation. A walk in full looks at every table.
//! Source: `walk_mm()`, `walk_pud_range()`, `walk_pmd_range()`, `walk_pte_range()`, `should_skip_vma()`,
//! `suitable_to_scan()` (mm/vmscan.c); 6.12.
//! Since/until: in 6.1 a walk in full passes over tables whose accessed bit is not set, too.
//! Abstracted: locks are never contended; a walk gives way after each GiB; an access sets the bits whatever the TLB holds.
//! All page tables that map a page of a file share one accessed bit.

use rules::LruPolicy;
use units::{Pfn, SpaceId};

use crate::anon::{REGION_SHIFT, Region, Slot};
use crate::{Frame, LruvecId, Mm};

/// log2 of the regions that are walked before others get the CPU: one page of PMD entries, 1 GiB.
const REGIONS_SHIFT: u32 = 9;
/// Page table entries in a cache line.
const ENTRIES_PER_LINE: u32 = 8;

/// What a walk is for (`struct lru_gen_mm_walk`).
#[derive(Clone, Copy, Debug)]
pub(super) struct Walk {
    pub(super) lru: LruvecId,
    /// The youngest generation when it began.
    pub(super) seq: u64,
    /// Anonymous pages can be evicted, so that it matters how old they are.
    pub(super) can_swap: bool,
    /// Every table is looked at.
    pub(super) force_scan: bool,
}

/// Whether a table was used enough to be walked again: once for each cache line.
pub(super) fn suitable_to_scan(entries: u32, young: u32) -> bool {
    young * ENTRIES_PER_LINE >= entries
}

impl Mm {
    /// Walks the GiB that begins at region `from` and says where to go on; `None` at the end of the space.
    pub(super) fn lru_gen_walk_gib(&mut self, walk: &Walk, space: SpaceId, from: u32) -> Option<u32> {
        let end = (from | ((1 << REGIONS_SHIFT) - 1)) + 1;
        let regions = self.spaces[space].tables.regions().len() as u32;
        for at in from..end.min(regions) {
            let vpn = at << REGION_SHIFT;
            match self.spaces[space].tables.region(vpn) {
                Region::None => {}
                Region::Huge { .. } if !walk.can_swap => {}
                Region::Huge { pfn, .. } => {
                    self.charge(self.costs.walk_table);
                    if self.lru_gen_on(walk.lru, pfn) && self.frames[pfn].take(Frame::YOUNG) {
                        self.lru_gen_promote(pfn);
                    }
                }
                Region::Table(leaf) => self.walk_table(walk, space, vpn, leaf),
            }
        }
        (end < regions).then_some(end)
    }

    fn walk_table(&mut self, walk: &Walk, space: SpaceId, vpn: u32, leaf: u32) {
        let entry = self.spaces[space].tables.pmd_entry(vpn);
        let nonleaf_young = self.tunables.lru_gen_enabled.nonleaf_young();
        self.charge(self.costs.walk_table);
        let by_kswapd = self.rules.lru_policy == LruPolicy::MultiGenByKswapd;
        if nonleaf_young && (by_kswapd || !walk.force_scan) && !self.spaces.leaves.take_young(leaf) {
            return;
        }
        if !walk.force_scan && !self.lru_gen(walk.lru).filters.test(walk.seq, entry) {
            return;
        }
        let areas = self.spaces[space].areas_in_region(vpn, walk.can_swap);
        let (entries, mut young) = (areas.iter().map(|area| area.len() as u32).sum(), 0);
        for at in areas.into_iter().flatten() {
            if let Slot::Page(pfn) = self.spaces.leaves.get(leaf, at)
                && self.lru_gen_on(walk.lru, pfn)
                && self.frames[pfn].take(Frame::YOUNG)
            {
                young += 1;
                self.lru_gen_promote(pfn);
            }
        }
        self.charge(u64::from(entries) * self.costs.walk_pte + u64::from(young) * self.costs.promote_page);
        if suitable_to_scan(entries, young) {
            self.lru_gen_mut(walk.lru).filters.add(walk.seq + 1, entry);
        }
    }

    /// Whether a page belongs to the node of these lists.
    pub(super) fn lru_gen_on(&self, lru: LruvecId, pfn: Pfn) -> bool {
        self.lruvec_of(pfn) == lru
    }
}
