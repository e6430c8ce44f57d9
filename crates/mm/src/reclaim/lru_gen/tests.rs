//! Whole steps of the multi-gen LRU on small machines.

use rules::{GenerationStart, LruGenCaps, LruPolicy, Rules, Tunables};
use units::{Gfp, Nanos, Order, Pfn};

use super::super::DEF_PRIORITY;
use super::super::fixture::{LRU, Machine, NODE};
use super::super::{BalancePgdat, ScanControl, Step};
use super::by_kswapd::AgingOfSeveral;
use super::evict::Evicted;
use super::*;
use crate::anon::testing::Machine as AnonMachine;
use crate::anon::{Slot, Touch, TouchStop};
use crate::stat::{NodeStat, VmEvent};
use crate::zone::Wmark;
use crate::{Effect, Env, Frame, Kind, ZoneKind};

fn tunables() -> Tunables {
    Tunables { lru_gen_enabled: LruGenCaps::ALL, ..Tunables::default() }
}

fn machine() -> Machine {
    Machine::tuned(Rules::newest(), tunables())
}

/// As 6.1 has it.
fn by_kswapd() -> Rules {
    Rules { lru_policy: LruPolicy::MultiGenByKswapd, ..Rules::newest() }
}

/// A machine with one space whose `pages` pages were written, and room to swap all of them.
fn written(pages: u32) -> (AnonMachine, u32) {
    let mut m = AnonMachine::with_generations(LruGenCaps::ALL);
    m.add_swap(4096, false);
    let at = m.mmap(pages);
    m.touch(at, pages, true);
    (m, at)
}

fn age(m: &mut AnonMachine) -> bool {
    let (env, mut aging) = (m.env, Aging::new(&m.mm, LRU, true));
    loop {
        if let Aged::Done(begun) = aging.step(&mut m.mm, &env) {
            return begun;
        }
    }
}

/// A thread of the space gets the CPU and accesses a range.
fn run(m: &mut AnonMachine, vpn: u32, pages: u32) {
    m.mm.lru_gen_use_mm(m.space);
    m.touch(vpn, pages, false);
}

/// Takes the accessed bits of a range, as if nobody had used it for a while.
fn forget(m: &mut AnonMachine, vpn: u32, pages: u32) {
    for at in vpn..vpn + pages {
        let pfn = m.pfn(at);
        m.mm.frames[pfn].clear(Frame::YOUNG);
    }
}

/// Generation of a page relative to the youngest one: 0 is the youngest.
fn generations_behind(m: &AnonMachine, vpn: u32) -> u64 {
    let (lrugen, at) = (m.mm.lru_gen(LRU), m.mm.frames[m.pfn(vpn)].lru_gen().expect("it is in a generation"));
    (0..4).find(|behind| gen_of(lrugen.max_seq - behind) == at).expect("there are four")
}

#[test]
fn pages_of_a_fault_are_the_youngest_and_file_pages_join_the_old_end() {
    let (m, at) = written(3);
    assert_eq!(generations_behind(&m, at), 0);
    assert_eq!(m.gauge(NodeStat::ActiveAnon), 3);
    m.check();

    let mut m = machine();
    m.add("a", Kind::File, 0);
    // Generations 0 to 3: the second oldest is the youngest of those that count as inactive.
    assert_eq!(m.frame('a').lru_gen(), Some(1));
    assert_eq!(m.mm.stat.node(NODE, NodeStat::InactiveFile), 1);
    m.check();
}

#[test]
fn the_aging_promotes_what_was_accessed_and_leaves_the_rest_behind() {
    let (mut m, at) = written(1024);
    assert!(age(&mut m), "everything was written: all of it is promoted");
    assert_eq!([generations_behind(&m, at), generations_behind(&m, at + 1023)], [1, 1], "to what is second now");
    run(&mut m, at, 512);
    assert!(age(&mut m));
    assert_eq!([generations_behind(&m, at), generations_behind(&m, at + 512)], [1, 2]);
    assert_eq!((m.gauge(NodeStat::ActiveAnon), m.gauge(NodeStat::InactiveAnon)), (512, 512));
    assert!((0..1024).all(|n| !m.mm.frames[m.pfn(at + n)].has(Frame::YOUNG)));
    m.check();
}

