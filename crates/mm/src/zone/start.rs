//! A zone as it was at some moment, in place of one where all memory is free.
//!
//! Rule: a free block lies in a pageblock of its own type, and beside no free buddy, so that none merges.
//! Source: `/proc/pagetypeinfo` and `/proc/zoneinfo`, which tell numbers and no places.
//! Abstracted: what boot has used is together at one end of the zone and whole free blocks at the other, which is the end that is handed
//! out last ([`FreeListEnd`]): since 5.10 pageblocks of the rarer types stand lowest and whole free ones highest, and the lowest of these go
//! first, until 5.9 the other way round (a guest of 3.19 that was looked at after its boot had the kernel's, the agent's and all slabs'
//! pages in its highest 40 pageblocks), until 4.3 with MIGRATE_RESERVE lowest, only what pads the kernel's image lies where that is, Movable and in use; what is free of a pageblock is cut from as few pieces as possible. All
//! else that is in use is kernel memory that stays. Where free Movable blocks, and the pages that the caller allocates next, need more
//! pageblocks than the others leave, some of those lie in memory that is not managed.

use std::collections::{BTreeSet, VecDeque};

use rules::{FreeListEnd, HighAtomicReserve};
use thiserror::Error;
use units::{CpuId, Order, PAGEBLOCK_ORDER, PAGEBLOCK_PAGES, Pfn, ZoneId};

use crate::{Kind, MigrateType, Mm, ZoneKind};

use super::Watermarks;
use super::buddy::Place;
use super::image::KernelImage;

/// Numbers of free blocks, by order.
type FreeBlocks = [u64; Order::MAX.0 as usize + 1];

/// Pageblocks that are free as a whole.
fn whole_pageblocks(free: &FreeBlocks) -> u64 {
    free[PAGEBLOCK_ORDER.index()] + 2 * free[Order::MAX.index()]
}

/// What was in a zone.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ZoneStart {
    /// Pageblocks by type; Movable are all that the others leave, whatever stands here.
    pub pageblocks: [u64; MigrateType::COUNT],
    /// Free blocks by type and order.
    pub free: [FreeBlocks; MigrateType::COUNT],
    /// Each CPU's lists: pages on them, and how many may be.
    pub pcp: Vec<(u32, u32)>,
    /// Pages kept from requests that may use a higher zone, by its kind. A kernel computes them before it frees what only its boot
    /// needed, so that they are less than what the managed pages give; without them it is that.
    pub lowmem_reserve: Option<[u64; ZoneKind::COUNT]>,
    /// Watermarks min, low and high. A kernel computes them, and the batch, as it boots, before it frees what only its boot needed, and
    /// anew when a setting that they follow from is written; without them they are what the managed pages give.
    pub watermarks: Option<[u64; 3]>,
    /// Pages that go to or from a CPU's lists at once.
    pub pcp_batch: Option<u32>,
    /// Pages in use that the caller will allocate next: the first CPU's lists hold them too.
    pub spare: u32,
    /// The same of pages of the kernel: the page tables of those.
    pub spare_kernel: u32,
    /// The kernel's image, if it is known and lies in this zone.
    pub image: Option<KernelImage>,
}

impl ZoneStart {
    /// Pages that are on CPUs' lists.
    fn on_lists(&self) -> u64 {
        self.pcp.iter().map(|(count, _)| u64::from(*count)).sum::<u64>() + u64::from(self.spare)
    }

