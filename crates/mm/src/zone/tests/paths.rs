//! Spreading over zones, boost and wake-ups, the atomic reserve, isolation, and the decisions of the slow path.

use rules::{KswapdBalance, Rules, WatermarkBoost, ZoneSpreading};
use units::{Gfp, Nanos, NodeId, Order, Pfn, ZoneId};

use crate::compaction::CompactPriority;
use crate::stat::{ExtfragEvent, VmEvent, ZoneStat};
use crate::zone::testing::{
    block_types, env, gfp_of, layout, machine, make_lru, one_zone, request, rules_4_20, span, take, violations,
};
use crate::zone::{CompactOutcome, CompactRetries, ReclaimRetry};
use crate::{AllocRequest, Effect, MigrateType, Mm, ZoneKind};

const MOVABLE: MigrateType = MigrateType::Movable;
const UNMOVABLE: MigrateType = MigrateType::Unmovable;

fn spreading() -> Rules {
    let boost = WatermarkBoost::PageblockStep;
    Rules { zone_spreading: ZoneSpreading::FastPath, watermark_boost: boost, ..rules_4_20() }
}

/// DMA32 and Normal of eight pageblocks each. In Normal every pageblock has one page free and the others on the LRU;
/// DMA32 is untouched.
fn normal_is_fragmented(rules: Rules) -> Mm {
    let zones = vec![span(ZoneKind::Dma32, 0, 8), span(ZoneKind::Normal, 8, 8)];
    let mut mm = machine(&layout(vec![zones]), rules);
    for zone in &mut mm.zones {
        zone.lowmem_reserve = [0; ZoneKind::COUNT];
    }
    mm.zones[1].watermarks = crate::zone::Watermarks::default();
    while mm.zones[1].free_pages > 0 {
        let pfn = take(&mut mm, MOVABLE, 9).expect("memory is free");
        make_lru(&mut mm, pfn);
    }
    for block in 8..16 {
        let first = Pfn(block * 512);
        mm.frames[first].set_kind(crate::Kind::Held, Order(9));
        mm.split_held(first);
        for n in 1..512 {
            make_lru(&mut mm, first.offset(n));
        }
        mm.free_pages(&env(0), first, Order(0));
    }
    mm.drain_pcp_all();
    assert_eq!(mm.zones[1].free_pages, 8);
    mm
}

#[test]
fn with_spreading_another_zone_is_tried_before_a_pageblock_is_fragmented() {
    let unmovable = request(Gfp::KERNEL, 0);
    let mut mm = normal_is_fragmented(rules_4_20());
    let pfn = mm.alloc_pages(&env(0), unmovable).expect("memory is free");
    assert_eq!(mm.zone_of(pfn), ZoneId(1));
    assert_eq!(mm.stat.extfrag(ExtfragEvent::Unmovable), 1);

    let mut mm = normal_is_fragmented(spreading());
    let pfn = mm.alloc_pages(&env(0), unmovable).expect("memory is free");
    assert_eq!(mm.zone_of(pfn), ZoneId(0));
    assert_eq!(mm.stat.extfrag(ExtfragEvent::Unmovable), 0);
    assert_eq!(mm.zones[1].boost, 0);
}

#[test]
fn if_every_zone_would_fragment_the_walk_starts_again_without_care() {
    let mut mm = normal_is_fragmented(spreading());
    // DMA32 has nothing left.
    while mm.zones[0].free_pages > 0 {
        take(&mut mm, MOVABLE, 9).expect("memory is free");
    }
    let pfn = mm.alloc_pages(&env(0), request(Gfp::KERNEL, 0)).expect("a page is free");
    assert_eq!(mm.zone_of(pfn), ZoneId(1));
    assert_eq!(mm.stat.extfrag(ExtfragEvent::Unmovable), 1);
}

