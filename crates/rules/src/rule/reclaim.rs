//! Decisions of reclaim: its lists, how far it goes, who waits.

use serde::{Deserialize, Serialize};

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
    /// What protects pages of files among the generations of the multi-gen LRU.
    GenerationStart {
        /// Only their tiers: they join the oldest generation, and what waits for writeback the second oldest:
        /// ac35a4902374 (6.1) to 6.6 and 6.1.68.
        Oldest,
        /// Besides, they join the second oldest generation of four, and move there from the oldest one if they were accessed more
        /// often than can be counted: since 081488051d28 (6.7, 6.1.69).
        SecondOldest,
    }
);
rule!(
    /// What becomes of pages that an eviction from the generations of the multi-gen LRU could not free.
    RejectedFolios {
        /// They join the youngest generation and keep what is known of their accesses: ac35a4902374 (6.1) to 6.1 as released.
        Activated,
        /// Those that nothing keeps any more are tried once again; what is known of the others' accesses is forgotten: since 359a5e1416ca
        /// (6.2, and 6.1's stable releases).
        Retried,
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
    /// What balances LRU lists against each other looks at.
    LruStatistics {
        /// Sizes and refaults as they are: 6.1 flushes the cgroups' statistics before each pass.
        Live,
        /// What the statistics of the memory cgroup, root's too, said when they were last flushed: every 2 seconds (6.12).
        Flushed,
        /// The same, and flushed by a pass that finds enough changes and nobody at it (5.19).
        ByThreshold,
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
    /// Whether an anonymous page becomes active by the fault that maps it from the swap cache.
    SwapinLru {
        /// Its place stays the one that it was read to: the inactive list, until 4.7; since 5.9 its last eviction says which.
        AsRead,
        /// It does: since 1a8018fb4c69 (4.8), until 5.8.
        Active,
    }
);
rule!(
    /// Which pages that are read from swap into its cache count as of the working set from the start (`PG_workingset`).
    SwapinWorkingset {
        /// Every one: until 5.17.
        EveryPage,
        /// Those that were of it when they were evicted, and come back soon: since d8c47cc7bf60 (5.18).
        Refaults,
    }
);
rule!(
    /// What balances anonymous against file pages.
    ScanBalance {
        /// The ratio of rotated to scanned pages of each kind (`recent_rotated`): until 5.7.
        RotatedRatio,
        /// The cost of I/O, refaults included (`lru_note_cost`): from 5.8 to 6.1.
        IoCost,
        /// The cost of I/O and, much less, of rotations: since 0538a82c39e9 (6.2).
        RefaultCost,
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
    /// Whether the page cache remembers what was evicted from it.
    RefaultDetection {
        /// It does not: until 3.14.
        None,
        /// By shadow entries that know their page's group; a refault is judged and counted in that group alone: a528910e12ec (3.15) to 5.4.
        OwnGroup,
        /// By shadow entries that know the group whose reclaim evicted the page; all groups above a page age: since b910718a948a (5.5).
        ReclaimRoot,
    }
);
rule!(
    /// Whether an eviction is after itself on the clock that refault distances are measured by.
    EvictionClock {
        /// It is: the clock ticks before it is read: in 5.10 and before.
        TicksFirst,
        /// It is not: in 6.1 and since.
        ReadFirst,
    }
);
rule!(
    /// What is reclaimable in a zone that has no pages on LRU lists, or none but anonymous ones and no swap.
    EmptyZones {
        /// Nothing: until 6.12, 6.1.123 and 5.10.233.
        Nothing,
        /// Its free pages: since 6aaced5abd32 (6.13, 6.1.124, 5.10.234).
        FreePages,
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
    /// What a pass does with the larger kind of pages once its target is met and the smaller kind was stopped.
    ProportionalReclaim {
        /// Stops everything after the round, if direct reclaim is beyond its first priority: until 3.10.
        StopAll,
        /// Scans its share to the end, however much that reclaims: e82e0561dae9 (3.11) to 6.0.
        ScanRest,
        /// Stops after the next round: since f53af4285d77 (6.1; 5.10's stable releases since the end of 2022).
        StopAtTarget,
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
    /// How a reclaimer waits for writeback.
    ReclaimThrottle {
        /// `wait_iff_congested()` and `congestion_wait()`: until 5.15.
        Congestion,
        /// `reclaim_throttle()` with four reasons: since 8cd7c588decf (5.16).
        Reasons,
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
    /// Whether a write through a system call counts as an access to the page.
    WriteAccess {
        /// It does (`mark_page_accessed()`): until 4.6.
        Marked,
        /// Only reads do: since bbddabe2e436 (4.7).
        Plain,
    }
);
rule!(
    /// What an access does to a page that waits in a CPU's pagevec to get onto an LRU list.
    PagevecAccess {
        /// It marks the page referenced, and never activates it; that a block of a device gets its page is no access: until 3.10.
        Marks,
        /// The second one has it go onto the active list (059285a25f30, 3.11), and making a block's page is one (2457aec63745, 3.16).
        Activates,
    }
);
rule!(
    /// What becomes of lists that give nothing at the priority of a pass.
    SmallLists {
        /// What a list gives is saved up until it is a batch: until 2.6.39.
        SavedUp,
        /// kswapd scans a batch of each list that gives nothing, where all lists of the zone together would give less than
        /// a batch: since 246e87a93934 (3.0).
        Forced,
        /// kswapd scans of each list that gives nothing its kind's share of a batch, in every zone: a4d3e9e76337 and
        /// f11c0ca501af, 3.1-rc4 to 3.2.
        ForcedShare,
        /// They are left alone, but where no list gives anything: there kswapd scans a batch of each of a zone that was scanned in
        /// vain, and reclaim for a cgroup's limit a batch of each of the group: since 6f04f48dc9c0, in 3.19 and 4.4.
        ForcedInVain,
        /// They are left alone: in 4.18 and since.
        LeftAlone,
    }
);
rule!(
    /// Whether anonymous pages are left alone while the inactive file list is the larger one.
    FileFirst {
        /// They are not: until 3.7.
        Never,
        /// They are: since e9868505987a (3.8).
        WhilePlenty,
    }
);
rule!(
    /// How the share of a list is rounded to pages, where shares follow rotations.
    ShareRounding {
        /// Down: until 4.19.
        Down,
        /// Up: since 68600f623d69 (4.20).
        Up,
    }
);
rule!(
    /// What reclaim for an order above 0 takes off a list at a time.
    IsolationUnit {
        /// The oldest page, and with it the pages around it in the naturally aligned block of that order, however recent, where
        /// they are on a list of the same kind; with or without lumpy reclaim: 2.6.35 to 3.3.
        AlignedBlock,
        /// The oldest page alone: since fe2c2a106663 (3.4), for kernels with compaction.
        Page,
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
    /// How direct reclaim waits for isolated pages to become fewer.
    IsolationWait {
        /// As for a congested device, and again until they are: until 4.12.
        Congestion,
        /// Once, 100 ms; if they are still too many it leaves the list: since db73ee0d4637 (4.13).
        Sleep,
        /// Once, 20 ms at most, until somebody finds fewer: since d818fca1cac3 (5.16).
        Throttle,
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
    /// When the other CPUs forget a page table entry that reclaim takes away.
    TlbFlush {
        /// At once, page by page: until 4.2.
        AtOnce,
        /// For a batch of pages together, and before a page is written whose entry was dirty: since 72b252aed506 and
        /// d950c9477d51 (4.3).
        Batched,
    }
);
rule!(
    /// What a read fault of a mapped file maps (`do_fault_around()`).
    FaultAround {
        /// Its page: until 3.14.
        OnePage,
        /// The pages in the page cache beside it too, 16 at most: since 8c6e50b0290c (3.15).
        MapsAround,
    }
);
rule!(
    /// Whether reclaim tells of its pressure.
    VmPressure {
        /// No: until 3.9.
        NotBuilt,
        /// A worker does, woken for each 512 list entries: since 70ddf637eebe (3.10).
        Work,
    }
);
rule!(
    /// Which fields vmscan's tracepoints have, and whether the generations trace (include/trace/events/vmscan.h); in the order
    /// of the kernels.
    VmscanEvents {
        /// What isolation took around a page, each zone's lists, no shrinkers: until 3.0.
        Contiguous,
        /// The shrinkers too: since 095760730c10 (3.1).
        Shrinkers,
        /// Isolation says which kind, the shrinkers which node: as 3.19 and 4.4 have it.
        Kinds,
        /// The lists of a node, the highest zone, what a batch met, active lists: as 4.18 to 5.0 have it.
        Batches,
        /// What was activated by its kind; no zones where kswapd wakes or direct reclaim begins: as 5.4 and 6.1 have it.
        ActivatedByKind,
        /// The generations trace as the lists do: as 6.12 has it.
        Generations,
    }
);
