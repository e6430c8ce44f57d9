//! What kswapd does while it is awake: [`BalancePgdat`].
//!
//! Rule: scan the node at rising priority until one eligible zone is balanced. A pass scans at least the sum of the high
//! watermarks, or the priority rises, as it does if nothing was reclaimed. A run without any progress counts as a failure.
//!
//! While watermarks are boosted and the node is otherwise balanced, kswapd is gentle: it neither writes nor swaps, its
//! priority does not rise past 10, slabs are spared where [`BoostedSlab::Skip`] rules, and a pass without progress ends
//! the run. If the node is not balanced, the boost is forgotten and an ordinary run begins. At the end each zone's boost is
//! lowered by what it was at the start, so that later events survive, and kcompactd is woken for a pageblock.
//! While it runs the per-CPU lists of the zones are kept short, so that what it frees counts as free at once
//! (`ZONE_RECLAIM_ACTIVE`, see [`PcpLists`](rules::PcpLists)).
//! Source: `balance_pgdat()`, `kswapd_shrink_node()` (mm/vmscan.c, 4.20; 5.0; 6.12), commit 1c30844d2dfe.
//! Since/until: without a boost this is 4.20's loop.
//! Abstracted: `PGDAT_*` flags are in the node.
//! Omitted: freezing, and that `try_to_freeze()` lets others have the CPU between two passes, soft limits of cgroups, slab pages counting as scanned (6.12).

use rules::{BoostedSlab, LruPolicy, ScanBalance};
use smallvec::SmallVec;
use units::{NodeId, Order, PAGEBLOCK_ORDER, ZoneId};

use super::lru_gen::{AgeMemcgs, AgeStep};
use super::{DEF_PRIORITY, SWAP_CLUSTER_MAX, ScanControl, ShrinkNode, Step, ThrottleReason};
use crate::memcg::ROOT;
use crate::stat::{NodeStat, VmEvent};
use crate::zone::{MAX_RECLAIM_RETRIES, Wmark, compact_gap};
use crate::{Env, LruvecId, Mm, ZoneKind};

/// Boosts of the zones of a node at one time.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BoostSnapshot {
    boosts: SmallVec<[(ZoneId, u64); 4]>,
}

impl BoostSnapshot {
    /// Boosts of the zones up to `highest`.
    pub fn take(mm: &Mm, node: NodeId, highest: ZoneKind) -> BoostSnapshot {
        let zones = mm.zones_up_to(node, highest);
        BoostSnapshot { boosts: zones.map(|z| (z, mm.zones[z.index()].boost)).filter(|(_, b)| *b > 0).collect() }
    }

    /// Pages in all boosts.
    pub fn total(&self) -> u64 {
        self.boosts.iter().map(|(_, boost)| boost).sum()
    }

    /// Takes the boosts back; what was added since stays.
    fn settle(&self, mm: &mut Mm) {
        for &(zone, boost) in &self.boosts {
            let now = &mut mm.zones[zone.index()].boost;
            *now = now.saturating_sub(boost);
        }
    }
}

#[derive(Debug)]
enum Phase {
    /// A pass is to be decided upon.
    Pass,
    /// New generations are made.
    Age(AgeMemcgs),
    /// The node is scanned.
    Shrink(ShrinkNode),
    /// Nothing more to do but to settle.
    Settle,
    Ended,
}

/// One run of kswapd over its node.
#[derive(Debug)]
pub struct BalancePgdat {
    node: NodeId,
    highest: ZoneKind,
    sc: ScanControl,
    boosts: BoostSnapshot,
    /// Pages still to reclaim because of boosts (`nr_boost_reclaim`).
    boost_left: u64,
    raise_priority: bool,
    /// `nr_reclaimed` when the pass began.
    reclaimed_before: u64,
    phase: Phase,
}

impl BalancePgdat {
    /// Begins a run for an order and the zones up to `highest`.
    pub fn new(mm: &mut Mm, node: NodeId, order: Order, highest: ZoneKind) -> BalancePgdat {
        mm.note_kswapd_run(node, order);
        mm.set_reclaim_active(node, highest, true);
        let boosts = BoostSnapshot::take(mm, node, highest);
        let boost_left = boosts.total();
        BalancePgdat {
            node,
            highest,
            sc: ScanControl::kswapd(order, highest),
            boosts,
            boost_left,
            raise_priority: true,
            reclaimed_before: 0,
            phase: Phase::Pass,
        }
    }

