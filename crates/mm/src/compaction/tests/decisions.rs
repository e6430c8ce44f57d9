//! Whether to compact, when to let it be, and what an allocation makes of it.

use rules::{CompactionStall, DirectCompaction as DirectCompactionRule};

use super::*;
use crate::Effect;
use crate::stat::VmEvent;
use crate::zone::testing::request;

#[test]
fn the_fragmentation_index_tells_want_of_memory_from_want_of_order() {
    // 512 single pages: 1000 - (1000 + 512 x 1000 / 512) / 512 = 1000 - 2000 / 512.
    assert_eq!(zone_of_blocks("::AAA").fragmentation_index(ZONE, HUGE), 997);
    // One block of order 8: 1000 - (1000 + 256 x 1000 / 512) / 1 = -500, and it is no -1000.
    let mut cells: Vec<Cell> = "AAAAA".chars().flat_map(cells_of).collect();
    cells[..256].fill(Cell::Free);
    assert_eq!(zone_of_cells(&cells, rules_4_20()).fragmentation_index(ZONE, HUGE), -500);
    assert_eq!(zone_of_blocks(".AAAA").fragmentation_index(ZONE, HUGE), -1000);
    assert_eq!(zone_of_blocks("AAAAA").fragmentation_index(ZONE, HUGE), 0);
}

fn suits(mm: &Mm) -> CompactResult {
    compaction_verdict(mm, ZONE, HUGE, FLAGS, ZoneKind::Normal)
}

#[test]
fn memory_for_targets_is_needed_and_one_page_more_opens_the_gate() {
    let mut mm = zone_of_blocks("::::::::");
    // 8 x 256 free pages; the low watermark and 2 << 9 must be exceeded.
    mm.zones[0].watermarks.low = 2048 - 1024;
    assert_eq!(suits(&mm), CompactResult::Skipped);
    mm.zones[0].watermarks.low -= 1;
    assert_eq!(suits(&mm), CompactResult::Continue);
}

#[test]
fn the_index_must_exceed_the_threshold() {
    let mut mm = zone_of_blocks("::::::::");
    // 1000 - (1000 + 4000) / 2048 = 998.
    mm.tunables.extfrag_threshold = 998;
    assert_eq!(suits(&mm), CompactResult::NotSuitableZone);
    assert_eq!(run(&mut mm, direct(CompactPriority::SyncLight)), CompactResult::Skipped);
    mm.tunables.extfrag_threshold = 997;
    assert_eq!(suits(&mm), CompactResult::Continue);
}

#[test]
fn a_zone_with_a_free_block_needs_no_compaction() {
    assert_eq!(suits(&zone_of_blocks(":::::::.")), CompactResult::Success);
}

/// Attempts until one is not let pass.
fn attempts(mm: &mut Mm, order: Order) -> u32 {
    (1..).find(|_| !mm.compaction_deferred(ZONE, order)).expect("ends at 64")
}

#[test]
fn each_failure_doubles_the_attempts_that_are_let_pass() {
    let mut mm = zone_of_blocks("AAAAA");
    assert_eq!(attempts(&mut mm, HUGE), 1);
    for expected in [2, 4, 8, 16, 32, 64, 64] {
        mm.defer_compaction(ZONE, HUGE);
        assert!(!mm.zones[0].compact.restarting(HUGE));
        assert_eq!(attempts(&mut mm, HUGE), expected);
        assert_eq!(mm.zones[0].compact.restarting(HUGE), expected == 64);
    }
    mm.compaction_defer_reset(ZONE, HUGE, true);
    assert_eq!(attempts(&mut mm, HUGE), 1);
}

#[test]
fn smaller_orders_than_the_one_that_failed_are_not_deferred() {
    let mut mm = zone_of_blocks("AAAAA");
    mm.compaction_defer_reset(ZONE, Order(4), false);
    mm.defer_compaction(ZONE, HUGE);
    assert_eq!(mm.zones[0].compact.order_failed, Order(5));
    assert!(!mm.compaction_deferred(ZONE, Order(4)));
    assert!(mm.compaction_deferred(ZONE, Order(5)));
    // A success that is only expected lifts the order, not the deferral.
    mm.compaction_defer_reset(ZONE, HUGE, false);
    assert_eq!((mm.zones[0].compact.order_failed, mm.zones[0].compact.defer_shift), (Order(10), 1));
}