    /// Takes those free Movable blocks out that are whole pieces of what is free of the image, and their frames out of `gaps`.
    fn take_free_gaps(&mut self, gaps: &mut Vec<Pfn>) -> Vec<(Pfn, Order)> {
        if !self.image.as_ref().is_some_and(|image| image.free) {
            return Vec::new();
        }
        let mut taken: Vec<(Pfn, Order)> = Vec::new();
        let runs = gaps.chunk_by(|a, b| b.0 == a.0 + 1 && b.0 % PAGEBLOCK_PAGES != 0);
        for run in runs {
            let mut pieces = Pieces::default();
            pieces.add(run[0].0, run[0].0 + run.len() as u32);
            let orders = (0..).zip(pieces.0).filter(|(order, _)| *order < PAGEBLOCK_ORDER.0);
            for (order, piece) in orders.flat_map(|(order, pieces)| pieces.into_iter().map(move |piece| (order, piece)))
            {
                let left = &mut self.free[MigrateType::Movable as usize][usize::from(order)];
                if *left > 0 {
                    *left -= 1;
                    taken.push((piece.first, Order(order)));
                }
            }
        }
        gaps.retain(|pfn| !taken.iter().any(|(first, order)| pfn.align_down(*order) == *first));
        taken
    }
}

/// A state that a zone cannot be in.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("zone {zone}: {what}")]
pub struct StartError {
    /// Name of the zone.
    pub zone: &'static str,
    /// What does not fit.
    pub what: String,
}

/// Frames in use, in aligned pieces by order. A piece that was cut keeps a frame in use, so what is cut off has no
/// free buddy.
#[derive(Clone, Debug, Default)]
struct Pieces([VecDeque<Piece>; PAGEBLOCK_ORDER.0 as usize + 1]);

/// One of them.
#[derive(Clone, Copy, Debug)]
struct Piece {
    first: Pfn,
    /// Whether nothing was cut off: it is as large as it can be, so its buddy is not memory that can all become free.
    whole: bool,
}

impl Pieces {
    /// Adds frames `from` to before `to`, all of one pageblock, in the largest aligned pieces.
    fn add(&mut self, mut from: u32, to: u32) {
        while from < to {
            let aligned = from.trailing_zeros().min(u32::from(PAGEBLOCK_ORDER.0));
            let order = aligned.min((to - from).ilog2());
            self.0[order as usize].push_back(Piece { first: Pfn(from), whole: true });
            from += 1 << order;
        }
    }

    /// Cuts the upper part off the smallest piece that is larger; where there is none, takes a whole one.
    fn cut(&mut self, order: Order) -> Option<Pfn> {
        let Some(mut larger) = (order.index() + 1..self.0.len()).find(|larger| !self.0[*larger].is_empty()) else {
            let same = &mut self.0[order.index()];
            let at = same.iter().position(|piece| piece.whole)?;
            return Some(same.remove(at)?.first);
        };
        let first = self.0[larger].pop_front()?.first;
        while larger > order.index() + 1 {
            larger -= 1;
            self.0[larger].push_front(Piece { first: first.offset(1 << larger), whole: false });
        }
        self.0[order.index()].push_front(Piece { first, whole: false });
        Some(first.offset(order.pages()))
    }

    /// How many pageblocks free blocks of these numbers are cut from.
    fn pageblocks_for(free: &FreeBlocks) -> u64 {
        let (mut pieces, mut pageblocks) = (Pieces::default(), 0);
        for order in (0..PAGEBLOCK_ORDER.0).rev().map(Order) {
            for _ in 0..free[order.index()] {
                while pieces.cut(order).is_none() {
                    pieces.add(0, PAGEBLOCK_PAGES);
                    pageblocks += 1;
                }
            }
        }
        pageblocks + whole_pageblocks(free)
    }

    /// All frames.
    fn frames(&self) -> impl Iterator<Item = Pfn> + '_ {
        let of_order = |(order, pieces): (usize, &VecDeque<Piece>)| {
            pieces.iter().flat_map(|piece| (0..1 << order).map(|n| piece.first.offset(n))).collect::<Vec<_>>()
        };
        self.0.iter().enumerate().flat_map(of_order)
    }
}

