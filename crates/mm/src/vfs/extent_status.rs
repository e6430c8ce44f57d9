//! What ext4 remembers of where the blocks of a file are (`extent_status`), and its shrinker.
//!
//! Rule: a write to a page without a block looks the place up, which leaves an entry for the hole from there on, and makes or lengthens
//! the entry of delayed blocks. Writeback makes that one of written blocks. A read that goes to the device looks the blocks
//! up, and remembers them if they are not known. An entry that is looked up again is marked as referenced, where the mark is not lost. The
//! shrinker goes round the inodes: it frees entries that are neither delayed nor referenced, and takes the mark of those that are.
//! Source: `ext4_da_get_block_prep()`, `ext4_determine_insert_hole()`, `ext4_mpage_readpages()`, `ext4_es_lookup_extent()`,
//! `ext4_es_count()`, `__es_shrink()`, `es_do_reclaim_extents()` (fs/ext4/extents_status.c), 6.12.
//! Since/until: [`ExtentStatus`].
//! Abstracted: one entry for all blocks of a file and one for the hole behind them; the shrinker's list is in the order of the
//! files' numbers; an entry is allocated without sleeping, and missing if that fails.
//! Omitted: entries of unwritten blocks, `EXT4_STATE_EXT_PRECACHED`.

use rules::ExtentStatus;
use units::{FileId, Gfp};

use super::{FileRec, FsKind, Obj, Scanned};
use crate::{Env, Mm, Violation};

/// An entry of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Entry {
    /// Its blocks.
    Blocks,
    /// The hole behind them.
    Hole,
}

impl Entry {
    fn of(self, rec: &mut FileRec) -> &mut Obj {
        match self {
            Entry::Blocks => &mut rec.extents,
            Entry::Hole => &mut rec.second,
        }
    }

    /// The flag that it was looked up again.
    fn mark(self) -> u32 {
        match self {
            Entry::Blocks => FileRec::BLOCKS_REF,
            Entry::Hole => FileRec::HOLE_REF,
        }
    }
}

impl FileRec {
    /// Entries that the shrinker may free: those of blocks that are not delayed, and of the hole.
    fn shrinkable(&self) -> u64 {
        u64::from(self.extents.is_some() && !self.has(FileRec::DELAYED)) + u64::from(self.second.is_some())
    }
}

impl Mm {
    fn has_statuses(&self, file: FileId) -> bool {
        self.rules.extent_status != ExtentStatus::None
            && !self.vfs.rec(file).has(FileRec::BDEV)
            && self.vfs.spec_of(file).kind == FsKind::Ext4
    }

    /// Changes a file's entries, and keeps count of those that can be freed.
    fn change_statuses(&mut self, file: FileId, change: impl FnOnce(&mut FileRec)) {
        let rec = &mut self.vfs.files[file.index()];
        let before = rec.shrinkable();
        change(rec);
        self.vfs.nr_statuses = self.vfs.nr_statuses + rec.shrinkable() - before;
    }

    /// Looks an entry up: marks it, or makes it if it is not known.
    fn look_up(&mut self, env: &Env, file: FileId, entry: Entry) {
        let mark = if self.rules.extent_status == ExtentStatus::Marked { entry.mark() } else { 0 };
        let rec = self.vfs.rec_mut(file);
        if entry.of(rec).is_some() {
            rec.flags |= mark;
            return;
        }
        let cache = self.vfs.spec_of(file).extent_cache;
        let made = self.slab_alloc_nowait(env, cache, Gfp::NOFS);
        self.change_statuses(file, |rec| *entry.of(rec) = made);
    }

    /// A page of a file is about to be dirtied: without a block, that is delayed.
    pub(crate) fn note_write(&mut self, env: &Env, file: FileId, index: u32) {
        if !self.has_statuses(file) || self.vfs.find_extent(file, index).is_some() {
            return;
        }
        self.look_up(env, file, Entry::Hole);
        if !self.vfs.rec(file).extents.is_some() {
            self.look_up(env, file, Entry::Blocks);
        }
        self.change_statuses(file, |rec| rec.flags |= FileRec::DELAYED);
    }

    /// Delayed blocks of a file were allocated.
    pub(super) fn note_allocated(&mut self, file: FileId) {
        self.change_statuses(file, |rec| rec.flags &= !(FileRec::DELAYED | FileRec::BLOCKS_REF));
    }

    /// Where the blocks of a file are was looked up.
    pub(crate) fn note_looked_up(&mut self, env: &Env, file: FileId) {
        if self.has_statuses(file) {
            self.look_up(env, file, Entry::Blocks);
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
        self.charge((nr - left) * self.costs.shrink_extent);
        Scanned { scanned: nr, freed }
    }

    /// Goes through the entries of a file, the blocks' and then the hole's, while there are some `left` to look at; says
    /// how many were freed.
    fn reclaim_statuses(&mut self, env: &Env, file: FileId, left: &mut u64) -> u64 {
        let cache = self.vfs.spec_of(file).extent_cache;
        let mut freed = 0;
        for entry in [Entry::Blocks, Entry::Hole] {
            let rec = self.vfs.rec_mut(file);
            let obj = *entry.of(rec);
            if *left == 0 || !obj.is_some() {
                continue;
            }
            *left -= 1;
            if entry == Entry::Blocks && rec.has(FileRec::DELAYED) {
                continue;
            }
            if rec.has(entry.mark()) {
                rec.flags &= !entry.mark();
                continue;
            }
            self.change_statuses(file, |rec| *entry.of(rec) = Obj::NONE);
            self.slab_free(env, cache, obj);
            freed += 1;
        }
        freed
    }

    /// The count of entries that can be freed is that of all files'.
    pub(super) fn check_statuses(&self, violations: &mut Vec<Violation>) {
        let files = (0..self.vfs.files.len() as u32).map(FileId);
        let of = |file: FileId| self.vfs.rec(file).shrinkable();
        let live = files.filter(|file| self.vfs.rec(*file).has(FileRec::LIVE) && self.has_statuses(*file));
        let found: u64 = live.map(of).sum();
        if found != self.vfs.nr_statuses {
            let what = format!("{} entries of extent_status can be freed, recounted {found}", self.vfs.nr_statuses);
            violations.push(Violation { place: "vfs", pfn: None, what });
        }
    }
}
