//! When a compaction of a zone ends.
//!
//! - **Rule**: until 5.0 with contention at once, since then at the end of a pageblock where nothing is free. When the scanners meet, their remembered places go back to the ends, and a
//!   direct compaction asks kswapd to clear the skip hints; the result is `Complete` if the run started at the zone's
//!   ends, else `PartialSkipped`. Otherwise as soon as a block of the wanted order is free in the wanted type, or in
//!   another type from which the allocator would take the whole block. For types other than Movable the pageblock at
//!   hand is finished first (since 4.12), so that the next one of them need not be fragmented.
//! - **Source**: `compact_finished()`, `__compact_finished()` (mm/compaction.c), `find_suitable_fallback()` (mm/page_alloc.c), 4.20.
//!   Proactive compaction ends once the zone's fragmentation score is low, or kswapd runs.
//! - **Since/until**: [`CompactionFinish`], [`CompactionWatermark`], [`AsyncAbort`](rules::AsyncAbort).
//! - **Omitted**: CMA.

use rules::{CompactionFinish, CompactionWatermark};
use units::{Order, PAGEBLOCK_ORDER};

use super::control::{Compactor, MigrateMode};
use super::run::CompactRun;
use super::scanner::block_start;
use super::{CompactResult, CompactionEvent};
use crate::zone::{FreeArea, Wmark};
use crate::{MigrateType, Mm};

/// How a request would be served from the free blocks of one order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Serves {
    OwnType,
    ByStealing,
    No,
}

fn serves(area: &FreeArea, order: Order, wanted: MigrateType, grouping_disabled: bool) -> Serves {
    if !area.lists[wanted as usize].is_empty() {
        return Serves::OwnType;
    }
    let mut others = area.lists[..MigrateType::PCP_COUNT].iter();
    let steals = order.0 >= PAGEBLOCK_ORDER.0 / 2 || wanted != MigrateType::Movable || grouping_disabled;
    if steals && others.any(|list| !list.is_empty()) { Serves::ByStealing } else { Serves::No }
}

impl CompactRun {
    /// `Continue`, or how the run ends (`compact_finished()`).
    pub(super) fn compact_finished(&mut self, mm: &mut Mm) -> CompactResult {
        let ret = self.whether_finished(mm);
        mm.trace.emit_compaction(CompactionEvent::Finished { zone: self.zone, order: self.control.order, ret });
        if ret == CompactResult::NoSuitablePage { CompactResult::Continue } else { ret }
    }

    /// `NoSuitablePage` if nothing that is free serves, `Continue` if that was not looked at (`__compact_finished()`).
    fn whether_finished(&mut self, mm: &mut Mm) -> CompactResult {
        if self.killed || self.gives_up(mm) {
            return CompactResult::Contended;
        }
        let verdict = self.place_or_block(mm);
        // Since 5.1 it ends for a lock only where it has looked for a block in vain.
        if self.contended && verdict == CompactResult::NoSuitablePage { CompactResult::Contended } else { verdict }
    }

    /// The same but for contention.
    fn place_or_block(&mut self, mm: &mut Mm) -> CompactResult {
        if self.scanners.met() {
            let zone = &mut mm.zones[self.zone.index()];
            zone.scanners_met(self.scanners.migrate);
            if self.control.who == Compactor::Direct {
                zone.compact.blockskip_flush = true;
            }
            let whole = self.scanners.whole_zone;
            return if whole { CompactResult::Complete } else { CompactResult::PartialSkipped };
        }
        if self.control.who == Compactor::Proactive {
            return mm.proactive_verdict(self.zone);
        }
        let Some(order) = self.control.order else { return CompactResult::Continue };
        let aligned = self.scanners.migrate == block_start(self.scanners.migrate);
        self.finishing_block |= mm.rules.compaction_finish == CompactionFinish::WholePageblock;
        if self.finishing_block && !aligned {
            return CompactResult::Continue;
        }
        self.finishing_block = false;
        if mm.rules.compaction_watermark == CompactionWatermark::Low {
            let low = mm.wmark(self.zone, Wmark::Low);
            if !mm.zone_watermark_ok(self.zone, order, low, self.control.highest, self.control.alloc_flags) {
                return CompactResult::Continue;
            }
        }
        if mm.rules.compaction_finish == CompactionFinish::OwnType {
            return self.own_block_free(mm, order);
        }
        self.wanted_block_free(mm, order, aligned)
    }

    /// A block of the type asked for, or one of any type that is a whole pageblock.
    fn own_block_free(&self, mm: &Mm, order: Order) -> CompactResult {
        let free = |at: u8| {
            let lists = &mm.zones[self.zone.index()].free_area[at as usize].lists;
            let whole = at >= PAGEBLOCK_ORDER.0 && lists.iter().any(|list| !list.is_empty());
            whole || !lists[self.migratetype as usize].is_empty()
        };
        if (order.0..=Order::MAX.0).any(free) { CompactResult::Success } else { CompactResult::NoSuitablePage }
    }

    fn wanted_block_free(&mut self, mm: &Mm, order: Order, aligned: bool) -> CompactResult {
        let disabled = mm.blocks.grouping_disabled();
        let areas = &mm.zones[self.zone.index()].free_area;
        for at in order.0..=Order::MAX.0 {
            match serves(&areas[at as usize], Order(at), self.migratetype, disabled) {
                Serves::OwnType => return CompactResult::Success,
                Serves::ByStealing => {
                    let any_block = self.migratetype == MigrateType::Movable;
                    let at_once = mm.rules.compaction_finish == CompactionFinish::Stealable;
                    if any_block || at_once || self.control.mode == MigrateMode::Async || aligned {
                        return CompactResult::Success;
                    }
                    self.finishing_block = true;
                    return CompactResult::Continue;
                }
                Serves::No => {}
            }
        }
        CompactResult::NoSuitablePage
    }
}
