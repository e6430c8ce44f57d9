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

use super::slots::{self, Leaf, LeafId, Leaves, NO_LEAF, NODE_SHIFT, NODE_SLOTS};
use crate::slab::Obj;

/// No record of a dirty inode.
pub(crate) const NO_RECORD: u32 = u32::MAX;
/// Set in a directory's entry if the leaf has a dirty page.
const DIRTY: u32 = 1 << 31;

/// The page cache of one file; 20 bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileCache {
    /// Height 0: the slot of index 0. Height 1: the leaf. Above: the directory.
    root: u32,
    /// Pages cached (`nrpages`).
    pub(crate) nr_pages: u32,
    /// Its record while it is dirty or under writeback, or [`NO_RECORD`].
    pub(crate) record: u32,
    /// Where cyclic writeback goes on (`writeback_index`).
    pub(crate) writeback_index: u32,
    /// Levels of nodes.
    height: u8,
    /// The page in `root` is dirty; height 0 only.
    root_dirty: bool,
}

impl FileCache {
    const EMPTY: FileCache =
        FileCache { root: 0, nr_pages: 0, record: NO_RECORD, writeback_index: 0, height: 0, root_dirty: false };
}

/// A node above the leaves; absent while it has no entry.
#[derive(Clone, Copy, Debug)]
struct Interior {
    obj: Obj,
    count: u8,
}

impl Interior {
    const ABSENT: Interior = Interior { obj: Obj(0), count: 0 };
}

/// The levels above the leaves of one file.
#[derive(Debug, Default)]
struct Directory {
    /// The leaves, by index over 64; 0 is none; bit 31 says that the leaf has a dirty page.
    leaves: Vec<u32>,
    /// Nodes of level 2 (each over 64 leaves), of level 3 and so on.
    levels: Vec<Vec<Interior>>,
}

impl Directory {
    fn interior(&mut self, level: u32, at: usize) -> &mut Interior {
        let depth = level as usize - 2;
        if self.levels.len() <= depth {
            self.levels.resize_with(depth + 1, Vec::new);
        }
        let nodes = &mut self.levels[depth];
        if nodes.len() <= at {
            nodes.resize(at + 1, Interior::ABSENT);
        }
        &mut nodes[at]
    }

    fn present(&self, level: u32, at: usize) -> bool {
        let nodes = self.levels.get(level as usize - 2);
        nodes.and_then(|n| n.get(at)).is_some_and(|n| n.count > 0)
    }

    fn leaf(&self, at: u32) -> LeafId {
        LeafId(self.leaves.get(at as usize).map_or(0, |raw| raw & !DIRTY))
    }
}

/// Nodes that hold only shadows, oldest first, of one NUMA node.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShadowList {
    pub(super) head: LeafId,
    tail: LeafId,
    pub(super) len: u64,
}

/// Trees of all files.
#[derive(Debug, Default)]
pub(crate) struct Trees {
    pub(crate) files: Vec<FileCache>,
    pub(super) leaves: Leaves,
    directories: Vec<Directory>,
    free_directories: Vec<u32>,
    /// Slab objects for the next nodes, with their NUMA node.
    pub(super) spare: Vec<(Obj, u8)>,
    /// Slab objects of nodes that are gone, to be freed by the caller.
    pub(super) released: Vec<Obj>,
    pub(super) shadow_lists: Vec<ShadowList>,
    /// Nodes put on the list of shadow nodes less those taken off, by NUMA node, since last asked.
    pub(super) listed_delta: Vec<i64>,
    pub(super) listed_changed: bool,
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

impl Trees {
    /// The slot of a page.
    #[inline]
    pub(super) fn get(&self, file: u32, index: u32) -> u32 {
        let Some(cache) = self.files.get(file as usize) else { return 0 };
        match cache.height {
            0 if index == 0 => cache.root,
            0 => 0,
            _ => match self.leaf_at(cache, index >> NODE_SHIFT) {
                NO_LEAF => 0,
                leaf => self.leaves.get(leaf, index % NODE_SLOTS),
            },
        }
    }

