//! Pages on their way to swap and back; migration.

use rules::{Rules, SlotOfWritten, SwapReadahead, SwapinLru, SwapinWorkingset};
use units::{NodeId, Pfn};

use crate::anon::testing::{Machine, rules_4_20};
use crate::anon::{Advice, Slot, TouchStop};
use crate::stat::{NodeStat, VmEvent};
use crate::{BioTarget, Effect, Frame, Kind};

/// A machine with `pages` pages mapped and swap for many more.
fn machine(rules: Rules, pages: u32) -> (Machine, u32) {
    let mut m = Machine::new(rules);
    m.add_swap(4096, false);
    let vpn = m.mmap(pages);
    m.touch(vpn, pages, true);
    (m, vpn)
}

/// Swaps pages out and drops them from memory.
fn evict(m: &mut Machine, vpns: std::ops::Range<u32>) {
    let frames: Vec<Pfn> = vpns.map(|vpn| (m.pfn(vpn), assert!(m.swap_out(vpn))).0).collect();
    m.finish_io();
    frames.into_iter().for_each(|pfn| m.drop_cached(pfn));
}

#[test]
fn a_page_goes_to_swap_and_comes_back() {
    let (mut m, vpn) = machine(rules_4_20(), 1);
    let (pfn, free) = (m.pfn(vpn), m.free());
    assert!(m.swap_out(vpn));
    assert_eq!((m.rss(), m.mm.spaces[m.space].swap_pages()), (0, 1));
    assert_eq!((m.gauge(NodeStat::Writeback), m.gauge(NodeStat::SwapCached), m.gauge(NodeStat::AnonMapped)), (1, 1, 0));
    // The first free cluster is number 1: slot 256, 8 sectors a slot, behind sector 2048.
    assert_eq!(m.bios(), [(pfn, 2048 + 256 * 8, true)]);
    m.check();
    let env = m.env;
    m.mm.end_swap_write(&env, pfn, true);
    assert!(m.mm.mincore(m.space, vpn), "still in the swap cache");
    m.drop_cached(pfn);
    assert_eq!((m.free(), m.event(VmEvent::Pswpout)), (free + 1, 1));
    assert!(!m.mm.mincore(m.space, vpn));
    m.check();

    let mut touch = m.begin(vpn, 1, true);
    let TouchStop::Wait(read) = m.go_on(&mut touch, None) else { panic!() };
    assert_eq!((m.event(VmEvent::Pgmajfault), m.event(VmEvent::Pswpin)), (1, 1));
    assert_eq!(m.go_on(&mut touch, None), TouchStop::Wait(read), "still being read");
    assert_eq!(m.bios(), [(read, 2048 + 256 * 8, false)]);
    m.mm.end_swap_read(&env, read, true);
    let mut effects = Vec::new();
    m.mm.effects.take_into(&mut effects);
    assert_eq!(effects, [Effect::WakePage(read)]);
    assert_eq!(m.go_on(&mut touch, None), TouchStop::Done);
    assert_eq!(m.event(VmEvent::Pgmajfault), 1);
    assert_eq!(m.event(VmEvent::Pgfault), 2, "the first touch and this one");
    assert_eq!(m.mm.swap_free_pages(), 4096, "a write gives the slot up");
    assert!(m.mm.frames[read].has(Frame::ACTIVE | Frame::WORKINGSET | Frame::DIRTY));
    m.check();
    m.end(0);
}

