//! Identifiers: dense indices, so that a table lookup needs no hash.

/// A page frame number: index of a 4 KiB frame in physical memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, zerocopy::FromZeros)]
pub struct Pfn(pub u32);

impl Pfn {
    /// No frame. As a list link it ends the list.
    pub const NONE: Pfn = Pfn(u32::MAX);

    /// Index into the frame table.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// Whether this names a frame at all.
    #[inline]
    pub fn is_some(self) -> bool {
        self != Pfn::NONE
    }

    /// The frame `n` frames higher.
    #[inline]
    pub fn offset(self, n: u32) -> Pfn {
        Pfn(self.0 + n)
    }

    /// Rounded down to a multiple of `1 << order` frames.
    #[inline]
    pub fn align_down(self, order: crate::Order) -> Pfn {
        Pfn(self.0 & !((1 << order.0) - 1))
    }
}

macro_rules! dense_id {
    ($(#[$doc:meta])* $name:ident($int:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
        pub struct $name(pub $int);

        impl $name {
            /// Index into the table of these.
            #[inline]
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

dense_id!(
    /// A NUMA node.
    NodeId(u8)
);
dense_id!(
    /// A zone, numbered over the whole machine (not per node).
    ZoneId(u8)
);
dense_id!(
    /// A logical CPU.
    CpuId(u16)
);
dense_id!(
    /// A memory cgroup; 0 is the root.
    MemcgId(u16)
);
dense_id!(
    /// An inode with its page cache.
    FileId(u32)
);
dense_id!(
    /// An address space (`mm_struct`).
    SpaceId(u32)
);
