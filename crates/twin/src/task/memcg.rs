//! What a task does about the limits of its memory cgroup.
//!
//! Source: `try_charge_memcg()`, `mem_cgroup_oom()`, `mem_cgroup_handle_over_high()`, `reclaim_high()` (mm/memcontrol.c), 6.1.
//! Abstracted: a task that finds an earlier victim still releasing its memory waits a tick.

use mm::memcg::{MIN_HIGH_DELAY, MemcgEvent, Uncharged};
use mm::reclaim::DirectReclaim;
use units::{Gfp, MemcgId, Nanos, Order};

use super::Task;
use crate::reason::SleepReason;

/// Attempts at reclaim without progress (`MAX_RECLAIM_RETRIES`).
const RETRIES: u32 = 16;
/// Pages reclaimed at a time in a repeated attempt (`SWAP_CLUSTER_MAX`).
const CLUSTER: u64 = 32;
/// `schedule_timeout_uninterruptible(1)`.
const JIFFY: Nanos = Nanos::millis(4);

impl Task {
    /// Charges pages that a limit forbids: reclaims from the group at its limit, and at last kills one of its processes.
    /// `None` if that does not help.
    pub(super) async fn charge_memcg(&self, charge: Uncharged) -> Option<()> {
        let Uncharged { memcg, pages, gfp, noretry, .. } = charge;
        let optional = charge.is_optional();
        let (mut retries, mut drained, mut killed) = (RETRIES, false, false);
        loop {
            let charged = self.mm(|mm, env| mm.memcg_try_charge(env.cpu, memcg, pages, gfp));
            let Err(charge) = charged else { return Some(()) };
            if self.memalloc() {
                self.mm(|mm, env| mm.memcg_force_charge(env.cpu, memcg, pages));
                return Some(());
            }
            self.mm(|mm, _| mm.memcg_notes(charge.over, MemcgEvent::Max));
            let progress = self.reclaim_memcg(charge.over, pages, gfp).await;
            if self.mm(|mm, _| mm.memcg.margin(charge.over)) >= pages {
                continue;
            }
            if !std::mem::replace(&mut drained, true) {
                self.mm(|mm, _| mm.memcg.drain_all_stock(charge.over));
                continue;
            }
            if noretry {
                return None;
            }
            if progress > 0 && pages <= u64::from(Order::COSTLY.pages()) {
                continue;
            }
            if retries > 0 {
                retries -= 1;
                continue;
            }
            if optional {
                return None;
            }
            if killed && self.fatal_signal_pending() || !self.out_of_memory_in(charge.over).await {
                return None;
            }
            (killed, retries) = (true, RETRIES);
        }
    }

    /// Reclaims from a group and those below it, as whoever charges may; returns the progress.
    async fn reclaim_memcg(&self, memcg: MemcgId, pages: u64, gfp: Gfp) -> u64 {
        let node = self.ctx.node();
        self.reclaim(DirectReclaim::memcg(memcg, gfp, pages, true, node)).await
    }

    /// Kills a process of a group; false if there is none.
    async fn out_of_memory_in(&self, memcg: MemcgId) -> bool {
        self.mm(|mm, _| mm.memcg_notes(memcg, MemcgEvent::Oom));
        if self.fatal_signal_pending() {
            return true;
        }
        if !self.out_of_memory(memcg) {
            return false;
        }
        self.ctx.sleep(SleepReason::OutOfMemory, JIFFY).await;
        true
    }

    /// On the way to user mode: what was charged above `memory.high` is reclaimed, or slept off.
    pub(crate) async fn handle_over_high(&self, pages: u64) {
        let memcg = self.mm(|_, env| env.task.memcg);
        let (mut retries, mut goal) = (RETRIES, pages);
        loop {
            let mut progress = 0;
            for group in self.mm(|mm, _| mm.memcg_above_high(memcg)) {
                progress += self.reclaim_memcg(group, goal, Gfp::KERNEL).await;
            }
            let delay = self.mm(|mm, _| mm.memcg_high_delay(memcg, pages));
            if delay <= MIN_HIGH_DELAY || self.fatal_signal_pending() {
                return;
            }
            if progress == 0 {
                if retries == 0 {
                    let stall = self.memstall_enter();
                    self.ctx.sleep(SleepReason::MemcgHigh, delay).await;
                    return self.memstall_leave(stall);
                }
                retries -= 1;
            }
            goal = CLUSTER;
        }
    }
}