    /// Pages cached of a file.
    pub(super) fn nr_pages(&self, file: u32) -> u32 {
        self.files.get(file as usize).map_or(0, |c| c.nr_pages)
    }

    /// Whether a file has neither pages nor shadows.
    #[cfg(test)]
    pub(super) fn is_empty(&self, file: u32) -> bool {
        self.files.get(file as usize).is_none_or(|c| c.height == 0 && c.root == 0)
    }

    #[inline]
    fn leaf_at(&self, cache: &FileCache, at: u32) -> LeafId {
        match cache.height {
            0 => NO_LEAF,
            1 if at == 0 => LeafId(cache.root),
            1 => NO_LEAF,
            _ => self.directories[cache.root as usize].leaf(at),
        }
    }

    /// Nodes that must be created before an entry can be stored at `index`.
    pub(super) fn nodes_missing(&self, file: u32, index: u32) -> usize {
        let Some(cache) = self.files.get(file as usize) else { return levels_for(index) as usize };
        let height = cache.height as u32;
        if height == 0 && cache.root == 0 {
            return levels_for(index) as usize;
        }
        if self.leaf_at(cache, index >> NODE_SHIFT) != NO_LEAF {
            return 0;
        }
        let mut tall = height;
        while !reaches(tall, index) {
            tall += 1;
        }
        // New roots above the old one, then the path below the first level that has a node for this index.
        let mut path = 0;
        for level in (1..=tall.min(height)).rev() {
            let at = index as u64 >> (level * NODE_SHIFT);
            let present = match level {
                1 => self.leaf_at(cache, index >> NODE_SHIFT) != NO_LEAF,
                _ if height < 2 => false,
                _ => self.directories[cache.root as usize].present(level, at as usize),
            };
            path += usize::from(!present);
        }
        // A new root's path to the old tree is through its first slot; another index needs its own branch.
        let mut branch = 0;
        for level in height + 1..tall {
            branch += usize::from(index as u64 >> (level * NODE_SHIFT) != 0);
        }
        if height == 0 {
            // The entry of index 0 goes down to a new leaf as the tree grows.
            branch = (1..tall).filter(|level| index as u64 >> (level * NODE_SHIFT) != 0).count();
        }
        (tall - height) as usize + path + branch
    }

    fn take_spare(&mut self) -> (Obj, u8) {
        self.spare.pop().expect("nodes are reserved before an entry is stored")
    }

    /// Stores an entry where none or a shadow is, and gives back what was there. `nodes_missing` spare objects must
    /// be at hand.
    pub(super) fn insert(&mut self, file: u32, index: u32, raw: u32) -> u32 {
        debug_assert!(raw != 0);
        let at = file as usize;
        if at >= self.files.len() {
            self.files.resize(at + 1, FileCache::EMPTY);
        }
        let cache = &mut self.files[at];
        if cache.height == 0 && (index == 0 || cache.root == 0) {
            if index == 0 {
                let old = std::mem::replace(&mut cache.root, raw);
                self.count_pages(file, old, raw);
                return old;
            }
            cache.height = levels_for(index) as u8;
            if cache.height > 1 {
                self.open_directory(file);
            }
        }
        while !reaches(self.files[at].height as u32, index) {
            self.add_root(file);
        }
        let leaf = self.leaf_for(file, index);
        let old = self.leaves.get(leaf, index % NODE_SLOTS);
        self.fill(file, index, leaf, raw);
        old
    }

