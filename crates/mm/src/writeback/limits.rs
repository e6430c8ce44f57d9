//! How much memory may be dirty.
//!
//! Rule: dirtyable is what is free or page cache, less the pages that must stay free. `dirty_ratio` percent of it is
//! the limit at which writers are throttled, `dirty_background_ratio` percent the one at which flushers start; the
//! ratios are rounded down to 1/4096 first. Limits in bytes replace the ratios. A background limit that is not below
//! the other is set to half of it.
//! Source: `global_dirtyable_memory()`, `domain_dirty_limits()`, mm/page-writeback.c,
//! `calculate_totalreserve_pages()`, mm/page_alloc.c (4.20; 6.12 the same); `determine_dirtyable_memory()` (3.1).
//! Since/until: [`DirtyableMemory`].
//! Omitted: the bonus of a quarter for `PF_LESS_THROTTLE` and real-time tasks, highmem. Limits of groups are in `memcg::dirty`.

use rules::{DirtyableMemory, Tunables};
use units::{PAGE_SIZE, Pages};

use crate::Mm;
use crate::stat::NodeStat;
use crate::zone::Wmark;

/// Dirty limits of the machine, in pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DirtyLimits {
    /// Flushers start above it (`nr_dirty_background_threshold`).
    pub background: u64,
    /// Writers are throttled near it (`nr_dirty_threshold`).
    pub dirty: u64,
}

impl DirtyLimits {
    /// The limits for so much dirtyable memory, in pages.
    pub(super) fn new(dirtyable: u64, tunables: &Tunables) -> DirtyLimits {
        let limit = |bytes: u64, ratio: u64| match bytes {
            0 => ratio * PAGE_SIZE / 100 * dirtyable / PAGE_SIZE,
            _ => bytes.div_ceil(PAGE_SIZE),
        };
        let dirty = limit(tunables.dirty_bytes, tunables.dirty_ratio);
        let background = limit(tunables.dirty_background_bytes, tunables.dirty_background_ratio);
        DirtyLimits::of(dirty, background)
    }

    /// A background limit that is not below the other is half of it.
    pub(crate) fn of(dirty: u64, background: u64) -> DirtyLimits {
        DirtyLimits { dirty, background: if background >= dirty { dirty / 2 } else { background } }
    }

    /// Below it nobody is throttled (`dirty_freerun_ceiling()`).
    pub(super) fn freerun(&self) -> u64 {
        (self.dirty + self.background) / 2
    }
}

impl Mm {
    /// Memory that could be dirty.
    pub fn global_dirtyable_memory(&self) -> Pages {
        if self.rules.dirtyable_memory == DirtyableMemory::Reclaimable {
            return Pages(self.free_or_reclaimable() + 1);
        }
        let (mut free, mut reserve) = (0, 0);
        for zone in &self.zones {
            free += zone.free_pages;
            let lowmem = zone.lowmem_reserve.iter().max().copied().unwrap_or(0);
            reserve += (lowmem + zone.wmark(Wmark::High)).min(zone.managed);
        }
        let file = self.stat.node_sum(NodeStat::InactiveFile) + self.stat.node_sum(NodeStat::ActiveFile);
        Pages(free - free.min(reserve) + file + 1)
    }

    /// Free pages and those on LRU lists, anonymous ones only while there is swap.
    fn free_or_reclaimable(&self) -> u64 {
        let free: u64 = self.zones.iter().map(|zone| zone.free_pages).sum();
        let file = self.stat.node_sum(NodeStat::InactiveFile) + self.stat.node_sum(NodeStat::ActiveFile);
        let anon = self.stat.node_sum(NodeStat::InactiveAnon) + self.stat.node_sum(NodeStat::ActiveAnon);
        free + file + if self.swap.free_pages() > 0 { anon } else { 0 }
    }

    /// The dirty limits as they are now.
    pub fn global_dirty_limits(&self) -> DirtyLimits {
        DirtyLimits::new(self.global_dirtyable_memory().0, &self.tunables)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_rounded_down_to_a_page_size_th() {
        // 20 % of 4096 is 819 (819.2), 10 % is 409: of a million pages 199951 and 99853.
        let limits = DirtyLimits::new(1_000_000, &Tunables::default());
        assert_eq!(limits, DirtyLimits { dirty: 819 * 1_000_000 / 4096, background: 409 * 1_000_000 / 4096 });
        assert_eq!((limits.dirty, limits.background), (199_951, 99_853));
        assert_eq!(limits.freerun(), 149_902);
    }

    #[test]
    fn bytes_replace_ratios_and_are_rounded_up_to_pages() {
        let tunables = Tunables { dirty_bytes: 4097, dirty_background_bytes: 4096, ..Tunables::default() };
        assert_eq!(DirtyLimits::new(1_000_000, &tunables), DirtyLimits { dirty: 2, background: 1 });
    }

    #[test]
    fn background_is_half_unless_it_is_lower() {
        let limits = |background| {
            let bytes = |pages: u64| pages * PAGE_SIZE;
            let tunables =
                Tunables { dirty_bytes: bytes(100), dirty_background_bytes: bytes(background), ..Tunables::default() };
            DirtyLimits::new(0, &tunables).background
        };
        assert_eq!((limits(99), limits(100), limits(500)), (99, 50, 50));
    }
}
