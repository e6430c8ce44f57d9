//! Fallback: what happens when the lists of the requested type are empty.
//!
//! Rule: the largest free block of another type is taken, in a fixed order of types. A block of at least half a
//! pageblock's order, or any block for Unmovable and Reclaimable requests, takes its pageblock along if at least half
//! of that is free or in compatible use. A Movable request that cannot do so takes the smallest block instead, as
//! misplaced movable pages can be moved. Under ALLOC_NOFRAGMENT only whole pageblocks are taken.
//! Source: `__rmqueue_fallback()`, `steal_suitable_fallback()`, `find_suitable_fallback()`, `can_steal_fallback()`
//! (mm/page_alloc.c, 4.20); `__rmqueue_claim()`, `__rmqueue_steal()`, `try_to_steal_block()` (stable 6.12).
//! Since/until: `BlockStealing` (what is taken, and when the pageblock follows), `FreeListTypes`. Loose: the pageblock's free pages move to the requested type's lists even if it keeps
//! its type. Strict: the pageblock is claimed whole or only one block is taken and the rest stays where it was.
//! A bulk refill that had to steal goes on stealing, and saves the search ([`Found`]).
//! Omitted: CMA.

use rules::{BlockStealing, FreeListEnd, HighAtomicReserve};
use units::{Order, PAGEBLOCK_ORDER, PAGEBLOCK_PAGES, Pfn, ZoneId};

use crate::stat::ExtfragEvent;
use crate::trace::TraceEvent;
use crate::{MigrateType, Mm};

use super::{AllocFlags, FreeArea};

/// Types to take from, in order, for each type that per-CPU lists hold.
const FALLBACKS: [[MigrateType; 2]; MigrateType::PCP_COUNT] = [
    [MigrateType::Reclaimable, MigrateType::Movable],
    [MigrateType::Reclaimable, MigrateType::Unmovable],
    [MigrateType::Unmovable, MigrateType::Movable],
];

/// The first type in the order of fallbacks that has a free block in this area.
fn fallback_type(area: &FreeArea, wanted: MigrateType) -> Option<MigrateType> {
    FALLBACKS[wanted as usize].into_iter().find(|&t| !area.lists[t as usize].is_empty())
}

/// Whether a free block of `order` may take its pageblock along (`can_steal_fallback()`).
fn can_steal(order: u8, wanted: MigrateType, grouping_disabled: bool) -> bool {
    order >= PAGEBLOCK_ORDER.0 / 2
        || matches!(wanted, MigrateType::Reclaimable | MigrateType::Unmovable)
        || grouping_disabled
}

/// Pages in use of a pageblock that suit the requested type.
fn alike_pages(wanted: MigrateType, block: MigrateType, free: u32, movable: u32) -> u32 {
    match (wanted, block) {
        (MigrateType::Movable, _) => movable,
        // Everything that is in use and not movable is taken for compatible in a Movable block.
        (_, MigrateType::Movable) => PAGEBLOCK_PAGES - (free + movable),
        // Unmovable and Reclaimable pages cannot be told apart.
        _ => 0,
    }
}

/// Where the page before was found under one hold of the zone's lock: nobody adds to the lists meanwhile, so that the
/// search need not begin anew (`enum rmqueue_mode`, strict lists only).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Found {
    /// On the requested type's lists, or in a pageblock that was claimed for them.
    #[default]
    Normal,
    /// On another type's lists; no pageblock could be claimed.
    Steal,
}

impl Mm {
    /// Takes a block of the requested type off the buddy lists, falling back as far as the flags allow (`__rmqueue()`).
    /// The block is Held; `zone.free_pages` is updated, the gauge `nr_free_pages` is left to the caller.
    #[inline]
    pub(crate) fn rmqueue_buddy_lists(
        &mut self,
        zone: ZoneId,
        order: Order,
        wanted: MigrateType,
        flags: AllocFlags,
        last: &mut Found,
    ) -> Option<Pfn> {
        if *last == Found::Normal {
            let found = self.zones[zone.index()].rmqueue_smallest(&mut self.frames, order, wanted);
            if found.is_some() {
                return found;
            }
        }
        if self.zones[zone.index()].strict_types {
            self.rmqueue_strict(zone, order, wanted, flags, last)
        } else if self.rules.block_stealing == BlockStealing::HalfCompatible {
            self.rmqueue_fallback(zone, order, wanted, flags)
        } else {
            self.rmqueue_largest(zone, order, wanted).or_else(|| self.rmqueue_reserve(zone, order))
        }
    }

