//! What the searches of the free lists do to a drawn zone: which block is taken, marked, remembered.

use super::*;
use crate::compaction::fast_migrate::{FastSearch, LowestFound};
use crate::stat::VmEvent;
use units::Nanos;

/// Where the migrate and the free scanner go on, in blocks.
fn places(mm: &Mm) -> [Option<u32>; 3] {
    let state = &mm.zones[0].compact;
    [state.migrate_pfn[0], state.migrate_pfn[1], state.free_pfn].map(|pfn| pfn.map(|pfn| pfn.0 / BLOCK))
}

/// Full blocks but for three at the end, and in some the first 64 frames free.
fn mostly_full(partly_free: &[u32], rules: Rules) -> Mm {
    let mut cells = vec![Cell::Page(0); 16 * BLOCK as usize];
    for block in 12..15 {
        let first = block * BLOCK as usize;
        // One page keeps the block from being free as a whole.
        cells[first + 1..first + BLOCK as usize].fill(Cell::Free);
    }
    for block in partly_free {
        let first = (block * BLOCK) as usize;
        cells[first..first + 64].fill(Cell::Free);
    }
    zone_of_cells(&cells, rules)
}

fn begun(mm: &mut Mm, order: u8, migratetype: MigrateType) -> CompactRun {
    let control = CompactControl { order: None, whole_zone: true, ..direct(CompactPriority::SyncLight) };
    let mut run = CompactRun::start(mm, &env(0), ZONE, control).expect("without an order every zone suits");
    run.control.order = Some(Order(order));
    (run.fast, run.migratetype) = (FastSearch::new(Some(Order(order))), migratetype);
    // A place that is not known is frame 0 to the kernel, which is in the zone's first block here.
    run.last_migrated = Some(Pfn(15 * BLOCK));
    run
}

fn found(order: u8, migratetype: MigrateType) -> u32 {
    let mut mm = mostly_full(&[5], rules_6_12());
    let mut run = begun(&mut mm, order, migratetype);
    let block = run.fast_find_migrateblock(&mut mm).0 / BLOCK;
    let _ = run.finish(&mut mm, &env(0));
    block
}

#[test]
fn a_partly_free_block_is_taken_for_costly_movable_requests() {
    assert_eq!(found(9, MigrateType::Movable), 5);
    assert_eq!(found(9, MigrateType::Unmovable), 0);
    assert_eq!(found(7, MigrateType::Movable), 5);
    // The free block has order 6, and only smaller ones are looked at.
    assert_eq!(found(6, MigrateType::Movable), 0);
    assert_eq!(found(3, MigrateType::Movable), 0);
}

#[test]
fn the_migrate_scanner_goes_to_the_block_and_marks_it() {
    let mut mm = mostly_full(&[5], rules_6_12());
    let mut run = begun(&mut mm, 9, MigrateType::Movable);
    while run.step(&mut mm, &env(0)) == CompactStep::More {}
    assert_eq!(run.finish(&mut mm, &env(0)), CompactResult::Success);
    assert_eq!(used(&mut mm)[4..7], [512, 0, 512]);
    assert_eq!(mm.stat.event(VmEvent::PgmigrateSuccess), 448);
    // The free scanner did not come to the end of its block.
    assert_eq!(skips(&mm), "-----s----------");
    check(&mut mm);
}

#[test]
fn until_6_2_the_block_that_was_shown_is_marked_before_it_is_looked_at() {
    let mut mm = mostly_full(&[5], rules_6_1());
    let mut run = begun(&mut mm, 9, MigrateType::Movable);
    assert_eq!(run.step(&mut mm, &env(0)), CompactStep::More);
    assert!(mm.blocks.skip(Pfn(5 * BLOCK)));
    assert_eq!(mm.stat.event(VmEvent::PgmigrateSuccess), 0, "its mark keeps the scanner out");
    assert_eq!(run.scanners.migrate, Pfn(6 * BLOCK));
    let _ = run.finish(&mut mm, &env(0));
}

#[test]
fn a_search_in_vain_returns_once_to_the_lowest_block_found() {
    let mut mm = mostly_full(&[4, 5], rules_6_12());
    let mut run = begun(&mut mm, 9, MigrateType::Movable);
    let mut places = Vec::new();
    for _ in 0..2 {
        let pfn = run.fast_find_migrateblock(&mut mm);
        mm.blocks.set_skip(pfn, true);
        places.push(pfn.0 / BLOCK);
    }
    places.sort_unstable();
    assert_eq!(places, [4, 5]);
    assert_eq!(run.fast.lowest, LowestFound::At(Pfn(4 * BLOCK)));
    run.scanners.migrate = Pfn(7 * BLOCK);
    assert_eq!(run.fast_find_migrateblock(&mut mm), Pfn(4 * BLOCK));
    run.scanners.migrate = Pfn(7 * BLOCK);
    assert_eq!(run.fast_find_migrateblock(&mut mm), Pfn(7 * BLOCK));
    assert_eq!(run.fast.fails, 2);
    let _ = run.finish(&mut mm, &env(0));
}