#[test]
fn locality_is_worth_more_than_an_unfragmented_block() {
    let local = vec![span(ZoneKind::Dma32, 0, 6), span(ZoneKind::Normal, 6, 6)];
    let mut mm = machine(&layout(vec![local, vec![span(ZoneKind::Normal, 12, 6)]]), spreading());
    for zone in &mut mm.zones {
        zone.lowmem_reserve = [0; ZoneKind::COUNT];
        zone.watermarks = crate::zone::Watermarks::default();
    }
    let local = AllocRequest { gfp: Gfp::HIGHUSER_MOVABLE.with(Gfp::THISNODE), order: Order(9), node: NodeId(0) };
    let mut last = Pfn::NONE;
    while let Some(pfn) = mm.alloc_pages(&env(0), local) {
        make_lru(&mut mm, pfn);
        last = pfn;
    }
    mm.frames[last].set_kind(crate::Kind::Held, Order(9));
    mm.split_held(last);
    (1..512).for_each(|n| make_lru(&mut mm, last.offset(n)));
    mm.free_pages(&env(0), last, Order(0));
    mm.drain_pcp_all();
    assert_eq!(mm.alloc_pages(&env(0), request(Gfp::KERNEL, 0)), Some(last));
}

#[test]
fn a_fragmentation_event_boosts_and_wakes_kswapd() {
    let mut mm = normal_is_fragmented(spreading());
    while mm.zones[0].free_pages > 0 {
        take(&mut mm, MOVABLE, 9).expect("memory is free");
    }
    mm.zones[1].watermarks.high = 2000;
    mm.alloc_pages(&env(0), request(Gfp::KERNEL, 0)).expect("a page is free");
    // One pageblock; the flag is gone as the wake-up has happened.
    assert_eq!(mm.zones[1].boost, 512);
    assert!(!mm.zones[1].boosted_flag);
    let mut effects = Vec::new();
    mm.effects.take_into(&mut effects);
    assert_eq!(effects, [Effect::WakeKswapd(NodeId(0))]);
    assert!(!mm.nodes[0].kswapd.asleep);
    assert_eq!(mm.nodes[0].kswapd.order, Order(0));
}

#[test]
fn kswapd_sleeps_on_while_a_zone_is_balanced_and_none_is_boosted() {
    let wakes = |prepare: fn(&mut Mm)| {
        let zones = vec![span(ZoneKind::Dma32, 0, 8), span(ZoneKind::Normal, 8, 8)];
        let mut mm = machine(&layout(vec![zones]), rules_4_20());
        prepare(&mut mm);
        mm.wakeup_kswapd(ZoneId(1), Gfp::KERNEL, Order(0), ZoneKind::Normal);
        !mm.effects.is_empty()
    };
    assert!(!wakes(|_| {}));
    assert!(wakes(|mm| mm.zones[0].boost = 1));
    // One zone above high is enough; none is not.
    assert!(!wakes(|mm| mm.zones[1].watermarks.high = 1 << 20));
    let unbalance = |mm: &mut Mm| mm.zones.iter_mut().for_each(|z| z.watermarks.high = 1 << 20);
    assert!(wakes(unbalance));
    assert!(!wakes(|mm| {
        mm.zones.iter_mut().for_each(|z| z.watermarks.high = 1 << 20);
        mm.nodes[0].kswapd.failures = 16;
    }));
    assert!(wakes(|mm| {
        mm.zones.iter_mut().for_each(|z| z.watermarks.high = 1 << 20);
        mm.nodes[0].kswapd.failures = 15;
    }));
}

#[test]
fn a_request_that_cannot_reclaim_wakes_kcompactd_where_kswapd_is_hopeless() {
    let mut mm = one_zone(8, rules_4_20());
    // Every other page is free: 2048 pages, but no block that an order 9 request could use.
    let pages: Vec<Pfn> = std::iter::from_fn(|| take(&mut mm, MOVABLE, 0)).collect();
    pages.iter().for_each(|&pfn| make_lru(&mut mm, pfn));
    for &pfn in pages.iter().filter(|p| p.0 % 2 == 0) {
        mm.frames[pfn].clear(crate::Frame::LRU);
        mm.free_pages(&env(0), pfn, Order(0));
    }
    mm.drain_pcp_all();
    mm.nodes[0].kswapd.failures = 16;
    mm.wakeup_kswapd(ZoneId(0), Gfp::KERNEL, Order(9), ZoneKind::Normal);
    assert!(mm.effects.is_empty());
    mm.wakeup_kswapd(ZoneId(0), Gfp::KSWAPD_RECLAIM, Order(9), ZoneKind::Normal);
    assert_eq!(mm.nodes[0].kcompactd.max_order, Order(9));
    let mut effects = Vec::new();
    mm.effects.take_into(&mut effects);
    assert_eq!(effects, [Effect::WakeKcompactd(NodeId(0), Order(9))]);
}

