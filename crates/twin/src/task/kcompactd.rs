//! kcompactd of a node.
//!
//! Source: `kcompactd()`, mm/compaction.c, 4.20, 6.1 and 6.12. What it does is in `mm::compaction`; here it sleeps.

use mm::compaction::{CompactStep, KcompactdWork, ProactiveWork};
use sim::{Ctx, Wake};
use units::NodeId;

use super::Task;
use crate::reason::SleepReason;
use crate::world::World;

/// Runs until the end of the simulation.
pub(crate) async fn kcompactd(ctx: Ctx<World>, node: NodeId) {
    let task = Task::new(ctx);
    loop {
        if let Some(work) = task.mm(|mm, _| KcompactdWork::begin(mm, node)) {
            let stall = task.memstall_enter();
            task.do_work(work).await;
            task.memstall_leave(stall);
            continue;
        }
        task.sleep_until_wanted(node).await;
        if task.mm(|mm, _| mm.kcompactd_looks(node))
            && let Some(work) = task.mm(|mm, _| ProactiveWork::begin(mm, node))
        {
            task.do_proactive_work(work).await;
        }
    }
}

impl Task {
    /// Sleeps until there is work, or until it is time to look whether the node is fragmented.
    async fn sleep_until_wanted(&self, node: NodeId) {
        if self.mm(|mm, _| mm.kcompactd_looks(node)) {
            return;
        }
        let queue = self.ctx.with(|world, _| world.queues.kcompactd[node.index()]);
        match self.mm(|mm, _| mm.kcompactd_timeout(node)) {
            None => self.ctx.wait(queue, SleepReason::KcompactdIdle).await,
            Some(timeout) => {
                if self.ctx.wait_timeout(queue, SleepReason::KcompactdIdle, timeout).await == Wake::TimedOut {
                    self.mm(|mm, _| mm.kcompactd_time_to_look(node));
                }
            }
        }
    }

    async fn do_work(&self, mut work: KcompactdWork) {
        let stall = self.memstall_enter();
        loop {
            match self.mm(|mm, env| work.step(mm, env)) {
                CompactStep::Done(_) => break,
                step => self.after_compact_step(step).await,
            }
        }
        self.mm(|mm, env| work.finish(mm, env));
        self.memstall_leave(stall);
    }

    async fn do_proactive_work(&self, mut work: ProactiveWork) {
        loop {
            match self.mm(|mm, env| work.step(mm, env)) {
                CompactStep::Done(_) => break,
                step => self.after_compact_step(step).await,
            }
        }
        self.mm(|mm, env| work.finish(mm, env));
    }
}
