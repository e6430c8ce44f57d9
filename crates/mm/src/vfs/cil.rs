//! The list of committed items: how XFS collects changes of inodes before they go to the log.
//!
//! Rule: a transaction formats each inode that it changes into a vector. The first of a checkpoint takes the vector that
//! the item has in reserve (its shadow) and pins the inode; later ones write over it, and get the item a new shadow for
//! the next checkpoint, which takes the place of one that has no room for the extents that the inode has by now, if these changed since it was written in place. A vector
//! that gives way to a larger one becomes the shadow. When a checkpoint holds an eighth of the log, and every 30 seconds, it is written. Once its
//! end is on disk, its vectors are freed: the end of one that was written for its size stays in a log buffer that is not full
//! until the next checkpoint fills it, or until the timer, fsync, sync, or who reclaims an inode that it pins, has the log written. What was logged three quarters of the log ago is written in place
//! (ail.rs), so that the log never runs full.
//! Source: `xlog_cil_alloc_shadow_bufs()`, `xlog_cil_insert_format_items()`, `xfs_cil_prepare_item()`, `xlog_cil_push()`, `xlog_cil_committed()`,
//! `XLOG_CIL_SPACE_LIMIT`, fs/xfs/xfs_log_cil.c; `xlog_grant_push_ail()`, fs/xfs/xfs_log.c (4.20).
//! `xfs_inode_item_data_fork_size()`, fs/xfs/xfs_inode_item.c: room for extents is room for all that the inode can hold; `xfs_iflush_int()`, which
//! clears `ili_fields`; `xfs_setfilesize()`; `xfs_iomap_write_unwritten()`, fs/xfs/xfs_iomap.c (5.10).
//! Since/until: what is logged when data is on its device: [`XfsWriteEnd`]; shadows came with 4.8 ([`LogVectors`]); before, a vector was allocated as the transaction committed, if the
//! checkpoint held none that had room.
//! Abstracted: a size on disk is one of whole pages, so that what is appended to the last page again is not logged; an inode that is only marked dirty until 3.3 is written as if it were logged; blocks that are unwritten are no extent of their own; in 2.6.39 each commit allocates another, in two parts, which takes the place of the one before; a vector with room for extents counts with them; where a vector does not get a slab without reclaim, it waits for one of the least order, and is not mapped from pages ([`LogVectorMemory`]); a checkpoint whose end waits in memory is on disk with the last full buffer of the next one; its inodes are unpinned as it is
//! written; the log's size decides when it is pushed, and not where it lies.
//! Items of buffers: buffer_item.rs. Omitted: transactions that wait for room in the log;
//! the limit of 32 MiB for a checkpoint (5.5).

use rules::{LogVectorMemory, LogVectors, XfsWriteEnd};
use units::{FileId, Gfp};

use super::checksums::Change;
use super::disk::Fs;
use super::{CommitId, FileRec, FsId, FsKind, FsSpec, Need, Obj, Vfs};
use crate::column::NearList;
use crate::slab::{CacheId, ObjectRuns};
use crate::{Bio, Effect, Env, Mm};

/// Header of each region of an item in the log (`xlog_op_header`), and bytes of an extent.
pub(super) const OP_HEADER: u64 = 12;
pub(super) const EXTENT_BYTES: u64 = 16;

/// Bytes of an inode in the log: `xfs_inode_log_format`, the core, the extents, and a header for each (4.20).
fn item_bytes(spec: &FsSpec, extents: u64) -> u64 {
    56 + u64::from(spec.core_bytes()) + EXTENT_BYTES * extents + (2 + u64::from(extents > 0)) * OP_HEADER
}

