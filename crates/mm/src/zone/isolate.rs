//! Taking a free block off the lists for compaction.
//!
//! Rule: a free block may be taken if the zone stays above its min (low, by `CompactionWatermark`) watermark by the block's size. If it is half a
//! pageblock or more, its pageblocks become Movable, as movable pages will fill them.
//! Source: `__isolate_free_page()`, `split_page()` (mm/page_alloc.c, 4.20 and 6.12).
//! Since/until: with `FreeListTypes::Strict` the pageblock's other free pages move along.

use rules::{CompactionWatermark, FreeListEnd, FreeListTypes};
use units::{Order, PAGEBLOCK_ORDER, PAGEBLOCK_PAGES, Pfn};

use crate::{Kind, MigrateType, Mm, ZoneKind};

use super::{AllocFlags, Wmark};

impl Mm {
    /// Takes the free block that `pfn` heads off its list; `None` if the watermark forbids it. The block is Held; it is
    /// given back with `free_pages`.
    pub fn isolate_free_block(&mut self, pfn: Pfn) -> Option<Order> {
        assert!(self.frames[pfn].kind() == Kind::Buddy, "{pfn:?} does not head a free block");
        let (zone, order) = (self.zone_of(pfn), self.frames[pfn].order());
        // 4.20 has no boost, so its min watermark is the unboosted one too.
        let marks = &self.zones[zone.index()].watermarks;
        let kept = if self.rules.compaction_watermark == CompactionWatermark::Low { marks.low } else { marks.min };
        let mark = kept + u64::from(order.pages());
        if !self.zone_watermark_ok(zone, Order(0), mark, ZoneKind::Dma, AllocFlags::only(Wmark::Min)) {
            return None;
        }
        self.zones[zone.index()].take_block(&mut self.frames, pfn);
        self.account_free(zone, -i64::from(order.pages()));
        if order.0 + 1 >= PAGEBLOCK_ORDER.0 {
            self.make_movable(pfn, order);
        }
        Some(order)
    }

    /// Makes the pageblocks of a block that was taken Movable.
    fn make_movable(&mut self, pfn: Pfn, order: Order) {
        let strict = self.rules.free_list_types == FreeListTypes::Strict;
        let tail = self.rules.free_list_end == FreeListEnd::Tail;
        for at in (pfn.0..pfn.0 + order.pages()).step_by(PAGEBLOCK_PAGES as usize) {
            let at = Pfn(at);
            let (zone, block) = self.blocks.zone_and_type(at);
            if block as usize >= MigrateType::PCP_COUNT {
                continue;
            }
            if strict && block != MigrateType::Movable {
                self.zones[zone.index()].move_freepages_block(&mut self.frames, at, MigrateType::Movable, tail);
            }
            self.blocks.set_migratetype(at, MigrateType::Movable);
        }
    }

    /// Makes single Held pages of a Held block (`split_page()`).
    pub fn split_held(&mut self, pfn: Pfn) {
        assert!(self.frames[pfn].kind() == Kind::Held, "{pfn:?} is not held");
        for n in 0..self.frames[pfn].nr_pages() {
            self.frames[pfn.offset(n)].set_kind(Kind::Held, Order(0));
        }
    }
}