#[test]
fn a_wake_up_remembers_the_largest_order_and_highest_zone() {
    let mut mm = one_zone(8, rules_4_20());
    mm.wakeup_kswapd(ZoneId(0), Gfp::KERNEL, Order(9), ZoneKind::Dma32);
    mm.wakeup_kswapd(ZoneId(0), Gfp::KERNEL, Order(2), ZoneKind::Normal);
    let kswapd = mm.nodes[0].kswapd;
    assert_eq!((kswapd.order, kswapd.highest_zone), (Order(9), Some(ZoneKind::Normal)));
}

#[test]
fn all_nodes_of_the_zonelist_are_woken_once() {
    let nodes =
        vec![vec![span(ZoneKind::Dma32, 0, 4), span(ZoneKind::Normal, 4, 4)], vec![span(ZoneKind::Normal, 8, 8)]];
    let mut mm = machine(&layout(nodes), rules_4_20());
    mm.zones.iter_mut().for_each(|z| z.watermarks.high = 1 << 20);
    let mut effects = Vec::new();
    mm.wake_all_kswapds(request(Gfp::KERNEL.with(Gfp::THISNODE), 0));
    mm.effects.take_into(&mut effects);
    assert_eq!(effects, [Effect::WakeKswapd(NodeId(0))]);
    mm.nodes[0].kswapd.asleep = true;
    mm.wake_all_kswapds(request(Gfp::KERNEL, 0));
    mm.effects.take_into(&mut effects);
    assert_eq!(effects, [Effect::WakeKswapd(NodeId(0)), Effect::WakeKswapd(NodeId(1))]);
}

#[test]
fn a_node_with_higher_zones_than_the_preferred_one_is_woken_too() {
    let nodes = vec![vec![span(ZoneKind::Dma32, 0, 8)], vec![span(ZoneKind::Normal, 8, 8)]];
    let rules = Rules { kswapd_balance: KswapdBalance::EveryZone, ..rules_4_20() };
    let mut mm = machine(&layout(nodes), rules);
    for zone in &mut mm.zones {
        (zone.watermarks.low, zone.watermarks.high) = (1 << 20, 1 << 20);
    }
    let mut effects = Vec::new();
    mm.wake_all_kswapds(request(Gfp::KERNEL, 0));
    mm.effects.take_into(&mut effects);
    assert_eq!(effects, [Effect::WakeKswapd(NodeId(0)), Effect::WakeKswapd(NodeId(1))]);
    mm.nodes.iter_mut().for_each(|node| node.kswapd.asleep = true);
    mm.wake_all_kswapds(request(Gfp::KERNEL.with(Gfp::DMA32), 0));
    mm.effects.take_into(&mut effects);
    assert_eq!(effects, [Effect::WakeKswapd(NodeId(0))], "Normal is beyond what the request may use");
}

#[test]
fn nodes_at_one_distance_take_turns() {
    let nodes = (0..4).map(|n| vec![span(ZoneKind::Normal, n * 8, 8)]).collect();
    let mm = machine(&layout(nodes), rules_4_20());
    let lists: Vec<Vec<u8>> = mm.nodes.iter().map(|n| n.zonelist.iter().map(|z| z.0).collect()).collect();
    // All are 20 away. From node 0 the first is 1, which gets a load; lower numbers are a little farther.
    assert_eq!(lists[0], [0, 1, 2, 3]);
    assert_eq!(lists[1], [1, 2, 3, 0]);
    assert_eq!(lists[2], [2, 3, 0, 1]);
    assert_eq!(lists[3], [3, 0, 1, 2]);
}

