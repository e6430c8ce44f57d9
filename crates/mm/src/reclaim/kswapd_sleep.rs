//! When kswapd sleeps, and what it was asked for when it wakes.
//!
//! Rule: it may sleep if one eligible zone is balanced, or if it has given the node up. Before a nap of 100 ms it wakes
//! kcompactd for the order that it was asked for. Woken from the nap, it remembers what it was doing; not woken and still
//! balanced, it sleeps until it is woken.
//! Source: `prepare_kswapd_sleep()`, `kswapd_try_to_sleep()`, `kswapd_classzone_idx()` (mm/vmscan.c, 4.20),
//! `kswapd_highest_zoneidx()` (6.12).
//! Since/until: [`KswapdZone`]; where kswapd balances every zone, see every_zone.rs and again.rs.

use rules::{KswapdBalance, KswapdRun, KswapdZone};
use units::{NodeId, Order};

use super::ThrottleReason;
use crate::stat::VmEvent;
use crate::trace::TraceEvent;
use crate::zone::MAX_RECLAIM_RETRIES;
use crate::{Mm, ZoneKind};

/// What kswapd works for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KswapdRequest {
    /// Order.
    pub order: Order,
    /// Highest zone.
    pub highest: ZoneKind,
}

impl Mm {
    /// Whether kswapd may sleep; if the node is balanced, its flags are cleared (`prepare_kswapd_sleep()`). `must_resched`
    /// says that another task waits for its CPU.
    pub fn prepare_kswapd_sleep(&mut self, node: NodeId, work: KswapdRequest, must_resched: bool) -> bool {
        let KswapdRequest { order, highest } = work;
        if self.rules.kswapd_run != KswapdRun::Once {
            return self.may_sleep_after_run(node, order, highest, must_resched);
        }
        self.wake_throttled(node, ThrottleReason::Reserve);
        if self.rules.kswapd_balance == KswapdBalance::EveryZone {
            return self.every_zone_balanced(node, order, highest);
        }
        if self.nodes[node.index()].kswapd.failures >= MAX_RECLAIM_RETRIES {
            return true;
        }
        if !self.pgdat_balanced(node, order, highest) {
            return false;
        }
        for lruvec in &mut self.nodes[node.index()].lruvecs {
            lruvec.congested = false;
            lruvec.dirty_seen = false;
            lruvec.writeback_seen = false;
        }
        true
    }

    /// kswapd is about to take its nap: kcompactd may make what it has freed contiguous.
    pub fn kswapd_begins_nap(&mut self, node: NodeId, request: KswapdRequest) {
        self.wakeup_kcompactd(node, request.order, request.highest);
    }

    /// kswapd was woken from its nap: what it was doing adds to what it is asked for now.
    pub fn kswapd_woken_early(&mut self, node: NodeId, reclaimed_at: Order, highest: ZoneKind) {
        if self.rules.kswapd_balance == KswapdBalance::EveryZone {
            return;
        }
        let highest = self.kswapd_highest(node, highest);
        let kswapd = &mut self.nodes[node.index()].kswapd;
        kswapd.highest_zone = Some(highest);
        kswapd.order = kswapd.order.max(reclaimed_at);
    }

    /// How kswapd's attempt to sleep ended: it sleeps for long, or what kept it awake is counted.
    pub fn kswapd_sleep_ends(&mut self, node: NodeId, sleeps: bool, woken_early: bool) {
        if sleeps {
            self.trace.emit(TraceEvent::KswapdSleep { node });
            return;
        }
        let event = if woken_early { VmEvent::KswapdLowWmarkHitQuickly } else { VmEvent::KswapdHighWmarkHitQuickly };
        self.stat.count(event, 1);
    }

    /// What kswapd was asked for, without taking it; `previous` is the highest zone of its last run.
    pub fn kswapd_peek(&self, node: NodeId, previous: ZoneKind) -> KswapdRequest {
        KswapdRequest { order: self.nodes[node.index()].kswapd.order, highest: self.kswapd_highest(node, previous) }
    }