#[test]
fn a_restart_clears_the_hints_and_starts_at_the_ends() {
    let mut mm = zone_of_blocks("::::::::");
    mm.blocks.set_skip(Pfn(0), true);
    mm.zones[0].compact.migrate_pfn = [Some(Pfn(4 * BLOCK)); 2];
    mm.zones[0].compact.defer_shift = 6;
    mm.zones[0].compact.considered = 64;
    assert_eq!(run(&mut mm, direct(CompactPriority::SyncLight)), CompactResult::Success);
    assert_eq!(used(&mut mm)[..2], [0, 256], "from the first block on");
}

fn compact(mm: &mut Mm, priority: CompactPriority) -> CompactResult {
    let (result, captured) = compact_and_capture(mm, priority);
    assert_eq!(captured, None, "until 5.0 nothing is captured");
    result
}

#[test]
fn an_allocation_gets_the_block_that_it_made() {
    let mut mm = zone_of_blocks("::::::::");
    let result = compact(&mut mm, CompactPriority::Async);
    assert_eq!(result, CompactResult::Success);
    let page = mm.after_direct_compaction(&env(0), REQUEST, FLAGS, (result, None));
    assert_eq!(page, Some(Pfn(0)));
    let counted = [VmEvent::CompactStall, VmEvent::CompactSuccess, VmEvent::CompactFail].map(|e| mm.stat.event(e));
    assert_eq!(counted, [1, 1, 0]);
    assert_eq!(mm.zones[0].compact.order_failed, Order(10));
}

#[test]
fn a_synchronous_failure_defers_and_an_asynchronous_does_not() {
    let block = |n: u32| if n == 0 || n == 300 { Cell::Stuck } else { Cell::Free };
    let cells: Vec<Cell> = (0..4 * BLOCK).map(|n| block(n % BLOCK)).collect();
    let mut mm = zone_of_cells(&cells, rules_4_20());
    mm.tunables.extfrag_threshold = 0;
    assert_eq!(compact(&mut mm, CompactPriority::Async), CompactResult::Complete);
    assert_eq!(mm.zones[0].compact.defer_shift, 0);
    assert_eq!(compact(&mut mm, CompactPriority::SyncLight), CompactResult::Complete);
    assert_eq!(mm.zones[0].compact.defer_shift, 1);
    assert_eq!(compact(&mut mm, CompactPriority::SyncLight), CompactResult::Deferred);
    for (rule, counted) in
        [(CompactionStall::Ran, [0, 0]), (CompactionStall::Every, [1, 1]), (CompactionStall::Deferred, [1, 0])]
    {
        mm.rules.compaction_stall = rule;
        let stalls = [CompactResult::Deferred, CompactResult::Skipped].map(|result| {
            let before = mm.stat.event(VmEvent::CompactStall);
            assert_eq!(mm.after_direct_compaction(&env(0), REQUEST, FLAGS, (result, None)), None);
            mm.stat.event(VmEvent::CompactStall) - before
        });
        assert_eq!(stalls, counted, "deferred and skipped under {rule:?}");
    }
    // The hardest priority asks nobody.
    assert_eq!(compact(&mut mm, CompactPriority::SyncFull), CompactResult::Complete);
}

#[test]
fn without_io_there_are_no_zones_and_with_thisnode_only_its_own() {
    let mm = zone_of_blocks("::::::::");
    assert!(mm.compaction_zones(request(Gfp::NOIO, 2)).is_empty());
    assert_eq!(mm.compaction_zones(request(Gfp::NOFS, 2)).as_slice(), [ZONE]);
    assert!(mm.compaction_zones(request(Gfp::NOFS.with(Gfp::DMA32), 2)).is_empty());
}

