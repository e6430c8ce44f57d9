//! Where the two scanners are, and where the next compaction of the zone goes on.
//!
//! - **Rule**: the migrate scanner goes up, the free scanner down. Where there is no pivot, the one begins at the zone's
//!   start, the other at its last pageblock, and they have met when the free scanner is not above the migrate scanner.
//!   With a pivot, the migrate scanner begins there and the free scanner in the pageblock below; each that reaches its end
//!   of the zone goes on at the other:
//!
//!   ```text
//!   start           pivot             end
//!   |     <-- FFFFFFF|MMMMMM -->        |    none has wrapped: they move apart and cannot meet
//!   |FFFFFFFFFFFFFFFF|MMMMMMMMM --> <-- F|    the free scanner has: they meet as without a pivot
//!   |M --> <-- FFFFFF|MMMMMMMMMMMMMMMMMM|    the migrate scanner has: the same below the pivot
//!   ```
//!
//!   A zone remembers both places: the migrate scanner's apart for asynchronous and synchronous mode, as the former passes
//!   over more. Only blocks that yielded nothing move the remembered places, and only onwards. Whoever sees the scanners
//!   meet sends both back to where they begin; free pages that are given back pull the free scanner's place up to their
//!   block. A compaction that restarts after the longest deferral moves the pivot to where they met last.
//! - **Source**: `compact_zone()`, `compact_finished()`, `update_pageblock_skip()` (mm/compaction.c, 3.19 and 4.20);
//!   `update_cached_migrate()` (6.12); for the pivot, RFC 1421661920-4114-1 to -6@suse.cz, patches 1 to 5.
//!   Since 5.1 the migrate scanner's place is moved behind the block after one that was finished, the free scanner's to
//!   one that was looked at to its end (6.12: below it). A place behind the zone's end or before its start is forgotten,
//!   and the next run begins at the end of the zone.
//! - **Since/until**: [`ScannersMeet`], [`ScannerStart`], [`CompactionSearch`].
//!
//! Everything that moves a remembered place is in this file.

use rules::{CompactionSearch, Rules, ScannerStart, ScannersMeet};
use units::{PAGEBLOCK_ORDER, PAGEBLOCK_PAGES, Pfn};

use crate::zone::Zone;

/// How a place that another run has reset meanwhile compares.
const UNSET: Pfn = Pfn(0);

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
    /// Where the scanners began, if they wrap round at the zone's ends.
    pub pivot: Option<Pfn>,
    /// Next frame that the migrate scanner looks at.
    pub migrate: Pfn,
    /// Next frame that the free scanner looks at.
    pub free: Pfn,
    /// The run covers the whole zone.
    pub whole_zone: bool,
    meet: ScannersMeet,
}

impl Scanners {
    /// Where a run in this zone starts; remembered places that were never set are set.
    pub(super) fn begin(zone: &mut Zone, whole_zone: bool, sync: bool, rules: &Rules) -> Self {
        let (from, meet) = (rules.scanner_start, rules.scanners_meet);
        let (start, end) = (zone.start, zone.end());
        let inside = |pfn: &Pfn| (start..end).contains(pfn);
        let known = zone.compact.pivot.filter(inside);
        let pivot = (from != ScannerStart::ZoneEnds).then(|| known.unwrap_or(start));
        zone.compact.pivot = pivot;
        if pivot != known {
            zone.reset_cached_positions();
        }
        let first = pivot.unwrap_or(start);
        let below = below_pivot(first, start, end);
        if whole_zone {
            return Scanners { start, end, pivot, migrate: first, free: below, whole_zone, meet };
        }
        let cached = zone.compact.migrate_pfn[usize::from(sync)].filter(inside);
        let migrate = cached.unwrap_or_else(|| {
            zone.compact.migrate_pfn = [Some(first); 2];
            first
        });
        // The free scanner never stands on the pivot itself.
        let free = zone.compact.free_pfn.filter(|pfn| inside(pfn) && Some(*pfn) != pivot).unwrap_or(below);
        zone.compact.free_pfn = Some(free);
        let whole_zone = match rules.compaction_search {
            CompactionSearch::Linear => migrate == first,
            CompactionSearch::FreeLists => zone.compact.init_migrate_pfn.is_some_and(|lowest| migrate <= lowest),
        };
        Scanners { start, end, pivot, migrate, free, whole_zone, meet }
    }

    /// Whether the migrate scanner goes towards the free scanner, as one of them has wrapped or none ever does; else its
    /// way ends at the zone's end, and the free scanner's at its start.
    #[inline]
    pub(super) fn converge(&self) -> bool {
        self.pivot.is_none_or(|pivot| self.migrate < pivot || self.free >= pivot)
    }

    /// Whether there is nothing left between them (`compact_scanners_met()`).
    #[inline]
    pub(super) fn met(&self) -> bool {
        let reached = match self.meet {
            ScannersMeet::SameFrame => self.free <= self.migrate,
            ScannersMeet::SamePageblock => block_start(self.free) <= block_start(self.migrate),
        };
        match self.pivot {
            // With none wrapped they have their backs to each other; with both, they have passed each other.
            Some(pivot) if (self.migrate < pivot) == (self.free >= pivot) => !reached,
            _ => reached,
        }
    }

    /// One past the frames that the migrate scanner may look at.
    #[inline]
    pub(super) fn migrate_limit(&self) -> Pfn {
        if self.converge() { self.free } else { Pfn(self.end.0.next_multiple_of(PAGEBLOCK_PAGES)) }
    }

    /// The migrate scanner has come to `next`; `limited` says that the pageblock there reaches beyond its limit.
    pub(super) fn advance_migrate(&mut self, next: Pfn, limited: bool) {
        self.migrate = match self.converge() {
            false if next >= self.end => self.start,
            // Within the other's pageblock it could never come to the same frame by itself.
            true if limited && self.meet == ScannersMeet::SameFrame => self.free,
            _ => next,
        };
    }

