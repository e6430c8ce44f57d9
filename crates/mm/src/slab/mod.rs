//! Slab caches: objects of one size packed into slabs, each slab a block of pages.
//!
//! Rule: which of the kernel's two allocators there is decides where free objects are kept, how large slabs are and when an empty one is
//! given back: SLUB (slub/) or SLAB (arrays/). With both an object never moves: a page stays while one object on it lives, which is how
//! shrinking caches frees few pages.
//! Source: mm/slub.c, 2.6.39 to 6.12; mm/slab.c, 3.1 to 4.20.
//! Since/until: [`SlabAllocator`].
//! Abstracted: which free slot of a slab is taken (the lowest, the kernel's order may be random).
//! Omitted: debugging, what objects charge to a cgroup (see charges.rs for what that takes), pfmemalloc slabs, `kmem_cache_shrink()`.

mod arrays;
mod caches;
mod charges;
mod check;
mod list;
mod merging;
mod object;
mod pages;
mod rcu;
mod runs;
mod slub;
mod table;
#[cfg(test)]
pub(crate) mod tests;

pub use arrays::REAP_INTERVAL;
pub use rcu::Rcu;
pub use runs::ObjectRuns;

use rules::SlabAllocator;
use table::Table;
use units::{MemcgId, NodeId, Order, PAGE_SIZE};

use crate::sparse::Sparse;
use crate::vfs::Share;
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
    /// What its objects are.
    pub kind: ObjectKind,
}

/// What tells objects of one cache from those of another with the same size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ObjectKind {
    /// Nothing.
    Plain,
    /// They may be copied to and from user space (`usersize`, since 4.16).
    UserCopied,
    /// They have a constructor, or are found by readers under RCU after they are freed (`SLAB_TYPESAFE_BY_RCU`).
    Constructed,
}

/// A line of `/proc/slabinfo`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SlabInfo {
    /// Name.
    pub name: &'static str,
    /// Objects in use; free ones of CPU slabs and arrays count as used, as in the kernel.
    pub active_objs: u64,
    /// Objects that the slabs can hold.
    pub num_objs: u64,
    /// Bytes of an object.
    pub objsize: u32,
    /// Objects of a slab of the preferred order.
    pub objperslab: u32,
    /// Pages of a slab of the preferred order.
    pub pagesperslab: u32,
    /// Objects that a CPU's array holds, how many it takes or gives at a time, and how many batches CPUs share; 0 with SLUB.
    pub tunables: [u32; 3],
    /// Slabs with objects in use; all of them with SLUB.
    pub active_slabs: u64,
    /// Slabs.
    pub num_slabs: u64,
    /// Free objects in arrays that CPUs share.
    pub shared_avail: u64,
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
    /// On its node's list of slabs without an object in use.
    Empty,
    /// Full, on no list.
    Full,
}

/// One slab.
#[derive(Clone, Copy, Debug)]
struct Slab {
    pfn: units::Pfn,
    prev: u32,
    next: u32,
    /// Objects in use, those in arrays of free ones among them.
    inuse: u16,
    node: NodeId,
    place: Place,
}

/// Where free objects of a cache are kept.
#[derive(Debug)]
enum Keeper {
    Slub(slub::Lists),
    Slab(arrays::Arrays),
}

/// One cache.
#[derive(Debug)]
struct Cache {
    /// The first that it serves.
    id: CacheId,
    spec: CacheSpec,
    layout: Layout,
    /// log2 of the objects' numbers that a slab takes.
    shift: u32,
    keeper: Keeper,
    slabs: Table,
    /// The vectors of what the objects of slabs are charged to.
    charges: Sparse<Obj>,
    /// Groups that objects are charged to.
    owners: Sparse<MemcgId>,
    nr_slabs: u64,
    nr_objects: u64,
    /// Slabs of the minimum order because no larger block was free (`ORDER_FALLBACK`).
    order_fallback: u64,
}

/// All slab caches.
#[derive(Debug)]
pub struct Slabs {
    /// The node of each CPU.
    cpu_nodes: Vec<NodeId>,
    nr_nodes: usize,
    /// The caches by their numbers; some share slabs.
    names: Vec<Name>,
    /// Those with slabs of their own.
    caches: Vec<Cache>,
}

/// What a cache does not share with the one that serves it.
#[derive(Clone, Copy, Debug)]
struct Name {
    /// Which of the caches with slabs serves it.
    home: u16,
    /// [`CacheSpec::accounted`].
    accounted: bool,
}

impl Slabs {
    /// No cache yet.
    pub fn new(cpu_nodes: Vec<NodeId>, nr_nodes: usize) -> Slabs {
        Slabs { cpu_nodes, nr_nodes, names: Vec::new(), caches: Vec::new() }
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
        self.cache(cache).spec.size
    }

    /// Whether a shrinker frees a cache's objects.
    pub(crate) fn is_reclaimable(&self, cache: CacheId) -> bool {
        self.cache(cache).spec.reclaimable
    }

    /// Whether a cache's objects are charged to cgroups.
    pub(crate) fn is_accounted(&self, cache: CacheId) -> bool {
        self.names[cache.index()].accounted
    }

    /// Whether those of any cache that shares its slabs are.
    pub(crate) fn has_accounted(&self, cache: CacheId) -> bool {
        let home = self.names[cache.index()].home;
        self.names.iter().any(|name| name.home == home && name.accounted)
    }

    /// The cache that serves another, or itself.
    #[inline]
    fn cache(&self, cache: CacheId) -> &Cache {
        &self.caches[usize::from(self.names[cache.index()].home)]
    }

