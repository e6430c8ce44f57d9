//! Devices that copy: RAM disks and persistent memory.
//!
//! Rule: the driver copies in the context of whoever hands it a bio, and the bio has ended when its submission returns, unless
//! a limit in front of the device holds it back. Such a bio takes its memory for a moment only. A page that is written to swap
//! so is free in the same pass of reclaim, and nobody sleeps for a page that is read so. Where the swap code knows
//! that the device is synchronous (no device mapper lies between), a page that comes from swap even passes the swap cache
//! by: it is read alone, and its slot is free.
//! Source: `brd_submit_bio()`, `brd_rw_page()` (drivers/block/brd.c), `pmem_submit_bio()` (drivers/nvdimm/pmem.c), `bdev_read_page()`,
//! `bdev_write_page()` (block/bdev.c), `SWP_SYNCHRONOUS_IO` in `do_swap_page()` (mm/memory.c), `pageout()` (mm/vmscan.c); 6.1.
//! A cgroup's limit (`io.max`) holds the bios of the group's pages back; the log and metadata are written by threads of the root
//! group, and swap goes out in spite of it since 6.12 (`bio_issue_as_root_blkg()`, block/blk-throttle.c). Where the root group itself
//! has a limit (`blkio.throttle` of cgroup v1) it holds everything back.
//! Since/until: [`IoMaxExempt`]; what a flusher writes of XFS was the root group's until 5.2 ([`XfsWriter`](rules::XfsWriter)); the swap cache is passed by
//! since 0bcac06f27d7 (4.15).
//! A bio that was held back is copied by the worker that goes on with it ([`Mm::charge_copy`]).
//! Abstracted: whether a limit holds a bio back is asked before each call into this crate ([`CopyRoom`]), not at the instant within it.

use rules::IoMaxExempt;
use units::{Nanos, Pfn};

use crate::memcg::ROOT;
use crate::pagecache::Slot;
use crate::{Bio, BioTarget, Effect, Env, Frame, Mm};

/// What copying costs whoever submits a bio.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CopyCosts {
    /// Each bio.
    pub bio: Nanos,
    /// Each page that is read.
    pub read: Nanos,
    /// Each page that is written.
    pub write: Nanos,
}

impl CopyCosts {
    /// A whole bio, in ns.
    fn of(self, write: bool, pages: u32) -> u64 {
        let page = if write { self.write } else { self.read };
        self.bio.0 + page.0 * u64::from(pages)
    }
}

/// When the bios of a device end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum BioEnd {
    /// By an interrupt: a bio holds its memory until then.
    #[default]
    Interrupt,
    /// Before the submission returns, as far as there is room.
    Copy(CopyCosts),
    /// Always so, and the swap code knows it.
    Synchronous(CopyCosts),
}

/// What no limit in front of a device holds back now, in pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CopyRoom {
    /// Of reads.
    pub read: u64,
    /// Of writes.
    pub write: u64,
    /// Of what passes in spite of a limit ([`IoMaxExempt`]).
    pub exempt: u64,
}

impl CopyRoom {
    /// No limit.
    pub const ALL: CopyRoom = CopyRoom { read: u64::MAX, write: u64::MAX, exempt: u64::MAX };

    /// Of a bio that is not the root group's.
    fn of(&mut self, bio: &Bio, exempt: IoMaxExempt) -> &mut u64 {
        match (bio.target, bio.write) {
            (BioTarget::Swap { .. }, true) if exempt == IoMaxExempt::SwapOut => &mut self.exempt,
            (_, true) => &mut self.write,
            (_, false) => &mut self.read,
        }
    }
}

/// A device as far as its copying goes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CopyDevice {
    end: BioEnd,
    room: CopyRoom,
    /// Its limit is the root group's.
    limits_root: bool,
}

impl Mm {
    /// Says when the bios of a device end.
    pub fn set_bio_end(&mut self, device: u16, end: BioEnd) {
        let index = usize::from(device);
        if self.copy_devices.len() <= index {
            self.copy_devices.resize(index + 1, CopyDevice::default());
        }
        self.copy_devices[index].end = end;
    }

