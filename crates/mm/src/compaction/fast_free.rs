//! Finding pages to migrate to by the free lists, before the free scanner goes on block by block.
//!
//! - **Rule**: orders below the request are searched round robin, from the one that gave pages last, each list of
//!   Movable blocks from its end. A block in the uppermost quarter of what lies between the scanners is taken at once;
//!   else the highest one in the upper half. At most 16 entries are looked at, half as many after a search in vain and
//!   after each order; 256 if the free scanner stands where it started. The list is turned so that the next search
//!   begins with what this one has not seen. Around a block that was found the rest of its pageblock is isolated if
//!   pages are lacking, and the pageblock marked if that came to its end. If nothing is found at the start, the free
//!   scanner goes to the highest free block seen, or half-way down for an allocation.
//! - **Source**: `fast_isolate_freepages()`, `fast_isolate_around()`, `next_search_order()`, `move_freelist_head()`
//!   (mm/compaction.c, 6.12).
//! - **Since/until**: [`CompactionSearch::FreeLists`](rules::CompactionSearch) (5.1); [`TargetSearch`], [`CompactionScanned`], [`TargetBlock`](rules::TargetBlock).
//! - **Abstracted**: 6.1 marks a pageblock in which the watermark stopped the search around a block, 6.12 does not; here
//!   as in 6.12.

use rules::{CompactionScanned, TargetSearch};
use units::{Order, PAGEBLOCK_PAGES, Pfn};

use super::control::{Compactor, MigrateMode};
use super::events::{CompactionEvent, Scanner};
use super::run::CompactRun;
use super::scanner::block_start;
use crate::stat::VmEvent;
use crate::{MigrateType, Mm};

/// One search under way.
struct Search {
    /// Entries of a list that may be looked at.
    limit: u32,
    /// A block at or above it is taken at once.
    preferred: Pfn,
    /// A block at or above it is a candidate.
    least: Pfn,
    /// First frame of the highest pageblock seen.
    highest: Option<Pfn>,
    /// Entries looked at, and pages taken.
    scanned: u64,
}

/// What looking through one free list came to.
struct Looked {
    found: Option<Pfn>,
    entries: u32,
}

/// Entries of a list that may be looked at: until 5.10 `min(1U, limit)`, which 6.1 has mended.
fn limited(mm: &Mm, limit: u32) -> u32 {
    match mm.rules.target_search {
        TargetSearch::OneBlock => limit.min(1),
        TargetSearch::ByLimit => limit.max(1),
    }
}

impl CompactRun {
    /// Looks for targets in the free lists (`fast_isolate_freepages()`).
    pub(super) fn fast_isolate_freepages(&mut self, mm: &mut Mm) {
        let Some(order) = self.control.order.filter(|order| order.0 > 0) else { return };
        // Until hints are cleared for the first time, every place counts as the start.
        let highest_start = mm.zones[self.zone.index()].compact.init_free_pfn;
        let at_start = highest_start.is_none_or(|start| self.scanners.free >= start);
        let mut search = self.begin_search(mm, at_start);
        let found = self.search_orders(mm, order.0, &mut search);
        mm.trace.emit_compaction(CompactionEvent::Isolate {
            scanner: Scanner::FreeLists,
            start: search.least,
            end: self.scanners.free,
            nr_scanned: search.scanned,
            nr_taken: u64::from(self.targets.pages()),
        });
        let around = found.or_else(|| {
            self.fast.fails += 1;
            if at_start { self.restart_free_scanner(mm, &search) } else { None }
        });
        if let Some(highest) = search.highest {
            mm.zones[self.zone.index()].lower_cached_free(highest);
        }
        self.free_scanned += search.scanned;
        mm.charge(search.scanned * mm.costs.compact_scan_free);
        if let Some(pfn) = around {
            self.fast_isolate_around(mm, pfn);
        }
    }

    fn begin_search(&self, mm: &Mm, at_start: bool) -> Search {
        let (free, distance) = (self.scanners.free.0, self.scanners.free.0.saturating_sub(self.scanners.migrate.0));
        Search {
            limit: if at_start { PAGEBLOCK_PAGES >> 1 } else { limited(mm, self.fast.scan_limit() >> 1) },
            preferred: block_start(Pfn(free - (distance >> 2))),
            least: block_start(Pfn(free - (distance >> 1))),
            highest: None,
            scanned: 0,
        }
    }

