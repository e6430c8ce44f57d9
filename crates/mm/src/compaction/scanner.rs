//! Where the two scanners are, and where the next compaction of the zone goes on.
//!
//! - **Rule**: the migrate scanner goes up from the zone's start, the free scanner down from its last pageblock; they
//!   meet when the free scanner's block is not above the migrate scanner's. A zone remembers both places: the migrate
//!   scanner's apart for asynchronous and synchronous mode, as the former passes over more. Only blocks that yielded
//!   nothing move the remembered places. Whoever sees the scanners meet sends both back to the ends; free pages that
//!   are given back pull the free scanner's place up to their block.
//! - **Source**: `compact_scanners_met()`, `reset_cached_positions()`, `update_pageblock_skip()`, `compact_zone()`
//!   (mm/compaction.c, 4.20). 6.12 moves the cached place past the block (`update_cached_migrate()`).
//! - **Since/until**: [`CompactionSearch::FreeLists`](rules::CompactionSearch) (5.1) remembers the end of a block for
//!   the migrate scanner, the block below for the free scanner.
//!
//! Everything that moves a remembered place is in this file, so that another start (a pivot) has one place to go.

use units::{PAGEBLOCK_ORDER, PAGEBLOCK_PAGES, Pfn};

use crate::zone::Zone;

/// First frame of the pageblock.
#[inline]
pub(super) fn block_start(pfn: Pfn) -> Pfn {
    pfn.align_down(PAGEBLOCK_ORDER)
}

/// One past the last frame of the pageblock.
#[inline]
pub(super) fn block_end(pfn: Pfn) -> Pfn {
    block_start(pfn).offset(PAGEBLOCK_PAGES)
}

/// The scanners of one run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Scanners {
    /// First frame of the zone.
    pub start: Pfn,
    /// One past the last frame of the zone.
    pub end: Pfn,
    /// Next frame that the migrate scanner looks at.
    pub migrate: Pfn,
    /// Next frame that the free scanner looks at; only its block counts for meeting.
    pub free: Pfn,
    /// The run covers the whole zone.
    pub whole_zone: bool,
}

impl Scanners {
    /// Where a run in this zone starts; remembered places that were never set are set.
    pub(super) fn start(zone: &mut Zone, whole_zone: bool, sync: bool) -> Scanners {
        let (start, end) = (zone.start, zone.end());
        let last = block_start(Pfn(end.0 - 1));
        if whole_zone {
            return Scanners { start, end, migrate: start, free: last, whole_zone };
        }
        let inside = |pfn: &Pfn| (start..end).contains(pfn);
        let free = zone.compact.free_pfn.filter(inside).unwrap_or(last);
        zone.compact.free_pfn = Some(free);
        let cached = zone.compact.migrate_pfn[usize::from(sync)].filter(inside);
        let migrate = cached.unwrap_or_else(|| {
            zone.compact.migrate_pfn = [Some(start); 2];
            start
        });
        Scanners { start, end, migrate, free, whole_zone: migrate == start }
    }

    /// Whether there is nothing left between them (`compact_scanners_met()`).
    #[inline]
    pub(super) fn met(&self) -> bool {
        self.free.0 >> PAGEBLOCK_ORDER.0 <= self.migrate.0 >> PAGEBLOCK_ORDER.0
    }

    /// The part of a pageblock that lies in the zone, as first frame and one past the last.
    #[inline]
    pub(super) fn clamp_block(&self, block: Pfn) -> (Pfn, Pfn) {
        (block.max(self.start), block.offset(PAGEBLOCK_PAGES).min(self.end))
    }
}

impl Zone {
    /// One past the last frame.
    fn end(&self) -> Pfn {
        Pfn(self.start.0 + self.spanned as u32)
    }

    /// Sends both scanners to the ends of the zone (`reset_cached_positions()`).
    pub(super) fn reset_cached_positions(&mut self) {
        self.compact.migrate_pfn = [Some(self.start); 2];
        self.compact.free_pfn = Some(block_start(Pfn(self.end().0 - 1)));
    }

    /// A block gave the migrate scanner nothing: the next run need not start below `pfn`.
    pub(super) fn advance_cached_migrate(&mut self, pfn: Pfn, sync: bool) {
        for cached in &mut self.compact.migrate_pfn[..=usize::from(sync)] {
            *cached = (*cached).max(Some(pfn));
        }
    }

    /// A block gave the free scanner nothing: the next run need not start above `pfn`.
    pub(super) fn retreat_cached_free(&mut self, pfn: Pfn) {
        if self.compact.free_pfn.is_some_and(|cached| pfn < cached) {
            self.compact.free_pfn = Some(pfn);
        }
    }

    /// Free pages up to `pfn` were given back: the next run starts from their block again.
    pub(super) fn return_cached_free(&mut self, pfn: Pfn) {
        self.compact.free_pfn = self.compact.free_pfn.max(Some(block_start(pfn)));
    }
}
