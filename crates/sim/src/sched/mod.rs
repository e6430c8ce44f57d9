//! Which task has which CPU.
//!
//! **Rule** ([`SchedPolicy::LeastRuntime`]; the other is told in `deadline`). Each CPU runs the task of its queue that has the least virtual runtime: CPU time scaled by
//! 1024 / weight, 1.25 times the weight per nice level. A task runs until its share of the scheduling period
//! is over, or one that is woken is far enough behind it. A woken task gets at most half a period of
//! credit for its sleep; a new one on a busy CPU starts with a debit. A woken task goes to its previous CPU if
//! that is idle, else to an idle one of the same node, else to any idle one it may use, else to its previous one.
//!
//! **Source.** `kernel/sched/fair.c`, 4.20: `sched_slice()`, `place_entity()`, `check_preempt_tick()`,
//! `wakeup_preempt_entity()`, `pick_next_entity()` (skip buddy only), `select_idle_sibling()`,
//! `update_min_vruntime()`; features GENTLE_FAIR_SLEEPERS and START_DEBIT. Weights: `sched_prio_to_weight[]`, whose
//! rule (a factor of 1.25) is computed here. Until 6.5.
//!
//! **Abstracted.** There is no tick: its check is made at the end of each slice, so preemption may be late by
//! what a slice holds (a quantum, and one charge more). Load balancing (domains, load averages) is replaced by its aim: a
//! CPU with nothing to do takes a waiting task, of its own node first; and at the end of a slice a CPU takes a waiting
//! task of another if that one is behind in virtual runtime by more than the minimum granularity. For that the
//! CPUs' virtual clocks are tied together: none lags behind the furthest by more than one period.
//!
//! A new task's debit is capped at a granularity.
//!
//! Groups of tasks are told in `group`.
//!
//! **Omitted.** Bandwidth of groups, real-time and deadline classes, next and last buddies, wake affinity to
//! the waker's CPU, the migration cost of a cache-hot task, the cost of a context switch, SMT, interrupt time of devices (it delays no task).

mod deadline;
mod fair;
mod group;
mod placement;
mod runqueue;

pub use fair::{SchedParams, SchedPolicy};
pub use group::CpuGroup;

use crate::{CpuSet, CpuTopology, TaskId};
use group::Groups;
use runqueue::{Queued, RunQueue};
use std::collections::VecDeque;
use units::{CpuId, Nanos};

/// What becomes of a task at the end of its slice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Leave {
    StaysRunnable,
    GoesToSleep,
}

/// A task as the scheduler sees it.
struct Entity {
    /// Virtual nanoseconds, on the axis of `cpu`.
    vruntime: i64,
    /// Virtual time by which what it asks for is due.
    deadline: i64,
    /// The deadline up to which it is not taken off the CPU.
    protected: i64,
    /// Virtual time that it was owed when it last went to sleep.
    lag: i64,
    /// 1024 at nice 0; what it comes to in its group is told by [`Scheduler::weight`].
    weight: u32,
    group: Option<CpuGroup>,
    /// Where it runs, waits, or ran last.
    cpu: CpuId,
    /// False until it has been placed for the first time.
    started: bool,
    /// All CPU time used.
    used: Nanos,
    /// Of that, what it had used when it was last picked.
    used_at_pick: Nanos,
}

/// The slice that occupies a CPU.
#[derive(Clone, Copy, Default)]
struct Slice {
    start: Nanos,
    charged: Nanos,
    yields: bool,
}

/// A CPU with the tasks that want to run on it: the kernel's `struct rq`.
struct Cpu {
    current: Option<TaskId>,
    slice: Slice,
    /// Runnable tasks but for the current one.
    queue: RunQueue,
    /// Never decreases; all vruntimes here are about this.
    min_vruntime: i64,
    /// Added to a vruntime of this CPU it gives one that compares with those of other CPUs.
    axis: i64,
    /// A woken task is entitled to this CPU.
    resched: bool,
    /// The task that yielded: not to be picked again if there is another.
    skip: Option<TaskId>,
    /// Due for dispatch.
    kicked: bool,
    busy: Nanos,
    /// Time of interrupts that no slice has been charged with.
    interrupts: Nanos,
}

impl Cpu {
    fn new() -> Cpu {
        Cpu {
            current: None,
            slice: Slice::default(),
            queue: RunQueue::default(),
            min_vruntime: 0,
            axis: 0,
            resched: false,
            skip: None,
            kicked: false,
            busy: Nanos::ZERO,
            interrupts: Nanos::ZERO,
        }
    }

    fn nr_running(&self) -> usize {
        self.queue.len() + usize::from(self.current.is_some())
    }
}

