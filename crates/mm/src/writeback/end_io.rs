//! Writes whose end changes metadata.
//!
//! Rule: data of XFS behind a file's size on disk has that size follow when it is there, and since 5.8 the extents that were unwritten till then
//! ([`XfsWriteEnd`](rules::XfsWriteEnd)); blocks of ext4 that were unwritten when the write began are
//! converted ([`DelayedBlocks`](rules::DelayedBlocks)). The pages stay under writeback until a worker has had a CPU and done it. Only
//! if a run of ext4 ends before whoever submits it is through does that one convert it. After an error nothing is changed.
//! Source: `xfs_end_io()`, fs/xfs/xfs_aops.c (4.20); `ext4_put_io_end()`, `ext4_put_io_end_defer()`, `ext4_end_io_rsv_work()`,
//! `ext4_end_io_end()`, fs/ext4/page-io.c, `ext4_convert_unwritten_io_end_vec()`, fs/ext4/extents.c (6.12).
//! Abstracted: one worker for all CPUs, for each file system, of which any ends what waits; it does with the memory that is there. Of a run of several bios one is
//! held while it waits. A leaf of extents that is on its way to the log is changed without a wait. Of XFS, the first write of a
//! file that ends after blocks filled a hole is taken for the one that fills it. Where the journal has the inode's block, the worker waits for it in the place of the submitter. Blocks whose write
//! failed count as written. What is reserved for a conversion: `vfs::credits`.

use crate::effects::BioParts;
use crate::vfs::FsKind;
use crate::{Effect, Env, Mm};

use super::ioend::WrittenRun;

/// A run that is on its device, and waits for the worker.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    run: WrittenRun,
    /// What is still held of its bio.
    parts: BioParts,
}

/// What the worker did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EndIoStep {
    /// One run.
    Done,
    /// Wait until what is being written to the journal is there, then call again.
    Journal,
    /// None is left.
    Idle,
}

impl Mm {
    /// The last bio of a run has ended: its pages leave writeback, or wait for the worker.
    pub(super) fn run_written(&mut self, env: &Env, run: WrittenRun) {
        let waits = match self.vfs.kind_on(run.device) {
            Some(FsKind::Ext4) => run.credits > 0,
            Some(FsKind::Xfs) => run.ok && self.data_changes_inode(run.file, run.index + run.pages),
            None => false,
        };
        if !waits {
            return self.finish_run(env, run);
        }
        let parts = self.alloc_ended_bio(env, run.file, run.device);
        self.writeback.ended.push_back(Ended { run, parts });
        self.effects.push(Effect::WakeEndIo);
    }

    /// Whoever submitted a run is through, and all its bios have ended.
    pub(super) fn run_closed(&mut self, env: &Env, run: WrittenRun) {
        if run.credits > 0 && self.may_change_inode(run.file).is_ok() {
            self.finish_run(env, run);
        } else {
            self.run_written(env, run);
        }
    }

    /// Ends the next run that waits for the worker.
    pub fn end_io_step(&mut self, env: &Env) -> EndIoStep {
        let Some(Ended { run, parts }) = self.writeback.ended.front().copied() else { return EndIoStep::Idle };
        if run.credits > 0 && self.may_change_inode(run.file).is_err() {
            return EndIoStep::Journal;
        }
        self.writeback.ended.pop_front();
        self.finish_run(env, run);
        self.free_bio(env, &parts);
        EndIoStep::Done
    }

    /// Whether a write waits for the worker.
    pub fn has_end_io(&self) -> bool {
        !self.writeback.ended.is_empty()
    }

    fn finish_run(&mut self, env: &Env, run: WrittenRun) {
        if !run.ok {
            self.set_write_error(run.file);
        }
        if run.credits > 0 {
            self.release_conversion(run.device, run.credits);
        }
        let there = self.end_pages(env, run);
        if !run.ok {
            return;
        }
        if run.credits > 0 && there > 0 {
            self.convert_unwritten(env, run.file, run.index, there);
        } else if self.vfs.kind_on(run.device) == Some(FsKind::Xfs) {
            self.log_data_written(env, run.file, run.index + run.pages);
        }
    }
}

#[cfg(test)]
mod tests {
    use rules::{BioVectors, DelayedBlocks, Rules};
    use units::Nanos;

