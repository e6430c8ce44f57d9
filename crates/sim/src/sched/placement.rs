//! On which CPU a task runs, and with how much virtual runtime it comes there.

use super::level::{LevelId, Member};
use super::{SchedPolicy, Scheduler};
use crate::TaskId;
use units::{CpuId, Nanos};

/// A task that waits for its CPU.
#[derive(Clone, Copy)]
struct Waiting {
    task: TaskId,
    /// On the axis that is common to all levels.
    vruntime: i64,
}

impl Scheduler {
    /// Sets the CPU of a woken task (`select_task_rq_fair()`): the previous one if idle, else an idle one of the same
    /// node, else any allowed idle one, else the previous one.
    #[inline]
    pub(super) fn choose_cpu_for_wakeup(&mut self, task: TaskId) {
        let previous = self.tasks[task.index()].cpu;
        if self.idle.contains(previous) {
            return;
        }
        let idle = self.idle.common(&self.allowed[task.index()]);
        let node = self.topology.node_of(previous);
        let near = idle.iter().find(|&cpu| self.topology.node_of(cpu) == node);
        if let Some(cpu) = near.or_else(|| idle.iter().next()) {
            self.migrate(task, cpu);
        }
    }

    /// Gives a new task a CPU: the allowed one with the fewest tasks, on the node with the fewest if several are equal
    /// (`find_idlest_cpu()`).
    pub(super) fn choose_cpu_for_new(&mut self, task: TaskId) {
        let mut node_tasks = [0; 256];
        for cpu in self.topology.cpus() {
            node_tasks[self.topology.node_of(cpu).index()] += self.nr_running(cpu);
        }
        let cpu = self.allowed[task.index()].iter().min_by_key(|&cpu| {
            let node = self.topology.node_of(cpu);
            (self.nr_running(cpu), node_tasks[node.index()], cpu)
        });
        self.tasks[task.index()].cpu = cpu.expect("a task may run on some CPU");
    }

    /// Puts a task in the queue of its level, and its group in the queue above if it is not there
    /// (`enqueue_task_fair()`). Whether that ended the slice of who runs.
    pub(super) fn enqueue(&mut self, task: TaskId, now: Nanos) -> bool {
        let mut next = Some((self.level_of(task), Member::Task(task)));
        let mut over = false;
        while let Some((at, member)) = next {
            self.catch_up(at);
            if self.params.policy == SchedPolicy::EarliestDeadline {
                // Before the new one stands there: who is alone goes on.
                over |= self.slice_is_over(at, now);
            }
            self.place(at, member, now);
            self.push(at, member);
            next = self.group_to_queue(at);
            if next.is_none() {
                self.requeue_group(at, now);
            }
        }
        over
    }

    fn place(&mut self, at: LevelId, member: Member, now: Nanos) {
        let started = self.entity(at.cpu, member).started;
        match self.params.policy {
            SchedPolicy::EarliestDeadline => self.place_by_lag(at, member, now),
            SchedPolicy::LeastRuntime if started => self.place_by_credit(at, member),
            SchedPolicy::LeastRuntime => self.place_by_debit(at, member),
        }
        self.entity_mut(at.cpu, member).started = true;
    }

    /// Takes a waiting task out of the queue of its level, and its group out of the one above if nobody of it is left.
    fn dequeue(&mut self, task: TaskId) {
        let mut next = Some((self.level_of(task), Member::Task(task)));
        while let Some((at, member)) = next {
            self.take(at, member);
            self.level_mut(at).buddies.clear(member);
            self.count_out(at.cpu, member);
            next = self.group_to_remove(at);
        }
        let cpu = self.cpu_of(task);
        self.cpus[cpu.index()].nr_running -= 1;
    }

    /// Ties a level's virtual clock to the furthest: shifts it, with all its members, to within one period. Without this
    /// a CPU that was idle, or crowded with pinned tasks, would look entitled to the time of all others.
    #[inline]
    pub(super) fn catch_up(&mut self, at: LevelId) {
        let least = self.furthest - self.params.latency.0 as i64;
        let level = self.level_mut(at);
        let lag = least - (level.axis + level.min_vruntime);
        if lag > 0 {
            level.axis += lag;
        }
    }

