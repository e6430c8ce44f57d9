//! Times of a file: what reading and writing it changes in its inode.
//!
//! Rule: on a mount that is `relatime`, reading a file updates its access time if that is not newer than its last change; writing
//! updates the time of the change. Either is a change of the inode: XFS logs it, for which an inode that was read from
//! disk gets its log item and the item's vector now.
//! Source: `touch_atime()`, `relatime_need_update()`, `file_update_time()`, fs/inode.c; `xfs_vn_update_time()`,
//! `xfs_trans_ijoin()`, fs/xfs, 4.20.
//! ext4 writes a new time of change into the inode's block, once in a tick.
//! Source for ext4: `ext4_dirty_inode()`, fs/ext4/inode.c, 6.12; `current_time()`, which is that of the last tick.
//! Abstracted: of a tick the last file written is remembered, not all.
//! Omitted: the update of access times that are older than a day.

use units::{FileId, Gfp};

use super::{FileRec, FsKind, Need};
use crate::env::JIFFY;
use crate::{Env, Mm};

/// The file whose time of change was last set, and in which tick.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LastTimed {
    file: FileId,
    tick: u64,
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
        self.log_inode_times(env, file)?;
        self.vfs.rec_mut(file).flags |= FileRec::ATIME;
        Ok(())
    }

    /// A file that is open is about to be written.
    ///
    /// # Errors
    /// What the log item lacks.
    pub fn vfs_update_time(&mut self, env: &Env, file: FileId) -> Result<(), Need> {
        self.charge_new_time(env, file);
        let rec = self.vfs.rec_mut(file);
        let unread = !rec.has(FileRec::ATIME);
        rec.flags &= !FileRec::ATIME;
        if unread && rec.ili.is_some() {
            // Written again and again: the transaction is part of what dirtying the page costs.
            return self.log_item(env, file);
        }
        self.log_inode_times(env, file)
    }

    /// What a new time of change costs on ext4; on XFS it is part of what a write costs.
    fn charge_new_time(&mut self, env: &Env, file: FileId) {
        let now = Some(LastTimed { file, tick: env.now.0 / JIFFY.0 });
        if self.vfs.spec_of(file).kind == FsKind::Ext4 && self.vfs.timed != now {
            self.vfs.timed = now;
            self.charge(self.costs.new_time_ext4);
        }
    }

    fn log_inode_times(&mut self, env: &Env, file: FileId) -> Result<(), Need> {
        self.log_change(env, file)?;
        self.charge(self.costs.log_inode);
        Ok(())
    }

    /// Commits a change of an inode, which gets its log item with the first.
    pub(super) fn log_change(&mut self, env: &Env, file: FileId) -> Result<(), Need> {
        if !self.vfs.rec(file).ili.is_some() {
            let ili = self.vfs_alloc(env, self.vfs.spec_of(file).item_cache, Gfp::NOFS)?;
            self.vfs.rec_mut(file).ili = ili;
        }
        self.log_item(env, file)
    }
}
