//! The worker of each CPU that does the small works of others: it has next to nothing to do, but it takes the CPU.
//!
//! Source: `schedule_work()`, which has a work done on the CPU that asks for it: `vmpressure_work_fn()` (mm/vmpressure.c; what it does is in
//! `mm::reclaim`), `kernfs_notify_workfn()` (fs/kernfs/file.c; when it comes is in `crate::notify`).

use sim::Ctx;
use units::CpuId;

use super::Task;
use crate::reason::SleepReason;
use crate::world::World;

/// Runs until the end of the simulation.
pub(crate) async fn worker(ctx: Ctx<World>, cpu: CpuId) {
    let task = Task::new(ctx);
    loop {
        if task.look(|mm| mm.vmpressure_waits(cpu)) {
            task.mm(|mm, _| mm.vmpressure_work(cpu));
            task.ctx.preempt_point().await;
        } else if task.ctx.with(|world, _| world.notifier.take(cpu)) {
            task.mm(|mm, _| mm.charge_small_work());
            task.ctx.preempt_point().await;
        } else {
            let queue = task.ctx.with(|world, _| world.queues.worker[cpu.index()]);
            task.ctx.wait(queue, SleepReason::WorkerIdle).await;
        }
    }
}