/// The cache of an inode's vector in the log: `struct xfs_log_vec` and two or three regions of it, the format, the core,
/// and, where it has room for `extents`, what the inode holds behind its core.
pub(super) fn vector_cache(spec: &FsSpec, extents: bool) -> CacheId {
    const HEADER: u32 = 56;
    const REGION: u32 = 16 + 8;
    const FORMAT: u32 = 56;
    let core = spec.core_bytes();
    let fork = if extents { REGION + spec.inode_bytes - core } else { 0 };
    CacheId::kmalloc(HEADER + 2 * REGION + FORMAT + core + fork).expect("an inode on disk has 2 KiB at most")
}

/// What is collected and not in the log yet.
#[derive(Debug, Default)]
pub(super) struct Cil {
    /// Inodes of this checkpoint, in the order of their first change.
    items: NearList,
    /// Buffers of this checkpoint, by number.
    pub(super) buffers: Vec<u32>,
    /// What else goes when this checkpoint is on disk.
    others: ObjectRuns,
    /// Bytes that its inodes take in the log, and all else.
    bytes: u64,
    other_bytes: u64,
    /// What goes when the checkpoints that are written are on disk.
    written: ObjectRuns,
    /// Bytes written to the log since it was made, and as many of them as are known to be on disk.
    pub(super) head: u64,
    on_disk: u64,
    /// Size of the log; 0 without one.
    size: u64,
    /// Somebody was asked to write the checkpoint.
    asked: bool,
    /// The end of what is written is on its way to the disk, or somebody wants it there.
    forced: bool,
    /// Up to where in the log changes are to be written in place since the timer went off last.
    due: u64,
    /// Somebody wants what is due written in place, or all that was written to the log.
    push_due: bool,
    push_all: bool,
}

/// Checkpoints that are on their way to the disk: what goes with them, and up to where in the log they reach.
#[derive(Debug, Default)]
pub struct Logged {
    objects: ObjectRuns,
    head: u64,
}

impl Logged {
    /// What goes with them.
    #[cfg(test)]
    pub(super) fn objects(&self) -> impl Iterator<Item = (CacheId, Obj)> + '_ {
        self.objects.iter()
    }
}

impl Cil {
    pub(super) fn new(spec: &FsSpec) -> Cil {
        Cil { size: spec.log.0, ..Cil::default() }
    }

    /// Whether somebody is to be asked to write the checkpoint, who was not asked yet.
    fn ask(&mut self) -> bool {
        let large = self.bytes + self.other_bytes >= self.size / 8;
        large && !std::mem::replace(&mut self.asked, true)
    }

    /// Up to where in the log changes must be written in place now (`xlog_grant_push_ail()`).
    fn push_target(&self) -> u64 {
        self.head.saturating_sub(self.size / 4 * 3)
    }

    /// Something goes when the checkpoints that are written are on disk.
    pub(super) fn take_along(&mut self, cache: CacheId, obj: Obj) {
        self.written.push(cache, obj);
    }

    pub(super) fn host_bytes(&self) -> usize {
        self.items.host_bytes() + self.others.host_bytes() + self.written.host_bytes() + self.buffers.capacity() * 4
    }

    /// What goes when the checkpoint is on disk, beside the vectors of its inodes.
    #[cfg(test)]
    pub(super) fn others(&self) -> impl Iterator<Item = (CacheId, Obj)> + '_ {
        self.others.iter()
    }

    pub(super) fn files(&self) -> impl Iterator<Item = FileId> + '_ {
        self.items.iter().map(FileId)
    }
}

impl Vfs {
    /// How many extents an inode has, if it is in the checkpoint with them.
    pub(super) fn logged_extents(&self, file: FileId) -> Option<u64> {
        let rec = self.rec(file);
        (rec.has(FileRec::IN_CIL) && rec.has(FileRec::VECTOR_LARGE)).then(|| self.xfs_extents(file))
    }

    /// An inode has more extents than before, or fewer, of which the checkpoint had `before`.
    pub(super) fn relog_extents(&mut self, file: FileId, before: Option<u64>) {
        let (fs, ino) = (self.fs_of(file), self.attributes.ino(file));
        let after = self.logged_extents(file);
        let fs = self.fs_mut(fs);
        if ino != super::NONE {
            fs.note_extents(ino);
        }
        if let (Some(before), Some(after)) = (before, after) {
            fs.cil.bytes = fs.cil.bytes + item_bytes(&fs.spec, after) - item_bytes(&fs.spec, before);
        }
    }