#[test]
fn a_run_that_comes_back_to_its_block_takes_all_of_it() {
    let mut mm = zone_under("AAAAAAAA::::::::", rules_6_12());
    let mut run = begun(&mut mm, 10, MigrateType::Unmovable);
    run.last_migrated = None;
    let env = env(0);
    assert_eq!(run.step(&mut mm, &env), CompactStep::More);
    assert_eq!(run.scanners.migrate, Pfn(BLOCK), "taken as a whole at once");
    assert_eq!(run.step(&mut mm, &env), CompactStep::More);
    assert_eq!(run.scanners.migrate, Pfn(BLOCK + 32));
    assert!(mm.blocks.skip(Pfn(BLOCK)), "marked with the first page taken");
    assert_eq!(run.step(&mut mm, &env), CompactStep::More);
    assert_eq!(run.scanners.migrate, Pfn(2 * BLOCK));
    let _ = run.finish(&mut mm, &env);
    check(&mut mm);
}

#[test]
fn a_page_that_cannot_be_moved_makes_it_take_the_rest_at_once() {
    let mut cells: Vec<Cell> = "A::::::.:".chars().flat_map(cells_of).collect();
    cells[3 * BLOCK as usize + 8] = Cell::Page(Frame::LOCKED);
    cells[0] = Cell::Stuck;
    cells[7 * BLOCK as usize] = Cell::Stuck;
    for (rescan, whole) in [(PageblockRescan::Failed, true), (PageblockRescan::Revisited, false)] {
        let mut mm = zone_of_cells(&cells, Rules { pageblock_rescan: rescan, ..rules_6_12() });
        let mut run = begun(&mut mm, 9, MigrateType::Unmovable);
        run.scanners.migrate = Pfn(3 * BLOCK);
        assert_eq!(run.step(&mut mm, &env(0)), CompactStep::More);
        assert_eq!(run.whole_block, whole, "{rescan:?}");
        assert_eq!(run.last_migrated.is_none(), whole, "{rescan:?}: flushing would not make the block free");
        assert_eq!(run.step(&mut mm, &env(0)), CompactStep::More);
        assert_eq!(run.scanners.migrate, Pfn(4 * BLOCK), "{rescan:?}: revisited at the latest");
        let _ = run.finish(&mut mm, &env(0));
        check(&mut mm);
    }
}

#[test]
fn asynchronous_runs_look_at_every_32nd_frame_until_they_find_one() {
    // The list of Movable blocks shows nothing: the free pages are of the other types' lists.
    let mut mm = zone_under("AAAAAAA:", rules_6_12());
    let list = MigrateType::Movable as usize;
    while let Some(pfn) = mm.zones[0].free_area[0].lists[list].pop_front(&mut mm.frames) {
        mm.frames[pfn].set_free(Kind::Buddy, Order(0), MigrateType::Reclaimable);
        mm.zones[0].free_area[0].lists[MigrateType::Reclaimable as usize].push_back(&mut mm.frames, pfn);
    }
    // Seven blocks are above the migrate scanner's.
    for (mode, scanned) in [(MigrateMode::Async, 7 * 16), (MigrateMode::SyncLight, 64)] {
        let mut run = begun(&mut mm, 9, MigrateType::Movable);
        (run.control.mode, run.to_migrate) = (mode, 32);
        mm.zones[0].compact.init_free_pfn = Some(Pfn(8 * BLOCK));
        assert_eq!(run.take_target(&mut mm, units::Order(0)).is_some(), mode == MigrateMode::SyncLight);
        // Even frames are pages: strides of 32 meet none, single steps 32 in twice as many.
        assert_eq!(run.free_scanned, scanned, "{mode:?}");
        assert_eq!(mm.blocks.skip(Pfn(7 * BLOCK)), mode == MigrateMode::Async, "looked at to its end");
        let _ = run.finish(&mut mm, &env(0));
        (0..8).for_each(|n| mm.blocks.set_skip(Pfn(n * BLOCK), false));
    }
}

#[test]
fn hints_are_cleared_of_useful_blocks_and_the_scanners_go_to_the_outermost() {
    let mut mm = zone_under("KKA:KAK.K", rules_6_12());
    (0..9).for_each(|n| mm.blocks.set_skip(Pfn(n * BLOCK), true));
    mm.zones[0].compact.blockskip_flush = true;
    mm.reset_isolation_suitable(NODE);
    // Up: K K A : and down: K . K A; the walks end in the middle.
    assert_eq!(skips(&mm), "ss--s-s-s");
    assert_eq!(places(&mm), [Some(2), Some(2), Some(7)]);
    assert_eq!(mm.zones[0].compact.free_pfn, Some(Pfn(8 * BLOCK - 1)), "the walk down goes by last frames");
    assert!(!mm.zones[0].compact.blockskip_flush);
}

