//! Room in the journal that writes of ext4 reserve for their end.
//!
//! Rule: who allocates blocks that are unwritten till their data is there reserves what converting an extent may change: a tree of extents of
//! its full depth, split at each level, the bitmap and the descriptor of each block group touched, superblock, inode and extended attributes. No more than half of
//! a transaction may be reserved at a time: who would exceed that waits until a conversion has begun, which gives its own back. So no more
//! than some dozens of runs are under way, however small their files are, and the rest stays dirty.
//! Source: `ext4_do_writepages()`, `ext4_meta_trans_blocks()` (fs/ext4/inode.c), `ext4_ext_index_trans_blocks()` (fs/ext4/extents.c),
//! `add_transaction_credits()`, `start_this_handle()` (fs/jbd2/transaction.c), `jbd2_descriptor_blocks_per_trans()` (fs/jbd2/journal.c),
//! 6.12; guests of 6.12 and 6.1 have 46 and 35 files of a page under way.
//! Since/until: [`DelayedBlocks`](rules::DelayedBlocks); the blocks of descriptors count since 6.10, here always.
//! Omitted: what is reserved counts in the running transaction, which is committed the sooner.

use rules::DelayedBlocks;
use units::FileId;

use super::spec::BLOCK_GROUP;
use super::{FileRec, FsKind, FsSpec};
use crate::{Effect, Mm};

/// Blocks of a tree of extents that adding one may change: two on each of five levels (`EXT4_MAX_EXTENT_DEPTH`).
const INDEX_BLOCKS: u64 = 10;
/// Block groups that a block of descriptors describes, of 64 bytes each.
const GROUPS_DESCRIBED: u64 = 64;
/// Superblock, inode and extended attributes (`EXT4_META_TRANS_BLOCKS`).
const META_BLOCKS: u64 = 6;

/// Blocks that the conversion of an extent may change, and one for the inode.
fn conversion_credits(spec: &FsSpec) -> u32 {
    let all = spec.capacity.pages_down().0.div_ceil(u64::from(BLOCK_GROUP));
    let groups = (INDEX_BLOCKS + 1).min(all);
    let descriptors = groups.min(all.div_ceil(GROUPS_DESCRIBED));
    (1 + INDEX_BLOCKS + groups + descriptors + META_BLOCKS) as u32
}

impl Mm {
    fn reserves(&self, file: FileId) -> bool {
        self.rules.delayed_blocks == DelayedBlocks::Unwritten
            && self.fs_kind(file) == FsKind::Ext4
            && !self.vfs.rec(file).has(FileRec::BDEV)
    }

    /// Whether blocks of a file may be allocated at writeback now, or room in the journal is to be waited for.
    pub(crate) fn has_credits_for(&self, file: FileId) -> bool {
        if !self.reserves(file) {
            return true;
        }
        let id = self.vfs.fs_of(file);
        let fs = &self.vfs.fs[id.0 as usize];
        u64::from(fs.reserved + conversion_credits(&fs.spec)) <= self.user_credits_max(id) / 2
    }

    /// Blocks of a file are allocated at writeback: what that reserves, nothing if they are written ones at once.
    pub(crate) fn reserve_conversion(&mut self, file: FileId) -> u32 {
        if !self.reserves(file) {
            return 0;
        }
        let id = self.vfs.fs_of(file);
        let fs = self.vfs.fs_mut(id);
        let credits = conversion_credits(&fs.spec);
        fs.reserved += credits;
        credits
    }

    /// What was reserved on a device is given back, because the conversion begins or the write has failed.
    pub(crate) fn release_conversion(&mut self, device: u16, credits: u32) {
        let fs = self.vfs.fs_on(device).expect("it is mounted");
        self.vfs.fs_mut(fs).reserved -= credits;
        self.effects.push(Effect::WakeReserved);
    }
}

#[cfg(test)]
mod tests {
    use units::Bytes;

    use super::*;

    #[test]
    fn a_conversion_may_change_a_tree_of_full_depth() {
        let credits = |mib| conversion_credits(&FsSpec::ext4(0, Bytes::mib(mib)));
        // 12 block groups; then 4, and 1024, whose descriptors take more than one block.
        assert_eq!(credits(1536), 1 + 10 + 11 + 1 + 6);
        assert_eq!(credits(512), 1 + 10 + 4 + 1 + 6);
        assert_eq!(credits(128 * 1024), 1 + 10 + 11 + 11 + 6);
    }
}
