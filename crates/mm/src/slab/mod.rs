//! Slab caches (SLUB): objects of one size packed into slabs, each slab a block of pages.
//!
//! Rule: a CPU allocates from its own slab until that is full, then from the partial slabs it keeps, then from the
//! partial slabs of its node, then of other nodes that have plenty, and only then gets a new slab. A freed object
//! goes back to its slab; a slab that was full becomes partial, and one that becomes empty is given back if its
//! node has partial slabs enough. An object never moves: a page stays while one object on it lives, which is how
//! shrinking caches frees few pages.
//! Source: `___slab_alloc()`, `get_partial_node()`, `get_any_partial()`, `__slab_free()`, `put_cpu_partial()`,
//! `unfreeze_partials()`, `allocate_slab()`, mm/slub.c, 4.20 and 6.12.
//! Since/until: this structure since 3.2 (CPU partial lists, [`CpuPartial`]); it ends with sheaves (6.18).
//! Abstracted: the CPU's free list and the slab's are one; which free slot of a slab is taken (the lowest, the
//! kernel's order is random).
//! Omitted: debugging, what objects charge to a cgroup (see charges.rs for what that takes), pfmemalloc slabs, cache merging, `kmem_cache_shrink()`.

mod alloc;
mod caches;
mod charges;
mod check;
mod free;
#[cfg(test)]
mod model;
mod order;
mod rcu;
mod runs;
mod table;
#[cfg(test)]
pub(crate) mod tests;

pub use rcu::Rcu;
pub use runs::ObjectRuns;

use rules::CpuPartial;
use table::Table;
use units::{NodeId, Order};

use crate::sparse::Sparse;
use crate::writeback::BIO_VECTOR_BYTES;
use crate::{AllocRequest, Mm};

/// A slab cache.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct CacheId(pub u16);

impl CacheId {
    /// Index into the table of caches.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// An object of a cache: dense, so that it takes four bytes wherever it is remembered.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Obj(pub u32);

impl Default for Obj {
    fn default() -> Obj {
        Obj::NONE
    }
}

impl Obj {
    /// No object.
    pub const NONE: Obj = Obj(u32::MAX);

    /// Whether this names an object.
    #[inline]
    pub fn is_some(self) -> bool {
        self != Obj::NONE
    }
}

/// Pages that a cache lacks for a slab.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SlabRequest {
    /// What to ask the slow path for.
    pub pages: AllocRequest,
    /// What to ask for if it refuses that: the least order, with all that the caller allows.
    pub fallback: Option<AllocRequest>,
}

/// What a cache holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CacheSpec {
    /// Name as in `/proc/slabinfo`.
    pub name: &'static str,
    /// Bytes an object takes, alignment included.
    pub size: u32,
    /// A shrinker frees its objects (`SLAB_RECLAIM_ACCOUNT`): its pages are of the reclaimable type.
    pub reclaimable: bool,
    /// Its objects are charged to the cgroup of who allocates them (`SLAB_ACCOUNT`, or `__GFP_ACCOUNT` wherever that is done).
    pub accounted: bool,
}

/// A line of `/proc/slabinfo`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SlabInfo {
    /// Name.
    pub name: &'static str,
    /// Objects in use; free ones of CPU slabs count as used, as in the kernel.
    pub active_objs: u64,
    /// Objects that the slabs can hold.
    pub num_objs: u64,
    /// Bytes of an object.
    pub objsize: u32,
    /// Objects of a slab of the preferred order.
    pub objperslab: u32,
    /// Pages of a slab of the preferred order.
    pub pagesperslab: u32,
    /// Slabs.
    pub num_slabs: u64,
}

/// No slab.
const NONE: u32 = u32::MAX;

/// Where a slab is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
enum Place {
    /// A CPU allocates from it.
    Cpu,
    /// On a CPU's list of partial slabs.
    CpuPartial,
    /// On its node's list of partial slabs.
    Node,
    /// Full, on no list.
    Full,
}

/// One slab.
#[derive(Clone, Copy, Debug)]
struct Slab {
    pfn: units::Pfn,
    prev: u32,
    next: u32,
    inuse: u16,
    objects: u16,
    node: NodeId,
    place: Place,
}

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

/// Partial slabs of a node, oldest first.
#[derive(Clone, Copy, Debug)]
struct Partial {
    head: u32,
    tail: u32,
    len: u32,
}

/// One cache.
#[derive(Debug)]
struct Cache {
    spec: CacheSpec,
    /// Order of slabs when memory is plentiful, and the least that holds an object.
    order: Order,
    min_order: Order,
    /// log2 of the objects' numbers that a slab takes.
    shift: u32,
    min_partial: u32,
    /// The same for slabs that become empty on the list.
    keep_freed: u32,
    /// What a CPU keeps in partial slabs; 0: it keeps none.
    cpu_partial: u32,
    /// Whether `cpu_partial` counts them (or objects).
    cpu_partial_slabs: bool,
    slabs: Table,
    /// The vectors of what the objects of slabs are charged to.
    charges: Sparse<Obj>,
    nodes: Vec<Partial>,
    cpus: Vec<CpuSlab>,
    nr_slabs: u64,
    nr_objects: u64,
    /// Slabs of the minimum order because no larger block was free (`ORDER_FALLBACK`).
    order_fallback: u64,
}

/// All slab caches.
#[derive(Debug)]
pub struct Slabs {
    nr_cpus: usize,
    nr_nodes: usize,
    caches: Vec<Cache>,
}

