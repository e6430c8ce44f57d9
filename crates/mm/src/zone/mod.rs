//! The page allocator: zones with their buddy lists, per-CPU lists, watermarks and mobility grouping.

mod balance;
mod boost;
mod boot;
mod buddy;
mod fair;
mod fallback;
mod flags;
mod freelist;
mod highatomic;
mod image;
mod isolate;
mod pageblock;
mod pcp;
mod pcp_batch;
mod reserve;
mod slowpath;
mod start;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod validate;
mod vmstat_worker;
mod watermark;
mod zonelist;

pub use crate::compaction::CompactPriority;
pub use balance::MAX_RECLAIM_RETRIES;
pub use flags::gfp_zone;
pub use image::KernelImage;
pub use pageblock::PageBlocks;
pub use pcp::Pcps;
pub use slowpath::{CompactOutcome, CompactRetries, ReclaimRetry, compact_gap};
pub use start::{StartError, ZoneStart};

use units::{NodeId, Order, PAGEBLOCK_ORDER, Pfn, ZoneId};

use crate::{List, LruvecId, MigrateType, ZoneKind};

/// Free blocks of one order.
#[derive(Clone, Debug, Default)]
pub struct FreeArea {
    /// A list for each migratetype.
    pub lists: [List; MigrateType::COUNT],
}

impl FreeArea {
    /// Whether there is no free block of any type (`nr_free` is 0).
    pub fn is_empty(&self) -> bool {
        self.lists.iter().all(List::is_empty)
    }
}

/// Compaction's memory of a zone.
#[derive(Clone, Copy, Debug, Default)]
pub struct CompactState {
    /// Where the migrate scanner goes on, [async, sync].
    pub migrate_pfn: [Option<Pfn>; 2],
    /// Where the free scanner goes on.
    pub free_pfn: Option<Pfn>,
    /// Lowest block that held something when skip hints were last cleared (`compact_init_migrate_pfn`).
    pub init_migrate_pfn: Option<Pfn>,
    /// Highest place with free pages then (`compact_init_free_pfn`).
    pub init_free_pfn: Option<Pfn>,
    /// Where the scanners begin, if not at the ends of the zone (`compact_cached_pivot_pfn`).
    pub pivot: Option<Pfn>,
    /// Pageblock in which the scanners met last (`compact_cached_last_met_pfn`).
    pub last_met: Option<Pfn>,
    /// Attempts since the last failure (`compact_considered`).
    pub considered: u32,
    /// log2 of the attempts to defer (`compact_defer_shift`).
    pub defer_shift: u32,
    /// Smallest order that failed (`compact_order_failed`).
    pub order_failed: Order,
    /// Skip hints are to be cleared (`compact_blockskip_flush`).
    pub blockskip_flush: bool,
}

/// A block that the task under way wants, taken from the zone as it merges (`struct capture_control`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capture {
    /// Order of the block.
    pub order: Order,
    /// Type of the allocation.
    pub migratetype: MigrateType,
    /// The block, Held, once there is one.
    pub page: Option<Pfn>,
}

impl Capture {
    /// Whether a block of this order, freed to lists of this type, is what is wanted.
    fn wants(&self, order: Order, migratetype: MigrateType) -> bool {
        let pollutes =
            order < PAGEBLOCK_ORDER && migratetype == MigrateType::Movable && self.migratetype != MigrateType::Movable;
        self.page.is_none() && self.order == order && migratetype != MigrateType::Isolate && !pollutes
    }
}

/// Watermarks of a zone in pages, without its boost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Watermarks {
    /// Below it only reserves are used.
    pub min: u64,
    /// Below it kswapd is woken.
    pub low: u64,
    /// Above it kswapd sleeps.
    pub high: u64,
    /// Above it kswapd stops demoting in NUMA tiering.
    pub promo: u64,
}

