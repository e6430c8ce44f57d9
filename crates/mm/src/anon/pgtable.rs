//! Page tables: what a space maps where, and the frames that hold it.
//!
//! Rule: a table frame is an order-0 unmovable page, `GFP_KERNEL_ACCOUNT | __GFP_ZERO`. One PTE page serves 2 MiB,
//! one PMD page 1 GiB, one PUD page 512 GiB; the PGD is not counted. A huge page keeps a PTE page in deposit, so
//! that splitting it needs no allocation. Tables go when no area is left in what they cover.
//! Source: `__pte_alloc()`, `free_pgtables()` (mm/memory.c), `pgtable_trans_huge_deposit()` (mm/pgtable-generic.c),
//! `pte_alloc_one()` (arch/x86/mm/pgtable.c), `pgtable_page_ctor()` (include/linux/mm.h); 4.20 and 6.12.
//! Since/until: which levels `nr_page_table_pages` counts is `rules.page_table_stat`.
//! Abstracted: only PTE pages have contents; of the upper levels there are the frames.

use rules::PageTableStat;
use units::{Gfp, Order, Pfn, SpaceId};

use super::{REGION_PAGES, REGION_SHIFT};
use crate::memcg::KernelPage;
use crate::stat::ZoneStat;
use crate::swap::SwapEntry;
use crate::{Env, Kind, Mm};

/// Flags of a user page table (`GFP_PGTABLE_USER`).
pub(super) const GFP_PGTABLE: Gfp = Gfp::KERNEL.with(Gfp::ACCOUNT).with(Gfp::ZERO);
/// log2 of the pages that a PMD page covers.
const PMD_SHIFT: u32 = 18;
/// Where the kernel maps all memory (`__PAGE_OFFSET_BASE_L4` without KASLR).
const PAGE_OFFSET: u64 = 0xffff_8880_0000_0000;
/// log2 of the pages that a PUD page covers.
const PUD_SHIFT: u32 = 27;

const SLOT_ZERO: u32 = (1 << 31) - 1;
const SLOT_SWAP: u32 = 1 << 31;

/// What a page table entry says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Slot {
    /// Nothing was ever there.
    None,
    /// A frame.
    Page(Pfn),
    /// The zero page: read and never written.
    Zero,
    /// On swap.
    Swap(SwapEntry),
}

impl Slot {
    /// Its slot, if the page is on swap.
    pub(crate) fn swapped(self) -> Option<SwapEntry> {
        if let Slot::Swap(entry) = self { Some(entry) } else { None }
    }

    /// Packed into four bytes: 0, the frame plus one, the zero page, or the top bit and the swap entry.
    #[inline]
    pub(crate) fn pack(self) -> u32 {
        match self {
            Slot::None => 0,
            Slot::Page(pfn) => {
                debug_assert!(pfn.0 < SLOT_ZERO - 1);
                pfn.0 + 1
            }
            Slot::Zero => SLOT_ZERO,
            Slot::Swap(entry) => {
                debug_assert!(entry.0 < SLOT_SWAP);
                SLOT_SWAP | entry.0
            }
        }
    }

    /// The frame that it maps, if it is one of its own.
    #[inline]
    pub(crate) fn page(self) -> Option<Pfn> {
        if let Slot::Page(pfn) = self { Some(pfn) } else { None }
    }

    /// Back from four bytes.
    #[inline]
    pub(crate) fn unpack(word: u32) -> Slot {
        match word {
            0 => Slot::None,
            SLOT_ZERO => Slot::Zero,
            w if w & SLOT_SWAP != 0 => Slot::Swap(SwapEntry(w & !SLOT_SWAP)),
            w => Slot::Page(Pfn(w - 1)),
        }
    }
}

