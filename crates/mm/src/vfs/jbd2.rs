//! The journal of ext4 (jbd2): how long metadata stays where it is.
//!
//! Rule: a block that a transaction changes gets a `journal_head`, which keeps its buffer: its page can neither be reclaimed
//! nor moved. Five seconds after its first change, when it has as many blocks as a transaction may have, and for an fsync, the running transaction is committed: a copy of each
//! block goes to the log, with a buffer head of its own until that is written, behind descriptors and before a commit
//! block; the journal's thread gives way after each descriptor's blocks. Who wants to change a block whose copy is on its way to the log waits until that is there:
//! behind a device's queue this can take all writers, and the flusher, a second. A block that has not been changed again since is dirty then for the flusher of the device, and stays kept until it has
//! been written and a later commit finds that.
//! Source: `jbd2_journal_get_write_access()`, `__jbd2_journal_refile_buffer()` (fs/jbd2/transaction.c),
//! `jbd2_journal_commit_transaction()`, `jbd2_journal_write_metadata_buffer()` (fs/jbd2/commit.c, journal.c),
//! `do_get_write_access()` and `BH_Shadow` (transaction.c); `__jbd2_journal_clean_checkpoint_list()` (checkpoint.c), `JBD2_DEFAULT_MAX_COMMIT_AGE`, 6.12.
//! `add_transaction_credits()` (transaction.c), `jbd2_journal_get_max_txn_bufs()` (journal.c).
//! Since/until: [`JournalTransaction`]; [`JournalRelease`]: until 5.13 whoever wants such a page takes it (`__journal_try_to_free_buffer()`, `blkdev_releasepage()`).
//! Abstracted: a block whose page is not in memory when an inode in it is freed or gets blocks is brought in before the commit, but for one by an
//! fsync, which leaves it to the log; a page that is changed
//! again while it is dirty stays so, and is written without I/O; an fsync does not wait for a commit that is
//! under way; a copy is on its way from when the last block of its commit is handed over until the commit is in the log, and who
//! makes or removes a name, sets a time or allocates blocks waits for it; who frees an inode, changes a leaf or the inode of a directory does not.
//! Omitted: what running handles have reserved of a transaction; copies of blocks that are changed while they are being committed (`frozen_data`), records of revoked blocks; of the journal's shrinker, whose batch is a quarter of the log, all but `drop_caches`.

use std::collections::BTreeMap;

use rules::{JournalRelease, JournalTransaction};
use units::{FileId, Gfp, Nanos, PAGE_SIZE, Pfn};

use super::disk::Metadata;
use super::log_room::InLog;
use super::{FsId, Need, Obj};
use crate::slab::CacheId;
use crate::{Bio, Effect, Env, Frame, Kind, Mm};

/// Age at which a transaction is committed.
const COMMIT_INTERVAL: Nanos = Nanos::secs(5);
/// Blocks that a descriptor block names: after its header (`journal_header_t`, 12 B) and the UUID (16 B) of the first, tags of
/// checksums v3 (`journal_block_tag3_t`, 16 B) as long as there is room for a tag, a UUID and the tail (4 B) behind one.
pub(super) const TAGS: u64 = (PAGE_SIZE - 12 - 16 - (16 + 16 + 4)) / 16 + 1;

/// What the journal keeps of a block (`struct journal_head`).
#[derive(Clone, Copy, Debug)]
struct Head {
    obj: Obj,
    /// Changed by the running transaction.
    running: bool,
    /// Commits under way that write it.
    commits: u8,
    /// Of those, such as have handed all that they write to the log (`BH_Shadow`).
    shadows: u8,
    /// Was freed meanwhile: the last of them leaves nothing to be written.
    forgotten: bool,
}

/// A commit that is being written.
#[derive(Debug)]
struct Commit {
    id: CommitId,
    blocks: Vec<u32>,
    /// Buffer heads of the copies.
    copies: Vec<Obj>,
    /// How many of the blocks were handed to the log.
    logged: usize,
}

