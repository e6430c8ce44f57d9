//! Writeback ends.
//!
//! Rule: the page is not under writeback any more and counts as written, also if the device failed. If reclaim wants it
//! back, it goes to the tail of the inactive list. Who waits for it is woken.
//! What a file system wrote in one go ends as a whole where it does (ioend.rs), and where that takes a change of metadata, a worker does it
//! (end_io.rs).
//! Source: `end_page_writeback()`, mm/filemap.c, `test_clear_page_writeback()`, mm/page-writeback.c (4.20; 6.12 the
//! same).

use units::{FileId, Pfn};

use super::ioend::WrittenRun;
use super::{WbId, jiffies};
use crate::pagecache::{Direction, FolioIoEnd, Slot};
use crate::vfs::FsKind;
use crate::{Bio, BioTarget, Env, Frame, Mm};

impl Mm {
    /// The write of a bio of a file, or of metadata, has ended.
    pub fn end_writeback(&mut self, env: &Env, bio: &Bio, ok: bool) {
        debug_assert!(bio.write);
        let BioTarget::File { file, .. } = bio.target else {
            assert!(bio.target == BioTarget::Metadata, "a write to swap ends in swap");
            return;
        };
        self.free_bio(env, &bio.memory.parts);
        if !ok {
            self.writeback.write_errors += u64::from(bio.pages);
        }
        if let Some(run) = self.written_with(bio, file, ok) {
            self.run_written(env, run);
        }
    }

    /// The pages of a run leave writeback, those of large folios with the last of each; how many of the others are still in the page cache, from the first one on.
    pub(super) fn end_pages(&mut self, env: &Env, run: WrittenRun) -> u32 {
        let WrittenRun { file, index, pages, device, .. } = run;
        let (now, wb) = (jiffies(env.now), self.wb_of(file));
        let each = match self.vfs.kind_on(device) {
            Some(FsKind::Xfs) => self.costs.end_page_xfs,
            Some(FsKind::Ext4) => self.costs.end_page_ext4,
            None => 0,
        };
        let (mut there, mut folios) = (0, 0);
        for at in index..index + pages {
            match self.end_folio_io(file, at, Direction::Write, true) {
                FolioIoEnd::NotYet => continue,
                FolioIoEnd::SinglePage => {
                    self.end_page_writeback(file, at, wb, now);
                    there += 1;
                }
                FolioIoEnd::Last { pfn, truncated: true, .. } => {
                    self.count_written(pfn, wb, now);
                    self.free_truncated(env, pfn);
                }
                FolioIoEnd::Last { pfn, .. } => self.end_folio_writeback(pfn, wb, now),
            }
            folios += 1;
        }
        self.charge(folios * each);
        there
    }

    pub(super) fn end_page_writeback(&mut self, file: FileId, index: u32, wb: WbId, now: u64) {
        match self.pagecache_get(file, index) {
            Slot::Page(pfn) => self.end_folio_writeback(pfn, wb, now),
            slot => panic!("page {index} of {file:?} left the cache under writeback: {slot:?}"),
        }
    }

    fn end_folio_writeback(&mut self, pfn: Pfn, wb: WbId, now: u64) {
        assert!(self.frames[pfn].take(Frame::WRITEBACK), "{pfn:?} is not under writeback");
        self.record_end_writeback(pfn);
        self.count_written(pfn, wb, now);
        if self.frames[pfn].take(Frame::RECLAIM) {
            self.rotate_reclaimable(pfn);
        }
        self.acct_reclaim_writeback(pfn);
        self.wake_page(pfn);
    }
}
