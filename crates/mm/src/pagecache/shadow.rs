//! Nodes that hold only shadows, and the shrinker that frees them.
//!
//! Rule: a bottom node without pages but with shadows is on a list ([`super::shadow_list`]). As many as an eighth of the pages
//! on the group's own LRU lists of that NUMA node, since 4.20 with those of its slab objects, may be such nodes; what exceeds
//! that is freeable, and goes with the group's other slabs. Until 4.5 there is one list for all groups, and a sixteenth of the node's present pages.
//! Scanning frees the oldest with all its shadows, and the nodes above that become empty.
//! Source: `count_shadow_nodes()`, `shadow_lru_isolate()`, mm/workingset.c (4.4; 4.20; 6.12); 0a6b76dd23fa (4.6).
//! Since/until: [`ShadowNodes`].
//! Abstracted: the lists' lock.
//! Omitted: booted without memory cgroups the limit is of the present pages (4.20).

use rules::ShadowNodes;
use units::{NodeId, PAGE_SIZE};

use super::leaf::NODE_SHIFT;
use crate::memcg::ROOT;
use crate::slab::{CacheId, Obj};
use crate::stat::NodeStat;
use crate::vfs::{Scanned, Share};
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
        if self.pagecache.trees.shadows.is_changed() {
            self.count_shadow_nodes();
        }
    }

    fn count_shadow_nodes(&mut self) {
        let stat = &mut self.stat;
        self.pagecache.trees.shadows.take_changes(|node, delta| stat.node_add(node, NodeStat::WorkingsetNodes, delta));
    }

    /// On whose list a node is once it holds only shadows.
    pub(super) fn shadow_share(&self, node: Obj) -> Share {
        let share = self.slabs.share_of(CacheId::RADIX_TREE_NODE, node);
        if self.rules.shadow_nodes == ShadowNodes::SixteenthAtSeeks { Share { memcg: ROOT, ..share } } else { share }
    }

    /// Shadow nodes of a share that reclaim may free.
    pub fn shadow_nodes_count(&self, share: Share) -> u64 {
        let pages = match self.rules.shadow_nodes {
            ShadowNodes::SixteenthAtSeeks => self.present_pages(share.node),
            ShadowNodes::EighthAtSeeks => self.lru_pages(share),
            ShadowNodes::Eighth => self.lru_pages(share) + self.slab_pages_of(share),
        };
        freeable(self.pagecache.trees.shadows.len(share), pages, self.rules.shadow_nodes)
    }

    fn present_pages(&self, node: NodeId) -> u64 {
        self.nodes[node.index()].zones.iter().map(|zone| self.zones[zone.index()].present).sum()
    }

    /// Pages on a group's own LRU lists of a NUMA node.
    pub(crate) fn lru_pages(&self, share: Share) -> u64 {
        self.lruvec(self.lruvec_of_memcg(share.node, share.memcg)).sizes.iter().flatten().sum()
    }

    /// Pages that the slab objects of a group on a NUMA node come to.
    pub(crate) fn slab_pages_of(&self, share: Share) -> u64 {
        let bytes = self.lruvec(self.lruvec_of_memcg(share.node, share.memcg)).slab_bytes;
        bytes.iter().map(|bytes| bytes / PAGE_SIZE).sum()
    }

    /// Frees up to `nr` of the oldest shadow nodes of a share.
    pub fn shadow_nodes_scan(&mut self, env: &Env, share: Share, nr: u64) -> Scanned {
        let mut done = Scanned::default();
        while done.scanned < nr {
            let trees = &mut self.pagecache.trees;
            let Some(oldest) = trees.shadows.oldest(share) else { break };
            let (file, base) = trees.leaves.home(oldest);
            debug_assert!(trees.leaves[oldest].pages == 0 && trees.leaves[oldest].count > 0);
            trees.drop_leaf_at(file, base);
            self.stat.node_add(share.node, NodeStat::WorkingsetNodereclaim, 1);
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
