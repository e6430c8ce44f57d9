//! The executor's side of [`Ctl`]: taking tasks in, suspending and waking them, moving the clock.

use super::{Ctl, Request};
use crate::event::Kind;
use crate::psi::OffCpu;
use crate::sched::Leave;
use crate::task::{Phase, Task};
use crate::{Class, Deadlock, SpawnOptions, TaskId, WaitQueueId, Wake, World};
use units::{CpuId, Nanos};

/// Slices that may follow each other without time moving on. More than any program needs; a task that spins
/// without charging is found by it.
const SLICES_PER_INSTANT_MAX: u32 = 10_000_000;
/// Stale timeouts that the heap may hold before it is worth a sweep.
const STALE_TIMEOUTS_MIN: usize = 1024;

/// The result of taking the next event off the heap.
pub(crate) enum Next<E> {
    /// One for the world.
    World(E),
    /// One of the simulation's own; done.
    Handled,
    /// None up to the deadline.
    Deadline,
    /// None at all.
    Empty,
}

impl<W: World> Ctl<W> {
    /// Takes a new task in; it is runnable at [`Ctl::now`].
    pub(crate) fn add_task(&mut self, options: SpawnOptions) -> TaskId {
        let task = TaskId(self.tasks.len() as u32);
        let mut record = Task::new(options.daemon);
        if !options.daemon {
            self.live += 1;
            self.ever_live = true;
        }
        self.names.push(options.name);
        self.queues.add_task();
        self.psi.add_task();
        self.sched.add(options.nice, options.group, options.cpus);
        if self.charged > Nanos::ZERO {
            record.phase = Phase::Waking;
            self.tasks.push(record);
            self.events.push(self.now(), Class::Task, Kind::Wake { task });
        } else {
            self.tasks.push(record);
            self.make_runnable(task);
        }
        task
    }

    /// Whether no task is left that keeps the run alive, though there were some.
    pub(crate) fn all_ended(&self) -> bool {
        self.ever_live && self.live == 0
    }

    pub(crate) fn any_live(&self) -> bool {
        self.live > 0
    }

    /// The wake-up has reached the task.
    pub(super) fn make_runnable(&mut self, task: TaskId) {
        let record = &mut self.tasks[task.index()];
        record.phase = Phase::Runnable;
        // Still in the slice at whose end it would have gone to sleep: it will not.
        if record.on_cpu {
            return;
        }
        let preempted = self.sched.wake(task, self.time);
        self.psi.runnable(task, self.sched.cpu_of(task), self.time);
        if self.current.is_some() && preempted == Some(self.current_cpu) {
            self.slice_limit = Nanos::ZERO;
        }
    }

    /// Puts the running task to sleep, on a queue or until a timeout or both, from [`Ctl::now`] on.
    pub(crate) fn block(
        &mut self,
        task: TaskId,
        queue: Option<WaitQueueId>,
        timeout: Option<Nanos>,
        reason: W::Reason,
    ) {
        self.request(task, Request::Sleep);
        let since = self.now();
        let record = &mut self.tasks[task.index()];
        record.phase = Phase::Blocked;
        record.reason = Some(reason);
        record.since = since;
        record.block = record.block.wrapping_add(1);
        record.timeout_armed = timeout.is_some();
        let block = record.block;
        if let Some(queue) = queue {
            self.queues.push(queue, task);
        }
        if let Some(timeout) = timeout {
            let kind = Kind::Timeout { task, block };
            self.events.push(since + timeout, Class::Timer, kind);
        }
    }

    /// Has the running task preempted at the end of the slice.
    pub(crate) fn preempt(&mut self, task: TaskId) {
        self.request(task, Request::Preempt);
    }

    /// Has the running task give way to the next.
    pub(crate) fn yield_cpu(&mut self, task: TaskId) {
        self.request(task, Request::Yield);
    }

    fn request(&mut self, task: TaskId, request: Request) {
        assert!(self.current == Some(task), "{task:?}'s handle is awaited by {:?}", self.current);
        assert!(self.request == Request::None, "a task awaits one thing at a time: {:?} and {request:?}", self.request);
        self.request = request;
    }

    /// How the task's last block ended.
    pub(crate) fn last_wake(&self, task: TaskId) -> Wake {
        self.tasks[task.index()].wake
    }

    /// Where to wait for the end of the task; none if it has ended.
    pub(crate) fn exit_queue(&mut self, task: TaskId) -> Option<WaitQueueId> {
        let record = &mut self.tasks[task.index()];
        if record.phase == Phase::Exited && !record.on_cpu {
            return None;
        }
        Some(*record.exit_queue.get_or_insert_with(|| self.queues.new_queue()))
    }

    /// Dispatches the next CPU that is due: the task to poll, and whether the CPU turned to it; none if no CPU is due now.
    #[inline]
    pub(crate) fn dispatch(&mut self) -> Option<(TaskId, bool)> {
        debug_assert!(self.current.is_none());
        let (cpu, task) = self.sched.dispatch(self.time)?;
        self.slices_this_instant += 1;
        assert!(
            self.slices_this_instant < SLICES_PER_INSTANT_MAX,
            "task {} ({}) spins at {} ns without charging CPU time",
            task.0,
            self.names[task.index()],
            self.time.0
        );
        let record = &mut self.tasks[task.index()];
        debug_assert!(record.phase == Phase::Runnable && !record.on_cpu);
        record.on_cpu = true;
        self.current = Some(task);
        self.current_cpu = cpu;
        self.psi.on_cpu(task, cpu, self.time);
        self.charged = self.sched.take_interrupts(cpu);
        self.slice_limit = self.quantum.min(self.sched.until_tick(cpu, self.time));
        self.request = Request::None;
        Some((task, self.sched.switched(cpu)))
    }

