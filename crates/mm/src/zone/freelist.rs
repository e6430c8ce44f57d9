//! The walk over the zones that an allocation may use, and the ways in and out of the allocator.
//!
//! Rule: the zones are tried in the order of the node's zonelist; the first one whose watermark is met and that has a
//! block gives it. Under ALLOC_NOFRAGMENT a zone is passed over if it would have to break up a foreign pageblock; at
//! the first zone of another node, or after the last one, the walk starts again without that. Pages that will be
//! written come from nodes within their dirty limit, on the fast path.
//! Source: `get_page_from_freelist()`, `rmqueue()`, `__alloc_pages()`, `prep_new_page()`, `free_unref_page()`,
//! `__free_pages_ok()` (mm/page_alloc.c, 4.20 and 6.12); `node_dirty_ok()` (mm/page-writeback.c).
//! Since/until: a failing per-CPU list is followed by an attempt at the buddy lists since 5.13.
//! Abstracted: the cost of a free through a per-CPU list is part of `alloc_pcp`, which is measured on pairs.
//! Omitted: `node_reclaim()` (`vm.zone_reclaim_mode` other than 0), cpusets, memory policies but `__GFP_THISNODE`.

use rules::{AllocReserves, DirtySpread, InitOnAlloc, PcpLists, WatermarkCheck, ZoneFairness};
use units::{Gfp, NodeId, Order, Pfn, ZoneId};

use crate::stat::{NodeStat, VmEvent, ZoneEvent, ZoneStat};
use crate::{AllocRequest, Env, Kind, MigrateType, Mm, ZoneKind};

use super::buddy::Place;
use super::fallback::Found;
use super::flags::gfp_zone;
use super::pcp::ListEnd;
use super::{AllocFlags, Wmark, pcp};

/// What stays the same during one walk (`struct alloc_context`).
#[derive(Clone, Copy)]
pub(super) struct Walk {
    req: AllocRequest,
    pub(super) highest: ZoneKind,
    migratetype: MigrateType,
    /// First zone of the walk.
    pub(super) preferred: ZoneId,
    /// Its place in the zonelist.
    first: usize,
    /// Keep to nodes within their dirty limit.
    pub(super) spread_dirty: bool,
}

impl Mm {
    /// The fast path: down to the low watermark, without reclaim. The frame comes back Held with its order.
    #[inline]
    pub fn alloc_pages(&mut self, env: &Env, req: AllocRequest) -> Option<Pfn> {
        // Order 0 is a constant of its own copy of the code.
        let quick = if req.order.0 == 0 {
            self.alloc_quick(env, AllocRequest { order: Order(0), ..req })
        } else {
            self.alloc_quick_block(env, req)
        };
        match quick {
            Some(pfn) => Some(pfn),
            None => self.alloc_by_walk(env, req),
        }
    }

    #[inline(never)]
    fn alloc_quick_block(&mut self, env: &Env, req: AllocRequest) -> Option<Pfn> {
        self.alloc_quick(env, req)
    }

    /// What the walk nearly always finds: the first zone is above its watermark, and the list of the requested type has a
    /// block. Nothing changes if not.
    #[inline(always)]
    fn alloc_quick(&mut self, env: &Env, req: AllocRequest) -> Option<Pfn> {
        let (class, order) = (self.blocks.class_of(req.gfp), req.order);
        let id = match self.rules.zone_fairness {
            ZoneFairness::Off => self.nodes[req.node.index()].preferred[class.highest as usize]?,
            ZoneFairness::Batches => self.fair_zone(req.node, class.highest)?,
        };
        let zone = &self.zones[id.index()];
        let tuned = self.rules.pcp_lists == PcpLists::AutoTuned && !zone.below_high;
        let mark = if tuned { zone.watermarks.high } else { zone.watermarks.low };
        let level = mark + zone.boost + zone.lowmem_reserve[class.highest as usize] + u64::from(order.pages() - 1);
        let every_order = self.rules.watermark_check == WatermarkCheck::EveryOrder;
        let no_block = order.0 > 0 && (every_order || !zone.has_block(order, false));
        if zone.free_pages <= level || zone.highatomic_reserved != 0 || no_block {
            return None;
        }
        let (kind, node) = (zone.kind, zone.node);
        if req.gfp.contains(Gfp::WRITE) && !self.node_dirty_ok(node) {
            return None;
        }
        let pfn = if pcp::allows(self.rules.pcp_lists, order) {
            self.pop_pcp(env.cpu, id, order, class.migratetype, ListEnd::of(req.gfp))?
        } else {
            let pfn = self.zones[id.index()].rmqueue_smallest(&mut self.frames, order, class.migratetype)?;
            self.account_free(id, -i64::from(order.pages()));
            self.charge_buddy(id, 1);
            pfn
        };
        self.take_batch(id, order.pages());
        self.stat.count_zone(ZoneEvent::Pgalloc, kind, u64::from(order.pages()));
        self.count_numa(env.node, node, node);
        self.init_on_alloc(req);
        Some(pfn)
    }

