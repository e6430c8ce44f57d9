//! Decisions of compaction: its scanners, its end, who starts it.

use serde::{Deserialize, Serialize};

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
    /// Who compacts in the background.
    BackgroundCompaction {
        /// kswapd, between its passes: 3.10 to 4.5.
        Kswapd,
        /// kcompactd, which kswapd wakes: since 698b1b30642f (4.6).
        Kcompactd,
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
    /// What an allocation does when compaction backed off (deferred, contended, scanners met half-way).
    CompactionWithdrawn {
        /// Reclaims and tries again at the same priority if some zone might suit; costly `__GFP_NORETRY` requests give
        /// up if compaction was deferred: 4.8 to 5.3.
        Reclaim,
        /// Raises the priority (494330855641); costly `__GFP_NORETRY` requests also give up if compaction was skipped
        /// (b39d0ee2632d), or if only one node may serve them (cc638f329ef6): since 5.4 and 5.5.
        RaisePriority,
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
        /// Also one of another type that the allocator would take with its pageblock: 2149cdaef6c0 (4.1) to 4.11.
        Stealable,
        /// The same, but for requests that are not Movable only at the end of a pageblock, unless asynchronous: baf6a9a1db5a
        /// (4.12) to 5.0.
        StealableAtEnd,
        /// The same, but the pageblock at hand is finished first: since efe771c7603b (5.1).
        WholePageblock,
    }
);
rule!(
    /// How compaction finds pages.
    CompactionSearch {
        /// Both scanners move linearly: until 5.0.
        Linear,
        /// The free lists are searched first, and pages are sampled where they show nothing
        /// (`fast_find_migrateblock()`, `fast_isolate_freepages()`); a block that pages are taken from is marked for
        /// others: since 70b44595eafe, 5a811889de10, 4fca9730c51d, e380bebe4771 (5.1).
        FreeLists,
    }
);
rule!(
    /// How far compaction looks for targets in the free lists (`fast_isolate_freepages()`).
    TargetSearch {
        /// At one block of a list (more only where the free scanner started, of the first list); found nothing there, the free
        /// scanner goes to the highest block seen wherever it is: 5.1 to 5.10.
        OneBlock,
        /// At some, fewer after searches in vain (b55ca5264b0c, 5.19); the highest block seen counts in the upper half of what
        /// lies between the scanners: mm/compaction.c (6.1).
        ByLimit,
    }
);
rule!(
    /// When the migrate scanner takes all of a pageblock at once, and marks it.
    PageblockRescan {
        /// Never: until 5.0.
        Never,
        /// When it comes to the block that it took pages from last; a block that the free lists showed is marked before
        /// it is looked at: since 804d3121ba5f, 70b44595eafe (5.1).
        Revisited,
        /// Also when a page of the block could not be moved; a block that the free lists showed is not marked: since
        /// cfccd2e63e7e (6.3).
        Failed,
    }
);
rule!(
    /// Whether a task that compacts for its allocation takes the block as it merges.
    PageCapture {
        /// It does not, and others may take it first: until 5.0.
        None,
        /// It does, which is noticed once freed pages were flushed: since 5e1f0f098b46 (5.1).
        AfterFlush,
        /// The same, but noticed before they are flushed: since 16b3be4034dd (6.3).
        BeforeFlush,
    }
);
rule!(
    /// How compaction holds the free pages that it took.
    CompactionTargets {
        /// As single pages, the last taken and highest first: until 6.8.
        SinglePages,
        /// As blocks, the smallest first, which are split as pages are moved: since 733aea0b3a7b (6.9).
        ByOrder,
    }
);
rule!(
    /// Free blocks that the free scanner leaves alone.
    TargetBlock {
        /// Those of a pageblock's size: until 6.1.
        BelowPageblock,
        /// Those of the order that is to be made: mm/compaction.c (6.12), `suitable_migration_target()`.
        BelowRequest,
    }
);
rule!(
    /// Which frames count as scanned by compaction.
    CompactionScanned {
        /// Those that were looked at: until 5.10 at least.
        Looked,
        /// Also all of a free block that was taken: mm/compaction.c (6.1), `isolate_freepages_block()`, `fast_isolate_freepages()`.
        WithTaken,
        /// Also what is passed over with a free or compound page: since 56d48d8dbefb (6.4).
        WithPassed,
    }
);
rule!(
    /// How many isolated pages keep compaction waiting.
    CompactionIsolated {
        /// More than half of the LRU lists: until 6.5.
        Half,
        /// More than a sixteenth, but half if the file system may not be entered: mm/compaction.c (6.12),
        /// `too_many_isolated()`.
        Sixteenth,
    }
);
rule!(
    /// Which attempts at direct compaction count as stalls, and are followed by a look at the free lists.
    CompactionStall {
        /// Those that compacted a zone: until 5.0.
        Ran,
        /// All, also those that no zone was suited for: 5e1f0f098b46 (5.1) to 5.12.
        Every,
        /// Those that compacted a zone or were deferred in one: since 06dac2f467fe (5.13).
        Deferred,
    }
);
rule!(
    /// Whether kcompactd compacts a fragmented node unasked.
    ProactiveCompaction {
        /// Never: until 5.8.
        Never,
        /// By its fragmentation score, a zone until its own is low, weighted by its part of the node. After a round
        /// of no use it leaves out 64 looks at which it would start: facdaa917c4d (5.9) to 5.14.
        ScoreWeighted,
        /// The same, but a zone until its own is low as it stands, and with the back-off of e1e92bfa3825 (5.15): mm/compaction.c (6.1).
        Score,
        /// The same, and what it scans counts as kcompactd's: mm/compaction.c (6.12), `compact_node()`.
        ScoreCounted,
    }
);
impl ProactiveCompaction {
    /// Whether a round of no use makes kcompactd leave out looks, and not sleep the longer.
    pub fn leaves_out_looks(self) -> bool {
        self == ProactiveCompaction::ScoreWeighted
    }
}
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
        /// Those of blocks that hold pages to move or free pages, and the scanners go to the outermost of these; only if direct
        /// compaction saw the scanners meet, also when compaction restarts: since e332f741a8dd (5.1).
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
    /// What compaction's scanners step over in one go.
    CompoundSkip {
        /// Free blocks (migrate scanner only) and huge pages: 3.17 to 4.2.
        FreeAndHuge,
        /// All compound pages, in both scanners: since 29c0dde83016, 9fcd6d2e052e (4.3).
        Compound,
    }
);
rule!(
    /// Which large folios compaction moves.
    LargeMigration {
        /// None: until 6.8.
        Never,
        /// Those of a lower order than is wanted: since 733aea0b3a7b (6.9).
        BelowOrder,
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
    /// Whether asynchronous compaction gives up because its CPU is wanted.
    AsyncAbort {
        /// At once: until 5.0.
        CpuWanted,
        /// Only between zones: since cf66f0700c8f (5.1).
        BetweenZones,
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
    /// Whether light-synchronous compaction waits for pages that are being read.
    LightLock {
        /// It does, unless it is an allocation's: until 6.4.
        Waits,
        /// It leaves them, having taken them off the LRU in vain: since 4bb6dc79d987 (6.5).
        LeavesReads,
    }
);
rule!(
    /// How much the free scanner takes of a pageblock.
    FreeScanner {
        /// All that is free; blocks that the watermark protects are passed over: until 3.19.
        WholePageblock,
        /// No more than there is to migrate; blocks that the watermark protects are passed over: 932ff6bbbdd2 (4.0) to 4.6.
        UntilEnoughPassing,
        /// No more than there is to migrate; a block that the watermark protects ends it: since a4f04f2c6955 (4.7).
        UntilEnough,
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
    /// Which pages count as failed migrations (`pgmigrate_fail`).
    FailedMigrations {
        /// Those that can never be moved as they are (`-EBUSY`): until 4.3.
        Permanent,
        /// Those that all tries failed for, too (`-EAGAIN`), and the one that there was no room for: since f2f81fb2b72b (4.4).
        All,
    }
);
rule!(
    /// Which pages of a block device's own cache can be moved.
    DeviceMigration {
        /// Clean ones, which lose their buffer heads: until 4.20.
        CleanWithoutBuffers,
        /// All that nobody holds, with their buffer heads: since 89cb0888ca14 (5.0).
        WithBuffers,
    }
);
rule!(
    /// Which tracepoints compaction has, with which fields (include/trace/events/compaction.h), and what
    /// `mm_compaction_suitable` is hit for; in the order of the kernels.
    CompactionEvents {
        /// How much the scanners looked at and what was moved: since b7aba6984dc0 (2.6.38).
        Counts,
        /// Where a run begins and how it ends, in decimal: as 3.18 and 3.19 have it.
        Runs,
        /// Where the scanners are, in hexadecimal, and every decision: since 16c4a097a035, e34d85f0e3c6, 837d026d560c and
        /// 24e2716f63e6 (4.0); success is `partial`, and the scanners have met or not: until 4.6.
        Ranges,
        /// The priority for the mode, kcompactd's: as 4.9, 4.18 and 5.0 have it.
        Priorities,
        /// `gfp_mask` by names: as 6.1 has it.
        GfpNames,
        /// The search of the free lists; suitable or not is asked only for what would not succeed as it is: as 6.12 has it.
        FreeLists,
    }
);
