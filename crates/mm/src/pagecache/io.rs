//! Reads of pages into the cache: bios, and what their end does.
//!
//! Rule: one bio for each run of pages that lie side by side in the file and on the device, at most
//! `BIO_MAX_PAGES` long. A page is locked from before the read is submitted until it ends; then it is up to
//! date. A page without a block on the device is a hole and is zeroed at once.
//! Source: `iomap_readpages()`, fs/iomap.c (4.20); `iomap_readahead()`, fs/iomap/buffered-io.c (6.12);
//! `submit_bio()`, block/blk-core.c, for `pgpgin` and `pgpgout`, which count sectors and are printed in KiB.
//! Abstracted: bios are limited to so many pages in 6.12, too, where only the queue's limits count.

use units::{FileId, PAGE_SHIFT, Pfn};

use super::{Direction, FolioIoEnd, Slot};
use crate::stat::VmEvent;
use crate::vfs::Extent;
use crate::{Bio, BioMemory, BioTarget, Effect, Env, Frame, Mm};

impl Mm {
    /// Counts and charges a bio that is handed to the block layer.
    pub fn account_bio(&mut self, bio: Bio) {
        let event = if bio.write { VmEvent::Pgpgout } else { VmEvent::Pgpgin };
        self.stat.count(event, u64::from(bio.pages) << (PAGE_SHIFT - 10));
        self.charge(self.submission_cost(bio.device));
    }

    /// Wakes who waits for a page's lock or writeback.
    #[inline]
    pub(crate) fn wake_page(&mut self, pfn: Pfn) {
        if self.frames[pfn].take(Frame::WAITERS) {
            self.effects.push(Effect::WakePage(pfn));
        }
    }

    /// Starts reading the pages of locked folios `from .. to` of a file.
    pub(super) fn submit_read(&mut self, env: &Env, file: FileId, from: u32, to: u32) {
        let mut at = from;
        self.note_read(env, file, from, to);
        while at < to {
            let Some(Extent { device, sector, pages }) = self.map_block(file, at) else {
                self.charge(self.costs.zero_page);
                self.end_read(env, file, at, 1, true);
                at += 1;
                continue;
            };
            debug_assert!(pages > 0);
            let pages = pages.min(to - at).min(self.bio_vectors_max());
            self.charge(self.costs.read_bio);
            if self.is_synchronous(device) {
                self.stat.count(VmEvent::Pgpgin, u64::from(pages) << (PAGE_SHIFT - 10));
                self.charge(self.costs.copied_bio);
                self.charge_sync_bio(device, false, pages);
                self.end_read(env, file, at, pages, true);
                at += pages;
                continue;
            }
            let target = BioTarget::File { file, index: at };
            let bio = Bio { device, sector, pages, write: false, sync: true, target, memory: BioMemory::NONE };
            self.submit(env, bio);
            at += pages;
        }
    }

    /// A read of `pages` pages from `index` on has ended.
    pub fn end_read(&mut self, env: &Env, file: FileId, index: u32, pages: u32, ok: bool) {
        for at in index..index + pages {
            match self.end_folio_io(file, at, Direction::Read, ok) {
                FolioIoEnd::SinglePage => match self.pagecache_get(file, at) {
                    Slot::Page(pfn) => self.end_folio_read(pfn, ok),
                    slot => panic!("page {at} of {file:?} left the cache while it was read: {slot:?}"),
                },
                FolioIoEnd::NotYet => {}
                FolioIoEnd::Last { pfn, truncated: true, .. } => self.free_truncated(env, pfn),
                FolioIoEnd::Last { pfn, ok, .. } => self.end_folio_read(pfn, ok),
            }
        }
    }

    /// All that was read of a folio has come, or failed.
    #[inline]
    fn end_folio_read(&mut self, pfn: Pfn, ok: bool) {
        let frame = &mut self.frames[pfn];
        assert!(frame.take(Frame::LOCKED), "{pfn:?} is not being read");
        if ok {
            frame.set(Frame::UPTODATE);
        }
        self.wake_page(pfn);
    }
}
