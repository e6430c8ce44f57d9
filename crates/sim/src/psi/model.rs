//! The accounts against a model that looks at every task at every moment.

use proptest::prelude::*;
use units::{CpuId, Nanos};

use super::group::NR_STALLS;
use super::{MemoryFull, OffCpu, Psi, PsiGroup, Resource, Rule, TICK};
use crate::TaskId;

const CPUS: usize = 3;
const TASKS: usize = 6;
const TODAY: Rule = Rule { memory_full: MemoryFull::OnCpu, since_tick: Nanos::ZERO };

/// What a task of the model does, by words.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Does {
    Nothing,
    Sleeps { io: bool },
    Waits,
    Runs,
}

#[derive(Clone, Copy, Debug)]
struct Task {
    does: Does,
    cpu: usize,
    stalls: bool,
    group: usize,
}

/// Each CPU's time by state, `NonIdle` last, of a group or of all.
#[derive(Default, Clone)]
struct Times([[u64; NR_STALLS + 1]; CPUS]);

/// The states of a CPU by what is said of them: `some` delayed, `full` nobody productive.
fn states(tasks: &[Task], cpu: usize, of: impl Fn(&Task) -> bool) -> [bool; NR_STALLS + 1] {
    let here: Vec<&Task> = tasks.iter().filter(|t| t.cpu == cpu && of(t)).collect();
    let any = |is: &dyn Fn(&Task) -> bool| here.iter().any(|t| is(t));
    let wants = |t: &Task| matches!(t.does, Does::Waits | Does::Runs);
    let exists = |t: &Task| t.does != Does::Nothing;
    let io = any(&|t| t.does == Does::Sleeps { io: true });
    let stall = any(&|t| exists(t) && t.stalls);
    let works = any(&|t| wants(t) && !t.stalls);
    let runs = any(&|t| t.does == Does::Runs);
    let reclaims = any(&|t| t.does == Does::Runs && t.stalls);
    let waits = any(&|t| t.does == Does::Waits);
    [
        io,
        io && !any(&wants),
        stall,
        stall && !works || reclaims,
        waits,
        any(&wants) && !runs,
        io || stall || any(&wants),
    ]
}

/// One step: a task, an operation, and how many microseconds pass after it.
fn steps() -> impl Strategy<Value = Vec<(usize, u8, usize, u64)>> {
    prop::collection::vec((0..TASKS, 0_u8..6, 0..CPUS, 0_u64..40_000), 1..200)
}

fn total(times: &Times, state: usize) -> u64 {
    let weight = |cpu: &[u64; NR_STALLS + 1]| cpu[NR_STALLS] / TICK.0;
    let weights: u64 = times.0.iter().map(weight).sum();
    let sum: u128 = times.0.iter().map(|cpu| u128::from(cpu[state]) * u128::from(weight(cpu))).sum();
    (sum / u128::from(weights.max(1))) as u64
}

