//! The list of committed items: how XFS collects changes of inodes before they go to the log.
//!
//! Rule: a transaction formats each inode that it changes into a vector. The first of a checkpoint takes the vector that
//! the item has in reserve (its shadow) and pins the inode; later ones write over it, and get the item a new shadow for
//! the next checkpoint, which takes the place of one that has no room for the extents that the inode has by now. When a checkpoint holds an eighth of the log, and every 30 seconds, it is written, and then
//! its vectors are freed and its inodes unpinned. What was logged three quarters of the log ago is written in place
//! (`xfs_ail_push()`), so that the log never runs full.
//! Source: `xlog_cil_alloc_shadow_bufs()`, `xlog_cil_insert_format_items()`, `xlog_cil_push()`, `xlog_cil_committed()`,
//! `XLOG_CIL_SPACE_LIMIT`, fs/xfs/xfs_log_cil.c; `xlog_grant_push_ail()`, fs/xfs/xfs_log.c (4.20).
//! `xfs_inode_item_size()`, fs/xfs/xfs_inode_item.c: room for extents is room for all that the inode can hold; `xfs_setfilesize()`.
//! Abstracted: older kernels have shadows, too, though they came with 4.8 (b1c5ebb21301): before, a vector was allocated as the
//! transaction committed; an inode that has blocks is logged with its extents from then on, also when only its times changed after it
//! was written; a checkpoint's vectors are freed when its last log buffer is on disk; the log's size decides when it is pushed, and not where it lies.
//! Omitted: items of buffers, which are few and merged within a checkpoint; transactions that wait for room in the log;
//! the limit of 32 MiB for a checkpoint (5.5).

use units::{FileId, Gfp};

use super::{CommitId, FileRec, FsId, FsKind, FsSpec, Need, Obj};
use crate::slab::CacheId;
use crate::{Bio, Effect, Env, Mm, table};

/// Bytes of an inode in the log: `xfs_inode_log_format`, the core, one extent, and a header for each (4.20).
const ITEM_BYTES: u64 = 56 + 176 + 16 + 3 * 12;

/// The cache of an inode's vector in the log: `struct xfs_log_vec` and two or three regions of it, the format, the core,
/// and, where it has room for `extents`, what the inode holds behind its core.
pub(super) fn vector_cache(spec: &FsSpec, extents: bool) -> CacheId {
    const HEADER: u32 = 56;
    const REGION: u32 = 16 + 8;
    const FORMAT: u32 = 56;
    const CORE: u32 = 176;
    let fork = if extents { REGION + spec.inode_bytes - CORE } else { 0 };
    CacheId::kmalloc(HEADER + 2 * REGION + FORMAT + CORE + fork).expect("an inode on disk has 2 KiB at most")
}

/// A vector that the log is done with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogVector {
    cache: CacheId,
    obj: Obj,
}

/// What is collected and not in the log yet.
#[derive(Debug, Default)]
pub(super) struct Cil {
    /// Inodes of this checkpoint, in the order of their first change.
    items: Vec<FileId>,
    /// Vectors of checkpoints that are in the log.
    written: Vec<LogVector>,
    /// Bytes written to the log since it was made.
    pub(super) head: u64,
    /// Size of the log; 0 without one.
    size: u64,
    /// Somebody was asked to write the checkpoint.
    asked: bool,
}

impl Cil {
    pub(super) fn new(spec: &FsSpec) -> Cil {
        Cil { size: spec.log.0, ..Cil::default() }
    }

    /// Bytes that the checkpoint takes in the log.
    fn space_used(&self) -> u64 {
        self.items.len() as u64 * ITEM_BYTES
    }

    /// Up to where in the log changes must be written in place now.
    fn push_target(&self) -> u64 {
        self.head.saturating_sub(self.size / 4 * 3)
    }

    pub(super) fn host_bytes(&self) -> usize {
        self.items.capacity() * size_of::<FileId>() + self.written.capacity() * size_of::<LogVector>()
    }

