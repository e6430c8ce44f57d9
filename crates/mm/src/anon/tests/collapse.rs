//! Huge pages of base pages, as khugepaged makes them.

use rules::{CollapsePages, Rules, ThpEffort, ThpEnabled};
use units::{Gfp, NodeId, PAGEBLOCK_ORDER, PAGEBLOCK_PAGES, Pfn, SpaceId};

use crate::anon::testing::{FOREVER, Machine, rules_4_20};
use crate::anon::{Advice, CollapseTarget, KhugepagedScan, Touch, TouchStop};
use crate::stat::{NodeStat, VmEvent};
use crate::{AllocRequest, Effect, Frame, Kind};

const REGION: u32 = PAGEBLOCK_PAGES;
/// What keeps the region at a page from becoming huge.
type Spoil = fn(&mut Machine, u32);
/// Pages of a turn.
const TURN: u32 = 4096;

/// A machine on which faults map base pages, but khugepaged may make huge ones: an area grows by less than a region at a time.
fn machine(rules: Rules) -> Machine {
    let mut m = Machine::new(rules);
    m.mm.tunables.thp_enabled = ThpEnabled::Always;
    m
}

/// Maps `pages` pages in parts of 256 KiB, each of which is written before the next one is there, as a program's heap grows.
fn grow_in(m: &mut Machine, space: SpaceId, pages: u32) -> u32 {
    let env = m.env;
    let parts: Vec<u32> = (0..pages)
        .step_by(64)
        .map(|at| {
            let vpn = m.mm.mmap_anon(space, 64.min(pages - at), 1);
            let mut touch = Touch::new(space, vpn, 64.min(pages - at), true, FOREVER);
            assert_eq!(m.mm.touch(&env, &mut touch, None), TouchStop::Done);
            vpn
        })
        .collect();
    parts[0]
}

/// The same in the machine's own space.
fn grow(m: &mut Machine, pages: u32) -> u32 {
    let space = m.space;
    grow_in(m, space, pages)
}

fn huge(m: &mut Machine) -> Pfn {
    let request = AllocRequest { gfp: Gfp::TRANSHUGE_LIGHT, order: PAGEBLOCK_ORDER, node: NodeId(0) };
    let env = m.env;
    m.mm.alloc_pages(&env, request).expect("the machine has free blocks")
}

/// Makes huge pages of whatever a turn finds; how many there were.
fn turn(m: &mut Machine) -> u32 {
    let (mut progress, mut made) = (0, 0);
    while progress < TURN && m.mm.khugepaged_has_work() {
        let scan = m.mm.khugepaged_scan_mm_slot(TURN - progress);
        progress += scan.progress;
        if let Some(target) = scan.target {
            let (env, pfn) = (m.env, huge(m));
            made += u32::from(m.mm.collapse_huge_page(&env, target, pfn));
        } else if m.mm.khugepaged_between_rounds() {
            break;
        }
    }
    made
}

#[test]
fn a_region_of_base_pages_becomes_one_huge_page() {
    let mut m = machine(rules_4_20());
    let vpn = grow(&mut m, 3 * REGION);
    assert_eq!((m.rss(), m.gauge(NodeStat::AnonThps)), (1536, 0), "no fault saw a whole region");
    let (tables, free) = (m.mm.spaces[m.space].pgtable_pages(), m.free());
    assert_eq!(turn(&mut m), 3);
    // What was mapped is, the page tables are in deposit, and 3 x 512 pages went for 3 huge ones.
    assert_eq!((m.rss(), m.gauge(NodeStat::AnonThps), m.gauge(NodeStat::AnonMapped)), (1536, 3, 1536));
    assert_eq!((m.mm.spaces[m.space].pgtable_pages(), m.free()), (tables, free));
    let first = m.pfn(vpn);
    assert_eq!((m.mm.frames[first].order(), m.mm.anon_home(first)), (PAGEBLOCK_ORDER, (m.space, vpn)));
    assert_eq!(m.pfn(vpn + 511), first.offset(511));
    assert_eq!(m.gauge(NodeStat::ActiveAnon), 1536);
    m.check();
    let faults = m.event(VmEvent::Pgfault);
    m.touch(vpn, 3 * REGION, true);
    assert_eq!(m.event(VmEvent::Pgfault), faults, "all of it is mapped");
    m.end(0);
}

#[test]
fn what_was_missing_comes_with_it_unless_too_much_is() {
    for (limit, becomes) in [(511, 1), (448, 1), (447, 0)] {
        let mut m = machine(rules_4_20());
        m.mm.tunables.khugepaged_max_ptes_none = limit;
        // 64 pages of a region are there, 448 are not.
        let vpn = m.mm.mmap_anon(m.space, 64, 1);
        m.touch(vpn, 64, true);
        m.mm.mmap_anon(m.space, REGION, 1);
        assert_eq!(turn(&mut m), becomes, "{limit} may be missing");
        assert_eq!(m.rss(), if becomes == 1 { 512 } else { 64 });
        m.check();
        m.end(0);
    }
}

#[test]
fn pages_that_somebody_holds_or_nobody_used_stay_as_they_are() {
    let spoil: [(&str, Spoil); 4] = [
        ("isolated", |m, vpn| assert!(m.mm.lru_isolate(m.pfn(vpn)))),
        ("on swap", |m, vpn| assert!(m.swap_out(vpn))),
        ("unused", |m, vpn| {
            for page in vpn..vpn + REGION {
                let pfn = m.pfn(page);
                m.mm.frames[pfn].clear(Frame::YOUNG | Frame::REFERENCED);
            }
        }),
        ("advised against", |m, vpn| {
            let (env, space) = (m.env, m.space);
            m.mm.madvise(&env, space, vpn, REGION, Advice::NoHuge);
        }),
    ];
    for (how, spoil) in spoil {
        let mut m = machine(rules_4_20());
        m.add_swap(64, false);
        let vpn = grow(&mut m, 2 * REGION);
        spoil(&mut m, vpn);
        assert_eq!(turn(&mut m), 1, "{how}: the other region alone");
        assert_eq!(m.mm.frames[m.pfn(vpn + REGION)].order(), PAGEBLOCK_ORDER, "{how}");
    }
}

