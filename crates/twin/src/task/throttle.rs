//! Sleeping where reclaim or writeback says so.

use mm::reclaim::ThrottleReason;
use mm::writeback::Pause;
use units::{FileId, Nanos, NodeId};

use super::Task;
use crate::reason::SleepReason;

impl Task {
    /// Sleeps for a reclaimer (`reclaim_throttle`, `congestion_wait`, `throttle_direct_reclaim`).
    pub(super) async fn throttle(&self, node: NodeId, reason: ThrottleReason, timeout: Nanos) {
        let queue = self.ctx.with(|world, _| world.queues.throttle(node, reason));
        let sleep = match reason {
            ThrottleReason::Reserve => SleepReason::DirectReclaimThrottle,
            _ => SleepReason::ReclaimThrottle,
        };
        self.ctx.wait_timeout(queue, sleep, timeout).await;
        self.mm(|mm, _| mm.throttle_end(node, reason));
    }

    /// Holds back a task that dirties too much (`balance_dirty_pages_ratelimited`).
    pub(crate) async fn balance_dirty_pages(&self, file: FileId) {
        let task = self.ctx.task();
        loop {
            let mut dirty = self.ctx.with(|world, _| std::mem::take(&mut world.task_mut(task).dirty));
            let pause = self.mm(|mm, env| mm.balance_dirty_pages(env, file, &mut dirty));
            self.ctx.with(|world, _| world.task_mut(task).dirty = dirty);
            match pause {
                Pause::None => return,
                Pause::Sleep(time) => self.ctx.sleep(SleepReason::DirtyThrottle, time).await,
            }
        }
    }
}
