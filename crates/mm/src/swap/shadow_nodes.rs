//! Nodes of the swap cache's trees that hold only shadows, and the shrinker that frees them.
//!
//! Rule: 64 slots share a node. One without pages but with shadows is on a list of its NUMA node, oldest first. The trees are
//! not charged to groups, so that the list is the root group's, and as many nodes may stay as an eighth of the pages on the
//! root group's own LRU lists; what exceeds that is freeable. Scanning frees the oldest with all its shadows: a page that
//! comes back from such a slot is no refault.
//! Source: `init_swap_address_space()` (`XA_FLAGS_ACCOUNT` is not set), mm/swap_state.c; `count_shadow_nodes()`,
//! `shadow_lru_isolate()`, mm/workingset.c, 6.12.
//! Since/until: [`SwapShadows`]: until 6.2 nobody frees them.
//! Abstracted: a node is on the NUMA node of the first page that came into it. The page cache's nodes have a limit of their
//! own ([`crate::pagecache`]), also where they are the root group's.
//! Omitted: the nodes' memory.

use std::collections::BTreeMap;

use rules::SwapShadows;
use units::NodeId;

use super::device::Held;
use super::{SHADOW, Swap, SwapEntry};
use crate::Mm;
use crate::memcg::ROOT;
use crate::pagecache::{NODE_SHIFT, NODE_SLOTS, freeable};
use crate::stat::NodeStat;
use crate::vfs::{Scanned, Share};

/// One node.
#[derive(Clone, Copy, Debug, Default)]
struct TreeNode {
    pages: u8,
    shadows: u8,
    numa: NodeId,
    /// When it came to its list; 0 if it is on none.
    listed: u64,
}

/// The nodes of all devices' trees.
#[derive(Debug, Default)]
pub(super) struct SwapTrees {
    /// Nodes are listed at all.
    listing: bool,
    nodes: Vec<TreeNode>,
    /// Nodes with only shadows, by age, of each NUMA node.
    lists: Vec<BTreeMap<u64, u32>>,
    /// Nodes that were ever listed.
    clock: u64,
    /// What the counters do not know yet, of each NUMA node.
    unreported: Vec<i64>,
}

impl SwapTrees {
    /// Trees without nodes.
    pub(super) fn new(rule: SwapShadows) -> SwapTrees {
        SwapTrees { listing: rule == SwapShadows::Listed, ..SwapTrees::default() }
    }

    /// A slot held `old` and holds `new`, by the rule of a slot's content; the page is on `numa`.
    pub(super) fn store(&mut self, slot: u32, old: u32, new: u32, numa: NodeId) {
        if !self.listing {
            return;
        }
        let number = slot >> NODE_SHIFT;
        if self.nodes.len() <= number as usize {
            units::table::grow(&mut self.nodes, number as usize + 1, TreeNode::default());
        }
        let node = &mut self.nodes[number as usize];
        if node.pages + node.shadows == 0 {
            node.numa = numa;
        }
        for (word, step) in [(old, -1), (new, 1)] {
            let count = if word & SHADOW == 0 { &mut node.pages } else { &mut node.shadows };
            *count = count.wrapping_add_signed(if word == 0 { 0 } else { step });
        }
        if (node.pages == 0 && node.shadows > 0) != (node.listed > 0) {
            self.list(number);
        }
    }

    /// Puts a node on its list, or takes it off.
    fn list(&mut self, number: u32) {
        let node = &mut self.nodes[number as usize];
        let numa = node.numa.index();
        if self.lists.len() <= numa {
            self.lists.resize_with(numa + 1, BTreeMap::new);
            self.unreported.resize(numa + 1, 0);
        }
        let listed = std::mem::take(&mut node.listed);
        if listed > 0 {
            self.lists[numa].remove(&listed);
            self.unreported[numa] -= 1;
        } else {
            self.clock += 1;
            node.listed = self.clock;
            self.lists[numa].insert(self.clock, number);
            self.unreported[numa] += 1;
        }
    }

    /// Nodes on a NUMA node's list.
    fn listed(&self, numa: NodeId) -> u64 {
        self.lists.get(numa.index()).map_or(0, |list| list.len() as u64)
    }

    /// The first slot of the oldest node on a NUMA node's list.
    fn oldest(&self, numa: NodeId) -> Option<u32> {
        self.lists.get(numa.index())?.values().next().map(|number| number << NODE_SHIFT)
    }

    /// Host bytes; the lists by their entries.
    pub(super) fn host_bytes(&self) -> usize {
        let entries: usize = self.lists.iter().map(BTreeMap::len).sum();
        self.nodes.capacity() * size_of::<TreeNode>() + entries * size_of::<(u64, u32)>()
    }
}

impl Swap {
    /// Nodes with only shadows on a NUMA node.
    pub(crate) fn shadow_nodes(&self, numa: NodeId) -> u64 {
        self.trees.listed(numa)
    }

    /// Nodes with only shadows that are listed, and as many as a recount of what slots hold finds; none if nobody lists them.
    pub(super) fn recount_shadow_nodes(&self) -> Option<(u64, u64)> {
        let only_shadows = |slots: &&[Held]| {
            let holds = |word: &u32| *word != 0;
            let mut words = slots.iter().map(|held| held.content).filter(holds).peekable();
            words.peek().is_some() && words.all(|word| word & SHADOW != 0)
        };
        let found = self.devices.iter().flat_map(|device| device.held.chunks(NODE_SLOTS as usize).filter(only_shadows));
        let listed = self.trees.lists.iter().map(|list| list.len() as u64).sum();
        self.trees.listing.then(|| (listed, found.count() as u64))
    }

    /// Frees the oldest node with only shadows on a NUMA node, and its shadows; false if there is none.
    pub(super) fn free_shadow_node(&mut self, numa: NodeId) -> bool {
        let Some(first) = self.trees.oldest(numa) else { return false };
        let device = &self.devices[self.locate(SwapEntry(first)).0];
        let end = device.base + device.slots();
        for slot in first..end.min(first + NODE_SLOTS) {
            if self.shadow(SwapEntry(slot)).is_some() {
                self.store(SwapEntry(slot), 0, numa);
            }
        }
        true
    }
}

impl Mm {
    /// Makes the gauge follow the lists.
    pub(crate) fn note_swap_shadow_nodes(&mut self) {
        for numa in 0..self.swap.trees.unreported.len() {
            let delta = std::mem::take(&mut self.swap.trees.unreported[numa]);
            if delta != 0 {
                self.stat.node_add(NodeId(numa as u8), NodeStat::WorkingsetNodes, delta);
            }
        }
    }

    /// Nodes with only shadows on a NUMA node that reclaim may free.
    pub(crate) fn swap_shadow_nodes_count(&self, numa: NodeId) -> u64 {
        let nodes = self.swap.shadow_nodes(numa);
        let pages = self.lru_pages(Share { node: numa, memcg: ROOT });
        freeable(nodes, pages, self.rules.shadow_nodes)
    }

    /// Frees up to `nr` of the oldest nodes with only shadows of a NUMA node.
    pub(crate) fn swap_shadow_nodes_scan(&mut self, numa: NodeId, nr: u64) -> Scanned {
        let mut done = Scanned::default();
        while done.scanned < nr && self.swap.free_shadow_node(numa) {
            self.stat.node_add(numa, NodeStat::WorkingsetNodereclaim, 1);
            self.charge(self.costs.shrink_object);
            done.scanned += 1;
            done.freed += 1;
        }
        self.note_swap_shadow_nodes();
        done
    }
}
