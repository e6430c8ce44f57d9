//! The device as its owner sees it.

use crate::bio::{Bio, Completion, Op};
use crate::disk::Disk;
use crate::fault::Fault;
use crate::queue::{Batch, QueueSpec, Wakes};
use crate::raid0::Raid0;
use crate::spec::{DeviceSpec, SpecError};
use crate::stats::DeviceStats;
use units::Nanos;

/// What needs neither wait nor fail now, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Room {
    /// Of reads.
    pub read: u64,
    /// Of writes.
    pub write: u64,
    /// Of what does not wait for the limit.
    pub exempt: u64,
}

#[derive(Clone, Debug)]
enum Kind {
    Disk(Box<Disk>),
    Raid0(Box<Raid0>),
}

/// A block device with its queue. Instants given to it never go back.
#[derive(Clone, Debug)]
pub struct BlockDevice {
    kind: Kind,
}

impl BlockDevice {
    /// A device at rest at time zero. `seed` feeds its random draws (angle of the platter, garbage collection) and no others.
    ///
    /// # Errors
    /// The first figure of `spec` or `queue` that is out of range.
    pub fn new(spec: &DeviceSpec, queue: &QueueSpec, seed: u64) -> Result<BlockDevice, SpecError> {
        spec.validate()?;
        queue.validate()?;
        let kind = match spec {
            DeviceSpec::Raid0(raid) => Kind::Raid0(Box::new(Raid0::new(raid, queue, seed))),
            single => {
                let disk = Disk::new(single, queue, seed);
                Kind::Disk(Box::new(disk.expect("not a RAID")))
            }
        };
        Ok(BlockDevice { kind })
    }

    /// Sectors of 512 bytes.
    pub fn capacity_sectors(&self) -> u64 {
        match &self.kind {
            Kind::Disk(disk) => disk.capacity_sectors(),
            Kind::Raid0(raid) => raid.capacity_sectors(),
        }
    }

    /// Adds `bio` to the queue, where it may merge. It is dispatched by the next [`BlockDevice::advance`], so that bios
    /// submitted at one instant form a plug. A bio past the end of the device completes at once with an error.
    ///
    /// # Panics
    /// If `now` lies before an earlier instant, or a read or write has no sectors.
    pub fn submit(&mut self, now: Nanos, bio: Bio) {
        self.submit_in_batch(now, bio, &mut Batch::default());
    }

    /// The same for a task with its batch. Says at which list of requests the task would have had to sleep before, if at any:
    /// it is to do so now, unless it is not refused any more.
    ///
    /// # Panics
    /// If `now` lies before an earlier instant, or a read or write has no sectors.
    pub fn submit_in_batch(&mut self, now: Nanos, bio: Bio, batch: &mut Batch) -> Option<usize> {
        match &mut self.kind {
            Kind::Disk(disk) => disk.submit(now, bio, batch).then_some(0),
            Kind::Raid0(raid) => raid.submit(now, bio, batch),
        }
    }

    /// Has the device begin with what it was given, although more may be submitted at this instant: the end of a plug.
    ///
    /// # Panics
    /// If `now` lies before an earlier instant.
    pub fn unplug(&mut self, now: Nanos) {
        match &mut self.kind {
            Kind::Disk(disk) => disk.run_to(now),
            Kind::Raid0(raid) => raid.unplug(now),
        }
    }

    /// What a device that copies could take at once.
    pub fn room(&self, now: Nanos) -> Room {
        match &self.kind {
            Kind::Disk(disk) => disk.room(now),
            Kind::Raid0(_) => Room::default(),
        }
    }

    /// Counts a read or write that its submitter carried out himself, because there was room. `limited` says whether it
    /// counts against the limit, be it beyond that.
    ///
    /// # Panics
    /// If `now` lies before an earlier instant.
    pub fn pass(&mut self, now: Nanos, op: Op, sectors: u32, limited: bool) {
        match &mut self.kind {
            Kind::Disk(disk) => disk.pass(now, op, sectors, limited),
            Kind::Raid0(_) => unreachable!("a RAID has no room known beforehand"),
        }
    }

