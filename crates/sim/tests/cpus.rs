//! CPUs are shared: fairness, nice, affinity, preemption, placement.

mod common;

use common::{Log, Why, anywhere, burn, cpu_time, expected, lines, machine, machine_of, machine_with, note};
use sim::{CpuSet, Ctx, RunEnd, SchedParams, SpawnOptions, TaskId, TaskState};
use units::{CpuId, Nanos, NodeId};

const SECOND: Nanos = Nanos::secs(1);
const STEP: Nanos = Nanos::micros(10);
/// A slice is at most this long: a quantum and one charge.
const SLACK: u64 = 110_000;

/// The workload of a run is over when all its tasks have exited, which the run must notice at the same time.
#[test]
fn a_task_has_exited_when_the_time_that_it_charged_last_is_over() {
    let mut sim = machine(1);
    let options = anywhere(&mut sim, "last");
    let task = sim.spawn(options, |ctx| async move { ctx.charge(STEP) });
    let half = Nanos(STEP.0 / 2);
    assert_eq!(sim.run_until(half).unwrap(), RunEnd::Deadline);
    assert_eq!(sim.with_world(|_, ctl| ctl.task_state(task)), TaskState::Runnable);
    assert_eq!(sim.run_until(STEP).unwrap(), RunEnd::AllEnded);
    assert_eq!(sim.with_world(|_, ctl| ctl.task_state(task)), TaskState::Exited);
}

/// CPU times of `tasks` hogs after a second on `cpus` CPUs.
fn hogs(cpus: usize, tasks: usize) -> Vec<u64> {
    let mut sim = machine(cpus);
    let tasks: Vec<TaskId> = (0..tasks)
        .map(|_| {
            let options = anywhere(&mut sim, "hog");
            sim.spawn(options, |ctx| burn(ctx, STEP))
        })
        .collect();
    sim.run_until(SECOND).unwrap();
    tasks.iter().map(|&task| cpu_time(&mut sim, task)).collect()
}

/// By how much tasks may be apart before one of them is moved: a granularity and a tick.
fn grain(cpus: usize) -> u64 {
    let params = SchedParams::linux_4_20(cpus);
    params.min_granularity.0 + params.tick.0
}

#[test]
fn tasks_share_cpus_within_a_tick() {
    for (cpus, tasks) in [(1, 2), (1, 8), (2, 3), (2, 5), (4, 6), (8, 9), (8, 20)] {
        let times = hogs(cpus, tasks);
        let grain = grain(cpus);
        let (least, most) = (times.iter().min().unwrap(), times.iter().max().unwrap());
        // A CPU alternates at the first tick after a share of its period; CPUs differ by the grain of migration, and so do
        // the debits of those that started first and last.
        let share = SchedParams::linux_4_20(cpus).latency.0 * cpus as u64 / tasks as u64;
        let bound = share + 2 * grain + 2 * SLACK;
        assert!(most - least <= bound, "{tasks} tasks on {cpus} CPUs: {times:?} are more than {bound} apart");
        let used: u64 = times.iter().sum();
        let available = SECOND.0 * cpus as u64;
        // Work-conserving: no CPU is idle while a task waits. Slices in flight are not counted yet.
        assert!(used <= available);
        assert!(available - used <= cpus as u64 * SLACK);
    }
}

#[test]
fn three_tasks_on_two_cpus_get_two_thirds_each() {
    let times = hogs(2, 3);
    for time in &times {
        assert!(time.abs_diff(SECOND.0 * 2 / 3) <= grain(2), "{times:?}");
    }
}

#[test]
fn nice_shares_by_a_factor_of_one_and_a_quarter_per_level() {
    let mut sim = machine(1);
    let options = anywhere(&mut sim, "nice 0");
    let normal = sim.spawn(options, |ctx| burn(ctx, STEP));
    let options = anywhere(&mut sim, "nice 5").nice(5);
    let nice = sim.spawn(options, |ctx| burn(ctx, STEP));
    sim.run_until(Nanos::secs(10)).unwrap();
    let ratio = cpu_time(&mut sim, normal) as f64 / cpu_time(&mut sim, nice) as f64;
    // 1.25^5 = 3.05; weights 1024 and 336.
    assert!((ratio - 3.05).abs() < 0.05, "{ratio}");
}

