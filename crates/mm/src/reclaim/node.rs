//! One pass after another over a node, in small steps: [`ShrinkNode`].
//!
//! Rule: a pass goes through its target group and all groups below it; those within `memory.min` are passed over, and while
//! there are others, those within `memory.low`. In each, it scans the lists in rounds of 32 pages each until every list has had its count. Once the target is met
//! (not for direct reclaim at its first priority; for a group's limit even then), the smaller kind is stopped and the larger one's count cut to the same
//! share. Then the active anonymous list is aged, the shrinkers are called, what was met sets the flags of the node and
//! decides a wait, and for a high order the node is scanned again if compaction still lacks free pages.
//! Source: `shrink_node()`, `shrink_node_memcg()` (mm/vmscan.c, 4.20); `shrink_node()`, `shrink_lruvec()` (6.12); `shrink_zone()` (3.1).
//! Since/until: no flags and no waits here until 3.10 ([`WritebackThrottle`]); kswapd says that a node is congested, reclaim for a limit that its own group is, until it
//! ends (e3c1ac586c9a, 4.18); writeback of dirty pages at the tail makes kswapd wait by [`ThrottleReason::Writeback`] since 5.16; until 4.8 whoever is through waits while too much is under writeback
//! ([`rules::VmWriteout`]). Both kinds are stopped until 3.10; then what is left of the larger kind is scanned whatever else
//! happens, and given up with the next round since 6.1 ([`ProportionalReclaim`]). The multi-gen LRU has a pass of its own; in
//! 6.1 it takes the place of the lists alone.

use rules::{IsolationWait, LruPolicy, MemcgWalkSharing, ProportionalReclaim, WritebackThrottle};
use units::{MemcgId, Nanos, NodeId, Pfn};

use super::balance::ScanCount;
use super::inactive::{Inactive, InactiveBatch};
use super::lru_gen::{Progress, ShrinkGen, ShrinkGens, ShrinkLruvec};
use super::second_pass::{SecondLook, SecondPass};
use super::shrinker::{SlabPass, SlabStep};
use super::throttle::Wait;
use super::{DEF_PRIORITY, NodeScan, SWAP_CLUSTER_MAX, ScanControl, ThrottleReason};
use crate::memcg::{MemcgEvent, MemcgWalk, ROOT, Rotate};
use crate::{Bio, Env, LruList, LruvecId, Mm};

/// Groups that the cost of a pass has in it already: the guests that it was calibrated on have the root group and the workload's.
pub(super) const GROUPS_IN_PASS: usize = 2;

/// What a reclaimer does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Goes on; may give up the CPU first.
    More,
    /// Has the OOM killer choose a process, and goes on.
    OutOfMemory,
    /// Sleeps for this reason and at most this long, says so with [`Mm::throttle_end`], and goes on.
    Throttle(ThrottleReason, Nanos),
    /// Submits what a shrinker has to write, waits for its end, and goes on.
    Wait(Bio),
    /// Sleeps until the writeback of this page, which it holds isolated, has ended, and goes on.
    WaitPage(Pfn),
    /// Sleeps until a new generation begins on this node ([`crate::Effect::WakeAging`]), and goes on.
    WaitAging(NodeId),
    /// Has ended.
    Done,
}

#[derive(Debug)]
enum Phase {
    /// A pass is to begin.
    Begin,
    /// The next group is to be found.
    NextMemcg,
    /// Generations of a group, as part of such a pass.
    MemcgGenerations(Box<ShrinkGens>),
    /// Generations take the place of the lists.
    Generations(Box<ShrinkGen>),
    /// The same, for the lists alone.
    OldGenerations(Box<ShrinkLruvec>),
    /// The lists are scanned, round by round.
    Lists,
    /// The last batch of a list is gone over again.
    SecondPass(Box<SecondPass>),
    /// The active anonymous list may be aged.
    AgeAnon,
    /// The shrinkers.
    Slab(SlabPass),
    /// What the pass met is to be judged.
    Judge,
    /// Another pass or the end.
    Decide,
    /// The end, once little enough is under writeback; whether this has been waited for.
    Writeout(bool),
    Ended,
}