#[test]
fn a_space_that_kept_the_cpu_since_its_last_walk_is_passed_over() {
    for (switched, promoted) in [(false, false), (true, true)] {
        let (mut m, at) = written(512);
        assert!(age(&mut m), "walked in full");
        m.touch(at, 512, false);
        if switched {
            m.mm.lru_gen_use_mm(m.space);
        }
        assert!(age(&mut m));
        let pfn = m.pfn(at);
        assert_eq!(!m.mm.frames[pfn].has(Frame::YOUNG), promoted);
    }
}

#[test]
fn a_table_that_was_hardly_used_is_passed_over_by_the_next_walk() {
    let (mut m, at) = written(1024);
    assert!(age(&mut m), "walked in full");
    // 512 entries are 64 cache lines: 63 accesses do not make the table worth a walk, 64 do.
    run(&mut m, at, 63);
    run(&mut m, at + 512, 64);
    assert!(age(&mut m));
    run(&mut m, at, 1);
    run(&mut m, at + 512, 1);
    assert!(age(&mut m));
    let young = |vpn| m.mm.frames[m.pfn(vpn)].has(Frame::YOUNG);
    assert!(young(at) && !young(at + 512));
}

#[test]
fn the_accessed_bit_of_a_table_saves_the_walk_over_it() {
    for (caps, walked) in [(LruGenCaps::ALL, false), (LruGenCaps::CORE_AND_WALK, true)] {
        let (mut m, at) = written(512);
        m.mm.tunables.lru_gen_enabled = caps;
        assert!(age(&mut m), "a walk in full does not look at the bit of the table");
        m.mm.lru_gen_use_mm(m.space);
        assert!(age(&mut m), "this one takes it");
        let pfn = m.pfn(at);
        m.mm.frames[pfn].set(Frame::YOUNG);
        // The space ran, but not through this table.
        m.mm.lru_gen_use_mm(m.space);
        m.mm.lru_gen_mut(LRU).filters = BloomFilters::default();
        assert!(age(&mut m));
        assert_eq!(!m.mm.frames[pfn].has(Frame::YOUNG), walked);
    }
}

#[test]
fn a_space_that_did_not_run_is_passed_over_and_no_walk_at_all_makes_a_generation_too() {
    let (mut m, at) = written(8);
    assert!(age(&mut m));
    let pfn = m.pfn(at);
    m.mm.frames[pfn].set(Frame::YOUNG);
    assert!(age(&mut m), "the space has not run");
    assert!(m.mm.frames[pfn].has(Frame::YOUNG));
    m.mm.tunables.lru_gen_enabled = LruGenCaps::CORE;
    let before = m.mm.lru_gen(LRU).max_seq;
    assert!(age(&mut m));
    assert_eq!(m.mm.lru_gen(LRU).max_seq, before + 1);
    assert!(m.mm.frames[pfn].has(Frame::YOUNG));
    m.check();
}

#[test]
fn two_walkers_share_one_iteration() {
    let (mut m, _) = written(8);
    let (env, mut one, mut other) = (m.env, Aging::new(&m.mm, LRU, true), Aging::new(&m.mm, LRU, true));
    assert_eq!(one.step(&mut m.mm, &env), Aged::More, "takes the space");
    assert_eq!(other.step(&mut m.mm, &env), Aged::Done(true), "finds no other and ends the iteration");
    assert_eq!(one.step(&mut m.mm, &env), Aged::More, "its generation is not the youngest any more");
    assert_eq!(one.step(&mut m.mm, &env), Aged::Done(false));
    assert_eq!(m.mm.lru_gen(LRU).max_seq, 4);
}

