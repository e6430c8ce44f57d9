//! What kswapd does while it is awake, where it balances each zone: [`BalanceZones`].
//!
//! Rule: from the highest zone that is not balanced down to the lowest, each zone is reclaimed that is not above its high
//! watermark and a gap, at rising priority, until the node is balanced: at order 0 every zone, above zones with a quarter
//! of its memory. For an order above 0, memory that compaction can work with is enough. The priority rises unless some
//! zone was scanned as much as it should. Once twice the order's size was reclaimed, the order is given up. If no zone could
//! serve the order and more was reclaimed than was attempted, kswapd compacts asynchronously, until it gives up in a zone.
//! Source: `balance_pgdat()`, `kswapd_shrink_zone()`, `zone_balanced()`, `pgdat_balanced()`, `wakeup_kswapd()`
//! (mm/vmscan.c), `__compact_pgdat()` (mm/compaction.c), 3.19.
//! Since/until: [`KswapdRun::Once`](rules::KswapdRun), 3.11 to 4.7 (before, see again.rs); compaction by kswapd itself until 4.5
//! ([`BackgroundCompaction::Kswapd`]).
//! Omitted: freezing, soft limits of cgroups, highmem and its buffer heads.

use rules::{BackgroundCompaction, Compaction, KswapdBalance, KswapdWake};
use smallvec::SmallVec;
use units::{Gfp, Nanos, NodeId, Order, ZoneId};

use super::compaction_ready::is_worthwhile;
use super::{DEF_PRIORITY, KswapdRequest, SWAP_CLUSTER_MAX, ScanControl, ShrinkNode, Step, ThrottleReason};
use crate::compaction::{CompactControl, CompactResult, CompactRun, CompactStep, compaction_verdict};
use crate::trace::TraceEvent;
use crate::zone::{AllocFlags, Wmark, compact_gap};
use crate::{Effect, Env, Mm, ZoneKind};

/// No allocation flag at all.
pub(super) const PLAIN: AllocFlags = AllocFlags::only(Wmark::Min);

#[derive(Debug)]
enum Phase {
    /// A pass is to be decided upon.
    Pass,
    /// The place of the next zone to look at.
    Zones(usize),
    /// A zone is scanned; then the place to go on at.
    Shrink(ShrinkNode, usize),
    /// The zones are through.
    EndPass,
    /// The place of the next zone to compact.
    Compact(usize),
    /// A zone is compacted; then the place to go on at.
    Compacting(CompactRun, usize),
    /// Priority and balance are to be looked at.
    Judge,
    Ended,
}

/// One run of kswapd over the zones of its node.
#[derive(Debug)]
pub struct BalanceZones {
    node: NodeId,
    /// Highest zone that whoever woke kswapd may use (`classzone_idx`).
    classzone: ZoneKind,
    /// Highest zone that needs reclaim.
    end_zone: usize,
    order: Order,
    sc: ScanControl,
    attempted: u64,
    raise_priority: bool,
    needs_compaction: bool,
    /// Compaction gave up, which ends it in the zones that follow (`cc->contended`).
    contended: bool,
    phase: Phase,
}

impl BalanceZones {
    /// Begins a run for an order and the zones up to `classzone`.
    pub fn new(mm: &mut Mm, node: NodeId, order: Order, classzone: ZoneKind) -> BalanceZones {
        debug_assert!(mm.rules.kswapd_balance == KswapdBalance::EveryZone);
        mm.note_kswapd_run(node, order);
        mm.trace.emit(TraceEvent::KswapdWake { node, highest: classzone, order });
        BalanceZones {
            node,
            classzone,
            end_zone: 0,
            order,
            sc: ScanControl::kswapd(order, classzone),
            attempted: 0,
            raise_priority: true,
            needs_compaction: false,
            contended: false,
            phase: Phase::Pass,
        }
    }

    /// Order that the run stopped at, and the highest zone that it reclaimed.
    pub fn reached(&self, mm: &Mm) -> (Order, ZoneKind) {
        (self.order, mm.zones[self.zone(mm, self.end_zone).index()].kind)
    }