/// Reclaim from the LRU lists of one node or zone, up to its target.
#[derive(Debug)]
pub struct ShrinkNode {
    /// The lists of the target.
    target: LruvecId,
    /// Those that it is at.
    lru: LruvecId,
    walk: MemcgWalk,
    phase: Phase,
    /// The list to scan next in this round.
    at: usize,
    /// Entries still to scan, by list.
    nr: [u64; 4],
    /// What a pass set out to scan.
    targets: ScanCount,
    /// The counts are not to be changed any more in this pass.
    adjusted: bool,
    /// Pages that the lists of this pass have given.
    lists_reclaimed: u64,
    /// `nr_reclaimed` and `nr_scanned` when the pass began.
    start: (u64, u64),
    /// Has waited because of isolated pages in this batch.
    stalled: bool,
    /// Something was reclaimed.
    reclaimable: bool,
}

/// Cuts what is left to scan once the target is met; `false` if the pass has nothing more to scan.
fn adjust_proportion(nr: &mut [u64; 4], targets: &[u64; 4]) -> bool {
    const ANON: usize = LruList::InactiveAnon as usize;
    const FILE: usize = LruList::InactiveFile as usize;
    let both = |of: &[u64; 4], at: usize| of[at] + of[at + 1];
    let (anon_left, file_left) = (both(nr, ANON), both(nr, FILE));
    if anon_left == 0 || file_left == 0 {
        return false;
    }
    let (smaller, larger, left) = if file_left > anon_left { (ANON, FILE, anon_left) } else { (FILE, ANON, file_left) };
    let left_percent = left * 100 / (both(targets, smaller) + 1);
    nr[smaller] = 0;
    nr[smaller + 1] = 0;
    for list in [larger, larger + 1] {
        let scanned = targets[list] - nr[list];
        nr[list] = (targets[list] * (100 - left_percent) / 100).saturating_sub(scanned);
    }
    true
}

/// Whether a pass scans all that it set out to, even beyond its target.
fn scans_all(env: &Env, sc: &ScanControl) -> bool {
    sc.is_global() && !env.task.kswapd && sc.priority == DEF_PRIORITY
}

impl Mm {
    /// Charges what it takes to come to a group.
    fn charge_memcg_walk(&mut self, memcg: MemcgId) {
        if memcg.index() >= GROUPS_IN_PASS {
            self.charge(self.costs.memcg_walk);
        }
    }

    /// Whether reclaim leaves a group alone because of its protection.
    fn spares(&mut self, memcg: MemcgId, sc: &mut ScanControl) -> bool {
        if memcg == sc.target || memcg == ROOT {
            return false;
        }
        let (protection, usage) = (self.memcg.protection(sc.target, memcg), self.memcg[memcg].usage());
        if protection.below_min(usage) {
            return true;
        }
        if protection.below_low(usage) {
            if !sc.low_reclaim {
                sc.low_skipped = true;
                return true;
            }
            self.memcg_event(memcg, MemcgEvent::Low);
        }
        false
    }
}

impl ShrinkNode {
    /// Reclaim from these lists and those of the groups below as `sc` asks.
    pub fn new(lru: LruvecId) -> ShrinkNode {
        ShrinkNode {
            target: lru,
            lru,
            walk: MemcgWalk::full(ROOT, lru.node),
            phase: Phase::Begin,
            at: 0,
            nr: [0; 4],
            targets: ScanCount::default(),
            adjusted: false,
            lists_reclaimed: 0,
            start: (0, 0),
            stalled: false,
            reclaimable: false,
        }
    }

    /// Whether something was reclaimed from a zone's own lists, or may yet be.
    pub(super) fn reclaimable(&self, mm: &Mm) -> bool {
        mm.zone_with(self.lru).is_some_and(|zone| self.reclaimable || !mm.zone_given_up(zone))
    }

