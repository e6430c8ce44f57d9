//! The worker that tells who wants to know of reclaim's pressure, one for each CPU.
//!
//! Source: `vmpressure_work_fn()`, mm/vmpressure.c, which `schedule_work()` has run on the CPU of the reclaimer. What it does is in `mm::reclaim`.

use sim::Ctx;
use units::CpuId;

use super::Task;
use crate::reason::SleepReason;
use crate::world::World;

/// Runs until the end of the simulation.
pub(crate) async fn vmpressure(ctx: Ctx<World>, cpu: CpuId) {
    let task = Task::new(ctx);
    loop {
        if task.look(|mm| mm.vmpressure_waits(cpu)) {
            task.mm(|mm, _| mm.vmpressure_work(cpu));
            task.ctx.preempt_point().await;
        } else {
            let queue = task.ctx.with(|world, _| world.queues.vmpressure[cpu.index()]);
            task.ctx.wait(queue, SleepReason::PressureIdle).await;
        }
    }
}
