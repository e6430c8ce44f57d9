//! The frame table: 16 bytes for each 4 KiB frame, where Linux's `struct page` takes 64.
//!
//! A frame that heads nothing (the tail of a free or compound block) has [`Kind::Tail`]; exactly the first frame
//! of a block has another kind. Flags that only mean something in one kind share bits with those of another.

use units::{Order, Pfn};
use zerocopy::FromZeros;

use crate::MigrateType;
use crate::slab::CacheId;

/// What a frame is used for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    /// Not managed by the page allocator: a hole, firmware, the kernel image.
    Reserved = 0,
    /// Part of a block that an earlier frame heads.
    Tail = 1,
    /// First frame of a free block on a buddy list; order and migratetype are set.
    Buddy = 2,
    /// First frame of a free block on a per-CPU list; order and migratetype are set.
    Pcp = 3,
    /// Taken off the free lists and not given a use yet: between allocation and its owner, or held by compaction.
    Held = 4,
    /// Anonymous memory; its place is the swap slot while it has one, else that in a page table. Order 9 is a huge page: its
    /// place is the `SpaceId`, and that of the frame behind it the virtual page number.
    Anon = 5,
    /// Page cache; its place is that in the tree of the file.
    File = 6,
    /// A slab; its place is the slab's number in the cache.
    Slab = 7,
    /// A page table; its place is the `SpaceId`.
    PageTable = 8,
    /// Other kernel memory: stacks, buffers, vmalloc.
    Kernel = 9,
    /// A huge page of the hugetlb pool.
    Hugetlb = 10,
}

const KINDS: [Kind; 11] = [
    Kind::Reserved,
    Kind::Tail,
    Kind::Buddy,
    Kind::Pcp,
    Kind::Held,
    Kind::Anon,
    Kind::File,
    Kind::Slab,
    Kind::PageTable,
    Kind::Kernel,
    Kind::Hugetlb,
];

const KIND_MASK: u32 = 0xf;
const ORDER_SHIFT: u32 = 4;
const TYPE_SHIFT: u32 = 8;
const TYPE_MASK: u32 = 0x7;
/// The generation of a page on a multi-gen list stands where free blocks have their migratetype.
const GEN_SHIFT: u32 = TYPE_SHIFT;
const GEN_MASK: u32 = TYPE_MASK;
/// The cache of a slab stands where pages have flags.
const CACHE_SHIFT: u32 = 11;
const REFS_SHIFT: u32 = 29;
const REFS_MASK: u32 = 0x3;

