//! Tracepoints of reclaim's batches.
//!
//! Rule: isolating a batch, what came of it, and each shrinker's pass leave an event; reclaim of generations does since 6.8
//! only ([`VmscanEvents`]). An event is put together only if somebody records it.
//! Source: include/trace/events/vmscan.h; `isolate_lru_pages()`, `shrink_inactive_list()`, `shrink_active_list()`,
//! `do_shrink_slab()` (mm/vmscan.c, 3.1, 4.4, 5.0, 6.1), `scan_folios()`, `evict_folios()` (mm/vmscan.c, 6.12).
//! Abstracted: shadow nodes of the swap cache have a pass of their own. Until 3.1 a shrinker with nothing to free left events too.
//! Until 4.7 the event of a batch comes after the waits that the batch leads to.

use rules::{ScanBalance, VmscanEvents};

use super::ScanControl;
use super::isolate::Isolated;
use super::lru_gen::MAX_LRU_BATCH;
use super::page_list::BatchStat;
use crate::trace::{Contiguous, LruIsolate, LruShrinkActive, LruShrinkInactive, TraceEvent};
use crate::{LruList, LruvecId, Mm};

impl Mm {
    /// Whether reclaim of generations leaves events that somebody records.
    #[inline]
    pub(super) fn traces_generations(&self) -> bool {
        self.trace.filter.vmscan && self.rules.vmscan_events == VmscanEvents::Generations
    }

    /// A batch was taken off a list.
    #[cold]
    pub(super) fn trace_isolate(&mut self, list: LruList, nr_requested: u32, isolated: &Isolated, sc: &ScanControl) {
        let Isolated { scanned, skipped, taken, contiguous, .. } = *isolated;
        self.trace_taken(list, nr_requested, [scanned, skipped, taken], contiguous, sc);
    }

    /// A batch was looked for in the oldest generation of a kind: pages looked at, skipped, taken.
    #[cold]
    pub(super) fn trace_scan(&mut self, file: bool, counts: [u64; 3], sc: &ScanControl) {
        let list = if file { LruList::InactiveFile } else { LruList::InactiveAnon };
        self.trace_taken(list, MAX_LRU_BATCH, counts, Contiguous::default(), sc);
    }

    fn trace_taken(
        &mut self,
        list: LruList,
        nr_requested: u32,
        counts: [u64; 3],
        contiguous: Contiguous,
        sc: &ScanControl,
    ) {
        let [nr_scanned, nr_skipped, nr_taken] = counts.map(|n| n as u32);
        self.trace.emit(TraceEvent::LruIsolate(LruIsolate {
            highest: sc.reclaim_idx,
            order: sc.order,
            nr_requested,
            nr_scanned,
            nr_skipped,
            nr_taken,
            contiguous,
            may_unmap: sc.may_unmap,
            may_writepage: sc.may_writepage,
            list,
        }));
    }

    /// A batch of inactive pages, or of the oldest generation of a kind, is through.
    #[cold]
    pub(super) fn trace_shrink_inactive(
        &mut self,
        lru: LruvecId,
        file: bool,
        scanned: u64,
        stat: &BatchStat,
        priority: i8,
    ) {
        self.trace.emit(TraceEvent::LruShrinkInactive(LruShrinkInactive {
            node: lru.node,
            zone: self.zone_with(lru).map(|zone| self.zones[zone.index()].kind),
            nr_scanned: scanned as u32,
            nr_reclaimed: stat.reclaimed as u32,
            nr_dirty: stat.dirty as u32,
            nr_writeback: stat.writeback as u32,
            nr_congested: stat.congested as u32,
            nr_immediate: stat.immediate as u32,
            nr_activate: stat.activated.map(|pages| pages as u32),
            nr_ref_keep: stat.ref_keep as u32,
            nr_unmap_fail: stat.unmap_fail as u32,
            priority,
            file,
        }));
    }

    /// A batch of active pages is through, of which `moved` became inactive. Since 5.8 only executable pages are rotated for
    /// their references, which the model does not have.
    #[cold]
    pub(super) fn trace_shrink_active(
        &mut self,
        lru: LruvecId,
        file: bool,
        taken: u64,
        (moved, referenced): (u64, u64),
        priority: i8,
    ) {
        let rotates = self.rules.scan_balance == ScanBalance::RotatedRatio;
        self.trace.emit(TraceEvent::LruShrinkActive(LruShrinkActive {
            node: lru.node,
            nr_taken: taken as u32,
            nr_active: 0,
            nr_deactivated: moved as u32,
            nr_referenced: if rotates { referenced as u32 } else { 0 },
            priority,
            file,
        }));
    }
}

