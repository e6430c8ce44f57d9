//! Which pages of a file are dirty (`PAGECACHE_TAG_DIRTY`).

use super::leaf::{LeafRef, NODE_SHIFT, NODE_SLOTS};
use super::root::Root;
use super::slots;
use super::tree::Trees;

impl Trees {
    /// Tags a page as dirty.
    #[inline]
    pub(crate) fn set_dirty(&mut self, file: u32, index: u32) {
        self.tag(file, index, true);
    }

    /// Takes a page's dirty tag off.
    #[inline]
    pub(crate) fn clear_dirty(&mut self, file: u32, index: u32) {
        self.tag(file, index, false);
    }

    #[inline]
    fn tag(&mut self, file: u32, index: u32, on: bool) {
        let root = self.root_of(file);
        if let Root::Entry(raw) = root {
            return self.leaves.files[file as usize].set_root(Root::Entry(slots::tagged(raw, on)));
        }
        let leaf = self.leaf_at(root, index >> NODE_SHIFT).expect("only a page that is cached is tagged");
        let slot = &mut self.slots.words_mut(leaf.slots)[(index % NODE_SLOTS) as usize];
        let after = slots::tagged(*slot, on);
        if std::mem::replace(slot, after) != after {
            self.count_dirty(root, leaf, on);
        }
    }

    /// A leaf has one dirty page more, or one less.
    pub(super) fn count_dirty(&mut self, root: Root, leaf: LeafRef, on: bool) {
        let node = &mut self.leaves[leaf.id];
        let before = node.dirty;
        node.dirty = if on { before + 1 } else { before - 1 };
        let now = node.dirty;
        if let Root::Directory(id) = root {
            let directory = &mut self.directories[id as usize];
            directory.nr_dirty = if on { directory.nr_dirty + 1 } else { directory.nr_dirty - 1 };
            if before == 0 || now == 0 {
                directory.set_dirty(self.leaves.home(leaf.id).1, on);
            }
        }
    }

    /// Whether a page of a file is tagged as dirty.
    pub(crate) fn is_dirty(&self, file: u32, index: u32) -> bool {
        slots::is_dirty(self.get(file, index))
    }

    /// Dirty pages of a file.
    #[inline]
    pub(crate) fn nr_dirty(&self, file: u32) -> u32 {
        match self.root_of(file) {
            Root::Entry(raw) => u32::from(slots::is_dirty(raw)),
            Root::Leaf(leaf) => u32::from(self.leaves[leaf.id].dirty),
            Root::Directory(id) => self.directories[id as usize].nr_dirty,
        }
    }

    /// The first dirty page from `from` on.
    pub(crate) fn next_dirty(&self, file: u32, from: u32) -> Option<u32> {
        let root = self.root_of(file);
        if let Root::Entry(raw) = root {
            return (from == 0 && slots::is_dirty(raw)).then_some(0);
        }
        let (mut at, mut skip) = (from >> NODE_SHIFT, (from % NODE_SLOTS) as usize);
        loop {
            if let Root::Directory(id) = root {
                let next = self.directories[id as usize].next_dirty(at)?;
                skip = if next == at { skip } else { 0 };
                at = next;
            }
            let leaf = self.leaf_at(root, at)?;
            if let Some(slot) = self.next_dirty_slot(leaf, skip) {
                return Some(at << NODE_SHIFT | slot as u32);
            }
            (at, skip) = (at + 1, 0);
        }
    }

    /// The first slot of a leaf with a dirty page from `from` on.
    fn next_dirty_slot(&self, leaf: LeafRef, from: usize) -> Option<usize> {
        if self.leaves[leaf.id].dirty == 0 {
            return None;
        }
        let left = self.slots.words(leaf.slots).get(from..)?;
        left.iter().position(|raw| slots::is_dirty(*raw)).map(|skip| from + skip)
    }

    /// Dirty pages in a row from `from` on, at most `max`.
    pub(crate) fn dirty_run(&self, file: u32, from: u32, max: u32) -> u32 {
        let root = self.root_of(file);
        if let Root::Entry(raw) = root {
            return u32::from(from == 0 && slots::is_dirty(raw));
        }
        let mut run = 0;
        while run < max {
            let index = from + run;
            let Some(leaf) = self.leaf_at(root, index >> NODE_SHIFT) else { break };
            if self.leaves[leaf.id].dirty == 0 {
                break;
            }
            let skip = index % NODE_SLOTS;
            let left = self.slots.words(leaf.slots).get(skip as usize..).unwrap_or_default();
            let here = left.iter().take_while(|raw| slots::is_dirty(**raw)).count() as u32;
            run += here;
            if here < NODE_SLOTS - skip {
                break;
            }
        }
        run.min(max)
    }
}
