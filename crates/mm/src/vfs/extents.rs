//! The extents of a file beside its first one.
//!
//! An entry is an extent's first block and the page of the file behind its last one. It begins where the one before it ends; a
//! hole between two is an entry without a block. A short list is packed (`packed.rs`): a million files that were written in
//! rounds have six extents each. A long list has its entries as they are, so that a page is found by bisection; an entry
//! that ends at page 0 is not in use.

use super::NONE;
use super::packed::{self, PACKED_WORDS, Packed};
use crate::pool::{Block, Pool};

/// First block, and the page behind the last one.
pub(super) type Entry = [u32; 2];

/// Words of an entry.
const ENTRY: usize = 2;

/// Blocks of a range of a file's pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct FileExtent {
    /// First page in the file.
    pub(super) index: u32,
    pub(super) block: u32,
    pub(super) blocks: u32,
}

impl FileExtent {
    /// First page behind it.
    fn end(&self) -> u32 {
        self.index + self.blocks
    }
}

/// The entries of a list.
enum Entries<'a> {
    Short(Packed),
    Long(&'a [Entry]),
}

impl std::ops::Deref for Entries<'_> {
    type Target = [Entry];
    #[inline]
    fn deref(&self) -> &[Entry] {
        match self {
            Entries::Short(entries) => entries,
            Entries::Long(entries) => entries,
        }
    }
}

/// The extents of all files. `list` is a file's list of them, and `first` the page where it begins: the end of the
/// extent that the file's record holds.
#[derive(Debug, Default)]
pub(super) struct Extents {
    pool: Pool,
}

