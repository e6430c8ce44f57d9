//! One device: queue, throttle, faults and medium.
//!
//! **Rule.** At each instant: what the medium finished completes, what the throttle lets go enters the medium, then
//! requests are dispatched while the device has a free command. A flush of a device that cannot queue it waits for the
//! commands in the device, and holds the others back.
//! **Source.** `blk_mq_dispatch_rq_list()`, block/blk-mq.c; `ata_std_qc_defer()`, drivers/ata/libata-core.c (6.12).

use crate::bio::{Bio, Completion, IoError, Op, SECTOR_SIZE};
use crate::device::Room;
use crate::fault::{Fault, Faults};
use crate::model::{Command, Finished, Model, Traits};
use crate::queue::{Added, Batch, Congestion, Part, Queue, QueueSpec, Request, SchedulerSpec, Wakes};
use crate::slab::{NIL, Slab};
use crate::spec::DeviceSpec;
use crate::stats::{Accounting, DeviceStats};
use crate::throttle::Throttle;
use units::Nanos;

/// A bio under way.
#[derive(Clone, Copy, Debug)]
struct BioState {
    id: u64,
    submitted: Nanos,
    parts_left: u32,
    failed: bool,
}

/// A device with a medium of its own.
#[derive(Clone, Debug)]
pub(crate) struct Disk {
    now: Nanos,
    capacity_sectors: u64,
    bios: Slab<BioState>,
    queue: Queue,
    congestion: Option<Congestion>,
    throttle: Option<Throttle>,
    model: Model,
    faults: Faults,
    accounting: Accounting,
    depth: u32,
    flush_alone: bool,
    in_flight: u32,
    flush_in_flight: bool,
    /// When submitted bios are to be dispatched: the end of their plug.
    unplug_at: Option<Nanos>,
    /// When something happens inside; [`Nanos::MAX`] for never.
    next: Nanos,
    finished: Vec<Finished>,
    /// Completions that nobody has taken yet.
    done: Vec<Completion>,
}

impl Disk {
    /// `spec` and `queue` are valid; `None` for a RAID.
    pub(crate) fn new(spec: &DeviceSpec, queue: &QueueSpec, seed: u64) -> Option<Disk> {
        let traits = Traits::of(spec)?;
        Some(Disk {
            now: Nanos::ZERO,
            capacity_sectors: spec.capacity().0 / SECTOR_SIZE,
            bios: Slab::new(),
            queue: Queue::new(queue, &traits),
            congestion: (!traits.bio_based)
                .then(|| Congestion::new(queue.nr_requests, queue.scheduler != SchedulerSpec::Cfq)),
            throttle: traits.throttle.as_ref().map(Throttle::new),
            model: Model::new(spec, seed)?,
            faults: Faults::default(),
            accounting: Accounting::default(),
            depth: traits.depth,
            flush_alone: traits.flush_alone,
            in_flight: 0,
            flush_in_flight: false,
            unplug_at: None,
            next: Nanos::MAX,
            finished: Vec::new(),
            done: Vec::new(),
        })
    }

    pub(crate) fn capacity_sectors(&self) -> u64 {
        self.capacity_sectors
    }

    /// Says whether the submitter would have had to sleep for a request.
    pub(crate) fn submit(&mut self, now: Nanos, bio: Bio, batch: &mut Batch) -> bool {
        self.run_before(now);
        let mut state = BioState { id: bio.id, submitted: now, parts_left: 1, failed: false };
        if bio.op == Op::Flush {
            let slot = self.bios.insert(state);
            return self.add(now, bio, (0, 0), slot, batch);
        }
        assert!(bio.sectors > 0, "a bio without data");
        let end = bio.sector.checked_add(u64::from(bio.sectors));
        if end.is_none_or(|end| end > self.capacity_sectors) {
            self.done.push(completion(&state, now, Err(IoError::BeyondEnd)));
            return false;
        }
        let longest = self.queue.sectors_max();
        state.parts_left = bio.sectors.div_ceil(longest);
        let slot = self.bios.insert(state);
        let (mut offset, mut refused) = (0, false);
        while offset < bio.sectors {
            let sectors = longest.min(bio.sectors - offset);
            refused |= self.add(now, bio, (bio.sector + u64::from(offset), sectors), slot, batch);
            offset += sectors;
        }
        refused
    }