/// All CPUs and what runs on them.
pub(crate) struct Scheduler {
    params: SchedParams,
    topology: CpuTopology,
    cpus: Vec<Cpu>,
    /// Indexed by task.
    entities: Vec<Entity>,
    /// Indexed by task; apart from the entities because it is large and seldom read.
    allowed: Vec<CpuSet>,
    idle: CpuSet,
    /// CPUs due for dispatch, in the order in which that came about.
    kicked: VecDeque<CpuId>,
    groups: Groups,
    /// Tasks in all queues.
    queued: usize,
    /// The furthest virtual clock of all CPUs.
    furthest: i64,
}

impl Scheduler {
    pub(crate) fn new(topology: CpuTopology, params: SchedParams) -> Scheduler {
        Scheduler {
            cpus: topology.cpus().map(|_| Cpu::new()).collect(),
            idle: CpuSet::all(&topology),
            topology,
            params,
            entities: Vec::new(),
            allowed: Vec::new(),
            kicked: VecDeque::new(),
            groups: Groups::default(),
            queued: 0,
            furthest: 0,
        }
    }

    pub(crate) fn topology(&self) -> &CpuTopology {
        &self.topology
    }

    pub(crate) fn nr_running(&self, cpu: CpuId) -> usize {
        self.cpus[cpu.index()].nr_running()
    }

    /// Where a task runs, waits, or ran last.
    pub(crate) fn cpu_of(&self, task: TaskId) -> CpuId {
        self.entities[task.index()].cpu
    }

    pub(crate) fn cpu_time(&self, task: TaskId) -> Nanos {
        self.entities[task.index()].used
    }

    pub(crate) fn busy(&self, cpu: CpuId) -> Nanos {
        self.cpus[cpu.index()].busy
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
        self.entities.push(Entity {
            vruntime: 0,
            deadline: 0,
            protected: 0,
            lag: 0,
            weight: fair::weight(nice),
            group,
            cpu: CpuId(0),
            started: false,
            used: Nanos::ZERO,
            used_at_pick: Nanos::ZERO,
        });
        self.allowed.push(usable);
    }

    /// The task is runnable. Returns the CPU whose running task is to give way for it, if any.
    #[inline]
    pub(crate) fn wake(&mut self, task: TaskId, now: Nanos) -> Option<CpuId> {
        self.join_group(task);
        let cpu = if self.entities[task.index()].started {
            self.choose_cpu_for_wakeup(task);
            self.place_woken(task, now)
        } else {
            self.place_new(task, now)
        };
        self.enqueue(task);
        if self.idle.contains(cpu) {
            self.idle.remove(cpu);
            self.kick(cpu);
            return None;
        }
        let preempts = match self.params.policy {
            SchedPolicy::LeastRuntime => self.is_far_behind(cpu, task, now),
            SchedPolicy::EarliestDeadline => self.wakeup_preempts(cpu, task, now),
        };
        let rq = &mut self.cpus[cpu.index()];
        rq.resched |= preempts;
        rq.resched.then_some(cpu)
    }

    /// The next CPU that is due and has something to run, with the task to run.
    #[inline]
    pub(crate) fn dispatch(&mut self, now: Nanos) -> Option<(CpuId, TaskId)> {
        while let Some(cpu) = self.kicked.pop_front() {
            let rq = &mut self.cpus[cpu.index()];
            rq.kicked = false;
            if rq.current.is_none() {
                self.pick_next(cpu, now);
            }
            let rq = &mut self.cpus[cpu.index()];
            let Some(task) = rq.current else {
                self.idle.insert(cpu);
                continue;
            };
            rq.slice = Slice { start: now, ..Slice::default() };
            if !rq.queue.is_empty() {
                self.kick_idle_cpu(cpu);
            }
            return Some((cpu, task));
        }
        None
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
        rq.busy += slice.charged;
        let passed = fair::virtual_time(slice.charged, self.weight(task));
        let entity = &mut self.entities[task.index()];
        entity.used += slice.charged;
        entity.vruntime += passed;
        self.update_min_vruntime(cpu);
        let now = slice.start + slice.charged;
        if leave == Leave::GoesToSleep {
            self.note_lag(cpu, task, now);
            self.leave_group(task);
            let rq = &mut self.cpus[cpu.index()];
            rq.current = None;
            rq.resched = false;
        } else if self.gives_way(cpu, task, slice) {
            if slice.yields && self.params.policy == SchedPolicy::EarliestDeadline {
                self.forgo_slice(cpu, task, now);
            }
            let rq = &mut self.cpus[cpu.index()];
            rq.current = None;
            rq.resched = false;
            rq.skip = slice.yields.then_some(task);
            self.enqueue(task);
        }
        self.kick(cpu);
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
        let entity = &self.entities[task.index()];
        let ran = entity.used.since(entity.used_at_pick);
        let over = match self.params.policy {
            SchedPolicy::LeastRuntime => self.share_is_over(cpu, task, ran),
            SchedPolicy::EarliestDeadline => self.tick_preempts(cpu, slice),
        };
        over || (ran >= self.params.min_granularity && self.queued > 0 && self.pull_if_behind(cpu))
    }