/// What maps 2 MiB of a space (a PMD entry).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Region {
    /// Nothing.
    None,
    /// A huge page, and the frame of the page table in deposit.
    Huge {
        /// First frame of the huge page.
        pfn: Pfn,
        /// Frame of the page table in deposit.
        deposit: Pfn,
    },
    /// A page table, by its number in [`Leaves`].
    Table(u32),
}

/// The slots of a page table.
type Slots = [u32; REGION_PAGES as usize];

/// The page tables of all spaces: 512 slots each, and the frame that stands for it.
#[derive(Debug, Default)]
pub(crate) struct Leaves {
    /// None of a table that was given back: what a process unmaps takes no memory of the host any more.
    slots: Vec<Option<Box<Slots>>>,
    /// Whether a table was used since somebody last asked (the accessed bit of its PMD entry).
    young: Vec<bool>,
    frames: Vec<Pfn>,
    /// The space that each belongs to, and its first page.
    homes: Vec<(SpaceId, u32)>,
    free: Vec<u32>,
}

impl Leaves {
    /// An empty page table that lives in `frame`, for the pages around one.
    pub(super) fn take(&mut self, frame: Pfn, space: SpaceId, vpn: u32) -> u32 {
        let home = (space, vpn & !(REGION_PAGES - 1));
        if let Some(leaf) = self.free.pop() {
            debug_assert!(!self.frames[leaf as usize].is_some());
            (self.frames[leaf as usize], self.homes[leaf as usize]) = (frame, home);
            self.slots[leaf as usize] = Some(Box::new([0; REGION_PAGES as usize]));
            return leaf;
        }
        assert!(self.slots.len() < 1 << (32 - REGION_SHIFT), "page tables cover 16 TiB");
        self.slots.push(Some(Box::new([0; REGION_PAGES as usize])));
        self.young.push(false);
        self.frames.push(frame);
        self.homes.push(home);
        self.slots.len() as u32 - 1
    }

    /// Gives back an empty page table; returns its frame.
    pub(super) fn release(&mut self, leaf: u32) -> Pfn {
        let slots = self.slots[leaf as usize].take();
        debug_assert!(slots.is_some_and(|slots| slots.iter().all(|s| *s == 0)), "a page table is freed with entries");
        self.free.push(leaf);
        std::mem::replace(&mut self.frames[leaf as usize], Pfn::NONE)
    }

    /// Frame of a page table.
    pub(super) fn frame(&self, leaf: u32) -> Pfn {
        self.frames[leaf as usize]
    }

    /// What a frame says of its place while this slot maps it.
    #[inline]
    pub(crate) fn place(leaf: u32, vpn: u32) -> u32 {
        leaf * REGION_PAGES + vpn % REGION_PAGES
    }

    /// Space and page of the slot that a frame names as its place.
    #[inline]
    pub(crate) fn home(&self, place: u32) -> (SpaceId, u32) {
        let (space, base) = self.homes[(place >> REGION_SHIFT) as usize];
        (space, base + place % REGION_PAGES)
    }

    #[inline]
    fn table(&self, leaf: u32) -> &Slots {
        self.slots[leaf as usize].as_deref().expect("a page table in use has slots")
    }

    /// The slot for a page.
    #[inline]
    pub(crate) fn get(&self, leaf: u32, vpn: u32) -> Slot {
        Slot::unpack(self.table(leaf)[(vpn % REGION_PAGES) as usize])
    }

    /// The slots for pages of one table; the range is not empty.
    #[inline]
    pub(crate) fn slots(&self, leaf: u32, vpns: std::ops::Range<u32>) -> impl Iterator<Item = Slot> + Clone {
        let first = (vpns.start % REGION_PAGES) as usize;
        self.table(leaf)[first..first + vpns.len()].iter().map(|word| Slot::unpack(*word))
    }

    /// Sets the slot for a page.
    #[inline]
    pub(crate) fn set(&mut self, leaf: u32, vpn: u32, slot: Slot) {
        let slots = self.slots[leaf as usize].as_mut().expect("a page table in use has slots");
        slots[(vpn % REGION_PAGES) as usize] = slot.pack();
    }

