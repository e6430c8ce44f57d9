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
        /// In proportion to the LRU pages scanned, with what was put off earlier, twice the cache at most: until 3.0.
        LruScannedInFull,
        /// In proportion to the LRU pages scanned; what was put off counts for half of the cache: 3.1 to 4.11.
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
        /// Generations, where `lru_gen.enabled` says so. kswapd makes new ones, reclaim of a node goes on around them as
        /// around lists, and protected pages count as activated: ac35a4902374 to f76c83378851 (6.1).
        MultiGenByKswapd,
        /// Every reclaimer makes new generations when it runs out of cold pages, global reclaim stops at its target, and
        /// refaults count as activations: since e4dde56cd208 and 6867c7a33206 (6.3).
        MultiGen,
    }
);
rule!(
    /// What the multi-gen LRU of 6.1 does about several memory cgroups.
    MultiMemcg {
        /// Nothing: all are aged before every pass that needs it, and reclaimed in proportion to their size:
        /// ac35a4902374 to bd74fdaea146 (before f76c83378851, 6.1).
        Plain,
        /// kswapd neither ages nor swaps while the last pass found enough cold pages; reclaim does not stop early, nor does a
        /// direct reclaimer age: patch 8 of version 7 (February 2022), never merged in this form.
        AvoidSwapping,
        /// kswapd does not age while the last pass found enough cold pages, and reclaim stops once it does too much:
        /// since f76c83378851 (6.1).
        SkipAging,
    }
);
rule!(
    /// Who shares a walk through memory cgroups with others.
    MemcgWalkSharing {
        /// Nobody: each reclaimer goes through all groups. Until 6.7.
        Nobody,
        /// Direct reclaimers, each of which stops once it has enough: since b82b530740b9 (6.8).
        DirectReclaim,
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
        /// `ALLOC_HARDER`, a quarter of the reserve beyond the half of `__GFP_HIGH`, for whoever may not wait: until 3.16.
        HarderWithoutWaiting,
        /// The same, but not for requests that do not wake kswapd: patch 3 of the SLUB series of May 2011, and 3.17
        /// (b104a35d3202) to 4.3.
        HarderIfWaking,
        /// `ALLOC_HARDER` for atomic requests (`__GFP_ATOMIC`): 4.4 to 6.3.
        Harder,
        /// `ALLOC_NON_BLOCK` and `ALLOC_HIGHATOMIC` apart: since 1ebbb21811b7 (6.4).
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
        /// There are none: a slab that gets a free object goes to its node's list, and is given back once it is empty:
        /// until 3.1.
        None,
        /// Free objects in them when they were put there: since 49e2258586b4 (3.2), until 5.15.
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

rule!(
    /// Whose LRU lists a page is on.
    LruScope {
        /// Its zone's; each zone is reclaimed for itself: until 4.7.
        Zone,
        /// Its node's: since 599d0c954f91 (4.8).
        Node,
    }
);
rule!(
    /// When kswapd has done enough.
    KswapdBalance {
        /// At order 0 when every zone passes its high watermark, above when zones with a quarter of the memory do; it also
        /// compacts: 2.6.39 to 4.7.
        EveryZone,
        /// When any zone does: since 1d82de618ddd (4.8).
        AnyZone,
    }
);
rule!(
    /// How large an inactive list should be.
    InactiveTarget {
        /// Half of the file pages; of anonymous ones less where there is more memory: until 4.6.
        FileHalf,
        /// Less where there is more memory, of either kind: since 59dc76b0d4df (4.7).
        BySize,
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
        /// The largest block; its pageblock's free pages too if it is of half a pageblock's order or the request is
        /// Reclaimable, and the pageblock if half of it is free. What is split off stays behind otherwise: 3.12 to 3.19.
        HalfFree,
        /// The largest block if the pageblock may be taken along, else the smallest; the pageblock if half of it is free or
        /// in compatible use: since 7a8f58f39188 (4.13).
        HalfCompatible,
    }
);
rule!(
    /// Which watermark compaction goes by.
    CompactionWatermark {
        /// The low one, for whether it may start, has ended, and may take a free page: until 4.8.
        Low,
        /// Its allocation's, for whether it may start; min, or low for costly orders, for free pages to start with; min
        /// for taking one; none for its end: since f2b8228c5f60, 984fdba6a32e (4.9).
        Request,
    }
);
rule!(
    /// Which free block ends a compaction.
    CompactionFinish {
        /// One of the type asked for, or of a pageblock's size: until 3.19.
        OwnType,
        /// Also one of another type that the allocator would take with its pageblock: since 2149cdaef6c0 (4.1).
        Stealable,
        /// The same, but the pageblock at hand is finished first: since efe771c7603b (5.1).
        WholePageblock,
    }
);
rule!(
    /// How much the free scanner takes of a pageblock.
    FreeScanner {
        /// All that is free; blocks that the watermark protects are passed over: until 3.19.
        WholePageblock,
        /// No more than there is to migrate; a block that the watermark protects ends it: since 932ff6bbbdd2 (4.0).
        UntilEnough,
    }
);
rule!(
    /// What compaction's scanners step over in one go.
    CompoundSkip {
        /// Free blocks (migrate scanner only) and huge pages: 3.17 to 4.2.
        FreeAndHuge,
        /// All compound pages, in both scanners: since 29c0dde83016, 9fcd6d2e052e (4.3).
        Compound,
    }
);
rule!(
    /// Which pageblocks asynchronous compaction takes pages from.
    AsyncSource {
        /// Movable ones, whatever the request and whoever asks: until 4.11.
        Movable,
        /// Those of the request's type, in direct compaction only: since 282722b0d258 (4.12).
        RequestType,
    }
);
rule!(
    /// What asynchronous direct compaction does about a page that stays in the aligned block that it wants to make.
    SpoiltBlock {
        /// Nothing: until 4.7.
        ScanOn,
        /// Puts back what it took of the block and leaves it: since fdd048e12c9a (4.8).
        Leave,
    }
);
rule!(
    /// Whether light-synchronous compaction isolates pages under writeback.
    LightIsolation {
        /// It does, and fails to move them: until 4.6.
        UnderWriteback,
        /// It does not: since 4.7 ("don't isolate PageWriteback pages in MIGRATE_SYNC_LIGHT mode").
        NotUnderWriteback,
    }
);
rule!(
    /// When compaction's scanners have met.
    ScannersMeet {
        /// The free scanner's place is not above the migrate scanner's: until 4.2.
        SameFrame,
        /// Its pageblock is not: since f2849aa09d4f (4.3).
        SamePageblock,
    }
);
rule!(
    /// Where compaction's scanners start over.
    ScannerStart {
        /// At the ends of the zone, which they never pass: every released kernel.
        ZoneEnds,
        /// At a pivot, which is the start of the zone, and wrap round at its ends: posted 2015-01-19, never merged.
        FixedPivot,
        /// The same, and a restart after the longest deferral moves the pivot to where they met last.
        MovingPivot,
    }
);
rule!(
    /// Which skip hints are cleared when they are.
    SkipReset {
        /// All of the zone: until 4.14.
        All,
        /// All but those of blocks under a huge page: since 21dc7e023611 (4.15).
        NotHuge,
        /// Those of blocks that hold pages to move or free pages, and the scanners go to the outermost of these: since
        /// e332f741a8dd (5.1).
        Useful,
    }
);
rule!(
    /// When kswapd clears skip hints.
    SkipResetTime {
        /// As it goes to sleep for long: until 4.5.
        Sleep,
        /// Before its nap: since accf62422b3a (4.6).
        Nap,
    }
);
rule!(
    /// Who compacts in the background.
    BackgroundCompaction {
        /// kswapd, between its passes: 3.10 to 4.5.
        Kswapd,
        /// kcompactd, which kswapd wakes: since 698b1b30642f (4.6).
        Kcompactd,
    }
);
rule!(
    /// How an allocation combines compaction and reclaim.
    DirectCompaction {
        /// Compacts asynchronously, reclaims, and compacts light-synchronously unless it starts over: until 4.7.
        AroundReclaim,
        /// Compacts first only for costly or unmovable high orders, then after each reclaim, harder each time: since
        /// a8161d1ed609, a5508cd83f10 (4.8).
        Priorities,
    }
);
rule!(
    /// When direct reclaim leaves a zone to compaction.
    CompactionReady {
        /// With the order's gap and 1 % of the zone free above the high watermark, if it suits or is deferred; asking
        /// counts as an attempt at compaction: until 4.7.
        BalanceGap,
        /// With the order's gap free above the high watermark, if it suits: since 4.8.
        Gap,
    }
);
rule!(
    /// Whether the kernel can compact memory (`CONFIG_COMPACTION`).
    Compaction {
        /// It can.
        Built,
        /// It cannot: only reclaim makes large blocks, lumpy where the kernel knows that.
        NotBuilt,
    }
);
rule!(
    /// What an allocation of a slab in more than its least order may do to get it.
    SlabSpeculation {
        /// All that its caller may, once (`__GFP_NORETRY`): 2.6.39 to 4.1.
        Reclaims,
        /// The same, but kswapd is not woken: patch 2 of the SLUB series of May 2011, never merged.
        ReclaimsQuietly,
        /// Neither wakes kswapd nor reclaims: patch 3 of the same, never merged.
        FreeOnly,
        /// The same, and no reserve is used either: since 4.2.
        FreeAboveReserves,
    }
);
rule!(
    /// Who calls the shrinkers, and with which share of the LRU pages.
    SlabCaller {
        /// kswapd after each zone, direct reclaim after each priority, by all LRU pages of the zones in question: until
        /// 3.18.
        Reclaimer,
        /// Whoever has scanned a node, or the highest zone of one, by its LRU pages: since 6b4f7799c6a5 (3.19).
        Lists,
    }
);
rule!(
    /// Which shrinkers unused dentries and inodes have.
    VfsShrinkers {
        /// One for all dentries and one for all inodes, in batches of 128: until 3.0.
        Apart,
        /// One for a file system, in batches of 1024: since b0d40c92adaf (3.1).
        Superblock,
    }
);
rule!(
    /// How a run of kswapd over every zone ends.
    KswapdRun {
        /// It goes through the priorities over and over until the node is balanced, giving up the order where nothing comes
        /// of that; slabs are shrunk for every zone that it looks at: 2.6.39.
        AgainWithSlab,
        /// The same; slabs are shrunk for the zones that it scans: d7868dae893c (3.0) to 3.10.
        Again,
        /// It goes through them once: since b8e83b942a16 (3.11).
        Once,
    }
);
rule!(
    /// When kswapd, having balanced for an order above 0, may sleep.
    KswapdSleep {
        /// While zones with a quarter of the memory are not balanced: the missing negation of 1741c8775715, 2.6.38 to
        /// 2.6.39-rc7.
        UnlessBalanced,
        /// Once they are: since afc7e326a3f5 (2.6.39).
        IfBalanced,
        /// Then, and at any order once its time on the CPU is over: patch 4 of the SLUB series of May 2011, replaced by a
        /// point of rescheduling in `shrink_slab()` (f06590bd718e).
        IfBalancedOrPreempted,
    }
);
rule!(
    /// When kswapd takes up what came in while it worked.
    KswapdOrders {
        /// At once, whatever came of its last run: until 2.6.39.
        AtOnce,
        /// After it has reached what it was asked for: since 215ddd6664ce (3.0).
        AfterSuccess,
    }
);
rule!(
    /// Whom a request wakes that finds too little memory, where kswapd balances every zone.
    KswapdWake {
        /// A kswapd that has a zone below its low watermark: until 3.14.
        LowMark,
        /// A kswapd that has a zone which is not balanced: since 3.15.
        Unbalanced,
    }
);
rule!(
    /// Whether the page cache remembers what was evicted from it.
    RefaultDetection {
        /// It does not: until 3.14.
        None,
        /// By shadow entries: since a528910e12ec (3.15).
        Shadows,
    }
);
rule!(
    /// Whether a direct reclaimer waits while the reserve is nearly gone.
    ReserveThrottle {
        /// It does not: until 3.5.
        None,
        /// It does, until kswapd has filled half of the reserve: since 5515061d22f0 (3.6).
        HalfOfReserve,
    }
);

rule!(
    /// What balances LRU lists against each other looks at.
    LruStatistics {
        /// Sizes and refaults as they are: 6.1 flushes the cgroups' statistics before each pass.
        Live,
        /// What the statistics of the memory cgroup, root's too, said when they were last flushed: every 2 seconds (6.12).
        Flushed,
    }
);

rule!(
    /// Which runnable task a CPU picks.
    TaskPicking {
        /// That of least virtual runtime; a sleeper that wakes soon gets the CPU (CFS): until 6.5.
        LeastRuntime,
        /// Of those that are owed time, that of the earliest deadline; what runs keeps the CPU for its slice (EEVDF): since
        /// 147f3efaa241 (6.6).
        EarliestDeadline,
    }
);
rule!(
    /// Which reclaimers write the dirty file pages that they meet.
    FilePageout {
        /// Whoever may write at all, unless the device is congested; kswapd even then: until 3.1.
        Anyone,
        /// kswapd alone: since ee72886d8ed5 (3.2), patch 1 of its series.
        Kswapd,
        /// kswapd below priority 10: f84f6e2b0868 (3.2), patch 5, to 3.10.
        KswapdInTrouble,
        /// kswapd in a zone whose inactive tail is full of dirty pages: since d43006d503ac (3.11), to 4.10.
        KswapdAtDirtyTail,
        /// The same, and only pages that it meets a second time: since 4eda48235011 (4.11).
        KswapdSecondTime,
    }
);
rule!(
    /// What reclaim does to a dirty file page that it does not write.
    SkippedDirty {
        /// Nothing: until 3.1.
        Plain,
        /// Marks it, so that it goes to the inactive tail when its writeback ends: since 49ea7eb65e7c (3.2), patch 7.
        Marked,
    }
);
rule!(
    /// Where reclaim puts pages that are dirty or under writeback.
    StuckPages {
        /// Back to the head of the inactive list; one under writeback is left unmarked: until 3.10.
        Inactive,
        /// The same, and pages under writeback are marked to be rotated at its end: 3.11 to 4.10.
        InactiveMarked,
        /// On the active list, marked: since c55e8d035b28 (4.11).
        Active,
    }
);
rule!(
    /// What makes a reclaimer wait for writeback, by what a batch or a pass met.
    WritebackThrottle {
        /// Nothing in a batch. A zone is congested once all dirty pages of a batch are on congested devices; direct reclaim
        /// then naps between priorities below 10, and kswapd does: until 3.1.
        BetweenPriorities,
        /// The same, and after a batch of which enough is under writeback, the less the higher the priority: 92df3a723f84
        /// (3.2), patch 6, to 3.10.
        ShareOfBatch,
        /// Flags of the zone or node that kswapd sets after a pass: since 283aba9f9e0e and 8e950282804558 (3.11).
        Flags,
    }
);
rule!(
    /// When reclaim wakes the flushers.
    FlusherWakeup {
        /// A direct reclaimer does that has scanned one and a half times its target, for as many pages: until 4.10.
        PagesScanned,
        /// Who meets a batch of nothing but dirty pages, for everything: since 726d061fbd36 (4.11).
        DirtyBatch,
    }
);
rule!(
    /// How many isolated pages make direct reclaim wait.
    IsolationLimit {
        /// More than are inactive: until 3.7.
        AsManyAsInactive,
        /// For those who may do I/O and enter file systems, more than an eighth of that: since 3cf23841b4b7 (3.8).
        Eighth,
    }
);
rule!(
    /// How writers are held back near the dirty limit.
    DirtyThrottle {
        /// They write dirty pages themselves, and sleep in between: until 3.1.
        WriterWrites,
        /// They sleep as long as their rate says: since 143dfe8611a6 (3.2).
        Rate,
    }
);
rule!(
    /// Which memory the dirty ratios are of.
    DirtyableMemory {
        /// All that is free or may be reclaimed, anonymous memory with swap included, and no reserve taken off: until 3.1.
        Reclaimable,
        /// What is free beyond the reserves, and page cache: since ab8fabd46f81 (3.3) and a1c3bfb2f67e (3.14).
        PageCache,
    }
);
rule!(
    /// Whether the allocator spreads pages for writing over zones or nodes by their share of the dirty limit.
    DirtySpread {
        /// It does not: until 3.2.
        Off,
        /// No node gets more than its share: since 281e37265f28 (4.8); for 3.3 (a756cf5908530) to 4.7 an approximation, as that
        /// went by zones.
        Node,
    }
);
rule!(
    /// Above which limit a flusher works in the background.
    BackgroundLimit {
        /// The machine's: until 3.3.
        Machine,
        /// The machine's, or the device's share of it for its own pages: since b00949aa2d72 (3.4).
        DeviceShare,
    }
);
rule!(
    /// Which inodes background writeback takes.
    BackgroundInodes {
        /// Those that were dirty when it began; for others it begins anew: until 3.1.
        DirtyAtStart,
        /// All that are dirty whenever it looks: since 1bc36b6426ae (3.2).
        DirtyNow,
    }
);
rule!(
    /// Who learns from fsync that a write failed.
    WriteErrors {
        /// The first who asks (`AS_EIO`): until 4.12.
        Flag,
        /// Each open file that was open then, or is opened before anybody has asked: since 5660e13d2fd6 (4.13).
        Sequence,
    }
);
rule!(
    /// Whether XFS gives each cached page of a file a buffer head.
    XfsBuffers {
        /// It does: until 4.17.
        BufferHeads,
        /// It does not: since 82cb14175e7d (4.18).
        None,
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
    /// Generations of several memory cgroups.
    pub multi_memcg: MultiMemcg,
    /// Sharing of walks through memory cgroups.
    pub memcg_walk: MemcgWalkSharing,
    /// New anonymous pages.
    pub anon_start: AnonStart,
    /// Balance of anonymous and file pages.
    pub scan_balance: ScanBalance,
    /// Statistics of the LRU lists.
    pub lru_statistics: LruStatistics,
    /// Scheduling of tasks.
    pub task_picking: TaskPicking,
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
    /// Lists of pages.
    pub lru_scope: LruScope,
    /// kswapd's aim.
    pub kswapd_balance: KswapdBalance,
    /// Size of inactive lists.
    pub inactive_target: InactiveTarget,
    /// Watermarks and high orders.
    pub watermark_check: WatermarkCheck,
    /// Distance of watermarks.
    pub watermark_distance: WatermarkDistance,
    /// Allocations from several zones.
    pub zone_fairness: ZoneFairness,
    /// Fallbacks.
    pub block_stealing: BlockStealing,
    /// Compaction's watermarks.
    pub compaction_watermark: CompactionWatermark,
    /// End of a compaction.
    pub compaction_finish: CompactionFinish,
    /// Compaction's targets.
    pub free_scanner: FreeScanner,
    /// What the scanners step over.
    pub compound_skip: CompoundSkip,
    /// Pageblocks for asynchronous compaction.
    pub async_source: AsyncSource,
    /// Pages that stay.
    pub spoilt_block: SpoiltBlock,
    /// Pages under writeback.
    pub light_isolation: LightIsolation,
    /// Meeting of the scanners.
    pub scanners_meet: ScannersMeet,
    /// Start of the scanners.
    pub scanner_start: ScannerStart,
    /// Clearing of skip hints.
    pub skip_reset: SkipReset,
    /// Time of clearing them.
    pub skip_reset_time: SkipResetTime,
    /// Compaction in the background.
    pub background_compaction: BackgroundCompaction,
    /// Compaction by an allocation.
    pub direct_compaction: DirectCompaction,
    /// Reclaim or compaction.
    pub compaction_ready: CompactionReady,
    /// Compaction at all.
    pub compaction: Compaction,
    /// Large slabs.
    pub slab_speculation: SlabSpeculation,
    /// Callers of shrinkers.
    pub slab_caller: SlabCaller,
    /// Shrinkers of file systems.
    pub vfs_shrinkers: VfsShrinkers,
    /// End of kswapd's runs.
    pub kswapd_run: KswapdRun,
    /// kswapd's sleep.
    pub kswapd_sleep: KswapdSleep,
    /// Orders that kswapd is given.
    pub kswapd_orders: KswapdOrders,
    /// kswapd's wake-up.
    pub kswapd_wake: KswapdWake,
    /// Evicted pages of files.
    pub refault_detection: RefaultDetection,
    /// Direct reclaim and the reserve.
    pub reserve_throttle: ReserveThrottle,
    /// Dirty file pages written by reclaim.
    pub file_pageout: FilePageout,
    /// Dirty file pages not written by reclaim.
    pub skipped_dirty: SkippedDirty,
    /// Pages that cannot be reclaimed yet.
    pub stuck_pages: StuckPages,
    /// Waits of reclaimers for writeback.
    pub writeback_throttle: WritebackThrottle,
    /// Flushers woken by reclaim.
    pub flusher_wakeup: FlusherWakeup,
    /// Waits for isolated pages.
    pub isolation_limit: IsolationLimit,
    /// Writers near the dirty limit.
    pub dirty_throttle: DirtyThrottle,
    /// Base of the dirty ratios.
    pub dirtyable_memory: DirtyableMemory,
    /// Places of pages for writing.
    pub dirty_spread: DirtySpread,
    /// Limit of background writeback.
    pub background_limit: BackgroundLimit,
    /// Inodes of background writeback.
    pub background_inodes: BackgroundInodes,
    /// State of XFS's pages.
    pub xfs_buffers: XfsBuffers,
    /// Reports of failed writes.
    pub write_errors: WriteErrors,
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
            lru_policy: LruPolicy::MultiGen,
            multi_memcg: MultiMemcg::SkipAging,
            memcg_walk: MemcgWalkSharing::DirectReclaim,
            anon_start: AnonStart::Inactive,
            scan_balance: ScanBalance::RefaultCost,
            lru_statistics: LruStatistics::Flushed,
            task_picking: TaskPicking::EarliestDeadline,
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
            lru_scope: LruScope::Node,
            kswapd_balance: KswapdBalance::AnyZone,
            inactive_target: InactiveTarget::BySize,
            watermark_check: WatermarkCheck::FreeBlock,
            watermark_distance: WatermarkDistance::ScaleFactor,
            zone_fairness: ZoneFairness::Off,
            block_stealing: BlockStealing::HalfCompatible,
            compaction_watermark: CompactionWatermark::Request,
            compaction_finish: CompactionFinish::WholePageblock,
            free_scanner: FreeScanner::UntilEnough,
            compound_skip: CompoundSkip::Compound,
            async_source: AsyncSource::RequestType,
            spoilt_block: SpoiltBlock::Leave,
            light_isolation: LightIsolation::NotUnderWriteback,
            scanners_meet: ScannersMeet::SamePageblock,
            scanner_start: ScannerStart::ZoneEnds,
            skip_reset: SkipReset::Useful,
            skip_reset_time: SkipResetTime::Nap,
            background_compaction: BackgroundCompaction::Kcompactd,
            direct_compaction: DirectCompaction::Priorities,
            compaction_ready: CompactionReady::Gap,
            compaction: Compaction::Built,
            slab_speculation: SlabSpeculation::FreeAboveReserves,
            slab_caller: SlabCaller::Lists,
            vfs_shrinkers: VfsShrinkers::Superblock,
            kswapd_run: KswapdRun::Once,
            kswapd_sleep: KswapdSleep::IfBalanced,
            kswapd_orders: KswapdOrders::AfterSuccess,
            kswapd_wake: KswapdWake::Unbalanced,
            refault_detection: RefaultDetection::Shadows,
            reserve_throttle: ReserveThrottle::HalfOfReserve,
            file_pageout: FilePageout::KswapdSecondTime,
            skipped_dirty: SkippedDirty::Marked,
            stuck_pages: StuckPages::Active,
            writeback_throttle: WritebackThrottle::Flags,
            flusher_wakeup: FlusherWakeup::DirtyBatch,
            isolation_limit: IsolationLimit::Eighth,
            dirty_throttle: DirtyThrottle::Rate,
            dirtyable_memory: DirtyableMemory::PageCache,
            dirty_spread: DirtySpread::Node,
            background_limit: BackgroundLimit::DeviceShare,
            background_inodes: BackgroundInodes::DirtyNow,
            xfs_buffers: XfsBuffers::None,
            write_errors: WriteErrors::Sequence,
        }
    }
}