    /// Does one batch.
    pub fn step(&mut self, mm: &mut Mm, env: &Env, sc: &mut ScanControl) -> Step {
        loop {
            match &mut self.phase {
                Phase::Begin
                    if mm.lru_gen_enabled() && mm.rules.lru_policy == LruPolicy::MultiGen && sc.is_global() =>
                {
                    self.phase = Phase::Generations(Box::new(ShrinkGen::new(mm, env, self.target.node, sc)));
                }
                Phase::NextMemcg => self.next_memcg(mm, env, sc),
                Phase::MemcgGenerations(shrink) => {
                    if let Some(aged) = shrink.step(mm, env, sc) {
                        if aged {
                            let memcg = mm.memcg_of(self.lru);
                            mm.nodes[self.lru.node.index()].fifo.rotate(memcg, Rotate::Young);
                        }
                        self.end_memcg(mm, sc);
                    }
                    return Step::More;
                }
                Phase::Generations(shrink) => match shrink.step(mm, env, sc) {
                    Step::Done => self.phase = Phase::Ended,
                    other => return other,
                },
                Phase::OldGenerations(shrink) => match shrink.step(mm, env, sc) {
                    Progress::More => return Step::More,
                    Progress::Sleep => return Step::WaitAging(self.lru.node),
                    Progress::Done => {
                        self.phase = Phase::AgeAnon;
                        return Step::More;
                    }
                },
                Phase::Begin => self.begin(mm, env, sc),
                Phase::Lists => {
                    if let Some(step) = self.scan_lists(mm, env, sc) {
                        return step;
                    }
                }
                Phase::SecondPass(pass) => match pass.step(mm, env, sc) {
                    SecondLook::Wait(pfn) => return Step::WaitPage(pfn),
                    SecondLook::Done(batch) => {
                        self.phase = Phase::Lists;
                        return self.end_inactive(mm, batch);
                    }
                },
                Phase::AgeAnon => {
                    let scanned = sc.nr_scanned - self.start.1;
                    if sc.may_shrink_slab && mm.shrinks_slab(self.lru, sc) {
                        self.phase = Phase::Slab(SlabPass::of_memcg(
                            mm,
                            sc,
                            mm.memcg_of(self.lru),
                            (scanned, self.targets.lru_pages),
                        ));
                    } else {
                        self.end_memcg(mm, sc);
                    }
                    if mm.age_active_anon(env, self.lru, sc) {
                        return Step::More;
                    }
                }
                Phase::Slab(pass) => {
                    match pass.step(mm, env, self.lru.node, sc) {
                        SlabStep::More => return Step::More,
                        SlabStep::Wait(bio) => return Step::Wait(bio),
                        SlabStep::Done => self.end_memcg(mm, sc),
                    }
                    // Shrinkers give way between groups, when others may end a walk that is shared (`cond_resched()` in
                    // `shrink_slab()`).
                    if mm.memcg.in_use() {
                        return Step::More;
                    }
                }
                Phase::Judge => {
                    self.phase = Phase::Decide;
                    let scanned = sc.nr_scanned.saturating_sub(self.start.1);
                    mm.vmpressure(env, mm.memcg_of(self.target), sc.gfp, scanned);
                    if let Some(wait) = self.judge(mm, env, sc) {
                        return self.throttle(mm, wait);
                    }
                }
                Phase::Decide => self.decide(mm, sc),
                Phase::Writeout(waited) => {
                    let waited = std::mem::replace(waited, true);
                    if let Some(wait) = mm.throttle_vm_writeout(sc, waited) {
                        return self.throttle(mm, wait);
                    }
                    self.phase = Phase::Ended;
                }
                Phase::Ended => return Step::Done,
            }
        }
    }

    fn throttle(&self, mm: &mut Mm, (reason, timeout): Wait) -> Step {
        mm.throttle_begin(self.lru.node, reason);
        Step::Throttle(reason, timeout)
    }

