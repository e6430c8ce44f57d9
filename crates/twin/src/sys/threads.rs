//! Threads, processes and barriers.

use std::future::Future;

use sim::{CpuSet, SpawnOptions as SimOptions, TaskId};
use sys::{Barrier, SpawnOptions, Thread};
use units::Nanos;

use super::SysTwin;
use super::process::BarrierState;
use crate::reason::SleepReason;

/// CPU time that a program uses at a time: who wakes up meanwhile waits for its end. Shorter than the least slice that
/// the scheduler gives (`sched_min_granularity`, 2.25 ms on 4 CPUs).
const COMPUTE_PART: Nanos = Nanos::millis(1);

impl SysTwin {
    pub(super) fn spawn_thread<F, Fut>(&self, options: SpawnOptions, body: F) -> Thread
    where
        F: FnOnce(Self) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + 'static,
    {
        let leader = options.process;
        let process = if leader {
            let process = self.task.ctx.with(|world, ctl| {
                let memcg = world.mm.memcg_of_space(world.processes.of(self.process).space);
                let process = world.processes.create(&mut world.mm, ctl);
                world.enter_memcg(ctl, process, memcg);
                process
            });
            self.hand_on_ends(&options, process);
            process
        } else {
            self.process
        };
        let (cpus, group) = self.task.ctx.with(|world, ctl| (CpuSet::all(ctl.topology()), world.workload_group));
        let group = group.filter(|_| !options.kernel);
        let sim_options = SimOptions::new(options.name, cpus).nice(options.nice).group(group);
        let task = self.task.ctx.spawn(sim_options, |ctx| {
            let sys = SysTwin::new(ctx, process);
            sys.clone().live(leader, async move { body(sys).await })
        });
        self.task.ctx.with(|world, ctl| {
            world.adopt(ctl, task, process);
            let info = world.task_mut(task);
            info.kernel = options.kernel;
            info.own_pages.pages = options.own_pages;
            info.parent = Some(self.task.ctx.task());
            // Who was asked to stop starts nothing that goes on.
            if ctl.killed(self.task.ctx.task()) {
                ctl.kill(task);
            }
        });
        Thread(task.0)
    }

    /// Asks a thread and all that comes from it to stop.
    pub(super) fn stop_line(&self, thread: Thread) {
        self.task.ctx.with(|world, ctl| {
            for task in world.line_of(TaskId(thread.0)) {
                ctl.kill(task);
            }
        });
    }

    /// Waits until a thread has ended; of a process, until all of it has.
    pub(super) async fn wait_for(&self, thread: Thread) {
        while !self.task.ctx.join_or_wake(TaskId(thread.0), SleepReason::Join).await {
            self.return_to_user().await;
        }
    }

    /// Uses the CPU for so long, in parts after which others may run.
    pub(super) async fn compute_for(&self, time: Nanos) {
        let task = self.task.ctx.task();
        let mut left = time;
        while left > Nanos::ZERO {
            let part = left.min(COMPUTE_PART);
            left = left.since(part);
            self.task.ctx.with(|world, ctl| {
                ctl.charge(part);
                if !world.task(task).kernel {
                    world.user_time += part;
                }
            });
            self.task.ctx.preempt_point().await;
            self.return_to_user().await;
        }
    }

    pub(super) fn new_barrier(&self, parties: u32) -> Barrier {
        self.task.ctx.with(|world, ctl| {
            let queue = ctl.new_wait_queue();
            world.processes.barriers.push(BarrierState { queue, parties, waiting: 0, round: 0 });
            Barrier(world.processes.barriers.len() as u32 - 1)
        })
    }

    pub(super) async fn wait_at_barrier(&self, barrier: Barrier) {
        let (queue, round) = self.task.ctx.with(|world, ctl| {
            let state = &mut world.processes.barriers[barrier.0 as usize];
            state.waiting += 1;
            let round = state.round;
            let costs = &world.mm.costs;
            if state.waiting == state.parties {
                state.waiting = 0;
                state.round += 1;
                ctl.charge(Nanos(costs.wake_up * u64::from(state.parties - 1)));
                ctl.wake_all(state.queue);
            } else {
                ctl.charge(Nanos(costs.futex_wait));
            }
            (state.queue, round)
        });
        let passed = || self.task.ctx.with(|world, _| world.processes.barriers[barrier.0 as usize].round != round);
        while !passed() {
            self.task.ctx.wait(queue, SleepReason::Barrier).await;
            self.return_to_user().await;
        }
    }
}
