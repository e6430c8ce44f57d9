//! One enum for each decision in which kernels differ, by mechanism, and the table that picks one of each.

use serde::{Deserialize, Serialize};

macro_rules! rule {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum $name { $($(#[$vdoc])* $variant),+ }
    };
}

mod alloc;
mod compaction;
mod crypto;
mod kswapd;
mod memcg;
mod newest;
mod pageout;
mod readahead;
mod reclaim;
mod slab;
mod task;
mod writeback;

pub use alloc::*;
pub use compaction::*;
pub use crypto::*;
pub use kswapd::*;
pub use memcg::*;
pub use pageout::*;
pub use readahead::*;
pub use reclaim::*;
pub use slab::*;
pub use task::*;
pub use writeback::*;

/// The rule in force for each decision.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Rules {
    /// Zone spreading before fragmenting.
    pub zone_spreading: ZoneSpreading,
    /// Watermark boost.
    pub watermark_boost: WatermarkBoost,
    /// Exceptions from the boost.
    pub boost_guards: BoostGuards,
    /// kswapd after a fragmentation event.
    pub fragmentation_wake: FragmentationWake,
    /// Limit of the computed reserve.
    pub min_free_limit: MinFreeLimit,
    /// Watermarks and high orders.
    pub watermark_check: WatermarkCheck,
    /// Watermarks and single pages.
    pub quick_check: QuickCheck,
    /// Distance of watermarks.
    pub watermark_distance: WatermarkDistance,
    /// Allocations from several zones.
    pub zone_fairness: ZoneFairness,
    /// Fallbacks.
    pub block_stealing: BlockStealing,
    /// Types of free lists and pageblocks.
    pub free_list_types: FreeListTypes,
    /// End of a free list.
    pub free_list_end: FreeListEnd,
    /// Use of the reserves.
    pub alloc_reserves: AllocReserves,
    /// Reserve for high-order atomic allocations.
    pub highatomic_reserve: HighAtomicReserve,
    /// Pages zeroed as they are allocated.
    pub init_on_alloc: InitOnAlloc,
    /// Per-CPU page lists.
    pub pcp_lists: PcpLists,
    /// Batches of per-CPU page lists.
    pub pcp_batch: PcpBatch,
    /// Ends of per-CPU lists.
    pub reclaimed_pages: ReclaimedPages,
    /// Node of huge pages.
    pub thp_node: ThpNode,
    /// Effort for huge pages.
    pub thp_effort: ThpEffort,
    /// Huge pages made of base pages.
    pub collapse_pages: CollapsePages,
    /// Compaction at all.
    pub compaction: Compaction,
    /// Compaction by an allocation.
    pub direct_compaction: DirectCompaction,
    /// Compaction in the background.
    pub background_compaction: BackgroundCompaction,
    /// Reclaim or compaction.
    pub compaction_ready: CompactionReady,
    /// Allocations after compaction backed off.
    pub compaction_withdrawn: CompactionWithdrawn,
    /// Compaction's watermarks.
    pub compaction_watermark: CompactionWatermark,
    /// End of a compaction.
    pub compaction_finish: CompactionFinish,
    /// Compaction's search.
    pub compaction_search: CompactionSearch,
    /// Compaction's search for targets.
    pub target_search: TargetSearch,
    /// Pageblocks scanned again.
    pub pageblock_rescan: PageblockRescan,
    /// The block that compaction makes.
    pub page_capture: PageCapture,
    /// Free pages that compaction holds.
    pub compaction_targets: CompactionTargets,
    /// Free blocks that compaction leaves alone.
    pub target_block: TargetBlock,
    /// What compaction counts as scanned.
    pub compaction_scanned: CompactionScanned,
    /// Compaction and isolated pages.
    pub compaction_isolated: CompactionIsolated,
    /// Stalls for compaction.
    pub compaction_stall: CompactionStall,
    /// Compaction of fragmented nodes.
    pub proactive_compaction: ProactiveCompaction,
    /// Meeting of the scanners.
    pub scanners_meet: ScannersMeet,
    /// Start of the scanners.
    pub scanner_start: ScannerStart,
    /// Clearing of skip hints.
    pub skip_reset: SkipReset,
    /// Time of clearing them.
    pub skip_reset_time: SkipResetTime,
    /// What the scanners step over.
    pub compound_skip: CompoundSkip,
    /// Compaction and large folios.
    pub large_migration: LargeMigration,
    /// Pageblocks for asynchronous compaction.
    pub async_source: AsyncSource,
    /// Asynchronous compaction on a busy CPU.
    pub async_abort: AsyncAbort,
    /// Pages that stay.
    pub spoilt_block: SpoiltBlock,
    /// Pages under writeback.
    pub light_isolation: LightIsolation,
    /// Pages that are being read.
    pub light_lock: LightLock,
    /// Metadata that compaction moves.
    pub device_migration: DeviceMigration,
    /// Compaction's targets.
    pub free_scanner: FreeScanner,
    /// Accessed bits of migrated pages.
    pub migrate_young: MigrateYoung,
    /// Failed migrations that count.
    pub failed_migrations: FailedMigrations,
    /// Reclaim policy.
    pub lru_policy: LruPolicy,
    /// Lists of pages.
    pub lru_scope: LruScope,
    /// Statistics of the LRU lists.
    pub lru_statistics: LruStatistics,
    /// Tracepoints of reclaim.
    pub vmscan_events: VmscanEvents,
    /// Fields of compaction's tracepoints.
    pub compaction_events: CompactionEvents,
    /// New anonymous pages.
    pub anon_start: AnonStart,
    /// Lists of pages that come from swap.
    pub swapin_lru: SwapinLru,
    /// Working set of pages that come from swap.
    pub swapin_workingset: SwapinWorkingset,
    /// Balance of anonymous and file pages.
    pub scan_balance: ScanBalance,
    /// Size of inactive lists.
    pub inactive_target: InactiveTarget,
    /// Evicted pages of files.
    pub refault_detection: RefaultDetection,
    /// Clock of refault distances.
    pub eviction_clock: EvictionClock,
    /// What reclaim counts.
    pub scan_counting: ScanCounting,
    /// Zones without anything to reclaim.
    pub empty_zones: EmptyZones,
    /// Flushes of TLBs.
    pub tlb_flush: TlbFlush,
    /// Reclaim beyond the target.
    pub proportional_reclaim: ProportionalReclaim,
    /// End of reclaim for compaction.
    pub reclaim_for_compaction: ReclaimForCompaction,
    /// Waiting reclaimers.
    pub reclaim_throttle: ReclaimThrottle,
    /// Direct reclaim and the reserve.
    pub reserve_throttle: ReserveThrottle,
    /// Waits for isolated pages.
    pub isolation_limit: IsolationLimit,
    /// Waits for them.
    pub isolation_wait: IsolationWait,
    /// What is isolated together.
    pub isolation_unit: IsolationUnit,
    /// Read faults of mapped files.
    pub fault_around: FaultAround,
    /// Writes as accesses.
    pub write_access: WriteAccess,
    /// Accesses to pages in pagevecs.
    pub pagevec_access: PagevecAccess,
    /// Scans of small lists.
    pub small_lists: SmallLists,
    /// File pages before anonymous ones.
    pub file_first: FileFirst,
    /// Rounding of what a list gives.
    pub share_rounding: ShareRounding,
    /// Badness of who uses little.
    pub oom_score: OomScore,
    /// kswapd's wake-up.
    pub kswapd_wake: KswapdWake,
    /// Orders that kswapd is given.
    pub kswapd_orders: KswapdOrders,
    /// Zones of a kswapd that nobody asked.
    pub kswapd_zone: KswapdZone,
    /// kswapd's aim.
    pub kswapd_balance: KswapdBalance,
    /// End of kswapd's runs.
    pub kswapd_run: KswapdRun,
    /// kswapd's sleep.
    pub kswapd_sleep: KswapdSleep,
    /// Dirty file pages written by reclaim.
    pub file_pageout: FilePageout,
    /// Dirty pages that reclaim gives to XFS.
    pub xfs_writepage: XfsWritepage,
    /// Cgroup of XFS's writes.
    pub xfs_writer: XfsWriter,
    /// Flushers and the locks of XFS's inodes.
    pub map_lock: MapLock,
    /// End of XFS's writes.
    pub ioend_end: IoendEnd,
    /// Pages that stay dirty when they were to be written.
    pub redirtied: Redirtied,
    /// Blocks that ext4 allocates at writeback.
    pub delayed_blocks: DelayedBlocks,
    /// Blocks of what programs write to XFS.
    pub xfs_write_map: XfsWriteMap,
    /// End of a write behind a file's size on XFS.
    pub xfs_write_end: XfsWriteEnd,
    /// Pages read ahead from swap.
    pub swap_readahead: SwapReadahead,
    /// Bios that go to a queue together.
    pub plugs: Plugs,
    /// Processes spared while they read from swap.
    pub swap_token: SwapToken,
    /// Slots of pages that are written to.
    pub slot_of_written: SlotOfWritten,
    /// Pages of zeros on their way to swap.
    pub zero_pages: ZeroPages,
    /// Pages on their way to zram and back.
    pub zram_io: ZramIo,
    /// Dirty file pages not written by reclaim.
    pub skipped_dirty: SkippedDirty,
    /// Pages that cannot be reclaimed yet.
    pub stuck_pages: StuckPages,
    /// Waits of reclaimers for writeback.
    pub writeback_throttle: WritebackThrottle,
    /// Batches for high orders that could not be freed.
    pub second_pass: SecondPass,
    /// Reclaim and all that is under writeback.
    pub vm_writeout: VmWriteout,
    /// Flushers woken by reclaim.
    pub flusher_wakeup: FlusherWakeup,
    /// Protection of pages of files among generations.
    pub generation_start: GenerationStart,
    /// Pages that an eviction from generations could not free.
    pub rejected_folios: RejectedFolios,
    /// Generations of several memory cgroups.
    pub multi_memcg: MultiMemcg,
    /// Sharing of walks through memory cgroups.
    pub memcg_walk: MemcgWalkSharing,
    /// Which allocator of small objects there is.
    pub slab_allocator: SlabAllocator,
    /// Order of slabs of SLUB.
    pub slab_order: SlabOrder,
    /// Caches that share slabs.
    pub slab_merging: SlabMerging,
    /// Large slabs.
    pub slab_speculation: SlabSpeculation,
    /// Partial slabs of a CPU.
    pub cpu_partial: CpuPartial,
    /// Nodes of the page cache's trees.
    pub tree_nodes: TreeNodes,
    /// Metadata that a journal holds.
    pub journal_release: JournalRelease,
    /// The largest transaction of a journal.
    pub journal_transaction: JournalTransaction,
    /// Writes with delayed allocation on ext4.
    pub delayed_write: DelayedWrite,
    /// Objects of slabs in cgroups.
    pub object_accounting: ObjectAccounting,
    /// Sizes of the kernel's structures.
    pub struct_sizes: StructSizes,
    /// Notices of reclaim's pressure.
    pub vm_pressure: VmPressure,
    /// Pressure on shrinkers.
    pub slab_pressure: SlabPressure,
    /// Objects that shrinkers put off.
    pub deferred_objects: DeferredObjects,
    /// Callers of shrinkers.
    pub slab_caller: SlabCaller,
    /// Slab shrinking by boosted kswapd.
    pub boosted_slab: BoostedSlab,
    /// Shrinkers of file systems.
    pub vfs_shrinkers: VfsShrinkers,
    /// Dentries and inodes that were used once.
    pub single_use: SingleUse,
    /// What counts in a scan of dentries.
    pub dentry_scan: DentryScan,
    /// Nodes of shadows.
    pub shadow_nodes: ShadowNodes,
    /// Nodes of shadows in the swap cache.
    pub swap_shadows: SwapShadows,
    /// Inodes with page cache.
    pub inode_reclaim: InodeReclaim,
    /// Whether pages stolen from inodes count.
    pub stolen_pages: StolenPages,
    /// Order of a slab's objects.
    pub slab_freelist: SlabFreelist,
    /// ext4 on disk.
    pub ext4_format: Ext4Format,
    /// XFS on disk.
    pub xfs_format: XfsFormat,
    /// Vectors of XFS's log.
    pub log_vectors: LogVectors,
    /// Memory for them.
    pub log_vector_memory: LogVectorMemory,
    /// XFS inodes whose last change is not on disk.
    pub xfs_reclaim: XfsReclaim,
    /// Writers near the dirty limit.
    pub dirty_throttle: DirtyThrottle,
    /// What flushers are.
    pub flushers: Flushers,
    /// Writes to pages under writeback.
    pub written_meanwhile: WrittenMeanwhile,
    /// Stores to clean pages of shared mappings.
    pub store_fault: StoreFault,
    /// Devices' shares of the dirty limit.
    pub device_share: DeviceShare,
    /// Base of the dirty ratios.
    pub dirtyable_memory: DirtyableMemory,
    /// Memory of the first dirty limit.
    pub boot_pages: BootPages,
    /// Places of pages for writing.
    pub dirty_spread: DirtySpread,
    /// Limit of background writeback.
    pub background_limit: BackgroundLimit,
    /// Inodes of background writeback.
    pub background_inodes: BackgroundInodes,
    /// Cyclic writeback at the end of a file.
    pub cyclic_writeback: CyclicWriteback,
    /// Dirty pages that are another group's to write.
    pub foreign_dirty: ForeignDirty,
    /// Reports of failed writes.
    pub write_errors: WriteErrors,
    /// State of XFS's pages.
    pub xfs_buffers: XfsBuffers,
    /// Blocks of pages in the page cache.
    pub large_folios: LargeFolios,
    /// Pages that a bio holds.
    pub bio_vectors: BioVectors,
    /// Room of a bio.
    pub bio_room: BioRoom,
    /// Exceptions from `io.max`.
    pub io_max_exempt: IoMaxExempt,
    /// Where the blocks of files are.
    pub extent_status: ExtentStatus,
    /// Extents that are gone through.
    pub extent_lookup: ExtentLookup,
    /// Holes that are found.
    pub hole_lookup: HoleLookup,
    /// Reads beyond the end of a file.
    pub read_past_end: ReadPastEnd,
    /// Windows of readahead.
    pub readahead_window: ReadaheadWindow,
    /// Largest window.
    pub readahead_limit: ReadaheadLimit,
    /// Pages that are read ahead.
    pub readahead_gfp: ReadaheadGfp,
    /// Windows that follow each other.
    pub next_window: NextWindow,
    /// Pages found in the cache around a read.
    pub cached_run: CachedRun,
    /// The mark of a window at the end of a file.
    pub readahead_mark: ReadaheadMark,
    /// A page that a fault reads alone.
    pub fault_gfp: FaultGfp,
    /// Hits of faults around.
    pub fault_around_hits: FaultAroundHits,
    /// Scheduling of tasks.
    pub task_picking: TaskPicking,
    /// Workers that come at intervals.
    pub boot_timers: BootTimers,
    /// Costs of the kernel's work.
    pub path_length: PathLength,
    /// Checksums of metadata.
    pub crc32c: Crc32c,
    /// Random numbers of an early boot.
    pub unseeded_random: UnseededRandom,
    /// Numbers that need not be secure.
    pub prandom: Prandom,
    /// Full stalls of memory.
    pub memory_full: MemoryFull,
    /// Killed tasks that allocate without `__GFP_FS`.
    pub dying_without_fs: DyingWithoutFs,
    /// Kernel stacks.
    pub kernel_stack: KernelStack,
    /// Reads of pipes.
    pub pipe_read: PipeRead,
    /// Page tables in the statistics.
    pub page_table_stat: PageTableStat,
}

impl Rules {
    /// Whether there are memory cgroups of version 2; they are not modelled where each zone has lists of its own (until 4.7).
    pub fn has_memory_cgroups(&self) -> bool {
        self.lru_scope != LruScope::Zone
    }
}