#[cfg(test)]
mod tests {
    use rules::{LruGenCaps, Rules, Tunables};
    use units::{Bytes, Gfp, Order};

    use super::super::fixture::{LRU, Machine, NODE, env, rules_2_6_39, rules_4_20};
    use super::super::{BalanceAgain, BalancePgdat, BalanceZones, DirectReclaim, ShrinkNode, Step};
    use super::*;
    use crate::anon::testing::Machine as AnonMachine;
    use crate::memcg::ROOT;
    use crate::stat::VmEvent;
    use crate::trace::{ShrinkSlabEnd, ShrinkSlabStart, TraceFilter};
    use crate::vfs::FsSpec;
    use crate::{Env, Frame, Kind, ZoneKind};

    const VMSCAN: TraceFilter = TraceFilter { kmem: false, vmscan: true, compaction: false };

    fn traced(rules: Rules) -> Machine {
        let mut m = Machine::new(rules);
        m.mm.trace.filter = VMSCAN;
        m
    }

    fn isolated(list: LruList, nr_requested: u32, nr_scanned: u32, nr_skipped: u32) -> TraceEvent {
        TraceEvent::LruIsolate(LruIsolate {
            highest: ZoneKind::Normal,
            order: Order(0),
            nr_requested,
            nr_scanned,
            nr_skipped,
            nr_taken: nr_scanned - nr_skipped,
            contiguous: Contiguous::default(),
            may_unmap: true,
            may_writepage: true,
            list,
        })
    }

    /// A batch of which nothing but the number of pages is worth a word, at the first priority.
    fn shrunk(nr_scanned: u32, nr_reclaimed: u32, file: bool) -> LruShrinkInactive {
        LruShrinkInactive {
            node: NODE,
            zone: None,
            nr_scanned,
            nr_reclaimed,
            nr_dirty: 0,
            nr_writeback: 0,
            nr_congested: 0,
            nr_immediate: 0,
            nr_activate: [0; 2],
            nr_ref_keep: 0,
            nr_unmap_fail: 0,
            priority: 12,
            file,
        }
    }

    fn shrink(mm: &mut Mm, env: &Env, lru: LruvecId, list: LruList, nr: u32) -> Vec<TraceEvent> {
        let mut sc = ScanControl::kswapd(Order(0), ZoneKind::Normal);
        mm.shrink_inactive_list(env, lru, list, nr, &mut sc);
        mm.trace.take()
    }

    #[test]
    fn a_batch_tells_what_it_met() {
        let mut m = traced(rules_4_20());
        m.add("a b", Kind::File, Frame::DIRTY);
        m.add("c", Kind::File, Frame::WRITEBACK);
        m.add("d e", Kind::File, 0);
        let env = m.env;
        let events = shrink(&mut m.mm, &env, LRU, LruList::InactiveFile, 4);
        // What must be written goes to the active list, d is freed, e is beyond the batch.
        let met = LruShrinkInactive { nr_dirty: 3, nr_writeback: 1, nr_activate: [0, 3], ..shrunk(4, 1, true) };
        assert_eq!(events, [isolated(LruList::InactiveFile, 4, 4, 0), TraceEvent::LruShrinkInactive(met)]);
    }

    #[test]
    fn a_batch_of_skipped_pages_is_isolated_and_no_more() {
        let mut m = traced(rules_4_20());
        m.add("a b", Kind::File, 0);
        let (env, mut sc) = (m.env, ScanControl::kswapd(Order(0), ZoneKind::Dma32));
        m.mm.shrink_inactive_list(&env, LRU, LruList::InactiveFile, 4, &mut sc);
        let TraceEvent::LruIsolate(expected) = isolated(LruList::InactiveFile, 4, 2, 2) else { unreachable!() };
        let expected = TraceEvent::LruIsolate(LruIsolate { highest: ZoneKind::Dma32, ..expected });
        assert_eq!(m.mm.trace.take(), [expected]);
    }

    #[test]
    fn a_zone_with_lists_of_its_own_is_named() {
        let mut m = traced(rules_2_6_39());
        m.add("a b", Kind::File, 0);
        let (env, zone) = (m.env, m.mm.blocks.zone_of(m.page('a')));
        let lru = m.mm.zones[zone.index()].lru;
        let events = shrink(&mut m.mm, &env, lru, LruList::InactiveFile, 2);
        let met = LruShrinkInactive { zone: Some(ZoneKind::Normal), ..shrunk(2, 2, true) };
        assert_eq!(events[1], TraceEvent::LruShrinkInactive(met));
    }

