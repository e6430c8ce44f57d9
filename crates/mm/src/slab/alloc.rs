//! Allocation of an object, and of a slab for it.
//!
//! Rule: a new slab is first asked for in the preferred order, which is speculative and may do less than the caller
//! ([`SlabSpeculation`]), then in the least order with all that the caller allows. Source: `___slab_alloc()`, `allocate_slab()`, mm/slub.c, 4.20 and 6.12.
//! Since/until: [`SlabSpeculation`]: until 4.1 the attempt reclaims too, but once only.
//! Abstracted: the speculative attempt ends after the two walks of the free lists (at the low watermark and, on the
//! slow path, at min) that it makes when it may not reclaim; an allocation whose preferred order is the least one
//! goes to the slow path once, with the caller's flags, instead of with `NORETRY` first. Remote partial slabs are
//! always considered (`remote_node_defrag_ratio` 1000 of 1024). A slab that comes from another node than the one
//! asked for is used. Omitted: `__GFP_THISNODE` requests, memory policies.

use rules::SlabSpeculation;
use units::{Gfp, NodeId, Pfn};

use super::{Cache, CacheId, NONE, Obj, Place, Slab, SlabRequest, order};
use crate::stat::NodeStat;
use crate::{AllocRequest, Env, Kind, Mm};

impl Cache {
    /// Takes a slot of a CPU's slab.
    #[inline]
    fn take_from_cpu(&mut self, cpu: usize) -> Option<Obj> {
        let number = self.cpus[cpu].current;
        if number == NONE {
            return None;
        }
        let (slab, free) = self.slabs.with_slots(number);
        if slab.inuse == slab.objects {
            slab.place = Place::Full;
            self.cpus[cpu].current = NONE;
            return None;
        }
        slab.inuse += 1;
        let slot = if let [word] = free {
            take_lowest(word)
        } else {
            let word = free.iter().position(|w| *w != 0)?;
            word as u32 * 64 + take_lowest(&mut free[word])
        };
        Some(Obj(number << self.shift | slot))
    }

    /// Makes the next of a CPU's partial slabs the one it allocates from.
    fn next_cpu_partial(&mut self, cpu: usize) -> bool {
        let number = self.cpus[cpu].partial;
        if number == NONE {
            return false;
        }
        let slab = &mut self.slabs[number];
        slab.place = Place::Cpu;
        let next = slab.next;
        self.cpus[cpu].partial = next;
        // The kernel keeps the sum in the first slab: what the removed one added goes with it.
        self.cpus[cpu].weight = if next == NONE { 0 } else { self.slabs[next].prev };
        self.cpus[cpu].current = number;
        true
    }

    /// Takes a partial slab of a node for a CPU, and some more for its own list.
    fn get_partial_node(&mut self, cpu: usize, node: NodeId) -> bool {
        let mut taken = 0;
        while self.nodes[node.index()].len > 0 {
            let number = self.nodes[node.index()].head;
            self.remove_partial(number);
            let slab = &mut self.slabs[number];
            let free = u32::from(slab.objects - slab.inuse);
            if self.cpus[cpu].current == NONE {
                slab.place = Place::Cpu;
                self.cpus[cpu].current = number;
                taken += if self.cpu_partial_slabs { 0 } else { free };
            } else {
                self.push_cpu_partial(cpu, number);
                taken += if self.cpu_partial_slabs { 1 } else { free };
            }
            if taken > self.cpu_partial / 2 {
                break;
            }
        }
        self.cpus[cpu].current != NONE
    }

    /// Puts a slab on a CPU's list. While it is there, `prev` holds the weight of the list from it on.
    pub(super) fn push_cpu_partial(&mut self, cpu: usize, number: u32) {
        let list = &mut self.cpus[cpu];
        let slab = &mut self.slabs[number];
        list.weight += if self.cpu_partial_slabs { 1 } else { u32::from(slab.objects - slab.inuse) };
        (slab.prev, slab.next, slab.place) = (list.weight, list.partial, Place::CpuPartial);
        list.partial = number;
    }

