//! What ext4 remembers of where the blocks of a file are (`extent_status`).
//!
//! Rule: a file has an entry for each range of pages of one status: with blocks that follow each other, with blocks whose allocation
//! is delayed, without any. What is inserted takes the place of what was known of its range, and is joined to the same beside it. A
//! page that gets its buffer is looked up first; if it has no block, it is delayed, which leaves less of the hole around it. Writeback
//! makes delayed blocks unwritten ones, and the end of their I/O written ones; until 5.5 they are written ones at once. A read that goes to the device looks up each range that it reads. What is looked up
//! and is known is marked, where the mark is not lost; what is not known is inserted as the file's extents say. Truncation removes what is behind the new end.
//! Source: `ext4_da_map_blocks()`, `ext4_map_blocks()` (fs/ext4/inode.c), `ext4_mpage_readpages()`, `ext4_find_extent()`,
//! `ext4_ext_find_hole()`, `ext4_determine_insert_hole()` (fs/ext4/extents.c), `ext4_es_lookup_extent()`, `__es_insert_extent()`,
//! `__es_remove_extent()` (fs/ext4/extents_status.c), 6.12; `ext4_ext_put_gap_in_cache()`, 4.4.
//! Since/until: [`ExtentStatus`], [`ExtentLookup`], [`HoleLookup`], [`DelayedBlocks`].
//! Abstracted: an entry is allocated without sleeping, and missing if that fails, but for one of delayed blocks, which is without its object then.
//! Unwritten blocks of which the entry was freed before the end of their I/O are found as written ones.
//! Omitted: what is read from a leaf (extent_tree.rs) that was not in memory, directories, `EXT4_STATE_EXT_PRECACHED`.

use rules::{DelayedBlocks, ExtentLookup, ExtentStatus, HoleLookup};
use smallvec::SmallVec;
use units::{FileId, Gfp};

use super::statuses::{Entry, Status};
use super::{FileRec, FsKind, Obj};
use crate::{Env, Mm};

/// Behind the last page that a file may have (`EXT_MAX_BLOCKS`).
const PAGES_END: u32 = u32::MAX;

impl Mm {
    pub(super) fn has_statuses(&self, file: FileId) -> bool {
        self.rules.extent_status != ExtentStatus::None
            && self.vfs.spec_of(file).kind == FsKind::Ext4
            && !self.vfs.rec(file).has(FileRec::BDEV)
    }

    /// A page of a file gets its buffer because it is about to be dirtied: without a block, that is delayed.
    pub(crate) fn note_write(&mut self, env: &Env, file: FileId, page: u32) {
        if !self.has_statuses(file) {
            return;
        }
        let known = self.look_up_status(file, page);
        match known.map(|entry| entry.status) {
            Some(Status::Written | Status::Unwritten | Status::Delayed) => return,
            Some(Status::Hole) => {}
            None if self.insert_found(env, file, page, 1).is_some() => return,
            None => {}
        }
        if self.rules.hole_lookup == HoleLookup::AroundPage {
            self.look_up_status(file, page);
        }
        self.insert_status(env, file, page, page + 1, Status::Delayed);
    }

    /// Blocks of a file are about to be allocated.
    pub(super) fn note_allocating(&mut self, env: &Env, file: FileId) {
        if self.has_statuses(file) {
            self.insert_root(env, file);
        }
    }

    /// Delayed blocks of a file were allocated.
    pub(super) fn note_allocated(&mut self, env: &Env, file: FileId, page: u32, pages: u32) {
        if self.has_statuses(file) {
            let status = match self.rules.delayed_blocks {
                DelayedBlocks::Written => Status::Written,
                DelayedBlocks::Unwritten => Status::Unwritten,
            };
            self.insert_status(env, file, page, page + pages, status);
        }
    }

    /// Unwritten blocks of a file were converted.
    pub(super) fn note_converted(&mut self, env: &Env, file: FileId, page: u32, pages: u32) {
        if self.has_statuses(file) {
            self.look_up_status(file, page);
            self.insert_root(env, file);
            self.insert_status(env, file, page, page + pages, Status::Written);
        }
    }

