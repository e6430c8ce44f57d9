//! One reclaimer's work on a node: [`ShrinkGen`].
//!
//! Rule: batches are evicted until `total >> priority` pages were looked at, there is nothing to be had, the target is met,
//! or, for kswapd at order 0, every eligible zone is 64 pages above its high watermark. If cold pages run out, a new
//! generation begins instead, but not at the first priority. Then the shrinkers are called. The first priority is chosen so
//! that one pass yields the target. A reclaimer that may not write or unmap does nothing at all.
//! Source: `lru_gen_shrink_node()`, `shrink_one()`, `try_to_shrink_lruvec()`, `get_nr_to_scan()`, `should_abort_scan()`,
//! `set_initial_priority()`, `get_swappiness()`, `lru_gen_age_node()` (mm/vmscan.c); 6.12.
//! Since/until: as 6.12. The kernel kills a process where all generations are younger than `lru_gen.min_ttl_ms`.
//! Omitted: cgroups and their protection, memory tiering, proactive reclaim.

use units::{Nanos, NodeId, Order};

use super::super::shrinker::SlabPass;
use super::super::{DEF_PRIORITY, NodeScan, ScanControl};
use super::aging::{Aged, Aging};
use super::evict::Evicted;
use super::{FILE, MIN_LRU_BATCH, gen_of};
use crate::stat::NodeStat;
use crate::zone::{AllocFlags, Wmark, compact_gap};
use crate::{Effect, Env, LruvecId, Mm, WakeFlusher};

#[derive(Debug)]
enum Phase {
    /// Batches are evicted.
    Evict,
    /// A new generation is to begin.
    Age(Aging),
    /// The shrinkers.
    Slab(SlabPass),
    Ended,
}

/// Reclaim from the generations of a node.
#[derive(Debug)]
pub(in crate::reclaim) struct ShrinkGen {
    lru: LruvecId,
    swappiness: u64,
    /// Base pages looked at.
    scanned: u64,
    /// Pages that the reclaimer had reclaimed before.
    reclaimed_before: u64,
    phase: Phase,
}

/// Priority at which one pass yields the target, by the inactive pages that there are.
fn initial_priority(reclaimable: u64, nr_to_reclaim: u64) -> i8 {
    let fls = |pages: u64| (u64::BITS - pages.leading_zeros()) as i8;
    (fls(reclaimable) - 1 - fls(nr_to_reclaim - 1)).clamp(DEF_PRIORITY / 2, DEF_PRIORITY)
}

impl ShrinkGen {
    /// Begins a pass.
    pub(in crate::reclaim) fn new(mm: &mut Mm, env: &Env, lru: LruvecId, sc: &mut ScanControl) -> ShrinkGen {
        sc.nr = NodeScan::default();
        let reclaimed_before = sc.nr_reclaimed;
        let mut phase = Phase::Ended;
        if sc.may_writepage && sc.may_unmap {
            sc.has_walk = env.task.kswapd;
            mm.set_initial_priority(lru.node, sc);
            if env.task.kswapd {
                sc.nr_reclaimed = 0;
            }
            phase = Phase::Evict;
        }
        ShrinkGen { lru, swappiness: mm.lru_gen_swappiness(sc), scanned: 0, reclaimed_before, phase }
    }

    /// Does one batch; false once there is no more to do.
    pub(in crate::reclaim) fn step(&mut self, mm: &mut Mm, env: &Env, sc: &mut ScanControl) -> bool {
        match &mut self.phase {
            Phase::Evict => self.evict(mm, env, sc),
            Phase::Age(aging) => {
                if let Aged::Done(_) = aging.step(mm, env) {
                    self.end_eviction(mm, sc);
                }
            }
            Phase::Slab(pass) => {
                if !pass.step(mm, env, self.lru.node, sc) {
                    self.end(mm, env, sc);
                    return false;
                }
            }
            Phase::Ended => return false,
        }
        true
    }

    fn evict(&mut self, mm: &mut Mm, env: &Env, sc: &mut ScanControl) {
        let need = mm.lru_gen(self.lru).aging_need(self.swappiness > 0);
        if need.due && sc.priority != DEF_PRIORITY {
            sc.has_walk = true;
            self.phase = Phase::Age(Aging::new(mm, self.lru, self.swappiness > 0));
            return;
        }
        let nr_to_scan = if need.out_of_cold { 0 } else { need.total >> sc.priority };
        if nr_to_scan > 0 {
            let Evicted { scanned, .. } = mm.evict_pages(env, self.lru, self.swappiness, sc);
            self.scanned += scanned;
            if scanned > 0 && self.scanned < nr_to_scan && !mm.should_abort_scan(env, self.lru, sc) {
                return;
            }
        }
        self.end_eviction(mm, sc);
    }

