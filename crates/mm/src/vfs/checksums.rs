//! CRC32c of metadata, and the random numbers that files and transactions get.
//!
//! Rule: at each change ext4 computes the checksum of all of what it changes: a block of a directory, a bitmap, a block of a file's extents, an inode,
//! the descriptor of a group, and the superblock where the list of orphans changes. XFS computes those of a chunk's inodes as it is made, and of what is
//! written to the log. The generation of an inode is a random number, and so is the number of each of XFS's transactions (`prandom_u32()`).
//! Source: `ext4_inode_csum_set()` (in `ext4_do_update_inode()`), `ext4_handle_dirty_dirblock()`, `ext4_inode_bitmap_csum_set()`, `ext4_block_bitmap_csum_set()`,
//! `ext4_group_desc_csum_set()`, `ext4_extent_block_csum_set()`, `ext4_superblock_csum_set()` (in `ext4_orphan_add()` and `ext4_orphan_del()`), fs/ext4;
//! `xlog_ticket_alloc()`, fs/xfs/xfs_log.c, `xfs_ialloc_inode_init()`, `xfs_iget()`, fs/xfs, 6.12. How often an operation updates an inode was counted in a guest
//! of 6.12 (untar2, instructions counted by function): 11 times for a file that is removed, three times for one that is made and for an allocation.
//! Since/until: [`rules::Ext4Format`], [`rules::XfsFormat`], [`rules::Prandom`].
//! Abstracted: how often an inode is updated does not depend on what else it has; a change of a directory is one of one of its blocks.
//! Omitted: XFS's checksums of blocks as they are written to their place; those of the journal, of which the bytes that the guest computed have none.

use rules::Prandom;
use units::PAGE_SIZE;

use super::{DirId, FileId, FsKind, FsSpec};
use crate::Mm;

/// Bytes of what ext4 keeps of a block group: of the bitmap of its 8192 inodes, and its descriptor.
const INODE_BITMAP: u64 = 8192 / 8;
const GROUP_DESCRIPTOR: u64 = 64;
/// Of its superblock, and of the bitmap of a group's blocks.
const SUPERBLOCK: u64 = 1024;
const BLOCK_BITMAP: u64 = PAGE_SIZE;

/// Changes of ext4's metadata that checksums follow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Change {
    /// A file is made: its place in the directory, its inode's bit, its inode and the directory's.
    Create,
    /// A file of one extent is removed: both and the list of orphans, and its blocks.
    Unlink,
    /// A time of an inode is set.
    Time,
    /// Blocks are allocated for a file.
    Allocate,
    /// An extent of a file becomes a written one.
    Convert,
    /// A run of blocks is freed, or taken beside others.
    Bitmap,
    /// A block of a file's extents.
    Leaf,
}

impl Change {
    /// Bytes of which the checksum is computed anew.
    fn bytes(self, spec: &FsSpec) -> u64 {
        let inode = u64::from(spec.inode_bytes);
        let blocks = BLOCK_BITMAP + GROUP_DESCRIPTOR;
        match self {
            Change::Create => PAGE_SIZE + INODE_BITMAP + GROUP_DESCRIPTOR + 3 * inode,
            Change::Unlink => PAGE_SIZE + INODE_BITMAP + GROUP_DESCRIPTOR + 2 * SUPERBLOCK + 11 * inode + blocks,
            Change::Time => inode,
            Change::Allocate => blocks + 3 * inode,
            Change::Convert => 2 * inode,
            Change::Bitmap => blocks,
            Change::Leaf => PAGE_SIZE,
        }
    }
}

impl Mm {
    /// Charges what a change of a file's metadata computes and draws beside its cost: on XFS it is a transaction.
    pub(crate) fn charge_transaction(&mut self, file: FileId, change: Change) {
        match self.fs_kind(file) {
            FsKind::Xfs => self.charge_prandom(1),
            FsKind::Ext4 => self.charge_checksums(file, change, 1),
        }
    }

    /// Charges the checksums of so many changes of an ext4's metadata.
    pub(super) fn charge_checksums(&mut self, file: FileId, change: Change, changes: u64) {
        let spec = *self.vfs.spec_of(file);
        self.charge_crc32c(&spec, changes * change.bytes(&spec));
    }

    /// Charges the checksum of so many bytes, if the file system has checksums.
    pub(super) fn charge_crc32c(&mut self, spec: &FsSpec, bytes: u64) {
        if spec.crc {
            self.charge(bytes * self.costs.crc32c_kib / 1024);
        }
    }

    /// Charges what making a file computes and draws beside its cost: on XFS a transaction makes it, and one frees what lies
    /// behind its end as it is closed (`xfs_free_eofblocks()`).
    pub(super) fn charge_made(&mut self, dir: DirId) {
        let spec = *self.vfs.spec_of_dir(dir);
        match spec.kind {
            FsKind::Xfs => {
                self.charge_prandom(2 + 1);
                self.charge_crc32c(&spec, u64::from(spec.inode_bytes));
            }
            FsKind::Ext4 => {
                self.charge_prandom(1);
                self.charge_crc32c(&spec, Change::Create.bytes(&spec));
            }
        }
    }

    /// Charges what removing one does: on XFS a transaction each takes it out of its directory, frees its blocks and its inode.
    pub(super) fn charge_removed(&mut self, dir: DirId) {
        let spec = *self.vfs.spec_of_dir(dir);
        match spec.kind {
            FsKind::Xfs => self.charge_prandom(3),
            FsKind::Ext4 => self.charge_crc32c(&spec, Change::Unlink.bytes(&spec)),
        }
    }

    fn charge_prandom(&mut self, numbers: u64) {
        if self.rules.prandom == Prandom::Random {
            self.charge(numbers * self.costs.random_number);
        }
    }
}

#[cfg(test)]
mod tests {
    use units::Bytes;

    use super::*;

    #[test]
    fn removing_files_computes_what_a_guest_computes() {
        let spec = FsSpec::ext4(0, Bytes::gib(2));
        // The guest removed 30,000 files of one extent, and meanwhile allocated and converted 7632 extents of others.
        let bytes = 30_000 * Change::Unlink.bytes(&spec)
            + 7632 * (Change::Allocate.bytes(&spec) + Change::Convert.bytes(&spec));
        // 57,743,119 times eight bytes in the loop, and 3,395,341 single ones.
        let counted = 57_743_119 * 8 + 3_395_341;
        assert!(bytes * 100 > counted * 98 && bytes * 100 < counted * 102, "{bytes} of {counted}");
    }
}
