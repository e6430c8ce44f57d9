//! One reclaimer's work on a node, [`ShrinkGen`], and on one group's generations, [`ShrinkGens`].
//!
//! Rule: batches are evicted until `total >> priority` pages were looked at, there is nothing to be had, the target is met,
//! or, for kswapd at order 0, every eligible zone is 64 pages above its high watermark. If cold pages run out, a new
//! generation begins instead, but not at the first priority. Then the shrinkers are called. The first priority is chosen so
//! that one pass yields the target. A reclaimer that may not write or unmap does nothing at all.
//! Source: `lru_gen_shrink_node()`, `shrink_many()`, `shrink_one()`, `try_to_shrink_lruvec()`, `get_nr_to_scan()`, `should_abort_scan()`,
//! `set_initial_priority()`, `get_swappiness()`, `lru_gen_age_node()` (mm/vmscan.c); 6.12.
//! Since/until: as 6.12. The kernel kills a process where all generations are younger than `lru_gen.min_ttl_ms`.
//! Abstracted: of the walks over groups only that of kswapd before a pass costs time, as it goes through all of them however little it evicts.
//! Omitted: memory tiering, proactive reclaim.

use units::{MemcgId, Nanos, NodeId, Order};

use super::super::Step;
use super::super::node::GROUPS_IN_PASS;
use super::super::shrinker::{SlabPass, SlabStep};
use super::super::{DEF_PRIORITY, NodeScan, ScanControl};
use super::aging::{Aged, Aging};
use super::evict::Evicted;
use super::{FILE, MIN_LRU_BATCH, gen_of};
use crate::memcg::{MemcgEvent, MemcgWalk, NR_BINS, ROOT, Rotate};
use crate::stat::NodeStat;
use crate::zone::{AllocFlags, Wmark, compact_gap};
use crate::{Effect, Env, LruvecId, Mm, WakeFlusher};

/// Eviction from one group's generations on a node (`try_to_shrink_lruvec()`).
#[derive(Debug)]
pub(in crate::reclaim) struct ShrinkGens {
    lru: LruvecId,
    swappiness: u64,
    /// Base pages looked at.
    scanned: u64,
    aging: Option<Aging>,
}

impl ShrinkGens {
    pub(in crate::reclaim) fn new(mm: &Mm, lru: LruvecId, sc: &ScanControl) -> ShrinkGens {
        ShrinkGens { lru, swappiness: mm.lru_gen_swappiness(lru, sc), scanned: 0, aging: None }
    }

    /// Does one batch; at the end it says whether a new generation began instead of an eviction.
    pub(in crate::reclaim) fn step(&mut self, mm: &mut Mm, env: &Env, sc: &mut ScanControl) -> Option<bool> {
        if let Some(aging) = &mut self.aging {
            return match aging.step(mm, env) {
                Aged::More => None,
                Aged::Done(aged) => Some(self.end(mm, sc, aged)),
            };
        }
        let need = mm.lru_gen(self.lru).aging_need(self.swappiness > 0);
        if need.due && sc.priority != DEF_PRIORITY {
            sc.has_walk = true;
            self.aging = Some(Aging::new(mm, self.lru, self.swappiness > 0));
            return None;
        }
        let nr_to_scan = if need.out_of_cold { 0 } else { need.total >> sc.priority };
        if nr_to_scan > 0 {
            let Evicted { scanned, .. } = mm.evict_pages(env, self.lru, self.swappiness, sc);
            self.scanned += scanned;
            if scanned > 0 && self.scanned < nr_to_scan && !mm.should_abort_scan(env, self.lru, sc) {
                return None;
            }
        }
        Some(self.end(mm, sc, false))
    }

    fn end(&self, mm: &mut Mm, sc: &ScanControl, aged: bool) -> bool {
        if sc.nr.unqueued_dirty > 0 && sc.nr.unqueued_dirty == sc.nr.file_taken {
            mm.effects.push(Effect::WakeFlushers(WakeFlusher::Vmscan));
        }
        aged
    }
}

#[derive(Debug)]
enum Phase {
    /// The next group is to be found.
    Next,
    /// A group's pages are evicted.
    Evict(ShrinkGens),
    /// The shrinkers; what becomes of the group after that.
    Slab(SlabPass, Option<Rotate>),
    Ended,
}

/// Reclaim from the generations of a node.
#[derive(Debug)]
pub(in crate::reclaim) struct ShrinkGen {
    node: NodeId,
    /// The generation of groups that it goes through, the bin that it is at, and the one that it began with.
    generation: u64,
    bin: usize,
    first_bin: usize,
    /// The group that it is at, and where that goes.
    memcg: Option<MemcgId>,
    rotate: Option<Rotate>,
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
    pub(in crate::reclaim) fn new(mm: &mut Mm, env: &Env, node: NodeId, sc: &mut ScanControl) -> ShrinkGen {
        sc.nr = NodeScan::default();
        let reclaimed_before = sc.nr_reclaimed;
        let mut phase = Phase::Ended;
        if sc.may_writepage && sc.may_unmap {
            sc.has_walk = env.task.kswapd;
            mm.set_initial_priority(node, sc);
            if env.task.kswapd {
                sc.nr_reclaimed = 0;
            }
            phase = Phase::Next;
        }
        let fifo = &mut mm.nodes[node.index()].fifo;
        let (generation, bin) = (fifo.seq(), fifo.draw_bin());
        ShrinkGen { node, generation, bin, first_bin: bin, memcg: None, rotate: None, reclaimed_before, phase }
    }