#[test]
fn a_costly_noretry_request_gives_up_by_the_rule() {
    let mut mm = zone_of_blocks("AAAAA");
    let gives_up = |mm: &Mm| {
        [
            (CompactResult::Skipped, Gfp::NONE),
            (CompactResult::Deferred, Gfp::NONE),
            (CompactResult::Complete, Gfp::NONE),
            (CompactResult::Complete, Gfp::THISNODE),
        ]
        .map(|(result, gfp)| mm.gives_up_after(result, gfp))
    };
    assert_eq!(gives_up(&mm), [false, true, false, false]);
    mm.rules.compaction_withdrawn = CompactionWithdrawn::RaisePriority;
    assert_eq!(gives_up(&mm), [true, true, false, true]);
}

#[test]
fn kcompactd_is_woken_only_where_it_may_help_and_finishes_the_block() {
    let mut mm = zone_of_blocks("AAAAAAAA");
    let mut effects = Vec::new();
    mm.wakeup_kcompactd(NODE, HUGE, ZoneKind::Normal);
    mm.effects.take_into(&mut effects);
    assert!(effects.is_empty(), "no free page at all");

    let mut mm = zone_of_blocks("::::::::");
    mm.wakeup_kcompactd(NODE, Order(0), ZoneKind::Normal);
    assert!(KcompactdWork::begin(&mut mm, NODE).is_none());
    mm.wakeup_kcompactd(NODE, HUGE, ZoneKind::Normal);
    mm.effects.take_into(&mut effects);
    assert_eq!(effects, [Effect::WakeKcompactd(NODE, HUGE)]);
    let mut work = KcompactdWork::begin(&mut mm, NODE).expect("asked for");
    mm.wakeup_kcompactd(NODE, HUGE, ZoneKind::Dma32);
    mm.effects.take_into(&mut effects);
    assert!(effects.is_empty(), "it runs already");
    while work.step(&mut mm, &env(0)) == CompactStep::More {}
    assert_eq!(used(&mut mm), [0, 256, 256, 256, 256, 256, 256, 512]);
    assert_eq!(mm.stat.event(VmEvent::CompactDaemonWake), 1);
    assert_eq!(mm.stat.event(VmEvent::CompactDaemonMigrateScanned), 512);
    assert!(KcompactdWork::begin(&mut mm, NODE).is_none(), "done");
    check(&mut mm);
}

#[test]
fn kcompactd_goes_to_the_ends_of_a_zone_after_one_that_it_compacted_from_its_end() {
    for (first, whole_zone, begins, whole_after) in [(0, false, 0, true), (3, false, 3, false), (3, true, 0, true)] {
        let mut mm = zone_of_blocks("::::::::");
        mm.zones[0].compact.migrate_pfn = [Some(Pfn(first * BLOCK)); 2];
        mm.wakeup_kcompactd(NODE, HUGE, ZoneKind::Normal);
        let mut work = KcompactdWork::begin(&mut mm, NODE).expect("asked for");
        work.whole_zone = whole_zone;
        assert_eq!(work.step(&mut mm, &env(0)), CompactStep::More);
        let migrate = work.run.as_ref().expect("fragmented").scanners.migrate;
        assert_eq!((migrate, work.whole_zone), (Pfn(begins * BLOCK), whole_after));
        work.finish(&mut mm, &env(0));
    }
}

#[test]
fn a_deferred_zone_counts_more_than_one_without_memory_and_until_4_7_less() {
    for (rule, expected) in [
        (DirectCompactionRule::Priorities, [CompactResult::Deferred, CompactResult::Deferred]),
        (DirectCompactionRule::AroundReclaim, [CompactResult::Deferred, CompactResult::Skipped]),
    ] {
        let results = [false, true].map(|two| {
            let mut mm = zone_of_blocks("AAAAA");
            mm.rules.direct_compaction = rule;
            mm.defer_compaction(ZONE, HUGE);
            let mut work = DirectCompaction::new(&mut mm, REQUEST, FLAGS, CompactPriority::SyncLight);
            if two {
                work.note(CompactResult::Skipped);
            }
            while work.step(&mut mm, &env(0)) == CompactStep::More {}
            work.finish(&mut mm, &env(0)).0
        });
        assert_eq!(results, expected, "{rule:?}");
    }
}
