//! The event heap, ordered by (time, class, sequence).

use crate::TaskId;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use units::{CpuId, Nanos};

/// Events at equal times are handled in this order, and within a class in the order of scheduling.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Class {
    /// A device reports: interrupts come first.
    Device,
    /// A timer expires.
    Timer,
    /// The scheduler's own: ends of slices, wake-ups issued by a task.
    Task,
}

/// What happens at an instant.
pub(crate) enum Kind<E> {
    /// For [`crate::World::handle`].
    World(E),
    /// The timeout of the task's block number `block`; stale if the task has been woken since.
    Timeout { task: TaskId, block: u32 },
    /// A wake-up issued inside a slice reaches the task.
    Wake { task: TaskId },
    /// A section in which the task stalls for memory begins or ends.
    Memstall { task: TaskId, stalls: bool },
    /// The CPU is done with what its current slice charged.
    SliceEnd { cpu: CpuId },
}

struct Entry<E> {
    /// Time in the upper half; below it the class in the two top bits, and the sequence number: one comparison orders all three.
    key: u128,
    kind: Kind<E>,
}

impl<E> Entry<E> {
    #[inline]
    fn at(&self) -> Nanos {
        Nanos((self.key >> 64) as u64)
    }
}

impl<E> Ord for Entry<E> {
    /// Reversed: the standard heap keeps the greatest on top, this one needs the earliest.
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        other.key.cmp(&self.key)
    }
}

impl<E> PartialOrd for Entry<E> {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl<E> Eq for Entry<E> {}

/// Everything that is going to happen.
pub(crate) struct EventHeap<E> {
    heap: BinaryHeap<Entry<E>>,
    sequence: u64,
}

impl<E> EventHeap<E> {
    pub(crate) fn new() -> Self {
        EventHeap { heap: BinaryHeap::new(), sequence: 0 }
    }

    #[inline]
    pub(crate) fn push(&mut self, at: Nanos, class: Class, kind: Kind<E>) {
        let order = (class as u64) << 62 | self.sequence;
        self.sequence += 1;
        self.heap.push(Entry { key: u128::from(at.0) << 64 | u128::from(order), kind });
    }

    /// Time of the earliest event, and what it is.
    #[inline]
    pub(crate) fn peek(&self) -> Option<(Nanos, &Kind<E>)> {
        self.heap.peek().map(|entry| (entry.at(), &entry.kind))
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(Nanos, Kind<E>)> {
        self.heap.pop().map(|entry| (entry.at(), entry.kind))
    }

    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }

    /// Drops the events that `keep` refuses; the order of the others is untouched.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&Kind<E>) -> bool) {
        self.heap.retain(|entry| keep(&entry.kind));
    }
}
