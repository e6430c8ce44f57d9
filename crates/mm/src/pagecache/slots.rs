//! Leaves of the page-cache tree: the slots of 64 consecutive pages of a file, and what the tree's node knows of them.
//!
//! A leaf stands for one bottom node of the kernel's tree (`struct xa_node`, include/linux/xarray.h, 4.20), which has
//! 64 slots. On the host its slots live in one of four arenas, for 4, 16, 32 or 64 slots, whichever reaches the
//! highest slot in use, so that a file of 64 KiB takes 16 slots. A leaf moves to the next arena when it must grow.
//!
//! A slot is a u32: 0 is empty, a page is its frame number plus one, a shadow is bit 31 and the 31 bits of
//! `workingset_eviction`.

use units::Pfn;

use super::Slot;
use crate::slab::Obj;

/// log2 of the slots of a node (`XA_CHUNK_SHIFT`).
pub(super) const NODE_SHIFT: u32 = 6;
/// Slots of a node.
pub(super) const NODE_SLOTS: u32 = 1 << NODE_SHIFT;
/// log2 of the slots of a leaf in each arena.
const CLASS_SHIFT: [u32; 4] = [2, 4, 5, 6];
/// End of a list of leaves.
pub(super) const NO_LEAF: LeafId = LeafId(0);
const SHADOW: u32 = 1 << 31;

/// What a slot holds.
#[inline]
pub(super) fn unpack(raw: u32) -> Slot {
    if raw == 0 {
        Slot::Empty
    } else if is_shadow(raw) {
        Slot::Shadow(raw & !SHADOW)
    } else {
        Slot::Page(Pfn(raw - 1))
    }
}

/// The slot of a page.
#[inline]
pub(super) fn page(pfn: Pfn) -> u32 {
    debug_assert!(pfn.0 < SHADOW - 1);
    pfn.0 + 1
}

/// The slot of a shadow.
#[inline]
pub(super) fn shadow(shadow: u32) -> u32 {
    debug_assert!(shadow < SHADOW);
    shadow | SHADOW
}

/// Whether a slot holds a shadow.
#[inline]
pub(super) fn is_shadow(raw: u32) -> bool {
    raw & SHADOW != 0
}

/// Whether a slot holds a page.
#[inline]
pub(super) fn is_page(raw: u32) -> bool {
    raw != 0 && !is_shadow(raw)
}

/// A leaf: its arena in bits 29 and 30, its place there below. Bit 31 is free for the holder of the id.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LeafId(pub(super) u32);

impl LeafId {
    #[inline]
    fn new(class: usize, at: usize) -> LeafId {
        assert!(at < 1 << 29, "an arena of leaves is full");
        LeafId((class as u32) << 29 | at as u32)
    }

    #[inline]
    fn class(self) -> usize {
        (self.0 >> 29) as usize
    }

    #[inline]
    fn at(self) -> usize {
        (self.0 & ((1 << 29) - 1)) as usize
    }
}

/// What the kernel's node knows beside its slots; 32 bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaf {
    /// Dirty pages, a bit each (`PAGECACHE_TAG_DIRTY`).
    pub(super) dirty: u64,
    /// The slab object.
    pub(super) obj: Obj,
    /// File that it belongs to.
    pub(super) file: u32,
    /// First page in the file, over 64.
    pub(super) base: u32,
    /// Neighbours on the list of nodes with only shadows.
    pub(super) prev: LeafId,
    /// See `prev`.
    pub(super) next: LeafId,
    /// Slots with a page.
    pub(super) pages: u8,
    /// Slots that are not empty (`xa_node->count`).
    pub(super) count: u8,
    /// NUMA node of the slab object.
    pub(super) numa: u8,
    /// On the list of nodes with only shadows.
    pub(super) listed: bool,
}

impl Leaf {
    pub(super) fn new(file: u32, base: u32, obj: Obj, numa: u8) -> Leaf {
        Leaf { dirty: 0, obj, file, base, prev: NO_LEAF, next: NO_LEAF, pages: 0, count: 0, numa, listed: false }
    }
}

/// Leaves of one size.
#[derive(Debug, Default)]
struct Arena {
    slots: Vec<u32>,
    leaves: Vec<Leaf>,
    free: Vec<u32>,
}

/// All leaves.
#[derive(Debug)]
pub(super) struct Leaves {
    arenas: [Arena; 4],
}

impl Default for Leaves {
    fn default() -> Leaves {
        let mut leaves = Leaves { arenas: Default::default() };
        // Place 0 of every arena stays unused, so that an id of 0 is no leaf.
        for (arena, shift) in leaves.arenas.iter_mut().zip(CLASS_SHIFT) {
            arena.leaves.push(Leaf::new(u32::MAX, 0, Obj(0), 0));
            arena.slots.resize(1 << shift, 0);
        }
        leaves
    }
}