#[test]
fn a_read_that_its_caller_holds_is_submitted_by_it_and_who_reads_the_working_set_can_tell() {
    for workingset in [false, true] {
        let (mut m, vpn) = machine(rules_4_20(), 1);
        evict(&mut m, vpn..vpn + 1);
        let env = m.env;
        let mut touch = m.begin(vpn, 1, false);
        m.env.task.holds_reads = true;
        let TouchStop::Wait(pfn) = m.go_on(&mut touch, None) else { panic!() };
        let mut effects = Vec::new();
        m.mm.effects.take_into(&mut effects);
        let [Effect::HeldRead(bio)] = effects[..] else { panic!("{effects:?}") };
        assert_eq!((bio.target, bio.write), (BioTarget::Swap { pfn }, false));
        assert!(m.mm.frames[pfn].has(Frame::LOCKED), "until it is read");
        if !workingset {
            m.mm.frames[pfn].clear(Frame::WORKINGSET);
        }
        assert_eq!(m.mm.reads_workingset(&bio), workingset);
        m.env = env;
        assert_eq!(m.go_on(&mut touch, None), TouchStop::Wait(pfn));
        assert!(m.bios().is_empty(), "once is enough");
        m.mm.submit(&env, bio);
        assert_eq!(m.finish_io(), 1);
        assert_eq!(m.go_on(&mut touch, None), TouchStop::Done);
        assert_eq!((m.event(VmEvent::Pswpin), m.event(VmEvent::Pgmajfault)), (1, 1));
        m.check();
        m.end(0);
    }
}

#[test]
fn a_page_that_is_only_read_keeps_its_slot_and_needs_no_second_write() {
    let (mut m, vpn) = machine(rules_4_20(), 1);
    evict(&mut m, vpn..vpn + 1);
    let mut touch = m.begin(vpn, 1, false);
    let TouchStop::Wait(pfn) = m.go_on(&mut touch, None) else { panic!() };
    m.finish_io();
    assert_eq!(m.go_on(&mut touch, None), TouchStop::Done);
    assert_eq!(m.mm.swap_free_pages(), 4095);
    assert!(m.swap_out(vpn), "it has a slot");
    assert!(m.bios().is_empty() && !m.mm.frames[pfn].has(Frame::WRITEBACK), "the slot holds the same contents");
    m.touch(vpn, 1, false);
    m.touch(vpn, 1, true);
    assert_eq!(m.mm.swap_free_pages(), 4096, "the first write gives it up");
    m.check();
    m.end(0);
}

#[test]
fn since_5_19_a_written_page_keeps_its_slot_and_is_written_to_it_again() {
    let (mut m, vpn) = machine(Rules { slot_of_written: SlotOfWritten::Kept, ..rules_4_20() }, 1);
    evict(&mut m, vpn..vpn + 1);
    let mut touch = m.begin(vpn, 1, false);
    let TouchStop::Wait(pfn) = m.go_on(&mut touch, None) else { panic!() };
    m.finish_io();
    assert_eq!(m.go_on(&mut touch, None), TouchStop::Done);
    m.touch(vpn, 1, true);
    assert_eq!(m.mm.swap_free_pages(), 4095, "the page still has it");
    assert!(m.mm.frames[pfn].has(Frame::SWAPCACHE | Frame::DIRTY));
    m.check();
    assert!(m.swap_out(vpn), "it has a slot");
    assert_eq!(m.bios().len(), 1, "whose contents are out of date");
    let env = m.env;
    m.mm.end_swap_write(&env, pfn, true);
    m.end(0);
}

#[test]
fn the_window_reads_neighbours_and_hits_are_counted() {
    let (mut m, vpn) = machine(rules_4_20(), 16);
    evict(&mut m, vpn..vpn + 16);
    // Slots 256..272. Page 1 is slot 257, not beside slot 0 of the last window: a window of one.
    let mut touch = m.begin(vpn + 1, 1, false);
    assert!(matches!(m.go_on(&mut touch, None), TouchStop::Wait(_)));
    assert_eq!((m.finish_io(), m.event(VmEvent::SwapRa)), (1, 0));
    assert_eq!(m.go_on(&mut touch, None), TouchStop::Done);
    // Page 2 is beside it: two slots, aligned: 258 and 259.
    let mut touch = m.begin(vpn + 2, 2, false);
    assert!(matches!(m.go_on(&mut touch, None), TouchStop::Wait(_)));
    assert_eq!((m.finish_io(), m.event(VmEvent::SwapRa)), (2, 1));
    assert_eq!(m.go_on(&mut touch, None), TouchStop::Done);
    assert_eq!((m.event(VmEvent::SwapRaHit), m.event(VmEvent::Pgmajfault)), (1, 2));
    // One hit: 1 + 2 rounded up to 4: slots 260..264.
    assert_eq!(pages_read(&mut m, vpn + 4), 4);
    m.check();
    m.end(0);
}

