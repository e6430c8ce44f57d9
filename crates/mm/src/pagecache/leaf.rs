//! Leaves of the page-cache tree: what the tree's bottom nodes know beside their slots.
//!
//! A leaf stands for one bottom node of the kernel's tree (`struct xa_node`, include/linux/xarray.h, 4.20), which has
//! 64 slots. On the host its slots are a block of a pool, of 4, 8, 12, 16, 24, 32, 48 or 64 words, whichever reaches the
//! highest slot in use, so that a file of 64 KiB takes 16 slots, or less once it has nothing but shadows (packed.rs). Whoever holds a leaf's number holds its block beside it.
//! A file's first leaf, which most files have and few have more than that, is in the file's own record.

use units::{MemcgId, NodeId, table};

use super::root::FileCache;
use crate::column::Column;
use crate::links::{Link, Linked};
use crate::pool::Block;
use crate::scattered::Scattered;
use crate::slab::Obj;
use crate::sparse::Sparse;
use crate::vfs::Share;

/// log2 of the slots of a node (`XA_CHUNK_SHIFT`).
pub(crate) const NODE_SHIFT: u32 = 6;
/// Slots of a node.
pub(crate) const NODE_SLOTS: u32 = 1 << NODE_SHIFT;
/// No leaf.
pub(super) const NO_LEAF: LeafId = LeafId(u32::MAX >> 1);
/// Files, and leaves beside their first ones, that there may be: a slot of a leaf has a number below 2^32.
const MAX: u32 = 1 << (31 - NODE_SHIFT);

/// Number of a leaf: that of its file if it is the first one, [`MAX`] and more otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LeafId(pub(super) u32);

impl LeafId {
    /// The leaf of a file's first 64 pages.
    #[inline]
    pub(super) fn first(file: u32) -> LeafId {
        debug_assert!(file < MAX);
        LeafId(file)
    }

    /// Which of two tables it is in: that of the files, or that of all other leaves; and where.
    #[inline]
    fn place(self) -> (usize, u32) {
        if self.0 < MAX { (0, self.0) } else { (1, self.0 - MAX) }
    }
}

/// A leaf and its slots.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LeafRef {
    pub(super) id: LeafId,
    pub(super) slots: Block,
}

/// What the kernel's node knows beside its slots; 8 bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaf {
    /// The slab object; none if there is no node.
    pub(super) obj: Obj,
    /// Slots with a page.
    pub(super) pages: u8,
    /// Slots that are not empty (`xa_node->count`).
    pub(super) count: u8,
    /// Slots with a dirty page.
    pub(super) dirty: u8,
    /// NUMA node of the slab object, [`LISTED`] and [`IN_DIRECTORY`].
    place: u8,
}

/// On the list of nodes with only shadows.
const LISTED: u8 = 1 << 7;
/// The file has more than this one, and a directory.
const IN_DIRECTORY: u8 = 1 << 6;

impl Leaf {
    pub(super) const NONE: Leaf = Leaf { obj: Obj::NONE, pages: 0, count: 0, dirty: 0, place: 0 };

    pub(super) fn new(obj: Obj, node: NodeId) -> Leaf {
        assert!(node.0 < IN_DIRECTORY, "a leaf is on one of 64 NUMA nodes");
        Leaf { obj, place: node.0, ..Leaf::NONE }
    }

    /// NUMA node of the slab object.
    pub(super) fn node(&self) -> NodeId {
        NodeId(self.place % IN_DIRECTORY)
    }

    /// On the list of nodes with only shadows.
    #[inline]
    pub(super) fn is_listed(&self) -> bool {
        self.place & LISTED != 0
    }

    /// Notes whether it is on that list.
    #[inline]
    pub(super) fn set_listed(&mut self, on: bool) {
        self.place = self.place & !LISTED | if on { LISTED } else { 0 };
    }

    /// Whether the file has a directory; told of its first leaf, whether that is there or not.
    #[inline]
    pub(super) fn is_in_directory(&self) -> bool {
        self.place & IN_DIRECTORY != 0
    }

    /// Notes whether the file has a directory.
    #[inline]
    pub(super) fn set_in_directory(&mut self, on: bool) {
        self.place = self.place & !IN_DIRECTORY | if on { IN_DIRECTORY } else { 0 };
    }
}

/// A leaf that is not the first of its file; 12 bytes.
#[derive(Clone, Copy, Debug)]
struct Further {
    leaf: Leaf,
    /// The file; of an unused record, the next one.
    file: u32,
}

/// All leaves, the first one of a file with what else of its page cache there is.
#[derive(Debug)]
pub(super) struct Leaves {
    pub(super) files: Vec<FileCache>,
    further: Vec<Further>,
    /// First page of each of these in its file, over 64: 1, 2, 3 and so on.
    bases: Column,
    /// Of leaves on a list, by table.
    links: [Scattered<Link>; 2],
    /// Groups on whose lists they are once they hold only shadows, by table: what the slabs say of their objects, which trees do not see.
    charged: [Sparse<MemcgId>; 2],
    /// First unused record, or [`MAX`].
    unused: u32,
    in_use: u64,
}

impl Default for Leaves {
    fn default() -> Leaves {
        let (files, further, bases) = (Vec::new(), Vec::new(), Column::default());
        let (links, charged) = Default::default();
        Leaves { files, further, bases, links, charged, unused: MAX, in_use: 0 }
    }
}

