//! Huge pages: by fault, fallback, splitting.

use proptest::prelude::*;
use rules::{Rules, ThpDefrag, ThpEnabled, ThpNode};
use units::{Gfp, Order, PAGEBLOCK_ORDER, PAGEBLOCK_PAGES, Pfn};

use crate::anon::pgtable::GFP_PGTABLE;
use crate::anon::testing::{Machine, rules_4_20};
use crate::anon::{Advice, TouchStop};
use crate::stat::{NodeStat, VmEvent};
use crate::{Frame, Kind, LruList};

const REGION: u32 = PAGEBLOCK_PAGES;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn whole_regions_of_the_area_become_huge(skip in 0u32..1500, pages in 1u32..8000) {
        let mut m = Machine::with_thp(rules_4_20());
        // Unaligned on purpose: the area starts at `skip` beyond a boundary.
        let (env, space) = (m.env, m.space);
        let base = m.mmap(skip + pages);
        m.mm.munmap(&env, space, base, skip);
        let (start, end) = (base + skip, base + skip + pages);
        m.touch(start, pages, true);
        let first = start.next_multiple_of(REGION);
        let huge = if first < end { (end - first) / REGION } else { 0 };
        let base_pages = pages - huge * REGION;
        prop_assert_eq!(m.event(VmEvent::ThpFaultAlloc), u64::from(huge));
        prop_assert_eq!(m.event(VmEvent::Pgfault), u64::from(huge + base_pages));
        prop_assert_eq!(m.gauge(NodeStat::AnonThps), u64::from(huge));
        prop_assert_eq!(m.rss(), u64::from(pages));
        // A huge page keeps a PTE page in deposit: as many as with base pages, and one PMD and one PUD page.
        let regions = (end - 1) / REGION - start / REGION + 1;
        prop_assert_eq!(m.mm.spaces[space].pgtable_pages(), u64::from(regions) + 2);
        m.check();
        m.end(0);
    }
}

#[test]
fn one_access_anywhere_maps_the_whole_region() {
    let mut m = Machine::with_thp(rules_4_20());
    let vpn = m.mmap(2 * REGION);
    m.touch(vpn + REGION + 77, 1, true);
    assert_eq!((m.rss(), m.event(VmEvent::Pgfault)), (512, 1));
    let pfn = m.pfn(vpn + REGION);
    assert_eq!((m.mm.frames[pfn].order(), m.mm.anon_home(pfn)), (PAGEBLOCK_ORDER, (m.space, vpn + REGION)));
    assert!(m.mm.mincore(m.space, vpn + 2 * REGION - 1) && !m.mm.mincore(m.space, vpn));
    assert_eq!(m.gauge(NodeStat::ActiveAnon), 512);
    m.mm.page_referenced(&m.env, pfn);
    m.touch(vpn + REGION, REGION, true);
    assert_eq!((m.event(VmEvent::Pgfault), m.mm.page_referenced(&m.env, pfn)), (1, 1));
    m.end(0);
}

#[test]
fn without_reclaim_a_fault_falls_back_at_once() {
    let mut m = Machine::with_thp(rules_4_20());
    let held = m.fragment();
    let vpn = m.mmap(3 * REGION);
    m.touch(vpn, 3 * REGION, true);
    assert_eq!((m.event(VmEvent::ThpFaultFallback), m.event(VmEvent::ThpFaultAlloc)), (3, 0));
    assert_eq!(m.rss(), u64::from(3 * REGION));
    m.check();
    m.end(held.len() as u64);
}

#[test]
fn a_fault_that_may_reclaim_hands_the_request_out() {
    // 4.20-rc3, defrag=always, not advised: one attempt on any node.
    let mut m = Machine::with_thp(rules_4_20());
    m.mm.tunables.thp_defrag = ThpDefrag::Always;
    let held = m.fragment();
    let vpn = m.mmap(2 * REGION);
    let mut touch = m.begin(vpn, 2 * REGION, true);
    let TouchStop::NeedHuge(request) = m.go_on(&mut touch, None) else { panic!() };
    assert_eq!((request.gfp, request.order), (Gfp::TRANSHUGE.with(Gfp::NORETRY), PAGEBLOCK_ORDER));
    assert_eq!(m.event(VmEvent::ThpFaultFallback), 0, "not yet");
    // The slow path finds none: base pages, and the next region asks again.
    let TouchStop::NeedHuge(_) = m.go_on(&mut touch, None) else { panic!() };
    assert_eq!((touch.vpn, m.rss()), (vpn + REGION, u64::from(REGION)));
    assert_eq!(m.go_on(&mut touch, None), TouchStop::Done);
    assert_eq!(m.event(VmEvent::ThpFaultFallback), 2);
    m.check();
    m.end(held.len() as u64);
}