    fn zone(&self, mm: &Mm, at: usize) -> ZoneId {
        mm.nodes[self.node.index()].zones[at]
    }

    /// Another task will be entitled to this CPU after so much CPU time, which compaction gives up for.
    pub fn cpu_is_wanted_in(&mut self, mm: &Mm, time: Nanos) {
        if let Phase::Compacting(run, _) = &mut self.phase {
            run.cpu_is_wanted_in(mm, time);
        }
    }

    /// Does one batch.
    pub fn step(&mut self, mm: &mut Mm, env: &Env) -> Step {
        debug_assert!(env.task.kswapd);
        loop {
            match &mut self.phase {
                Phase::Pass => self.begin_pass(mm, env),
                Phase::Zones(at) => {
                    let at = *at;
                    self.next_zone(mm, at);
                }
                Phase::Shrink(shrink, at) => match shrink.step(mm, env, &mut self.sc) {
                    Step::Done => {
                        let at = *at;
                        self.end_zone(mm, at);
                        return Step::More;
                    }
                    other => return other,
                },
                Phase::EndPass => self.end_pass(mm),
                Phase::Compact(at) => {
                    let at = *at;
                    self.compact_zone(mm, env, at);
                }
                Phase::Compacting(run, at) => {
                    let (step, at) = (run.step(mm, env), *at);
                    if let CompactStep::More = step {
                        return Step::More;
                    }
                    self.end_compaction(mm, env, at);
                    return Step::More;
                }
                Phase::Judge => self.judge(mm),
                Phase::Ended => return Step::Done,
            }
        }
    }

    /// Looks for the highest zone that needs reclaim.
    fn begin_pass(&mut self, mm: &mut Mm, env: &Env) {
        self.attempted = 0;
        self.raise_priority = true;
        self.sc.nr_reclaimed = 0;
        self.phase = Phase::Ended;
        for at in (0..mm.nodes[self.node.index()].zones.len()).rev() {
            let zone = self.zone(mm, at);
            if self.passed_over(mm, zone) {
                continue;
            }
            let lru = mm.zones[zone.index()].lru;
            mm.age_active_anon(env, lru, &self.sc);
            if !mm.zone_balanced(zone, self.order, 0, ZoneKind::Dma) {
                self.end_zone = at;
                self.phase = Phase::Zones(0);
                break;
            }
            let lruvec = mm.lruvec_mut(lru);
            (lruvec.congested, lruvec.dirty_seen) = (false, false);
        }
        self.sc.reclaim_idx = mm.zones[self.zone(mm, self.end_zone).index()].kind;
        self.needs_compaction = self.order > Order(0)
            && (0..=self.end_zone).all(|at| {
                let zone = self.zone(mm, at);
                !mm.zone_watermark_ok(zone, self.order, mm.wmark(zone, Wmark::Low), self.classzone, PLAIN)
            });
    }

    /// Whether a zone is left alone because it was scanned in vain.
    fn passed_over(&self, mm: &Mm, zone: ZoneId) -> bool {
        mm.zones[zone.index()].managed == 0 || (self.sc.priority != DEF_PRIORITY && !mm.zone_reclaimable(zone))
    }

