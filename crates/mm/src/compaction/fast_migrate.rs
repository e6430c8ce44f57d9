//! Finding a pageblock to empty by the free lists, before the migrate scanner goes on block by block.
//!
//! - **Rule**: at the start of a pageblock, for a costly movable request or kcompactd, the free Movable blocks one order
//!   below the request and down to order 3 are looked at, at most 33 in all and half as many after each search in vain.
//!   The first one in the lower half of what lies between the scanners (the first eighth once the migrate scanner has
//!   left the zone's start) whose pageblock is not to be skipped is taken: it is partly free already. The list is turned
//!   so that the next search begins behind it. A search in vain sends the scanner to the lowest block that searches
//!   found so far, once.
//! - **Source**: `fast_find_migrateblock()`, `reinit_migrate_pfn()`, `update_fast_start_pfn()`, `freelist_scan_limit()`
//!   (mm/compaction.c, 6.1 and 6.12).
//! - **Since/until**: [`CompactionSearch::FreeLists`](rules::CompactionSearch) (5.1); [`PageblockRescan`].

use rules::PageblockRescan;
use units::{Order, Pfn};

use super::control::Compactor;
use super::isolate_migrate::CLUSTER_MAX;
use super::run::CompactRun;
use super::scanner::block_start;
use crate::{MigrateType, Mm};

/// What the searches of one run remember.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct FastSearch {
    /// Searches in vain since one found something (`fast_search_fail`).
    pub fails: u32,
    /// Order that the search for targets begins with (`search_order`).
    pub order: u8,
    /// Lowest free block that a search for a source found (`fast_start_pfn`).
    pub lowest: LowestFound,
}

/// The lowest free block that searches found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LowestFound {
    /// None yet.
    None,
    /// This one.
    At(Pfn),
    /// The migrate scanner was sent there already.
    Used,
}

impl FastSearch {
    pub(super) fn new(order: Option<Order>) -> FastSearch {
        FastSearch { fails: 0, order: order.map_or(0, |order| order.0), lowest: LowestFound::None }
    }

    /// List entries that one search may look at (`freelist_scan_limit()`).
    pub(super) fn scan_limit(&self) -> u32 {
        (CLUSTER_MAX as u32 >> self.fails.min(31)) + 1
    }

    fn note(&mut self, found: Pfn) {
        self.lowest = match self.lowest {
            LowestFound::None => LowestFound::At(found),
            LowestFound::At(lowest) => LowestFound::At(lowest.min(found)),
            LowestFound::Used => LowestFound::Used,
        };
    }
}

/// What looking through one free list came to.
enum Looked {
    Found(Pfn),
    NotHere,
    LimitReached,
}

impl CompactRun {
    /// Where the migrate scanner goes on (`fast_find_migrateblock()`).
    pub(super) fn fast_find_migrateblock(&mut self, mm: &mut Mm) -> Pfn {
        let at = self.scanners.migrate;
        let Some(order) = self.order_worth_a_search().filter(|_| self.searches_free_lists(mm, at)) else { return at };
        let (limit, below) = (self.fast.scan_limit(), self.source_limit());
        let mut looked_at = 0;
        let mut found = None;
        for order in (Order::COSTLY.0..order.0).rev() {
            if looked_at >= limit {
                break;
            }
            match self.look_for_source(mm, Order(order), limit, below, &mut looked_at) {
                Looked::Found(pfn) => {
                    found = Some(pfn);
                    break;
                }
                Looked::NotHere => {}
                Looked::LimitReached => break,
            }
        }
        self.migrate_scanned += u64::from(looked_at);
        mm.charge(u64::from(looked_at) * mm.costs.compact_scan);
        match found {
            Some(free) => {
                self.fast.note(free);
                self.fast.fails = 0;
                if mm.rules.pageblock_rescan != PageblockRescan::Failed {
                    mm.blocks.set_skip(free, true);
                }
                block_start(free).max(self.scanners.start)
            }
            None => {
                self.fast.fails += 1;
                self.reinit_migrate()
            }
        }
    }

    /// The order whose smaller free blocks may show a source: a costly one, and a movable one if an allocation waits.
    fn order_worth_a_search(&self) -> Option<Order> {
        let movable = self.control.who != Compactor::Direct || self.migratetype == MigrateType::Movable;
        self.control.order.filter(|order| *order > Order::COSTLY && movable)
    }

    /// Whether the free lists are searched: hints keep searches from finding the same again, and a block that was begun
    /// is ended.
    fn searches_free_lists(&self, mm: &Mm, at: Pfn) -> bool {
        let stays = self.whole_block && mm.rules.pageblock_rescan == PageblockRescan::Failed;
        !self.control.ignore_skip_hint && !stays && self.begins_block(at)
    }

    /// One past the pageblocks that may become sources: the further the scanner has come, the fewer.
    fn source_limit(&self) -> Pfn {
        let at = self.scanners.migrate;
        let distance = self.scanners.free.0.saturating_sub(at.0) >> 1;
        let distance = if at == self.scanners.start { distance } else { distance >> 2 };
        block_start(at.offset(distance))
    }

    fn look_for_source(&self, mm: &mut Mm, order: Order, limit: u32, below: Pfn, looked_at: &mut u32) -> Looked {
        let list = &mut mm.zones[self.zone.index()].free_area[order.index()].lists[MigrateType::Movable as usize];
        let mut at = list.front();
        while at.is_some() {
            *looked_at += 1;
            if *looked_at > limit {
                list.turn_to_back(&mut mm.frames, at);
                return Looked::LimitReached;
            }
            if at < below && !mm.blocks.skip(at) {
                list.turn_to_back(&mut mm.frames, at);
                return Looked::Found(at);
            }
            at = mm.frames[at].next;
        }
        Looked::NotHere
    }

    /// Goes on by blocks, from the lowest block that a search found if that has not been done (`reinit_migrate_pfn()`).
    fn reinit_migrate(&mut self) -> Pfn {
        if let LowestFound::At(lowest) = self.fast.lowest {
            self.scanners.migrate = lowest;
            self.fast.lowest = LowestFound::Used;
        }
        self.scanners.migrate
    }
}
