//! Groups of tasks that share the CPU time of one.
//!
//! **Rule.** A group weighs as much as a task at nice 0, however many of its tasks want to run; they share that by their own
//! weights. On each CPU the group stands in the queue beside the tasks that are in none, is picked and preempted as they are,
//! and picks one of its own tasks from a queue of its own: a kernel thread beside a group of four busy tasks is entitled to half
//! of a CPU, not to a fifth, and when it is woken it has to do with the group, whichever of the four runs. Where a group runs on
//! several CPUs its weight is parted by the load of its tasks there.
//!
//! **Source.** `struct task_group`, `struct cfs_rq`, `calc_group_shares()`, `enqueue_task_fair()`, `pick_next_task_fair()`,
//! `find_matching_se()`, kernel/sched/fair.c (4.20, 6.12); `cpu.weight` of 100. Groups come of the cpu controller of cgroup v2, and
//! of CONFIG_SCHED_AUTOGROUP for each session.
//!
//! **Abstracted.** One level of groups. A group's part on a CPU goes by the tasks that are runnable now (Linux: averages).
//!
//! **Omitted.** Weights of groups, `cpu.max`, `cpu.idle`.

use super::Scheduler;
use super::fair::WEIGHT_NICE_0;
use super::level::{Entity, Level, LevelId, Member};
use crate::TaskId;
use units::CpuId;

/// A group of tasks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CpuGroup(pub u16);

/// Least weight of anything (`MIN_SHARES`).
const WEIGHT_MIN: u32 = 2;

/// A group on one CPU.
#[derive(Default)]
pub(super) struct OnCpu {
    /// As which the group stands among those that are in no group.
    pub(super) entity: Entity,
    /// Whether it stands there now.
    queued: bool,
    pub(super) level: Level,
    /// Sum of the weights of its runnable tasks.
    load: u64,
}

/// All groups.
pub(super) struct Groups {
    nr_cpus: usize,
    /// A group's CPUs one after the other.
    on: Vec<OnCpu>,
}

impl Groups {
    pub(super) fn new(nr_cpus: usize) -> Groups {
        Groups { nr_cpus, on: Vec::new() }
    }

    /// Makes room for a group.
    pub(super) fn add(&mut self, group: CpuGroup) {
        let end = (usize::from(group.0) + 1) * self.nr_cpus;
        if self.on.len() < end {
            self.on.resize_with(end, OnCpu::default);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.on.is_empty()
    }

    fn all(&self, group: CpuGroup) -> &[OnCpu] {
        let start = usize::from(group.0) * self.nr_cpus;
        &self.on[start..start + self.nr_cpus]
    }

    #[inline]
    pub(super) fn on(&self, group: CpuGroup, cpu: CpuId) -> &OnCpu {
        &self.on[usize::from(group.0) * self.nr_cpus + cpu.index()]
    }

    #[inline]
    pub(super) fn on_mut(&mut self, group: CpuGroup, cpu: CpuId) -> &mut OnCpu {
        &mut self.on[usize::from(group.0) * self.nr_cpus + cpu.index()]
    }

    /// Weight of a group on one CPU.
    pub(super) fn share(&self, group: CpuGroup, cpu: CpuId) -> u32 {
        let (here, all) = (self.on(group, cpu).load, self.all(group).iter().map(|on| on.load).sum::<u64>());
        if here == all {
            return WEIGHT_NICE_0;
        }
        let part = u64::from(WEIGHT_NICE_0) * here / all;
        (part as u32).max(WEIGHT_MIN)
    }

    /// The levels of all groups on a CPU.
    pub(super) fn levels(&self, cpu: CpuId) -> impl Iterator<Item = &Level> {
        self.on.iter().skip(cpu.index()).step_by(self.nr_cpus).map(|on| &on.level)
    }
}

impl Scheduler {
    /// A task comes to its CPU: it counts in its group.
    pub(super) fn count_in(&mut self, task: TaskId) {
        let entry = &self.tasks[task.index()];
        if let Some(group) = entry.group {
            self.groups.on_mut(group, entry.cpu).load += u64::from(entry.weight);
        }
    }

    /// A member leaves its level.
    pub(super) fn count_out(&mut self, cpu: CpuId, member: Member) {
        match member {
            Member::Group(group) => self.groups.on_mut(group, cpu).queued = false,
            Member::Task(task) => {
                let entry = &self.tasks[task.index()];
                if let Some(group) = entry.group {
                    self.groups.on_mut(group, cpu).load -= u64::from(entry.weight);
                }
            }
        }
    }

    /// The group that has to be queued for a task of its level to be seen, if it is not.
    pub(super) fn group_to_queue(&mut self, at: LevelId) -> Option<(LevelId, Member)> {
        let queued = &mut self.groups.on_mut(at.group?, at.cpu).queued;
        let missing = !std::mem::replace(queued, true);
        at.above().filter(|_| missing)
    }

    /// The group that has nobody left here, if it has not.
    pub(super) fn group_to_remove(&self, at: LevelId) -> Option<(LevelId, Member)> {
        at.above().filter(|_| self.level(at).is_empty())
    }
}