#[test]
fn pages_around_an_accessed_one_are_promoted_with_it() {
    for (has_walk, activated) in [(true, 0), (false, 3)] {
        let (mut m, at) = written(512);
        assert!(age(&mut m) && age(&mut m));
        forget(&mut m, at, 512);
        m.touch(at + 100, 1, false);
        m.touch(at + 68, 1, false);
        m.touch(at + 131, 1, false);
        m.touch(at + 132, 1, false);
        let pfn = m.pfn(at + 100);
        assert!(m.mm.page_referenced(&m.env, pfn) > 0);
        m.touch(at + 101, 1, false);
        m.mm.lru_gen_look_around(pfn, has_walk);
        // 100 - 32 up to 100 + 32.
        let behind = [68, 101, 131, 132].map(|n| generations_behind(&m, at + n));
        assert_eq!(behind, [0, 0, 0, 2]);
        assert_eq!(m.event(VmEvent::Pgactivate), activated, "who does not walk moves them at once");
        m.check();
    }
}

#[test]
fn what_the_eviction_finds_in_use_comes_back_as_the_youngest() {
    let (mut m, at) = written(256);
    assert!(age(&mut m) && age(&mut m));
    forget(&mut m, at, 256);
    m.touch(at, 1, false);
    let env = m.env;
    let mut sc = ScanControl::direct(Gfp::KERNEL, Order(0), ZoneKind::Normal);
    assert_eq!(m.mm.evict_pages(&env, LRU, 60, &mut sc).scanned, 1, "an empty generation is dropped");
    assert_eq!(m.mm.evict_pages(&env, LRU, 60, &mut sc), Evicted { scanned: 64, swapped: true });
    assert_eq!(generations_behind(&m, at), 0);
    assert_eq!(m.event(VmEvent::PgscanAnon), 64);
    assert_eq!(m.bios().len(), 63, "the others are being written");
    m.check();
}

#[test]
fn a_refault_in_the_generation_that_is_evicted_counts_and_one_of_a_fault_restores() {
    let mut m = machine();
    m.add("a b", Kind::File, 0);
    for (name, in_fault) in [('a', false), ('b', true)] {
        let (pfn, mut env) = (m.page(name), m.env);
        env.task.in_lru_fault = in_fault;
        let shadow = m.mm.workingset_eviction(pfn);
        m.mm.workingset_refault(&env, pfn, shadow);
        assert_eq!(m.frame(name).lru_refs(), if in_fault { 3 } else { 0 });
        assert_eq!(m.frame(name).has(Frame::WORKINGSET), in_fault);
    }
    let counter = |m: &Machine, item| m.mm.stat.node(NODE, item);
    assert_eq!(counter(&m, NodeStat::WorkingsetRefaultFile), 2);
    assert_eq!(counter(&m, NodeStat::WorkingsetActivateFile), 2);
    assert_eq!(counter(&m, NodeStat::WorkingsetRestoreFile), 1);
    assert_eq!(m.mm.lru_gen(LRU).feedback.refaulted[FILE][0], 2);

    let (pfn, env) = (m.page('a'), m.env);
    let shadow = m.mm.workingset_eviction(pfn);
    m.mm.lru_gen_mut(LRU).min_seq = [1; 2];
    m.mm.workingset_refault(&env, pfn, shadow);
    assert_eq!(counter(&m, NodeStat::WorkingsetRefaultFile), 3);
    assert_eq!(counter(&m, NodeStat::WorkingsetActivateFile), 2, "it was evicted with another generation");
}

