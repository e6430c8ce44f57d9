//! Which task has which CPU.
//!
//! **Rule.** Each CPU runs the task of its queue that is entitled to it most: that which has had least (`runtime`, until 6.5) or
//! that whose time is due first (`deadline`); what tasks get is in proportion to their weights. A group stands in the queue as
//! one task would (`group`), and has a queue of its own (`level`). A woken task goes to its previous CPU if
//! that is idle, else to an idle one of the same node, else to any idle one it may use, else to its previous one.
//!
//! **Source.** `kernel/sched/fair.c`, 4.20 and 6.12: `enqueue_task_fair()`, `pick_next_task_fair()`, `task_tick_fair()`,
//! `select_idle_sibling()`, `update_min_vruntime()`. Weights: `sched_prio_to_weight[]`, whose rule (a factor of 1.25) is computed
//! here.
//!
//! **Abstracted.** The tick is seen at the first preemption point after it. Load balancing (domains, load averages) is replaced by its aim: a
//! CPU with nothing to do takes a waiting task, of its own node first; and at the end of a slice a CPU takes a waiting
//! task of another if that one is behind in virtual runtime by more than the minimum granularity and a tick. For that the
//! CPUs' virtual clocks are tied together: none lags behind the furthest by more than one period.
//!
//! **Omitted.** Bandwidth of groups, real-time and deadline classes, wake affinity to
//! the waker's CPU, the migration cost of a cache-hot task, the cost of a context switch, SMT.

mod buddies;
mod deadline;
mod delayed;
mod fair;
mod group;
mod level;
mod placement;
mod runqueue;
mod runtime;
#[cfg(test)]
mod testing;

pub use fair::{SchedParams, SchedPolicy};
pub use group::CpuGroup;

use crate::{CpuSet, CpuTopology, TaskId};
use group::Groups;
use level::{Entity, Level, LevelId, Member};
use std::collections::VecDeque;
use units::{CpuId, Nanos};

/// What becomes of a task at the end of its slice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Leave {
    StaysRunnable,
    GoesToSleep,
    /// For good.
    Exits,
}

/// A task as the scheduler sees it.
struct Task {
    entity: Entity,
    /// 1024 at nice 0.
    weight: u32,
    group: Option<CpuGroup>,
    /// Where it runs, waits, or ran last.
    cpu: CpuId,
}

/// The slice that occupies a CPU.
#[derive(Clone, Copy, Default)]
struct Slice {
    start: Nanos,
    charged: Nanos,
    yields: bool,
}

/// A CPU with the tasks that want to run on it: the kernel's `struct rq`.
#[derive(Default)]
struct Cpu {
    /// Who runs; none while the next is to be picked.
    current: Option<TaskId>,
    /// Who ran last, unless the CPU has been idle since.
    last: Option<TaskId>,
    /// The present slice is the first since a context switch.
    switched: bool,
    slice: Slice,
    /// The queue above all groups.
    root: Level,
    /// Runnable tasks, groups' ones too.
    nr_running: usize,
    /// Those of them that stand in a queue.
    waiting: usize,
    /// A woken task is entitled to this CPU.
    resched: bool,
    /// Due for dispatch.
    kicked: bool,
    /// Time of interrupts that no slice has been charged with.
    interrupts: Nanos,
}

/// All CPUs and what runs on them.
pub(crate) struct Scheduler {
    params: SchedParams,
    topology: CpuTopology,
    cpus: Vec<Cpu>,
    /// Indexed by task.
    tasks: Vec<Task>,
    /// Indexed by task; apart from the tasks because it is large and seldom read.
    allowed: Vec<CpuSet>,
    idle: CpuSet,
    /// CPUs due for dispatch, in the order in which that came about.
    kicked: VecDeque<CpuId>,
    groups: Groups,
    /// Tasks in the queues of all CPUs.
    waiting: usize,
    /// The furthest virtual clock of all CPUs.
    furthest: i64,
}

