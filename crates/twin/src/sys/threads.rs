//! Threads, processes and barriers.

use std::future::Future;

use mm::TaskMemory;
use mm::vfs::Need;
use sim::{CpuSet, SpawnOptions as SimOptions};
use sys::{Barrier, Result, SpawnOptions, SysError, Thread};

use units::Nanos;

use super::SysTwin;
use super::descriptors::Descriptors;
use super::process::BarrierState;
use crate::reason::SleepReason;
use crate::world::TaskInfo;

/// CPU time that a program uses at a time: who wakes up meanwhile waits for its end. Shorter than the least slice that
/// the scheduler gives (`sched_min_granularity`, 2.25 ms on 4 CPUs).
const COMPUTE_PART: Nanos = Nanos::millis(1);

impl SysTwin {
    pub(super) fn spawn_thread<F, Fut>(&self, options: SpawnOptions, body: F) -> Thread
    where
        F: FnOnce(Self) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + 'static,
    {
        let process = if options.process {
            self.task.ctx.with(|world, _| world.processes.create(&mut world.mm))
        } else {
            self.process
        };
        let cpus = self.task.ctx.with(|_, ctl| CpuSet::all(ctl.topology()));
        let sim_options = SimOptions::new(options.name, cpus).nice(options.nice);
        let task = self.task.ctx.spawn(sim_options, |ctx| {
            let sys = SysTwin::new(ctx, process);
            async move {
                match sys.begin_task(options.process).await {
                    Ok(memory) => {
                        body(sys.clone()).await;
                        sys.end_task(memory);
                    }
                    Err(error) => sys::Sys::fail(&sys, error),
                }
                if options.process {
                    sys.exit_process();
                }
            }
        });
        self.task.ctx.with(|world, _| {
            *world.task_mut(task) = TaskInfo { process: Some(process), kernel: options.kernel, ..TaskInfo::default() };
        });
        Thread(task.0)
    }

    /// Allocates what the kernel needs for a new task. It is done by the task itself, not by its parent.
    async fn begin_task(&self, process: bool) -> Result<TaskMemory> {
        let mut memory = TaskMemory::default();
        self.task.mm(|mm, _| mm.charge(if process { mm.costs.process } else { 0 }));
        loop {
            match self.task.mm(|mm, env| mm.begin_task(env, &mut memory, process)) {
                Ok(()) => return Ok(memory),
                Err(Need::Page(request)) => {
                    let page = self.task.alloc_pages_slowpath(request).await;
                    memory.give(page.ok_or(SysError::NoMemory)?);
                }
                Err(need) => self.satisfy(need).await?,
            }
        }
    }

    fn end_task(&self, memory: TaskMemory) {
        self.task.mm(|mm, env| mm.end_task(env, memory));
    }

    /// Gives back the memory of the process of this thread and closes its files (`exit_mm()`, `exit_files()`).
    pub(crate) fn exit_process(&self) {
        let space = self.space();
        self.task.mm(|mm, env| mm.space_exit(env, space));
        for handle in self.descriptors(Descriptors::take_all) {
            self.task.mm(|mm, env| mm.vfs_close(env, handle));
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
            if state.waiting == state.parties {
                state.waiting = 0;
                state.round += 1;
                ctl.wake_all(state.queue);
            }
            (state.queue, round)
        });
        let passed = || self.task.ctx.with(|world, _| world.processes.barriers[barrier.0 as usize].round != round);
        while !passed() {
            self.task.ctx.wait(queue, SleepReason::Barrier).await;
        }
    }
}