#[test]
fn a_nice_19_task_takes_next_to_nothing_from_two_others_on_two_cpus() {
    let mut sim = machine(2);
    let tasks: Vec<TaskId> = [19, 0, 0]
        .into_iter()
        .map(|nice| {
            let options = anywhere(&mut sim, "hog").nice(nice);
            sim.spawn(options, |ctx| burn(ctx, STEP))
        })
        .collect();
    sim.run_until(SECOND).unwrap();
    let times: Vec<u64> = tasks.iter().map(|&task| cpu_time(&mut sim, task)).collect();
    // Its fair part: 2 CPUs x 15 / 2063 = 1.5 %.
    assert!(times[0] < 30_000_000, "{times:?}");
    assert!(times[1] > 970_000_000 && times[2] > 970_000_000, "{times:?}");
}

/// Says on which node it is after every step.
async fn stays_on(ctx: Ctx<Log>, node: NodeId) {
    loop {
        ctx.charge(STEP);
        ctx.preempt_point().await;
        assert_eq!(ctx.node(), node);
        if ctx.now().0.is_multiple_of(7) {
            ctx.sleep(Why::Nap, STEP).await;
        }
    }
}

#[test]
fn a_pinned_task_stays_on_its_node_and_shares_it_fairly() {
    let nodes: Vec<NodeId> = [0, 0, 1, 1].map(NodeId).to_vec();
    let mut sim = machine_of(nodes);
    let second = sim.with_world(|_, ctl| CpuSet::of_node(ctl.topology(), NodeId(1)));
    let pinned: Vec<TaskId> =
        (0..6).map(|_| sim.spawn(SpawnOptions::new("pinned", second), |ctx| stays_on(ctx, NodeId(1)))).collect();
    let options = anywhere(&mut sim, "free");
    let free = sim.spawn(options, |ctx| burn(ctx, STEP));
    sim.run_until(SECOND).unwrap();
    assert!(cpu_time(&mut sim, free) > 990_000_000);
    for task in pinned {
        // Two CPUs by six.
        let time = cpu_time(&mut sim, task);
        assert!(time.abs_diff(SECOND.0 / 3) < 10_000_000, "{time}");
    }
}

#[test]
fn a_newcomer_is_not_starved_by_an_axis_that_ran_ahead_or_behind() {
    let mut sim = machine(2);
    // CPU 1 is crowded with pinned tasks, so its virtual clock is slow; then they leave but for one.
    let crowd = SpawnOptions::new("crowd", CpuSet::single(CpuId(1)));
    for _ in 0..9 {
        sim.spawn(crowd.clone(), |ctx| async move {
            while ctx.now() < SECOND {
                ctx.charge(STEP);
                ctx.preempt_point().await;
            }
        });
    }
    let stays = sim.spawn(crowd, |ctx| burn(ctx, STEP));
    let options = anywhere(&mut sim, "early");
    let early = sim.spawn(options, |ctx| burn(ctx, STEP));
    sim.run_until(SECOND + Nanos::millis(50)).unwrap();
    let before = [stays, early].map(|task| cpu_time(&mut sim, task));
    let options = anywhere(&mut sim, "late");
    let late = sim.spawn(options, |ctx| burn(ctx, STEP));
    sim.run_until(Nanos::secs(3) + Nanos::millis(50)).unwrap();
    // Two seconds of two CPUs among three.
    let want = Nanos::secs(4).0 / 3;
    let got = [cpu_time(&mut sim, stays) - before[0], cpu_time(&mut sim, early) - before[1], cpu_time(&mut sim, late)];
    for time in got {
        assert!(time.abs_diff(want) < 40_000_000, "{got:?}");
    }
}