/// Names a commit under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CommitId(u64);

#[cfg(test)]
impl CommitId {
    pub(super) fn nth(n: u64) -> CommitId {
        CommitId(n)
    }
}

/// The journal of a file system.
#[derive(Debug, Default)]
pub(super) struct Journal {
    /// Blocks that the journal keeps, by number.
    heads: BTreeMap<u32, Head>,
    /// Blocks of the running transaction that have a head, in the order of their first change.
    running: Vec<(u32, Metadata)>,
    /// When the running transaction began.
    began: Option<Nanos>,
    /// Somebody waits for it to be committed.
    requested: bool,
    commits: Vec<Commit>,
    next: u64,
    pub(super) in_log: InLog,
}

impl Journal {
    pub(super) fn host_bytes(&self) -> usize {
        self.heads.len() * size_of::<(u32, Head)>()
            + self.running.capacity() * size_of::<(u32, Metadata)>()
            + self.in_log.host_bytes()
    }

    /// Whether a block of the device is kept.
    pub(super) fn keeps(&self, block: u32) -> bool {
        self.heads.contains_key(&block)
    }

    /// Blocks kept.
    pub(super) fn kept(&self) -> impl Iterator<Item = u32> + '_ {
        self.heads.keys().copied()
    }

    /// Whether a block was changed, and its last change is not in the log yet.
    pub(super) fn is_uncommitted(&self, block: u32) -> bool {
        self.heads.get(&block).is_some_and(|head| head.running || head.commits > 0)
    }
}

impl Mm {
    /// Has the running transaction keep the blocks that were changed.
    pub(crate) fn journal_changes(&mut self, env: &Env, fs: FsId) {
        let Some(bdev) = self.vfs.fs[fs.0 as usize].bdev else { return };
        while let Some((_, of)) = self.vfs.fs_mut(fs).dirty.pop_front() {
            self.join_transaction(env, fs, bdev, of);
        }
    }

    fn join_transaction(&mut self, env: &Env, fs: FsId, bdev: FileId, of: Metadata) {
        let (block, _) = self.vfs.place(fs, of);
        if !self.vfs.fs_mut(fs).journal.keeps(block) {
            let obj = self.slab_alloc_nowait(env, CacheId::JBD2_JOURNAL_HEAD, Gfp::NOFS);
            self.vfs
                .fs_mut(fs)
                .journal
                .heads
                .insert(block, Head { obj, running: false, commits: 0, shadows: 0, forgotten: false });
        }
        if let Some(pfn) = self.block_page(bdev, block) {
            self.frames[pfn].set(Frame::PINNED);
            self.mark_page_accessed(env, pfn);
        }
        let journal = &mut self.vfs.fs_mut(fs).journal;
        let head = journal.heads.get_mut(&block).expect("it has one");
        (head.running, head.forgotten) = (true, false);
        journal.running.push((block, of));
        let first = journal.began.is_none();
        if first {
            journal.began = Some(env.now);
        }
        if first || self.is_transaction_full(fs) {
            self.effects.push(Effect::WakeLog(fs));
        }
    }

    /// A block is not metadata any more: nothing of its changes is written from now on (`jbd2_journal_forget()`).
    pub(super) fn journal_forget(&mut self, env: &Env, fs: FsId, block: u32) {
        let Journal { heads, running, in_log, .. } = &mut self.vfs.fs_mut(fs).journal;
        in_log.release(block);
        if let Some(head) = heads.get_mut(&block) {
            head.forgotten = true;
            if std::mem::take(&mut head.running) {
                let at = running.iter().rposition(|(changed, _)| *changed == block).expect("it was changed");
                running.remove(at);
            }
        }
        let bdev = self.vfs.fs[fs.0 as usize].bdev.expect("it has a journal");
        if let Some(pfn) = self.block_page(bdev, block) {
            self.account_cleaned(env, pfn);
        }
    }

