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

    /// Counts a page that this task dirtied and holds it back if it dirties too much
    /// (`balance_dirty_pages_ratelimited`).
    pub(crate) async fn balance_dirty_pages(&self, file: FileId) {
        let task = self.ctx.task();
        let mut dirtied = 1;
        loop {
            let pause = self.ctx.with(|world, ctl| {
                let mut state = world.task_mut(task).dirty;
                let count = std::mem::take(&mut dirtied);
                let pause = world.enter(ctl, |mm, env| mm.balance_dirty_pages(env, file, count, &mut state));
                world.task_mut(task).dirty = state;
                pause
            });
            match pause {
                Pause::None => return,
                Pause::Sleep(time) => self.ctx.sleep(SleepReason::DirtyThrottle, time).await,
            }
            if self.fatal_signal_pending() {
                return;
            }
        }
    }
}
