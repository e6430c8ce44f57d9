//! The block devices of the machine and the bios in flight on them.

use blockdev::{Batch, BlockDevice, Completion, DeviceSpec, Op, QueueSpec, SpecError, Wakes};
use mm::{Bio, BioTarget, CopyRoom, Mm};
use sim::{Class, Ctl, WaitQueueId};
use units::{Nanos, PAGE_SIZE};

use crate::log::IoTime;
use crate::world::{Event, World};

const SECTORS_PER_PAGE: u32 = 8;

/// A bio in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InFlight {
    pub(crate) bio: Bio,
    /// Who waits for just this bio.
    pub(crate) waiter: Option<WaitQueueId>,
}

/// One device with its timer.
pub(crate) struct Device {
    model: BlockDevice,
    /// Tasks that wait for requests, at each of the device's lists.
    room: Vec<WaitQueueId>,
    /// Latest instant the model was told; submitters on different CPUs may be a slice apart.
    clock: Nanos,
    /// When the next timer event fires.
    armed: Option<Nanos>,
    /// Writes in flight.
    writes: u32,
}

impl Device {
    pub(crate) fn new(
        spec: &DeviceSpec,
        queue: &QueueSpec,
        seed: u64,
        new_wait_queue: impl FnMut() -> WaitQueueId,
    ) -> Result<Device, SpecError> {
        let model = BlockDevice::new(spec, queue, seed)?;
        let room = std::iter::repeat_with(new_wait_queue).take(model.request_lists()).collect();
        Ok(Device { model, room, clock: Nanos::ZERO, armed: None, writes: 0 })
    }

    /// Whether a background submitter should wait.
    pub(crate) fn congested(&self, op: Op) -> bool {
        self.model.congested(op)
    }

    /// Whether it has told those who wait for congestion to end to look again, since this was asked last.
    pub(crate) fn take_eased(&mut self) -> bool {
        self.model.take_eased()
    }

    /// The list of requests at which a task that writes would have to sleep first.
    pub(crate) fn refusing(&self, now: Nanos, batch: &Batch) -> Option<usize> {
        (0..self.room.len()).find(|list| self.refuses(*list, now, batch))
    }

    /// Whether a task that writes has to sleep at a list.
    pub(crate) fn refuses(&self, list: usize, now: Nanos, batch: &Batch) -> bool {
        self.model.refuses(list, now, Op::Write, batch)
    }

    /// Where it sleeps.
    pub(crate) fn room(&self, list: usize) -> WaitQueueId {
        self.room[list]
    }

    fn tick(&mut self, now: Nanos) -> Nanos {
        self.clock = self.clock.max(now);
        self.clock
    }
}

/// All devices, and what is in flight.
pub(crate) struct Devices {
    pub(crate) list: Vec<Device>,
    /// Those that copy.
    copying: Vec<u16>,
    /// The device that is mounted.
    mounted: Option<u16>,
    in_flight: Vec<Option<InFlight>>,
    free: Vec<u32>,
    done: Vec<Completion>,
}

impl Devices {
    pub(crate) fn new(list: Vec<Device>, copying: Vec<u16>, mounted: Option<u16>) -> Devices {
        Devices { list, copying, mounted, in_flight: Vec::new(), free: Vec::new(), done: Vec::new() }
    }

    /// Host bytes of what is queued and in flight.
    pub(crate) fn host_bytes(&self) -> usize {
        let queued: usize = self.list.iter().map(|device| device.model.host_bytes()).sum();
        queued + self.in_flight.capacity() * size_of::<Option<InFlight>>() + self.free.capacity() * size_of::<u32>()
    }

    /// Requests of the mounted device so far.
    pub(crate) fn io_time(&self) -> IoTime {
        let stats = self.mounted.map(|device| self.list[usize::from(device)].model.stats()).unwrap_or_default();
        IoTime { requests: stats.read.ios + stats.write.ios, waited: stats.read.time + stats.write.time }
    }

    /// Tells the devices that copy what their limits let through now.
    #[inline]
    pub(crate) fn update_room(&self, mm: &mut Mm, now: Nanos) {
        for &device in &self.copying {
            let room = self.list[usize::from(device)].model.room(now);
            let pages = |bytes: u64| bytes / PAGE_SIZE;
            mm.set_copy_room(
                device,
                CopyRoom { read: pages(room.read), write: pages(room.write), exempt: pages(room.exempt) },
            );
        }
    }

