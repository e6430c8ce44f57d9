//! Members that are picked, or passed over, against the order of their queue.
//!
//! **Rule.** Who takes the CPU by being woken is the next of its level: it is picked before the first of the queue, unless it has had more by
//! more than a granularity. Where a task goes to sleep and others of its group want to run, its group is the next. From eight members on
//! the task that was preempted is the last, which is picked in the same way once it is the turn of nobody next. Who yields is passed over
//! once, if the second is as close. A member is none of these any more when it is picked, goes to sleep, or, for the first two, when a tick finds its
//! share over. With deadlines there is only the next of a group, which is picked while it is owed time, until its slice is over.
//!
//! **Source.** `set_next_buddy()`, `set_last_buddy()`, `set_skip_buddy()`, `clear_buddies()`, `check_preempt_wakeup()`, `pick_next_entity()`,
//! `set_next_entity()`, `update_curr()`, `dequeue_task_fair()`, kernel/sched/fair.c (4.4, 5.0, 6.1, 6.12); features LAST_BUDDY, PICK_BUDDY and, off, NEXT_BUDDY.

use super::level::{LevelId, Member};
use super::{SchedPolicy, Scheduler, fair};
use crate::TaskId;
use units::CpuId;

/// The buddies of a level.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Buddies {
    pub(super) next: Option<Member>,
    pub(super) last: Option<Member>,
    pub(super) skip: Option<Member>,
}

impl Buddies {
    /// The member is no buddy any more.
    pub(super) fn clear(&mut self, member: Member) {
        for buddy in [&mut self.next, &mut self.last, &mut self.skip] {
            *buddy = buddy.filter(|buddy| *buddy != member);
        }
    }
}

impl Scheduler {
    /// A woken member takes the CPU from a task.
    pub(super) fn note_preemption(&mut self, at: LevelId, woken: Member, current: TaskId) {
        if self.params.policy == SchedPolicy::EarliestDeadline {
            return;
        }
        self.set_buddies(at, woken, |buddies, member| buddies.next = Some(member));
        // The woken one stands in the queue already, the current one does not.
        let members = self.level(at).queue.iter().count() as u64;
        if at == self.level_of(current) && members >= fair::TASKS_PER_PERIOD {
            self.set_buddies(at, Member::Task(current), |buddies, member| buddies.last = Some(member));
        }
    }

    /// A task of a group leaves it for a sleep while others stand there.
    pub(super) fn note_left_in_group(&mut self, group: LevelId) {
        if let Some((above, member)) = group.above() {
            self.set_buddies(above, member, |buddies, member| buddies.next = Some(member));
        }
    }

    /// The running task lets others go first.
    pub(super) fn note_yield(&mut self, task: TaskId) {
        let at = self.level_of(task);
        self.level_mut(at).buddies.clear(Member::Task(task));
        if self.params.policy == SchedPolicy::LeastRuntime {
            self.set_buddies(at, Member::Task(task), |buddies, member| buddies.skip = Some(member));
        }
    }

    /// Sets a buddy of a level, and the group's own in the level above (`for_each_sched_entity()`).
    fn set_buddies(&mut self, at: LevelId, member: Member, set: impl Fn(&mut Buddies, Member)) {
        let mut next = Some((at, member));
        while let Some((at, member)) = next {
            set(&mut self.level_mut(at).buddies, member);
            next = at.above();
        }
    }

    /// The buddy that goes before the first of its queue, if it is as close as that is fair.
    pub(super) fn buddy_instead_of(&self, at: LevelId, first: Member) -> Option<Member> {
        let Buddies { next, last, .. } = self.level(at).buddies;
        [next, last].into_iter().flatten().find(|buddy| self.is_close(at.cpu, *buddy, first))
    }