    /// The free scanner has come to `next`, or to its limit.
    pub(super) fn retreat_free(&mut self, next: Pfn, limited: bool) {
        self.free = if limited && self.meet == ScannersMeet::SameFrame { self.migrate } else { next };
    }

    /// First frame of the lowest pageblock that the free scanner may look at.
    #[inline]
    pub(super) fn free_limit(&self) -> Pfn {
        if self.converge() { block_end(self.migrate) } else { block_start(self.start) }
    }

    /// First frame of the zone's last pageblock.
    pub(super) fn last_block(&self) -> Pfn {
        block_start(Pfn(self.end.0 - 1))
    }

    /// The part of a pageblock that lies in the zone, as first frame and one past the last.
    #[inline]
    pub(super) fn clamp_block(&self, block: Pfn) -> (Pfn, Pfn) {
        (block.max(self.start), block.offset(PAGEBLOCK_PAGES).min(self.end))
    }
}

/// The pageblock below a pivot; the zone's last one if there is none below.
fn below_pivot(pivot: Pfn, start: Pfn, end: Pfn) -> Pfn {
    match block_start(pivot).0.checked_sub(PAGEBLOCK_PAGES) {
        Some(below) if below >= start.0 => Pfn(below),
        _ => block_start(Pfn(end.0 - 1)),
    }
}

impl Zone {
    /// One past the last frame.
    fn end(&self) -> Pfn {
        Pfn(self.start.0 + self.spanned as u32)
    }

    /// The next run starts over (`reset_cached_positions()`): at the ends, or wherever the pivot is by then.
    pub(super) fn reset_cached_positions(&mut self) {
        let ends = self.compact.pivot.is_none();
        self.compact.migrate_pfn = [ends.then_some(self.start); 2];
        self.compact.free_pfn = ends.then_some(block_start(Pfn(self.end().0 - 1)));
    }

    /// The scanners have met, the migrate scanner at `pfn`, be that the zone's end: the next run starts over.
    pub(super) fn scanners_met(&mut self, pfn: Pfn) {
        self.compact.last_met = Some(block_start(pfn.min(Pfn(self.end().0 - 1))));
        self.reset_cached_positions();
    }

    /// A restart after the longest deferral: the scanners begin where they met last.
    pub(super) fn move_pivot(&mut self) {
        self.compact.pivot = self.compact.last_met;
    }

    /// A block gave the migrate scanner nothing: the next run need not start before `pfn`.
    pub(super) fn advance_cached_migrate(&mut self, pfn: Pfn, sync: bool) {
        let pivot = self.compact.pivot.unwrap_or(self.start);
        for cached in &mut self.compact.migrate_pfn[..=usize::from(sync)] {
            let onwards = |old: Pfn| match (old >= pivot, pfn >= pivot) {
                (true, true) | (false, false) => pfn > old,
                (before, _) => before,
            };
            if onwards(cached.unwrap_or(UNSET)) {
                *cached = Some(pfn);
            }
        }
    }

    /// A block gave the free scanner nothing: the next run need not start behind `pfn`.
    pub(super) fn retreat_cached_free(&mut self, pfn: Pfn) {
        let pivot = self.compact.pivot.unwrap_or(self.start);
        let onwards = |old: Pfn| match (old < pivot, pfn < pivot) {
            (true, true) | (false, false) => pfn < old,
            (before, _) => before,
        };
        if onwards(self.compact.free_pfn.unwrap_or(UNSET)) {
            self.compact.free_pfn = Some(pfn);
        }
    }

    /// A block up to `end` was finished: the next run need not start in it or in the one behind it
    /// (`update_cached_migrate()` since 5.1).
    pub(super) fn advance_cached_migrate_behind(&mut self, end: Pfn, sync: bool) {
        let (behind, zone_end) = (block_end(end), self.end());
        for cached in &mut self.compact.migrate_pfn[..=usize::from(sync)] {
            if cached.is_some_and(|old| behind > old) {
                *cached = Some(behind).filter(|pfn| *pfn < zone_end);
            }
        }
    }

    /// The free scanner need not start above `pfn` (`update_pageblock_skip()` since 5.1).
    pub(super) fn move_cached_free_down(&mut self, pfn: Pfn) {
        if self.compact.free_pfn.is_some_and(|old| pfn < old) {
            self.compact.free_pfn = Some(pfn).filter(|pfn| *pfn >= block_start(self.start));
        }
    }

    /// The highest free block that a search has seen is in the pageblock of `highest`: the free scanner starts below it
    /// if it would have started there or below.
    pub(super) fn lower_cached_free(&mut self, highest: Pfn) {
        if self.compact.free_pfn.is_none_or(|old| highest >= old) {
            let below = highest.0.checked_sub(PAGEBLOCK_PAGES).map(Pfn);
            self.compact.free_pfn = below.filter(|pfn| *pfn >= block_start(self.start));
        }
    }

    /// Free pages up to `pfn` were given back: the next run starts from their block again, unless it starts before that
    /// anyway.
    pub(super) fn return_cached_free(&mut self, pfn: Pfn) {
        let (pivot, block) = (block_start(self.compact.pivot.unwrap_or(self.start)), block_start(pfn));
        let back = |old: Pfn| match (old < pivot, block < pivot) {
            (true, true) | (false, false) => block > old,
            (_, below) => below,
        };
        // Below a zone without a pivot there is nothing; with one, whoever sees no place starts over.
        if self.compact.free_pfn.map_or(self.compact.pivot.is_none(), back) {
            self.compact.free_pfn = Some(block);
        }
    }
}
