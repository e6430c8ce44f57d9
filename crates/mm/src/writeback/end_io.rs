//! Writes whose end changes metadata.
//!
//! Rule: data of XFS behind a file's size on disk has that size logged when it is there; blocks of ext4 that were unwritten when the write began are
//! converted ([`DelayedBlocks`](rules::DelayedBlocks)). The pages stay under writeback until a worker has had a CPU and done it. Only
//! if a run of ext4 ends before whoever submits it is through does that one convert it. After an error nothing is changed.
//! Source: `xfs_end_io()`, fs/xfs/xfs_aops.c (4.20); `ext4_put_io_end()`, `ext4_put_io_end_defer()`, `ext4_end_io_rsv_work()`,
//! `ext4_end_io_end()`, fs/ext4/page-io.c, `ext4_convert_unwritten_io_end_vec()`, fs/ext4/extents.c (6.12).
//! Abstracted: one worker for all CPUs and file systems, which does with the memory that is there. Blocks that fill a hole of a file of XFS count
//! as appended. Where the journal has the inode's block, the worker waits for it in the place of the submitter. Blocks whose write
//! failed count as written. What is reserved for a conversion: `vfs::credits`.

use crate::effects::BioObjects;
use crate::vfs::FsKind;
use crate::{Effect, Env, Mm};

use super::ioend::WrittenRun;

/// A run that is on its device, and waits for the worker.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    run: WrittenRun,
    /// What is still held of its bio.
    objects: BioObjects,
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
            Some(FsKind::Xfs) => run.ok && self.reaches_behind_size(run.file),
            None => false,
        };
        if !waits {
            return self.finish_run(env, run);
        }
        let objects = self.alloc_ended_bio(env, run.file, run.device);
        self.writeback.ended.push_back(Ended { run, objects });
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
        let Some(Ended { run, objects }) = self.writeback.ended.front().copied() else { return EndIoStep::Idle };
        if run.credits > 0 && self.may_change_inode(run.file).is_err() {
            return EndIoStep::Journal;
        }
        self.writeback.ended.pop_front();
        self.finish_run(env, run);
        self.free_bio(env, &objects);
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
        } else {
            self.log_size(env, run.file);
        }
    }
}
