//! Dirty pages of one file become bios.
//!
//! Rule: dirty pages are taken in the order of their index; those that are still under an earlier writeback are
//! skipped, or waited for where the data must be on the device. Delayed allocation happens here, for the whole run of
//! dirty pages at once. Pages that follow each other in the file and on the device share a bio of up to 256 pages.
//! Source: `write_cache_pages()`, mm/page-writeback.c, `xfs_writepage_map()`, `xfs_add_to_ioend()`,
//! fs/xfs/xfs_aops.c (4.20); `iomap_writepages()`, fs/iomap/buffered-io.c (6.12 the same on order-0 folios).
//! Abstracted: XFS allocates the whole delayed extent, here at most `DELALLOC_MAX` pages of it.
//! Omitted: pages beyond the end of the file, unwritten extents.

use units::{FileId, Gfp, Pfn};

use crate::pagecache::{BIO_PAGES, Slot};
use crate::slab::CacheId;
use crate::stat::{NodeStat, ZoneStat};
use crate::vfs::{Extent, FsKind};
use crate::{Bio, BioMemory, BioTarget, Env, Frame, Mm};

/// Most pages that are allocated at once: 1 GiB. A guess; XFS stops at an extent of 8 GiB.
const DELALLOC_MAX: u32 = 1 << 18;

/// Why the writing of a file's pages stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Written {
    /// As many pages as asked for were written.
    Enough,
    /// No dirty page is left from here to the end.
    End,
    /// A page is under an earlier writeback; wait for it.
    Wait(Pfn),
}

/// What writing a part of a file's dirty pages did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WriteRun {
    /// Pages whose writeback was started.
    pub(crate) pages: u32,
    /// Where to go on.
    pub(crate) next: u32,
    pub(crate) stop: Written,
}

/// A bio that may grow.
struct Open {
    bio: Bio,
    /// Page up to which the extent goes.
    extent_end: u32,
}

impl Mm {
    /// Starts the writeback of up to `max` dirty pages of a file from page `from` on. With `sync` somebody waits for
    /// the data, and pages under an earlier writeback are waited for.
    pub(crate) fn write_dirty_pages(&mut self, env: &Env, file: FileId, from: u32, max: u32, sync: bool) -> WriteRun {
        let mut run = WriteRun { pages: 0, next: from, stop: Written::Enough };
        let mut open: Option<Open> = None;
        while run.pages < max {
            let Some(index) = self.pagecache.trees.next_dirty(file.0, run.next) else {
                run.stop = Written::End;
                break;
            };
            let Slot::Page(pfn) = self.pagecache_get(file, index) else {
                panic!("a dirty tag without a page: {file:?} {index}");
            };
            if self.frames[pfn].has(Frame::WRITEBACK) {
                if sync {
                    self.frames[pfn].set(Frame::WAITERS);
                    run.stop = Written::Wait(pfn);
                    break;
                }
                run.next = index + 1;
                continue;
            }
            self.add_to_bio(env, &mut open, file, index, sync);
            self.start_writeback(pfn);
            run.pages += 1;
            run.next = index + 1;
        }
        if let Some(last) = open {
            self.submit_write(env, last.bio);
        }
        run
    }

    /// Adds a page to the bio, or submits that and begins another.
    fn add_to_bio(&mut self, env: &Env, open: &mut Option<Open>, file: FileId, index: u32, sync: bool) {
        if let Some(Open { bio, extent_end }) = open {
            let BioTarget::File { index: first, .. } = bio.target else { unreachable!("a bio of a file") };
            if index == first + bio.pages && index < *extent_end && bio.pages < BIO_PAGES {
                bio.pages += 1;
                return;
            }
        }
        let Extent { device, sector, pages } = match self.map_block(file, index) {
            Some(extent) => extent,
            None => {
                let run = self.pagecache.trees.dirty_run(file.0, index, DELALLOC_MAX).max(1);
                self.log_transaction(env, file);
                self.log_item_nowait(env, file);
                self.charge(self.by_fs(file, self.costs.allocate_extent, self.costs.allocate_ext4));
                self.allocate_blocks(file, index, run)
            }
        };
        debug_assert!(pages > 0);
        let next = Bio {
            device,
            sector,
            pages: 1,
            write: true,
            sync,
            target: BioTarget::File { file, index },
            memory: BioMemory::NONE,
        };
        let next = Open { bio: next, extent_end: index.saturating_add(pages) };
        if let Some(full) = open.replace(next) {
            let follows = full.bio.pages < BIO_PAGES && full.bio.device == device;
            let BioTarget::File { index: first, .. } = full.bio.target else { unreachable!("a bio of a file") };
            if follows && index == first + full.bio.pages && sector == full.bio.sector + u64::from(full.bio.pages) * 8 {
                // Another extent that happens to lie right behind: the same bio.
                let end = index.saturating_add(pages);
                *open = Some(Open { bio: Bio { pages: full.bio.pages + 1, ..full.bio }, extent_end: end });
            } else {
                self.submit_write(env, full.bio);
            }
        }
    }

