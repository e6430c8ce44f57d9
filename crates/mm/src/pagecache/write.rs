//! Buffered writes of whole pages.
//!
//! Rule: the page is looked up, allocated and put in if it is missing, filled, and marked dirty. A missing page is
//! allocated with `__GFP_WRITE`, which spreads dirty pages over the nodes, and without `__GFP_FS` where the file system
//! says so. Its data is not read first, since all of it is replaced. A page without a block claims one, or the write
//! fails. Until 4.6 a write marks the page accessed, as a read does ([`WriteAccess`]): a page that is written twice becomes
//! active, and reclaim spares a written page that is still dirty when it first meets it.
//! Source: `pagecache_get_page()`, mm/filemap.c, `iomap_write_begin()`, fs/iomap.c (4.20); `iomap_write_iter()`, fs/iomap/buffered-io.c (6.12).
//! A page under writeback may have to be waited for ([`WrittenMeanwhile`]). Where there are large folios, a missing page comes with as many behind
//! it as the call goes on to write and lie aligned, or as few as there is memory for, and all that a call writes of a folio it writes in one go.
//! Omitted: parts of pages, hence reads before writes.

use rules::{DelayedWrite, WriteAccess, WrittenMeanwhile, XfsWriteMap};
use units::{FileId, Gfp, Order, PAGEBLOCK_ORDER, Pfn};

use super::Slot;
use super::folio::{FolioPlace, order_to_write};
use crate::vfs::{FsKind, Need};
use crate::{Env, Frame, Mm};

/// What a system call still has to write of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageWrite {
    /// The file.
    pub file: FileId,
    /// The first page that is to be written now.
    pub index: u32,
    /// How many are to be written from there on, 1 or more.
    pub request: u32,
    /// Memory from the slow path, after [`Need::Page`]; nothing if there was none, which a write can do without
    /// ([`Need::is_optional`]).
    pub hand: Option<Pfn>,
    /// What was asked for last, if that may be refused.
    asked: Option<Need>,
    /// Largest order that was not refused.
    most: Order,
}

impl PageWrite {
    /// A write of `request` pages from `index` on.
    pub fn new(file: FileId, index: u32, request: u32) -> PageWrite {
        PageWrite { file, index, request, hand: None, asked: None, most: PAGEBLOCK_ORDER }
    }
}

/// Why a write stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WriteStop {
    /// Pages are written.
    Done {
        /// How many.
        written: u32,
        /// How many became dirty by that (counts for `TaskDirty`): all of the folio, if it was clean or not cached.
        dirtied: u32,
    },
    /// Something is missing; provide it and call again.
    Need(Need),
    /// The page is being read, or written by the device; wait for it and call again.
    Wait(Pfn),
}

impl Mm {
    /// Writes the first page of those that a system call still writes, and those behind it that are in the same folio. What is
    /// left in hand when something else is needed is for the next call, and nothing is after `Done`.
    pub fn write_page(&mut self, env: &Env, write: &mut PageWrite) -> WriteStop {
        let PageWrite { file, index, request, .. } = *write;
        debug_assert!(request > 0);
        self.charge(self.costs.cache_lookup);
        let pfn = match self.pagecache_get(file, index) {
            Slot::Page(pfn) => {
                self.free_hand(env, &mut write.hand);
                let waits = self.rules.written_meanwhile == WrittenMeanwhile::Waits;
                let frame = &mut self.frames[pfn];
                if frame.has(Frame::LOCKED) || waits && frame.has(Frame::WRITEBACK) {
                    frame.set(Frame::WAITERS);
                    return WriteStop::Wait(pfn);
                }
                let clean = !self.frames[pfn].has(Frame::DIRTY) || self.frames[pfn].order() > Order(0);
                if clean && self.nr_room_for(file, index..index + 1) == 0 {
                    return WriteStop::Need(Need::Space);
                }
                pfn
            }
            Slot::Empty | Slot::Shadow(_) => {
                if self.nr_room_for(file, index..index + 1) == 0 {
                    return WriteStop::Need(Need::Space);
                }
                match self.folio_to_write(env, write) {
                    Ok(pfn) => pfn,
                    Err(need) => return WriteStop::Need(need),
                }
            }
        };
        // Nothing of it is needed from the disk, whether or not the write goes on now.
        self.frames[pfn].set(Frame::UPTODATE);
        let prepared = self.attach_buffers(env, pfn).and_then(|()| self.allocate_at_once(env, file, index));
        if let Err(need) = prepared {
            return WriteStop::Need(need);
        }
        let end = self.folio_indices(pfn).end.min(index + request);
        // There is room for the first of them.
        let end = if end == index + 1 { end } else { index + self.nr_room_for(file, index..end) };
        let extends = end > self.inode_size_pages(file);
        let extending = if extends { self.costs.extend_ext4 } else { 0 };
        let handle = if self.rules.delayed_write == DelayedWrite::Handle { self.costs.delayed_handle } else { 0 };
        let of_ext4 = self.costs.write_ext4 + extending + handle;
        let of_xfs = self.map_xfs(file, XfsWriteMap::Pages);
        self.hold_ilock(env, file, of_xfs);
        self.charge(u64::from(end - index) * self.costs.copy_page + self.by_fs(file, of_xfs, of_ext4));
        if self.rules.write_access == WriteAccess::Marked {
            self.mark_page_accessed(env, pfn);
        }
        if extends {
            self.set_inode_size_pages(env, file, end);
        }
        WriteStop::Done { written: end - index, dirtied: self.set_range_dirty(env, pfn, index..end) }
    }

    /// A new folio for pages from `index` on that are about to be written; a smaller one, down to a page, where pages behind it
    /// are cached already or memory has no such block.
    fn folio_to_write(&mut self, env: &Env, write: &mut PageWrite) -> Result<Pfn, Need> {
        let PageWrite { file, index, request, .. } = *write;
        let gfp = self.mapping_gfp(file).with(Gfp::WRITE);
        let large = self.writes_large_folios(file);
        let mut order = if large { order_to_write(index, request).min(write.most) } else { Order(0) };
        loop {
            while order > Order(0) && self.is_any_cached(FolioPlace { file, index, order }) {
                order.0 -= 1;
            }
            match self.new_folio(env, FolioPlace { file, index, order }, gfp, &mut write.hand) {
                Ok(pfn) => {
                    self.add_to_page_cache(env, pfn, file, index, gfp);
                    return Ok(pfn);
                }
                // It was not provided.
                Err(need) if order > Order(0) && need.is_optional() && write.asked == Some(need) => {
                    order.0 -= 1;
                    (write.most, write.asked) = (order, None);
                }
                Err(need) => {
                    write.asked = Some(need);
                    return Err(need);
                }
            }
        }
    }

    /// Frees memory from the slow path that is not needed after all.
    #[inline]
    pub fn free_hand(&mut self, env: &Env, hand: &mut Option<Pfn>) {
        if let Some(pfn) = hand.take() {
            self.free_pages(env, pfn, self.frames[pfn].order());
        }
    }

    /// How pages of a file are allocated (`mapping_gfp_mask()`): XFS never lets reclaim back into a file system.
    #[inline]
    pub(crate) fn mapping_gfp(&self, file: FileId) -> Gfp {
        if let Some(gfp) = self.bdev_gfp(file) {
            return gfp;
        }
        match self.fs_kind(file) {
            FsKind::Xfs => Gfp::HIGHUSER_MOVABLE.without(Gfp::FS),
            FsKind::Ext4 => Gfp::HIGHUSER_MOVABLE,
        }
    }
}
