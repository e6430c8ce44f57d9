//! Where SLAB finds free objects.

use units::{CpuId, NodeId};

use super::super::table::Table;
use super::super::{Obj, Place};
use super::{Arrays, Node};

/// An array that nobody took from lately gets no more than that at a time (`BATCHREFILL_LIMIT`).
const UNTOUCHED_BATCH: u32 = 16;

impl Node {
    /// Takes up to `batch` objects out of a slab of this node that is on no list, and puts it on the one that it belongs to.
    fn take_from(&mut self, slabs: &mut Table, shift: u32, number: u32, batch: u32, objects: &mut Vec<Obj>) {
        let from = objects.len();
        let slots = (0..batch).map_while(|_| slabs.take_slot(number));
        objects.extend(slots.map(|slot| Obj(number << shift | slot)));
        self.free_objects -= (objects.len() - from) as u32;
        // The lowest first to be used.
        objects[from..].reverse();
        self.add_partial(slabs, number, true);
    }

    /// Puts a slab that has objects in use and is on no list on the list of partial ones, unless it is full.
    pub(super) fn add_partial(&mut self, slabs: &mut Table, number: u32, first: bool) {
        if slabs.free_objects(number) == 0 {
            slabs[number].place = Place::Full;
        } else {
            self.partial.add(slabs, number, Place::Node, first);
        }
    }

    /// Takes the slab to be used next off its list (`get_first_slab()`).
    fn next_slab(&mut self, slabs: &mut Table) -> Option<u32> {
        if let Some(number) = self.partial.first() {
            self.partial.remove(slabs, number);
            return Some(number);
        }
        let number = self.empty.first()?;
        self.empty.remove(slabs, number);
        self.empty_touched = true;
        Some(number)
    }

    /// Takes up to `batch` objects from slabs.
    fn take_batch(&mut self, slabs: &mut Table, shift: u32, batch: u32, objects: &mut Vec<Obj>) {
        let wanted = objects.len() + batch as usize;
        while objects.len() < wanted {
            let Some(number) = self.next_slab(slabs) else { return };
            let missing = (wanted - objects.len()) as u32;
            self.take_from(slabs, shift, number, missing, objects);
        }
    }
}

impl Arrays {
    /// Takes an object of a CPU's array.
    #[inline]
    pub(in super::super) fn take(&mut self, cpu: usize) -> Option<Obj> {
        let array = &mut self.cpus[cpu];
        let obj = array.objects.pop()?;
        array.touched = true;
        Some(obj)
    }

    fn batch_of(&self, cpu: usize) -> u32 {
        if self.cpus[cpu].touched { self.batch } else { self.batch.min(UNTOUCHED_BATCH) }
    }

    /// Fills a CPU's empty array from what its node has (`cache_alloc_refill()`).
    pub(in super::super) fn refill(&mut self, slabs: &mut Table, shift: u32, cpu: usize, node: NodeId) -> bool {
        let batch = self.batch_of(cpu);
        let (array, node) = (&mut self.cpus[cpu], &mut self.nodes[node.index()]);
        let shared = &mut node.shared.objects;
        if shared.is_empty() {
            node.take_batch(slabs, shift, batch, &mut array.objects);
        } else {
            let kept = shared.len().saturating_sub(batch as usize);
            array.objects.extend(shared.drain(kept..));
            node.shared.touched = true;
        }
        !array.objects.is_empty()
    }

    /// Takes an object from the slabs of another node (`fallback_alloc()`): the arrays of CPUs hold none of those.
    pub(in super::super) fn take_from_other(&mut self, slabs: &mut Table, shift: u32, node: NodeId) -> Option<Obj> {
        let mut taken = Vec::new();
        self.nodes[node.index()].take_batch(slabs, shift, 1, &mut taken);
        taken.pop()
    }

    /// Gives a CPU objects of a new slab; if that is another node's, or the CPU got others meanwhile, the slab stays empty.
    pub(in super::super) fn give(&mut self, slabs: &mut Table, shift: u32, (cpu, near): (CpuId, NodeId), number: u32) {
        let batch = self.batch_of(cpu.index());
        let home = slabs[number].node;
        let (array, node) = (&mut self.cpus[cpu.index()], &mut self.nodes[home.index()]);
        node.free_objects += self.objects;
        if home == near && array.objects.is_empty() {
            node.take_from(slabs, shift, number, batch, &mut array.objects);
        } else {
            node.empty.add(slabs, number, Place::Empty, false);
        }
    }
}