impl Mm {
    /// Puts a zone whose memory is all free into the state `start`.
    ///
    /// # Errors
    /// The zone has no room for it.
    pub fn start_zone(&mut self, zone: ZoneId, start: &ZoneStart) -> Result<(), StartError> {
        self.set_boot_limits(zone, start);
        self.take_all(zone);
        let mut gaps = start.image.as_ref().map(|image| self.free_image_gaps(zone, image)).unwrap_or_default();
        let in_gap: BTreeSet<Pfn> = gaps.iter().map(|pfn| pfn.align_down(PAGEBLOCK_ORDER)).collect();
        let (mut blocks, unmanaged) = self.blocks_in_boot_order(zone);
        blocks.retain(|block| !in_gap.contains(block));
        let mut left = start.clone();
        let free_gaps = left.take_free_gaps(&mut gaps);
        let room = blocks.len() as u64;
        let managed = self.leave_to_movable(&left, room, gaps.len() as u64, &unmanaged);
        let mut pieces: [Pieces; MigrateType::COUNT] = Default::default();
        let rare = MigrateType::ALL.into_iter().filter(|migratetype| *migratetype != MigrateType::Movable);
        for migratetype in rare.chain([MigrateType::Movable]) {
            let index = migratetype as usize;
            let wanted = if migratetype == MigrateType::Movable { blocks.len() } else { managed[index] as usize };
            if wanted > blocks.len() {
                let what = format!("no room for {wanted} pageblocks of type {}", migratetype.name());
                return Err(self.start_error(zone, what));
            }
            let own = self.own_blocks(&mut blocks, wanted, migratetype, &left.free[index]);
            pieces[index] = self.start_type(zone, migratetype, own, &left.free[index])?;
        }
        for (pfn, order) in free_gaps {
            self.start_free(zone, pfn, order, MigrateType::Movable);
        }
        self.start_pcps(zone, &left, &gaps, &pieces)
    }

    /// What boot computed from the memory that was managed by then; the batch last, which watermarks are needed for.
    fn set_boot_limits(&mut self, zone: ZoneId, start: &ZoneStart) {
        let state = &mut self.zones[zone.index()];
        if let Some(reserve) = start.lowmem_reserve {
            state.lowmem_reserve = reserve;
        }
        if let Some([min, low, high]) = start.watermarks {
            state.watermarks = Watermarks { min, low, high, promo: high + high.saturating_sub(low) };
            state.reset_batch();
        }
        if let Some(batch) = start.pcp_batch {
            // Until 5.12 the least zones have one of 0, which is shown as 1, and lists that hold nothing.
            let holds_none = start.pcp.iter().all(|(_, high)| *high == 0);
            self.set_pcp_batch(zone, if batch == 1 && holds_none { 0 } else { batch });
        }
    }

    /// Pageblocks of each type, of `room` that have managed memory: what the free Movable blocks need is left to them, and `unmanaged`
    /// pageblocks get the types of as many others as that takes. Of what is on lists, `in_gaps` pages lie elsewhere.
    fn leave_to_movable(
        &mut self,
        start: &ZoneStart,
        room: u64,
        in_gaps: u64,
        unmanaged: &[Pfn],
    ) -> [u64; MigrateType::COUNT] {
        let mut managed = start.pageblocks;
        let free = &start.free[MigrateType::Movable as usize];
        let free_pages: u64 = (0..).zip(free).map(|(order, blocks)| blocks << order).sum();
        let movable = Pieces::pageblocks_for(free)
            .max((free_pages + start.on_lists().saturating_sub(in_gaps)).div_ceil(u64::from(PAGEBLOCK_PAGES)));
        let rare = MigrateType::ALL.into_iter().filter(|migratetype| *migratetype != MigrateType::Movable);
        let others: u64 = rare.clone().map(|migratetype| managed[migratetype as usize]).sum();
        let mut lacking = (movable + others).saturating_sub(room);
        let mut unmanaged = unmanaged.iter();
        for migratetype in rare {
            let index = migratetype as usize;
            let own = Pieces::pageblocks_for(&start.free[index]);
            while lacking > 0 && managed[index] > own {
                let Some(pfn) = unmanaged.next() else { return managed };
                self.blocks.set_migratetype(*pfn, migratetype);
                managed[index] -= 1;
                lacking -= 1;
            }
        }
        managed
    }

