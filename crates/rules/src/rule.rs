//! One enum for each decision in which kernels differ.

use serde::{Deserialize, Serialize};

macro_rules! rule {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum $name { $($(#[$vdoc])* $variant),+ }
    };
}

rule!(
    /// Whether the fast path tries other local zones before it fragments a pageblock.
    ZoneSpreading {
        /// The zonelist is walked once; a zone may be fragmented while another still has whole blocks.
        Off,
        /// `ALLOC_NOFRAGMENT` in the fast path: since 6bb154504f8b (5.0), lost in 5.0's merge and repaired in 5.1/5.2.
        FastPath,
    }
);
rule!(
    /// What an external fragmentation event does to the watermarks.
    WatermarkBoost {
        /// Nothing.
        Off,
        /// `boost_watermark()`: one pageblock per event up to a share of the high watermark; since 1c30844d2dfe (5.0).
        PageblockStep,
    }
);
rule!(
    /// Whether kswapd shrinks slabs while it only works off a boost.
    BoostedSlab {
        /// Page cache only: 5.0 to 5.2.
        Skip,
        /// As in any other reclaim: since 28360f398778 (5.3).
        Shrink,
    }
);
rule!(
    /// Which orders the per-CPU page lists hold, and how large they grow.
    PcpLists {
        /// Order 0 only; batch fixed at boot, high = 6 x batch: until 5.12.
        OrderZero,
        /// Orders 0 to 3 and the huge page order; high from the low watermark: since 44042b449872 (5.13).
        HighOrder,
        /// The same with batch and high tuned to the allocation rate: since 6ccdcb6d3a74 (6.7).
        AutoTuned,
    }
);
rule!(
    /// What the inode shrinker does with an inode that still has page cache.
    InodeReclaim {
        /// Drops its clean pages (`kswapd_inodesteal`) and then the inode: before 4.20-rc3 and 5.0 to 5.13.
        InvalidatePages,
        /// Rotates inodes with more than one page: a76cf1a474d7 (4.20-rc3), reverted by 69056ee6a8a3 (5.0).
        SkipWithPages,
        /// Inodes with page cache are not on the LRU at all: since 51b8c1fe250d (5.16).
        NotOnLru,
    }
);
rule!(
    /// How many objects a shrinker is asked to scan.
    SlabPressure {
        /// In proportion to the LRU pages scanned: until 4.11.
        LruScanned,
        /// `freeable >> priority`, times 4, over seeks: 9092c71bb724 (4.16).
        Priority,
        /// The same, but at least one batch while anything is freeable: 172b06c32b94 (4.19) to 5.0.
        PriorityAtLeastBatch,
    }
);
rule!(
    /// Which node a huge page of a fault may come from.
    ThpNode {
        /// `__GFP_THISNODE` for every attempt: until 4.20-rc1 and again from 4.20 to 5.3.
        Local,
        /// `__GFP_THISNODE` only where direct reclaim is not allowed: ac5b2c18911f (4.20-rc2 to rc6).
        LocalUnlessDirect,
        /// First the local node without much effort, then any node: since 76e654cc91bb (5.4).
        LocalThenAny,
    }
);
rule!(
    /// How compaction finds pages.
    CompactionSearch {
        /// Both scanners move linearly: until 5.0.
        Linear,
        /// The free lists are searched first: `fast_find_migrateblock`, `fast_isolate_freepages`; since 5.1.
        FreeLists,
    }
);
rule!(
    /// How a reclaimer waits for writeback.
    ReclaimThrottle {
        /// `wait_iff_congested()` and `congestion_wait()`: until 5.15.
        Congestion,
        /// `reclaim_throttle()` with four reasons: since 8cd7c588decf (5.16).
        Reasons,
    }
);
rule!(
    /// Which reclaim policy the node runs.
    LruPolicy {
        /// Active and inactive lists.
        TwoLists,
    }
);
rule!(
    /// Where a new anonymous page starts, and whether anonymous refaults are detected.
    AnonStart {
        /// On the active list, no shadow entries for swap: until 5.8.
        Active,
        /// On the inactive list, refaults counted: since b518154e59aa (5.9).
        Inactive,
    }
);
rule!(
    /// What balances anonymous against file pages.
    ScanBalance {
        /// The ratio of rotated to scanned pages of each kind (`recent_rotated`): until 5.7.
        RotatedRatio,
        /// The cost of I/O by refaults and rotation (`lru_note_cost`): since 5.8.
        RefaultCost,
    }
);

rule!(
    /// Which page tables `nr_page_table_pages` counts.
    PageTableStat {
        /// PTE pages: 4.20 (`pgtable_page_ctor()` alone counts).
        Leaves,
        /// PTE, PMD and PUD pages: 6.12 (`pagetable_pmd_ctor()` and `pagetable_pud_ctor()` count too).
        AllButTop,
    }
);
rule!(
    /// Range of the OOM killer's badness.
    OomScore {
        /// At least 1 for whoever can be killed: 4.20.
        AtLeastOne,
        /// May be negative: 6.12.
        Signed,
    }
);

/// The rule in force for each decision.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Rules {
    /// Zone spreading before fragmenting.
    pub zone_spreading: ZoneSpreading,
    /// Watermark boost.
    pub watermark_boost: WatermarkBoost,
    /// Slab shrinking by boosted kswapd.
    pub boosted_slab: BoostedSlab,
    /// Per-CPU page lists.
    pub pcp_lists: PcpLists,
    /// Inodes with page cache.
    pub inode_reclaim: InodeReclaim,
    /// Pressure on shrinkers.
    pub slab_pressure: SlabPressure,
    /// Node of huge pages.
    pub thp_node: ThpNode,
    /// Compaction's search.
    pub compaction_search: CompactionSearch,
    /// Waiting reclaimers.
    pub reclaim_throttle: ReclaimThrottle,
    /// Reclaim policy.
    pub lru_policy: LruPolicy,
    /// New anonymous pages.
    pub anon_start: AnonStart,
    /// Balance of anonymous and file pages.
    pub scan_balance: ScanBalance,
    /// Page tables in the statistics.
    pub page_table_stat: PageTableStat,
    /// Badness of who uses little.
    pub oom_score: OomScore,
}

impl Rules {
    /// The rules of 6.12, the newest kernel modelled; profiles of other kernels are data elsewhere.
    pub fn newest() -> Rules {
        Rules {
            zone_spreading: ZoneSpreading::FastPath,
            watermark_boost: WatermarkBoost::PageblockStep,
            boosted_slab: BoostedSlab::Shrink,
            pcp_lists: PcpLists::AutoTuned,
            inode_reclaim: InodeReclaim::NotOnLru,
            slab_pressure: SlabPressure::Priority,
            thp_node: ThpNode::LocalThenAny,
            compaction_search: CompactionSearch::FreeLists,
            reclaim_throttle: ReclaimThrottle::Reasons,
            lru_policy: LruPolicy::TwoLists,
            anon_start: AnonStart::Inactive,
            scan_balance: ScanBalance::RefaultCost,
            page_table_stat: PageTableStat::AllButTop,
            oom_score: OomScore::Signed,
        }
    }
}
