//! Allocation flags, `gfp_t`.
//!
//! Source: `include/linux/gfp_types.h` (6.12). The names are the kernel's; the bit positions are our own.

/// What an allocation asks for and what it may do to get it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Gfp(pub u32);

impl Gfp {
    /// Nothing at all: not even waking kswapd.
    pub const NONE: Gfp = Gfp(0);
    /// `__GFP_DMA`: only ZONE_DMA.
    pub const DMA: Gfp = Gfp(1 << 0);
    /// `__GFP_DMA32`: ZONE_DMA32 and below.
    pub const DMA32: Gfp = Gfp(1 << 1);
    /// `__GFP_HIGHMEM`: with `MOVABLE`, allows ZONE_MOVABLE.
    pub const HIGHMEM: Gfp = Gfp(1 << 2);
    /// `__GFP_MOVABLE`: the page can be migrated or reclaimed.
    pub const MOVABLE: Gfp = Gfp(1 << 3);
    /// `__GFP_RECLAIMABLE`: a slab page that a shrinker can free.
    pub const RECLAIMABLE: Gfp = Gfp(1 << 4);
    /// `__GFP_HIGH`: may use part of the reserve below the min watermark.
    pub const HIGH: Gfp = Gfp(1 << 5);
    /// `__GFP_IO`: reclaim may start physical I/O.
    pub const IO: Gfp = Gfp(1 << 6);
    /// `__GFP_FS`: reclaim may call into the file system.
    pub const FS: Gfp = Gfp(1 << 7);
    /// `__GFP_DIRECT_RECLAIM`: the caller may reclaim and sleep.
    pub const DIRECT_RECLAIM: Gfp = Gfp(1 << 8);
    /// `__GFP_KSWAPD_RECLAIM`: wake kswapd when the low watermark is reached.
    pub const KSWAPD_RECLAIM: Gfp = Gfp(1 << 9);
    /// `__GFP_RETRY_MAYFAIL` (`__GFP_REPEAT` before 4.13).
    pub const RETRY_MAYFAIL: Gfp = Gfp(1 << 10);
    /// `__GFP_NOFAIL`: retry until it succeeds.
    pub const NOFAIL: Gfp = Gfp(1 << 11);
    /// `__GFP_NORETRY`: one light attempt at reclaim and compaction.
    pub const NORETRY: Gfp = Gfp(1 << 12);
    /// `__GFP_MEMALLOC`: ignore watermarks.
    pub const MEMALLOC: Gfp = Gfp(1 << 13);
    /// `__GFP_NOMEMALLOC`: never use the reserves.
    pub const NOMEMALLOC: Gfp = Gfp(1 << 14);
    /// `__GFP_NOWARN`: a failure is not logged.
    pub const NOWARN: Gfp = Gfp(1 << 15);
    /// `__GFP_COMP`: a compound page.
    pub const COMP: Gfp = Gfp(1 << 16);
    /// `__GFP_ZERO`: zero the page.
    pub const ZERO: Gfp = Gfp(1 << 17);
    /// `__GFP_HARDWALL`: enforce the cpuset.
    pub const HARDWALL: Gfp = Gfp(1 << 18);
    /// `__GFP_THISNODE`: no fallback to another node.
    pub const THISNODE: Gfp = Gfp(1 << 19);
    /// `__GFP_ACCOUNT`: charge to the memory cgroup.
    pub const ACCOUNT: Gfp = Gfp(1 << 20);
    /// `__GFP_WRITE`: the page will be dirtied soon.
    pub const WRITE: Gfp = Gfp(1 << 21);
    /// Takes pages that no cache holds (`__GFP_COLD`, until 4.14).
    pub const COLD: Gfp = Gfp(1 << 22);

    /// `__GFP_RECLAIM`: direct and by kswapd.
    pub const RECLAIM: Gfp = Gfp(Self::DIRECT_RECLAIM.0 | Self::KSWAPD_RECLAIM.0);
    /// `GFP_ATOMIC`.
    pub const ATOMIC: Gfp = Gfp(Self::HIGH.0 | Self::KSWAPD_RECLAIM.0);
    /// `GFP_NOWAIT`.
    pub const NOWAIT: Gfp = Gfp(Self::KSWAPD_RECLAIM.0 | Self::NOWARN.0);
    /// `GFP_NOIO`.
    pub const NOIO: Gfp = Self::RECLAIM;
    /// `GFP_NOFS`.
    pub const NOFS: Gfp = Gfp(Self::RECLAIM.0 | Self::IO.0);
    /// `GFP_KERNEL`.
    pub const KERNEL: Gfp = Gfp(Self::NOFS.0 | Self::FS.0);
    /// `GFP_USER`.
    pub const USER: Gfp = Gfp(Self::KERNEL.0 | Self::HARDWALL.0);
    /// `GFP_HIGHUSER`.
    pub const HIGHUSER: Gfp = Gfp(Self::USER.0 | Self::HIGHMEM.0);
    /// `GFP_HIGHUSER_MOVABLE`: anonymous memory and page cache.
    pub const HIGHUSER_MOVABLE: Gfp = Gfp(Self::HIGHUSER.0 | Self::MOVABLE.0);
    /// `GFP_TRANSHUGE_LIGHT`: a huge page without any reclaim.
    pub const TRANSHUGE_LIGHT: Gfp =
        Gfp((Self::HIGHUSER_MOVABLE.0 | Self::COMP.0 | Self::NOMEMALLOC.0 | Self::NOWARN.0) & !Self::RECLAIM.0);
    /// `GFP_TRANSHUGE`: a huge page with direct reclaim and compaction.
    pub const TRANSHUGE: Gfp = Gfp(Self::TRANSHUGE_LIGHT.0 | Self::DIRECT_RECLAIM.0);

    /// Whether every flag of `other` is set.
    #[inline]
    pub const fn contains(self, other: Gfp) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether any flag of `other` is set.
    #[inline]
    pub const fn intersects(self, other: Gfp) -> bool {
        self.0 & other.0 != 0
    }

    /// Both sets of flags.
    #[inline]
    pub const fn with(self, other: Gfp) -> Gfp {
        Gfp(self.0 | other.0)
    }

    /// These flags but for those of `other`.
    #[inline]
    pub const fn without(self, other: Gfp) -> Gfp {
        Gfp(self.0 & !other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Gfp;

    #[test]
    fn a_light_huge_page_request_neither_reclaims_nor_wakes_kswapd() {
        assert!(!Gfp::TRANSHUGE_LIGHT.intersects(Gfp::RECLAIM));
        assert!(Gfp::TRANSHUGE.contains(Gfp::DIRECT_RECLAIM));
        assert!(!Gfp::TRANSHUGE.contains(Gfp::KSWAPD_RECLAIM));
    }
}
