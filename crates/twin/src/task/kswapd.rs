//! kswapd of a node.
//!
//! Source: `kswapd()`, `kswapd_try_to_sleep()`, `balance_pgdat()`, mm/vmscan.c, 4.20 and 6.12. What is decided is in
//! `mm::reclaim`; here it sleeps, and gives up the CPU between batches.

use mm::ZoneKind;
use mm::reclaim::{BalancePgdat, Step};
use sim::{Ctx, Wake};
use units::{Nanos, NodeId, Order};

use super::Task;
use crate::reason::SleepReason;
use crate::world::World;

/// `HZ / 10`.
const NAP: Nanos = Nanos::millis(100);

/// Runs until the end of the simulation.
pub(crate) async fn kswapd(ctx: Ctx<World>, node: NodeId) {
    let task = Task::new(ctx);
    let mut highest = ZoneKind::Movable;
    loop {
        let request = task.mm(|mm, _| mm.kswapd_peek(node, highest));
        let (alloc_order, mut reclaim_order) = (request.order, request.order);
        highest = request.highest;
        loop {
            task.kswapd_try_to_sleep(node, alloc_order, reclaim_order, highest).await;
            let request = task.mm(|mm, _| mm.kswapd_take(node, highest));
            highest = request.highest;
            reclaim_order = task.balance_pgdat(node, request.order, highest).await;
            if reclaim_order >= request.order {
                break;
            }
        }
    }
}

impl Task {
    async fn kswapd_try_to_sleep(&self, node: NodeId, alloc: Order, reclaim: Order, highest: ZoneKind) {
        let queue = self.ctx.with(|world, _| world.queues.kswapd[node.index()]);
        let mut woken = false;
        if self.mm(|mm, _| mm.prepare_kswapd_sleep(node, reclaim, highest)) {
            self.mm(|mm, _| {
                mm.reset_isolation_suitable(node);
                mm.kswapd_begins_nap(node, mm::reclaim::KswapdRequest { order: alloc, highest });
                mm.nodes[node.index()].kswapd.asleep = true;
            });
            woken = self.ctx.wait_timeout(queue, SleepReason::KswapdNap, NAP).await == Wake::Woken;
            self.mm(|mm, _| {
                mm.nodes[node.index()].kswapd.asleep = false;
                if woken {
                    mm.kswapd_woken_early(node, reclaim, highest);
                }
            });
        }
        let sleeps = !woken && self.mm(|mm, _| mm.prepare_kswapd_sleep(node, reclaim, highest));
        self.mm(|mm, _| {
            mm.kswapd_sleep_ends(node, sleeps, woken);
            mm.nodes[node.index()].kswapd.asleep = sleeps;
        });
        if sleeps {
            self.ctx.wait(queue, SleepReason::KswapdIdle).await;
            self.mm(|mm, _| mm.nodes[node.index()].kswapd.asleep = false);
        }
    }

    /// Returns the order that the run stopped at.
    async fn balance_pgdat(&self, node: NodeId, order: Order, highest: ZoneKind) -> Order {
        let mut run = self.mm(|mm, _| BalancePgdat::new(mm, node, order, highest));
        loop {
            match self.mm(|mm, env| run.step(mm, env)) {
                Step::More => self.ctx.preempt_point().await,
                Step::Throttle(reason, timeout) => self.throttle(node, reason, timeout).await,
                Step::Done => return run.order(),
            }
        }
    }
}