    #[test]
    fn mapped_pages_are_kept_for_their_first_reference_and_activated_for_the_second() {
        let mut m = AnonMachine::with_generations(LruGenCaps::NONE);
        m.mm.trace.filter = VMSCAN;
        m.add_swap(16, false);
        let (env, at) = (env(true), m.mmap(3));
        let batch = |m: &mut AnonMachine| {
            m.touch(at, 3, true);
            shrink(&mut m.mm, &env, LRU, LruList::InactiveAnon, 3).pop()
        };
        let kept = LruShrinkInactive { nr_ref_keep: 3, ..shrunk(3, 0, false) };
        assert_eq!(batch(&mut m), Some(TraceEvent::LruShrinkInactive(kept)));
        let activated = LruShrinkInactive { nr_activate: [3, 0], ..shrunk(3, 0, false) };
        assert_eq!(batch(&mut m), Some(TraceEvent::LruShrinkInactive(activated)));
    }

    #[test]
    fn references_of_active_pages_count_until_5_7() {
        for (balance, nr_referenced) in [(ScanBalance::RotatedRatio, 2), (ScanBalance::IoCost, 0)] {
            let mut m = AnonMachine::with_generations(LruGenCaps::NONE);
            m.mm.rules.scan_balance = balance;
            m.mm.trace.filter = VMSCAN;
            let (at, sc) = (m.mmap(3), ScanControl::kswapd(Order(0), ZoneKind::Normal));
            m.touch(at, 3, true);
            let pages = [0, 1, 2].map(|n| m.pfn(at + n));
            m.mm.frames[pages[2]].clear(Frame::YOUNG);
            for pfn in pages {
                m.mm.lru_del(pfn);
                m.mm.frames[pfn].set(Frame::ACTIVE);
                m.mm.lru_add(&m.env, pfn);
            }
            m.mm.shrink_active_list(&m.env, LRU, LruList::ActiveAnon, 3, &sc);
            let expected = LruShrinkActive {
                node: NODE,
                nr_taken: 3,
                nr_active: 0,
                nr_deactivated: 3,
                nr_referenced,
                priority: 12,
                file: false,
            };
            let events = m.mm.trace.take();
            assert_eq!(events, [isolated(LruList::ActiveAnon, 3, 3, 0), TraceEvent::LruShrinkActive(expected)]);
        }
    }

    #[test]
    fn nothing_is_recorded_unasked() {
        let mut m = Machine::new(rules_4_20());
        m.add("a b", Kind::File, 0);
        let env = m.env;
        assert_eq!(shrink(&mut m.mm, &env, LRU, LruList::InactiveFile, 2), []);
        m.mm.trace.filter = TraceFilter { kmem: true, vmscan: false, compaction: true };
        m.add("c d", Kind::File, 0);
        assert_eq!(shrink(&mut m.mm, &env, LRU, LruList::InactiveFile, 2), []);
    }

    #[test]
    fn generations_leave_events_since_6_8_that_add_up_to_the_counters() {
        for (events, traces) in [(VmscanEvents::ActivatedByKind, false), (VmscanEvents::Generations, true)] {
            let tunables = Tunables { lru_gen_enabled: LruGenCaps::ALL, ..Tunables::default() };
            let mut m = Machine::tuned(Rules { vmscan_events: events, ..Rules::newest() }, tunables);
            m.fill(Kind::File, 0);
            m.mm.trace.filter = VMSCAN;
            m.kswapd(Order(0));
            let (mut taken, mut reclaimed) = (0, 0);
            for event in m.mm.trace.take() {
                match event {
                    TraceEvent::LruIsolate(e) => taken += u64::from(e.nr_taken),
                    TraceEvent::LruShrinkInactive(e) => reclaimed += u64::from(e.nr_reclaimed),
                    _ => {}
                }
            }
            let counted = [VmEvent::PgscanKswapd, VmEvent::PgstealKswapd].map(|event| m.mm.stat.event(event));
            assert!(counted[1] > 0);
            assert_eq!([taken, reclaimed], if traces { counted } else { [0; 2] });
        }
    }

