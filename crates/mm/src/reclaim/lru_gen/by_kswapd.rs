//! Reclaim from the generations as in 6.1: [`ShrinkLruvec`].
//!
//! Rule: kswapd makes a new generation before a pass if one is due, but not while its last pass found enough cold pages; in
//! the pass it does not. A direct reclaimer makes one itself, but not at its first priority. A pass ends when enough pages
//! were looked at, there is nothing to be had, or it does too much: kswapd has its target, a direct reclaimer has made more
//! than one generation, or has its target and swaps; from priority 10 on, every eligible zone is above its mark.
//! Source: `lru_gen_age_node()`, `age_lruvec()`, `lru_gen_shrink_lruvec()`, `get_nr_to_scan()`, `should_abort_scan()`,
//! `try_to_inc_max_seq()` (mm/vmscan.c), 6.1; commit f76c83378851.
//! Since/until: [`rules::LruPolicy::MultiGenByKswapd`], 6.1 and 6.2. Before that commit ([`MultiMemcg::Plain`]) kswapd looks
//! before every pass, and a pass never ends early; [`MultiMemcg::AvoidSwapping`] is an earlier version of it, whose source is
//! patch 8 of version 7 on linux-mm.
//! From priority 10 on a reclaimer that finds others at the page tables sleeps until the new generation has begun.
//! Abstracted: a killed task sleeps on, too.
//! Omitted: a killed task is told to end by its caller.

use rules::MultiMemcg;
use units::NodeId;

use super::super::{DEF_PRIORITY, ScanControl};
use super::MIN_LRU_BATCH;
use super::aging::{Aged, Aging};
use super::evict::Evicted;
use super::feedback::SWAPPINESS_MAX;
use crate::memcg::{MemcgWalk, ROOT};
use crate::zone::Wmark;
use crate::{Env, LruvecId, Mm};

/// What a step of a reclaimer came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::reclaim) enum Progress {
    /// It goes on.
    More,
    /// It sleeps until a new generation begins on its node, and goes on.
    Sleep,
    /// It has ended.
    Done,
}

/// A new generation, in which others may take part (`try_to_inc_max_seq()`).
#[derive(Debug)]
pub(super) struct AgingOfSeveral {
    lru: LruvecId,
    aging: Aging,
    /// It sleeps until others have begun the generation.
    sleeps: bool,
}

impl AgingOfSeveral {
    pub(super) fn new(mm: &Mm, lru: LruvecId, can_swap: bool) -> AgingOfSeveral {
        AgingOfSeveral { lru, aging: Aging::new(mm, lru, can_swap), sleeps: false }
    }

    /// Whether the generation that it is for has begun.
    fn begun(&self, mm: &Mm) -> bool {
        mm.lru_gen(self.lru).max_seq > self.aging.seq()
    }

    pub(super) fn step(&mut self, mm: &mut Mm, env: &Env, sc: &ScanControl) -> Progress {
        if self.sleeps {
            if !self.begun(mm) {
                return Progress::Sleep;
            }
            mm.lru_gen_mut(self.lru).mm_state.sleepers -= 1;
            return Progress::Done;
        }
        if self.aging.step(mm, env) == Aged::More {
            return Progress::More;
        }
        self.sleeps = sc.priority <= DEF_PRIORITY - 2 && !self.begun(mm);
        if !self.sleeps {
            return Progress::Done;
        }
        mm.lru_gen_mut(self.lru).mm_state.sleepers += 1;
        Progress::Sleep
    }
}

/// What a step of the aging before a pass came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::reclaim) enum AgeStep {
    /// There is more to walk.
    More,
    /// It sleeps until a new generation begins.
    Sleep,
    /// It has ended.
    Done,
    /// All pages are younger than the working set is to be: a process must be killed.
    OutOfMemory,
}

/// kswapd's aging of all groups before a pass (`lru_gen_age_node()`, `age_lruvec()`, 6.1).
#[derive(Debug)]
pub(in crate::reclaim) struct AgeMemcgs {
    walk: MemcgWalk,
    aging: Option<AgingOfSeveral>,
    /// A group has pages that are old enough.
    success: bool,
}