#[test]
fn a_page_read_five_times_is_protected_once_its_accesses_cannot_be_counted() {
    let mut m = machine();
    m.add("a b", Kind::File, 0);
    // Referenced, workingset, then counted to 3.
    (0..5).for_each(|_| m.access('a'));
    (0..4).for_each(|_| m.access('b'));
    assert_eq!([m.frame('a').lru_refs(), m.frame('b').lru_refs()], [3, 2]);
    let env = m.env;
    let mut sc = ScanControl::kswapd(Order(0), ZoneKind::Normal);
    // Generation 0 is empty: the first batch drops it, the second takes generation 1.
    assert_eq!(m.mm.evict_pages(&env, LRU, 0, &mut sc).scanned, 1);
    m.mm.evict_pages(&env, LRU, 0, &mut sc);
    assert_eq!((sc.nr_reclaimed, m.mm.stat.event(VmEvent::PgstealFile)), (1, 1));
    assert_eq!((m.frame('a').lru_gen(), m.frame('a').lru_refs()), (Some(2), 0));
    m.check();
}

#[test]
fn before_6_7_file_pages_join_the_oldest_generation_and_no_number_of_accesses_keeps_them() {
    let mut m = Machine::tuned(Rules { generation_start: GenerationStart::Oldest, ..by_kswapd() }, tunables());
    m.add("a b c", Kind::File, 0);
    m.frame('c').set(Frame::DIRTY | Frame::RECLAIM);
    let (env, waits) = (m.env, m.page('c'));
    assert!(m.mm.lru_isolate(waits));
    m.mm.lru_putback(&env, waits);
    assert_eq!(['a', 'c'].map(|name| m.frame(name).lru_gen()), [Some(0), Some(1)]);
    (0..5).for_each(|_| m.access('a'));
    let mut sc = ScanControl::kswapd(Order(0), ZoneKind::Normal);
    assert_eq!(m.mm.evict_pages(&env, LRU, 0, &mut sc).scanned, 3, "two pages, and a generation that is dropped");
    assert_eq!(sc.nr_reclaimed, 2);
    m.check();
}

#[test]
fn a_page_that_was_accessed_four_times_was_wrongly_evicted_since_6_7() {
    for (generation_start, accesses, restored, refs) in [
        (GenerationStart::SecondOldest, 3, false, 0),
        (GenerationStart::SecondOldest, 4, true, 3),
        (GenerationStart::Oldest, 4, false, 0),
        (GenerationStart::Oldest, 5, true, 0),
    ] {
        let mut m = Machine::tuned(Rules { generation_start, ..Rules::newest() }, tunables());
        m.add("a b", Kind::File, 0);
        (0..accesses).for_each(|_| m.access('a'));
        let (env, evicted, back) = (m.env, m.page('a'), m.page('b'));
        let shadow = m.mm.workingset_eviction(evicted);
        m.mm.workingset_refault(&env, back, shadow);
        assert_eq!((m.frame('b').has(Frame::WORKINGSET), m.frame('b').lru_refs()), (restored, refs), "{accesses}");
        assert_eq!(m.mm.stat.node(NODE, NodeStat::WorkingsetRestoreFile), u64::from(restored));
    }
}

#[test]
fn kswapd_reclaims_up_to_its_mark_and_stops_there() {
    let mut m = machine();
    m.fill(Kind::File, 0);
    assert!(!m.balanced());
    let normal = m.mm.nodes[0].zones[1];
    let high = m.mm.wmark(normal, Wmark::High);
    let (run, waits) = m.kswapd(Order(0));
    assert!(m.balanced() && waits.is_empty());
    assert_eq!(run.nr_reclaimed(), m.mm.stat.event(VmEvent::PgstealKswapd));
    let slack = m.mm.zones[normal.index()].free_pages - high;
    assert!(slack < 2 * high, "{slack} pages above a mark of {high}");
    assert_eq!(m.mm.stat.event(VmEvent::PgscanAnon), 0);
    m.check();
}

#[test]
fn direct_reclaim_takes_a_batch() {
    let mut m = machine();
    m.fill(Kind::File, 0);
    let (progress, _) = m.direct(Gfp::KERNEL, Order(0));
    assert_eq!(progress, 64, "32 are wanted, 64 are isolated at once");
    assert_eq!(m.mm.stat.event(VmEvent::PgscanDirect), 64);
    m.check();
}