#[test]
fn a_region_that_changed_meanwhile_stays_and_the_huge_page_is_freed() {
    let mut m = machine(rules_4_20());
    let vpn = grow(&mut m, REGION);
    let KhugepagedScan { target: Some(target), progress } = m.mm.khugepaged_scan_mm_slot(TURN) else {
        panic!("nothing was found")
    };
    assert_eq!(progress, 1 + REGION, "one for the space, and the region");
    let (env, space) = (m.env, m.space);
    m.mm.munmap(&env, space, vpn, 1);
    let pfn = huge(&mut m);
    assert!(!m.mm.collapse_huge_page(&env, target, pfn));
    assert_eq!((m.rss(), m.gauge(NodeStat::AnonThps)), (511, 0));
    m.check();
    m.end(0);
}

#[test]
fn pages_that_were_only_read_kept_their_region_small_until_3_19() {
    for (rule, becomes) in [(CollapsePages::Any, 1), (CollapsePages::Writable, 0)] {
        let mut m = machine(Rules { collapse_pages: rule, ..rules_4_20() });
        let vpn = grow(&mut m, REGION);
        let pfn = m.pfn(vpn + 5);
        m.mm.frames[pfn].clear(Frame::WRITTEN);
        assert_eq!(turn(&mut m), becomes, "{rule:?}");
        m.end(0);
    }
}

#[test]
fn spaces_wait_their_turn_of_eight_regions_and_leave_when_they_end() {
    let mut m = machine(rules_4_20());
    let (first, env) = (m.space, m.env);
    let second = m.mm.space_create();
    grow_in(&mut m, first, 10 * REGION);
    grow_in(&mut m, second, 2 * REGION);
    let mut effects = Vec::new();
    m.mm.effects.take_into(&mut effects);
    let woken = effects.iter().filter(|effect| matches!(effect, Effect::WakeKhugepaged)).count();
    assert_eq!(woken, 1, "the first space wakes it");
    // Each region is looked at with a call of its own, which counts one more: 7 x 513 leave room for an eighth.
    assert_eq!(turn(&mut m), 8);
    assert_eq!(m.mm.spaces[second].rss_pages(), 1024);
    m.mm.space_exit(&env, first);
    assert_eq!((m.gauge(NodeStat::AnonThps), m.event(VmEvent::ThpSplitPage)), (0, 0), "they came back whole");
    assert_eq!(turn(&mut m), 2);
    m.check();
    m.mm.space_exit(&env, second);
    assert!(!m.mm.khugepaged_has_work());
}

#[test]
fn a_space_that_is_done_is_left_however_little_a_turn_looks_at() {
    let mut m = machine(rules_4_20());
    let env = m.env;
    let second = m.mm.space_create();
    let (first, second_vpn) = (grow(&mut m, REGION), grow_in(&mut m, second, REGION));
    m.mm.madvise(&env, m.space, first, REGION, Advice::NoHuge);
    // A call for one page each: the first space has nothing, the second its region, and the round is over.
    let scans: Vec<KhugepagedScan> = (0..3).map(|_| m.mm.khugepaged_scan_mm_slot(1)).collect();
    assert_eq!(scans.iter().map(|scan| scan.progress).collect::<Vec<_>>(), [2, 513, 1]);
    let found: Vec<bool> = scans.iter().map(|scan| scan.target.is_some()).collect();
    assert_eq!((found, m.mm.khugepaged_between_rounds()), (vec![false, true, false], true));
    let pfn = huge(&mut m);
    assert!(m.mm.collapse_huge_page(&env, scans[1].target.unwrap(), pfn));
    assert_eq!(m.mm.anon_home(pfn), (second, second_vpn));
    m.mm.space_exit(&env, second);
    m.end(0);
}

#[test]
fn a_huge_page_is_asked_for_where_most_of_the_pages_are() {
    let mut m = Machine::with_nodes(2, 64, Rules { thp_effort: ThpEffort::Once, ..rules_4_20() });
    m.mm.tunables.thp_enabled = ThpEnabled::Always;
    m.env.node = NodeId(1);
    let env = m.env;
    grow(&mut m, REGION);
    let target: CollapseTarget = m.mm.khugepaged_scan_mm_slot(TURN).target.expect("a region of base pages");
    let request = m.mm.khugepaged_request(target);
    assert_eq!((request.node, request.order), (NodeId(1), PAGEBLOCK_ORDER));
    assert_eq!(request.gfp, Gfp::TRANSHUGE.with(Gfp::NORETRY).with(Gfp::THISNODE));
    m.mm.tunables.khugepaged_defrag = 0;
    assert_eq!(m.mm.khugepaged_request(target).gfp, Gfp::TRANSHUGE_LIGHT.with(Gfp::THISNODE));
    let pfn = m.mm.alloc_pages(&env, request).unwrap();
    assert!(m.mm.collapse_huge_page(&env, target, pfn));
    assert_eq!((m.mm.frames[pfn].kind(), m.mm.node_of(pfn)), (Kind::Anon, NodeId(1)));
    m.end(0);
}
