//! Processes that work on the same part of the disk share a queue.
//!
//! Rule: where the queue that has its turn has nothing left, one whose next request lies within 4 MiB of the head gets the turn
//! instead of the disk's being kept idle, unless one of the two seeks. From their next request on the processes of the one queue with fewer of
//! them use the other. A shared queue that seeks when a turn of it ends is split: each process gets its own with its next request, but the last.
//! Source: `cfq_close_cooperator()`, `cfqq_close()`, `cfq_setup_merge()`, `cfq_merge_cfqqs()`, `split_cfqq()` (block/cfq-iosched.c, 2.6.39; 3.1 the same).
//! Abstracted: of the nearest requests before and behind the head the one behind is looked at first, where Linux begins with the one that its tree happens
//! to end at. A process that has ended still counts for its queue.

use super::Cfq;
use super::service::{ServiceQueue, ThinkTime};
use crate::queue::Request;
use crate::slab::{NIL, Slab};
use units::Nanos;

/// How near to the head a request is close: 4 MiB (`CFQQ_CLOSE_THR`).
const CLOSE_SECTORS: u64 = 8 * 1024;

/// A process as the disk sees it (`cfq_io_context`).
#[derive(Clone, Copy, Debug)]
pub(super) struct Process {
    /// Queue of what it waits for.
    pub(super) queue: u32,
    pub(super) think: ThinkTime,
}

/// What a queue has to do with others.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sharing {
    /// Processes that use it, or will from their next request on (`cfqq_process_refs()`).
    processes: u32,
    /// The queue that its processes use from their next request on (`new_cfqq`).
    merges_into: Option<u32>,
    /// Several processes have used it (`coop`).
    shared: bool,
    /// It is to be split (`split_coop`).
    splits: bool,
}

impl Cfq {
    /// A process of a context; it gets a queue with its first request.
    pub(super) fn process_of(&mut self, context: u32, now: Nanos) -> u32 {
        if let Some(process) = self.by_context.get(&context) {
            return *process;
        }
        let queue = self.add_queue();
        self.processes.push(Process { queue, think: ThinkTime::new(now) });
        let process = self.processes.len() as u32 - 1;
        self.by_context.insert(context, process);
        process
    }

    /// A queue for one process, in the place of one that nobody uses any more if there is one.
    fn add_queue(&mut self) -> u32 {
        let mut queue = ServiceQueue::new(&self.spec, true);
        queue.sharing.processes = 1;
        let is_unused = |queue: &ServiceQueue| queue.sync && queue.sharing.processes == 0 && queue.is_idle();
        match self.queues.iter().position(is_unused) {
            Some(place) => {
                self.queues[place] = queue;
                place as u32
            }
            None => {
                self.queues.push(queue);
                self.queues.len() as u32 - 1
            }
        }
    }

    /// The queue that a process's next synchronous request goes to: its own, one that it shares from now on, or does not any more
    /// (`cfq_set_request()`).
    pub(super) fn queue_for(&mut self, process: u32) -> u32 {
        let own = self.processes[process as usize].queue;
        let queue = if self.leaves_shared(own) { self.add_queue() } else { self.follow_merge(own) };
        self.processes[process as usize].queue = queue;
        queue
    }

    /// Whether a process that uses this queue no longer does, since it is split (`split_cfqq()`).
    fn leaves_shared(&mut self, queue: u32) -> bool {
        let sharing = &mut self.at_mut(queue).sharing;
        if !(sharing.shared && sharing.splits) {
            return false;
        }
        if sharing.processes == 1 {
            (sharing.shared, sharing.splits) = (false, false);
            return false;
        }
        let mut left = Some(queue);
        while let Some(queue) = left {
            let sharing = &mut self.at_mut(queue).sharing;
            sharing.processes -= 1;
            left = sharing.merges_into;
        }
        true
    }

    /// The queue that a process uses from now on that used this one (`cfq_merge_cfqqs()`).
    fn follow_merge(&mut self, queue: u32) -> u32 {
        let Some(into) = self.at(queue).sharing.merges_into else { return queue };
        self.at_mut(queue).sharing.processes -= 1;
        self.at_mut(into).sharing.shared = true;
        into
    }