impl Scheduler {
    pub(crate) fn new(topology: CpuTopology, params: SchedParams) -> Scheduler {
        Scheduler {
            cpus: topology.cpus().map(|_| Cpu::default()).collect(),
            idle: CpuSet::all(&topology),
            groups: Groups::new(topology.nr_cpus()),
            topology,
            params,
            tasks: Vec::new(),
            allowed: Vec::new(),
            kicked: VecDeque::new(),
            waiting: 0,
            furthest: 0,
        }
    }

    pub(crate) fn topology(&self) -> &CpuTopology {
        &self.topology
    }

    pub(crate) fn nr_running(&self, cpu: CpuId) -> usize {
        self.cpus[cpu.index()].nr_running
    }

    /// Where a task runs, waits, or ran last.
    pub(crate) fn cpu_of(&self, task: TaskId) -> CpuId {
        self.tasks[task.index()].cpu
    }

    pub(crate) fn cpu_time(&self, task: TaskId) -> Nanos {
        self.tasks[task.index()].entity.used
    }

    pub(crate) fn current(&self, cpu: CpuId) -> Option<TaskId> {
        self.cpus[cpu.index()].current
    }

    pub(crate) fn interrupt(&mut self, cpu: CpuId, time: Nanos) {
        self.cpus[cpu.index()].interrupts += time;
    }

    /// Time of interrupts that is to be charged now.
    pub(crate) fn take_interrupts(&mut self, cpu: CpuId) -> Nanos {
        std::mem::take(&mut self.cpus[cpu.index()].interrupts)
    }

    /// Takes in the next task; it does not run before it is woken.
    pub(crate) fn add(&mut self, nice: i8, group: Option<CpuGroup>, allowed: CpuSet) {
        let usable = allowed.common(&CpuSet::all(&self.topology));
        assert!(!usable.is_empty(), "a task may run on no CPU of this machine");
        if let Some(group) = group {
            self.groups.add(group);
        }
        let weight = fair::weight(nice);
        self.tasks.push(Task { entity: Entity::default(), weight, group, cpu: CpuId(0) });
        self.allowed.push(usable);
    }

    /// The task is runnable. Returns the CPU whose running task is to give way for it, if any.
    #[inline]
    pub(crate) fn wake(&mut self, task: TaskId, now: Nanos) -> Option<CpuId> {
        let over = self.put_in(task, now);
        let cpu = self.tasks[task.index()].cpu;
        if self.idle.contains(cpu) {
            self.idle.remove(cpu);
            self.kick(cpu);
            return None;
        }
        let current = self.cpus[cpu.index()].current?;
        let preempts = over || self.preempts(task, current, now);
        let rq = &mut self.cpus[cpu.index()];
        rq.resched |= preempts;
        rq.resched.then_some(cpu)
    }

    /// Puts a woken task in the queue of a CPU, unless it stands there still. Whether that ended the slice of who runs.
    fn put_in(&mut self, task: TaskId, now: Nanos) -> bool {
        let Entity { delayed, started, .. } = self.tasks[task.index()].entity;
        match (delayed, started) {
            (true, _) => {}
            (false, true) => self.choose_cpu_for_wakeup(task),
            (false, false) => self.choose_cpu_for_new(task),
        }
        let at = self.level_of(task);
        self.cpus[at.cpu.index()].nr_running += 1;
        if delayed {
            self.requeue(at, Member::Task(task), now);
            return false;
        }
        self.count_in(task);
        self.enqueue(task, now)
    }

    /// Whether the woken task, or its group, takes the CPU from the current one (`find_matching_se()`).
    fn preempts(&mut self, woken: TaskId, current: TaskId, now: Nanos) -> bool {
        let at = self.level_of(woken);
        let (at, woken) = if at == self.level_of(current) {
            (at, Member::Task(woken))
        } else {
            (LevelId::root(at.cpu), self.top_of(woken))
        };
        let preempts = match self.params.policy {
            SchedPolicy::LeastRuntime => self.is_far_behind(at, woken, now),
            SchedPolicy::EarliestDeadline => self.wakeup_preempts(at, woken, now),
        };
        if preempts && !self.cpus[at.cpu.index()].resched {
            self.note_preemption(at, woken, current);
        }
        preempts
    }

