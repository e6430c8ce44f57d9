//! On which CPU a task runs, and with how much virtual runtime it comes there.

use super::runqueue::Queued;
use super::{SchedPolicy, Scheduler, fair};
use crate::TaskId;
use units::{CpuId, Nanos};

impl Scheduler {
    /// Sets the CPU of a woken task (`select_task_rq_fair()`): the previous one if idle, else an idle one of the same
    /// node, else any allowed idle one, else the previous one.
    #[inline]
    pub(super) fn choose_cpu_for_wakeup(&mut self, task: TaskId) {
        let previous = self.entities[task.index()].cpu;
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

    /// Gives a woken task its vruntime: at most half a period of credit (`place_entity()`). Returns its CPU.
    #[inline]
    pub(super) fn place_woken(&mut self, task: TaskId, now: Nanos) -> CpuId {
        self.catch_up(self.entities[task.index()].cpu);
        if self.params.policy == SchedPolicy::EarliestDeadline {
            self.place_by_lag(task, now, false);
            return self.entities[task.index()].cpu;
        }
        let entity = &mut self.entities[task.index()];
        let credit = (self.params.latency.0 / 2) as i64;
        let floor = self.cpus[entity.cpu.index()].min_vruntime - credit;
        entity.vruntime = entity.vruntime.max(floor);
        entity.cpu
    }

    /// Gives a new task a CPU and a vruntime: the allowed CPU with the fewest tasks, on the node with the fewest if
    /// several are equal (`find_idlest_cpu()`); there behind by a share, so that forking does not gain time
    /// (`place_entity()` with START_DEBIT), but by a granularity at most, and on an idle CPU not at all: tasks started
    /// together are to stay within a granularity of each other, whatever the order. Returns that CPU.
    pub(super) fn place_new(&mut self, task: TaskId, now: Nanos) -> CpuId {
        let mut node_tasks = [0; 256];
        for cpu in self.topology.cpus() {
            node_tasks[self.topology.node_of(cpu).index()] += self.nr_running(cpu);
        }
        let cpu = self.allowed[task.index()]
            .iter()
            .min_by_key(|&cpu| {
                let node = self.topology.node_of(cpu);
                (self.nr_running(cpu), node_tasks[node.index()], cpu)
            })
            .expect("a task may run on some CPU");
        self.catch_up(cpu);
        let (nr_running, weight) = (self.nr_running(cpu), self.weight(task));
        let load = self.load(cpu) + u64::from(weight);
        let rq = &self.cpus[cpu.index()];
        let entity = &mut self.entities[task.index()];
        entity.cpu = cpu;
        entity.started = true;
        entity.vruntime = rq.min_vruntime;
        if self.params.policy == SchedPolicy::EarliestDeadline {
            self.place_by_lag(task, now, true);
        } else if nr_running > 0 {
            let share = self.params.share(nr_running + 1, weight, load);
            let debit = fair::virtual_time(share, weight);
            entity.vruntime += debit.min(self.params.min_granularity.0 as i64);
        }
        cpu
    }

    /// Ties the CPU's virtual clock to the furthest: shifts it, with all its tasks, to within one period. Without this
    /// a CPU that was idle, or crowded with pinned tasks, would look entitled to the time of all others.
    #[inline]
    pub(super) fn catch_up(&mut self, cpu: CpuId) {
        let rq = &mut self.cpus[cpu.index()];
        let least = self.furthest - self.params.latency.0 as i64;
        let lag = least - (rq.axis + rq.min_vruntime);
        if lag > 0 {
            rq.axis += lag;
        }
    }

    /// Moves a task that is in no queue, with its place on the common axis.
    pub(super) fn migrate(&mut self, task: TaskId, to: CpuId) {
        let entity = &mut self.entities[task.index()];
        let from = std::mem::replace(&mut entity.cpu, to);
        self.catch_up(from);
        self.catch_up(to);
        let entity = &mut self.entities[task.index()];
        let shift = self.cpus[from.index()].axis - self.cpus[to.index()].axis;
        entity.vruntime += shift;
        entity.deadline += shift;
    }

    /// A CPU without a task takes one that waits elsewhere, of its own node if there is one.
    pub(super) fn pull_for_idle(&mut self, cpu: CpuId) {
        self.catch_up(cpu);
        let node = self.topology.node_of(cpu);
        let near = self.furthest_behind(cpu, |other| self.topology.node_of(other) == node);
        let found = near.or_else(|| self.furthest_behind(cpu, |_| true));
        if let Some(waiting) = found {
            self.pull(cpu, waiting.task);
        }
    }

    /// Takes a task that waits elsewhere if it is more than a granularity behind all tasks here. Returns whether it did.
    pub(super) fn pull_if_behind(&mut self, cpu: CpuId) -> bool {
        if self.cpus.len() == 1 {
            return false;
        }
        self.catch_up(cpu);
        let Some(waiting) = self.furthest_behind(cpu, |_| true) else {
            return false;
        };
        let rq = &self.cpus[cpu.index()];
        let current = rq.current.map(|task| self.entities[task.index()].vruntime);
        let first = rq.queue.first().map(|first| first.vruntime);
        let here = current.into_iter().chain(first).min();
        let granularity = self.params.min_granularity.0 as i64;
        let behind = here.is_some_and(|here| waiting.vruntime + granularity < rq.axis + here);
        if behind {
            self.pull(cpu, waiting.task);
        }
        behind
    }

    /// Of the tasks that wait on other CPUs, of those `eligible`, and may run on this one: the one of least vruntime,
    /// which is given on the common axis. A CPU that is about to pick has first claim on its queue.
    fn furthest_behind(&self, cpu: CpuId, eligible: impl Fn(CpuId) -> bool) -> Option<Queued> {
        let mut best: Option<Queued> = None;
        for other in self.topology.cpus() {
            let rq = &self.cpus[other.index()];
            if rq.queue.is_empty() || other == cpu || rq.current.is_none() || !eligible(other) {
                continue;
            }
            let waiting = rq.queue.iter().find(|queued| self.allowed[queued.task.index()].contains(cpu));
            let Some(mut waiting) = waiting else { continue };
            waiting.vruntime += rq.axis;
            if best.is_none_or(|best| waiting.vruntime < best.vruntime) {
                best = Some(waiting);
            }
        }
        best
    }

    fn pull(&mut self, cpu: CpuId, task: TaskId) {
        let entity = &self.entities[task.index()];
        let rq = &mut self.cpus[entity.cpu.index()];
        rq.queue.remove(task);
        self.queued -= 1;
        self.migrate(task, cpu);
        self.enqueue(task);
    }

    /// Has an idle CPU look for work if a task that waits here may run there (`nohz_balancer_kick()`).
    pub(super) fn kick_idle_cpu(&mut self, cpu: CpuId) {
        if self.idle.is_empty() {
            return;
        }
        let waiting = self.cpus[cpu.index()].queue.iter();
        let found = waiting
            .flat_map(|queued| {
                let idle = self.idle.common(&self.allowed[queued.task.index()]);
                idle.iter().next()
            })
            .next();
        if let Some(idle) = found {
            self.idle.remove(idle);
            self.kick(idle);
        }
    }
}
