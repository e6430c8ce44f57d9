//! Skip hints: pageblocks in which a scanner found nothing are passed over until the hints are cleared.
//!
//! - **Rule**: a scanner that reaches the end of a block without isolating anything in that call marks the block and
//!   moves the remembered place. All hints of a zone are cleared and the scanners sent to the ends when compaction
//!   restarts after the longest deferral, and by kswapd going to sleep if direct compaction saw the scanners meet.
//!   Blocks under a huge page keep their hint.
//! - **Source**: `update_pageblock_skip()`, `__reset_isolation_suitable()`, `reset_isolation_suitable()`,
//!   `pageblock_skip_persistent()` (mm/compaction.c, 4.20).
//! - **Since/until**: since 5.1 (reset_useful.rs) the hint is cleared only of blocks that hold movable or free pages, and
//!   the scanners start at the outermost of those; [`SkipReset`], [`SkipResetTime`].
//! - **Abstracted**: a block marked twice by racing scanners.

use rules::{ScannerStart, SkipReset, SkipResetTime};
use units::{NodeId, Order, PAGEBLOCK_ORDER, PAGEBLOCK_PAGES, Pfn, ZoneId};

use crate::{Frame, Frames, Kind, Mm};

impl Mm {
    /// A scanner went through to the end of a block and isolated nothing; `first` is the frame where it began.
    pub(super) fn mark_migrate_skip(&mut self, zone: ZoneId, first: Pfn, sync: bool) {
        self.blocks.set_skip(first, true);
        self.zones[zone.index()].advance_cached_migrate(first, sync);
    }

    /// The same for the free scanner.
    pub(super) fn mark_free_skip(&mut self, zone: ZoneId, first: Pfn) {
        self.blocks.set_skip(first, true);
        self.zones[zone.index()].retreat_cached_free(first);
    }

    /// Whether the hint of a block stays when the others are cleared.
    fn keeps_hint(&self, first: Pfn) -> bool {
        self.rules.skip_reset != SkipReset::All && skip_persists(&self.frames, first)
    }

    /// Clears the skip hints of a zone and sends its scanners back (`__reset_isolation_suitable()`).
    fn reset_zone_isolation_suitable(&mut self, zone: ZoneId) {
        match self.rules.skip_reset {
            SkipReset::All | SkipReset::NotHuge => self.reset_all_hints(zone),
            SkipReset::Useful => self.reset_useful_hints(zone),
        }
    }

    /// Clears all hints, and sends the scanners to the ends.
    fn reset_all_hints(&mut self, zone: ZoneId) {
        let (start, spanned) = (self.zones[zone.index()].start, self.zones[zone.index()].spanned as u32);
        let mut block = start.align_down(PAGEBLOCK_ORDER);
        while block.0 < start.0 + spanned {
            // The block's own bit is looked at first: it is dense, the frames are not.
            if self.blocks.skip(block) && self.zone_of(block) == zone && !self.keeps_hint(block.max(start)) {
                self.blocks.set_skip(block, false);
            }
            block = block.offset(PAGEBLOCK_PAGES);
        }
        self.charge(u64::from(spanned.div_ceil(PAGEBLOCK_PAGES)) * self.costs.compact_scan);
        let zone = &mut self.zones[zone.index()];
        zone.compact.blockskip_flush = false;
        zone.reset_cached_positions();
    }

    /// A compaction restarts after the longest deferral: forgets the skip hints and starts over, at another pivot if that
    /// moves; since 5.1 only if direct compaction saw the scanners meet.
    pub(super) fn restart_compaction(&mut self, zone: ZoneId) {
        if self.rules.scanner_start == ScannerStart::MovingPivot {
            self.zones[zone.index()].move_pivot();
        }
        let met = self.zones[zone.index()].compact.blockskip_flush;
        if self.rules.skip_reset != SkipReset::Useful || met {
            self.reset_zone_isolation_suitable(zone);
        }
    }

    /// kswapd goes to sleep: forgets the skip hints if this is the time for it.
    pub fn forget_skip_hints(&mut self, node: NodeId, time: SkipResetTime) {
        if self.rules.skip_reset_time == time {
            self.reset_isolation_suitable(node);
        }
    }

    /// Forgets the skip hints of zones in which direct compaction went all the way.
    pub(super) fn reset_isolation_suitable(&mut self, node: NodeId) {
        for at in 0..self.nodes[node.index()].zones.len() {
            let zone = self.nodes[node.index()].zones[at];
            if self.zones[zone.index()].compact.blockskip_flush {
                self.reset_zone_isolation_suitable(zone);
            }
        }
    }
}

/// Whether a block belongs to a compound page of at least its size (`pageblock_skip_persistent()`).
pub(super) fn skip_persists(frames: &Frames, first: Pfn) -> bool {
    let compound = |frame: &Frame, order: Order| {
        matches!(frame.kind(), Kind::Anon | Kind::File | Kind::Hugetlb | Kind::Slab | Kind::Kernel)
            && frame.order() >= order
    };
    match frames[first].kind() {
        Kind::Tail => compound(&frames[first.align_down(Order::MAX)], Order::MAX),
        _ => compound(&frames[first], PAGEBLOCK_ORDER),
    }
}
