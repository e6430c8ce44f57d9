//! What XFS logs to free the extents of a file that goes.
//!
//! Rule: extents are freed two at a time. One transaction logs the intent to free them, the next that it is done; each is an item with a
//! vector of its own, and each extent is noted as busy, so that nobody writes to it before the log says that it is free. All
//! of this is unmovable and stays until the checkpoint is on disk.
//! Source: `xfs_itruncate_extents_flags()`, `XFS_ITRUNC_MAX_EXTENTS`, fs/xfs/xfs_inode.c; `xfs_efi_init()`, `xfs_efi_release()`,
//! fs/xfs/xfs_extfree_item.c; `xfs_extent_busy_insert()`, `xfs_extent_busy_clear()`, fs/xfs/xfs_extent_busy.c (5.0). In guests of 5.0
//! `rm` of 12,993 files of 64 KiB leaves 78,597 of the items, 6 a file, and as many vectors and busy extents.
//! Abstracted: intent and done are in one checkpoint; they are allocated with the last attempt of an allocation that the kernel would
//! make before it sleeps, and left out where that fails.
//! Omitted: files that are cut and stay; items of reference counts and of reverse mappings, where a file system has them; what a
//! transaction keeps of an extent until it commits.

use units::{FileId, Gfp};

use super::cil::{EXTENT_BYTES, OP_HEADER};
use super::{FsKind, Obj};
use crate::slab::CacheId;
use crate::{Env, Mm};

/// Extents that are freed together (`XFS_ITRUNC_MAX_EXTENTS`).
const TOGETHER: u64 = 2;
/// Bytes of an intent in the log without its extents (`xfs_efi_log_format`); as many as of what is done.
const FORMAT: u64 = 16;
/// `struct xfs_log_vec` with one region.
const VECTOR: u64 = 56 + 24;
/// `struct xfs_extent_busy`.
const BUSY: u32 = 56;

/// What freeing so many extents together takes in memory.
fn caches(extents: u64) -> impl Iterator<Item = CacheId> {
    let vector = CacheId::kmalloc((VECTOR + FORMAT + extents * EXTENT_BYTES) as u32).expect("two extents are few");
    let busy = CacheId::kmalloc(BUSY).expect("it is small");
    let items = [CacheId::XFS_EFD, vector, CacheId::XFS_EFD, vector];
    items.into_iter().chain(std::iter::repeat_n(busy, extents as usize))
}

/// Bytes that freeing so many extents together takes in the log.
fn bytes(extents: u64) -> u64 {
    2 * (FORMAT + extents * EXTENT_BYTES + OP_HEADER)
}

impl Mm {
    /// Logs that a file's extents are freed.
    pub(super) fn log_freed_extents(&mut self, env: &Env, file: FileId) {
        if self.fs_kind(file) != FsKind::Xfs {
            return;
        }
        let (fs, extents) = (self.vfs.fs_of(file), self.vfs.xfs_extents(file));
        // Removing a file has the cost of one in it.
        self.charge(extents.saturating_sub(1) * self.costs.free_extent_xfs);
        let mut left = extents;
        while left > 0 {
            let now = left.min(TOGETHER);
            let objects: Vec<(CacheId, Obj)> = caches(now).filter_map(|cache| self.log_object(env, cache)).collect();
            self.add_to_checkpoint(fs, bytes(now), objects);
            left -= now;
        }
    }

    fn log_object(&mut self, env: &Env, cache: CacheId) -> Option<(CacheId, Obj)> {
        let obj = self.slab_alloc_nowait(env, cache, Gfp::NOFS);
        obj.is_some().then_some((cache, obj))
    }
}