    /// Until 4.11: takes the largest block; its pageblock follows if the block is large or the request Reclaimable (since 4.0
    /// also Unmovable), and changes its type if half of it is free. What is split off a block goes where its pageblock's free
    /// pages go, or, by [`BlockStealing::HalfFreeRestStays`], stays with its old type unless the pageblock changes, or, by
    /// [`BlockStealing::HalfFreeRestFollows`], always goes to the requested type (`__rmqueue_fallback()`,
    /// `try_to_steal_freepages()`, `steal_suitable_fallback()`).
    #[cold]
    fn rmqueue_largest(&mut self, zone: ZoneId, order: Order, wanted: MigrateType) -> Option<Pfn> {
        let areas = &self.zones[zone.index()].free_area;
        let mut downwards = (order.0..=Order::MAX.0).rev();
        let (from, fallback) = downwards.find_map(|o| Some((o, fallback_type(&areas[o as usize], wanted)?)))?;
        let pfn = areas[from as usize].lists[fallback as usize].front();
        let listed = self.steal_freepages(zone, pfn, Order(from), wanted).unwrap_or(fallback);
        let state = &mut self.zones[zone.index()];
        state.take_block(&mut self.frames, pfn);
        state.free_pages += u64::from(Order(from).pages());
        state.expand(&mut self.frames, pfn, order, Order(from), listed);
        self.count_fallback(pfn, order, Order(from), wanted, fallback);
        Some(pfn)
    }

    /// Moves the free pages of a block's pageblock to the requested type if they may come along; says that type if what is
    /// split off the block goes there, too.
    fn steal_freepages(&mut self, zone: ZoneId, pfn: Pfn, from: Order, wanted: MigrateType) -> Option<MigrateType> {
        if from >= PAGEBLOCK_ORDER {
            self.change_pageblock_range(pfn, from, wanted);
            return Some(wanted);
        }
        let disabled = self.blocks.grouping_disabled();
        let rest_follows = self.rules.block_stealing == BlockStealing::HalfFreeRestFollows;
        let unmovable_stays = wanted == MigrateType::Unmovable && from.0 < PAGEBLOCK_ORDER.0 / 2 && !rest_follows;
        if !can_steal(from.0, wanted, disabled) || unmovable_stays && !disabled {
            return rest_follows.then_some(wanted);
        }
        self.charge(self.costs.steal_block);
        let tail = self.rules.free_list_end == FreeListEnd::Tail;
        let moved = self.zones[zone.index()].move_freepages_block(&mut self.frames, pfn, wanted, tail);
        let claimed = moved >= PAGEBLOCK_PAGES / 2 || disabled;
        if claimed {
            self.blocks.set_migratetype(pfn, wanted);
        }
        (claimed || self.rules.block_stealing != BlockStealing::HalfFreeRestStays).then_some(wanted)
    }

    /// Takes from the pageblocks that are set apart, where there are such.
    fn rmqueue_reserve(&mut self, zone: ZoneId, order: Order) -> Option<Pfn> {
        let reserve = self.rules.highatomic_reserve == HighAtomicReserve::MigrateReserve;
        let state = &mut self.zones[zone.index()];
        reserve.then(|| state.rmqueue_smallest(&mut self.frames, order, MigrateType::HighAtomic)).flatten()
    }

    /// Smallest order that may be taken from another type.
    fn min_fallback_order(order: Order, flags: AllocFlags) -> u8 {
        if flags.nofragment { order.0.max(PAGEBLOCK_ORDER.0) } else { order.0 }
    }

