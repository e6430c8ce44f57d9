//! The tree of a file's pages, with as many nodes as the kernel's would have.
//!
//! Rule: a lone entry at index 0 sits in the file itself. Otherwise there is a bottom node for each 64 indices in use,
//! and above them a node for each 64 nodes in use, up to one root that reaches the highest index ever stored since
//! the tree was empty. A node is freed when its last entry goes. A root whose only entry is its first gives way to
//! that entry.
//! Source: `xas_expand()`, `xas_create()`, `xas_delete_node()`, `xas_shrink()`, lib/xarray.c, 4.20. The radix tree
//! before 4.20 has the same nodes, but for a lone shadow at index 0.
//! Abstracted: on the host, the levels above the leaves are one directory of leaves and a count for each node.
//! Omitted: multi-index entries (large folios).

use super::directory::{Directory, Interior};
use super::leaf::{Leaf, LeafId, LeafRef, Leaves, NO_LEAF, NODE_SHIFT, NODE_SLOTS};
use super::packed;
use super::root::{FileCache, Root};
use super::shadow_list::ShadowLists;
use super::slots;
use crate::pool::Pool;
use crate::slab::Obj;
use crate::sparse::SparseSmall;
use crate::vfs::Share;
use units::table;

/// Trees of all files.
#[derive(Debug, Default)]
pub(crate) struct Trees {
    /// Where cyclic writeback goes on in each file (`writeback_index`).
    pub(crate) writeback_index: SparseSmall,
    pub(super) leaves: Leaves,
    /// Slots of the leaves.
    pub(super) slots: Pool,
    pub(super) directories: Vec<Directory>,
    free_directories: Vec<u32>,
    /// Slab objects for the next nodes, and whose they are.
    pub(super) spare: Vec<(Obj, Share)>,
    /// Slab objects of nodes that are gone, to be freed by the caller.
    pub(super) released: Vec<Obj>,
    /// Nodes that hold only shadows.
    pub(super) shadows: ShadowLists,
    interiors: u64,
}

/// Levels of nodes that reach `index`; 0 for index 0.
fn levels_for(index: u32) -> u32 {
    let mut levels = 0;
    while levels < 6 && (index as u64) >> (levels * NODE_SHIFT) != 0 {
        levels += 1;
    }
    levels
}

/// Whether a tree of `height` levels reaches `index`.
fn reaches(height: u32, index: u32) -> bool {
    (index as u64) >> (height * NODE_SHIFT) == 0
}

/// Words of a block that reaches a slot, a few more than needed, so that a leaf does not move with each page.
fn words_for(slot: u32) -> usize {
    (slot as usize + 1).next_multiple_of(4)
}

/// Place of the node of `level` that `index` is below, among those of its level.
fn place(level: u32, index: u32) -> usize {
    (index as u64 >> (level * NODE_SHIFT)) as usize
}

impl Trees {
    /// Files that pages were put into, or that have a smaller number than one.
    pub(crate) fn nr_files(&self) -> u32 {
        self.leaves.files.len() as u32
    }

    /// The root of a file's tree.
    #[inline]
    pub(super) fn root_of(&self, file: u32) -> Root {
        self.leaves.files.get(file as usize).map_or(Root::Entry(0), |cache| cache.root(file))
    }

    fn set_root(&mut self, file: u32, root: Root) {
        self.leaves.files[file as usize].set_root(root);
    }

    /// The slot of a page.
    #[inline]
    pub(super) fn get(&self, file: u32, index: u32) -> u32 {
        match self.root_of(file) {
            Root::Entry(raw) if index == 0 => raw,
            Root::Entry(_) => 0,
            root => match self.leaf_at(root, index >> NODE_SHIFT) {
                Some(leaf) => self.slot(root, leaf, index % NODE_SLOTS),
                None => 0,
            },
        }
    }

    /// A slot of a leaf; those beyond its block are empty.
    #[inline]
    pub(super) fn slot(&self, root: Root, leaf: LeafRef, slot: u32) -> u32 {
        let words = self.slots.words(leaf.slots);
        if self.is_packed(root, leaf.id) {
            return packed::get(words, slot as usize);
        }
        words.get(slot as usize).copied().unwrap_or(0)
    }

    /// Whether a leaf's block is packed: that of a lone one with nothing but shadows.
    #[inline]
    fn is_packed(&self, root: Root, leaf: LeafId) -> bool {
        matches!(root, Root::Leaf(_)) && self.leaves[leaf].is_listed()
    }

