//! A task's handle: the way to the world, and the places where it may sleep.

use crate::run::Shared;
use crate::{Ctl, SpawnOptions, TaskId, WaitQueueId, Wake, World};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use units::{CpuId, Nanos, NodeId};

/// What a task holds of the simulation. Cheap to clone, so that a helper can own one.
pub struct Ctx<W: World> {
    shared: Rc<Shared<W>>,
    task: TaskId,
}

impl<W: World> Clone for Ctx<W> {
    fn clone(&self) -> Self {
        Ctx { shared: Rc::clone(&self.shared), task: self.task }
    }
}

impl<W: World> Ctx<W> {
    pub(crate) fn new(shared: Rc<Shared<W>>, task: TaskId) -> Self {
        Ctx { shared, task }
    }

    /// Does something to the world. What was read before an await is stale after it: look again.
    ///
    /// # Panics
    /// If called inside itself, by this or any other handle.
    #[inline]
    pub fn with<R>(&self, f: impl FnOnce(&mut W, &mut Ctl<W>) -> R) -> R {
        let inner = &mut *self.shared.lock();
        f(&mut inner.world, &mut inner.ctl)
    }

    /// See [`Ctl::now`].
    #[inline]
    pub fn now(&self) -> Nanos {
        self.shared.lock().ctl.now()
    }

    /// Whose handle this is.
    #[inline]
    pub fn task(&self) -> TaskId {
        self.task
    }

    /// See [`Ctl::cpu`].
    #[inline]
    pub fn cpu(&self) -> CpuId {
        self.shared.lock().ctl.cpu()
    }

    /// See [`Ctl::node`].
    #[inline]
    pub fn node(&self) -> NodeId {
        self.shared.lock().ctl.node()
    }

    /// See [`Ctl::charge`].
    #[inline]
    pub fn charge(&self, time: Nanos) {
        self.shared.lock().ctl.charge(time);
    }

    /// Whether this task has been killed.
    #[inline]
    pub fn killed(&self) -> bool {
        self.shared.lock().ctl.killed(self.task)
    }

    /// Sleeps for this long, unless [`Ctl::wake_task`] ends it (`schedule_timeout()`).
    pub async fn sleep(&self, reason: W::Reason, time: Nanos) {
        self.block(None, Some(time), reason);
        Suspend::default().await;
    }

    /// Sleeps until woken.
    pub async fn wait(&self, queue: WaitQueueId, reason: W::Reason) {
        self.block(Some(queue), None, reason);
        Suspend::default().await;
    }

    /// Sleeps until woken, but not longer than `timeout`.
    pub async fn wait_timeout(&self, queue: WaitQueueId, reason: W::Reason, timeout: Nanos) -> Wake {
        self.block(Some(queue), Some(timeout), reason);
        Suspend::default().await;
        self.shared.lock().ctl.last_wake(self.task)
    }

    /// Gives way if [`Ctl::need_resched`] says so, as `cond_resched()` does: where a task that runs for long lets
    /// the others, and the clock, catch up. Costs next to nothing otherwise.
    #[inline]
    pub async fn preempt_point(&self) {
        if self.shared.lock().ctl.need_resched() {
            self.preempt().await;
        }
    }

    /// Ends the slice, and lets the next task of this CPU run before this one, if it is not too far ahead in
    /// virtual runtime (`sched_yield()`). A loop around it must charge CPU time, or time stands still.
    pub async fn yield_now(&self) {
        self.shared.lock().ctl.yield_cpu(self.task);
        Suspend::default().await;
    }

    /// Starts another task. `body` is called at once and only makes the future; the task first runs at
    /// [`Ctx::now`].
    pub fn spawn<F>(&self, options: SpawnOptions, body: impl FnOnce(Ctx<W>) -> F) -> TaskId
    where
        F: Future<Output = ()> + 'static,
    {
        let task = self.shared.lock().ctl.add_task(options);
        let future = body(Ctx::new(Rc::clone(&self.shared), task));
        self.shared.hand_over(task, Box::pin(future));
        task
    }

    /// Sleeps until the other task has ended.
    pub async fn join(&self, task: TaskId, reason: W::Reason) {
        while !self.join_or_wake(task, reason).await {}
    }

    /// Sleeps until the other task has ended, or until somebody wakes this one; says whether it has ended.
    pub async fn join_or_wake(&self, task: TaskId, reason: W::Reason) -> bool {
        assert!(task != self.task, "a task cannot wait for its own end");
        let queue = self.shared.lock().ctl.exit_queue(task);
        let Some(queue) = queue else { return true };
        self.wait(queue, reason).await;
        self.shared.lock().ctl.exit_queue(task).is_none()
    }

    async fn preempt(&self) {
        self.shared.lock().ctl.preempt(self.task);
        Suspend::default().await;
    }

    #[inline]
    fn block(&self, queue: Option<WaitQueueId>, timeout: Option<Nanos>, reason: W::Reason) {
        let ctl = &mut self.shared.lock().ctl;
        ctl.block(self.task, queue, timeout, reason);
    }
}

/// Suspends once. The simulation polls a task only when what it asked for has come, so that is enough.
#[derive(Default)]
struct Suspend {
    suspended: bool,
}

impl Future for Suspend {
    type Output = ();

    #[inline]
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.suspended, true) { Poll::Ready(()) } else { Poll::Pending }
    }
}
