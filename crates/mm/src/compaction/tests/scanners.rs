//! Scanner positions, skip hints and what a run leaves behind, as drawn states.

use super::*;
use crate::stat::{NodeStat, VmEvent};
use rules::DirectCompaction as DirectCompactionRule;
use units::{CpuId, Nanos};

/// Blocks where the next runs start: asynchronous and synchronous migrate scanner, free scanner.
fn cached(mm: &Mm) -> [u32; 3] {
    let state = &mm.zones[0].compact;
    [state.migrate_pfn[0], state.migrate_pfn[1], state.free_pfn].map(|pfn| pfn.expect("set by a run").0 / BLOCK)
}

#[test]
fn a_half_used_zone_ends_with_a_whole_free_block() {
    let mut mm = zone_of_blocks("::::::::");
    assert_eq!(run(&mut mm, direct(CompactPriority::SyncLight)), CompactResult::Success);
    // The 256 pages of the first block fill the 256 holes of the last.
    assert_eq!(used(&mut mm), [0, 256, 256, 256, 256, 256, 256, 512]);
    assert_eq!(mm.zones[0].free_area[9].lists[MigrateType::Movable as usize].len(), 1);
    assert_eq!(mm.stat.event(VmEvent::PgmigrateSuccess), 256);
    // 256 pages and as many targets.
    assert_eq!(mm.stat.event(VmEvent::CompactIsolated), 512);
    // Every frame of one block, on either side.
    assert_eq!(mm.stat.event(VmEvent::CompactMigrateScanned), 512);
    assert_eq!(mm.stat.event(VmEvent::CompactFreeScanned), 512);
    check(&mut mm);
}

#[test]
fn an_unmovable_page_keeps_its_block_from_becoming_free() {
    let mut mm = zone_of_blocks("V:::::::");
    assert_eq!(run(&mut mm, direct(CompactPriority::SyncLight)), CompactResult::Success);
    // 255 + 256 pages moved: 256 to the last block, 255 to the one before.
    assert_eq!(used(&mut mm), [1, 0, 256, 256, 256, 256, 511, 512]);
    check(&mut mm);
}

#[test]
fn asynchronous_direct_compaction_leaves_a_spoilt_block_at_once() {
    let mut mm = zone_of_blocks("V:::::::");
    assert_eq!(run(&mut mm, direct(CompactPriority::Async)), CompactResult::Success);
    assert_eq!(used(&mut mm), [256, 0, 256, 256, 256, 256, 256, 512]);
    // One frame of the first block and all of the second.
    assert_eq!(mm.stat.event(VmEvent::CompactMigrateScanned), 513);
    check(&mut mm);
}

#[test]
fn what_was_taken_before_the_page_that_stays_is_put_back() {
    let mut cells = "::::::::".chars().flat_map(cells_of).collect::<Vec<_>>();
    cells[20] = Cell::Stuck;
    let mut mm = zone_of_cells(&cells, rules_4_20());
    assert_eq!(run(&mut mm, direct(CompactPriority::Async)), CompactResult::Success);
    assert_eq!(used(&mut mm), [256, 0, 256, 256, 256, 256, 256, 512]);
    assert_eq!(mm.stat.node_sum(NodeStat::IsolatedAnon), 0);
    check(&mut mm);
}

#[test]
fn small_orders_give_up_only_their_own_aligned_block() {
    let mut cells = "::::::::".chars().flat_map(cells_of).collect::<Vec<_>>();
    cells[4] = Cell::Stuck;
    let mut mm = zone_of_cells(&cells, rules_4_20());
    let control = CompactControl { order: Some(Order(3)), ..direct(CompactPriority::Async) };
    assert_eq!(run(&mut mm, control), CompactResult::Success);
    // 0..8 is spoilt by frame 4 after two pages were taken; 8..16 gives its four pages.
    assert!((0..8).step_by(2).all(|n| in_use(&mm, Pfn(n))));
    assert!((8..16).all(|n| !in_use(&mm, Pfn(n))));
    assert!((16..32).step_by(2).all(|n| in_use(&mm, Pfn(n))));
    check(&mut mm);
}

