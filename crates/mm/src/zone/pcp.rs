//! Per-CPU page lists: what lets most allocations and frees pass by the zone's lock and buddy lists.
//!
//! Rule: each CPU keeps lists of free pages for each zone and migratetype. An empty list is refilled by a batch from
//! the buddy lists; when the CPU holds `high` pages, a batch goes back, oldest first, round robin over the lists. What a free puts at
//! the cold end goes back first; who reads takes from there ([`ReclaimedPages`](rules::ReclaimedPages)).
//! How large high and batch are is told in `pcp_batch`.
//! Source: `rmqueue_pcplist()`, `free_unref_page_commit()`, `free_pcppages_bulk()` (mm/page_alloc.c, 4.20, 6.1, 6.12).
//! Since/until: `PcpLists::OrderZero` (until 5.12) has order 0 only; later there are orders 1 to 3 and 9, too.
//! Abstracted: the lists are rings of frame numbers, not links in the frames. An allocation that fails does not halve the free count.
//! Omitted: a failed trylock.

use rules::PcpLists;
use units::{CpuId, Gfp, NodeId, Order, PAGEBLOCK_ORDER, Pfn, ZoneId};

use crate::{Frames, Kind, MemoryLayout, MigrateType, Mm};

use super::buddy::Place;
use super::fallback::Found;
use super::{AllocFlags, PcpLimits};

/// Lists for orders 0 to 3 (`NR_LOWORDER_PCP_LISTS`).
const LOW_ORDER_LISTS: usize = MigrateType::PCP_COUNT * (Order::COSTLY.0 as usize + 1);
/// Those and two for huge pages, movable and other (`NR_PCP_LISTS`).
pub(crate) const PCP_LISTS: usize = LOW_ORDER_LISTS + 2;
/// A double-ended ring of frame numbers; a list in the kernel. Head and tail run freely and are masked on use.
#[derive(Clone, Debug, Default)]
pub(crate) struct PcpList {
    ring: Vec<Pfn>,
    head: u32,
    tail: u32,
}

impl PcpList {
    #[inline]
    fn at(&self, position: u32) -> usize {
        position as usize & self.ring.len().wrapping_sub(1)
    }

    #[inline]
    fn len(&self) -> u32 {
        self.tail.wrapping_sub(self.head)
    }

    /// Makes room for `more` blocks.
    #[inline]
    fn reserve(&mut self, more: u32) {
        if (self.len() + more) as usize > self.ring.len() {
            self.grow(more);
        }
    }

    #[cold]
    fn grow(&mut self, more: u32) {
        let pfns: Vec<Pfn> = self.iter().collect();
        let size = (pfns.len() + more as usize).next_power_of_two().max(128);
        self.ring = vec![Pfn::NONE; size];
        self.ring[..pfns.len()].copy_from_slice(&pfns);
        (self.head, self.tail) = (0, pfns.len() as u32);
    }

    #[inline(always)]
    fn push(&mut self, pfn: Pfn, end: ListEnd) {
        match end {
            ListEnd::Hot => self.push_front(pfn),
            ListEnd::Cold => self.push_back(pfn),
        }
    }

    #[inline(always)]
    fn pop(&mut self, end: ListEnd) -> Option<Pfn> {
        match end {
            ListEnd::Hot => self.pop_front(),
            ListEnd::Cold => self.pop_back(),
        }
    }

    #[inline]
    fn push_front(&mut self, pfn: Pfn) {
        self.reserve(1);
        self.head = self.head.wrapping_sub(1);
        let at = self.at(self.head);
        self.ring[at] = pfn;
    }

    #[inline]
    fn push_back(&mut self, pfn: Pfn) {
        self.reserve(1);
        let at = self.at(self.tail);
        self.ring[at] = pfn;
        self.tail = self.tail.wrapping_add(1);
    }

    #[inline]
    fn pop_front(&mut self) -> Option<Pfn> {
        if self.head == self.tail {
            return None;
        }
        let pfn = self.ring[self.at(self.head)];
        self.head = self.head.wrapping_add(1);
        Some(pfn)
    }

    #[inline]
    fn pop_back(&mut self) -> Option<Pfn> {
        if self.head == self.tail {
            return None;
        }
        self.tail = self.tail.wrapping_sub(1);
        Some(self.ring[self.at(self.tail)])
    }

