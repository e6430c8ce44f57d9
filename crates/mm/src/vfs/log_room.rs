//! Room in the log of ext4.
//!
//! Rule: who begins to change metadata waits until the log has room for a whole transaction beside those that are in it. The oldest of these leaves
//! it once each of its blocks was written, or has been changed by a later one that is in the log, too. Who waits sees to that: if
//! a transaction that is not in the log has changed one of these blocks, it is committed; what is dirty is written.
//! Source: `add_transaction_credits()` (fs/jbd2/transaction.c), `jbd2_log_space_left()` (include/linux/jbd2.h), `__jbd2_log_wait_for_space()`,
//! `jbd2_log_do_checkpoint()`, `__jbd2_journal_insert_checkpoint()` (fs/jbd2/checkpoint.c), 6.12; `__log_wait_for_space()` of 2.6.39 is taken to be the same.
//! Abstracted: a transaction on its way takes what it has changed and not what was reserved for it; it leaves at once, where Linux first writes the superblock of
//! the log; what is not metadata any more is not waited for; a dirty block is written as a page is, and clean then, where
//! Linux leaves a dirty page with a clean buffer; who frees an inode, changes a leaf or the inode of a directory does not wait.
//! Omitted: that one task at a time sees to it (`j_checkpoint_mutex`).

use std::collections::{BTreeSet, VecDeque};

use units::{FileId, Pfn};

use super::jbd2::{CommitId, Journal, TAGS};
use super::{FsId, Need};
use crate::writeback::{OpenBio, Written};
use crate::{Env, Frame, Mm};

/// Blocks that are never given away (`jbd2_log_space_left()`), and the superblock.
const SLACK: u64 = 32 + 1;

/// A transaction that takes room in the log.
#[derive(Debug)]
struct Transaction {
    id: CommitId,
    /// Blocks that it takes.
    blocks: u64,
    /// It is in the log, and not on its way there.
    is_there: bool,
    /// Blocks in place that have to be written before it may leave (`t_checkpoint_list`).
    left: BTreeSet<u32>,
}

/// The transactions in a log, oldest first.
#[derive(Debug, Default)]
pub(super) struct InLog {
    transactions: VecDeque<Transaction>,
    /// Blocks that all of them take.
    used: u64,
}

impl InLog {
    pub(super) fn host_bytes(&self) -> usize {
        self.transactions.iter().map(|transaction| transaction.left.len() * size_of::<u32>()).sum()
    }

    /// Blocks that are taken.
    pub(super) fn used(&self) -> u64 {
        self.used
    }

    /// A transaction of so many blocks is on its way: copies of them, descriptors and the commit block.
    pub(super) fn add(&mut self, id: CommitId, blocks: usize) {
        let blocks = blocks as u64;
        let blocks = blocks + blocks.div_ceil(TAGS) + 1;
        self.used += blocks;
        self.transactions.push_back(Transaction { id, blocks, is_there: false, left: BTreeSet::new() });
    }

    /// A transaction is in the log; these of its blocks have to be written, and none is an earlier one's any more.
    pub(super) fn arrived(&mut self, id: CommitId, blocks: impl Iterator<Item = u32>) {
        let left: BTreeSet<u32> = blocks.collect();
        for earlier in self.transactions.iter_mut().take_while(|transaction| transaction.id != id) {
            earlier.left.retain(|block| !left.contains(block));
        }
        let own = self.transactions.iter_mut().find(|transaction| transaction.id == id).expect("it was on its way");
        (own.is_there, own.left) = (true, left);
        self.leave();
    }

    /// A block was written, or is not metadata any more.
    pub(super) fn release(&mut self, block: u32) {
        // It is of one of them at most.
        if self.transactions.iter_mut().any(|transaction| transaction.left.remove(&block)) {
            self.leave();
        }
    }

    fn leave(&mut self) {
        while let Some(oldest) = self.transactions.front().filter(|oldest| oldest.is_there && oldest.left.is_empty()) {
            self.used -= oldest.blocks;
            self.transactions.pop_front();
        }
    }
}

impl Journal {
    /// What is wrong with the transactions in the log: blocks that no head keeps or that two wait for, and room that is not counted.
    pub(super) fn check_log(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut seen = BTreeSet::new();
        for block in self.in_log.transactions.iter().flat_map(|transaction| &transaction.left) {
            if !self.keeps(*block) || !seen.insert(*block) {
                wrong.push(format!("block {block} of the log is kept by nobody, or waited for twice"));
            }
        }
        let used: u64 = self.in_log.transactions.iter().map(|transaction| transaction.blocks).sum();
        if used != self.in_log.used {
            wrong.push(format!("{} blocks of the log are taken, recounted {used}", self.in_log.used));
        }
        wrong
    }

    /// Whether there is room for a transaction in a log of so many blocks.
    fn has_room(&self, log: u64, transaction: u64) -> bool {
        log.saturating_sub(SLACK + self.in_log.used()) >= transaction.min(log.saturating_sub(SLACK))
    }
}

impl Mm {
    /// Whether metadata may be changed now.
    ///
    /// # Errors
    /// The log has no room: the caller is woken once it may have.
    pub(crate) fn wait_for_log_room(&mut self, env: &Env, fs: FsId) -> Result<(), Need> {
        let Some(bdev) = self.vfs.fs[fs.0 as usize].bdev else { return Ok(()) };
        let (log, transaction) = (self.log_blocks(fs), self.transaction_max(fs));
        while !self.vfs.fs[fs.0 as usize].journal.has_room(log, transaction) {
            self.free_log_room(env, fs, bdev)?;
        }
        Ok(())
    }

    /// Has the oldest transaction leave the log, or sees to it that it can.
    fn free_log_room(&mut self, env: &Env, fs: FsId, bdev: FileId) -> Result<(), Need> {
        let journal = &self.vfs.fs[fs.0 as usize].journal;
        let oldest = journal.in_log.transactions.front().expect("something takes the room");
        let (id, is_there, left) = (oldest.id, oldest.is_there, Vec::from_iter(oldest.left.iter().copied()));
        for block in &left {
            if self.is_written_in_place(fs, bdev, *block) {
                self.let_go(env, fs, bdev, *block);
            }
        }
        let journal = &self.vfs.fs[fs.0 as usize].journal;
        if journal.in_log.transactions.front().is_none_or(|oldest| oldest.id != id) {
            return Ok(());
        }
        if is_there && !left.iter().any(|block| journal.is_uncommitted(*block)) {
            return self.write_blocks(env, bdev, &left);
        }
        if is_there {
            self.vfs_request_commit(env, fs);
        }
        Err(Need::Journal)
    }

    /// Writes what is dirty of some blocks.
    fn write_blocks(&mut self, env: &Env, bdev: FileId, blocks: &[u32]) -> Result<(), Need> {
        for block in blocks {
            let is_dirty = |pfn: Pfn| self.frames[pfn].has(Frame::DIRTY);
            if self.block_page(bdev, *block).is_some_and(is_dirty) {
                let mut open = OpenBio::default();
                let run = self.write_into(env, bdev, *block..u32::MAX, 1, true, &mut open);
                self.submit_open(env, &mut open);
                if let Written::Wait(pfn) = run.stop {
                    return Err(Need::Written(pfn));
                }
            }
        }
        let pages = blocks.iter().filter_map(|block| self.block_page(bdev, *block));
        match pages.into_iter().find(|pfn| self.frames[*pfn].has(Frame::WRITEBACK)) {
            Some(pfn) => {
                self.frames[pfn].set(Frame::WAITERS);
                Err(Need::Written(pfn))
            }
            None => Ok(()),
        }
    }
}