    /// Order that the run stopped at: 0 if it gave the order up.
    pub fn order(&self) -> Order {
        self.sc.order
    }

    /// Pages reclaimed so far.
    pub fn nr_reclaimed(&self) -> u64 {
        self.sc.nr_reclaimed
    }

    /// Whether the run only works off a boost just now.
    pub fn is_boosted(&self) -> bool {
        self.boost_left > 0
    }

    /// Does one batch.
    pub fn step(&mut self, mm: &mut Mm, env: &Env) -> Step {
        debug_assert!(env.task.kswapd);
        loop {
            match &mut self.phase {
                Phase::Pass => {
                    if let Some(step) = self.begin_pass(mm, env) {
                        return step;
                    }
                }
                Phase::Age(aging) => match aging.step(mm, env, self.node, &self.sc) {
                    AgeStep::More => return Step::More,
                    AgeStep::Sleep => return Step::WaitAging(self.node),
                    step => {
                        self.phase = Phase::Shrink(ShrinkNode::new(LruvecId::of_node(self.node)));
                        if step == AgeStep::OutOfMemory {
                            return Step::OutOfMemory;
                        }
                    }
                },
                Phase::Shrink(shrink) => match shrink.step(mm, env, &mut self.sc) {
                    Step::Done => self.end_pass(mm),
                    other => return other,
                },
                Phase::Settle => {
                    self.settle(mm);
                    self.phase = Phase::Ended;
                }
                Phase::Ended => return Step::Done,
            }
        }
    }

    /// Decides whether and how to scan; a step if that has cost a batch already, or somebody must be killed first.
    fn begin_pass(&mut self, mm: &mut Mm, env: &Env) -> Option<Step> {
        let balanced = mm.pgdat_balanced(self.node, self.sc.order, self.highest);
        if !balanced && self.boost_left > 0 {
            self.boost_left = 0;
            self.sc.priority = DEF_PRIORITY;
        }
        let boosted = self.boost_left > 0;
        if balanced && !boosted {
            self.phase = Phase::Settle;
            return None;
        }
        self.raise_priority = !(boosted && self.sc.priority == DEF_PRIORITY - 2);
        self.sc.may_writepage = !boosted || self.sc.is_desperate();
        self.sc.may_swap = !boosted;
        self.sc.may_shrink_slab = !boosted || mm.rules.boosted_slab == BoostedSlab::Shrink;
        self.sc.nr_scanned = 0;
        self.reclaimed_before = self.sc.nr_reclaimed;
        let (step, aging) = self.age(mm, env);
        self.sc.nr_to_reclaim = mm
            .zones_up_to(self.node, self.highest)
            .map(|z| mm.wmark(z, Wmark::High).max(u64::from(SWAP_CLUSTER_MAX)))
            .sum();
        self.phase = match aging {
            Some(aging) => Phase::Age(aging),
            None => Phase::Shrink(ShrinkNode::new(LruvecId::of_node(self.node))),
        };
        step
    }

    /// Ages what is aged before each pass (`kswapd_age_node()`), or says what is to be walked for that.
    fn age(&mut self, mm: &mut Mm, env: &Env) -> (Option<Step>, Option<AgeMemcgs>) {
        if !mm.lru_gen_enabled() {
            return (mm.age_active_anon_of_all(env, self.node, &self.sc).then_some(Step::More), None);
        }
        if mm.rules.lru_policy == LruPolicy::MultiGen {
            return (mm.lru_gen_age_node(env, self.node, &mut self.sc).then_some(Step::OutOfMemory), None);
        }
        (None, mm.age_memcgs(self.node, &mut self.sc))
    }

