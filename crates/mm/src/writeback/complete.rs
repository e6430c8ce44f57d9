//! Writeback ends.
//!
//! Rule: the page is not under writeback any more and counts as written, also if the device failed. If reclaim wants it
//! back, it goes to the tail of the inactive list. Who waits for it is woken.
//! Source: `end_page_writeback()`, mm/filemap.c, `test_clear_page_writeback()`, mm/page-writeback.c (4.20; 6.12 the
//! same), `xfs_end_io()`, fs/xfs/xfs_aops.c.
//! XFS leaves data behind a file's size on disk to a worker ([`Mm::end_ioend`]): the pages stay under writeback until it has had a
//! CPU and logged the size.
//! Abstracted: one worker for all CPUs and file systems, which does with the memory that is there. Blocks that fill a hole count
//! as appended.

use units::{FileId, Pfn};

use super::jiffies;
use crate::pagecache::Slot;
use crate::{Bio, BioTarget, Effect, Env, Frame, Mm};

impl Mm {
    /// The write of a bio of a file, or of metadata, has ended.
    pub fn end_writeback(&mut self, env: &Env, bio: &Bio, ok: bool) {
        debug_assert!(bio.write);
        let BioTarget::File { file, index } = bio.target else {
            assert!(bio.target == BioTarget::Metadata, "a write to swap ends in swap");
            return;
        };
        if ok && self.reaches_behind_size(file) {
            self.writeback.ioends.push_back((*bio, file, index));
            self.effects.push(Effect::WakeIoend);
            return;
        }
        if !ok {
            self.writeback.write_errors += u64::from(bio.pages);
            self.set_write_error(file);
        }
        self.end_bio_pages(env, bio, file, index);
    }

    /// Ends a write of XFS that waits for its worker (`xfs_end_io()`); says whether there was one.
    pub fn end_ioend(&mut self, env: &Env) -> bool {
        let Some((bio, file, index)) = self.writeback.ioends.pop_front() else { return false };
        self.log_size(env, file);
        self.end_bio_pages(env, &bio, file, index);
        true
    }

    /// Whether a write waits for XFS's worker.
    pub fn has_ioends(&self) -> bool {
        !self.writeback.ioends.is_empty()
    }

    fn end_bio_pages(&mut self, env: &Env, bio: &Bio, file: FileId, index: u32) {
        self.free_bio(env, &bio.memory);
        let now = jiffies(env.now);
        for at in index..index + bio.pages {
            if let Some(pfn) = self.take_truncated(file, at) {
                self.count_written(pfn, bio.device, now);
                self.free_truncated(env, pfn);
                continue;
            }
            self.end_page_writeback(file, at, bio.device, now);
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