#[test]
fn blocks_without_movable_pages_get_a_hint_and_move_the_cached_place() {
    let mut mm = zone_of_blocks("KK::::::AA");
    assert_eq!(run(&mut mm, direct(CompactPriority::SyncLight)), CompactResult::Success);
    assert_eq!(used(&mut mm), [512, 512, 0, 256, 256, 256, 256, 512, 512, 512]);
    // The free scanner finds nothing in the last two blocks, the migrate scanner in the first two and in the last frame
    // of the third, where it goes on after eight clusters of 32.
    assert_eq!(skips(&mm), "sss-----ss");
    assert_eq!(cached(&mm), [2, 2, 8]);
    check(&mut mm);
}

#[test]
fn asynchronous_runs_move_only_their_own_place() {
    let mut mm = zone_of_blocks("KK::::::AA");
    assert_eq!(run(&mut mm, direct(CompactPriority::Async)), CompactResult::Success);
    assert_eq!(cached(&mm), [2, 0, 8]);
    check(&mut mm);
}

#[test]
fn hinted_blocks_are_passed_over_unless_hints_are_ignored() {
    for (priority, expected) in [(CompactPriority::SyncLight, [256, 0]), (CompactPriority::SyncFull, [0, 256])] {
        let mut mm = zone_of_blocks("::::::::");
        mm.blocks.set_skip(Pfn(0), true);
        assert_eq!(run(&mut mm, direct(priority)), CompactResult::Success);
        assert_eq!(used(&mut mm)[..2], expected, "{priority:?}");
    }
}

#[test]
fn asynchronous_direct_compaction_scans_only_blocks_of_its_type() {
    let mut mm = zone_of_blocks("A:::::::");
    mm.blocks.set_migratetype(Pfn(0), MigrateType::Unmovable);
    assert_eq!(run(&mut mm, direct(CompactPriority::Async)), CompactResult::Success);
    assert_eq!(used(&mut mm)[..3], [512, 0, 256]);
    assert_eq!(mm.stat.event(VmEvent::CompactMigrateScanned), 512, "the first block is not looked at");
}

#[test]
fn targets_come_from_movable_blocks_only_but_for_the_hardest_priority() {
    for (priority, last) in [(CompactPriority::SyncLight, 0), (CompactPriority::SyncFull, 256)] {
        let mut mm = zone_of_blocks(":::::::A");
        mm.blocks.set_migratetype(Pfn(6 * BLOCK), MigrateType::Unmovable);
        assert_eq!(run(&mut mm, direct(priority)), CompactResult::Success);
        assert_eq!(used(&mut mm)[6], 256 + last, "{priority:?}");
    }
}

#[test]
fn scanners_that_meet_start_over_and_say_how_far_they_came() {
    // Two pages of every block stay, so that no block of order 9 is made. 510 free frames in each of 4 blocks.
    let block = |n: u32| if n == 0 || n == 300 { Cell::Stuck } else { Cell::Free };
    let cells: Vec<Cell> = (0..4 * BLOCK).map(|n| block(n % BLOCK)).collect();
    let mut mm = zone_of_cells(&cells, rules_4_20());
    mm.tunables.extfrag_threshold = 0;
    assert_eq!(run(&mut mm, direct(CompactPriority::SyncLight)), CompactResult::Complete);
    assert!(mm.zones[0].compact.blockskip_flush, "an allocation saw the end");
    assert_eq!(cached(&mm), [0, 0, 3]);
    mm.zones[0].compact.blockskip_flush = false;
    // From a cached place, part of the zone was not looked at.
    mm.zones[0].compact.migrate_pfn = [Some(Pfn(BLOCK)); 2];
    assert_eq!(run(&mut mm, CompactControl::daemon(HUGE, ZoneKind::Normal)), CompactResult::PartialSkipped);
    assert!(!mm.zones[0].compact.blockskip_flush, "kcompactd does not ask for it");
    assert_eq!(cached(&mm), [0, 0, 3]);
    check(&mut mm);
}