    /// Counts a bio that was copied at once; the limit does not know what is the root group's.
    pub(crate) fn pass(&mut self, ctl: &Ctl<World>, bio: Bio, of_root: bool) {
        let device = &mut self.list[usize::from(bio.device)];
        let now = device.tick(ctl.now());
        let op = if bio.write { Op::Write } else { Op::Read };
        device.model.pass(now, op, bio.pages * SECTORS_PER_PAGE, !of_root);
    }

    /// Gives a bio of a task with this batch to its device; says at which list of requests the task has to sleep, if at any.
    pub(crate) fn submit(
        &mut self,
        ctl: &mut Ctl<World>,
        bio: Bio,
        waiter: Option<WaitQueueId>,
        batch: &mut Batch,
    ) -> Option<usize> {
        let entry = InFlight { bio, waiter };
        let id = match self.free.pop() {
            Some(id) => {
                self.in_flight[id as usize] = Some(entry);
                id
            }
            None => {
                units::table::push(&mut self.in_flight, Some(entry));
                self.in_flight.len() as u32 - 1
            }
        };
        let device = &mut self.list[bio.device as usize];
        let now = device.tick(ctl.now());
        device.writes += u32::from(bio.write);
        let refused = device.model.submit_in_batch(
            now,
            blockdev::Bio {
                id: u64::from(id),
                op: if bio.write { Op::Write } else { Op::Read },
                sector: bio.sector,
                sectors: bio.pages * SECTORS_PER_PAGE,
                sync: bio.sync,
                context: ctl.current().map_or(0, |task| task.0 + 1),
                meta: !bio.write && bio.target == BioTarget::Metadata,
            },
            batch,
        );
        self.arm(ctl, bio.device);
        refused
    }

    /// Has a device begin with what it was given.
    pub(crate) fn unplug(&mut self, ctl: &mut Ctl<World>, number: u16) {
        let device = &mut self.list[usize::from(number)];
        let now = device.tick(ctl.now());
        device.model.unplug(now);
        self.arm(ctl, number);
    }

    /// Wakes those for whom requests of a device became free.
    pub(crate) fn wake_waiters(&mut self, ctl: &mut Ctl<World>, number: u16) {
        let device = &mut self.list[usize::from(number)];
        for (list, &room) in device.room.iter().enumerate() {
            match device.model.take_wakes(list) {
                Wakes::All => _ = ctl.wake_all(room),
                Wakes::Oldest(number) => (0..number).for_each(|_| _ = ctl.wake_one(room)),
            }
        }
    }

    /// Lets a device go on to `now`; the completed bios are appended to `completed`.
    pub(crate) fn advance(
        &mut self,
        ctl: &mut Ctl<World>,
        number: u16,
        completed: &mut Vec<(InFlight, Result<(), blockdev::IoError>)>,
    ) {
        let device = &mut self.list[number as usize];
        if device.armed.is_some_and(|at| at <= ctl.now()) {
            device.armed = None;
        }
        let now = device.tick(ctl.now());
        device.model.advance(now, &mut self.done);
        for completion in self.done.drain(..) {
            let slot = completion.id as usize;
            let entry = self.in_flight[slot].take().expect("a bio completes once");
            self.free.push(slot as u32);
            units::table::give_back_unused(&mut self.in_flight, &mut self.free);
            device.writes -= u32::from(entry.bio.write);
            completed.push((entry, completion.result));
        }
        self.arm(ctl, number);
    }

    /// Has a device fail from now on.
    #[cfg(test)]
    pub(crate) fn inject_fault(&mut self, ctl: &mut Ctl<World>, number: u16, fault: blockdev::Fault) {
        let device = &mut self.list[number as usize];
        let now = device.tick(ctl.now());
        device.model.inject_fault(now, fault);
        self.arm(ctl, number);
    }

    /// Writes to a device that did not complete yet.
    pub(crate) fn writes_in_flight(&self, device: u16) -> u32 {
        self.list[device as usize].writes
    }

    /// Schedules the device's next event unless an earlier one is scheduled already.
    fn arm(&mut self, ctl: &mut Ctl<World>, number: u16) {
        let device = &mut self.list[number as usize];
        let Some(next) = device.model.next_event() else { return };
        let at = next.max(ctl.now());
        if device.armed.is_none_or(|armed| at < armed) {
            device.armed = Some(at);
            ctl.schedule_at(at, Class::Device, Event::Device(number));
        }
    }
}
