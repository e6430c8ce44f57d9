//! CFQ: the disk's time is shared out among processes, reads before writes.
//!
//! **Rule.** What a process waits for (reads, synchronous writes) is in a queue of its own, all asynchronous writes are in
//! one. Queues take turns of 100 ms (asynchronous: 40 ms and at most 16 requests while others wait), shorter if they are
//! many. Who is likely to send another request within 8 ms is waited for: its slice goes on while the disk is idle, unless another's request is near ([`cooperators`]). A
//! synchronous request takes the turn of the asynchronous queue at once, metadata that of other requests. Writes wait
//! until no synchronous request is in the device, and synchronous ones that are waited for until no write is. A queue has at
//! most 4 requests in the device while others wait, 8 early in its turn; after a read that took 125 ms the depth of writes
//! begins again at one and grows by one each 100 ms.
//! **Source.** block/cfq-iosched.c, 2.6.39: `cfq_select_queue()`, `choose_service_tree()`, `cfq_may_dispatch()`,
//! `cfq_arm_slice_timer()`, `cfq_should_preempt()`, `cfq_completed_request()`. It was the default until 4.20.
//! **Abstracted.** Time is not counted in ticks (one of 4 ms where a slice ends "in a tick"); whether the device queues commands
//! is known from its depth; a process that has ended is waited for once; a request of one page ends the disk's idling like any other.
//! **Omitted.** Priorities and classes of processes, groups.

mod choice;
mod cooperators;
mod service;
mod spec;

use std::collections::BTreeMap;

use super::sorted::Sorted;
use super::{Request, Side};
use crate::slab::Slab;
use cooperators::Process;
use service::{ServiceQueue, Slice, Workload};
pub use spec::CfqSpec;
use units::Nanos;

/// The queue of asynchronous writes.
const ASYNC: u32 = 0;
/// A jiffy with HZ=250.
const TICK: Nanos = Nanos::millis(4);
/// Commands in a device from which on it is taken to queue them (`CFQ_HW_QUEUE_MIN`).
const HW_QUEUE_MIN: u32 = 5;

/// The scheduler of one device.
#[derive(Clone, Debug)]
pub(super) struct Cfq {
    spec: CfqSpec,
    /// Seeks cost nothing, and the device queues commands: it is never kept idle.
    never_idle: bool,
    queues: Vec<ServiceQueue>,
    processes: Vec<Process>,
    /// Of which context each of them is.
    by_context: BTreeMap<u32, u32>,
    /// Queues that wait for their turn or have it, in the order in which they came.
    busy: Vec<u32>,
    active: Option<u32>,
    /// The process that was served first in this turn.
    active_think: Option<u32>,
    serving: Workload,
    serving_until: Option<Nanos>,
    /// Mean number of busy queues, which follows a rise at once.
    busy_mean: u32,
    /// When the disk is no longer kept idle.
    idle_until: Option<Nanos>,
    queued: u32,
    /// In the device, asynchronous and synchronous.
    in_flight: [u32; 2],
    /// Behind the last request that went to the device.
    head: u64,
    /// End of the last synchronous request that was late.
    late_sync: Option<Nanos>,
}

