//! Times of a file: what reading and writing it changes in its inode.
//!
//! Rule: on a mount that is `relatime`, reading a file updates its access time if that is not newer than its last change; writing
//! updates the time of the change, which is that of the last tick: a file is changed once in a tick, and one that was made in
//! it not at all. Either is a change of the inode: XFS logs it, for which an inode that was read from
//! disk gets its log item and the item's vector now; ext4 writes it into the inode's block.
//! Source: `touch_atime()`, `relatime_need_update()`, `file_update_time()`, `current_time()`, fs/inode.c; `xfs_vn_update_time()`,
//! `xfs_trans_ijoin()`, fs/xfs, 4.20; `ext4_dirty_inode()`, fs/ext4/inode.c, 6.12.
//! Abstracted: CPUs whose clocks are a slice apart at the end of a tick may change a file twice in it.
//! Omitted: the update of access times that are older than a day.

use std::collections::BTreeSet;

use units::{FileId, Gfp};

use super::checksums::Change;
use super::{FileRec, Need};
use crate::env::JIFFY;
use crate::{Env, Mm};

/// The files whose time of change is that of the present tick.
#[derive(Debug, Default)]
pub(super) struct Timed {
    tick: u64,
    files: BTreeSet<FileId>,
}

impl Timed {
    /// Host bytes: a tree's node has room for eleven files and is half full at least.
    pub(super) fn host_bytes(&self) -> usize {
        2 * self.files.len() * size_of::<FileId>()
    }

    fn has(&self, env: &Env, file: FileId) -> bool {
        self.tick == tick_of(env) && self.files.contains(&file)
    }

    pub(super) fn set(&mut self, env: &Env, file: FileId) {
        if self.tick != tick_of(env) {
            *self = Timed { tick: tick_of(env), files: BTreeSet::new() };
        }
        self.files.insert(file);
    }
}

fn tick_of(env: &Env) -> u64 {
    env.now.0 / JIFFY.0
}

impl Mm {
    /// A file that is open was read.
    ///
    /// # Errors
    /// What the log item lacks.
    pub fn vfs_touch_atime(&mut self, env: &Env, file: FileId) -> Result<(), Need> {
        if self.vfs.spec_of(file).noatime || self.vfs.rec(file).has(FileRec::ATIME) {
            return Ok(());
        }
        self.log_times(env, file)?;
        self.vfs.rec_mut(file).flags |= FileRec::ATIME;
        Ok(())
    }

    /// A file that is open is about to be written.
    ///
    /// # Errors
    /// What the log item lacks.
    pub fn vfs_update_time(&mut self, env: &Env, file: FileId) -> Result<(), Need> {
        self.vfs.rec_mut(file).flags &= !FileRec::ATIME;
        if self.vfs.timed.has(env, file) {
            return Ok(());
        }
        self.log_times(env, file)?;
        self.vfs.timed.set(env, file);
        Ok(())
    }

    fn log_times(&mut self, env: &Env, file: FileId) -> Result<(), Need> {
        self.log_change(env, file)?;
        self.charge(self.by_fs(file, self.costs.new_time_xfs, self.costs.new_time_ext4));
        self.charge_transaction(file, Change::Time);
        Ok(())
    }

    /// Commits a change of an inode, which gets its log item with the first.
    pub(super) fn log_change(&mut self, env: &Env, file: FileId) -> Result<(), Need> {
        if !self.vfs.items.has(file.0) {
            let item = self.vfs_alloc(env, self.vfs.spec_of(file).item_cache, Gfp::NOFS)?;
            self.vfs.items.set(file.0, item);
        }
        self.log_item(env, file)
    }
}