#[test]
fn a_reclaimer_that_may_not_write_does_nothing_and_that_counts_as_failure() {
    let mut m = machine();
    m.fill(Kind::File, 0);
    m.kswapd(Order(0));
    let normal = m.mm.nodes[0].zones[1];
    // As after a fragmentation event, while DMA32 is balanced.
    m.mm.zones[normal.index()].boost = 64;
    let stolen = m.mm.stat.event(VmEvent::PgstealKswapd);
    m.kswapd(Order(0));
    assert_eq!(m.mm.stat.event(VmEvent::PgstealKswapd), stolen);
    assert_eq!(m.mm.nodes[0].kswapd.failures, 1);
}

#[test]
fn somebody_is_killed_while_all_pages_are_younger_than_the_working_set_may_be() {
    for (now, killed) in [(Nanos::secs(1), true), (Nanos::secs(1) + Nanos(1), false)] {
        let mut m = machine();
        m.mm.tunables.lru_gen_min_ttl_ms = 1000;
        m.fill(Kind::File, 0);
        m.env.now = now;
        let mut run = BalancePgdat::new(&mut m.mm, NODE, Order(0), ZoneKind::Normal);
        let env = m.env;
        assert_eq!(run.step(&mut m.mm, &env) == Step::OutOfMemory, killed, "{now:?}");
    }
}

#[test]
fn a_huge_page_is_split_and_swapped_in_one_batch() {
    let mut m = AnonMachine::with_generations(LruGenCaps::ALL);
    m.mm.tunables.thp_enabled = rules::ThpEnabled::Always;
    m.add_swap(4096, false);
    let at = m.mmap(512);
    m.touch(at, 512, true);
    let pfn: Pfn = m.pfn(at);
    assert_eq!(m.mm.frames[pfn].order(), Order(9));
    assert!(age(&mut m) && age(&mut m));
    let env = m.env;
    let mut sc = ScanControl::direct(Gfp::KERNEL, Order(0), ZoneKind::Normal);
    assert_eq!(m.mm.evict_pages(&env, LRU, 60, &mut sc).scanned, 1, "an empty generation is dropped");
    m.mm.evict_pages(&env, LRU, 60, &mut sc);
    assert_eq!((m.event(VmEvent::ThpSplitPage), m.event(VmEvent::ThpSwpoutFallback)), (1, 1));
    assert_eq!((m.event(VmEvent::PgscanAnon), m.bios().len()), (512, 512));
    assert_eq!(sc.nr_scanned, 512);
    m.check();
}

#[test]
fn a_mapped_huge_page_splits_where_it_is_listed() {
    let mut m = AnonMachine::with_generations(LruGenCaps::ALL);
    m.mm.tunables.thp_enabled = rules::ThpEnabled::Always;
    let at = m.mmap(512);
    m.touch(at, 512, true);
    let (env, pfn) = (m.env, m.pfn(at));
    assert!(m.mm.split_huge_page(&env, pfn));
    let list = m.mm.lru_gen(LRU).lists[gen_of(3)][ANON][ZoneKind::Normal as usize];
    let listed: Vec<Pfn> = list.iter(&m.mm.frames).collect();
    assert_eq!(listed, (0..512).rev().map(|n| pfn.offset(n)).collect::<Vec<_>>(), "the head is next to be evicted");
    m.check();
}

