//! Check of SLAB's arrays and lists.

use std::collections::BTreeSet;

use super::super::table::Table;
use super::super::{Obj, Place};
use super::Arrays;

impl Arrays {
    /// Says what is wrong: every slab is on the list that it says, free objects are as many as are counted, and what is in an array is
    /// there once and no free slot.
    pub(in super::super) fn check(&self, slabs: &Table, shift: u32, mut wrong: impl FnMut(String)) {
        for (number, node) in self.nodes.iter().enumerate() {
            node.partial.check(slabs, number, Place::Node, &mut wrong);
            node.empty.check(slabs, number, Place::Empty, &mut wrong);
            let listed = node.partial.free_objects(slabs) + node.empty.free_objects(slabs);
            if listed != u64::from(node.free_objects) {
                wrong(format!("node {number} counts {} free objects, its slabs have {listed}", node.free_objects));
            }
        }
        let listed: u32 = self.nodes.iter().map(|node| node.partial.len + node.empty.len).sum();
        let on_lists = slabs.iter().filter(|(_, slab)| slab.place != Place::Full).count();
        if on_lists != listed as usize {
            wrong(format!("{on_lists} slabs say that they are on a list, {listed} are"));
        }
        let of_nodes = self.nodes.iter().flat_map(|node| node.alien.iter().chain([&node.shared.objects]));
        let arrays = self.cpus.iter().map(|cpu| &cpu.objects).chain(of_nodes);
        let mut seen = BTreeSet::new();
        for obj @ Obj(at) in arrays.flatten() {
            let slot = at & ((1 << shift) - 1);
            let free = slabs.is_free(at >> shift, slot);
            if free || !seen.insert(*obj) {
                wrong(format!("{obj:?} is in an array, and {}", if free { "free" } else { "in another place, too" }));
            }
        }
    }
}