    fn end_eviction(&mut self, mm: &mut Mm, sc: &ScanControl) {
        if sc.nr.unqueued_dirty > 0 && sc.nr.unqueued_dirty == sc.nr.file_taken {
            mm.effects.push(Effect::WakeFlushers(WakeFlusher::Vmscan));
        }
        let pages = mm.lru_gen(self.lru).total(true);
        self.phase = Phase::Slab(SlabPass::new(mm, sc, self.scanned, pages));
    }

    fn end(&mut self, mm: &mut Mm, env: &Env, sc: &mut ScanControl) {
        if env.task.kswapd {
            sc.nr_reclaimed += self.reclaimed_before;
        }
        sc.has_walk = false;
        if sc.nr_reclaimed > self.reclaimed_before {
            mm.nodes[self.lru.node.index()].kswapd.failures = 0;
        }
        self.phase = Phase::Ended;
    }
}

impl Mm {
    /// How much anonymous pages are to be preferred; 0 if they cannot be evicted.
    fn lru_gen_swappiness(&self, sc: &ScanControl) -> u64 {
        if !sc.may_swap || self.swap_free_pages() < MIN_LRU_BATCH { 0 } else { self.tunables.swappiness }
    }

    fn set_initial_priority(&self, node: NodeId, sc: &mut ScanControl) {
        if sc.priority != DEF_PRIORITY || sc.nr_to_reclaim < MIN_LRU_BATCH {
            return;
        }
        let mut reclaimable = self.stat.node(node, NodeStat::InactiveFile);
        if self.swap_free_pages() > 0 {
            reclaimable += self.stat.node(node, NodeStat::InactiveAnon);
        }
        sc.priority = initial_priority(reclaimable, sc.nr_to_reclaim);
    }

    /// Whether enough was reclaimed, or is free.
    fn should_abort_scan(&self, env: &Env, lru: LruvecId, sc: &ScanControl) -> bool {
        if sc.nr_reclaimed >= sc.nr_to_reclaim.max(compact_gap(sc.order)) {
            return true;
        }
        if !env.task.kswapd || sc.order > Order(0) {
            return false;
        }
        self.zones_up_to(lru.node, sc.reclaim_idx).all(|zone| {
            let mark = self.wmark(zone, Wmark::High) + MIN_LRU_BATCH;
            self.zone_watermark_ok(zone, Order(0), mark, sc.reclaim_idx, AllocFlags::only(Wmark::Min))
        })
    }

    /// What kswapd does before each pass; true if every page that could be evicted is younger than the working set is to
    /// be, so that a process must be killed (`lru_gen_age_node()`).
    pub(in crate::reclaim) fn lru_gen_age_node(&mut self, env: &Env, lru: LruvecId, sc: &mut ScanControl) -> bool {
        self.set_initial_priority(lru.node, sc);
        if self.tunables.lru_gen_min_ttl_ms == 0 {
            return false;
        }
        let sizable = self.lru_gen(lru).total(self.lru_gen_swappiness(sc) > 0) >> sc.priority > 0;
        !(sizable && self.lru_gen_age(env, lru) > self.lru_gen_min_ttl())
    }

    /// Since when the oldest generation of file pages has been there.
    pub(super) fn lru_gen_age(&self, env: &Env, lru: LruvecId) -> Nanos {
        let lrugen = self.lru_gen(lru);
        env.now.since(lrugen.births[gen_of(lrugen.min_seq[FILE])])
    }

    /// Age that pages must have to be evicted.
    pub(super) fn lru_gen_min_ttl(&self) -> Nanos {
        Nanos::millis(self.tunables.lru_gen_min_ttl_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_at_the_first_priority_yields_the_target() {
        // 2^20 pages and a target of 2^10: 2^20 >> 10.
        assert_eq!(initial_priority(1 << 20, 1 << 10), 10);
        assert_eq!(initial_priority((1 << 20) - 1, 1 << 10), 9, "rounded down");
        assert_eq!(initial_priority(1 << 20, (1 << 10) + 1), 9, "rounded up");
        assert_eq!(initial_priority(100, 1 << 10), 6);
        assert_eq!(initial_priority(0, 64), 6);
        assert_eq!(initial_priority(u64::MAX, 64), 12);
    }
}