    /// When the running transaction is to be committed; `None` while there is none.
    pub fn vfs_commit_due(&self, fs: FsId) -> Option<Nanos> {
        let Journal { began, requested, .. } = self.vfs.fs[fs.0 as usize].journal;
        let age = if requested || self.is_transaction_full(fs) { Nanos(0) } else { COMMIT_INTERVAL };
        began.map(|began| began + age)
    }

    /// Has the journal's thread commit the running transaction; returns what its commit is, or the last one that is under way
    /// (`jbd2_journal_start_commit()`).
    pub fn vfs_request_commit(&mut self, env: &Env, fs: FsId) -> Option<CommitId> {
        self.journal_changes(env, fs);
        let journal = &mut self.vfs.fs_mut(fs).journal;
        if journal.began.is_none() {
            return journal.commits.last().map(|commit| commit.id);
        }
        journal.requested = true;
        let id = CommitId(journal.next + 1);
        self.effects.push(Effect::WakeLog(fs));
        Some(id)
    }

    /// Whether all of a commit is in the log, or nothing was left of it.
    pub fn vfs_is_committed(&self, fs: FsId, id: CommitId) -> bool {
        let journal = &self.vfs.fs[fs.0 as usize].journal;
        let begun = journal.next >= id.0 || journal.began.is_none();
        begun && journal.commits.iter().all(|commit| commit.id != id)
    }

    /// Whether the running transaction has as many blocks as one may have.
    fn is_transaction_full(&self, fs: FsId) -> bool {
        self.vfs.fs[fs.0 as usize].journal.running.len() as u64 >= self.user_credits_max(fs)
    }

    /// Blocks that a transaction may change (`jbd2_max_user_trans_buffers()`).
    pub(super) fn user_credits_max(&self, fs: FsId) -> u64 {
        let most = self.transaction_max(fs);
        most - most.div_ceil(TAGS)
    }

    /// Blocks that a transaction may take in the log (`j_max_transaction_buffers`).
    pub(super) fn transaction_max(&self, fs: FsId) -> u64 {
        let part = match self.rules.journal_transaction {
            JournalTransaction::Quarter => 4,
            JournalTransaction::Third => 3,
        };
        self.log_blocks(fs) / part
    }

    /// Blocks of the log.
    pub(super) fn log_blocks(&self, fs: FsId) -> u64 {
        self.vfs.fs[fs.0 as usize].spec.log.pages_down().0
    }

    /// Brings blocks of the running transaction into memory that are not.
    ///
    /// # Errors
    /// What is missing.
    pub fn vfs_bring_changed(&mut self, env: &Env, fs: FsId) -> Result<(), Need> {
        self.journal_changes(env, fs);
        let Some(bdev) = self.vfs.fs[fs.0 as usize].bdev else { return Ok(()) };
        for n in 0..self.vfs.fs[fs.0 as usize].journal.running.len() {
            let (block, of) = self.vfs.fs[fs.0 as usize].journal.running[n];
            if self.block_page(bdev, block).is_none() {
                self.get_block(env, fs, bdev, of)?;
            }
        }
        Ok(())
    }

    /// Begins to commit the running transaction, of which [`Mm::vfs_log_commit`] writes a part each time. `None` without a
    /// transaction.
    pub fn vfs_take_commit(&mut self, env: &Env, fs: FsId) -> Option<CommitId> {
        self.journal_changes(env, fs);
        self.clean_checkpoints(env, fs);
        let journal = &mut self.vfs.fs_mut(fs).journal;
        (journal.began, journal.requested) = (None, false);
        if journal.running.is_empty() {
            self.effects.push(Effect::WakeJournalled);
            return None;
        }
        let changed = std::mem::take(&mut journal.running);
        journal.next += 1;
        let id = CommitId(journal.next);
        for (block, of) in &changed {
            let head = self.vfs.fs_mut(fs).journal.heads.get_mut(block).expect("it is kept");
            (head.running, head.commits) = (false, head.commits + 1);
            self.vfs.note_committed(fs, *of);
        }
        let copies = changed.iter().map(|_| self.slab_alloc_nowait(env, CacheId::BUFFER_HEAD, Gfp::NOFS)).collect();
        let blocks: Vec<u32> = changed.into_iter().map(|(block, _)| block).collect();
        let journal = &mut self.vfs.fs_mut(fs).journal;
        journal.in_log.add(id, blocks.len());
        journal.commits.push(Commit { id, blocks, copies, logged: 0 });
        Some(id)
    }