    /// Whether another task is entitled to the CPU more than the current one, which ran for so long
    /// (`check_preempt_tick()`).
    fn share_is_over(&self, cpu: CpuId, task: TaskId, ran: Nanos) -> bool {
        let (rq, entity) = (&self.cpus[cpu.index()], &self.entities[task.index()]);
        let Some(first) = rq.queue.first() else { return false };
        let share = self.params.share(rq.nr_running(), self.weight(task), self.load(cpu));
        let behind = entity.vruntime - first.vruntime;
        ran > share || (ran >= self.params.min_granularity && behind > share.0 as i64)
    }

    /// Makes the task current that is entitled to the CPU.
    #[inline]
    fn pick_next(&mut self, cpu: CpuId, now: Nanos) {
        if self.queued > 0 {
            if self.cpus[cpu.index()].queue.is_empty() {
                self.pull_for_idle(cpu);
            } else if self.queued > self.cpus[cpu.index()].queue.len() {
                self.pull_if_behind(cpu);
            }
        }
        let skip = self.cpus[cpu.index()].skip.take();
        let picked = match self.params.policy {
            SchedPolicy::LeastRuntime => self.least_runtime(cpu, skip),
            SchedPolicy::EarliestDeadline => self.earliest_eligible(cpu, now),
        };
        let Some(picked) = picked else { return };
        let rq = &mut self.cpus[cpu.index()];
        rq.queue.remove(picked);
        self.queued -= 1;
        rq.current = Some(picked);
        let entity = &mut self.entities[picked.index()];
        entity.used_at_pick = entity.used;
        debug_assert!(entity.cpu == cpu);
        self.protect(picked);
    }

    /// The task of a CPU's queue with the least virtual runtime, or the next if that one is to be skipped
    /// (`pick_next_entity()`).
    fn least_runtime(&self, cpu: CpuId, skip: Option<TaskId>) -> Option<TaskId> {
        let queue = &self.cpus[cpu.index()].queue;
        let first = queue.first()?;
        let second = queue.second().filter(|_| skip == Some(first.task));
        let close = |second: &Queued| second.vruntime - first.vruntime <= self.wakeup_credit(second.task);
        Some(second.filter(close).unwrap_or(first).task)
    }

    /// Puts the task in the queue of its CPU.
    fn enqueue(&mut self, task: TaskId) {
        let entity = &self.entities[task.index()];
        let rq = &mut self.cpus[entity.cpu.index()];
        rq.queue.insert(Queued { vruntime: entity.vruntime, task });
        self.queued += 1;
    }

    /// By how much vruntime a queued task must be behind to preempt by being woken (`wakeup_gran()`).
    fn wakeup_credit(&self, task: TaskId) -> i64 {
        fair::virtual_time(self.params.wakeup_granularity, self.weight(task))
    }

    /// Whether the woken task is far enough behind the one that runs (`check_preempt_wakeup()`).
    fn is_far_behind(&self, cpu: CpuId, woken: TaskId, now: Nanos) -> bool {
        let credit = self.wakeup_credit(woken);
        let behind = |vruntime| vruntime - self.entities[woken.index()].vruntime;
        self.current_vruntime(cpu, now).is_some_and(|vruntime| behind(vruntime) > credit)
    }

    /// Virtual runtime of the current task, of whose slice the part before `now` lies behind; the whole is accounted for at
    /// its end.
    fn current_vruntime(&self, cpu: CpuId, now: Nanos) -> Option<i64> {
        let rq = &self.cpus[cpu.index()];
        let current = rq.current?;
        let ran = now.since(rq.slice.start).min(rq.slice.charged);
        Some(self.entities[current.index()].vruntime + fair::virtual_time(ran, self.weight(current)))
    }

    /// Moves the CPU's virtual clock up to its least vruntime, and the furthest clock with it.
    fn update_min_vruntime(&mut self, cpu: CpuId) {
        let rq = &mut self.cpus[cpu.index()];
        let current = rq.current.map(|task| self.entities[task.index()].vruntime);
        let first = rq.queue.first().map(|first| first.vruntime);
        let least = match (current, first) {
            (Some(current), Some(first)) => current.min(first),
            (Some(only), None) | (None, Some(only)) => only,
            (None, None) => return,
        };
        rq.min_vruntime = rq.min_vruntime.max(least);
        self.furthest = self.furthest.max(rq.axis + rq.min_vruntime);
    }
}