    /// Replaces the entry at `index`; the slot must exist.
    pub(super) fn replace(&mut self, file: u32, index: u32, raw: u32) -> u32 {
        debug_assert!(raw != 0 && self.get(file, index) != 0);
        let cache = &mut self.files[file as usize];
        if cache.height == 0 {
            let old = std::mem::replace(&mut cache.root, raw);
            self.count_pages(file, old, raw);
            return old;
        }
        let leaf = self.leaf_at(&self.files[file as usize], index >> NODE_SHIFT);
        let old = self.leaves.get(leaf, index % NODE_SLOTS);
        self.fill(file, index, leaf, raw);
        old
    }

    /// Empties a slot and frees the nodes that this leaves without entries.
    pub(super) fn erase(&mut self, file: u32, index: u32) -> u32 {
        let cache = &mut self.files[file as usize];
        if cache.height == 0 {
            debug_assert!(index == 0);
            cache.root_dirty = false;
            let old = std::mem::take(&mut cache.root);
            self.count_pages(file, old, 0);
            return old;
        }
        self.clear_dirty(file, index);
        let leaf = self.leaf_at(&self.files[file as usize], index >> NODE_SHIFT);
        let old = self.leaves.get(leaf, index % NODE_SLOTS);
        debug_assert!(old != 0, "only what is there is erased");
        self.leaves.put(leaf, index % NODE_SLOTS, 0);
        self.leaves[leaf].count -= 1;
        self.leaves[leaf].pages -= u8::from(slots::is_page(old));
        self.count_pages(file, old, 0);
        self.relist(leaf);
        if self.leaves[leaf].count == 0 {
            self.drop_leaf(file, index >> NODE_SHIFT, leaf);
        } else if self.files[file as usize].height == 1 {
            self.shrink(file);
        }
        old
    }

    fn count_pages(&mut self, file: u32, old: u32, new: u32) {
        let delta = i32::from(slots::is_page(new)) - i32::from(slots::is_page(old));
        let cache = &mut self.files[file as usize];
        cache.nr_pages = cache.nr_pages.wrapping_add_signed(delta);
    }

    fn fill(&mut self, file: u32, index: u32, mut leaf: LeafId, raw: u32) {
        let slot = index % NODE_SLOTS;
        if !self.leaves.reaches(leaf, slot) {
            self.unlist(leaf);
            leaf = self.leaves.grow(leaf, slot);
            self.point_at(file, index >> NODE_SHIFT, leaf);
        }
        let old = self.leaves.get(leaf, slot);
        self.leaves.put(leaf, slot, raw);
        let node = &mut self.leaves[leaf];
        node.count += u8::from(old == 0);
        node.pages += u8::from(slots::is_page(raw));
        node.pages -= u8::from(slots::is_page(old));
        self.count_pages(file, old, raw);
        self.relist(leaf);
    }

    /// Makes the parent of a leaf point at it; the dirty bit follows the leaf.
    fn point_at(&mut self, file: u32, at: u32, leaf: LeafId) {
        let dirty = if leaf != NO_LEAF && self.leaves[leaf].dirty != 0 { DIRTY } else { 0 };
        let cache = &mut self.files[file as usize];
        if cache.height == 1 {
            cache.root = leaf.0;
            return;
        }
        let entries = &mut self.directories[cache.root as usize].leaves;
        if entries.len() <= at as usize {
            entries.resize(at as usize + 1, 0);
        }
        entries[at as usize] = leaf.0 | dirty;
    }

    fn open_directory(&mut self, file: u32) {
        let id = self.free_directories.pop().unwrap_or_else(|| {
            self.directories.push(Directory::default());
            self.directories.len() as u32 - 1
        });
        self.files[file as usize].root = id;
    }

    fn close_directory(&mut self, id: u32) {
        self.directories[id as usize] = Directory::default();
        self.free_directories.push(id);
    }

    fn new_leaf(&mut self, file: u32, at: u32, slot: u32) -> LeafId {
        let (obj, numa) = self.take_spare();
        self.leaves.add(Leaf::new(file, at, obj, numa), slot)
    }