    /// What the frame of a page says of its place: the number of the slot, also if a lone page at index 0 is in no leaf.
    #[inline]
    pub(super) fn place(&self, file: u32, index: u32) -> u32 {
        let leaf = match index >> NODE_SHIFT {
            0 => LeafId::first(file),
            at => self.leaf_at(self.root_of(file), at).expect("a page that is cached has a slot").id,
        };
        leaf.0 * NODE_SLOTS + index % NODE_SLOTS
    }

    /// File and index of a place.
    #[inline]
    pub(crate) fn home(&self, place: u32) -> (u32, u32) {
        let (file, base) = self.leaves.home(LeafId(place >> NODE_SHIFT));
        (file, base * NODE_SLOTS + place % NODE_SLOTS)
    }

    /// Pages cached of a file.
    pub(super) fn nr_pages(&self, file: u32) -> u32 {
        match self.root_of(file) {
            Root::Entry(raw) => u32::from(slots::is_page(raw)),
            Root::Leaf(leaf) => u32::from(self.leaves[leaf.id].pages),
            Root::Directory(id) => self.directories[id as usize].nr_pages,
        }
    }

    /// Whether a file has neither pages nor shadows.
    #[cfg(test)]
    pub(super) fn is_empty(&self, file: u32) -> bool {
        self.root_of(file) == Root::Entry(0)
    }

    /// The leaf of the pages from 64 times `at` on.
    #[inline]
    pub(super) fn leaf_at(&self, root: Root, at: u32) -> Option<LeafRef> {
        match root {
            Root::Leaf(leaf) => (at == 0).then_some(leaf),
            Root::Directory(id) => self.directories[id as usize].leaf(at),
            Root::Entry(_) => None,
        }
    }

    /// Nodes that must be created before an entry can be stored at `index`.
    #[inline]
    pub(super) fn nodes_missing(&self, file: u32, index: u32) -> usize {
        match self.root_of(file) {
            Root::Entry(0) => levels_for(index) as usize,
            Root::Leaf(_) if index < NODE_SLOTS => 0,
            root => self.nodes_missing_below(root, index),
        }
    }

    fn nodes_missing_below(&self, root: Root, index: u32) -> usize {
        if self.leaf_at(root, index >> NODE_SHIFT).is_some() {
            return 0;
        }
        let (height, directory) = match root {
            Root::Entry(_) => (0, None),
            Root::Leaf(_) => (1, None),
            Root::Directory(id) => {
                let directory = &self.directories[id as usize];
                (directory.height, Some(directory))
            }
        };
        let tall = height.max(levels_for(index));
        // New roots above the old one, then the path below the first level that has a node for this index.
        let mut path = 0;
        for level in 1..=height {
            let present = level > 1 && directory.is_some_and(|d| d.present(level, place(level, index)));
            path += usize::from(!present);
        }
        // A new root's path to the old tree is through its first slot; another index needs its own branch. An entry goes
        // down to a new leaf as the tree grows.
        let branch = (height + 1..tall).filter(|level| place(*level, index) != 0).count();
        (tall - height) as usize + path + branch
    }

    fn take_spare(&mut self) -> (Obj, Share) {
        self.spare.pop().expect("nodes are reserved before an entry is stored")
    }

    /// Stores an entry where none or a shadow is, and gives back what was there. `nodes_missing` spare objects must
    /// be at hand.
    pub(super) fn insert(&mut self, file: u32, index: u32, raw: u32) -> u32 {
        debug_assert!(raw != 0);
        if file >= self.nr_files() {
            table::grow(&mut self.leaves.files, file as usize + 1, FileCache::EMPTY);
        }
        if let Root::Entry(old) = self.root_of(file) {
            if index == 0 {
                self.set_root(file, Root::Entry(slots::in_place_of(raw, old)));
                return old;
            }
            if old == 0 {
                self.plant(file, index);
            }
        }
        let leaf = self.leaf_for(file, index);
        self.fill(file, index, leaf, raw)
    }

    /// Gives an empty tree a root that reaches `index`.
    fn plant(&mut self, file: u32, index: u32) {
        let root = match levels_for(index) {
            1 => Root::Leaf(self.new_leaf(file, 0, index)),
            height => Root::Directory(self.open_directory(height)),
        };
        self.set_root(file, root);
    }

    /// Replaces the entry at `index`; the slot must exist.
    pub(super) fn replace(&mut self, file: u32, index: u32, raw: u32) -> u32 {
        debug_assert!(raw != 0 && self.get(file, index) != 0);
        let root = self.root_of(file);
        if let Root::Entry(old) = root {
            self.set_root(file, Root::Entry(slots::in_place_of(raw, old)));
            return old;
        }
        let leaf = self.leaf_at(root, index >> NODE_SHIFT).expect("the slot exists");
        self.fill(file, index, leaf, raw)
    }

