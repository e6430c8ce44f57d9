//! One level of a CPU's queues: the tasks and groups that stand beside each other, or the tasks of one group.

use super::buddies::Buddies;
use super::runqueue::{Queued, RunQueue};
use super::{CpuGroup, SchedPolicy, Scheduler, fair};
use crate::TaskId;
use units::{CpuId, Nanos};

/// What stands in a queue: a task, or a group with all its tasks that want this CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Member {
    Task(TaskId),
    Group(CpuGroup),
}

/// Which level: that of a group, or the one above all groups.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LevelId {
    pub(super) cpu: CpuId,
    pub(super) group: Option<CpuGroup>,
}

impl LevelId {
    pub(super) fn root(cpu: CpuId) -> LevelId {
        LevelId { cpu, group: None }
    }

    /// The level above a group's, and as what the group stands there.
    pub(super) fn above(self) -> Option<(LevelId, Member)> {
        self.group.map(|group| (LevelId::root(self.cpu), Member::Group(group)))
    }
}

/// What a member has had and is due: the kernel's `struct sched_entity`.
#[derive(Clone, Copy, Default)]
pub(super) struct Entity {
    /// Virtual nanoseconds, on the axis of its level.
    pub(super) vruntime: i64,
    /// Virtual time by which what it asks for is due.
    pub(super) deadline: i64,
    /// The deadline up to which it is not taken off the CPU.
    pub(super) protected: i64,
    /// Virtual time that it was owed when it last left its queue.
    pub(super) lag: i64,
    /// It sleeps, and stands in its queue for what it owes.
    pub(super) delayed: bool,
    /// False until it has been placed for the first time.
    pub(super) started: bool,
    /// All CPU time used.
    pub(super) used: Nanos,
    /// Of that, what it had used when it was last picked.
    pub(super) used_at_pick: Nanos,
}

/// The kernel's `struct cfs_rq`.
#[derive(Default)]
pub(super) struct Level {
    /// Whom the CPU's time goes to; it is not in the queue.
    pub(super) current: Option<Member>,
    pub(super) queue: RunQueue,
    /// Never decreases; all vruntimes here are about this.
    pub(super) min_vruntime: i64,
    /// Added to a vruntime of this level it gives one that compares with those of other levels.
    pub(super) axis: i64,
    pub(super) buddies: Buddies,
}

impl Level {
    pub(super) fn is_empty(&self) -> bool {
        self.current.is_none() && self.queue.is_empty()
    }
}

impl Scheduler {
    #[inline]
    pub(super) fn level(&self, at: LevelId) -> &Level {
        match at.group {
            None => &self.cpus[at.cpu.index()].root,
            Some(group) => &self.groups.on(group, at.cpu).level,
        }
    }

    #[inline]
    pub(super) fn level_mut(&mut self, at: LevelId) -> &mut Level {
        match at.group {
            None => &mut self.cpus[at.cpu.index()].root,
            Some(group) => &mut self.groups.on_mut(group, at.cpu).level,
        }
    }

    #[inline]
    pub(super) fn entity(&self, cpu: CpuId, member: Member) -> &Entity {
        match member {
            Member::Task(task) => &self.tasks[task.index()].entity,
            Member::Group(group) => &self.groups.on(group, cpu).entity,
        }
    }

    #[inline]
    pub(super) fn entity_mut(&mut self, cpu: CpuId, member: Member) -> &mut Entity {
        match member {
            Member::Task(task) => &mut self.tasks[task.index()].entity,
            Member::Group(group) => &mut self.groups.on_mut(group, cpu).entity,
        }
    }

    /// What a member weighs beside the others of its level: 1024 at nice 0.
    #[inline]
    pub(super) fn weight(&self, cpu: CpuId, member: Member) -> u32 {
        match member {
            Member::Task(task) => self.tasks[task.index()].weight,
            Member::Group(group) => self.groups.share(group, cpu),
        }
    }

    /// Where a task stands on the CPU that it runs, waits or ran last on.
    #[inline]
    pub(super) fn level_of(&self, task: TaskId) -> LevelId {
        let task = &self.tasks[task.index()];
        LevelId { cpu: task.cpu, group: task.group }
    }

