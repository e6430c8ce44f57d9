//! Whether a failing allocation should try again.
//!
//! Rule: reclaim is repeated while it makes progress, or while the request would fit if everything reclaimable were
//! reclaimed, but at most sixteen times in a row without progress (requests above order 3 never count as progress).
//! Before giving up, the HighAtomic reserve is given back. Compaction is repeated while it succeeds, then with rising
//! priority.
//! Source: `should_reclaim_retry()`, `should_compact_retry()` (mm/page_alloc.c, 4.20 and 6.12),
//! `compaction_zonelist_suitable()` (mm/compaction.c), `zone_reclaimable_pages()` (mm/vmscan.c).
//! Since/until: `ReclaimThrottle::Congestion` (until 5.15) waits here for writeback; later kernels wait in reclaim and
//! empty the reserve whenever they give up. `CompactionWithdrawn::Reclaim` (until 5.3) stands for kernels in which a zone
//! that the request fits into by now counts as suitable for compaction (until 6.3).
//! Abstracted: 4.20's results of compaction by what this decision makes of them ([`CompactOutcome`]).

use rules::{CompactionWithdrawn, EmptyZones, ReclaimThrottle};
use units::{Gfp, Nanos, Order, ZoneId};

use crate::compaction::CompactPriority;
use crate::stat::ZoneStat;
use crate::{AllocRequest, Mm};

use super::balance::MAX_RECLAIM_RETRIES;
use super::flags::gfp_zone;
use super::{AllocFlags, Wmark};

/// `MAX_COMPACT_RETRIES`.
const MAX_COMPACT_RETRIES: u32 = 16;
/// `congestion_wait(BLK_RW_ASYNC, HZ/10)`.
const CONGESTION_WAIT: Nanos = Nanos::millis(100);

/// What to do after reclaim failed to give a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReclaimRetry {
    /// Try again.
    Again,
    /// Wait for writeback to end, at most this long, then try again.
    Wait(Nanos),
    /// Give up: out of memory.
    GiveUp,
}

/// How a round of direct compaction ended, over all zones (`enum compact_result`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CompactOutcome {
    /// Too little free memory, or nothing to do by the fragmentation index (`COMPACT_SKIPPED`).
    Skipped,
    /// Deferred, or given up for contention (`COMPACT_DEFERRED`, `COMPACT_CONTENDED`).
    Withdrawn,
    /// The scanners met without a result (`COMPACT_COMPLETE`, `COMPACT_PARTIAL_SKIPPED` since 5.x).
    Failed,
    /// Free blocks were made, and others took them (`COMPACT_SUCCESS`).
    Succeeded,
}

/// State of the compaction retries of one allocation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CompactRetries {
    /// Priority of the next round.
    pub priority: CompactPriority,
    /// Rounds that succeeded at this priority.
    pub retries: u32,
}

impl Default for CompactRetries {
    fn default() -> CompactRetries {
        CompactRetries { priority: CompactPriority::SyncLight, retries: 0 }
    }
}

impl CompactRetries {
    /// Whether to compact again. `suitable` says whether some zone could be compacted after more reclaim
    /// ([`Mm::compaction_zonelist_suitable`]).
    pub fn should_retry(&mut self, order: Order, outcome: CompactOutcome, suitable: bool) -> bool {
        if order.0 == 0 {
            return false;
        }
        let costly = order > Order::COSTLY;
        match outcome {
            CompactOutcome::Skipped | CompactOutcome::Withdrawn => return suitable,
            CompactOutcome::Failed => {}
            CompactOutcome::Succeeded => {
                self.retries += 1;
                if self.retries <= MAX_COMPACT_RETRIES / if costly { 4 } else { 1 } {
                    return true;
                }
            }
        }
        let hardest = if costly { CompactPriority::SyncLight } else { CompactPriority::SyncFull };
        if self.priority <= hardest {
            return false;
        }
        self.priority = match self.priority {
            CompactPriority::Async => CompactPriority::SyncLight,
            _ => CompactPriority::SyncFull,
        };
        self.retries = 0;
        true
    }
}

/// Free pages beyond the watermark that compaction needs as targets (`compact_gap()`).
pub fn compact_gap(order: Order) -> u64 {
    2 << order.0
}

