//! Groups on small machines: charges against a recount after random operations, limits, walks.

use proptest::prelude::*;
use rules::{LruGenCaps, LruPolicy, RefaultDetection, Rules, ScanBalance, Tunables};
use units::{Gfp, MemcgId, NodeId, Order, PAGE_SIZE};

use super::*;
use crate::anon::testing::Machine;
use crate::anon::{Advice, OomChoice, Touch, TouchStop};
use crate::reclaim::{DirectReclaim, Step};
use crate::slab::CacheId;
use crate::stat::VmEvent;
use crate::vfs::Need;
use crate::{LruList, LruvecId, Violation};

const NODE: NodeId = NodeId(0);

/// A machine of 128 MiB with room to swap, whose space is in group 1 below the root.
fn machine(rules: Rules, generations: bool) -> Machine {
    let lru_gen_enabled = if generations { LruGenCaps::ALL } else { LruGenCaps::NONE };
    let mut m = Machine::tuned(1, 64, rules, Tunables { lru_gen_enabled, ..Tunables::default() });
    m.add_swap(16_384, false);
    let group = m.mm.memcg_create(ROOT, "a").expect("the first one");
    enter(&mut m, group);
    m
}

/// Has the space, and whoever calls, be in a group.
fn enter(m: &mut Machine, group: MemcgId) {
    m.mm.memcg_attach(m.space, group);
    m.env.task.memcg = group;
}

fn check(m: &Machine) {
    let violations: Vec<Violation> = m.mm.validate();
    assert!(violations.is_empty(), "{violations:?}");
}

/// Accesses pages until something other than writes to swap stops it.
fn touch(m: &mut Machine, vpn: u32, pages: u32) -> TouchStop {
    let mut touch = Touch::new(m.space, vpn, pages, true, 1 << 60);
    let env = m.env;
    loop {
        match m.mm.touch(&env, &mut touch, None) {
            TouchStop::Wait(_) => {
                m.finish_io();
            }
            stop => {
                m.mm.touch_cancel(&env, touch, None);
                return stop;
            }
        }
    }
}

/// Reclaims from a group; returns the progress.
fn reclaim(m: &mut Machine, target: MemcgId, pages: u64) -> u64 {
    let mut run = DirectReclaim::memcg(target, Gfp::KERNEL, pages, true, NODE);
    let env = m.env;
    loop {
        match run.step(&mut m.mm, &env) {
            Step::Done => break,
            Step::Throttle(reason, _) => m.mm.throttle_end(NODE, reason),
            Step::Wait(bio) => m.mm.submit(&env, bio),
            Step::More | Step::OutOfMemory => {}
            Step::WaitAging(node) => panic!("nobody else walks page tables on {node:?}"),
            Step::WaitPage(pfn) => panic!("a second pass waits for {pfn:?} under a rule that has none"),
        }
        m.finish_io();
    }
    run.progress()
}

fn anon_of(m: &Machine, group: MemcgId) -> u64 {
    [LruList::InactiveAnon, LruList::ActiveAnon].map(|list| m.mm.memcg_list_pages(group, list)).iter().sum()
}

#[test]
fn a_group_is_charged_64_pages_at_once_and_so_are_those_above_it() {
    let mut m = machine(Rules::newest(), false);
    let below = m.mm.memcg_create(MemcgId(1), "a/b").unwrap();
    enter(&mut m, below);
    let at = m.mmap(128);
    assert_eq!(touch(&mut m, at, 1), TouchStop::Done);
    assert_eq!([m.mm.memcg[below].usage(), m.mm.memcg[MemcgId(1)].usage()], [64, 64]);
    assert_eq!(touch(&mut m, at + 1, 64), TouchStop::Done);
    assert_eq!([m.mm.memcg[below].usage(), m.mm.memcg[MemcgId(1)].usage()], [128, 128]);
    assert_eq!(anon_of(&m, below), 65);
    check(&m);
    // A page that is freed is uncharged at once; what a CPU has in stock stays until it is drained.
    let env = m.env;
    m.mm.munmap(&env, m.space, at, 128);
    // So are three of the four page tables that the pages needed; the top one is the space's as long as it lives.
    assert_eq!(m.mm.memcg_kernel_pages(below, KernelPage::Table), 1);
    assert_eq!(m.mm.memcg[below].usage(), 128 - 65 - 3);
    m.mm.memcg.drain_all_stock(MemcgId(1));
    assert_eq!([m.mm.memcg[below].usage(), m.mm.memcg[below].peak()], [1, 128]);
    check(&m);
}