    /// Hands the blocks of one more descriptor to the log; the committing task gives way after each. The bio is the last of the
    /// commit: once it has ended, the caller calls [`Mm::vfs_end_commit`].
    ///
    /// # Panics
    /// If the commit has ended.
    pub fn vfs_log_commit(&mut self, env: &Env, fs: FsId, id: CommitId) -> Option<Bio> {
        let fs = self.vfs.fs_mut(fs);
        let device = fs.spec.device;
        let commit = fs.journal.commits.iter_mut().find(|commit| commit.id == id).expect("it is under way");
        let blocks = ((commit.blocks.len() - commit.logged) as u64).min(TAGS);
        commit.logged += blocks as usize;
        let is_last = commit.logged == commit.blocks.len();
        if is_last {
            for block in &commit.blocks {
                fs.journal.heads.get_mut(block).expect("it is kept").shadows += 1;
            }
        }
        self.charge(blocks * self.costs.commit_block);
        if !is_last {
            self.journal_add(env, device, (1 + blocks) * PAGE_SIZE);
            return None;
        }
        // A byte less leaves something of the commit block for the bio that is waited for.
        self.journal_add(env, device, (2 + blocks) * PAGE_SIZE - 1);
        Some(self.journal_force(device).expect("a byte is left"))
    }

    /// Commits the running transaction without giving way: hands all of it to the log. The bio is the last of it, as that of
    /// [`Mm::vfs_log_commit`].
    pub fn vfs_begin_commit(&mut self, env: &Env, fs: FsId) -> Option<(CommitId, Bio)> {
        let id = self.vfs_take_commit(env, fs)?;
        loop {
            if let Some(bio) = self.vfs_log_commit(env, fs, id) {
                return Some((id, bio));
            }
        }
    }

    /// A commit is in the log: its copies go, and blocks that were not changed since are dirty.
    ///
    /// # Panics
    /// If it has ended before.
    pub fn vfs_end_commit(&mut self, env: &Env, fs: FsId, id: CommitId) {
        let journal = &mut self.vfs.fs_mut(fs).journal;
        let at = journal.commits.iter().position(|commit| commit.id == id).expect("it is under way");
        let Commit { blocks, copies, .. } = journal.commits.remove(at);
        for copy in copies.into_iter().filter(|copy| copy.is_some()) {
            self.slab_free(env, CacheId::BUFFER_HEAD, copy);
        }
        self.effects.push(Effect::WakeJournalled);
        let bdev = self.vfs.fs[fs.0 as usize].bdev.expect("it has a journal");
        let journal = &mut self.vfs.fs_mut(fs).journal;
        let metadata = blocks.iter().copied().filter(|block| !journal.heads[block].forgotten);
        journal.in_log.arrived(id, metadata);
        for block in blocks {
            let journal = &mut self.vfs.fs_mut(fs).journal;
            let head = journal.heads.get_mut(&block).expect("it is kept");
            head.commits -= 1;
            head.shadows -= 1;
            if !head.forgotten
                && !journal.is_uncommitted(block)
                && let Some(pfn) = self.block_page(bdev, block)
            {
                self.set_page_dirty(env, pfn);
            }
        }
    }

    /// Whether a block may be changed now (`do_get_write_access()`).
    ///
    /// # Errors
    /// Its copy is on its way to the log.
    pub(super) fn may_change(&self, fs: FsId, of: Metadata) -> Result<(), Need> {
        let record = &self.vfs.fs[fs.0 as usize];
        if record.journal.commits.is_empty() {
            return Ok(());
        }
        let (block, _) = self.vfs.place(fs, of);
        let shadowed = record.journal.heads.get(&block).is_some_and(|head| head.shadows > 0);
        if shadowed { Err(Need::Journal) } else { Ok(()) }
    }

