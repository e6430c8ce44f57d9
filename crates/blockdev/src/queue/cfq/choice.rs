//! Whose turn it is, and how long.

use super::service::{Slice, Workload};
use super::{ASYNC, Cfq};
use crate::queue::Request;
use crate::slab::{NIL, Slab};
use units::Nanos;

/// All queues have had a turn after this time (`cfq_target_latency`).
const TARGET_LATENCY: Nanos = Nanos::millis(300);
/// Shortest turn of a tree (`CFQ_MIN_TT`, 2 ticks).
const TREE_SLICE_MIN: Nanos = Nanos::millis(8);
/// A second, by which who takes a turn comes before the first.
const FRONT: i64 = 1_000_000_000;

/// What becomes of a turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Turn {
    GoesOn,
    /// Nothing is dispatched until the queue's next request, or what is in the device is done.
    Waits,
    IsOver,
    /// Another queue gets it.
    Passes(u32),
}

impl Cfq {
    /// Puts a busy queue where it belongs: behind all others by what they may take first, and at the front if it takes the
    /// turn (`cfq_service_tree_add()`).
    pub(super) fn sort_in(&mut self, queue: u32, front: bool, now: Nanos) {
        let tree = self.at(queue).workload();
        self.busy.retain(|other| *other != queue);
        let key = if front {
            self.first_of(tree).map_or(now.0 as i64, |first| self.at(first).key) - FRONT
        } else {
            // Highest priority: 9/5 of the slice of the middle one.
            let most = self.spec.slice(true).0 / 5 * 9;
            let others = self.busy.len() as u64;
            let offset = others * most.saturating_sub(self.spec.slice(self.at(queue).sync).0);
            (now.0 + offset) as i64 - std::mem::take(&mut self.at_mut(queue).residue)
        };
        self.busy.push(queue);
        let entry = self.at_mut(queue);
        (entry.tree, entry.key) = (Some(tree), key);
    }

    /// First queue of a tree.
    fn first_of(&self, tree: Workload) -> Option<u32> {
        let members = self.busy.iter().filter(|queue| self.at(**queue).tree == Some(tree));
        members.min_by_key(|queue| self.at(**queue).key).copied()
    }

    fn count_of(&self, tree: Workload) -> usize {
        self.busy.iter().filter(|queue| self.at(**queue).tree == Some(tree)).count()
    }

    /// Length of a queue's turn: less than the nominal one if so many are busy that they would have to wait for too long
    /// (`cfq_scaled_cfqq_slice()`).
    pub(super) fn slice_of(&mut self, queue: u32) -> Nanos {
        let slice = self.spec.slice(self.at(queue).sync).0;
        if !self.spec.low_latency {
            return Nanos(slice);
        }
        let busy = self.busy.len() as u32;
        let (least, most) = (busy.min(self.busy_mean), busy.max(self.busy_mean));
        self.busy_mean = (3 * most + least + 2) / 4;
        let sync_slice = self.spec.slice(true).0;
        let expected = sync_slice * u64::from(self.busy_mean);
        if expected <= TARGET_LATENCY.0 {
            return Nanos(slice);
        }
        let low = slice.min(2 * self.spec.slice_idle().0 * slice / sync_slice);
        Nanos((slice * TARGET_LATENCY.0 / expected).max(low))
    }

    /// Whether the disk is kept idle for the next request of a queue (`cfq_should_idle()`).
    fn should_idle(&self, queue: u32) -> bool {
        let entry = self.at(queue);
        let Some(tree) = entry.tree else { return false };
        if self.spec.slice_idle_ms == 0 {
            return false;
        }
        entry.idle_window && !self.never_idle || entry.sync && self.count_of(tree) == 1
    }