    /// Searches the orders until one has a block; that is taken, unless the watermark forbids it.
    fn search_orders(&mut self, mm: &mut Mm, request: u8, search: &mut Search) -> Option<Pfn> {
        self.fast.order = self.fast.order.min(request - 1);
        let mut next = Some(self.fast.order);
        while let Some(order) = next {
            if mm.zones[self.zone.index()].free_area[usize::from(order)].is_empty() {
                next = self.next_search_order(request, order);
                continue;
            }
            let looked = self.look_for_target(mm, Order(order), search);
            if let Some(pfn) = looked.found {
                let Some(taken) = mm.isolate_free_block(pfn) else {
                    // The search is over as if it had come round.
                    self.next_search_order(request, self.fast.order + 1);
                    return None;
                };
                self.targets.add(mm, pfn, taken);
                if mm.rules.compaction_scanned != CompactionScanned::Looked {
                    search.scanned += u64::from(taken.pages()) - 1;
                }
                mm.stat.count(VmEvent::CompactIsolated, u64::from(taken.pages()));
                if !self.enough_targets() {
                    self.next_search_order(request, order);
                }
                return Some(pfn);
            }
            if looked.entries >= search.limit {
                search.limit = limited(mm, search.limit >> 1);
            }
            next = self.next_search_order(request, order);
        }
        None
    }

    /// The next order to search, round robin; none once all have been (`next_search_order()`).
    fn next_search_order(&mut self, request: u8, order: u8) -> Option<u8> {
        let before = |order: u8| order.checked_sub(1).unwrap_or(request - 1);
        let next = before(order);
        if next != self.fast.order {
            return Some(next);
        }
        self.fast.order = before(self.fast.order);
        None
    }

    /// Looks through one list from its end.
    fn look_for_target(&mut self, mm: &mut Mm, order: Order, search: &mut Search) -> Looked {
        let list = &mut mm.zones[self.zone.index()].free_area[order.index()].lists[MigrateType::Movable as usize];
        let (mut at, mut entries) = (list.back(), 0);
        let mut candidate: Option<Pfn> = None;
        let mut last_seen = None;
        let mut found = None;
        while at.is_some() {
            entries += 1;
            search.scanned += 1;
            search.highest = search.highest.max(Some(block_start(at).max(self.scanners.start)));
            if at >= search.preferred {
                self.fast.fails = 0;
                self.fast.order = order.0;
                (found, last_seen) = (Some(at), Some(at));
                break;
            }
            if at >= search.least && candidate.is_none_or(|highest| at > highest) {
                candidate = Some(at);
                search.limit >>= 1;
            }
            if entries >= search.limit {
                last_seen = Some(at);
                break;
            }
            at = mm.frames[at].prev;
        }
        if found.is_none() && candidate.is_some() {
            (found, last_seen) = (candidate, candidate);
        }
        if let Some(first) = last_seen {
            list.turn_to_front(&mut mm.frames, first);
        }
        Looked { found, entries }
    }

    /// Nothing was found at the start: the free scanner goes down to the highest free block, or half-way; says where
    /// pages may be (the end of `fast_isolate_freepages()`).
    fn restart_free_scanner(&mut self, mm: &Mm, search: &Search) -> Option<Pfn> {
        let anywhere = mm.rules.target_search == TargetSearch::OneBlock;
        if let Some(highest) = search.highest.filter(|highest| anywhere || *highest >= search.least) {
            self.scanners.free = highest;
            return Some(highest);
        }
        if self.control.who != Compactor::Direct {
            return None;
        }
        self.scanners.free = search.least.max(block_start(self.scanners.start));
        let inside = !self.is_hole(mm, search.least) && mm.blocks.zone_of(search.least) == self.zone;
        (inside && self.is_suitable_target(mm, search.least)).then_some(search.least)
    }

    /// Isolates what else is free around a block that was found (`fast_isolate_around()`).
    fn fast_isolate_around(&mut self, mm: &mut Mm, pfn: Pfn) {
        let quick = self.control.who == Compactor::Direct && self.control.mode == MigrateMode::Async;
        let block = block_start(pfn);
        if self.enough_targets() || quick || self.is_hole(mm, block) {
            return;
        }
        let (first, end) = self.scanners.clamp_block(block);
        if self.isolate_freepages_block(mm, first, end, 1).0 == end {
            mm.blocks.set_skip(block, true);
        }
    }
}
