//! kswapd of a node.
//!
//! Source: `kswapd()`, `kswapd_try_to_sleep()`, `balance_pgdat()`, mm/vmscan.c, 2.6.39, 3.19, 4.20 and 6.12. What is decided is in
//! `mm::reclaim`; here it sleeps, and gives up the CPU between batches.

use mm::reclaim::{BalanceAgain, BalancePgdat, BalanceZones, KswapdRequest, Step};
use mm::{Env, Frame, Mm, ZoneKind};
use rules::{KswapdBalance, KswapdOrders, KswapdRun, SkipResetTime};
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
    match task.mm(|mm, _| mm.rules.kswapd_balance) {
        KswapdBalance::EveryZone => task.kswapd_of_zones(node).await,
        KswapdBalance::AnyZone => task.kswapd_of_node(node).await,
    }
}

impl Task {
    async fn kswapd_of_node(&self, node: NodeId) {
        let mut highest = ZoneKind::Movable;
        loop {
            let request = self.mm(|mm, _| mm.kswapd_peek(node, highest));
            let (mut alloc_order, mut reclaim_order) = (request.order, request.order);
            highest = request.highest;
            loop {
                let done = KswapdRequest { order: reclaim_order, highest };
                self.kswapd_try_to_sleep(node, alloc_order, done).await;
                let request = self.mm(|mm, _| mm.kswapd_take(node, highest));
                (alloc_order, highest) = (request.order, request.highest);
                let stall = self.memstall_enter();
                let run = self.balance_pgdat(node, alloc_order, highest);
                reclaim_order = self.timed_by_order(node, alloc_order, run).await;
                self.memstall_leave(stall);
                if reclaim_order >= alloc_order {
                    break;
                }
            }
        }
    }

    /// Where every zone is balanced: what came in while it worked is taken up once it has reached what it was asked for.
    async fn kswapd_of_zones(&self, node: NodeId) {
        let (orders, runs) = self.mm(|mm, _| (mm.rules.kswapd_orders, mm.rules.kswapd_run));
        let mut done = KswapdRequest { order: Order(0), highest: ZoneKind::Movable };
        let (mut work, mut asked) = (done, done);
        loop {
            if orders == KswapdOrders::AtOnce || done.highest >= asked.highest && done.order == asked.order {
                asked = self.mm(|mm, _| mm.kswapd_collect(node));
            }
            let before = if runs == KswapdRun::Once { work } else { done };
            if before.order < asked.order || before.highest > asked.highest {
                work = asked;
            } else {
                self.kswapd_try_to_sleep(node, done.order, done).await;
                work = self.mm(|mm, _| mm.kswapd_collect(node));
                asked = work;
            }
            let run = async {
                match runs {
                    KswapdRun::Once => self.balance_zones(node, work).await,
                    KswapdRun::Again | KswapdRun::AgainWithSlab => self.balance_again(node, work).await,
                }
            };
            done = self.timed_by_order(node, work.order, run).await;
        }
    }

    /// A run for an order; notes its CPU time if that is for blocks of more than a page.
    async fn timed_by_order<T>(&self, node: NodeId, order: Order, run: impl Future<Output = T>) -> T {
        let used = || self.ctx.with(|_, ctl| ctl.task_cpu_time(self.ctx.task()));
        let before = used();
        let result = run.await;
        if order > Order(0) {
            let time = Nanos(used().0 - before.0);
            self.ctx.with(|world, _| {
                let deeds = &mut world.mm.nodes[node.index()].kswapd.deeds;
                deeds.for_blocks_time = Nanos(deeds.for_blocks_time.0 + time.0);
            });
        }
        result
    }

    async fn balance_zones(&self, node: NodeId, work: KswapdRequest) -> KswapdRequest {
        let mut run = self.mm(|mm, _| BalanceZones::new(mm, node, work.order, work.highest));
        loop {
            let wanted_in = self.ctx.with(|_, ctl| ctl.until_preempted());
            let step = |mm: &mut Mm, env: &Env| {
                run.cpu_is_wanted_in(mm, wanted_in);
                run.step(mm, env)
            };
            if !self.kswapd_goes_on(node, step).await {
                break;
            }
        }
        let (order, highest) = self.mm(|mm, _| run.reached(mm));
        KswapdRequest { order, highest }
    }

    async fn balance_again(&self, node: NodeId, work: KswapdRequest) -> KswapdRequest {
        let mut run = self.mm(|mm, _| BalanceAgain::new(mm, node, work.order, work.highest));
        while self.kswapd_goes_on(node, |mm, env| run.step(mm, env)).await {}
        let (order, highest) = self.mm(|mm, _| run.reached(mm));
        KswapdRequest { order, highest }
    }

    /// Does one step of a run, and what it asks for; `false` at the run's end.
    async fn kswapd_goes_on(&self, node: NodeId, step: impl FnOnce(&mut Mm, &Env) -> Step) -> bool {
        match self.mm(step) {
            Step::More => {
                self.wait_for_own_writes().await;
                self.ctx.preempt_point().await;
            }
            Step::Throttle(reason, timeout) => self.throttle(node, reason, timeout).await,
            Step::Wait(bio) => self.write_and_wait(bio).await,
            Step::WaitPage(pfn) => self.wait_on_page_bit(pfn, Frame::WRITEBACK).await,
            Step::WaitAging(node) => self.wait_for_generation(node).await,
            Step::OutOfMemory => {
                self.out_of_memory(mm::memcg::ROOT);
            }
            Step::Done => return false,
        }
        true
    }

    /// Sleeps if what was done last, and the watermarks, allow it; `alloc` is the order that was asked for.
    async fn kswapd_try_to_sleep(&self, node: NodeId, alloc: Order, done: KswapdRequest) {
        let queue = self.ctx.with(|world, _| world.queues.kswapd[node.index()]);
        let mut woken = false;
        let must_resched = self.cpu_is_wanted();
        if self.mm(|mm, _| mm.prepare_kswapd_sleep(node, done, must_resched)) {
            self.mm(|mm, _| {
                mm.forget_skip_hints(node, SkipResetTime::Nap);
                mm.kswapd_begins_nap(node, KswapdRequest { order: alloc, highest: done.highest });
                mm.nodes[node.index()].kswapd.asleep = true;
            });
            woken = self.ctx.wait_timeout(queue, SleepReason::KswapdNap, NAP).await == Wake::Woken;
            self.mm(|mm, _| {
                mm.nodes[node.index()].kswapd.asleep = false;
                if woken {
                    mm.kswapd_woken_early(node, done.order, done.highest);
                }
            });
        }
        let must_resched = self.cpu_is_wanted();
        let sleeps = !woken && self.mm(|mm, _| mm.prepare_kswapd_sleep(node, done, must_resched));
        self.mm(|mm, _| {
            if sleeps {
                mm.forget_skip_hints(node, SkipResetTime::Sleep);
            }
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
        while self.kswapd_goes_on(node, |mm, env| run.step(mm, env)).await {}
        run.order()
    }
}