    /// Begins to reclaim the zone at a place if it needs that (`kswapd_shrink_zone()`).
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
        self.sc.nr_to_reclaim = mm.wmark(zone, Wmark::High).max(u64::from(SWAP_CLUSTER_MAX));
        let order = self.test_order(|order, highest| mm.compaction_suitable(zone, order, PLAIN, highest));
        if mm.zone_balanced(zone, order, mm.balance_gap(zone), self.sc.reclaim_idx) {
            self.raise_priority = false;
            return;
        }
        let lru = mm.zones[zone.index()].lru;
        self.phase = Phase::Shrink(ShrinkNode::new(lru), at);
    }

    /// Order that a zone is to be balanced for: 0 if compaction could make the one that is wanted.
    fn test_order(&self, suits: impl FnOnce(Order, ZoneKind) -> CompactResult) -> Order {
        let ScanControl { order, reclaim_idx, .. } = self.sc;
        if order > Order(0) && is_worthwhile(suits(order, reclaim_idx)) { Order(0) } else { order }
    }

    fn end_zone(&mut self, mm: &mut Mm, at: usize) {
        let zone = self.zone(mm, at);
        self.attempted += self.sc.nr_to_reclaim;
        // The order is tested as it was before the zone was scanned, which is the same unless it was given up since; so
        // nothing is asked again that the tracepoints would tell.
        let order = self.test_order(|order, highest| compaction_verdict(mm, zone, order, PLAIN, highest));
        let balanced = mm.zone_reclaimable(zone) && mm.zone_balanced(zone, order, 0, self.sc.reclaim_idx);
        let lru = mm.zones[zone.index()].lru;
        let lruvec = mm.lruvec_mut(lru);
        lruvec.writeback_seen = false;
        if balanced {
            (lruvec.congested, lruvec.dirty_seen) = (false, false);
        }
        if self.sc.nr_scanned >= self.sc.nr_to_reclaim {
            self.raise_priority = false;
        }
        self.phase = Phase::Zones(at + 1);
    }

    fn end_pass(&mut self, mm: &mut Mm) {
        if mm.throttled(self.node, ThrottleReason::Reserve) > 0 && mm.allow_direct_reclaim(self.node) {
            mm.wake_throttled(self.node, ThrottleReason::Reserve);
        }
        if self.order > Order(0) && self.sc.nr_reclaimed >= compact_gap(self.order) {
            self.order = Order(0);
            self.sc.order = Order(0);
        }
        let compacts = self.needs_compaction
            && self.order > Order(0)
            && self.sc.nr_reclaimed > self.attempted
            && mm.rules.background_compaction == BackgroundCompaction::Kswapd;
        self.contended = false;
        self.phase = if compacts { Phase::Compact(0) } else { Phase::Judge };
    }

    /// Begins to compact the zone at a place (`__compact_pgdat()`).
    fn compact_zone(&mut self, mm: &mut Mm, env: &Env, at: usize) {
        if at == mm.nodes[self.node.index()].zones.len() {
            self.phase = Phase::Judge;
            return;
        }
        let zone = self.zone(mm, at);
        self.phase = Phase::Compact(at + 1);
        if mm.compaction_deferred(zone, self.order) || self.contended {
            return self.relax_deferral(mm, zone);
        }
        match CompactRun::start(mm, env, zone, CompactControl::kswapd(self.order)) {
            Ok(run) => self.phase = Phase::Compacting(run, at),
            Err(_) => self.relax_deferral(mm, zone),
        }
    }

    fn end_compaction(&mut self, mm: &mut Mm, env: &Env, at: usize) {
        let zone = self.zone(mm, at);
        if let Phase::Compacting(run, _) = std::mem::replace(&mut self.phase, Phase::Compact(at + 1)) {
            self.contended = run.finish(mm, env) == CompactResult::Contended;
        }
        self.relax_deferral(mm, zone);
    }

    /// A zone that has a block need not be deferred any more, be it that it was so now and was not compacted.
    fn relax_deferral(&self, mm: &mut Mm, zone: ZoneId) {
        if mm.zone_watermark_ok(zone, self.order, mm.wmark(zone, Wmark::Low), ZoneKind::Dma, PLAIN) {
            mm.compaction_defer_reset(zone, self.order, false);
        }
    }

    fn judge(&mut self, mm: &mut Mm) {
        if self.raise_priority || self.sc.nr_reclaimed == 0 {
            self.sc.priority -= 1;
        }
        mm.nodes[self.node.index()].kswapd.deeds.futile += u64::from(self.sc.priority < 1 && self.sc.nr_reclaimed == 0);
        let done = self.sc.priority < 1 || mm.every_zone_balanced(self.node, self.order, self.classzone);
        self.phase = if done { Phase::Ended } else { Phase::Pass };
    }
}