#[test]
fn a_quantum_ends_at_the_first_preemption_point_after_it() {
    let mut sim = machine(2);
    for name in ["a", "b"] {
        let options = anywhere(&mut sim, name);
        sim.spawn(options, move |ctx| async move {
            for _ in 0..3 {
                note(&ctx, name);
                ctx.charge(Nanos::micros(60));
                ctx.preempt_point().await;
            }
        });
    }
    sim.run().unwrap();
    // The quantum is 100 us: two charges of 60, then the other CPU's task is let in.
    let want = [(0, "a"), (60_000, "a"), (0, "b"), (60_000, "b"), (120_000, "a"), (120_000, "b")];
    assert_eq!(lines(&sim), expected(&want));
}

#[test]
fn a_cpu_turns_to_a_task_from_another_or_from_idleness_but_not_from_itself() {
    let mut sim = machine(1);
    let options = anywhere(&mut sim, "a");
    let a = sim.spawn(options, |ctx| async move {
        // Several slices, and a chance for others of which there are none.
        for _ in 0..5 {
            ctx.charge(Nanos::micros(200));
            ctx.preempt_point().await;
        }
        ctx.sleep(Why::Nap, Nanos::millis(1)).await;
        ctx.charge(Nanos::micros(1));
    });
    sim.run().unwrap();
    assert_eq!(sim.world().switches, [a, a], "at its start and after its sleep");
    let options = anywhere(&mut sim, "b");
    let [b, c] = [options.clone(), options].map(|options| sim.spawn(options, |ctx| async move { ctx.charge(STEP) }));
    sim.run().unwrap();
    assert_eq!(sim.world().switches[2..], [b, c]);
}

#[test]
fn a_tick_is_seen_at_the_first_preemption_point_after_it_while_another_task_waits() {
    let params = SchedParams { since_tick: Nanos::millis(1), ..SchedParams::linux_4_20(1) };
    let mut sim = machine_with(params);
    for name in ["a", "b"] {
        let options = anywhere(&mut sim, name);
        sim.spawn(options, move |ctx| async move {
            for _ in 0..1000 {
                ctx.charge(Nanos::micros(7));
                let before = ctx.now();
                ctx.preempt_point().await;
                if ctx.now() > before {
                    ctx.with(|log, _| log.lines.push((before.0, name.to_owned())));
                }
            }
        });
    }
    sim.run_until(Nanos::millis(13)).unwrap();
    // A tick at 3, 7 and 11 ms; both have half of 6 ms. In the middle of a charge, after at most 7 us of it, one task takes turns with the
    // other.
    let turns = lines(&sim);
    assert!(turns.len() >= 2, "{turns:?}");
    for ((at, _), tick) in turns.iter().zip([3, 7, 11]) {
        let late = at - tick * 1_000_000;
        assert!(late < 7_000, "{late} ns after the tick at {tick} ms: {turns:?}");
    }
}

#[test]
fn who_asks_is_told_of_the_tick_that_takes_its_cpu_and_of_no_other() {
    let params = SchedParams { since_tick: Nanos::micros(1_500), ..SchedParams::linux_4_20(1) };
    let mut sim = machine_with(params);
    for _ in 0..2 {
        let options = anywhere(&mut sim, "hog");
        sim.spawn(options, move |ctx| async move {
            for _ in 0..2000 {
                ctx.charge(Nanos::micros(7));
                let told = ctx.with(|_, ctl| ctl.until_preempted());
                let now = ctx.now();
                ctx.preempt_point().await;
                let turned = ctx.now() > now;
                ctx.with(|log, _| log.lines.push((now.0, format!("{} {turned}", told.0))));
            }
        });
    }
    sim.run_until(Nanos::millis(24)).unwrap();
    let told: Vec<(u64, u64, bool)> = lines(&sim)
        .into_iter()
        .map(|(at, line)| {
            let (told, turned) = line.split_once(' ').unwrap();
            (at, told.parse().unwrap(), turned == "true")
        })
        .collect();
    // Half of 6 ms each: the ticks at 6.5, 10.5, 14.5 ms and so on take the CPU.
    let ticks = told.iter().filter(|(_, told, _)| (1..u64::MAX).contains(told)).map(|(at, told, _)| at + told);
    let ticks: std::collections::BTreeSet<u64> = ticks.collect();
    assert!(!ticks.is_empty() && ticks.iter().all(|tick| tick % 4_000_000 == 2_500_000), "{ticks:?}");
    let late = |at: u64| ticks.range(..=at).next_back().map(|tick| at - tick);
    let turns: Vec<u64> = told.iter().filter(|(.., turned)| *turned).map(|(at, ..)| *at).collect();
    assert!(turns.len() >= 3, "{turns:?}");
    assert!(turns.iter().all(|at| late(*at).is_some_and(|late| late <= SLACK)), "{turns:?} {ticks:?}");
}