#[test]
fn newer_kernels_try_the_local_node_lightly_and_then_any() {
    let mut m = Machine::with_thp(Rules { thp_node: ThpNode::LocalThenAny, ..rules_4_20() });
    m.mm.tunables.thp_defrag = ThpDefrag::Madvise;
    let held = m.fragment();
    let vpn = m.mmap(REGION);
    let (env, space) = (m.env, m.space);
    m.mm.madvise(&env, space, vpn, REGION, Advice::Huge);
    let mut touch = m.begin(vpn, REGION, true);
    let mask = Gfp::TRANSHUGE;
    for gfp in [mask.with(Gfp::THISNODE).with(Gfp::NORETRY), mask] {
        let TouchStop::NeedHuge(request) = m.go_on(&mut touch, None) else { panic!() };
        assert_eq!(request.gfp, gfp);
    }
    assert_eq!(m.go_on(&mut touch, None), TouchStop::Done);
    assert_eq!((m.event(VmEvent::ThpFaultFallback), m.rss()), (1, 512));
    m.end(held.len() as u64);
}

#[test]
fn a_huge_page_from_the_slow_path_waits_for_its_page_table() {
    let mut m = Machine::with_thp(rules_4_20());
    m.mm.tunables.thp_defrag = ThpDefrag::Always;
    let vpn = m.mmap(2 * REGION);
    m.touch(vpn, REGION, true); // the upper page tables exist then
    let (env, space) = (m.env, m.space);
    m.mm.munmap(&env, space, vpn, REGION / 2); // and that region has a table
    let held = m.exhaust();
    let mut touch = m.begin(vpn + REGION, REGION, true);
    let TouchStop::NeedHuge(request) = m.go_on(&mut touch, None) else { panic!() };
    held.iter().for_each(|pfn| m.give(*pfn));
    m.mm.drain_pcp_all();
    let huge = m.reserve(request).expect("all is free again");
    let held = m.exhaust();
    let TouchStop::NeedPage(request) = m.go_on(&mut touch, Some(huge)) else { panic!() };
    assert_eq!(request.gfp, GFP_PGTABLE);
    let table = m.reserve(request);
    assert_eq!(m.go_on(&mut touch, table), TouchStop::Done);
    assert_eq!(m.pfn(vpn + REGION), huge);
    m.check();
    m.end(held.len() as u64);
}

#[test]
fn a_killed_access_gives_its_huge_page_back() {
    let mut m = Machine::with_thp(rules_4_20());
    let vpn = m.mmap(REGION);
    let huge =
        m.mm.alloc_pages(&m.env, crate::AllocRequest { gfp: Gfp::TRANSHUGE, order: PAGEBLOCK_ORDER, node: m.env.node });
    let held = m.exhaust();
    let mut touch = m.begin(vpn, REGION, true);
    let TouchStop::NeedPage(_) = m.go_on(&mut touch, huge) else { panic!("the PGD is missing") };
    let env = m.env;
    m.mm.touch_cancel(&env, touch, None);
    m.check();
    m.end(held.len() as u64);
}

#[test]
fn eligibility_follows_the_advice_and_the_switch() {
    let mut m = Machine::with_thp(rules_4_20());
    m.mm.tunables.thp_enabled = ThpEnabled::Madvise;
    let (env, space) = (m.env, m.space);
    let vpn = m.mmap(4 * REGION);
    m.mm.madvise(&env, space, vpn + REGION, REGION, Advice::Huge);
    m.touch(vpn, 2 * REGION, true);
    assert_eq!(m.event(VmEvent::ThpFaultAlloc), 1, "only the advised region");
    m.mm.tunables.thp_enabled = ThpEnabled::Always;
    m.mm.madvise(&env, space, vpn + 2 * REGION, REGION, Advice::NoHuge);
    m.touch(vpn + 2 * REGION, 2 * REGION, true);
    assert_eq!(m.event(VmEvent::ThpFaultAlloc), 2, "only the one not forbidden");
    m.end(0);
}

