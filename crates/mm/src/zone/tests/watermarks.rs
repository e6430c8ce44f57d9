//! Watermarks and reserves of real machines, and the checks against them.

use rules::{QuickCheck, Rules, ThpEnabled, Tunables};
use units::{Gfp, NodeId, Order, Pages, Pfn, ZoneId};

use crate::stat::NodeStat;
use crate::zone::testing::{env, layout, machine, one_zone, request, rules_4_20, span, take};
use crate::zone::{AllocFlags, Wmark};
use crate::{AllocRequest, Costs, MemoryLayout, MigrateType, Mm, ZoneKind, ZoneSpan};

fn zone(kind: ZoneKind, start: u32, pages: u64) -> ZoneSpan {
    let pages = Pages(pages);
    ZoneSpan { kind, start: Pfn(start), spanned: pages, present: pages, managed: pages, hole: None }
}

/// 16 MiB, 3 GiB and 5 GiB of managed memory.
fn eight_gib() -> MemoryLayout {
    let zones = vec![
        zone(ZoneKind::Dma, 0, 4096),
        zone(ZoneKind::Dma32, 4096, 786_432),
        zone(ZoneKind::Normal, 1 << 20, 1_310_720),
    ];
    layout(vec![zones])
}

fn marks(mm: &Mm) -> Vec<[u64; 3]> {
    mm.zones.iter().map(|z| [z.watermarks.min, z.watermarks.low, z.watermarks.high]).collect()
}

#[test]
fn without_thp_min_free_is_the_root_of_lowmem_and_each_zone_has_its_share() {
    let tunables = Tunables { thp_enabled: ThpEnabled::Never, ..Tunables::default() };
    let mm = Mm::new(&eight_gib(), rules_4_20(), tunables, Costs::default());
    // 2101248 pages are 8404992 KiB; sqrt(16 x 8404992) = 11596 KiB = 2899 pages.
    // DMA: 2899 x 4096 / 2101248 = 5, step max(1, 4) = 4. DMA32: 1085, step max(271, 786) = 786.
    // Normal: 1808, step max(452, 1310) = 1310.
    assert_eq!(marks(&mm), [[5, 9, 13], [1085, 1871, 2657], [1808, 3118, 4428]]);
    assert_eq!(mm.zones[2].watermarks.promo, 1808 + 3 * 1310);
}

#[test]
fn thp_raises_it_to_eleven_pageblocks_a_zone() {
    let mm = Mm::new(&eight_gib(), rules_4_20(), Tunables::default(), Costs::default());
    // 3 zones x 512 x (2 + 9) = 16896 pages = 67584 KiB, below 5 % of 2.1 M pages.
    // DMA: 16896 x 4096 / 2101248 = 32; DMA32: 6323; Normal: 10539. Steps are a quarter: 8, 1580, 2634.
    assert_eq!(marks(&mm), [[32, 40, 48], [6323, 7903, 9483], [10539, 13173, 15807]]);
}

#[test]
fn thp_takes_no_more_than_a_twentieth_of_a_small_machine() {
    let mm = Mm::new(
        &layout(vec![vec![zone(ZoneKind::Dma32, 0, 32_768)]]),
        rules_4_20(),
        Tunables::default(),
        Costs::default(),
    );
    // 128 MiB: sqrt(16 x 131072) = 1448 KiB = 362 pages, low 452, high 542. (32768 - 542) / 20 = 1611 pages, less than
    // 512 x 11.
    assert_eq!(mm.zones[0].watermarks.min, 1611);
}

#[test]
fn the_computed_value_is_limited_to_64_or_256_mib() {
    // 1 TiB in one zone: sqrt(16 x 2^30) = 131072 KiB.
    let tunables = Tunables { thp_enabled: ThpEnabled::Never, ..Tunables::default() };
    let one_tib = layout(vec![vec![zone(ZoneKind::Normal, 0, 1 << 18)]]);
    let mut mm = Mm::new(&one_tib, rules_4_20(), tunables, Costs::default());
    mm.zones[0].managed = 1 << 28;
    mm.setup_watermarks();
    assert_eq!(mm.zones[0].watermarks.min, 65_536 / 4);
    mm.rules.min_free_limit = rules::MinFreeLimit::Mib256;
    mm.setup_watermarks();
    assert_eq!(mm.zones[0].watermarks.min, 131_072 / 4);
}

#[test]
fn setting_watermarks_resets_the_boost() {
    let mut mm = one_zone(8, Rules::newest());
    mm.zones[0].boost = 512;
    mm.setup_watermarks();
    assert_eq!(mm.zones[0].boost, 0);
}