    /// The next CPU that is due and has something to run, with the task to run.
    #[inline]
    pub(crate) fn dispatch(&mut self, now: Nanos) -> Option<(CpuId, TaskId)> {
        while let Some(cpu) = self.kicked.pop_front() {
            let rq = &mut self.cpus[cpu.index()];
            rq.kicked = false;
            let picks = rq.current.is_none();
            if picks {
                self.pick_next(cpu, now);
            }
            let rq = &mut self.cpus[cpu.index()];
            rq.switched = picks && rq.current != rq.last;
            rq.last = rq.current;
            let Some(task) = rq.current else {
                self.idle.insert(cpu);
                continue;
            };
            rq.slice = Slice { start: now, ..Slice::default() };
            if rq.waiting > 0 {
                self.kick_idle_cpu(cpu);
            }
            return Some((cpu, task));
        }
        None
    }

    /// Whether the CPU turned to its task with the present slice, from another or from idleness.
    #[inline]
    pub(crate) fn switched(&self, cpu: CpuId) -> bool {
        self.cpus[cpu.index()].switched
    }

    /// The slice of the CPU's task will last until its start plus `charged`.
    #[inline]
    pub(crate) fn set_slice(&mut self, cpu: CpuId, charged: Nanos, yields: bool) {
        let slice = &mut self.cpus[cpu.index()].slice;
        slice.charged = charged;
        slice.yields = yields;
    }

    /// The slice is over: accounts for it, and makes the CPU due for dispatch.
    #[inline]
    pub(crate) fn end_slice(&mut self, cpu: CpuId, leave: Leave) {
        let rq = &mut self.cpus[cpu.index()];
        let task = rq.current.expect("a slice ends on a busy CPU");
        let slice = std::mem::take(&mut rq.slice);
        self.account(task, slice.charged);
        let now = slice.start + slice.charged;
        if leave != Leave::StaysRunnable {
            self.cpus[cpu.index()].nr_running -= 1;
            self.leave(task, leave, now);
        } else if self.gives_way(cpu, task, slice) {
            if slice.yields {
                self.yield_task(task, now);
            }
        } else {
            self.kick(cpu);
            return;
        }
        let rq = &mut self.cpus[cpu.index()];
        rq.current = None;
        rq.resched = false;
        self.kick(cpu);
    }

    /// Charges the running task, and its group, with CPU time.
    fn account(&mut self, task: TaskId, time: Nanos) {
        let mut next = Some((self.level_of(task), Member::Task(task)));
        while let Some((at, member)) = next {
            let passed = fair::virtual_time(time, self.weight(at.cpu, member));
            let entity = self.entity_mut(at.cpu, member);
            entity.used += time;
            entity.vruntime += passed;
            self.update_min_vruntime(at);
            next = at.above();
        }
    }

    /// The running task goes to sleep; so does its group if nobody of it is left (`dequeue_task_fair()`).
    fn leave(&mut self, task: TaskId, leave: Leave, now: Nanos) {
        let (at, member) = (self.level_of(task), Member::Task(task));
        if leave == Leave::Exits || !self.delays(at, member, now) {
            self.remove(at, member, now);
        }
    }

    /// Takes a member that sleeps off its level, and its group off the one above if nobody of it is left
    /// (`dequeue_entities()`).
    fn remove(&mut self, at: LevelId, member: Member, now: Nanos) {
        if self.params.policy == SchedPolicy::EarliestDeadline {
            self.note_lag(at, member, now);
        }
        if self.level(at).current == Some(member) {
            self.level_mut(at).current = None;
        } else {
            self.take(at, member);
        }
        self.level_mut(at).buddies.clear(member);
        self.count_out(at.cpu, member);
        match self.group_to_remove(at) {
            None => self.note_left_in_group(at),
            Some((above, group)) if self.delays(above, group, now) => {}
            Some((above, group)) => self.remove(above, group, now),
        }
    }

    /// The running task lets others go first.
    fn yield_task(&mut self, task: TaskId, now: Nanos) {
        self.note_yield(task);
        if self.params.policy == SchedPolicy::EarliestDeadline {
            self.forgo_slice(task, now);
        }
    }

