//! The levels of a file's tree above its leaves.

use super::leaf::{LeafId, LeafRef, NO_LEAF};
use crate::pool::Block;
use crate::slab::Obj;
use units::table;

/// Set in the number of a leaf that has a dirty page.
const DIRTY: u32 = 1 << 31;

/// A node above the leaves; absent while it has no entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interior {
    pub(super) obj: Obj,
    pub(super) count: u8,
}

impl Interior {
    pub(super) const ABSENT: Interior = Interior { obj: Obj(0), count: 0 };
}

/// Elements up to which a table has no room to spare: files of a few hundred pages come in thousands.
const EXACT: usize = 32;

/// Makes a table longer.
fn grow<T: Clone>(table: &mut Vec<T>, len: usize, value: T) {
    if len <= EXACT {
        table.reserve_exact(len - table.len());
    }
    table::grow(table, len, value);
}

/// The leaves of one file, and the nodes above them.
#[derive(Debug, Default)]
pub(super) struct Directory {
    /// Number and slots of the leaves, by index over 64.
    leaves: Vec<(u32, Block)>,
    /// Nodes of level 2 (each over 64 leaves), of level 3 and so on.
    levels: Vec<Vec<Interior>>,
    /// Levels of nodes, the leaves included.
    pub(super) height: u32,
    /// Pages cached (`nrpages`).
    pub(super) nr_pages: u32,
    /// Dirty pages.
    pub(super) nr_dirty: u32,
}

impl Directory {
    /// A node above the leaves, absent or not.
    pub(super) fn interior(&mut self, level: u32, at: usize) -> &mut Interior {
        let depth = level as usize - 2;
        if self.levels.len() <= depth {
            self.levels.reserve_exact(depth + 1 - self.levels.len());
            self.levels.resize_with(depth + 1, Vec::new);
        }
        let nodes = &mut self.levels[depth];
        if nodes.len() <= at {
            grow(nodes, at + 1, Interior::ABSENT);
        }
        &mut nodes[at]
    }

    /// Whether there is a node.
    pub(super) fn present(&self, level: u32, at: usize) -> bool {
        let nodes = self.levels.get(level as usize - 2);
        nodes.and_then(|n| n.get(at)).is_some_and(|n| n.count > 0)
    }

    /// Places for leaves.
    pub(super) fn len(&self) -> u32 {
        self.leaves.len() as u32
    }

    /// The leaf at a place.
    #[inline]
    pub(super) fn leaf(&self, at: u32) -> Option<LeafRef> {
        let (number, slots) = *self.leaves.get(at as usize)?;
        let id = LeafId(number & !DIRTY);
        (id != NO_LEAF).then_some(LeafRef { id, slots })
    }

    /// Puts a leaf at a place, or none; one that stays where it is stays dirty.
    pub(super) fn set_leaf(&mut self, at: u32, leaf: Option<LeafRef>) {
        let at = at as usize;
        if self.leaves.len() <= at {
            grow(&mut self.leaves, at + 1, (NO_LEAF.0, Block::NONE));
        }
        let dirty = self.leaves[at].0 & DIRTY;
        self.leaves[at] = leaf.map_or((NO_LEAF.0, Block::NONE), |leaf| (leaf.id.0 | dirty, leaf.slots));
    }

    /// The slots of all leaves.
    pub(super) fn slots_mut(&mut self) -> impl Iterator<Item = &mut Block> {
        self.leaves.iter_mut().map(|(_, slots)| slots).filter(|slots| slots.is_some())
    }

    /// Notes whether the leaf at a place has a dirty page.
    pub(super) fn set_dirty(&mut self, at: u32, dirty: bool) {
        let number = &mut self.leaves[at as usize].0;
        *number = *number & !DIRTY | if dirty { DIRTY } else { 0 };
    }

    /// The first place from `from` on whose leaf has a dirty page.
    pub(super) fn next_dirty(&self, from: u32) -> Option<u32> {
        let left = self.leaves.get(from as usize..)?;
        left.iter().position(|(number, _)| number & DIRTY != 0).map(|skip| from + skip as u32)
    }

    pub(super) fn host_bytes(&self) -> usize {
        let levels: usize = self.levels.iter().map(|l| l.capacity() * size_of::<Interior>() + 24).sum();
        size_of::<Directory>() + self.leaves.capacity() * size_of::<(u32, Block)>() + levels
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_of_three_leaves_has_no_room_to_spare() {
        let mut directory = Directory::default();
        *directory.interior(2, 0) = Interior { obj: Obj(7), count: 1 };
        for at in 0..3 {
            directory.set_leaf(at, Some(LeafRef { id: LeafId(at + 1), slots: Block::NONE }));
        }
        // Three leaves of 8 bytes, one level, one node of 8 bytes.
        assert_eq!(directory.host_bytes(), size_of::<Directory>() + 3 * 8 + size_of::<Vec<Interior>>() + 8);
    }
}