    fn begin(&mut self, mm: &mut Mm, env: &Env, sc: &mut ScanControl) {
        sc.nr = NodeScan::default();
        self.start = (sc.nr_reclaimed, sc.nr_scanned);
        if !mm.lru_gen_enabled() {
            mm.prepare_scan_control(self.target, sc);
        }
        let (target, node) = (mm.memcg_of(self.target), self.target.node);
        self.walk = match mm.rules.memcg_walk {
            MemcgWalkSharing::EveryPriority => MemcgWalk::shared(mm, target, node, sc.priority),
            MemcgWalkSharing::DirectReclaim if !env.task.kswapd && !sc.full_walk => {
                MemcgWalk::shared(mm, target, node, 0)
            }
            _ => MemcgWalk::full(target, node),
        };
        self.phase = Phase::NextMemcg;
    }

    /// Goes on to the next group that is not spared.
    fn next_memcg(&mut self, mm: &mut Mm, env: &Env, sc: &mut ScanControl) {
        loop {
            let Some(memcg) = self.walk.next(mm) else {
                self.phase = Phase::Judge;
                return;
            };
            mm.charge_memcg_walk(memcg);
            if mm.spares(memcg, sc) {
                continue;
            }
            if mm.zone_with(self.target).is_none() {
                self.lru = mm.lruvec_of_memcg(self.target.node, memcg);
            }
            return self.begin_memcg(mm, env, sc);
        }
    }

    /// A group is through: the next one, unless this walk is shared and has enough, and may stop for that.
    fn end_memcg(&mut self, mm: &Mm, sc: &ScanControl) {
        let stops = mm.rules.memcg_walk == MemcgWalkSharing::DirectReclaim || !sc.is_global();
        let enough = stops && self.walk.is_shared() && sc.nr_reclaimed >= sc.nr_to_reclaim;
        self.phase = if enough { Phase::Judge } else { Phase::NextMemcg };
    }

    fn begin_memcg(&mut self, mm: &mut Mm, env: &Env, sc: &mut ScanControl) {
        if mm.lru_gen_enabled() {
            self.phase = if mm.rules.lru_policy == LruPolicy::MultiGen {
                Phase::MemcgGenerations(Box::new(ShrinkGens::new(mm, self.lru, sc)))
            } else {
                Phase::OldGenerations(Box::new(ShrinkLruvec::new(mm, env, self.lru, sc)))
            };
            return;
        }
        self.targets = mm.get_scan_count(env, self.lru, sc);
        self.nr = self.targets.nr;
        self.lists_reclaimed = 0;
        self.adjusted = scans_all(env, sc);
        self.at = 0;
        self.phase = Phase::Lists;
    }

    /// Scans one batch of one list; `None` if the phase has changed instead.
    fn scan_lists(&mut self, mm: &mut Mm, env: &Env, sc: &mut ScanControl) -> Option<Step> {
        let only_active_anon = |(list, nr): (usize, &u64)| *nr == 0 || list == LruList::ActiveAnon as usize;
        if self.at == 0 && self.nr.iter().enumerate().all(only_active_anon) {
            sc.nr_reclaimed += self.lists_reclaimed;
            self.phase = Phase::AgeAnon;
            return None;
        }
        while let Some(&list) = LruList::EVICTABLE.get(self.at) {
            if self.nr[list as usize] == 0 {
                self.at += 1;
                continue;
            }
            if list.is_active() {
                self.at += 1;
                if self.shrink_active(mm, env, list, sc) {
                    return Some(Step::More);
                }
                continue;
            }
            if let Some(wait) = mm.too_many_isolated(env, self.lru, list, sc) {
                if !self.stalled || mm.rules.isolation_wait == IsolationWait::Congestion {
                    self.stalled = true;
                    return Some(self.throttle(mm, wait));
                }
                self.take_batch(list);
                return Some(self.end_inactive(mm, InactiveBatch::default()));
            }
            let batch = self.take_batch(list);
            return Some(match mm.shrink_inactive_list(env, self.lru, list, batch, sc) {
                Inactive::Done(batch) => self.end_inactive(mm, batch),
                Inactive::Again(pass) => {
                    self.phase = Phase::SecondPass(pass);
                    Step::More
                }
            });
        }
        self.at = 0;
        self.end_round(mm, sc);
        None
    }

