//! Writeback ends.
//!
//! Rule: the page is not under writeback any more and counts as written, also if the device failed. If reclaim wants it
//! back, it goes to the tail of the inactive list. Who waits for it is woken.
//! What XFS wrote in one go ends as a whole where it does (see ioend.rs).
//! Source: `end_page_writeback()`, mm/filemap.c, `test_clear_page_writeback()`, mm/page-writeback.c (4.20; 6.12 the
//! same), `xfs_end_io()`, fs/xfs/xfs_aops.c.
//! XFS leaves data behind a file's size on disk to a worker ([`Mm::end_appended`]): the pages stay under writeback until it has had a
//! CPU and logged the size.
//! Abstracted: one worker for all CPUs and file systems, which does with the memory that is there. Blocks that fill a hole count
//! as appended.

use units::{FileId, Pfn};

use super::ioend::WrittenRun;
use super::jiffies;
use crate::effects::BioObjects;
use crate::pagecache::Slot;
use crate::{Bio, BioTarget, Effect, Env, Frame, Mm};

/// What XFS wrote behind the size that a file has on disk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Appended {
    run: WrittenRun,
    /// What is still held of its bio.
    objects: BioObjects,
}

impl Mm {
    /// The write of a bio of a file, or of metadata, has ended.
    pub fn end_writeback(&mut self, env: &Env, bio: &Bio, ok: bool) {
        debug_assert!(bio.write);
        let BioTarget::File { file, .. } = bio.target else {
            assert!(bio.target == BioTarget::Metadata, "a write to swap ends in swap");
            return;
        };
        self.free_bio(env, &bio.memory.objects);
        if !ok {
            self.writeback.write_errors += u64::from(bio.pages);
        }
        if let Some(run) = self.written_with(bio, file, ok) {
            self.end_run(env, run);
        }
    }

    /// A run of a file's pages is written: they leave writeback, unless the file's size is to be logged first.
    pub(super) fn end_run(&mut self, env: &Env, run: WrittenRun) {
        if run.ok && self.reaches_behind_size(run.file) {
            let objects = self.alloc_ended_bio(env, run.file, run.device);
            self.writeback.appended.push_back(Appended { run, objects });
            self.effects.push(Effect::WakeAppended);
            return;
        }
        if !run.ok {
            self.set_write_error(run.file);
        }
        self.end_pages(env, run);
    }

    /// Logs the size of a file of XFS that was appended to and ends the write (`xfs_end_io()`); says whether there was one.
    pub fn end_appended(&mut self, env: &Env) -> bool {
        let Some(Appended { run, objects }) = self.writeback.appended.pop_front() else { return false };
        self.log_size(env, run.file);
        self.end_pages(env, run);
        self.free_bio(env, &objects);
        true
    }

    /// Whether a write waits for its file's size to be logged.
    pub fn has_appended(&self) -> bool {
        !self.writeback.appended.is_empty()
    }

    fn end_pages(&mut self, env: &Env, run: WrittenRun) {
        let WrittenRun { file, index, pages, device, .. } = run;
        let now = jiffies(env.now);
        // Not by the file, which may be gone by now.
        if self.vfs.has_xfs_on(device) {
            self.charge(u64::from(pages) * self.costs.end_page_xfs);
        }
        for at in index..index + pages {
            if let Some(pfn) = self.take_truncated(file, at) {
                self.count_written(pfn, device, now);
                self.free_truncated(env, pfn);
                continue;
            }
            self.end_page_writeback(file, at, device, now);
        }
    }

    pub(super) fn end_page_writeback(&mut self, file: FileId, index: u32, device: u16, now: u64) {
        let pfn: Pfn = match self.pagecache_get(file, index) {
            Slot::Page(pfn) => pfn,
            slot => panic!("page {index} of {file:?} left the cache under writeback: {slot:?}"),
        };
        assert!(self.frames[pfn].take(Frame::WRITEBACK), "{pfn:?} is not under writeback");
        self.record_end_writeback(pfn);
        self.count_written(pfn, device, now);
        if self.frames[pfn].take(Frame::RECLAIM) {
            self.rotate_reclaimable(pfn);
        }
        self.acct_reclaim_writeback(pfn);
        self.wake_page(pfn);
    }
}