#[test]
fn a_charge_stops_at_the_limit_of_any_group_above() {
    let mut m = machine(Rules::newest(), false);
    m.mm.memcg[MemcgId(1)].limits.max = 100;
    let below = m.mm.memcg_create(MemcgId(1), "a/b").unwrap();
    enter(&mut m, below);
    let at = m.mmap(128);
    // 64 at once, then page by page to the hundredth.
    let stop = touch(&mut m, at, 128);
    let over = Uncharged { memcg: below, over: MemcgId(1), pages: 1, gfp: Gfp::KERNEL, noretry: false };
    assert_eq!(stop, TouchStop::Need(Need::Charge(over)));
    assert_eq!((m.mm.memcg[below].usage(), m.mm.memcg.margin(MemcgId(1))), (100, 0));
    check(&m);
    // Pages are written first; those whose write has ended are free in a later round.
    let rounds = (1..10).find(|_| reclaim(&mut m, MemcgId(1), 1) >= 32);
    check(&m);
    assert!(rounds.is_some() && m.mm.memcg.margin(MemcgId(1)) >= 32 && m.mm.memcg[below].swap_usage() >= 32);
}

#[test]
fn a_group_without_swap_keeps_its_pages_and_costs_a_process_its_life() {
    for (rules, generations) in [(Rules::newest(), true), (Rules::newest(), false), (by_kswapd(), true)] {
        let mut m = machine(rules, generations);
        m.mm.memcg[MemcgId(1)].limits.max = 100;
        m.mm.memcg[MemcgId(1)].limits.swap_max = 0;
        let at = m.mmap(128);
        assert!(matches!(touch(&mut m, at, 128), TouchStop::Need(Need::Charge(_))));
        assert_eq!(reclaim(&mut m, MemcgId(1), 1), 0);
        assert_eq!(m.mm.oom_select(MemcgId(1)), OomChoice::Kill(m.space));
        let other = m.mm.memcg_create(ROOT, "b").unwrap();
        assert_eq!(m.mm.oom_select(other), OomChoice::Nobody, "nobody is in that group");
        m.mm.oom_kill(m.space);
        assert_eq!(m.mm.memcg.event(MemcgId(1), MemcgEvent::OomKill), 1);
        check(&m);
    }
}

/// As 6.1 has it.
fn by_kswapd() -> Rules {
    Rules { lru_policy: LruPolicy::MultiGenByKswapd, memcg_walk: rules::MemcgWalkSharing::Nobody, ..Rules::newest() }
}

#[test]
fn reclaim_of_a_group_leaves_other_groups_alone() {
    for (rules, generations) in [(Rules::newest(), true), (Rules::newest(), false), (by_kswapd(), true)] {
        let mut m = machine(rules, generations);
        let at = m.mmap(4096);
        assert_eq!(touch(&mut m, at, 2048), TouchStop::Done);
        let other = m.mm.memcg_create(ROOT, "b").unwrap();
        enter(&mut m, other);
        assert_eq!(touch(&mut m, at + 2048, 2048), TouchStop::Done);
        let before = anon_of(&m, MemcgId(1));
        for _ in 0..4 {
            reclaim(&mut m, other, 256);
        }
        assert_eq!(anon_of(&m, MemcgId(1)), before);
        assert!(anon_of(&m, other) < 2048 && m.mm.memcg[other].swap_usage() > 0);
        check(&m);
    }
}

