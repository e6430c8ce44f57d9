//! The worker that shrinks zswap's pool once it has hit its limit.
//!
//! Source: `shrink_worker()`, mm/zswap.c, 6.12. What it does is in `mm::swap`; here it sleeps, and finds pages.

use mm::swap::ZswapStep;
use sim::Ctx;

use super::Task;
use crate::reason::SleepReason;
use crate::world::World;

/// Runs until the end of the simulation.
pub(crate) async fn zswap_shrink(ctx: Ctx<World>) {
    let task = Task::new(ctx);
    loop {
        let queue = task.ctx.with(|world, _| world.queues.zswap);
        task.ctx.wait(queue, SleepReason::ZswapIdle).await;
        task.shrink_zswap().await;
    }
}

impl Task {
    async fn shrink_zswap(&self) {
        let mut hand = None;
        loop {
            match self.mm(|mm, env| mm.zswap_shrink_step(env, hand.take())) {
                ZswapStep::Done => return,
                ZswapStep::More => self.ctx.preempt_point().await,
                ZswapStep::NeedPage(request) => hand = self.alloc_pages_slowpath(request).await,
            }
            self.wait_for_own_writes().await;
        }
    }
}
