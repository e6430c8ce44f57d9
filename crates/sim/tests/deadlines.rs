//! CPUs are shared by deadlines: fairness, ticks, protected slices, lag.

mod common;

use common::{Log, TestSim, Why, anywhere, burn, cpu_time, machine, machine_6_12, machine_with, note};
use proptest::prelude::*;
use sim::{Ctx, SchedParams, TaskId};
use units::Nanos;

const STEP: Nanos = Nanos::micros(10);
const TICK: u64 = 4_000_000;
/// A tick is seen at most this much late: a quantum and one charge.
const SLACK: u64 = 110_000;

fn hogs(sim: &mut TestSim, nice: &[i8]) -> Vec<TaskId> {
    let spawn = |&nice: &i8| {
        let options = anywhere(sim, "hog").nice(nice).daemon();
        sim.spawn(options, |ctx| burn(ctx, STEP))
    };
    nice.iter().map(spawn).collect()
}

#[test]
fn two_tasks_take_turns_at_the_ticks() {
    for sim in [machine(1), machine_6_12(1)] {
        let turns = take_turns(sim);
        // Each has asked for 0.7 ms, or has a share of 3 ms, and the first tick after that takes the CPU away.
        for (nr, (at, _)) in turns.iter().enumerate().skip(1) {
            assert!(at - nr as u64 * TICK <= SLACK, "{turns:?}");
        }
        assert_eq!(turns.len(), 10);
    }
}

#[test]
fn ticks_go_on_from_the_one_before_the_start() {
    let turns =
        take_turns(machine_with(SchedParams { since_tick: Nanos::micros(2_500), ..SchedParams::linux_6_12(1) }));
    // At 1.5 ms, and every 4 ms from then to 37.5 ms.
    for (nr, (at, _)) in turns.iter().enumerate().skip(1) {
        assert!(at - (nr as u64 * TICK - 2_500_000) <= SLACK, "{turns:?}");
    }
    assert_eq!(turns.len(), 11);
}

/// When the CPU turned to one of two tasks, and to which, within 39 ms.
fn take_turns(mut sim: TestSim) -> Vec<(u64, String)> {
    for name in ["a", "b"] {
        let options = anywhere(&mut sim, name).daemon();
        sim.spawn(options, move |ctx| async move {
            note(&ctx, name);
            loop {
                let before = ctx.now();
                ctx.charge(STEP);
                ctx.preempt_point().await;
                if ctx.now().since(before) > STEP {
                    note(&ctx, name);
                }
            }
        });
    }
    let _ = sim.run_until(Nanos::millis(39));
    let turns: Vec<(u64, String)> = common::lines(&sim);
    assert!(turns.windows(2).all(|pair| pair[0].1 != pair[1].1), "{turns:?}");
    turns
}

/// Uses more than its share, which leaves it in debt, then sleeps, and notes how late it runs after each sleep.
async fn light(ctx: Ctx<Log>, naps: [Nanos; 2]) {
    ctx.charge(Nanos::millis(6));
    for nap in naps {
        let due = ctx.now() + nap;
        ctx.sleep(Why::Nap, nap).await;
        let late = ctx.now().since(due).0;
        ctx.with(|log, _| log.lines.push((late, "late".into())));
        ctx.charge(STEP);
    }
}

#[test]
fn a_woken_task_waits_for_the_end_of_the_slice_that_runs() {
    let mut sim = machine_6_12(1);
    hogs(&mut sim, &[0]);
    let options = anywhere(&mut sim, "light");
    sim.spawn(options, |ctx| light(ctx, [Nanos::millis(51), Nanos::micros(150)]));
    sim.run().unwrap();
    let late: Vec<u64> = common::lines(&sim).into_iter().map(|(late, _)| late).collect();
    // It runs first, for 6 ms, and is woken at 57 ms: since the tick at 56 ms the other has used up its 0.7 ms. 150 us later
    // the other's next slice has just begun; it is noticed at the tick at 60 ms.
    assert!(late[0] <= SLACK, "{late:?}");
    assert!(late[1] > 2_700_000 && late[1] <= 3_000_000 + SLACK, "{late:?}");
}

#[test]
fn nice_shares_by_a_factor_of_one_and_a_quarter_per_level() {
    let mut sim = machine_6_12(1);
    let tasks = hogs(&mut sim, &[0, 5]);
    let _ = sim.run_until(Nanos::secs(10));
    let ratio = cpu_time(&mut sim, tasks[0]) as f64 / cpu_time(&mut sim, tasks[1]) as f64;
    // 1.25^5 = 3.05; weights 1024 and 336.
    assert!((ratio - 3.05).abs() < 0.05, "{ratio}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever their weights, tasks of one CPU get their share, to within the limit of lag: a tick, and a slice asked for.
    #[test]
    fn lag_is_bounded(nice in prop::collection::vec(-10..10_i8, 2..6)) {
        let mut sim = machine_6_12(1);
        let tasks = hogs(&mut sim, &nice);
        let end = Nanos::secs(4);
        let _ = sim.run_until(end);
        let weights: Vec<f64> = nice.iter().map(|&nice| 1.25_f64.powi(-i32::from(nice))).collect();
        let total: f64 = weights.iter().sum();
        let least = weights.iter().copied().fold(f64::MAX, f64::min);
        for (task, weight) in tasks.iter().zip(&weights) {
            let share = end.0 as f64 * weight / total;
            let got = cpu_time(&mut sim, *task) as f64;
            // One turn of each other task, which the lightest of them makes at least a tick long.
            let bound = (TICK + SLACK) as f64 * (1.0 + weight / least) * nice.len() as f64;
            prop_assert!((got - share).abs() <= bound + share * 0.01, "{nice:?}: {got} instead of {share}");
        }
        let used: u64 = tasks.iter().map(|&task| cpu_time(&mut sim, task)).sum();
        prop_assert!(end.0 - used <= SLACK, "the CPU is never idle");
    }
}
