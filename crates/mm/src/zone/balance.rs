//! Waking kswapd and kcompactd.
//!
//! Rule: a wake-up records the largest order and highest zone asked for. kswapd is woken if it sleeps, has not failed
//! sixteen times in a row, and either no eligible zone passes its high watermark (boost included) or a zone is boosted.
//! Otherwise kcompactd is woken for requests that cannot reclaim themselves, as memory is free but fragmented.
//! Source: `wakeup_kswapd()`, `pgdat_balanced()`, `pgdat_watermark_boosted()` (mm/vmscan.c, 4.20 and 6.12),
//! `wakeup_kcompactd()` (mm/compaction.c), `wake_all_kswapds()` (mm/page_alloc.c).
//! Since/until: where kswapd balances every zone ([`KswapdBalance`]), reclaim/every_zone.rs has the rule.
//! Abstracted: waking clears `kswapd.asleep`, so that a kswapd that was woken and has not run yet is not woken again.
//! Omitted: NUMA tiering (promo watermark); `kcompactd_node_suitable()` is left to kcompactd itself.

use rules::KswapdBalance;
use units::{Gfp, NodeId, Order, ZoneId};

use crate::trace::TraceEvent;
use crate::{AllocRequest, Effect, Mm, ZoneKind};

use super::flags::gfp_zone;
use super::{AllocFlags, Wmark};

/// Failures in a row after which kswapd is left asleep (`MAX_RECLAIM_RETRIES`).
pub const MAX_RECLAIM_RETRIES: u32 = 16;

impl Mm {
    /// Whether any zone up to `highest` passes its high watermark for `order`; so does a node without such a zone
    /// (`pgdat_balanced()`).
    pub fn pgdat_balanced(&self, node: NodeId, order: Order, highest: ZoneKind) -> bool {
        let mut eligible = self.eligible_zones(node, highest).peekable();
        if eligible.peek().is_none() {
            return true;
        }
        let flags = AllocFlags::only(Wmark::High);
        eligible.any(|z| self.zone_watermark_ok(z, order, self.wmark(z, Wmark::High), highest, flags))
    }

    /// Whether any zone up to `highest` is boosted (`pgdat_watermark_boosted()`).
    pub fn pgdat_watermark_boosted(&self, node: NodeId, highest: ZoneKind) -> bool {
        self.eligible_zones(node, highest).any(|z| self.zones[z.index()].boost > 0)
    }

    /// Zones of a node with managed memory up to a kind, lowest first.
    fn eligible_zones(&self, node: NodeId, highest: ZoneKind) -> impl Iterator<Item = ZoneId> + '_ {
        let zones = self.nodes[node.index()].zones.iter().copied();
        zones.filter(move |z| self.zones[z.index()].kind <= highest && self.zones[z.index()].managed > 0)
    }

    /// Wakes the kswapd of a zone's node if that helps, or its kcompactd.
    pub fn wakeup_kswapd(&mut self, zone: ZoneId, gfp: Gfp, order: Order, highest: ZoneKind) {
        if self.zones[zone.index()].managed == 0 {
            return;
        }
        if self.rules.kswapd_balance == KswapdBalance::EveryZone {
            self.wakeup_kswapd_for_zone(zone, gfp, order, highest);
            return;
        }
        let id = self.zones[zone.index()].node;
        let kswapd = &mut self.nodes[id.index()].kswapd;
        kswapd.highest_zone = kswapd.highest_zone.max(Some(highest));
        kswapd.order = kswapd.order.max(order);
        if !kswapd.asleep {
            return;
        }
        let hopeless = kswapd.failures >= MAX_RECLAIM_RETRIES;
        let needless = || self.pgdat_balanced(id, order, highest) && !self.pgdat_watermark_boosted(id, highest);
        if hopeless || needless() {
            if !gfp.contains(Gfp::DIRECT_RECLAIM) {
                self.wakeup_kcompactd(id, order, highest);
            }
            return;
        }
        self.nodes[id.index()].kswapd.asleep = false;
        self.charge(self.costs.wake_up);
        self.trace.emit(TraceEvent::WakeupKswapd { node: id, zone: highest, order, gfp });
        self.effects.push(Effect::WakeKswapd(id));
    }

    /// Wakes the kswapd of every node that a request could be served from (`wake_all_kswapds()`).
    pub fn wake_all_kswapds(&mut self, req: AllocRequest) {
        let highest = gfp_zone(req.gfp);
        let every_zone = self.rules.kswapd_balance == KswapdBalance::EveryZone;
        // Until 4.7 they are told the kind of the zone that is preferred, which may be lower than those of other nodes.
        let mut classzone = highest;
        if let (true, Some(preferred)) = (every_zone, self.nodes[req.node.index()].preferred[highest as usize]) {
            classzone = self.zones[preferred.index()].kind;
        }
        let mut last = None;
        for at in 0..self.nodes[req.node.index()].zonelist.len() {
            let zone = self.nodes[req.node.index()].zonelist[at];
            let (kind, node) = (self.zones[zone.index()].kind, self.zones[zone.index()].node);
            let foreign = req.gfp.contains(Gfp::THISNODE) && node != req.node;
            if kind > highest || foreign || (last == Some(node) && !every_zone) {
                continue;
            }
            self.wakeup_kswapd(zone, req.gfp, req.order, classzone);
            last = Some(node);
        }
    }

    /// After an allocation whose fallback raised the boost.
    #[cold]
    pub(crate) fn wake_for_boost(&mut self, zone: ZoneId) {
        self.zones[zone.index()].boosted_flag = false;
        let kind = self.zones[zone.index()].kind;
        self.wakeup_kswapd(zone, Gfp::NONE, Order(0), kind);
    }
}
