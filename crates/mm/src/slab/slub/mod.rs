//! SLUB: a CPU allocates from a slab of its own.
//!
//! Rule: a CPU allocates from its own slab until that is full, then from the partial slabs it keeps, then from the
//! partial slabs of its node, then of other nodes that have plenty, and only then gets a new slab. A freed object
//! goes back to its slab; a slab that was full becomes partial, and one that becomes empty is given back if its
//! node has partial slabs enough.
//! Source: `___slab_alloc()`, `get_partial_node()`, `get_any_partial()`, `__slab_free()`, `put_cpu_partial()`,
//! `unfreeze_partials()`, mm/slub.c, 4.20 and 6.12.
//! Since/until: this structure since 3.2 (CPU partial lists, [`CpuPartial`]); it ends with sheaves (6.18).
//! Abstracted: the CPU's free list and the slab's are one.

mod alloc;
mod check;
mod free;
#[cfg(test)]
mod model;
mod order;

use rules::{CpuPartial, SlabOrder};

use super::list::List;
use super::table::Table;
use super::{CacheSpec, Kept, Layout, NONE};

/// What a CPU keeps of a cache.
#[derive(Clone, Copy, Debug)]
struct CpuSlab {
    /// The slab it allocates from.
    current: u32,
    /// First of its partial slabs.
    partial: u32,
    /// Partial slabs, or free objects in them when they came, by the rule.
    weight: u32,
}

/// The slabs of a cache that have free objects.
#[derive(Debug)]
pub(super) struct Lists {
    min_partial: u32,
    /// The same for slabs that become empty on the list.
    keep_freed: u32,
    /// What a CPU keeps in partial slabs; 0: it keeps none.
    cpu_partial: u32,
    /// Whether `cpu_partial` counts them (or objects).
    cpu_partial_slabs: bool,
    /// Partial slabs by node.
    nodes: Vec<List>,
    cpus: Vec<CpuSlab>,
}

/// How the slabs of a cache are laid out: objects alone.
pub(super) fn layout(spec: &CacheSpec, nr_cpus: usize, rule: SlabOrder) -> Layout {
    let order = order::calculate_order(spec.size, nr_cpus, rule);
    Layout { order, min_order: order::get_order(spec.size), footprint: spec.size, head: 0 }
}

impl Lists {
    pub(super) fn new(size: u32, objects: u32, rule: CpuPartial, nr_cpus: usize, nr_nodes: usize) -> Lists {
        Lists {
            min_partial: order::min_partial(size, rule),
            keep_freed: order::keep_freed(size, rule),
            cpu_partial: order::cpu_partial(size, objects, rule),
            cpu_partial_slabs: rule == CpuPartial::Slabs,
            nodes: vec![List::EMPTY; nr_nodes],
            cpus: vec![CpuSlab { current: NONE, partial: NONE, weight: 0 }; nr_cpus],
        }
    }

    /// Makes a new slab the one that a CPU allocates from.
    pub(super) fn give(&mut self, cpu: usize, number: u32) {
        self.cpus[cpu].current = number;
    }

    /// For `/proc/slabinfo`.
    pub(super) fn kept(&self, slabs: &Table) -> Kept {
        Kept { free_on_nodes: self.nodes.iter().map(|list| list.free_objects(slabs)).sum(), ..Kept::default() }
    }
}