    /// Adds one part of `bio` to the queue; says whether its submitter would have had to sleep.
    fn add(&mut self, now: Nanos, bio: Bio, range: (u64, u32), slot: u32, batch: &mut Batch) -> bool {
        let sync = bio.sync || bio.op != Op::Write;
        let part = self.queue.parts.insert(Part { bio: slot, next: NIL });
        let request = Request::new(now, bio.op, sync, range, part);
        let added = self.queue.add(now, request.by(bio.context, bio.meta));
        let mut refused = false;
        match added {
            Added::New => {
                self.accounting.start(now);
                if let Some(congestion) = &mut self.congestion {
                    refused = congestion.add(now, sync, batch);
                }
            }
            Added::Merged => self.accounting.merge_bio(bio.op),
            Added::Bridged { gone_sync } => {
                self.accounting.merge_bio(bio.op);
                self.accounting.merge_request(now, bio.op);
                if let Some(congestion) = &mut self.congestion {
                    congestion.remove(gone_sync);
                }
            }
        }
        if self.unplug_at.is_none() && self.can_dispatch() {
            self.unplug_at = Some(now);
            self.refresh();
        }
        refused
    }

    /// Recomputes when something happens inside, whoever may have taken the completions so far.
    fn refresh(&mut self) {
        let unplug = self.unplug_at.unwrap_or(Nanos::MAX);
        let model = self.model.next_event().unwrap_or(Nanos::MAX);
        let mut next = unplug.min(model);
        if let Some(throttle) = &self.throttle {
            next = next.min(throttle.next_event().unwrap_or(Nanos::MAX));
        }
        next = next.min(self.queue.next_event().unwrap_or(Nanos::MAX));
        self.next = self.faults.after_stall(next);
    }

    pub(crate) fn next_event(&self) -> Option<Nanos> {
        match self.done.first() {
            Some(completion) => Some(completion.at),
            None => (self.next != Nanos::MAX).then_some(self.next),
        }
    }