    /// Empties a slot and frees the nodes that this leaves without entries.
    pub(super) fn erase(&mut self, file: u32, index: u32) -> u32 {
        let root = self.root_of(file);
        if let Root::Entry(raw) = root {
            debug_assert!(index == 0);
            self.set_root(file, Root::Entry(0));
            return raw;
        }
        let at = index >> NODE_SHIFT;
        let leaf = self.leaf_at(root, at).expect("only what is there is erased");
        let old = if self.is_packed(root, leaf.id) {
            self.clear_packed(leaf, index % NODE_SLOTS)
        } else {
            self.put(root, leaf, index % NODE_SLOTS, 0)
        };
        debug_assert!(old != 0, "only what is there is erased");
        if self.leaves[leaf.id].count == 0 {
            self.drop_leaf(file, at, leaf);
        } else if let Root::Leaf(_) = root {
            let leaf = if slots::is_page(old) { self.pack_if_shadows(file, leaf) } else { leaf };
            self.shrink_leaf(file, leaf);
        }
        old
    }

    /// Empties a slot of a packed leaf.
    fn clear_packed(&mut self, leaf: LeafRef, slot: u32) -> u32 {
        let words = self.slots.words_mut(leaf.slots);
        let old = packed::get(words, slot as usize);
        packed::clear(words, slot as usize);
        self.leaves[leaf.id].count -= 1;
        old
    }

    /// Packs a lone leaf that has nothing but shadows now.
    fn pack_if_shadows(&mut self, file: u32, leaf: LeafRef) -> LeafRef {
        if !self.leaves[leaf.id].is_listed() {
            return leaf;
        }
        let words = packed::pack(self.slots.words(leaf.slots));
        self.move_to(file, leaf, &words)
    }

    /// Unpacks a lone leaf that had nothing but shadows.
    fn unpack(&mut self, file: u32, leaf: LeafRef) -> LeafRef {
        let slots = packed::unpack(self.slots.words(leaf.slots));
        self.move_to(file, leaf, &slots)
    }

    /// Gives a lone leaf a block that holds these words.
    fn move_to(&mut self, file: u32, leaf: LeafRef, words: &[u32]) -> LeafRef {
        let moved = LeafRef { slots: self.slots.alloc(words.len()), ..leaf };
        self.slots.words_mut(moved.slots)[..words.len()].copy_from_slice(words);
        self.slots.free(leaf.slots);
        self.set_root(file, Root::Leaf(moved));
        moved
    }

    /// Puts an entry, or none, into a slot that the leaf's block reaches, and counts it.
    #[inline]
    fn put(&mut self, root: Root, leaf: LeafRef, slot: u32, raw: u32) -> u32 {
        let place = &mut self.slots.words_mut(leaf.slots)[slot as usize];
        let old = *place;
        let raw = slots::in_place_of(raw, old);
        *place = raw;
        let (was, is) = (slots::is_page(old), slots::is_page(raw));
        let node = &mut self.leaves[leaf.id];
        node.count = node.count + u8::from(raw != 0) - u8::from(old != 0);
        node.pages = node.pages + u8::from(is) - u8::from(was);
        let (has_entries, has_pages, listed) = (node.count > 0, node.pages > 0, node.is_listed());
        if let Root::Directory(id) = root {
            let directory = &mut self.directories[id as usize];
            directory.nr_pages = directory.nr_pages + u32::from(is) - u32::from(was);
        }
        if slots::is_dirty(raw) != slots::is_dirty(old) {
            self.count_dirty(root, leaf, slots::is_dirty(raw));
        }
        // The list of nodes with only shadows (`workingset_update_node()`).
        match (has_entries && !has_pages, listed) {
            (true, false) => self.shadows.push(&mut self.leaves, leaf.id),
            (false, true) => self.shadows.remove(&mut self.leaves, leaf.id),
            _ => {}
        }
        old
    }

    fn fill(&mut self, file: u32, index: u32, mut leaf: LeafRef, raw: u32) -> u32 {
        let slot = index % NODE_SLOTS;
        if self.is_packed(self.root_of(file), leaf.id) {
            leaf = self.unpack(file, leaf);
        }
        if slot as usize >= self.slots.len(leaf.slots) {
            leaf.slots = self.slots.grow(leaf.slots, words_for(slot));
            self.point_at(file, index >> NODE_SHIFT, Some(leaf));
        }
        let root = self.root_of(file);
        let old = self.put(root, leaf, slot, raw);
        if slots::is_shadow(raw) && matches!(root, Root::Leaf(_)) {
            self.pack_if_shadows(file, leaf);
        }
        old
    }

