//! Stripes over several devices.
//!
//! **Rule.** A bio is cut at chunk boundaries; chunk n lies on member n modulo their number. Each piece goes to its
//! member's own queue, where pieces that touch merge again. The bio is done with its last piece, and fails if one
//! of them failed. A flush goes to every member.
//! **Source.** drivers/md/raid0.c (`raid0_make_request()`), 6.12; congestion as in `raid0_congested()` before 5.0: that of any member. Each member
//! has a list of requests of its own.
//! **Abstracted.** Every member counts as large as the smallest (md uses the rest of larger ones in further zones).
//! **Omitted.** Md's own CPU cost; nested arrays.

use crate::bio::{Bio, Completion, IoError, Op, SECTOR_SIZE};
use crate::disk::Disk;
use crate::fault::Fault;
use crate::queue::{Batch, QueueSpec};
use crate::slab::Slab;
use crate::spec::{DeviceSpec, SpecError, check};
use crate::stats::{Accounting, DeviceStats};
use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos};

/// An array.
#[derive(Deserialize, Serialize, Clone, PartialEq, Debug)]
#[serde(deny_unknown_fields)]
pub struct Raid0Spec {
    /// Bytes in a chunk; a power of two from 4 KiB to 64 MiB. mdadm's default is 512 KiB (64 KiB before 3.1).
    pub chunk_bytes: u64,
    /// The members, 1 to 64, none of them an array.
    pub members: Vec<DeviceSpec>,
}

impl Raid0Spec {
    /// `count` equal members with mdadm's default chunk of 512 KiB.
    pub fn of(member: DeviceSpec, count: usize) -> Raid0Spec {
        Raid0Spec { chunk_bytes: 512 << 10, members: vec![member; count] }
    }

    pub(crate) fn validate(&self) -> Result<(), SpecError> {
        check("chunk_bytes", self.chunk_bytes, 1 << 12..=1 << 26)?;
        if !self.chunk_bytes.is_power_of_two() {
            return Err(SpecError {
                field: "chunk_bytes".to_owned(),
                value: self.chunk_bytes.to_string(),
                expected: "a power of two".to_owned(),
            });
        }
        check("members.len", self.members.len() as u64, 1..=64)?;
        for (index, member) in self.members.iter().enumerate() {
            if matches!(member, DeviceSpec::Raid0(_)) {
                return Err(SpecError {
                    field: format!("members[{index}].model"),
                    value: "raid0".to_owned(),
                    expected: "hdd, ssd, ram or usb".to_owned(),
                });
            }
            member
                .validate()
                .map_err(|error| SpecError { field: format!("members[{index}].{}", error.field), ..error })?;
        }
        let chunks = self.member_chunks();
        check("chunks per member", chunks, 1..=u64::MAX)
    }

    /// Whole chunks that every member holds.
    fn member_chunks(&self) -> u64 {
        let capacities = self.members.iter().map(|member| member.capacity().0);
        capacities.min().unwrap_or(0) / self.chunk_bytes
    }

    /// The least window of readahead, in KiB: two stripes (`raid0_run()`). A logical volume on an array takes the array's
    /// (`lv_calculate_readahead()`, LVM2).
    pub(crate) fn read_ahead_kb(&self) -> u32 {
        let kb = 2 * self.chunk_bytes * self.members.len() as u64 / 1024;
        u32::try_from(kb).expect("at most 64 members with chunks of 64 MiB")
    }

    pub(crate) fn capacity(&self) -> Bytes {
        Bytes(self.member_chunks() * self.chunk_bytes * self.members.len() as u64)
    }
}

/// A bio under way.
#[derive(Clone, Copy, Debug)]
struct Striped {
    bio: Bio,
    submitted: Nanos,
    pieces_left: u32,
    failed: bool,
    at: Nanos,
}

/// The array's state.
#[derive(Clone, Debug)]
pub(crate) struct Raid0 {
    members: Vec<Disk>,
    chunk_sectors: u64,
    capacity_sectors: u64,
    bios: Slab<Striped>,
    accounting: Accounting,
    pieces_done: Vec<Completion>,
    finished: Vec<Striped>,
    /// Completions that nobody has taken yet.
    done: Vec<Completion>,
}

impl Raid0 {
    /// `spec` and `queue` are valid. Each member has its own stream of random numbers.
    pub(crate) fn new(spec: &Raid0Spec, queue: &QueueSpec, seed: u64) -> Raid0 {
        let members = spec.members.iter().zip(0u64..);
        Raid0 {
            members: members.filter_map(|(member, i)| Disk::new(member, queue, member_seed(seed, i))).collect(),
            chunk_sectors: spec.chunk_bytes / SECTOR_SIZE,
            capacity_sectors: spec.capacity().0 / SECTOR_SIZE,
            bios: Slab::new(),
            accounting: Accounting::default(),
            pieces_done: Vec::new(),
            finished: Vec::new(),
            done: Vec::new(),
        }
    }

    pub(crate) fn capacity_sectors(&self) -> u64 {
        self.capacity_sectors
    }