/// Pages that a fault on this one reads.
fn pages_read(m: &mut Machine, vpn: u32) -> usize {
    let mut touch = m.begin(vpn, 1, false);
    assert!(matches!(m.go_on(&mut touch, None), TouchStop::Wait(_)));
    let read = m.finish_io();
    assert_eq!(m.go_on(&mut touch, None), TouchStop::Done);
    read
}

#[test]
fn the_fault_makes_a_page_from_swap_active_from_4_8_to_5_8() {
    for swapin_lru in [SwapinLru::AsRead, SwapinLru::Active] {
        let (mut m, vpn) = machine(Rules { swapin_lru, ..rules_4_20() }, 1);
        evict(&mut m, vpn..vpn + 1);
        assert_eq!(pages_read(&mut m, vpn), 1);
        let frame = m.mm.frames[m.pfn(vpn)];
        assert_eq!(frame.has(Frame::ACTIVE), swapin_lru == SwapinLru::Active);
        m.check();
        m.end(0);
    }
}

#[test]
fn until_3_3_all_of_a_cluster_is_read_up_to_a_free_slot() {
    let (mut m, vpn) = machine(Rules { swap_readahead: SwapReadahead::Cluster, ..rules_4_20() }, 16);
    evict(&mut m, vpn..vpn + 16);
    // Slots 256..272. Page 1 is in the first cluster of eight, whatever was used before.
    assert_eq!(pages_read(&mut m, vpn + 1), 8);
    // Page 12 gives its slot, 268, back: 264 to 267 are left on this side of it.
    let (env, space) = (m.env, m.space);
    m.mm.madvise(&env, space, vpn + 12, 1, Advice::DontNeed);
    assert_eq!(pages_read(&mut m, vpn + 9), 4);
    m.check();
    m.end(0);
}

#[test]
fn readahead_takes_its_frames_from_the_caller_when_memory_is_short() {
    let (mut m, vpn) = machine(rules_4_20(), 8);
    evict(&mut m, vpn..vpn + 8);
    m.mm.swap.readahead_hits(1); // a window of four: slots 256..260
    let held = m.exhaust();
    let mut touch = m.begin(vpn, 1, false);
    let mut stop = m.go_on(&mut touch, None);
    for _ in 0..4 {
        let TouchStop::NeedPage(request) = stop else { panic!("{stop:?}") };
        assert_eq!(request.gfp, units::Gfp::HIGHUSER_MOVABLE);
        let hand = m.reserve(request);
        stop = m.go_on(&mut touch, hand);
    }
    assert!(matches!(stop, TouchStop::Wait(_)));
    assert_eq!((m.finish_io(), m.event(VmEvent::Pgmajfault)), (4, 1));
    assert_eq!(m.go_on(&mut touch, None), TouchStop::Done);
    m.check();
    m.end(held.len() as u64);
}

#[test]
fn a_page_that_is_reclaimed_while_its_window_is_read_is_read_again() {
    let (mut m, vpn) = machine(rules_4_20(), 8);
    evict(&mut m, vpn..vpn + 8);
    m.mm.swap.readahead_hits(1); // a window of four: slots 256..260
    let held = m.exhaust();
    let mut touch = m.begin(vpn, 1, false);
    let TouchStop::NeedPage(request) = m.go_on(&mut touch, None) else { panic!("memory is short") };
    let hand = m.reserve(request);
    let TouchStop::NeedPage(_) = m.go_on(&mut touch, hand) else { panic!("three more") };
    // While the task reclaims for the second page, the first is read, and somebody takes it away again.
    let (wanted, env) = (m.bios()[0].0, m.env);
    m.mm.end_swap_read(&env, wanted, true);
    m.drop_cached(wanted);
    let mut stop = TouchStop::NeedPage(request);
    for _ in 0..4 {
        let TouchStop::NeedPage(request) = stop else { panic!("{stop:?}") };
        let hand = m.reserve(request);
        stop = m.go_on(&mut touch, hand);
    }
    assert!(matches!(stop, TouchStop::Wait(_)), "three neighbours and the page once more: {stop:?}");
    assert_eq!(m.finish_io(), 4);
    assert_eq!((m.go_on(&mut touch, None), m.event(VmEvent::Pgmajfault)), (TouchStop::Done, 1));
    m.check();
    m.end(held.len() as u64);
}

