//! `MIGRATE_RESERVE`: pageblocks that are touched only when nothing else is left.
//!
//! Rule: of each zone the first Movable pageblocks, as many as the min watermark has, but at most two, are set apart. A
//! request of any type and order is served from them when no fallback finds anything. When the watermark shrinks, what
//! is too much becomes Movable again.
//! Source: `setup_zone_migrate_reserve()`, `__rmqueue()` (mm/page_alloc.c, 3.19).
//! Until: [`HighAtomicReserve::MigrateReserve`], 4.3.
//! Abstracted: the type shares the lists of HighAtomic, which no kernel had at the same time.

use rules::{FreeListEnd, HighAtomicReserve};
use units::{PAGEBLOCK_ORDER, PAGEBLOCK_PAGES, Pfn, ZoneId};

use crate::{Kind, MigrateType, Mm};

/// Most pageblocks that a zone sets apart.
const RESERVE_BLOCKS_MAX: u64 = 2;

impl Mm {
    /// Sets pageblocks of a zone apart, or gives back what is too much.
    pub(super) fn setup_migrate_reserve(&mut self, id: ZoneId) {
        if self.rules.highatomic_reserve != HighAtomicReserve::MigrateReserve {
            return;
        }
        let zone = &mut self.zones[id.index()];
        let wanted = zone.watermarks.min.div_ceil(u64::from(PAGEBLOCK_PAGES)).min(RESERVE_BLOCKS_MAX) as u32;
        let old = std::mem::replace(&mut zone.migrate_reserve, wanted);
        let (start, end) = (zone.start.align_down(PAGEBLOCK_ORDER).0, zone.start.0 + zone.spanned as u32);
        let mut left = if wanted == old { return } else { wanted };
        for block in (start..end).step_by(PAGEBLOCK_PAGES as usize).map(Pfn) {
            let reserved = self.blocks.migratetype(block) == MigrateType::HighAtomic;
            match (left > 0, reserved) {
                (true, true) => left -= 1,
                (true, false) if self.may_reserve(id, block) => {
                    self.retype_block(id, block, MigrateType::HighAtomic);
                    left -= 1;
                }
                (true, false) => {}
                (false, true) => self.retype_block(id, block, MigrateType::Movable),
                (false, false) if old == 0 => break,
                (false, false) => {}
            }
        }
    }

    /// Whether a pageblock is Movable and whole.
    fn may_reserve(&self, zone: ZoneId, block: Pfn) -> bool {
        let end = self.zones[zone.index()].start.0 + self.zones[zone.index()].spanned as u32;
        let whole = block >= self.zones[zone.index()].start && block.0 + PAGEBLOCK_PAGES <= end;
        let managed = |pfn: u32| self.frames[Pfn(pfn)].kind() != Kind::Reserved;
        whole
            && self.blocks.migratetype(block) == MigrateType::Movable
            && (block.0..block.0 + PAGEBLOCK_PAGES).all(managed)
    }

    fn retype_block(&mut self, zone: ZoneId, block: Pfn, to: MigrateType) {
        let tail = self.rules.free_list_end == FreeListEnd::Tail;
        self.blocks.set_migratetype(block, to);
        self.zones[zone.index()].move_freepages_block(&mut self.frames, block, to, tail);
    }
}