    /// Takes single pages off the back that form an aligned block in ascending order, up to `most`, and makes it one
    /// block; a single page is a block of order 0.
    ///
    /// Freeing them one by one would merge them to this block before it could merge with anything else, and would leave
    /// no trace of the smaller blocks on the lists.
    #[inline]
    fn pop_run(&mut self, frames: &mut Frames, most: u32) -> Option<(Pfn, Order)> {
        let first = self.pop_back()?;
        let like = frames[first];
        let (mut order, room) = (Order(0), most.min(self.len() + 1));
        while order < PAGEBLOCK_ORDER && first.0 & order.pages() == 0 && order.pages() * 2 <= room {
            let follows = |n: u32| {
                let pfn = self.ring[self.at(self.tail.wrapping_sub(n))];
                pfn == first.offset(n) && frames[pfn].is_like(&like)
            };
            if !(order.pages()..order.pages() * 2).all(follows) {
                break;
            }
            order = Order(order.0 + 1);
        }
        for n in 1..order.pages() {
            frames[first.offset(n)].set_kind(Kind::Tail, Order(0));
        }
        self.tail = self.tail.wrapping_sub(order.pages() - 1);
        Some((first, order))
    }

    /// The blocks that come off the back next, up to `most`.
    #[inline]
    fn last(&self, most: u32) -> impl Iterator<Item = Pfn> + '_ {
        (1..=most.min(self.len())).map(|n| self.ring[self.at(self.tail.wrapping_sub(n))])
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Pfn> + '_ {
        (0..self.len()).map(|n| self.ring[self.at(self.head.wrapping_add(n))])
    }
}

/// An end of a CPU's list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ListEnd {
    /// What its cache holds last.
    Hot,
    /// What goes back to the buddy lists next.
    Cold,
}

impl ListEnd {
    fn other(self) -> ListEnd {
        match self {
            ListEnd::Hot => ListEnd::Cold,
            ListEnd::Cold => ListEnd::Hot,
        }
    }

    /// The end that a request takes from.
    #[inline]
    pub(super) fn of(gfp: Gfp) -> ListEnd {
        if gfp.contains(Gfp::COLD) { ListEnd::Cold } else { ListEnd::Hot }
    }
}

/// The lists of one CPU in one zone (`struct per_cpu_pages`).
#[derive(Clone, Debug, Default)]
pub(crate) struct Pcp {
    pub(crate) lists: [PcpList; PCP_LISTS],
    /// Pages on all lists.
    pub(crate) count: u32,
    /// Pages at which some go back; tuned between the limits.
    pub(super) high: u32,
    /// The zone's limits.
    pub(super) limits: PcpLimits,
    /// log2 of the factor on the next refill.
    pub(super) alloc_factor: u8,
    /// log2 of the factor on the next batch that goes back.
    pub(super) free_factor: u8,
    /// Pages freed in a row, halved by an allocation.
    pub(super) free_count: u32,
    /// The last page freed had an order from 1 to 3.
    pub(super) previous_free_high_order: bool,
    /// A page came or went since the vmstat worker last looked.
    pub(crate) used: bool,
    /// Looks of the vmstat worker until some of a remote node's pages go back.
    pub(crate) expire: u8,
}

/// The lists of every CPU in every zone.
#[derive(Clone, Debug)]
pub struct Pcps {
    sets: Vec<Pcp>,
    cpu_nodes: Vec<NodeId>,
}

impl Pcps {
    /// Empty lists.
    pub fn new(layout: &MemoryLayout) -> Pcps {
        let nr_zones: usize = layout.nodes.iter().map(|n| n.zones.len()).sum();
        let sets = vec![Pcp::default(); nr_zones * layout.cpu_nodes.len()];
        Pcps { sets, cpu_nodes: layout.cpu_nodes.clone() }
    }

    /// CPUs of the machine.
    pub fn nr_cpus(&self) -> usize {
        self.cpu_nodes.len()
    }

    /// Pages on the lists of a CPU in a zone, and the number at which some go back.
    pub fn count_and_high(&self, cpu: CpuId, zone: ZoneId) -> (u32, u32) {
        let pcp = &self.sets[self.index(cpu, zone)];
        (pcp.count, pcp.high)
    }

    /// Node of a CPU.
    pub(crate) fn node_of(&self, cpu: CpuId) -> NodeId {
        self.cpu_nodes[cpu.index()]
    }

