//! The synchronous side of a simulation: clock, events, wake-ups.

mod step;

pub(crate) use step::Next;

use crate::event::{EventHeap, Kind};
use crate::psi::{Psi, PsiGroup, Resource, Rule, Stall};
use crate::sched::Scheduler;
use crate::task::{Phase, Task};
use crate::wait::WaitQueues;
use crate::{BlockedTask, Class, CpuTopology, SchedParams, TaskId, TaskState, WaitQueueId, Wake, World};
use units::{CpuId, Nanos, NodeId};

/// What the running task asked for when it suspended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Request {
    /// Nothing yet.
    None,
    Sleep,
    Preempt,
    Yield,
}

/// Clock, events, wait queues and CPUs; passed with the world wherever there is something to be done.
pub struct Ctl<W: World> {
    /// Time of the event being handled, or start of the slice being run.
    time: Nanos,
    /// CPU time charged in the present slice.
    charged: Nanos,
    /// The slice is over once this much is charged: the quantum, or zero if somebody else is entitled to the CPU.
    slice_limit: Nanos,
    current: Option<TaskId>,
    current_cpu: CpuId,
    request: Request,
    quantum: Nanos,
    events: EventHeap<W::Event>,
    tasks: Vec<Task<W::Reason>>,
    names: Vec<String>,
    queues: WaitQueues,
    sched: Scheduler,
    psi: Psi,
    /// CPU time that event handlers charged.
    irq_time: Nanos,
    /// Tasks that keep the run alive.
    live: usize,
    /// Whether there ever was one.
    ever_live: bool,
    slices_this_instant: u32,
    stale_timeouts: usize,
    pub(crate) stopped: bool,
}

impl<W: World> Ctl<W> {
    pub(crate) fn new(topology: CpuTopology, quantum: Nanos, params: SchedParams) -> Self {
        assert!(quantum > Nanos::ZERO, "a quantum of no time never ends");
        Ctl {
            time: Nanos::ZERO,
            charged: Nanos::ZERO,
            slice_limit: quantum,
            current: None,
            current_cpu: CpuId(0),
            request: Request::None,
            quantum,
            events: EventHeap::new(),
            tasks: Vec::new(),
            names: Vec::new(),
            queues: WaitQueues::default(),
            psi: Psi::new(topology.nr_cpus(), Rule { memory_full: params.memory_full, since_tick: params.since_tick }),
            sched: Scheduler::new(topology, params),
            irq_time: Nanos::ZERO,
            live: 0,
            ever_live: false,
            slices_this_instant: 0,
            stale_timeouts: 0,
            stopped: false,
        }
    }

    /// The present: in a task, start of its slice plus what it has charged since; in a handler, the event's time.
    #[inline]
    pub fn now(&self) -> Nanos {
        self.time + self.charged
    }

    /// Says that the code just run takes this much CPU time. In an event handler it counts as interrupt time
    /// only: it delays no task.
    #[inline]
    pub fn charge(&mut self, time: Nanos) {
        if self.current.is_some() {
            self.charged += time;
        } else {
            self.irq_time += time;
        }
    }

    /// Has a CPU handle an interrupt that the running task sent, for so long. The CPU's next slice begins with it and its task is charged
    /// for it, as without `IRQ_TIME_ACCOUNTING`.
    #[inline]
    pub fn interrupt(&mut self, cpu: CpuId, time: Nanos) {
        self.sched.interrupt(cpu, time);
    }

    /// The task that has a CPU.
    #[inline]
    pub fn task_on(&self, cpu: CpuId) -> Option<TaskId> {
        self.sched.current(cpu)
    }

    /// Has the event handled at that time.
    ///
    /// # Panics
    /// If that time is past.
    #[inline]
    pub fn schedule_at(&mut self, at: Nanos, class: Class, event: W::Event) {
        assert!(at >= self.now(), "an event at {} ns is scheduled in the past: it is {} ns", at.0, self.now().0);
        self.events.push(at, class, Kind::World(event));
    }

    /// Has the event handled after that time.
    #[inline]
    pub fn schedule_after(&mut self, delay: Nanos, class: Class, event: W::Event) {
        self.schedule_at(self.now() + delay, class, event);
    }

    /// Makes a wait queue, first in, first out.
    pub fn new_wait_queue(&mut self) -> WaitQueueId {
        self.queues.new_queue()
    }

    /// Wakes the task that has waited longest. Returns whether there was one.
    #[inline]
    pub fn wake_one(&mut self, queue: WaitQueueId) -> bool {
        match self.queues.first(queue) {
            Some(task) => {
                self.wake_task(task);
                true
            }
            None => false,
        }
    }

    /// Wakes all tasks of the queue in the order in which they came. Returns how many.
    pub fn wake_all(&mut self, queue: WaitQueueId) -> usize {
        let mut woken = 0;
        while self.wake_one(queue) {
            woken += 1;
        }
        woken
    }

    /// Ends whatever sleep the task is in, be it [`Ctx::sleep`](crate::Ctx::sleep), as `wake_up_process()`
    /// does. Nothing happens to a task that does not sleep.
    ///
    /// The wake-up reaches the task at [`Ctl::now`]. A timeout that runs out before that does not: who has
    /// been woken is off the queue, and no second wake-up could make good for the lost one.
    #[inline]
    pub fn wake_task(&mut self, task: TaskId) {
        let record = &mut self.tasks[task.index()];
        if record.phase != Phase::Blocked {
            return;
        }
        record.wake = Wake::Woken;
        if std::mem::take(&mut record.timeout_armed) {
            self.stale_timeouts += 1;
        }
        self.queues.remove(task);
        if self.charged > Nanos::ZERO {
            self.tasks[task.index()].phase = Phase::Waking;
            self.events.push(self.now(), Class::Task, Kind::Wake { task });
        } else {
            self.make_runnable(task);
        }
    }