#[test]
fn hints_are_forgotten_when_kswapd_sleeps_but_not_under_huge_pages() {
    let mut mm = zone_of_blocks("::::::::");
    for n in 0..8 {
        mm.blocks.set_skip(Pfn(n * BLOCK), true);
    }
    mm.frames[Pfn(2 * BLOCK)].set_kind(Kind::Hugetlb, Order(9));
    mm.reset_isolation_suitable(units::NodeId(0));
    assert_eq!(skips(&mm), "ssssssss", "nobody asked for it");
    mm.zones[0].compact.blockskip_flush = true;
    mm.reset_isolation_suitable(units::NodeId(0));
    assert_eq!(skips(&mm), "--s-----");
    assert_eq!(cached(&mm), [0, 0, 7]);
    assert!(!mm.zones[0].compact.blockskip_flush);
}

#[test]
fn an_abandoned_run_gives_everything_back() {
    let mut mm = zone_of_blocks("::::...:");
    let before = used(&mut mm).iter().sum::<u32>();
    let env = env(0);
    let control = CompactControl { order: None, ..direct(CompactPriority::SyncLight) };
    let mut run = CompactRun::start(&mut mm, &env, ZONE, control).expect("no order: always suitable");
    for _ in 0..5 {
        assert_eq!(run.step(&mut mm, &env), CompactStep::More);
    }
    assert_eq!(run.finish(&mut mm, &env), CompactResult::Contended);
    assert_eq!(used(&mut mm).iter().sum::<u32>(), before);
    check(&mut mm);
}

#[test]
fn only_asynchronous_compaction_gives_up_the_zone_for_the_cpu() {
    for (priority, step) in [
        (CompactPriority::Async, CompactStep::Done(CompactResult::Contended)),
        (CompactPriority::SyncLight, CompactStep::More),
    ] {
        let mut mm = zone_of_blocks("::::::::");
        let env = env(0);
        let mut run = CompactRun::start(&mut mm, &env, ZONE, direct(priority)).expect("fragmented");
        run.cpu_is_wanted_in(&mm, Nanos::ZERO);
        assert_eq!(run.step(&mut mm, &env), step, "{priority:?}");
        run.interrupt();
        assert_eq!(run.step(&mut mm, &env), CompactStep::Done(CompactResult::Contended));
        let _ = run.finish(&mut mm, &env);
    }
}

#[test]
fn a_scan_gives_up_for_the_cpu_at_the_first_32_frames_after_it_is_wanted() {
    let frames = |wanted: u64| {
        let mut mm = zone_of_blocks("::::::::");
        let mut run = CompactRun::start(&mut mm, &env(0), ZONE, direct(CompactPriority::Async)).expect("fragmented");
        run.cpu_is_wanted_in(&mm, Nanos(wanted));
        assert_eq!(run.step(&mut mm, &env(0)), CompactStep::Done(CompactResult::Contended));
        let scanned = run.migrate_scanned;
        let _ = run.finish(&mut mm, &env(0));
        check(&mut mm);
        scanned
    };
    let mm = zone_of_blocks("::::::::");
    // Every other frame is a page that is taken: 32 frames take so long.
    let cluster = 32 * mm.costs.compact_scan + 16 * mm.costs.compact_isolate;
    assert_eq!([0, 1, cluster].map(frames), [0, 32, 32]);
}

#[test]
fn direct_compaction_that_gave_up_for_its_cpu_tries_no_other_zone() {
    for (rules, priority, gives_up) in [
        (rules_4_20(), CompactPriority::Async, true),
        (rules_4_20(), CompactPriority::SyncLight, false),
        (rules_6_12(), CompactPriority::Async, false),
    ] {
        let mut mm = zone_under("::::::::", rules);
        let mut compaction = DirectCompaction::new(&mut mm, REQUEST, FLAGS, priority);
        let ended = std::iter::from_fn(|| {
            compaction.cpu_is_wanted_in(&mm, Nanos::ZERO);
            Some(compaction.step(&mut mm, &env(0)))
        })
        .find_map(|step| if let CompactStep::Done(result) = step { Some(result) } else { None });
        assert_eq!(ended == Some(CompactResult::Contended), gives_up, "{priority:?}");
        let _ = compaction.finish(&mut mm, &env(0));
        check(&mut mm);
    }
}

