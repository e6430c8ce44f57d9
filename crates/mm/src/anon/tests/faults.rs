//! Base pages: counts by formula, resumption, unmapping.

use proptest::prelude::*;
use units::{Gfp, Order, PAGEBLOCK_PAGES};

use crate::anon::fault::GFP_PAGE;
use crate::anon::pgtable::GFP_PGTABLE;
use crate::anon::testing::{Machine, rules_4_20};
use crate::anon::{Advice, TouchStop};
use crate::stat::{NodeStat, VmEvent, ZoneStat};
use crate::{Frame, Kind};

/// Units of `1 << shift` pages that a range touches.
fn units(vpn: u32, pages: u32, shift: u32) -> u64 {
    u64::from(((vpn + pages - 1) >> shift) - (vpn >> shift) + 1)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn pages_and_page_tables_follow_from_the_range(skip in 0u32..3000, pages in 1u32..6000) {
        let mut m = Machine::new(rules_4_20());
        let vpn = m.mmap(10_000) + skip;
        m.touch(vpn, pages, true);
        // A fault and a page for each page; a PTE page for each 2 MiB, a PMD page for each GiB, a PUD page for each 512.
        prop_assert_eq!(m.event(VmEvent::Pgfault), u64::from(pages));
        prop_assert_eq!(m.rss(), u64::from(pages));
        prop_assert_eq!(m.gauge(NodeStat::AnonMapped), u64::from(pages));
        prop_assert_eq!(m.gauge(NodeStat::ActiveAnon), u64::from(pages));
        let leaves = units(vpn, pages, 9);
        let tables = leaves + units(vpn, pages, 18) + units(vpn, pages, 27);
        prop_assert_eq!(m.mm.spaces[m.space].pgtable_pages(), tables);
        prop_assert_eq!(m.mm.stat.zone_sum(ZoneStat::PageTablePages), leaves);
        m.check();
        m.end(0);
    }
}

#[test]
fn newer_kernels_count_upper_page_tables_too() {
    let mut m = Machine::new(rules::Rules::newest());
    let vpn = m.mmap(1000);
    m.touch(vpn, 1000, true);
    // 1000 pages from a 2 MiB boundary: two PTE pages, one PMD page, one PUD page; not the PGD.
    assert_eq!(m.mm.stat.zone_sum(ZoneStat::PageTablePages), 4);
    assert_eq!(m.gauge(NodeStat::InactiveAnon), 1000, "new pages start inactive");
    m.end(0);
}

#[test]
fn a_new_page_is_young_mapped_and_knows_its_owner() {
    let mut m = Machine::new(rules_4_20());
    let vpn = m.mmap(4);
    m.touch(vpn + 2, 1, true);
    let frame = m.mm.frames[m.pfn(vpn + 2)];
    assert_eq!((frame.kind(), frame.order()), (Kind::Anon, Order(0)));
    assert_eq!(m.mm.anon_home(m.pfn(vpn + 2)), (m.space, vpn + 2));
    assert!(frame.has(Frame::YOUNG | Frame::DIRTY | Frame::MAPPED | Frame::SWAPBACKED | Frame::UPTODATE | Frame::LRU));
    assert!(m.mm.mincore(m.space, vpn + 2) && !m.mm.mincore(m.space, vpn + 1));
    let pfn = m.pfn(vpn + 2);
    assert_eq!(m.mm.page_referenced(&m.env, pfn), 1);
    assert_eq!(m.mm.page_referenced(&m.env, pfn), 0, "asking takes the mark");
    m.touch(vpn + 2, 1, false);
    assert_eq!(m.mm.page_referenced(&m.env, pfn), 1, "another access leaves it again");
    assert_eq!(m.event(VmEvent::Pgfault), 1, "and is no fault");
}

#[test]
fn a_read_maps_the_zero_page_and_a_write_replaces_it() {
    let mut m = Machine::new(rules_4_20());
    let vpn = m.mmap(100);
    m.touch(vpn, 100, false);
    assert_eq!((m.event(VmEvent::Pgfault), m.rss()), (100, 0));
    assert!(m.mm.mincore(m.space, vpn));
    m.touch(vpn, 100, false);
    assert_eq!(m.event(VmEvent::Pgfault), 100);
    m.touch(vpn, 40, true);
    assert_eq!((m.event(VmEvent::Pgfault), m.rss()), (140, 40));
    m.end(0);
}