    /// Puts a new root above the present tree, which becomes its first entry.
    fn add_root(&mut self, file: u32) {
        let FileCache { root, height, root_dirty, .. } = self.files[file as usize];
        if height == 0 {
            let leaf = self.new_leaf(file, 0, 0);
            self.leaves.put(leaf, 0, root);
            let node = &mut self.leaves[leaf];
            node.count = 1;
            node.pages = u8::from(slots::is_page(root));
            node.dirty = u64::from(root_dirty);
            let cache = &mut self.files[file as usize];
            (cache.root, cache.height, cache.root_dirty) = (leaf.0, 1, false);
            self.relist(leaf);
            return;
        }
        if height == 1 {
            self.open_directory(file);
        }
        let (obj, _) = self.take_spare();
        self.interiors += 1;
        let level = height as u32 + 1;
        self.files[file as usize].height += 1;
        let directory = self.files[file as usize].root as usize;
        *self.directories[directory].interior(level, 0) = Interior { obj, count: 1 };
        if height == 1 {
            self.point_at(file, 0, LeafId(root));
        }
    }

    /// The leaf for an index that the tree reaches, with the nodes above it, created where they are missing.
    fn leaf_for(&mut self, file: u32, index: u32) -> LeafId {
        let at = index >> NODE_SHIFT;
        let cache = self.files[file as usize];
        let found = if cache.height == 1 { LeafId(cache.root) } else { self.leaf_at(&cache, at) };
        if found != NO_LEAF {
            return found;
        }
        let height = cache.height as u32;
        for level in (1..=height).rev() {
            let node_at = (index as u64 >> (level * NODE_SHIFT)) as usize;
            if level > 1 && self.directories[cache.root as usize].present(level, node_at) {
                continue;
            }
            if level < height {
                let parent_at = (index as u64 >> ((level + 1) * NODE_SHIFT)) as usize;
                self.directories[cache.root as usize].interior(level + 1, parent_at).count += 1;
            }
            if level > 1 {
                let (obj, _) = self.take_spare();
                self.interiors += 1;
                // Its first entry is the node of the next round, which counts itself.
                *self.directories[cache.root as usize].interior(level, node_at) = Interior { obj, count: 0 };
            }
        }
        let leaf = self.new_leaf(file, at, index % NODE_SLOTS);
        self.point_at(file, at, leaf);
        leaf
    }

    /// Frees a leaf, whatever shadows it still holds, and the nodes above it that lose their last entry.
    pub(super) fn drop_leaf(&mut self, file: u32, at: u32, leaf: LeafId) {
        let gone = self.leaves.free(leaf);
        self.released.push(gone.obj);
        let FileCache { root, height, .. } = self.files[file as usize];
        if height == 1 {
            (self.files[file as usize].root, self.files[file as usize].height) = (0, 0);
            return;
        }
        self.point_at(file, at, NO_LEAF);
        for level in 2..=height as u32 {
            let node_at = (at as u64 >> ((level - 1) * NODE_SHIFT)) as usize;
            let node = self.directories[root as usize].interior(level, node_at);
            node.count -= 1;
            if node.count > 0 {
                if level == height as u32 {
                    self.shrink(file);
                }
                return;
            }
            let obj = node.obj;
            self.released.push(obj);
            self.interiors -= 1;
        }
        self.close_directory(root);
        (self.files[file as usize].root, self.files[file as usize].height) = (0, 0);
    }