impl Cfq {
    /// For a device that takes `depth` commands, and for which seeks cost time or not.
    pub(super) fn new(spec: &CfqSpec, depth: u32, seeks: bool) -> Cfq {
        Cfq {
            spec: spec.clone(),
            never_idle: !seeks && depth >= HW_QUEUE_MIN,
            queues: vec![ServiceQueue::new(spec, false)],
            processes: Vec::new(),
            by_context: BTreeMap::new(),
            busy: Vec::new(),
            active: None,
            active_think: None,
            serving: Workload::Async,
            serving_until: None,
            busy_mean: 0,
            idle_until: None,
            queued: 0,
            in_flight: [0; 2],
            head: 0,
            late_sync: None,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queued == 0
    }

    /// When the disk has been idle for long enough.
    pub(super) fn next_event(&self) -> Option<Nanos> {
        self.idle_until
    }

    fn at(&self, queue: u32) -> &ServiceQueue {
        &self.queues[queue as usize]
    }

    fn at_mut(&mut self, queue: u32) -> &mut ServiceQueue {
        &mut self.queues[queue as usize]
    }

    /// The requests that one could join: those of its own queue.
    pub(super) fn like(&self, request: &Request) -> Option<&Sorted> {
        if !request.sync {
            return Some(&self.at(ASYNC).requests);
        }
        let process = self.by_context.get(&request.context)?;
        Some(&self.at(self.processes[*process as usize].queue).requests)
    }

    /// Adds a request (`cfq_insert_request()`).
    pub(super) fn insert(&mut self, requests: &mut Slab<Request>, slot: u32, now: Nanos) {
        let Request { sync, context, meta, .. } = requests[slot];
        let process = self.process_of(context, now);
        let queue = if sync { self.queue_for(process) } else { ASYNC };
        requests[slot].queue = queue;
        let (head, idle) = (self.head, self.spec.slice_idle());
        self.at_mut(queue).requests.insert(requests, slot, now);
        if self.at(queue).tree.is_none() {
            self.busy.push(queue);
            self.sort_in(queue, false, now);
        }
        self.queued += 1;
        let think = &mut self.processes[process as usize].think;
        think.note(now, idle);
        let mean = think.mean();
        let entry = self.at_mut(queue);
        entry.consider(requests, slot, head);
        entry.meta += u32::from(meta);
        entry.note_seek(&requests[slot]);
        entry.update_idle_window(requests, idle, mean);
        if self.active == Some(queue) {
            self.idle_until = None;
        } else if self.should_preempt(queue, &requests[slot], now) {
            self.preempt(queue, now);
        }
    }

    /// Takes the request that goes to the device next, if one may (`cfq_dispatch_requests()`).
    pub(super) fn pop(&mut self, requests: &mut Slab<Request>, now: Nanos) -> Option<u32> {
        let queue = self.select(requests, now)?;
        if !self.may_dispatch(queue, now) {
            return None;
        }
        let slice_checked = std::mem::replace(&mut self.at_mut(queue).slice.fifo_checked, true);
        let late = if slice_checked { None } else { self.at(queue).requests.expired(requests, now) };
        let slot = late.unwrap_or(self.at(queue).next);
        self.take_out(requests, queue, slot);
        let request = requests[slot];
        self.head = request.end();
        self.in_flight[usize::from(request.sync)] += 1;
        if self.active_think.is_none() {
            self.active_think = self.by_context.get(&request.context).copied();
        }
        let entry = self.at_mut(queue);
        entry.in_flight += 1;
        entry.slice.dispatched += 1;
        let used_up = !entry.sync && entry.slice.dispatched >= self.spec.async_requests_max();
        if used_up && self.busy.len() > 1 {
            self.at_mut(queue).slice.end = now + TICK;
            self.expire(queue, false, now);
        }
        Some(slot)
    }

    /// A request leaves its queue.
    fn take_out(&mut self, requests: &mut Slab<Request>, queue: u32, slot: u32) {
        let meta = requests[slot].meta;
        let entry = self.at_mut(queue);
        entry.next = entry.following(requests, slot);
        entry.requests.remove(requests, slot);
        entry.meta -= u32::from(meta);
        self.queued -= 1;
    }

    /// The device is done with a request (`cfq_completed_request()`).
    pub(super) fn completed(&mut self, requests: &Slab<Request>, request: &Request, now: Nanos) {
        let queue = request.queue;
        self.in_flight[usize::from(request.sync)] -= 1;
        self.at_mut(queue).in_flight -= 1;
        if request.sync {
            let process = self.process_of(request.context, now);
            self.processes[process as usize].think.last_end = now;
            if request.started + self.spec.fifo_expire(true) <= now {
                self.late_sync = Some(now);
            }
        }
        if self.active != Some(queue) {
            return;
        }
        if self.at(queue).slice.new {
            let length = self.slice_of(queue);
            let slice = &mut self.at_mut(queue).slice;
            *slice = Slice { new: false, start: now, end: now + length, ..*slice };
        }
        if self.should_wait_busy(queue, now) {
            let end = now + self.spec.slice_idle();
            let slice = &mut self.at_mut(queue).slice;
            (slice.end, slice.wait_busy) = (end, true);
        }
        if self.at(queue).slice.is_used(now) {
            self.expire(queue, true, now);
        } else if request.sync && self.at(queue).requests.is_empty() && self.cooperator(requests, queue).is_none() {
            self.begin_to_idle(queue, now);
        }
    }

    /// Time has passed: perhaps the disk was kept idle for long enough (`cfq_idle_slice_timer()`).
    pub(super) fn tick(&mut self, now: Nanos) {
        if self.idle_until.is_none_or(|until| until > now) {
            return;
        }
        self.idle_until = None;
        let Some(queue) = self.active else { return };
        let used = self.at(queue).slice.is_used(now);
        if used || self.at(queue).requests.is_empty() {
            self.at_mut(queue).deep &= used;
            self.expire(queue, false, now);
        }
    }

    /// `slot` begins earlier than at `before`, since something was put in front of it.
    pub(super) fn moved(&mut self, requests: &Slab<Request>, slot: u32, before: u64) {
        let head = self.head;
        let entry = self.at_mut(requests[slot].queue);
        entry.requests.moved(requests, slot, before);
        entry.consider(requests, slot, head);
    }

    /// `slot` and its neighbour on `side`, in sector order.
    pub(super) fn neighbours(&self, requests: &Slab<Request>, slot: u32, side: Side) -> Option<(u32, u32)> {
        self.at(requests[slot].queue).requests.neighbours(requests, slot, side)
    }

    /// Takes `second` out, which joins `first`.
    pub(super) fn absorb(&mut self, requests: &mut Slab<Request>, first: u32, second: u32) {
        let meta = requests[second].meta;
        let entry = self.at_mut(requests[first].queue);
        entry.requests.absorb(requests, first, second);
        if entry.next == second {
            entry.next = first;
        }
        entry.meta -= u32::from(meta);
        self.queued -= 1;
    }
}