    /// The passes of each shrinker, in order.
    fn passes(events: &[TraceEvent]) -> Vec<(ShrinkSlabStart, ShrinkSlabEnd)> {
        let slab = events.iter().filter(|e| matches!(e, TraceEvent::ShrinkSlabStart(_) | TraceEvent::ShrinkSlabEnd(_)));
        let slab: Vec<_> = slab.collect();
        let pair = |pair: &[&TraceEvent]| match *pair {
            [&TraceEvent::ShrinkSlabStart(start), &TraceEvent::ShrinkSlabEnd(end)] => (start, end),
            _ => panic!("a pass is not over when the next begins: {pair:?}"),
        };
        slab.chunks(2).map(pair).collect()
    }

    #[test]
    fn the_passes_of_the_shrinkers_add_up_to_what_was_scanned() {
        let mut m = traced(rules_4_20());
        let env = m.env;
        let fs = m.mm.vfs_mkfs(FsSpec::ext4(4, Bytes::gib(4)));
        let root = m.mm.vfs_root(fs);
        for _ in 0..20_000 {
            let handle = m.mm.vfs_create(&env, root).expect("memory is plentiful");
            m.mm.vfs_close(&env, handle);
        }
        let mut deferred = std::collections::BTreeMap::new();
        for (gfp, priority) in [(Gfp::KERNEL, 2), (Gfp::NOFS, 2), (Gfp::KERNEL, 3), (Gfp::KERNEL, 0)] {
            let mut sc = ScanControl::kswapd(Order(0), ZoneKind::Normal);
            (sc.gfp, sc.priority, sc.nr_to_reclaim) = (gfp, priority, 1);
            let scanned_before = m.mm.stat.event(VmEvent::SlabsScanned);
            let mut shrink = ShrinkNode::new(LRU);
            m.run(|mm, env| shrink.step(mm, env, &mut sc));
            let passes = passes(&m.mm.trace.take());
            assert!(!passes.is_empty());
            let mut scanned = 0;
            for (start, end) in passes {
                assert_eq!((start.shrinker, start.deferred), (end.shrinker, end.deferred));
                assert_eq!((start.gfp, start.priority, end.deferred_since), (gfp, priority, 0));
                assert_eq!(start.deferred, deferred.insert(start.shrinker, end.put_off).unwrap_or(0));
                scanned += start.total_scan - end.total_scan;
            }
            assert_eq!(scanned, m.mm.stat.event(VmEvent::SlabsScanned) - scanned_before);
        }
        assert!(deferred.values().any(|objects| *objects > 0), "some rest is put off");
    }

    #[test]
    fn kswapd_says_that_it_is_awake_once_a_run_whoever_balances() {
        let wake = |highest| TraceEvent::KswapdWake { node: NODE, highest, order: Order(3) };
        let mut m = traced(rules_2_6_39());
        let mut run = BalanceAgain::new(&mut m.mm, NODE, Order(3), ZoneKind::Normal);
        m.run(|mm, env| run.step(mm, env));
        assert_eq!(m.mm.trace.take(), [wake(ZoneKind::Normal)]);

        let mut m = traced(Rules { kswapd_run: rules::KswapdRun::Once, ..rules_2_6_39() });
        let mut run = BalanceZones::new(&mut m.mm, NODE, Order(3), ZoneKind::Dma32);
        m.run(|mm, env| run.step(mm, env));
        assert_eq!(m.mm.trace.take(), [wake(ZoneKind::Dma32)]);

        let mut m = traced(rules_4_20());
        m.mm.nodes[0].kswapd.order = Order(3);
        m.mm.nodes[0].kswapd.highest_zone = Some(ZoneKind::Normal);
        let taken = m.mm.kswapd_take(NODE, ZoneKind::Normal);
        let mut run = BalancePgdat::new(&mut m.mm, NODE, taken.order, taken.highest);
        m.run(|mm, env| run.step(mm, env));
        assert_eq!(m.mm.trace.take(), [wake(ZoneKind::Normal)]);
    }

    #[test]
    fn reclaim_for_a_group_says_so() {
        let mut m = AnonMachine::with_generations(LruGenCaps::NONE);
        let group = m.mm.memcg_create(ROOT, "group").expect("there is room");
        m.mm.trace.filter = VMSCAN;
        let mut reclaim = DirectReclaim::memcg(group, Gfp::KERNEL, 1, true, NODE);
        while reclaim.step(&mut m.mm, &env(false)) != Step::Done {}
        let events = m.mm.trace.take();
        let (order, gfp, highest) = (Order(0), Gfp::KERNEL, ZoneKind::Movable);
        assert_eq!(events[0], TraceEvent::DirectReclaimBegin { memcg: true, order, gfp, highest });
        assert_eq!(events.last(), Some(&TraceEvent::DirectReclaimEnd { memcg: true, nr_reclaimed: 0 }));
    }
}
