//! The order in which reclaim goes through groups.
//!
//! Rule: a walk goes from its target through all groups below it. Reclaimers may share one walk for each target, node and,
//! until 5.3, priority: each goes on where the last one stopped, until one of them has come to the end, which ends the walks of
//! all. So one that others overtake sees few groups, and reclaims little.
//! Source: `mem_cgroup_iter()` (mm/memcontrol.c), 4.20, 6.1 and 6.12; `shrink_node()` (4.20), `shrink_node_memcgs()` (mm/vmscan.c).
//! Since/until: `MemcgWalkSharing`.

use units::{MemcgId, NodeId};

use crate::Mm;
use crate::reclaim::DEF_PRIORITY;

/// Walks of a target and node that may be shared: one for each priority.
pub(super) const WALKS: usize = DEF_PRIORITY as usize + 1;

/// Place of a shared walk (`struct mem_cgroup_reclaim_iter`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SharedWalk {
    /// The group that was given out last.
    position: Option<MemcgId>,
    /// Rounds that have ended.
    generation: u64,
}

/// One reclaimer's way through the groups (`struct mem_cgroup_reclaim_cookie`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemcgWalk {
    target: MemcgId,
    node: NodeId,
    /// The group that it got last.
    previous: Option<MemcgId>,
    /// The shared walk, and its round that it joined, if it shares one.
    shared: Option<(usize, u64)>,
}

impl MemcgWalk {
    /// A walk of one's own.
    pub fn full(target: MemcgId, node: NodeId) -> MemcgWalk {
        MemcgWalk { target, node, previous: None, shared: None }
    }

    /// Joins the walk that others of this priority are on, 0 if they share one whatever their priority.
    pub fn shared(mm: &Mm, target: MemcgId, node: NodeId, priority: i8) -> MemcgWalk {
        let place = (target.index() * mm.nodes.len() + node.index()) * WALKS + priority as usize;
        let generation = mm.memcg.walks.get(place).map_or(0, |walk| walk.generation);
        MemcgWalk { shared: Some((place, generation)), ..MemcgWalk::full(target, node) }
    }

    /// Whether it shares its place with others.
    pub fn is_shared(&self) -> bool {
        self.shared.is_some()
    }

    /// The next group, or `None` at the end.
    pub fn next(&mut self, mm: &mut Mm) -> Option<MemcgId> {
        let next = match self.shared {
            Some((place, generation)) if mm.memcg.in_use() => self.next_shared(mm, place, generation),
            _ => after(mm, self.target, self.previous),
        };
        self.previous = next.or(self.previous);
        next
    }

    fn next_shared(&self, mm: &mut Mm, place: usize, generation: u64) -> Option<MemcgId> {
        let walk = mm.memcg.walks[place];
        if self.previous.is_some() && walk.generation != generation {
            return None;
        }
        let mut next = after(mm, self.target, walk.position);
        if next.is_none() && self.previous.is_none() {
            // The others are just through: it sees at least one group.
            next = Some(self.target);
        }
        let walk = &mut mm.memcg.walks[place];
        walk.position = next;
        walk.generation += u64::from(next.is_none());
        next
    }
}

/// The group of a subtree that comes after another one; the first one without that.
fn after(mm: &Mm, target: MemcgId, previous: Option<MemcgId>) -> Option<MemcgId> {
    let subtree = mm.memcg.subtree(target);
    let at = previous.map_or(0, |id| 1 + subtree.iter().position(|(other, _)| *other == id).expect("it is below"));
    subtree.get(at).map(|(id, _)| *id)
}