impl AgeMemcgs {
    /// Goes on until a page table was walked, or to the end.
    pub(in crate::reclaim) fn step(&mut self, mm: &mut Mm, env: &Env, node: NodeId, sc: &ScanControl) -> AgeStep {
        if let Some(aging) = &mut self.aging {
            match aging.step(mm, env, sc) {
                Progress::More => {}
                Progress::Sleep => return AgeStep::Sleep,
                Progress::Done => self.aging = None,
            }
            return AgeStep::More;
        }
        while let Some(memcg) = self.walk.next(mm) {
            let lru = mm.lruvec_of_memcg(node, memcg);
            if memcg != ROOT && mm.memcg.protection(ROOT, memcg).below_min(mm.memcg[memcg].usage()) {
                continue;
            }
            let can_swap = mm.memcg_swap_pages(memcg) >= MIN_LRU_BATCH && mm.tunables.swappiness > 0;
            let need = mm.lru_gen(lru).aging_need(can_swap);
            if mm.tunables.lru_gen_min_ttl_ms > 0 {
                let young = mm.lru_gen_age(env, lru) < mm.lru_gen_min_ttl();
                let small = need.total >> sc.priority == 0 && sc.priority != DEF_PRIORITY;
                if young || small {
                    continue;
                }
            }
            self.success = true;
            if need.due {
                self.aging = Some(AgingOfSeveral::new(mm, lru, can_swap));
                return AgeStep::More;
            }
        }
        let kills = !self.success && mm.tunables.lru_gen_min_ttl_ms > 0 && sc.order == units::Order(0);
        if kills { AgeStep::OutOfMemory } else { AgeStep::Done }
    }
}

/// One pass over the generations of a node.
#[derive(Debug)]
pub(in crate::reclaim) struct ShrinkLruvec {
    lru: LruvecId,
    /// Base pages looked at.
    scanned: u64,
    /// Pages that the reclaimer had reclaimed before.
    reclaimed_before: u64,
    /// The youngest generation then.
    first_seq: u64,
    /// A new generation was due when it last looked.
    need_aging: bool,
    /// Anonymous pages were evicted.
    need_swapping: bool,
    /// A walk, and how much is to be scanned after it.
    aging: Option<(AgingOfSeveral, u64)>,
}

impl ShrinkLruvec {
    pub(in crate::reclaim) fn new(mm: &Mm, env: &Env, lru: LruvecId, sc: &mut ScanControl) -> ShrinkLruvec {
        sc.has_walk = env.task.kswapd;
        let first_seq = mm.lru_gen(lru).max_seq;
        let reclaimed_before = sc.nr_reclaimed;
        ShrinkLruvec {
            lru,
            scanned: 0,
            reclaimed_before,
            first_seq,
            need_aging: false,
            need_swapping: false,
            aging: None,
        }
    }

    /// Does one batch.
    pub(in crate::reclaim) fn step(&mut self, mm: &mut Mm, env: &Env, sc: &mut ScanControl) -> Progress {
        let swappiness = mm.swappiness_by_kswapd(self.lru, sc);
        let nr_to_scan = if let Some((mut aging, nr)) = self.aging.take() {
            let progress = aging.step(mm, env, sc);
            if progress != Progress::Done {
                self.aging = Some((aging, nr));
                return progress;
            }
            let aged = aging.begun(mm);
            if aged || !mm.lru_gen(self.lru).aging_need(swappiness > 0).out_of_cold { nr } else { 0 }
        } else {
            let need = mm.lru_gen(self.lru).aging_need(swappiness > 0);
            let nr = need.total >> sc.priority;
            self.need_aging = need.due;
            let avoids_swapping = mm.rules.multi_memcg == MultiMemcg::AvoidSwapping;
            sc.need_aging &= need.due || !avoids_swapping;
            if !need.due {
                nr
            } else if sc.priority == DEF_PRIORITY {
                if need.out_of_cold { 0 } else { nr }
            } else if env.task.kswapd || (avoids_swapping && sc.is_global() && !sc.force_deactivate) {
                // Other groups are tried before page tables are walked.
                sc.skipped_deactivate |= !env.task.kswapd;
                0
            } else {
                sc.has_walk = true;
                self.aging = Some((AgingOfSeveral::new(mm, self.lru, swappiness > 0), nr));
                return Progress::More;
            }
        };
        let goes_on = self.evict(mm, env, sc, swappiness, nr_to_scan);
        sc.has_walk &= goes_on;
        if goes_on { Progress::More } else { Progress::Done }
    }