    #[inline]
    fn index(&self, cpu: CpuId, zone: ZoneId) -> usize {
        zone.index() * self.cpu_nodes.len() + cpu.index()
    }

    #[inline]
    pub(crate) fn of(&mut self, cpu: CpuId, zone: ZoneId) -> &mut Pcp {
        let index = self.index(cpu, zone);
        &mut self.sets[index]
    }

    /// Lets every CPU keep this many pages.
    #[cfg(test)]
    pub(crate) fn set_high(&mut self, pages: u32) {
        for pcp in &mut self.sets {
            pcp.limits.high_min = pages;
        }
    }

    /// CPUs of each node, in its order.
    pub(super) fn cpus_of_nodes(&self, nodes: usize) -> Vec<u64> {
        let mut cpus = vec![0; nodes];
        for node in &self.cpu_nodes {
            cpus[node.index()] += 1;
        }
        cpus
    }

    /// Sets the limits of all CPUs in one zone.
    pub(super) fn set_limits(&mut self, zone: ZoneId, limits: PcpLimits) {
        let (first, cpus) = (self.index(CpuId(0), zone), self.cpu_nodes.len());
        for pcp in &mut self.sets[first..first + cpus] {
            pcp.limits = limits;
        }
    }

    /// The lists of all CPUs in one zone.
    pub(crate) fn of_zone(&self, zone: ZoneId) -> &[Pcp] {
        let first = self.index(CpuId(0), zone);
        &self.sets[first..first + self.cpu_nodes.len()]
    }
}

/// Whether per-CPU lists hold this order (`pcp_allowed_order()`).
#[inline]
pub(crate) fn allows(rule: PcpLists, order: Order) -> bool {
    match rule {
        PcpLists::OrderZero => order.0 == 0,
        PcpLists::HighOrder | PcpLists::AutoTuned => order <= Order::COSTLY || order == PAGEBLOCK_ORDER,
    }
}

/// List of an order and type (`order_to_pindex()`).
#[inline]
fn list_index(order: Order, migratetype: MigrateType) -> usize {
    if order > Order::COSTLY {
        LOW_ORDER_LISTS + usize::from(migratetype == MigrateType::Movable)
    } else {
        MigrateType::PCP_COUNT * order.index() + migratetype as usize
    }
}

/// Order of a list (`pindex_to_order()`).
fn order_of_list(index: usize) -> Order {
    if index >= LOW_ORDER_LISTS { PAGEBLOCK_ORDER } else { Order((index / MigrateType::PCP_COUNT) as u8) }
}

impl Mm {
    /// Takes a page off the CPU's list if there is one. The page is Held.
    #[inline(always)]
    pub(crate) fn pop_pcp(
        &mut self,
        cpu: CpuId,
        zone: ZoneId,
        order: Order,
        migratetype: MigrateType,
        end: ListEnd,
    ) -> Option<Pfn> {
        let pcp = self.pcps.of(cpu, zone);
        let pfn = pcp.lists[list_index(order, migratetype)].pop(end)?;
        pcp.count -= order.pages();
        pcp.used = true;
        pcp.free_count >>= 1;
        pcp.free_factor >>= 1;
        self.frames[pfn].set_kind(Kind::Held, order);
        self.charge(self.costs.alloc_pcp);
        Some(pfn)
    }

    /// Takes a page off the CPU's list, which is refilled if empty (`rmqueue_pcplist()`). The page is Held.
    pub(crate) fn rmqueue_pcplist(
        &mut self,
        cpu: CpuId,
        zone: ZoneId,
        order: Order,
        migratetype: MigrateType,
        (flags, end): (AllocFlags, ListEnd),
    ) -> Option<Pfn> {
        if let Some(pfn) = self.pop_pcp(cpu, zone, order, migratetype, end) {
            return Some(pfn);
        }
        self.refill_pcp(cpu, zone, order, migratetype, (flags, end));
        self.pop_pcp(cpu, zone, order, migratetype, end)
    }

