//! Where the entries of `extent_status` are kept, and in what order their shrinker comes to the inodes.
//!
//! A file's entries are three words each, sorted, in a block of a pool: the first page, the page behind the last one, and the object with the status in
//! the upper bits. One that ends at page 0 is not in use. An inode is on the shrinker's list while one of its entries can be freed:
//! it comes to the tail with the first of them.
//! Source: `ext4_es_init_extent()`, `ext4_es_free_extent()`, `ext4_es_list_add()`, `__es_tree_search()`
//! (fs/ext4/extents_status.c), 6.12.
//! Abstracted: one list and one count for all file systems.

use std::collections::BTreeMap;
use std::ops::Range;

use smallvec::SmallVec;
use units::FileId;

use super::{FileRec, Obj, Vfs};
use crate::links::{IdList, Links};
use crate::pool::{Block, Pool};

/// Words of an entry.
const ENTRY: usize = 3;
/// Bits of the last word above the object.
const STATUS_SHIFT: u32 = 29;
const NO_OBJECT: u32 = (1 << STATUS_SHIFT) - 1;
/// A block may be so many times as large as what is in it.
const SPARE_MAX: usize = 4;
const MARK: u32 = 1 << 31;

/// What is known of a range of a file's pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Status {
    /// They have blocks.
    Written,
    /// They will get blocks at writeback.
    Delayed,
    /// They have none.
    Hole,
    /// They have blocks with nothing in them yet.
    Unwritten,
}

impl Status {
    pub(super) fn has_blocks(self) -> bool {
        matches!(self, Status::Written | Status::Unwritten)
    }
}

/// A range of a file's pages with one status, and if they have blocks, with blocks that follow each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    /// First page.
    pub(super) start: u32,
    /// First page behind it.
    pub(super) end: u32,
    pub(super) status: Status,
    /// It was looked up since the shrinker came by.
    pub(super) referenced: bool,
    /// None if there was no memory, which only one of delayed blocks survives.
    pub(super) obj: Obj,
}

impl Entry {
    fn pack(self) -> [u32; ENTRY] {
        assert!(self.obj.0 < NO_OBJECT || !self.obj.is_some(), "there are at most 4 million slabs of them");
        let mark = if self.referenced { MARK } else { 0 };
        [self.start, self.end, self.obj.0.min(NO_OBJECT) | (self.status as u32) << STATUS_SHIFT | mark]
    }

    fn unpack([start, end, word]: [u32; ENTRY]) -> Entry {
        let status = match word >> STATUS_SHIFT & 3 {
            0 => Status::Written,
            1 => Status::Delayed,
            2 => Status::Hole,
            _ => Status::Unwritten,
        };
        let obj = Some(word & NO_OBJECT).filter(|obj| *obj != NO_OBJECT).map_or(Obj::NONE, Obj);
        Entry { start, end, status, referenced: word & MARK != 0, obj }
    }

    /// Whether the shrinker may free it (`ext4_es_must_keep()`).
    pub(super) fn shrinkable(&self) -> bool {
        self.status != Status::Delayed
    }
}

/// The entries of all files.
#[derive(Debug)]
pub(super) struct Statuses {
    pool: Pool,
    /// Entries that can be freed (`es_stats_shk_cnt`).
    pub(super) shrinkable: u64,
    /// Files that have such (`s_es_list`), and their neighbours on the list.
    pub(super) list: IdList,
    pub(super) links: Links,
    /// Page at which the shrinker goes on in a file, if that is not the first (`i_es_shrink_lblk`).
    pub(super) resume: BTreeMap<FileId, u32>,
}

impl Default for Statuses {
    fn default() -> Statuses {
        let (pool, links) = (Pool::default(), Links::default());
        Statuses { pool, shrinkable: 0, list: IdList::EMPTY, links, resume: BTreeMap::new() }
    }
}

impl Statuses {
    pub(super) fn host_bytes(&self) -> usize {
        self.pool.host_bytes() + self.links.host_bytes() + self.resume.len() * size_of::<(FileId, u32)>()
    }

    #[inline]
    fn raw(&self, list: Block) -> &[[u32; ENTRY]] {
        if !list.is_some() {
            return &[];
        }
        let (entries, _) = self.pool.words(list).as_chunks();
        // Most lists are full.
        match entries.last() {
            Some([_, 0, _]) => &entries[..entries.partition_point(|[_, end, _]| *end != 0)],
            _ => entries,
        }
    }