proptest! {
    #[test]
    fn totals_are_those_of_the_model(steps in steps()) {
        let mut psi = Psi::new(CPUS, TODAY);
        let below = psi.add_group(PsiGroup::SYSTEM, Nanos::ZERO);
        let mut tasks = [Task { does: Does::Nothing, cpu: 0, stalls: false, group: 0 }; TASKS];
        for (n, task) in tasks.iter_mut().enumerate() {
            psi.add_task();
            task.group = n % 2;
            if task.group == 1 {
                psi.move_task(TaskId(n as u32), below, Nanos::ZERO);
            }
        }
        let mut times = [Times::default(), Times::default()];
        let mut now = Nanos::ZERO;
        for (n, op, cpu, pass_us) in steps {
            let id = TaskId(n as u32);
            let free = !tasks.iter().any(|t| t.does == Does::Runs && t.cpu == cpu);
            let task = &mut tasks[n];
            match (op, task.does) {
                (0, Does::Nothing | Does::Sleeps { .. }) => {
                    (task.does, task.cpu) = (Does::Waits, cpu);
                    psi.runnable(id, CpuId(cpu as u16), now);
                }
                (1, Does::Waits) if free => {
                    (task.does, task.cpu) = (Does::Runs, cpu);
                    psi.on_cpu(id, CpuId(cpu as u16), now);
                }
                (2, Does::Runs) => {
                    task.does = Does::Sleeps { io: cpu == 0 };
                    psi.off_cpu(id, OffCpu::Sleeps { io: cpu == 0 }, now);
                }
                (3, Does::Runs) => {
                    task.does = Does::Waits;
                    psi.off_cpu(id, OffCpu::Preempted, now);
                }
                (4, Does::Runs) => {
                    task.stalls = !task.stalls;
                    psi.memstall(id, task.stalls, now);
                }
                (5, Does::Runs) if cpu == 0 => {
                    (task.does, task.stalls) = (Does::Nothing, false);
                    psi.off_cpu(id, OffCpu::Exits, now);
                }
                _ => {}
            }
            for (group, times) in times.iter_mut().enumerate() {
                for (cpu, of) in times.0.iter_mut().enumerate() {
                    let states = states(&tasks, cpu, |t| group == 0 || t.group == 1);
                    for (time, holds) in of.iter_mut().zip(states) {
                        *time += if holds { pass_us * 1000 } else { 0 };
                    }
                }
            }
            now += Nanos::micros(pass_us);
        }
        for (group, times) in [PsiGroup::SYSTEM, below].into_iter().zip(&times) {
            for (n, resource) in [Resource::Io, Resource::Memory, Resource::Cpu].into_iter().enumerate() {
                let [some, full] = psi.pressure(group, resource, now);
                prop_assert_eq!(some.total.0, total(times, 2 * n), "some {:?} of {:?}", resource, group);
                if (group, resource) != (PsiGroup::SYSTEM, Resource::Cpu) {
                    prop_assert_eq!(full.total.0, total(times, 2 * n + 1), "full {:?} of {:?}", resource, group);
                }
                prop_assert!(some.total >= full.total);
            }
        }
    }
}

#[test]
fn a_cpu_whose_only_task_reclaims_half_the_time_is_under_full_pressure_for_half_the_time() {
    let mut psi = Psi::new(2, TODAY);
    psi.add_task();
    let (task, half) = (TaskId(0), Nanos::millis(500));
    psi.runnable(task, CpuId(1), Nanos::ZERO);
    psi.on_cpu(task, CpuId(1), Nanos::ZERO);
    let mut now = Nanos::ZERO;
    for round in 0..60 {
        psi.memstall(task, round % 2 == 0, now);
        now += half;
        while psi.due() <= now {
            psi.work();
        }
    }
    let [some, full] = psi.pressure(PsiGroup::SYSTEM, Resource::Memory, now);
    assert_eq!(some, full);
    // Some of the last period's ticks are lost to rounding of the weights, but none of the time.
    assert_eq!(some.total, Nanos::secs(15), "the other CPU was idle and weighs nothing");
    let avg10 = some.averages[0] as f64 / f64::from(1 << super::Stall::FRACTION_BITS);
    let expected = 50.0 * (1.0 - f64::exp(-3.0));
    assert!((avg10 - expected).abs() < 2.0, "{avg10}");
}

#[test]
fn a_reclaimer_stalls_a_cpu_until_5_12_as_far_as_ticks_find_it() {
    let mut psi = Psi::new(1, Rule { memory_full: MemoryFull::AtTicks, since_tick: Nanos::millis(1) });
    let (reclaimer, other) = (TaskId(0), TaskId(1));
    for task in [reclaimer, other] {
        psi.add_task();
        psi.runnable(task, CpuId(0), Nanos::ZERO);
    }
    psi.on_cpu(reclaimer, CpuId(0), Nanos::ZERO);
    // Ticks at 3, 7, 11, 15, 19 ms and so on: 2 ms before the first, nothing between two, 6 ms before the last of two.
    for (from, to) in [(1, 5), (8, 10), (13, 21)] {
        psi.memstall(reclaimer, true, Nanos::millis(from));
        psi.memstall(reclaimer, false, Nanos::millis(to));
    }
    // Nobody runs: all of it.
    psi.memstall(reclaimer, true, Nanos::millis(24));
    psi.off_cpu(reclaimer, OffCpu::Sleeps { io: false }, Nanos::millis(24));
    psi.on_cpu(other, CpuId(0), Nanos::millis(24));
    psi.off_cpu(other, OffCpu::Exits, Nanos::millis(30));
    let [some, full] = psi.pressure(PsiGroup::SYSTEM, Resource::Memory, Nanos::millis(40));
    assert_eq!((some.total, full.total), (Nanos::millis(4 + 2 + 8 + 16), Nanos::millis(2 + 6 + 10)));
}