    /// Whether a member has not had more than another by more than a granularity (`wakeup_preempt_entity()`).
    pub(super) fn is_close(&self, cpu: CpuId, member: Member, first: Member) -> bool {
        let ahead = self.entity(cpu, member).vruntime - self.entity(cpu, first).vruntime;
        ahead <= self.wakeup_credit(cpu, first)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{CPU, MS, run, scheduler};
    use super::super::{CpuGroup, Leave, SchedParams};
    use super::*;
    use units::Nanos;

    #[test]
    fn who_preempts_runs_before_one_that_has_had_a_little_less() {
        // The second is too near behind the first to preempt it; the third, a granularity behind it later on, is not.
        for (third_had, then) in [(44 * MS / 10, 2), (53 * MS / 10, 1)] {
            let mut scheduler = scheduler(SchedParams::linux_4_20(1), &[5 * MS, 42 * MS / 10, third_had], 3);
            let mut now = Nanos::ZERO;
            assert_eq!(scheduler.wake(TaskId(0), now), None);
            assert_eq!(scheduler.dispatch(now), Some((CPU, TaskId(0))));
            assert_eq!(scheduler.wake(TaskId(1), now), None);
            run(&mut scheduler, &mut now, Nanos::micros(500), Leave::StaysRunnable);
            assert_eq!(scheduler.dispatch(now), Some((CPU, TaskId(0))), "no tick came");
            let preempts = scheduler.wake(TaskId(2), now).is_some();
            assert_eq!(preempts, then == 2);
            run(&mut scheduler, &mut now, Nanos(1), if preempts { Leave::StaysRunnable } else { Leave::GoesToSleep });
            assert_eq!(scheduler.dispatch(now), Some((CPU, TaskId(then))));
            assert_eq!(scheduler.level(LevelId::root(CPU)).buddies, Buddies::default(), "it is picked");
        }
    }

    #[test]
    fn from_eight_on_the_preempted_one_comes_back_after_a_sleeper() {
        for (tasks, then) in [(9, 0), (7, 1)] {
            // The last has had little; the others are within a granularity of each other.
            let had: Vec<i64> = (0..tasks).map(|task| if task + 1 == tasks { MS } else { 5 * MS - task / 2 }).collect();
            let mut scheduler = scheduler(SchedParams::linux_4_20(1), &had, 9);
            let (mut now, woken) = (Nanos::ZERO, TaskId(tasks as u32 - 1));
            (0..tasks as u32 - 1).for_each(|task| assert_eq!(scheduler.wake(TaskId(task), now), None));
            let (_, first) = scheduler.dispatch(now).expect("they want to run");
            assert_eq!(scheduler.wake(woken, now), Some(CPU));
            run(&mut scheduler, &mut now, Nanos::micros(500), Leave::StaysRunnable);
            assert_eq!(scheduler.dispatch(now), Some((CPU, woken)));
            run(&mut scheduler, &mut now, Nanos(1), Leave::GoesToSleep);
            let (_, after) = scheduler.dispatch(now).expect("they want to run");
            assert_eq!(after == first, then == 0, "{tasks} tasks");
        }
    }

    #[test]
    fn a_group_goes_on_when_one_of_its_tasks_sleeps() {
        // With deadlines a member is next until its slice is over.
        for (params, after) in [(SchedParams::linux_4_20(1), false), (SchedParams::linux_6_12(1), true)] {
            let mut scheduler = scheduler(params, &[0; 3], 1);
            let mut now = Nanos::ZERO;
            let [alone, one, other] = [0, 1, 2].map(TaskId);
            scheduler.wake(one, now);
            assert_eq!(scheduler.dispatch(now), Some((CPU, one)));
            for task in [other, alone] {
                scheduler.wake(task, now);
            }
            run(&mut scheduler, &mut now, Nanos(0), Leave::GoesToSleep);
            let group = Member::Group(CpuGroup(0));
            assert_eq!(scheduler.level(LevelId::root(CPU)).buddies.next, Some(group));
            assert_eq!(scheduler.dispatch(now), Some((CPU, other)));
            assert_eq!(scheduler.level(LevelId::root(CPU)).buddies.next, after.then_some(group), "it is picked");
        }
    }

    #[test]
    fn a_member_that_is_picked_or_sleeps_is_no_buddy() {
        let (one, other) = (Member::Task(TaskId(0)), Member::Task(TaskId(1)));
        let mut buddies = Buddies { next: Some(one), last: Some(other), skip: Some(one) };
        buddies.clear(one);
        assert_eq!(buddies, Buddies { last: Some(other), ..Buddies::default() });
    }
}
