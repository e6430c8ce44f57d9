//! Whether compacting a zone makes sense now.
//!
//! - **Rule**: not if the allocation would succeed anyway; not if fewer order-0 pages are free than the watermark (low
//!   above order 3, else min) and `compact_gap()` of twice the request; for orders above 3 not if the fragmentation
//!   index says that memory is lacking (0 up to `vm.extfrag_threshold`).
//! - **Source**: `__compaction_suitable()`, `compaction_suitable()` (mm/compaction.c, 4.20);
//!   `compaction_suit_allocation_order()` (6.12) decides the same. `compaction_zonelist_suitable()` is in
//!   zone/slowpath.rs.
//! - **Since/until**: [`CompactionWatermark`], [`CompactionEvents`]. No zone suits where compaction is not built in ([`Compaction`]).

use rules::{Compaction, CompactionEvents, CompactionWatermark};
use units::{Order, ZoneId};

use super::fragindex::fragmentation_index;
use super::{CompactResult, CompactionEvent};
use crate::zone::{AllocFlags, Wmark, compact_gap};
use crate::{Mm, ZoneKind};

impl Mm {
    /// The [`compaction_verdict`], which the tracepoint tells: since 6.5 only if the request would not succeed anyway.
    pub(crate) fn compaction_suitable(
        &mut self,
        zone: ZoneId,
        order: Order,
        flags: AllocFlags,
        highest: ZoneKind,
    ) -> CompactResult {
        let ret = compaction_verdict(self, zone, order, flags, highest);
        let asked = ret != CompactResult::Success || !self.allocates_first();
        if asked && self.rules.compaction == Compaction::Built {
            self.trace.emit_compaction(CompactionEvent::Suitable { zone, order: Some(order), ret });
        }
        ret
    }

    /// Compaction of everything there is always makes sense, which the tracepoint tells as long as that is asked, too.
    pub(super) fn everything_is_suitable(&mut self, zone: ZoneId) {
        if !self.allocates_first() {
            let ret = CompactResult::Continue;
            self.trace.emit_compaction(CompactionEvent::Suitable { zone, order: None, ret });
        }
    }

    /// Whether it is settled before that there is a request, and that it would not succeed
    /// (`compaction_suit_allocation_order()`).
    fn allocates_first(&self) -> bool {
        self.rules.compaction_events == CompactionEvents::FreeLists
    }
}

/// `Success` if the request would succeed, `Continue` if compaction may help, otherwise why not: `Skipped` without
/// memory, `NotSuitableZone` by the fragmentation index (callers of the kernel's see `Skipped`).
pub(crate) fn compaction_verdict(
    mm: &Mm,
    zone: ZoneId,
    order: Order,
    flags: AllocFlags,
    highest: ZoneKind,
) -> CompactResult {
    if mm.rules.compaction == Compaction::NotBuilt {
        return CompactResult::Skipped;
    }
    if mm.rules.compaction_watermark == CompactionWatermark::Low {
        return suitable_by_low_mark(mm, zone, order, flags, highest);
    }
    // ALLOC_NO_WATERMARKS leaves the index bits at WMARK_MIN's value.
    let mark = mm.wmark(zone, flags.wmark.unwrap_or(Wmark::Min));
    if mm.zone_watermark_ok(zone, order, mark, highest, flags) {
        return CompactResult::Success;
    }
    let costly = order > Order::COSTLY;
    let mark = mm.wmark(zone, if costly { Wmark::Low } else { Wmark::Min }) + compact_gap(order);
    if !mm.zone_watermark_ok(zone, Order(0), mark, highest, AllocFlags::only(Wmark::Min)) {
        return CompactResult::Skipped;
    }
    if costly { suitable_by_index(mm, zone, order) } else { CompactResult::Continue }
}

/// By the low watermark and the request's own flags, and by the index for every order.
fn suitable_by_low_mark(mm: &Mm, zone: ZoneId, order: Order, flags: AllocFlags, highest: ZoneKind) -> CompactResult {
    let low = mm.wmark(zone, Wmark::Low);
    if mm.zone_watermark_ok(zone, order, low, highest, flags) {
        return CompactResult::Success;
    }
    if !mm.zone_watermark_ok(zone, Order(0), low + compact_gap(order), highest, flags) {
        return CompactResult::Skipped;
    }
    suitable_by_index(mm, zone, order)
}

fn suitable_by_index(mm: &Mm, zone: ZoneId, order: Order) -> CompactResult {
    let index = fragmentation_index(&mm.zones[zone.index()], order);
    let lacks_memory = index >= 0 && index as u64 <= mm.tunables.extfrag_threshold;
    if lacks_memory { CompactResult::NotSuitableZone } else { CompactResult::Continue }
}
