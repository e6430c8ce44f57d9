//! Wait queues: FIFO lists of task ids, threaded through one table so that no operation allocates.

use crate::TaskId;

/// A wait queue (`wait_queue_head_t`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct WaitQueueId(pub u32);

#[derive(Clone, Copy, Default)]
struct Queue {
    head: Option<TaskId>,
    tail: Option<TaskId>,
}

/// A task's place in the queue it waits on.
#[derive(Clone, Copy, Default)]
struct Link {
    queue: Option<WaitQueueId>,
    prev: Option<TaskId>,
    next: Option<TaskId>,
}

/// All wait queues. A task waits on at most one.
#[derive(Default)]
pub(crate) struct WaitQueues {
    queues: Vec<Queue>,
    /// Queues given back, for reuse.
    unused: Vec<WaitQueueId>,
    /// Indexed by task.
    links: Vec<Link>,
}

impl WaitQueues {
    pub(crate) fn new_queue(&mut self) -> WaitQueueId {
        if let Some(id) = self.unused.pop() {
            return id;
        }
        self.queues.push(Queue::default());
        WaitQueueId((self.queues.len() - 1) as u32)
    }

    /// Gives an empty queue back; its id may be handed out again.
    pub(crate) fn free_queue(&mut self, id: WaitQueueId) {
        assert!(self.is_empty(id), "a freed wait queue has no waiters");
        self.unused.push(id);
    }

    /// Makes room for one task more.
    pub(crate) fn add_task(&mut self) {
        self.links.push(Link::default());
    }

    #[inline]
    pub(crate) fn is_empty(&self, id: WaitQueueId) -> bool {
        self.queues[id.0 as usize].head.is_none()
    }

    /// The task that has waited longest.
    #[inline]
    pub(crate) fn first(&self, id: WaitQueueId) -> Option<TaskId> {
        self.queues[id.0 as usize].head
    }

    pub(crate) fn push(&mut self, id: WaitQueueId, task: TaskId) {
        let queue = &mut self.queues[id.0 as usize];
        let link = &mut self.links[task.index()];
        assert!(link.queue.is_none(), "a task waits on one queue at a time");
        *link = Link { queue: Some(id), prev: queue.tail, next: None };
        match queue.tail.replace(task) {
            Some(last) => self.links[last.index()].next = Some(task),
            None => queue.head = Some(task),
        }
    }

    /// Takes the task off the queue it waits on, if any.
    #[inline]
    pub(crate) fn remove(&mut self, task: TaskId) {
        let link = std::mem::take(&mut self.links[task.index()]);
        let Some(id) = link.queue else { return };
        let queue = &mut self.queues[id.0 as usize];
        match link.prev {
            Some(prev) => self.links[prev.index()].next = link.next,
            None => queue.head = link.next,
        }
        match link.next {
            Some(next) => self.links[next.index()].prev = link.prev,
            None => queue.tail = link.prev,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(queues: &mut WaitQueues, id: WaitQueueId) -> Vec<u32> {
        std::iter::from_fn(|| {
            let task = queues.first(id)?;
            queues.remove(task);
            Some(task.0)
        })
        .collect()
    }

    #[test]
    fn fifo_with_removal_at_head_middle_and_tail() {
        for (removed, left) in [(0, [1, 2, 3]), (1, [0, 2, 3]), (2, [0, 1, 3]), (3, [0, 1, 2])] {
            let mut queues = WaitQueues::default();
            let id = queues.new_queue();
            for task in 0..4 {
                queues.add_task();
                queues.push(id, TaskId(task));
            }
            queues.remove(TaskId(removed));
            assert_eq!(drain(&mut queues, id), left);
            assert!(queues.is_empty(id));
        }
    }

    #[test]
    fn a_freed_queue_is_reused() {
        let mut queues = WaitQueues::default();
        let id = queues.new_queue();
        queues.free_queue(id);
        assert_eq!(queues.new_queue(), id);
    }
}