    #[cold]
    #[inline(never)]
    fn alloc_by_walk(&mut self, env: &Env, req: AllocRequest) -> Option<Pfn> {
        let walk = self.start_walk(req, req.gfp.contains(Gfp::WRITE))?;
        let flags = self.alloc_flags_nofragment(walk.preferred, req.gfp);
        if flags.fair { self.walk_fair(env, walk, flags) } else { self.walk_zones(env, walk, flags) }
    }

    /// One walk with given flags, as the slow path makes it; `None` if no zone can serve.
    pub fn get_page_from_freelist(&mut self, env: &Env, req: AllocRequest, flags: AllocFlags) -> Option<Pfn> {
        let walk = self.start_walk(req, false)?;
        self.walk_zones(env, walk, flags)
    }

    /// A page of that very zone, whatever its watermarks are, on behalf of what ran before.
    pub(crate) fn alloc_in_zone(&mut self, env: &Env, zone: ZoneId, gfp: Gfp) -> Option<Pfn> {
        let (highest, first) = (self.zones[zone.index()].kind, 0);
        let req = AllocRequest { gfp, order: Order(0), node: self.zones[zone.index()].node };
        let migratetype = self.gfp_migratetype(gfp);
        let walk = Walk { req, highest, migratetype, preferred: zone, first, spread_dirty: false };
        let found = self.rmqueue(env, walk, zone, AllocFlags { wmark: None, ..AllocFlags::only(Wmark::Min) });
        self.zones[zone.index()].reset_batch();
        found
    }

    #[inline]
    fn start_walk(&self, req: AllocRequest, spread_dirty: bool) -> Option<Walk> {
        let highest = gfp_zone(req.gfp);
        let node = &self.nodes[req.node.index()];
        let preferred = node.preferred[highest as usize]?;
        let first = node.zonelist.iter().position(|&z| z == preferred)?;
        Some(Walk { req, highest, migratetype: self.gfp_migratetype(req.gfp), preferred, first, spread_dirty })
    }

    #[inline]
    pub(super) fn walk_zones(&mut self, env: &Env, walk: Walk, flags: AllocFlags) -> Option<Pfn> {
        // The first zone serves nearly always.
        let clean = !walk.spread_dirty || self.node_dirty_ok(self.zones[walk.preferred.index()].node);
        let served = if clean { self.try_zone(env, walk, walk.preferred, flags) } else { None };
        if served.is_some() {
            return served;
        }
        self.walk_further(env, walk, flags)
    }

    /// The walk after the first zone.
    #[cold]
    fn walk_further(&mut self, env: &Env, walk: Walk, mut flags: AllocFlags) -> Option<Pfn> {
        let local = self.zones[walk.preferred.index()].node;
        let mut at = walk.first + 1;
        loop {
            let end = self.nodes[walk.req.node.index()].zonelist.len();
            while at < end {
                let zone = self.nodes[walk.req.node.index()].zonelist[at];
                at += 1;
                let (kind, node) = (self.zones[zone.index()].kind, self.zones[zone.index()].node);
                if kind > walk.highest {
                    continue;
                }
                if walk.req.gfp.contains(Gfp::THISNODE) && node != walk.req.node {
                    break;
                }
                if walk.spread_dirty && !self.node_dirty_ok(node) {
                    continue;
                }
                // Locality is worth more than an unfragmented pageblock.
                if flags.nofragment && node != local {
                    break;
                }
                if let Some(pfn) = self.try_zone(env, walk, zone, flags) {
                    return Some(pfn);
                }
            }
            if !flags.nofragment {
                return None;
            }
            flags.nofragment = false;
            at = walk.first;
        }
    }

    /// Takes a block from one zone if its watermark allows.
    #[inline]
    pub(super) fn try_zone(&mut self, env: &Env, walk: Walk, zone: ZoneId, flags: AllocFlags) -> Option<Pfn> {
        if !self.zone_allows(zone, walk, flags) {
            return None;
        }
        let order = walk.req.order;
        let pfn = self.rmqueue(env, walk, zone, flags)?;
        if order.0 > 0 && flags.highatomic {
            self.reserve_highatomic(zone, pfn, order);
        }
        debug_assert!(self.frames[pfn].kind() == Kind::Held && self.frames[pfn].order() == order);
        Some(pfn)
    }

