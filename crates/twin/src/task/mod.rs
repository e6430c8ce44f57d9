//! What runs in process context and may sleep, each function named like the kernel's.

mod alloc;
mod alloc_around_reclaim;
mod compact;
mod dispatch;
mod flusher;
mod io;
mod kcompactd;
mod khugepaged;
mod kswapd;
mod memcg;
mod oom;
mod reclaim;
mod throttle;
mod worker;
mod zswap;

use mm::{Env, Mm, TaskFlags};
use sim::Ctx;

use crate::world::World;

pub(crate) use dispatch::throttle_dispatch;
pub(crate) use flusher::{end_io, flusher, flusher_options, fs_log, fs_push, fs_reclaim, kjournald2};
pub(crate) use kcompactd::kcompactd;
pub(crate) use khugepaged::khugepaged;
pub(crate) use kswapd::kswapd;
pub(crate) use worker::worker;
pub(crate) use zswap::zswap_shrink;

/// A task of the twin: the simulation's handle, with the calls that the mechanisms need.
#[derive(Clone)]
pub(crate) struct Task {
    pub(crate) ctx: Ctx<World>,
}

/// A section in which a task stalls for want of memory. Not a wrapper around a future, which would be moved into it.
#[must_use]
pub(crate) struct Memstall {
    /// It lies in another one.
    outer: bool,
}

impl Task {
    pub(crate) fn new(ctx: Ctx<World>) -> Task {
        Task { ctx }
    }

    /// Calls a mechanism for this task.
    #[inline]
    pub(crate) fn mm<R>(&self, call: impl FnOnce(&mut Mm, &Env) -> R) -> R {
        self.ctx.with(|world, ctl| world.enter(ctl, call))
    }

    /// Looks at something of memory management. It takes no time, so that nothing is charged or carried out.
    #[inline]
    pub(crate) fn look<R>(&self, look: impl FnOnce(&Mm) -> R) -> R {
        self.ctx.with(|world, _| look(&world.mm))
    }

    /// Changes what is special about this task and returns what it was (`memalloc_noreclaim_save`).
    pub(crate) fn set_flags(&self, change: impl FnOnce(&mut TaskFlags)) -> TaskFlags {
        let task = self.ctx.task();
        self.ctx.with(|world, _| {
            let flags = &mut world.task_mut(task).flags;
            let before = *flags;
            change(flags);
            before
        })
    }

    /// Says which device this task writes to, and returns what it was (`current->backing_dev_info`).
    pub(crate) fn writes_to(&self, device: Option<u16>) -> Option<u16> {
        self.set_flags(|flags| flags.writes_to = device).writes_to
    }

    /// Begins a section in which this task stalls for want of memory (`psi_memstall_enter()`), unless it is in one.
    pub(crate) fn memstall_enter(&self) -> Memstall {
        let task = self.ctx.task();
        self.ctx.with(|world, ctl| {
            let outer = std::mem::replace(&mut world.task_mut(task).memstall, true);
            if !outer {
                ctl.memstall(true);
            }
            Memstall { outer }
        })
    }

    /// Ends the section (`psi_memstall_leave()`).
    pub(crate) fn memstall_leave(&self, section: Memstall) {
        if !section.outer {
            let task = self.ctx.task();
            self.ctx.with(|world, ctl| {
                world.task_mut(task).memstall = false;
                ctl.memstall(false);
            });
        }
    }

    /// Undoes [`Task::set_flags`].
    pub(crate) fn restore_flags(&self, before: TaskFlags) {
        self.set_flags(|flags| *flags = before);
    }
}
