//! Clearing the skip hints of those pageblocks that a scanner can use.
//!
//! - **Rule**: two walks go through the zone's pageblocks at once, up from its start and down from its end, until they
//!   meet. A block keeps its hint under a huge page, and if no eighth frame of it is what is looked for: a page on the LRU
//!   for the migrate scanner, a free block in a Movable block for the free scanner. Once a walk has come to such a block,
//!   either will do for it. The scanners start at the first block of each walk; if there is none, where the walks met, so
//!   that the next run ends at once.
//! - **Source**: `__reset_isolation_suitable()`, `__reset_isolation_pfn()` (mm/compaction.c, 6.1 and 6.12).
//! - **Since/until**: [`SkipReset::Useful`](rules::SkipReset) (5.1).
//! - **Abstracted**: a frame inside a compound page smaller than a pageblock counts as not on the LRU.

use units::{Order, PAGEBLOCK_ORDER, PAGEBLOCK_PAGES, Pfn, ZoneId};

use super::scanner::{block_end, block_start};
use super::skip::skip_persists;
use crate::{Frame, Kind, MigrateType, Mm};

/// What makes a pageblock useful.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct UsefulFor {
    source: bool,
    target: bool,
}

impl Mm {
    /// Clears the hints of useful blocks, and sends the scanners to the outermost of them.
    pub(super) fn reset_useful_hints(&mut self, zone: ZoneId) {
        let state = &mut self.zones[zone.index()];
        state.compact.blockskip_flush = false;
        let (first, last) = (state.start, Pfn(state.start.0 + state.spanned as u32 - 1));
        let (mut up, mut down) = (first, Some(last));
        let (mut source, mut target) = (None, None);
        while let Some(at) = down.filter(|down| up < *down) {
            let wanted = UsefulFor { source: true, target: source.is_some() };
            if self.reset_hint(zone, up, wanted) && source.is_none() {
                source = Some(up);
            }
            let wanted = UsefulFor { source: target.is_some(), target: true };
            if self.reset_hint(zone, at, wanted) && target.is_none() {
                target = Some(at);
            }
            up = up.offset(PAGEBLOCK_PAGES);
            down = at.0.checked_sub(PAGEBLOCK_PAGES).map(Pfn);
        }
        self.charge(blocks_between(first, last) * self.costs.compact_scan);
        self.start_at(zone, source, target);
        if source.unwrap_or(last) >= target.unwrap_or(first) {
            let compact = &mut self.zones[zone.index()].compact;
            compact.migrate_pfn = [Some(up).filter(|pfn| *pfn <= last); 2];
            compact.free_pfn = down.filter(|pfn| *pfn >= block_start(first));
        }
    }

    fn start_at(&mut self, zone: ZoneId, source: Option<Pfn>, target: Option<Pfn>) {
        let compact = &mut self.zones[zone.index()].compact;
        if let Some(source) = source {
            compact.init_migrate_pfn = Some(source);
            compact.migrate_pfn = [Some(source); 2];
        }
        if let Some(target) = target {
            compact.init_free_pfn = Some(target);
            compact.free_pfn = Some(target);
        }
    }

    /// Clears a block's hint if the block is useful; whether it has none now (`__reset_isolation_pfn()`).
    fn reset_hint(&mut self, zone: ZoneId, pfn: Pfn, wanted: UsefulFor) -> bool {
        let first = block_start(pfn).max(self.zones[zone.index()].start);
        if self.blocks.zone_of(pfn) != zone || skip_persists(&self.frames, first) {
            return false;
        }
        let either = wanted.source && wanted.target;
        if either && !self.blocks.skip(pfn) {
            return true;
        }
        if !wanted.source && self.blocks.migratetype(pfn) != MigrateType::Movable {
            return false;
        }
        let useful = self.samples(zone, pfn).any(|frame| {
            let on_lru = frame.is_lru_kind() && frame.has(Frame::LRU);
            wanted.source && on_lru || wanted.target && frame.kind() == Kind::Buddy
        });
        if useful {
            self.blocks.set_skip(pfn, false);
        }
        useful
    }

    /// Every eighth frame of a pageblock, as far as it lies in the zone.
    fn samples(&self, zone: ZoneId, pfn: Pfn) -> impl Iterator<Item = &Frame> {
        let zone = &self.zones[zone.index()];
        let end = block_end(pfn).0.min(zone.start.0 + zone.spanned as u32);
        let first = block_start(pfn).max(zone.start);
        (first.0..end).step_by(Order::COSTLY.pages() as usize).map(|at| &self.frames[Pfn(at)])
    }
}

/// Pageblocks between two frames.
fn blocks_between(first: Pfn, last: Pfn) -> u64 {
    u64::from((last.0 >> PAGEBLOCK_ORDER.0) - (first.0 >> PAGEBLOCK_ORDER.0) + 1)
}
