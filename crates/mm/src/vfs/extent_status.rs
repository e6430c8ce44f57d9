//! What ext4 remembers of where the blocks of a file are (`extent_status`), and its shrinker.
//!
//! Rule: a write to a page without a block looks the place up, which leaves an entry for the hole from there on, and makes or lengthens
//! the entry of delayed blocks. Writeback makes that one of written blocks. A read that goes to the device looks the blocks
//! up, and remembers them if they are not known. An entry that is looked up again is marked as referenced. The
//! shrinker goes round the inodes: it frees entries that are neither delayed nor referenced, and takes the mark of those that are.
//! Source: `ext4_da_get_block_prep()`, `ext4_determine_insert_hole()`, `ext4_mpage_readpages()`, `ext4_es_lookup_extent()`,
//! `ext4_es_count()`, `__es_shrink()`, `es_do_reclaim_extents()` (fs/ext4/extents_status.c), 6.12.
//! Since/until: the mark since 3.20; it is kept for older kernels, too.
//! Abstracted: one entry for all blocks of a file and one for the hole behind them; the shrinker's list is in the order of the
//! files' numbers; an entry is allocated without sleeping, and missing if that fails.
//! Omitted: entries of unwritten blocks, `EXT4_STATE_EXT_PRECACHED`.

use units::{FileId, Gfp};

use super::{FileRec, FsKind, Obj, Scanned};
use crate::{Env, Mm};

impl FileRec {
    /// Entries that the shrinker may free: those of blocks that are not delayed, and of the hole.
    fn shrinkable(&self) -> u64 {
        u64::from(self.extents.is_some() && !self.has(FileRec::DELAYED)) + u64::from(self.second.is_some())
    }
}

impl Mm {
    fn has_statuses(&self, file: FileId) -> bool {
        !self.vfs.rec(file).has(FileRec::BDEV) && self.vfs.spec_of(file).kind == FsKind::Ext4
    }

    /// Changes a file's entries, and keeps count of those that can be freed.
    fn change_statuses(&mut self, file: FileId, change: impl FnOnce(&mut FileRec)) {
        let rec = &mut self.vfs.files[file.index()];
        let before = rec.shrinkable();
        change(rec);
        self.vfs.nr_statuses = self.vfs.nr_statuses + rec.shrinkable() - before;
    }

    fn new_status(&mut self, env: &Env, file: FileId) -> Obj {
        let cache = self.vfs.spec_of(file).extent_cache;
        self.slab_alloc_nowait(env, cache, Gfp::NOFS)
    }

    /// A page of a file is about to be dirtied: without a block, that is delayed.
    pub(crate) fn note_write(&mut self, env: &Env, file: FileId, index: u32) {
        if !self.has_statuses(file) || self.vfs.find_extent(file, index).is_some() {
            return;
        }
        if self.vfs.rec(file).second.is_some() {
            self.vfs.rec_mut(file).flags |= FileRec::HOLE_REF;
        } else {
            let hole = self.new_status(env, file);
            self.change_statuses(file, |rec| rec.second = hole);
        }
        let known = self.vfs.rec(file).extents;
        let blocks = if known.is_some() { known } else { self.new_status(env, file) };
        self.change_statuses(file, |rec| {
            rec.extents = blocks;
            rec.flags |= FileRec::DELAYED;
        });
    }

    /// Delayed blocks of a file were allocated.
    pub(super) fn note_allocated(&mut self, file: FileId) {
        self.change_statuses(file, |rec| rec.flags &= !(FileRec::DELAYED | FileRec::BLOCKS_REF));
    }

    /// Where the blocks of a file are was looked up.
    pub(crate) fn note_looked_up(&mut self, env: &Env, file: FileId) {
        if !self.has_statuses(file) {
            return;
        }
        if self.vfs.rec(file).extents.is_some() {
            self.vfs.rec_mut(file).flags |= FileRec::BLOCKS_REF;
        } else {
            let blocks = self.new_status(env, file);
            self.change_statuses(file, |rec| rec.extents = blocks);
        }
    }

    /// The inode goes, and its entries with it.
    pub(super) fn forget_statuses(&mut self, file: FileId) {
        if self.has_statuses(file) {
            self.vfs.nr_statuses -= self.vfs.rec(file).shrinkable();
            self.vfs.rec_mut(file).flags &= !(FileRec::DELAYED | FileRec::BLOCKS_REF | FileRec::HOLE_REF);
        }
    }

    /// Lets the shrinker look at `nr` entries.
    pub(super) fn shrink_statuses(&mut self, env: &Env, nr: u64) -> Scanned {
        let (mut left, mut freed) = (nr, 0);
        for _ in 0..self.vfs.files.len() {
            if left == 0 || self.vfs.nr_statuses == 0 {
                break;
            }
            let file = FileId(self.vfs.status_hand);
            self.vfs.status_hand = (self.vfs.status_hand + 1) % self.vfs.files.len() as u32;
            let rec = self.vfs.rec(file);
            if rec.shrinkable() > 0 && rec.has(FileRec::LIVE) && self.has_statuses(file) {
                freed += self.reclaim_statuses(env, file, &mut left);
            }
        }
        self.charge((nr - left) * self.costs.shrink_object);
        Scanned { scanned: nr, freed }
    }

    /// Goes through the entries of a file, the blocks' and then the hole's, while there are some `left` to look at; says
    /// how many were freed.
    fn reclaim_statuses(&mut self, env: &Env, file: FileId, left: &mut u64) -> u64 {
        let cache = self.vfs.spec_of(file).extent_cache;
        let mut freed = 0;
        for (hole, mark) in [(false, FileRec::BLOCKS_REF), (true, FileRec::HOLE_REF)] {
            let rec = self.vfs.rec_mut(file);
            let entry = if hole { rec.second } else { rec.extents };
            if *left == 0 || !entry.is_some() {
                continue;
            }
            *left -= 1;
            if !hole && rec.has(FileRec::DELAYED) {
                continue;
            }
            if rec.has(mark) {
                rec.flags &= !mark;
                continue;
            }
            self.change_statuses(file, |rec| *(if hole { &mut rec.second } else { &mut rec.extents }) = Obj::NONE);
            self.slab_free(env, cache, entry);
            freed += 1;
        }
        freed
    }
}