#[test]
fn a_walk_takes_each_group_before_those_below_it_and_a_shared_one_goes_on_where_it_stopped() {
    let mut m = machine(Rules::newest(), false);
    for (parent, name) in [(1, "a/b"), (0, "c"), (2, "a/b/d"), (1, "a/e")] {
        m.mm.memcg_create(MemcgId(parent), name).unwrap();
    }
    let all = |m: &mut Machine, mut walk: MemcgWalk| {
        let mut seen = Vec::new();
        while let Some(MemcgId(id)) = walk.next(&mut m.mm) {
            seen.push(id);
        }
        seen
    };
    // a (1) with a/b (2), a/b/d (4), a/e (5); c (3).
    assert_eq!(all(&mut m, MemcgWalk::full(ROOT, NODE)), [0, 1, 2, 4, 5, 3]);
    assert_eq!(all(&mut m, MemcgWalk::full(MemcgId(1), NODE)), [1, 2, 4, 5]);
    let (mut one, mut other) = (MemcgWalk::shared(&m.mm, ROOT, NODE, 0), MemcgWalk::shared(&m.mm, ROOT, NODE, 0));
    let next = |m: &mut Machine, walk: &mut MemcgWalk| walk.next(&mut m.mm).map(|id| id.0);
    assert_eq!([next(&mut m, &mut one), next(&mut m, &mut other), next(&mut m, &mut one)], [Some(0), Some(1), Some(2)]);
    let third = MemcgWalk::shared(&m.mm, ROOT, NODE, 0);
    assert_eq!(all(&mut m, third), [4, 5, 3], "it ends with the round");
    assert_eq!(next(&mut m, &mut one), None, "the round that it joined is over");
    let mut fourth = MemcgWalk::shared(&m.mm, ROOT, NODE, 0);
    assert_eq!(next(&mut m, &mut fourth), Some(0));
    // Another priority has a walk of its own.
    let mut pressed = MemcgWalk::shared(&m.mm, ROOT, NODE, 11);
    assert_eq!([next(&mut m, &mut pressed), next(&mut m, &mut fourth)], [Some(0), Some(1)]);
}

#[test]
fn groups_are_made_before_anything_was_evicted_and_have_names_of_their_own() {
    let mut m = Machine::with_generations(LruGenCaps::NONE);
    m.add_swap(4096, false);
    let at = m.mmap(64);
    m.touch(at, 64, true);
    let pfn = m.pfn(at);
    m.mm.workingset_eviction(pfn);
    assert_eq!(m.mm.memcg_create(ROOT, "a"), Err(MemcgError::TooLate));
    let mut m = machine(Rules::newest(), false);
    assert_eq!(m.mm.memcg_create(ROOT, "a"), Err(MemcgError::Exists));
    for n in 2..MEMCGS_MAX {
        assert_eq!(m.mm.memcg_create(ROOT, &n.to_string()), Ok(MemcgId(n as u16)));
    }
    assert_eq!(m.mm.memcg_create(ROOT, "one more"), Err(MemcgError::TooMany));
    // Shadows have less room for groups as long as these are few.
    let mut m = machine(Rules::newest(), false);
    for n in 2..64 {
        assert_eq!(m.mm.memcg_create(ROOT, &n.to_string()), Ok(MemcgId(n)));
    }
    let at = m.mmap(1);
    touch(&mut m, at, 1);
    let pfn = m.pfn(at);
    m.mm.workingset_eviction(pfn);
    assert_eq!(m.mm.memcg_create(ROOT, "a 64th beside the root"), Err(MemcgError::TooLate));
}

#[test]
fn until_5_4_a_refault_is_judged_and_counted_in_the_pages_own_group() {
    for (refault_detection, clocks, counted) in
        [(RefaultDetection::OwnGroup, [0, 1], [0, 1]), (RefaultDetection::ReclaimRoot, [1, 0], [1, 0])]
    {
        let rules = Rules {
            refault_detection,
            scan_balance: ScanBalance::RotatedRatio,
            eviction_clock: rules::EvictionClock::TicksFirst,
            ..Rules::newest()
        };
        let mut m = machine(rules, false);
        let at = m.mmap(1);
        touch(&mut m, at, 1);
        let (pfn, env) = (m.pfn(at), m.env);
        let lruvecs = |m: &Machine, of: fn(&crate::node::Lruvec) -> u64| {
            [0, 1].map(|part| of(m.mm.lruvec(LruvecId { node: NODE, part })))
        };
        let shadow = m.mm.workingset_eviction(pfn);
        assert_eq!(lruvecs(&m, |lruvec| lruvec.nonresident_age), clocks, "{refault_detection:?}");
        m.mm.workingset_refault(&env, pfn, shadow);
        assert_eq!(lruvecs(&m, |lruvec| lruvec.activated[0]), counted, "{refault_detection:?}");
    }
}