    /// Puts `new` in the place of some entries. The list may move.
    fn splice(&mut self, list: &mut Block, old: Range<usize>, new: &[Entry]) {
        let nr = self.raw(*list).len();
        let after = nr - old.len() + new.len();
        if after == 0 {
            if list.is_some() {
                self.pool.free(std::mem::replace(list, Block::NONE));
            }
            return;
        }
        if !list.is_some() {
            *list = self.pool.alloc(after * ENTRY);
        } else if self.pool.len(*list) < after * ENTRY {
            *list = self.pool.grow(*list, after * ENTRY);
        }
        let (entries, _) = self.pool.words_mut(*list).as_chunks_mut();
        if old.len() != new.len() {
            entries.copy_within(old.end..nr, old.start + new.len());
        }
        for (place, entry) in entries[old.start..].iter_mut().zip(new) {
            *place = entry.pack();
        }
        entries[after.min(nr)..nr].fill([0; ENTRY]);
        if self.pool.len(*list) > after * ENTRY * SPARE_MAX {
            *list = self.smaller(*list, after * ENTRY);
        }
    }

    /// Moves a list to a block of fewer words.
    fn smaller(&mut self, list: Block, words: usize) -> Block {
        let smaller = self.pool.alloc(words);
        let kept: SmallVec<[u32; 32]> = self.pool.words(list)[..words].into();
        self.pool.words_mut(smaller)[..words].copy_from_slice(&kept);
        self.pool.free(list);
        smaller
    }
}

impl FileRec {
    /// The list of a file's entries, which stands where other file systems have the array of extents.
    fn statuses(&self) -> Block {
        Block::from_raw(self.extents.0)
    }
}

impl Vfs {
    /// The `at`th of them.
    pub(super) fn status(&self, file: FileId, at: usize) -> Option<Entry> {
        self.statuses.raw(self.rec(file).statuses()).get(at).copied().map(Entry::unpack)
    }

    /// All of them from the `from`th on.
    pub(super) fn statuses_from(&self, file: FileId, from: usize) -> impl Iterator<Item = Entry> {
        let entries = self.statuses.raw(self.rec(file).statuses());
        entries[from.min(entries.len())..].iter().copied().map(Entry::unpack)
    }

    /// Place of the entry that holds a page, or of the next one.
    pub(super) fn status_at(&self, file: FileId, page: u32) -> usize {
        self.statuses.raw(self.rec(file).statuses()).partition_point(|[_, end, _]| *end <= page)
    }

    /// Puts `new` in the place of some entries, and counts what can be freed.
    pub(super) fn replace_statuses(&mut self, file: FileId, old: Range<usize>, new: &[Entry]) {
        let gone = old.clone().filter_map(|at| self.status(file, at)).filter(Entry::shrinkable).count() as u64;
        let come = new.iter().filter(|entry| entry.shrinkable()).count() as u64;
        let rec = &mut self.files[file.index()];
        let mut list = rec.statuses();
        self.statuses.splice(&mut list, old, new);
        rec.extents = Obj(list.raw());
        self.statuses.shrinkable = self.statuses.shrinkable + come - gone;
        if come > 0 && !rec.has(FileRec::STATUS_LISTED) {
            rec.flags |= FileRec::STATUS_LISTED;
            self.statuses.list.push_back(&mut self.statuses.links, file.0);
        } else if gone > 0 && come == 0 && !self.statuses_from(file, 0).any(|entry| entry.shrinkable()) {
            self.rec_mut(file).flags &= !FileRec::STATUS_LISTED;
            self.statuses.list.remove(&mut self.statuses.links, file.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn lists_keep_what_is_put_in(ops in proptest::collection::vec((any::<prop::sample::Index>(), 0usize..9, 0usize..9), 1..60)) {
            let (mut statuses, mut list, mut model) = (Statuses::default(), Block::NONE, Vec::new());
            for (n, (from, gone, come)) in ops.into_iter().enumerate() {
                let from = from.index(model.len() + 1);
                let old = from..(from + gone).min(model.len());
                let of = |i: usize| {
                    let status = [Status::Written, Status::Delayed, Status::Hole][(n + i) % 3];
                    let start = (n * 9 + i) as u32;
                    let obj = if i == 3 { Obj::NONE } else { Obj(start) };
                    Entry { start, end: start + 1, status, referenced: i % 2 == 1, obj }
                };
                let new: Vec<Entry> = (0..come).map(of).collect();
                statuses.splice(&mut list, old.clone(), &new);
                model.splice(old, new);
                let found: Vec<Entry> = statuses.raw(list).iter().copied().map(Entry::unpack).collect();
                prop_assert_eq!(&found, &model);
                prop_assert_eq!(list.is_some(), !model.is_empty());
                prop_assert!(!list.is_some() || statuses.pool.len(list) <= found.len() * ENTRY * SPARE_MAX);
            }
        }
    }
}