#[test]
fn lower_zones_keep_a_share_of_the_memory_above_them() {
    let mm = Mm::new(&eight_gib(), rules_4_20(), Tunables::default(), Costs::default());
    // 786432 / 256 = 3072; (786432 + 1310720) / 256 = 8192; 1310720 / 256 = 5120.
    assert_eq!(mm.zones[0].lowmem_reserve, [0, 3072, 8192, 8192]);
    assert_eq!(mm.zones[1].lowmem_reserve, [0, 0, 5120, 5120]);
    assert_eq!(mm.zones[2].lowmem_reserve, [0, 0, 0, 0]);
}

#[test]
fn what_lower_zones_keep_is_settled_at_boot() {
    let mut mm = Mm::new(&eight_gib(), rules_4_20(), Tunables::default(), Costs::default());
    mm.zones[2].managed += 1 << 18;
    mm.set_sysctl("vm.min_free_kbytes", 8192).expect("it is one");
    assert_eq!(mm.zones[0].lowmem_reserve, [0, 3072, 8192, 8192]);
}

/// A zone with exactly `free` free pages, all single, and a min watermark of 100 pages.
fn with_free(free: u64, rules: Rules) -> Mm {
    let mut mm = one_zone(8, rules);
    mm.zones[0].watermarks = crate::zone::Watermarks { min: 100, low: 125, high: 150, promo: 175 };
    while mm.zones[0].free_pages > 1024 {
        take(&mut mm, MigrateType::Movable, 9).expect("memory is free");
    }
    let last: Vec<Pfn> = std::iter::from_fn(|| take(&mut mm, MigrateType::Movable, 0)).collect();
    for &pfn in last.iter().step_by(2).take(free as usize) {
        mm.free_pages(&env(0), pfn, Order(0));
    }
    mm.drain_pcp_all();
    assert_eq!(mm.zones[0].free_pages, free);
    mm
}

/// Whether a request of the slow path passes with this many free pages.
fn passes(free: u64, gfp: Gfp, rules: &Rules) -> bool {
    let mm = with_free(free, rules.clone());
    let flags = mm.gfp_to_alloc_flags(&env(0), request(gfp, 0));
    mm.zone_watermark_fast(ZoneId(0), Order(0), Wmark::Min, ZoneKind::Normal, flags)
}

/// The fewest free pages with which it passes.
fn gate(gfp: Gfp, rules: Rules) -> u64 {
    (0..=200).find(|&free| passes(free, gfp, &rules)).expect("200 pages are above every mark")
}

#[test]
fn each_kind_of_request_has_its_share_of_the_reserve() {
    let nowait = Gfp::KSWAPD_RECLAIM;
    // Free must exceed: min 100; less half for HIGH: 50; atomic: 50 less a quarter of it: 50 - 12 = 38.
    for rules in [rules_4_20(), Rules::newest()] {
        assert_eq!(gate(Gfp::KERNEL, rules.clone()), 101);
        assert_eq!(gate(Gfp::KERNEL.with(Gfp::HIGH), rules.clone()), 51);
        assert_eq!(gate(Gfp::ATOMIC, rules.clone()), 39);
        assert_eq!(gate(nowait, rules.clone()), 101);
        assert_eq!(gate(Gfp::ATOMIC.with(Gfp::NOMEMALLOC), rules), 51);
    }
}

#[test]
fn an_oom_victim_may_use_half_and_a_reclaimer_all_of_it() {
    let mm = with_free(51, rules_4_20());
    let mut victim = env(0);
    victim.task.oom_victim = true;
    let flags = mm.reserve_alloc_flags(&victim, Gfp::KERNEL).expect("a victim may use the reserves");
    assert!(mm.zone_watermark_ok(ZoneId(0), Order(0), 100, ZoneKind::Normal, flags));
    assert!(!mm.zone_watermark_ok(ZoneId(0), Order(0), 102, ZoneKind::Normal, flags));
    let mut reclaimer = env(0);
    reclaimer.task.memalloc = true;
    let flags = mm.reserve_alloc_flags(&reclaimer, Gfp::KERNEL).expect("a reclaimer may use the reserves");
    assert_eq!(flags.wmark, None);
    assert_eq!(mm.reserve_alloc_flags(&reclaimer, Gfp::KERNEL.with(Gfp::NOMEMALLOC)), None);
    assert_eq!(mm.reserve_alloc_flags(&env(0), Gfp::KERNEL), None);
}

