//! The caches that every machine has, with the sizes of their objects.
//!
//! Source: sizes of 6.12, 6.1 and 5.10 from `/proc/slabinfo` of real guests (Debian's kernels, x86-64), those of XFS in
//! the last two; except those marked K. Sizes of 4.20, and XFS's where a guest shows none, are from knowledge of
//! `/proc/slabinfo` of distributions' kernels of that time (marked K); the exact figures depend on the configuration.
//! Kernels between these have the sizes of the one that their file names. A size includes alignment and, where a constructor
//! exists, the free pointer behind the object (radix_tree_node: 576 + 8). Flags: fs/inode.c, fs/dcache.c,
//! fs/buffer.c, lib/radix-tree.c, fs/xfs/xfs_super.c, fs/ext4/super.c, fs/ext4/page-io.c, `SLAB_RECLAIM_ACCOUNT` in each; constructors and copies to
//! user space: the same, and kernel/fork.c, mm/rmap.c, fs/proc/inode.c, mm/shmem.c, fs/jbd2/journal.c. The kmalloc caches are the first, as a boot creates
//! them before all others: caches that share slabs (merging.rs) go by the name of the first of them.
//! Omitted: the kmalloc caches by cgroup and by DMA, caches of networking and of parts that nothing here allocates from.

use rules::StructSizes;

use super::{CacheId, CacheSpec, ObjectKind};

macro_rules! is_accounted {
    (accounted) => {
        true
    };
    (free) => {
        false
    };
}