impl Extents {
    #[inline]
    fn entries(&self, list: Block) -> Entries<'_> {
        if !list.is_some() {
            return Entries::Long(&[]);
        }
        let words = self.pool.words(list);
        if words.len() <= PACKED_WORDS {
            return Entries::Short(packed::unpack(words).collect());
        }
        let (entries, _) = words.as_chunks();
        Entries::Long(&entries[..entries.partition_point(|[_, end]| *end != 0)])
    }

    /// The `at`th entry; a hole has the block [`NONE`].
    fn entry(entries: &[[u32; ENTRY]], at: usize, first: u32) -> FileExtent {
        let index = if at == 0 { first } else { entries[at - 1][1] };
        let [block, end] = entries[at];
        FileExtent { index, block, blocks: end - index }
    }

    /// The extents among the entries from the `from`th on.
    fn extents(entries: &[Entry], from: usize, first: u32) -> impl Iterator<Item = FileExtent> {
        let all = (from..entries.len()).map(move |at| Extents::entry(entries, at, first));
        all.filter(|extent| extent.block != NONE)
    }

    /// The extent that holds a page.
    pub(super) fn find(&self, list: Block, first: u32, index: u32) -> Option<FileExtent> {
        if list.is_some() && self.pool.len(list) <= PACKED_WORDS {
            return Extents::find_packed(self.pool.words(list), first, index);
        }
        let entries = self.entries(list);
        let at = entries.partition_point(|[_, end]| *end <= index);
        (at < entries.len()).then(|| Extents::entry(&entries, at, first)).filter(|extent| extent.block != NONE)
    }

    /// The same in a packed list, of which what is behind the page need not be unpacked.
    fn find_packed(words: &[u32], first: u32, index: u32) -> Option<FileExtent> {
        let mut start = first;
        for [block, end] in packed::unpack(words) {
            if end > index {
                return (block != NONE).then_some(FileExtent { index: start, block, blocks: end - start });
            }
            start = end;
        }
        None
    }

    /// First page behind `index` with which an extent begins.
    pub(super) fn next_start(&self, list: Block, first: u32, index: u32) -> Option<u32> {
        let entries = self.entries(list);
        let from = entries.partition_point(|[_, end]| *end <= index);
        Extents::extents(&entries, from, first).map(|extent| extent.index).find(|start| *start > index)
    }

    /// Where the last extent that ends at a page or before it ends.
    pub(super) fn end_before(&self, list: Block, first: u32, index: u32) -> Option<u32> {
        let entries = self.entries(list);
        let behind = entries.partition_point(|[_, end]| *end <= index);
        (0..behind).rev().map(|at| Extents::entry(&entries, at, first)).find(|e| e.block != NONE).map(|e| e.end())
    }

    /// The extent that ends with the page before `index`.
    pub(super) fn ending_at(&self, list: Block, first: u32, index: u32) -> Option<FileExtent> {
        self.find(list, first, index.checked_sub(1)?).filter(|extent| extent.end() == index)
    }

    /// The last extent.
    pub(super) fn last(&self, list: Block, first: u32) -> Option<FileExtent> {
        let entries = self.entries(list);
        entries.len().checked_sub(1).map(|at| Extents::entry(&entries, at, first))
    }

    /// Blocks of all of them.
    pub(super) fn blocks(&self, list: Block, first: u32) -> u64 {
        Extents::extents(&self.entries(list), 0, first).map(|extent| u64::from(extent.blocks)).sum()
    }

    /// How many pieces of at most `most` blocks all of them make.
    pub(super) fn pieces(&self, list: Block, first: u32, most: u32) -> u64 {
        Extents::extents(&self.entries(list), 0, first).map(|extent| u64::from(extent.blocks.div_ceil(most))).sum()
    }

    /// Adds an extent where none is. The list may move.
    pub(super) fn insert(&mut self, list: &mut Block, first: u32, extent: FileExtent) {
        let entries = self.entries(*list);
        let at = entries.partition_point(|[_, end]| *end <= extent.index);
        let start = if at == 0 { first } else { entries[at - 1][1] };
        debug_assert!(at == entries.len() || entries[at][0] == NONE && entries[at][1] >= extent.end());
        let mut new = [[0; ENTRY]; 2];
        let mut added = 0;
        if start < extent.index {
            new[0] = [NONE, extent.index];
            added = 1;
        }
        new[added] = [extent.block, extent.end()];
        added += 1;
        // What is left of a hole is behind it: its end says so already, and none is left if that is the extent's.
        let filled = at < entries.len() && entries[at][1] == extent.end();
        drop(entries);
        self.splice(list, at..at + usize::from(filled), &new[..added]);
    }

    /// Makes the extent that ends at `end` longer.
    pub(super) fn lengthen(&mut self, list: &mut Block, end: u32, by: u32) {
        let entries = self.entries(*list);
        let at = entries.partition_point(|entry| entry[1] < end);
        debug_assert!(entries[at][1] == end);
        let longer = [entries[at][0], end + by];
        let filled = entries.get(at + 1).is_some_and(|hole| hole[1] == end + by);
        drop(entries);
        self.splice(list, at..at + 1 + usize::from(filled), &[longer]);
    }

    /// Where the list begins has moved to `first`: a hole that ends there is gone.
    pub(super) fn begins_at(&mut self, list: &mut Block, first: u32) {
        if self.entries(*list).first().is_some_and(|[_, end]| *end == first) {
            self.splice(list, 0..1, &[]);
        }
    }

    /// Removes the last extent, or its end from page `from` on, and a hole that is last then.
    pub(super) fn cut(&mut self, list: &mut Block, first: u32, from: u32) {
        let entries = self.entries(*list);
        let nr = entries.len();
        let FileExtent { index, block, .. } = Extents::entry(&entries, nr - 1, first);
        let hole = nr > 1 && entries[nr - 2][0] == NONE;
        drop(entries);
        if index < from {
            self.splice(list, nr - 1..nr, &[[block, from]]);
        } else {
            self.splice(list, nr - 1 - usize::from(hole)..nr, &[]);
        }
    }

    pub(super) fn host_bytes(&self) -> usize {
        self.pool.host_bytes()
    }

    /// Puts `new` in the place of some entries.
    fn splice(&mut self, list: &mut Block, old: std::ops::Range<usize>, new: &[Entry]) {
        if list.is_some() && self.pool.len(*list) > PACKED_WORDS {
            return self.splice_long(list, old, new);
        }
        let mut entries = Packed::from_slice(&self.entries(*list));
        entries.drain(old.clone());
        entries.insert_from_slice(old.start, new);
        self.store(list, &entries);
    }

    /// The same in a long list.
    fn splice_long(&mut self, list: &mut Block, old: std::ops::Range<usize>, new: &[Entry]) {
        let nr = self.entries(*list).len();
        let after = nr - old.len() + new.len();
        if after == 0 {
            self.pool.free(std::mem::replace(list, Block::NONE));
            return;
        }
        if self.pool.len(*list) < after * ENTRY {
            *list = self.pool.grow(*list, after * ENTRY);
        }
        let (entries, _) = self.pool.words_mut(*list).as_chunks_mut();
        if old.len() != new.len() {
            entries.copy_within(old.end..nr, old.start + new.len());
        }
        entries[old.start..][..new.len()].copy_from_slice(new);
        entries[after.min(nr)..nr].fill([0; ENTRY]);
    }

    /// Makes a list that is short or empty consist of these entries.
    fn store(&mut self, list: &mut Block, entries: &[Entry]) {
        let (packed, needed) = match packed::pack(entries) {
            Some((words, used)) => (Some(words), used),
            None => (None, (entries.len() * ENTRY).max(PACKED_WORDS + 1)),
        };
        if list.is_some() && (self.pool.len(*list) < needed || needed == 0) {
            self.pool.free(std::mem::replace(list, Block::NONE));
        }
        if needed == 0 {
            return;
        }
        if !list.is_some() {
            *list = self.pool.alloc(needed);
        }
        let words = self.pool.words_mut(*list);
        match packed {
            Some(packed) => words.copy_from_slice(&packed[..words.len()]),
            None => words[..entries.len() * ENTRY].copy_from_slice(entries.as_flattened()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Blocks by page, of a file whose first extent has `first` pages.
    fn pages(extents: &Extents, list: Block, first: u32) -> Vec<(u32, u32)> {
        let of = |index| extents.find(list, first, index).map(|e| (index, e.block + index - e.index));
        (first..100).filter_map(of).collect()
    }

    proptest! {
        #[test]
        fn pages_keep_their_blocks(
            first in 0u32..4,
            ops in proptest::collection::vec((0u32..3, 0u32..60, 1u32..8), 1..60),
        ) {
            let (mut extents, mut list) = (Extents::default(), Block::NONE);
            let mut model = std::collections::BTreeMap::new();
            for (n, (op, index, blocks)) in ops.into_iter().enumerate() {
                let index = index.max(first);
                let free = (index..index + blocks).take_while(|i| !model.contains_key(i)).count() as u32;
                let ending = extents.ending_at(list, first, index);
                prop_assert_eq!(ending.is_some(), index > first && model.get(&(index - 1)).is_some_and(|(_, e)| *e == index));
                if op == 0 {
                    while let Some(last) = extents.last(list, first).filter(|e| e.end() > index) {
                        extents.cut(&mut list, first, index.max(last.index));
                        if last.index < index {
                            break;
                        }
                    }
                    model = model.into_iter().filter(|(i, _)| *i < index).map(|(i, (b, e))| (i, (b, u32::min(e, index)))).collect();
                } else if free > 0 && op == 1 {
                    let block = 1000 * (n as u32 + 1);
                    extents.insert(&mut list, first, FileExtent { index, block, blocks: free });
                    model.extend((0..free).map(|i| (index + i, (block + i, index + free))));
                } else if let Some(e) = ending.filter(|_| free > 0) {
                    extents.lengthen(&mut list, index, free);
                    model.extend((e.index..index + free).map(|i| (i, (e.block + i - e.index, index + free))));
                }
                let expected: Vec<_> = model.iter().map(|(i, (block, _))| (*i, *block)).collect();
                prop_assert_eq!(pages(&extents, list, first), expected);
                let next = (index + 1..100).find(|i| {
                    extents.find(list, first, *i).is_some_and(|e| e.index == *i)
                });
                prop_assert_eq!(extents.next_start(list, first, index), next);
            }
        }
    }

    #[test]
    fn a_file_without_extents_has_no_list() {
        let (mut extents, mut list) = (Extents::default(), Block::NONE);
        extents.insert(&mut list, 2, FileExtent { index: 5, block: 70, blocks: 3 });
        assert_eq!(extents.find(list, 2, 4), None);
        assert_eq!(extents.find(list, 2, 7), Some(FileExtent { index: 5, block: 70, blocks: 3 }));
        extents.begins_at(&mut list, 5);
        assert_eq!(extents.last(list, 5), Some(FileExtent { index: 5, block: 70, blocks: 3 }));
        extents.cut(&mut list, 5, 5);
        assert!(!list.is_some() && extents.last(list, 5).is_none());
    }
}
