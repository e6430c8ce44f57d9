//! Pressure stall information: how long tasks could not go on for want of a CPU, of I/O, of memory.
//!
//! Rule: on each CPU, and for each group, it is counted how many tasks run or want to, wait for I/O, and stall for memory, and whether one of the
//! group's has the CPU. From that follow states ([`State`]), whose times are added up. Every two seconds, and whenever
//! somebody asks, the times of all CPUs are averaged, each weighted by the time in which it was not idle; the sum is the total, and its
//! share of the two seconds goes into three averages that decay within 10, 60 and 300 s.
//! Source: `psi_task_change()`, `psi_task_switch()`, `test_states()`, `collect_percpu_times()`, `update_averages()`, `psi_avgs_work()`,
//! `psi_show()` (kernel/sched/psi.c, 6.12); `calc_load()` (include/linux/sched/loadavg.h). HZ is 250.
//! Since/until: 4.20; [`MemoryFull`]; `full` for CPUs is of 5.13.
//! Abstracted: a task that waits for a CPU and is pulled to another counts there from when it runs; the averages' worker takes no time.
//! Omitted: triggers, `cgroup.pressure`, interrupts (`irq.pressure`), stalls of `cpu.max`.

mod averages;
mod group;

#[cfg(test)]
mod model;

use units::{CpuId, Nanos};

use crate::TaskId;
use group::{Change, Group};

/// A tick: HZ is 250.
pub(crate) const TICK: Nanos = Nanos::millis(4);
/// Between two updates of the averages (`PSI_FREQ`).
pub(crate) const PERIOD: Nanos = Nanos(501 * TICK.0);

/// When nobody gets on for want of memory though a task of the group has a CPU: one that reclaims.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemoryFull {
    /// From the last change, but a tick at most, to a tick that finds it (`psi_memstall_tick()`): 4.20 to 5.12.
    AtTicks,
    /// While it has the CPU: since 7fae6c8171d2 (5.13); also while it waits for it among others that reclaim: cb0e52b77487 (5.17).
    OnCpu,
}

/// How stalls are told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    pub(crate) memory_full: MemoryFull,
    /// How long the last tick is ago when the simulation starts.
    pub(crate) since_tick: Nanos,
}

/// What a task may lack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resource {
    /// `io`.
    Io,
    /// `memory`.
    Memory,
    /// `cpu`.
    Cpu,
}

/// How much tasks stalled.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stall {
    /// Percent of the time in the last 10, 60 and 300 s, in fixed point with [`Stall::FRACTION_BITS`].
    pub averages: [u64; 3],
    /// Since the start.
    pub total: Nanos,
}

impl Stall {
    /// Bits behind the point of the averages (`FSHIFT`).
    pub const FRACTION_BITS: u32 = 11;
}

/// A group of tasks; groups form a tree whose root is [`PsiGroup::SYSTEM`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PsiGroup(pub u16);

impl PsiGroup {
    /// All tasks.
    pub const SYSTEM: PsiGroup = PsiGroup(0);
}

/// What a task does, as bits (`TSK_*`).
pub(crate) mod task {
    pub(crate) const IOWAIT: u8 = 1;
    pub(crate) const MEMSTALL: u8 = 2;
    pub(crate) const RUNNING: u8 = 4;
    pub(crate) const MEMSTALL_RUNNING: u8 = 8;
    pub(crate) const ON_CPU: u8 = 16;
}

/// A task's part in the counts.
#[derive(Clone, Copy, Debug)]
struct Member {
    group: PsiGroup,
    cpu: CpuId,
    flags: u8,
}

/// How a task leaves its CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OffCpu {
    /// It wants to go on.
    Preempted,
    /// It sleeps, for I/O or not.
    Sleeps {
        io: bool,
    },
    Exits,
}

/// The accounts of all groups.
pub(crate) struct Psi {
    groups: Vec<Group>,
    members: Vec<Member>,
    nr_cpus: usize,
    rule: Rule,
    /// When the next group's averages are due.
    due: Nanos,
}

impl Psi {
    pub(crate) fn new(nr_cpus: usize, rule: Rule) -> Psi {
        let all = Group::new(rule, None, nr_cpus, Nanos::ZERO);
        Psi { groups: vec![all], members: Vec::new(), nr_cpus, rule, due: Nanos::MAX }
    }

    /// Takes in the next task, of the group of all.
    pub(crate) fn add_task(&mut self) {
        self.members.push(Member { group: PsiGroup::SYSTEM, cpu: CpuId(0), flags: 0 });
    }