#[test]
fn each_group_that_a_pass_comes_to_takes_its_time() {
    for generations in [false, true] {
        let [none, ten, twenty] = [0, 10, 20].map(|groups| {
            let mut m = machine(Rules::newest(), generations);
            for n in 0..groups {
                m.mm.memcg_create(MemcgId(1), &n.to_string()).expect("there is room");
            }
            m.mm.take_cpu_ns();
            assert_eq!(reclaim(&mut m, MemcgId(1), 1), 0, "nobody has pages");
            m.mm.take_cpu_ns()
        });
        let walk = crate::Costs::default().memcg_walk;
        assert!(ten > none && (ten - none) % (10 * walk) == 0, "{none} {ten} ({generations})");
        assert_eq!(twenty - none, 2 * (ten - none), "{generations}");
    }
}

/// One step of a random run.
#[derive(Clone, Copy, Debug)]
enum Op {
    Enter(u16),
    Touch(u32, u32),
    Drop(u32, u32),
    Reclaim(u16, u64),
    Limit(u16, u64, u64),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        (1_u16..5).prop_map(Op::Enter),
        (0_u32..2000, 1_u32..200).prop_map(|(at, pages)| Op::Touch(at, pages)),
        (0_u32..2000, 1_u32..200).prop_map(|(at, pages)| Op::Drop(at, pages)),
        (0_u16..5, 1_u64..200).prop_map(|(group, pages)| Op::Reclaim(group, pages)),
        (1_u16..5, 0_u64..1500, 0_u64..500).prop_map(|(group, max, low)| Op::Limit(group, max, low)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Whatever groups do, every charge is a page, a page in stock or a slot, in each of the LRUs.
    #[test]
    fn charges_are_exact(ops in prop::collection::vec(op(), 1..40), which in 0_usize..3) {
        let (rules, generations) = [(Rules::newest(), true), (Rules::newest(), false), (by_kswapd(), true)][which].clone();
        let mut m = machine(rules, generations);
        for (parent, name) in [(1, "a/b"), (0, "c"), (3, "c/d")] {
            m.mm.memcg_create(MemcgId(parent), name).unwrap();
        }
        let base = m.mmap(2200);
        for op in ops {
            let env = m.env;
            match op {
                Op::Enter(group) => enter(&mut m, MemcgId(group)),
                Op::Touch(at, pages) => {
                    touch(&mut m, base + at, pages);
                }
                Op::Drop(at, pages) => m.mm.madvise(&env, m.space, base + at, pages, Advice::DontNeed),
                Op::Reclaim(group, pages) => {
                    reclaim(&mut m, MemcgId(group), pages);
                }
                Op::Limit(group, max, low) => {
                    let limits = &mut m.mm.memcg[MemcgId(group)].limits;
                    (limits.max, limits.low) = (max, low);
                }
            }
            check(&m);
        }
        let env = m.env;
        m.mm.munmap(&env, m.space, base, 2200);
        m.finish_io();
        m.mm.memcg.drain_all_stock(ROOT);
        for id in m.mm.memcg.ids() {
            // The top one stays as long as the space.
            let tables = m.mm.memcg_kernel_pages(id, KernelPage::Table);
            prop_assert!(tables <= 1, "{tables} of {id:?}");
            prop_assert_eq!((m.mm.memcg[id].usage(), m.mm.memcg[id].swap_usage()), (tables, 0), "{:?}", id);
        }
        check(&m);
    }

    /// The LRU of groups gives each group of a generation once, and ends it with the last.
    #[test]
    fn the_fifo_loses_nobody(moves in prop::collection::vec((0_u16..6, any::<bool>()), 0..200)) {
        let mut fifo = Fifo::default();
        (1..6).for_each(|id| fifo.add(id));
        // The model: which groups are young, and how many generations have ended.
        let (mut young, mut ended) = ([false; 6], 0);
        for (id, to_young) in moves {
            fifo.rotate(MemcgId(id), if to_young { Rotate::Young } else { Rotate::Tail });
            young[usize::from(id)] |= to_young;
            if young.iter().all(|young| *young) {
                (young, ended) = ([false; 6], ended + 1);
            }
            prop_assert_eq!(fifo.seq(), ended);
            prop_assert!(fifo.is_sound(6));
            prop_assert_eq!(fifo.at_tail(MemcgId(id)), !to_young);
        }
    }
}

#[test]
fn a_block_is_charged_by_its_size() {
    let mut m = machine(Rules::newest(), false);
    let env = m.env;
    assert_eq!(m.mm.memcg_reserve(&env, MemcgId(1), Order(9), Gfp::KERNEL), Ok(()));
    assert_eq!(m.mm.memcg[MemcgId(1)].usage(), 512);
    m.mm.memcg.drain_all_stock(ROOT);
    assert_eq!(m.mm.memcg[MemcgId(1)].usage(), 0);
}

#[test]
fn reclaim_for_a_limit_counts_in_the_group_and_not_as_the_systems() {
    for generations in [false, true] {
        let mut m = machine(Rules::newest(), generations);
        let group = m.env.task.memcg;
        let heap = m.mmap(2048);
        assert_eq!(touch(&mut m, heap, 2048), TouchStop::Done);
        assert!(reclaim(&mut m, group, 64) > 0);
        let of_group = [MemcgStat::PgscanDirect, MemcgStat::PgstealDirect].map(|item| m.mm.memcg.stat(group, item));
        assert!(of_group.iter().all(|n| *n > 0), "{of_group:?}");
        let of_system = [VmEvent::PgscanDirect, VmEvent::PgstealDirect].map(|event| m.mm.stat.event(event));
        assert_eq!(of_system, [0, 0]);
        assert!(m.mm.stat.event(VmEvent::PgstealAnon) > 0, "by kind everything counts");
        assert_eq!(m.mm.memcg.stat(group, MemcgStat::Pgfault), 2048);
        check(&m);
    }
}

#[test]
fn a_groups_dirty_limit_follows_the_room_that_its_limits_leave() {
    let mut m = machine(Rules::newest(), false);
    let group = m.env.task.memcg;
    let below = m.mm.memcg_create(group, "a/b").expect("a new name");
    let limits =
        |m: &Machine| m.mm.memcg_dirty_limits(below, (10_000, 0), true).expect("it is not the root group").limits;
    assert_eq!(m.mm.memcg_dirty_limits(ROOT, (10_000, 0), true), None);
    // Nothing is cached: as much as others have clean. 20 % are 819 / 4096, 10 % 409 / 4096.
    assert_eq!((limits(&m).dirty, limits(&m).background), (819 * 10_000 / 4096, 409 * 10_000 / 4096));
    m.mm.memcg[below].limits.high = 3000;
    assert_eq!(limits(&m).dirty, 819 * 3000 / 4096);
    // The group above has less room.
    m.mm.memcg[group].limits.max = 1000;
    assert_eq!(limits(&m).dirty, 819 * 1000 / 4096);
    // Bytes are a part of what is dirtyable on the machine: 1 MiB of 10 000 pages are 105 / 4096, rounded up.
    m.mm.tunables.dirty_bytes = 1 << 20;
    assert_eq!(limits(&m).dirty, 105 * 1000 / 4096);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    /// Generations may be switched on and off at any moment between accesses and reclaim: no page is lost, and all that is counted
    /// by group, list and generation equals a recount.
    #[test]
    fn generations_can_be_switched_at_any_moment(
        begins_on in any::<bool>(),
        ops in prop::collection::vec((0_u32..32, 0_u64..64, prop::option::weighted(0.4, any::<bool>())), 1..25),
    ) {
        let mut m = machine(Rules::newest(), begins_on);
        let (group, heap) = (m.env.task.memcg, m.mmap(32 * 16));
        for (part, pages, switch) in ops {
            prop_assert_eq!(touch(&mut m, heap + part * 16, 16), TouchStop::Done);
            if let Some(on) = switch {
                m.mm.set_sysctl("lru_gen.enabled", if on { 7 } else { 0 }).expect("a mask");
                prop_assert_eq!(m.mm.lru_gen_enabled(), on);
                check(&m);
            }
            if pages > 0 {
                reclaim(&mut m, group, pages);
            }
            check(&m);
        }
    }
}

#[test]
fn objects_are_charged_by_the_byte_and_pages_as_they_fill() {
    use rules::ObjectAccounting::{Caches, Vectors};
    for (object_accounting, size) in [(Vectors, 192 + 8), (Caches, 192)] {
        let mut m = machine(Rules { object_accounting, ..Rules::newest() }, false);
        let (env, group) = (m.env, MemcgId(1));
        let dentry = CacheId::DENTRY;
        // As many as fill a page, and one more.
        let page = PAGE_SIZE / size;
        let objects: Vec<_> = (0..=page).map(|_| m.mm.slab_alloc(&env, dentry, Gfp::KERNEL).unwrap()).collect();
        assert_eq!(m.mm.memcg_slab_bytes(group), [(page + 1) * size, 0]);
        assert_eq!((m.mm.memcg_object_pages(group), m.mm.memcg[group].usage()), (2, 2));
        let free = m.mm.slab_alloc(&env, CacheId::XFS_ILI, Gfp::KERNEL).unwrap();
        assert_eq!(m.mm.memcg_slab_bytes(group)[1], 0, "log items are nobody's");
        m.mm.slab_free(&env, CacheId::XFS_ILI, free);
        check(&m);
        // Whoever frees them, their group does not pay any more, but for a page.
        m.env.task.memcg = ROOT;
        let env = m.env;
        for obj in objects {
            m.mm.slab_free(&env, dentry, obj);
        }
        assert_eq!((m.mm.memcg_slab_bytes(group), m.mm.memcg[group].usage()), ([0, 0], 1));
        check(&m);
    }
}

#[test]
fn an_object_is_refused_where_its_page_cannot_be_charged() {
    let mut m = machine(Rules::newest(), false);
    m.mm.memcg[MemcgId(1)].limits.max = 1;
    let env = m.env;
    let size = 1168 + 8;
    for _ in 0..PAGE_SIZE / size {
        assert_eq!(m.mm.memcg_reserve_object(&env, CacheId::EXT4_INODE, Gfp::NOFS), Ok(()));
        m.mm.slab_alloc(&env, CacheId::EXT4_INODE, Gfp::KERNEL).unwrap();
    }
    let over = Uncharged { memcg: MemcgId(1), over: MemcgId(1), pages: 1, gfp: Gfp::NOFS, noretry: false };
    assert_eq!(m.mm.memcg_reserve_object(&env, CacheId::EXT4_INODE, Gfp::NOFS), Err(Need::Charge(over)));
    assert_eq!(m.mm.memcg_reserve_object(&env, CacheId::XFS_ILI, Gfp::NOFS), Ok(()), "which nobody pays for");
    // Two pages, for 6,208 B and 8 do not fit into one and what is left of the first.
    let over = Uncharged { pages: 2, ..over };
    assert_eq!(m.mm.memcg_reserve_object(&env, CacheId::TASK_STRUCT, Gfp::NOFS), Err(Need::Charge(over)));
    check(&m);
}

#[test]
fn a_process_and_its_page_tables_are_charged_until_it_ends() {
    let mut m = machine(Rules::newest(), false);
    let (env, group) = (m.env, MemcgId(1));
    let mut memory = crate::process::TaskMemory::default();
    m.mm.begin_task(&env, &mut memory, true).expect("memory is plentiful");
    let pages = |m: &Machine| [KernelPage::Stack, KernelPage::Table].map(|of| m.mm.memcg_kernel_pages(group, of));
    assert_eq!(pages(&m), [4, 9], "16 KiB of stack and the image's tables");
    assert!(m.mm.memcg_slab_bytes(group)[1] > 6208 + 1408, "a task and its address space at least");
    check(&m);
    m.mm.end_task(&env, memory);
    assert_eq!((pages(&m), m.mm.memcg_slab_bytes(group)), ([0, 0], [0, 0]));
    check(&m);
}