    /// The same, to be changed.
    #[inline]
    fn cache_mut(&mut self, cache: CacheId) -> &mut Cache {
        &mut self.caches[usize::from(self.names[cache.index()].home)]
    }

    /// Notes which group an object is charged to.
    pub(crate) fn set_owner(&mut self, cache: CacheId, obj: Obj, memcg: MemcgId) {
        self.cache_mut(cache).owners.set(obj.0, memcg);
    }

    /// The groups that objects of a cache are charged to, one for each such object.
    pub(crate) fn owners(&self, cache: CacheId) -> impl Iterator<Item = MemcgId> + '_ {
        self.cache(cache).owners.iter().map(|(_, memcg)| *memcg)
    }

    /// Caches with slabs of their own.
    pub(crate) fn ids(&self) -> impl Iterator<Item = CacheId> + '_ {
        self.caches.iter().map(|cache| cache.id)
    }

    /// Where an object is, and which group it is charged to.
    pub(crate) fn share_of(&self, cache: CacheId, obj: Obj) -> Share {
        Share { node: self.node_of(cache, obj), memcg: self.cache(cache).owners.get(obj.0) }
    }

    /// Node of the page that an object is on.
    #[inline]
    pub fn node_of(&self, cache: CacheId, obj: Obj) -> NodeId {
        let cache = self.cache(cache);
        cache.slabs[obj.0 >> cache.shift].node
    }

    /// First frame of the slab that an object is on.
    pub fn pfn_of(&self, cache: CacheId, obj: Obj) -> units::Pfn {
        let cache = self.cache(cache);
        cache.slabs[obj.0 >> cache.shift].pfn
    }

    /// Host bytes that all tables occupy.
    pub fn host_bytes(&self) -> usize {
        self.caches.iter().map(Cache::host_bytes).sum()
    }
}

impl Cache {
    fn host_bytes(&self) -> usize {
        let arrays = match &self.keeper {
            Keeper::Slub(_) => 0,
            Keeper::Slab(arrays) => arrays.host_bytes(),
        };
        self.slabs.host_bytes() + self.charges.host_bytes() + self.owners.host_bytes() + arrays
    }

    fn info(&self) -> SlabInfo {
        let kept = match &self.keeper {
            Keeper::Slub(lists) => lists.kept(&self.slabs),
            Keeper::Slab(arrays) => arrays.kept(),
        };
        SlabInfo {
            name: self.spec.name,
            active_objs: self.nr_objects - kept.free_on_nodes,
            num_objs: self.nr_objects,
            objsize: self.spec.size,
            objperslab: self.layout.objects(self.layout.order),
            pagesperslab: self.layout.order.pages(),
            tunables: kept.tunables,
            active_slabs: self.nr_slabs - kept.empty_slabs,
            num_slabs: self.nr_slabs,
            shared_avail: kept.shared_avail,
        }
    }
}

/// What `/proc/slabinfo` says of the free objects of a cache.
#[derive(Default)]
struct Kept {
    free_on_nodes: u64,
    empty_slabs: u64,
    shared_avail: u64,
    tunables: [u32; 3],
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

    /// Creates a cache: with slabs of its own, unless one that there is serves it.
    pub fn create_cache(&mut self, spec: CacheSpec) -> CacheId {
        let id = CacheId(self.slabs.names.len() as u16);
        let found = self.slabs.find_mergeable(&spec, self.rules.slab_merging);
        let home = found.unwrap_or_else(|| self.add_cache(id, spec)) as u16;
        self.slabs.names.push(Name { home, accounted: spec.accounted });
        id
    }

    /// Adds a cache with slabs of its own, and says where.
    fn add_cache(&mut self, id: CacheId, spec: CacheSpec) -> usize {
        let Slabs { cpu_nodes, nr_nodes, .. } = &self.slabs;
        let (nr_cpus, nr_nodes) = (cpu_nodes.len(), *nr_nodes);
        let allocator = self.rules.slab_allocator;
        let layout = match allocator {
            SlabAllocator::Slub => slub::layout(&spec, nr_cpus, self.rules.slab_order),
            _ => arrays::layout(&spec, allocator),
        };
        let objects = layout.objects(layout.order);
        assert!(objects > 0 && layout.order <= Order::MAX, "{}: {} bytes fit no slab", spec.name, spec.size);
        let keeper = match allocator {
            SlabAllocator::Slub => {
                Keeper::Slub(slub::Lists::new(spec.size, objects, self.rules.cpu_partial, nr_cpus, nr_nodes))
            }
            _ => Keeper::Slab(arrays::Arrays::new(spec.size, objects, cpu_nodes, nr_nodes)),
        };
        self.slabs.caches.push(Cache {
            id,
            spec,
            layout,
            shift: objects.next_power_of_two().trailing_zeros(),
            keeper,
            slabs: Table::new(objects, layout.objects(layout.min_order)),
            charges: Sparse::default(),
            owners: Sparse::default(),
            nr_slabs: 0,
            nr_objects: 0,
            order_fallback: 0,
        });
        self.slabs.caches.len() - 1
    }
}

/// How a cache's slabs are laid out.
#[derive(Clone, Copy, Debug)]
struct Layout {
    /// Order of slabs when memory is plentiful, and the least that holds an object.
    order: Order,
    min_order: Order,
    /// Bytes that an object takes, and those that a slab takes for itself.
    footprint: u32,
    head: u32,
}

impl Layout {
    /// Objects of a slab of this order.
    fn objects(&self, order: Order) -> u32 {
        (PAGE_SIZE as u32 * order.pages() - self.head) / self.footprint
    }
}