    /// After every list has given a batch.
    fn end_round(&mut self, mm: &Mm, sc: &ScanControl) {
        if self.lists_reclaimed < sc.nr_to_reclaim || self.adjusted {
            return;
        }
        let stops = mm.rules.proportional_reclaim == ProportionalReclaim::StopAll;
        if !stops && adjust_proportion(&mut self.nr, &self.targets.nr) {
            self.adjusted = mm.rules.proportional_reclaim == ProportionalReclaim::ScanRest;
        } else {
            self.nr = [0; 4];
        }
    }

    /// Takes the next batch of a list off its count.
    fn take_batch(&mut self, list: LruList) -> u32 {
        let nr = &mut self.nr[list as usize];
        let batch = (*nr).min(u64::from(SWAP_CLUSTER_MAX));
        *nr -= batch;
        batch as u32
    }

    fn shrink_active(&mut self, mm: &mut Mm, env: &Env, list: LruList, sc: &mut ScanControl) -> bool {
        let batch = self.take_batch(list);
        let may = mm.may_shrink_active(self.lru, list, sc);
        if may {
            mm.lru_add_drain(env);
            mm.shrink_active_list(env, self.lru, list, batch, sc);
        }
        may
    }

    /// An inactive list has given its batch of this round: on to the next list, maybe after a wait.
    fn end_inactive(&mut self, mm: &mut Mm, batch: InactiveBatch) -> Step {
        self.lists_reclaimed += batch.reclaimed;
        self.at += 1;
        match batch.wait {
            Some(wait) => self.throttle(mm, wait),
            None => {
                self.stalled = false;
                Step::More
            }
        }
    }

    /// Sets the flags of the node, or of the group at its limit, by what the pass met, and says whether to wait.
    fn judge(&mut self, mm: &mut Mm, env: &Env, sc: &ScanControl) -> Option<Wait> {
        self.reclaimable |= sc.nr_reclaimed > self.start.0;
        if mm.rules.writeback_throttle != WritebackThrottle::Flags {
            return None;
        }
        let (met, kswapd) = (sc.nr, env.task.kswapd);
        let lruvec = mm.lruvec_mut(self.target);
        lruvec.congested |= (kswapd || !sc.is_global()) && met.dirty > 0 && met.dirty == met.congested;
        if !kswapd {
            let congested = lruvec.congested;
            return if congested { mm.throttle_congested(self.target.node) } else { None };
        }
        lruvec.writeback_seen |= met.writeback > 0 && met.writeback == met.taken;
        lruvec.dirty_seen |= met.unqueued_dirty == met.file_taken;
        (met.immediate > 0).then(|| mm.throttle_writeback())
    }

    fn decide(&mut self, mm: &mut Mm, sc: &mut ScanControl) {
        let (reclaimed, scanned) = (sc.nr_reclaimed - self.start.0, sc.nr_scanned.saturating_sub(self.start.1));
        if mm.should_continue_reclaim(self.target, reclaimed, scanned, sc) {
            self.phase = Phase::Begin;
            return;
        }
        if self.reclaimable {
            mm.nodes[self.lru.node.index()].kswapd.failures = 0;
        } else if sc.cache_trim_mode {
            sc.cache_trim_mode_failed = true;
        }
        self.phase = Phase::Writeout(false);
    }
}

#[cfg(test)]
mod tests {
    use rules::Rules;
    use units::{Gfp, Order};

    use super::super::DirectReclaim;
    use super::super::fixture::{LRU, Machine, NODE, env, rules_4_20};
    use super::*;
    use crate::ZoneKind;

