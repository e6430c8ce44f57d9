//! Which pages are taken and moved, by their state and the mode.

use super::*;
use crate::stat::VmEvent;

/// Eight half-used blocks; the first page has these flags.
fn zone_with(flags: u32) -> Mm {
    let mut cells: Vec<Cell> = "::::::::".chars().flat_map(cells_of).collect();
    cells[0] = Cell::Page(flags);
    zone_of_cells(&cells, rules_4_20())
}

/// Pages of the first block that stay there, and failed migrations.
fn left_after(flags: u32, control: CompactControl) -> (u32, u64) {
    let mut mm = zone_with(flags);
    run(&mut mm, control);
    check(&mut mm);
    (used(&mut mm)[0], mm.stat.event(VmEvent::PgmigrateFail))
}

#[test]
fn dirty_and_clean_pages_move_in_every_mode() {
    for priority in [CompactPriority::SyncLight, CompactPriority::Async] {
        assert_eq!(left_after(Frame::DIRTY, direct(priority)), (0, 0));
    }
}

#[test]
fn pages_under_writeback_are_not_taken_short_of_full_synchronous_mode() {
    assert_eq!(left_after(Frame::WRITEBACK, direct(CompactPriority::SyncLight)), (1, 0));
    // Asynchronous direct compaction passes the block over.
    assert_eq!(left_after(Frame::WRITEBACK, direct(CompactPriority::Async)), (256, 0));
}

#[test]
fn a_locked_page_is_taken_by_direct_compaction_in_vain() {
    assert_eq!(left_after(Frame::LOCKED, direct(CompactPriority::SyncLight)), (1, 1));
    // The cluster of 32 moves but for the locked page, then the rest of the aligned block is left.
    assert_eq!(left_after(Frame::LOCKED, direct(CompactPriority::Async)), (256 - 31, 1));
}

#[test]
fn until_4_3_only_what_cannot_be_moved_at_all_counts_as_failed() {
    // Under writeback a page is only isolated, and so can only fail, in the light mode of that time.
    for (rule, locked) in [(FailedMigrations::Permanent, 0), (FailedMigrations::All, 1)] {
        for (flag, counted) in [(Frame::LOCKED, locked), (Frame::WRITEBACK, 1)] {
            let mut mm = zone_with(flag);
            mm.rules.failed_migrations = rule;
            mm.rules.light_isolation = LightIsolation::UnderWriteback;
            run(&mut mm, direct(CompactPriority::SyncLight));
            check(&mut mm);
            assert_eq!((used(&mut mm)[0], mm.stat.event(VmEvent::PgmigrateFail)), (1, counted), "{rule:?}");
        }
    }
}

#[test]
fn a_pinned_page_is_not_even_taken_unless_it_is_in_the_swap_cache() {
    assert_eq!(left_after(Frame::PINNED, direct(CompactPriority::SyncLight)), (1, 0));
}

#[test]
fn kcompactd_waits_once_for_a_lock_and_full_sync_for_writeback() {
    let env = env(0);
    let daemon = CompactControl::daemon(HUGE, ZoneKind::Normal);
    for (flag, control) in [(Frame::LOCKED, daemon), (Frame::WRITEBACK, CompactControl::everything())] {
        let mut mm = zone_with(flag);
        let mut run = CompactRun::start(&mut mm, &env, ZONE, control).expect("fragmented");
        assert_eq!(run.step(&mut mm, &env), CompactStep::Wait(Pfn(0)));
        mm.frames[Pfn(0)].clear(flag);
        while run.step(&mut mm, &env) == CompactStep::More {}
        let _ = run.finish(&mut mm, &env);
        assert_eq!(used(&mut mm)[0], 0);
        check(&mut mm);
    }
    // Still locked after the wait: it stays.
    let mut mm = zone_with(Frame::LOCKED);
    let mut run = CompactRun::start(&mut mm, &env, ZONE, daemon).expect("fragmented");
    assert_eq!(run.step(&mut mm, &env), CompactStep::Wait(Pfn(0)));
    while run.step(&mut mm, &env) == CompactStep::More {}
    let _ = run.finish(&mut mm, &env);
    assert_eq!(used(&mut mm)[0], 1);
}

#[test]
fn without_fs_only_pages_without_a_mapping_are_taken() {
    let nofs = CompactControl { gfp: Gfp::TRANSHUGE.without(Gfp::FS), ..direct(CompactPriority::SyncLight) };
    assert_eq!(left_after(Frame::DIRTY, nofs), (0, 0));
}

#[test]
fn moved_pages_keep_their_flags_but_the_accessed_bit_by_the_rule() {
    for (rule, young) in [(MigrateYoung::Forgotten, false), (MigrateYoung::Kept, true)] {
        let mut mm = zone_with(Frame::DIRTY | Frame::YOUNG | Frame::ACTIVE | Frame::REFERENCED);
        mm.rules.migrate_young = rule;
        run(&mut mm, direct(CompactPriority::SyncLight));
        let (_, now) = places(&mm)[0];
        assert!(now.0 >= 7 * BLOCK, "{now:?}");
        assert!(mm.frames[now].has(Frame::DIRTY | Frame::ACTIVE | Frame::REFERENCED | Frame::LRU));
        assert_eq!(mm.frames[now].has(Frame::YOUNG), young);
        check(&mut mm);
    }
}

#[test]
fn too_many_isolated_pages_stop_asynchronous_and_delay_synchronous_compaction() {
    let env = env(0);
    for (priority, expected) in [
        (CompactPriority::Async, CompactStep::Done(CompactResult::Contended)),
        (CompactPriority::SyncLight, CompactStep::Throttle(units::Nanos::millis(100))),
    ] {
        let mut mm = zone_of_blocks("::::::::");
        // More than half of the 2048 pages that are left: 683 > (2048 - 683) / 2, and 682 is not.
        let taken: Vec<Pfn> = places(&mm)[..683].iter().map(|p| p.1).collect();
        let mut isolated = taken.iter().map(|pfn| mm.lru_isolate(*pfn)).filter(|took| *took).count();
        assert_eq!(isolated, 683);
        let mut run = CompactRun::start(&mut mm, &env, ZONE, direct(priority)).expect("fragmented");
        assert_eq!(run.step(&mut mm, &env), expected);
        mm.lru_putback(&env, taken[682]);
        isolated -= 1;
        let mut again = CompactRun::start(&mut mm, &env, ZONE, direct(priority)).expect("fragmented");
        assert_eq!(again.step(&mut mm, &env), CompactStep::More, "{isolated} are not too many");
        let _ = (run.finish(&mut mm, &env), again.finish(&mut mm, &env));
    }
}