    /// The same of the block of a file's inode.
    pub(crate) fn may_change_inode(&self, file: FileId) -> Result<(), Need> {
        let fs = self.vfs.fs_of(file);
        let record = &self.vfs.fs[fs.0 as usize];
        if record.journal.commits.is_empty() {
            return Ok(());
        }
        let ino = self.vfs.attributes.ino(file);
        if ino == super::NONE {
            return Ok(());
        }
        let (chunk, cluster) = record.cluster_of(ino);
        self.may_change(fs, Metadata::Inodes { chunk, cluster })
    }

    /// Whether a page of a device is written without I/O, since all that is dirty in it is the journal's.
    pub(crate) fn is_journal_dirty(&self, file: FileId, index: u32) -> bool {
        let rec = self.vfs.rec(file);
        rec.has(super::FileRec::BDEV) && self.vfs.fs[self.vfs.fs_of(file).0 as usize].journal.is_uncommitted(index)
    }

    /// Whether the page may go or move although its buffer was held by a journal: what was committed and written is let go
    /// ([`JournalRelease::OnDemand`]).
    pub(crate) fn release_buffer(&mut self, env: &Env, pfn: Pfn) -> bool {
        let frame = &self.frames[pfn];
        if self.rules.journal_release != JournalRelease::OnDemand
            || frame.kind() != Kind::File
            || frame.has_any(Frame::DIRTY | Frame::WRITEBACK)
        {
            return false;
        }
        let (file, block) = self.file_home(pfn);
        if !self.vfs.rec(file).has(super::FileRec::BDEV) {
            return false;
        }
        let fs = self.vfs.fs_of(file);
        if self.vfs.fs[fs.0 as usize].journal.is_uncommitted(block) {
            return false;
        }
        self.let_go(env, fs, file, block);
        true
    }

    /// The journal keeps a block no longer.
    pub(super) fn let_go(&mut self, env: &Env, fs: FsId, bdev: FileId, block: u32) {
        let journal = &mut self.vfs.fs_mut(fs).journal;
        journal.in_log.release(block);
        let head = journal.heads.remove(&block).expect("it is kept");
        if head.obj.is_some() {
            self.slab_free(env, CacheId::JBD2_JOURNAL_HEAD, head.obj);
        }
        if let Some(pfn) = self.block_page(bdev, block) {
            self.frames[pfn].clear(Frame::PINNED);
        }
    }

    /// `drop_caches` has the journals let go of all that was committed and written.
    pub(crate) fn drop_journal_heads(&mut self, env: &Env) {
        for fs in (0..self.vfs.fs.len()).map(|fs| FsId(fs as u8)) {
            self.clean_checkpoints(env, fs);
        }
    }

    /// Lets blocks go that have been written since they were committed (`__jbd2_journal_clean_checkpoint_list()`).
    fn clean_checkpoints(&mut self, env: &Env, fs: FsId) {
        let Some(bdev) = self.vfs.fs[fs.0 as usize].bdev else { return };
        let kept = self.vfs.fs[fs.0 as usize].journal.kept();
        let done: Vec<u32> = kept.filter(|block| self.is_written_in_place(fs, bdev, *block)).collect();
        for block in done {
            self.let_go(env, fs, bdev, block);
        }
    }

    /// Whether all changes of a block are in the log, and the block was written since.
    pub(super) fn is_written_in_place(&self, fs: FsId, bdev: FileId, block: u32) -> bool {
        let page = self.block_page(bdev, block);
        !self.vfs.fs[fs.0 as usize].journal.is_uncommitted(block)
            && page.is_none_or(|pfn| !self.frames[pfn].has_any(Frame::DIRTY | Frame::WRITEBACK))
    }
}