#[test]
fn shadows_are_kept_where_anonymous_refaults_are_detected() {
    for (rules, refaults) in [(rules_4_20(), 0), (Rules::newest(), 1)] {
        let (mut m, vpn) = machine(rules, 1);
        let pfn = m.pfn(vpn);
        assert!(m.swap_out(vpn));
        m.finish_io();
        m.mm.lru_isolate(pfn);
        let shadow = m.mm.workingset_eviction(pfn);
        m.mm.lru_forget_isolated(pfn);
        m.mm.swapcache_remove(&m.env.clone(), pfn, shadow);
        m.give(pfn);
        let mut touch = m.begin(vpn, 1, false);
        assert!(matches!(m.go_on(&mut touch, None), TouchStop::Wait(_)));
        assert_eq!(m.gauge(NodeStat::WorkingsetRefaultAnon), refaults);
        m.finish_io();
        assert_eq!(m.go_on(&mut touch, None), TouchStop::Done);
        m.end(0);
    }
}

#[test]
fn until_5_17_every_page_that_comes_back_is_of_the_working_set() {
    for (swapin_workingset, expected) in [(SwapinWorkingset::EveryPage, true), (SwapinWorkingset::Refaults, false)] {
        let (mut m, vpn) = machine(Rules { swapin_workingset, ..Rules::newest() }, 1);
        evict(&mut m, vpn..vpn + 1);
        let TouchStop::Wait(pfn) = m.go_on(&mut m.begin(vpn, 1, false), None) else { panic!() };
        assert_eq!(m.mm.frames[pfn].has(Frame::WORKINGSET), expected);
        m.finish_io();
    }
}

#[test]
fn a_read_that_fails_kills_the_access() {
    let (mut m, vpn) = machine(rules_4_20(), 1);
    evict(&mut m, vpn..vpn + 1);
    let mut touch = m.begin(vpn, 1, false);
    let TouchStop::Wait(pfn) = m.go_on(&mut touch, None) else { panic!() };
    let env = m.env;
    m.bios();
    m.mm.end_swap_read(&env, pfn, false);
    assert_eq!(m.go_on(&mut touch, None), TouchStop::IoError);
    m.check();
    m.end(0);
}

#[test]
fn a_page_that_comes_back_while_reclaim_writes_it_is_taken_for_one_read_ahead_and_stays_where_it_is() {
    for comes_back in [false, true] {
        let (mut m, vpn) = machine(Rules::newest(), 1);
        let pfn = m.pfn(vpn);
        assert!(m.swap_out(vpn));
        m.mm.frames[pfn].set(Frame::RECLAIM);
        if comes_back {
            assert_eq!(m.go_on(&mut m.begin(vpn, 1, false), None), TouchStop::Done);
        }
        m.finish_io();
        let (hits, rotated) = (m.event(VmEvent::SwapRaHit), m.event(VmEvent::Pgrotated));
        assert_eq!((hits, rotated), if comes_back { (1, 0) } else { (0, 1) });
    }
}

#[test]
fn a_write_that_fails_leaves_the_page_dirty() {
    let (mut m, vpn) = machine(rules_4_20(), 1);
    let (env, pfn) = (m.env, m.pfn(vpn));
    assert!(m.swap_out(vpn));
    m.mm.frames[pfn].set(Frame::RECLAIM);
    m.mm.end_swap_write(&env, pfn, false);
    assert!(m.mm.frames[pfn].has(Frame::DIRTY) && !m.mm.frames[pfn].has_any(Frame::RECLAIM | Frame::WRITEBACK));
    m.bios();
    m.check();
    m.end(0);
}

