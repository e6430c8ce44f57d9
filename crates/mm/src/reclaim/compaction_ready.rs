//! Whether reclaim should leave the rest to compaction.
//!
//! Rule: direct reclaim for a costly order skips a zone that could serve it, or that suits compaction and has twice the
//! order's size free above its high watermark. For a costly order, or at high priority for any other, a node is scanned
//! again while no zone of it suits compaction and there is something left to reclaim.
//! Source: `compaction_ready()`, `should_continue_reclaim()`, `in_reclaim_compaction()` (mm/vmscan.c, 4.20; 6.12).
//! Since/until: [`ReclaimForCompaction`], [`CompactionReady`].

use rules::{Compaction, CompactionReady, ReclaimForCompaction};
use smallvec::SmallVec;
use units::{Gfp, Order, ZoneId};

use super::{DEF_PRIORITY, ScanControl};
use crate::compaction::CompactResult;
use crate::zone::{AllocFlags, Wmark, compact_gap};
use crate::{LruList, LruvecId, Mm, ZoneKind};

/// No allocation flag at all.
const PLAIN: AllocFlags = AllocFlags::only(Wmark::Min);

/// Whether compaction makes sense, or is not needed.
pub(super) fn is_worthwhile(suits: CompactResult) -> bool {
    matches!(suits, CompactResult::Success | CompactResult::Continue)
}

impl Mm {
    /// Whether compaction of a zone makes sense, or is not needed.
    pub(super) fn may_compact(&mut self, zone: ZoneId, order: Order, highest: ZoneKind) -> bool {
        is_worthwhile(self.compaction_suitable(zone, order, PLAIN, highest))
    }

    /// Pages above the high watermark that keep reclaim of several zones in balance: 1 % of the zone, but no more than
    /// its low watermark (`KSWAPD_ZONE_BALANCE_GAP_RATIO`, until 4.7).
    pub(super) fn balance_gap(&self, zone: ZoneId) -> u64 {
        self.wmark(zone, Wmark::Low).min(self.zones[zone.index()].managed.div_ceil(100))
    }

    /// Whether direct reclaim for a costly order leaves a zone to compaction (`compaction_ready()`).
    pub fn compaction_ready(&mut self, zone: ZoneId, sc: &ScanControl) -> bool {
        if self.rules.compaction_ready == CompactionReady::BalanceGap {
            let mark = self.wmark(zone, Wmark::High) + self.balance_gap(zone) + compact_gap(sc.order);
            let enough = self.zone_watermark_ok(zone, Order(0), mark, ZoneKind::Dma, PLAIN);
            let suits = self.compaction_deferred(zone, sc.order) || self.may_compact(zone, sc.order, ZoneKind::Dma);
            return suits && enough;
        }
        match self.compaction_suitable(zone, sc.order, PLAIN, sc.reclaim_idx) {
            CompactResult::Success => true,
            CompactResult::Continue => {
                let mark = self.wmark(zone, Wmark::High) + compact_gap(sc.order);
                self.zone_watermark_ok(zone, Order(0), mark, sc.reclaim_idx, PLAIN)
            }
            _ => false,
        }
    }