#[test]
fn a_woken_task_preempts_one_that_ran_for_long_at_the_end_of_its_slice() {
    let mut sim = machine(1);
    let options = anywhere(&mut sim, "hog").daemon();
    sim.spawn(options, |ctx| burn(ctx, STEP));
    let options = anywhere(&mut sim, "light");
    sim.spawn(options, |ctx| async move {
        let due = ctx.now() + Nanos::micros(50_050);
        ctx.sleep(Why::Nap, Nanos::micros(50_050)).await;
        let late = ctx.now().since(due).0;
        assert!(late <= 100_000, "woken {late} ns late");
    });
    sim.run().unwrap();
}

#[test]
fn need_resched_tells_of_the_quantum_and_of_a_task_just_woken() {
    let mut sim = machine(1);
    let queue = sim.with_world(|_, ctl| ctl.new_wait_queue());
    let options = anywhere(&mut sim, "waiter").daemon();
    sim.spawn(options, move |ctx| async move {
        loop {
            ctx.wait(queue, Why::Signal).await;
            note(&ctx, "waiter");
        }
    });
    let options = anywhere(&mut sim, "waker");
    sim.spawn(options, move |ctx| async move {
        ctx.charge(Nanos::micros(99));
        assert!(!ctx.with(|_, ctl| ctl.need_resched()));
        ctx.charge(Nanos::micros(1));
        assert!(ctx.with(|_, ctl| ctl.need_resched()));
        for _ in 0..500 {
            ctx.preempt_point().await;
            ctx.charge(Nanos::micros(100));
        }
        ctx.preempt_point().await;
        assert!(!ctx.with(|_, ctl| ctl.need_resched()));
        ctx.with(|_, ctl| {
            ctl.wake_one(queue);
            assert_eq!(ctl.nr_running(CpuId(0)), 2);
            assert!(ctl.need_resched(), "the waiter is behind by 50 ms");
        });
        ctx.preempt_point().await;
        note(&ctx, "waker");
    });
    sim.run().unwrap();
    let want = [(50_100_000, "waiter"), (50_100_000, "waker")];
    assert_eq!(lines(&sim), expected(&want));
}

#[test]
fn who_gives_way_at_once_lets_the_woken_one_in_before_its_quantum_is_over() {
    for (at_once, runs_at) in [(true, 50_010_000), (false, 50_100_000)] {
        let mut sim = machine(1);
        let queue = sim.with_world(|_, ctl| ctl.new_wait_queue());
        let options = anywhere(&mut sim, "waiter");
        sim.spawn(options, move |ctx| async move {
            ctx.wait(queue, Why::Signal).await;
            note(&ctx, "waiter");
        });
        let options = anywhere(&mut sim, "waker");
        sim.spawn(options, move |ctx| async move {
            for _ in 0..500 {
                ctx.charge(Nanos::micros(100));
                ctx.preempt_point().await;
            }
            for n in 0..10 {
                ctx.charge(Nanos::micros(10));
                if n == 0 {
                    ctx.with(|_, ctl| {
                        ctl.wake_one(queue);
                        if at_once {
                            ctl.set_need_resched();
                        }
                    });
                }
                ctx.preempt_point().await;
            }
        });
        sim.run().unwrap();
        // 50 ms, and the 10 us of this slice or all 100 of its quantum.
        assert_eq!(lines(&sim), expected(&[(runs_at, "waiter")]));
    }
}