    fn evict(&mut self, mm: &mut Mm, env: &Env, sc: &mut ScanControl, swappiness: u64, nr_to_scan: u64) -> bool {
        if nr_to_scan == 0 {
            return false;
        }
        let Evicted { scanned, swapped } = mm.evict_pages(env, self.lru, swappiness, sc);
        self.need_swapping |= swapped;
        if scanned == 0 || (sc.avoid_swapping && self.need_swapping && swappiness < SWAPPINESS_MAX) {
            return false;
        }
        self.scanned += scanned;
        if self.scanned < nr_to_scan && !self.aborts(mm, env, sc) {
            return true;
        }
        if sc.nr_reclaimed - self.reclaimed_before >= MIN_LRU_BATCH {
            match mm.rules.multi_memcg {
                MultiMemcg::Plain => {}
                MultiMemcg::AvoidSwapping => sc.need_swapping &= self.need_swapping,
                MultiMemcg::SkipAging => sc.need_aging &= self.need_aging,
            }
        }
        false
    }

    /// Whether the pass does too much (`should_abort_scan()`); what it does not do then is credited to it.
    fn aborts(&self, mm: &Mm, env: &Env, sc: &mut ScanControl) -> bool {
        if mm.rules.multi_memcg != MultiMemcg::SkipAging {
            return false;
        }
        if env.task.kswapd {
            if sc.nr_reclaimed - sc.last_reclaimed < sc.nr_to_reclaim {
                return false;
            }
        } else if mm.lru_gen(self.lru).max_seq - self.first_seq > 1
            || (sc.nr_reclaimed >= sc.nr_to_reclaim && self.need_swapping)
        {
            return true;
        }
        if !sc.is_global() {
            return false;
        }
        let mark = if env.task.kswapd { Wmark::High } else { Wmark::Low };
        let mut zones = mm.zones_up_to(self.lru.node, sc.reclaim_idx);
        if sc.priority > DEF_PRIORITY - 2 || zones.any(|zone| mm.wmark(zone, mark) > mm.zones[zone.index()].free_pages)
        {
            return false;
        }
        sc.nr_reclaimed += MIN_LRU_BATCH;
        true
    }
}

impl Mm {
    /// How much anonymous pages are to be preferred; 0 if they cannot be evicted, 1 if they should not be.
    fn swappiness_by_kswapd(&self, lru: LruvecId, sc: &ScanControl) -> u64 {
        let slots = self.memcg_swap_pages(self.memcg_of(lru));
        let swappiness = if slots < MIN_LRU_BATCH { 0 } else { self.tunables.swappiness };
        match (sc.may_swap, sc.is_global()) {
            (true, _) => swappiness,
            (false, true) => swappiness.min(1),
            (false, false) => 0,
        }
    }

    /// What kswapd does before a pass; nothing if its last one found enough cold pages.
    pub(in crate::reclaim) fn age_memcgs(&mut self, node: NodeId, sc: &mut ScanControl) -> Option<AgeMemcgs> {
        sc.last_reclaimed = sc.nr_reclaimed;
        let needed = std::mem::replace(&mut sc.need_aging, true);
        let due = needed || self.rules.multi_memcg == MultiMemcg::Plain;
        if self.rules.multi_memcg == MultiMemcg::AvoidSwapping {
            sc.avoid_swapping = due || !sc.need_swapping;
            sc.need_swapping = true;
        }
        due.then(|| AgeMemcgs { walk: MemcgWalk::full(ROOT, node), aging: None, success: false })
    }
}