#[test]
fn a_fault_asks_for_what_is_missing_from_the_top_down() {
    let mut m = Machine::new(rules_4_20());
    let vpn = m.mmap(1);
    let held = m.exhaust();
    let mut touch = m.begin(vpn, 1, true);
    let mut stop = m.go_on(&mut touch, None);
    // PGD, PUD, PMD and PTE page, then the page itself.
    for gfp in [GFP_PGTABLE, GFP_PGTABLE, GFP_PGTABLE, GFP_PGTABLE, GFP_PAGE] {
        let TouchStop::NeedPage(request) = stop else { panic!("{stop:?}") };
        assert_eq!((request.gfp, request.order), (gfp, Order(0)));
        let hand = m.reserve(request);
        stop = m.go_on(&mut touch, hand);
    }
    assert_eq!(stop, TouchStop::Done);
    assert!(Gfp::HIGHUSER_MOVABLE.contains(Gfp::MOVABLE) && !GFP_PGTABLE.contains(Gfp::MOVABLE));
    m.check();
    m.end(held.len() as u64);
}

#[test]
fn a_frame_that_is_not_needed_any_more_is_given_back() {
    let mut m = Machine::new(rules_4_20());
    let vpn = m.mmap(2);
    m.touch(vpn, 1, true);
    let held = m.exhaust();
    let mut touch = m.begin(vpn + 1, 1, true);
    let TouchStop::NeedPage(request) = m.go_on(&mut touch, None) else { panic!() };
    // Meanwhile another thread faults the same page in.
    let (back, held) = held.split_at(100);
    back.iter().for_each(|pfn| m.give(*pfn));
    m.mm.drain_pcp_all();
    m.touch(vpn + 1, 1, true);
    let hand = m.reserve(request);
    assert_eq!(m.go_on(&mut touch, hand), TouchStop::Done);
    m.check();
    m.end(held.len() as u64);
}

#[test]
fn the_quantum_ends_a_run_of_faults() {
    let mut m = Machine::new(rules_4_20());
    let vpn = m.mmap(512);
    m.touch(vpn, 1, true);
    m.mm.take_cpu_ns();
    let mut touch = m.begin(vpn, 512, true);
    touch.quantum_ns = 100_000;
    assert_eq!(m.go_on(&mut touch, None), TouchStop::Quantum);
    let (done, used) = (m.event(VmEvent::Pgfault) - 1, m.mm.cpu_ns());
    assert_eq!(touch.vpn, vpn + 1 + done as u32, "the first page was there and costs nothing");
    // It stops with the first fault that ends beyond the quantum; no fault costs more than 10 us here.
    assert!(used > 100_000 && used < 110_000, "{used} ns");
    touch.quantum_ns = u64::MAX / 2;
    assert_eq!(m.go_on(&mut touch, None), TouchStop::Done);
    assert_eq!(m.event(VmEvent::Pgfault), 512);
}

#[test]
fn an_access_outside_every_area_stops_there() {
    let mut m = Machine::new(rules_4_20());
    let vpn = m.mmap(10);
    let mut touch = m.begin(vpn, 11, true);
    assert_eq!(m.go_on(&mut touch, None), TouchStop::NoMapping);
    assert_eq!((touch.vpn, m.rss()), (vpn + 10, 10));
}

#[test]
fn unmapping_frees_page_tables_that_serve_no_area() {
    let mut m = Machine::new(rules_4_20());
    let (region, env, space) = (PAGEBLOCK_PAGES, m.env, m.space);
    let vpn = m.mmap(4 * region);
    m.touch(vpn, 4 * region, true);
    assert_eq!(m.mm.spaces[space].pgtable_pages(), 4 + 2);
    // Half a region: its table still serves the other half.
    m.mm.munmap(&env, space, vpn, region / 2);
    assert_eq!(m.mm.spaces[space].pgtable_pages(), 4 + 2);
    m.mm.munmap(&env, space, vpn + region / 2, region / 2);
    assert_eq!(m.mm.spaces[space].pgtable_pages(), 3 + 2);
    // A hole in the middle: two areas, and the tables of the hole are gone.
    m.mm.munmap(&env, space, vpn + 2 * region, region);
    assert_eq!(m.mm.spaces[space].vmas().len(), 2);
    assert_eq!((m.mm.spaces[space].pgtable_pages(), m.rss()), (2 + 2, u64::from(2 * region)));
    // Dropping contents keeps areas and tables.
    m.mm.madvise(&env, space, vpn + region, 3 * region, Advice::DontNeed);
    assert_eq!((m.mm.spaces[space].pgtable_pages(), m.rss()), (2 + 2, 0));
    m.check();
    m.mm.munmap(&env, space, vpn, 4 * region);
    assert_eq!(m.mm.spaces[space].pgtable_pages(), 0);
    m.end(0);
}

#[test]
fn a_space_that_exits_leaves_its_id_to_the_next() {
    let mut m = Machine::new(rules_4_20());
    let (env, other) = (m.env, m.mm.space_create());
    m.mm.space_exit(&env, other);
    assert_eq!(m.mm.space_create(), other);
    assert_eq!(m.mm.spaces.live().count(), 2);
}