macro_rules! flags {
    ($($(#[$doc:meta])* $name:ident = $bit:literal;)*) => {
        impl Frame { $($(#[$doc])* pub const $name: u32 = 1 << $bit;)* }
    };
}

/// One 4 KiB frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromZeros)]
pub struct Frame {
    word: u32,
    /// Where its owner has it; the meaning depends on the kind.
    pub place: u32,
    /// Previous frame of the list it is on.
    pub prev: Pfn,
    /// Next frame of the list it is on.
    pub next: Pfn,
}

flags! {
    /// On an active LRU list (`PG_active`).
    ACTIVE = 11;
    /// Seen once without a page table (`PG_referenced`).
    REFERENCED = 12;
    /// Differs from the device (`PG_dirty`).
    DIRTY = 13;
    /// Being written (`PG_writeback`).
    WRITEBACK = 14;
    /// Reclaim wants it as soon as its writeback ends (`PG_reclaim`).
    RECLAIM = 15;
    /// Reading it starts the next readahead window, or it was read ahead into the swap cache (`PG_readahead`): the same bit in the
    /// kernel, too, so that what takes one for the other does so here.
    READAHEAD = 15;
    /// Was part of the working set when it was evicted or deactivated (`PG_workingset`).
    WORKINGSET = 16;
    /// Has a swap slot (`PG_swapcache`).
    SWAPCACHE = 17;
    /// Backed by swap, not by a file (`PG_swapbacked`).
    SWAPBACKED = 18;
    /// On an LRU list (`PG_lru`).
    LRU = 19;
    /// Accessed through a page table since last looked at (the PTE's accessed bit).
    YOUNG = 20;
    /// Mapped in a page table.
    MAPPED = 21;
    /// Locked for I/O (`PG_locked`).
    LOCKED = 22;
    /// Somebody waits for its lock or its writeback (`PG_waiters`).
    WAITERS = 23;
    /// Cannot be reclaimed (`PG_unevictable`).
    UNEVICTABLE = 24;
    /// Taken off its LRU list by reclaim or compaction.
    ISOLATED = 25;
    /// Content is valid (`PG_uptodate`).
    UPTODATE = 27;
    /// Cannot be moved or reclaimed just now: somebody holds a reference (`get_user_pages`, I/O in flight).
    PINNED = 28;
    /// Written to through the page table entry that maps it, which is writable then (the PTE's dirty bit); anonymous pages only.
    WRITTEN = 31;
}

impl Frame {
    /// A frame without a use.
    pub const RESERVED: Frame = Frame { word: 0, place: 0, prev: Pfn::NONE, next: Pfn::NONE };

    /// What it is used for.
    #[inline]
    pub fn kind(&self) -> Kind {
        KINDS[(self.word & KIND_MASK) as usize]
    }

    /// Gives it a use and clears every flag.
    #[inline]
    pub fn set_kind(&mut self, kind: Kind, order: Order) {
        self.word = kind as u32 | (order.0 as u32) << ORDER_SHIFT;
    }

    /// Order of the block that it heads.
    #[inline]
    pub fn order(&self) -> Order {
        Order((self.word >> ORDER_SHIFT & 0xf) as u8)
    }

    /// Makes it head a block of another order, and leaves everything else.
    #[inline]
    pub fn set_order(&mut self, order: Order) {
        self.word = self.word & !(0xf << ORDER_SHIFT) | (order.0 as u32) << ORDER_SHIFT;
    }

    /// Migratetype of the free list that it is on; only for [`Kind::Buddy`] and [`Kind::Pcp`].
    #[inline]
    pub fn migratetype(&self) -> MigrateType {
        debug_assert!(matches!(self.kind(), Kind::Buddy | Kind::Pcp));
        MigrateType::from_index((self.word >> TYPE_SHIFT & TYPE_MASK) as usize)
    }

    /// Generation of a page that is on a multi-gen list (`folio_lru_gen()`); only for [`Frame::is_lru_kind`].
    #[inline]
    pub(crate) fn lru_gen(&self) -> Option<usize> {
        debug_assert!(self.is_lru_kind());
        (self.word >> GEN_SHIFT & GEN_MASK).checked_sub(1).map(|at| at as usize)
    }

    /// Sets the generation of a page, or that it is on no multi-gen list.
    #[inline]
    pub(crate) fn set_lru_gen(&mut self, at: Option<usize>) {
        debug_assert!(self.is_lru_kind() && at.is_none_or(|at| at < GEN_MASK as usize));
        let stored = at.map_or(0, |at| at as u32 + 1);
        self.word = self.word & !(GEN_MASK << GEN_SHIFT) | stored << GEN_SHIFT;
    }

    /// Accesses through file descriptors beyond the second, 3 at most (`LRU_REFS_MASK`).
    #[inline]
    pub(crate) fn lru_refs(&self) -> u32 {
        self.word >> REFS_SHIFT & REFS_MASK
    }

    /// Sets the count of accesses, 0 to 3.
    #[inline]
    pub(crate) fn set_lru_refs(&mut self, refs: u32) {
        debug_assert!(refs <= REFS_MASK);
        self.word = self.word & !(REFS_MASK << REFS_SHIFT) | refs << REFS_SHIFT;
    }

    /// The cache of a slab ([`Kind::Slab`]).
    pub(crate) fn cache(&self) -> CacheId {
        debug_assert!(self.kind() == Kind::Slab);
        CacheId((self.word >> CACHE_SHIFT) as u16)
    }

    /// Makes it a slab.
    pub(crate) fn set_slab(&mut self, cache: CacheId, number: u32, order: Order) {
        self.set_kind(Kind::Slab, order);
        self.word |= u32::from(cache.0) << CACHE_SHIFT;
        self.place = number;
    }

    /// Sets the migratetype of the free list that it is on.
    #[inline]
    pub fn set_migratetype(&mut self, migratetype: MigrateType) {
        self.word = self.word & !(TYPE_MASK << TYPE_SHIFT) | (migratetype as u32) << TYPE_SHIFT;
    }

    /// Makes it the head of a free block ([`Kind::Buddy`] or [`Kind::Pcp`]) and clears every flag.
    #[inline]
    pub(crate) fn set_free(&mut self, kind: Kind, order: Order, migratetype: MigrateType) {
        debug_assert!(matches!(kind, Kind::Buddy | Kind::Pcp));
        self.word = kind as u32 | (order.0 as u32) << ORDER_SHIFT | (migratetype as u32) << TYPE_SHIFT;
    }

    /// Whether two heads are of the same kind, order and migratetype, with the same flags.
    #[inline]
    pub(crate) fn is_like(&self, other: &Frame) -> bool {
        self.word == other.word
    }

    /// Whether it heads a free block of this order on a buddy list.
    #[inline]
    pub(crate) fn is_buddy(&self, order: Order) -> bool {
        self.word & (KIND_MASK | 0xf << ORDER_SHIFT) == Kind::Buddy as u32 | (order.0 as u32) << ORDER_SHIFT
    }

    /// Whether every given flag is set.
    #[inline]
    pub fn has(&self, flags: u32) -> bool {
        self.word & flags == flags
    }

    /// Whether any given flag is set.
    #[inline]
    pub fn has_any(&self, flags: u32) -> bool {
        self.word & flags != 0
    }

    /// Sets flags.
    #[inline]
    pub fn set(&mut self, flags: u32) {
        self.word |= flags;
    }

    /// Clears flags.
    #[inline]
    pub fn clear(&mut self, flags: u32) {
        self.word &= !flags;
    }

    /// Clears flags and says whether any of them was set.
    #[inline]
    pub fn take(&mut self, flags: u32) -> bool {
        let was = self.has_any(flags);
        self.clear(flags);
        was
    }

    /// Flags that migration carries to the new frame: everything but kind, order, list membership and generation, with
    /// its count of accesses.
    #[inline]
    pub fn copy_flags_from(&mut self, other: &Frame) {
        let carried = !(KIND_MASK | 0xf << ORDER_SHIFT | TYPE_MASK << TYPE_SHIFT | REFS_MASK << REFS_SHIFT)
            & !(Frame::LRU | Frame::ISOLATED | Frame::LOCKED | Frame::WAITERS);
        self.word = self.word & !carried | other.word & carried;
    }

    /// Makes the tail of a block that is split a page of its own, in the state of its head and on no list (`__split_huge_page_tail()`).
    pub(crate) fn split_off(&mut self, head: &Frame, place: u32) {
        *self = Frame { place, ..Frame::RESERVED };
        self.set_kind(head.kind(), Order(0));
        self.copy_flags_from(head);
        self.clear(Frame::RECLAIM | Frame::PINNED);
        if head.has(Frame::ISOLATED) {
            self.set(Frame::ISOLATED);
        }
    }

    /// Whether it is a page that belongs on an LRU list: anonymous or page cache.
    #[inline]
    pub fn is_lru_kind(&self) -> bool {
        matches!(self.kind(), Kind::Anon | Kind::File)
    }

    /// Base pages in the block that it heads.
    #[inline]
    pub fn nr_pages(&self) -> u32 {
        self.order().pages()
    }
}

/// All frames of the machine, indexed by [`Pfn`].
pub struct Frames {
    table: Vec<Frame>,
    /// Frames that are not in a hole.
    present: u64,
}

impl Frames {
    /// `spanned` frames from pfn 0, all reserved, of which so many are not in a hole.
    ///
    /// # Panics
    /// If the host has no room for them.
    pub fn new(spanned: u32, present: u64) -> Frames {
        debug_assert!(present <= u64::from(spanned));
        // Zeroed by the host when they are first touched, and those of holes never are.
        let table = Frame::new_vec_zeroed(spanned as usize).expect("the host has room for the frames");
        Frames { table, present }
    }

    /// The frame, if there is one with this number.
    #[inline]
    pub(crate) fn get(&self, pfn: Pfn) -> Option<&Frame> {
        self.table.get(pfn.index())
    }

    /// Looks at frames that are about to be used, so that their cache misses overlap.
    #[inline]
    pub(crate) fn look_ahead(&self, pfns: impl Iterator<Item = Pfn>) {
        let words = pfns.map(|pfn| self.table.get(pfn.index()).map_or(0, |frame| frame.word));
        std::hint::black_box(words.fold(0, |all, word| all ^ word));
    }

    /// Frames from pfn 0 to the end of the last zone, holes included.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether there is no frame at all.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Host bytes that the table occupies; what stands for holes is never touched and has no memory behind it.
    pub fn host_bytes(&self) -> usize {
        self.present as usize * size_of::<Frame>()
    }
}

impl std::ops::Index<Pfn> for Frames {
    type Output = Frame;
    #[inline]
    fn index(&self, pfn: Pfn) -> &Frame {
        &self.table[pfn.index()]
    }
}

impl std::ops::IndexMut<Pfn> for Frames {
    #[inline]
    fn index_mut(&mut self, pfn: Pfn) -> &mut Frame {
        &mut self.table[pfn.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_takes_16_bytes() {
        assert_eq!(size_of::<Frame>(), 16);
    }

    #[test]
    fn a_slab_keeps_its_cache() {
        let mut frame = Frame::RESERVED;
        frame.set_slab(CacheId(u16::MAX), 7, Order(3));
        assert_eq!(
            (frame.kind(), frame.order(), frame.cache(), frame.place),
            (Kind::Slab, Order(3), CacheId(u16::MAX), 7)
        );
    }

    #[test]
    fn a_generation_and_its_references_disturb_no_flag_and_do_not_migrate() {
        let mut frame = Frame::RESERVED;
        frame.set_kind(Kind::File, Order(0));
        frame.set(Frame::ACTIVE | Frame::PINNED);
        assert_eq!((frame.lru_gen(), frame.lru_refs()), (None, 0));
        frame.set_lru_gen(Some(3));
        frame.set_lru_refs(3);
        assert_eq!((frame.lru_gen(), frame.lru_refs(), frame.kind()), (Some(3), 3, Kind::File));
        assert!(frame.has(Frame::ACTIVE | Frame::PINNED));
        let mut copy = Frame::RESERVED;
        copy.set_kind(Kind::File, Order(0));
        copy.copy_flags_from(&frame);
        assert!(copy.has(Frame::ACTIVE | Frame::PINNED));
        assert_eq!((copy.lru_gen(), copy.lru_refs()), (None, 0));
        frame.set_lru_gen(None);
        frame.set_lru_refs(0);
        assert!((frame.lru_gen(), frame.lru_refs()) == (None, 0) && frame.has(Frame::ACTIVE | Frame::PINNED));
    }

    #[test]
    fn kind_order_and_migratetype_do_not_disturb_each_other() {
        let mut frame = Frame::RESERVED;
        frame.set_kind(Kind::Buddy, Order(10));
        frame.set_migratetype(MigrateType::Reclaimable);
        frame.set(Frame::PINNED | Frame::ACTIVE);
        assert_eq!(frame.kind(), Kind::Buddy);
        assert_eq!(frame.order(), Order(10));
        assert_eq!(frame.migratetype(), MigrateType::Reclaimable);
        assert!(frame.take(Frame::ACTIVE) && !frame.take(Frame::ACTIVE));
    }
}