    /// The running task's poll has returned: its CPU is busy for as long as the slice charged.
    #[inline]
    pub(crate) fn settle(&mut self, exited: bool) {
        let task = self.current.take().expect("a task was running");
        let charged = std::mem::take(&mut self.charged);
        let record = &mut self.tasks[task.index()];
        if exited {
            record.phase = Phase::Exited;
        } else {
            assert!(
                self.request != Request::None,
                "task {} ({}) awaits something that is not of the simulation",
                task.0,
                self.names[task.index()]
            );
        }
        let runnable = record.phase == Phase::Runnable;
        let yields = self.request == Request::Yield;
        self.sched.set_slice(self.current_cpu, charged, yields);
        // A task that goes on passes through the heap, so that what is due by then comes first.
        if runnable || charged > Nanos::ZERO {
            let cpu = self.current_cpu;
            self.events.push(self.time + charged, Class::Task, Kind::SliceEnd { cpu });
        } else {
            self.end_slice(self.current_cpu);
        }
    }

    fn end_slice(&mut self, cpu: CpuId) {
        let task = self.sched.current(cpu).expect("a slice ends on a busy CPU");
        let record = &mut self.tasks[task.index()];
        record.on_cpu = false;
        let leave = match record.phase {
            Phase::Runnable => Leave::StaysRunnable,
            Phase::Exited => Leave::Exits,
            Phase::Blocked | Phase::Waking => Leave::GoesToSleep,
        };
        let io = record.reason.is_some_and(W::is_io_wait);
        self.sched.end_slice(cpu, leave);
        if self.sched.current(cpu) != Some(task) {
            let how = match leave {
                Leave::Exits => OffCpu::Exits,
                Leave::GoesToSleep => OffCpu::Sleeps { io },
                Leave::StaysRunnable => OffCpu::Preempted,
            };
            self.psi.off_cpu(task, how, self.time);
        }
        if leave == Leave::Exits {
            self.bury(task);
        }
    }

    fn bury(&mut self, task: TaskId) {
        let record = &mut self.tasks[task.index()];
        if !record.daemon {
            self.live -= 1;
        }
        if let Some(queue) = record.exit_queue.take() {
            self.wake_all(queue);
            self.queues.free_queue(queue);
        }
    }

    /// Takes the next event, not later than the deadline, and moves the clock there.
    #[inline]
    pub(crate) fn next_event(&mut self, deadline: Nanos) -> Next<W::Event> {
        loop {
            let Some((at, kind)) = self.events.peek() else {
                return Next::Empty;
            };
            // Dropped without moving the clock: nothing happens.
            if is_stale(&self.tasks, kind) {
                self.events.pop();
                self.stale_timeouts -= 1;
                continue;
            }
            if at > deadline {
                self.set_time(deadline);
                return Next::Deadline;
            }
            break;
        }
        self.sweep_stale_timeouts();
        let (at, kind) = self.events.pop().expect("just seen");
        self.set_time(at);
        match kind {
            Kind::World(event) => return Next::World(event),
            Kind::Wake { task } => {
                debug_assert!(self.tasks[task.index()].phase == Phase::Waking);
                self.make_runnable(task);
            }
            Kind::Timeout { task, .. } => {
                let record = &mut self.tasks[task.index()];
                record.wake = Wake::TimedOut;
                record.timeout_armed = false;
                self.queues.remove(task);
                self.make_runnable(task);
            }
            Kind::Memstall { task, stalls } => self.psi.memstall(task, stalls, at),
            Kind::SliceEnd { cpu } => self.end_slice(cpu),
        }
        Next::Handled
    }

    fn set_time(&mut self, to: Nanos) {
        assert!(to >= self.time, "time runs back: from {} to {} ns", self.time.0, to.0);
        if to > self.time {
            self.slices_this_instant = 0;
            while self.psi.due() <= to {
                self.psi.work();
            }
        }
        self.time = to;
    }

    /// Keeps a loop of waits that never time out from filling the heap.
    fn sweep_stale_timeouts(&mut self) {
        if self.stale_timeouts > STALE_TIMEOUTS_MIN.max(self.events.len() / 2) {
            let tasks = &self.tasks;
            self.events.retain(|kind| !is_stale(tasks, kind));
            self.stale_timeouts = 0;
        }
    }

    pub(crate) fn deadlock(&self) -> Deadlock {
        Deadlock { at: self.time, blocked: self.blocked() }
    }
}

/// Whether this is the timeout of a block that is over.
#[inline]
fn is_stale<R, E>(tasks: &[Task<R>], kind: &Kind<E>) -> bool {
    match *kind {
        Kind::Timeout { task, block } => {
            let record = &tasks[task.index()];
            !record.timeout_armed || record.block != block
        }
        _ => false,
    }
}