    /// Keeps the disk idle for the active queue's next request, if that is worth it (`cfq_arm_slice_timer()`).
    pub(super) fn begin_to_idle(&mut self, queue: u32, now: Nanos) {
        let entry = self.at(queue);
        let alone = self.busy.len() == 1;
        if self.never_idle || entry.in_flight > 0 || !self.should_idle(queue) && !alone {
            return;
        }
        let think = self.active_think.and_then(|process| self.processes[process as usize].think.mean());
        if think.is_some_and(|mean| entry.slice.left(now) < mean) {
            return;
        }
        self.idle_until = Some(now + self.spec.slice_idle());
    }

    /// Whether a queue that is alone keeps its turn until its next request, since its time would be over by then
    /// (`cfq_should_wait_busy()`).
    pub(super) fn should_wait_busy(&self, queue: u32, now: Nanos) -> bool {
        let entry = self.at(queue);
        if !entry.requests.is_empty() || self.busy.len() > 1 {
            return false;
        }
        let think = self.active_think.and_then(|process| self.processes[process as usize].think.mean());
        entry.slice.is_used(now)
            || think.is_some_and(|mean| entry.slice.left(now) < mean)
            || entry.slice.left(now) <= super::TICK
    }

    /// The queue that has its turn, or gets it; none while the disk is kept idle (`cfq_select_queue()`).
    pub(super) fn select(&mut self, requests: &Slab<Request>, now: Nanos) -> Option<u32> {
        if self.queued == 0 {
            return None;
        }
        if let Some(queue) = self.active {
            match self.turn(requests, queue, now) {
                Turn::GoesOn => return Some(queue),
                Turn::Waits => return None,
                Turn::IsOver => self.expire(queue, false, now),
                Turn::Passes(to) => {
                    self.set_up_merge(queue, to);
                    self.expire(queue, false, now);
                    return Some(self.activate(to));
                }
            }
        }
        self.choose_tree(now);
        let queue = self.first_of(self.serving)?;
        Some(self.activate(queue))
    }

    /// The turn of a queue begins (`cfq_set_active_queue()`).
    fn activate(&mut self, queue: u32) -> u32 {
        self.idle_until = None;
        self.at_mut(queue).slice = Slice { new: true, ..Slice::default() };
        self.active = Some(queue);
        queue
    }

    /// What becomes of the active queue's turn.
    fn turn(&mut self, requests: &Slab<Request>, queue: u32, now: Nanos) -> Turn {
        let entry = self.at(queue);
        let (empty, in_flight) = (entry.requests.is_empty(), entry.in_flight > 0);
        let alone = self.busy.len() == 1 && self.in_flight != [0; 2];
        if !empty && entry.slice.wait_busy {
            return Turn::IsOver;
        }
        if entry.slice.is_used(now) {
            return if alone { Turn::Waits } else { Turn::IsOver };
        }
        if !empty {
            return Turn::GoesOn;
        }
        if let Some(near) = self.cooperator(requests, queue) {
            return Turn::Passes(near);
        }
        if self.idle_until.is_some() {
            return Turn::Waits;
        }
        let early = entry.slice.new || entry.slice.left(now) > now.since(entry.slice.start);
        if entry.is_seeky() && entry.idle_window && early {
            let entry = self.at_mut(queue);
            (entry.deep, entry.idle_window) = (false, false);
        }
        if in_flight && self.should_idle(queue) || alone { Turn::Waits } else { Turn::IsOver }
    }

    /// Which tree is served: the same one until its time is over, then the one whose first queue comes first
    /// (`choose_service_tree()`).
    fn choose_tree(&mut self, now: Nanos) {
        if self.serving_until.is_some_and(|until| now <= until) && self.count_of(self.serving) > 0 {
            return;
        }
        let firsts =
            [Workload::Async, Workload::SyncNoIdle, Workload::Sync].into_iter().filter_map(|t| self.first_of(t));
        let Some(first) = firsts.min_by_key(|queue| self.at(*queue).key) else { return };
        self.serving = self.at(first).tree.expect("it is in a tree");
        let (busy, count) = (self.busy.len() as u64, self.count_of(self.serving) as u64);
        let mut slice = TARGET_LATENCY.0 * count / busy.max(u64::from(self.busy_mean));
        if self.serving == Workload::Async {
            slice = slice.min(TARGET_LATENCY.0 * count / busy) * self.spec.slice(false).0 / self.spec.slice(true).0;
        } else {
            slice = slice.max(2 * self.spec.slice_idle().0);
        }
        self.serving_until = Some(now + Nanos(slice).max(TREE_SLICE_MIN));
    }