    pub(crate) fn start_error(&self, zone: ZoneId, what: String) -> StartError {
        StartError { zone: self.zones[zone.index()].kind.name(), what }
    }

    /// Takes every free block into use.
    fn take_all(&mut self, zone: ZoneId) {
        let state = &mut self.zones[zone.index()];
        let lists = state.free_area.iter().flat_map(|area| &area.lists);
        let free: Vec<Pfn> = lists.flat_map(|list| list.iter(&self.frames)).collect();
        let mut taken = 0;
        for pfn in free {
            let order = state.take_block(&mut self.frames, pfn);
            taken += i64::from(order.pages());
            for frame in (0..order.pages()).map(|n| pfn.offset(n)) {
                self.frames[frame].set_kind(Kind::Kernel, Order(0));
            }
        }
        self.account_free(zone, -taken);
    }

    /// The pageblocks that have managed memory, those that boot uses first in front, and the others.
    fn blocks_in_boot_order(&self, zone: ZoneId) -> (Vec<Pfn>, Vec<Pfn>) {
        let state = &self.zones[zone.index()];
        let (first, end) = (state.start.align_down(PAGEBLOCK_ORDER).0, state.start.0 + state.spanned as u32);
        let all = (first..end).step_by(PAGEBLOCK_PAGES as usize).map(Pfn);
        let (mut blocks, unmanaged): (Vec<Pfn>, Vec<Pfn>) =
            all.partition(|block| (0..PAGEBLOCK_PAGES).any(|n| self.is_managed(block.offset(n))));
        self.sort_in_boot_order(&mut blocks);
        (blocks, unmanaged)
    }

    fn sort_in_boot_order(&self, blocks: &mut [Pfn]) {
        blocks.sort_unstable();
        if self.rules.free_list_end == FreeListEnd::Head {
            blocks.reverse();
            // What of a pageblock is not managed is the firmware's or the kernel's: no large block is free there.
            blocks.sort_by_key(|block| self.is_managed_whole(*block));
        }
    }

    fn is_managed_whole(&self, block: Pfn) -> bool {
        self.managed_pages(&[block]) == u64::from(PAGEBLOCK_PAGES)
    }

    fn managed_pages(&self, blocks: &[Pfn]) -> u64 {
        let frames = blocks.iter().flat_map(|block| (0..PAGEBLOCK_PAGES).map(|n| block.offset(n)));
        frames.filter(|pfn| self.is_managed(*pfn)).count() as u64
    }

    fn is_managed(&self, pfn: Pfn) -> bool {
        self.frames.get(pfn).is_some_and(|frame| frame.kind() != Kind::Reserved)
    }

    /// Takes as many pageblocks as a type has: the first, but the lowest for what is set apart at boot ([`HighAtomicReserve::MigrateReserve`]).
    fn own_blocks(
        &self,
        blocks: &mut Vec<Pfn>,
        wanted: usize,
        migratetype: MigrateType,
        free: &FreeBlocks,
    ) -> Vec<Pfn> {
        let set_apart = self.rules.highatomic_reserve == HighAtomicReserve::MigrateReserve;
        if migratetype != MigrateType::HighAtomic || !set_apart {
            return self.blocks_of_type(blocks, wanted, free);
        }
        blocks.sort_unstable();
        let own = self.blocks_of_type(blocks, wanted, free);
        self.sort_in_boot_order(blocks);
        own
    }

