//! SLAB: a CPU keeps free objects in an array.
//!
//! Rule: a CPU allocates the object of its array that was freed last. An empty array is filled by a batch from what the CPUs of its
//! node share, then from the node's slabs, partial ones first; a full one gives the batch that it has had longest to what they share, and
//! if that is full, to the slabs. An object of another node goes to an array for that node first. A partial slab that an object comes back
//! to goes to the end of its list, so that the others may come back, too. A node keeps slabs without an object in use as long as it has no
//! more free objects than all its CPUs take at a time, and a slab's more.
//! Source: `____cache_alloc()`, `cache_alloc_refill()`, `____cache_alloc_node()`, `transfer_objects()`, `cache_flusharray()`, `free_block()`,
//! `__cache_free_alien()`, `__drain_alien_cache()`, `set_up_node()`, mm/slab.c, 3.1, 3.19 and 4.20.
//! Since/until: until 6.7; which objects a slab has room for and how it gets pages is a matter of [`SlabAllocator`](rules::SlabAllocator).
//! Abstracted: of a new slab a CPU takes a batch also if it had to wait for it (the kernel then takes one object). In which order a batch is used; until 4.6
//! an empty slab beyond the limit goes while the batch is given back, not after it. Omitted: `slabinfo`'s tunables cannot be set; caches of
//! memory cgroups; `noaliencache`; that there is no kmalloc-8 and -16.

mod alloc;
mod check;
mod free;
mod order;
mod reap;
#[cfg(test)]
mod tests;

pub(super) use order::layout;
pub use reap::REAP_INTERVAL;
use units::{Nanos, NodeId};

use super::list::List;
use super::{Kept, Obj};

/// Objects of another node that a node keeps before it gives them back (`alien_cache_init()`).
const ALIEN_LIMIT: usize = 12;

/// Free objects, the one that was freed last at the end (`struct array_cache`).
#[derive(Debug, Default)]
struct Array {
    objects: Vec<Obj>,
    /// Objects were taken since it was last looked at.
    touched: bool,
}

/// The slabs of a node that have free objects (`struct kmem_cache_node`).
#[derive(Debug)]
struct Node {
    partial: List,
    empty: List,
    /// Free objects of both.
    free_objects: u32,
    /// More than that many are not kept if they are whole slabs.
    free_limit: u32,
    /// What its CPUs share.
    shared: Array,
    /// Objects of other nodes that its CPUs freed.
    alien: Vec<Vec<Obj>>,
    /// An empty slab was taken since they were last looked at.
    empty_touched: bool,
    /// When what it keeps is looked at next.
    next_reap: Nanos,
}

/// Free objects of a cache.
#[derive(Debug)]
pub(super) struct Arrays {
    /// Objects that a CPU keeps at most, and how many it takes or gives at a time.
    limit: u32,
    batch: u32,
    /// What the CPUs of a node share at most.
    shared_limit: u32,
    /// Objects of a slab.
    objects: u32,
    cpus: Vec<Array>,
    nodes: Vec<Node>,
}

impl Arrays {
    pub(super) fn new(size: u32, objects: u32, cpu_nodes: &[NodeId], nr_nodes: usize) -> Arrays {
        let limit = order::limit(size);
        let batch = limit.div_ceil(2);
        let node = |node: usize| {
            let cpus = cpu_nodes.iter().filter(|of| of.index() == node).count() as u32;
            Node {
                partial: List::EMPTY,
                empty: List::EMPTY,
                free_objects: 0,
                free_limit: (1 + cpus) * batch + objects,
                shared: Array::default(),
                alien: vec![Vec::new(); nr_nodes],
                empty_touched: false,
                next_reap: Nanos::ZERO,
            }
        };
        Arrays {
            limit,
            batch,
            shared_limit: order::shared(size, cpu_nodes.len()) * batch,
            objects,
            cpus: cpu_nodes.iter().map(|_| Array::default()).collect(),
            nodes: (0..nr_nodes).map(node).collect(),
        }
    }

    /// For `/proc/slabinfo`.
    pub(super) fn kept(&self) -> Kept {
        let sum = |of: fn(&Node) -> u64| self.nodes.iter().map(of).sum();
        Kept {
            free_on_nodes: sum(|node| u64::from(node.free_objects)),
            empty_slabs: sum(|node| u64::from(node.empty.len)),
            shared_avail: sum(|node| node.shared.objects.len() as u64),
            tunables: [self.limit, self.batch, self.shared_limit / self.batch],
        }
    }

    pub(super) fn host_bytes(&self) -> usize {
        let of = |objects: &Vec<Obj>| objects.capacity() * size_of::<Obj>();
        let node = |node: &Node| of(&node.shared.objects) + node.alien.iter().map(of).sum::<usize>();
        self.cpus.iter().map(|cpu| of(&cpu.objects)).sum::<usize>() + self.nodes.iter().map(node).sum::<usize>()
    }
}
