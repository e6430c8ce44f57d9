//! Which group's writeback the dirty pages of an inode are.
//!
//! Rule: an inode belongs to the group of the page that was dirty first, a directory to that of who changed it first, until it
//! leaves memory. The group has a `bdi_writeback` of its own for the device. Blocks of the device itself belong to the root
//! group, which mounted it, and so do all inodes of a file system that does not write for groups.
//! Source: `inode_attach_wb()`, `inode_cgwb_enabled()`, include/linux/backing-dev.h and writeback.h; `__inode_attach_wb()`,
//! fs/fs-writeback.c; `inode_detach_wb()`, fs/fs-writeback.c (6.12).
//! Since/until: since 4.2 where groups are of version 2, on XFS since 5.3 ([`XfsWriter`]).
//! Abstracted: a group's writeback is there from the boot on, so that its bandwidth is first measured an interval after its first inode;
//! bandwidths are added up when they are asked for (`tot_write_bandwidth`).
//! Omitted: inodes that go to another group as most of what is written of them is its (`wbc_detach_inode()`).

use rules::XfsWriter;
use units::{FileId, MemcgId, Pfn};

use super::WbId;
use crate::Mm;
use crate::column::Column;
use crate::memcg::ROOT;
use crate::vfs::FsKind;

/// The owner of each inode: 1 more than its number, or 0 while it has none.
#[derive(Debug, Default)]
pub(super) struct Owners(Column);

impl Owners {
    pub(super) fn host_bytes(&self) -> usize {
        self.0.host_bytes()
    }
}

impl Mm {
    /// The writeback that a file's dirty pages count for.
    #[inline]
    pub(super) fn wb_of(&self, file: FileId) -> WbId {
        let device = self.device_of(file);
        if !self.memcg.in_use() {
            return WbId::root(device);
        }
        let owner = self.writeback.owners.0.get(file.0);
        WbId { group: owner.checked_sub(1).map_or(ROOT, |group| MemcgId(group as u16)), device }
    }

    /// A page of a file becomes dirty: the file belongs to its group unless it has an owner.
    pub(super) fn attach_by_page(&mut self, file: FileId, pfn: Pfn) {
        if self.memcg.in_use() {
            self.attach(file, self.memcg.of_page(pfn));
        }
    }

    /// The file belongs to a group unless it has an owner.
    pub(super) fn attach(&mut self, file: FileId, group: MemcgId) {
        if self.memcg.in_use() && self.writeback.owners.0.get(file.0) == 0 {
            let group = if self.writes_for_groups(file) { group } else { ROOT };
            self.writeback.owners.0.set(file.0, u32::from(group.0) + 1);
        }
    }

    fn writes_for_groups(&self, file: FileId) -> bool {
        !self.is_submitters(file) && self.bdev_gfp(file).is_none()
    }

    /// Whether its file system writes for nobody, so that what is written of a file is its submitter's.
    #[inline]
    pub(crate) fn is_submitters(&self, file: FileId) -> bool {
        self.rules.xfs_writer == XfsWriter::Submitter && self.fs_kind(file) == FsKind::Xfs
    }

    /// An inode comes into memory: nobody owns it.
    pub(crate) fn disown(&mut self, file: FileId) {
        if self.memcg.in_use() {
            self.writeback.owners.0.set(file.0, 0);
        }
    }
}
