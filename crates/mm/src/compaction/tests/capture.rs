//! Page capture, and how targets are held.

use super::*;
use crate::compaction::targets::Targets;
use crate::stat::{VmEvent, ZoneEvent, ZoneStat};

#[test]
fn a_task_takes_the_block_that_it_made_before_anybody_else() {
    for rules in [rules_6_12(), rules_6_1()] {
        let mut mm = zone_under("::::::::", rules);
        let (free, allocated) =
            (mm.stat.zone(ZONE, ZoneStat::FreePages), mm.stat.zone_event(ZoneEvent::Pgalloc, ZoneKind::Normal));
        let (result, captured) = compact_and_capture(&mut mm, CompactPriority::SyncLight);
        assert_eq!(result, CompactResult::Success);
        let pfn = captured.expect("nothing is on the lists");
        assert_eq!((mm.frames[pfn].kind(), mm.frames[pfn].order()), (Kind::Held, HUGE));
        let whole = |area: usize| mm.zones[0].free_area[area].is_empty();
        assert!(whole(9) && whole(10));
        assert_eq!(mm.after_direct_compaction(&env(0), REQUEST, FLAGS, (result, captured)), captured);
        assert_eq!(mm.stat.event(VmEvent::CompactSuccess), 1);
        // It never came to the lists: no allocation is counted.
        assert_eq!(mm.stat.zone_event(ZoneEvent::Pgalloc, ZoneKind::Normal), allocated);
        mm.drain_pcp_all();
        assert_eq!(mm.stat.zone(ZONE, ZoneStat::FreePages), free - 512);
        assert!(mm.zones[0].capture.is_none());
        check(&mut mm);
    }
}

#[test]
fn kcompactd_and_older_kernels_leave_the_block_on_the_lists() {
    let mut mm = zone_under("::::::::", Rules { page_capture: PageCapture::None, ..rules_6_12() });
    assert_eq!(compact_and_capture(&mut mm, CompactPriority::SyncLight), (CompactResult::Success, None));
    let mut mm = zone_under("::::::::", rules_6_12());
    assert_eq!(run(&mut mm, CompactControl::daemon(HUGE, ZoneKind::Normal)), CompactResult::Success);
    assert_eq!(mm.zones[0].free_area[9].lists[MigrateType::Movable as usize].len(), 1);
}

/// Whether a block of order 3 of a type that comes free is captured by a request of another type.
fn captured_small(block: MigrateType, wanted: MigrateType) -> bool {
    let mut mm = zone_under("KKAAAAAA", rules_6_12());
    mm.blocks.set_migratetype(Pfn(0), block);
    for n in 0..8 {
        mm.frames[Pfn(n)].set_kind(Kind::Held, Order(0));
    }
    mm.begin_capture(ZONE, Order(3), wanted, None);
    (0..8).for_each(|n| mm.free_pages(&env(0), Pfn(n), Order(0)));
    mm.drain_pcp_all();
    let captured = mm.end_capture(ZONE, None);
    assert!(captured.is_none_or(|pfn| pfn == Pfn(0)));
    captured.is_some()
}

#[test]
fn a_small_block_of_a_movable_pageblock_is_captured_for_movable_requests_only() {
    use MigrateType::{Movable, Reclaimable, Unmovable};
    assert!(captured_small(Movable, Movable));
    assert!(!captured_small(Movable, Unmovable));
    assert!(captured_small(Reclaimable, Unmovable));
    assert!(captured_small(Unmovable, Movable));
}

#[test]
fn one_block_is_captured_and_the_next_goes_to_the_lists() {
    let mut mm = zone_under("KKAAAAAA", rules_6_12());
    (0..16).for_each(|n| mm.frames[Pfn(n)].set_kind(Kind::Held, Order(0)));
    mm.begin_capture(ZONE, Order(3), MigrateType::Movable, None);
    (0..16).for_each(|n| mm.free_pages(&env(0), Pfn(n), Order(0)));
    mm.drain_pcp_all();
    let pfn = mm.end_capture(ZONE, None).expect("the first to merge");
    let other = Pfn(pfn.0 ^ 8);
    assert_eq!((mm.frames[other].kind(), mm.frames[other].order()), (Kind::Buddy, Order(3)));
    check(&mut mm);
}

fn held(mm: &mut Mm, pfn: Pfn, order: u8) {
    mm.frames[pfn].set_kind(Kind::Held, Order(order));
    (1..1 << order).for_each(|n| mm.frames[pfn.offset(n)].set_kind(Kind::Tail, Order(0)));
}

/// The order in which single pages of three blocks are used.
fn used_first(rule: CompactionTargets) -> Vec<u32> {
    let mut mm = zone_under("KKKK", Rules { compaction_targets: rule, ..rules_6_12() });
    let mut targets = Targets::default();
    for (pfn, order) in [(8, 2), (16, 0), (32, 2)] {
        held(&mut mm, Pfn(pfn), order);
        targets.add(&mut mm, Pfn(pfn), Order(order));
    }
    assert_eq!(targets.pages(), 9);
    (0..9).map(|_| targets.take(&mut mm.frames, Order(0)).expect("nine pages").0).collect()
}

#[test]
fn targets_are_used_smallest_block_first_or_last_page_first() {
    assert_eq!(used_first(CompactionTargets::ByOrder), [16, 8, 9, 10, 11, 32, 33, 34, 35]);
    assert_eq!(used_first(CompactionTargets::SinglePages), [35, 34, 33, 32, 16, 11, 10, 9, 8]);
}

#[test]
fn what_is_left_of_a_block_is_given_back_as_blocks() {
    let mut mm = zone_under("KKKK", rules_6_12());
    let mut targets = Targets::default();
    held(&mut mm, Pfn(8), 3);
    targets.add(&mut mm, Pfn(8), Order(3));
    assert_eq!(targets.take(&mut mm.frames, Order(0)), Some(Pfn(8)));
    assert_eq!(targets.take(&mut mm.frames, Order(0)), Some(Pfn(9)));
    targets.put_back(&mut mm.frames, Pfn(9));
    let left: Vec<_> = std::iter::from_fn(|| targets.release(&mut mm.frames)).collect();
    assert_eq!(left, [(Pfn(9), Order(0)), (Pfn(10), Order(1)), (Pfn(12), Order(2))]);
    assert_eq!(targets.pages(), 0);
}
