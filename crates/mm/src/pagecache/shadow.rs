//! Nodes that hold only shadows, and the shrinker that frees them.
//!
//! Rule: a bottom node without pages but with shadows is on a list of its NUMA node, oldest first. As many as an eighth of
//! the pages on the node's LRU lists, until 4.5 a sixteenth of its present pages, may be such nodes; what exceeds that is freeable.
//! Scanning frees the oldest with all its shadows, and the nodes above that become empty.
//! Source: `workingset_update_node()`, `count_shadow_nodes()`, `shadow_lru_isolate()`, mm/workingset.c (4.4; 4.20; 6.12).
//! Since/until: [`ShadowNodes`].
//! Abstracted: the lists' lock. One list and one limit for all memory cgroups of a NUMA node, where each has its own, root's too; the limits add up to this.
//! Omitted: a group's own slabs in its limit; booted without memory cgroups the limit is of the present pages (4.20).

use rules::ShadowNodes;
use units::NodeId;

use super::leaf::{NODE_SHIFT, ShadowList};
use crate::stat::NodeStat;
use crate::vfs::Scanned;
use crate::{Env, Mm};

/// Nodes that may hold only shadows, as a right shift of the node's pages (`XA_CHUNK_SHIFT - 3`).
const fn limit_shift(rule: ShadowNodes) -> u32 {
    match rule {
        ShadowNodes::SixteenthAtSeeks => 1 + NODE_SHIFT - 3,
        ShadowNodes::EighthAtSeeks | ShadowNodes::Eighth => NODE_SHIFT - 3,
    }
}

/// Shadow nodes above the limit that so many pages allow.
pub(crate) fn freeable(nodes: u64, pages: u64, rule: ShadowNodes) -> u64 {
    nodes.saturating_sub(pages >> limit_shift(rule))
}

impl Mm {
    /// Makes the gauge follow the lists.
    #[inline]
    pub(super) fn note_shadow_nodes(&mut self) {
        if self.pagecache.trees.listed_changed {
            self.count_shadow_nodes();
        }
    }

    fn count_shadow_nodes(&mut self) {
        self.pagecache.trees.listed_changed = false;
        for node in 0..self.pagecache.trees.listed_delta.len() {
            let delta = std::mem::take(&mut self.pagecache.trees.listed_delta[node]);
            self.stat.node_add(NodeId(node as u8), NodeStat::WorkingsetNodes, delta);
        }
    }

    /// Shadow nodes of a NUMA node that reclaim may free.
    pub fn shadow_nodes_count(&self, node: NodeId) -> u64 {
        let nodes = self.pagecache.trees.shadow_lists.get(node.index()).map_or(0, |list| u64::from(list.len()));
        let rule = self.rules.shadow_nodes;
        let pages = if rule == ShadowNodes::SixteenthAtSeeks { self.present_pages(node) } else { self.lru_pages(node) };
        freeable(nodes, pages, rule)
    }

    fn present_pages(&self, node: NodeId) -> u64 {
        self.nodes[node.index()].zones.iter().map(|zone| self.zones[zone.index()].present).sum()
    }

    fn lru_pages(&self, node: NodeId) -> u64 {
        use NodeStat::{ActiveAnon, ActiveFile, InactiveAnon, InactiveFile, Unevictable};
        [InactiveAnon, ActiveAnon, InactiveFile, ActiveFile, Unevictable]
            .iter()
            .map(|list| self.stat.node(node, *list))
            .sum()
    }

    /// Frees up to `nr` of the oldest shadow nodes of a NUMA node.
    pub fn shadow_nodes_scan(&mut self, env: &Env, node: NodeId, nr: u64) -> Scanned {
        let mut done = Scanned::default();
        while done.scanned < nr {
            let trees = &mut self.pagecache.trees;
            let Some(oldest) = trees.shadow_lists.get(node.index()).and_then(ShadowList::oldest) else { break };
            let (file, base) = trees.leaves.home(oldest);
            debug_assert!(trees.leaves[oldest].pages == 0 && trees.leaves[oldest].count > 0);
            trees.drop_leaf_at(file, base);
            self.stat.node_add(node, NodeStat::WorkingsetNodereclaim, 1);
            self.free_nodes(env);
            self.charge(self.costs.shrink_object);
            done.scanned += 1;
            done.freed += 1;
        }
        self.note_shadow_nodes();
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_freeable_up_to_an_eighth_or_a_sixteenth_of_the_pages() {
        // 1 GiB: 262144 pages, so 262144 / 8 = 32768 nodes may stay, or half of that.
        for (limit, rule) in [(32_768, ShadowNodes::Eighth), (16_384, ShadowNodes::SixteenthAtSeeks)] {
            assert_eq!(freeable(limit, 262_144, rule), 0);
            assert_eq!(freeable(limit + 1, 262_144, rule), 1);
        }
    }
}