    /// Makes the parent of a leaf point at it, or at none.
    fn point_at(&mut self, file: u32, at: u32, leaf: Option<LeafRef>) {
        match (self.root_of(file), leaf) {
            (Root::Directory(id), leaf) => self.directories[id as usize].set_leaf(at, leaf),
            (_, Some(leaf)) => self.set_root(file, Root::Leaf(leaf)),
            (_, None) => self.set_root(file, Root::Entry(0)),
        }
    }

    fn open_directory(&mut self, height: u32) -> u32 {
        let id = self.free_directories.pop().unwrap_or_else(|| {
            self.directories.push(Directory::default());
            self.directories.len() as u32 - 1
        });
        self.directories[id as usize].height = height;
        id
    }

    fn close_directory(&mut self, id: u32) {
        self.directories[id as usize] = Directory::default();
        self.free_directories.push(id);
    }

    /// A leaf without entries whose block reaches a slot.
    fn new_leaf(&mut self, file: u32, at: u32, slot: u32) -> LeafRef {
        let spare = self.take_spare();
        let id = self.leaves.add(file, at, spare);
        LeafRef { id, slots: self.slots.alloc(words_for(slot)) }
    }

    fn free_leaf(&mut self, leaf: LeafRef) -> Leaf {
        debug_assert!(leaf.id != NO_LEAF);
        self.shadows.remove(&mut self.leaves, leaf.id);
        self.slots.free(leaf.slots);
        let gone = self.leaves.free(leaf.id);
        self.released.push(gone.obj);
        gone
    }

    /// Puts a new root above the present tree, which becomes its first entry.
    fn add_root(&mut self, file: u32) -> Root {
        let root = match self.root_of(file) {
            Root::Entry(raw) => {
                let leaf = self.new_leaf(file, 0, 0);
                self.put(Root::Leaf(leaf), leaf, 0, raw);
                Root::Leaf(self.pack_if_shadows(file, leaf))
            }
            Root::Leaf(leaf) => {
                let leaf = if self.leaves[leaf.id].is_listed() { self.unpack(file, leaf) } else { leaf };
                let id = self.open_directory(2);
                let node = self.new_interior(1);
                let Leaf { pages, dirty, .. } = self.leaves[leaf.id];
                let directory = &mut self.directories[id as usize];
                *directory.interior(2, 0) = node;
                directory.set_leaf(0, Some(leaf));
                directory.set_dirty(0, dirty > 0);
                (directory.nr_pages, directory.nr_dirty) = (u32::from(pages), u32::from(dirty));
                Root::Directory(id)
            }
            Root::Directory(id) => {
                let node = self.new_interior(1);
                let directory = &mut self.directories[id as usize];
                directory.height += 1;
                *directory.interior(directory.height, 0) = node;
                Root::Directory(id)
            }
        };
        self.set_root(file, root);
        root
    }

    fn new_interior(&mut self, count: u8) -> Interior {
        let (obj, _) = self.take_spare();
        self.interiors += 1;
        Interior { obj, count }
    }

    /// The leaf for an index, with the nodes above it, created where they are missing.
    fn leaf_for(&mut self, file: u32, index: u32) -> LeafRef {
        let mut root = self.root_of(file);
        loop {
            match root {
                Root::Leaf(leaf) if index < NODE_SLOTS => return leaf,
                Root::Directory(id) if reaches(self.directories[id as usize].height, index) => {
                    let at = index >> NODE_SHIFT;
                    return self.directories[id as usize].leaf(at).unwrap_or_else(|| self.branch(file, index));
                }
                _ => root = self.add_root(file),
            }
        }
    }

    /// Creates a leaf below a directory, with the nodes above it that are missing.
    fn branch(&mut self, file: u32, index: u32) -> LeafRef {
        let Root::Directory(id) = self.root_of(file) else { unreachable!("only a tree with a directory branches") };
        let height = self.directories[id as usize].height;
        for level in (2..=height).rev() {
            if self.directories[id as usize].present(level, place(level, index)) {
                continue;
            }
            // Its first entry is the node of the next round, which counts itself.
            let node = self.new_interior(0);
            let directory = &mut self.directories[id as usize];
            if level < height {
                directory.interior(level + 1, place(level + 1, index)).count += 1;
            }
            *directory.interior(level, place(level, index)) = node;
        }
        let at = index >> NODE_SHIFT;
        let leaf = self.new_leaf(file, at, index % NODE_SLOTS);
        let directory = &mut self.directories[id as usize];
        directory.interior(2, place(2, index)).count += 1;
        directory.set_leaf(at, Some(leaf));
        leaf
    }

