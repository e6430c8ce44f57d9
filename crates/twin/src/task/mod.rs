//! What runs in process context and may sleep, each function named like the kernel's.

mod alloc;
mod alloc_around_reclaim;
mod compact;
mod flusher;
mod io;
mod kcompactd;
mod kswapd;
mod memcg;
mod oom;
mod reclaim;
mod throttle;

use mm::{Env, Mm, TaskFlags};
use sim::Ctx;

use crate::world::World;

pub(crate) use flusher::{flusher, fs_log, fs_push, fs_reclaim};
pub(crate) use kcompactd::kcompactd;
pub(crate) use kswapd::kswapd;

/// A task of the twin: the simulation's handle, with the calls that the mechanisms need.
#[derive(Clone)]
pub(crate) struct Task {
    pub(crate) ctx: Ctx<World>,
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

    /// Undoes [`Task::set_flags`].
    pub(crate) fn restore_flags(&self, before: TaskFlags) {
        self.set_flags(|flags| *flags = before);
    }
}