    /// After the node was scanned: is one zone balanced, must the priority rise, is it of any use?
    fn end_pass(&mut self, mm: &mut Mm) {
        let sc = &mut self.sc;
        if sc.order > Order(0) && sc.nr_reclaimed >= compact_gap(sc.order) {
            sc.order = Order(0);
        }
        if sc.nr_scanned >= sc.nr_to_reclaim {
            self.raise_priority = false;
        }
        if mm.throttled(self.node, ThrottleReason::Reserve) > 0 && mm.allow_direct_reclaim(self.node) {
            mm.wake_throttled(self.node, ThrottleReason::Reserve);
        }
        let reclaimed = sc.nr_reclaimed - self.reclaimed_before;
        self.boost_left -= self.boost_left.min(reclaimed);
        let useless_boost = self.boost_left > 0 && reclaimed == 0;
        if !useless_boost && (self.raise_priority || reclaimed == 0) {
            sc.priority -= 1;
        }
        self.phase = Phase::Pass;
        if !useless_boost && sc.priority >= 1 {
            return;
        }
        let trimming_failed = sc.nr_reclaimed == 0 && sc.priority < 1 && sc.cache_trim_mode_failed;
        if trimming_failed && !sc.no_cache_trim_mode && mm.rules.scan_balance == ScanBalance::RefaultCost {
            sc.no_cache_trim_mode = true;
            sc.priority = DEF_PRIORITY;
            return;
        }
        if sc.nr_reclaimed == 0 {
            self.note_failure(mm);
        }
        self.phase = Phase::Settle;
    }

    fn note_failure(&self, mm: &mut Mm) {
        let (boosted, generations) = (self.boost_left > 0, mm.lru_gen_enabled());
        let kswapd = &mut mm.nodes[self.node.index()].kswapd;
        kswapd.failures += 1;
        kswapd.deeds.futile += 1;
        kswapd.deeds.futile_boosted += u64::from(boosted);
        kswapd.deeds.futile_unwritten += u64::from(boosted && generations);
        kswapd.deeds.given_up += u64::from(kswapd.failures == MAX_RECLAIM_RETRIES);
    }

    fn settle(&mut self, mm: &mut Mm) {
        mm.set_reclaim_active(self.node, self.highest, false);
        if self.boosts.total() > 0 {
            self.boosts.settle(mm);
            mm.wakeup_kcompactd(self.node, PAGEBLOCK_ORDER, self.highest);
        }
        mm.snapshot_refaults(self.node, ROOT);
    }
}

impl Mm {
    /// kswapd begins a run.
    pub(super) fn note_kswapd_run(&mut self, node: NodeId, order: Order) {
        self.stat.count(VmEvent::Pageoutrun, 1);
        self.charge(self.costs.kswapd_run);
        let lists = [NodeStat::InactiveFile, NodeStat::ActiveFile];
        let cache: u64 = lists.into_iter().map(|list| self.stat.node(node, list)).sum();
        let deeds = &mut self.nodes[node.index()].kswapd.deeds;
        deeds.runs += 1;
        deeds.for_blocks += u64::from(order > Order(0));
        deeds.cache_pages += cache;
    }

    /// kswapd is at work in the zones up to a kind, or not any more.
    fn set_reclaim_active(&mut self, node: NodeId, highest: ZoneKind, active: bool) {
        for at in 0..self.nodes[node.index()].zones.len() {
            let zone = &mut self.zones[self.nodes[node.index()].zones[at].index()];
            if zone.kind <= highest && zone.managed > 0 {
                zone.reclaim_active = active;
            }
        }
    }

    /// Managed zones whose pages are on these lists.
    pub(super) fn zones_of(&self, lru: LruvecId) -> impl Iterator<Item = ZoneId> {
        let zones = self.nodes[lru.node.index()].zones.iter().copied();
        let lru = self.root_of(lru);
        zones.filter(move |z| self.zones[z.index()].lru == lru && self.zones[z.index()].managed > 0)
    }

    /// Managed zones of a node up to a kind, lowest first.
    pub(super) fn zones_up_to(&self, node: NodeId, highest: ZoneKind) -> impl Iterator<Item = ZoneId> {
        let zones = self.nodes[node.index()].zones.iter().copied();
        zones.filter(move |z| self.zones[z.index()].kind <= highest && self.zones[z.index()].managed > 0)
    }
}
