//! Where ext4 keeps the extents of a file that has more than its inode holds.
//!
//! Rule: an inode has room for four extents, of at most 128 MiB each. With the fifth they move to a block of metadata, a leaf, which every
//! later change of the extents changes. It is in the page cache of the device, and the journal keeps it. When the file goes,
//! the leaf is freed, and the journal forgets what was changed in it and is not on the device yet.
//! Source: `ext4_ext_grow_indepth()`, `ext4_ext_new_meta_block()`, `ext4_ext_rm_leaf()`, `ext4_ext_rm_idx()`, `EXT_INIT_MAX_LEN`
//! (fs/ext4/extents.c), `ext4_forget()` (fs/ext4/ext4_jbd2.c), 6.12.
//! Abstracted: a leaf holds any number of extents (340, below further blocks if there are more), stays until the file goes, and takes
//! a block even if no more than those claimed are left; one without a block at all is missing. A new leaf for which no memory is free
//! is brought in before the commit, as is one that is changed when it is not in memory.
//! Omitted: reading a leaf back for a read of the file, whose extents `extent_status` has; what it costs to free the extents behind a new
//! end of a file that stays; unwritten extents are not told from written ones beside them, with which they become one only when they are converted.

use units::FileId;

use super::checksums::Change;
use super::disk::Metadata;
use super::{FileRec, FsId, FsKind, Need, Vfs};
use crate::{Env, Mm};

/// Extents in an inode: `i_block` (60 B) less the header (12 B), 12 B each.
const IN_INODE: u64 = 4;
/// Blocks of an extent (`EXT_INIT_MAX_LEN`).
const EXTENT_MAX: u32 = 32_768;

/// A leaf.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Leaf {
    pub(super) block: u32,
    /// Nothing is on disk to be read.
    pub(super) fresh: bool,
    /// Has changes that the journal did not take up yet.
    pub(super) dirty: bool,
}

impl Vfs {
    /// Extents of a file, as ext4 counts them.
    fn nr_extents(&self, file: FileId) -> u64 {
        let first = self.attributes.blocks(file);
        u64::from(first.div_ceil(EXTENT_MAX)) + self.extents.pieces(self.rec(file).more, first, EXTENT_MAX)
    }

    /// Whether a file names more extents, or of ext3 blocks, than its inode has room for.
    fn needs_leaf(&self, file: FileId) -> bool {
        if self.spec_of(file).block_mapped {
            return self.needs_indirect(file);
        }
        self.nr_extents(file) > IN_INODE
    }

    /// The leaf of a file that has one.
    pub(super) fn leaf(&mut self, fs: FsId, file: FileId) -> &mut Leaf {
        self.fs_mut(fs).leaves.get_mut(&file).expect("the file has a leaf")
    }

    pub(super) fn has_leaf(&self, file: FileId) -> bool {
        self.fs[self.fs_of(file).0 as usize].leaves.contains_key(&file)
    }

    /// Notes that the extents of a file were changed, in its leaf if it has one; says so.
    pub(super) fn log_leaf(&mut self, file: FileId) -> bool {
        let there = self.has_leaf(file);
        let fs = self.fs_of(file);
        if there && !std::mem::replace(&mut self.leaf(fs, file).dirty, true) {
            self.fs_mut(fs).note_logged(Metadata::Leaf(file));
        }
        there
    }
}

impl Mm {
    /// An extent was added to a file: with the fifth it gets a leaf, in ext4.
    pub(crate) fn note_extent_added(&mut self, env: &Env, file: FileId) {
        if self.fs_kind(file) != FsKind::Ext4 {
            return self.grow_array(env, file);
        }
        let fs = self.vfs.fs_of(file);
        let new = !self.vfs.has_leaf(file) && self.vfs.needs_leaf(file) && self.make_leaf(fs, file);
        if !self.vfs.log_leaf(file) {
            return;
        }
        // An indirect block has no checksum.
        if !self.vfs.spec_of(file).block_mapped {
            self.charge(self.costs.change_leaf);
            self.charge_checksums(file, Change::Leaf, 1);
        }
        if new {
            self.charge(self.costs.change_bitmap);
            self.charge_checksums(file, Change::Bitmap, 1);
            let bdev = self.vfs.fs_mut(fs).bdev.expect("an ext4 has one");
            // What is missing is there at the commit.
            let _ = self.get_block(env, fs, bdev, Metadata::Leaf(file));
        }
        self.journal_changes(env, fs);
    }

    /// Data of a file is where its blocks were allocated as unwritten ones: they are converted (`ext4_convert_unwritten_extents()`).
    pub(crate) fn convert_unwritten(&mut self, env: &Env, file: FileId, page: u32, pages: u32) {
        self.charge(self.costs.convert_ext4);
        self.charge_transaction(file, Change::Convert);
        self.note_converted(env, file, page, pages);
        if self.vfs.log_leaf(file) {
            self.charge(self.costs.change_leaf);
            self.charge_checksums(file, Change::Leaf, 1);
        }
        self.log_item_nowait(env, file);
    }

    fn make_leaf(&mut self, fs: FsId, file: FileId) -> bool {
        let group = self.vfs.dirs[self.vfs.attributes.parent(file).0 as usize].ag;
        let fs = self.vfs.fs_mut(fs);
        let Some((block, _)) = fs.space.take(group, 1) else { return false };
        fs.leaves.insert(file, Leaf { block, fresh: true, dirty: false });
        true
    }

    /// Sees to it that the leaf of a file that is removed is in memory.
    ///
    /// # Errors
    /// What is missing.
    pub(super) fn get_leaf(&mut self, env: &Env, file: FileId) -> Result<(), Need> {
        if !self.vfs.has_leaf(file) {
            return Ok(());
        }
        self.get_buffer(env, self.vfs.fs_of(file), Metadata::Leaf(file))
    }

    /// The blocks of a file that goes are about to be freed, and its leaf with them.
    pub(super) fn remove_extents(&mut self, env: &Env, file: FileId) {
        if self.fs_kind(file) != FsKind::Ext4 || self.vfs.rec(file).has(FileRec::DIR) {
            return;
        }
        let extents = self.vfs.nr_extents(file);
        // Removing a file has the cost of one in it.
        self.charge(extents.saturating_sub(1) * self.costs.change_bitmap);
        self.charge_checksums(file, Change::Bitmap, extents.saturating_sub(1));
        let fs = self.vfs.fs_of(file);
        self.journal_changes(env, fs);
        let Some(leaf) = self.vfs.fs_mut(fs).leaves.remove(&file) else { return };
        self.charge(extents * self.costs.change_leaf);
        self.charge_checksums(file, Change::Leaf, extents);
        self.journal_forget(env, fs, leaf.block);
        self.vfs.fs_mut(fs).space.give(leaf.block, 1);
    }
}