    /// Moves a batch from the buddy lists to an empty list (`rmqueue_bulk()`), the first to the end that is taken from.
    fn refill_pcp(
        &mut self,
        cpu: CpuId,
        zone: ZoneId,
        order: Order,
        migratetype: MigrateType,
        (flags, end): (AllocFlags, ListEnd),
    ) {
        let batch = self.refill_size(cpu, zone, order);
        let mut moved = 0;
        let mut last = Found::default();
        while moved < batch {
            let state = &mut self.zones[zone.index()];
            let run = state.rmqueue_run(&mut self.frames, order, migratetype, batch - moved);
            let (first, count) = match run {
                Some(run) => run,
                None => match self.rmqueue_buddy_lists(zone, order, migratetype, flags, &mut last) {
                    Some(pfn) => (pfn, 1),
                    None => break,
                },
            };
            let list = &mut self.pcps.of(cpu, zone).lists[list_index(order, migratetype)];
            list.reserve(count);
            for n in 0..count {
                let pfn = first.offset(n << order.0);
                self.frames[pfn].set_free(Kind::Pcp, order, migratetype);
                list.push(pfn, end.other());
            }
            moved += count;
        }
        let pages = moved * order.pages();
        self.pcps.of(cpu, zone).count += pages;
        self.account_free(zone, -i64::from(pages));
        self.charge_buddy(zone, u64::from(moved));
    }

    /// Puts a page on the CPU's list, and a batch back to the buddy lists when there are too many
    /// (`free_unref_page_commit()`). `block` is the type that the page keeps, `listed` and `end` where on which list it goes.
    #[inline(always)]
    pub(crate) fn free_to_pcp(
        &mut self,
        cpu: CpuId,
        zone: ZoneId,
        pfn: Pfn,
        order: Order,
        block: MigrateType,
        (listed, end): (MigrateType, ListEnd),
    ) {
        self.frames[pfn].set_free(Kind::Pcp, order, block);
        let index = list_index(order, listed);
        let rule = self.rules.pcp_lists;
        let pcp = self.pcps.of(cpu, zone);
        pcp.lists[index].push(pfn, end);
        pcp.count += order.pages();
        pcp.used = true;
        if rule == PcpLists::OrderZero {
            if pcp.count >= pcp.limits.high_min {
                let batch = pcp.limits.batch;
                self.free_pcppages_bulk(cpu, zone, batch);
            }
            return;
        }
        let free_high = match rule {
            PcpLists::AutoTuned => pcp.note_free(order),
            _ => pcp.free_factor > 0 && order.0 > 0 && order <= Order::COSTLY,
        };
        let state = &self.zones[zone.index()];
        if pcp.count >= pcp.high || free_high || state.reclaim_active || state.below_high {
            self.trim_pcp(cpu, zone, free_high, index);
        }
    }

    /// What a free triggers since 5.13 once there are many pages, or few in the zone (`nr_pcp_high()`, `nr_pcp_free()`).
    #[inline(never)]
    fn trim_pcp(&mut self, cpu: CpuId, zone: ZoneId, free_high: bool, index: usize) {
        let state = &self.zones[zone.index()];
        let (below_high, reclaim_active) = (state.below_high, state.reclaim_active);
        let rule = self.rules.pcp_lists;
        let pcp = self.pcps.of(cpu, zone);
        let count = match rule {
            PcpLists::AutoTuned => pcp.tuned_surplus(free_high, reclaim_active, below_high),
            _ => pcp.doubling_surplus(free_high, reclaim_active),
        };
        if count == 0 {
            return;
        }
        self.free_pcp_from(cpu, zone, count, index);
        if below_high && self.high_watermark_met(zone) {
            self.zones[zone.index()].below_high = false;
        }
    }

    /// Gives `count` pages back under the rule of 4.20: round robin over the three lists, one page more from each the
    /// longer no other list has any.
    #[cold]
    #[inline(never)]
    fn free_pcppages_bulk(&mut self, cpu: CpuId, zone: ZoneId, count: u32) {
        let zone_state = &mut self.zones[zone.index()];
        let strict = zone_state.strict_types;
        // What a task waits for must not merge unseen.
        let whole = zone_state.capture.map_or(u32::MAX, |capture| capture.order.pages());
        let pcp = self.pcps.of(cpu, zone);
        let mut left = count.min(pcp.count);
        let freed = left;
        pcp.count -= freed;
        for list in &pcp.lists[..MigrateType::PCP_COUNT] {
            self.frames.look_ahead(list.last(left).map(|pfn| Pfn(pfn.0 ^ 1)));
        }
        let (mut index, mut in_turn) = (0, 0);
        while left > 0 {
            loop {
                in_turn += 1;
                index = (index + 1) % MigrateType::PCP_COUNT;
                if pcp.lists[index].len() > 0 {
                    break;
                }
            }
            if in_turn == MigrateType::PCP_COUNT as u32 {
                in_turn = left;
            }
            while let Some((pfn, order)) = pcp.lists[index].pop_run(&mut self.frames, left.min(in_turn).min(whole)) {
                let kept = self.frames[pfn].migratetype();
                let migratetype = if strict { self.blocks.migratetype(pfn) } else { kept };
                zone_state.free_one_page(&mut self.frames, &mut self.blocks, pfn, order, migratetype, Place::Auto);
                left -= order.pages();
                in_turn -= order.pages();
                if left == 0 || in_turn == 0 {
                    break;
                }
            }
        }
        self.account_free(zone, i64::from(freed));
        self.charge_buddy(zone, u64::from(freed));
    }

