//! Decisions of dirty limits, writeback and files.

use serde::{Deserialize, Serialize};

rule!(
    /// What a flusher does that finds the inode locked whose blocks it wants to know (XFS).
    MapLock {
        /// It leaves the page, and puts the inode off: until 4.5.
        Try,
        /// It waits.
        Wait,
    }
);
rule!(
    /// When pages of a run that XFS wrote in one go leave writeback.
    IoendEnd {
        /// With the last bio of the run.
        LastBio,
        /// Each with its own bio, which since 6.9 is all of a run.
        EachBio,
    }
);
rule!(
    /// Whether a page that was to be written and is left dirty counts as dirtied once more (`nr_dirtied`).
    Redirtied {
        /// It does: until 3.2.
        CountsAgain,
        /// It does not: since 2f800fbd777b (3.3).
        CountsOnce,
    }
);
rule!(
    /// What the blocks are that ext4 allocates for delayed pages.
    DelayedBlocks {
        /// Written ones: until 5.5.
        Written,
        /// Unwritten ones, which a worker converts when the data is there: since 244adf6426ee (5.6; `dioread_nolock`).
        Unwritten,
    }
);
rule!(
    /// For what XFS looks up and reserves blocks as a program writes to its files.
    XfsWriteMap {
        /// Each page by itself, as its buffer is mapped (`xfs_get_blocks()`): until 4.7.
        Pages,
        /// What a call writes (`iomap`): since 68a9f5e7007c (4.8).
        Calls,
    }
);
rule!(
    /// What XFS does with an inode once data behind the size that it has on disk is there.
    XfsWriteEnd {
        /// It marks it dirty with its size, which goes to its place with the next change or writeback of the inode: until 3.3.
        MarksDirty,
        /// It logs the size: since 281627df3eb5 (3.4).
        LogsSize,
        /// It converts blocks, all of which are allocated as unwritten ones, and logs size and extents: since a5949d3faedf (5.8).
        Converts,
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
    /// What the flushers are.
    Flushers {
        /// A thread for each device, which `wake_up_process()` gets out of whatever it sleeps for: until 3.9.
        Threads,
        /// Work of a workqueue, to which the wakeups go: since 839a8e8660b6 (3.10).
        Works,
    }
);
rule!(
    /// What becomes of a page under writeback that is written to.
    WrittenMeanwhile {
        /// It changes: until 2.6.39, and since 1d1d1a767206 (3.9) unless the device wants stable pages.
        Changes,
        /// Who writes waits until the writeback has ended, in a fault with the page locked: 3.0 to 3.8.
        Waits,
    }
);
rule!(
    /// What a store to a clean page of a shared mapping does before it is throttled.
    StoreFault {
        /// It keeps `mmap_lock`: until 5.4.
        KeepsLock,
        /// It lets go, and the fault is taken again: since 89b15332af7c (5.5).
        Retries,
        /// It lets go, and the fault is over: since d92725256b4f (6.0).
        Completes,
    }
);
rule!(
    /// When what a device wrote fades from its share of the dirty limit.
    DeviceShare {
        /// By half whenever all devices together have written so many pages as the limit's power of two: lib/proportions.c,
        /// until 3.5. What a device has not written yet of the present period it has no share of.
        ByPages,
        /// By half every three seconds: lib/flex_proportions.c, since eb608e3a344b (3.6).
        ByTime,
    }
);
rule!(
    /// Memory that there is when the first dirty limit is computed.
    BootPages {
        /// All.
        All,
        /// Lower zones, and of a node's last one what its first section or two hold: since 4.20 with `CONFIG_DEFERRED_STRUCT_PAGE_INIT`.
        FirstSection,
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
    /// What cyclic writeback of a file does at its end.
    CyclicWriteback {
        /// It goes on at the beginning, and the next one begins with the page that it looked at last: until 4.19.
        Wraps,
        /// It ends, and the next one begins at the beginning: since 64081362e8ff (4.20).
        Ends,
    }
);
rule!(
    /// Pages of a group that another group's writeback is to write.
    ForeignDirty {
        /// Wait for that one: until 5.3.
        Ignored,
        /// A throttled writer of the group has them written: since 97b27821b485 (5.4).
        Flushed,
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
        /// It does: until 4.18.
        BufferHeads,
        /// It does not: since 82cb14175e7d (4.19).
        None,
    }
);
rule!(
    /// Where XFS keeps several pages of a file in one block of memory.
    LargeFolios {
        /// Nowhere: until 5.17.
        Never,
        /// In what is read ahead; each block is dirty and written as a whole: since 793917d997df, 6795801366da (5.18).
        Read,
        /// In what is written too, and only those of its pages are written that were changed: since d6bb59a9444d, 4ce02c679722 (6.6).
        Written,
    }
);
rule!(
    /// What a vector of a bio holds.
    BioVectors {
        /// A page: until 5.0.
        Pages,
        /// Pages that lie side by side in memory: since 07173c3ec276 (5.1).
        Segments,
    }
);
rule!(
    /// For how many vectors a bio of data to be written is allocated.
    BioRoom {
        /// For as many pages as its device takes in one request (`bio_get_nr_vecs()`): in 2.6.39 and 3.1.
        Request,
        /// For one more: in 3.19, until 4.2.
        RequestAndOne,
        /// For 256: since b54ffb73cadc (4.3), but for those of `HugePage`.
        Most,
        /// For 512, the pages of a huge page, which goes to swap in one: 225311a46411 (4.14) to 6861428921b5 (5.1), where huge pages
        /// are swapped whole (CONFIG_THP_SWAP).
        HugePage,
    }
);
rule!(
    /// What a cgroup's limit on bytes does not hold back, but counts.
    IoMaxExempt {
        /// Nothing: until 6.11.
        Nothing,
        /// Pages that go to swap (`REQ_SWAP`), and metadata: since 29390bb5661d (6.12).
        SwapOut,
    }
);
rule!(
    /// What a `read()` does that wants more than a file has, whose end is that of a page.
    ReadPastEnd {
        /// It looks for the page behind the end, and makes it if it is missing, before it looks at the file's size
        /// (`generic_file_buffered_read()`, 5.0, for which 5.2 is taken too).
        CachesPage,
        /// It looks at the size first (`filemap_read()`, 6.1, for which 5.19 is taken too).
        Stops,
    }
);