    /// Takes what kswapd was asked for, as it begins a run.
    pub fn kswapd_take(&mut self, node: NodeId, previous: ZoneKind) -> KswapdRequest {
        let unasked = match self.rules.kswapd_zone {
            KswapdZone::LowestUnlessAsked => ZoneKind::Dma,
            KswapdZone::KeepPrevious => previous,
        };
        let request = self.kswapd_peek(node, unasked);
        let kswapd = &mut self.nodes[node.index()].kswapd;
        kswapd.order = Order(0);
        kswapd.highest_zone = None;
        self.trace.emit(TraceEvent::KswapdWake { node, highest: request.highest, order: request.order });
        request
    }

    /// The highest zone asked for, or `previous`; the higher of both where [`KswapdZone::LowestUnlessAsked`] rules.
    fn kswapd_highest(&self, node: NodeId, previous: ZoneKind) -> ZoneKind {
        match (self.nodes[node.index()].kswapd.highest_zone, self.rules.kswapd_zone) {
            (None, _) => previous,
            (Some(asked), KswapdZone::LowestUnlessAsked) => asked.max(previous),
            (Some(asked), KswapdZone::KeepPrevious) => asked,
        }
    }
}

#[cfg(test)]
mod tests {
    use rules::Rules;

    use super::super::fixture::{Machine, NODE, rules_4_20};
    use super::*;
    use crate::Kind;

    const AT_ORDER_0: KswapdRequest = KswapdRequest { order: Order(0), highest: ZoneKind::Normal };

    #[test]
    fn kswapd_sleeps_when_balanced_or_hopeless() {
        let mut m = Machine::new(rules_4_20());
        m.mm.nodes[0].lruvecs[0].dirty_seen = true;
        assert!(m.mm.prepare_kswapd_sleep(NODE, AT_ORDER_0, false));
        assert!(!m.mm.nodes[0].lruvecs[0].dirty_seen, "a balanced node forgets its flags");
        m.fill(Kind::File, 0);
        assert!(!m.mm.prepare_kswapd_sleep(NODE, AT_ORDER_0, false));
        m.mm.nodes[0].kswapd.failures = MAX_RECLAIM_RETRIES - 1;
        assert!(!m.mm.prepare_kswapd_sleep(NODE, AT_ORDER_0, false));
        m.mm.nodes[0].kswapd.failures = MAX_RECLAIM_RETRIES;
        assert!(m.mm.prepare_kswapd_sleep(NODE, AT_ORDER_0, false));
    }

    #[test]
    fn a_request_is_taken_once() {
        let mut m = Machine::new(Rules::newest());
        m.mm.nodes[0].kswapd.order = Order(9);
        m.mm.nodes[0].kswapd.highest_zone = Some(ZoneKind::Dma32);
        let asked = KswapdRequest { order: Order(9), highest: ZoneKind::Dma32 };
        assert_eq!(m.mm.kswapd_take(NODE, ZoneKind::Normal), asked);
        let unasked = KswapdRequest { order: Order(0), highest: ZoneKind::Dma32 };
        assert_eq!(m.mm.kswapd_take(NODE, ZoneKind::Dma32), unasked);
    }

    #[test]
    fn until_5_1_an_unasked_kswapd_balances_the_lowest_zone_only() {
        let mut m = Machine::new(rules_4_20());
        assert_eq!(m.mm.kswapd_take(NODE, ZoneKind::Normal).highest, ZoneKind::Dma);
        m.mm.nodes[0].kswapd.highest_zone = Some(ZoneKind::Dma32);
        assert_eq!(m.mm.kswapd_peek(NODE, ZoneKind::Normal).highest, ZoneKind::Normal);
    }

    #[test]
    fn what_kept_kswapd_awake_is_counted() {
        let mut m = Machine::new(Rules::newest());
        m.mm.kswapd_sleep_ends(NODE, false, true);
        m.mm.kswapd_sleep_ends(NODE, false, false);
        m.mm.kswapd_sleep_ends(NODE, true, false);
        assert_eq!(m.mm.stat.event(VmEvent::KswapdLowWmarkHitQuickly), 1);
        assert_eq!(m.mm.stat.event(VmEvent::KswapdHighWmarkHitQuickly), 1);
    }
}