/// One zone.
#[derive(Clone, Debug)]
pub struct Zone {
    /// Its number.
    pub id: ZoneId,
    /// Its node.
    pub node: NodeId,
    /// Its kind.
    pub kind: ZoneKind,
    /// First frame.
    pub start: Pfn,
    /// Frames from first to last.
    pub spanned: u64,
    /// Frames that exist.
    pub present: u64,
    /// Frames given to the allocator.
    pub managed: u64,
    /// Watermarks without boost.
    pub watermarks: Watermarks,
    /// Boost added to every watermark (`watermark_boost`), in pages.
    pub boost: u64,
    /// The boost was raised and kswapd is to be woken once the lock is dropped (`ZONE_BOOSTED_WATERMARK`).
    pub boosted_flag: bool,
    /// Pages kept from allocations that could use a higher kind of zone, by that kind.
    pub lowmem_reserve: [u64; ZoneKind::COUNT],
    /// Free lists by order.
    pub free_area: [FreeArea; Order::MAX.0 as usize + 1],
    /// Free pages on the buddy lists (not on per-CPU lists).
    pub free_pages: u64,
    /// Pages in pageblocks of type HighAtomic.
    pub highatomic_reserved: u64,
    /// Compaction's memory.
    pub compact: CompactState,
    /// What a task that compacts for its allocation waits for here, while it runs.
    pub capture: Option<Capture>,
    /// Free memory was seen below the high watermark, so per-CPU lists shrink (`ZONE_BELOW_HIGH`).
    pub below_high: bool,
    /// kswapd reclaims here, so per-CPU lists stay small (`ZONE_RECLAIM_ACTIVE`); set and cleared by reclaim.
    pub reclaim_active: bool,
    /// Sizes of the per-CPU lists.
    pub pcp_limits: PcpLimits,
    /// LRU lists that its pages are on.
    pub lru: LruvecId,
    /// Pages that it gives before the next zone's turn comes (`NR_ALLOC_BATCH`, `ZoneFairness::Batches`).
    pub alloc_batch: i64,
    /// It has given them (`ZONE_FAIR_DEPLETED`).
    pub fair_depleted: bool,
    /// Pages scanned since one was last freed (`NR_PAGES_SCANNED`).
    pub pages_scanned: u64,
    /// kswapd has given it up, until a page is freed (until 3.13).
    pub all_unreclaimable: bool,
    /// Pageblocks kept as `MIGRATE_RESERVE`.
    migrate_reserve: u32,
    /// Free lists always agree with the pageblock's type (`FreeListTypes::Strict`).
    strict_types: bool,
}

/// Sizes of the per-CPU lists of a zone, in pages; the same for every CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PcpLimits {
    /// Pages moved at once.
    pub batch: u32,
    /// Pages at which a CPU gives some back; the least that tuning goes down to.
    pub high_min: u32,
    /// The most that tuning goes up to.
    pub high_max: u32,
}

/// Which watermark a check is made against.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wmark {
    /// `WMARK_MIN`.
    Min,
    /// `WMARK_LOW`.
    Low,
    /// `WMARK_HIGH`.
    High,
    /// `WMARK_PROMO`.
    Promo,
}

/// How an allocation may behave (`alloc_flags`, mm/internal.h).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AllocFlags {
    /// Watermark to respect; `None` is `ALLOC_NO_WATERMARKS`.
    pub wmark: Option<Wmark>,
    /// `ALLOC_NON_BLOCK` (`ALLOC_HARDER` before 6.4).
    pub harder: bool,
    /// `ALLOC_MIN_RESERVE` (`ALLOC_HIGH` before 6.4).
    pub high: bool,
    /// `ALLOC_OOM`.
    pub oom: bool,
    /// `ALLOC_HIGHATOMIC`: may use the HighAtomic reserve.
    pub highatomic: bool,
    /// `ALLOC_NOFRAGMENT`.
    pub nofragment: bool,
    /// `ALLOC_KSWAPD`.
    pub kswapd: bool,
    /// `ALLOC_FAIR`: go round the zones of the node.
    pub fair: bool,
}