impl Leaves {
    /// Adds the leaf of a file whose first page, over 64, is `base`, for an object of a share.
    pub(super) fn add(&mut self, file: u32, base: u32, (obj, share): (Obj, Share)) -> LeafId {
        let id = self.place_for(file, base, Leaf::new(obj, share.node));
        let (table, at) = id.place();
        self.charged[table].set(at, share.memcg);
        id
    }

    fn place_for(&mut self, file: u32, base: u32, leaf: Leaf) -> LeafId {
        self.in_use += 1;
        if base == 0 {
            let first = &mut self.files[file as usize].leaf;
            debug_assert!(!first.obj.is_some());
            let in_directory = first.is_in_directory();
            *first = leaf;
            first.set_in_directory(in_directory);
            return LeafId::first(file);
        }
        let record = Further { leaf, file };
        let at = match self.unused {
            MAX => {
                assert!(self.further.len() < MAX as usize, "the table of leaves is full");
                table::push(&mut self.further, record);
                self.further.len() as u32 - 1
            }
            at => {
                self.unused = std::mem::replace(&mut self.further[at as usize], record).file;
                at
            }
        };
        self.bases.set(at, base);
        LeafId(MAX + at)
    }

    /// Gives a leaf back and says what it was.
    pub(super) fn free(&mut self, id: LeafId) -> Leaf {
        self.in_use -= 1;
        let gone = self[id];
        debug_assert!(!gone.is_listed(), "a freed node is on no list");
        self[id] = Leaf::NONE;
        let (table, at) = id.place();
        self.charged[table].take(at);
        match id.place() {
            (0, _) => self[id].set_in_directory(gone.is_in_directory()),
            (_, at) => self.further[at as usize].file = std::mem::replace(&mut self.unused, at),
        }
        gone
    }

    /// The file of a leaf, and its first page in it, over 64.
    #[inline]
    pub(super) fn home(&self, id: LeafId) -> (u32, u32) {
        match id.place() {
            (0, file) => (file, 0),
            (_, at) => (self.further[at as usize].file, self.bases.get(at)),
        }
    }

    /// Where the object of a leaf is, and whose.
    pub(super) fn share(&self, id: LeafId) -> Share {
        let (table, at) = id.place();
        Share { node: self[id].node(), memcg: self.charged[table].get(at) }
    }

    /// Leaves in use.
    pub(super) fn in_use(&self) -> u64 {
        self.in_use
    }

    pub(super) fn host_bytes(&self) -> usize {
        self.files.capacity() * size_of::<FileCache>()
            + self.further.capacity() * size_of::<Further>()
            + self.bases.host_bytes()
            + self.links.iter().map(Scattered::host_bytes).sum::<usize>()
            + self.charged.iter().map(Sparse::host_bytes).sum::<usize>()
    }
}

impl Linked for Leaves {
    fn link(&self, id: u32) -> Link {
        let (table, at) = LeafId(id).place();
        self.links[table].get(at)
    }

    fn set_link(&mut self, id: u32, link: Link) {
        let (table, at) = LeafId(id).place();
        self.links[table].set(at, link);
    }
}

impl std::ops::Index<LeafId> for Leaves {
    type Output = Leaf;
    #[inline]
    fn index(&self, id: LeafId) -> &Leaf {
        match id.place() {
            (0, file) => &self.files[file as usize].leaf,
            (_, at) => &self.further[at as usize].leaf,
        }
    }
}

impl std::ops::IndexMut<LeafId> for Leaves {
    #[inline]
    fn index_mut(&mut self, id: LeafId) -> &mut Leaf {
        match id.place() {
            (0, file) => &mut self.files[file as usize].leaf,
            (_, at) => &mut self.further[at as usize].leaf,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leaf_takes_8_bytes_and_one_that_is_not_the_first_12() {
        assert_eq!((size_of::<Leaf>(), size_of::<Further>()), (8, 12));
    }

    const SHARE: Share = Share { node: NodeId(3), memcg: MemcgId(0) };

    #[test]
    fn a_place_is_used_again_and_its_group_forgotten() {
        let mut leaves = Leaves::default();
        leaves.files.resize(6, FileCache::EMPTY);
        let of_group = Share { memcg: MemcgId(7), ..SHARE };
        let ids: Vec<LeafId> = (0..3).map(|file| leaves.add(file, 10, (Obj(file), of_group))).collect();
        assert_eq!(ids.iter().map(|id| leaves.share(*id)).collect::<Vec<_>>(), [of_group; 3]);
        assert_eq!((leaves.free(ids[1]).obj, leaves.in_use()), (Obj(1), 2));
        leaves.free(ids[0]);
        let again = [3, 4, 5].map(|file| leaves.add(file, 10 * file, (Obj(file), SHARE)));
        assert_eq!(again, [ids[0], ids[1], LeafId(MAX + 3)]);
        assert_eq!(again.map(|id| leaves.home(id)), [(3, 30), (4, 40), (5, 50)]);
        assert_eq!(again.map(|id| leaves.share(id)), [SHARE; 3]);
    }

    #[test]
    fn the_first_leaf_of_a_file_is_in_its_record() {
        let mut leaves = Leaves::default();
        leaves.files.resize(3, FileCache::EMPTY);
        leaves.files[2].leaf.set_in_directory(true);
        let id = leaves.add(2, 0, (Obj(9), SHARE));
        assert_eq!((id, leaves.home(id), leaves.share(id)), (LeafId(2), (2, 0), SHARE));
        assert_eq!((leaves.free(id).obj, leaves.in_use()), (Obj(9), 0));
        assert!(leaves.files[2].leaf.is_in_directory() && !leaves.files[2].leaf.obj.is_some());
    }
}
