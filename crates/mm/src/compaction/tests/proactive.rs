//! Proactive compaction: scores, marks, back-off.

use proptest::prelude::*;
use units::Nanos;

use super::random::cells;
use super::*;
use crate::Effect;
use crate::stat::VmEvent;

/// A zone in which no free page is part of a huge block, and kswapd sleeps.
fn fragmented(proactiveness: u64, rules: Rules) -> Mm {
    let mut mm = zone_under("::::::::", rules);
    mm.tunables.compaction_proactiveness = proactiveness;
    mm.nodes[0].kswapd.asleep = true;
    mm
}

fn round(mm: &mut Mm) -> bool {
    let Some(mut work) = ProactiveWork::begin(mm, NODE) else { return false };
    while work.step(mm, &env(0)) == CompactStep::More {}
    work.finish(mm, &env(0));
    true
}

#[test]
fn a_node_is_compacted_only_above_the_high_mark() {
    // All of 2048 free pages are scattered: 100 % of the one zone, a little less for the node.
    let mut mm = fragmented(20, rules_6_12());
    assert_eq!(mm.fragmentation_score(NODE), 4096 * 100 / 4097);
    // 100 - 20 + 10 = 90 < 99; 100 - 11 + 10 = 99 is not below it.
    assert!(round(&mut mm));
    let mut mm = fragmented(11, rules_6_12());
    assert!(!round(&mut mm));
    let mut mm = fragmented(12, rules_6_12());
    assert!(round(&mut mm));
    check(&mut mm);
}

#[test]
fn it_ends_at_the_low_mark_and_counts_as_kcompactd_since_6_12() {
    for (rules, counted) in [(rules_6_12(), true), (rules_6_1(), false)] {
        let mut mm = zone_under("::::::::::::::::", rules);
        mm.tunables.compaction_proactiveness = 30;
        mm.nodes[0].kswapd.asleep = true;
        assert!(round(&mut mm));
        // At 70 % or less, and no more than a block of 4096 free pages less.
        let score = mm.fragmentation_score(NODE);
        assert!((50..=70).contains(&score), "{score}");
        let scanned = mm.stat.event(VmEvent::CompactDaemonMigrateScanned);
        assert!(mm.stat.event(VmEvent::CompactMigrateScanned) > 0);
        assert_eq!(scanned > 0, counted);
        assert_eq!(mm.stat.event(VmEvent::CompactDaemonWake), 0, "nobody woke it");
        check(&mut mm);
    }
}

#[test]
fn a_zone_is_done_at_its_own_score_and_in_5_10_at_its_part_of_it() {
    for (rule, verdict) in [
        (ProactiveCompaction::Score, CompactResult::Continue),
        (ProactiveCompaction::ScoreWeighted, CompactResult::Success),
    ] {
        // 100 %, weighted 4096 * 100 / 4097 = 99, to which the low mark is 100 - 1.
        let mm = fragmented(1, Rules { proactive_compaction: rule, ..rules_6_1() });
        assert_eq!(mm.proactive_verdict(ZONE), verdict, "{rule:?}");
    }
}

#[test]
fn kswapd_at_work_keeps_it_from_starting_and_ends_it() {
    let mut mm = fragmented(100, rules_6_12());
    mm.nodes[0].kswapd.asleep = false;
    assert!(!round(&mut mm));
    mm.nodes[0].kswapd.asleep = true;
    let mut work = ProactiveWork::begin(&mut mm, NODE).expect("fragmented");
    assert_eq!(work.step(&mut mm, &env(0)), CompactStep::More);
    mm.nodes[0].kswapd.asleep = false;
    let steps = std::iter::repeat_with(|| work.step(&mut mm, &env(0))).take_while(|step| *step == CompactStep::More);
    assert!(steps.count() <= 2);
    work.finish(&mut mm, &env(0));
    assert_eq!(mm.stat.event(VmEvent::PgmigrateSuccess), 0);
}