#[test]
fn without_a_useful_block_the_next_run_ends_at_once() {
    let mut mm = zone_under("KKKKKKKK", rules_6_12());
    (0..8).for_each(|n| mm.blocks.set_skip(Pfn(n * BLOCK), true));
    mm.zones[0].compact.blockskip_flush = true;
    mm.reset_isolation_suitable(NODE);
    assert_eq!(skips(&mm), "ssssssss");
    let control = CompactControl { order: None, ..direct(CompactPriority::SyncLight) };
    assert_eq!(run(&mut mm, control), CompactResult::PartialSkipped);
    assert_eq!(mm.stat.event(VmEvent::CompactMigrateScanned), 0);
}

#[test]
fn a_restart_clears_hints_since_5_1_only_if_an_allocation_saw_the_scanners_meet() {
    for (rules, asked, cleared) in
        [(rules_6_12(), false, false), (rules_6_12(), true, true), (rules_4_20(), false, true)]
    {
        let mut mm = zone_under("::::::::", rules);
        mm.blocks.set_skip(Pfn(0), true);
        let compact = &mut mm.zones[0].compact;
        (compact.defer_shift, compact.considered, compact.blockskip_flush) = (6, 64, asked);
        mm.restart_compaction(ZONE);
        assert_eq!(!mm.blocks.skip(Pfn(0)), cleared);
    }
}

#[test]
fn a_busy_cpu_no_longer_ends_the_zone_at_hand() {
    let mut mm = zone_under("::::::::", rules_6_12());
    let mut run = CompactRun::start(&mut mm, &env(0), ZONE, direct(CompactPriority::Async)).expect("fragmented");
    run.cpu_is_wanted_in(&mm, Nanos::ZERO);
    assert_eq!(run.step(&mut mm, &env(0)), CompactStep::More);
    run.interrupt();
    assert_eq!(run.step(&mut mm, &env(0)), CompactStep::Done(CompactResult::Contended));
    let _ = run.finish(&mut mm, &env(0));
}

#[test]
fn a_block_that_the_watermark_protects_is_passed_over_until_4_6() {
    use FreeScanner::{UntilEnough, UntilEnoughPassing, WholePageblock};
    // A free block of 256 pages, then every second page.
    let cells: Vec<Cell> =
        (0..4 * BLOCK).map(|n| if n < 256 || n % 2 == 1 { Cell::Free } else { Cell::Page(0) }).collect();
    for (free_scanner, taken) in [(UntilEnough, 0), (UntilEnoughPassing, 10), (WholePageblock, 59)] {
        let mut mm = zone_of_cells(&cells, Rules { free_scanner, ..rules_4_20() });
        let mut run = begun(&mut mm, 9, MigrateType::Movable);
        run.to_migrate = 10;
        // A single page is given while more than one is left above the watermark.
        mm.zones[0].watermarks.min = mm.zones[0].free_pages - 60;
        assert_eq!(run.isolate_freepages_block(&mut mm, Pfn(0), Pfn(BLOCK), 1).1, taken, "{free_scanner:?}");
        let _ = run.finish(&mut mm, &env(0));
    }
}

#[test]
fn a_contended_scan_takes_all_of_a_pageblock() {
    for (contended, taken) in [(false, 32), (true, BLOCK as usize / 2)] {
        let mut mm = zone_under("::::::::", rules_6_12());
        let mut run = begun(&mut mm, 9, MigrateType::Unmovable);
        run.contended = contended;
        let _ = run.isolate_migratepages(&mut mm, &env(0));
        assert_eq!(run.cluster.len(), taken);
        run.putback_cluster(&mut mm, &env(0));
        let _ = run.finish(&mut mm, &env(0));
    }
}

#[test]
fn contention_ends_a_run_only_where_a_block_was_sought_in_vain() {
    for (within, ended) in [(0, CompactResult::Contended), (10, CompactResult::Continue)] {
        let mut mm = zone_under("::::::::", rules_6_12());
        let mut run = CompactRun::start(&mut mm, &env(0), ZONE, direct(CompactPriority::Async)).expect("fragmented");
        (run.contended, run.scanners.migrate) = (true, Pfn(BLOCK + within));
        assert_eq!(run.compact_finished(&mut mm), ended);
        let _ = run.finish(&mut mm, &env(0));
    }
}

#[test]
fn free_and_compound_pages_count_as_scanned_by_the_rule() {
    // 16 pages in the first half of a block whose rest is free.
    let cells: Vec<Cell> =
        (0..4 * BLOCK).map(|n| if (16..2 * BLOCK).contains(&n) { Cell::Free } else { Cell::Page(0) }).collect();
    for (rule, expected) in [(CompactionScanned::WithTaken, 16 + 4 + 1), (CompactionScanned::WithPassed, 512)] {
        let mut mm = zone_of_cells(&cells, Rules { compaction_scanned: rule, ..rules_6_12() });
        let mut run = begun(&mut mm, 9, MigrateType::Unmovable);
        let _ = run.isolate_migratepages(&mut mm, &env(0));
        // 16 pages, and free blocks of orders 4 to 8: 16, 32, 64, 128 and 256 frames.
        assert_eq!(run.migrate_scanned, expected, "{rule:?}");
        run.putback_cluster(&mut mm, &env(0));
        let _ = run.finish(&mut mm, &env(0));
    }
}
