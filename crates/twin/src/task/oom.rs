//! Out of memory: somebody is killed, or the request waits for somebody who was.
//!
//! Rule: up to order 3 the largest process is killed, unless the task has been killed itself: then it is the victim, and gets at the
//! reserves. Without `__GFP_FS` nobody else is killed, and the request is tried for ever.
//! Since/until: until 4.6 even by a task that was killed ([`DyingWithoutFs`]).
//! Source: `__alloc_pages_may_oom()` (mm/page_alloc.c), `out_of_memory()`, `oom_reaper()` (mm/oom_kill.c), 4.20 and 6.12;
//! `oom_gfp_allowed()`, 3.19-rc4.
//! Abstracted: the reaper frees a victim's memory at once; who tries for ever waits a tick each time, where 3.19 waits for a zone
//! that is congested and gives way otherwise.

use mm::AllocRequest;
use mm::anon::OomChoice;
use mm::memcg::ROOT;
use rules::DyingWithoutFs;
use sys::SysError;
use units::{Gfp, MemcgId, Nanos, Order, Pfn};

use super::Task;
use crate::reason::SleepReason;

/// `schedule_timeout_uninterruptible(1)`.
const JIFFY: Nanos = Nanos::millis(4);

impl Task {
    /// The last resort of the slow path: `None` means try again, `Some` what the allocation comes to.
    pub(super) async fn may_oom(&self, request: AllocRequest, progress: u64) -> Option<Option<Pfn>> {
        let nofail = request.gfp.contains(Gfp::NOFAIL);
        if self.mm(|_, env| env.task.oom_victim) && !nofail {
            return Some(None);
        }
        if request.order > Order::COSTLY || request.gfp.intersects(Gfp::RETRY_MAYFAIL.with(Gfp::THISNODE)) {
            if nofail {
                self.ctx.sleep(SleepReason::OutOfMemory, JIFFY).await;
                return None;
            }
            return (progress == 0).then_some(None);
        }
        let may_kill = request.gfp.contains(Gfp::FS);
        let asks_for_it = may_kill || self.look(|mm| mm.rules.dying_without_fs) == DyingWithoutFs::IsVictim;
        if asks_for_it && self.fatal_signal_pending() {
            // It gives its memory back by itself soon, if need be with the help of the reserves (`task_will_free_mem()`).
            let was = self.set_flags(|flags| flags.oom_victim = true);
            if was.oom_victim {
                self.ctx.sleep(SleepReason::OutOfMemory, JIFFY).await;
            }
            return None;
        }
        if !may_kill {
            // The kernel pretends that there was progress and keeps trying.
            self.ctx.sleep(SleepReason::OutOfMemory, JIFFY).await;
            return None;
        }
        if !self.out_of_memory(ROOT) {
            return Some(None);
        }
        self.ctx.sleep(SleepReason::OutOfMemory, JIFFY).await;
        None
    }

    /// Kills whom the OOM killer chooses; false if there is nobody, which the kernel does not survive.
    /// In a group that is at its limit there may be nobody to kill without harm to the kernel.
    pub(super) fn out_of_memory(&self, within: MemcgId) -> bool {
        match self.mm(|mm, _| mm.oom_select(within)) {
            OomChoice::Kill(space) => {
                self.ctx.with(|world, ctl| world.oom_kill(ctl, space));
                self.mm(|mm, env| mm.oom_reap(env, space));
            }
            OomChoice::Pending(_) => {}
            OomChoice::Nobody if within != ROOT => return false,
            OomChoice::Nobody => {
                // "Out of memory and no killable processes": the kernel panics.
                self.ctx.with(|world, ctl| world.fail(ctl, SysError::NoMemory));
                return false;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use profile::{Kernel, Machine};
    use sim::RunEnd;
    use sys::Sys;

    use super::*;
    use crate::RunSpec;
    use crate::run::{boot, start_workload};

    /// How a run has ended a second after its only process was killed in an allocation that all memory is taken for.
    fn killed_in_an_allocation(kernel: &str) -> RunEnd {
        let machine = Machine::load("guest-160m").expect("built in");
        let mut sim = boot(&RunSpec::new(machine, Kernel::load(kernel).expect("built in"))).expect("it has room");
        start_workload(&mut sim, |sys| async move {
            while sys.alloc_pages(Gfp::NOFS, Order(0)).await?.is_some() {}
            Ok(())
        });
        assert_eq!(sim.run_until(Nanos::secs(2)).expect("it goes on trying"), RunEnd::Deadline);
        sim.with_world(|world, ctl| {
            let (task, ..) = ctl.tasks().find(|(_, name, ..)| *name == "workload").expect("it has begun");
            let process = world.task(task).process.expect("it is the workload's");
            world.kill_process(ctl, process);
        });
        sim.run_until(Nanos::secs(3)).expect("there is no deadlock")
    }

    #[test]
    fn who_was_killed_gets_out_of_an_allocation_without_fs_since_4_7() {
        for (kernel, end) in [("3.19-rc4", RunEnd::Deadline), ("4.4", RunEnd::Deadline), ("6.12", RunEnd::AllEnded)] {
            assert_eq!(killed_in_an_allocation(kernel), end, "{kernel}");
        }
    }
}