    /// Something was accessed through a page table.
    #[inline]
    pub(super) fn set_young(&mut self, leaf: u32) {
        self.young[leaf as usize] = true;
    }

    /// Whether a page table was used since this was last asked.
    pub(crate) fn take_young(&mut self, leaf: u32) -> bool {
        std::mem::take(&mut self.young[leaf as usize])
    }

    /// Page tables in use.
    pub(super) fn in_use(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(super) fn host_bytes(&self) -> usize {
        self.in_use() * size_of::<Slots>()
            + self.slots.capacity() * size_of::<Option<Box<Slots>>>()
            + self.frames.capacity() * size_of::<Pfn>()
            + self.homes.capacity() * size_of::<(SpaceId, u32)>()
            + self.young.capacity()
    }
}

/// Page tables of one space.
#[derive(Debug)]
pub(crate) struct PageTables {
    /// Regions from address 0.
    regions: Vec<Region>,
    /// PMD pages by GiB, `Pfn::NONE` where there is none.
    pmds: Vec<Pfn>,
    /// PUD pages by 512 GiB.
    puds: Vec<Pfn>,
    /// PGD, allocated with the first fault.
    pgd: Pfn,
    nr_frames: u64,
}

impl Default for PageTables {
    fn default() -> PageTables {
        PageTables { regions: Vec::new(), pmds: Vec::new(), puds: Vec::new(), pgd: Pfn::NONE, nr_frames: 0 }
    }
}

impl PageTables {
    /// Makes room for addresses below `end`.
    pub(super) fn grow(&mut self, end: u32) {
        let units = |shift: u32| (u64::from(end)).div_ceil(1 << shift) as usize;
        if self.regions.len() < units(REGION_SHIFT) {
            self.regions.resize(units(REGION_SHIFT), Region::None);
            self.pmds.resize(units(PMD_SHIFT), Pfn::NONE);
            self.puds.resize(units(PUD_SHIFT), Pfn::NONE);
        }
    }

    /// Table frames but for the PGD.
    pub(crate) fn nr_frames(&self) -> u64 {
        self.nr_frames
    }

    /// What maps the 2 MiB around a page.
    #[inline]
    pub(crate) fn region(&self, vpn: u32) -> Region {
        self.regions[(vpn >> REGION_SHIFT) as usize]
    }

    /// Sets what maps the 2 MiB around a page.
    #[inline]
    pub(crate) fn set_region(&mut self, vpn: u32, region: Region) {
        self.regions[(vpn >> REGION_SHIFT) as usize] = region;
    }

    /// Address of the PMD entry for a page, in the kernel's map of all memory.
    pub(crate) fn pmd_entry(&self, vpn: u32) -> u64 {
        let table = self.pmds[(vpn >> PMD_SHIFT) as usize];
        let entry = u64::from(vpn >> REGION_SHIFT) % u64::from(REGION_PAGES);
        PAGE_OFFSET + (u64::from(table.0) << 12) + entry * 8
    }

    /// All regions.
    pub(crate) fn regions(&self) -> &[Region] {
        &self.regions
    }

    /// Frames of the upper levels: PGD, PUD pages, PMD pages.
    pub(super) fn upper_frames(&self) -> impl Iterator<Item = Pfn> + '_ {
        let all = std::iter::once(&self.pgd).chain(&self.puds).chain(&self.pmds);
        all.copied().filter(|pfn| pfn.is_some())
    }

    pub(super) fn host_bytes(&self) -> usize {
        self.regions.capacity() * size_of::<Region>() + self.pmds.capacity() * size_of::<Pfn>()
    }
}

/// Levels of the page table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Level {
    /// Top level.
    Pgd,
    /// 512 GiB.
    Pud,
    /// 1 GiB.
    Pmd,
    /// 2 MiB.
    Pte,
}

