//! What kswapd does while it is awake, until 3.10: [`BalanceAgain`].
//!
//! Rule: at each priority, look for the highest zone below its high watermark for the order, and scan the zones from the
//! lowest up to it that are not above the watermark and a gap, without any target. The node is balanced at order 0 when all of
//! these zones are, above when those that are hold more than a quarter of its pages. Below priority 10, wait 100 ms for the
//! devices unless a zone is below its min watermark. Once 32 pages were reclaimed, or priority 0 is through, start over;
//! with less than 32 reclaimed, for order 0. Before it is done for an order, every zone must be balanced for order 0 too.
//! It may sleep if it finds the same balance again: [`KswapdSleep`] has the test as it was, and as it should be.
//! Source: `balance_pgdat()`, `pgdat_balanced()`, `sleeping_prematurely()` (mm/vmscan.c), 2.6.39, 3.0 and 3.1.
//! Since/until: [`KswapdRun`], 2.6.38 to 3.10; priority 0 takes the swap token away until 3.4; slabs of zones that need nothing are shrunk until 2.6.39, and the highest zone
//! that it was asked for follows the highest that needs reclaim.
//! A zone that was scanned six times over is given up until a page of it is freed, unless the shrinkers still find something.
//! Omitted: soft limits of cgroups, highmem.

use rules::{KswapdRun, KswapdSleep};
use units::{NodeId, Order, ZoneId};

use super::every_zone::PLAIN;
use super::shrinker::{SlabPass, SlabStep};
use super::throttle::TENTH;
use super::{DEF_PRIORITY, SWAP_CLUSTER_MAX, ScanControl, ShrinkNode, Step, ThrottleReason};
use crate::stat::VmEvent;
use crate::trace::TraceEvent;
use crate::zone::Wmark;
use crate::{Env, Mm, ZoneKind};

#[derive(Debug)]
enum Phase {
    /// All priorities, from the first.
    Again,
    /// A priority is to begin.
    Pass,
    /// The place of the next zone to look at.
    Zones(usize),
    /// A zone is scanned.
    Shrink(ShrinkNode, usize),
    /// The shrinkers are called for it.
    Slab(SlabPass, usize),
    /// The zones are through.
    EndPass,
    /// The next priority, or the end of them.
    NextPriority,
    /// The priorities are through.
    Out,
    Ended,
}

/// One run of kswapd over the zones of its node.
#[derive(Debug)]
pub struct BalanceAgain {
    node: NodeId,
    /// Highest zone that whoever woke kswapd may use (`classzone_idx`).
    classzone: ZoneKind,
    /// Place of the highest zone that needs reclaim.
    end_zone: usize,
    order: Order,
    sc: ScanControl,
    /// Whether every zone was found balanced, pages of those that were, and whether one was below its min watermark.
    all_ok: bool,
    balanced: u64,
    under_min: bool,
    total_scanned: u64,
    /// Reclaimable pages of the zones up to `end_zone`.
    lru_pages: u64,
    phase: Phase,
}

impl BalanceAgain {
    /// Begins a run for an order and the zones up to `classzone`.
    pub fn new(mm: &mut Mm, node: NodeId, order: Order, classzone: ZoneKind) -> BalanceAgain {
        debug_assert!(mm.rules.kswapd_run != KswapdRun::Once);
        mm.trace.emit(TraceEvent::KswapdWake { node, highest: classzone, order });
        let mut sc = ScanControl::kswapd(order, classzone);
        sc.nr_to_reclaim = u64::MAX;
        BalanceAgain {
            node,
            classzone,
            end_zone: 0,
            order,
            sc,
            all_ok: true,
            balanced: 0,
            under_min: false,
            total_scanned: 0,
            lru_pages: 0,
            phase: Phase::Again,
        }
    }

    /// Order that the run stopped at, and the highest zone that it reclaimed.
    pub fn reached(&self, mm: &Mm) -> (Order, ZoneKind) {
        (self.order, self.end_kind(mm))
    }

    fn zone(&self, mm: &Mm, at: usize) -> ZoneId {
        mm.nodes[self.node.index()].zones[at]
    }