    /// Gives at least `count` pages back, beginning with list `first` and emptying each list in turn (since 5.13).
    fn free_pcp_from(&mut self, cpu: CpuId, zone: ZoneId, count: u32, first: usize) {
        let zone_state = &mut self.zones[zone.index()];
        let strict = zone_state.strict_types;
        // What a task waits for must not merge unseen.
        let whole = zone_state.capture.map_or(u32::MAX, |capture| capture.order.pages());
        let pcp = self.pcps.of(cpu, zone);
        let count = count.min(pcp.count);
        let (mut freed, mut blocks, mut index) = (0, 0, first);
        while freed < count {
            let (listed, list) = (order_of_list(index), &mut pcp.lists[index]);
            while freed < count {
                let next = match listed {
                    Order(0) => list.pop_run(&mut self.frames, (count - freed).min(whole)),
                    _ => list.pop_back().map(|pfn| (pfn, listed)),
                };
                let Some((pfn, order)) = next else { break };
                let kept = self.frames[pfn].migratetype();
                let migratetype = if strict { self.blocks.migratetype(pfn) } else { kept };
                zone_state.free_one_page(&mut self.frames, &mut self.blocks, pfn, order, migratetype, Place::Auto);
                freed += order.pages();
                blocks += u64::from(order.pages() >> listed.0);
            }
            index = (index + 1) % PCP_LISTS;
        }
        pcp.count -= freed;
        self.account_free(zone, i64::from(freed));
        self.charge_buddy(zone, blocks);
    }

    /// Gives all pages of one CPU's lists back (`drain_pages()`).
    pub fn drain_pcp(&mut self, cpu: CpuId) {
        for zone in 0..self.zones.len() {
            let zone = ZoneId(zone as u8);
            let count = self.pcps.of(cpu, zone).count;
            if count > 0 {
                self.drain_pcp_zone(cpu, zone, count);
            }
        }
    }

    /// Gives all pages of all CPUs' lists back (`drain_all_pages()`).
    pub fn drain_pcp_all(&mut self) {
        for cpu in 0..self.pcps.nr_cpus() {
            self.drain_pcp(CpuId(cpu as u16));
        }
    }

    /// Gives some pages of one CPU's lists back.
    pub(crate) fn drain_pcp_zone(&mut self, cpu: CpuId, zone: ZoneId, count: u32) {
        self.pcps.of(cpu, zone).used = true;
        if self.rules.pcp_lists == PcpLists::OrderZero {
            self.free_pcppages_bulk(cpu, zone, count);
        } else {
            self.free_pcp_from(cpu, zone, count, 0);
        }
    }

    /// Free pages on the lists of all CPUs of a zone.
    pub fn pcp_pages(&self, zone: ZoneId) -> u64 {
        self.pcps.of_zone(zone).iter().map(|pcp| u64::from(pcp.count)).sum()
    }
}

impl Pcp {
    /// Holds a free page from the start.
    pub(super) fn start_with(&mut self, pfn: Pfn, migratetype: MigrateType) {
        // Reserved types have no lists of their own (`min_order` falls back to Movable in `free_unref_page()`).
        let migratetype =
            if (migratetype as usize) < MigrateType::PCP_COUNT { migratetype } else { MigrateType::Movable };
        self.lists[list_index(Order(0), migratetype)].push_back(pfn);
        self.count += 1;
    }

    /// May hold so many pages from the start.
    pub(super) fn start_high(&mut self, high: u32) {
        self.high = high;
    }
}
