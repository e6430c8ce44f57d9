//! Which pages of a file are dirty (`PAGECACHE_TAG_DIRTY`).

use super::leaf::{NODE_SHIFT, NODE_SLOTS};
use super::root::Root;
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
        let cache = &mut self.files[file as usize];
        let root = cache.root();
        if let Root::Entry { raw, .. } = root {
            return cache.set_root(Root::Entry { raw, dirty: on });
        }
        let at = index >> NODE_SHIFT;
        let leaf = self.leaf_at(root, at).expect("only a page that is cached is tagged");
        let node = &mut self.leaves[leaf.id];
        let (before, bit) = (node.dirty(), 1 << (index % NODE_SLOTS));
        let after = if on { before | bit } else { before & !bit };
        if after == before {
            return;
        }
        node.set_dirty(after);
        if let Root::Directory { id, .. } = root
            && (before == 0 || after == 0)
        {
            self.directories[id as usize].set_dirty(at, on);
        }
    }

    /// The first dirty page from `from` on.
    pub(crate) fn next_dirty(&self, file: u32, from: u32) -> Option<u32> {
        let root = self.files.get(file as usize)?.root();
        if let Root::Entry { dirty, .. } = root {
            return (from == 0 && dirty).then_some(0);
        }
        let (mut at, mut skip) = (from >> NODE_SHIFT, from % NODE_SLOTS);
        loop {
            if let Root::Directory { id, .. } = root {
                let next = self.directories[id as usize].next_dirty(at)?;
                skip = if next == at { skip } else { 0 };
                at = next;
            }
            let leaf = self.leaf_at(root, at)?;
            let left = self.leaves[leaf.id].dirty() & (u64::MAX << skip);
            if left != 0 {
                return Some(at << NODE_SHIFT | left.trailing_zeros());
            }
            (at, skip) = (at + 1, 0);
        }
    }

    /// Dirty pages in a row from `from` on, at most `max`.
    pub(crate) fn dirty_run(&self, file: u32, from: u32, max: u32) -> u32 {
        let root = self.files[file as usize].root();
        if let Root::Entry { dirty, .. } = root {
            return u32::from(from == 0 && dirty);
        }
        let mut run = 0;
        while run < max {
            let index = from + run;
            let Some(leaf) = self.leaf_at(root, index >> NODE_SHIFT) else { break };
            let skip = index % NODE_SLOTS;
            let here = (!(self.leaves[leaf.id].dirty() >> skip)).trailing_zeros().min(NODE_SLOTS - skip);
            run += here;
            if here < NODE_SLOTS - skip {
                break;
            }
        }
        run.min(max)
    }
}