    /// Does one batch.
    pub(in crate::reclaim) fn step(&mut self, mm: &mut Mm, env: &Env, sc: &mut ScanControl) -> Step {
        match &mut self.phase {
            Phase::Next => self.next(mm, env, sc),
            Phase::Evict(shrink) => {
                if let Some(aged) = shrink.step(mm, env, sc) {
                    let (scanned, lru) = (shrink.scanned, shrink.lru);
                    self.begin_slab(mm, sc, (lru, scanned, aged));
                }
            }
            Phase::Slab(pass, rotate) => {
                let rotate = *rotate;
                match pass.step(mm, env, self.node, sc) {
                    SlabStep::More => {}
                    SlabStep::Wait(bio) => return Step::Wait(bio),
                    SlabStep::Done => self.end_group(mm, env, sc, rotate),
                }
            }
            Phase::Ended => return Step::Done,
        }
        if matches!(self.phase, Phase::Ended) { Step::Done } else { Step::More }
    }

    /// Goes on to the next group that may be reclaimed.
    fn next(&mut self, mm: &mut Mm, env: &Env, sc: &mut ScanControl) {
        loop {
            let fifo = &mut mm.nodes[self.node.index()].fifo;
            let next = fifo.after(self.generation, self.bin, self.memcg);
            if let (Some(memcg), Some(to)) = (self.memcg, self.rotate.take()) {
                fifo.rotate(memcg, to);
            }
            self.memcg = next;
            let Some(memcg) = next else {
                self.bin = (self.bin + 1) % NR_BINS;
                if self.bin == self.first_bin {
                    return self.end(mm, env, sc);
                }
                continue;
            };
            let (protection, usage) = (mm.memcg.protection(ROOT, memcg), mm.memcg[memcg].usage());
            if memcg != ROOT && protection.below_min(usage) {
                self.rotate = Some(Rotate::Young);
                continue;
            }
            if memcg != ROOT && protection.below_low(usage) {
                if !mm.nodes[self.node.index()].fifo.at_tail(memcg) {
                    self.rotate = Some(Rotate::Tail);
                    continue;
                }
                mm.memcg_event(memcg, MemcgEvent::Low);
            }
            let lru = mm.lruvec_of_memcg(self.node, memcg);
            self.phase = Phase::Evict(ShrinkGens::new(mm, lru, sc));
            return;
        }
    }

    /// The pages of a group are through: what becomes of it, and the slabs.
    fn begin_slab(&mut self, mm: &mut Mm, sc: &mut ScanControl, (lru, scanned, aged): (LruvecId, u64, bool)) {
        let memcg = MemcgId(lru.part);
        let sizable = mm.lru_gen(lru).total(mm.lru_gen_swappiness(lru, sc) > 0) >> sc.priority > 0;
        let rotate = match (aged, sizable) {
            (true, _) => Some(Rotate::Young),
            (false, true) => None,
            (false, false) if mm.nodes[self.node.index()].fifo.at_tail(memcg) => Some(Rotate::Young),
            (false, false) => Some(Rotate::Tail),
        };
        let pages = mm.lru_gen(lru).total(true);
        self.phase = Phase::Slab(SlabPass::of_memcg(mm, sc, memcg, (scanned, pages)), rotate);
    }

    fn end_group(&mut self, mm: &mut Mm, env: &Env, sc: &mut ScanControl, rotate: Option<Rotate>) {
        self.rotate = rotate;
        self.phase = Phase::Next;
        let lru = LruvecId::of_node(self.node);
        if mm.memcg.in_use() && !mm.should_abort_scan(env, lru, sc) {
            return;
        }
        if let (Some(memcg), Some(to)) = (self.memcg, self.rotate.take()) {
            mm.nodes[self.node.index()].fifo.rotate(memcg, to);
        }
        self.end(mm, env, sc);
    }

    fn end(&mut self, mm: &mut Mm, env: &Env, sc: &mut ScanControl) {
        if env.task.kswapd {
            sc.nr_reclaimed += self.reclaimed_before;
        }
        sc.has_walk = false;
        if sc.nr_reclaimed > self.reclaimed_before {
            mm.nodes[self.node.index()].kswapd.failures = 0;
        }
        self.phase = Phase::Ended;
    }
}

impl Mm {
    /// How much anonymous pages are to be preferred; 0 if they cannot be evicted.
    fn lru_gen_swappiness(&self, lru: LruvecId, sc: &ScanControl) -> u64 {
        let slots = self.memcg_swap_pages(self.memcg_of(lru));
        if !sc.may_swap || slots < MIN_LRU_BATCH { 0 } else { self.tunables.swappiness }
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
        if !sc.is_global() {
            return false;
        }
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
    pub(in crate::reclaim) fn lru_gen_age_node(&mut self, env: &Env, node: NodeId, sc: &mut ScanControl) -> bool {
        self.set_initial_priority(node, sc);
        let groups = self.memcg.subtree(ROOT).len().saturating_sub(GROUPS_IN_PASS);
        self.charge(groups as u64 * self.costs.memcg_walk);
        if self.tunables.lru_gen_min_ttl_ms == 0 {
            return false;
        }
        let mut walk = MemcgWalk::full(ROOT, node);
        while let Some(memcg) = walk.next(self) {
            let lru = self.lruvec_of_memcg(node, memcg);
            let below_min = memcg != ROOT && self.memcg.protection(ROOT, memcg).below_min(self.memcg[memcg].usage());
            let sizable = self.lru_gen(lru).total(self.lru_gen_swappiness(lru, sc) > 0) >> sc.priority > 0;
            if sizable && !below_min && self.lru_gen_age(env, lru) > self.lru_gen_min_ttl() {
                return false;
            }
        }
        true
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
