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

impl Entries<'_> {
    /// Those of a list that is short or empty, to be changed.
    fn short(self) -> Option<Packed> {
        match self {
            Entries::Short(entries) => Some(entries),
            Entries::Long(_) => None,
        }
    }
}

/// The extents among entries of which the first begins at page `first`.
fn extents(entries: impl Iterator<Item = Entry>, first: u32) -> impl Iterator<Item = FileExtent> {
    let mut index = first;
    let all = entries.map(move |[block, end]| {
        let start = std::mem::replace(&mut index, end);
        FileExtent { index: start, block, blocks: end - start }
    });
    all.filter(|extent| extent.block != NONE)
}

impl Extents {
    #[inline]
    fn entries(&self, list: Block) -> Entries<'_> {
        match self.packed(list) {
            Some(entries) => Entries::Short(entries.collect()),
            None => Entries::Long(self.long(list)),
        }
    }

    /// The words of a list that is short or empty.
    #[inline]
    fn short_words(&self, list: Block) -> Option<&[u32]> {
        let words = if list.is_some() { self.pool.words(list) } else { &[] };
        (words.len() <= PACKED_WORDS).then_some(words)
    }

    /// Its entries, one after the other.
    #[inline]
    fn packed(&self, list: Block) -> Option<impl Iterator<Item = Entry>> {
        self.short_words(list).map(packed::unpack)
    }

    /// The entries of a long list.
    fn long(&self, list: Block) -> &[Entry] {
        let (entries, _) = self.pool.words(list).as_chunks();
        &entries[..entries.partition_point(|[_, end]| *end != 0)]
    }

    /// The `at`th entry; a hole has the block [`NONE`].
    fn entry(entries: &[Entry], at: usize, first: u32) -> FileExtent {
        let index = if at == 0 { first } else { entries[at - 1][1] };
        let [block, end] = entries[at];
        FileExtent { index, block, blocks: end - index }
    }

    /// The extent that holds a page.
    pub(super) fn find(&self, list: Block, first: u32, index: u32) -> Option<FileExtent> {
        if let Some(entries) = self.packed(list) {
            return extents(entries, first).find(|extent| extent.end() > index).filter(|extent| extent.index <= index);
        }
        let entries = self.long(list);
        let at = entries.partition_point(|[_, end]| *end <= index);
        (at < entries.len()).then(|| Extents::entry(entries, at, first)).filter(|extent| extent.block != NONE)
    }

    /// First page behind `index` with which an extent begins.
    pub(super) fn next_start(&self, list: Block, first: u32, index: u32) -> Option<u32> {
        let behind = |extent: &FileExtent| extent.index > index;
        if let Some(entries) = self.packed(list) {
            return extents(entries, first).find(behind).map(|extent| extent.index);
        }
        let entries = self.long(list);
        let from = entries.partition_point(|[_, end]| *end <= index);
        let first = from.checked_sub(1).map_or(first, |before| entries[before][1]);
        extents(entries[from..].iter().copied(), first).find(behind).map(|extent| extent.index)
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

    /// How many there are.
    pub(super) fn count(&self, list: Block) -> u64 {
        let count = match self.short_words(list) {
            Some(words) => packed::count(words),
            None => self.long(list).iter().filter(|[block, _]| *block != NONE).count(),
        };
        count as u64
    }

    /// Blocks of all of them.
    pub(super) fn blocks(&self, list: Block, first: u32) -> u64 {
        extents(self.entries(list).iter().copied(), first).map(|extent| u64::from(extent.blocks)).sum()
    }

    /// How many pieces of at most `most` blocks all of them make.
    pub(super) fn pieces(&self, list: Block, first: u32, most: u32) -> u64 {
        let pieces = |extent: FileExtent| u64::from(extent.blocks.div_ceil(most));
        extents(self.entries(list).iter().copied(), first).map(pieces).sum()
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
        let short = entries.short();
        self.splice(list, short, at..at + usize::from(filled), &new[..added]);
    }

    /// Makes the extent that ends at `end` longer.
    pub(super) fn lengthen(&mut self, list: &mut Block, end: u32, by: u32) {
        let entries = self.entries(*list);
        let at = entries.partition_point(|entry| entry[1] < end);
        debug_assert!(entries[at][1] == end);
        let longer = [entries[at][0], end + by];
        let filled = entries.get(at + 1).is_some_and(|hole| hole[1] == end + by);
        let short = entries.short();
        self.splice(list, short, at..at + 1 + usize::from(filled), &[longer]);
    }

    /// Where the list begins has moved to `first`: a hole that ends there is gone.
    pub(super) fn begins_at(&mut self, list: &mut Block, first: u32) {
        let entries = self.entries(*list);
        if entries.first().is_some_and(|[_, end]| *end == first) {
            let short = entries.short();
            self.splice(list, short, 0..1, &[]);
        }
    }

    /// Removes what lies from page `from` on, and a hole that is last then; tells the blocks of each extent, the last one first.
    pub(super) fn cut(&mut self, list: &mut Block, first: u32, from: u32, mut gone: impl FnMut(u32, u32)) {
        let entries = self.entries(*list);
        let (mut kept, nr) = (entries.len(), entries.len());
        let mut shorter = None;
        while kept > 0 && shorter.is_none() {
            let extent = Extents::entry(&entries, kept - 1, first);
            let FileExtent { index, block, blocks } = extent;
            if block != NONE {
                if extent.end() <= from {
                    break;
                }
                let stays = from.saturating_sub(index);
                gone(block + stays, blocks - stays);
                shorter = (stays > 0).then_some([block, from]);
            }
            kept -= 1;
        }
        if kept < nr {
            let short = entries.short();
            self.splice(list, short, kept..nr, shorter.as_slice());
        }
    }

    pub(super) fn host_bytes(&self) -> usize {
        self.pool.host_bytes()
    }

    /// Puts `new` in the place of some entries, which are `short` if the list is.
    fn splice(&mut self, list: &mut Block, short: Option<Packed>, old: std::ops::Range<usize>, new: &[Entry]) {
        let Some(mut entries) = short else { return self.splice_long(list, old, new) };
        entries.drain(old.clone());
        entries.insert_from_slice(old.start, new);
        self.store(list, &entries);
    }

    /// The same in a long list.
    fn splice_long(&mut self, list: &mut Block, old: std::ops::Range<usize>, new: &[Entry]) {
        let nr = self.long(*list).len();
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
                    let mut freed = Vec::new();
                    extents.cut(&mut list, first, index, |block, blocks| freed.extend((block..block + blocks).rev()));
                    let beyond = model.range(index..).rev().map(|(_, (block, _))| *block);
                    prop_assert!(beyond.eq(freed));
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
        assert_eq!(extents.find(list, 5, 5), Some(FileExtent { index: 5, block: 70, blocks: 3 }));
        extents.cut(&mut list, 5, 5, |block, blocks| assert_eq!((block, blocks), (70, 3)));
        assert!(!list.is_some());
    }
}
