//! Out of memory: somebody is killed, or the request waits for somebody who was.
//!
//! Source: `__alloc_pages_may_oom()` (mm/page_alloc.c), `out_of_memory()`, `oom_reaper()` (mm/oom_kill.c), 4.20 and 6.12.
//! Abstracted: the reaper frees a victim's memory at once.

use mm::AllocRequest;
use mm::anon::OomChoice;
use mm::memcg::ROOT;
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
        let gives_up = request.order > Order::COSTLY
            || request.gfp.intersects(Gfp::RETRY_MAYFAIL.with(Gfp::THISNODE))
            || !request.gfp.contains(Gfp::FS);
        if gives_up {
            // Without __GFP_FS the kernel pretends that there was progress and keeps trying.
            let pretends = !request.gfp.contains(Gfp::FS) && request.order <= Order::COSTLY;
            if nofail || pretends {
                self.ctx.sleep(SleepReason::OutOfMemory, JIFFY).await;
                return None;
            }
            return (progress == 0).then_some(None);
        }
        if self.fatal_signal_pending() {
            // It gives its memory back by itself soon, if need be with the help of the reserves (`task_will_free_mem()`).
            self.set_flags(|flags| flags.oom_victim = true);
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