    /// Says that the limit in front of a device is the root group's.
    pub fn limit_root(&mut self, device: u16) {
        self.copy_devices[usize::from(device)].limits_root = true;
    }

    fn limits_root(&self, device: u16) -> bool {
        self.copy_devices.get(usize::from(device)).is_some_and(|device| device.limits_root)
    }

    /// Says what fits through the limit of a device that copies.
    #[inline]
    pub fn set_copy_room(&mut self, device: u16, room: CopyRoom) {
        self.copy_devices[usize::from(device)].room = room;
    }

    fn bio_end(&self, device: u16) -> BioEnd {
        self.copy_devices.get(usize::from(device)).map(|device| device.end).unwrap_or_default()
    }

    /// Whether the driver of a device copies in its caller's context.
    #[inline]
    pub fn copies(&self, device: u16) -> bool {
        self.bio_end(device) != BioEnd::Interrupt
    }

    /// Charges the driver's work and the copy of a bio to whoever hands it to the driver: who submits it, or who goes on with it
    /// where it was held back.
    pub fn charge_copy(&mut self, bio: &Bio) {
        if let BioEnd::Copy(costs) | BioEnd::Synchronous(costs) = self.bio_end(bio.device) {
            self.charge(self.costs.copied_bio + costs.of(bio.write, bio.pages));
        }
    }

    /// Whether the swap code knows that the bios of a device end before their submission returns.
    #[inline]
    pub(crate) fn is_synchronous(&self, device: u16) -> bool {
        matches!(self.bio_end(device), BioEnd::Synchronous(_))
    }

    /// What handing a bio to the block layer costs; to a driver that copies, it is part of that.
    pub(crate) fn submission_cost(&self, device: u16) -> u64 {
        if self.copies(device) { 0 } else { self.costs.submit_bio }
    }

    /// What its end costs; without an interrupt it is part of its submission.
    fn completion_cost(&self, device: u16) -> u64 {
        if self.copies(device) { 0 } else { self.costs.complete_bio }
    }

    /// Charges a bio of a synchronous device to its submitter.
    #[inline]
    pub(crate) fn charge_sync_bio(&mut self, device: u16, write: bool, pages: u32) {
        let BioEnd::Synchronous(costs) = self.bio_end(device) else { unreachable!("the device is synchronous") };
        self.charge(costs.of(write, pages));
    }

    /// Whether a bio counts as the root group's, which has no limit but where that is the root's own: metadata, and data of a file whose submitter is of that group.
    fn is_of_root(&self, env: &Env, bio: &Bio) -> bool {
        if self.limits_root(bio.device) {
            return false;
        }
        match bio.target {
            BioTarget::Metadata => true,
            BioTarget::File { file, .. } => bio.write && self.is_submitters(file) && env.task.memcg == ROOT,
            BioTarget::Swap { .. } => false,
        }
    }

    /// Copies what a bio carries if its device does that, and nothing holds it back, as nothing does what is `of_root`; says whether.
    fn copy_bio(&mut self, bio: &Bio, of_root: bool) -> bool {
        if !self.copies(bio.device) {
            return false;
        }
        let room = &mut self.copy_devices[usize::from(bio.device)].room;
        let room = if of_root { &mut room.exempt } else { room.of(bio, self.rules.io_max_exempt) };
        let Some(left) = room.checked_sub(u64::from(bio.pages)) else {
            // What comes later must not overtake it.
            *room = 0;
            return false;
        };
        *room = left;
        self.charge_copy(bio);
        self.effects.push(Effect::Copied { bio: *bio, of_root });
        true
    }

    /// Hands a bio to the block layer; what is copied at once has ended then. A read that its caller holds is only handed out.
    pub fn submit(&mut self, env: &Env, bio: Bio) {
        if env.task.holds_reads && !bio.write {
            return self.effects.push(Effect::HeldRead(bio));
        }
        self.account_bio(bio);
        let of_root = self.is_of_root(env, &bio);
        if self.copy_bio(&bio, of_root) {
            return self.bio_ended(env, &bio, true);
        }
        let bio = if bio.is_swap_out() { self.alloc_swap_bio(env, bio) } else { self.alloc_bio(env, bio) };
        self.effects.push(Effect::Submit(bio));
        if !self.is_plugged(env, &bio) {
            self.effects.push(Effect::Unplug(bio.device));
        }
    }

