//! Runnable tasks of a CPU, by virtual runtime.
//!
//! A sorted vector and no tree: queues are short, and it neither allocates nor chases pointers.

use crate::TaskId;

/// A task in a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Queued {
    pub(super) vruntime: i64,
    pub(super) task: TaskId,
}

/// Least vruntime last, so that taking the first is a pop.
#[derive(Default)]
pub(super) struct RunQueue {
    descending: Vec<Queued>,
}

impl RunQueue {
    pub(super) fn len(&self) -> usize {
        self.descending.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.descending.is_empty()
    }

    /// The task of least vruntime.
    #[inline]
    pub(super) fn first(&self) -> Option<Queued> {
        self.descending.last().copied()
    }

    /// The one after it.
    pub(super) fn second(&self) -> Option<Queued> {
        self.descending.iter().nth_back(1).copied()
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

    /// Removes a task that is in the queue.
    #[inline]
    pub(super) fn remove(&mut self, task: TaskId) {
        let place = self.descending.iter().rposition(|queued| queued.task == task).expect("the task is in this queue");
        self.descending.remove(place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_vruntime_and_in_order_of_arrival_among_equals() {
        let mut queue = RunQueue::default();
        for (task, vruntime) in [(0, 5), (1, -3), (2, 5), (3, 0)] {
            queue.insert(Queued { vruntime, task: TaskId(task) });
        }
        let order: Vec<u32> = queue.iter().map(|queued| queued.task.0).collect();
        assert_eq!(order, [1, 3, 0, 2]);
        assert_eq!(queue.second().map(|queued| queued.task), Some(TaskId(3)));
        queue.remove(TaskId(3));
        assert_eq!(queue.second().map(|queued| queued.task), Some(TaskId(0)));
    }
}