    /// Whether the zone's watermark is met; notes under auto-tuned lists that the high one is not.
    #[inline]
    fn zone_allows(&mut self, zone: ZoneId, walk: Walk, flags: AllocFlags) -> bool {
        let (order, highest) = (walk.req.order, walk.highest);
        if self.rules.pcp_lists == PcpLists::AutoTuned && !self.zones[zone.index()].below_high {
            if self.zone_watermark_fast(zone, order, Wmark::High, highest, flags) {
                return true;
            }
            self.zones[zone.index()].below_high = true;
        }
        let Some(mark) = flags.wmark else { return true };
        let met = self.zone_watermark_fast(zone, order, mark, highest, flags);
        if !met {
            self.charge(self.costs.alloc_walk);
        }
        met
    }

    /// Takes a block from a zone through its per-CPU or buddy lists, and counts it.
    #[inline]
    fn rmqueue(&mut self, env: &Env, walk: Walk, zone: ZoneId, flags: AllocFlags) -> Option<Pfn> {
        let (order, rule) = (walk.req.order, self.rules.pcp_lists);
        let mut found = None;
        if pcp::allows(rule, order) {
            found = self.rmqueue_pcplist(env.cpu, zone, order, walk.migratetype, (flags, ListEnd::of(walk.req.gfp)));
        }
        let through_buddy = !pcp::allows(rule, order) || rule != PcpLists::OrderZero;
        if found.is_none() && through_buddy {
            found = self.rmqueue_buddy(zone, order, walk.migratetype, flags);
        }
        if found.is_some() {
            let (kind, node) = (self.zones[zone.index()].kind, self.zones[zone.index()].node);
            let preferred = self.zones[walk.preferred.index()].node;
            self.take_batch(zone, order.pages());
            self.stat.count_zone(ZoneEvent::Pgalloc, kind, u64::from(order.pages()));
            self.count_numa(env.node, preferred, node);
            self.init_on_alloc(walk.req);
        }
        if flags.kswapd && self.zones[zone.index()].boosted_flag {
            self.wake_for_boost(zone);
        }
        found
    }

    /// Zeroes what nobody asked to be zeroed (`post_alloc_hook()`, `want_init_on_alloc()`); who asks charges it himself.
    #[inline(always)]
    fn init_on_alloc(&mut self, req: AllocRequest) {
        if self.rules.init_on_alloc == InitOnAlloc::On && !req.gfp.contains(Gfp::ZERO) {
            self.charge(self.costs.zero_page * u64::from(req.order.pages()));
        }
    }

    /// Takes a block from the buddy lists (`rmqueue_buddy()`).
    fn rmqueue_buddy(&mut self, zone: ZoneId, order: Order, wanted: MigrateType, flags: AllocFlags) -> Option<Pfn> {
        let mut found = None;
        if flags.highatomic {
            found = self.take_highatomic(zone, order);
        }
        if found.is_none() {
            found = self.rmqueue_buddy_lists(zone, order, wanted, flags, &mut Found::default());
        }
        // Failing now is worse than failing a high-order atomic request later.
        let last_resort = self.rules.alloc_reserves == AllocReserves::NonBlocking && (flags.oom || flags.harder);
        if found.is_none() && last_resort {
            found = self.take_highatomic(zone, order);
        }
        if found.is_some() {
            self.account_free(zone, -i64::from(order.pages()));
            self.charge_buddy(zone, 1);
        }
        found
    }

    fn take_highatomic(&mut self, zone: ZoneId, order: Order) -> Option<Pfn> {
        self.zones[zone.index()].rmqueue_smallest(&mut self.frames, order, MigrateType::HighAtomic)
    }

    /// Where the page came from, seen from the CPU and from the zone that was preferred (`zone_statistics()`).
    #[inline]
    fn count_numa(&mut self, cpu_node: NodeId, preferred: NodeId, node: NodeId) {
        let local = if node == cpu_node { VmEvent::NumaLocal } else { VmEvent::NumaOther };
        self.stat.count(local, 1);
        if node == preferred {
            self.stat.count(VmEvent::NumaHit, 1);
        } else {
            self.stat.count(VmEvent::NumaMiss, 1);
            self.stat.count(VmEvent::NumaForeign, 1);
        }
    }

    /// Frees a block that is on no list and that nobody owns, through the CPU's lists where they hold its order.
    #[inline]
    pub fn free_pages(&mut self, env: &Env, pfn: Pfn, order: Order) {
        self.free_pages_to(env, pfn, order, ListEnd::Hot);
    }