    /// Moves a task that is in no queue, with its place on the common axis.
    pub(super) fn migrate(&mut self, task: TaskId, to: CpuId) {
        let from = self.level_of(task);
        let to = LevelId { cpu: to, ..from };
        self.catch_up(from);
        self.catch_up(to);
        let shift = self.level(from).axis - self.level(to).axis;
        let task = &mut self.tasks[task.index()];
        task.cpu = to.cpu;
        task.entity.vruntime += shift;
        task.entity.deadline += shift;
    }

    /// A CPU without a task takes one that waits elsewhere, of its own node if there is one.
    pub(super) fn pull_for_idle(&mut self, cpu: CpuId, now: Nanos) {
        let node = self.topology.node_of(cpu);
        let near = self.furthest_behind(cpu, |other| self.topology.node_of(other) == node);
        let found = near.or_else(|| self.furthest_behind(cpu, |_| true));
        if let Some(waiting) = found {
            self.pull(cpu, waiting.task, now);
        }
    }

    /// Takes a task that waits elsewhere if it is behind all that are here beside it by more than a granularity, and the tick
    /// that it may have to wait for on its own CPU. Returns whether it did.
    pub(super) fn pull_if_behind(&mut self, cpu: CpuId, now: Nanos) -> bool {
        if self.cpus.len() == 1 {
            return false;
        }
        self.catch_up(LevelId::root(cpu));
        let Some(waiting) = self.furthest_behind(cpu, |_| true) else {
            return false;
        };
        let at = LevelId { cpu, ..self.level_of(waiting.task) };
        let level = self.level(at);
        let current = level.current.map(|member| self.entity(cpu, member).vruntime);
        let first = level.queue.first().map(|first| first.vruntime);
        let here = current.into_iter().chain(first).min();
        let grain = (self.params.min_granularity + self.params.tick).0 as i64;
        let behind = here.is_some_and(|here| waiting.vruntime + grain < level.axis + here);
        if behind {
            self.pull(cpu, waiting.task, now);
        }
        behind
    }

    /// The tasks that wait on a CPU, each with its vruntime on the common axis.
    fn waiting_on(&self, cpu: CpuId) -> impl Iterator<Item = Waiting> {
        let levels = std::iter::once(&self.cpus[cpu.index()].root).chain(self.groups.levels(cpu));
        levels.flat_map(|level| {
            level.queue.iter().filter_map(|queued| match queued.member {
                Member::Task(task) if self.tasks[task.index()].entity.delayed => None,
                Member::Task(task) => Some(Waiting { task, vruntime: queued.vruntime + level.axis }),
                Member::Group(_) => None,
            })
        })
    }

    /// Of the tasks that wait on other CPUs, of those `eligible`, and may run on this one: the one of least vruntime. A CPU
    /// that is about to pick has first claim on its queue.
    fn furthest_behind(&self, cpu: CpuId, eligible: impl Fn(CpuId) -> bool) -> Option<Waiting> {
        let busy = |other: &CpuId| {
            let rq = &self.cpus[other.index()];
            rq.waiting > 0 && *other != cpu && rq.current.is_some()
        };
        let others = self.topology.cpus().filter(busy).filter(|other| eligible(*other));
        let first = others.filter_map(|other| {
            let mut may = self.waiting_on(other).filter(|waiting| self.allowed[waiting.task.index()].contains(cpu));
            // Of a level the first is the one of least vruntime.
            if self.groups.is_empty() { may.next() } else { may.min_by_key(|waiting| waiting.vruntime) }
        });
        first.min_by_key(|waiting| waiting.vruntime)
    }

    fn pull(&mut self, cpu: CpuId, task: TaskId, now: Nanos) {
        self.dequeue(task);
        self.migrate(task, cpu);
        self.count_in(task);
        self.cpus[cpu.index()].nr_running += 1;
        let mut next = Some((self.level_of(task), Member::Task(task)));
        while let Some((at, member)) = next {
            self.push(at, member);
            next = self.group_to_queue(at);
            if let Some((root, group)) = next {
                self.catch_up(root);
                self.place(root, group, now);
            }
        }
    }

    /// Has an idle CPU look for work if a task that waits here may run there (`nohz_balancer_kick()`).
    pub(super) fn kick_idle_cpu(&mut self, cpu: CpuId) {
        if self.idle.is_empty() {
            return;
        }
        let found = self.waiting_on(cpu).find_map(|waiting| {
            let idle = self.idle.common(&self.allowed[waiting.task.index()]);
            idle.iter().next()
        });
        if let Some(idle) = found {
            self.idle.remove(idle);
            self.kick(idle);
        }
    }
}