    fn end_kind(&self, mm: &Mm) -> ZoneKind {
        mm.zones[self.zone(mm, self.end_zone).index()].kind
    }

    /// Does one batch.
    pub fn step(&mut self, mm: &mut Mm, env: &Env) -> Step {
        debug_assert!(env.task.kswapd);
        loop {
            match &mut self.phase {
                Phase::Again => self.begin(mm),
                Phase::Pass => self.begin_pass(mm, env),
                Phase::Zones(at) => {
                    let at = *at;
                    self.next_zone(mm, at);
                }
                Phase::Shrink(shrink, at) => match shrink.step(mm, env, &mut self.sc) {
                    Step::Done => {
                        self.phase = Phase::Slab(SlabPass::new(mm, &self.sc, self.sc.nr_scanned, self.lru_pages), *at)
                    }
                    other => return other,
                },
                Phase::Slab(pass, at) => {
                    match pass.step(mm, env, self.node, &mut self.sc) {
                        SlabStep::More => return Step::More,
                        SlabStep::Wait(bio) => return Step::Wait(bio),
                        SlabStep::Done => {}
                    }
                    let (at, freed) = (*at, pass.freed());
                    self.total_scanned += self.sc.nr_scanned;
                    self.give_up_if_hopeless(mm, at, freed);
                    self.end_zone(mm, at);
                    return Step::More;
                }
                Phase::EndPass => {
                    if let Some(step) = self.end_pass(mm) {
                        return step;
                    }
                }
                Phase::NextPriority => {
                    let enough = self.sc.nr_reclaimed >= u64::from(SWAP_CLUSTER_MAX);
                    self.sc.priority -= i8::from(!enough);
                    self.phase = if enough || self.sc.priority < 0 { Phase::Out } else { Phase::Pass };
                }
                Phase::Out => {
                    self.out(mm);
                    return Step::More;
                }
                Phase::Ended => return Step::Done,
            }
        }
    }

    fn begin(&mut self, mm: &mut Mm) {
        mm.note_kswapd_run(self.node, self.order);
        self.total_scanned = 0;
        self.sc.nr_reclaimed = 0;
        self.sc.priority = DEF_PRIORITY;
        self.phase = Phase::Pass;
    }

    /// Looks for the highest zone that needs reclaim.
    fn begin_pass(&mut self, mm: &mut Mm, env: &Env) {
        if self.sc.priority == 0 {
            mm.disable_swap_token();
        }
        (self.all_ok, self.balanced, self.under_min) = (true, 0, false);
        self.phase = Phase::Out;
        for at in (0..mm.nodes[self.node.index()].zones.len()).rev() {
            let zone = self.zone(mm, at);
            mm.charge(mm.costs.alloc_walk);
            if self.passed_over(mm, zone) {
                continue;
            }
            let lru = mm.zones[zone.index()].lru;
            mm.age_active_anon(env, lru, &self.sc);
            if !mm.zone_watermark_ok(zone, self.order, mm.wmark(zone, Wmark::High), ZoneKind::Dma, PLAIN) {
                self.end_zone = at;
                self.phase = Phase::Zones(0);
                break;
            }
            if mm.rules.kswapd_run == KswapdRun::Again {
                mm.lruvec_mut(lru).congested = false;
            }
        }
        if matches!(self.phase, Phase::Out) {
            return;
        }
        if mm.rules.kswapd_run == KswapdRun::AgainWithSlab {
            self.classzone = self.end_kind(mm);
        }
        self.sc.reclaim_idx = self.end_kind(mm);
        self.lru_pages = (0..=self.end_zone).map(|at| mm.reclaimable_pages(self.zone(mm, at))).sum();
    }

    /// Whether a zone is left alone because it was scanned in vain.
    fn passed_over(&self, mm: &Mm, zone: ZoneId) -> bool {
        mm.zones[zone.index()].managed == 0 || (self.sc.priority != DEF_PRIORITY && mm.zone_given_up(zone))
    }

