//! Tasks of a group share the CPU time of one.

mod common;

use common::{TestSim, Why, anywhere, burn, cpu_time, machine, machine_6_12};
use proptest::prelude::*;
use sim::{CpuGroup, TaskId};
use units::Nanos;

const STEP: Nanos = Nanos::micros(10);
const GROUP: CpuGroup = CpuGroup(0);

fn hog(sim: &mut TestSim, group: Option<CpuGroup>, nice: i8) -> TaskId {
    let options = anywhere(sim, "hog").group(group).nice(nice).daemon();
    sim.spawn(options, |ctx| burn(ctx, STEP))
}

/// Milliseconds of CPU time of each task.
fn times(sim: &mut TestSim, tasks: &[TaskId]) -> Vec<f64> {
    tasks.iter().map(|task| cpu_time(sim, *task) as f64 / 1e6).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// One task outside and a group of some: half each on one CPU, whatever the scheduler.
    #[test]
    fn a_group_weighs_as_much_as_one_task(members in 1usize..6, deadlines: bool) {
        let mut sim = if deadlines { machine_6_12(1) } else { machine(1) };
        let outside = hog(&mut sim, None, 0);
        let inside: Vec<_> = (0..members).map(|_| hog(&mut sim, Some(GROUP), 0)).collect();
        let _ = sim.run_until(Nanos::secs(5));
        let (alone, shares) = (times(&mut sim, &[outside])[0], times(&mut sim, &inside));
        prop_assert!((alone - 2500.0).abs() < 75.0, "{alone} of 5000 ms, {shares:?}");
        let even = 2500.0 / members as f64;
        prop_assert!(shares.iter().all(|share| (share - even).abs() < 60.0), "{alone}, {shares:?}");
    }
}

/// How late a task of no group runs that is woken beside so many hogs of a group, or one of no group: in ns, for each nap.
fn lateness(deadlines: bool, members: Option<usize>, naps: Vec<u64>) -> Vec<u64> {
    let mut sim = if deadlines { machine_6_12(1) } else { machine(1) };
    match members {
        Some(members) => (0..members).for_each(|_| _ = hog(&mut sim, Some(GROUP), 0)),
        None => _ = hog(&mut sim, None, 0),
    }
    let options = anywhere(&mut sim, "light");
    sim.spawn(options, |ctx| async move {
        for nap in naps {
            let due = ctx.now() + Nanos(nap);
            ctx.sleep(Why::Nap, Nanos(nap)).await;
            let late = ctx.now().since(due).0;
            ctx.with(|log, _| log.lines.push((late, "late".into())));
            ctx.charge(Nanos::micros(300));
        }
    });
    sim.run().unwrap();
    common::lines(&sim).into_iter().map(|(late, _)| late).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// To who is woken a group is one task: it does not matter how many of it wait for each other.
    #[test]
    fn a_woken_task_has_to_do_with_the_group(
        deadlines: bool,
        members in 2usize..6,
        naps in prop::collection::vec(100_000_u64..30_000_000, 1..12),
    ) {
        let alone = lateness(deadlines, None, naps.clone());
        let group = lateness(deadlines, Some(members), naps);
        prop_assert_eq!(alone, group);
    }
}

#[test]
fn members_share_by_their_own_weights() {
    for mut sim in [machine(1), machine_6_12(1)] {
        let outside = hog(&mut sim, None, 0);
        // Weights of 1024 and 335.
        let inside = [hog(&mut sim, Some(GROUP), 0), hog(&mut sim, Some(GROUP), 5)];
        let _ = sim.run_until(Nanos::secs(10));
        let (alone, shares) = (times(&mut sim, &[outside])[0], times(&mut sim, &inside));
        assert!((alone - 5000.0).abs() < 100.0, "{alone}, {shares:?}");
        assert!((shares[0] / shares[1] - 1024.0 / 335.0).abs() < 0.15, "{shares:?}");
    }
}

#[test]
fn a_sleeper_of_the_group_leaves_its_part_to_the_others() {
    let mut sim = machine_6_12(1);
    let outside = hog(&mut sim, None, 0);
    let member = hog(&mut sim, Some(GROUP), 0);
    let options = anywhere(&mut sim, "sleeper").group(Some(GROUP));
    sim.spawn(options, |ctx| async move { ctx.sleep(Why::Nap, Nanos::secs(4)).await });
    sim.run().unwrap();
    let shares = times(&mut sim, &[outside, member]);
    assert!((shares[0] - shares[1]).abs() < 40.0, "{shares:?}");
}