    fn kick(&mut self, cpu: CpuId) {
        let rq = &mut self.cpus[cpu.index()];
        if !std::mem::replace(&mut rq.kicked, true) {
            self.kicked.push_back(cpu);
        }
    }

    /// Whether the current task, which could go on, has to make room.
    fn gives_way(&mut self, cpu: CpuId, task: TaskId, slice: Slice) -> bool {
        if slice.yields || self.cpus[cpu.index()].resched {
            return true;
        }
        let now = slice.start + slice.charged;
        let over = self.tick_within(slice.start, now) && self.tick_preempts(task, now);
        let entity = &self.tasks[task.index()].entity;
        let ran = entity.used.since(entity.used_at_pick);
        over || (ran >= self.params.min_granularity && self.waiting > 0 && self.pull_if_behind(cpu, now))
    }

    /// Time until a tick looks at whether a CPU's task has had its part, for another that waits; none looks while none waits.
    pub(crate) fn until_tick(&self, cpu: CpuId, now: Nanos) -> Nanos {
        if self.cpus[cpu.index()].waiting == 0 {
            return Nanos::MAX;
        }
        let tick = self.params.tick.0;
        Nanos(tick - (now.0 + self.params.since_tick.0) % tick)
    }

    /// Time from `now` until the tick at which a CPU's task, in a slice that began then, will have had its part, for another that waits; none if the next tick
    /// does not find that. Told of virtual runtimes only.
    pub(crate) fn until_preempted(&self, cpu: CpuId, now: Nanos) -> Nanos {
        let tick = self.until_tick(cpu, now);
        let Some(task) = self.cpus[cpu.index()].current.filter(|_| tick < Nanos::MAX) else { return Nanos::MAX };
        let mut next = Some((self.level_of(task), Member::Task(task)));
        while let Some((at, member)) = next {
            if self.has_had_share(at, member, tick) {
                return tick;
            }
            next = at.above();
        }
        Nanos::MAX
    }

    /// Whether a tick lies in a time, its end included: only then it is looked at whether a task has had its part.
    fn tick_within(&self, from: Nanos, to: Nanos) -> bool {
        let tick = |at: Nanos| (at.0 + self.params.since_tick.0) / self.params.tick.0;
        tick(from) != tick(to)
    }

    /// Whether the current task, or its group, gives way at a tick (`task_tick_fair()`).
    fn tick_preempts(&mut self, task: TaskId, now: Nanos) -> bool {
        let mut next = Some((self.level_of(task), Member::Task(task)));
        let mut over = false;
        while let Some((at, member)) = next {
            over |= match self.params.policy {
                SchedPolicy::LeastRuntime => self.share_is_over(at, member),
                SchedPolicy::EarliestDeadline => self.slice_is_over(at, now),
            };
            next = at.above();
        }
        over
    }

    /// Makes the task current that is entitled to the CPU (`pick_next_task_fair()`).
    #[inline]
    fn pick_next(&mut self, cpu: CpuId, now: Nanos) {
        let rq = &self.cpus[cpu.index()];
        if self.waiting > 0 {
            if rq.nr_running == 0 {
                self.pull_for_idle(cpu, now);
            } else if self.waiting > rq.waiting {
                self.pull_if_behind(cpu, now);
            }
        }
        if let Some(task) = self.pick_task(cpu, now) {
            debug_assert!(self.tasks[task.index()].cpu == cpu);
            self.set_current(LevelId::root(cpu), self.top_of(task));
            self.set_current(self.level_of(task), Member::Task(task));
            self.cpus[cpu.index()].current = Some(task);
        }
    }

    /// The task that is entitled to the CPU. Sleepers whose turn it is leave their queues on the way (`pick_task_fair()`).
    fn pick_task(&mut self, cpu: CpuId, now: Nanos) -> Option<TaskId> {
        let mut at = LevelId::root(cpu);
        loop {
            at = match self.pick(at, now)? {
                member if self.entity(cpu, member).delayed => {
                    self.finish_sleep(at, member, now);
                    LevelId::root(cpu)
                }
                Member::Task(task) => return Some(task),
                Member::Group(group) => LevelId { cpu, group: Some(group) },
            };
        }
    }
}