    /// Takes the first `wanted` of the pageblocks; those that are to be free as a whole are the first that are managed as a whole, and
    /// so are those with smaller free blocks, where the first ones have too few managed pages for these.
    fn blocks_of_type(&self, blocks: &mut Vec<Pfn>, wanted: usize, free: &FreeBlocks) -> Vec<Pfn> {
        let whole = wanted.min(whole_pageblocks(free) as usize);
        let smaller: u64 = (0..).zip(&free[..PAGEBLOCK_ORDER.index()]).map(|(order, blocks)| blocks << order).sum();
        let has_room = self.managed_pages(&blocks[..wanted - whole]) >= smaller;
        let chosen = if has_room { whole } else { wanted.min(Pieces::pageblocks_for(free) as usize) };
        let mut own: Vec<Pfn> = blocks.drain(..wanted - chosen).collect();
        let managed: Vec<bool> = blocks.iter().map(|block| self.is_managed_whole(*block)).collect();
        let at = managed.windows(chosen.max(1)).position(|run| !run.contains(&false)).unwrap_or(0);
        own.extend(blocks.drain(at..at + chosen));
        own
    }

    /// Gives pageblocks their type and frees what is free of it; gives back what stays in use.
    fn start_type(
        &mut self,
        zone: ZoneId,
        migratetype: MigrateType,
        mut blocks: Vec<Pfn>,
        free: &FreeBlocks,
    ) -> Result<Pieces, StartError> {
        for block in &blocks {
            self.blocks.set_migratetype(*block, migratetype);
        }
        let mut chosen: Vec<(Pfn, Order)> = Vec::new();
        for order in [Order::MAX, PAGEBLOCK_ORDER] {
            for _ in 0..free[order.index()] {
                let at = self.whole_block(&mut blocks, order, &chosen);
                chosen.push((at.ok_or_else(|| self.no_room(zone, migratetype, order))?, order));
            }
        }
        let mut pieces = Pieces::default();
        for block in &blocks {
            self.add_used(&mut pieces, *block);
        }
        for order in (0..PAGEBLOCK_ORDER.0).rev().map(Order) {
            for _ in 0..free[order.index()] {
                chosen.push((pieces.cut(order).ok_or_else(|| self.no_room(zone, migratetype, order))?, order));
            }
        }
        chosen.sort_unstable();
        for (pfn, order) in chosen {
            self.start_free(zone, pfn, order, migratetype);
        }
        Ok(pieces)
    }

    fn no_room(&self, zone: ZoneId, migratetype: MigrateType, order: Order) -> StartError {
        let what = format!("no room in its {} pageblocks for the free blocks of order {}", migratetype.name(), order.0);
        self.start_error(zone, what)
    }

    /// Takes the last pageblocks that make a block of this order, beside no free one, out of the list.
    fn whole_block(&self, blocks: &mut Vec<Pfn>, order: Order, chosen: &[(Pfn, Order)]) -> Option<Pfn> {
        let count = (order.pages() / PAGEBLOCK_PAGES) as usize;
        let fits = |at: &usize| {
            let run = &blocks[*at..*at + count];
            let first = run[0].min(run[count - 1]);
            let together = run.windows(2).all(|pair| pair[1].0.abs_diff(pair[0].0) == PAGEBLOCK_PAGES);
            let mut frames = (0..order.pages()).map(|n| first.offset(n));
            let buddy = Pfn(first.0 ^ order.pages());
            let free_buddy = self.frames.get(buddy).is_some_and(|frame| frame.is_buddy(order));
            first.align_down(order) == first
                && together
                && frames.all(|pfn| self.frames[pfn].kind() == Kind::Kernel)
                && (order == Order::MAX || !(free_buddy || chosen.contains(&(buddy, order))))
        };
        let at = (0..(blocks.len() + 1).saturating_sub(count)).rev().find(fits)?;
        blocks.drain(at..at + count).min()
    }

