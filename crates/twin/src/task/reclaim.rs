//! Direct reclaim.

use mm::reclaim::{DirectReclaim, Step};
use mm::zone::gfp_zone;
use mm::{AllocRequest, Frame};
use units::NodeId;

use super::Task;
use crate::reason::SleepReason;

impl Task {
    /// Reclaims for a request; returns the progress (`__perform_reclaim`).
    pub(super) async fn direct_reclaim(&self, request: AllocRequest) -> u64 {
        self.reclaim(DirectReclaim::new(request, gfp_zone(request.gfp))).await
    }

    /// Reclaims; returns the progress.
    pub(super) async fn reclaim(&self, mut run: DirectReclaim) -> u64 {
        let stall = self.memstall_enter();
        let before = self.set_flags(|flags| flags.memalloc = true);
        loop {
            match self.mm(|mm, env| run.step(mm, env)) {
                Step::More => {
                    self.wait_for_own_writes().await;
                    self.ctx.preempt_point().await;
                }
                Step::Throttle(reason, timeout) => {
                    let node = self.mm(|mm, _| run.throttled_node(mm));
                    self.throttle(node, reason, timeout).await;
                }
                Step::Wait(bio) => self.write_and_wait(bio).await,
                Step::WaitPage(pfn) => self.wait_on_page_bit(pfn, Frame::WRITEBACK).await,
                Step::WaitAging(node) => self.wait_for_generation(node).await,
                Step::OutOfMemory => unreachable!("kswapd alone looks at the age of the oldest pages"),
                Step::Done => break,
            }
        }
        self.restore_flags(before);
        self.memstall_leave(stall);
        run.progress()
    }

    /// Sleeps until a new generation begins on a node (`try_to_inc_max_seq()`, 6.1).
    pub(super) async fn wait_for_generation(&self, node: NodeId) {
        let queue = self.ctx.with(|world, _| world.queues.aging[node.index()]);
        self.ctx.wait(queue, SleepReason::Generation).await;
    }
}
