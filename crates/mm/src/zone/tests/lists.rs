//! Splitting, merging and the per-CPU lists, step by step.

use rules::{InitOnAlloc, PcpLists, Rules};
use units::{CpuId, Gfp, Order, Pfn, ZoneId};

use crate::stat::{VmEvent, ZoneEvent, ZoneStat};
use crate::zone::testing::{draw, env, gfp_of, one_zone, request, rules_4_20, take, violations};
use crate::{Kind, MigrateType, Mm, ZoneKind};

const MOVABLE: MigrateType = MigrateType::Movable;

#[test]
fn a_block_is_split_from_the_lower_end_and_merges_again() {
    let mut mm = one_zone(8, rules_4_20());
    let a = take(&mut mm, MOVABLE, 2).expect("memory is free");
    let base = a.0;
    let b = take(&mut mm, MOVABLE, 1).expect("memory is free");
    // 4 pages, then 2 of the 4 that were split off last.
    assert_eq!(b, Pfn(base + 4));
    assert_eq!(draw(&mm, base, 16), "AAAAAA..........");
    assert_eq!(mm.frames[a].kind(), Kind::Held);
    assert_eq!(mm.frames[a].order(), Order(2));
    mm.free_pages(&env(0), a, Order(2));
    assert_eq!(draw(&mm, base, 16), "....AA..........");
    mm.free_pages(&env(0), b, Order(1));
    assert_eq!(mm.free_counts(ZoneId(0))[10][MOVABLE as usize], 4);
    assert_eq!(violations(&mm), []);
}

#[test]
fn a_block_that_will_merge_soon_goes_to_the_tail() {
    let mut mm = one_zone(8, rules_4_20());
    // Order 1 blocks at 0, 2, 4, 6 of one block of 8 pages, then far ones.
    let blocks: Vec<Pfn> = (0..8).map(|_| take(&mut mm, MOVABLE, 1).expect("memory is free")).collect();
    let base = blocks[0].0;
    assert_eq!(blocks[3], Pfn(base + 6));
    let list = |mm: &crate::Mm| {
        let list = mm.zones[0].free_area[1].lists[MOVABLE as usize];
        list.iter(&mm.frames).map(|p| p.0 - base).collect::<Vec<_>>()
    };
    mm.free_pages(&env(0), blocks[6], Order(1));
    assert_eq!(list(&mm), [12]);
    // 0 and 2 form the order 2 block at 0, so 4, whose next larger buddy that is, goes to the tail.
    mm.free_pages(&env(0), blocks[0], Order(1));
    mm.free_pages(&env(0), blocks[1], Order(1));
    mm.free_pages(&env(0), blocks[2], Order(1));
    assert_eq!(list(&mm), [12, 4]);
    assert_eq!(violations(&mm), []);
}

#[test]
fn until_5_12_a_cpu_takes_batches_and_gives_back_the_oldest() {
    // 32 MiB: 8192 pages / 1024 = 8, a quarter is 2, 2 + 1 = 3 rounds down to 2, less one: batch 1, high 6.
    let mut mm = one_zone(16, rules_4_20());
    assert_eq!((mm.zones[0].pcp_limits.batch, mm.zones[0].pcp_limits.high_max), (1, 6));
    let pages: Vec<Pfn> = (0..7).map(|_| take(&mut mm, MOVABLE, 0).expect("memory is free")).collect();
    for &pfn in &pages[..5] {
        mm.free_pages(&env(0), pfn, Order(0));
    }
    assert_eq!(draw(&mm, pages[0].0, 8), "pppppAA.");
    // The sixth page reaches high: a batch of one, the oldest, goes back.
    mm.free_pages(&env(0), pages[5], Order(0));
    assert_eq!(draw(&mm, pages[0].0, 8), ".pppppA.");
    assert_eq!(mm.pcp_pages(ZoneId(0)), 5);
    // The newest is used first; another CPU has nothing of it.
    assert_eq!(take(&mut mm, MOVABLE, 0), Some(pages[5]));
    assert_eq!(violations(&mm), []);
    mm.drain_pcp_all();
    assert_eq!(mm.pcp_pages(ZoneId(0)), 0);
}

#[test]
fn on_large_zones_a_batch_is_63_pages_and_high_378() {
    // 1 GiB: 262144 pages / 1024 = 256 pages are 1 MiB; a quarter is 64; 96 rounds down to 64, less one.
    let mut mm = one_zone(512, rules_4_20());
    assert_eq!((mm.zones[0].pcp_limits.batch, mm.zones[0].pcp_limits.high_max), (63, 378));
    let free = mm.zones[0].free_pages;
    mm.alloc_pages(&env(1), request(Gfp::HIGHUSER_MOVABLE, 0)).expect("memory is free");
    assert_eq!(mm.pcp_pages(ZoneId(0)), 62);
    assert_eq!(mm.zones[0].free_pages, free - 63);
    assert_eq!(mm.stat.zone(ZoneId(0), ZoneStat::FreePages), free - 63);
    assert_eq!(mm.stat.zone_event(ZoneEvent::Pgalloc, ZoneKind::Normal), 1);
}