    /// Until 6.9: moves a block (and what goes with it) to the requested type's lists, then takes from there.
    #[cold]
    fn rmqueue_fallback(&mut self, zone: ZoneId, order: Order, wanted: MigrateType, flags: AllocFlags) -> Option<Pfn> {
        let disabled = self.blocks.grouping_disabled();
        let areas = &self.zones[zone.index()].free_area;
        let least = Self::min_fallback_order(order, flags);
        let largest = (least..=Order::MAX.0).rev().find_map(|o| Some((o, fallback_type(&areas[o as usize], wanted)?)));
        let (mut from, mut fallback) = largest?;
        let mut steal = can_steal(from, wanted, disabled);
        if !steal && wanted == MigrateType::Movable && from > order.0 {
            let mut upwards = (order.0..=Order::MAX.0).map(|o| (o, fallback_type(&areas[o as usize], wanted)));
            let smallest = upwards.find_map(|(o, t)| Some((o, t?)));
            (from, fallback) = smallest.expect("the largest block is still there");
            steal = can_steal(from, wanted, disabled);
        }
        let pfn = areas[from as usize].lists[fallback as usize].front();
        self.steal_suitable_fallback(zone, pfn, wanted, steal, flags);
        self.count_fallback(pfn, order, Order(from), wanted, fallback);
        self.zones[zone.index()].rmqueue_smallest(&mut self.frames, order, wanted)
    }

    /// Moves a free block to the requested type's list, with the pageblock's other free pages if it may, and changes the
    /// pageblock's type if half of it suits (4.20).
    fn steal_suitable_fallback(
        &mut self,
        zone: ZoneId,
        pfn: Pfn,
        wanted: MigrateType,
        whole_block: bool,
        flags: AllocFlags,
    ) {
        let order = self.frames[pfn].order();
        let block = self.blocks.migratetype(pfn);
        let tail = self.rules.free_list_end == FreeListEnd::Tail;
        if block != MigrateType::HighAtomic {
            if order >= PAGEBLOCK_ORDER {
                self.change_pageblock_range(pfn, order, wanted);
            } else {
                self.boost_watermark(zone, flags.kswapd);
                if whole_block && self.steal_pageblock(zone, pfn, wanted, block, tail) {
                    return;
                }
            }
        }
        self.zones[zone.index()].move_to_list(&mut self.frames, pfn, wanted, tail);
    }

    /// Moves the free pages of a whole pageblock; false if there are none that can be moved.
    fn steal_pageblock(&mut self, zone: ZoneId, pfn: Pfn, wanted: MigrateType, block: MigrateType, tail: bool) -> bool {
        self.charge(self.costs.steal_block);
        let (_, movable) = self.zones[zone.index()].count_block(&self.frames, pfn);
        let free = self.zones[zone.index()].move_freepages_block(&mut self.frames, pfn, wanted, tail);
        if free == 0 {
            return false;
        }
        if self.suits(wanted, block, free, movable) {
            self.blocks.set_migratetype(pfn, wanted);
        }
        true
    }

    /// Whether at least half of a pageblock is free or in compatible use.
    fn suits(&self, wanted: MigrateType, block: MigrateType, free: u32, movable: u32) -> bool {
        let alike = alike_pages(wanted, block, free, movable);
        free + alike >= PAGEBLOCK_PAGES / 2 || self.blocks.grouping_disabled()
    }

    /// Since 6.12: claims a pageblock, unless the page before could not, or takes one block.
    #[cold]
    fn rmqueue_strict(
        &mut self,
        zone: ZoneId,
        order: Order,
        wanted: MigrateType,
        flags: AllocFlags,
        last: &mut Found,
    ) -> Option<Pfn> {
        if *last == Found::Normal
            && let Some(pfn) = self.rmqueue_claim(zone, order, wanted, flags)
        {
            return Some(pfn);
        }
        let stolen = self.rmqueue_steal(zone, order, wanted, flags);
        if stolen.is_some() {
            *last = Found::Steal;
        }
        stolen
    }

    /// Since 6.12: claims a whole pageblock, the one with the largest free block first (`__rmqueue_claim()`).
    #[cold]
    fn rmqueue_claim(&mut self, zone: ZoneId, order: Order, wanted: MigrateType, flags: AllocFlags) -> Option<Pfn> {
        let disabled = self.blocks.grouping_disabled();
        for from in (Self::min_fallback_order(order, flags)..=Order::MAX.0).rev() {
            let area = &self.zones[zone.index()].free_area[from as usize];
            let Some(fallback) = fallback_type(area, wanted) else { continue };
            if !can_steal(from, wanted, disabled) {
                break;
            }
            let pfn = area.lists[fallback as usize].front();
            if let Some(taken) = self.claim_block(zone, pfn, order, wanted, flags) {
                self.count_fallback(taken, order, Order(from), wanted, fallback);
                return Some(taken);
            }
        }
        None
    }

