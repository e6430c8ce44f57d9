//! The simulation: polls tasks, handles events, until there is nothing left to do.

use crate::ctl::Next;
use crate::{CpuTopology, Ctl, Ctx, Deadlock, SchedParams, SpawnOptions, TaskId, World};
use std::cell::{Ref, RefCell, RefMut};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Waker};
use units::Nanos;

type TaskFuture = Pin<Box<dyn Future<Output = ()>>>;

/// What every handle can reach. The futures are not in here: one is polled while its handles come back.
pub(crate) struct Shared<W: World> {
    inner: RefCell<Inner<W>>,
    /// Futures of tasks that were spawned since the last poll.
    spawned: RefCell<Vec<(TaskId, TaskFuture)>>,
}

pub(crate) struct Inner<W: World> {
    pub(crate) world: W,
    pub(crate) ctl: Ctl<W>,
}

impl<W: World> Shared<W> {
    #[inline]
    pub(crate) fn lock(&self) -> RefMut<'_, Inner<W>> {
        match self.inner.try_borrow_mut() {
            Ok(inner) => inner,
            Err(_) => reentered(),
        }
    }

    pub(crate) fn hand_over(&self, task: TaskId, future: TaskFuture) {
        self.spawned.borrow_mut().push((task, future));
    }
}

#[cold]
fn reentered() -> ! {
    panic!("a task's handle was used inside Ctx::with (or an event handler): use the Ctl passed to the closure")
}

/// Why a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RunEnd {
    /// Every task but the daemons has ended; or there never was one, and no event is left.
    AllEnded,
    /// [`Ctl::stop`] was called.
    Stopped,
    /// Everything up to the deadline is done, and the clock stands there.
    Deadline,
}

/// A simulation: a world, its tasks, and virtual time.
pub struct Sim<W: World> {
    shared: Rc<Shared<W>>,
    /// Indexed by task; none once it has ended.
    futures: Vec<Option<TaskFuture>>,
}

impl<W: World> Sim<W> {
    /// A simulation at time zero. A slice ends at the first preemption point after `quantum`.
    pub fn new(world: W, topology: CpuTopology, quantum: Nanos, params: SchedParams) -> Self {
        let ctl = Ctl::new(topology, quantum, params);
        Sim {
            shared: Rc::new(Shared { inner: RefCell::new(Inner { world, ctl }), spawned: RefCell::new(Vec::new()) }),
            futures: Vec::new(),
        }
    }

    /// Starts a task, runnable now. `body` is called at once and only makes the future.
    pub fn spawn<F>(&mut self, options: SpawnOptions, body: impl FnOnce(Ctx<W>) -> F) -> TaskId
    where
        F: Future<Output = ()> + 'static,
    {
        let task = self.shared.lock().ctl.add_task(options);
        let future = body(Ctx::new(Rc::clone(&self.shared), task));
        self.shared.hand_over(task, Box::pin(future));
        task
    }

    /// Runs until all tasks but the daemons have ended, or [`Ctl::stop`].
    ///
    /// # Errors
    /// If no event is left while a task that is not a daemon sleeps.
    pub fn run(&mut self) -> Result<RunEnd, Deadlock> {
        self.run_until(Nanos::MAX)
    }

    /// Runs as [`Sim::run`] does, but not beyond the deadline.
    ///
    /// # Errors
    /// If no event is left while a task that is not a daemon sleeps.
    pub fn run_until(&mut self, deadline: Nanos) -> Result<RunEnd, Deadlock> {
        let shared = Rc::clone(&self.shared);
        shared.lock().ctl.stopped = false;
        loop {
            let mut inner = shared.lock();
            let Inner { world, ctl } = &mut *inner;
            if ctl.stopped {
                return Ok(RunEnd::Stopped);
            }
            if ctl.all_ended() {
                return Ok(RunEnd::AllEnded);
            }
            if let Some((task, switched)) = ctl.dispatch() {
                if switched {
                    world.switched_to(task);
                }
                drop(inner);
                self.poll(task);
                continue;
            }
            match ctl.next_event(deadline) {
                Next::World(event) => world.handle(event, ctl),
                Next::Handled => {}
                Next::Deadline => return Ok(RunEnd::Deadline),
                Next::Empty if ctl.any_live() => return Err(ctl.deadlock()),
                Next::Empty => return Ok(RunEnd::AllEnded),
            }
        }
    }

    /// The present.
    pub fn now(&self) -> Nanos {
        self.shared.inner.borrow().ctl.now()
    }

    /// The world, between runs.
    pub fn world(&self) -> Ref<'_, W> {
        Ref::map(self.shared.inner.borrow(), |inner| &inner.world)
    }

    /// Does something to the world between runs.
    pub fn with_world<R>(&mut self, f: impl FnOnce(&mut W, &mut Ctl<W>) -> R) -> R {
        let inner = &mut *self.shared.lock();
        f(&mut inner.world, &mut inner.ctl)
    }

    /// Ends the simulation: drops all tasks where they stand and gives the world back.
    ///
    /// # Panics
    /// If a task's handle was kept outside of the tasks.
    pub fn into_world(self) -> W {
        let Sim { shared, futures } = self;
        drop(futures);
        shared.spawned.take().clear();
        match Rc::try_unwrap(shared) {
            Ok(shared) => shared.inner.into_inner().world,
            Err(_) => panic!("a Ctx outlives its simulation"),
        }
    }

    fn poll(&mut self, task: TaskId) {
        self.adopt_spawned();
        let future = self.futures[task.index()].as_mut().expect("a dispatched task has a future");
        let ended = future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready();
        if ended {
            // Now, without a lock: what the task owns may use its handle as it goes.
            self.futures[task.index()] = None;
        }
        self.shared.lock().ctl.settle(ended);
    }

    #[inline]
    fn adopt_spawned(&mut self) {
        let mut spawned = self.shared.spawned.borrow_mut();
        if spawned.is_empty() {
            return;
        }
        for (task, future) in spawned.drain(..) {
            let index = task.index();
            if self.futures.len() <= index {
                self.futures.resize_with(index + 1, || None);
            }
            self.futures[index] = Some(future);
        }
    }
}
