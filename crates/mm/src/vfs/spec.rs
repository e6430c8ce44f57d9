//! What a file system is like: its parameters as data.
//!
//! Source: XFS: `XFS_INODE_BIG_CLUSTER_SIZE` 8 KiB for 256-byte inodes and in proportion for larger ones
//! (fs/xfs/xfs_mount.c), 64 inodes a chunk, mkfs.xfs: 512-byte inodes, 4 allocation groups on a plain disk. ext4:
//! 256-byte inodes, 128 MiB block groups, mke2fs; `find_group_orlov()`, fs/ext4/ialloc.c, for where directories go.
//! Abstracted: ext4 has allocation groups of the whole device's quarter, and allocates its inode tables by and by like
//! XFS, though it never gives them back.

use units::{Bytes, PAGE_SIZE};

use crate::slab::CacheId;

/// Which file system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FsKind {
    /// XFS, version 5 on disk.
    Xfs,
    /// ext4, simplified.
    Ext4,
}

/// Parameters of a file system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FsSpec {
    /// Which one.
    pub kind: FsKind,
    /// Device number, as the machine lists them.
    pub device: u16,
    /// Size of the device.
    pub capacity: Bytes,
    /// Size of the log; 0 if the kind has none that counts.
    pub log: Bytes,
    /// Bytes of an inode on disk.
    pub inode_bytes: u32,
    /// Pages of the buffer that inodes are read and written in, up to 4.
    pub cluster_pages: u32,
    /// Allocation groups.
    pub ag_count: u32,
    /// Whether every new directory goes to the next group; otherwise only those in the root do, and others to the group of
    /// the directory that they are in.
    pub spreads_dirs: bool,
    /// Bytes that a name takes in its directory, its hash entry included.
    pub dirent_bytes: u32,
    /// Names that fit the directory's inode.
    pub inline_dirents: u32,
    /// Pages from which on an extending write preallocates as much as the file has.
    pub prealloc_from_pages: u32,
    /// Cache of inodes in memory.
    pub inode_cache: CacheId,
    /// Cache of what an inode keeps of a file's extents, for one of them.
    pub extent_cache: CacheId,
    /// Cache of what the log keeps of an inode that was changed: its log item, or its place in a transaction
    /// (`jbd2_inode`).
    pub item_cache: CacheId,
    /// Cache of the metadata buffers' heads.
    pub buffer_cache: CacheId,
}

impl FsSpec {
    /// XFS as mkfs.xfs makes it on a plain disk: 512-byte inodes in clusters of 16 KiB, 4 allocation groups, a log of a 2048th of
    /// the disk, from 10 MiB to 2 GiB.
    /// A name is taken to be 16 letters: 32 B of data and 8 B of hash.
    pub fn xfs(device: u16, capacity: Bytes) -> FsSpec {
        FsSpec {
            kind: FsKind::Xfs,
            device,
            capacity,
            // `calculate_log_size()`, mkfs.xfs 4.19.
            log: Bytes((capacity.0 / 2048).clamp(Bytes::mib(10).0, Bytes::gib(2).0)),
            inode_bytes: 512,
            cluster_pages: 4,
            ag_count: 4,
            spreads_dirs: true,
            dirent_bytes: 40,
            inline_dirents: 12,
            prealloc_from_pages: 16,
            inode_cache: CacheId::XFS_INODE,
            extent_cache: CacheId::KMALLOC_16,
            item_cache: CacheId::XFS_ILI,
            buffer_cache: CacheId::XFS_BUF,
        }
    }

    /// ext4 as mke2fs makes it: 256-byte inodes, read by blocks of 4 KiB.
    pub fn ext4(device: u16, capacity: Bytes) -> FsSpec {
        FsSpec {
            kind: FsKind::Ext4,
            device,
            capacity,
            log: Bytes(0),
            inode_bytes: 256,
            cluster_pages: 1,
            ag_count: 4,
            spreads_dirs: false,
            dirent_bytes: 32,
            inline_dirents: 0,
            prealloc_from_pages: u32::MAX,
            inode_cache: CacheId::EXT4_INODE,
            extent_cache: CacheId::EXTENT_STATUS,
            item_cache: CacheId::JBD2_INODE,
            buffer_cache: CacheId::BUFFER_HEAD,
        }
    }

    /// Blocks (4 KiB) of an allocation group.
    pub(super) fn ag_blocks(&self) -> u32 {
        let blocks = self.capacity.pages_down().0 / u64::from(self.ag_count);
        u32::try_from(blocks * u64::from(self.ag_count)).expect("a device of at most 16 TiB");
        blocks as u32
    }

    /// Blocks (4 KiB) of the device.
    pub(super) fn device_blocks(&self) -> u32 {
        u32::try_from(self.capacity.pages_down().0).expect("a device of at most 16 TiB")
    }

    /// Clusters of a chunk of 64 inodes.
    pub(super) fn clusters(&self) -> u32 {
        self.chunk_pages() / self.cluster_pages
    }

    /// Pages of a chunk of 64 inodes.
    pub(super) fn chunk_pages(&self) -> u32 {
        64 * self.inode_bytes / PAGE_SIZE as u32
    }

    /// Names in a directory block.
    pub(super) fn dirents_per_block(&self) -> u32 {
        PAGE_SIZE as u32 / self.dirent_bytes
    }

    pub(super) fn check(&self) {
        assert!((1..=4).contains(&self.cluster_pages), "a cluster has 1 to 4 pages, not {}", self.cluster_pages);
        assert!((1..=4).contains(&self.clusters()), "a chunk has 1 to 4 clusters, not {}", self.clusters());
        assert!(self.ag_count > 0 && self.ag_blocks() >= 4096, "an allocation group of at least 16 MiB");
    }
}
