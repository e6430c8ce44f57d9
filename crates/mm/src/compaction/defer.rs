//! Deferral: after failures, a zone is left alone for a while that doubles.
//!
//! - **Rule**: each failure of a synchronous compaction doubles the number of attempts that are let pass, up to 64,
//!   for the orders that failed and above. A success that an allocation confirms clears it. When the longest deferral
//!   has run out, the next compaction restarts: it clears the skip hints and starts at the zone's ends.
//! - **Source**: `defer_compaction()`, `compaction_deferred()`, `compaction_defer_reset()`, `compaction_restarting()`
//!   (mm/compaction.c, 4.20 and 6.12).
//! - **Since**: 2.6.35; per order since 3.4.

use units::{Order, ZoneId};

use super::Deferral;
use crate::Mm;
use crate::zone::CompactState;

/// log2 of the most attempts that are let pass (`COMPACT_MAX_DEFER_SHIFT`).
const MAX_DEFER_SHIFT: u32 = 6;

impl CompactState {
    /// Attempts that are let pass.
    pub(super) fn defer_limit(&self) -> u32 {
        1 << self.defer_shift
    }

    /// Whether a compaction now starts over after the longest deferral (`compaction_restarting()`).
    pub(super) fn restarting(&self, order: Order) -> bool {
        order >= self.order_failed && self.defer_shift == MAX_DEFER_SHIFT && self.considered >= self.defer_limit()
    }
}

impl Mm {
    /// Defers compaction of a zone after a failure (`defer_compaction()`).
    pub fn defer_compaction(&mut self, zone: ZoneId, order: Order) {
        let state = &mut self.zones[zone.index()].compact;
        state.considered = 0;
        state.defer_shift = (state.defer_shift + 1).min(MAX_DEFER_SHIFT);
        state.order_failed = state.order_failed.min(order);
        self.trace_deferral(Deferral::Defer, zone, order);
    }

    /// Whether this attempt is let pass; counts it (`compaction_deferred()`).
    pub fn compaction_deferred(&mut self, zone: ZoneId, order: Order) -> bool {
        let state = &mut self.zones[zone.index()].compact;
        if order < state.order_failed {
            return false;
        }
        state.considered = (state.considered + 1).min(state.defer_limit());
        let passes = state.considered < state.defer_limit();
        if passes {
            self.trace_deferral(Deferral::Deferred, zone, order);
        }
        passes
    }

    /// A compaction succeeded; `success` if an allocation got its page, not set if it only should
    /// (`compaction_defer_reset()`).
    pub fn compaction_defer_reset(&mut self, zone: ZoneId, order: Order, success: bool) {
        let state = &mut self.zones[zone.index()].compact;
        if success {
            state.considered = 0;
            state.defer_shift = 0;
        }
        if order >= state.order_failed {
            state.order_failed = Order(order.0 + 1);
        }
        self.trace_deferral(Deferral::Reset, zone, order);
    }
}