    /// Begins to reclaim the zone at a place if it needs that.
    fn next_zone(&mut self, mm: &mut Mm, at: usize) {
        if at > self.end_zone {
            self.phase = Phase::EndPass;
            return;
        }
        let zone = self.zone(mm, at);
        self.phase = Phase::Zones(at + 1);
        if self.passed_over(mm, zone) {
            return;
        }
        self.sc.nr_scanned = 0;
        let mark = mm.wmark(zone, Wmark::High) + mm.balance_gap(zone);
        if !mm.zone_watermark_ok(zone, self.order, mark, self.sc.reclaim_idx, PLAIN) {
            self.phase = Phase::Shrink(ShrinkNode::new(mm.zones[zone.index()].lru), at);
        } else if mm.rules.kswapd_run == KswapdRun::AgainWithSlab {
            self.phase = Phase::Slab(SlabPass::new(mm, &self.sc, 0, self.lru_pages), at);
        } else {
            self.end_zone(mm, at);
        }
    }

    /// Gives a zone up that was scanned in vain, if the shrinkers found nothing either.
    fn give_up_if_hopeless(&self, mm: &mut Mm, at: usize, freed: u64) {
        let zone = self.zone(mm, at);
        if freed == 0 && !mm.zone_reclaimable(zone) {
            mm.zones[zone.index()].all_unreclaimable = true;
        }
    }

    /// After a zone was looked at: is it balanced now?
    fn end_zone(&mut self, mm: &mut Mm, at: usize) {
        let zone = self.zone(mm, at);
        self.phase = Phase::Zones(at + 1);
        if mm.zone_given_up(zone) {
            return;
        }
        let ok = |mark| mm.zone_watermark_ok(zone, self.order, mm.wmark(zone, mark), self.sc.reclaim_idx, PLAIN);
        if !ok(Wmark::High) {
            self.all_ok = false;
            self.under_min |= !ok(Wmark::Min);
            return;
        }
        let state = &mm.zones[zone.index()];
        if state.kind <= self.classzone {
            self.balanced += state.present;
        }
        let lru = state.lru;
        mm.lruvec_mut(lru).congested = false;
    }

    fn is_balanced(&self, mm: &Mm) -> bool {
        self.all_ok || (self.order > Order(0) && mm.quarter_is_balanced(self.node, self.balanced, self.classzone))
    }

    /// After the zones: done, the next priority, or first a nap.
    fn end_pass(&mut self, mm: &mut Mm) -> Option<Step> {
        if self.is_balanced(mm) {
            self.phase = Phase::Out;
            return None;
        }
        self.phase = Phase::NextPriority;
        if self.total_scanned == 0 || !self.sc.is_desperate() {
            return None;
        }
        if self.under_min {
            mm.stat.count(VmEvent::KswapdSkipCongestionWait, 1);
            return None;
        }
        mm.throttle_begin(self.node, ThrottleReason::Device);
        Some(Step::Throttle(ThrottleReason::Device, TENTH))
    }

    /// After the priorities: done, or all over again.
    fn out(&mut self, mm: &mut Mm) {
        self.phase = Phase::Again;
        if !self.is_balanced(mm) {
            mm.nodes[self.node.index()].kswapd.deeds.futile += u64::from(self.sc.nr_reclaimed == 0);
            if self.sc.nr_reclaimed < u64::from(SWAP_CLUSTER_MAX) {
                self.give_order_up();
            }
            return;
        }
        if self.order > Order(0) {
            for at in 0..=self.end_zone {
                let zone = self.zone(mm, at);
                if self.passed_over(mm, zone) {
                    continue;
                }
                if !mm.zone_watermark_ok(zone, Order(0), mm.wmark(zone, Wmark::High), ZoneKind::Dma, PLAIN) {
                    self.give_order_up();
                    return;
                }
                let lru = mm.zones[zone.index()].lru;
                mm.lruvec_mut(lru).congested = false;
            }
        }
        self.phase = Phase::Ended;
    }

    fn give_order_up(&mut self) {
        self.order = Order(0);
        self.sc.order = Order(0);
    }
}

