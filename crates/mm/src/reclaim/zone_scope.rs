//! What reclaim knows of a single zone where each has its own LRU lists.
//!
//! Rule: a zone is given up (until a page of it is freed) once six times as many pages were scanned as it has. Direct
//! reclaim and kswapd pass such a zone over after their first priority. Slabs are shrunk in proportion to the scanning of
//! the highest zone alone.
//! Source: `zone_reclaimable()`, `zone_reclaimable_pages()`, `shrink_zones()`, `shrink_zone()` (mm/vmscan.c, 3.19).
//! Since/until: [`LruScope::Zone`], until 4.7.

use rules::{KswapdRun, LruScope, SlabCaller};
use units::ZoneId;

use super::ScanControl;
use crate::stat::ZoneEvent;
use crate::{Env, LruvecId, Mm};

/// A zone is given up when this many times its pages were scanned.
const SCANS_IN_VAIN: u64 = 6;

impl Mm {
    /// The zone whose lists these are, if it has its own.
    #[inline]
    pub(crate) fn zone_with(&self, lru: LruvecId) -> Option<ZoneId> {
        let own = self.rules.lru_scope == LruScope::Zone;
        own.then(|| self.nodes[lru.node.index()].zones[usize::from(lru.part)])
    }

    /// Counts pages scanned of a zone's own lists.
    #[inline]
    pub(super) fn note_pages_scanned(&mut self, lru: LruvecId, scanned: u64) {
        if let Some(zone) = self.zone_with(lru) {
            self.zones[zone.index()].pages_scanned += scanned;
        }
    }

    /// Counts inactive pages scanned and reclaimed by the kind of their zone.
    #[inline]
    pub(super) fn note_scanned(&mut self, env: &Env, lru: LruvecId, scanned: u64, reclaimed: u64) {
        let Some(zone) = self.zone_with(lru) else { return };
        self.zones[zone.index()].pages_scanned += scanned;
        let kind = self.zones[zone.index()].kind;
        let (scan, steal) = if env.task.kswapd {
            (ZoneEvent::PgscanKswapd, ZoneEvent::PgstealKswapd)
        } else {
            (ZoneEvent::PgscanDirect, ZoneEvent::PgstealDirect)
        };
        self.stat.count_zone(scan, kind, scanned);
        self.stat.count_zone(steal, kind, reclaimed);
    }

    /// Whether reclaim may still find something in a zone.
    pub(super) fn zone_reclaimable(&self, zone: ZoneId) -> bool {
        self.zones[zone.index()].pages_scanned < self.reclaimable_pages(zone) * SCANS_IN_VAIN
    }

    /// Whether reclaim leaves a zone alone after its first priority: where kswapd's runs go on until the node is balanced it
    /// has marked the zone, since then whoever asks looks for himself ([`KswapdRun`]).
    pub(super) fn zone_given_up(&self, zone: ZoneId) -> bool {
        match self.rules.kswapd_run {
            KswapdRun::Once => !self.zone_reclaimable(zone),
            KswapdRun::Again | KswapdRun::AgainWithSlab => self.zones[zone.index()].all_unreclaimable,
        }
    }

    /// Whether a pass over these lists calls the shrinkers.
    pub(super) fn shrinks_slab(&self, lru: LruvecId, sc: &ScanControl) -> bool {
        if self.rules.slab_caller == SlabCaller::Reclaimer {
            return false;
        }
        let Some(zone) = self.zone_with(lru) else { return true };
        let highest = self.zones_up_to(lru.node, sc.reclaim_idx).last();
        highest == Some(zone)
    }
}