impl Mm {
    /// What the page table says of a page.
    pub(crate) fn slot_of(&self, space: SpaceId, vpn: u32) -> Slot {
        match self.spaces[space].tables.regions.get((vpn >> REGION_SHIFT) as usize) {
            None | Some(Region::None) => Slot::None,
            Some(Region::Huge { pfn, .. }) => Slot::Page(pfn.offset(vpn % REGION_PAGES)),
            Some(Region::Table(leaf)) => self.spaces.leaves.get(*leaf, vpn),
        }
    }

    /// What the frame of a page that a page table maps says of its place.
    pub(crate) fn place_in_table(&self, space: SpaceId, vpn: u32) -> u32 {
        let Region::Table(leaf) = self.spaces[space].tables.region(vpn) else {
            panic!("{space:?} has no page table at page {vpn}");
        };
        Leaves::place(leaf, vpn)
    }

    /// The upper level that a fault at this page lacks first.
    pub(super) fn missing_level(&self, space: SpaceId, vpn: u32) -> Option<Level> {
        let tables = &self.spaces[space].tables;
        if tables.pmds[(vpn >> PMD_SHIFT) as usize].is_some() {
            None
        } else if !tables.pgd.is_some() {
            Some(Level::Pgd)
        } else if !tables.puds[(vpn >> PUD_SHIFT) as usize].is_some() {
            Some(Level::Pud)
        } else {
            Some(Level::Pmd)
        }
    }

    /// Makes a frame from the allocator an upper-level table.
    pub(super) fn install_upper(&mut self, space: SpaceId, vpn: u32, level: Level, pfn: Pfn) {
        self.table_frame_added(space, level, pfn);
        let tables = &mut self.spaces[space].tables;
        let place = match level {
            Level::Pgd => &mut tables.pgd,
            Level::Pud => &mut tables.puds[(vpn >> PUD_SHIFT) as usize],
            Level::Pmd => &mut tables.pmds[(vpn >> PMD_SHIFT) as usize],
            Level::Pte => unreachable!("a PTE page is not an upper level"),
        };
        debug_assert!(!place.is_some());
        *place = pfn;
    }

    /// Makes a frame from the allocator the PTE page of an empty region.
    pub(super) fn install_leaf(&mut self, space: SpaceId, vpn: u32, pfn: Pfn) {
        debug_assert_eq!(self.spaces[space].tables.region(vpn), Region::None);
        self.table_frame_added(space, Level::Pte, pfn);
        let leaf = self.spaces.leaves.take(pfn, space, vpn);
        self.spaces[space].tables.set_region(vpn, Region::Table(leaf));
    }

    /// Books a frame as a table of a space.
    pub(super) fn table_frame_added(&mut self, space: SpaceId, level: Level, pfn: Pfn) {
        let frame = &mut self.frames[pfn];
        debug_assert_eq!(frame.kind(), Kind::Held);
        frame.set_kind(Kind::PageTable, Order(0));
        frame.place = space.0;
        self.charge(self.costs.zero_page);
        if level != Level::Pgd {
            self.spaces[space].tables.nr_frames += 1;
        }
        if self.table_counted(level) {
            self.stat.zone_add(self.zone_of(pfn), ZoneStat::PageTablePages, 1);
        }
    }

    /// Takes a table frame out of the books and frees it.
    pub(super) fn table_frame_freed(&mut self, env: &Env, space: SpaceId, level: Level, pfn: Pfn) {
        debug_assert_eq!(self.frames[pfn].kind(), Kind::PageTable);
        if level != Level::Pgd {
            self.spaces[space].tables.nr_frames -= 1;
        }
        if self.table_counted(level) {
            self.stat.zone_add(self.zone_of(pfn), ZoneStat::PageTablePages, -1);
        }
        self.memcg_forget_kernel(pfn, KernelPage::Table);
        self.frames[pfn].set_kind(Kind::Held, Order(0));
        self.free_pages(env, pfn, Order(0));
    }

