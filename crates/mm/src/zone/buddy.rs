//! The buddy lists of a zone: splitting on allocation, merging on free.
//!
//! Rule: a free block of order n starts at a multiple of 2^n frames and merges with its buddy when that is a free
//! block of the same order in the same zone, up to order 10. Only the head of a free block carries its order; all
//! its other frames are tails. An allocation takes the smallest block that is large enough, keeps its lower part
//! and lists the upper halves. A freed block whose next larger buddy is free goes to the tail of its list, as it
//! will probably merge soon.
//! Source: `__free_one_page()`, `__rmqueue_smallest()`, `expand()`, `buddy_merge_likely()` (mm/page_alloc.c, 4.20
//! and 6.12), `compaction_capture()` (6.12).
//! Since/until: with `FreeListTypes::Loose` (until 6.9) blocks of two pageblocks with different types merge and stay
//! on the list of the one freed last; with `Strict` (6.10) the absorbed pageblock changes its type, and HighAtomic
//! blocks merge with their own kind only.
//! A block of the order that the task under way compacts for is its own (`compaction_capture()`), unless it would put
//! another type's small block into a Movable pageblock.
//! Omitted: page reporting, guard pages, shuffling.

use units::{Order, PAGEBLOCK_ORDER, PAGEBLOCK_PAGES, Pfn};

use crate::{Frame, Frames, Kind, MigrateType};

use super::{PageBlocks, Zone};

/// Where a block is put on its list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// At the head, unless it will probably merge soon.
    Auto,
    /// At the tail (`FPI_TO_TAIL`).
    Tail,
}

impl Zone {
    /// Puts a block that is on no list on a free list, without counting it.
    #[inline]
    fn link(&mut self, frames: &mut Frames, pfn: Pfn, order: Order, migratetype: MigrateType, tail: bool) {
        frames[pfn].set_free(Kind::Buddy, order, migratetype);
        let list = &mut self.free_area[order.index()].lists[migratetype as usize];
        if tail {
            list.push_back(frames, pfn);
        } else {
            list.push_front(frames, pfn);
        }
    }

    /// Takes a free block off its list, without counting it; gives back the type of the list.
    #[inline]
    fn unlink(&mut self, frames: &mut Frames, pfn: Pfn, order: Order) -> MigrateType {
        let migratetype = frames[pfn].migratetype();
        self.free_area[order.index()].lists[migratetype as usize].remove(frames, pfn);
        migratetype
    }

    /// Moves a free block to the list of another type.
    pub(crate) fn move_to_list(&mut self, frames: &mut Frames, pfn: Pfn, to: MigrateType, tail: bool) {
        let order = frames[pfn].order();
        self.unlink(frames, pfn, order);
        self.link(frames, pfn, order, to, tail);
    }

    /// Whether the given buddy of a block of this order is free and in the zone.
    #[inline]
    fn is_free_buddy(&self, frames: &Frames, blocks: &PageBlocks, buddy: Pfn, order: Order) -> bool {
        // Smaller buddies share a pageblock, which lies in one zone.
        frames.get(buddy).is_some_and(|frame| frame.is_buddy(order))
            && (order < PAGEBLOCK_ORDER || blocks.zone_of(buddy) == self.id)
    }