impl Mm {
    /// Whether so many pages of balanced zones are more than a quarter of those of the zones up to `classzone`
    /// (`pgdat_balanced()`).
    fn quarter_is_balanced(&self, node: NodeId, balanced: u64, classzone: ZoneKind) -> bool {
        let present: u64 = self.zones_up_to(node, classzone).map(|z| self.zones[z.index()].present).sum();
        balanced > present / 4
    }

    /// Whether kswapd may go to sleep after a run (the opposite of `sleeping_prematurely()`); `must_resched` says that its
    /// time on the CPU is over.
    pub(super) fn may_sleep_after_run(
        &mut self,
        node: NodeId,
        order: Order,
        classzone: ZoneKind,
        must_resched: bool,
    ) -> bool {
        if must_resched && self.rules.kswapd_sleep == KswapdSleep::IfBalancedOrPreempted {
            return true;
        }
        let looks_at_all = self.rules.kswapd_run == KswapdRun::AgainWithSlab;
        let (mut balanced, mut all_ok) = (0, true);
        let mut enough_for_itself = true;
        self.charge(self.costs.alloc_walk);
        for zone in self.zones_up_to(node, if looks_at_all { ZoneKind::Movable } else { classzone }) {
            let state = &self.zones[zone.index()];
            let test_for = if looks_at_all { classzone } else { state.kind };
            if self.zone_given_up(zone)
                || self.zone_watermark_ok(zone, order, self.wmark(zone, Wmark::High), test_for, PLAIN)
            {
                balanced += state.present;
            } else {
                all_ok = false;
                let mark = self.wmark(zone, Wmark::High);
                enough_for_itself &= self.zone_watermark_ok(zone, order, mark, state.kind, PLAIN);
            }
        }
        let enough = self.quarter_is_balanced(node, balanced, classzone);
        let inverted = self.rules.kswapd_sleep == KswapdSleep::UnlessBalanced;
        let deeds = &mut self.nodes[node.index()].kswapd.deeds;
        if order == Order(0) {
            deeds.awake_for_reserve += u64::from(!all_ok && enough_for_itself);
            return all_ok;
        }
        deeds.awake_as_balanced += u64::from(inverted && enough);
        enough != inverted
    }
}

#[cfg(test)]
mod tests {
    use rules::Rules;
    use units::Gfp;

    use super::super::fixture::{Machine, NODE, rules_2_6_39};
    use super::*;
    use crate::zone::AllocFlags;
    use crate::{AllocRequest, Frame, Kind};

    fn with_sleep(kswapd_sleep: KswapdSleep) -> Machine {
        Machine::new(Rules { kswapd_sleep, ..rules_2_6_39() })
    }

    fn may_sleep(m: &mut Machine, order: u8, must_resched: bool) -> bool {
        m.mm.may_sleep_after_run(NODE, Order(order), ZoneKind::Normal, must_resched)
    }

    /// Takes all memory, singly, and gives back every second page of it.
    fn fragment(m: &mut Machine) {
        let request = AllocRequest { gfp: Gfp::HIGHUSER_MOVABLE, order: Order(0), node: NODE };
        let any = AllocFlags { wmark: None, ..PLAIN };
        let taken: Vec<_> = std::iter::from_fn(|| m.mm.get_page_from_freelist(&m.env, request, any)).collect();
        for pfn in taken.into_iter().filter(|pfn| pfn.0 % 2 == 0) {
            m.mm.free_pages(&m.env, pfn, Order(0));
        }
        m.mm.drain_pcp_all();
    }

    fn run(m: &mut Machine, order: u8) -> (Order, ZoneKind) {
        let mut run = BalanceAgain::new(&mut m.mm, NODE, Order(order), ZoneKind::Normal);
        m.run(|mm, env| run.step(mm, env));
        run.reached(&m.mm)
    }