    pub(crate) fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        self.run_to(now);
        self.accounting.settle(now);
        done.append(&mut self.done);
    }

    /// Hands over what completed before `now`.
    pub(crate) fn take_done_before(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        self.run_before(now);
        done.append(&mut self.done);
    }

    /// Does what is due at or before `now`: the plug that is open ends.
    pub(crate) fn run_to(&mut self, now: Nanos) {
        assert!(now >= self.now, "time never goes back");
        while self.next <= now {
            self.step(self.next);
        }
        self.now = now;
    }

    /// Does what was due before `now`, and not what is due at `now`: a plug may still be open.
    fn run_before(&mut self, now: Nanos) {
        assert!(now >= self.now, "time never goes back");
        while self.next < now {
            self.step(self.next);
        }
        self.now = now;
    }

    fn step(&mut self, now: Nanos) {
        let mut finished = std::mem::take(&mut self.finished);
        self.model.advance(now, &mut finished);
        for entry in finished.drain(..) {
            self.complete(self.faults.after_stall(entry.at), entry.slot);
        }
        self.finished = finished;
        // After `advance`: at the end of a stall the medium first catches up with what it did meanwhile.
        if let Some(throttle) = &mut self.throttle {
            while let Some(command) = throttle.release(now) {
                self.model.start(now, command);
            }
        }
        self.unplug_at = None;
        self.queue.tick(now);
        while let Some(slot) = self.next_request(now) {
            self.dispatch(now, slot);
        }
        self.refresh();
    }

    /// What needs neither wait nor fail now, of a device that takes bios as they are.
    pub(crate) fn room(&self, now: Nanos) -> Room {
        if self.congestion.is_some() || self.faults.any_at(now) {
            return Room::default();
        }
        let queued = self.queue.has_data();
        match &self.throttle {
            // What the limit holds back is not in the way of what it does not know.
            Some(Throttle::IoMax(_)) if queued => Room { exempt: u64::MAX, ..Room::default() },
            _ if queued => Room::default(),
            None => Room { read: u64::MAX, write: u64::MAX, exempt: u64::MAX },
            Some(Throttle::Buckets(_)) => Room::default(),
            Some(Throttle::IoMax(slices)) => {
                Room { read: slices.room(now, Op::Read), write: slices.room(now, Op::Write), exempt: u64::MAX }
            }
        }
    }

    /// Counts what passed by the queue and the medium.
    pub(crate) fn pass(&mut self, now: Nanos, op: Op, sectors: u32, limited: bool) {
        self.run_before(now);
        self.accounting.start(now);
        self.accounting.complete(now, op, u64::from(sectors), now);
        if let (true, Some(Throttle::IoMax(slices))) = (limited, &mut self.throttle) {
            slices.pass(now, op, u64::from(sectors) * SECTOR_SIZE);
        }
    }

    fn can_dispatch(&self) -> bool {
        if self.in_flight >= self.depth {
            return false;
        }
        if self.queue.has_flush() || self.flush_in_flight {
            return self.can_flush() || !self.flush_alone && self.queue.has_data();
        }
        self.queue.has_data()
    }

    fn can_flush(&self) -> bool {
        let room = !self.flush_alone || self.in_flight == 0;
        self.queue.has_flush() && !self.flush_in_flight && room
    }

    fn next_request(&mut self, now: Nanos) -> Option<u32> {
        if !self.can_dispatch() {
            return None;
        }
        if self.can_flush() {
            self.flush_in_flight = true;
            return Some(self.queue.pop_flush());
        }
        self.queue.pop(now)
    }

    fn dispatch(&mut self, now: Nanos, slot: u32) {
        let request = &self.queue.requests[slot];
        let command = Command { slot, op: request.op, sector: request.sector, sectors: request.sectors };
        self.in_flight += 1;
        match &mut self.throttle {
            Some(throttle) => throttle.hold(now, command),
            None => self.model.start(now, command),
        }
    }

    fn complete(&mut self, at: Nanos, slot: u32) {
        let request = self.queue.requests.remove(slot);
        self.in_flight -= 1;
        if request.op == Op::Flush {
            self.flush_in_flight = false;
        } else {
            self.queue.completed(&request, at);
        }
        let sectors = u64::from(request.sectors);
        self.accounting.complete(at, request.op, sectors, request.started);
        if let Some(congestion) = &mut self.congestion {
            congestion.remove(request.sync);
        }
        let failed = self.faults.take_eio();
        let mut next = request.parts.0;
        while next != NIL {
            let part = self.queue.parts.remove(next);
            next = part.next;
            self.complete_part(at, part.bio, failed);
        }
    }

    fn complete_part(&mut self, at: Nanos, bio: u32, failed: bool) {
        let state = &mut self.bios[bio];
        state.failed |= failed;
        state.parts_left -= 1;
        if state.parts_left == 0 {
            let state = self.bios.remove(bio);
            let result = if state.failed { Err(IoError::Eio) } else { Ok(()) };
            self.done.push(completion(&state, at, result));
        }
    }

    pub(crate) fn congested(&self, sync: bool) -> bool {
        self.congestion.as_ref().is_some_and(|c| c.is_congested(sync))
    }

    pub(crate) fn refuses(&self, now: Nanos, sync: bool, batch: &Batch) -> bool {
        self.congestion.as_ref().is_some_and(|c| c.refuses(now, sync, batch))
    }

    pub(crate) fn take_eased(&mut self) -> bool {
        self.congestion.as_mut().is_some_and(Congestion::take_eased)
    }

    pub(crate) fn take_wakes(&mut self) -> Wakes {
        self.congestion.as_mut().map_or(Wakes::Oldest(0), Congestion::take_wakes)
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight as usize
    }

    pub(crate) fn queued(&self) -> usize {
        self.queue.requests.len() - self.in_flight()
    }

    /// Host bytes of what is queued.
    pub(crate) fn host_bytes(&self) -> usize {
        self.bios.host_bytes() + self.queue.requests.host_bytes() + self.queue.parts.host_bytes()
    }

    pub(crate) fn stats(&self) -> DeviceStats {
        debug_assert_eq!(self.accounting.outstanding(), self.queue.requests.len());
        self.accounting.stats()
    }

    pub(crate) fn inject_fault(&mut self, now: Nanos, fault: Fault) {
        self.run_before(now);
        self.faults.inject(now, fault);
        self.refresh();
    }
}

fn completion(state: &BioState, at: Nanos, result: Result<(), IoError>) -> Completion {
    Completion { id: state.id, result, submitted: state.submitted, at }
}