#[test]
fn kswapd_makes_a_generation_before_a_pass_unless_the_last_one_found_enough() {
    let mut m = Machine::tuned(by_kswapd(), tunables());
    m.fill(Kind::File, 0);
    let (env, mut sc) = (m.env, ScanControl::kswapd(Order(0), ZoneKind::Normal));
    // Whether kswapd looks, and whether it finds that a generation is due.
    let age = |m: &mut Machine, sc: &mut ScanControl| {
        let aging = m.mm.age_memcgs(NODE, sc);
        aging.map(|mut aging| aging.step(&mut m.mm, &env, NODE, sc) == AgeStep::More)
    };
    assert_eq!(age(&mut m, &mut sc), None, "the first pass begins without");
    assert!(sc.need_aging);
    m.mm.lru_gen_mut(LRU).min_seq = [2; 2];
    assert_eq!(age(&mut m, &mut sc), Some(true), "only two generations are left");
    m.mm.lru_gen_mut(LRU).min_seq = [0; 2];
    assert_eq!(age(&mut m, &mut sc), Some(false), "four are enough");

    // 64 pages that did not need a new generation clear the flag; a pass that finds nothing cold leaves it.
    for (min_seq, cleared) in [(2, false), (0, true)] {
        m.mm.lru_gen_mut(LRU).min_seq = [min_seq; 2];
        sc.need_aging = true;
        let mut pass = ShrinkLruvec::new(&m.mm, &env, LRU, &mut sc);
        let before = sc.nr_reclaimed;
        while pass.step(&mut m.mm, &env, &mut sc) == Progress::More {}
        assert_eq!((sc.need_aging, sc.nr_reclaimed - before >= 64), (!cleared, cleared), "{min_seq}");
    }
    m.check();
}

#[test]
fn a_pass_of_kswapd_leaves_new_generations_to_the_next_one_and_a_direct_reclaimer_makes_them() {
    for (kswapd, aged) in [(true, false), (false, true)] {
        let mut m = Machine::tuned(by_kswapd(), tunables());
        m.env = super::super::fixture::env(kswapd);
        m.add("a b c", Kind::File, 0);
        m.mm.lru_gen_mut(LRU).min_seq = [1; 2];
        let env = m.env;
        let mut sc = ScanControl::kswapd(Order(0), ZoneKind::Normal);
        sc.priority = 0;
        // Three pages in the oldest of three generations: a new one is not due. Promoted, they are all young.
        "abc".chars().for_each(|name| m.mm.lru_gen_promote(m.page(name)));
        let mut pass = ShrinkLruvec::new(&m.mm, &env, LRU, &mut sc);
        while pass.step(&mut m.mm, &env, &mut sc) == Progress::More {}
        assert_eq!(m.mm.lru_gen(LRU).max_seq > 3, aged);
        m.check();
    }
}

#[test]
fn a_dirty_page_waits_in_the_next_generation_and_a_protected_one_counts_as_activated() {
    let mut m = Machine::tuned(by_kswapd(), tunables());
    m.add("a b", Kind::File, 0);
    m.frame('a').set(Frame::DIRTY);
    (0..5).for_each(|_| m.access('b'));
    let (env, mut sc) = (m.env, ScanControl::kswapd(Order(0), ZoneKind::Normal));
    m.mm.lru_gen_mut(LRU).min_seq = [1; 2];
    m.mm.evict_pages(&env, LRU, 0, &mut sc);
    assert_eq!([m.frame('a').lru_gen(), m.frame('b').lru_gen()], [Some(2), Some(2)]);
    assert!(m.frame('a').has(Frame::RECLAIM));
    assert_eq!((m.mm.stat.event(VmEvent::Pgrefill), m.mm.stat.event(VmEvent::PgscanKswapd)), (2, 0));
    assert_eq!(m.mm.stat.node(NODE, NodeStat::WorkingsetActivateFile), 1);
    m.check();
}

