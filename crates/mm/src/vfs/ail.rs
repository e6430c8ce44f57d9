//! The list of active items: how what is only in XFS's log is written in place.
//!
//! Rule: every 30 seconds all that is known to be in the log, and before it has no room what was logged longest ago, is gone over in the order of
//! the log. The timer forces the log first and does not wait for it, so that what the last 30 seconds changed is in place only the next time, but
//! for inodes that are flushed with others of their cluster; where nothing older is left, nothing is pushed. So is, when inodes are reclaimed, all that is known to be in the log: as little as nothing since 5.9, where nobody who reclaims has the end of a checkpoint written. An inode is flushed into the buffer of its cluster, which is read for it if it is not in memory, and with it all other changed
//! inodes of the cluster but those that the checkpoint being collected pins: they keep the cluster for the next time, at their new place
//! in the log. The buffers are held, so that none of them can be freed, until all that is to be gone over was; then they are written
//! together, in the order of the disk.
//! Source: `xfs_log_worker()`, fs/xfs/xfs_log.c; `xfsaild_push()`, `xfs_ail_push_all()`, `xfs_ail_max_lsn()`, fs/xfs/xfs_trans_ail.c; `xlog_cil_committed()`, which adds what a checkpoint holds once it is on disk, fs/xfs/xfs_log_cil.c; `xfs_inode_item_push()`,
//! fs/xfs/xfs_inode_item.c; `xfs_iflush()`, `xfs_iflush_cluster()`, fs/xfs/xfs_inode.c; `xfs_buf_delwri_queue()`, `xfs_buf_delwri_submit_buffers()`,
//! fs/xfs/xfs_buf.c (4.20, 5.0).
//! Abstracted: inodes count as flushed as they are in the buffer, not when this is written; a cluster is where its first change is in the log; a held
//! buffer that is found with a count of 0 stays on the LRU; a walk is not broken off after 100 items that it must leave; where a device copies, a write has ended as it is submitted,
//! where XFS's worker ends it (`xfs_buf_ioend_async()`).
//! Omitted: that a walk which finds items pinned has the log written before the next (`ail_log_flush`), without which 3 % less is written, and the time that flushing an
//! inode takes (validation/README.md says why); since 5.9 the first change of an inode reads its cluster, which it then holds (`xfs_trans_log_inode()`).

use super::disk::Metadata;
use super::{FsId, Need};
use crate::{Env, Mm};

impl Mm {
    /// Goes over up to `max` blocks of metadata whose changes were logged before `target` and are only in the log, oldest first, and
    /// queues them to be written; says how many. A block that is not in memory is read first.
    ///
    /// # Errors
    /// What a buffer lacks; what was queued before stays so.
    pub fn vfs_push_metadata(&mut self, env: &Env, fs: FsId, target: u64, max: usize) -> Result<usize, Need> {
        let mut queued = 0;
        for _ in 0..self.vfs_dirty_metadata(fs) {
            let Some(&(_, of)) = self.vfs.fs_mut(fs).dirty.front().filter(|(at, _)| *at < target && queued < max)
            else {
                break;
            };
            if self.can_flush(fs, of) {
                self.get_buffer(env, fs, of)?;
                self.queue_metadata_write(fs, of);
                queued += 1;
            }
            let fs = self.vfs.fs_mut(fs);
            fs.dirty.pop_front();
            if let Metadata::Inodes { chunk, cluster } = of
                && fs.cluster_logged(chunk, cluster)
            {
                fs.note_logged(of);
            }
        }
        Ok(queued)
    }

    /// Whether a block has changes that may be written in place.
    fn can_flush(&self, fs: FsId, of: Metadata) -> bool {
        match of {
            Metadata::Inodes { chunk, cluster } => self.vfs.fs[fs.0 as usize].cluster_flushable(chunk, cluster),
            _ => self.vfs.is_logged(fs, of),
        }
    }

    /// Flushes what has changed of a block into its buffer, and queues that (`xfs_buf_delwri_queue()`).
    fn queue_metadata_write(&mut self, fs: FsId, of: Metadata) {
        self.vfs.note_committed(fs, of);
        let number = self.vfs.buffer_number(fs, of).expect("a block is flushed in memory");
        if !std::mem::replace(&mut self.vfs.buffers[number].queued, true) {
            self.vfs.fs_mut(fs).delwri.push(of);
        }
    }

    /// Submits up to `max` of the writes that are queued; says whether there are more.
    pub fn vfs_submit_metadata(&mut self, env: &Env, fs: FsId, max: usize) -> bool {
        let mut queue = std::mem::take(&mut self.vfs.fs_mut(fs).delwri);
        queue.sort_by_key(|of| std::cmp::Reverse(self.vfs.place(fs, *of).0));
        for of in queue.split_off(queue.len().saturating_sub(max)).into_iter().rev() {
            // The buffer of a block that was freed meanwhile is gone, and nothing is written.
            let number = self.vfs.buffer_number(fs, of);
            if number.is_some_and(|number| std::mem::take(&mut self.vfs.buffers[number].queued)) {
                let bio = self.metadata_write(env, fs, of, false);
                self.submit(env, bio);
            }
        }
        let more = !queue.is_empty();
        if more {
            self.vfs.fs_mut(fs).delwri = queue;
        }
        more
    }
}
