//! Sleepers that owe time.
//!
//! **Rule.** With deadlines a member that goes to sleep with less due than it had stays in its queue, and weighs in the mean there, until it is picked,
//! which is when its debt is paid: then it leaves, owed nothing. If it is woken before, it goes on from where it stands; if its debt is
//! paid by then, it starts anew, owed nothing. A group whose last member leaves is such a sleeper, too. Who exits leaves at once.
//!
//! **Source.** `dequeue_entity()`, `requeue_delayed_entity()`, `pick_next_entity()`, `finish_delayed_dequeue_entity()`,
//! `ttwu_runnable()`, kernel/sched/fair.c and core.c (6.12); features DELAY_DEQUEUE and DELAY_ZERO.
//!
//! **Omitted.** A CPU that looks for work elsewhere does not take such a sleeper with it.

use super::level::{LevelId, Member};
use super::{SchedPolicy, Scheduler};
use units::Nanos;

impl Scheduler {
    /// Leaves a member that goes to sleep in its queue if it owes time; whether it does.
    pub(super) fn delays(&mut self, at: LevelId, member: Member, now: Nanos) -> bool {
        if self.params.policy != SchedPolicy::EarliestDeadline {
            return false;
        }
        self.slice_is_over(at, now);
        if self.eligible(at, now, self.entity(at.cpu, member).vruntime) {
            return false;
        }
        self.entity_mut(at.cpu, member).delayed = true;
        let level = self.level_mut(at);
        level.buddies.clear(member);
        if level.current == Some(member) {
            level.current = None;
            self.push(at, member);
        }
        true
    }

    /// A sleeper is picked: it leaves its queue.
    pub(super) fn finish_sleep(&mut self, at: LevelId, member: Member, now: Nanos) {
        self.remove(at, member, now);
        let entity = self.entity_mut(at.cpu, member);
        entity.delayed = false;
        entity.lag = entity.lag.min(0);
    }

    /// A sleeper is woken where it stands.
    pub(super) fn requeue(&mut self, at: LevelId, member: Member, now: Nanos) {
        let paid = self.virtual_now(at, now) > self.entity(at.cpu, member).vruntime;
        self.take(at, member);
        let entity = self.entity_mut(at.cpu, member);
        entity.delayed = false;
        if paid {
            entity.lag = 0;
            self.place_by_lag(at, member, now);
        }
        self.push(at, member);
    }

    /// A task comes to a group that stands in its queue; if the group slept there, it is woken.
    pub(super) fn requeue_group(&mut self, group: LevelId, now: Nanos) {
        if let Some((above, member)) = group.above()
            && self.entity(above.cpu, member).delayed
        {
            self.requeue(above, member, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{CPU, run, scheduler};
    use super::super::{CpuGroup, Leave, SchedParams};
    use super::*;
    use crate::TaskId;

    const ONE: TaskId = TaskId(0);
    const OTHER: TaskId = TaskId(1);

    /// Two tasks that want the CPU from the start; the first has had it for a millisecond when it leaves.
    fn after_one(leave: Leave) -> (Scheduler, Nanos) {
        let mut scheduler = scheduler(SchedParams::linux_6_12(1), &[0; 2], 2);
        let mut now = Nanos::ZERO;
        for task in [ONE, OTHER] {
            scheduler.wake(task, now);
        }
        assert_eq!(scheduler.dispatch(now), Some((CPU, ONE)));
        run(&mut scheduler, &mut now, Nanos::millis(1), leave);
        (scheduler, now)
    }

    fn member(task: TaskId) -> Member {
        Member::Task(task)
    }

    #[test]
    fn who_owes_time_leaves_when_it_is_picked() {
        let (mut scheduler, mut now) = after_one(Leave::GoesToSleep);
        assert!(scheduler.entity(CPU, member(ONE)).delayed);
        assert_eq!(scheduler.nr_running(CPU), 1, "it does not want to run");
        assert_eq!(scheduler.dispatch(now), Some((CPU, OTHER)));
        // The other has had three times as much when it sleeps: it owes time, too, and the first is owed a millisecond.
        run(&mut scheduler, &mut now, Nanos::millis(3), Leave::GoesToSleep);
        assert!(scheduler.entity(CPU, member(OTHER)).delayed);
        assert_eq!(scheduler.dispatch(now), None);
        for task in [ONE, OTHER] {
            let entity = scheduler.entity(CPU, member(task));
            assert!(!entity.delayed && entity.lag == 0, "{task:?} keeps nothing of what it is owed");
        }
        assert!(scheduler.level(LevelId::root(CPU)).is_empty());
    }

    #[test]
    fn who_is_woken_goes_on_where_it_stands_until_its_debt_is_paid() {
        // The mean is at half of what the other has had, and half of the first one's millisecond.
        for (had, stands_at) in [(200, 1000), (1000, 1000), (1500, 1500)] {
            let (mut scheduler, mut now) = after_one(Leave::GoesToSleep);
            assert_eq!(scheduler.dispatch(now), Some((CPU, OTHER)));
            run(&mut scheduler, &mut now, Nanos::micros(had), Leave::StaysRunnable);
            scheduler.wake(ONE, now);
            let entity = scheduler.entity(CPU, member(ONE));
            assert!(!entity.delayed);
            assert_eq!(entity.vruntime, stands_at * 1000, "the other has had {had} us");
            assert_eq!(scheduler.nr_running(CPU), 2);
        }
    }

    #[test]
    fn who_exits_leaves_at_once() {
        let (scheduler, _) = after_one(Leave::Exits);
        let queue = &scheduler.level(LevelId::root(CPU)).queue;
        assert_eq!(queue.iter().map(|queued| queued.member).collect::<Vec<_>>(), [member(OTHER)]);
    }

    #[test]
    fn a_group_that_owes_time_waits_for_its_task() {
        let group = Member::Group(CpuGroup(0));
        let mut scheduler = scheduler(SchedParams::linux_6_12(1), &[0; 2], 1);
        let mut now = Nanos::ZERO;
        scheduler.wake(ONE, now);
        scheduler.wake(OTHER, now);
        // A group that is new has the earlier deadline.
        assert_eq!(scheduler.dispatch(now), Some((CPU, OTHER)));
        run(&mut scheduler, &mut now, Nanos::millis(1), Leave::GoesToSleep);
        assert!(scheduler.level(LevelId { cpu: CPU, group: Some(CpuGroup(0)) }).is_empty());
        assert!(scheduler.entity(CPU, group).delayed);
        scheduler.wake(OTHER, now);
        assert!(!scheduler.entity(CPU, group).delayed);
        let queue = &scheduler.level(LevelId::root(CPU)).queue;
        assert_eq!(queue.iter().map(|queued| queued.member).collect::<Vec<_>>(), [member(ONE), group]);
    }
}