    /// When [`BlockDevice::advance`] has something to do: maybe at once, or earlier than now if a completion waits
    /// to be taken; `None` if the device is at rest.
    pub fn next_event(&self) -> Option<Nanos> {
        match &self.kind {
            Kind::Disk(disk) => disk.next_event(),
            Kind::Raid0(raid) => raid.next_event(),
        }
    }

    /// Does everything due at or before `now`, each thing at its own instant, and appends the completions to `done`
    /// in order of time.
    ///
    /// # Panics
    /// If `now` lies before an earlier instant.
    pub fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        match &mut self.kind {
            Kind::Disk(disk) => disk.advance(now, done),
            Kind::Raid0(raid) => raid.advance(now, done),
        }
    }

    /// Whether so many requests of this kind are queued that background submitters should wait. Reads and flushes ask for
    /// the synchronous side of the queue, writes for the asynchronous. Always false for a RAM disk.
    pub fn congested(&self, op: Op) -> bool {
        match &self.kind {
            Kind::Disk(disk) => disk.congested(op != Op::Write),
            Kind::Raid0(raid) => raid.congested(op != Op::Write),
        }
    }

    /// How many lists of requests there are, each of which has tasks that wait for room: one, for a RAID one for each member.
    pub fn request_lists(&self) -> usize {
        self.disks().len()
    }

    /// Whether a task that asks this list for a request must sleep; the device itself takes more.
    ///
    /// # Panics
    /// If there is no such list.
    pub fn refuses(&self, list: usize, now: Nanos, op: Op, batch: &Batch) -> bool {
        self.disks()[list].refuses(now, op != Op::Write, batch)
    }

    /// Which of the tasks that wait for writes of this list are to be woken since this was asked last.
    ///
    /// # Panics
    /// If there is no such list.
    pub fn take_wakes(&mut self, list: usize) -> Wakes {
        match &mut self.kind {
            Kind::Disk(disk) => {
                assert!(list == 0, "a single disk has one list");
                disk.take_wakes()
            }
            Kind::Raid0(raid) => raid.members_mut()[list].take_wakes(),
        }
    }

    /// Whether a write has been freed, since this was asked last, from a list that is not congested: that wakes those who wait
    /// for congestion to end.
    pub fn take_eased(&mut self) -> bool {
        match &mut self.kind {
            Kind::Disk(disk) => disk.take_eased(),
            Kind::Raid0(raid) => raid.members_mut().iter_mut().fold(false, |eased, disk| disk.take_eased() | eased),
        }
    }

    fn disks(&self) -> &[Disk] {
        match &self.kind {
            Kind::Disk(disk) => std::slice::from_ref(disk),
            Kind::Raid0(raid) => raid.members(),
        }
    }

    /// Requests in the device (for a RAID: in its members).
    pub fn in_flight(&self) -> usize {
        match &self.kind {
            Kind::Disk(disk) => disk.in_flight(),
            Kind::Raid0(raid) => raid.in_flight(),
        }
    }

    /// Requests that wait for dispatch (for a RAID: at its members).
    pub fn queued(&self) -> usize {
        match &self.kind {
            Kind::Disk(disk) => disk.queued(),
            Kind::Raid0(raid) => raid.queued(),
        }
    }

    /// Host bytes of what is queued.
    pub fn host_bytes(&self) -> usize {
        match &self.kind {
            Kind::Disk(disk) => disk.host_bytes(),
            Kind::Raid0(raid) => raid.host_bytes(),
        }
    }

    /// Counters. A RAID counts bios as they were submitted to it.
    pub fn stats(&self) -> DeviceStats {
        match &self.kind {
            Kind::Disk(disk) => disk.stats(),
            Kind::Raid0(raid) => raid.stats(),
        }
    }

    /// Counters of the members of a RAID; empty for any other device.
    pub fn member_stats(&self) -> Vec<DeviceStats> {
        match &self.kind {
            Kind::Disk(_) => Vec::new(),
            Kind::Raid0(raid) => raid.members().iter().map(Disk::stats).collect(),
        }
    }

    /// From `now` on, something goes wrong.
    ///
    /// # Panics
    /// If `now` lies before an earlier instant.
    pub fn inject_fault(&mut self, now: Nanos, fault: Fault) {
        match &mut self.kind {
            Kind::Disk(disk) => disk.inject_fault(now, fault),
            Kind::Raid0(raid) => raid.inject_fault(now, fault),
        }
    }
}