#[test]
fn a_woken_task_prefers_its_cpu_then_its_node_then_any_idle_cpu() {
    let nodes: Vec<NodeId> = [0, 0, 1].map(NodeId).to_vec();
    let mut sim = machine_of(nodes);
    let queue = sim.with_world(|_, ctl| ctl.new_wait_queue());
    let options = anywhere(&mut sim, "waiter");
    let waiter = sim.spawn(options, move |ctx| async move {
        for want in [0, 1, 2] {
            ctx.wait(queue, Why::Signal).await;
            assert_eq!(ctx.cpu(), CpuId(want));
        }
    });
    let hog = |cpu| SpawnOptions::new("hog", CpuSet::single(cpu)).daemon();
    for busy in [None, Some(CpuId(0)), Some(CpuId(1))] {
        if let Some(cpu) = busy {
            sim.spawn(hog(cpu), |ctx| burn(ctx, STEP));
        }
        let deadline = sim.now() + Nanos::micros(500);
        let _ = sim.run_until(deadline);
        sim.with_world(|_, ctl| ctl.wake_one(queue));
    }
    sim.run().unwrap();
    sim.with_world(|_, ctl| assert_eq!(ctl.task_state(waiter), sim::TaskState::Exited));
}

#[test]
fn yield_lets_the_next_task_run_first() {
    let mut sim = machine(1);
    for name in ["a", "b"] {
        let options = anywhere(&mut sim, name);
        sim.spawn(options, move |ctx| async move {
            for _ in 0..2 {
                note(&ctx, name);
                ctx.charge(Nanos(10));
                ctx.yield_now().await;
            }
        });
    }
    sim.run().unwrap();
    let want = [(0, "a"), (10, "b"), (20, "a"), (30, "b")];
    assert_eq!(lines(&sim), expected(&want));
}

#[test]
fn new_tasks_spread_over_cpus_and_nodes() {
    let nodes: Vec<NodeId> = [0, 0, 1, 1].map(NodeId).to_vec();
    let mut sim = machine_of(nodes);
    for want in [0, 2, 1, 3] {
        let options = anywhere(&mut sim, "task");
        sim.spawn(options, move |ctx| async move {
            assert_eq!(ctx.cpu(), CpuId(want));
            ctx.charge(STEP);
        });
    }
    sim.run().unwrap();
}

#[test]
#[should_panic(expected = "without charging")]
fn a_task_that_spins_without_charging_is_found() {
    let mut sim = machine(1);
    let options = anywhere(&mut sim, "spinner");
    sim.spawn(options, |ctx| async move {
        loop {
            ctx.yield_now().await;
        }
    });
    let _ = sim.run();
}

#[test]
fn an_interrupt_takes_its_time_from_whoever_has_the_cpu() {
    // Two hogs on two CPUs; the first interrupts the second every 10 us for 2 us, and pays nothing itself.
    let mut sim = machine(2);
    let (first, second) = (CpuSet::single(CpuId(0)), CpuSet::single(CpuId(1)));
    sim.spawn(SpawnOptions::new("sender", first), |ctx: Ctx<_>| async move {
        loop {
            ctx.with(|_, ctl| ctl.interrupt(CpuId(1), Nanos::micros(2)));
            ctx.charge(STEP);
            ctx.preempt_point().await;
        }
    });
    let worked = std::rc::Rc::new(std::cell::Cell::new(0_u64));
    let count = std::rc::Rc::clone(&worked);
    let victim = sim.spawn(SpawnOptions::new("victim", second), |ctx: Ctx<_>| async move {
        loop {
            ctx.charge(STEP);
            count.set(count.get() + STEP.0);
            ctx.preempt_point().await;
        }
    });
    sim.run_until(SECOND).unwrap();
    let share = worked.get() as f64 / SECOND.0 as f64;
    assert!((0.79..0.81).contains(&share), "{share}");
    assert!(SECOND.0 - cpu_time(&mut sim, victim) <= SLACK, "the interrupts are in its CPU time");
}