macro_rules! caches {
    ($($(#[$doc:meta])* $id:ident $name:literal $old:literal $new:literal $reclaimable:literal $accounted:ident $kind:ident;)*) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        #[repr(u16)]
        enum Number { $($id,)* }

        impl CacheId {
            $($(#[$doc])* #[doc = concat!("Cache `", $name, "`.")] pub const $id: CacheId = CacheId(Number::$id as u16);)*
        }

        /// The specifications of all of them, in the order of their numbers.
        pub(crate) fn table(sizes: StructSizes) -> Vec<CacheSpec> {
            let old = sizes.older_than_510();
            let mut table = vec![$(CacheSpec { name: $name, size: if old { $old } else { $new }, reclaimable: $reclaimable, accounted: is_accounted!($accounted), kind: ObjectKind::$kind },)*];
            for &(cache, size) in other_sizes(sizes) {
                table[cache.index()].size = size;
            }
            if !old {
                RECLAIMABLE_SINCE_510.iter().for_each(|cache| table[cache.index()].reclaimable = true);
            }
            // SLAB_TYPESAFE_BY_RCU, fs/file_table.c (6.12); not in 6.1.
            if sizes == StructSizes::Linux612 {
                table[CacheId::FILP.index()].kind = ObjectKind::Constructed;
            }
            table
        }
    };
}

/// Where sizes differ from the table's.
fn other_sizes(sizes: StructSizes) -> &'static [(CacheId, u32)] {
    match sizes {
        StructSizes::Linux2639 => &SIZES_2639,
        StructSizes::Linux420 | StructSizes::Linux612 => &[],
        StructSizes::Linux510 => &SIZES_510,
        StructSizes::Linux61 => &SIZES_61,
    }
}

/// Sizes of 5.10 that are not 6.12's (`/proc/slabinfo` of guests of Debian's 5.10, ext4 and XFS).
const SIZES_510: [(CacheId, u32); 10] = [
    (CacheId::INODE, 608),
    (CacheId::XFS_EFD, 432),
    (CacheId::EXT4_INODE, 1184),
    (CacheId::FILP, 256),
    (CacheId::PROC_INODE, 680),
    (CacheId::SHMEM_INODE, 720),
    (CacheId::KERNFS_NODE, 128),
    (CacheId::VM_AREA_STRUCT, 200),
    (CacheId::MM_STRUCT, 1088),
    (CacheId::TASK_STRUCT, 5760),
];

/// Sizes of 6.1 that are not 6.12's (`/proc/slabinfo` of guests of Debian's 6.1, ext4 and XFS).
const SIZES_61: [(CacheId, u32); 11] = [
    (CacheId::INODE, 640),
    (CacheId::XFS_ILI, 200),
    (CacheId::EXT4_INODE, 1192),
    (CacheId::LSM_INODE, 32),
    (CacheId::FILP, 256),
    (CacheId::PROC_INODE, 712),
    (CacheId::SHMEM_INODE, 784),
    (CacheId::KERNFS_NODE, 128),
    (CacheId::VM_AREA_STRUCT, 152),
    (CacheId::MM_STRUCT, 1152),
    (CacheId::TASK_STRUCT, 6144),
];

/// Caches whose pages are reclaimable in 5.10 and later (`SLAB_RECLAIM_ACCOUNT`; fs/xfs/xfs_super.c, xfs_buf.c), and in 4.20 are not.
const RECLAIMABLE_SINCE_510: [CacheId; 2] = [CacheId::XFS_ILI, CacheId::XFS_BUF];

/// Sizes of 2.6.39, where they are known: an ext4 inode's from `/proc/slabinfo` of a guest of 2.6.39-rc7, the others computed from their structures.
const SIZES_2639: [(CacheId, u32); 2] = [
    (CacheId::EXT4_INODE, 880),
    // Height and count (8 B), `rcu_head` (16 B), 64 slots, 64 bits for each of 3 tags; the free pointer behind them.
    (CacheId::RADIX_TREE_NODE, 8 + 16 + 64 * 8 + 3 * 8 + 8),
];

caches! {
    KMALLOC_8 "kmalloc-8" 8 8 false free UserCopied;
    KMALLOC_16 "kmalloc-16" 16 16 false free UserCopied;
    KMALLOC_32 "kmalloc-32" 32 32 false free UserCopied;
    KMALLOC_64 "kmalloc-64" 64 64 false free UserCopied;
    KMALLOC_96 "kmalloc-96" 96 96 false free UserCopied;
    KMALLOC_128 "kmalloc-128" 128 128 false free UserCopied;
    KMALLOC_192 "kmalloc-192" 192 192 false free UserCopied;
    KMALLOC_256 "kmalloc-256" 256 256 false free UserCopied;
    KMALLOC_512 "kmalloc-512" 512 512 false free UserCopied;
    KMALLOC_1K "kmalloc-1k" 1024 1024 false free UserCopied;
    KMALLOC_2K "kmalloc-2k" 2048 2048 false free UserCopied;
    KMALLOC_4K "kmalloc-4k" 4096 4096 false free UserCopied;
    KMALLOC_8K "kmalloc-8k" 8192 8192 false free UserCopied;
    /// 4.20: K.
    DENTRY "dentry" 192 192 true accounted UserCopied;
    /// 4.20: K.
    INODE "inode_cache" 600 632 true accounted Constructed;
    /// Both K; aligned to a cache line.
    XFS_INODE "xfs_inode" 960 1024 true accounted Constructed;
    /// 4.20: the size that it is merged at in guests of 4.18 and 5.0. 6.12: K.
    XFS_ILI "xfs_ili" 192 192 false free Plain;
    /// Both items, of what is to be freed and of what is done: the size that they are merged at in guests of 5.0.
    XFS_EFD "xfs_efd_item" 440 440 false free Plain;
    /// Both K; aligned to a cache line.
    XFS_BUF "xfs_buf" 384 384 false free Plain;
    /// The size that it has in guests of 5.0.
    XFS_BUF_ITEM "xfs_buf_item" 272 272 false free Plain;
    /// 4.20: K.
    EXT4_INODE "ext4_inode_cache" 1080 1168 true accounted Constructed;
    /// 4.20: K.
    EXTENT_STATUS "extent_status" 40 40 true free Plain;
    /// 4.20: K. Merged with `iommu_iova` where that is built in.
    JBD2_INODE "jbd2_inode" 64 64 false free Plain;
    /// 4.20: K.
    JBD2_JOURNAL_HEAD "jbd2_journal_head" 120 120 true free Constructed;
    /// What security modules keep of an inode; 4.20 and 5.10 have no such cache, and nothing allocates from it.
    LSM_INODE "lsm_inode_cache" 88 88 false free Plain;
    /// 4.20: K.
    BUFFER_HEAD "buffer_head" 104 104 true accounted Plain;
    /// 4.20: K.
    RADIX_TREE_NODE "radix_tree_node" 584 584 true accounted Constructed;
    /// 4.20: K.
    FILP "filp" 256 192 false accounted Plain;
    /// 4.20: K.
    NAMES "names_cache" 4096 4096 false free UserCopied;
    /// 4.20: K.
    PROC_INODE "proc_inode_cache" 664 704 true accounted Constructed;
    /// 4.20: K.
    SHMEM_INODE "shmem_inode_cache" 704 760 true accounted Constructed;
    /// 4.20: K.
    KERNFS_NODE "kernfs_node_cache" 136 136 false free Plain;
    /// 4.20: K.
    VM_AREA_STRUCT "vm_area_struct" 208 176 false accounted Plain;
    /// 4.20: K.
    ANON_VMA "anon_vma" 88 104 false accounted Constructed;
    /// 4.20: K.
    ANON_VMA_CHAIN "anon_vma_chain" 64 64 false accounted Plain;
    /// 4.20: K.
    MM_STRUCT "mm_struct" 1088 1408 false accounted UserCopied;
    /// 4.20: K.
    TASK_STRUCT "task_struct" 5952 6208 false accounted UserCopied;
    /// 4.20: K.
    SIGNAL "signal_cache" 1088 1152 false accounted Plain;
    /// 4.20: K.
    SIGHAND "sighand_cache" 2112 2112 false accounted Constructed;
    /// 4.20: K.
    FILES "files_cache" 704 704 false accounted Plain;
    /// 4.20: K.
    CRED "cred_jar" 192 192 false accounted Plain;
    /// 4.20: K.
    PID "pid" 128 128 false accounted Plain;
    /// 4.20: K.
    BIO "bio-0" 192 192 false free Plain;
    /// An ioend of XFS or iomap: it, a bio and four vectors. Computed for 4.20.
    XFS_IOEND "bio-320" 320 320 false free Plain;
    /// What ext4 keeps beside a bio. 3.19: `/proc/slabinfo` of a guest.
    EXT4_IO_END "ext4_io_end" 72 64 true free Plain;
    /// 16, 64, 128 and as many vectors of a bio as there may be, 256 here.
    BIOVEC_16 "biovec-16" 256 256 false free Plain;
    /// See above.
    BIOVEC_64 "biovec-64" 1024 1024 false free Plain;
    /// See above.
    BIOVEC_128 "biovec-128" 2048 2048 false free Plain;
    /// See above.
    BIOVEC_MAX "biovec-max" 4096 4096 false free Plain;
}

impl CacheId {
    /// The kmalloc cache for so many bytes, up to 8 KiB (`kmalloc_index()`): larger requests go to the page
    /// allocator.
    pub fn kmalloc(bytes: u32) -> Option<CacheId> {
        Some(match bytes {
            0..=8 => CacheId::KMALLOC_8,
            9..=16 => CacheId::KMALLOC_16,
            17..=32 => CacheId::KMALLOC_32,
            33..=64 => CacheId::KMALLOC_64,
            65..=96 => CacheId::KMALLOC_96,
            97..=128 => CacheId::KMALLOC_128,
            129..=192 => CacheId::KMALLOC_192,
            193..=256 => CacheId::KMALLOC_256,
            257..=512 => CacheId::KMALLOC_512,
            513..=1024 => CacheId::KMALLOC_1K,
            1025..=2048 => CacheId::KMALLOC_2K,
            2049..=4096 => CacheId::KMALLOC_4K,
            4097..=8192 => CacheId::KMALLOC_8K,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_name_their_row() {
        let table = table(StructSizes::Linux420);
        assert_eq!(table[CacheId::XFS_INODE.index()].name, "xfs_inode");
        assert_eq!(table[CacheId::KMALLOC_8K.index()].name, "kmalloc-8k");
        assert_eq!(table.len(), CacheId::BIOVEC_MAX.index() + 1);
    }

    /// Four CPUs ask for 16 objects. An inode of 880 bytes: 14,080, which order 2 holds with 18 of them (waste 544, a 16th is 1024), where
    /// one of 1080 needs order 3 (17,280).
    #[test]
    fn slabs_of_2_6_39_are_smaller() {
        let order = |sizes, cache: CacheId| {
            super::super::slub::layout(&table(sizes)[cache.index()], 4, rules::SlabOrder::FewerObjects).order
        };
        assert_eq!(order(StructSizes::Linux2639, CacheId::EXT4_INODE), units::Order(2));
        assert_eq!(order(StructSizes::Linux420, CacheId::EXT4_INODE), units::Order(3));
        assert_eq!(order(StructSizes::Linux2639, CacheId::RADIX_TREE_NODE), units::Order(2));
    }

    #[test]
    fn kmalloc_takes_the_smallest_cache_that_fits() {
        let table = table(StructSizes::Linux612);
        for bytes in 1..=8192 {
            let size = table[CacheId::kmalloc(bytes).unwrap().index()].size;
            assert!(size >= bytes);
            let smaller = table.iter().filter(|c| c.name.starts_with("kmalloc-") && c.size >= bytes);
            assert_eq!(smaller.map(|c| c.size).min(), Some(size), "{bytes} bytes");
        }
        assert_eq!(CacheId::kmalloc(8193), None);
    }
}