    /// Gives a block back to the buddy lists, merges it as far as it goes, and counts its pages as free.
    pub(crate) fn free_one_page(
        &mut self,
        frames: &mut Frames,
        blocks: &mut PageBlocks,
        pfn: Pfn,
        order: Order,
        migratetype: MigrateType,
        place: Place,
    ) {
        let (mut pfn, mut order) = (pfn, order);
        debug_assert!(pfn.0 & (order.pages() - 1) == 0, "{pfn:?} is not aligned to its order {}", order.0);
        debug_assert!(blocks.zone_of(pfn) == self.id);
        self.free_pages += u64::from(order.pages());
        while order < Order::MAX {
            if self.capture.is_some() && self.captures(frames, pfn, order, migratetype) {
                return;
            }
            let buddy = Pfn(pfn.0 ^ order.pages());
            if !self.is_free_buddy(frames, blocks, buddy, order) {
                break;
            }
            if order >= PAGEBLOCK_ORDER && !self.merge_types(blocks, buddy, migratetype) {
                break;
            }
            self.unlink(frames, buddy, order);
            let upper = Pfn(pfn.0 | order.pages());
            frames[upper].set_kind(Kind::Tail, Order(0));
            pfn = Pfn(pfn.0 & !order.pages());
            order = Order(order.0 + 1);
        }
        let tail = place == Place::Tail || self.merge_likely(frames, blocks, pfn, order);
        self.link(frames, pfn, order, migratetype, tail);
    }

    /// Whether the task under way takes a block that comes free; it is Held then, and discounted
    /// (`compaction_capture()`).
    #[cold]
    fn captures(&mut self, frames: &mut Frames, pfn: Pfn, order: Order, migratetype: MigrateType) -> bool {
        let Some(capture) = self.capture.as_mut().filter(|capture| capture.wants(order, migratetype)) else {
            return false;
        };
        capture.page = Some(pfn);
        frames[pfn].set_kind(Kind::Held, order);
        self.free_pages -= u64::from(order.pages());
        true
    }

    /// Whether a whole pageblock of `migratetype` may merge with a free buddy; under strict lists the buddy's block
    /// takes that type.
    fn merge_types(&self, blocks: &mut PageBlocks, buddy: Pfn, migratetype: MigrateType) -> bool {
        let other = blocks.migratetype(buddy);
        if other == migratetype || !self.strict_types {
            return true;
        }
        let mergeable = |t: MigrateType| (t as usize) < MigrateType::PCP_COUNT;
        if !mergeable(other) || !mergeable(migratetype) {
            return false;
        }
        blocks.set_migratetype(buddy, migratetype);
        true
    }

    /// Whether the block will probably merge soon: the buddy of the block that it and its own buddy would form is
    /// free (`buddy_merge_likely()`).
    #[inline]
    fn merge_likely(&self, frames: &Frames, blocks: &PageBlocks, pfn: Pfn, order: Order) -> bool {
        if order.0 + 2 > Order::MAX.0 {
            return false;
        }
        let (higher, above) = (pfn.0 & !order.pages(), Order(order.0 + 1));
        self.is_free_buddy(frames, blocks, Pfn(higher ^ above.pages()), above)
    }

    /// Takes the smallest block of at least `order` off the lists of one type, splits it, and discounts what is
    /// returned (`__rmqueue_smallest()`). The block is Held.
    #[inline]
    pub(crate) fn rmqueue_smallest(
        &mut self,
        frames: &mut Frames,
        order: Order,
        migratetype: MigrateType,
    ) -> Option<Pfn> {
        let (pfn, from) = self.pop_smallest(frames, order, migratetype)?;
        self.expand(frames, pfn, order, from, migratetype);
        Some(pfn)
    }

    /// Takes the smallest block of at least `order` off its list, without counting or splitting it.
    #[inline]
    fn pop_smallest(&mut self, frames: &mut Frames, order: Order, migratetype: MigrateType) -> Option<(Pfn, Order)> {
        for (above, area) in self.free_area[order.index()..].iter_mut().enumerate() {
            if let Some(pfn) = area.lists[migratetype as usize].pop_front(frames) {
                return Some((pfn, Order(order.0 + above as u8)));
            }
        }
        None
    }