    /// A number and a record for a new slab.
    fn new_slab(&mut self, pfn: Pfn, order: units::Order, node: NodeId) -> u32 {
        let objects = order::order_objects(order, self.spec.size);
        let slab = Slab { pfn, prev: NONE, next: NONE, inuse: 0, objects: objects as u16, node, place: Place::Cpu };
        let number = self.slabs.add(slab);
        assert!(number < u32::MAX >> self.shift, "{}: too many slabs", self.spec.name);
        for (n, word) in self.slabs.with_slots(number).1.iter_mut().enumerate() {
            let slots = objects.saturating_sub(n as u32 * 64).min(64);
            *word = if slots == 64 { u64::MAX } else { (1 << slots) - 1 };
        }
        self.nr_slabs += 1;
        self.nr_objects += u64::from(objects);
        number
    }
}

impl Mm {
    /// Allocates an object; an error says what to take to the slow path: give its page to [`Mm::slab_add_page`] and
    /// repeat.
    pub fn slab_alloc(&mut self, env: &Env, cache: CacheId, gfp: Gfp) -> Result<Obj, SlabRequest> {
        self.charge(self.costs.slab_object);
        let cpu = env.cpu.index();
        if let Some(obj) = self.slabs.caches[cache.index()].take_from_cpu(cpu) {
            return Ok(obj);
        }
        if !self.slab_refill(env, cache) {
            let pfn = self.slab_page(env, cache, gfp)?;
            self.slab_add_page(env, cache, pfn);
        }
        let taken = self.slabs.caches[cache.index()].take_from_cpu(cpu);
        Ok(taken.expect("a partial or new slab has a free object"))
    }

    /// An object for whoever may not sleep: as above, and with the first attempt of the allocator's slow path for each of the
    /// orders; none if those fail.
    pub(crate) fn slab_alloc_nowait(&mut self, env: &Env, cache: CacheId, gfp: Gfp) -> Obj {
        self.slab_alloc(env, cache, gfp).unwrap_or_else(|SlabRequest { pages, fallback }| {
            let first = self.slow_path_start(env, pages);
            let page = first.or_else(|| fallback.and_then(|least| self.slow_path_start(env, least)));
            let Some(pfn) = page else { return Obj::NONE };
            self.slab_add_page(env, cache, pfn);
            self.slab_alloc(env, cache, gfp).expect("a new slab has free objects")
        })
    }

    /// A page without sleeping: the fast path, what the slow path does first, and for who reclaims the reserves.
    pub(crate) fn alloc_without_sleep(&mut self, env: &Env, request: AllocRequest) -> Option<Pfn> {
        if let Some(pfn) = self.alloc_pages(env, request) {
            return Some(pfn);
        }
        if let Some(pfn) = self.slow_path_start(env, request) {
            return Some(pfn);
        }
        let flags = self.reserve_alloc_flags(env, request.gfp)?;
        self.get_page_from_freelist(env, request, flags)
    }

    /// What the slow path does before it would have to reclaim: it wakes kswapd, if the request may, and looks again.
    fn slow_path_start(&mut self, env: &Env, request: AllocRequest) -> Option<Pfn> {
        if request.gfp.contains(Gfp::KSWAPD_RECLAIM) {
            self.wake_all_kswapds(request);
        }
        let flags = self.gfp_to_alloc_flags(env, request);
        self.get_page_from_freelist(env, request, flags)
    }

    /// Finds a CPU a slab with free objects among those that exist.
    fn slab_refill(&mut self, env: &Env, cache: CacheId) -> bool {
        let cpu = env.cpu.index();
        let cache = &mut self.slabs.caches[cache.index()];
        if cache.next_cpu_partial(cpu) || cache.get_partial_node(cpu, env.node) {
            return true;
        }
        if cache.nodes.len() == 1 {
            return false;
        }
        let zonelist = &self.nodes[env.node.index()].zonelist;
        let nodes = zonelist.iter().map(|zone| self.zones[zone.index()].node);
        for node in nodes {
            if cache.nodes[node.index()].len > cache.min_partial && cache.get_partial_node(cpu, node) {
                return true;
            }
        }
        false
    }

