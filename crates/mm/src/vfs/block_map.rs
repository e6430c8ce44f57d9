//! ext3, which is ext4 without extents and without delayed allocation ([`FsSpec::block_mapped`](super::FsSpec::block_mapped)).
//!
//! Rule: who writes to a page that has no block allocates it, within a transaction, before the page is dirty. Blocks behind the first twelve are named
//! by a block of metadata, the indirect one, which every further one changes and which has to be read before a file is removed. Before a transaction
//! goes to the log, the journal's thread writes the data of all blocks that were allocated in it, and waits for them (`data=ordered`): data is
//! on the device within some five seconds. Reclaim that meets a dirty page may write it, since it has its block.
//! Source: `ext3_write_begin()`, `ext3_get_blocks_handle()`, `ext3_ordered_writepage()`, `ext3_free_branches()` (fs/ext3/inode.c),
//! `journal_dirty_data()` (fs/jbd/transaction.c), `journal_submit_data_buffers()` (fs/jbd/commit.c), 2.6.39.
//! Since/until: the default of distributions until about 2011; gone with 4.3, since when ext4 mounts such file systems.
//! Abstracted: an indirect block names any number of blocks (1024, then blocks of indirect ones); the data of a transaction is written file by
//! file, by number; pages that were dirtied through a mapping are allocated at writeback; an fsync
//! writes the data of its own file only. What ext4 calls its structures, and what they take, is what ext3's take
//! here. Omitted: journal heads of data buffers, windows of blocks that are reserved for a file.

use units::{FileId, Pfn};

use super::{FileRec, FsId, Need, Vfs};
use crate::writeback::Written;
use crate::{Env, Mm};

/// Blocks that an inode names itself (`EXT3_NDIR_BLOCKS`).
const DIRECT: u64 = 12;

/// What a step of writing the data that goes before a transaction did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OrderedStep {
    /// Something; go on with this page of the file.
    More(u32),
    /// Wait until the page is neither locked nor under writeback, then go on with that page of the file.
    Wait(Pfn, u32),
    /// All of the file is being written, or it is gone.
    Done,
}

impl Vfs {
    /// Whether a file that has no indirect block needs one.
    pub(super) fn needs_indirect(&self, file: FileId) -> bool {
        let first = self.attributes.blocks(file);
        u64::from(first) + self.extents.blocks(self.rec(file).more, first) > DIRECT
    }
}

impl Mm {
    /// A page of a file is going to be dirtied: it gets its block, where the file system does not delay that.
    ///
    /// # Errors
    /// What has to be waited for.
    pub(crate) fn allocate_at_once(&mut self, env: &Env, file: FileId, index: u32) -> Result<(), Need> {
        if !self.vfs.spec_of(file).block_mapped || self.map_block(file, index).is_some() {
            return Ok(());
        }
        self.wait_for_log_room(env, self.vfs.fs_of(file))?;
        self.may_change_inode(file)?;
        self.allocate_blocks(env, file, index, 1);
        self.charge(self.costs.allocate_ext3);
        self.note_extent_added(env, file);
        self.log_item_nowait(env, file);
        let fs = self.vfs.fs_of(file);
        self.vfs.fs_mut(fs).ordered.insert(file);
        Ok(())
    }

    /// Files with blocks that were allocated since this was asked last: their data goes before the log.
    pub fn vfs_take_ordered(&mut self, fs: FsId) -> Vec<FileId> {
        std::mem::take(&mut self.vfs.fs_mut(fs).ordered).into_iter().collect()
    }

    /// Starts the writing of up to `max` dirty pages of such a file from a page on.
    pub fn vfs_write_ordered(&mut self, env: &Env, file: FileId, from: u32, max: u32) -> OrderedStep {
        if !self.has_data(file) {
            return OrderedStep::Done;
        }
        let run = self.write_dirty_pages(env, file, from, max);
        match run.stop {
            Written::Wait(pfn) => OrderedStep::Wait(pfn, run.next),
            _ if run.pages == max => OrderedStep::More(run.next),
            _ => OrderedStep::Done,
        }
    }

    /// A page of such a file that is under writeback, from a page on, which moves there.
    pub fn vfs_next_ordered(&mut self, file: FileId, from: &mut u32) -> Option<Pfn> {
        if self.has_data(file) { self.next_under_writeback(file, from) } else { None }
    }

    /// Whether a file exists that may have pages.
    fn has_data(&self, file: FileId) -> bool {
        let rec = self.vfs.rec(file);
        rec.has(FileRec::LIVE) && !rec.has(FileRec::DIR | FileRec::NEGATIVE | FileRec::BDEV)
    }
}