    pub(super) fn files(&self) -> impl Iterator<Item = FileId> + '_ {
        self.items.iter().copied()
    }
}

impl Mm {
    /// Commits a change of an inode whose objects are in memory.
    ///
    /// # Errors
    /// What its vector lacks.
    pub(super) fn log_item(&mut self, env: &Env, file: FileId) -> Result<(), Need> {
        self.log_inode(file);
        if self.vfs.spec_of(file).kind != FsKind::Xfs {
            self.journal_changes(env, self.vfs.fs_of(file));
            return Ok(());
        }
        if let Some(cache) = self.shadow_lacking(file) {
            let shadow = self.vfs_alloc(env, cache, Gfp::NOFS)?;
            self.set_shadow(env, file, shadow);
        }
        self.insert_item(env, file);
        Ok(())
    }

    /// The same where nobody may wait: with the last attempt of an allocation that the kernel would make before it sleeps,
    /// and with the vector that there is if that fails.
    pub(crate) fn log_item_nowait(&mut self, env: &Env, file: FileId) {
        self.log_inode(file);
        if self.vfs.spec_of(file).kind != FsKind::Xfs {
            self.journal_changes(env, self.vfs.fs_of(file));
            return;
        }
        if self.vfs.rec(file).ili.is_some()
            && let Some(cache) = self.shadow_lacking(file)
        {
            let shadow = self.slab_alloc_nowait(env, cache, Gfp::NOFS);
            if shadow.is_some() {
                self.set_shadow(env, file, shadow);
            }
        }
        if self.vfs.rec(file).second.is_some() {
            self.insert_item(env, file);
        }
    }

    /// XFS notes that a file reaches behind its size on disk, which is logged when the data is there.
    pub(super) fn note_appended(&mut self, file: FileId) {
        if self.vfs.spec_of(file).kind == FsKind::Xfs {
            self.vfs.rec_mut(file).flags |= FileRec::APPENDED;
        }
    }

    /// Whether data of a file lies behind its size on disk.
    pub(crate) fn reaches_behind_size(&self, file: FileId) -> bool {
        self.vfs.rec(file).has(FileRec::APPENDED)
    }

    /// Data of a file is on its device: its size there follows (`xfs_setfilesize()`).
    pub(crate) fn log_size(&mut self, env: &Env, file: FileId) {
        let rec = self.vfs.rec_mut(file);
        if rec.has(FileRec::APPENDED) {
            rec.set(FileRec::APPENDED, false);
            self.charge(self.costs.log_size);
            self.log_item_nowait(env, file);
        }
    }

    /// The cache of the shadow that the next change needs, unless there is one that is large enough.
    fn shadow_lacking(&self, file: FileId) -> Option<CacheId> {
        let rec = self.vfs.rec(file);
        let there = rec.second.is_some() && (rec.has(FileRec::SHADOW_LARGE) || !rec.logs_extents());
        (!there).then(|| vector_cache(self.vfs.spec_of(file), rec.logs_extents()))
    }

    /// Gives an inode a shadow as large as it needs by now, in the place of the one it has.
    fn set_shadow(&mut self, env: &Env, file: FileId, shadow: Obj) {
        let spec = *self.vfs.spec_of(file);
        let rec = self.vfs.rec_mut(file);
        let old = std::mem::replace(&mut rec.second, shadow);
        let old_cache = vector_cache(&spec, rec.has(FileRec::SHADOW_LARGE));
        rec.set(FileRec::SHADOW_LARGE, rec.logs_extents());
        if old.is_some() {
            self.slab_free(env, old_cache, old);
        }
    }