    /// A delayed page was dropped.
    pub(super) fn note_dropped(&mut self, env: &Env, file: FileId, page: u32) {
        if self.has_statuses(file) {
            self.remove_statuses(env, file, page, page + 1);
        }
    }

    /// Where the blocks of some pages of a file are is looked up.
    pub(crate) fn note_read(&mut self, env: &Env, file: FileId, from: u32, to: u32) {
        if !self.has_statuses(file) {
            return;
        }
        let mut at = from;
        while at < to {
            at = match self.look_up_status(file, at) {
                Some(Entry { end, status: Status::Written, .. }) => end,
                // Of what has no block each page is looked up by itself.
                Some(_) => at + 1,
                None => at + self.insert_found(env, file, at, to - at).unwrap_or(1),
            };
        }
    }

    /// What is behind page `from` goes.
    pub(crate) fn note_truncated(&mut self, env: &Env, file: FileId, from: u32) {
        if self.has_statuses(file) {
            self.remove_statuses(env, file, from, PAGES_END);
        }
    }

    /// The inode goes, and its entries with it.
    pub(super) fn forget_statuses(&mut self, env: &Env, file: FileId) {
        if self.has_statuses(file) {
            self.remove_statuses(env, file, 0, PAGES_END);
            self.vfs.statuses.resume.remove(&file);
        }
    }

    /// The entry that holds a page, which is marked (`ext4_es_lookup_extent()`).
    fn look_up_status(&mut self, file: FileId, page: u32) -> Option<Entry> {
        let at = self.vfs.status_at(file, page);
        let entry = self.vfs.status(file, at).filter(|entry| entry.start <= page)?;
        if self.rules.extent_status == ExtentStatus::Marked && !entry.referenced {
            self.vfs.replace_statuses(file, at..at + 1, &[Entry { referenced: true, ..entry }]);
        }
        Some(entry)
    }

    /// Inserts what the file's extents say of up to `pages` pages; how many of them have blocks (`ext4_map_query_blocks()`).
    fn insert_found(&mut self, env: &Env, file: FileId, page: u32, pages: u32) -> Option<u32> {
        self.insert_root(env, file);
        let Some((_, blocks)) = self.vfs.find_extent(file, page) else {
            if let Some((start, end)) = self.hole_around(file, page) {
                self.insert_status(env, file, start, end, Status::Hole);
            }
            return None;
        };
        let found = blocks.min(pages);
        self.insert_status(env, file, page, page + found, Status::Written);
        Some(found)
    }

    /// The extents that an inode holds itself are gone through, and what is not known of them or between them is inserted
    /// (`ext4_cache_extents()`).
    fn insert_root(&mut self, env: &Env, file: FileId) {
        if self.rules.extent_lookup != ExtentLookup::WholeInode || self.vfs.has_leaf(file) {
            return;
        }
        let mut before = 0;
        let mut next = self.vfs.extent_from(file, 0);
        while let Some((start, end)) = next {
            if before > 0 && before < start {
                self.insert_unknown(env, file, before, start, Status::Hole);
            }
            self.insert_unknown(env, file, start, end, Status::Written);
            before = end;
            next = self.vfs.extent_from(file, end);
        }
    }

    /// Inserts an entry if nothing is known of its range (`ext4_es_cache_extent()`).
    fn insert_unknown(&mut self, env: &Env, file: FileId, start: u32, end: u32, status: Status) {
        let next = self.vfs.status(file, self.vfs.status_at(file, start));
        if next.is_none_or(|next| next.start >= end) {
            self.insert_status(env, file, start, end, status);
        }
    }

