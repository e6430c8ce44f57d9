//! Threads, processes and barriers.

use std::future::Future;

use sim::{CpuSet, SpawnOptions as SimOptions};
use sys::{Barrier, SpawnOptions, Thread};

use super::SysTwin;
use super::descriptors::Descriptors;
use super::process::BarrierState;
use crate::reason::SleepReason;
use crate::world::TaskInfo;

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
                body(sys.clone()).await;
                if options.process {
                    sys.exit_process();
                }
            }
        });
        self.task.ctx.with(|world, _| {
            *world.task_mut(task) = TaskInfo { process: Some(process), ..TaskInfo::default() };
        });
        Thread(task.0)
    }

    /// Gives back the memory of the process of this thread and closes its files (`exit_mm()`, `exit_files()`).
    pub(crate) fn exit_process(&self) {
        let space = self.space();
        self.task.mm(|mm, env| mm.space_exit(env, space));
        for handle in self.descriptors(Descriptors::take_all) {
            self.task.mm(|mm, env| mm.vfs_close(env, handle));
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