impl Slabs {
    /// No cache yet.
    pub fn new(nr_cpus: usize, nr_nodes: usize) -> Slabs {
        Slabs { nr_cpus, nr_nodes, caches: Vec::new() }
    }

    /// The lines of `/proc/slabinfo`.
    pub fn slabinfo(&self) -> impl Iterator<Item = SlabInfo> + '_ {
        self.caches.iter().map(Cache::info)
    }

    /// Slabs that had to be of the minimum order so far, of all caches.
    pub fn order_fallbacks(&self) -> u64 {
        self.caches.iter().map(|c| c.order_fallback).sum()
    }

    /// Bytes that an object of a cache takes.
    pub fn object_size(&self, cache: CacheId) -> u32 {
        self.caches[cache.index()].spec.size
    }

    /// Node of the page that an object is on.
    #[inline]
    pub fn node_of(&self, cache: CacheId, obj: Obj) -> NodeId {
        let cache = &self.caches[cache.index()];
        cache.slabs[obj.0 >> cache.shift].node
    }

    /// First frame of the slab that an object is on.
    pub fn pfn_of(&self, cache: CacheId, obj: Obj) -> units::Pfn {
        let cache = &self.caches[cache.index()];
        cache.slabs[obj.0 >> cache.shift].pfn
    }

    /// Host bytes that all tables occupy.
    pub fn host_bytes(&self) -> usize {
        self.caches.iter().map(|c| c.slabs.host_bytes() + c.charges.host_bytes()).sum()
    }
}

impl Cache {
    fn info(&self) -> SlabInfo {
        let free_on_nodes: u64 = (0..self.nodes.len()).map(|n| self.free_on_node(n)).sum();
        SlabInfo {
            name: self.spec.name,
            active_objs: self.nr_objects - free_on_nodes,
            num_objs: self.nr_objects,
            objsize: self.spec.size,
            objperslab: order::order_objects(self.order, self.spec.size),
            pagesperslab: self.order.pages(),
            num_slabs: self.nr_slabs,
        }
    }

    fn free_on_node(&self, node: usize) -> u64 {
        let mut at = self.nodes[node].head;
        let mut free = 0;
        while at != NONE {
            let slab = &self.slabs[at];
            free += u64::from(slab.objects - slab.inuse);
            at = slab.next;
        }
        free
    }

    /// Puts a slab that is on no list on its node's: first, or last.
    fn add_partial(&mut self, number: u32, first: bool) {
        let list = &mut self.nodes[self.slabs[number].node.index()];
        list.len += 1;
        let (prev, next) = if first { (NONE, list.head) } else { (list.tail, NONE) };
        match prev {
            NONE => list.head = number,
            _ => self.slabs[prev].next = number,
        }
        match next {
            NONE => list.tail = number,
            _ => self.slabs[next].prev = number,
        }
        let slab = &mut self.slabs[number];
        (slab.prev, slab.next, slab.place) = (prev, next, Place::Node);
    }

    /// Takes a slab off its node's list.
    fn remove_partial(&mut self, number: u32) {
        let Slab { prev, next, node, place, .. } = self.slabs[number];
        debug_assert!(place == Place::Node, "slab {number} of {} is not on a node's list", self.spec.name);
        let list = &mut self.nodes[node.index()];
        list.len -= 1;
        match prev {
            NONE => list.head = next,
            _ => self.slabs[prev].next = next,
        }
        match next {
            NONE => self.nodes[node.index()].tail = prev,
            _ => self.slabs[next].prev = prev,
        }
    }
}

impl Mm {
    /// Creates the caches that every machine has.
    pub(crate) fn setup_slabs(&mut self) {
        let mut table = caches::table(self.rules.struct_sizes);
        table[CacheId::BIOVEC_MAX.index()].size = self.bio_vectors_max() * BIO_VECTOR_BYTES;
        for spec in table {
            self.create_cache(spec);
        }
    }

    /// Creates a cache.
    pub fn create_cache(&mut self, spec: CacheSpec) -> CacheId {
        let (nr_cpus, nr_nodes) = (self.slabs.nr_cpus, self.slabs.nr_nodes);
        let order = order::calculate_order(spec.size, nr_cpus, self.rules.slab_order);
        let objects = order::order_objects(order, spec.size);
        assert!(objects > 0 && order <= Order::MAX, "{}: {} bytes fit no slab", spec.name, spec.size);
        let id = CacheId(self.slabs.caches.len() as u16);
        self.slabs.caches.push(Cache {
            spec,
            order,
            min_order: order::get_order(spec.size),
            shift: objects.next_power_of_two().trailing_zeros(),
            min_partial: order::min_partial(spec.size, self.rules.cpu_partial),
            keep_freed: order::keep_freed(spec.size, self.rules.cpu_partial),
            cpu_partial: order::cpu_partial(spec.size, objects, self.rules.cpu_partial),
            cpu_partial_slabs: self.rules.cpu_partial == CpuPartial::Slabs,
            slabs: Table::new(objects.div_ceil(64) as usize),
            charges: Sparse::default(),
            nodes: vec![Partial { head: NONE, tail: NONE, len: 0 }; nr_nodes],
            cpus: vec![CpuSlab { current: NONE, partial: NONE, weight: 0 }; nr_cpus],
            nr_slabs: 0,
            nr_objects: 0,
            order_fallback: 0,
        });
        id
    }
}
