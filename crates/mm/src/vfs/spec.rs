//! What a file system is like: its parameters as data.
//!
//! Source: XFS: `XFS_INODE_BIG_CLUSTER_SIZE` 8 KiB for 256-byte inodes and in proportion for larger ones
//! (fs/xfs/xfs_mount.c), 64 inodes a chunk, mkfs.xfs: 512-byte inodes, 4 allocation groups on a plain disk; version 4:
//! `struct xfs_icdinode`, `struct xfs_dir2_data_hdr`, `struct xfs_dir2_sf_entry` (fs/xfs, 3.1). ext4:
//! 256-byte inodes, one for each 16 KiB, block groups of 128 MiB, 16 of which have their tables together and directories in
//! the first of them (mke2fs: `flex_bg`; `EXT4_FLEX_SIZE_DIR_ALLOC_SCHEME`).
//! Abstracted: unless [`FsSpec::flex_bg`] says so, ext4 has allocation groups of the whole device's quarter, and allocates its
//! inode tables by and by like XFS, though it never gives them back; with it, what is left of a device behind its last whole
//! group is shared out among them.

use units::{Bytes, PAGE_SIZE};

use crate::slab::CacheId;

/// Which file system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FsKind {
    /// XFS.
    Xfs,
    /// ext4, simplified.
    Ext4,
}

/// Blocks of one of ext4's block groups, how many are an allocation group, and from how many on the first one is for
/// directories.
pub(super) const BLOCK_GROUP: u32 = 32_768;
const FLEX_GROUPS: u32 = 16;
const DIR_SCHEME_GROUPS: u32 = 4;
/// Blocks of data for each block of a table: 16 inodes of 256 bytes, one for each 16 KiB.
const TABLE_SHARE: u32 = 64;

/// Parameters of a file system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FsSpec {
    /// Which one.
    pub kind: FsKind,
    /// Device number, as the machine lists them.
    pub device: u16,
    /// Size of the device.
    pub capacity: Bytes,
    /// Size of the log, or the journal.
    pub log: Bytes,
    /// Bytes of an inode on disk.
    pub inode_bytes: u32,
    /// Metadata has checksums: version 5 of XFS on disk (without, version 4), `metadata_csum` of ext4.
    pub crc: bool,
    /// Pages of the buffer that inodes are read and written in, up to 4.
    pub cluster_pages: u32,
    /// Allocation groups.
    pub ag_count: u32,
    /// ext4: tables of inodes lie at the start of each allocation group of 2 GiB, and directories go where Orlov's rule says.
    pub flex_bg: bool,
    /// ext4 as ext3: without extents and delayed allocation (block_map.rs).
    pub block_mapped: bool,
    /// Reading a file leaves its time of access as it is, as it is mounted (`noatime`); without it mounts are `relatime`.
    pub noatime: bool,
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

/// Size of the journal that mke2fs makes on a device (`ext2fs_default_journal_size()`, e2fsprogs 1.47).
fn journal_of(capacity: Bytes) -> Bytes {
    const MIB: u64 = 1 << 20;
    let (gib, mib) = (capacity.0 >> 30, capacity.0 / MIB);
    let size = match gib {
        _ if mib < 128 => 4,
        0 => 16,
        1 => 32,
        2..16 => 64,
        16..32 => 128,
        32..64 => 256,
        64..128 => 512,
        _ => 1024,
    };
    Bytes::mib(size)
}

impl FsSpec {
    /// XFS as mkfs.xfs makes it on a plain disk: 512-byte inodes in clusters of 16 KiB, 4 allocation groups, a log of a 2048th of
    /// the disk, from 10 MiB to 2 GiB.
    /// A name is taken to be 12 letters: 24 B of data and 8 B of hash.
    pub fn xfs(device: u16, capacity: Bytes) -> FsSpec {
        FsSpec {
            kind: FsKind::Xfs,
            device,
            capacity,
            // `calculate_log_size()`, mkfs.xfs 4.19.
            log: Bytes((capacity.0 / 2048).clamp(Bytes::mib(10).0, Bytes::gib(2).0)),
            inode_bytes: 512,
            crc: true,
            cluster_pages: 4,
            ag_count: 4,
            flex_bg: false,
            block_mapped: false,
            noatime: false,
            dirent_bytes: 32,
            inline_dirents: 12,
            prealloc_from_pages: 16,
            inode_cache: CacheId::XFS_INODE,
            extent_cache: CacheId::KMALLOC_16,
            item_cache: CacheId::XFS_ILI,
            buffer_cache: CacheId::XFS_BUF,
        }
    }

