//! The free scanner: takes free pages as targets of migration, from the end of the zone downwards.
//!
//! - **Rule**: pageblock by pageblock, until there are as many free pages as pages to migrate, or the migrate scanner's
//!   block is reached. Only Movable blocks are taken from (any at the hardest priority), and none that starts with a free
//!   page of a pageblock's size: that is what compaction is to make. Blocks with a skip hint are passed over. Within a
//!   block the scan goes upwards and stops as soon as there is enough; it goes on there next time. A free page that
//!   the watermark protects ends the search.
//! - **Source**: `isolate_freepages()`, `isolate_freepages_block()`, `suitable_migration_target()`, `map_pages()`,
//!   `compaction_alloc()`, `release_freepages()` (mm/compaction.c, 4.20).
//! - **Since/until**: [`FreeScanner`], [`CompoundSkip`](rules::CompoundSkip); how a scanner that wraps goes on is in
//!   scanner.rs.
//! - **Until**: 5.1 looks at the free lists first (`fast_isolate_freepages()`) and keeps the pages in blocks by order
//!   (6.9); see [`CompactionSearch`](rules::CompactionSearch).
//! - **Abstracted**: the zone lock and its contention.

use rules::FreeScanner;
use units::{Order, PAGEBLOCK_ORDER, PAGEBLOCK_PAGES, Pfn};

use super::isolate_migrate::stepped_over;
use super::run::CompactRun;
use super::scanner::block_start;
use crate::stat::VmEvent;
use crate::{Env, Kind, MigrateType, Mm};

impl CompactRun {
    /// A free page to migrate to (`compaction_alloc()`).
    pub(super) fn take_target(&mut self, mm: &mut Mm) -> Option<Pfn> {
        if self.targets.is_empty() && !self.contended {
            self.isolate_freepages(mm);
        }
        self.targets.pop_front(&mut mm.frames)
    }

    /// A target that was not used (`compaction_free()`).
    pub(super) fn return_target(&mut self, mm: &mut Mm, pfn: Pfn) {
        self.targets.push_front(&mut mm.frames, pfn);
    }

    /// Isolates free pages until there are enough (`isolate_freepages()`).
    fn isolate_freepages(&mut self, mm: &mut Mm) {
        while !self.isolate_down_to_limit(mm) && self.targets.is_empty() && !self.contended {}
    }

    /// Isolates free pages from one block after the other, down to the scanner's limit. `false`: the limit was the zone's
    /// start, and the scanner is at the zone's end now.
    fn isolate_down_to_limit(&mut self, mm: &mut Mm) -> bool {
        let (wraps, low) = (!self.scanners.converge(), self.scanners.free_limit());
        let mut at = self.scanners.free;
        let mut block = block_start(at);
        let mut passed = 0;
        let mut limited = true;
        while block >= low {
            let mut found = false;
            if self.is_target(mm, block) {
                let (first, end) = self.scanners.clamp_block(block);
                at = self.isolate_freepages_block(mm, at.max(first), end);
                found = self.enough_targets() || at < end;
                if found && at < end {
                    limited = false;
                    break;
                }
            } else {
                passed += 1;
            }
            let Some(below) = block.0.checked_sub(PAGEBLOCK_PAGES).map(Pfn) else { break };
            (block, at) = (below, below);
            if found {
                limited = block < low;
                break;
            }
        }
        mm.charge(passed * mm.costs.compact_scan);
        if limited && wraps {
            self.scanners.retreat_free(self.scanners.last_block(), false);
            return false;
        }
        self.scanners.retreat_free(at, limited);
        true
    }

    fn enough_targets(&self) -> bool {
        self.targets.len() as usize >= self.to_migrate
    }

    /// Whether free pages are taken from a pageblock (`suitable_migration_target()`, `isolation_suitable()`).
    #[inline]
    fn is_target(&self, mm: &Mm, block: Pfn) -> bool {
        if !self.control.ignore_skip_hint && mm.blocks.skip(block) {
            return false;
        }
        let (zone, block_type) = mm.blocks.zone_and_type(block);
        if zone != self.zone || !(self.control.ignore_block_suitable || block_type == MigrateType::Movable) {
            return false;
        }
        let first = &mm.frames[block];
        let whole = first.kind() == Kind::Buddy && first.order() >= PAGEBLOCK_ORDER;
        !whole && !self.is_hole(mm, block)
    }

    /// Isolates free pages between `first` and `end` of one pageblock until there are enough; returns the first frame
    /// not looked at (`isolate_freepages_block()`).
    fn isolate_freepages_block(&mut self, mm: &mut Mm, first: Pfn, end: Pfn) -> Pfn {
        let (mut at, mut scanned, mut isolated) = (first, 0u64, 0u64);
        let until_enough = mm.rules.free_scanner == FreeScanner::UntilEnough;
        while at < end {
            scanned += 1;
            let frame = &mm.frames[at];
            let pages = if frame.kind() == Kind::Buddy {
                match mm.isolate_free_block(at) {
                    Some(order) => {
                        self.split_into_targets(mm, at, order);
                        isolated += u64::from(order.pages());
                        if until_enough && self.enough_targets() {
                            at = at.offset(order.pages());
                            break;
                        }
                        order.pages()
                    }
                    None if until_enough => break,
                    None => 1,
                }
            } else {
                stepped_over(frame, mm.rules.compound_skip, false).pages()
            };
            at = at.offset(pages);
        }
        let at = at.min(end);
        if at == end && isolated == 0 && self.sets_skip_hints(mm) {
            mm.mark_free_skip(self.zone, first);
        }
        self.free_scanned += scanned;
        mm.charge(scanned * mm.costs.compact_scan + isolated * mm.costs.compact_isolate);
        mm.stat.count(VmEvent::CompactIsolated, isolated);
        at
    }

    /// Makes single pages of an isolated block; the highest is used first (`map_pages()`).
    fn split_into_targets(&mut self, mm: &mut Mm, first: Pfn, order: Order) {
        mm.split_held(first);
        for n in 0..order.pages() {
            self.targets.push_front(&mut mm.frames, first.offset(n));
        }
    }

    /// Gives back the targets that are left, and lets the next run start from the highest (`release_freepages()`).
    pub(super) fn release_targets(&mut self, mm: &mut Mm, env: &Env) {
        let mut highest = None;
        while let Some(pfn) = self.targets.pop_front(&mut mm.frames) {
            highest = highest.max(Some(pfn));
            mm.free_pages(env, pfn, Order(0));
        }
        if let Some(pfn) = highest {
            mm.zones[self.zone.index()].return_cached_free(pfn);
        }
    }
}