    /// Adds the frames of a pageblock that are in use.
    fn add_used(&self, pieces: &mut Pieces, block: Pfn) {
        let end = block.0 + PAGEBLOCK_PAGES;
        let used = |pfn: &u32| self.frames.get(Pfn(*pfn)).is_some_and(|frame| frame.kind() == Kind::Kernel);
        let mut at = block.0;
        while let Some(from) = (at..end).find(used) {
            let to = (from..end).find(|pfn| !used(pfn)).unwrap_or(end);
            pieces.add(from, to);
            at = to;
        }
    }

    fn start_free(&mut self, zone: ZoneId, pfn: Pfn, order: Order, migratetype: MigrateType) {
        for frame in (0..order.pages()).map(|n| pfn.offset(n)) {
            self.frames[frame].set_kind(Kind::Tail, Order(0));
        }
        let place = match self.rules.free_list_end {
            FreeListEnd::Head => Place::Auto,
            FreeListEnd::Tail => Place::Tail,
        };
        let state = &mut self.zones[zone.index()];
        state.free_one_page(&mut self.frames, &mut self.blocks, pfn, order, migratetype, place);
        self.account_free(zone, i64::from(order.pages()));
    }

    /// Puts pages that are in use on the CPUs' lists.
    fn start_pcps(
        &mut self,
        zone: ZoneId,
        start: &ZoneStart,
        gaps: &[Pfn],
        pieces: &[Pieces],
    ) -> Result<(), StartError> {
        let frames = |migratetype: MigrateType| pieces[migratetype as usize].frames();
        let spare_kernel = start.spare_kernel as usize;
        let kernel: Vec<Pfn> = frames(MigrateType::Unmovable).take(spare_kernel).collect();
        let others = MigrateType::ALL.into_iter().filter(|migratetype| *migratetype != MigrateType::Movable);
        let others = others.flat_map(|migratetype| {
            let taken = if migratetype == MigrateType::Unmovable { spare_kernel } else { 0 };
            frames(migratetype).skip(taken)
        });
        // Movable pages first then: the caller's are anonymous memory.
        let movable = gaps.iter().copied().chain(frames(MigrateType::Movable));
        let mut used = kernel.iter().copied().chain(movable).chain(others);
        for cpu in 0..self.pcps.nr_cpus() {
            let (count, high) = start.pcp.get(cpu).copied().unwrap_or_default();
            let spare = if cpu == 0 { start.spare + kernel.len() as u32 } else { 0 };
            for _ in 0..count + spare {
                let Some(pfn) = used.next() else {
                    return Err(self.start_error(zone, "too few pages in use for the lists of its CPUs".to_string()));
                };
                let migratetype = self.blocks.migratetype(pfn);
                self.frames[pfn].set_free(Kind::Pcp, Order(0), migratetype);
                self.pcps.of(CpuId(cpu as u16), zone).start_with(pfn, migratetype);
            }
            self.pcps.of(CpuId(cpu as u16), zone).start_high(high);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_cut_leaves_serves_smaller_blocks() {
        let pageblocks = |blocks: &[(u8, u64)]| {
            let mut free = FreeBlocks::default();
            blocks.iter().for_each(|(order, number)| free[usize::from(*order)] = *number);
            Pieces::pageblocks_for(&free)
        };
        assert_eq!(
            (pageblocks(&[]), pageblocks(&[(8, 1)]), pageblocks(&[(8, 2)])),
            (0, 1, 2),
            "half of one stays in use"
        );
        assert_eq!(pageblocks(&[(8, 1), (7, 1), (0, 1)]), 1, "each is cut off what the larger one left");
        assert_eq!(pageblocks(&[(7, 2)]), 1, "256 pages beside it and 256 more");
        assert_eq!(pageblocks(&[(10, 1), (9, 1), (0, 1)]), 4, "whole ones, and one that stays in use");
        // A page in use beside each: 256 pairs in a pageblock.
        assert_eq!((pageblocks(&[(0, 256)]), pageblocks(&[(0, 257)])), (1, 2));
        assert_eq!(pageblocks(&[(0, 1 << 16)]), 256, "as many in a zone of 256 MiB are no more work than that");
    }
}
