//! Where SLUB finds a free object.

use units::NodeId;

use super::super::table::Table;
use super::super::{NONE, Obj, Place};
use super::Lists;

impl Lists {
    /// Takes a slot of a CPU's slab.
    #[inline]
    pub(in super::super) fn take(&mut self, slabs: &mut Table, shift: u32, cpu: usize) -> Option<Obj> {
        let number = self.cpus[cpu].current;
        if number == NONE {
            return None;
        }
        let slot = slabs.take_slot(number);
        if slot.is_none() {
            slabs[number].place = Place::Full;
            self.cpus[cpu].current = NONE;
        }
        Some(Obj(number << shift | slot?))
    }

    /// Finds a CPU a slab with free objects of its own or of its node.
    pub(in super::super) fn refill(&mut self, slabs: &mut Table, cpu: usize, node: NodeId) -> bool {
        self.next_cpu_partial(slabs, cpu) || self.get_partial_node(slabs, cpu, node)
    }

    /// Finds it one of another node that has plenty.
    pub(in super::super) fn refill_from_other(&mut self, slabs: &mut Table, cpu: usize, node: NodeId) {
        if self.nodes[node.index()].len > self.min_partial {
            self.get_partial_node(slabs, cpu, node);
        }
    }

    /// Makes the next of a CPU's partial slabs the one it allocates from.
    fn next_cpu_partial(&mut self, slabs: &mut Table, cpu: usize) -> bool {
        let number = self.cpus[cpu].partial;
        if number == NONE {
            return false;
        }
        let slab = &mut slabs[number];
        slab.place = Place::Cpu;
        let next = slab.next;
        self.cpus[cpu].partial = next;
        // The kernel keeps the sum in the first slab: what the removed one added goes with it.
        self.cpus[cpu].weight = if next == NONE { 0 } else { slabs[next].prev };
        self.cpus[cpu].current = number;
        true
    }

    /// Takes a partial slab of a node for a CPU, and some more for its own list.
    fn get_partial_node(&mut self, slabs: &mut Table, cpu: usize, node: NodeId) -> bool {
        let mut taken = 0;
        while let Some(number) = self.nodes[node.index()].first() {
            self.nodes[node.index()].remove(slabs, number);
            let free = slabs.free_objects(number);
            if self.cpus[cpu].current == NONE {
                slabs[number].place = Place::Cpu;
                self.cpus[cpu].current = number;
                taken += if self.cpu_partial_slabs { 0 } else { free };
            } else {
                self.push_cpu_partial(slabs, cpu, number);
                taken += if self.cpu_partial_slabs { 1 } else { free };
            }
            if taken > self.cpu_partial / 2 {
                break;
            }
        }
        self.cpus[cpu].current != NONE
    }

    /// Puts a slab on a CPU's list. While it is there, `prev` holds the weight of the list from it on.
    pub(super) fn push_cpu_partial(&mut self, slabs: &mut Table, cpu: usize, number: u32) {
        let list = &mut self.cpus[cpu];
        list.weight += if self.cpu_partial_slabs { 1 } else { slabs.free_objects(number) };
        let slab = &mut slabs[number];
        (slab.prev, slab.next, slab.place) = (list.weight, list.partial, Place::CpuPartial);
        list.partial = number;
    }
}