    /// A queue's turn is over; what was left of it counts the next time if it ended early (`__cfq_slice_expired()`).
    pub(super) fn expire(&mut self, queue: u32, ended_early: bool, now: Nanos) {
        if ended_early {
            let residue = match self.at(queue).slice {
                Slice { new: true, .. } => self.slice_of(queue).0 as i64,
                Slice { end, .. } => end.0 as i64 - now.0 as i64,
            };
            self.at_mut(queue).residue = residue;
        }
        self.at_mut(queue).slice.wait_busy = false;
        self.note_split(queue);
        if self.at(queue).requests.is_empty() {
            self.busy.retain(|other| *other != queue);
            self.at_mut(queue).tree = None;
            if self.busy.is_empty() {
                self.serving_until = None;
            }
        } else {
            self.sort_in(queue, false, now);
        }
        if self.active == Some(queue) {
            self.idle_until = None;
            self.active = None;
        }
        self.active_think = None;
    }

    /// Whether a request takes the turn of the active queue, which is not its own (`cfq_should_preempt()`).
    pub(super) fn should_preempt(&self, queue: u32, request: &Request, now: Nanos) -> bool {
        let Some(active) = self.active else { return false };
        let (new, active_queue) = (self.at(queue), self.at(active));
        if request.sync && !active_queue.sync {
            return true;
        }
        if active_queue.slice.is_used(now) {
            return true;
        }
        let idle = active_queue.requests.is_empty();
        let beside = self.serving == Workload::SyncNoIdle
            && new.workload() == Workload::SyncNoIdle
            && self.count_of(Workload::SyncNoIdle) == 2;
        let near = self.idle_until.is_some() && self.is_close(request.sector);
        beside && idle || request.meta && active_queue.meta == 0 || idle && !self.should_idle(active) || near
    }

    /// The queue takes the turn of the active one (`cfq_preempt_queue()`).
    pub(super) fn preempt(&mut self, queue: u32, now: Nanos) {
        let active = self.active.expect("there is one");
        let other_tree = self.at(active).workload() != self.at(queue).workload();
        self.expire(active, true, now);
        if other_tree {
            self.serving_until = None;
        }
        self.sort_in(queue, true, now);
    }

    /// Whether a queue may have another request in the device (`cfq_may_dispatch()`).
    pub(super) fn may_dispatch(&self, queue: u32, now: Nanos) -> bool {
        let entry = self.at(queue);
        debug_assert!(entry.next != NIL);
        let [writes, syncs] = self.in_flight;
        if self.should_idle(queue) && writes > 0 || queue == ASYNC && syncs > 0 {
            return false;
        }
        let mut most = (self.spec.quantum / 2).max(1);
        if entry.in_flight >= most {
            let syncs_busy = self.busy.iter().filter(|other| self.at(**other).sync).count();
            let only_sync = entry.sync && syncs_busy == 1;
            let ends_soon =
                entry.slice.new || now + Nanos(self.spec.slice_idle().0 * u64::from(entry.in_flight)) > entry.slice.end;
            if self.busy.len() > 1 && ends_soon && !only_sync {
                return false;
            }
            most = if self.busy.len() == 1 || only_sync { u32::MAX } else { self.spec.quantum };
        }
        if queue == ASYNC
            && self.spec.low_latency
            && let Some(late) = self.late_sync
        {
            let depth = (now.since(late).0 / self.spec.slice(true).0) as u32;
            most = most.min(if depth == 0 && entry.in_flight == 0 { 1 } else { depth });
        }
        entry.in_flight < most
    }
}
