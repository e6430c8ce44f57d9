//! What XFS keeps in memory of a file's extents.
//!
//! Rule: an inode in memory has its extents in an array that grows with each of them, by `kmalloc()`'s sizes, up to 15, which take a node
//! of 256 bytes as those of the tree that more extents have. It shrinks when the file goes.
//! Source: `xfs_iext_realloc_root()`, `RECS_PER_LEAF`, fs/xfs/libxfs/xfs_iext_tree.c (4.15).
//! Abstracted: it grows when blocks are allocated, not when their delayed extent is added; where the last attempt of an allocation that
//! the kernel would make before it sleeps fails, it stays as it is.
//! Omitted: further nodes of the tree; kernels before 4.15, which have the first two extents in the inode.

use units::{FileId, Gfp};

use super::{FileRec, FsKind, FsSpec, Vfs};
use crate::slab::CacheId;
use crate::{Env, Mm};

/// Bytes of an extent in memory.
const EXTENT: u32 = 16;
/// Extents from which on a node is taken, and its size.
const NODE_FROM: u64 = 15;
const NODE: u32 = 256;
/// Sizes of `kmalloc()` that an array can have; a file's record has the index.
const SIZES: [u32; 7] = [16, 32, 64, 96, 128, 192, NODE];

/// The index of the last one.
const LARGEST: u32 = SIZES.len() as u32 - 1;

/// Which of the sizes so many extents take.
fn size_index(extents: u64) -> u32 {
    let bytes = if extents >= NODE_FROM { NODE } else { EXTENT * extents.max(1) as u32 };
    SIZES.iter().position(|size| *size >= bytes).expect("a node is the largest") as u32
}

/// The cache of arrays of such a size.
fn array_cache(size: u32) -> CacheId {
    CacheId::kmalloc(SIZES[size as usize]).expect("all are small")
}

impl Vfs {
    /// Extents of a file, as XFS counts them.
    pub(super) fn xfs_extents(&self, file: FileId) -> u64 {
        let rec = self.rec(file);
        if rec.has(FileRec::DIR) {
            return 0;
        }
        let first = self.attributes.blocks(file);
        u64::from(first > 0) + self.extents.count(rec.more)
    }

    /// The cache of what an inode has of its extents now.
    pub(super) fn array_cache_of(&self, file: FileId) -> CacheId {
        match self.spec_of(file) {
            FsSpec { kind: FsKind::Xfs, .. } => array_cache(self.rec(file).array_size()),
            FsSpec { kind: FsKind::Ext4, extent_cache, .. } => *extent_cache,
        }
    }

    /// An inode that comes into memory has an array for its extents; says of which cache.
    pub(super) fn size_array(&mut self, file: FileId) -> CacheId {
        if self.spec_of(file).kind == FsKind::Ext4 {
            return self.spec_of(file).extent_cache;
        }
        let size = size_index(self.xfs_extents(file));
        self.rec_mut(file).set_array_size(size);
        array_cache(size)
    }
}

impl Mm {
    /// XFS has added an extent to a file: its array may be too small.
    pub(super) fn grow_array(&mut self, env: &Env, file: FileId) {
        let rec = self.vfs.rec(file);
        if !rec.extents.is_some() || rec.array_size() == LARGEST {
            return;
        }
        let size = size_index(self.vfs.xfs_extents(file));
        if size <= self.vfs.rec(file).array_size() {
            return;
        }
        let larger = self.slab_alloc_nowait(env, array_cache(size), Gfp::NOFS);
        if !larger.is_some() {
            return;
        }
        let old_cache = self.vfs.array_cache_of(file);
        let rec = self.vfs.rec_mut(file);
        rec.set_array_size(size);
        let old = std::mem::replace(&mut rec.extents, larger);
        self.slab_free(env, old_cache, old);
    }

    /// A file that goes has no extents any more.
    pub(super) fn free_array(&mut self, env: &Env, file: FileId) {
        if self.fs_kind(file) == FsKind::Xfs && self.vfs.rec(file).extents.is_some() {
            let old = std::mem::take(&mut self.vfs.rec_mut(file).extents);
            self.slab_free(env, self.vfs.array_cache_of(file), old);
        }
    }
}
