//! The pages of slabs.
//!
//! Rule: SLUB asks for a new slab in the preferred order first, which is speculative and may do less than the caller
//! ([`SlabSpeculation`]), then in the least order with all that the caller allows. SLAB knows one order: it asks its own node without
//! reclaiming and without waking kswapd, then takes objects that other nodes have, and only then asks as the caller may.
//! Source: `allocate_slab()`, mm/slub.c, 4.20 and 6.12; `cache_alloc_refill()`, `cache_grow()`, `gfp_exact_node()`, `fallback_alloc()`,
//! mm/slab.c, 3.1, 3.19 and 4.20; `__alloc_pages_slowpath()`, mm/page_alloc.c, 3.1 and 3.19.
//! Since/until: [`SlabFreelist`]: a slab's objects go in an order of chance (`shuffle_freelist()`), which takes a number. [`SlabSpeculation`]: until 4.1 the attempt reclaims too, but once only. [`SlabAllocator`]: until 4.0 SLAB's own attempt ends
//! at the low watermark (`GFP_THISNODE`), from 4.4 on at min.
//! Abstracted: the speculative attempt ends after the two walks of the free lists (at the low watermark and, on the
//! slow path, at min) that it makes when it may not reclaim; an allocation whose preferred order is the least one
//! goes to the slow path once, with the caller's flags, instead of with `NORETRY` first. Remote partial slabs are
//! always considered (`remote_node_defrag_ratio` 1000 of 1024). A slab that comes from another node than the one
//! asked for is used. SLAB asks its own node once, not twice. Omitted: `__GFP_THISNODE` requests, memory policies, SLAB's management of
//! slabs outside of them.

use rules::{SlabAllocator, SlabFreelist, SlabSpeculation};
use units::{Gfp, NodeId, Order, Pfn};

use super::{Cache, CacheId, Keeper, Layout, NONE, Obj, Place, Slab, SlabRequest};
use crate::stat::NodeStat;
use crate::{AllocRequest, Env, Kind, Mm};

impl Cache {
    /// A number and a record for a new slab.
    fn new_slab(&mut self, pfn: Pfn, order: Order, node: NodeId) -> u32 {
        let slab = Slab { pfn, prev: NONE, next: NONE, inuse: 0, node, place: Place::Cpu };
        let number = self.slabs.add(slab, order < self.layout.order);
        assert!(number < u32::MAX >> self.shift, "{}: too many slabs", self.spec.name);
        self.nr_slabs += 1;
        self.nr_objects += u64::from(self.slabs.objects(number));
        number
    }
}

impl Mm {
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
    pub(super) fn slow_path_start(&mut self, env: &Env, request: AllocRequest) -> Option<Pfn> {
        if request.gfp.contains(Gfp::KSWAPD_RECLAIM) {
            self.wake_all_kswapds(request);
        }
        let flags = self.gfp_to_alloc_flags(env, request);
        self.get_page_from_freelist(env, request, flags)
    }

    /// An object of a new slab or of another node, or what to ask the slow path for.
    pub(super) fn slab_grow(&mut self, env: &Env, cache: CacheId, gfp: Gfp) -> Result<Obj, SlabRequest> {
        let Cache { spec, layout: Layout { order, .. }, .. } = *self.slabs.cache(cache);
        let mut gfp = gfp;
        if order.0 > 0 {
            gfp = gfp.with(Gfp::COMP);
        }
        if spec.reclaimable {
            gfp = gfp.with(Gfp::RECLAIMABLE);
        }
        let own = self.own_node_page(env, order, gfp);
        if own.is_none()
            && let Some(obj) = self.slab_take_from_others(env, cache)
        {
            return Ok(obj);
        }
        let page = own.map_or_else(|| self.slab_page(env, cache, gfp), Ok)?;
        self.slab_add_page(env, cache, page);
        Ok(self.slab_take_new(env, cache))
    }

    /// SLAB's first attempt: quietly, and on its own node only; SLUB has none.
    fn own_node_page(&mut self, env: &Env, order: Order, gfp: Gfp) -> Option<Pfn> {
        if self.rules.slab_allocator == SlabAllocator::Slub {
            return None;
        }
        let quiet = gfp.with(Gfp::THISNODE).with(Gfp::NOWARN).without(Gfp::RECLAIM).without(Gfp::NOFAIL);
        let request = AllocRequest { gfp: quiet, order, node: env.node };
        let page = self.alloc_pages(env, request);
        if self.rules.slab_allocator == SlabAllocator::SlabExactNode {
            return page.or_else(|| self.slow_path_start(env, request));
        }
        page
    }

    /// Pages for a new slab, or the request for the slow path; SLAB knows the least order only.
    fn slab_page(&mut self, env: &Env, cache: CacheId, gfp: Gfp) -> Result<Pfn, SlabRequest> {
        let Layout { order, min_order, .. } = self.slabs.cache(cache).layout;
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

    /// Makes pages that the caller allocated for it a slab that the CPU allocates from (of the preferred order, or of the least).
    pub fn slab_add_page(&mut self, env: &Env, cache: CacheId, pfn: Pfn) {
        let order = self.frames[pfn].order();
        let node = self.node_of(pfn);
        if self.rules.slab_allocator == SlabAllocator::Slub {
            self.flush_cpu_slab(env, cache);
        }
        let owner = self.slabs.cache_mut(cache);
        let Layout { order: most, min_order, .. } = owner.layout;
        debug_assert!(order == min_order || order == most, "{}: order {}", owner.spec.name, order.0);
        let number = owner.new_slab(pfn, order, node);
        owner.order_fallback += u64::from(order < most);
        let stat = slab_stat(owner.spec.reclaimable);
        match &mut owner.keeper {
            Keeper::Slub(lists) => lists.give(env.cpu.index(), number),
            Keeper::Slab(arrays) => arrays.give(&mut owner.slabs, owner.shift, (env.cpu, env.node), number),
        }
        let id = owner.id;
        let frame = &mut self.frames[pfn];
        debug_assert!(frame.kind() == Kind::Held);
        frame.set_slab(id, number, order);
        self.stat.node_add(node, stat, i64::from(order.pages()));
        if self.rules.slab_freelist == SlabFreelist::Random {
            self.charge(self.costs.random_number);
        }
        self.attach_charges(env, cache, number);
    }

    /// Gives the pages of an empty slab that is on no list back.
    pub(super) fn discard_slab(&mut self, env: &Env, cache: CacheId, number: u32) {
        let owner = self.slabs.cache_mut(cache);
        let slab = &owner.slabs[number];
        debug_assert!(slab.inuse == 0);
        let Slab { pfn, node, .. } = *slab;
        let objects = owner.slabs.objects(number);
        owner.nr_slabs -= 1;
        owner.nr_objects -= u64::from(objects);
        owner.slabs.remove(number);
        let charges = owner.charges.take(number);
        let stat = slab_stat(owner.spec.reclaimable);
        let order = self.frames[pfn].order();
        self.stat.node_add(node, stat, -i64::from(order.pages()));
        self.frames[pfn].set_kind(Kind::Held, order);
        self.free_pages(env, pfn, order);
        self.free_charges(env, objects, charges);
    }
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
fn slab_stat(reclaimable: bool) -> NodeStat {
    if reclaimable { NodeStat::SlabReclaimable } else { NodeStat::SlabUnreclaimable }
}