impl Mm {
    /// Whether a zone is `gap` above its high watermark, and for an order has it or can be compacted for it
    /// (`zone_balanced()`).
    pub fn zone_balanced(&mut self, zone: ZoneId, order: Order, gap: u64, classzone: ZoneKind) -> bool {
        let mark = self.wmark(zone, Wmark::High) + gap;
        self.zone_watermark_ok(zone, order, mark, classzone, PLAIN)
            && (order == Order(0)
                || self.rules.compaction == Compaction::NotBuilt
                || self.may_compact(zone, order, classzone))
    }

    /// Whether kswapd may leave a node: at order 0 all of its zones up to `classzone` are balanced or were scanned in
    /// vain, above zones with a quarter of their memory (`pgdat_balanced()`).
    pub fn every_zone_balanced(&mut self, node: NodeId, order: Order, classzone: ZoneKind) -> bool {
        let (mut managed, mut balanced) = (0, 0);
        let zones: SmallVec<[ZoneId; 8]> = self.zones_up_to(node, classzone).collect();
        for zone in zones {
            let (kind, pages) = (self.zones[zone.index()].kind, self.zones[zone.index()].managed);
            managed += pages;
            if !self.zone_reclaimable(zone) || self.zone_balanced(zone, order, 0, kind) {
                balanced += pages;
            } else if order == Order(0) {
                return false;
            }
        }
        order == Order(0) || balanced >= managed / 4
    }

    /// Asks the kswapd of a zone's node for an order; wakes it unless the zone has enough ([`KswapdWake`],
    /// `wakeup_kswapd()`).
    pub(crate) fn wakeup_kswapd_for_zone(&mut self, zone: ZoneId, gfp: Gfp, order: Order, classzone: ZoneKind) {
        let node = self.zones[zone.index()].node;
        let kswapd = &mut self.nodes[node.index()].kswapd;
        if kswapd.order < order {
            kswapd.order = order;
            kswapd.highest_zone = Some(kswapd.highest_zone.map_or(classzone, |old| old.min(classzone)));
        }
        if !kswapd.asleep {
            return;
        }
        let needless = match self.rules.kswapd_wake {
            KswapdWake::LowMark => {
                self.zone_watermark_ok(zone, order, self.wmark(zone, Wmark::Low), ZoneKind::Dma, PLAIN)
            }
            KswapdWake::Unbalanced => self.zone_balanced(zone, order, 0, ZoneKind::Dma),
        };
        if needless {
            return;
        }
        self.nodes[node.index()].kswapd.asleep = false;
        self.charge(self.costs.wake_up);
        let zone = self.zones[zone.index()].kind;
        self.trace.emit(TraceEvent::WakeupKswapd { node, zone, order, gfp });
        self.effects.push(Effect::WakeKswapd(node));
    }

    /// Takes what kswapd was asked for: the largest order, and the lowest of the highest zones.
    pub fn kswapd_collect(&mut self, node: NodeId) -> KswapdRequest {
        let kswapd = &mut self.nodes[node.index()].kswapd;
        let highest = kswapd.highest_zone.take().unwrap_or(ZoneKind::Movable);
        KswapdRequest { order: std::mem::take(&mut kswapd.order), highest }
    }
}

#[cfg(test)]
mod tests {
    use rules::{AsyncAbort, KswapdRun, LruScope, Rules, SmallLists};

    use super::super::fixture::{Machine, NODE, rules_4_20};
    use super::*;
    use crate::stat::{VmEvent, ZoneStat};
    use crate::{AllocRequest, Kind};