    pub(crate) fn add_group(&mut self, parent: PsiGroup, now: Nanos) -> PsiGroup {
        self.groups.push(Group::new(self.rule, Some(parent), self.nr_cpus, now));
        PsiGroup(u16::try_from(self.groups.len() - 1).expect("there are fewer groups than that"))
    }

    /// Moves a task with all that it does to another group (`cgroup_move_task()`).
    pub(crate) fn move_task(&mut self, task: TaskId, group: PsiGroup, now: Nanos) {
        let Member { cpu, flags, .. } = self.members[task.index()];
        self.set(task, cpu, 0, now);
        self.members[task.index()].group = group;
        self.set(task, cpu, flags, now);
    }

    /// The task is runnable, on this CPU.
    #[inline]
    pub(crate) fn runnable(&mut self, task: TaskId, cpu: CpuId, now: Nanos) {
        let flags = self.members[task.index()].flags & task::MEMSTALL;
        self.set(task, cpu, with_running(flags), now);
    }

    /// The task has got a CPU.
    #[inline]
    pub(crate) fn on_cpu(&mut self, task: TaskId, cpu: CpuId, now: Nanos) {
        let flags = self.members[task.index()].flags & task::MEMSTALL;
        self.set(task, cpu, with_running(flags) | task::ON_CPU, now);
    }

    /// The task has lost its CPU.
    #[inline]
    pub(crate) fn off_cpu(&mut self, task: TaskId, how: OffCpu, now: Nanos) {
        let Member { cpu, flags, .. } = self.members[task.index()];
        let stalled = flags & task::MEMSTALL;
        let flags = match how {
            OffCpu::Preempted => with_running(stalled),
            OffCpu::Sleeps { io } => stalled | if io { task::IOWAIT } else { 0 },
            OffCpu::Exits => 0,
        };
        self.set(task, cpu, flags, now);
    }

    /// A section in which the task stalls for memory begins or ends (`psi_memstall_enter()`, `psi_memstall_leave()`).
    pub(crate) fn memstall(&mut self, task: TaskId, stalls: bool, now: Nanos) {
        let Member { cpu, flags, .. } = self.members[task.index()];
        let mut next = flags & !(task::MEMSTALL | task::MEMSTALL_RUNNING);
        if stalls {
            next |= task::MEMSTALL | if flags & task::RUNNING != 0 { task::MEMSTALL_RUNNING } else { 0 };
        }
        self.set(task, cpu, next, now);
    }

    /// Changes where and what a task is, in its group and those above.
    #[inline]
    fn set(&mut self, task: TaskId, cpu: CpuId, flags: u8, now: Nanos) {
        let member = &mut self.members[task.index()];
        let (group, before) = (member.group, Member { cpu, flags, ..*member });
        let from = std::mem::replace(member, before);
        if from.cpu == cpu {
            if from.flags != flags {
                self.change(group, cpu, Change { clear: from.flags & !flags, set: flags & !from.flags, flags }, now);
            }
            return;
        }
        if from.flags != 0 {
            self.change(group, from.cpu, Change { clear: from.flags, set: 0, flags: 0 }, now);
        }
        if flags != 0 {
            self.change(group, cpu, Change { clear: 0, set: flags, flags }, now);
        }
    }

    fn change(&mut self, group: PsiGroup, cpu: CpuId, change: Change, now: Nanos) {
        let mut at = Some(group);
        while let Some(PsiGroup(n)) = at {
            let group = &mut self.groups[usize::from(n)];
            group.change(cpu, change, now);
            self.due = self.due.min(group.wake_clock(now));
            at = group.parent();
        }
    }

    /// When [`Psi::work`] is to be called next.
    #[inline]
    pub(crate) fn due(&self) -> Nanos {
        self.due
    }

    /// Brings the averages up to date that are due (`psi_avgs_work()`).
    #[cold]
    pub(crate) fn work(&mut self) {
        let now = self.due;
        self.due = Nanos::MAX;
        for group in &mut self.groups {
            group.work(now);
            self.due = self.due.min(group.due());
        }
    }

    /// What `some` and `full` of a resource say (`psi_show()`).
    pub(crate) fn pressure(&mut self, group: PsiGroup, resource: Resource, now: Nanos) -> [Stall; 2] {
        let stalls = self.groups[usize::from(group.0)].read(resource, now);
        // No task of the system can be kept from a CPU by others than its own.
        let undefined = group == PsiGroup::SYSTEM && resource == Resource::Cpu;
        [stalls[0], if undefined { Stall::default() } else { stalls[1] }]
    }
}

fn with_running(stalled: u8) -> u8 {
    stalled | task::RUNNING | if stalled != 0 { task::MEMSTALL_RUNNING } else { 0 }
}