    /// Whether a request that begins at a sector is near to the head (`cfq_rq_close()`).
    pub(super) fn is_close(&self, sector: u64) -> bool {
        sector.abs_diff(self.head) <= CLOSE_SECTORS
    }

    /// The queue that gets the turn of one that has nothing left.
    pub(super) fn cooperator(&self, requests: &Slab<Request>, queue: u32) -> Option<u32> {
        let cooperates = |queue: u32| self.at(queue).sync && !self.at(queue).is_seeky();
        if !cooperates(queue) || self.busy.len() == 1 {
            return None;
        }
        let others = || self.busy.iter().filter(|other| **other != queue && self.at(**other).next != NIL);
        let sectors = || others().map(|other| (requests[self.at(*other).next].sector, *other));
        let behind = sectors().filter(|(sector, _)| *sector >= self.head).min();
        let before = sectors().filter(|(sector, _)| *sector < self.head).max();
        let is_close = |(sector, _): &(u64, u32)| self.is_close(*sector);
        let (_, near) = behind.filter(is_close).or(before.filter(is_close))?;
        cooperates(near).then_some(near)
    }

    /// The processes of two queues share one from now on, that of more processes.
    pub(super) fn set_up_merge(&mut self, queue: u32, with: u32) {
        if self.at(queue).sharing.merges_into.is_some() {
            return;
        }
        let mut last = with;
        while let Some(next) = self.at(last).sharing.merges_into {
            if next == queue {
                return;
            }
            last = next;
        }
        let [own, others] = [queue, last].map(|queue| self.at(queue).sharing.processes);
        if own == 0 || others == 0 {
            return;
        }
        let (from, into) = if others >= own { (queue, last) } else { (last, queue) };
        self.at_mut(into).sharing.processes += self.at(from).sharing.processes;
        self.at_mut(from).sharing.merges_into = Some(into);
    }

    /// A turn of a queue ends: one that is shared, and seeks, is to be split.
    pub(super) fn note_split(&mut self, queue: u32) {
        let entry = self.at_mut(queue);
        entry.sharing.splits |= entry.sharing.shared && entry.is_seeky();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::CfqSpec;

    #[test]
    fn two_processes_share_and_part_again_and_again_with_two_queues() {
        let mut cfq = Cfq::new(&CfqSpec::default(), 1, true);
        let [one, two] = [1, 2].map(|context| cfq.process_of(context, Nanos::ZERO));
        for _ in 0..10 {
            let [from, into] = [one, two].map(|process| cfq.queue_for(process));
            assert_ne!(from, into);
            cfq.set_up_merge(from, into);
            assert_eq!([one, two].map(|process| cfq.queue_for(process)), [into; 2]);
            assert_eq!(cfq.at(into).sharing.processes, 2);
            cfq.at_mut(into).sharing.splits = true;
            assert_ne!(cfq.queue_for(one), into);
            assert_eq!(cfq.queue_for(two), into, "the last keeps it");
        }
        assert_eq!(cfq.queues.len(), 3, "with that of the writes");
    }

    #[test]
    fn a_queue_merges_into_the_end_of_a_chain_and_never_into_itself() {
        let mut cfq = Cfq::new(&CfqSpec::default(), 1, true);
        let processes = [1, 2, 3].map(|context| cfq.process_of(context, Nanos::ZERO));
        let [a, b, c] = processes.map(|process| cfq.queue_for(process));
        cfq.set_up_merge(a, b);
        cfq.set_up_merge(b, a);
        assert_eq!(cfq.at(b).sharing.merges_into, None, "a goes there already");
        // b stands for two processes, c for one.
        cfq.set_up_merge(c, a);
        assert_eq!((cfq.at(c).sharing.merges_into, cfq.at(b).sharing.processes), (Some(b), 3));
        assert_eq!(processes.map(|process| cfq.queue_for(process)), [b; 3]);
    }
}
