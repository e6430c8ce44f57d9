//! The free scanner: takes free pages as targets of migration, from the end of the zone downwards.
//!
//! - **Rule**: pageblock by pageblock, until there are as many free pages as pages to migrate, or the migrate scanner's
//!   block is reached. Only Movable blocks are taken from (any at the hardest priority), and none that starts with a free
//!   page of a pageblock's size: that is what compaction is to make. Blocks with a skip hint are passed over. Within a
//!   block the scan goes upwards and stops as soon as there is enough; it goes on there next time. A free page that
//!   the watermark protects ends the search in its block (since 4.7).
//! - **Source**: `isolate_freepages()`, `isolate_freepages_block()`, `suitable_migration_target()`, `map_pages()`,
//!   `compaction_alloc()`, `release_freepages()` (mm/compaction.c, 4.20).
//!   Since 5.1 the free lists are searched first (fast_free.rs). Asynchronous compaction then looks at every 32nd frame of
//!   a block until it finds a free page, any other at ever fewer of the blocks that follow one without any; a block that
//!   was looked at to its end is marked whatever it gave.
//! - **Since/until**: [`FreeScanner`], [`CompoundSkip`](rules::CompoundSkip), [`CompactionSearch`], [`TargetBlock`],
//!   [`CompactionScanned`]; how a scanner that wraps goes on is in scanner.rs.
//! - **Abstracted**: the zone lock and its contention.

use rules::{CompactionScanned, CompactionSearch, CompactionTargets, FreeScanner, PageblockRescan, TargetBlock};
use units::{Order, PAGEBLOCK_ORDER, PAGEBLOCK_PAGES, Pfn};

use super::control::MigrateMode;
use super::events::{CompactionEvent, Scanner};
use super::isolate_migrate::{CLUSTER_MAX, stepped_over};
use super::run::CompactRun;
use super::scanner::{block_end, block_start};
use crate::stat::VmEvent;
use crate::{Env, Kind, MigrateType, Mm};

impl CompactRun {
    /// A free page to migrate to (`compaction_alloc()`).
    pub(super) fn take_target(&mut self, mm: &mut Mm, order: Order) -> Option<Pfn> {
        if !self.targets.has(order) && !self.gives_up(mm) {
            self.isolate_freepages(mm);
        }
        let target = self.targets.take(&mut mm.frames, order)?;
        if mm.rules.compaction_targets == CompactionTargets::ByOrder {
            self.to_migrate -= order.pages() as usize;
        }
        Some(target)
    }

    /// A target that was not used (`compaction_free()`).
    pub(super) fn return_target(&mut self, mm: &mut Mm, pfn: Pfn) {
        self.targets.put_back(&mut mm.frames, pfn);
        if mm.rules.compaction_targets == CompactionTargets::ByOrder {
            self.to_migrate += mm.frames[pfn].nr_pages() as usize;
        }
    }

    /// Isolates free pages until there are enough (`isolate_freepages()`).
    fn isolate_freepages(&mut self, mm: &mut Mm) {
        if mm.rules.compaction_search == CompactionSearch::FreeLists {
            self.fast_isolate_freepages(mm);
            if self.targets.pages() == 0 {
                self.isolate_by_samples(mm);
            }
            return;
        }
        while !self.isolate_down_to_limit(mm) && self.targets.pages() == 0 && !self.gives_up(mm) {}
    }

    /// Isolates free pages from one block after the other, at first from samples (`isolate_freepages()` since 5.1).
    fn isolate_by_samples(&mut self, mm: &mut Mm) {
        const LARGEST_STRIDE: u32 = CLUSTER_MAX as u32;
        let low = block_end(self.scanners.migrate);
        let mut stride = if self.control.mode == MigrateMode::Async { LARGEST_STRIDE } else { 1 };
        let mut passed = 0;
        let mut at = self.scanners.free;
        let mut block = block_start(at);
        while block >= low {
            let below = Pfn(block.0 - PAGEBLOCK_PAGES);
            if self.is_target(mm, block) {
                let (first, end) = self.scanners.clamp_block(block);
                let isolated;
                (at, isolated) = self.isolate_freepages_block(mm, at.max(first), end, stride);
                if at == end {
                    self.mark_free_scanned(mm, block);
                }
                if self.enough_targets() || at < end {
                    at = if at == end { below } else { at };
                    break;
                }
                stride = if isolated > 0 { 1 } else { (stride << 1).min(LARGEST_STRIDE) };
            } else {
                passed += 1;
            }
            (block, at) = (below, below);
        }
        mm.charge(passed * mm.costs.compact_scan_free);
        self.scanners.free = at;
    }