    /// The hole that a page without a block is in, less what is delayed.
    fn hole_around(&self, file: FileId, page: u32) -> Option<(u32, u32)> {
        let (before, after) = self.vfs.extents_around(file, page);
        // With no extent at all it begins with the file; where it begins before the first one, nobody looks.
        let start = before.unwrap_or(if after.is_some() { page } else { 0 });
        let end = after.unwrap_or(PAGES_END);
        let delayed_from = |from: u32| {
            let mut entries = self.vfs.statuses_from(file, self.vfs.status_at(file, from));
            entries.find(|entry| entry.status == Status::Delayed).filter(|entry| entry.start < end)
        };
        let Some(delayed) = delayed_from(start) else { return Some((start, end)) };
        match self.rules.hole_lookup {
            HoleLookup::FromExtent if delayed.start <= start => None,
            HoleLookup::AroundPage if delayed.end <= page => {
                Some((page, delayed_from(page).map_or(end, |delayed| delayed.start)))
            }
            _ => Some((start, delayed.start)),
        }
    }

    /// Inserts an entry in the place of what is known of its range (`ext4_es_insert_extent()`).
    fn insert_status(&mut self, env: &Env, file: FileId, start: u32, end: u32, status: Status) {
        self.remove_statuses(env, file, start, end);
        let at = self.vfs.status_at(file, start);
        let new = Entry { start, end, status, referenced: false, obj: Obj::NONE };
        let before = at.checked_sub(1).and_then(|at| self.vfs.status(file, at)).filter(|e| self.joins(file, e, &new));
        let after = self.vfs.status(file, at).filter(|entry| self.joins(file, &new, entry));
        match (before, after) {
            (Some(before), Some(after)) => {
                let referenced = before.referenced || after.referenced;
                let joined = Entry { end: after.end, referenced, ..before };
                self.vfs.replace_statuses(file, at - 1..at + 1, &[joined]);
                self.free_status(env, file, after.obj);
            }
            (Some(before), None) => self.vfs.replace_statuses(file, at - 1..at, &[Entry { end, ..before }]),
            (None, Some(after)) => self.vfs.replace_statuses(file, at..at + 1, &[Entry { start, ..after }]),
            (None, None) => {
                if let Some(new) = self.with_object(env, file, new) {
                    self.vfs.replace_statuses(file, at..at, &[new]);
                }
            }
        }
    }

    /// Whether two entries make one (`ext4_es_can_be_merged()`).
    fn joins(&self, file: FileId, left: &Entry, right: &Entry) -> bool {
        if left.end != right.start || left.status != right.status {
            return false;
        }
        let block = |page| self.vfs.find_extent(file, page).map(|(block, _)| block);
        !left.status.has_blocks() || block(left.end - 1).map(|last| last + 1) == block(right.start)
    }

    /// Forgets what is known of a range (`__es_remove_extent()`).
    fn remove_statuses(&mut self, env: &Env, file: FileId, start: u32, end: u32) {
        let first = self.vfs.status_at(file, start);
        let gone: SmallVec<[Entry; 4]> =
            self.vfs.statuses_from(file, first).take_while(|entry| entry.start < end).collect();
        let (Some(left), Some(right)) = (gone.first().copied(), gone.last().copied()) else { return };
        let mut kept: SmallVec<[Entry; 2]> = SmallVec::new();
        if left.start < start {
            kept.push(Entry { end: start, ..left });
        }
        if right.end > end {
            let right = Entry { start: end, ..right };
            // Of one entry two are left.
            let split = gone.len() == 1 && !kept.is_empty();
            kept.extend(if split { self.with_object(env, file, right) } else { Some(right) });
        }
        self.vfs.replace_statuses(file, first..first + gone.len(), &kept);
        for entry in gone {
            if !kept.iter().any(|kept| kept.obj == entry.obj) {
                self.free_status(env, file, entry.obj);
            }
        }
    }

    /// Gives a new entry its object; without memory, it is there only if it has to be.
    fn with_object(&mut self, env: &Env, file: FileId, entry: Entry) -> Option<Entry> {
        let obj = self.slab_alloc_nowait(env, self.vfs.spec_of(file).extent_cache, Gfp::NOFS);
        (obj.is_some() || !entry.shrinkable()).then_some(Entry { obj, ..entry })
    }

    pub(super) fn free_status(&mut self, env: &Env, file: FileId, obj: Obj) {
        if obj.is_some() {
            self.slab_free(env, self.vfs.spec_of(file).extent_cache, obj);
        }
    }
}
