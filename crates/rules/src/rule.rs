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
        /// `Priority`, and work put off earlier is taken up by `nr >> priority` too: since 5.13.
        PriorityAndDeferred,
    }
);
rule!(
    /// What the reclaim counters count of a huge page, and of a mapped one.
    ScanCounting {
        /// One for each entry of a list, two in `nr_scanned` if it is mapped or in the swap cache: until 5.2.
        Entries,
        /// Base pages: since 5.3.
        BasePages,
    }
);
rule!(
    /// How long reclaim for a high-order request goes on in one node (`should_continue_reclaim()`).
    ReclaimForCompaction {
        /// Until enough was reclaimed or nothing more is; `__GFP_RETRY_MAYFAIL` scans the whole list: until 5.3.
        UntilGapReclaimed,
        /// While there is progress and the inactive lists hold more than the gap: since 5.4.
        WhileProgress,
    }
);
rule!(
    /// What a pass does with the larger kind of pages once its target is met and the smaller kind was stopped.
    ProportionalReclaim {
        /// Scans its share to the end, however much that reclaims: until 6.0.
        ScanRest,
        /// Stops after the next round: since f53af4285d77 (6.1).
        StopAtTarget,
    }
);
rule!(
    /// Which zones kswapd balances when it goes round again without having been asked.
    KswapdZone {
        /// The lowest zone only, and so it falls asleep though the node is short: until 5.1.
        LowestUnlessAsked,
        /// Those of its last run: since dffcac2cb88e (5.2).
        KeepPrevious,
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
        /// The free lists are searched first: `fast_find_migrateblock`, `fast_isolate_freepages`; since 5.1. Not
        /// written yet: the search is linear under this rule too, only a run's end follows 5.1.
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
    /// Whether the free lists always agree with the type of the pageblock.
    FreeListTypes {
        /// A steal moves a block's free pages to the requested type even where the block keeps its type; a page on a
        /// per-CPU list keeps the type it had when it was freed: until 6.9.
        Loose,
        /// A free page is on the list of its pageblock's type; a fallback claims a whole block or takes the smallest
        /// page: since e0932b6c1f94 (6.10) and c2f6ea38fc1b (6.15, and stable 6.12).
        Strict,
    }
);
rule!(
    /// Which end of a free list memory goes to that is given at boot or moved to another type.
    FreeListEnd {
        /// The head, so that the highest addresses are used first after boot: until 5.9.
        Head,
        /// The tail: since 7fef431be9c9 and 293ffa5ebb9c (5.10).
        Tail,
    }
);
rule!(
    /// Who may use the memory below the min watermark.
    AllocReserves {
        /// `ALLOC_HARDER` for atomic requests, a quarter of the reserve beyond the half of `__GFP_HIGH`: until 6.3.
        Harder,
        /// `ALLOC_NON_BLOCK` and `ALLOC_HIGHATOMIC` apart: since 1ebbb21811b7 (6.4).
        NonBlocking,
    }
);
rule!(
    /// How many pageblocks high-order atomic allocations reserve, and what a watermark check holds back for them.
    HighAtomicReserve {
        /// One percent of the zone and a block more; all reserved pages are held back, free or not: until 6.6.
        OnePercentAndBlock,
        /// One percent rounded up to a block, none if that is less than a block (6.7); only free ones are held back
        /// (c928807f6f6b, 6.13 and stable 6.12).
        OnePercent,
    }
);
rule!(
    /// When a boost is not raised or not looked at.
    BoostGuards {
        /// Always raised and respected: 5.0 to 5.6.
        None,
        /// Not raised in zones of less than four pageblocks (14f69140ff9c, 5.7); `__GFP_HIGH` order-0 requests look at
        /// the min watermark without boost (f80b08fc4453, 5.9).
        SmallZonesAndAtomic,
    }
);
rule!(
    /// Upper limit of the computed `min_free_kbytes`.
    MinFreeLimit {
        /// 64 MiB: until 5.7.
        Mib64,
        /// 256 MiB: since ee8eb9a5fe86 (5.8).
        Mib256,
    }
);

rule!(
    /// What SLUB gives up when no order of slab holds enough objects with little waste.
    SlabOrder {
        /// Objects, one by one, with waste up to 1/4: until 6.6.
        FewerObjects,
        /// Waste, up to 1/2: since 6.7.
        MoreWaste,
    }
);
rule!(
    /// What limits the partial slabs that a CPU keeps.
    CpuPartial {
        /// Free objects in them when they were put there: until 5.15.
        Objects,
        /// Their number: since b47291ef02b0 (5.16).
        Slabs,
    }
);
rule!(
    /// Whose structures the slab caches hold: sizes as `/proc/slabinfo` shows them on x86-64.
    StructSizes {
        /// 4.20.
        Linux420,
        /// 6.12.
        Linux612,
    }
);
rule!(
    /// What reclaim of an XFS inode does when its last change is not on disk.
    XfsReclaim {
        /// Writes the inode's cluster and frees it: until 5.8.
        FlushDirty,
        /// Leaves it for later and asks the log to push: since 4d0bab3a4468 (5.9).
        SkipDirty,
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
    /// What a kernel stack is made of.
    KernelStack {
        /// One block of order 2: 3.15 to 4.8.
        Contiguous,
        /// Single pages mapped side by side (`CONFIG_VMAP_STACK`): since e37e43a497d5 (4.9).
        Mapped,
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
rule!(
    /// Whether migration remembers that a page was accessed.
    MigrateYoung {
        /// The new page counts as not accessed: until 6.0.
        Forgotten,
        /// The accessed bit is carried in the migration entry: since 2e3468778dbe (6.1).
        Kept,
    }
);
rule!(
    /// What an allocation does when compaction backed off (deferred, contended, scanners met half-way).
    CompactionWithdrawn {
        /// Reclaims and tries again at the same priority if some zone might suit; costly `__GFP_NORETRY` requests give
        /// up if compaction was deferred: 4.8 to 5.3.
        Reclaim,
        /// Raises the priority (494330855641); costly `__GFP_NORETRY` requests also give up if compaction was skipped
        /// (b39d0ee2632d): since 5.4.
        RaisePriority,
    }
);

rule!(
    /// How readahead tells a miss from a mark.
    ReadaheadWindow {
        /// One decision for both (`ondemand_readahead()`): 4.20.
        OnDemand,
        /// A miss never continues a window, a mark only where it was set: 6.12.
        Split,
    }
);
rule!(
    /// How XFS writes a dirty page that reclaim gives it.
    XfsWritepage {
        /// With the dirty pages behind it, as far as its extent goes (`xfs_cluster_write()`): 3.1.
        Cluster,
        /// Alone: 4.20.
        OnePage,
        /// Not at all, XFS has no `->writepage`: 6.12.
        Never,
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
    /// What reclaim counts.
    pub scan_counting: ScanCounting,
    /// End of reclaim for compaction.
    pub reclaim_for_compaction: ReclaimForCompaction,
    /// Reclaim beyond the target.
    pub proportional_reclaim: ProportionalReclaim,
    /// Zones of a kswapd that nobody asked.
    pub kswapd_zone: KswapdZone,
    /// Types of free lists and pageblocks.
    pub free_list_types: FreeListTypes,
    /// End of a free list.
    pub free_list_end: FreeListEnd,
    /// Use of the reserves.
    pub alloc_reserves: AllocReserves,
    /// Reserve for high-order atomic allocations.
    pub highatomic_reserve: HighAtomicReserve,
    /// Exceptions from the boost.
    pub boost_guards: BoostGuards,
    /// Limit of the computed reserve.
    pub min_free_limit: MinFreeLimit,
    /// Order of slabs.
    pub slab_order: SlabOrder,
    /// Partial slabs of a CPU.
    pub cpu_partial: CpuPartial,
    /// Sizes of the kernel's structures.
    pub struct_sizes: StructSizes,
    /// XFS inodes whose last change is not on disk.
    pub xfs_reclaim: XfsReclaim,
    /// Page tables in the statistics.
    pub page_table_stat: PageTableStat,
    /// Kernel stacks.
    pub kernel_stack: KernelStack,
    /// Badness of who uses little.
    pub oom_score: OomScore,
    /// Accessed bits of migrated pages.
    pub migrate_young: MigrateYoung,
    /// Allocations after compaction backed off.
    pub compaction_withdrawn: CompactionWithdrawn,
    /// Windows of readahead.
    pub readahead_window: ReadaheadWindow,
    /// Dirty pages that reclaim gives to XFS.
    pub xfs_writepage: XfsWritepage,
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
            slab_pressure: SlabPressure::PriorityAndDeferred,
            thp_node: ThpNode::LocalThenAny,
            compaction_search: CompactionSearch::FreeLists,
            reclaim_throttle: ReclaimThrottle::Reasons,
            lru_policy: LruPolicy::TwoLists,
            anon_start: AnonStart::Inactive,
            scan_balance: ScanBalance::RefaultCost,
            scan_counting: ScanCounting::BasePages,
            reclaim_for_compaction: ReclaimForCompaction::WhileProgress,
            proportional_reclaim: ProportionalReclaim::StopAtTarget,
            kswapd_zone: KswapdZone::KeepPrevious,
            free_list_types: FreeListTypes::Strict,
            free_list_end: FreeListEnd::Tail,
            alloc_reserves: AllocReserves::NonBlocking,
            highatomic_reserve: HighAtomicReserve::OnePercent,
            boost_guards: BoostGuards::SmallZonesAndAtomic,
            min_free_limit: MinFreeLimit::Mib256,
            slab_order: SlabOrder::MoreWaste,
            cpu_partial: CpuPartial::Slabs,
            struct_sizes: StructSizes::Linux612,
            xfs_reclaim: XfsReclaim::SkipDirty,
            page_table_stat: PageTableStat::AllButTop,
            kernel_stack: KernelStack::Mapped,
            oom_score: OomScore::Signed,
            migrate_young: MigrateYoung::Kept,
            compaction_withdrawn: CompactionWithdrawn::RaisePriority,
            readahead_window: ReadaheadWindow::Split,
            xfs_writepage: XfsWritepage::Never,
        }
    }
}
