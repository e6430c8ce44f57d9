//! Leaves of the page-cache tree: what the tree's bottom nodes know beside their slots.
//!
//! A leaf stands for one bottom node of the kernel's tree (`struct xa_node`, include/linux/xarray.h, 4.20), which has
//! 64 slots. On the host its slots are a block of a pool, of 4, 8, 12, 16, 24, 32, 48 or 64 words, whichever reaches the
//! highest slot in use, so that a file of 64 KiB takes 16 slots. Whoever holds a leaf's number holds its block beside it.

use crate::column::Column;
use crate::pool::Block;
use crate::scattered::Scattered;
use crate::slab::Obj;
use crate::table;

/// log2 of the slots of a node (`XA_CHUNK_SHIFT`).
pub(crate) const NODE_SHIFT: u32 = 6;
/// Slots of a node.
pub(crate) const NODE_SLOTS: u32 = 1 << NODE_SHIFT;
/// No leaf.
pub(super) const NO_LEAF: LeafId = LeafId(0);

/// Number of a leaf, below 2^25: a slot of a leaf has a number below 2^31.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LeafId(pub(super) u32);

/// A leaf and its slots.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LeafRef {
    pub(super) id: LeafId,
    pub(super) slots: Block,
}

/// What the kernel's node knows beside its slots; 12 bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaf {
    /// The slab object.
    pub(super) obj: Obj,
    /// File that it belongs to; of an unused record, the next one.
    pub(super) file: u32,
    /// Slots with a page.
    pub(super) pages: u8,
    /// Slots that are not empty (`xa_node->count`).
    pub(super) count: u8,
    /// Slots with a dirty page.
    pub(super) dirty: u8,
    /// NUMA node of the slab object, and [`LISTED`].
    place: u8,
}

/// On the list of nodes with only shadows.
const LISTED: u8 = 1 << 7;

impl Leaf {
    pub(super) fn new(file: u32, obj: Obj, numa: u8) -> Leaf {
        debug_assert!(numa < LISTED);
        Leaf { obj, file, pages: 0, count: 0, dirty: 0, place: numa }
    }

    /// NUMA node of the slab object.
    pub(super) fn numa(&self) -> usize {
        usize::from(self.place & !LISTED)
    }

    /// On the list of nodes with only shadows.
    #[inline]
    pub(super) fn is_listed(&self) -> bool {
        self.place & LISTED != 0
    }
}

/// Nodes that hold only shadows, oldest first, of one NUMA node.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShadowList {
    pub(super) head: LeafId,
    tail: LeafId,
    pub(super) len: u64,
}

impl ShadowList {
    pub(super) const EMPTY: ShadowList = ShadowList { head: NO_LEAF, tail: NO_LEAF, len: 0 };

    /// Adds a leaf without pages as the youngest.
    pub(super) fn push(&mut self, leaves: &mut Leaves, leaf: LeafId) {
        let tail = std::mem::replace(&mut self.tail, leaf);
        if tail == NO_LEAF {
            self.head = leaf;
        } else {
            let Neighbours { prev, .. } = leaves.neighbours.get(tail.0);
            leaves.neighbours.set(tail.0, Neighbours { prev, next: leaf.0 });
        }
        self.len += 1;
        leaves[leaf].place |= LISTED;
        leaves.neighbours.set(leaf.0, Neighbours { prev: tail.0, next: NO_LEAF.0 });
    }

    /// Takes a leaf off.
    pub(super) fn remove(&mut self, leaves: &mut Leaves, leaf: LeafId) {
        leaves[leaf].place &= !LISTED;
        let Neighbours { prev, next } = leaves.neighbours.take(leaf.0);
        self.len -= 1;
        if prev == NO_LEAF.0 {
            self.head = LeafId(next);
        } else {
            let before = leaves.neighbours.get(prev);
            leaves.neighbours.set(prev, Neighbours { next, ..before });
        }
        if next == NO_LEAF.0 {
            self.tail = LeafId(prev);
        } else {
            let behind = leaves.neighbours.get(next);
            leaves.neighbours.set(next, Neighbours { prev, ..behind });
        }
    }
}

/// Neighbours on a list of nodes with only shadows, or [`NO_LEAF`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Neighbours {
    prev: u32,
    next: u32,
}

/// All leaves.
#[derive(Debug)]
pub(super) struct Leaves {
    table: Vec<Leaf>,
    /// First page of each in its file, over 64: 0 in files of 64 pages, and 0, 1, 2 and so on in large ones.
    bases: Column,
    /// Of those on a list.
    neighbours: Scattered<Neighbours>,
    /// First unused record, or 0.
    unused: u32,
    in_use: u64,
}

impl Default for Leaves {
    fn default() -> Leaves {
        // Place 0 stays unused, so that a number of 0 is no leaf.
        Leaves {
            table: vec![Leaf::new(u32::MAX, Obj::NONE, 0)],
            bases: Column::default(),
            neighbours: Scattered::default(),
            unused: 0,
            in_use: 0,
        }
    }
}

impl Leaves {
    /// Adds a leaf whose first page, over 64, is `base`.
    pub(super) fn add(&mut self, leaf: Leaf, base: u32) -> LeafId {
        self.in_use += 1;
        let id = match self.unused {
            0 => {
                assert!(self.table.len() < 1 << (31 - NODE_SHIFT), "the table of leaves is full");
                table::push(&mut self.table, leaf);
                LeafId(self.table.len() as u32 - 1)
            }
            at => {
                self.unused = std::mem::replace(&mut self.table[at as usize], leaf).file;
                LeafId(at)
            }
        };
        self.bases.set(id.0, base);
        id
    }

    /// First page of a leaf in its file, over 64.
    #[inline]
    pub(super) fn base(&self, id: LeafId) -> u32 {
        self.bases.get(id.0)
    }

    /// Gives a leaf back and says what it was.
    pub(super) fn free(&mut self, id: LeafId) -> Leaf {
        let gone = self[id];
        debug_assert!(!gone.is_listed(), "a freed node is on no list");
        self[id] = Leaf::new(self.unused, Obj::NONE, 0);
        self.unused = id.0;
        self.in_use -= 1;
        gone
    }

    /// Leaves in use.
    pub(super) fn in_use(&self) -> u64 {
        self.in_use
    }

    pub(super) fn host_bytes(&self) -> usize {
        self.table.capacity() * size_of::<Leaf>() + self.bases.host_bytes() + self.neighbours.host_bytes()
    }
}

impl std::ops::Index<LeafId> for Leaves {
    type Output = Leaf;
    #[inline]
    fn index(&self, id: LeafId) -> &Leaf {
        &self.table[id.0 as usize]
    }
}

impl std::ops::IndexMut<LeafId> for Leaves {
    #[inline]
    fn index_mut(&mut self, id: LeafId) -> &mut Leaf {
        &mut self.table[id.0 as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leaf_takes_12_bytes() {
        assert_eq!(size_of::<Leaf>(), 12);
    }

    #[test]
    fn a_place_is_used_again() {
        let mut leaves = Leaves::default();
        let ids: Vec<LeafId> = (0..3).map(|file| leaves.add(Leaf::new(file, Obj(file), 0), 10 * file)).collect();
        assert_eq!((leaves.free(ids[1]).obj, leaves.in_use()), (Obj(1), 2));
        leaves.free(ids[0]);
        let again = [3, 4, 5].map(|file| leaves.add(Leaf::new(file, Obj(file), 0), 10 * file));
        assert_eq!(again, [ids[0], ids[1], LeafId(4)]);
        assert_eq!(again.map(|id| leaves.base(id)), [30, 40, 50]);
    }
}
