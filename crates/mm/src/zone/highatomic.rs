//! Pageblocks reserved for high-order atomic allocations.
//!
//! Rule: when a high-order atomic request was served, its pageblock becomes HighAtomic, up to about one percent of the
//! zone. Before memory runs out, a block goes back to the type of the request that lacks memory; the last one only
//! under force.
//! Source: `reserve_highatomic_pageblock()`, `unreserve_highatomic_pageblock()` (mm/page_alloc.c, 4.20 and 6.12).
//! Since/until: `HighAtomicReserve` has the two limits.

use rules::{FreeListEnd, HighAtomicReserve};
use units::{Order, PAGEBLOCK_ORDER, PAGEBLOCK_PAGES, Pfn, ZoneId};

use crate::{AllocRequest, MigrateType, Mm};

use super::flags::gfp_zone;

/// Most pages that a zone may reserve; 0 forbids it.
fn reserve_limit(managed: u64, rule: HighAtomicReserve) -> u64 {
    let block = u64::from(PAGEBLOCK_PAGES);
    let percent = managed / 100;
    match rule {
        HighAtomicReserve::MigrateReserve => 0,
        HighAtomicReserve::OnePercentAndBlock => percent + block,
        HighAtomicReserve::OnePercent if percent < block => 0,
        HighAtomicReserve::OnePercent => percent.next_multiple_of(block),
    }
}

impl Mm {
    /// Reserves the pageblock of a high-order atomic allocation that was just served.
    pub(crate) fn reserve_highatomic(&mut self, zone: ZoneId, pfn: Pfn, order: Order) {
        let rule = self.rules.highatomic_reserve;
        let tail = self.rules.free_list_end == FreeListEnd::Tail;
        let state = &mut self.zones[zone.index()];
        if state.highatomic_reserved >= reserve_limit(state.managed, rule) {
            return;
        }
        if self.blocks.migratetype(pfn) as usize >= MigrateType::PCP_COUNT {
            return;
        }
        if rule == HighAtomicReserve::OnePercent && order >= PAGEBLOCK_ORDER {
            state.highatomic_reserved += u64::from(order.pages());
            self.change_pageblock_range(pfn, order, MigrateType::HighAtomic);
            return;
        }
        state.highatomic_reserved += u64::from(PAGEBLOCK_PAGES);
        self.blocks.set_migratetype(pfn, MigrateType::HighAtomic);
        state.move_freepages_block(&mut self.frames, pfn, MigrateType::HighAtomic, tail);
    }

    /// Gives a reserved pageblock back to ordinary use in one of the zones of a request; says whether pages came free.
    /// Without `force` each zone keeps its last block.
    pub fn unreserve_highatomic(&mut self, req: AllocRequest, force: bool) -> bool {
        if self.rules.highatomic_reserve == HighAtomicReserve::MigrateReserve {
            return false;
        }
        let (highest, to) = (gfp_zone(req.gfp), self.gfp_migratetype(req.gfp));
        for at in 0..self.nodes[req.node.index()].zonelist.len() {
            let zone = self.nodes[req.node.index()].zonelist[at];
            let state = &self.zones[zone.index()];
            let keep = !force && state.highatomic_reserved <= u64::from(PAGEBLOCK_PAGES);
            if state.kind > highest || keep {
                continue;
            }
            if (0..=Order::MAX.0).any(|order| self.unreserve_first(zone, Order(order), to)) {
                return true;
            }
        }
        false
    }

    /// Gives back the pageblock of the first free HighAtomic block of one order.
    fn unreserve_first(&mut self, zone: ZoneId, order: Order, to: MigrateType) -> bool {
        let tail = self.rules.free_list_end == FreeListEnd::Tail;
        let state = &mut self.zones[zone.index()];
        let pfn = state.free_area[order.index()].lists[MigrateType::HighAtomic as usize].front();
        if !pfn.is_some() {
            return false;
        }
        if self.blocks.migratetype(pfn) == MigrateType::HighAtomic {
            let pages = u64::from(PAGEBLOCK_PAGES.max(order.pages()));
            state.highatomic_reserved -= pages.min(state.highatomic_reserved);
        }
        if order >= PAGEBLOCK_ORDER {
            state.move_to_list(&mut self.frames, pfn, to, tail);
            self.change_pageblock_range(pfn, order, to);
            return true;
        }
        self.blocks.set_migratetype(pfn, to);
        self.zones[zone.index()].move_freepages_block(&mut self.frames, pfn, to, tail) > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn until_6_6_a_zone_may_reserve_one_percent_and_a_block() {
        // 100_000 / 100 + 512
        assert_eq!(reserve_limit(100_000, HighAtomicReserve::OnePercentAndBlock), 1512);
    }

    #[test]
    fn since_6_7_one_percent_must_be_a_block_at_least() {
        assert_eq!(reserve_limit(51_199, HighAtomicReserve::OnePercent), 0);
        assert_eq!(reserve_limit(51_200, HighAtomicReserve::OnePercent), 512);
        // 1000 rounded up to whole blocks.
        assert_eq!(reserve_limit(100_000, HighAtomicReserve::OnePercent), 1024);
    }
}
