//! The fair zone allocation policy: the zones of a node give pages in turn, in proportion to their size.
//!
//! Rule: on the fast path, a zone that has given as many pages as lie between its low and its high watermark is passed
//! over until all that may serve are through; then every zone up to the preferred one starts anew. Zones of other nodes
//! come after that. So pages live as long in one zone as in another, although each zone is reclaimed for itself.
//! Source: `get_page_from_freelist()`, `buffered_rmqueue()`, `reset_alloc_batches()` (mm/page_alloc.c, 3.19).
//! Since/until: [`ZoneFairness::Batches`], 3.12 to 4.7.

use rules::ZoneFairness;
use units::{NodeId, Pfn, ZoneId};

use crate::{Env, Mm, ZoneKind};

use super::freelist::Walk;
use super::{AllocFlags, Wmark, Zone};

impl Zone {
    /// Starts a new turn.
    pub(super) fn reset_batch(&mut self) {
        self.alloc_batch = (self.wmark(Wmark::High) - self.wmark(Wmark::Low)) as i64;
        self.fair_depleted = false;
    }
}

impl Mm {
    /// Counts pages that a zone gave.
    #[inline]
    pub(super) fn take_batch(&mut self, zone: ZoneId, pages: u32) {
        if self.rules.zone_fairness == ZoneFairness::Batches {
            let zone = &mut self.zones[zone.index()];
            zone.alloc_batch -= i64::from(pages);
            zone.fair_depleted |= zone.alloc_batch <= 0;
        }
    }

    /// The zone of a node whose turn it is; none if all are through.
    #[inline]
    pub(super) fn fair_zone(&self, node: NodeId, highest: ZoneKind) -> Option<ZoneId> {
        let zones = self.nodes[node.index()].zones.iter().rev().copied();
        zones.map(|z| &self.zones[z.index()]).find(|z| z.kind <= highest && !z.fair_depleted).map(|z| z.id)
    }

    /// The walk in which zones take turns; if it finds nothing, an ordinary one.
    pub(super) fn walk_fair(&mut self, env: &Env, walk: Walk, flags: AllocFlags) -> Option<Pfn> {
        let local = self.zones[walk.preferred.index()].node;
        let mut skipped = false;
        for at in 0..self.nodes[local.index()].zones.len() {
            let of_node = &self.nodes[local.index()].zones;
            let zone = of_node[of_node.len() - 1 - at];
            if self.zones[zone.index()].kind > walk.highest {
                continue;
            }
            if self.zones[zone.index()].fair_depleted {
                skipped = true;
                continue;
            }
            if walk.spread_dirty && !self.node_dirty_ok(local) {
                continue;
            }
            if let Some(pfn) = self.try_zone(env, walk, zone, flags) {
                return Some(pfn);
            }
        }
        if skipped {
            self.reset_batches(local, walk.highest);
        }
        if skipped || self.nodes.len() > 1 {
            return self.walk_zones(env, walk, AllocFlags { fair: false, ..flags });
        }
        None
    }

    fn reset_batches(&mut self, node: NodeId, highest: ZoneKind) {
        for at in 0..self.nodes[node.index()].zones.len() {
            let zone = &mut self.zones[self.nodes[node.index()].zones[at].index()];
            if zone.kind <= highest {
                zone.reset_batch();
            }
        }
    }
}