    /// Whether a task waits on the queue.
    #[inline]
    pub fn has_waiters(&self, queue: WaitQueueId) -> bool {
        !self.queues.is_empty(queue)
    }

    /// The task that runs; none in an event handler.
    #[inline]
    pub fn current(&self) -> Option<TaskId> {
        self.current
    }

    /// The CPU of the task that runs.
    ///
    /// # Panics
    /// Outside of a task.
    #[inline]
    pub fn cpu(&self) -> CpuId {
        assert!(self.current.is_some(), "only a task has a CPU");
        self.current_cpu
    }

    /// The node of the task that runs.
    ///
    /// # Panics
    /// Outside of a task.
    #[inline]
    pub fn node(&self) -> NodeId {
        self.sched.topology().node_of(self.cpu())
    }

    /// The CPUs of the machine.
    pub fn topology(&self) -> &CpuTopology {
        self.sched.topology()
    }

    /// Tasks that run or want to run on this CPU.
    pub fn nr_running(&self, cpu: CpuId) -> usize {
        self.sched.nr_running(cpu)
    }

    /// Ends the running task's slice at its next preemption point, where it shows whether somebody it has woken takes the CPU: without this it
    /// may go on for the rest of its quantum.
    pub fn set_need_resched(&mut self) {
        self.slice_limit = Nanos::ZERO;
    }

    /// CPU time after which another task will be entitled to this CPU (`need_resched()`): none if one is already, [`Nanos::MAX`] if none will be by
    /// the next tick. Who is woken meanwhile may have it sooner.
    pub fn until_preempted(&self) -> Nanos {
        if self.slice_limit == Nanos::ZERO {
            return Nanos::ZERO;
        }
        let from_start = self.sched.until_preempted(self.current_cpu, self.time);
        if from_start == Nanos::MAX { from_start } else { Nanos(from_start.0.saturating_sub(self.charged.0)) }
    }

    /// Whether the running task should give way: its quantum is used up, or another task is entitled to its CPU.
    #[inline]
    pub fn need_resched(&self) -> bool {
        self.charged >= self.slice_limit
    }

    /// Marks the task as killed. It finds out where it asks; a sleep goes on, unless it is woken too.
    pub fn kill(&mut self, task: TaskId) {
        self.tasks[task.index()].killed = true;
    }

    /// Whether the task has been killed.
    #[inline]
    pub fn killed(&self, task: TaskId) -> bool {
        self.tasks[task.index()].killed
    }

    /// How often the task has gone to sleep, modulo 2^32.
    #[inline]
    pub fn sleeps(&self, task: TaskId) -> u32 {
        self.tasks[task.index()].block
    }

    /// CPU time that the task has used.
    pub fn task_cpu_time(&self, task: TaskId) -> Nanos {
        let used = self.sched.cpu_time(task);
        if self.current == Some(task) { used + self.charged } else { used }
    }

    /// The task's name.
    pub fn task_name(&self, task: TaskId) -> &str {
        &self.names[task.index()]
    }

    /// Whether the task is a daemon.
    pub fn is_daemon(&self, task: TaskId) -> bool {
        self.tasks[task.index()].daemon
    }

    /// What the task is doing.
    pub fn task_state(&self, task: TaskId) -> TaskState<W::Reason> {
        self.tasks[task.index()].state()
    }

    /// All tasks ever spawned: number, name, state, CPU time.
    pub fn tasks(&self) -> impl Iterator<Item = (TaskId, &str, TaskState<W::Reason>, Nanos)> {
        (0..self.tasks.len() as u32)
            .map(TaskId)
            .map(|task| (task, self.task_name(task), self.task_state(task), self.task_cpu_time(task)))
    }

    /// Every task that sleeps, daemons too, in order of their numbers.
    pub fn blocked(&self) -> Vec<BlockedTask> {
        let blocked = |(task, name, state, _): (TaskId, &str, TaskState<W::Reason>, Nanos)| match state {
            TaskState::Blocked { reason, since } => Some(BlockedTask {
                task,
                name: name.to_owned(),
                daemon: self.tasks[task.index()].daemon,
                reason: format!("{reason:?}"),
                since,
            }),
            TaskState::Runnable | TaskState::Exited => None,
        };
        self.tasks().filter_map(blocked).collect()
    }

    /// CPU time that event handlers charged.
    pub fn irq_time(&self) -> Nanos {
        self.irq_time
    }

    /// From now on the running task stalls for memory, or does not (`psi_memstall_enter()`, `psi_memstall_leave()`). Sections do not nest:
    /// who begins one inside another leaves that to the outer one.
    pub fn memstall(&mut self, stalls: bool) {
        let task = self.current.expect("only a task stalls");
        if self.charged > Nanos::ZERO {
            self.events.push(self.now(), Class::Task, Kind::Memstall { task, stalls });
        } else {
            self.psi.memstall(task, stalls, self.time);
        }
    }

    /// Makes a group of tasks whose pressure is accounted for.
    pub fn add_psi_group(&mut self, parent: PsiGroup) -> PsiGroup {
        self.psi.add_group(parent, self.time)
    }

    /// Moves a task to a group.
    pub fn move_to_psi_group(&mut self, task: TaskId, group: PsiGroup) {
        self.psi.move_task(task, group, self.time);
    }

    /// Pressure on a group for want of a resource: some of its tasks stalled, and all that were not idle did.
    pub fn pressure(&mut self, group: PsiGroup, resource: Resource) -> [Stall; 2] {
        self.psi.pressure(group, resource, self.time)
    }

    /// Ends the run after the present step.
    pub fn stop(&mut self) {
        self.stopped = true;
    }
}
