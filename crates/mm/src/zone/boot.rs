//! Giving memory to the allocator at boot.
//!
//! Rule: every managed frame is freed, in the largest aligned blocks, from low to high addresses; all pageblocks are
//! Movable. As blocks go to the head of their list, the highest addresses are used first; since 5.10 they go to the
//! tail.
//! Source: `__free_pages_memory()` (mm/memblock.c), `__free_pages_core()` (mm/page_alloc.c, 4.20 and 6.12).
//! Of memory below the BIOS's hole the first 64 KiB are never given out (`CONFIG_X86_RESERVE_LOW`), and what else early boot
//! takes there it takes from the top (`reserve_real_mode()`).
//! Abstracted: other frames that are present but not managed are the first of their zone; all of them stay Reserved.
//! Omitted: deferred initialisation of the memory map, which frees in another order.

use rules::{FreeListEnd, FreeListTypes};
use units::{Order, Pfn, ZoneId};

use crate::{Frame, Kind, MemoryLayout, MigrateType, Mm, ZoneSpan};

use super::buddy::Place;

/// First frame behind what `CONFIG_X86_RESERVE_LOW` keeps.
const RESERVE_LOW_END: u32 = 16;

impl Mm {
    /// Frees all managed memory.
    pub fn free_all_at_boot(&mut self, layout: &MemoryLayout) {
        let spans: Vec<&ZoneSpan> = layout.nodes.iter().flat_map(|n| &n.zones).collect();
        assert!(spans.len() == self.zones.len());
        for (id, span) in spans.into_iter().enumerate() {
            self.zones[id].strict_types = self.rules.free_list_types == FreeListTypes::Strict;
            let zone = ZoneId(id as u8);
            let mut reserved = span.present.0 - span.managed.0;
            for (start, end) in present_ranges(span) {
                let skipped = reserved.min(u64::from(end - start)) as u32;
                reserved -= u64::from(skipped);
                let below_bios = span.hole.is_some() && start < RESERVE_LOW_END;
                let first = if below_bios { skipped.min(RESERVE_LOW_END - start) } else { skipped };
                self.free_range_at_boot(zone, start + first, end - (skipped - first));
            }
            assert!(self.zones[id].free_pages == span.managed.0, "zone {id}: present pages and hole do not add up");
        }
    }

    /// Frees the frames from `start` to before `end`.
    fn free_range_at_boot(&mut self, zone: ZoneId, start: u32, end: u32) {
        let place = match self.rules.free_list_end {
            FreeListEnd::Head => Place::Auto,
            FreeListEnd::Tail => Place::Tail,
        };
        for pfn in start..end {
            let frame = &mut self.frames[Pfn(pfn)];
            *frame = Frame::RESERVED;
            frame.set_kind(Kind::Tail, Order(0));
        }
        let before = self.zones[zone.index()].free_pages;
        let mut at = start;
        while at < end {
            let aligned = at.trailing_zeros().min(u32::from(Order::MAX.0));
            let order = Order(aligned.min((end - at).ilog2()) as u8);
            let state = &mut self.zones[zone.index()];
            state.free_one_page(&mut self.frames, &mut self.blocks, Pfn(at), order, MigrateType::Movable, place);
            at += order.pages();
        }
        let freed = self.zones[zone.index()].free_pages - before;
        self.account_free(zone, freed as i64);
    }
}

/// The frames of a zone without its hole, as ranges [start, end).
fn present_ranges(span: &ZoneSpan) -> Vec<(u32, u32)> {
    let (start, end) = (span.start.0, span.start.0 + span.spanned.0 as u32);
    match span.hole {
        None => vec![(start, end)],
        Some((hole, pages)) => {
            let after = hole.0 + pages.0 as u32;
            assert!(start <= hole.0 && after <= end, "the hole lies outside its zone");
            vec![(start, hole.0), (after, end)]
        }
    }
}