#[test]
fn a_page_unmapped_during_its_io_is_freed_when_that_ends() {
    let (mut m, vpn) = machine(rules_4_20(), 9);
    evict(&mut m, vpn..vpn + 8);
    assert!(m.swap_out(vpn + 8)); // its write is in flight
    let mut touch = m.begin(vpn, 1, false); // and a read
    assert!(matches!(m.go_on(&mut touch, None), TouchStop::Wait(_)));
    let (env, space, free) = (m.env, m.space, m.free());
    m.mm.madvise(&env, space, vpn, 9, Advice::DontNeed);
    assert_eq!(m.free(), free);
    m.check();
    assert_eq!(m.finish_io(), 2);
    assert_eq!(m.free(), free + 2);
    assert_eq!(m.mm.swap_free_pages(), 4096);
    m.end(0);
}

#[test]
fn by_address_the_pages_around_are_read_wherever_their_slots_are() {
    let (mut m, vpn) = machine(Rules { swap_readahead: SwapReadahead::ByAddress, ..rules_4_20() }, 16);
    // The farther a page is in the area, the lower its slot.
    (0..16).rev().for_each(|page| evict(&mut m, vpn + page..vpn + page + 1));
    // A new area has four hits: a window of 8, from three pages before the fault, less what lies before the area.
    let mut touch = m.begin(vpn + 1, 1, false);
    assert!(matches!(m.go_on(&mut touch, None), TouchStop::Wait(_)));
    assert_eq!((m.finish_io(), m.event(VmEvent::SwapRa)), (6, 5));
    assert_eq!(m.go_on(&mut touch, None), TouchStop::Done);
    m.touch(vpn, 6, false);
    assert_eq!((m.event(VmEvent::SwapRaHit), m.event(VmEvent::Pgmajfault)), (5, 1), "pages 0 to 5 are there");
    // Five hits, and the last fault was on the page before: 8 pages from this one on.
    let mut touch = m.begin(vpn + 6, 1, false);
    assert!(matches!(m.go_on(&mut touch, None), TouchStop::Wait(_)));
    assert_eq!(m.finish_io(), 8);
    assert_eq!(m.go_on(&mut touch, None), TouchStop::Done);
    m.check();
    m.end(0);
}

#[test]
fn a_write_fault_while_the_page_is_written_keeps_the_slot_and_dirties_the_page() {
    let (mut m, vpn) = machine(rules_4_20(), 1);
    let pfn = m.pfn(vpn);
    assert!(m.swap_out(vpn));
    m.touch(vpn, 1, true);
    assert_eq!(m.pfn(vpn), pfn);
    assert!(m.mm.frames[pfn].has(Frame::DIRTY | Frame::SWAPCACHE | Frame::WRITEBACK));
    m.check();
    m.finish_io();
    assert!(m.swap_out(vpn));
    assert_eq!(m.bios().len(), 1, "it is written again");
    let env = m.env;
    m.mm.end_swap_write(&env, pfn, true);
    m.end(0);
}

#[test]
fn a_swap_more_than_half_full_takes_slots_back_from_pages_in_memory() {
    let mut m = Machine::new(rules_4_20());
    m.add_swap(8, true);
    let vpn = m.mmap(16);
    m.touch(vpn, 16, true);
    evict(&mut m, vpn..vpn + 4);
    let mut touch = m.begin(vpn, 1, false);
    assert!(matches!(m.go_on(&mut touch, None), TouchStop::Wait(_)));
    m.finish_io();
    assert_eq!(m.go_on(&mut touch, None), TouchStop::Done);
    // 4 of 8 free is not "full" (free * 2 < total): the slot stays with the page.
    assert_eq!(m.mm.swap_free_pages(), 4);
    evict(&mut m, vpn + 4..vpn + 5);
    assert_eq!(m.mm.swap_free_pages(), 3);
    // Mapping one of another pair from the cache now gives its slot up at once.
    let mut touch = m.begin(vpn + 1, 1, false);
    assert!(matches!(m.go_on(&mut touch, None), TouchStop::Wait(_)));
    m.finish_io();
    assert_eq!(m.go_on(&mut touch, None), TouchStop::Done);
    assert_eq!(m.mm.swap_free_pages(), 4);
    // The rest: slots 6, 7, 8, then the one given up; the first page's slot is taken back on the way round.
    let more: Vec<bool> = (5..10).map(|n| m.swap_out(vpn + n)).collect();
    m.finish_io();
    m.check();
    assert_eq!(more, [true, true, true, true, false]);
    assert_eq!(m.mm.swap_free_pages(), 0);
    m.end(0);
}