#[test]
fn a_page_of_another_node_is_a_miss_there_and_foreign_here() {
    let nodes = vec![vec![span(ZoneKind::Normal, 0, 8)], vec![span(ZoneKind::Normal, 8, 8)]];
    let mut mm = machine(&layout(nodes), rules_4_20());
    let count = |mm: &Mm| {
        [VmEvent::NumaHit, VmEvent::NumaMiss, VmEvent::NumaLocal, VmEvent::NumaOther].map(|e| mm.stat.event(e))
    };
    mm.alloc_pages(&env(0), request(gfp_of(MOVABLE), 0)).expect("memory is free");
    assert_eq!(count(&mm), [1, 0, 1, 0]);
    // Asked for node 1 from a CPU of node 0: a hit that is not local.
    let other = AllocRequest { node: NodeId(1), ..request(gfp_of(MOVABLE), 0) };
    mm.alloc_pages(&env(0), other).expect("memory is free");
    assert_eq!(count(&mm), [2, 0, 1, 1]);
    mm.zones[0].watermarks.low = 1 << 20;
    mm.alloc_pages(&env(0), request(gfp_of(MOVABLE), 0)).expect("memory is free");
    assert_eq!(count(&mm), [2, 1, 1, 2]);
    assert_eq!(mm.stat.event(VmEvent::NumaForeign), 1);
}

#[test]
fn high_order_atomic_requests_reserve_their_pageblock_and_give_it_back() {
    for rules in [rules_4_20(), Rules::newest()] {
        // One percent of 128 pageblocks is more than one.
        let mut mm = one_zone(128, rules);
        let req = request(Gfp::ATOMIC, 3);
        let flags = mm.gfp_to_alloc_flags(&env(0), req);
        assert!(flags.highatomic);
        mm.get_page_from_freelist(&env(0), req, flags).expect("memory is free");
        assert_eq!(block_types(&mm).matches('H').count(), 1);
        assert_eq!(mm.zones[0].highatomic_reserved, 512);
        assert_eq!(violations(&mm), []);
        assert!(!mm.unreserve_highatomic(request(Gfp::HIGHUSER_MOVABLE, 0), false), "the last block stays");
        assert!(mm.unreserve_highatomic(request(Gfp::HIGHUSER_MOVABLE, 0), true));
        assert_eq!(mm.zones[0].highatomic_reserved, 0);
        assert_eq!(block_types(&mm).matches('H').count(), 0);
        assert_eq!(violations(&mm), []);
    }
}

#[test]
fn a_block_is_isolated_only_above_min_and_its_size() {
    let mut mm = one_zone(8, rules_4_20());
    let block = mm.zones[0].free_area[10].lists[MOVABLE as usize].front();
    // 4096 free > min + 1024 must hold: min 3072 forbids it, 3071 allows it.
    mm.zones[0].watermarks.min = 3072;
    assert_eq!(mm.isolate_free_block(block), None);
    mm.zones[0].watermarks.min = 3071;
    assert_eq!(mm.isolate_free_block(block), Some(Order(10)));
    mm.setup_watermarks();
    assert_eq!(mm.stat.zone(ZoneId(0), ZoneStat::FreePages), 3072);
    mm.free_pages(&env(0), block, Order(10));
    assert_eq!(mm.free_counts(ZoneId(0))[10][MOVABLE as usize], 4);
    assert_eq!(violations(&mm), []);
}

#[test]
fn isolating_half_a_pageblock_makes_it_movable() {
    for (order, after) in [(7, 'U'), (8, 'M')] {
        let mut mm = one_zone(8, Rules::newest());
        let pfn = take(&mut mm, UNMOVABLE, order).expect("memory is free");
        let buddy = Pfn(pfn.0 ^ 1 << order);
        assert_eq!(mm.isolate_free_block(buddy), Some(Order(order)));
        assert_eq!(block_types(&mm).chars().nth((pfn.0 / 512) as usize), Some(after));
        assert_eq!(violations(&mm), []);
    }
}

