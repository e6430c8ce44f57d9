//! Buffered writes of whole pages.
//!
//! Rule: the page is looked up, allocated and put in if it is missing, filled, and marked dirty. A missing page is
//! allocated with `__GFP_WRITE`, which spreads dirty pages over the nodes, and without `__GFP_FS` where the file system
//! says so. Its data is not read first, since all of it is replaced. A page without a block claims one, or the write
//! fails. Until 4.6 a write marks the page accessed, as a read does ([`WriteAccess`]): a page that is written twice becomes
//! active, and reclaim spares a written page that is still dirty when it first meets it.
//! Source: `pagecache_get_page()`, mm/filemap.c, `iomap_write_begin()`, fs/iomap.c (4.20; 6.12 the same).
//! A page under writeback may have to be waited for ([`WrittenMeanwhile`]).
//! Omitted: parts of pages, hence reads before writes.

use rules::{DelayedWrite, WriteAccess, WrittenMeanwhile};
use units::{FileId, Gfp, Order, Pfn};

use super::Slot;
use crate::vfs::{FsKind, Need};
use crate::{Env, Frame, Mm};

/// Why a write stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WriteStop {
    /// The page is written; whether it was clean before (counts for `TaskDirty`).
    Done {
        /// It was clean or not cached.
        dirtied: bool,
    },
    /// Something is missing; provide it and call again.
    Need(Need),
    /// The page is being read, or written by the device; wait for it and call again.
    Wait(Pfn),
}

impl Mm {
    /// Writes page `index` of a file. `hand` is a page from the slow path, after `Need::Page`; what is left in it when
    /// something else is needed is for the next call, and it is empty after `Done`.
    pub fn write_page(&mut self, env: &Env, file: FileId, index: u32, hand: &mut Option<Pfn>) -> WriteStop {
        self.charge(self.costs.cache_lookup);
        let pfn = match self.pagecache_get(file, index) {
            Slot::Page(pfn) => {
                self.free_hand(env, hand);
                let waits = self.rules.written_meanwhile == WrittenMeanwhile::Waits;
                let frame = &mut self.frames[pfn];
                if frame.has(Frame::LOCKED) || waits && frame.has(Frame::WRITEBACK) {
                    frame.set(Frame::WAITERS);
                    return WriteStop::Wait(pfn);
                }
                if !self.frames[pfn].has(Frame::DIRTY) && !self.has_room_for(file, index) {
                    return WriteStop::Need(Need::Space);
                }
                pfn
            }
            Slot::Empty | Slot::Shadow(_) => {
                if !self.has_room_for(file, index) {
                    return WriteStop::Need(Need::Space);
                }
                let gfp = self.mapping_gfp(file).with(Gfp::WRITE);
                let reserved = self.memcg_reserve(env, env.task.memcg, Order(0));
                if let Err(need) = reserved.and_then(|()| self.reserve_nodes(env, file, index, gfp)) {
                    return WriteStop::Need(need);
                }
                let pfn = match self.cache_page(env, gfp, hand) {
                    Ok(pfn) => pfn,
                    Err(req) => return WriteStop::Need(Need::Page(req)),
                };
                self.add_to_page_cache(env, pfn, file, index, gfp);
                pfn
            }
        };
        // Nothing of it is needed from the disk, whether or not the write goes on now.
        self.frames[pfn].set(Frame::UPTODATE);
        let prepared = self.attach_buffers(env, pfn).and_then(|()| self.allocate_at_once(env, file, index));
        if let Err(need) = prepared {
            return WriteStop::Need(need);
        }
        self.hold_ilock(env, file);
        let extends = index >= self.inode_size_pages(file);
        let extending = if extends { self.costs.extend_ext4 } else { 0 };
        let handle = if self.rules.delayed_write == DelayedWrite::Handle { self.costs.delayed_handle } else { 0 };
        let of_ext4 = self.costs.write_ext4 + extending + handle;
        self.charge(self.costs.copy_page + self.by_fs(file, 0, of_ext4));
        if self.rules.write_access == WriteAccess::Marked {
            self.mark_page_accessed(env, pfn);
        }
        if extends {
            self.set_inode_size_pages(env, file, index + 1);
        }
        WriteStop::Done { dirtied: self.set_page_dirty(env, pfn) }
    }

    /// Frees a page from the slow path that is not needed after all.
    #[inline]
    pub(crate) fn free_hand(&mut self, env: &Env, hand: &mut Option<Pfn>) {
        if let Some(pfn) = hand.take() {
            self.free_pages(env, pfn, Order(0));
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
