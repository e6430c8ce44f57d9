//! Decisions of slabs and shrinkers.

use serde::{Deserialize, Serialize};

rule!(
    /// Which of the kernel's allocators of small objects it was built with, and for SLAB how that gets a slab.
    SlabAllocator {
        /// SLUB (`CONFIG_SLUB`): the default since 2.6.23.
        Slub,
        /// SLAB (`CONFIG_SLAB`): slabs hold a descriptor and a number for each object, and come from the own node while it is above
        /// its low watermark: until 3.12.
        SlabDescriptor,
        /// The same without a descriptor, and with a byte for each object: 3.15 to 4.0.
        SlabIndex,
        /// The same, and they come from the own node down to its min watermark without waking kswapd: 4.4 until SLAB was removed in 6.8.
        SlabExactNode,
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
    /// What an allocation of a slab in more than its least order may do to get it.
    SlabSpeculation {
        /// All that its caller may, once (`__GFP_NORETRY`): 2.6.39 to 4.1.
        Reclaims,
        /// The same, but kswapd is not woken: patch 2 of the SLUB series of May 2011, never merged.
        ReclaimsQuietly,
        /// Neither wakes kswapd nor reclaims: patch 3 of the same, never merged.
        FreeOnly,
        /// Wakes kswapd for its order, but neither reclaims nor uses a reserve: 4.2, and still 4.4.
        WakesKswapd,
        /// Neither wakes kswapd nor reclaims nor uses a reserve: by 4.18.
        FreeAboveReserves,
    }
);
rule!(
    /// Which caches of objects share slabs.
    SlabMerging {
        /// None: SLAB until 3.17, and `slab_nomerge`.
        Never,
        /// Those with objects of one size, reclaimable or not alike: SLUB, until 4.4.
        BySize,
        /// Of those, the ones that are accounted alike: since 230e9fc28604 (4.5).
        ByAccount,
        /// Of those, the ones whose objects are not copied to user space, so that kmalloc has caches of its own: since 8eb8284b4129 (4.16).
        UnlessCopied,
    }
);
rule!(
    /// What limits the partial slabs that a CPU keeps.
    CpuPartial {
        /// There are none: a slab that gets a free object goes to its node's list, and is given back once it is empty:
        /// until 3.0.
        None,
        /// There are none, but nodes keep some empty slabs on their lists: 881db7fb03a7 (3.1).
        NodesKeep,
        /// Free objects in them when they were put there: since 49e2258586b4 (3.2), until 5.15.
        Objects,
        /// Their number: since b47291ef02b0 (5.16).
        Slabs,
    }
);
rule!(
    /// What it takes to charge objects of slabs to memory cgroups, where one but the root is in use.
    ObjectAccounting {
        /// A cache of its own for each cgroup (not modelled): until 5.8.
        Caches,
        /// A vector of 8 B an object beside each slab of an accounted cache: since 286e04b8ed7a (5.9).
        Vectors,
    }
);
rule!(
    /// How the tree of a file's pages gets its nodes.
    TreeNodes {
        /// Before its lock is taken, as the page is allocated (`radix_tree_maybe_preload()`): until 4.19.
        Preloaded,
        /// Under its lock and without sleeping, and only if that fails so (`xas_alloc()`, `xas_nomem()`): since 74d609585d8b (4.20).
        UnderLock,
    }
);
rule!(
    /// Who takes a journal's hold off metadata that was committed and written, before a later commit does.
    JournalRelease {
        /// Whoever wants the page: reclaim, migration and `drop_caches` (`bdev_try_to_free_page()`): until 5.13.
        OnDemand,
        /// A shrinker alone, of which `drop_caches` is modelled: since 4ba3fcdde7e3 and 3b672e3aedff (5.14).
        Shrinker,
    }
);
rule!(
    /// What ext4 remembers of where the blocks of files are.
    ExtentStatus {
        /// Nothing: until 3.7.
        None,
        /// Entries; that one was looked up again is noted in a copy of it and lost (`ext4_es_lookup_extent()`, 4.4): until 4.20.
        Unmarked,
        /// Entries that are marked when they are looked up again: since 5.0.
        Marked,
    }
);
rule!(
    /// What ext4 remembers of extents that it goes through to find one.
    ExtentLookup {
        /// The one that was looked for: until 5.5, and of a file whose extents are in a block of their own.
        Found,
        /// All that are in the inode, and the holes between them: since 4068664e3cd2 (5.6).
        WholeInode,
    }
);
rule!(
    /// What ext4 remembers of the hole that it finds a page in, which is delayed then.
    HoleLookup {
        /// From the extent before it to the first delayed block, which may be before the page: until 6.7.
        FromExtent,
        /// Between the delayed blocks around the page; the page is looked up again before it is delayed
        /// (`ext4_determine_insert_hole()`, `ext4_da_map_blocks()`, 6.12, and 6.1 as Debian has it).
        AroundPage,
    }
);
rule!(
    /// Whether writing a page whose blocks are allocated later begins a handle of ext4's journal.
    DelayedWrite {
        /// It does: until 5.14.
        Handle,
        /// It does not: since cc883236b792 (5.15).
        Plain,
    }
);
rule!(
    /// What part of a journal one transaction may take.
    JournalTransaction {
        /// A quarter of its blocks (`jbd2_journal_get_max_txn_bufs()`, 6.1).
        Quarter,
        /// A third of them (the same in the 6.12 that Debian packages).
        Third,
    }
);
rule!(
    /// Whose structures the slab caches hold: sizes as `/proc/slabinfo` shows them on x86-64.
    StructSizes {
        /// 2.6.39 where it is known, 4.20 else.
        Linux2639,
        /// 4.20.
        Linux420,
        /// 5.10, as Debian configures it: no security module keeps anything of an inode.
        Linux510,
        /// 6.1, as Debian configures it.
        Linux61,
        /// 6.12, as Debian configures it.
        Linux612,
    }
);
impl StructSizes {
    /// Whether sizes are of a kernel older than 5.10.
    pub fn older_than_510(self) -> bool {
        matches!(self, StructSizes::Linux2639 | StructSizes::Linux420)
    }

    /// Whether security modules keep something of each inode (`lsm_inode_alloc()`, security/security.c): of Debian's
    /// kernels 6.1 has one that does, 5.10 none.
    pub fn secures_inodes(self) -> bool {
        matches!(self, StructSizes::Linux61 | StructSizes::Linux612)
    }
}
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
    /// What becomes of shadows of anonymous pages in the trees of the swap cache.
    SwapShadows {
        /// They stay until their slot is used or free: until 6.2.
        Kept,
        /// Nodes with nothing else are on the list of the shrinker that frees them: since 5649d113ffce (6.3).
        Listed,
    }
);
rule!(
    /// For whom a shrinker remembers what it put off.
    DeferredObjects {
        /// For a node, whichever groups its objects are of: until 5.12.
        Node,
        /// For each memory cgroup on a node: since 86750830468506 (5.13).
        Memcg,
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
    /// Whether kswapd shrinks slabs while it only works off a boost.
    BoostedSlab {
        /// Page cache only: 5.0 to 5.2.
        Skip,
        /// As in any other reclaim: since 28360f398778 (5.3).
        Shrink,
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
    /// Whether the last user marks a dentry or an inode as referenced that was not used before.
    SingleUse {
        /// It does, so that a shrinker passes by once before it frees: until 4.14.
        Marked,
        /// Only one that is on the LRU already, and an inode also when it gets clean there: since 563f40019c62 (4.15).
        Plain,
    }
);
rule!(
    /// What counts for the dentries that a shrinker is to scan.
    DentryScan {
        /// Only what is not marked as referenced; the marks of all others on the way are taken from them: until 3.11.
        Unmarked,
        /// Everything that is looked at: since f604156751db (3.12).
        All,
    }
);
rule!(
    /// How many radix tree nodes may hold nothing but shadows, and what the others cost to make again.
    ShadowNodes {
        /// A sixteenth as many as the NUMA node has pages; two seeks: until 4.5.
        SixteenthAtSeeks,
        /// An eighth as many as are on its LRU lists; two seeks: since 0a6b76dd23fa (4.6) and b936887e87a1 (4.10).
        EighthAtSeeks,
        /// The same; nothing, so that half of the others goes each time: since 4b85afbdacd2 (4.20).
        Eighth,
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
    /// Whether the pages that an inode loses to its shrinker count as reclaimed.
    StolenPages {
        /// They do not, so that reclaim goes on although memory is free: until 3.2.
        Uncounted,
        /// As pages of slabs do: since 5f8aefd44e01 (3.3).
        Reclaimed,
    }
);
rule!(
    /// The order of a new slab's objects, of which only what it takes is modelled.
    SlabFreelist {
        /// As they lie.
        InOrder,
        /// Drawn (`CONFIG_SLAB_FREELIST_RANDOM`, c7ce4f60ac19, 4.7).
        Random,
    }
);
rule!(
    /// Whether ext4's metadata has checksums (`metadata_csum`): what mke2fs of the kernel's time makes.
    Ext4Format {
        /// It has none: until e2fsprogs 1.42.
        Plain,
        /// It has: since 1.43 (2016).
        Checksums,
    }
);
rule!(
    /// Version of an XFS on disk: what mkfs.xfs of the kernel's time makes.
    XfsFormat {
        /// 4, with inodes of 256 bytes: until xfsprogs 3.2.2 (2014).
        Plain,
        /// 5, whose metadata has checksums, with inodes of 512 bytes: since 3.2.3 (2015).
        Checksums,
    }
);
rule!(
    /// When what XFS changes gets the vector that the log is written from.
    LogVectors {
        /// As the transaction commits, for this checkpoint only: until 4.7.
        AtCommit,
        /// Before, so that what is changed once more while a checkpoint holds its vector keeps another in reserve (its shadow): since
        /// b1c5ebb21301 (4.8).
        Reserved,
    }
);
rule!(
    /// What memory for such a vector may do.
    LogVectorMemory {
        /// Reclaim, short of file systems: until 5.16.
        Reclaims,
        /// Wake kswapd, also for the large slab that is only tried; single pages are mapped if there is none: since 8dc9384b7d75 (5.17).
        WakesKswapd,
    }
);
rule!(
    /// What reclaim of an XFS inode does when its last change is not on disk.
    XfsReclaim {
        /// Waits until the log and then the inode's cluster are written, and frees it: until 5.8.
        FlushDirty,
        /// Leaves it for later and asks the log to push: since 4d0bab3a4468 (5.9).
        SkipDirty,
    }
);