    #[test]
    fn the_missing_negation_keeps_a_balanced_kswapd_awake_and_lets_another_sleep() {
        let mut wrong = with_sleep(KswapdSleep::UnlessBalanced);
        let mut right = with_sleep(KswapdSleep::IfBalanced);
        assert_eq!([&mut wrong, &mut right].map(|m| may_sleep(m, 0, false)), [true, true]);
        assert_eq!([&mut wrong, &mut right].map(|m| may_sleep(m, 2, false)), [false, true]);
        fragment(&mut wrong);
        fragment(&mut right);
        assert_eq!([&mut wrong, &mut right].map(|m| may_sleep(m, 0, false)), [true, true], "half of memory is free");
        assert_eq!([&mut wrong, &mut right].map(|m| may_sleep(m, 2, false)), [true, false], "in single pages");
    }

    #[test]
    fn a_preempted_kswapd_sleeps_with_the_fourth_patch_alone() {
        for (rule, sleeps) in [(KswapdSleep::IfBalanced, false), (KswapdSleep::IfBalancedOrPreempted, true)] {
            let mut m = with_sleep(rule);
            fragment(&mut m);
            assert_eq!(may_sleep(&mut m, 2, true), sleeps);
            assert!(!may_sleep(&mut m, 2, false));
        }
    }

    #[test]
    fn more_than_a_quarter_of_the_pages_must_be_in_balanced_zones() {
        let m = with_sleep(KswapdSleep::IfBalanced);
        // 16 Ki pages of DMA32 and 64 Ki of Normal: a quarter are 20 Ki.
        assert!(!m.mm.quarter_is_balanced(NODE, 20 << 10, ZoneKind::Normal));
        assert!(m.mm.quarter_is_balanced(NODE, (20 << 10) + 1, ZoneKind::Normal));
        // Up to DMA32: 4 Ki.
        assert!(!m.mm.quarter_is_balanced(NODE, 4 << 10, ZoneKind::Dma32));
        assert!(m.mm.quarter_is_balanced(NODE, (4 << 10) + 1, ZoneKind::Dma32));
    }

    #[test]
    fn a_run_ends_when_every_zone_is_above_its_high_watermark() {
        let mut m = with_sleep(KswapdSleep::IfBalanced);
        m.fill(Kind::File, 0);
        assert!(!may_sleep(&mut m, 0, false));
        run(&mut m, 0);
        let zones: Vec<_> = m.mm.zones_up_to(NODE, ZoneKind::Normal).collect();
        for zone in zones {
            assert!(m.mm.zone_watermark_ok(zone, Order(0), m.mm.wmark(zone, Wmark::High), ZoneKind::Dma, PLAIN));
        }
        m.check();
    }

    #[test]
    fn nobody_keeps_the_swap_token_once_priority_0_is_reached() {
        for (flags, keeps) in [(0, true), (Frame::LOCKED, false)] {
            let mut m = Machine::new(Rules { swap_token: rules::SwapToken::Kept, ..rules_2_6_39() });
            let space = m.mm.space_create();
            m.mm.grab_swap_token(space);
            m.fill(Kind::File, flags);
            // What cannot be reclaimed leaves kswapd awake for good: the first time through the priorities will do.
            let mut run = BalanceAgain::new(&mut m.mm, NODE, Order(0), ZoneKind::Normal);
            let env = m.env;
            while run.sc.priority >= 0 && !matches!(run.phase, Phase::Ended) {
                if let Step::Throttle(reason, _) = run.step(&mut m.mm, &env) {
                    m.mm.throttle_end(NODE, reason);
                }
            }
            assert_eq!(m.mm.swap_token_holder().is_some(), keeps);
        }
    }

    #[test]
    fn an_order_that_reclaim_cannot_make_is_given_up() {
        let mut m = with_sleep(KswapdSleep::IfBalanced);
        assert_eq!(run(&mut m, 3), (Order(3), ZoneKind::Dma32), "it is there already: no zone needs reclaim");
        // Pages that cannot be reclaimed, in each zone: the lists are not empty, and nothing comes of them.
        for gfp in [Gfp::HIGHUSER_MOVABLE, Gfp::DMA32] {
            for _ in 0..2_000 {
                m.add_page(Kind::File, Frame::LOCKED, gfp).expect("memory is plentiful");
            }
        }
        fragment(&mut m);
        assert_eq!(run(&mut m, 3).0, Order(0));
    }
}
