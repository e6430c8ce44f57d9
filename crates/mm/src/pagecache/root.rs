//! The top of a file's tree.

use super::leaf::{LeafId, LeafRef};
use crate::pool::Block;

/// What a file's tree begins with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Root {
    /// No node: the entry of index 0, if any.
    Entry(u32),
    /// One node.
    Leaf(LeafRef),
    /// Two levels of nodes and more.
    Directory { id: u32, height: u32 },
}

/// The page cache of one file; 8 bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileCache {
    /// The entry, the leaf or the directory.
    root: u32,
    /// The leaf's block of slots. A number that is none ([`NOT_A_BLOCK`]) gives the height.
    slots: u32,
}

/// Bits that are never all set in the number of a block.
const NOT_A_BLOCK: u32 = 0x1f << 27;
const HEIGHT_MASK: u32 = 0x7;

impl FileCache {
    /// Of a file without pages and shadows.
    pub(super) const EMPTY: FileCache = FileCache { root: 0, slots: NOT_A_BLOCK };

    #[inline]
    pub(super) fn root(&self) -> Root {
        if self.slots & NOT_A_BLOCK != NOT_A_BLOCK {
            return Root::Leaf(LeafRef { id: LeafId(self.root), slots: Block::from_raw(self.slots) });
        }
        match self.slots & HEIGHT_MASK {
            0 => Root::Entry(self.root),
            height => Root::Directory { id: self.root, height },
        }
    }

    #[inline]
    pub(super) fn set_root(&mut self, root: Root) {
        (self.root, self.slots) = match root {
            Root::Entry(raw) => (raw, NOT_A_BLOCK),
            Root::Leaf(leaf) => (leaf.id.0, leaf.slots.raw()),
            Root::Directory { id, height } => (id, NOT_A_BLOCK | height),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_takes_8_bytes_and_keeps_its_root() {
        assert_eq!(size_of::<FileCache>(), 8);
        let mut file = FileCache::EMPTY;
        assert_eq!(file.root(), Root::Entry(0));
        let leaf = LeafRef { id: LeafId(u32::MAX >> 1), slots: crate::pool::Pool::default().alloc(64) };
        for root in [Root::Entry(u32::MAX), Root::Leaf(leaf), Root::Directory { id: 7, height: 6 }] {
            file.set_root(root);
            assert_eq!(file.root(), root);
        }
    }
}