    /// XFS as mkfs.xfs made it until 3.2.2 (`-m crc=0`): 256-byte inodes in clusters of 8 KiB, which have room for 7 names: 256 bytes
    /// less 100 of the core and what follows it and 6 of a header, 19 a name.
    pub fn without_crc(self) -> FsSpec {
        assert!(self.kind == FsKind::Xfs);
        FsSpec { crc: false, inode_bytes: 256, cluster_pages: 2, inline_dirents: 7, ..self }
    }

    /// The same on a device that says of itself that it is striped over disks, from 64 MiB up to 32 TiB
    /// (`calc_default_ag_geometry()`, mkfs.xfs).
    /// Omitted: that files and writes of the log begin at a stripe (`sunit`, `swidth`).
    pub fn striped(self) -> FsSpec {
        assert!(self.kind == FsKind::Xfs);
        let ag_count = match self.capacity {
            size if size > Bytes::gib(512) => 32,
            size if size > Bytes::gib(8) => 16,
            size if size >= Bytes::mib(128) => 8,
            _ => 4,
        };
        FsSpec { ag_count, ..self }
    }

    /// ext4 as mke2fs makes it: 256-byte inodes, read by blocks of 4 KiB. A name is taken to be 12 letters, too.
    pub fn ext4(device: u16, capacity: Bytes) -> FsSpec {
        FsSpec {
            kind: FsKind::Ext4,
            device,
            capacity,
            log: journal_of(capacity),
            inode_bytes: 256,
            crc: true,
            cluster_pages: 1,
            ag_count: 4,
            flex_bg: false,
            block_mapped: false,
            noatime: false,
            dirent_bytes: 20,
            inline_dirents: 0,
            prealloc_from_pages: u32::MAX,
            inode_cache: CacheId::EXT4_INODE,
            extent_cache: CacheId::EXTENT_STATUS,
            item_cache: CacheId::JBD2_INODE,
            buffer_cache: CacheId::BUFFER_HEAD,
        }
    }

    /// ext4 with its block groups.
    pub fn with_flex_bg(self) -> FsSpec {
        assert!(self.kind == FsKind::Ext4);
        let ag_count = (self.capacity.pages_down().0 / u64::from(BLOCK_GROUP * FLEX_GROUPS)).max(1) as u32;
        FsSpec { ag_count, flex_bg: true, ..self }
    }

    /// Blocks (4 KiB) of an allocation group.
    pub(super) fn ag_blocks(&self) -> u32 {
        let blocks = self.capacity.pages_down().0 / u64::from(self.ag_count);
        u32::try_from(blocks * u64::from(self.ag_count)).expect("a device of at most 16 TiB");
        blocks as u32
    }

    /// Blocks at the start of an allocation group that are tables of inodes; none where inodes are allocated as they are needed.
    pub(super) fn table_blocks(&self) -> u32 {
        if !self.flex_bg {
            return 0;
        }
        // Whole chunks.
        (self.ag_blocks() / TABLE_SHARE).next_multiple_of(self.chunk_pages())
    }

    /// Blocks behind those that are for directories first.
    pub(super) fn dir_blocks(&self) -> u32 {
        if self.flex_bg && self.ag_blocks() >= DIR_SCHEME_GROUPS * BLOCK_GROUP {
            return BLOCK_GROUP - self.table_blocks();
        }
        0
    }

    /// Directories that an allocation group may have more than the mean: a 16th of a block group's inodes.
    pub(super) fn dirs_beyond_mean(&self) -> u32 {
        (BLOCK_GROUP / TABLE_SHARE) * (PAGE_SIZE as u32 / self.inode_bytes) / 16
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

    /// Bytes of the core of an XFS inode in the log.
    pub(super) fn core_bytes(&self) -> u32 {
        if self.crc { 176 } else { 96 }
    }

    /// Bytes of the header of an XFS directory block.
    pub(super) fn dir_header_bytes(&self) -> u32 {
        if self.crc { 64 } else { 16 }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_striped_device_has_more_groups() {
        // `mkfs.xfs -N -d su=64k,sw=4` (6.1) on sparse files of so many GiB.
        for (gib, groups) in [(1, 8), (8, 8), (9, 16), (477, 16), (512, 16), (513, 32), (4000, 32)] {
            assert_eq!(FsSpec::xfs(0, Bytes::gib(gib)).striped().ag_count, groups, "{gib} GiB");
        }
    }

    #[test]
    fn a_journal_is_as_large_as_mke2fs_makes_it() {
        // `dumpe2fs -h` of what `mke2fs -t ext4` (1.47) makes on devices of so many MiB.
        for (device, journal) in [(512, 16), (1024, 32), (1536, 32), (4096, 64), (20_000, 128)] {
            assert_eq!(FsSpec::ext4(0, Bytes::mib(device)).log, Bytes::mib(journal), "{device} MiB");
        }
    }
}
