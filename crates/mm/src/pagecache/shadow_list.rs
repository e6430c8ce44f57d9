//! Lists of nodes that hold only shadows: one for each memory cgroup on each NUMA node, oldest first.
//!
//! Rule: a node that loses its last page and keeps shadows goes to the tail of the list of the group that its slab object
//! is charged to, and leaves it when a page comes or the node goes.
//! Source: `workingset_update_node()`, mm/workingset.c; `list_lru_add()`, mm/list_lru.c (4.20; 6.12).

use units::NodeId;

use super::leaf::{LeafId, Leaves};
use crate::links::IdList;
use crate::vfs::Share;

/// All such lists.
#[derive(Debug, Default)]
pub(super) struct ShadowLists {
    /// By group, then by NUMA node.
    lists: Vec<Vec<IdList>>,
    /// Nodes put on a list less those taken off, by NUMA node, since last asked.
    delta: Vec<i64>,
    changed: bool,
}

impl ShadowLists {
    fn of(&self, share: Share) -> Option<&IdList> {
        self.lists.get(usize::from(share.memcg.0))?.get(share.node.index())
    }

    fn make(&mut self, share: Share) -> &mut IdList {
        let (memcg, node) = (usize::from(share.memcg.0), share.node.index());
        if self.lists.len() <= memcg {
            self.lists.resize(memcg + 1, Vec::new());
        }
        let nodes = &mut self.lists[memcg];
        if nodes.len() <= node {
            nodes.resize(node + 1, IdList::EMPTY);
        }
        &mut nodes[node]
    }

    /// Nodes on the list of a share.
    pub(super) fn len(&self, share: Share) -> u64 {
        self.of(share).map_or(0, |list| u64::from(list.len()))
    }

    /// The leaf that has been on the list of a share for longest.
    pub(super) fn oldest(&self, share: Share) -> Option<LeafId> {
        self.of(share)?.front().map(LeafId)
    }

    /// Adds a leaf without pages as the youngest.
    pub(super) fn push(&mut self, leaves: &mut Leaves, leaf: LeafId) {
        let share = leaves.share(leaf);
        leaves[leaf].set_listed(true);
        self.make(share).push_back(leaves, leaf.0);
        self.count(share, 1);
    }

    /// Takes a leaf off its list, if it is on one.
    pub(super) fn remove(&mut self, leaves: &mut Leaves, leaf: LeafId) {
        if !leaves[leaf].is_listed() {
            return;
        }
        let share = leaves.share(leaf);
        leaves[leaf].set_listed(false);
        self.make(share).remove(leaves, leaf.0);
        self.count(share, -1);
    }

    fn count(&mut self, share: Share, nodes: i64) {
        if self.delta.len() <= share.node.index() {
            self.delta.resize(share.node.index() + 1, 0);
        }
        self.delta[share.node.index()] += nodes;
        self.changed = true;
    }

    /// Whether a node was put on a list or taken off since the changes were taken.
    #[inline]
    pub(super) fn is_changed(&self) -> bool {
        self.changed
    }

    /// Tells by how many nodes the lists of each NUMA node have grown since this was last asked.
    pub(super) fn take_changes(&mut self, mut tell: impl FnMut(NodeId, i64)) {
        self.changed = false;
        for (node, delta) in (0..).zip(&mut self.delta) {
            tell(NodeId(node), std::mem::take(delta));
        }
    }

    /// Nodes on the lists of a NUMA node, of all groups.
    pub(super) fn len_of_node(&self, node: usize) -> u64 {
        self.lists.iter().filter_map(|nodes| nodes.get(node)).map(|list| u64::from(list.len())).sum()
    }
}
