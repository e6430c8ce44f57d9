//! Groups of tasks that share the CPU time of one.
//!
//! **Rule.** A group weighs as much as a task at nice 0, however many of its tasks want to run; they share that by their own
//! weights. A task of a group thus weighs its part of the group: a kernel thread beside a group of four busy tasks is entitled
//! to half of a CPU, not to a fifth.
//!
//! **Source.** `struct task_group`, `calc_group_shares()`, `task_h_load()`, kernel/sched/fair.c (4.20, 6.12); `cpu.weight` of 100. Groups
//! come of the cpu controller of cgroup v2, and of CONFIG_SCHED_AUTOGROUP for each session.
//!
//! **Abstracted.** One level of groups, flattened: each task stands in its CPU's queue with its part of the group's weight, where Linux
//! queues the group and its tasks apart. The part counts the group's runnable tasks of all CPUs as they are now (Linux: averages).
//!
//! **Omitted.** Weights of groups, `cpu.max`, `cpu.idle`.

use super::{Scheduler, fair};
use crate::TaskId;
use units::CpuId;

/// A group of tasks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CpuGroup(pub u16);

/// Least weight of anything (`MIN_SHARES`).
const WEIGHT_MIN: u32 = 2;

/// The sum of the weights of each group's runnable tasks.
#[derive(Default)]
pub(super) struct Groups {
    loads: Vec<u64>,
}

impl Groups {
    fn load_mut(&mut self, group: CpuGroup) -> &mut u64 {
        let at = usize::from(group.0);
        if at >= self.loads.len() {
            self.loads.resize(at + 1, 0);
        }
        &mut self.loads[at]
    }
}

impl Scheduler {
    /// What a runnable task weighs: 1024 at nice 0 outside of groups.
    #[inline]
    pub(super) fn weight(&self, task: TaskId) -> u32 {
        let entity = &self.entities[task.index()];
        match entity.group {
            None => entity.weight,
            Some(group) => {
                let load = self.groups.loads[usize::from(group.0)].max(u64::from(entity.weight));
                let part = u64::from(fair::WEIGHT_NICE_0) * u64::from(entity.weight) / load;
                (part as u32).max(WEIGHT_MIN)
            }
        }
    }

    /// Sum of the weights of a CPU's runnable tasks.
    pub(super) fn load(&self, cpu: CpuId) -> u64 {
        let rq = &self.cpus[cpu.index()];
        let tasks = rq.queue.iter().map(|queued| queued.task).chain(rq.current);
        tasks.map(|task| u64::from(self.weight(task))).sum()
    }

    /// A task that slept counts in its group again.
    pub(super) fn join_group(&mut self, task: TaskId) {
        let entity = &self.entities[task.index()];
        if let Some(group) = entity.group {
            *self.groups.load_mut(group) += u64::from(entity.weight);
        }
    }

    /// A task goes to sleep.
    pub(super) fn leave_group(&mut self, task: TaskId) {
        let entity = &self.entities[task.index()];
        if let Some(group) = entity.group {
            *self.groups.load_mut(group) -= u64::from(entity.weight);
        }
    }
}
