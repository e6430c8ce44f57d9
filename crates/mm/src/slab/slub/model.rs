//! A slow model of SLUB as it was before CPUs had lists of partial slabs, and the slabs held to it.

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;
use units::{Gfp, Pfn};

use super::super::tests::{assert_valid, machine, on, rules_2_6_39, rules_3_1};
use super::super::{CacheId, Obj};
use crate::stat::NodeStat;

/// A slab: the objects in use, by number of their allocation.
#[derive(Clone, Debug, Default)]
struct Slab {
    live: Vec<usize>,
}

/// Slabs by the frame they begin at; those with free objects in the order in which they are used; and each CPU's own.
#[derive(Debug)]
struct Model {
    objects: usize,
    /// The list keeps a slab that becomes empty while it has fewer.
    keeps: usize,
    slabs: BTreeMap<Pfn, Slab>,
    partial: VecDeque<Pfn>,
    cpus: [Option<Pfn>; 2],
}

impl Model {
    fn is_full(&self, slab: Pfn) -> bool {
        self.slabs[&slab].live.len() == self.objects
    }

    /// Where the next object of a CPU comes from; nothing if that is a new slab.
    fn expect(&mut self, cpu: usize) -> Option<Pfn> {
        let own = self.cpus[cpu].filter(|slab| !self.is_full(*slab));
        self.cpus[cpu] = own.or_else(|| self.partial.pop_front());
        self.cpus[cpu]
    }

    fn allocated(&mut self, cpu: usize, slab: Pfn, number: usize) {
        self.cpus[cpu] = Some(slab);
        self.slabs.entry(slab).or_default().live.push(number);
    }

    fn freed(&mut self, slab: Pfn, number: usize) {
        let was_full = self.is_full(slab);
        self.slabs.get_mut(&slab).expect("it is there").live.retain(|live| *live != number);
        if self.cpus.contains(&Some(slab)) {
            return;
        }
        let empty = self.slabs[&slab].live.is_empty();
        if empty && self.partial.len() >= self.keeps {
            self.partial.retain(|partial| *partial != slab);
            self.slabs.remove(&slab);
        } else if was_full {
            self.partial.push_back(slab);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn slabs_are_filled_and_given_back_as_in_the_model(
        era in 0usize..2,
        steps in prop::collection::vec((0usize..2, any::<bool>(), any::<u16>()), 1..800),
    ) {
        // 3.1: more than log2(4096), at most 10.
        let (rules, keeps) = [(rules_2_6_39(), 0), (rules_3_1(), 11)][era].clone();
        let mut mm = machine(1, 1 << 13, rules);
        // 4 KiB objects: 8 in a slab of order 3, so that slabs fill and empty often.
        let cache = CacheId::KMALLOC_4K;
        let mut model = Model { objects: 8, keeps, slabs: BTreeMap::new(), partial: VecDeque::new(), cpus: [None; 2] };
        let mut live: Vec<(usize, Obj, Pfn)> = Vec::new();
        for (number, (cpu, frees, pick)) in steps.into_iter().enumerate() {
            if frees && !live.is_empty() {
                let (number, obj, slab) = live.swap_remove(pick as usize % live.len());
                mm.slab_free(&on(cpu as u16), cache, obj);
                model.freed(slab, number);
            } else {
                let expected = model.expect(cpu);
                let obj = mm.slab_alloc(&on(cpu as u16), cache, Gfp::KERNEL).expect("memory is plentiful");
                let slab = mm.slabs.pfn_of(cache, obj);
                match expected {
                    Some(expected) => prop_assert_eq!(slab, expected),
                    None => prop_assert!(!model.slabs.contains_key(&slab), "{slab:?} is not new"),
                }
                model.allocated(cpu, slab, number);
                live.push((number, obj, slab));
            }
            prop_assert_eq!(mm.stat.node_sum(NodeStat::SlabUnreclaimable), 8 * model.slabs.len() as u64);
        }
        assert_valid(&mm);
    }
}