    use super::*;
    use crate::Frame;
    use crate::pagecache::rig::Rig;

    const DEVICE: u16 = 3;

    #[test]
    fn what_was_appended_stays_under_writeback_until_a_worker_has_changed_its_metadata() {
        let until_5_5 = Rules { delayed_blocks: DelayedBlocks::Written, ..Rules::newest() };
        let rigs =
            [(Rig::new(1, 1 << 14), true), (Rig::ext4(1 << 14), true), (Rig::ext4_with(1 << 14, until_5_5), false)];
        for (mut rig, waits) in rigs {
            let file = rig.create();
            rig.write(file, 0);
            rig.write_back(file);
            let bio = rig.bios.pop_front().expect("it is under way");
            rig.mm.end_bio(&rig.env, &bio, true);
            rig.collect();
            assert_eq!(rig.effects.contains(&Effect::WakeEndIo), waits);
            assert_eq!(rig.mm.has_end_io(), waits);
            assert_eq!(rig.mm.frames[rig.page(file, 0)].has(Frame::WRITEBACK), waits);
            rig.end_io();
            assert!(!rig.mm.frames[rig.page(file, 0)].has(Frame::WRITEBACK));
            // The same page again: the size does not change.
            rig.write(file, 0);
            rig.write_back(file);
            let bio = rig.bios.pop_front().expect("it is under way");
            rig.mm.end_bio(&rig.env, &bio, true);
            assert!(!rig.mm.has_end_io());
            rig.check();
        }
    }

    #[test]
    fn a_run_of_ext4_leaves_writeback_as_a_whole_and_no_longer_than_it_maps_at_a_time() {
        let mut rig = Rig::ext4(1 << 15);
        let file = rig.create();
        for index in 0..3000 {
            rig.write(file, index);
        }
        rig.mm.rules.bio_vectors = BioVectors::Pages;
        rig.mm.write_dirty_pages(&rig.env, file, 0, u32::MAX);
        rig.collect();
        // 2048 pages are eight bios, the other 952 four.
        let pages: Vec<u32> = rig.bios.iter().map(|bio| bio.pages).collect();
        assert_eq!(pages, [256, 256, 256, 256, 256, 256, 256, 256, 256, 256, 256, 184]);
        let mut under_writeback = Vec::new();
        while let Some(bio) = rig.bios.pop_front() {
            rig.mm.end_bio(&rig.env, &bio, true);
            rig.end_io();
            under_writeback.push(rig.mm.dirty_pages_of(file).1);
        }
        assert_eq!(under_writeback, [[3000; 7].as_slice(), &[952; 4], &[0]].concat());
        rig.check();
    }

    #[test]
    fn who_submits_a_run_of_ext4_that_has_ended_by_then_converts_it() {
        let mut rig = Rig::ext4(1 << 14);
        let costs = crate::CopyCosts { bio: Nanos(1_000), read: Nanos(500), write: Nanos(500) };
        rig.mm.set_bio_end(DEVICE, crate::BioEnd::Copy(costs));
        rig.mm.set_copy_room(DEVICE, crate::CopyRoom::ALL);
        let file = rig.create();
        rig.write(file, 0);
        rig.mm.write_dirty_pages(&rig.env, file, 0, u32::MAX);
        assert!(!rig.mm.has_end_io());
        assert_eq!(rig.mm.dirty_pages_of(file), (0, 0));
        rig.collect();
        rig.check();
    }

    #[test]
    fn what_waits_for_the_worker_holds_its_bio() {
        // A slab has room for twelve ioends: one is enough where each ends before the next, four for forty at once.
        for (at_once, slabs) in [(1, 1), (40, 4)] {
            let mut rig = Rig::new(1, 1 << 14);
            for number in 1..=40 {
                let file = rig.create();
                rig.write(file, 0);
                rig.mm.write_dirty_pages(&rig.env, file, 0, u32::MAX);
                rig.collect();
                let bio = rig.bios.pop_front().expect("it is under way");
                rig.mm.end_bio(&rig.env, &bio, true);
                if number % at_once == 0 {
                    assert_eq!(rig.objects("bio-320").div_ceil(12), slabs, "{at_once} at once");
                    rig.end_io();
                }
            }
            rig.check();
        }
    }
}
