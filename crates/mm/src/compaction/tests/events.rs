//! What the tracepoints tell of a zone drawn block by block.

use rules::CompactionEvents;

use super::*;
use crate::trace::{TraceEvent, TraceFilter};

const COMPACTION: TraceFilter = TraceFilter { kmem: false, vmscan: false, compaction: true };

fn traced(letters: &str, rules: Rules) -> Mm {
    let mut mm = zone_under(letters, rules);
    mm.trace.filter = COMPACTION;
    mm
}

fn events(mm: &mut Mm) -> Vec<CompactionEvent> {
    let compaction = |event| match event {
        TraceEvent::Compaction(event) => event,
        other => panic!("{other:?} was not asked for"),
    };
    mm.trace.take().into_iter().map(compaction).collect()
}

fn suitable(order: Option<Order>, ret: CompactResult) -> CompactionEvent {
    CompactionEvent::Suitable { zone: ZONE, order, ret }
}

fn finished(ret: CompactResult) -> CompactionEvent {
    CompactionEvent::Finished { zone: ZONE, order: Some(HUGE), ret }
}

fn isolated(scanner: Scanner, frames: [u32; 2], nr_scanned: u64, nr_taken: u64) -> CompactionEvent {
    let [start, end] = frames.map(Pfn);
    CompactionEvent::Isolate { scanner, start, end, nr_scanned, nr_taken }
}

#[test]
fn a_run_tells_each_step_in_its_order() {
    let mut mm = traced("::::::::", rules_4_20());
    assert_eq!(run(&mut mm, direct(CompactPriority::SyncLight)), CompactResult::Success);
    let (last, moved) = (7 * BLOCK, CompactionEvent::Migratepages { nr_migrated: 32, nr_failed: 0 });
    let (migrate_pfn, free_pfn) = (Pfn(0), Pfn(last));
    let mut expected = vec![
        suitable(Some(HUGE), CompactResult::Continue),
        CompactionEvent::Begin { zone: ZONE, migrate_pfn, free_pfn, sync: true },
    ];
    // Every second frame is a page: 32 of them end at the 63rd frame, and the holes for them at the 64th; the last one of the
    // block is looked at in the round after that.
    for round in 0..8 {
        let at = 64 * round;
        let (begins, ends) = (if round == 0 { 0 } else { at - 1 }, at + 63);
        expected.extend([
            finished(CompactResult::NoSuitablePage),
            isolated(Scanner::Migrate, [begins, ends], u64::from(ends - begins), 32),
            isolated(Scanner::Free, [last + at, last + at + 64], 64, 32),
            moved,
        ]);
    }
    let told = events(&mut mm);
    assert_eq!(told[..expected.len()], expected);
    // No page is left in the first block; then it is whole.
    let rest = &told[expected.len()..];
    assert_eq!(rest[..2], [finished(CompactResult::NoSuitablePage), isolated(Scanner::Migrate, [511, 512], 1, 0)]);
    assert_eq!(rest[2], finished(CompactResult::Success));
    assert!(matches!(rest[3..], [CompactionEvent::End { status: CompactResult::Success, .. }]), "{rest:?}");
}

#[test]
fn pages_that_stay_have_failed() {
    let mut mm = traced("::::::::", rules_4_20());
    mm.frames[Pfn(2)].set(Frame::LOCKED);
    run(&mut mm, direct(CompactPriority::SyncLight));
    let migrated = |event: &CompactionEvent| match *event {
        CompactionEvent::Migratepages { nr_migrated, nr_failed } => Some((nr_migrated, nr_failed)),
        _ => None,
    };
    assert_eq!(events(&mut mm).iter().find_map(migrated), Some((31, 1)));
}

#[test]
fn deferrals_are_told_as_they_are_then() {
    let mut mm = traced("AAAAA", rules_4_20());
    let told = |mm: &mut Mm, what, order_failed, considered, limit| {
        let order_failed = Order(order_failed);
        let expected = CompactionEvent::Deferral { what, zone: ZONE, order: HUGE, order_failed, considered, limit };
        assert_eq!(events(mm), [expected]);
    };
    mm.defer_compaction(ZONE, HUGE);
    let lowest = mm.zones[0].compact.order_failed.0;
    told(&mut mm, Deferral::Defer, lowest, 0, 2);
    assert!(mm.compaction_deferred(ZONE, HUGE));
    told(&mut mm, Deferral::Deferred, lowest, 1, 2);
    assert!(!mm.compaction_deferred(ZONE, HUGE));
    assert_eq!(events(&mut mm), [], "an attempt that is made is no deferral");
    mm.compaction_defer_reset(ZONE, HUGE, true);
    told(&mut mm, Deferral::Reset, HUGE.0 + 1, 0, 1);
}

#[test]
fn a_request_that_would_succeed_is_asked_about_until_6_5() {
    for (rule, asks) in [(CompactionEvents::GfpNames, true), (CompactionEvents::FreeLists, false)] {
        let mut mm = traced(":::::::.", Rules { compaction_events: rule, ..rules_4_20() });
        assert_eq!(run(&mut mm, direct(CompactPriority::SyncLight)), CompactResult::Success);
        let success = suitable(Some(HUGE), CompactResult::Success);
        assert_eq!(events(&mut mm), [success][..usize::from(asks)]);
        run(&mut mm, CompactControl::everything());
        let first = events(&mut mm)[0];
        assert_eq!(first == suitable(None, CompactResult::Continue), asks, "{first:?}");
    }
}

#[test]
fn an_allocation_tells_that_it_compacts_if_it_may() {
    let priority = CompactPriority::Async;
    for (gfp, told) in [(Gfp::TRANSHUGE, true), (Gfp::TRANSHUGE.without(Gfp::IO), false)] {
        let mut mm = traced("::::::::", rules_4_20());
        let work = DirectCompaction::new(&mut mm, AllocRequest { gfp, ..REQUEST }, FLAGS, priority);
        let _ = work.finish(&mut mm, &env(0));
        let expected = CompactionEvent::TryToCompactPages { order: HUGE, gfp, priority };
        assert_eq!(events(&mut mm), [expected][..usize::from(told)]);
    }
}

#[test]
fn the_free_lists_tell_where_targets_were_looked_for() {
    let mut mm = traced("::::::::", rules_6_12());
    run(&mut mm, direct(CompactPriority::SyncLight));
    let fast = events(&mut mm)
        .into_iter()
        .find(|event| matches!(event, CompactionEvent::Isolate { scanner: Scanner::FreeLists, .. }));
    let Some(CompactionEvent::Isolate { start, end, nr_scanned, nr_taken, .. }) = fast else { panic!("{fast:?}") };
    // The upper half of what lies between the scanners. The first block is taken as a whole: a place that is not known yet is
    // in it.
    let distance = end.0 - BLOCK;
    assert_eq!((end.0 / BLOCK, start), (7, Pfn(end.0 - (distance >> 1)).align_down(HUGE)));
    // The pages that were freed first, the lowest, are at the list's end, where as many are looked at as half a pageblock has.
    assert_eq!((nr_scanned, nr_taken), (u64::from(BLOCK / 2), 0));
}

#[test]
fn nothing_is_recorded_unasked() {
    let mut mm = traced("::::::::", rules_4_20());
    mm.trace.filter = TraceFilter { kmem: true, vmscan: true, compaction: false };
    run(&mut mm, direct(CompactPriority::SyncLight));
    mm.defer_compaction(ZONE, HUGE);
    assert!(!mm.trace.is_pending());
}