    /// Whether a read is of a page that was part of the working set, so that who submits it stalls for memory (`swap_readpage()`,
    /// mm/page_io.c; `read_pages()`, mm/readahead.c; 6.1).
    pub fn reads_workingset(&self, bio: &Bio) -> bool {
        let was = |pfn: Pfn| self.frames[pfn].has(Frame::WORKINGSET);
        match bio.target {
            BioTarget::File { file, index } => {
                (index..index + bio.pages).any(|at| match self.pagecache_get(file, at) {
                    Slot::Page(pfn) => was(pfn),
                    Slot::Shadow(_) | Slot::Empty => false,
                })
            }
            BioTarget::Swap { pfn } => was(pfn),
            BioTarget::Metadata => false,
        }
    }

    /// Counts a bio of metadata whose end the caller awaits; whether it has ended already. If not, the caller submits it.
    pub fn begin_metadata(&mut self, bio: Bio) -> bool {
        debug_assert!(bio.target == BioTarget::Metadata);
        self.account_bio(bio);
        self.copy_bio(&bio, !self.limits_root(bio.device))
    }

    /// A bio that was queued has ended, or failed.
    pub fn end_bio(&mut self, env: &Env, bio: &Bio, ok: bool) {
        if bio.is_swap_out() {
            self.free_bio(env, &bio.memory.parts);
        }
        self.bio_ended(env, bio, ok);
    }

