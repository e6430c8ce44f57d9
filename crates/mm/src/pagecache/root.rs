//! The top of a file's tree.

use super::leaf::{Leaf, LeafId, LeafRef};
use crate::pool::Block;

/// What a file's tree begins with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Root {
    /// No node: the entry of index 0, if any.
    Entry(u32),
    /// One node.
    Leaf(LeafRef),
    /// Two levels of nodes and more.
    Directory(u32),
}

/// The page cache of one file, with its first leaf; 12 bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileCache {
    /// The entry, the block of the only leaf's slots, or the number of the directory.
    root: u32,
    /// Of the first 64 pages.
    pub(super) leaf: Leaf,
}

impl FileCache {
    /// Of a file without pages and shadows.
    pub(super) const EMPTY: FileCache = FileCache { root: 0, leaf: Leaf::NONE };

    /// The root of the file, whose number is given.
    #[inline]
    pub(super) fn root(&self, file: u32) -> Root {
        if self.leaf.is_in_directory() {
            Root::Directory(self.root)
        } else if self.leaf.obj.is_some() {
            Root::Leaf(LeafRef { id: LeafId::first(file), slots: Block::from_raw(self.root) })
        } else {
            Root::Entry(self.root)
        }
    }

    /// Sets the root. A leaf must be there already, and with an entry none.
    #[inline]
    pub(super) fn set_root(&mut self, root: Root) {
        self.leaf.set_in_directory(matches!(root, Root::Directory(_)));
        self.root = match root {
            Root::Entry(raw) => {
                debug_assert!(!self.leaf.obj.is_some());
                raw
            }
            Root::Leaf(leaf) => {
                debug_assert!(self.leaf.obj.is_some());
                leaf.slots.raw()
            }
            Root::Directory(id) => id,
        };
    }
}

#[cfg(test)]
mod tests {
    use units::NodeId;

    use super::*;
    use crate::slab::Obj;

    #[test]
    fn a_file_takes_12_bytes_and_keeps_its_root() {
        assert_eq!(size_of::<FileCache>(), 12);
        let mut file = FileCache::EMPTY;
        assert_eq!(file.root(7), Root::Entry(0));
        file.set_root(Root::Entry(u32::MAX));
        assert_eq!(file.root(7), Root::Entry(u32::MAX));
        file.leaf = Leaf::new(Obj(5), NodeId(63));
        let only = LeafRef { id: LeafId::first(7), slots: crate::pool::Pool::default().alloc(64) };
        for root in [Root::Leaf(only), Root::Directory(u32::MAX), Root::Leaf(only)] {
            file.set_root(root);
            assert_eq!((file.root(7), file.leaf.obj, file.leaf.node()), (root, Obj(5), NodeId(63)));
        }
    }
}
