//! Whole-structure check of the slab caches.

use units::{NodeId, Pfn};

use super::{Cache, Keeper, Place};
use crate::stat::NodeStat;
use crate::{Kind, Mm, Violation};

impl Mm {
    /// Recounts slabs and objects: every slab is where it says, every frame says which slab it is, and the gauges of
    /// the nodes are the sums.
    pub(crate) fn validate_slab(&self, violations: &mut Vec<Violation>) {
        let nr_nodes = self.nodes.len();
        let mut pages = vec![[0u64; 2]; nr_nodes];
        for cache in &self.slabs.caches {
            self.check_slabs(cache, &mut pages, violations);
            cache.check_lists(violations);
        }
        for (node, counted) in pages.iter().enumerate() {
            let id = NodeId(node as u8);
            let gauges =
                [self.stat.node(id, NodeStat::SlabReclaimable), self.stat.node(id, NodeStat::SlabUnreclaimable)];
            if gauges != *counted {
                let what = format!("node {node}: reclaimable, unreclaimable pages {gauges:?}, recounted {counted:?}");
                violations.push(Violation { place: "slab", pfn: None, what });
            }
        }
    }

    fn check_slabs(&self, cache: &Cache, pages: &mut [[u64; 2]], violations: &mut Vec<Violation>) {
        let (mut slabs, mut objects) = (0, 0);
        for (number, slab) in cache.slabs.iter() {
            slabs += 1;
            let has = cache.slabs.objects(number);
            objects += u64::from(has);
            let free: u32 = cache.slabs.slots(number).iter().map(|w| w.count_ones()).sum();
            if free + u32::from(slab.inuse) != has {
                let what = format!("slab {number}: {} in use and {free} free of {has}", slab.inuse);
                violations.push(cache.violation(Some(slab.pfn), what));
            }
            let frame = &self.frames[slab.pfn];
            if frame.kind() != Kind::Slab || (frame.cache(), frame.place) != (cache.id, number) {
                let what = format!("slab {number} says {frame:?}");
                violations.push(cache.violation(Some(slab.pfn), what));
            } else {
                let column = usize::from(!cache.spec.reclaimable);
                pages[slab.node.index()][column] += u64::from(frame.nr_pages());
            }
            if slab.place == Place::Full && free > 0 {
                violations.push(cache.violation(Some(slab.pfn), format!("slab {number} is on no list, but not full")));
            }
        }
        if (slabs, objects) != (cache.nr_slabs, cache.nr_objects) {
            let counted = (cache.nr_slabs, cache.nr_objects);
            violations.push(cache.violation(None, format!("slabs, objects {counted:?}, recounted {slabs}, {objects}")));
        }
    }
}

impl Cache {
    fn violation(&self, pfn: Option<Pfn>, what: String) -> Violation {
        Violation { place: "slab", pfn, what: format!("{}: {what}", self.spec.name) }
    }

    fn check_lists(&self, violations: &mut Vec<Violation>) {
        let wrong = |what| violations.push(self.violation(None, what));
        match &self.keeper {
            Keeper::Slub(lists) => lists.check(&self.slabs, wrong),
            Keeper::Slab(arrays) => arrays.check(&self.slabs, self.shift, wrong),
        }
    }
}
