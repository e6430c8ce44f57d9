//! Decisions of reclaim at dirty pages and pages under writeback.

use serde::{Deserialize, Serialize};

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
    /// Whose cgroup's limits hold back what is written of XFS's files.
    XfsWriter {
        /// That of the task that submits it, the root's for a flusher: until 5.2.
        Submitter,
        /// That of the file's pages: since adfb5fb46af0 (5.3).
        Owner,
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
    /// What is read from swap beside the page that a fault needs.
    SwapReadahead {
        /// All slots of the aligned window around its own, up to the first free one on either side: until 3.3.
        Cluster,
        /// Slots around its own, more of them the more of those read before were used: since 579f82901f6f (3.14), until 4.13.
        BySlot,
        /// The pages around it, unless a swap device seeks: since ec560175c0b6 (4.14).
        ByAddress,
    }
);
rule!(
    /// Whose bios go to a queue together, as one plug; those of others go one by one, and an idle device begins with the first.
    Plugs {
        /// Writeback's and readahead's from files: since 73c101011926 (2.6.39), until 3.1.
        Files,
        /// What reclaim writes, too: since 3da367c3e5fc (3.2), until 3.5.
        Reclaim,
        /// Readahead's from swap, too: since 3fb5c298b04e (3.6).
        SwapReadahead,
    }
);
rule!(
    /// Whether one process at a time that reads from swap is spared by the reclaimers of others (the swap token).
    SwapToken {
        /// It is, while it faults more often than others or until reclaim gets into trouble: to 2.6.39.
        Kept,
        /// The same; its priority halves with every 256 faults of all: 3.0 to 3.4.
        Ages,
        /// There is no such token: since e709ffd6169c (3.5).
        None,
    }
);
rule!(
    /// What becomes of the slot of a page that was read from swap for a read, once it is written to.
    SlotOfWritten {
        /// It is given up, for its contents are out of date: until 5.18.
        GivenUp,
        /// The page is known to be exclusive and written at once; its slot stays for the next time it is swapped out:
        /// since 6c287605fd56 and 1493a1913e34 (5.19).
        Kept,
    }
);
rule!(
    /// What becomes of a page of zeros that is to be swapped out.
    ZeroPages {
        /// It is written like any other: until 6.10.
        Written,
        /// A bit of its slot says so, and no device hears of it: since 0ca0c24e3211 (6.11).
        Bitmap,
    }
);
rule!(
    /// How swap gives a page to zram.
    ZramIo {
        /// By a bio, which counts as a read or a write of a disk: since 6.3, and until 3.18.
        Bio,
        /// By a call for the page alone, which counts as swapped only (`bdev_read_page()`, `bdev_write_page()`): from 3.19 to 6.2.
        Page,
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
    /// What a direct reclaimer for an order above 0 does with a batch that it could not free (`should_reclaim_stall()`).
    SecondPass {
        /// It goes over it again, writes what is dirty, and waits page by page for all that is being written: until 3.1.
        WritesAndWaits,
        /// It waits for what is being written already, not for what it writes itself: patch 2 of ee72886d8ed5's series
        /// (3.2), to 3.4.
        Waits,
        /// It puts it back: since 41ac1999c3e3 (3.5).
        None,
    }
);
rule!(
    /// What makes a reclaimer wait at the end of a zone or node because of all that is under writeback (`throttle_vm_writeout()`).
    VmWriteout {
        /// While it exceeds the dirty limit by a tenth: until 3.1.
        AboveLimit,
        /// The same of the limit as it follows the dirty pages down (`hard_dirty_limit()`): 3.2 to 4.8.
        AboveHardLimit,
        /// Nothing: since bf48438354a7 (4.9).
        Nothing,
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
