//! Amounts of memory.

/// log2 of the base page size: 4 KiB pages, as on x86-64.
pub const PAGE_SHIFT: u32 = 12;
/// Base page size in bytes.
pub const PAGE_SIZE: u64 = 1 << PAGE_SHIFT;
/// Order of a pageblock, the unit of mobility grouping: 2 MiB, the huge page size of x86-64.
pub const PAGEBLOCK_ORDER: Order = Order(9);
/// Base pages in a pageblock.
pub const PAGEBLOCK_PAGES: u32 = 1 << PAGEBLOCK_ORDER.0;

/// log2 of a number of contiguous pages.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Order(pub u8);

impl Order {
    /// Largest order of the buddy allocator (`MAX_ORDER - 1` before 6.4, `MAX_PAGE_ORDER` since).
    pub const MAX: Order = Order(10);
    /// Largest order that the allocator retries hard for (`PAGE_ALLOC_COSTLY_ORDER`, include/linux/mmzone.h).
    pub const COSTLY: Order = Order(3);

    /// Base pages in a block of this order.
    #[inline]
    pub fn pages(self) -> u32 {
        1 << self.0
    }

    /// As an index.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A number of 4 KiB pages.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Pages(pub u64);

impl Pages {
    /// The same amount in bytes.
    #[inline]
    pub fn bytes(self) -> Bytes {
        Bytes(self.0 << PAGE_SHIFT)
    }

    /// The same amount in KiB, the unit of `/proc/meminfo`.
    #[inline]
    pub fn kib(self) -> u64 {
        self.0 << (PAGE_SHIFT - 10)
    }
}

/// A number of bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Bytes(pub u64);

impl Bytes {
    /// `n` KiB.
    pub const fn kib(n: u64) -> Bytes {
        Bytes(n << 10)
    }

    /// `n` MiB.
    pub const fn mib(n: u64) -> Bytes {
        Bytes(n << 20)
    }

    /// `n` GiB.
    pub const fn gib(n: u64) -> Bytes {
        Bytes(n << 30)
    }

    /// Whole pages in this amount, rounded up.
    #[inline]
    pub fn pages_up(self) -> Pages {
        Pages(self.0.div_ceil(PAGE_SIZE))
    }

    /// Whole pages in this amount, rounded down.
    #[inline]
    pub fn pages_down(self) -> Pages {
        Pages(self.0 >> PAGE_SHIFT)
    }
}
