//! Log items of XFS's buffers: what a changed directory block, or a new cluster of inodes, takes until it is written.
//!
//! Rule: the first change gives a buffer its item. Each commit sees to it that the item has a vector in reserve (its shadow) for all
//! 128-byte chunks that have changed since the item was made; the checkpoint takes it unless the one that it holds already has room, and
//! the one that it held becomes the shadow. So a block that fills up name by name has its vectors allocated and freed in ever larger sizes,
//! up to 8 KiB. The vector is freed with the checkpoint, item and shadow once the block is written in place. A new cluster is
//! logged for its order only: its vector has no room for data. Until 4.7 there is no shadow ([`LogVectors`]): a vector that has no room
//! any more is freed when a larger one takes its place.
//! Source: `xfs_buf_item_size()`, `struct xfs_buf_log_format`, fs/xfs/xfs_buf_item.c; `xlog_cil_alloc_shadow_bufs()`,
//! `xlog_cil_insert_format_items()`, fs/xfs/xfs_log_cil.c, 3.19 and 5.0; `xfs_dir2_leaf_addname()`, `xfs_dir2_data_use_free()`,
//! `xfs_dir2_data_log_header()`, fs/xfs/libxfs (5.0); `xfs_ialloc_inode_init()`. In a guest of 5.0 four tasks that make 73,728 files
//! have 2096 pages of kmalloc-8k after five seconds and 120 after ten.
//! Abstracted: all allocations are tried as far as the kernel would before it sleeps, and left out where that fails; item and shadow go
//! as the write begins, and with a block that is freed, where the kernel logs that it is void first; names have one length, and those that
//! were in the inode before there was a block are not logged with it.
//! Omitted: items of btree blocks, of group headers, and of a directory's index (8 bytes a name: a quarter as many blocks); the item of the
//! creation of a chunk.

use super::disk::Metadata;
use super::{DirId, FsId, Obj};
use crate::slab::CacheId;
use crate::{Env, Mm};
use rules::LogVectors;
use units::Gfp;

/// Bytes that a bit of an item's map stands for (`XFS_BLF_CHUNK`).
const CHUNK: u32 = 128;
/// Chunks of a directory block.
const CHUNKS: u32 = 4096 / CHUNK;
/// `struct xfs_log_vec`, and a region of it with what aligns its data.
const VECTOR: u32 = 56;
const REGION: u32 = 24 + 8;
/// `struct xfs_buf_log_format` with the map of one block, and `struct xlog_op_header`.
const FORMAT: u32 = 24;
const OP_HEADER: u32 = super::cil::OP_HEADER as u32;

/// A vector; none if `obj` is none.
#[derive(Clone, Copy, Debug)]
struct Vector {
    bytes: u32,
    obj: Obj,
}

impl Vector {
    const NONE: Vector = Vector { bytes: 0, obj: Obj::NONE };

    fn cache(self) -> CacheId {
        CacheId::kmalloc(self.bytes).expect("a block and its headers fit 8 KiB")
    }
}

/// The item of a buffer.
#[derive(Debug)]
pub(super) struct BufferItem {
    item: Obj,
    /// What the checkpoint holds, if this is in it.
    vector: Vector,
    collected: bool,
    shadow: Vector,
    /// Chunks that have changed.
    chunks: u32,
}

impl BufferItem {
    /// Sizes of the vector in the checkpoint and of the one in reserve.
    #[cfg(test)]
    pub(super) fn sizes(&self) -> [u32; 2] {
        [self.vector.bytes, self.shadow.bytes]
    }

    /// Runs of chunks that have changed.
    fn runs(&self) -> u32 {
        (self.chunks & !(self.chunks << 1)).count_ones()
    }

    /// Size of the vector that holds all changes.
    fn vector_bytes(&self) -> u32 {
        if self.chunks == 0 {
            return VECTOR;
        }
        VECTOR + (1 + self.runs()) * REGION + FORMAT + self.chunks.count_ones() * CHUNK
    }

    /// What it takes in the log.
    fn log_bytes(&self) -> u64 {
        if self.chunks == 0 {
            return 0;
        }
        u64::from(FORMAT + OP_HEADER + self.runs() * OP_HEADER + self.chunks.count_ones() * CHUNK)
    }
}

/// Chunks of a directory block that a name in it changes, of so many that fit behind a header: that, the name, and the end of what is free
/// behind it.
fn chunks_of_name(header: u32, nth: u32, of: u32) -> u32 {
    let bytes = (CHUNKS * CHUNK - header) / of;
    let start = header + nth * bytes;
    let chunks = start / CHUNK..=(start + bytes).min(CHUNKS * CHUNK - 1) / CHUNK;
    chunks.fold(1 | 1 << (CHUNKS - 1), |map, chunk| map | 1 << chunk)
}

impl Mm {
    /// A name in a directory changed, which is in this block of it.
    pub(super) fn log_name(&mut self, env: &Env, dir: DirId, index: u32, dirent: u32) {
        let fs = self.vfs.dirs[dir.0 as usize].fs;
        let spec = &self.vfs.fs[fs.0 as usize].spec;
        let (header, per_block) = (spec.dir_header_bytes(), spec.dirents_per_block());
        let chunks = chunks_of_name(header, dirent % per_block, per_block);
        self.log_buffer(env, fs, Metadata::Directory { dir, index }, chunks);
    }