    /// Replaces a root whose only entry is its first by that entry, as often as this holds.
    fn shrink(&mut self, file: u32) {
        while self.files[file as usize].height > 1 {
            let FileCache { root, height, .. } = self.files[file as usize];
            let level = height as u32;
            let node = *self.directories[root as usize].interior(level, 0);
            let first = if level == 2 {
                self.directories[root as usize].leaf(0) != NO_LEAF
            } else {
                self.directories[root as usize].present(level - 1, 0)
            };
            if node.count != 1 || !first {
                return;
            }
            self.released.push(node.obj);
            self.interiors -= 1;
            *self.directories[root as usize].interior(level, 0) = Interior::ABSENT;
            self.files[file as usize].height -= 1;
            if level == 2 {
                let leaf = self.directories[root as usize].leaf(0);
                self.close_directory(root);
                self.files[file as usize].root = leaf.0;
            }
        }
        let leaf = LeafId(self.files[file as usize].root);
        let entry = self.leaves.get(leaf, 0);
        if self.leaves[leaf].count != 1 || entry == 0 {
            return;
        }
        self.unlist(leaf);
        let gone = self.leaves.free(leaf);
        self.released.push(gone.obj);
        let cache = &mut self.files[file as usize];
        (cache.root, cache.height, cache.root_dirty) = (entry, 0, gone.dirty & 1 != 0);
    }

    /// Nodes of all trees, as the kernel would have allocated them.
    pub(super) fn nodes(&self) -> u64 {
        self.interiors + self.leaves.in_use()
    }

    /// Host bytes.
    pub(super) fn host_bytes(&self) -> usize {
        let directory = |d: &Directory| {
            let levels: usize = d.levels.iter().map(|l| l.capacity() * size_of::<Interior>() + 24).sum();
            size_of::<Directory>() + d.leaves.capacity() * 4 + levels
        };
        self.files.capacity() * size_of::<FileCache>()
            + self.leaves.host_bytes()
            + self.directories.iter().map(directory).sum::<usize>()
    }

    // ---- dirty tags

    /// Tags a page as dirty.
    #[inline]
    pub(crate) fn set_dirty(&mut self, file: u32, index: u32) {
        let cache = &mut self.files[file as usize];
        if cache.height == 0 {
            cache.root_dirty = true;
            return;
        }
        let cache = *cache;
        let at = index >> NODE_SHIFT;
        let leaf = self.leaf_at(&cache, at);
        let node = &mut self.leaves[leaf];
        let first = node.dirty == 0;
        node.dirty |= 1 << (index % NODE_SLOTS);
        if first && cache.height > 1 {
            self.directories[cache.root as usize].leaves[at as usize] |= DIRTY;
        }
    }

    /// Takes a page's dirty tag off.
    #[inline]
    pub(crate) fn clear_dirty(&mut self, file: u32, index: u32) {
        let cache = &mut self.files[file as usize];
        if cache.height == 0 {
            cache.root_dirty = false;
            return;
        }
        let cache = *cache;
        let at = index >> NODE_SHIFT;
        let leaf = self.leaf_at(&cache, at);
        let node = &mut self.leaves[leaf];
        node.dirty &= !(1 << (index % NODE_SLOTS));
        if node.dirty == 0 && cache.height > 1 {
            self.directories[cache.root as usize].leaves[at as usize] &= !DIRTY;
        }
    }

    /// The first dirty page from `from` on.
    pub(crate) fn next_dirty(&self, file: u32, from: u32) -> Option<u32> {
        let cache = self.files.get(file as usize)?;
        let within = |leaf: LeafId, at: u32, skip: u32| {
            let left = self.leaves[leaf].dirty & (u64::MAX << skip);
            (left != 0).then(|| at << NODE_SHIFT | left.trailing_zeros())
        };
        match cache.height {
            0 => (from == 0 && cache.root_dirty).then_some(0),
            1 if from >= NODE_SLOTS => None,
            1 => within(LeafId(cache.root), 0, from),
            _ => {
                let entries = &self.directories[cache.root as usize].leaves;
                let first = (from >> NODE_SHIFT) as usize;
                let dirty = |at: &usize| entries[*at] & DIRTY != 0;
                (first..entries.len()).filter(dirty).find_map(|at| {
                    let skip = if at == first { from % NODE_SLOTS } else { 0 };
                    within(LeafId(entries[at] & !DIRTY), at as u32, skip)
                })
            }
        }
    }