    /// A task, or its group, as it stands above all groups.
    #[inline]
    pub(super) fn top_of(&self, task: TaskId) -> Member {
        self.tasks[task.index()].group.map_or(Member::Task(task), Member::Group)
    }

    /// Sum of the weights of a level's members.
    pub(super) fn load(&self, at: LevelId) -> u64 {
        let level = self.level(at);
        let members = level.queue.iter().map(|queued| queued.member).chain(level.current);
        members.map(|member| u64::from(self.weight(at.cpu, member))).sum()
    }

    /// Whether a member of a queue is a task that wants to run.
    fn waits(&self, cpu: CpuId, member: Member) -> bool {
        matches!(member, Member::Task(_)) && !self.entity(cpu, member).delayed
    }

    /// Puts a member in its queue.
    pub(super) fn push(&mut self, at: LevelId, member: Member) {
        let vruntime = self.entity(at.cpu, member).vruntime;
        self.level_mut(at).queue.insert(Queued { vruntime, member });
        if self.waits(at.cpu, member) {
            self.cpus[at.cpu.index()].waiting += 1;
            self.waiting += 1;
        }
    }

    /// Takes a member out of its queue.
    pub(super) fn take(&mut self, at: LevelId, member: Member) {
        self.level_mut(at).queue.remove(member);
        if self.waits(at.cpu, member) {
            self.cpus[at.cpu.index()].waiting -= 1;
            self.waiting -= 1;
        }
    }

    /// The CPU's time goes to this member from now on (`set_next_entity()`); it goes on if it was the current one.
    pub(super) fn set_current(&mut self, at: LevelId, member: Member) {
        if self.level(at).current == Some(member) {
            return;
        }
        self.put_current(at);
        self.take(at, member);
        let level = self.level_mut(at);
        level.buddies.clear(member);
        level.current = Some(member);
        let entity = self.entity_mut(at.cpu, member);
        entity.used_at_pick = entity.used;
        entity.protected = entity.deadline;
    }

    /// Puts the current member back in its queue, and a group's own one in its (`put_prev_entity()`).
    fn put_current(&mut self, at: LevelId) {
        let Some(member) = self.level_mut(at).current.take() else { return };
        if let Member::Group(group) = member {
            self.put_current(LevelId { group: Some(group), ..at });
        }
        self.push(at, member);
    }

    /// Virtual runtime of the current member, of whose slice the part before `now` lies behind; the whole is accounted for at
    /// its end.
    pub(super) fn current_vruntime(&self, at: LevelId, now: Nanos) -> Option<i64> {
        let current = self.level(at).current?;
        let slice = &self.cpus[at.cpu.index()].slice;
        let ran = now.since(slice.start).min(slice.charged);
        let weight = self.weight(at.cpu, current);
        Some(self.entity(at.cpu, current).vruntime + fair::virtual_time(ran, weight))
    }

    /// Moves the level's virtual clock up to its least vruntime, and the furthest clock with it.
    pub(super) fn update_min_vruntime(&mut self, at: LevelId) {
        let level = self.level(at);
        let current = level.current.map(|member| self.entity(at.cpu, member).vruntime);
        let first = level.queue.first().map(|first| first.vruntime);
        let Some(least) = current.into_iter().chain(first).min() else { return };
        let level = self.level_mut(at);
        level.min_vruntime = level.min_vruntime.max(least);
        let clock = level.axis + level.min_vruntime;
        self.furthest = self.furthest.max(clock);
    }

    /// The member that is entitled to the CPU.
    pub(super) fn pick(&mut self, at: LevelId, now: Nanos) -> Option<Member> {
        match self.params.policy {
            SchedPolicy::LeastRuntime => {
                let picked = self.least_runtime(at)?;
                self.level_mut(at).buddies.clear(picked);
                Some(picked)
            }
            SchedPolicy::EarliestDeadline => {
                self.slice_is_over(at, now);
                self.next_eligible(at, now).or_else(|| self.earliest_eligible(at, now))
            }
        }
    }
}