    /// Commits a change of a block: of these chunks, or of its place in the order if of none.
    pub(super) fn log_buffer(&mut self, env: &Env, fs: FsId, of: Metadata, chunks: u32) {
        let Some(number) = self.vfs.buffer_number(fs, of) else { return };
        let mut log = self.vfs.buffers[number].log.take().unwrap_or_else(|| {
            let item = self.slab_alloc_nowait(env, CacheId::XFS_BUF_ITEM, Gfp::NOFS);
            Box::new(BufferItem { item, vector: Vector::NONE, collected: false, shadow: Vector::NONE, chunks: 0 })
        });
        let before = if log.collected { log.log_bytes() } else { 0 };
        log.chunks |= chunks;
        match self.rules.log_vectors {
            LogVectors::AtCommit => self.format_at_commit(env, &mut log),
            LogVectors::Reserved => self.format_into_shadow(env, &mut log),
        }
        let first = !std::mem::replace(&mut log.collected, true);
        let grown = log.log_bytes() - before;
        self.vfs.buffers[number].log = Some(log);
        if first {
            self.vfs.fs_mut(fs).cil.buffers.push(number as u32);
        }
        self.add_to_checkpoint(fs, grown, None);
    }

    /// Sees to a shadow with room for all changes, which the checkpoint takes if it holds no vector that has.
    fn format_into_shadow(&mut self, env: &Env, log: &mut BufferItem) {
        let bytes = log.vector_bytes();
        self.make_room(env, &mut log.shadow, bytes);
        if !log.collected || log.shadow.bytes > log.vector.bytes {
            std::mem::swap(&mut log.vector, &mut log.shadow);
        }
    }

    /// Sees to it that the checkpoint's vector has room for all changes (`xlog_cil_insert_format_items()`, 3.19).
    fn format_at_commit(&mut self, env: &Env, log: &mut BufferItem) {
        let bytes = log.vector_bytes();
        self.make_room(env, &mut log.vector, bytes);
    }

    /// Puts a vector of this size in the place of a smaller one.
    fn make_room(&mut self, env: &Env, vector: &mut Vector, bytes: u32) {
        if vector.bytes < bytes {
            self.free_vector(env, *vector);
            *vector = Vector { bytes, obj: Obj::NONE };
            vector.obj = self.alloc_vector_nowait(env, vector.cache());
        }
    }

    /// The vectors of buffers that a checkpoint takes along as it is written.
    pub(super) fn take_buffer_vectors(&mut self, env: &Env, fs: FsId) {
        for number in std::mem::take(&mut self.vfs.fs_mut(fs).cil.buffers) {
            // It may be gone since, and in its place another one, of this file system or of another.
            let buffer = self.vfs.buffers.get_mut(number as usize).filter(|buffer| buffer.fs == fs);
            let log = buffer.and_then(|buffer| buffer.log.as_mut()).filter(|log| log.collected);
            let Some(log) = log else { continue };
            log.collected = false;
            let vector = std::mem::replace(&mut log.vector, Vector::NONE);
            let written = !self.vfs.is_logged(fs, self.vfs.buffers[number as usize].of);
            if vector.obj.is_some() {
                self.vfs.fs_mut(fs).cil.take_along(vector.cache(), vector.obj);
            }
            if written {
                self.free_written_item(env, number as usize);
            }
        }
    }

    /// Frees the item of a buffer that is written, unless it is in a checkpoint, which does that then.
    pub(super) fn free_written_item(&mut self, env: &Env, number: usize) {
        if let Some(log) = self.vfs.buffers[number].log.take_if(|log| !log.collected) {
            self.free_item(env, *log);
        }
    }

    /// Frees the item of a buffer that goes.
    pub(super) fn free_item(&mut self, env: &Env, log: BufferItem) {
        for vector in [log.vector, log.shadow] {
            self.free_vector(env, vector);
        }
        if log.item.is_some() {
            self.slab_free(env, CacheId::XFS_BUF_ITEM, log.item);
        }
    }

    fn free_vector(&mut self, env: &Env, vector: Vector) {
        if vector.obj.is_some() {
            self.slab_free(env, vector.cache(), vector.obj);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(chunks: u32) -> BufferItem {
        BufferItem { item: Obj::NONE, vector: Vector::NONE, collected: false, shadow: Vector::NONE, chunks }
    }

    #[test]
    fn a_name_changes_its_chunk_the_header_and_the_end() {
        // 112 names of 36 bytes behind a header of 64.
        assert_eq!(chunks_of_name(64, 0, 112), 1 | 1 << 31, "bytes 64 to 100");
        assert_eq!(chunks_of_name(64, 1, 112), 0b11 | 1 << 31, "bytes 100 to 136");
        assert_eq!(chunks_of_name(64, 111, 112), 1 | 1 << 31, "the last lies in the last chunk");
        let all = (0..112).fold(0, |map, nth| map | chunks_of_name(64, nth, 112));
        assert_eq!(all, u32::MAX);
    }

    #[test]
    fn a_vector_has_room_for_the_format_and_each_run_of_chunks() {
        assert_eq!((item(0).vector_bytes(), item(0).log_bytes()), (56, 0), "for the order only");
        // Two runs of one chunk each, and the format: three regions.
        assert_eq!(item(1 | 1 << 31).vector_bytes(), 56 + 3 * 32 + 24 + 2 * 128);
        assert_eq!(item(1 | 1 << 31).log_bytes(), 24 + 3 * 12 + 2 * 128);
        // A whole block has outgrown 4 KiB, as has one that lacks a chunk.
        assert_eq!(item(u32::MAX).vector_bytes(), 56 + 2 * 32 + 24 + 4096);
        assert_eq!(CacheId::kmalloc(item(u32::MAX >> 1).vector_bytes()), Some(CacheId::KMALLOC_8K));
        assert_eq!(CacheId::kmalloc(item(u32::MAX >> 2).vector_bytes()), Some(CacheId::KMALLOC_4K));
    }
}