    /// Whether `nr_page_table_pages` counts a level.
    pub(super) fn table_counted(&self, level: Level) -> bool {
        match self.rules.page_table_stat {
            PageTableStat::Leaves => level == Level::Pte,
            PageTableStat::AllButTop => level != Level::Pgd,
        }
    }

    /// Frees the tables of a range that no area uses: those that lie whole between `floor` and `ceiling`, the
    /// end of the area below and the start of the one above. The range must be unmapped.
    pub(super) fn free_tables(&mut self, env: &Env, space: SpaceId, range: std::ops::Range<u32>, bounds: [u64; 2]) {
        let [floor, ceiling] = bounds;
        let whole = |shift: u32, n: usize| (n as u64) << shift >= floor && (n as u64 + 1) << shift <= ceiling;
        let spans = |shift: u32| (range.start >> shift) as usize..=((range.end - 1) >> shift) as usize;
        for n in spans(REGION_SHIFT) {
            if let Region::Table(leaf) = self.spaces[space].tables.regions[n]
                && whole(REGION_SHIFT, n)
            {
                self.spaces[space].tables.regions[n] = Region::None;
                let pfn = self.spaces.leaves.release(leaf);
                self.table_frame_freed(env, space, Level::Pte, pfn);
            }
        }
        for n in spans(PMD_SHIFT) {
            let pfn = self.spaces[space].tables.pmds[n];
            if pfn.is_some() && whole(PMD_SHIFT, n) {
                self.spaces[space].tables.pmds[n] = Pfn::NONE;
                self.table_frame_freed(env, space, Level::Pmd, pfn);
            }
        }
        for n in spans(PUD_SHIFT) {
            let pfn = self.spaces[space].tables.puds[n];
            if pfn.is_some() && whole(PUD_SHIFT, n) {
                self.spaces[space].tables.puds[n] = Pfn::NONE;
                self.table_frame_freed(env, space, Level::Pud, pfn);
            }
        }
    }

    /// Frees the PGD at exit.
    pub(super) fn free_top_table(&mut self, env: &Env, space: SpaceId) {
        let pgd = std::mem::replace(&mut self.spaces[space].tables.pgd, Pfn::NONE);
        if pgd.is_some() {
            self.table_frame_freed(env, space, Level::Pgd, pgd);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_slot_survives_packing() {
        for slot in [Slot::None, Slot::Zero, Slot::Page(Pfn(0)), Slot::Page(Pfn(1 << 30)), Slot::Swap(SwapEntry(0))] {
            assert_eq!(Slot::unpack(slot.pack()), slot);
        }
        assert_eq!(Slot::None.pack(), 0, "a zeroed table is empty");
    }

    #[test]
    fn a_table_that_was_given_back_takes_no_slots_and_comes_back_empty() {
        let mut leaves = Leaves::default();
        let before: Vec<u32> = (0..3).map(|n| leaves.take(Pfn(n), SpaceId(1), n * REGION_PAGES)).collect();
        leaves.set(before[1], 7, Slot::Page(Pfn(9)));
        let full = leaves.host_bytes();
        leaves.set(before[1], 7, Slot::None);
        assert_eq!(leaves.release(before[1]), Pfn(1));
        assert!(full - leaves.host_bytes() >= size_of::<Slots>() - 4 * size_of::<u32>(), "a free number takes little");
        assert_eq!(leaves.take(Pfn(5), SpaceId(2), 0), before[1]);
        assert_eq!((leaves.get(before[1], 7), leaves.home(before[1] * REGION_PAGES)), (Slot::None, (SpaceId(2), 0)));
    }

    #[test]
    fn a_region_takes_twelve_bytes_for_two_mib() {
        assert_eq!(size_of::<Region>(), 12);
    }
}
