//! kcompactd of a node.
//!
//! Source: `kcompactd()`, `kcompactd_do_work()`, mm/compaction.c, 4.20 and 6.12.
//! Omitted: proactive compaction (5.9), which wakes by a timer.

use sim::Ctx;
use units::NodeId;

use super::Task;
use crate::reason::SleepReason;
use crate::world::World;

/// Runs until the end of the simulation.
pub(crate) async fn kcompactd(ctx: Ctx<World>, node: NodeId) {
    let task = Task::new(ctx);
    loop {
        let queue = task.ctx.with(|world, _| world.queues.kcompactd[node.index()]);
        let Some(request) = task.mm(|mm, _| mm.kcompactd_take(node)) else {
            task.ctx.wait(queue, SleepReason::KcompactdIdle).await;
            continue;
        };
        for control in task.mm(|mm, _| mm.kcompactd_zones(node, request)) {
            let result = task.compact_zone(control).await;
            task.mm(|mm, _| mm.kcompactd_settle(control, result));
        }
    }
}