#[test]
fn reclaim_is_retried_sixteen_times_without_progress() {
    let mut mm = one_zone(8, rules_4_20());
    let (req, mut loops) = (request(Gfp::KERNEL, 0), 0);
    let flags = mm.gfp_to_alloc_flags(&env(0), req);
    for n in 1..=16 {
        assert_eq!(mm.should_reclaim_retry(req, flags, false, &mut loops, false), ReclaimRetry::Again, "round {n}");
    }
    assert_eq!(mm.should_reclaim_retry(req, flags, false, &mut loops, false), ReclaimRetry::GiveUp);
    loops = 7;
    mm.should_reclaim_retry(req, flags, true, &mut loops, false);
    assert_eq!(loops, 0);
    // Progress does not count above order 3.
    mm.should_reclaim_retry(request(Gfp::KERNEL, 4), flags, true, &mut loops, false);
    assert_eq!(loops, 1);
}

#[test]
fn reclaim_is_not_retried_if_all_that_is_reclaimable_would_not_suffice() {
    let mut mm = one_zone(8, rules_4_20());
    let req = request(Gfp::KERNEL, 0);
    let flags = mm.gfp_to_alloc_flags(&env(0), req);
    // 4096 pages are free; the mark is 4100, so 5 file pages or more must be reclaimable.
    mm.zones[0].watermarks.min = 4100;
    mm.stat.zone_add(ZoneId(0), ZoneStat::InactiveFile, 4);
    assert_eq!(mm.should_reclaim_retry(req, flags, false, &mut 0, false), ReclaimRetry::GiveUp);
    mm.stat.zone_add(ZoneId(0), ZoneStat::InactiveAnon, 1);
    assert_eq!(mm.should_reclaim_retry(req, flags, false, &mut 0, false), ReclaimRetry::GiveUp);
    assert_eq!(mm.should_reclaim_retry(req, flags, false, &mut 0, true), ReclaimRetry::Again);
    // More than half of the reclaimable pages wait for writeback: until 5.15 the task waits.
    mm.stat.zone_add(ZoneId(0), ZoneStat::WritePending, 3);
    let wait = ReclaimRetry::Wait(Nanos::millis(100));
    assert_eq!(mm.should_reclaim_retry(req, flags, false, &mut 0, true), wait);
    assert_eq!(mm.should_reclaim_retry(req, flags, true, &mut 0, true), ReclaimRetry::Again);
    mm.rules.reclaim_throttle = rules::ReclaimThrottle::Reasons;
    assert_eq!(mm.should_reclaim_retry(req, flags, false, &mut 0, true), ReclaimRetry::Again);
}

#[test]
fn compaction_is_retried_with_rising_priority() {
    let mut retries = CompactRetries::default();
    assert!(!retries.should_retry(Order(0), CompactOutcome::Failed, true));
    // Order 3: light, then full, then no more.
    assert!(retries.should_retry(Order(3), CompactOutcome::Failed, false));
    assert_eq!(retries.priority, CompactPriority::SyncFull);
    assert!(!retries.should_retry(Order(3), CompactOutcome::Failed, false));
    // Costly orders never go beyond light.
    let mut costly = CompactRetries { priority: CompactPriority::Async, retries: 0 };
    assert!(costly.should_retry(Order(9), CompactOutcome::Failed, false));
    assert!(!costly.should_retry(Order(9), CompactOutcome::Failed, false));
    // What was skipped depends on whether reclaim could help.
    assert!(retries.should_retry(Order(3), CompactOutcome::Skipped, true));
    assert!(!retries.should_retry(Order(3), CompactOutcome::Skipped, false));
}

#[test]
fn compaction_that_succeeds_is_retried_sixteen_times_or_four_for_costly_orders() {
    for (order, most) in [(3, 16), (9, 4)] {
        let mut state = CompactRetries::default();
        for n in 0..most {
            assert!(state.should_retry(Order(order), CompactOutcome::Succeeded, false));
            assert_eq!(state.retries, n + 1);
        }
        let raised = state.should_retry(Order(order), CompactOutcome::Succeeded, false);
        assert_eq!(raised, order == 3, "then only a higher priority is left");
    }
}