    /// Frees a page that no cache holds (`free_hot_cold_page()`).
    pub(crate) fn free_cold_page(&mut self, env: &Env, pfn: Pfn) {
        self.free_pages_to(env, pfn, Order(0), ListEnd::Cold);
    }

    #[inline(always)]
    fn free_pages_to(&mut self, env: &Env, pfn: Pfn, order: Order, end: ListEnd) {
        let (zone, block) = self.blocks.zone_and_type(pfn);
        debug_assert!(
            !matches!(self.frames[pfn].kind(), Kind::Buddy | Kind::Pcp | Kind::Tail | Kind::Reserved),
            "{pfn:?} is {:?} and cannot be freed",
            self.frames[pfn].kind()
        );
        debug_assert!(!self.frames[pfn].has(crate::Frame::LRU), "{pfn:?} is still on an LRU list");
        self.memcg_uncharge(pfn, order);
        if order.0 == 0 && (block as usize) < MigrateType::PCP_COUNT {
            self.stat.count(VmEvent::Pgfree, 1);
            self.free_to_pcp(env.cpu, zone, pfn, Order(0), block, (block, end));
        } else {
            self.free_other(env, (zone, block), pfn, order, end);
        }
    }

    /// Frees a block of a higher order, or a page of a special pageblock.
    #[inline(never)]
    fn free_other(&mut self, env: &Env, (zone, block): (ZoneId, MigrateType), pfn: Pfn, order: Order, end: ListEnd) {
        self.stat.count(VmEvent::Pgfree, u64::from(order.pages()));
        if pcp::allows(self.rules.pcp_lists, order) && block != MigrateType::Isolate {
            // A HighAtomic page goes to the Movable list, so that the reserve can be used up.
            let listed = if block == MigrateType::HighAtomic { MigrateType::Movable } else { block };
            self.free_to_pcp(env.cpu, zone, pfn, order, block, (listed, end));
        } else {
            self.free_to_buddy(zone, pfn, order, block);
        }
    }

    /// Frees a block to the buddy lists.
    fn free_to_buddy(&mut self, zone: ZoneId, pfn: Pfn, order: Order, migratetype: MigrateType) {
        let state = &mut self.zones[zone.index()];
        state.free_one_page(&mut self.frames, &mut self.blocks, pfn, order, migratetype, Place::Auto);
        self.account_free(zone, i64::from(order.pages()));
        self.charge_buddy(zone, 1);
    }

    /// Makes the gauge follow `zone.free_pages`; pages that come free end the count of those scanned in vain.
    #[inline]
    pub(crate) fn account_free(&mut self, zone: ZoneId, pages: i64) {
        self.stat.zone_add(zone, ZoneStat::FreePages, pages);
        if pages > 0 {
            let state = &mut self.zones[zone.index()];
            (state.pages_scanned, state.all_unreclaimable) = (0, false);
        }
    }

    /// Whether a node holds no more dirty pages than its share of the dirty limit, if that is looked at
    /// (`node_dirty_ok()`).
    pub(crate) fn node_dirty_ok(&self, node: NodeId) -> bool {
        if self.rules.dirty_spread == DirtySpread::Off {
            return true;
        }
        let dirty = self.stat.node(node, NodeStat::FileDirty) + self.stat.node(node, NodeStat::Writeback);
        dirty <= self.node_dirty_limit(node)
    }

    /// Dirty pages that a node may hold (`node_dirty_limit()`).
    fn node_dirty_limit(&self, node: NodeId) -> u64 {
        let memory = self.node_dirtyable(node);
        if self.tunables.dirty_bytes == 0 {
            return self.tunables.dirty_ratio * memory / 100;
        }
        let all: u64 = (0..self.nodes.len()).map(|n| self.node_dirtyable(NodeId(n as u8))).sum();
        let limit = u128::from(self.tunables.dirty_bytes.div_ceil(4096)) * u128::from(memory);
        (limit / u128::from(all.max(1))) as u64
    }

    /// Pages of a node that could hold dirty page cache: free and file pages, without those that must stay free
    /// (`node_dirtyable_memory()`, `calculate_totalreserve_pages()`).
    fn node_dirtyable(&self, node: NodeId) -> u64 {
        let zones = self.nodes[node.index()].zones.iter().map(|z| &self.zones[z.index()]);
        let (mut free, mut reserve) = (0, 0);
        for zone in zones {
            free += zone.free_pages;
            let lowmem = zone.lowmem_reserve.iter().max().copied().unwrap_or(0);
            reserve += (lowmem + zone.wmark(Wmark::High)).min(zone.managed);
        }
        let file = self.stat.node(node, NodeStat::InactiveFile) + self.stat.node(node, NodeStat::ActiveFile);
        free - free.min(reserve) + file
    }
}
