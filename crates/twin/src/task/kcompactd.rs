//! kcompactd of a node.
//!
//! Source: `kcompactd()`, mm/compaction.c, 4.20 and 6.12. What it does is in `mm::compaction`; here it sleeps.

use mm::compaction::{CompactStep, KcompactdWork};
use sim::Ctx;
use units::NodeId;

use super::Task;
use crate::reason::SleepReason;
use crate::world::World;

/// Runs until the end of the simulation.
pub(crate) async fn kcompactd(ctx: Ctx<World>, node: NodeId) {
    let task = Task::new(ctx);
    let queue = task.ctx.with(|world, _| world.queues.kcompactd[node.index()]);
    loop {
        let Some(mut work) = task.mm(|mm, _| KcompactdWork::begin(mm, node)) else {
            task.ctx.wait(queue, SleepReason::KcompactdIdle).await;
            continue;
        };
        let stall = task.memstall_enter();
        loop {
            match task.mm(|mm, env| work.step(mm, env)) {
                CompactStep::Done(_) => break,
                step => task.after_compact_step(step).await,
            }
        }
        task.mm(|mm, env| work.finish(mm, env));
        task.memstall_leave(stall);
    }
}