    /// Pages for a new slab, or the request for the slow path.
    fn slab_page(&mut self, env: &Env, cache: CacheId, gfp: Gfp) -> Result<Pfn, SlabRequest> {
        let Cache { order, min_order, spec, .. } = self.slabs.caches[cache.index()];
        let mut gfp = gfp;
        if order.0 > 0 {
            gfp = gfp.with(Gfp::COMP);
        }
        if spec.reclaimable {
            gfp = gfp.with(Gfp::RECLAIMABLE);
        }
        let least = AllocRequest { gfp, order: min_order, node: env.node };
        if order > min_order {
            let gfp = speculative(gfp, self.rules.slab_speculation);
            let request = AllocRequest { gfp, order, node: env.node };
            if let Some(pfn) = self.alloc_pages(env, request) {
                return Ok(pfn);
            }
            if gfp.contains(Gfp::DIRECT_RECLAIM) {
                return Err(SlabRequest { pages: request, fallback: Some(least) });
            }
            if let Some(pfn) = self.slow_path_start(env, request) {
                return Ok(pfn);
            }
        }
        self.alloc_pages(env, least).ok_or(SlabRequest { pages: least, fallback: None })
    }

    /// Makes pages that the caller allocated for it the slab of the CPU (any order that holds an object).
    pub fn slab_add_page(&mut self, env: &Env, cache: CacheId, pfn: Pfn) {
        let order = self.frames[pfn].order();
        let node = self.node_of(pfn);
        self.flush_cpu_slab(env, cache);
        let owner = &mut self.slabs.caches[cache.index()];
        debug_assert!(order >= owner.min_order && order <= owner.order, "{}: order {}", owner.spec.name, order.0);
        let number = owner.new_slab(pfn, order, node);
        owner.order_fallback += u64::from(order < owner.order);
        owner.cpus[env.cpu.index()].current = number;
        let stat = slab_stat(owner.spec.reclaimable);
        let frame = &mut self.frames[pfn];
        debug_assert!(frame.kind() == Kind::Held);
        frame.set_slab(cache, number, order);
        self.stat.node_add(node, stat, i64::from(order.pages()));
        self.attach_charges(env, cache, number);
    }
}

/// Clears the lowest set bit, and says which.
#[inline]
fn take_lowest(word: &mut u64) -> u32 {
    debug_assert!(*word != 0);
    let bit = word.trailing_zeros();
    *word &= *word - 1;
    bit
}

/// The flags of the attempt for more than the least order.
fn speculative(gfp: Gfp, rule: SlabSpeculation) -> Gfp {
    let quiet = gfp.with(Gfp::NOWARN).without(Gfp::NOFAIL);
    match rule {
        SlabSpeculation::Reclaims => quiet.with(Gfp::NORETRY),
        SlabSpeculation::ReclaimsQuietly => quiet.with(Gfp::NORETRY).without(Gfp::KSWAPD_RECLAIM),
        SlabSpeculation::FreeOnly => quiet.without(Gfp::RECLAIM.with(Gfp::RETRY_MAYFAIL)),
        SlabSpeculation::WakesKswapd | SlabSpeculation::FreeAboveReserves if !gfp.contains(Gfp::DIRECT_RECLAIM) => {
            quiet.with(Gfp::NORETRY)
        }
        SlabSpeculation::WakesKswapd => quiet.with(Gfp::NORETRY).with(Gfp::NOMEMALLOC).without(Gfp::DIRECT_RECLAIM),
        SlabSpeculation::FreeAboveReserves => quiet.with(Gfp::NORETRY).with(Gfp::NOMEMALLOC).without(Gfp::RECLAIM),
    }
}

/// The gauge of a cache's pages.
pub(super) fn slab_stat(reclaimable: bool) -> NodeStat {
    if reclaimable { NodeStat::SlabReclaimable } else { NodeStat::SlabUnreclaimable }
}