    /// What up to `most` calls of [`Zone::rmqueue_smallest`] in a row would take from one free block: its lowest
    /// blocks of `order`, as many as it has. The first of them is given back with their number; they are counted but
    /// stay to be marked.
    ///
    /// All lists between `order` and the block's own order are empty, or the block would not be the smallest. So each
    /// call would take what the one before split off, and what is left in the end is one block of each order in which
    /// a bit of the remainder is set.
    pub(crate) fn rmqueue_run(
        &mut self,
        frames: &mut Frames,
        order: Order,
        migratetype: MigrateType,
        most: u32,
    ) -> Option<(Pfn, u32)> {
        let (pfn, from) = self.pop_smallest(frames, order, migratetype)?;
        let taken = most.min(1 << (from.0 - order.0));
        let (mut at, end) = (pfn.0 + (taken << order.0), pfn.0 + from.pages());
        while at < end {
            // Everything below the lowest set bit is taken already.
            let rest = Order((at - pfn.0).trailing_zeros() as u8);
            self.link(frames, Pfn(at), rest, migratetype, false);
            at += rest.pages();
        }
        self.free_pages -= u64::from(taken << order.0);
        Some((pfn, taken))
    }

    /// Splits a block that is on no list: lists its upper halves, holds the lowest part and discounts it.
    #[inline]
    pub(crate) fn expand(&mut self, frames: &mut Frames, pfn: Pfn, low: Order, high: Order, listed: MigrateType) {
        let mut order = high.0;
        while order > low.0 {
            order -= 1;
            self.link(frames, pfn.offset(1 << order), Order(order), listed, false);
        }
        frames[pfn].set_kind(Kind::Held, low);
        self.free_pages -= u64::from(low.pages());
    }

    /// Takes a given free block off its list whole, holds it and discounts it.
    pub(crate) fn take_block(&mut self, frames: &mut Frames, pfn: Pfn) -> Order {
        assert!(frames[pfn].kind() == Kind::Buddy, "{pfn:?} does not head a free block");
        let order = frames[pfn].order();
        self.unlink(frames, pfn, order);
        frames[pfn].set_kind(Kind::Held, order);
        self.free_pages -= u64::from(order.pages());
        order
    }

    /// Moves the free pages of a pageblock to the lists of another type; gives back their number
    /// (`move_freepages_block()`). The block's own type stays.
    pub(crate) fn move_freepages_block(&mut self, frames: &mut Frames, pfn: Pfn, to: MigrateType, tail: bool) -> u32 {
        let Some(start) = self.whole_pageblock(pfn) else { return 0 };
        let (mut at, end, mut moved) = (start.0, start.0 + PAGEBLOCK_PAGES, 0);
        while at < end {
            let frame = &frames[Pfn(at)];
            let step = step_of(frame);
            if frame.kind() == Kind::Buddy {
                self.move_to_list(frames, Pfn(at), to, tail);
                moved += step;
            }
            at += step;
        }
        moved
    }

    /// Free pages of a pageblock, and those in use that could be migrated.
    pub(crate) fn count_block(&self, frames: &Frames, pfn: Pfn) -> (u32, u32) {
        let Some(start) = self.whole_pageblock(pfn) else { return (0, 0) };
        let (mut at, end) = (start.0, start.0 + PAGEBLOCK_PAGES);
        let (mut free, mut movable) = (0, 0);
        while at < end {
            let frame = &frames[Pfn(at)];
            let step = step_of(frame);
            if frame.kind() == Kind::Buddy {
                free += step;
            } else if frame.is_lru_kind() && frame.has(Frame::LRU) {
                movable += step.min(end - at);
            }
            at += step;
        }
        (free, movable)
    }

    /// First frame of the pageblock if the zone spans all of it; the kernel moves nothing in a block that it does not.
    fn whole_pageblock(&self, pfn: Pfn) -> Option<Pfn> {
        let start = pfn.align_down(PAGEBLOCK_ORDER);
        let end = u64::from(start.0) + u64::from(PAGEBLOCK_PAGES);
        let zone_end = u64::from(self.start.0) + self.spanned;
        (start >= self.start && end <= zone_end).then_some(start)
    }
}

/// Frames to go to the next head.
#[inline]
fn step_of(frame: &Frame) -> u32 {
    match frame.kind() {
        Kind::Reserved | Kind::Tail => 1,
        _ => frame.nr_pages(),
    }
}