#[test]
fn shadows_go_by_their_nodes_above_an_eighth_of_the_pages_on_the_lists() {
    let mut m = Machine::new(Rules::newest());
    m.add_swap(1024, true);
    let vpn = m.mmap(200);
    m.touch(vpn, 200, true);
    // Slots 1 to 191: three nodes of 64 have shadows alone. 9 pages are left on the lists, an eighth of which is one node.
    evict(&mut m, vpn..vpn + 191);
    let node = NodeId(0);
    assert_eq!(m.mm.stat.node(node, NodeStat::WorkingsetNodes), 3);
    assert_eq!(m.mm.swap_shadow_nodes_count(node), 2);
    let done = m.mm.swap_shadow_nodes_scan(node, 2);
    assert_eq!((done.scanned, done.freed, m.mm.swap_shadow_nodes_count(node)), (2, 2, 0));
    assert_eq!(m.mm.stat.node(node, NodeStat::WorkingsetNodereclaim), 2);
    m.check();
    m.end(0);
}

#[test]
fn devices_are_used_by_priority_and_equal_ones_in_turn() {
    let mut m = Machine::new(rules_4_20());
    let spec =
        |device, priority, pages| crate::swap::SwapSpec { device, start_sector: 0, pages, priority, rotational: true };
    m.mm.swap.add_device(&spec(0, -2, 100));
    m.mm.swap.add_device(&spec(1, 5, 3)); // two usable slots each
    m.mm.swap.add_device(&spec(2, 5, 3));
    let vpn = m.mmap(6);
    m.touch(vpn, 6, true);
    (0..6).for_each(|n| assert!(m.swap_out(vpn + n)));
    let used: Vec<u32> = m.mm.swap.devices().iter().map(|d| d.used_pages()).collect();
    assert_eq!(used, [2, 2, 2], "the low one only after both others are full");
    let mut effects = Vec::new();
    m.mm.effects.take_into(&mut effects);
    let order: Vec<u16> = effects.iter().map(|e| if let Effect::Submit(bio) = e { bio.device } else { 99 }).collect();
    assert_eq!(order, [1, 2, 1, 2, 0, 0]);
}

#[test]
fn a_migrated_page_is_found_where_it_went() {
    let mut m = Machine::with_nodes(2, 32, rules_4_20());
    m.add_swap(100, false);
    let vpn = m.mmap(3);
    m.touch(vpn, 3, true);
    assert!(m.swap_out(vpn + 1)); // unmapped, in the swap cache
    m.finish_io();
    let (env, frames) = (m.env, [m.pfn(vpn), m.mm.swap.cached(crate::swap::SwapEntry(1)).expect("cached")]);
    for old in frames {
        let gfp = units::Gfp::HIGHUSER_MOVABLE.with(units::Gfp::THISNODE);
        let request = crate::AllocRequest { gfp, order: units::Order(0), node: NodeId(1) };
        let new = m.mm.alloc_pages(&env, request).expect("node 1 is empty");
        assert!(m.mm.lru_isolate(old));
        m.mm.migrate_anon(old, new);
        m.mm.lru_add(&env, new);
        m.mm.lru_forget_isolated(old);
        m.give(old);
        assert_eq!(m.mm.frames[new].kind(), Kind::Anon);
    }
    m.check();
    assert_eq!(m.mm.stat.node(NodeId(1), NodeStat::AnonMapped), 1);
    assert_eq!(m.mm.stat.node(NodeId(1), NodeStat::SwapCached), 1);
    m.touch(vpn, 3, true);
    assert_eq!(m.event(VmEvent::Pgmajfault), 0, "the swap cache knows the new frame");
    assert!(matches!(m.mm.slot_of(m.space, vpn + 1), Slot::Page(pfn) if m.mm.node_of(pfn) == NodeId(1)));
    m.end(0);
}
