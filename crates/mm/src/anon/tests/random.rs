//! Random sequences of everything that happens to anonymous pages, recounted after each step.

use proptest::prelude::*;
use rules::Rules;
use units::{Gfp, PAGEBLOCK_ORDER, PAGEBLOCK_PAGES};

use crate::anon::testing::{Machine, rules_4_20};
use crate::anon::{Advice, Region, Slot, TouchStop};
use crate::{AllocRequest, Frame, Kind};

const SPAN: u32 = 4 * PAGEBLOCK_PAGES;

#[derive(Clone, Debug)]
enum Op {
    Touch(u32, u32, bool),
    Unmap(u32, u32),
    DontNeed(u32, u32),
    Map(u32),
    SwapOut(u32, u32),
    Drop,
    FinishIo,
    Migrate(u32),
    Split(u32),
    Advise(u32, u32, bool),
    Collapse,
}

fn op() -> impl Strategy<Value = Op> {
    let page = 0..SPAN;
    let run = 1u32..700;
    prop_oneof![
        4 => (page.clone(), run.clone(), any::<bool>()).prop_map(|(a, b, w)| Op::Touch(a, b, w)),
        1 => (page.clone(), run.clone()).prop_map(|(a, b)| Op::Unmap(a, b)),
        1 => (page.clone(), run.clone()).prop_map(|(a, b)| Op::DontNeed(a, b)),
        1 => (1u32..SPAN).prop_map(Op::Map),
        3 => (page.clone(), 1u32..40).prop_map(|(a, b)| Op::SwapOut(a, b)),
        2 => Just(Op::Drop),
        2 => Just(Op::FinishIo),
        1 => page.clone().prop_map(Op::Migrate),
        1 => page.clone().prop_map(Op::Split),
        1 => (page, run, any::<bool>()).prop_map(|(a, b, h)| Op::Advise(a, b, h)),
        1 => Just(Op::Collapse),
    ]
}

/// The mapped page at `vpn`, with the head of a huge page for all of its pages.
fn mapped(m: &Machine, vpn: u32) -> Option<units::Pfn> {
    let Slot::Page(pfn) = m.mm.slot_of(m.space, vpn) else { return None };
    match m.mm.spaces[m.space].tables.region(vpn) {
        Region::Huge { pfn, .. } => Some(pfn),
        _ => Some(pfn),
    }
}

/// Accesses a range as a task does: waits for I/O, gets frames, gives up at the end of the area.
fn touch(m: &mut Machine, vpn: u32, pages: u32, write: bool) {
    let mut touch = m.begin(vpn, pages, write);
    let mut hand = None;
    for _ in 0..10_000 {
        match m.go_on(&mut touch, hand.take()) {
            TouchStop::Wait(_) => assert!(m.finish_io() > 0, "waits for nothing"),
            TouchStop::NeedPage(request) => hand = Some(m.reserve(request).expect("the machine is large enough")),
            TouchStop::NeedHuge(_) | TouchStop::Quantum => {}
            TouchStop::Done | TouchStop::NoMapping => return,
            stop => panic!("{stop:?} of anonymous memory that is read without errors"),
        }
    }
    panic!("an access does not end");
}

fn swap_out(m: &mut Machine, vpn: u32) {
    let Some(pfn) = mapped(m, vpn) else { return };
    let env = m.env;
    let frame = m.mm.frames[pfn];
    if frame.has_any(Frame::WRITEBACK | Frame::LOCKED) {
        return;
    }
    if frame.order() == PAGEBLOCK_ORDER {
        assert!(m.mm.split_huge_page(&env, pfn));
    }
    m.swap_out(vpn);
}

fn drop_clean_pages(m: &mut Machine) {
    for pfn in (0..m.mm.frames.len() as u32).map(units::Pfn) {
        let frame = m.mm.frames[pfn];
        let busy = Frame::MAPPED | Frame::DIRTY | Frame::WRITEBACK | Frame::LOCKED;
        if frame.kind() == Kind::Anon && frame.has(Frame::SWAPCACHE) && !frame.has_any(busy) {
            m.drop_cached(pfn);
        }
    }
}

fn migrate(m: &mut Machine, vpn: u32) {
    let Some(old) = mapped(m, vpn) else { return };
    let (env, order) = (m.env, m.mm.frames[old].order());
    if m.mm.frames[old].has_any(Frame::WRITEBACK | Frame::LOCKED) {
        return;
    }
    let Some(new) = m.mm.alloc_pages(&env, AllocRequest { gfp: Gfp::HIGHUSER_MOVABLE, order, node: env.node }) else {
        return;
    };
    assert!(m.mm.lru_isolate(old));
    m.mm.migrate_anon(old, new);
    m.mm.lru_add(&env, new);
    m.mm.lru_forget_isolated(old);
    m.mm.free_pages(&env, old, order);
}

/// Lets khugepaged look at whatever it comes to next, and make it huge if a free block is at hand.
fn collapse(m: &mut Machine) {
    let Some(target) = m.mm.khugepaged_scan_mm_slot(4096).target else { return };
    let env = m.env;
    let request = AllocRequest { gfp: Gfp::TRANSHUGE_LIGHT, order: PAGEBLOCK_ORDER, node: env.node };
    if let Some(pfn) = m.mm.alloc_pages(&env, request) {
        m.mm.collapse_huge_page(&env, target, pfn);
    }
}

fn apply(m: &mut Machine, base: u32, op: &Op) {
    let (env, space) = (m.env, m.space);
    let at = |page: u32, run: u32| (base + page, run.min(SPAN - page));
    match *op {
        Op::Touch(page, run, write) => {
            let (vpn, pages) = at(page, run);
            touch(m, vpn, pages, write);
        }
        Op::Unmap(page, run) => {
            let (vpn, pages) = at(page, run);
            m.mm.munmap(&env, space, vpn, pages);
        }
        Op::DontNeed(page, run) => {
            let (vpn, pages) = at(page, run);
            m.mm.madvise(&env, space, vpn, pages, Advice::DontNeed);
        }
        Op::Map(pages) => {
            m.mm.mmap_anon(space, pages, 1);
        }
        Op::SwapOut(page, run) => {
            let (vpn, pages) = at(page, run);
            (vpn..vpn + pages).for_each(|vpn| swap_out(m, vpn));
        }
        Op::Drop => drop_clean_pages(m),
        Op::FinishIo => {
            m.finish_io();
        }
        Op::Migrate(page) => migrate(m, base + page),
        Op::Collapse => collapse(m),
        Op::Split(page) => {
            if let Some(pfn) = mapped(m, base + page)
                && m.mm.frames[pfn].order() == PAGEBLOCK_ORDER
            {
                assert!(m.mm.split_huge_page(&env, pfn));
            }
        }
        Op::Advise(page, run, huge) => {
            let (vpn, pages) = at(page, run);
            m.mm.madvise(&env, space, vpn, pages, if huge { Advice::Huge } else { Advice::NoHuge });
        }
    }
}

proptest! {
    #[test]
    fn every_structure_equals_its_recount(
        ops in prop::collection::vec(op(), 1..40),
        newest in any::<bool>(),
        slots in prop_oneof![Just(60u32), Just(5000)],
        rotational in any::<bool>(),
    ) {
        let mut m = Machine::with_thp(if newest { Rules::newest() } else { rules_4_20() });
        m.add_swap(slots, rotational);
        let base = m.mmap(SPAN);
        for op in &ops {
            apply(&mut m, base, op);
            m.check();
        }
        m.end(0);
    }
}