impl Leaves {
    /// A new leaf without entries, in the smallest arena that reaches `slot`.
    pub(super) fn add(&mut self, leaf: Leaf, slot: u32) -> LeafId {
        let class = (0..4).find(|&c| slot < 1 << CLASS_SHIFT[c]).expect("a slot of a node is below 64");
        let arena = &mut self.arenas[class];
        if let Some(at) = arena.free.pop() {
            arena.leaves[at as usize] = leaf;
            return LeafId::new(class, at as usize);
        }
        arena.leaves.push(leaf);
        arena.slots.resize(arena.leaves.len() << CLASS_SHIFT[class], 0);
        LeafId::new(class, arena.leaves.len() - 1)
    }

    /// Gives a leaf back; its slots are emptied.
    pub(super) fn free(&mut self, id: LeafId) -> Leaf {
        let (class, at) = (id.class(), id.at());
        let leaf = self[id];
        debug_assert!(!leaf.listed, "a freed node is on no list");
        let shift = CLASS_SHIFT[class];
        self.arenas[class].slots[at << shift..(at + 1) << shift].fill(0);
        self.arenas[class].leaves[at].file = u32::MAX;
        self.arenas[class].free.push(at as u32);
        leaf
    }

    /// What a slot holds; slots beyond the arena's size are empty.
    #[inline]
    pub(super) fn get(&self, id: LeafId, slot: u32) -> u32 {
        let (class, shift) = (id.class(), CLASS_SHIFT[id.class()]);
        if slot >> shift != 0 {
            return 0;
        }
        self.arenas[class].slots[id.at() << shift | slot as usize]
    }

    /// Whether the leaf's arena reaches a slot.
    #[inline]
    pub(super) fn reaches(&self, id: LeafId, slot: u32) -> bool {
        slot >> CLASS_SHIFT[id.class()] == 0
    }

    /// Fills a slot that the arena reaches; counts are the caller's.
    #[inline]
    pub(super) fn put(&mut self, id: LeafId, slot: u32, raw: u32) {
        let (class, shift) = (id.class(), CLASS_SHIFT[id.class()]);
        self.arenas[class].slots[id.at() << shift | slot as usize] = raw;
    }

    /// Moves a leaf to the smallest arena that reaches `slot`. The caller must not hold the old id afterwards.
    pub(super) fn grow(&mut self, id: LeafId, slot: u32) -> LeafId {
        debug_assert!(!self[id].listed, "a listed node is unlisted before it moves");
        let new = self.add(self[id], slot);
        for s in 0..1 << CLASS_SHIFT[id.class()] {
            let raw = self.get(id, s);
            self.put(new, s, raw);
        }
        self.free(id);
        new
    }

    /// Slots that the leaf's arena has.
    pub(super) fn capacity(&self, id: LeafId) -> u32 {
        1 << CLASS_SHIFT[id.class()]
    }

    /// Leaves in use.
    pub(super) fn in_use(&self) -> u64 {
        self.arenas.iter().map(|a| (a.leaves.len() - 1 - a.free.len()) as u64).sum()
    }

    /// Host bytes.
    pub(super) fn host_bytes(&self) -> usize {
        let of = |a: &Arena| a.slots.capacity() * 4 + a.leaves.capacity() * size_of::<Leaf>() + a.free.capacity() * 4;
        self.arenas.iter().map(of).sum()
    }
}

impl std::ops::Index<LeafId> for Leaves {
    type Output = Leaf;
    #[inline]
    fn index(&self, id: LeafId) -> &Leaf {
        &self.arenas[id.class()].leaves[id.at()]
    }
}

impl std::ops::IndexMut<LeafId> for Leaves {
    #[inline]
    fn index_mut(&mut self, id: LeafId) -> &mut Leaf {
        &mut self.arenas[id.class()].leaves[id.at()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leaf_takes_32_bytes_and_a_64_kib_file_16_slots() {
        assert_eq!(size_of::<Leaf>(), 32);
        let mut leaves = Leaves::default();
        let id = leaves.add(Leaf::new(0, 0, Obj(0), 0), 15);
        assert_eq!(leaves.capacity(id), 16);
    }

    #[test]
    fn growing_keeps_every_slot() {
        let mut leaves = Leaves::default();
        let mut id = leaves.add(Leaf::new(3, 0, Obj(7), 0), 0);
        for slot in 0..64 {
            if !leaves.reaches(id, slot) {
                id = leaves.grow(id, slot);
            }
            leaves.put(id, slot, slot + 100);
        }
        assert!((0..64).all(|slot| leaves.get(id, slot) == slot + 100));
        assert_eq!((leaves.in_use(), leaves[id].obj), (1, Obj(7)));
    }

    #[test]
    fn slots_tell_pages_from_shadows() {
        assert_eq!(unpack(0), Slot::Empty);
        assert_eq!(unpack(page(Pfn(0))), Slot::Page(Pfn(0)));
        assert_eq!(unpack(shadow(0)), Slot::Shadow(0));
        assert_eq!(unpack(shadow(0x7fff_ffff)), Slot::Shadow(0x7fff_ffff));
        assert!(is_page(page(Pfn(9))) && !is_page(shadow(9)) && !is_page(0));
    }
}