    /// Frees the leaf of a file at 64 times `at`, whatever shadows it still holds.
    pub(super) fn drop_leaf_at(&mut self, file: u32, at: u32) {
        let leaf = self.leaf_at(self.root_of(file), at).expect("the leaf is where it says");
        self.drop_leaf(file, at, leaf);
    }

    /// Frees a leaf, and the nodes above it that lose their last entry.
    fn drop_leaf(&mut self, file: u32, at: u32, leaf: LeafRef) {
        self.free_leaf(leaf);
        self.point_at(file, at, None);
        let Root::Directory(id) = self.root_of(file) else { return };
        let height = self.directories[id as usize].height;
        for level in 2..=height {
            let node = self.directories[id as usize].interior(level, place(level - 1, at));
            node.count -= 1;
            if node.count > 0 {
                if level == height {
                    self.shrink_directory(file);
                }
                return;
            }
            let obj = node.obj;
            self.released.push(obj);
            self.interiors -= 1;
        }
        self.close_directory(id);
        self.set_root(file, Root::Entry(0));
    }

    /// Replaces a root whose only entry is its first by that entry, as often as this holds.
    fn shrink_directory(&mut self, file: u32) {
        while let Root::Directory(id) = self.root_of(file) {
            let directory = &mut self.directories[id as usize];
            let height = directory.height;
            let node = *directory.interior(height, 0);
            let leaf = directory.leaf(0);
            let first = if height == 2 { leaf.is_some() } else { directory.present(height - 1, 0) };
            if node.count != 1 || !first {
                return;
            }
            self.released.push(node.obj);
            self.interiors -= 1;
            *directory.interior(height, 0) = Interior::ABSENT;
            match leaf.filter(|_| height == 2) {
                Some(leaf) => {
                    self.close_directory(id);
                    self.set_root(file, Root::Leaf(leaf));
                    let leaf = self.pack_if_shadows(file, leaf);
                    self.shrink_leaf(file, leaf);
                }
                None => self.directories[id as usize].height -= 1,
            }
        }
    }

    /// Replaces a lone leaf whose only entry is its first by that entry.
    fn shrink_leaf(&mut self, file: u32, leaf: LeafRef) {
        let raw = self.slot(Root::Leaf(leaf), leaf, 0);
        if self.leaves[leaf.id].count != 1 || raw == 0 {
            return;
        }
        self.free_leaf(leaf);
        self.set_root(file, Root::Entry(raw));
    }

    /// Gives chunks of slots back of which the most part is free, as after reclaim of leaves here and there.
    #[inline]
    pub(super) fn settle(&mut self) {
        if self.slots.is_loose() {
            self.settle_all();
        }
    }

    #[cold]
    fn settle_all(&mut self) {
        self.slots.begin_to_settle();
        for (file, cache) in (0..).zip(&mut self.leaves.files) {
            if let Root::Leaf(leaf) = cache.root(file) {
                cache.set_root(Root::Leaf(LeafRef { slots: self.slots.settle(leaf.slots), ..leaf }));
            }
        }
        for slots in self.directories.iter_mut().flat_map(Directory::slots_mut) {
            *slots = self.slots.settle(*slots);
        }
    }

    /// Nodes of all trees, as the kernel would have allocated them.
    pub(super) fn nodes(&self) -> u64 {
        self.interiors + self.leaves.in_use()
    }

    /// Host bytes.
    pub(super) fn host_bytes(&self) -> usize {
        self.writeback_index.host_bytes()
            + self.leaves.host_bytes()
            + self.slots.host_bytes()
            + self.directories.iter().map(Directory::host_bytes).sum::<usize>()
            + self.free_directories.capacity() * 4
    }

    /// The first entry, page or shadow, from `from` on.
    pub(crate) fn next_entry(&self, file: u32, from: u32) -> Option<(u32, u32)> {
        let root = self.root_of(file);
        let last = match root {
            Root::Entry(raw) => return (from == 0 && raw != 0).then_some((0, raw)),
            Root::Leaf(_) => 1,
            Root::Directory(id) => self.directories[id as usize].len(),
        };
        let mut skip = from % NODE_SLOTS;
        for at in from >> NODE_SHIFT..last {
            if let Some(leaf) = self.leaf_at(root, at) {
                let slots = (skip..NODE_SLOTS).map(|slot| (slot, self.slot(root, leaf, slot)));
                if let Some((slot, raw)) = slots.into_iter().find(|(_, raw)| *raw != 0) {
                    return Some((at << NODE_SHIFT | slot, raw));
                }
            }
            skip = 0;
        }
        None
    }
}