#[test]
fn a_higher_order_needs_a_block_and_its_size_beyond_the_mark() {
    let mut mm = with_free(200, rules_4_20());
    let flags = AllocFlags::only(Wmark::Min);
    let ok = |mm: &Mm, order: u8| mm.zone_watermark_ok(ZoneId(0), Order(order), 100, ZoneKind::Normal, flags);
    assert!(ok(&mm, 0));
    assert!(!ok(&mm, 1), "only single pages are free");
    // Closing one gap makes a block of order 1 or more.
    let used = (0..mm.frames.len() as u32).map(Pfn);
    let gap = used.into_iter().find(|&p| {
        let buddy = Pfn(p.0 ^ 1);
        mm.frames[p].kind() == crate::Kind::Held && mm.frames[p].order().0 == 0 && mm.frames[buddy].is_buddy(Order(0))
    });
    mm.free_pages(&env(0), gap.expect("every other page is in use"), Order(0));
    mm.drain_pcp_all();
    // 201 free, less 1 for the order, must exceed the mark.
    assert!(ok(&mm, 1));
    assert!(mm.zone_watermark_ok(ZoneId(0), Order(1), 199, ZoneKind::Normal, flags));
    assert!(!mm.zone_watermark_ok(ZoneId(0), Order(1), 200, ZoneKind::Normal, flags));
}

#[test]
fn a_boost_holds_back_all_but_atomic_order_0_requests_since_5_9() {
    let open = |free: u64, gfp: Gfp, rules: Rules| {
        let mut mm = with_free(free, rules);
        mm.zones[0].boost = 512;
        let flags = mm.gfp_to_alloc_flags(&env(0), request(gfp, 0));
        mm.zone_watermark_fast(ZoneId(0), Order(0), Wmark::Min, ZoneKind::Normal, flags)
    };
    // Without the exception 612 / 2 = 306 must be exceeded, less a quarter of that: 306 - 76 = 230.
    assert!(!open(200, Gfp::ATOMIC, rules_4_20()));
    assert!(open(231, Gfp::ATOMIC, rules_4_20()) && !open(230, Gfp::ATOMIC, rules_4_20()));
    assert!(open(39, Gfp::ATOMIC, Rules::newest()) && !open(38, Gfp::ATOMIC, Rules::newest()));
    assert!(!open(200, Gfp::KERNEL, Rules::newest()));
}

#[test]
fn a_single_page_may_be_a_reserved_one_from_4_7_to_5_8() {
    let open = |free: u64, quick_check| {
        let mut mm = with_free(free, Rules { quick_check, ..rules_4_20() });
        mm.zones[0].highatomic_reserved = 50;
        let mark = mm.wmark(ZoneId(0), Wmark::Low);
        assert!(mark + 51 <= 512, "{mark}");
        mm.zone_watermark_fast(ZoneId(0), Order(0), Wmark::Low, ZoneKind::Normal, AllocFlags::only(Wmark::Low))
    };
    let low = with_free(500, rules_4_20()).wmark(ZoneId(0), Wmark::Low);
    assert_eq!([low, low + 1].map(|free| open(free, QuickCheck::AllFree)), [false, true]);
    assert_eq!([low + 50, low + 51].map(|free| open(free, QuickCheck::HoldsBack)), [false, true]);
}

#[test]
fn a_zone_keeps_its_reserve_from_requests_that_could_go_higher() {
    let zones = vec![span(ZoneKind::Dma32, 0, 8), span(ZoneKind::Normal, 8, 8)];
    let mut mm = machine(&layout(vec![zones]), rules_4_20());
    mm.zones[0].lowmem_reserve[ZoneKind::Normal as usize] = mm.zones[0].free_pages;
    let flags = AllocFlags::only(Wmark::Low);
    assert!(!mm.zone_watermark_ok(ZoneId(0), Order(0), 0, ZoneKind::Normal, flags));
    assert!(mm.zone_watermark_ok(ZoneId(0), Order(0), 0, ZoneKind::Dma32, flags));
}

#[test]
fn pages_to_be_written_come_from_a_node_within_its_dirty_limit() {
    let nodes = vec![vec![span(ZoneKind::Normal, 0, 8)], vec![span(ZoneKind::Normal, 8, 8)]];
    let mut mm = machine(&layout(nodes), rules_4_20());
    let req = AllocRequest { gfp: Gfp::HIGHUSER_MOVABLE.with(Gfp::WRITE), order: Order(0), node: NodeId(0) };
    let node_of = |mm: &mut Mm, req| {
        let pfn = mm.alloc_pages(&env(0), req).expect("memory is free");
        mm.node_of(pfn)
    };
    assert_eq!(node_of(&mut mm, req), NodeId(0));
    // 20 % of what is dirtyable: fewer than 4096 pages.
    mm.stat.node_add(NodeId(0), NodeStat::FileDirty, 4096 / 5);
    assert_eq!(node_of(&mut mm, req), NodeId(1));
    let read = AllocRequest { gfp: Gfp::HIGHUSER_MOVABLE, ..req };
    assert_eq!(node_of(&mut mm, read), NodeId(0));
}
