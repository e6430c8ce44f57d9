//! Reclaim asks for a dirty page of a file to be written.
//!
//! Rule: XFS refuses direct reclaimers and, since it has no `writepage`, everybody. Before, it wrote the page for
//! kswapd, and until 4.5 with it the dirty pages that follow it in the same extent, 32 in all (`nr_to_write`). ext4 refuses every reclaimer for
//! pages whose blocks are not allocated yet.
//! It waits for no inode's lock (see ilock.rs).
//! Source: `pageout()`, mm/vmscan.c, `xfs_do_writepage()`, fs/xfs/xfs_aops.c, `ext4_writepage()`, fs/ext4/inode.c
//! (4.20); `xfs_vm_writepage()`, `xfs_cluster_write()` (3.1).
//! Omitted: other file systems.

use rules::XfsWritepage;
use units::Pfn;

use crate::reclaim::SWAP_CLUSTER_MAX;
use crate::vfs::FsKind;
use crate::{Env, Frame, Kind, Mm};

impl Mm {
    /// Starts writing a dirty page of a file for reclaim; false if the file system does not. The page stays dirty then.
    pub fn pageout_file(&mut self, env: &Env, pfn: Pfn) -> bool {
        let frame = &self.frames[pfn];
        debug_assert!(frame.kind() == Kind::File && frame.has(Frame::DIRTY));
        if frame.has_any(Frame::WRITEBACK | Frame::LOCKED) {
            return false;
        }
        let (file, index) = self.file_home(pfn);
        let fs = self.fs_kind(file);
        if (fs, self.rules.xfs_writepage) == (FsKind::Xfs, XfsWritepage::Never) {
            return false;
        }
        let refused = match fs {
            FsKind::Xfs => (env.task.memalloc && !env.task.kswapd) || self.ilock_is_held(env, file),
            FsKind::Ext4 => self.map_block(file, index).is_none(),
        };
        if refused {
            self.count_redirtied(pfn);
            return false;
        }
        let pages = match (fs, self.rules.xfs_writepage) {
            (FsKind::Xfs, XfsWritepage::Cluster) => self.pagecache.trees.dirty_run(file.0, index, SWAP_CLUSTER_MAX),
            _ => 1,
        };
        self.write_dirty_pages(env, file, index, pages).pages > 0
    }
}