    /// A block was looked at to its end: the next run goes on below (`update_pageblock_skip()` since 5.1).
    fn mark_free_scanned(&self, mm: &mut Mm, block: Pfn) {
        mm.blocks.set_skip(block, true);
        // 6.1 still remembers the block itself.
        let next = match mm.rules.pageblock_rescan {
            PageblockRescan::Failed => block.0.checked_sub(PAGEBLOCK_PAGES).map(Pfn),
            _ => Some(block),
        };
        if let Some(next) = next {
            mm.zones[self.zone.index()].move_cached_free_down(next);
        }
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
                let from = at.max(first);
                let isolated;
                (at, isolated) = self.isolate_freepages_block(mm, from, end, 1);
                if at == end && isolated == 0 && self.sets_skip_hints(mm) {
                    mm.mark_free_skip(self.zone, from);
                }
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
        mm.charge(passed * mm.costs.compact_scan_free);
        if limited && wraps {
            self.scanners.retreat_free(self.scanners.last_block(), false);
            return false;
        }
        self.scanners.retreat_free(at, limited);
        true
    }

    pub(super) fn enough_targets(&self) -> bool {
        self.targets.pages() as usize >= self.to_migrate
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
        !self.is_made_already(mm, block) && !self.is_hole(mm, block)
    }

    /// Whether a pageblock may give targets, skip hint or not (`suitable_migration_target()`).
    pub(super) fn is_suitable_target(&self, mm: &Mm, block: Pfn) -> bool {
        let movable = mm.blocks.migratetype(block) == MigrateType::Movable;
        (self.control.ignore_block_suitable || movable) && !self.is_made_already(mm, block)
    }

    /// Whether a pageblock begins with a free block as large as one that is to be made.
    #[inline]
    fn is_made_already(&self, mm: &Mm, block: Pfn) -> bool {
        let spared = match (mm.rules.target_block, self.control.order) {
            (TargetBlock::BelowRequest, Some(order)) if order.0 > 0 => order,
            _ => PAGEBLOCK_ORDER,
        };
        let first = &mm.frames[block];
        first.kind() == Kind::Buddy && first.order() >= spared
    }

    /// Isolates free pages between `first` and `end` of one pageblock until there are enough, looking at one frame in
    /// `stride`; returns the first frame not looked at, and the pages isolated (`isolate_freepages_block()`).
    pub(super) fn isolate_freepages_block(&mut self, mm: &mut Mm, first: Pfn, end: Pfn, stride: u32) -> (Pfn, u64) {
        let (mut at, mut looked, mut scanned, mut isolated, mut locked) = (first, 0u64, 0u64, 0u64, None);
        let rule = mm.rules.free_scanner;
        let counts = mm.rules.compaction_scanned;
        while at < end && !self.gives_up_at(mm, at, looked * mm.costs.compact_scan_free) {
            looked += 1;
            scanned += 1;
            let pages = if mm.frames[at].kind() == Kind::Buddy {
                if !self.lock_zone(mm, at, &mut locked) {
                    break;
                }
                match mm.isolate_free_block(at) {
                    Some(order) => {
                        self.targets.add(mm, at, order);
                        isolated += u64::from(order.pages());
                        if counts != CompactionScanned::Looked {
                            scanned += u64::from(order.pages()) - 1;
                        }
                        if rule != FreeScanner::WholePageblock && self.enough_targets() {
                            at = at.offset(order.pages());
                            break;
                        }
                        order.pages()
                    }
                    None if rule == FreeScanner::UntilEnough => break,
                    None => 1,
                }
            } else {
                let pages = stepped_over(&mm.frames[at], mm.rules.compound_skip, false).pages();
                if counts == CompactionScanned::WithPassed {
                    scanned += u64::from(pages) - 1;
                }
                pages
            };
            at = at.offset(pages - 1 + stride);
        }
        let end = at.min(end);
        mm.trace.emit_compaction(CompactionEvent::Isolate {
            scanner: Scanner::Free,
            start: first,
            end,
            nr_scanned: scanned,
            nr_taken: isolated,
        });
        self.free_scanned += scanned;
        mm.charge(looked * mm.costs.compact_scan_free);
        mm.stat.count(VmEvent::CompactIsolated, isolated);
        (end, isolated)
    }

    /// Gives back the targets that are left, and lets the next run start from the highest (`release_freepages()`).
    pub(super) fn release_targets(&mut self, mm: &mut Mm, env: &Env) {
        let mut highest = None;
        while let Some((pfn, order)) = self.targets.release(&mut mm.frames) {
            highest = highest.max(Some(pfn));
            mm.free_pages(env, pfn, order);
        }
        if let Some(pfn) = highest {
            mm.zones[self.zone.index()].return_cached_free(pfn);
        }
    }
}