    /// Puts an inode with a shadow into the checkpoint, or a larger vector of it.
    pub(super) fn insert_item(&mut self, env: &Env, file: FileId) {
        let (fs, spec) = (self.vfs.fs_of(file), *self.vfs.spec_of(file));
        let rec = self.vfs.rec_mut(file);
        let collected = rec.has(FileRec::IN_CIL);
        if collected && (rec.has(FileRec::VECTOR_LARGE) || !rec.has(FileRec::SHADOW_LARGE)) {
            return;
        }
        let shadow = std::mem::replace(&mut rec.second, Obj::NONE);
        let old = std::mem::replace(&mut rec.vector, shadow);
        rec.set(FileRec::VECTOR_LARGE, rec.has(FileRec::SHADOW_LARGE));
        rec.flags = rec.flags & !FileRec::SHADOW_LARGE | FileRec::IN_CIL;
        if collected {
            self.slab_free(env, vector_cache(&spec, false), old);
            return;
        }
        let cil = &mut self.vfs.fs_mut(fs).cil;
        table::push(&mut cil.items, file);
        if cil.space_used() >= cil.size / 8 && !cil.asked {
            cil.asked = true;
            self.effects.push(Effect::WakeLog(fs));
        }
    }

    /// Writes the checkpoint to the log (`xlog_cil_push()`). Its vectors are freed by
    /// [`Mm::vfs_free_log_vectors`] once the log is on disk.
    pub fn vfs_push_cil(&mut self, env: &Env, fs: FsId) {
        let spec = self.vfs.fs_mut(fs).spec;
        let cil = &mut self.vfs.fs_mut(fs).cil;
        cil.asked = false;
        if cil.items.is_empty() {
            return;
        }
        let (bytes, items) = (cil.space_used(), std::mem::take(&mut cil.items));
        cil.head += bytes;
        for file in items {
            let rec = self.vfs.rec_mut(file);
            let cache = vector_cache(&spec, rec.has(FileRec::VECTOR_LARGE));
            rec.flags &= !(FileRec::IN_CIL | FileRec::VECTOR_LARGE);
            let obj = std::mem::replace(&mut rec.vector, Obj::NONE);
            table::push(&mut self.vfs.fs_mut(fs).cil.written, LogVector { cache, obj });
        }
        let device = self.vfs.fs_mut(fs).spec.device;
        self.journal_add(env, device, bytes);
        self.effects.push(Effect::WakeLog(fs));
    }

    /// The bio after which the last change of a file is in the log, and the commit that it ends, if it does; none if it is
    /// there already (`xfs_file_fsync()`, `ext4_fsync_journal()`).
    pub(crate) fn force_log(&mut self, env: &Env, file: FileId) -> Option<(Bio, Option<CommitId>)> {
        let fs = self.vfs.fs_of(file);
        if self.vfs.spec_of(file).kind == FsKind::Ext4 {
            return self.vfs_begin_commit(env, fs).map(|(id, bio)| (bio, Some(id)));
        }
        if self.vfs.rec(file).has(FileRec::IN_CIL) {
            self.vfs_push_cil(env, fs);
        }
        self.journal_force(self.device_of(file)).map(|bio| (bio, None))
    }

    /// Whether the checkpoint is to be written before its time, or vectors are to be freed.
    pub fn vfs_log_waits(&self, fs: FsId) -> bool {
        let cil = &self.vfs.fs[fs.0 as usize].cil;
        cil.asked || !cil.written.is_empty()
    }

    /// The vectors of the checkpoints that were handed to the log so far; the caller frees them with
    /// [`Mm::vfs_free_log_vectors`] once that is on disk.
    #[must_use = "they are objects of a slab"]
    pub fn vfs_take_log_vectors(&mut self, fs: FsId) -> Vec<LogVector> {
        std::mem::take(&mut self.vfs.fs_mut(fs).cil.written)
    }

    /// Frees the vectors of what is in the log.
    pub fn vfs_free_log_vectors(&mut self, env: &Env, vectors: Vec<LogVector>) {
        for vector in vectors {
            self.slab_free(env, vector.cache, vector.obj);
        }
    }

    /// Up to where in the log changes must be written in place: all that is in it, or as much as it needs to have room.
    pub fn vfs_push_target(&self, fs: FsId, all: bool) -> u64 {
        let cil = &self.vfs.fs[fs.0 as usize].cil;
        if all { cil.head } else { cil.push_target() }
    }
}