#[test]
fn kswapd_of_6_1_reclaims_what_it_should_and_is_gentle_with_a_boost() {
    let mut m = Machine::tuned(by_kswapd(), tunables());
    m.fill(Kind::File, 0);
    let (run, _) = m.kswapd(Order(0));
    assert!(m.balanced());
    assert!(run.nr_reclaimed() >= m.mm.stat.event(VmEvent::PgstealKswapd), "passes that were ended early are credited");
    let normal = m.mm.nodes[0].zones[1];
    m.mm.zones[normal.index()].boost = 64;
    let stolen = m.mm.stat.event(VmEvent::PgstealKswapd);
    m.kswapd(Order(0));
    assert!(m.mm.stat.event(VmEvent::PgstealKswapd) > stolen, "clean pages can go without being written");
    assert_eq!(m.mm.nodes[0].kswapd.failures, 0);
    m.check();
}

#[test]
fn walks_and_look_around_promote_pages_of_mapped_files_even_without_swap() {
    let mut m = machine();
    let (env, space) = (m.env, m.mm.space_create());
    let base = m.mm.mmap_file(space, m.file, 512, crate::pagecache::Readahead::default());
    m.mm.set_inode_size_pages(&m.env, m.file, 512);
    m.add(&"f".repeat(512), Kind::File, 0);
    let mut touch = Touch::new(space, base, 512, false, u64::MAX >> 1);
    assert_eq!(m.mm.touch(&env, &mut touch, None), TouchStop::Done);
    let page = |m: &Machine, at: u32| match m.mm.slot_of(space, base + at) {
        Slot::Page(pfn) => pfn,
        other => panic!("page {at} is {other:?}"),
    };
    let youngest = |m: &Machine, at: u32| m.mm.frames[page(m, at)].lru_gen() == Some(gen_of(m.mm.lru_gen(LRU).max_seq));
    assert!(!youngest(&m, 0), "they were read before they were mapped");
    for at in 0..512 {
        let pfn = page(&m, at);
        m.mm.frames[pfn].clear(Frame::YOUNG);
    }
    for at in [0, 31, 64] {
        let pfn = page(&m, at);
        m.mm.frames[pfn].set(Frame::YOUNG);
    }
    let pfn = page(&m, 31);
    assert_eq!(m.mm.page_referenced(&m.env, pfn), 1);
    m.mm.lru_gen_look_around(pfn, true);
    assert_eq!([0, 64].map(|at| youngest(&m, at)), [true, false], "64 entries from the start of the table");
    let before = m.mm.lru_gen(LRU).max_seq;
    let mut aging = Aging::new(&m.mm, LRU, false);
    while aging.step(&mut m.mm, &env) == Aged::More {}
    assert_eq!(m.mm.lru_gen(LRU).max_seq, before + 1);
    assert_eq!(m.mm.frames[page(&m, 64)].lru_gen(), Some(gen_of(before)));
    m.check();
}

/// A mapping of 64 pages in the oldest generation, all of them accessed but those behind the first `young`; their frames.
fn mapped_under_6_1(young: u32) -> (AnonMachine, Vec<Pfn>) {
    let (mut m, at) = written(64);
    m.mm.rules.lru_policy = LruPolicy::MultiGenByKswapd;
    (0..2).for_each(|_| {
        let seq = m.mm.lru_gen(LRU).max_seq;
        assert!(m.mm.inc_max_seq(&m.env, LRU, seq, true));
    });
    forget(&mut m, at + young, 64 - young);
    let pages = (at..at + 64).map(|vpn| m.pfn(vpn)).collect();
    (m, pages)
}

#[test]
fn without_a_walk_6_1_moves_a_few_neighbours_and_only_marks_many() {
    // The page itself and 14 others, or 15: as many as a pagevec holds.
    for (neighbours, activated) in [(14, 14), (15, 0)] {
        let (mut m, pages) = mapped_under_6_1(neighbours + 1);
        let (pfn, youngest) = (pages[0], gen_of(m.mm.lru_gen(LRU).max_seq));
        m.mm.frames[pfn].clear(Frame::YOUNG);
        let before = m.mm.stat.event(VmEvent::Pgactivate);
        m.mm.lru_gen_look_around(pfn, false);
        let promoted = pages.iter().filter(|&&pfn| m.mm.frames[pfn].lru_gen() == Some(youngest)).count();
        assert_eq!(promoted, neighbours as usize);
        assert_eq!(m.mm.stat.event(VmEvent::Pgactivate) - before, activated);
        let listed = m.mm.lru_gen(LRU).lists[youngest][ANON].iter().map(|list| list.iter(&m.mm.frames).count());
        assert_eq!(listed.sum::<usize>(), activated as usize, "many stay where they are listed");
        assert!(m.mm.frames[pfn].has(Frame::REFERENCED), "its own entry was still set");
        m.mm.frames[pfn].clear(Frame::REFERENCED);
        m.check();
    }
}

