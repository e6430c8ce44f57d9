//! Runs that come to nothing: who waits or allocates in vain.
//!
//! Rule: a run stands still once every task of the workload that has not ended has, for an hour, either slept in one and the same
//! sleep that is not of its own making, or been in one and the same allocation. Both end as soon as what they are for is there,
//! so that a run which is only slow gets out of one or the other long before: an hour is thirty times what the kernel takes for
//! a hung task (`hung_task_timeout_secs`, 120 s). The hour itself is a guess.
//!
//! Allocations never end where the kernel tries for ever: up to order 3, without `__GFP_FS`, the OOM killer is not called, and if
//! whoever could call it waits for one that allocates so, nothing is freed any more. The simulation cannot tell it from a
//! deadlock's lack of events, for who allocates wakes up at every tick.
//! Source: `__alloc_pages_slowpath()`, `should_alloc_retry()`, `oom_gfp_allowed()` (3.19-rc4), `out_of_memory()` (6.12).
//! Omitted: a task of the workload that sleeps by itself now and then (one that watches the others) keeps a run alive.

use std::fmt;

use mm::AllocRequest;
use observe::gfp_names;
use sim::{BlockedTask, Sim, TaskId, TaskState};
use units::{Gfp, Nanos};

use crate::reason::SleepReason;
use crate::world::World;

/// After so long in one sleep or one allocation a task does not go on any more.
pub(crate) const STANDS_AFTER: Nanos = Nanos::secs(3600);

/// An allocation that a task is in the slow path of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allocating {
    pub(crate) request: AllocRequest,
    pub(crate) since: Nanos,
}

/// A task that is in the slow path of an allocation.
#[derive(Clone, Debug)]
pub struct AllocatingTask {
    /// Which task.
    pub task: TaskId,
    /// Its name.
    pub name: String,
    /// What it asks for.
    pub request: AllocRequest,
    /// Since when.
    pub since: Nanos,
    /// What it sleeps for just now, as `Debug` prints it; none while it runs.
    pub sleeps: Option<String>,
}

/// Who does not go on.
#[derive(Clone, Debug)]
pub struct Standstill {
    /// Tasks in the slow path of an allocation, daemons too.
    pub allocating: Vec<AllocatingTask>,
    /// All others that sleep, daemons too.
    pub waiting: Vec<BlockedTask>,
}

impl fmt::Display for AllocatingTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AllocatingTask { task, name, request, since, sleeps } = self;
        let (order, gfp, node) = (request.order.0, gfp_names(request.gfp), request.node.0);
        write!(f, "task {} {name}: order {order}, {gfp}, node {node}, since {} ns", task.0, since.0)?;
        sleeps.iter().try_for_each(|reason| write!(f, "; now {reason}"))
    }
}

impl fmt::Display for Standstill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Standstill { allocating, waiting } = self;
        if !allocating.is_empty() {
            write!(f, "\ntasks that allocate:")?;
            allocating.iter().try_for_each(|task| write!(f, "\n  {task}"))?;
            if !allocating.iter().any(|task| task.request.gfp.contains(Gfp::FS)) {
                write!(f, "\n  none of them may call the OOM killer (__GFP_FS)")?;
            }
        }
        write!(f, "\ntasks that wait:")?;
        waiting.iter().try_for_each(|task| write!(f, "\n  {task}"))
    }
}

/// Whether a task does not go on, by what it does now and since when it is in one allocation.
fn stands(state: TaskState<SleepReason>, allocating: Option<Nanos>, now: Nanos, after: Nanos) -> bool {
    let for_long = |since| now.since(since) > after;
    match state {
        TaskState::Exited => true,
        _ if allocating.is_some_and(for_long) => true,
        TaskState::Runnable => false,
        TaskState::Blocked { reason, since } => reason != SleepReason::Workload && for_long(since),
    }
}

/// Whether nothing will come of the run any more, although there are events.
pub(crate) fn stands_still(sim: &mut Sim<World>, after: Nanos) -> bool {
    sim.with_world(|world, ctl| {
        let now = ctl.now();
        ctl.tasks().filter(|(task, ..)| !ctl.is_daemon(*task)).all(|(task, _, state, _)| {
            stands(state, world.task(task).allocating.map(|allocation| allocation.since), now, after)
        })
    })
}

/// Who waits for what, and who allocates what.
pub(crate) fn standstill(sim: &mut Sim<World>) -> Standstill {
    sim.with_world(|world, ctl| {
        let allocating = ctl.tasks().filter_map(|(task, name, state, _)| {
            let Allocating { request, since } = world.task(task).allocating?;
            let sleeps = match state {
                TaskState::Blocked { reason, .. } => Some(format!("{reason:?}")),
                TaskState::Runnable | TaskState::Exited => None,
            };
            Some(AllocatingTask { task, name: name.to_string(), request, since, sleeps })
        });
        let allocating: Vec<_> = allocating.collect();
        let waiting = ctl.blocked().into_iter().filter(|blocked| world.task(blocked.task).allocating.is_none());
        Standstill { allocating, waiting: waiting.collect() }
    })
}