#[test]
fn a_round_of_no_use_puts_the_next_look_off_64_times_as_long() {
    // Nothing can be moved, and nothing large becomes free.
    let cells: Vec<Cell> = (0..8 * BLOCK).map(|n| if n % 2 == 0 { Cell::Stuck } else { Cell::Free }).collect();
    let mut mm = zone_of_cells(&cells, rules_6_12());
    mm.tunables.compaction_proactiveness = 20;
    mm.nodes[0].kswapd.asleep = true;
    mm.set_kcompactd_phase(Nanos::millis(70));
    assert_eq!(mm.kcompactd_timeout(NODE), Some(Nanos::millis(70)));
    assert_eq!(mm.kcompactd_timeout(NODE), Some(Nanos::millis(512)));
    assert!(round(&mut mm));
    assert_eq!(mm.kcompactd_timeout(NODE), Some(Nanos::millis(512 * 64)));
    mm.nodes[0].kcompactd.max_order = HUGE;
    assert!(KcompactdWork::begin(&mut mm, NODE).is_some());
    assert_eq!(mm.kcompactd_timeout(NODE), Some(Nanos::millis(512)), "lost when it was asked for something");
}

#[test]
fn a_round_of_no_use_has_5_10_leave_out_64_looks_whoever_wakes_it() {
    let cells: Vec<Cell> = (0..8 * BLOCK).map(|n| if n % 2 == 0 { Cell::Stuck } else { Cell::Free }).collect();
    let mut mm =
        zone_of_cells(&cells, Rules { proactive_compaction: ProactiveCompaction::ScoreWeighted, ..rules_6_1() });
    mm.tunables.compaction_proactiveness = 20;
    mm.nodes[0].kswapd.asleep = true;
    assert!(round(&mut mm));
    assert_eq!(mm.kcompactd_timeout(NODE), Some(Nanos::millis(512)), "it sleeps no longer");
    mm.nodes[0].kcompactd.max_order = HUGE;
    assert!(KcompactdWork::begin(&mut mm, NODE).is_some());
    // Looks at which it would not start do not count.
    mm.nodes[0].kswapd.asleep = false;
    assert!(!round(&mut mm));
    mm.nodes[0].kswapd.asleep = true;
    assert_eq!((0..64).filter(|_| round(&mut mm)).count(), 0);
    assert!(round(&mut mm));
}

#[test]
fn without_proactiveness_it_sleeps_until_woken_and_writing_it_wakes_it() {
    let mut mm = fragmented(0, rules_6_12());
    assert_eq!(mm.kcompactd_timeout(NODE), None);
    let mut effects = Vec::new();
    mm.set_sysctl("vm.compaction_proactiveness", 0).expect("allowed");
    mm.effects.take_into(&mut effects);
    assert!(effects.is_empty() && !mm.kcompactd_looks(NODE));
    mm.set_sysctl("vm.compaction_proactiveness", 40).expect("allowed");
    mm.effects.take_into(&mut effects);
    assert_eq!(effects, [Effect::WakeKcompactd(NODE, HUGE)]);
    assert!(mm.kcompactd_looks(NODE));
    assert!(round(&mut mm) && !mm.kcompactd_looks(NODE));
    mm.rules.proactive_compaction = ProactiveCompaction::Never;
    assert_eq!(mm.kcompactd_timeout(NODE), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The score is what a count frame by frame says: of all free pages, those outside of whole free blocks.
    #[test]
    fn the_score_equals_the_slow_model(cells in cells()) {
        let mm = zone_of_cells(&cells, rules_6_12());
        let free = |cells: &[Cell]| cells.iter().filter(|cell| **cell == Cell::Free).count() as u64;
        let scattered: u64 = cells.chunks(BLOCK as usize).map(free).filter(|free| *free < u64::from(BLOCK)).sum();
        let all = free(&cells);
        let share = (scattered * 100).checked_div(all).unwrap_or(0);
        prop_assert_eq!(mm.fragmentation_score(NODE), share * 4096 / 4097);
    }
}