/// Frames of a list from the end, where reclaim takes them.
fn from_tail(m: &Machine, list: LruList) -> Vec<Pfn> {
    let mut frames: Vec<Pfn> = m.mm.nodes[0].lruvecs[0].lists[list as usize].iter(&m.mm.frames).collect();
    frames.reverse();
    frames
}

#[test]
fn a_split_page_keeps_its_place_and_its_tails_follow_it() {
    let mut m = Machine::with_thp(rules_4_20());
    let vpn = m.mmap(3 * REGION);
    m.touch(vpn, 3 * REGION, true);
    let [older, split, newer] = [0, 1, 2].map(|n| m.pfn(vpn + n * REGION));
    let (env, before) = (m.env, m.mm.spaces[m.space].pgtable_pages());
    let free = m.free();
    assert!(m.mm.split_huge_page(&env, split));
    assert_eq!(m.free(), free, "the deposited page table serves");
    assert_eq!(m.mm.spaces[m.space].pgtable_pages(), before);
    let mut expected = vec![older];
    expected.extend((0..REGION).map(|n| split.offset(n)));
    expected.push(newer);
    assert_eq!(from_tail(&m, LruList::ActiveAnon), expected);
    let tail = m.mm.frames[split.offset(5)];
    assert_eq!((tail.kind(), tail.order()), (Kind::Anon, Order(0)));
    assert_eq!(m.mm.anon_home(split.offset(5)), (m.space, vpn + REGION + 5));
    assert!(tail.has(Frame::MAPPED | Frame::YOUNG | Frame::ACTIVE));
    assert_eq!((m.event(VmEvent::ThpSplitPage), m.gauge(NodeStat::AnonThps)), (1, 2));
    assert_eq!(m.gauge(NodeStat::AnonMapped), u64::from(3 * REGION));
    m.check();
    m.end(0);
}

#[test]
fn a_page_under_io_is_not_split() {
    let mut m = Machine::with_thp(rules_4_20());
    let vpn = m.mmap(REGION);
    m.touch(vpn, 1, true);
    let (env, pfn) = (m.env, m.pfn(vpn));
    m.mm.frames[pfn].set(Frame::PINNED);
    assert!(!m.mm.split_huge_page(&env, pfn));
    m.mm.frames[pfn].clear(Frame::PINNED);
    assert!(m.mm.split_huge_page(&env, pfn));
}

#[test]
fn the_tails_of_an_isolated_page_are_isolated_with_it() {
    let mut m = Machine::with_thp(rules_4_20());
    let vpn = m.mmap(REGION);
    m.touch(vpn, 1, true);
    let (env, pfn) = (m.env, m.pfn(vpn));
    assert!(m.mm.lru_isolate(pfn) && m.mm.split_huge_page(&env, pfn));
    assert_eq!(m.gauge(NodeStat::IsolatedAnon), 512);
    for n in 0..REGION {
        m.mm.lru_putback(&env, pfn.offset(n));
    }
    assert_eq!(m.gauge(NodeStat::IsolatedAnon), 0);
    m.check();
    m.end(0);
}

#[test]
fn unmapping_a_part_splits_and_frees_that_part() {
    let mut m = Machine::with_thp(rules_4_20());
    let vpn = m.mmap(REGION);
    m.touch(vpn, 1, true);
    let (env, space, free) = (m.env, m.space, m.free());
    m.mm.munmap(&env, space, vpn + 100, 12);
    assert_eq!((m.free() - free, m.rss()), (12, 500));
    assert_eq!((m.event(VmEvent::ThpSplitPage), m.event(VmEvent::ThpDeferredSplitPage)), (1, 1));
    m.check();
    // The whole: a region without entries can be huge again after its table is gone.
    m.mm.munmap(&env, space, vpn, REGION);
    let vpn = m.mmap(REGION);
    m.touch(vpn, 1, true);
    assert_eq!(m.event(VmEvent::ThpFaultAlloc), 2);
    m.mm.madvise(&env, space, vpn, REGION, Advice::DontNeed);
    m.touch(vpn, 1, true);
    assert_eq!(m.event(VmEvent::ThpFaultAlloc), 3, "dropping a whole huge page empties the region");
    m.end(0);
}