    fn bio_ended(&mut self, env: &Env, bio: &Bio, ok: bool) {
        self.charge(self.completion_cost(bio.device));
        match (bio.target, bio.write) {
            (BioTarget::File { file, index }, false) => self.end_read(env, file, index, bio.pages, ok),
            (BioTarget::File { .. } | BioTarget::Metadata, true) => self.end_writeback(env, bio, ok),
            (BioTarget::Swap { pfn }, false) => self.end_swap_read(env, pfn, ok),
            (BioTarget::Swap { pfn }, true) => self.end_swap_write(env, pfn, ok),
            (BioTarget::Metadata, false) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use rules::{IoendEnd, XfsWriter};
    use units::Pfn;

    use super::*;
    use crate::pagecache::rig::Rig;
    use crate::{BioMemory, Frame};

    const DEVICE: u16 = 3;
    const COSTS: CopyCosts = CopyCosts { bio: Nanos(1_000), read: Nanos(500), write: Nanos(500) };

    /// A machine whose device copies, with room for so many pages of writes, and files of these sizes that are dirty.
    fn written<const N: usize>(end: BioEnd, room: u64, sizes: [u32; N]) -> (Rig, [units::FileId; N]) {
        let mut rig = Rig::new(1, 1 << 14);
        rig.mm.set_bio_end(DEVICE, end);
        let files = sizes.map(|pages| {
            let file = rig.create();
            (0..pages).for_each(|index| assert!(rig.write(file, index)));
            file
        });
        rig.mm.set_copy_room(DEVICE, CopyRoom { write: room, ..CopyRoom::default() });
        (rig, files)
    }

    #[test]
    fn what_there_is_room_for_has_ended_when_it_is_submitted_and_its_submitter_pays() {
        for end in [BioEnd::Copy(COSTS), BioEnd::Synchronous(COSTS)] {
            let (mut rig, [file]) = written(end, 8, [8]);
            rig.mm.take_cpu_ns();
            rig.write_back(file);
            assert!(rig.bios.is_empty(), "nothing is under way");
            assert_eq!(rig.mm.dirty_pages_of(file), (0, 0));
            assert!((0..8).all(|index| !rig.mm.frames[rig.page(file, index)].has_any(Frame::WRITEBACK | Frame::DIRTY)));
            assert!(
                rig.effects.iter().any(
                    |effect| matches!(effect, Effect::Copied { bio, of_root: false } if bio.pages == 8 && bio.write)
                )
            );
            assert!(rig.mm.take_cpu_ns() >= 1_000 + 8 * 500);
            rig.check();
        }
    }

    #[test]
    fn what_a_limit_holds_back_is_not_overtaken() {
        let (mut rig, [fits, too_long, short]) = written(BioEnd::Copy(COSTS), 10, [8, 3, 1]);
        for file in [fits, too_long, short] {
            rig.write_back(file);
        }
        // Two pages of room are left by the first, which the third would fit into.
        let under_way: Vec<u32> = rig.bios.iter().map(|bio| bio.pages).collect();
        assert_eq!(under_way, [3, 1]);
        // Who goes on with the first of them pays for the driver's work and its three pages.
        rig.mm.take_cpu_ns();
        rig.mm.charge_copy(&rig.bios[0].clone());
        assert_eq!(rig.mm.take_cpu_ns(), rig.mm.costs.copied_bio + 1_000 + 3 * 500);
        rig.complete_all();
        assert!([fits, too_long, short].iter().all(|file| rig.mm.dirty_pages_of(*file) == (0, 0)));
        rig.check();
    }

    #[test]
    fn what_a_flusher_writes_of_xfs_is_held_back_by_the_groups_limit_since_5_3() {
        for (writer, under_way) in [(XfsWriter::Submitter, 0), (XfsWriter::Owner, 1)] {
            let (mut rig, [file]) = written(BioEnd::Copy(COSTS), 0, [4]);
            rig.mm.rules.xfs_writer = writer;
            rig.mm.set_copy_room(DEVICE, CopyRoom { exempt: u64::MAX, ..CopyRoom::default() });
            rig.write_back(file);
            assert_eq!(rig.bios.len(), under_way, "{writer:?}");
            let for_root = |effect: &Effect| matches!(effect, Effect::Copied { of_root: true, .. });
            assert_eq!(
                rig.effects.iter().filter(|effect| for_root(effect)).count(),
                1 - under_way,
                "no limit counts it"
            );
        }
    }

    #[test]
    fn only_what_is_under_way_holds_memory() {
        let objects = |end: BioEnd, room: u64, ioend: IoendEnd| {
            let (mut rig, [file]) = written(end, room, [4]);
            rig.mm.rules.ioend_end = ioend;
            rig.write_back(file);
            (rig.bios.len(), rig.objects("biovec-max") > 0)
        };
        assert_eq!(objects(BioEnd::Interrupt, 0, IoendEnd::EachBio), (1, true));
        assert_eq!(objects(BioEnd::Copy(COSTS), 3, IoendEnd::EachBio), (1, true), "the limit holds it back");
        assert_eq!(
            objects(BioEnd::Copy(COSTS), 4, IoendEnd::EachBio),
            (0, true),
            "it had a slab until XFS's worker had seen it"
        );
        assert_eq!(objects(BioEnd::Copy(COSTS), 4, IoendEnd::LastBio), (0, false), "the ioend is apart");
    }

    #[test]
    fn swap_goes_out_in_spite_of_a_limit_since_6_12_and_metadata_always() {
        let bio = |target, write| Bio {
            device: DEVICE,
            sector: 0,
            pages: 1,
            write,
            sync: false,
            target,
            memory: BioMemory::NONE,
        };
        let room = CopyRoom { read: 1, write: 2, exempt: 3 };
        let swap = BioTarget::Swap { pfn: Pfn(7) };
        for (exempt, out) in [(IoMaxExempt::Nothing, 2), (IoMaxExempt::SwapOut, 3)] {
            assert_eq!(*room.clone().of(&bio(swap, true), exempt), out);
            assert_eq!(*room.clone().of(&bio(swap, false), exempt), 1);
        }
        let (mut rig, []) = written(BioEnd::Copy(COSTS), 0, []);
        rig.mm.set_copy_room(DEVICE, CopyRoom { exempt: 1, ..CopyRoom::default() });
        let (env, metadata) = (rig.env, bio(BioTarget::Metadata, true));
        rig.mm.submit(&env, metadata);
        rig.collect();
        assert!(rig.effects.contains(&Effect::Copied { bio: metadata, of_root: true }), "{:?}", rig.effects);
        // A limit of the root group holds it back, too.
        rig.mm.limit_root(DEVICE);
        rig.mm.submit(&env, metadata);
        rig.collect();
        assert_eq!(rig.bios.len(), 1);
    }
}