#[test]
fn without_a_walk_6_1_holds_the_lru_lock_for_many_neighbours() {
    // How long the lock was held for so many neighbours, in ns.
    let held = |neighbours: u32, has_walk: bool| {
        let (mut m, pages) = mapped_under_6_1(neighbours + 1);
        m.mm.frames[pages[0]].clear(Frame::YOUNG);
        m.mm.called_by(&Env { now: Nanos::secs(1), ..m.env });
        let before = m.mm.lru_lock_held(LRU);
        m.mm.lru_gen_look_around(pages[0], has_walk);
        m.mm.lru_lock_held(LRU) - before
    };
    let (m, _) = mapped_under_6_1(0);
    let (page, handoff) = (m.mm.costs.promote_page, m.mm.costs.lock_handoff);
    assert_eq!(held(20, false), 20 * page + handoff);
    assert_eq!(held(20, true), 0, "a walk counts for itself");
}

#[test]
fn who_comes_to_a_walk_of_6_1_sleeps_from_priority_10_on_and_cuts_it_short() {
    const GIB: u32 = 1 << 18;
    let mut m = AnonMachine::with_generations(LruGenCaps::ALL);
    m.mm.rules.lru_policy = LruPolicy::MultiGenByKswapd;
    m.add_swap(4096, false);
    let at = m.mmap(3 * GIB);
    for gib in 0..3 {
        m.touch(at + gib * GIB, 1, true);
    }
    let (env, seq) = (m.env, m.mm.lru_gen(LRU).max_seq);
    let mut sc = ScanControl::kswapd(Order(0), ZoneKind::Normal);
    sc.priority = DEF_PRIORITY - 1;
    let mut walker = AgingOfSeveral::new(&m.mm, LRU, true);
    assert_eq!(walker.step(&mut m.mm, &env, &sc), Progress::More, "it takes the space");
    let mut hasty = AgingOfSeveral::new(&m.mm, LRU, true);
    assert_eq!(hasty.step(&mut m.mm, &env, &sc), Progress::Done, "at priority 11 nobody waits");
    assert_eq!(m.mm.lru_gen(LRU).max_seq, seq, "but it has begun nothing");
    sc.priority = DEF_PRIORITY - 2;
    let mut sleeper = AgingOfSeveral::new(&m.mm, LRU, true);
    assert_eq!(sleeper.step(&mut m.mm, &env, &sc), Progress::Sleep);
    assert_eq!(walker.step(&mut m.mm, &env, &sc), Progress::More, "the first GiB, and no other");
    assert_eq!(walker.step(&mut m.mm, &env, &sc), Progress::Done);
    assert_eq!(m.mm.lru_gen(LRU).max_seq, seq + 1);
    let young = [0, 1, 2].map(|gib| m.mm.frames[m.pfn(at + gib * GIB)].has(Frame::YOUNG));
    assert_eq!(young, [false, true, true]);
    let mut effects = Vec::new();
    m.mm.effects.take_into(&mut effects);
    assert!(effects.contains(&Effect::WakeAging(NODE)));
    assert_eq!(sleeper.step(&mut m.mm, &env, &sc), Progress::Done);
    assert_eq!(m.mm.lru_gen(LRU).mm_state.sleepers, 0);
}