    /// Whether a node is scanned once more because compaction would lack free pages; `reclaimed` and `scanned` are those
    /// of the pass that just ended.
    pub(super) fn should_continue_reclaim(
        &mut self,
        lru: LruvecId,
        reclaimed: u64,
        scanned: u64,
        sc: &ScanControl,
    ) -> bool {
        let built = self.rules.compaction == Compaction::Built;
        if !built || sc.order == Order(0) || (sc.order <= Order::COSTLY && sc.priority >= DEF_PRIORITY - 2) {
            return false;
        }
        // A zone with lists of its own is asked for no request in particular.
        let highest = if self.zone_with(lru).is_some() { ZoneKind::Dma } else { sc.reclaim_idx };
        let suits = |mm: &mut Mm| {
            let below = |zone: &ZoneId| mm.zones[zone.index()].kind <= sc.reclaim_idx;
            let zones: SmallVec<[ZoneId; 8]> = mm.zones_of(lru).filter(below).collect();
            zones.into_iter().any(|zone| mm.may_compact(zone, sc.order, highest))
        };
        let gap = compact_gap(sc.order);
        let anon = if self.swap_free_pages() > 0 { self.lru_size_below(lru, LruList::InactiveAnon) } else { 0 };
        let inactive = self.lru_size_below(lru, LruList::InactiveFile) + anon;
        match self.rules.reclaim_for_compaction {
            ReclaimForCompaction::WhileProgress => reclaimed > 0 && !suits(self) && inactive > gap,
            ReclaimForCompaction::UntilGapReclaimed => {
                let gives_up = if sc.gfp.contains(Gfp::RETRY_MAYFAIL) { scanned == 0 } else { true };
                if reclaimed == 0 && gives_up {
                    return false;
                }
                (sc.nr_reclaimed < gap && inactive > gap) || !suits(self)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rules::Rules;

    use super::super::fixture::{LRU, Machine, NODE, rules_4_20};
    use super::*;
    use crate::{AllocRequest, Kind};

    /// A machine whose memory is full of clean cache.
    fn full(rules: Rules) -> Machine {
        let mut m = Machine::new(rules);
        m.fill(Kind::File, 0);
        m
    }

    #[test]
    fn order_0_and_small_orders_at_low_priority_never_go_on_for_compaction() {
        let mut m = full(rules_4_20());
        let mut sc = ScanControl::direct(Gfp::KERNEL, Order(0), ZoneKind::Normal);
        assert!(!m.mm.should_continue_reclaim(LRU, 32, 32, &sc));
        (sc.order, sc.priority) = (Order(3), DEF_PRIORITY - 2);
        assert!(!m.mm.should_continue_reclaim(LRU, 32, 32, &sc));
        sc.priority = DEF_PRIORITY - 3;
        assert!(m.mm.should_continue_reclaim(LRU, 32, 32, &sc), "an order up to 3 does so from priority 9 on");
        (sc.order, sc.priority) = (Order(4), DEF_PRIORITY);
        assert!(m.mm.should_continue_reclaim(LRU, 32, 32, &sc), "a costly order at once");
    }

    #[test]
    fn a_pass_without_progress_is_the_last_unless_the_caller_insists_and_pages_were_scanned() {
        let mut m = full(rules_4_20());
        let mut sc = ScanControl::direct(Gfp::TRANSHUGE, Order(9), ZoneKind::Normal);
        assert!(!m.mm.should_continue_reclaim(LRU, 0, 100, &sc));
        sc.gfp = Gfp::TRANSHUGE.with(Gfp::RETRY_MAYFAIL);
        assert!(m.mm.should_continue_reclaim(LRU, 0, 100, &sc));
        assert!(!m.mm.should_continue_reclaim(LRU, 0, 0, &sc));
        let mut m = full(Rules::newest());
        assert!(!m.mm.should_continue_reclaim(LRU, 0, 100, &sc), "since 5.4 insisting does not help");
    }

    #[test]
    fn a_full_zone_is_not_ready_for_compaction_and_an_empty_one_needs_none() {
        let sc = ScanControl::direct(Gfp::TRANSHUGE, Order(9), ZoneKind::Normal);
        for rules in [rules_4_20(), Rules::newest()] {
            let mut m = Machine::new(rules.clone());
            assert!(m.mm.compaction_ready(m.mm.zones[1].id, &sc));
            let mut m = full(rules);
            // Down to the last page: what lies above the low watermark may still hold a huge page.
            let request = AllocRequest { gfp: Gfp::HIGHUSER_MOVABLE, order: Order(0), node: NODE };
            while m.mm.get_page_from_freelist(&m.env, request, AllocFlags { wmark: None, ..PLAIN }).is_some() {}
            assert!(!m.mm.compaction_ready(m.mm.zones[1].id, &sc));
        }
    }
}