#[cfg(test)]
mod tests {
    use mm::AllocRequest;
    use profile::{Kernel, Machine};
    use sim::RunEnd;
    use sys::{SpawnOptions, Sys};
    use units::{NodeId, Order};

    use super::*;
    use crate::run::{boot, start_workload};
    use crate::{RunSpec, SysTwin};

    const HOUR: Nanos = Nanos::secs(3600);
    const TICK: Nanos = Nanos(1);

    #[test]
    fn a_task_stands_once_it_has_slept_or_allocated_for_longer_than_the_limit() {
        let since = Nanos::secs(5);
        let asleep = |reason| TaskState::Blocked { reason, since };
        for (now, long) in [(since + HOUR, false), (since + HOUR + TICK, true)] {
            assert_eq!(stands(asleep(SleepReason::Join), None, now, HOUR), long);
            assert!(!stands(asleep(SleepReason::Workload), None, now, HOUR), "of its own making");
            assert_eq!(stands(TaskState::Runnable, Some(since), now, HOUR), long);
            assert!(!stands(TaskState::Runnable, None, now, HOUR));
            // It fell asleep just now, in an allocation that is older.
            let shortly = TaskState::Blocked { reason: SleepReason::OutOfMemory, since: now };
            assert_eq!(stands(shortly, Some(since), now, HOUR), long);
            assert!(!stands(shortly, None, now, HOUR));
            assert!(stands(TaskState::Exited, None, now, HOUR));
        }
    }

    /// A process that takes all memory page by page, and one that waits for it.
    async fn take_all(sys: SysTwin, gfp: Gfp) -> sys::Result<()> {
        let taker = sys.spawn(SpawnOptions::process("taker".to_string()), move |sys: SysTwin| async move {
            while let Ok(Some(_)) = sys.alloc_pages(gfp, Order(0)).await {}
        });
        sys.join(taker).await;
        Ok(())
    }

    fn running(kernel: &str, gfp: Gfp) -> Sim<World> {
        let machine = Machine::load("guest-160m").expect("built in");
        let mut sim = boot(&RunSpec::new(machine, Kernel::load(kernel).expect("built in"))).expect("it has room");
        start_workload(&mut sim, move |sys| take_all(sys, gfp));
        sim
    }

    #[test]
    fn who_tries_for_ever_is_noticed_and_named() {
        for kernel in ["3.19-rc4", "6.12"] {
            let mut sim = running(kernel, Gfp::NOFS);
            sim.run_until(Nanos::secs(2)).expect("it goes on trying");
            let allocating = standstill(&mut sim).allocating;
            let [taker] = &allocating[..] else { panic!("{kernel}: {allocating:?}") };
            assert_eq!((&*taker.name, taker.request.gfp), ("taker", Gfp::NOFS));
            let limit = Nanos::secs(20);
            for (now, still) in [(taker.since + limit, false), (taker.since + limit + TICK, true)] {
                assert_eq!(sim.run_until(now).expect("it goes on trying"), RunEnd::Deadline);
                assert_eq!(stands_still(&mut sim, limit), still, "{kernel}");
            }
            let text = standstill(&mut sim).to_string();
            for part in ["taker: order 0, GFP_NOFS, node 0", "call the OOM killer", "workload: Join"] {
                assert!(text.contains(part), "{part}: {text}");
            }
        }
    }

    #[test]
    fn who_may_have_somebody_killed_does_not_stand_still() {
        let mut sim = running("3.19-rc4", Gfp::KERNEL);
        assert_ne!(sim.run_until(Nanos::secs(2)).expect("somebody is killed"), RunEnd::Deadline);
    }

    #[test]
    fn one_who_may_call_the_oom_killer_is_not_said_to_be_hopeless() {
        let one = |gfp| AllocatingTask {
            task: TaskId(1),
            name: "one".to_string(),
            request: AllocRequest { gfp, order: Order(0), node: NodeId(0) },
            since: Nanos::ZERO,
            sleeps: None,
        };
        for (gfps, hopeless) in [(vec![Gfp::NOFS; 2], true), (vec![Gfp::NOFS, Gfp::KERNEL], false), (vec![], false)] {
            let text = Standstill { allocating: gfps.into_iter().map(one).collect(), waiting: Vec::new() }.to_string();
            assert_eq!(text.contains("call the OOM killer"), hopeless, "{text}");
        }
    }
}