    /// Says at which member the submitter would have had to sleep for a request, if at any.
    pub(crate) fn submit(&mut self, now: Nanos, bio: Bio, batch: &mut Batch) -> Option<usize> {
        self.collect(|member, pieces| member.take_done_before(now, pieces));
        let end = bio.sector.checked_add(u64::from(bio.sectors));
        if bio.op != Op::Flush && end.is_none_or(|end| end > self.capacity_sectors) {
            self.done.push(Completion { id: bio.id, result: Err(IoError::BeyondEnd), submitted: now, at: now });
            return None;
        }
        self.accounting.start(now);
        let slot = self.bios.insert(Striped { bio, submitted: now, pieces_left: 0, failed: false, at: now });
        if bio.op == Op::Flush {
            self.bios[slot].pieces_left = self.members.len() as u32;
            for member in &mut self.members {
                member.submit(now, piece(bio, slot, 0, 0), batch);
            }
            None
        } else {
            self.stripe(now, bio, slot, batch)
        }
    }

    /// Cuts a read or write at the chunks.
    fn stripe(&mut self, now: Nanos, bio: Bio, slot: u32, batch: &mut Batch) -> Option<usize> {
        assert!(bio.sectors > 0, "a bio without data");
        let width = self.members.len() as u64;
        let end = bio.sector + u64::from(bio.sectors);
        let (mut sector, mut refused) = (bio.sector, None);
        while sector < end {
            let (chunk, offset) = (sector / self.chunk_sectors, sector % self.chunk_sectors);
            let sectors = (self.chunk_sectors - offset).min(end - sector) as u32;
            let on_member = chunk / width * self.chunk_sectors + offset;
            let member = (chunk % width) as usize;
            if self.members[member].submit(now, piece(bio, slot, on_member, sectors), batch) {
                refused = refused.or(Some(member));
            }
            self.bios[slot].pieces_left += 1;
            sector += u64::from(sectors);
        }
        refused
    }

    pub(crate) fn next_event(&self) -> Option<Nanos> {
        match self.done.first() {
            Some(completion) => Some(completion.at),
            None => self.members.iter().filter_map(Disk::next_event).min(),
        }
    }

    /// Ends the plugs that are open at the members.
    pub(crate) fn unplug(&mut self, now: Nanos) {
        self.members.iter_mut().for_each(|member| member.run_to(now));
    }

    pub(crate) fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        self.collect(|member, pieces| member.advance(now, pieces));
        self.accounting.settle(now);
        done.append(&mut self.done);
    }

    /// Takes pieces from the members and completes the bios whose last piece was among them, in order of time.
    fn collect(&mut self, mut take: impl FnMut(&mut Disk, &mut Vec<Completion>)) {
        let mut pieces = std::mem::take(&mut self.pieces_done);
        for member in &mut self.members {
            take(member, &mut pieces);
        }
        for piece in pieces.drain(..) {
            self.piece_done(piece);
        }
        self.pieces_done = pieces;
        self.report();
    }

    fn piece_done(&mut self, piece: Completion) {
        let slot = piece.id as u32;
        let striped = &mut self.bios[slot];
        striped.failed |= piece.result.is_err();
        striped.at = striped.at.max(piece.at);
        striped.pieces_left -= 1;
        if striped.pieces_left == 0 {
            let striped = self.bios.remove(slot);
            self.finished.push(striped);
        }
    }

    fn report(&mut self) {
        let order = |s: &Striped| (s.at, s.submitted, s.bio.id);
        self.finished.sort_unstable_by_key(order);
        for striped in self.finished.drain(..) {
            let sectors = u64::from(striped.bio.sectors);
            let Striped { bio, submitted, at, .. } = striped;
            self.accounting.complete(at, bio.op, sectors, submitted);
            let result = if striped.failed { Err(IoError::Eio) } else { Ok(()) };
            self.done.push(Completion { id: bio.id, result, submitted, at });
        }
    }

    pub(crate) fn congested(&self, sync: bool) -> bool {
        self.members.iter().any(|member| member.congested(sync))
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.members.iter().map(Disk::in_flight).sum()
    }

    pub(crate) fn queued(&self) -> usize {
        self.members.iter().map(Disk::queued).sum()
    }

    /// Host bytes of what is queued.
    pub(crate) fn host_bytes(&self) -> usize {
        self.bios.host_bytes() + self.members.iter().map(Disk::host_bytes).sum::<usize>()
    }

    pub(crate) fn stats(&self) -> DeviceStats {
        self.accounting.stats()
    }

    pub(crate) fn members(&self) -> &[Disk] {
        &self.members
    }

    pub(crate) fn members_mut(&mut self) -> &mut [Disk] {
        &mut self.members
    }

    pub(crate) fn inject_fault(&mut self, now: Nanos, fault: Fault) {
        let reach = match fault {
            Fault::Eio { .. } => 1,
            Fault::Stall { .. } => self.members.len(),
        };
        for member in &mut self.members[..reach] {
            member.inject_fault(now, fault);
        }
    }
}

fn piece(bio: Bio, slot: u32, sector: u64, sectors: u32) -> Bio {
    Bio { id: u64::from(slot), sector, sectors, ..bio }
}

/// Distinct for each member, and far apart for neighbouring seeds (the odd constant is 2^64 / golden ratio).
fn member_seed(seed: u64, index: u64) -> u64 {
    seed ^ index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::RamSpec;

    #[test]
    fn stripes_are_read_ahead_twice_as_far_as_they_are_long() {
        let member = DeviceSpec::Ram(RamSpec::ddr4(1 << 30));
        let ahead = |chunk_kb: u64, members: usize| {
            let members = vec![member.clone(); members];
            DeviceSpec::Raid0(Raid0Spec { chunk_bytes: chunk_kb << 10, members }).read_ahead_kb()
        };
        assert_eq!([ahead(64, 4), ahead(512, 4), ahead(4, 2)], [512, 4096, 128]);
        assert_eq!(member.read_ahead_kb(), 128);
    }
}