    /// Hands a bio of a file's data to the block layer. It is allocated for as many vectors as there may be
    /// (`BIO_MAX_PAGES`), whatever it carries in the end; what cannot be had without sleeping comes from a reserve. One
    /// that ends as it is submitted takes no more than a place for a moment.
    pub(crate) fn submit_write(&mut self, env: &Env, bio: Bio) {
        let BioTarget::File { file, .. } = bio.target else { unreachable!("a bio of a file") };
        if !self.bio_holds_memory(bio.device) {
            return self.submit(bio);
        }
        let cache = Mm::bio_cache(self.fs_kind(file));
        let memory = BioMemory {
            bio: self.slab_alloc_nowait(env, cache, Gfp::NOFS),
            vecs: self.slab_alloc_nowait(env, CacheId::BIOVEC_MAX, Gfp::NOFS),
        };
        self.submit(Bio { memory, ..bio });
    }

    /// Where bios of data that is written come from (`xfs_ioend_bioset`, `fs_bio_set`).
    fn bio_cache(kind: FsKind) -> CacheId {
        match kind {
            FsKind::Xfs => CacheId::XFS_IOEND,
            FsKind::Ext4 => CacheId::BIO,
        }
    }

    /// A bio of a file's data is done with.
    pub(super) fn free_bio(&mut self, env: &Env, bio: &Bio, file: FileId) {
        let cache = Mm::bio_cache(self.fs_kind(file));
        for (cache, obj) in [(cache, bio.memory.bio), (CacheId::BIOVEC_MAX, bio.memory.vecs)] {
            if obj.is_some() {
                self.slab_free(env, cache, obj);
            }
        }
    }

    /// A dirty page is being written from now on (`clear_page_dirty_for_io()`, `set_page_writeback()`).
    #[inline]
    pub(super) fn start_writeback(&mut self, pfn: Pfn) {
        let frame = &mut self.frames[pfn];
        debug_assert!(frame.has(Frame::DIRTY) && !frame.has_any(Frame::WRITEBACK | Frame::LOCKED));
        frame.clear(Frame::DIRTY);
        frame.set(Frame::WRITEBACK);
        let record = self.untag_dirty(pfn);
        let state = &mut self.writeback.records[record];
        state.nr_writeback += 1;
        let device = state.device;
        self.writeback.devices[usize::from(device)].writeback += 1;
        self.stat.node_add(self.node_of(pfn), NodeStat::Writeback, 1);
        let owner = FileId(self.frames[pfn].owner);
        self.charge(self.costs.writeback_page + self.by_fs(owner, 0, self.costs.writeback_ext4));
    }

    /// A page under writeback is not any more: counters of its file.
    pub(crate) fn record_end_writeback(&mut self, pfn: Pfn) {
        let file = self.frames[pfn].owner;
        let record = self.pagecache.trees.files[file as usize].record;
        self.writeback.records[record].nr_writeback -= 1;
        self.release_record(record);
    }

    /// The same for its node, zone and device.
    #[inline]
    pub(super) fn count_written(&mut self, pfn: Pfn, device: u16, now: u64) {
        let (zone, node) = (self.zone_of(pfn), self.node_of(pfn));
        self.stat.node_add(node, NodeStat::Writeback, -1);
        self.stat.node_add(node, NodeStat::Written, 1);
        self.stat.zone_add(zone, ZoneStat::WritePending, -1);
        let state = &mut self.writeback.devices[usize::from(device)];
        state.writeback -= 1;
        state.written += 1;
        self.writeback.total.count(&mut state.share, now);
    }
}