    /// Dirty pages in a row from `from` on, at most `max`.
    pub(crate) fn dirty_run(&self, file: u32, from: u32, max: u32) -> u32 {
        let cache = &self.files[file as usize];
        if cache.height == 0 {
            return u32::from(from == 0 && cache.root_dirty);
        }
        let mut run = 0;
        while run < max {
            let index = from + run;
            let leaf = self.leaf_at(cache, index >> NODE_SHIFT);
            if leaf == NO_LEAF {
                break;
            }
            let skip = index % NODE_SLOTS;
            let here = (!(self.leaves[leaf].dirty >> skip)).trailing_zeros().min(NODE_SLOTS - skip);
            run += here;
            if here < NODE_SLOTS - skip {
                break;
            }
        }
        run.min(max)
    }

    /// The first entry, page or shadow, from `from` on.
    pub(crate) fn next_entry(&self, file: u32, from: u32) -> Option<(u32, u32)> {
        let cache = self.files.get(file as usize)?;
        if cache.height == 0 {
            return (from == 0 && cache.root != 0).then_some((0, cache.root));
        }
        let last = match cache.height {
            1 => 1,
            _ => self.directories[cache.root as usize].leaves.len() as u32,
        };
        let mut skip = from % NODE_SLOTS;
        for at in from >> NODE_SHIFT..last {
            let leaf = self.leaf_at(cache, at);
            if leaf != NO_LEAF {
                for slot in skip..self.leaves.capacity(leaf) {
                    let raw = self.leaves.get(leaf, slot);
                    if raw != 0 {
                        return Some((at << NODE_SHIFT | slot, raw));
                    }
                }
            }
            skip = 0;
        }
        None
    }

    // ---- nodes with only shadows

    /// Puts a leaf on the list of shadow nodes or takes it off, as its entries say (`workingset_update_node()`).
    fn relist(&mut self, leaf: LeafId) {
        let node = &self.leaves[leaf];
        match (node.count > 0 && node.pages == 0, node.listed) {
            (true, false) => self.list(leaf),
            (false, true) => self.unlist(leaf),
            _ => {}
        }
    }

    fn list(&mut self, leaf: LeafId) {
        let numa = self.leaves[leaf].numa as usize;
        while self.shadow_lists.len() <= numa {
            self.shadow_lists.push(ShadowList { head: NO_LEAF, tail: NO_LEAF, len: 0 });
            self.listed_delta.push(0);
        }
        let tail = std::mem::replace(&mut self.shadow_lists[numa].tail, leaf);
        if tail == NO_LEAF {
            self.shadow_lists[numa].head = leaf;
        } else {
            self.leaves[tail].next = leaf;
        }
        self.shadow_lists[numa].len += 1;
        let node = &mut self.leaves[leaf];
        (node.prev, node.next, node.listed) = (tail, NO_LEAF, true);
        self.note_listed(numa, 1);
    }

    pub(super) fn unlist(&mut self, leaf: LeafId) {
        let Leaf { prev, next, listed, numa, .. } = self.leaves[leaf];
        if !listed {
            return;
        }
        let list = &mut self.shadow_lists[numa as usize];
        list.len -= 1;
        if prev == NO_LEAF {
            list.head = next;
        }
        if next == NO_LEAF {
            list.tail = prev;
        }
        if prev != NO_LEAF {
            self.leaves[prev].next = next;
        }
        if next != NO_LEAF {
            self.leaves[next].prev = prev;
        }
        let node = &mut self.leaves[leaf];
        (node.prev, node.next, node.listed) = (NO_LEAF, NO_LEAF, false);
        self.note_listed(numa as usize, -1);
    }

    fn note_listed(&mut self, numa: usize, delta: i64) {
        self.listed_delta[numa] += delta;
        self.listed_changed = true;
    }
}