    /// File pages that a run of kswapd leaves of 64 clean ones in a zone that was scanned in vain while they were not clean; all
    /// other memory is anonymous, and there is no swap.
    fn left_of_64(small_lists: SmallLists) -> u64 {
        let rules = Rules {
            small_lists,
            lru_scope: LruScope::Zone,
            kswapd_balance: KswapdBalance::EveryZone,
            kswapd_run: KswapdRun::Once,
            ..rules_4_20()
        };
        let mut m = Machine::new(rules);
        for _ in 0..64 {
            m.add_page(Kind::File, 0, Gfp::HIGHUSER_MOVABLE).expect("the machine is empty");
        }
        m.fill(Kind::Anon, 0);
        let zone = m.mm.zones[1].id;
        m.mm.zones[1].pages_scanned = 6 * 64;
        let mut run = BalanceZones::new(&mut m.mm, NODE, Order(0), ZoneKind::Normal);
        m.run(|mm, env| run.step(mm, env));
        m.check();
        m.mm.stat.zone(zone, ZoneStat::InactiveFile)
    }

    #[test]
    fn what_has_become_clean_in_a_zone_that_was_scanned_in_vain_is_found() {
        assert_eq!(left_of_64(SmallLists::LeftAlone), 64, "64 >> 12 is nothing, and then the zone is passed over");
        // A batch; as pages of it are free now, the zone is not passed over any more.
        assert!(left_of_64(SmallLists::ForcedInVain) <= 32);
    }

    /// Frames that kswapd's compaction of two zones looks at, every other page of which is free, if its CPU is wanted in the first of them.
    fn scanned(wanted: bool) -> u64 {
        let mut m = Machine::new(Rules {
            kswapd_balance: KswapdBalance::EveryZone,
            background_compaction: BackgroundCompaction::Kswapd,
            async_abort: AsyncAbort::CpuWanted,
            ..rules_4_20()
        });
        let pages: Vec<_> = std::iter::from_fn(|| m.add_page(Kind::Anon, 0, Gfp::HIGHUSER_MOVABLE)).collect();
        let request = AllocRequest { gfp: Gfp::HIGHUSER_MOVABLE, order: Order(0), node: NODE };
        while m.mm.get_page_from_freelist(&m.env, request, AllocFlags { wmark: None, ..PLAIN }).is_some() {}
        for &pfn in pages.iter().filter(|pfn| pfn.0.is_multiple_of(2)) {
            m.mm.lru_del(pfn);
            m.mm.free_pages(&m.env, pfn, Order(0));
        }
        let mut run = BalanceZones::new(&mut m.mm, NODE, Order(9), ZoneKind::Normal);
        run.phase = Phase::Compact(0);
        while !matches!(run.phase, Phase::Judge) {
            match &run.phase {
                Phase::Compact(at) => run.compact_zone(&mut m.mm, &m.env, *at),
                Phase::Compacting(_, at) => {
                    if wanted && *at == 0 {
                        run.cpu_is_wanted_in(&m.mm, Nanos::ZERO);
                    }
                    run.step(&mut m.mm, &m.env);
                }
                other => panic!("{other:?}"),
            }
        }
        m.check();
        m.mm.stat.event(VmEvent::CompactMigrateScanned)
    }

    #[test]
    fn compaction_that_gave_up_in_a_zone_leaves_those_that_follow_alone() {
        assert!(scanned(false) > 0);
        assert_eq!(scanned(true), 0, "it gives up at the first frame of the lowest zone");
    }

    #[test]
    fn a_deferred_zone_is_deferred_no_more_once_it_has_a_block() {
        let rules = Rules {
            kswapd_balance: KswapdBalance::EveryZone,
            background_compaction: BackgroundCompaction::Kswapd,
            ..rules_4_20()
        };
        for (full, deferred) in [(false, false), (true, true)] {
            let mut m = Machine::new(rules.clone());
            let (zone, order) = (m.mm.zones[1].id, Order(9));
            if full {
                m.fill(Kind::File, 0);
            }
            // Four attempts are let pass; kswapd's is the first of them.
            m.mm.defer_compaction(zone, order);
            m.mm.defer_compaction(zone, order);
            let mut run = BalanceZones::new(&mut m.mm, NODE, order, ZoneKind::Normal);
            run.compact_zone(&mut m.mm, &m.env, 1);
            assert_eq!(m.mm.compaction_deferred(zone, order), deferred, "full: {full}");
        }
    }
}
