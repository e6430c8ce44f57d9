//! Runnable members of a level, by virtual runtime.
//!
//! A sorted vector and no tree: queues are short, and it neither allocates nor chases pointers.

use super::level::Member;

/// A member in a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Queued {
    pub(super) vruntime: i64,
    pub(super) member: Member,
}

/// Least vruntime last, so that taking the first is a pop.
#[derive(Default)]
pub(super) struct RunQueue {
    descending: Vec<Queued>,
}

impl RunQueue {
    pub(super) fn is_empty(&self) -> bool {
        self.descending.is_empty()
    }

    /// The member of least vruntime.
    #[inline]
    pub(super) fn first(&self) -> Option<Queued> {
        self.descending.last().copied()
    }

    /// From least vruntime to greatest.
    pub(super) fn iter(&self) -> impl Iterator<Item = Queued> {
        self.descending.iter().rev().copied()
    }

    /// Behind those of equal vruntime.
    #[inline]
    pub(super) fn insert(&mut self, queued: Queued) {
        let place = self.descending.partition_point(|other| other.vruntime > queued.vruntime);
        self.descending.insert(place, queued);
    }

    /// Removes a member that is in the queue.
    #[inline]
    pub(super) fn remove(&mut self, member: Member) {
        let place = self.descending.iter().rposition(|queued| queued.member == member);
        self.descending.remove(place.expect("the member is in this queue"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TaskId;

    #[test]
    fn by_vruntime_and_in_order_of_arrival_among_equals() {
        let mut queue = RunQueue::default();
        let member = |task| Member::Task(TaskId(task));
        for (task, vruntime) in [(0, 5), (1, -3), (2, 5), (3, 0)] {
            queue.insert(Queued { vruntime, member: member(task) });
        }
        let order: Vec<Member> = queue.iter().map(|queued| queued.member).collect();
        assert_eq!(order, [1, 3, 0, 2].map(member));
        queue.remove(member(1));
        assert_eq!(queue.first().map(|queued| queued.member), Some(member(3)));
    }
}
