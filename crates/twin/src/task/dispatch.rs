//! The worker that goes on with bios that a limit had held back.
//!
//! Rule: a bio that `io.max` holds back is handed to the driver by a worker once its time has come. The driver of memory that is a disk
//! copies in its caller's context, so that the worker pays for the copy, and the bio ends when it has had a CPU.
//! Source: `throtl_pending_timer_fn()`, `blk_throtl_dispatch_work_fn()`, block/blk-throttle.c; 6.1, 6.12.
//! Abstracted: one worker for all devices, where each has a work item on `kthrotld`'s queue.

use sim::Ctx;

use super::Task;
use crate::reason::SleepReason;
use crate::world::World;

/// Runs until the end of the simulation.
pub(crate) async fn throttle_dispatch(ctx: Ctx<World>) {
    let task = Task::new(ctx);
    loop {
        let next = task.ctx.with(|world, _| world.dispatched.pop_front());
        match next {
            Some((entry, ok)) => {
                task.mm(|mm, _| mm.charge_copy(&entry.bio));
                task.ctx.preempt_point().await;
                task.ctx.with(|world, ctl| world.end_bio(ctl, entry, ok));
            }
            None => {
                let queue = task.ctx.with(|world, _| world.queues.dispatch);
                task.ctx.wait(queue, SleepReason::DispatchIdle).await;
            }
        }
    }
}