    #[test]
    fn the_larger_kind_is_scanned_to_the_share_that_the_smaller_one_had() {
        // Targets: anon 100 + 100, file 1000 + 0. Left: anon 50 + 50, file 900.
        // 100 x 100 / 201 = 49 % of anon was left, so file gets 51 %: 1000 x 51 / 100 = 510, of which 100 are done.
        let mut nr = [50, 50, 900, 0];
        assert!(adjust_proportion(&mut nr, &[100, 100, 1000, 0]));
        assert_eq!(nr, [0, 0, 410, 0]);
    }

    #[test]
    fn until_3_10_both_kinds_are_stopped_at_the_target() {
        let left = |rule, reclaimed| {
            let m = Machine::new(Rules { proportional_reclaim: rule, ..rules_4_20() });
            let mut shrink = ShrinkNode::new(LRU);
            (shrink.nr, shrink.targets.nr) = ([50, 50, 900, 0], [100, 100, 1000, 0]);
            shrink.lists_reclaimed = reclaimed;
            let sc = ScanControl::direct(Gfp::KERNEL, Order(0), ZoneKind::Normal);
            shrink.end_round(&m.mm, &sc);
            shrink.nr
        };
        assert_eq!(left(ProportionalReclaim::StopAll, 31), [50, 50, 900, 0]);
        assert_eq!(left(ProportionalReclaim::StopAll, 32), [0; 4]);
        assert_eq!(left(ProportionalReclaim::ScanRest, 32), [0, 0, 410, 0]);
    }

    #[test]
    fn a_pass_ends_once_one_kind_is_through() {
        let mut nr = [0, 0, 900, 10];
        assert!(!adjust_proportion(&mut nr, &[100, 100, 1000, 10]));
    }
    #[test]
    fn only_direct_reclaim_of_a_node_goes_beyond_its_target_and_only_at_its_first_priority() {
        let direct = ScanControl::direct(Gfp::KERNEL, Order(0), ZoneKind::Normal);
        let later = ScanControl { priority: DEF_PRIORITY - 1, ..direct.clone() };
        let limit = ScanControl::memcg(MemcgId(1), Gfp::KERNEL, 32, true);
        let kswapd = ScanControl::kswapd(Order(0), ZoneKind::Normal);
        assert_eq!([&direct, &later, &limit].map(|sc| scans_all(&env(false), sc)), [true, false, false]);
        assert!(!scans_all(&env(true), &kswapd));
    }

    #[test]
    fn reclaim_for_a_limit_flags_its_own_group_and_waits_for_what_it_flagged() {
        let mut m = Machine::new(rules_4_20());
        let group = m.mm.memcg_create(ROOT, "a").expect("the first one");
        m.mm.set_device_congested(3, true);
        let limit = ScanControl::memcg(group, Gfp::KERNEL, 32, true);
        let direct = ScanControl::direct(Gfp::KERNEL, Order(0), ZoneKind::Normal);
        let judge = |m: &mut Machine, lru, (dirty, congested), sc: &ScanControl| {
            let sc = ScanControl { nr: NodeScan { dirty, congested, ..NodeScan::default() }, ..sc.clone() };
            let waits = ShrinkNode::new(lru).judge(&mut m.mm, &env(false), &sc).is_some();
            (waits, m.mm.lruvec(lru).congested)
        };
        let lru = m.mm.lruvec_of_memcg(NODE, group);
        assert_eq!(judge(&mut m, lru, (0, 0), &limit), (false, false));
        assert_eq!(judge(&mut m, lru, (2, 1), &limit), (false, false), "a dirty page is not on its way");
        assert_eq!(judge(&mut m, lru, (2, 2), &limit), (true, true));
        assert_eq!(judge(&mut m, lru, (2, 1), &limit), (true, true), "until it ends");
        assert_eq!(judge(&mut m, LRU, (2, 2), &direct), (false, false), "that of a node is for kswapd to flag");
        m.env = env(false);
        let mut run = DirectReclaim::memcg(group, Gfp::KERNEL, 1, true, NODE);
        m.run(|mm, env| run.step(mm, env));
        assert!(!m.mm.lruvec(lru).congested, "it has ended");
    }
}