    /// Changes the type of the pageblock that a free block lies in, and takes from it (`try_to_steal_block()`).
    fn claim_block(
        &mut self,
        zone: ZoneId,
        pfn: Pfn,
        order: Order,
        wanted: MigrateType,
        flags: AllocFlags,
    ) -> Option<Pfn> {
        let block = self.blocks.migratetype(pfn);
        if block == MigrateType::HighAtomic {
            return None;
        }
        let from = self.frames[pfn].order();
        if from >= PAGEBLOCK_ORDER {
            let state = &mut self.zones[zone.index()];
            state.take_block(&mut self.frames, pfn);
            state.free_pages += u64::from(from.pages());
            self.change_pageblock_range(pfn, from, wanted);
            self.zones[zone.index()].expand(&mut self.frames, pfn, order, from, wanted);
            return Some(pfn);
        }
        self.boost_watermark(zone, flags.kswapd);
        self.charge(self.costs.steal_block);
        let (free, movable) = self.zones[zone.index()].count_block(&self.frames, pfn);
        // Nothing was counted if the zone does not span the pageblock.
        if free == 0 || !self.suits(wanted, block, free, movable) {
            return None;
        }
        let tail = self.rules.free_list_end == FreeListEnd::Tail;
        let state = &mut self.zones[zone.index()];
        state.move_freepages_block(&mut self.frames, pfn, wanted, tail);
        self.blocks.set_migratetype(pfn, wanted);
        state.rmqueue_smallest(&mut self.frames, order, wanted)
    }

    /// Since 6.12: takes the smallest block of another type and leaves the rest of it there (`__rmqueue_steal()`).
    #[cold]
    fn rmqueue_steal(&mut self, zone: ZoneId, order: Order, wanted: MigrateType, flags: AllocFlags) -> Option<Pfn> {
        if flags.nofragment {
            return None;
        }
        let state = &mut self.zones[zone.index()];
        let mut upwards = (order.0..=Order::MAX.0).map(|o| (o, fallback_type(&state.free_area[o as usize], wanted)));
        let (from, fallback) = upwards.find_map(|(o, t)| Some((o, t?)))?;
        let pfn = state.rmqueue_smallest(&mut self.frames, order, fallback)?;
        self.count_fallback(pfn, order, Order(from), wanted, fallback);
        Some(pfn)
    }

    /// Gives every pageblock of a free block a type (`change_pageblock_range()`).
    pub(crate) fn change_pageblock_range(&mut self, pfn: Pfn, order: Order, migratetype: MigrateType) {
        debug_assert!(order >= PAGEBLOCK_ORDER);
        for block in 0..1 << (order.0 - PAGEBLOCK_ORDER.0) {
            self.blocks.set_migratetype(pfn.offset(block * PAGEBLOCK_PAGES), migratetype);
        }
    }

    /// Emits `mm_page_alloc_extfrag` and counts it: fragmenting ones by the type asked for, others together.
    fn count_fallback(
        &mut self,
        pfn: Pfn,
        order: Order,
        fallback_order: Order,
        wanted: MigrateType,
        fallback: MigrateType,
    ) {
        let event = match wanted {
            _ if fallback_order >= PAGEBLOCK_ORDER => ExtfragEvent::Whole,
            MigrateType::Unmovable => ExtfragEvent::Unmovable,
            MigrateType::Reclaimable => ExtfragEvent::Reclaimable,
            _ => ExtfragEvent::Movable,
        };
        self.stat.count_extfrag(event);
        let change_ownership = self.blocks.migratetype(pfn) == wanted;
        self.trace.emit(TraceEvent::PageAllocExtfrag {
            pfn,
            alloc_order: order,
            fallback_order,
            alloc_migratetype: wanted,
            fallback_migratetype: fallback,
            change_ownership,
        });
    }
}