impl Mm {
    /// Whether to reclaim again for a request that still failed. `loops` counts rounds without progress; `can_swap` says
    /// whether anonymous pages can be reclaimed.
    pub fn should_reclaim_retry(
        &mut self,
        req: AllocRequest,
        flags: AllocFlags,
        progress: bool,
        loops: &mut u32,
        can_swap: bool,
    ) -> ReclaimRetry {
        if progress && req.order <= Order::COSTLY {
            *loops = 0;
        } else {
            *loops += 1;
        }
        let waits_here = self.rules.reclaim_throttle == ReclaimThrottle::Congestion;
        if *loops <= MAX_RECLAIM_RETRIES {
            if let Some(zone) = self.zone_that_could_serve(req, flags, can_swap) {
                let pending = self.stat.zone(zone, ZoneStat::WritePending);
                let stuck = !progress && 2 * pending > self.zone_reclaimable_pages(zone, can_swap);
                return if waits_here && stuck { ReclaimRetry::Wait(CONGESTION_WAIT) } else { ReclaimRetry::Again };
            }
            if waits_here {
                return ReclaimRetry::GiveUp;
            }
        }
        if self.unreserve_highatomic(req, true) { ReclaimRetry::Again } else { ReclaimRetry::GiveUp }
    }

    /// The first zone that would pass its min watermark if all that is reclaimable were free.
    fn zone_that_could_serve(&self, req: AllocRequest, flags: AllocFlags, can_swap: bool) -> Option<ZoneId> {
        let highest = gfp_zone(req.gfp);
        self.request_zones(req).find(|&zone| {
            let available = self.zone_reclaimable_pages(zone, can_swap) + self.zones[zone.index()].free_pages;
            let mark = self.wmark(zone, Wmark::Min);
            self.watermark_ok_with(zone, req.order, mark, highest, flags, available)
        })
    }

    /// Zones that a request may use, in the order of the zonelist.
    pub(crate) fn request_zones(&self, req: AllocRequest) -> impl Iterator<Item = ZoneId> + '_ {
        let (highest, this_node) = (gfp_zone(req.gfp), req.gfp.contains(Gfp::THISNODE));
        let zones = self.nodes[req.node.index()].zonelist.iter().copied();
        zones.filter(move |z| {
            let zone = &self.zones[z.index()];
            zone.kind <= highest && (!this_node || zone.node == req.node)
        })
    }

    /// Pages of a zone that reclaim could free; where there are none, [`EmptyZones`] (`zone_reclaimable_pages()`).
    pub fn zone_reclaimable_pages(&self, zone: ZoneId, can_swap: bool) -> u64 {
        let of = |item| self.stat.zone(zone, item);
        let file = of(ZoneStat::InactiveFile) + of(ZoneStat::ActiveFile);
        let all = if can_swap { file + of(ZoneStat::InactiveAnon) + of(ZoneStat::ActiveAnon) } else { file };
        if all == 0 && self.rules.empty_zones == EmptyZones::FreePages {
            return self.zones[zone.index()].free_pages;
        }
        all
    }

    /// Whether some zone would have the free pages that compaction needs if a share of what is reclaimable, less for
    /// higher orders, were reclaimed (`compaction_zonelist_suitable()`).
    pub fn compaction_zonelist_suitable(&self, req: AllocRequest, flags: AllocFlags, can_swap: bool) -> bool {
        let highest = gfp_zone(req.gfp);
        let fits_now = self.rules.compaction_withdrawn == CompactionWithdrawn::Reclaim;
        self.request_zones(req).any(|zone| {
            let reclaimable = self.zone_reclaimable_pages(zone, can_swap) / u64::from(req.order.0.max(1));
            let available = reclaimable + self.zones[zone.index()].free_pages;
            let own_mark = self.wmark(zone, flags.wmark.unwrap_or(Wmark::Min));
            if fits_now && self.zone_watermark_ok(zone, req.order, own_mark, highest, flags) {
                return true;
            }
            let mark = if req.order > Order::COSTLY { Wmark::Low } else { Wmark::Min };
            let level = self.wmark(zone, mark) + compact_gap(req.order);
            self.watermark_ok_with(zone, Order(0), level, highest, AllocFlags::only(mark), available)
        })
    }
}