#[test]
fn a_block_that_would_be_stolen_ends_a_run_at_once_and_since_4_12_at_the_end_of_a_pageblock() {
    for (compaction_finish, ended) in [
        (CompactionFinish::Stealable, CompactResult::Success),
        (CompactionFinish::StealableAtEnd, CompactResult::Continue),
    ] {
        let mut mm = zone_under("::::::::", Rules { compaction_finish, ..rules_4_20() });
        let mut run =
            CompactRun::start(&mut mm, &env(0), ZONE, direct(CompactPriority::SyncLight)).expect("fragmented");
        // Single Movable pages are free.
        (run.control.order, run.migratetype, run.scanners.migrate) =
            (Some(Order(0)), MigrateType::Unmovable, Pfn(BLOCK + 10));
        assert_eq!(run.compact_finished(&mut mm), ended);
        let _ = run.finish(&mut mm, &env(0));
    }
}

/// Another CPU holds a lock for `share` thousandths of two windows; now is in the third.
fn held_elsewhere(mm: &mut Mm, share: u64, hold: impl Fn(&mut Mm, u64)) {
    for millisecond in 0..3 {
        let now = Nanos::millis(millisecond);
        mm.called_by(&Env { now, cpu: CpuId(0), ..env(0) });
        hold(mm, 0);
        mm.called_by(&Env { now, cpu: CpuId(1), ..env(0) });
        hold(mm, share * 1000);
    }
    mm.called_by(&Env { now: Nanos::millis(2), cpu: CpuId(0), ..env(0) });
}

#[test]
fn a_lock_fails_as_often_as_the_other_cpu_held_it() {
    let tries = |mm: &mut Mm| (0..100).filter(|_| mm.try_zone_lock(ZONE)).count();
    for (share, free) in [(0, 100), (250, 75), (500, 50), (1000, 0)] {
        let mut mm = zone_of_blocks("::::::::");
        held_elsewhere(&mut mm, share, |mm, ns| mm.hold_zone_lock(ZONE, ns));
        assert_eq!(tries(&mut mm), free, "{share}");
        for millisecond in [9, 11] {
            mm.called_by(&Env { now: Nanos::millis(millisecond), ..env(0) });
            mm.hold_zone_lock(ZONE, 0);
        }
        assert_eq!(tries(&mut mm), 100, "long ago");
    }
}

#[test]
fn until_4_7_direct_compaction_says_what_it_gave_up_for() {
    let contention = |priority, locked: bool, wanted: bool| {
        let mut mm = zone_of_blocks("::::::::");
        mm.rules.direct_compaction = DirectCompactionRule::AroundReclaim;
        if locked {
            let lru = mm.zones[0].lru;
            held_elsewhere(&mut mm, 1000, |mm, ns| mm.hold_lru_lock(lru, ns));
        }
        let mut compaction = DirectCompaction::new(&mut mm, REQUEST, FLAGS, priority);
        loop {
            compaction.cpu_is_wanted_in(&mm, if wanted { Nanos::ZERO } else { Nanos::secs(1000) });
            if let CompactStep::Done(_) = compaction.step(&mut mm, &env(0)) {
                break;
            }
        }
        let contention = compaction.contention();
        let _ = compaction.finish(&mut mm, &env(0));
        contention
    };
    use Contention::{Cpu, Lock, None};
    let asked = [(false, false), (true, false), (false, true)];
    assert_eq!(asked.map(|(locked, wanted)| contention(CompactPriority::Async, locked, wanted)), [None, Lock, Cpu]);
    assert_eq!(asked.map(|(locked, wanted)| contention(CompactPriority::SyncLight, locked, wanted)), [None; 3]);
}

#[test]
fn until_5_0_asynchronous_compaction_gives_up_for_a_lock_at_once() {
    let gave_up = CompactStep::Done(CompactResult::Contended);
    for (rules, priority, steps) in [
        (rules_4_20(), CompactPriority::Async, [gave_up, gave_up]),
        (rules_4_20(), CompactPriority::SyncLight, [CompactStep::More, CompactStep::More]),
    ] {
        let mut mm = zone_under("::::::::", rules);
        let lru = mm.zones[0].lru;
        held_elsewhere(&mut mm, 1000, |mm, ns| mm.hold_lru_lock(lru, ns));
        let mut run = CompactRun::start(&mut mm, &env(0), ZONE, direct(priority)).expect("fragmented");
        assert_eq!([run.step(&mut mm, &env(0)), run.step(&mut mm, &env(0))], steps, "{priority:?}");
        let _ = run.finish(&mut mm, &env(0));
        check(&mut mm);
    }
}
