//! Decisions of the page allocator: watermarks, fallback, per-CPU lists, reserves.

use serde::{Deserialize, Serialize};

rule!(
    /// Where a CPU puts pages that reclaim frees, and takes pages from that it reads into.
    ReclaimedPages {
        /// At the cold end of its list, from where pages go back to the buddy lists: reclaimed ones 14 at a time, the last first and each 14
        /// in their order (`__pagevec_free()`); until 3.2.
        PagevecsAtColdEnd,
        /// There one by one, the last first (`free_hot_cold_page_list()`): cc59850ef940 (3.3) to 4.14.
        ColdEnd,
        /// Reclaimed pages to the hot end, like all others, and nobody takes from the cold one: since 2d4894b5d2ae and 453f85d43fa9 (4.15).
        HotEnd,
    }
);
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
    /// When a fragmentation event wakes kswapd, which looks then whether the node is balanced.
    FragmentationWake {
        /// Always, also where `watermark_boost_factor` is 0: 1c30844d2dfe, 5.0 to 5.10.
        Always,
        /// Only if it raised the boost: "mm: don't wake kswapd prematurely when watermark boosting is disabled" (October 2020, 5.11).
        IfBoosted,
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
    /// What a watermark check asks of a request above order 0.
    WatermarkCheck {
        /// At each order below, its free blocks do not count and half as much must be left: until 4.3.
        EveryOrder,
        /// One free block that is large enough: since 97a16fc82a7c (4.4).
        FreeBlock,
    }
);
rule!(
    /// Whether the watermark check of order 0 looks at free pages alone first (`zone_watermark_fast()`).
    QuickCheck {
        /// It does not, or less what is held back for high-order atomic allocations: until 4.6, and since f27ce0e14088 (5.9).
        HoldsBack,
        /// It does, reserved pages or not: 48ee5f3696f6 (4.7) to 5.8.
        AllFree,
    }
);
rule!(
    /// How far the watermarks are apart.
    WatermarkDistance {
        /// A quarter of the min watermark: until 4.5.
        QuarterOfMin,
        /// That, or `watermark_scale_factor` of the zone if it is more: since 795ae7a0de6b (4.6).
        ScaleFactor,
    }
);
rule!(
    /// Whether allocations go round the zones of a node.
    ZoneFairness {
        /// Each zone gives the distance between its high and low watermark before the next one's turn comes: since
        /// 81c0a2bb515f (3.12), until 4.7.
        Batches,
        /// The highest zone gives until it is at its low watermark: since e6cbd7f2efb4 (4.8).
        Off,
    }
);
rule!(
    /// What a fallback takes, and when it takes the pageblock along.
    BlockStealing {
        /// The largest block; its pageblock's free pages, and what is split off the block, too if it is of half a pageblock's
        /// order or the request is Reclaimable; the pageblock if half of it is free: until 3.3.
        HalfFree,
        /// The same, but what is split off stays behind unless the pageblock comes along: 0cbef29a7821 (3.13) to 3.19, mended by
        /// 99592d598eca and 3a1086fba92b (4.0).
        HalfFreeRestStays,
        /// The largest block; all that is split off it follows (3a1086fba92b), and its pageblock's free pages do if it is of half a
        /// pageblock's order or the request is Reclaimable or Unmovable (9c0415eb8cbf); the pageblock if half of it is free:
        /// 4.0 to 4.11.
        HalfFreeRestFollows,
        /// The largest block if the pageblock may be taken along, else the smallest; the pageblock if half of it is free or
        /// in compatible use: since 7a8f58f39188 (4.13).
        HalfCompatible,
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
        /// `ALLOC_HARDER`, a quarter of the reserve beyond the half of `__GFP_HIGH`, for whoever may not wait: until 3.16.
        HarderWithoutWaiting,
        /// The same, but not for requests that do not wake kswapd: patch 3 of the SLUB series of May 2011, and 3.17
        /// (b104a35d3202) to 4.3.
        HarderIfWaking,
        /// `ALLOC_HARDER` for atomic requests (`__GFP_ATOMIC`): 4.4 to 6.3, 6.1 before 6.1.119.
        Harder,
        /// `ALLOC_NON_BLOCK` and `ALLOC_HIGHATOMIC` apart: since 1ebbb21811b7 (6.4, and stable 6.1).
        NonBlocking,
    }
);
rule!(
    /// How many pageblocks high-order atomic allocations reserve, and what a watermark check holds back for them.
    HighAtomicReserve {
        /// Nothing is reserved for them; two pageblocks of each zone are kept for whoever finds nothing else
        /// (`MIGRATE_RESERVE`): until 4.3.
        MigrateReserve,
        /// One percent of the zone and a block more; all reserved pages are held back, free or not: until 6.6.
        OnePercentAndBlock,
        /// One percent rounded up to a block, none if that is less than a block (6.7); only free ones are held back
        /// (c928807f6f6b, 6.13 and stable 6.12).
        OnePercent,
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
    /// Most of a zone that a batch of the per-CPU lists is reckoned from.
    PcpBatch {
        /// 512 KiB, which makes a batch of 31 and no more than 186 pages on a list: until 4.18.
        HalfMib,
        /// 1 MiB, which makes 63: since d8a759b57035 (4.19).
        Mib,
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
    /// Whether advice (`MADV_HUGEPAGE`) makes a fault try harder for a huge page, where it may reclaim for it at all.
    ThpEffort {
        /// It does not: each fault tries once (`__GFP_NORETRY`) and never compacts synchronously: until 4.7.
        Once,
        /// It does: since 25160354a2eb (4.8).
        ByAdvice,
    }
);
rule!(
    /// Which base pages khugepaged makes a huge page of.
    CollapsePages {
        /// Those that are mapped writable: until 3.19.
        Writable,
        /// Those that are only read, too: since 10359213d05a (4.0).
        Any,
    }
);
rule!(
    /// Whether the allocator zeroes pages that nobody asked to be zeroed.
    InitOnAlloc {
        /// No: the kernel's own default.
        Off,
        /// `init_on_alloc=1`, as built by `CONFIG_INIT_ON_ALLOC_DEFAULT_ON`, which distributions choose: since 6471384af2a6 (5.3).
        On,
    }
);