    /// Whether the vector of a file needs room for extents: those of one that was written since they changed are not logged again.
    fn logs_extents(&self, file: FileId) -> bool {
        self.attributes.blocks(file) > 0
            && self.fs[self.fs_of(file).0 as usize].extents_changed(self.attributes.ino(file))
    }

    /// What an inode takes in the log with the vector that the checkpoint has of it.
    fn vector_bytes(&self, file: FileId) -> u64 {
        let extents = if self.rec(file).has(FileRec::VECTOR_LARGE) { self.xfs_extents(file) } else { 0 };
        item_bytes(self.spec_of(file), extents)
    }

    /// What the inodes of a checkpoint take in the log: as counted, and recounted.
    pub(super) fn checkpoint_bytes(&self, fs: FsId) -> (u64, u64) {
        let cil = &self.fs[fs.0 as usize].cil;
        (cil.bytes, cil.files().map(|file| self.vector_bytes(file)).sum())
    }
}

impl Mm {
    /// Commits a change of an inode whose objects are in memory.
    ///
    /// # Errors
    /// What its vector lacks.
    pub(super) fn log_item(&mut self, env: &Env, file: FileId) -> Result<(), Need> {
        self.get_inode_block(env, file)?;
        self.wait_for_log_room(env, self.vfs.fs_of(file))?;
        self.may_change_inode(file)?;
        self.log_inode(file);
        if self.vfs.spec_of(file).kind != FsKind::Xfs {
            self.journal_changes(env, self.vfs.fs_of(file));
            return Ok(());
        }
        if let Some(cache) = self.vector_lacking(file) {
            let shadow = self.alloc_vector(env, cache)?;
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
        if self.vfs.items.has(file.0)
            && let Some(cache) = self.vector_lacking(file)
        {
            let shadow = self.alloc_vector_nowait(env, cache);
            if shadow.is_some() {
                self.set_shadow(env, file, shadow);
            }
        }
        if self.vfs.shadows.has(file.0) {
            self.insert_item(env, file);
        }
    }

    /// A vector (`xlog_kvmalloc()`), or what it lacks.
    fn alloc_vector(&mut self, env: &Env, cache: CacheId) -> Result<Obj, Need> {
        if self.rules.log_vector_memory == LogVectorMemory::WakesKswapd {
            let vector = self.alloc_vector_nowait(env, cache);
            if vector.is_some() {
                return Ok(vector);
            }
        }
        self.vfs_alloc(env, cache, Gfp::NOFS)
    }

    /// The same without sleeping, or none.
    pub(super) fn alloc_vector_nowait(&mut self, env: &Env, cache: CacheId) -> Obj {
        let gfp = match self.rules.log_vector_memory {
            LogVectorMemory::Reclaims => Gfp::NOFS,
            LogVectorMemory::WakesKswapd => Gfp::NOFS.without(Gfp::DIRECT_RECLAIM).with(Gfp::NOWARN).with(Gfp::NORETRY),
        };
        self.slab_alloc_nowait(env, cache, gfp)
    }

    /// XFS notes that a file got blocks at `index`, which are unwritten ones since 5.8.
    pub(super) fn note_unwritten(&mut self, file: FileId, index: u32) {
        let converts = self.rules.xfs_write_end == XfsWriteEnd::Converts;
        if converts && self.vfs.spec_of(file).kind == FsKind::Xfs && index < self.vfs.attributes.disk_size(file) {
            self.vfs.rec_mut(file).flags |= FileRec::FILLED_HOLE;
        }
    }

    /// Whether data of a file on XFS that ends at page `end` changes its inode once it is on its device (`xfs_ioend_is_append()`).
    pub(crate) fn data_changes_inode(&self, file: FileId, end: u32) -> bool {
        let attributes = &self.vfs.attributes;
        end.min(attributes.size(file)) > attributes.disk_size(file) || self.vfs.rec(file).has(FileRec::FILLED_HOLE)
    }

    /// Data of a file that ends at page `end` is on its device: its size there follows (`xfs_setfilesize()`), with its extents if these were
    /// unwritten till then (`xfs_iomap_write_unwritten()`).
    pub(crate) fn log_data_written(&mut self, env: &Env, file: FileId, end: u32) {
        if !self.data_changes_inode(file, end) {
            return;
        }
        let attributes = &mut self.vfs.attributes;
        attributes.set_disk_size(file, attributes.disk_size(file).max(end.min(attributes.size(file))));
        self.vfs.rec_mut(file).set(FileRec::FILLED_HOLE, false);
        self.charge_transaction(file, Change::Convert);
        match self.rules.xfs_write_end {
            XfsWriteEnd::MarksDirty => return self.log_inode(file),
            XfsWriteEnd::LogsSize => self.charge(self.costs.log_size),
            XfsWriteEnd::Converts => {
                self.charge(self.costs.convert_extent_xfs);
                let extents = self.vfs.logged_extents(file);
                self.vfs.relog_extents(file, extents);
            }
        }
        self.log_item_nowait(env, file);
    }

    /// The cache of the vector that the next change needs, unless there is one that is large enough.
    fn vector_lacking(&self, file: FileId) -> Option<CacheId> {
        let rec = self.vfs.rec(file);
        // Without shadows the vector that the checkpoint holds is written over.
        let (there, large) = match self.rules.log_vectors {
            LogVectors::AtCommit => (rec.has(FileRec::IN_CIL), rec.has(FileRec::VECTOR_LARGE)),
            LogVectors::Reserved => (self.vfs.shadows.has(file.0), rec.has(FileRec::SHADOW_LARGE)),
        };
        if there && large {
            return None;
        }
        let extents = self.vfs.logs_extents(file);
        (!there || extents).then(|| vector_cache(self.vfs.spec_of(file), extents))
    }

    /// Gives an inode a shadow as large as it needs by now, in the place of the one it has.
    fn set_shadow(&mut self, env: &Env, file: FileId, shadow: Obj) {
        let spec = *self.vfs.spec_of(file);
        let old = self.vfs.shadows.set(file.0, shadow);
        let extents = self.vfs.logs_extents(file);
        let rec = self.vfs.rec_mut(file);
        let old_cache = vector_cache(&spec, rec.has(FileRec::SHADOW_LARGE));
        rec.set(FileRec::SHADOW_LARGE, extents);
        if old.is_some() {
            self.slab_free(env, old_cache, old);
        }
    }

    /// Puts an inode with a shadow into the checkpoint, or a larger vector of it.
    pub(super) fn insert_item(&mut self, env: &Env, file: FileId) {
        let (fs, spec) = (self.vfs.fs_of(file), *self.vfs.spec_of(file));
        let rec = self.vfs.rec(file);
        let collected = rec.has(FileRec::IN_CIL);
        if collected && (rec.has(FileRec::VECTOR_LARGE) || !rec.has(FileRec::SHADOW_LARGE)) {
            return;
        }
        let shadow = self.vfs.shadows.take(file.0);
        let old = self.vfs.vectors.set(file.0, shadow);
        let bytes_before = if collected { self.vfs.vector_bytes(file) } else { 0 };
        let rec = self.vfs.rec_mut(file);
        rec.set(FileRec::VECTOR_LARGE, rec.has(FileRec::SHADOW_LARGE));
        rec.flags = rec.flags & !FileRec::SHADOW_LARGE | FileRec::IN_CIL;
        let bytes = self.vfs.vector_bytes(file);
        let cil = &mut self.vfs.fs_mut(fs).cil;
        cil.bytes += bytes - bytes_before;
        if collected {
            match self.rules.log_vectors {
                LogVectors::AtCommit => self.slab_free(env, vector_cache(&spec, false), old),
                LogVectors::Reserved => drop(self.vfs.shadows.set(file.0, old)),
            }
            return;
        }
        cil.items.push(file.0);
        let ino = self.vfs.attributes.ino(file);
        self.vfs.fs_mut(fs).set_pinned(ino, true);
        self.ask_for_push(fs);
    }

    /// The checkpoint grows by something that is no inode: so many bytes, and what goes when it is on disk.
    pub(super) fn add_to_checkpoint(&mut self, fs: FsId, bytes: u64, others: impl IntoIterator<Item = (CacheId, Obj)>) {
        let cil = &mut self.vfs.fs_mut(fs).cil;
        cil.other_bytes += bytes;
        for (cache, obj) in others {
            cil.others.push(cache, obj);
        }
        self.ask_for_push(fs);
    }

    /// Has a checkpoint that is large enough written.
    fn ask_for_push(&mut self, fs: FsId) {
        if self.vfs.fs_mut(fs).cil.ask() {
            self.effects.push(Effect::WakeLog(fs));
        }
    }

    /// Writes the checkpoint to the log (`xlog_cil_push()`), but for its end, which waits in memory; the caller
    /// writes the last full buffer. What goes with it is there from [`Mm::vfs_take_logged`].
    #[must_use = "the bio writes a part of the log"]
    pub fn vfs_push_cil(&mut self, env: &Env, fs: FsId) -> Option<Bio> {
        let cil = &mut self.vfs.fs_mut(fs).cil;
        cil.asked = false;
        let bytes = std::mem::take(&mut cil.bytes) + std::mem::take(&mut cil.other_bytes);
        cil.head += bytes;
        cil.written.append(&mut cil.others);
        for file in std::mem::take(&mut cil.items).iter().map(FileId) {
            let (cache, obj) = self.take_vector(file);
            self.vfs.fs_mut(fs).cil.take_along(cache, obj);
        }
        self.take_buffer_vectors(env, fs);
        if bytes > 0 {
            // The log may need room now.
            self.effects.push(Effect::WakeLog(fs));
        }
        let spec = self.vfs.fs_mut(fs).spec;
        self.charge_crc32c(&spec, bytes);
        self.journal_fill(env, spec.device, bytes)
    }

    /// The vector that a checkpoint has of an inode, which is not in it any more.
    fn take_vector(&mut self, file: FileId) -> (CacheId, Obj) {
        let spec = *self.vfs.spec_of(file);
        let rec = self.vfs.rec_mut(file);
        let cache = vector_cache(&spec, rec.has(FileRec::VECTOR_LARGE));
        rec.flags &= !(FileRec::IN_CIL | FileRec::VECTOR_LARGE);
        let (fs, ino) = (self.vfs.fs_of(file), self.vfs.attributes.ino(file));
        self.vfs.fs_mut(fs).set_pinned(ino, false);
        (cache, self.vfs.vectors.take(file.0))
    }

    /// The bio after which the last change of a file is in the log, and the commit that it ends, if it does; none if it is
    /// there already (`xfs_file_fsync()`, `ext4_fsync_journal()`).
    pub(crate) fn force_log(&mut self, env: &Env, file: FileId) -> Option<(Bio, Option<CommitId>)> {
        let fs = self.vfs.fs_of(file);
        if self.vfs.spec_of(file).kind == FsKind::Ext4 {
            return self.vfs_begin_commit(env, fs).map(|(id, bio)| (bio, Some(id)));
        }
        let last = if self.vfs.rec(file).has(FileRec::IN_CIL) {
            self.vfs_force_log(env, fs)
        } else {
            self.journal_force(self.device_of(file))
        };
        last.map(|bio| (bio, None))
    }

    /// The bio after which all changes of a file system are in its log (`xfs_log_force()`); what goes then is freed by who
    /// writes checkpoints.
    pub fn vfs_force_log(&mut self, env: &Env, fs: FsId) -> Option<Bio> {
        if let Some(full) = self.vfs_push_cil(env, fs) {
            self.submit(env, full);
        }
        let Fs { spec, cil, .. } = self.vfs.fs_mut(fs);
        let device = spec.device;
        if !cil.written.is_empty() {
            cil.forced = true;
            self.effects.push(Effect::WakeLog(fs));
        }
        self.journal_force(device)
    }

    /// Whether the checkpoint is to be written before its time, or what goes with it is to be freed.
    pub fn vfs_log_waits(&self, fs: FsId) -> bool {
        self.vfs.fs[fs.0 as usize].cil.asked || self.vfs_log_forced(fs)
    }

    /// Whether the end of what is written is on its way to the disk, or somebody wants it there.
    pub fn vfs_log_forced(&self, fs: FsId) -> bool {
        self.vfs.fs[fs.0 as usize].cil.forced
    }

    /// What goes once the checkpoints that were written so far are on disk; the caller frees it with
    /// [`Mm::vfs_free_logged`] then.
    #[must_use = "they are objects of a slab"]
    pub fn vfs_take_logged(&mut self, fs: FsId) -> Logged {
        let cil = &mut self.vfs.fs_mut(fs).cil;
        cil.forced = false;
        Logged { objects: std::mem::take(&mut cil.written), head: cil.head }
    }

    /// Frees what goes with checkpoints that are on disk, whose changes may be written in place from now on.
    pub fn vfs_free_logged(&mut self, env: &Env, fs: FsId, logged: &Logged) {
        let cil = &mut self.vfs.fs_mut(fs).cil;
        cil.on_disk = cil.on_disk.max(logged.head);
        for (cache, obj) in logged.objects.iter() {
            self.slab_free(env, cache, obj);
        }
    }

    /// Whether a change of an inode waits for the log: in the checkpoint, or in one whose end waits in memory, as far as it is
    /// known which (`xfs_ipincount()`).
    pub(super) fn is_pinned(&self, file: FileId) -> bool {
        let cil = &self.vfs.fs[self.vfs.fs_of(file).0 as usize].cil;
        self.vfs.rec(file).has(FileRec::IN_CIL) || !cil.written.is_empty()
    }

    /// Has all that is known to be in the log by now written in place (`xfs_ail_push_all()` of the timer).
    pub fn vfs_push_logged(&mut self, fs: FsId) {
        let Fs { cil, dirty, .. } = self.vfs.fs_mut(fs);
        if dirty.front().is_some_and(|(at, _)| *at < cil.on_disk) {
            cil.due = cil.on_disk;
            cil.push_due = true;
            self.effects.push(Effect::WakeLog(fs));
        }
    }

    /// Who reclaims inodes has all that is known to be in the log written in place (`xfs_ail_push_all()`).
    pub(super) fn push_logs(&mut self) {
        for fs in self.vfs_file_systems(FsKind::Xfs) {
            if !std::mem::replace(&mut self.vfs.fs_mut(fs).cil.push_all, true) {
                self.effects.push(Effect::WakeLog(fs));
            }
        }
    }

    /// Whether somebody wants something written in place.
    pub fn vfs_push_waits(&self, fs: FsId) -> bool {
        let Cil { push_due, push_all, .. } = self.vfs.fs[fs.0 as usize].cil;
        push_due || push_all
    }

    /// Up to where in the log changes are to be written in place, once: what somebody wants, or as much as the log needs to have room.
    pub fn vfs_take_push(&mut self, fs: FsId) -> u64 {
        let cil = &mut self.vfs.fs_mut(fs).cil;
        cil.push_due = false;
        if std::mem::take(&mut cil.push_all) { cil.on_disk } else { cil.push_target().max(cil.due) }
    }
}
