//! The end of threads and processes.
//!
//! Rule: a process ends when its first thread returns or when it is killed; either ends all of its threads. A thread that
//! is to end finishes what it does in the kernel, whose sleeps that may be interrupted end at once, and goes before it
//! returns to user mode. The last thread gives back the memory, then pipes and files; only then is the first one waited for.
//! Source: `do_exit()`, `do_group_exit()`, kernel/exit.c; `complete_signal()`, kernel/signal.c; `exit_mmap()`, mm/mmap.c;
//! `close_files()`, fs/file.c (4.20; 6.12 the same).
//! Abstracted: files close within the exit, not as work on the way to user mode; the table of descriptors itself takes no
//! memory of the machine.

use std::future::{Future, pending, poll_fn};
use std::pin::pin;
use std::task::Poll;

use mm::TaskMemory;
use mm::vfs::Need;
use sys::SysError;
use units::PAGEBLOCK_PAGES;

use super::SysTwin;
use super::descriptors::Descriptors;
use crate::reason::SleepReason;
use crate::task::Task;

impl Task {
    /// Whether this thread is to end (`fatal_signal_pending()`).
    pub(crate) fn fatal_signal_pending(&self) -> bool {
        let task = self.ctx.task();
        self.ctx.with(|world, _| world.is_to_end(task))
    }
}

impl SysTwin {
    /// Runs the workload's own process. The run fails if the workload does, or if it is killed.
    pub(crate) async fn run_workload(self, program: impl Future<Output = sys::Result<()>>) {
        let mut killed = true;
        let (sys, unless_returned) = (self.clone(), &mut killed);
        let body = async move {
            if let Err(error) = program.await {
                sys::Sys::fail(&sys, error);
            }
            *unless_returned = false;
        };
        self.clone().live(true, body).await;
        if killed {
            sys::Sys::fail(&self, SysError::Killed);
        }
    }

    /// Runs a thread from its first to its last step.
    pub(crate) async fn live(self, leader: bool, body: impl Future<Output = ()>) {
        let mut memory = TaskMemory::default();
        match self.begin_task(leader, &mut memory).await {
            Ok(()) => self.until_killed(body).await,
            Err(_) if self.task.fatal_signal_pending() => {}
            Err(error) => sys::Sys::fail(&self, error),
        }
        if leader {
            self.task.ctx.with(|world, ctl| world.kill_process(ctl, self.process));
        }
        self.exit_thread(leader).await;
        self.task.mm(|mm, env| mm.end_task(env, memory));
    }

    /// Allocates what the kernel needs for a new task. It is done by the task itself, not by its parent.
    async fn begin_task(&self, process: bool, memory: &mut TaskMemory) -> sys::Result<()> {
        self.task.mm(|mm, _| mm.charge(if process { mm.costs.process } else { 0 }));
        loop {
            match self.task.mm(|mm, env| mm.begin_task(env, memory, process)) {
                Ok(()) => return Ok(()),
                Err(Need::Page(request)) => {
                    let page = self.task.alloc_pages_slowpath(request).await;
                    memory.give(page.ok_or(SysError::NoMemory)?);
                }
                Err(need) => self.satisfy(need).await?,
            }
        }
    }

    /// Runs the program of a thread until it returns, or does not return from the kernel any more.
    async fn until_killed(&self, body: impl Future<Output = ()>) {
        let mut body = pin!(body);
        poll_fn(|context| {
            let ended = body.as_mut().poll(context).is_ready();
            if ended || self.is_dead() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    fn is_dead(&self) -> bool {
        let task = self.task.ctx.task();
        self.task.ctx.with(|world, _| world.task(task).dead)
    }

    /// On the way to user mode: a thread that is to end does not get there, and one that let its memory cgroup grow above
    /// `memory.high` waits. One that has slept uses its own pages there.
    pub(super) async fn return_to_user(&self) {
        let task = self.task.ctx.task();
        if self.task.ctx.with(|world, ctl| world.works_before_user_mode(task, ctl.sleeps(task))) {
            Box::pin(self.work_before_user_mode()).await;
        }
    }

    async fn work_before_user_mode(&self) {
        let task = self.task.ctx.task();
        if self.task.fatal_signal_pending() {
            self.task.ctx.with(|world, _| world.task_mut(task).dead = true);
            pending::<()>().await;
        }
        let over_high = self.task.ctx.with(|world, _| std::mem::take(&mut world.task_mut(task).over_high));
        if over_high > 0 {
            self.task.handle_over_high(over_high).await;
        }
        if self.task.ctx.with(|world, ctl| world.has_slept(task, ctl.sleeps(task))) {
            self.use_own_pages().await;
        }
    }

    async fn exit_thread(&self, leader: bool) {
        let (process, task) = (self.process, self.task.ctx.task());
        let last = self.task.ctx.with(|world, _| {
            let threads = &mut world.processes.of_mut(process).threads;
            threads.retain(|other| *other != task);
            threads.is_empty()
        });
        if last {
            self.exit_mm().await;
            self.exit_files().await;
            self.task.ctx.with(|world, ctl| {
                let exited = world.processes.leave(process);
                ctl.wake_all(exited);
            });
        } else {
            self.free_own_pages();
        }
        if leader {
            self.wait_for_group().await;
        }
    }

    /// Waits until the last thread of the process has given back what it had.
    async fn wait_for_group(&self) {
        let unless_gone = || {
            self.task.ctx.with(|world, _| {
                let process = world.processes.of(self.process);
                (!process.gone).then_some(process.exited)
            })
        };
        while let Some(queue) = unless_gone() {
            self.task.ctx.wait(queue, SleepReason::ThreadGroup).await;
        }
    }

    /// Unmaps everything and gives the address space back.
    async fn exit_mm(&self) {
        let space = self.space();
        let areas: Vec<(u32, u32)> =
            self.task.mm(|mm, _| mm.spaces[space].vmas().iter().map(|vma| (vma.start, vma.end)).collect());
        for (start, end) in areas {
            self.zap(start, end).await;
        }
        self.task.mm(|mm, env| mm.space_exit(env, space));
        let mappings =
            self.task.ctx.with(|world, _| std::mem::take(&mut world.processes.of_mut(self.process).mappings));
        for handle in mappings.into_iter().flatten().filter_map(|mapped| mapped.file) {
            self.close_handle(handle);
        }
    }

    /// Closes every open file, pipes first: they have the lowest descriptors.
    async fn exit_files(&self) {
        self.exit_pipes();
        for handle in self.descriptors(Descriptors::take_all) {
            self.close_handle(handle);
            self.task.ctx.preempt_point().await;
        }
    }

    /// Drops what is mapped in a range, and lets others run after each region as `zap_pmd_range()` does.
    pub(super) async fn zap(&self, start: u32, end: u32) {
        let space = self.space();
        let mut at = start;
        while at < end {
            let next = (at | (PAGEBLOCK_PAGES - 1)).saturating_add(1).min(end);
            self.task.mm(|mm, env| mm.madvise(env, space, at, next - at, mm::anon::Advice::DontNeed));
            self.task.ctx.preempt_point().await;
            at = next;
        }
    }
}