#[test]
fn since_5_13_huge_pages_and_orders_up_to_three_use_the_lists() {
    for order in [1, 3, 9] {
        let mut mm = one_zone(512, Rules { pcp_lists: PcpLists::HighOrder, ..Rules::newest() });
        let pfn = mm.alloc_pages(&env(0), request(gfp_of(MOVABLE), order)).expect("memory is free");
        mm.free_pages(&env(0), pfn, Order(order));
        assert_eq!(mm.frames[pfn].kind(), Kind::Pcp, "order {order}");
        assert_eq!(mm.alloc_pages(&env(0), request(gfp_of(MOVABLE), order)), Some(pfn));
        assert_eq!(violations(&mm), []);
    }
    let mut mm = one_zone(512, Rules { pcp_lists: PcpLists::HighOrder, ..Rules::newest() });
    let pfn = mm.alloc_pages(&env(0), request(gfp_of(MOVABLE), 4)).expect("memory is free");
    mm.free_pages(&env(0), pfn, Order(4));
    assert_eq!(mm.pcp_pages(ZoneId(0)), 0);
}

#[test]
fn auto_tuned_batches_double_while_nothing_is_freed() {
    let mut mm = one_zone(512, Rules::newest());
    let env = env(0);
    let mut refills = Vec::new();
    for _ in 0..1000 {
        let before = mm.zones[0].free_pages;
        mm.alloc_pages(&env, request(gfp_of(MOVABLE), 0)).expect("memory is free");
        let taken = before - mm.zones[0].free_pages;
        if taken > 0 {
            refills.push(taken);
        }
    }
    // Batch 63: 63, 126, 252, 504, ... as far as high allows, which is far for 262144 / 8 / 2 pages a CPU.
    assert_eq!(refills[..4], [63, 126, 252, 504]);
}

/// Pages that go back to the buddy lists at each free that sends any.
fn given_back(mm: &mut Mm, pfns: &[Pfn]) -> Vec<u64> {
    let mut back = Vec::new();
    for pfn in pfns {
        let before = mm.zones[0].free_pages;
        mm.free_pages(&env(0), *pfn, Order(0));
        back.extend(Some(mm.zones[0].free_pages - before).filter(|pages| *pages > 0));
    }
    back
}

#[test]
fn from_5_13_to_6_6_refills_are_a_batch_and_what_goes_back_doubles() {
    let mut mm = one_zone(512, Rules { pcp_lists: PcpLists::HighOrder, ..Rules::newest() });
    let (batch, high) = (u64::from(mm.zones[0].pcp_limits.batch), u64::from(mm.zones[0].pcp_limits.high_max));
    assert_eq!(batch, 63);
    let mut pfns = Vec::new();
    for _ in 0..8 * high {
        let before = mm.zones[0].free_pages;
        pfns.push(mm.alloc_pages(&env(0), request(gfp_of(MOVABLE), 0)).expect("memory is free"));
        assert!([0, batch].contains(&(before - mm.zones[0].free_pages)), "whatever came before");
    }
    // Each doubles the one before until 32 batches, or high less a batch.
    let expected = (0..6).map(|factor| (batch << factor).clamp(batch, high - batch));
    let back = given_back(&mut mm, &pfns);
    assert_eq!(back[..6], expected.collect::<Vec<_>>());
    // While kswapd works four batches are the most, of which one stays.
    mm.zones[0].reclaim_active = true;
    let pfns: Vec<Pfn> =
        (0..8 * batch).map(|_| mm.alloc_pages(&env(0), request(gfp_of(MOVABLE), 0)).expect("memory is free")).collect();
    let back = given_back(&mut mm, &pfns);
    assert!(!back.is_empty() && back.iter().all(|pages| *pages <= 3 * batch), "{back:?}");
    assert!(mm.pcp_pages(ZoneId(0)) < 4 * batch);
    assert_eq!(violations(&mm), []);
}

#[test]
fn freed_pages_are_counted_when_freed_not_when_drained() {
    let mut mm = one_zone(512, rules_4_20());
    let pfn = mm.alloc_pages(&env(0), request(gfp_of(MOVABLE), 0)).expect("memory is free");
    mm.free_pages(&env(0), pfn, Order(0));
    assert_eq!(mm.stat.event(VmEvent::Pgfree), 1);
    mm.drain_pcp(CpuId(0));
    assert_eq!(mm.stat.event(VmEvent::Pgfree), 1);
    assert_eq!(mm.zones[0].free_pages, 512 * 512);
}

#[test]
fn pages_are_zeroed_once_by_the_allocator_or_by_who_asked() {
    let took = |rule: InitOnAlloc, gfp: Gfp, order: u8| {
        let mut mm = one_zone(8, Rules { init_on_alloc: rule, ..rules_4_20() });
        mm.alloc_pages(&env(0), request(gfp, order)).expect("memory is free");
        mm.take_cpu_ns()
    };
    let page = Gfp::HIGHUSER_MOVABLE;
    for order in [0, 2] {
        let [plain, zeroed] = [page, page.with(Gfp::ZERO)].map(|gfp| took(InitOnAlloc::Off, gfp, order));
        assert_eq!(plain, zeroed, "nobody zeroes, or the caller");
        let zeroing = crate::Costs::default().zero_page << order;
        assert_eq!(took(InitOnAlloc::On, page, order), plain + zeroing, "order {order}");
        assert_eq!(took(InitOnAlloc::On, page.with(Gfp::ZERO), order), plain, "order {order}");
    }
}
