//! What it takes to enter a name in a directory and to take it out, by how many there are.
//!
//! Rule: a directory of XFS is in its inode, then a block, then data blocks and one with the hashes of all names, then a tree of such blocks
//! and blocks that say where there is room: each form has more blocks to read, to change and to log. One of ext4 is a row of
//! blocks, later with an index by hash: a new name is compared with those of its block, to know that it is not there and to find room; one
//! that exists is found half way.
//! Source: `xfs_dir_createname()`, `xfs_dir_removename()`, fs/xfs/libxfs/xfs_dir2.c, `xfs_dir3_max_leaf_ents()`,
//! fs/xfs/libxfs/xfs_da_format.c (4.20); `add_dirent_to_buf()`, `dx_probe()`, fs/ext4/namei.c (6.12).
//! Abstracted: names have one length; a new name on ext4 is looked for among all of a block, or three quarters of the one that its hash
//! names; a directory of XFS goes back to a smaller form as soon as its names fit. Omitted: what looking for a name
//! that exists costs on XFS, which goes by its hash.

use units::PAGE_SIZE;

use super::{DirId, FsKind, FsSpec, Vfs};
use crate::Mm;

/// Bytes of a block of hashes that are none: its header, and the count of its tail.
const LEAF_HEADER: u32 = 64 + 4;
/// Bytes of a hash in it, with where the name is, and of the room in a data block.
const LEAF_ENTRY: u32 = 8;
const BEST_FREE: u32 = 2;

/// What a directory of XFS is kept in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    /// Its inode, or a block.
    Block,
    /// Data blocks and one with the hashes of all names.
    Leaf,
    /// Data blocks, and a tree of such blocks.
    Node,
}

impl Form {
    fn of(names: u32, per_block: u32) -> Form {
        let leaf = LEAF_HEADER + names * LEAF_ENTRY + names.div_ceil(per_block) * BEST_FREE;
        match names {
            _ if names <= per_block => Form::Block,
            _ if leaf <= PAGE_SIZE as u32 => Form::Leaf,
            _ => Form::Node,
        }
    }
}

impl Vfs {
    /// The file system of a directory.
    pub(super) fn spec_of_dir(&self, dir: DirId) -> &FsSpec {
        &self.fs[self.dirs[dir.0 as usize].fs.0 as usize].spec
    }

    pub(super) fn names_of(&self, dir: DirId) -> (u32, u32) {
        let dir = &self.dirs[dir.0 as usize];
        (dir.dirents - dir.free_dirents.len() as u32, self.fs[dir.fs.0 as usize].spec.dirents_per_block())
    }

    /// Names that are looked at for a new one: all of a directory of one block, else those of the block that its hash names, which
    /// is between half full and full.
    fn names_searched(&self, dir: DirId) -> u64 {
        let (names, per_block) = self.names_of(dir);
        u64::from(if names <= per_block { names } else { per_block / 4 * 3 })
    }
}

impl Mm {
    /// Charges making a file in a directory, which has the names of others.
    pub(super) fn charge_create(&mut self, dir: DirId) {
        self.charge(match self.vfs.spec_of_dir(dir).kind {
            FsKind::Xfs => self.costs.create_file + self.name_in_xfs(dir),
            FsKind::Ext4 => self.costs.create_ext4 + self.costs.search_name * self.vfs.names_searched(dir),
        });
        self.charge_made(dir);
    }

    /// Charges looking up a name that exists, whose dentry is not in memory.
    pub(super) fn charge_lookup(&mut self, dir: DirId) {
        if self.vfs.spec_of_dir(dir).kind == FsKind::Ext4 {
            // Half of the names, once and not twice.
            self.charge(self.costs.search_name * self.vfs.names_searched(dir) / 4);
        }
    }

    /// Charges removing a file from a directory.
    pub(super) fn charge_unlink(&mut self, dir: DirId) {
        self.charge(match self.vfs.spec_of_dir(dir).kind {
            FsKind::Xfs => self.costs.unlink_file + self.name_in_xfs(dir),
            FsKind::Ext4 => self.costs.unlink_ext4,
        });
        self.charge_removed(dir);
    }

    /// What a change of a directory of XFS takes more than one of a block.
    fn name_in_xfs(&self, dir: DirId) -> u64 {
        let (names, per_block) = self.vfs.names_of(dir);
        match Form::of(names, per_block) {
            Form::Block => 0,
            Form::Leaf => self.costs.name_in_leaf,
            Form::Node => self.costs.name_in_node,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_of_xfs_gets_a_tree_when_its_hashes_fill_a_block() {
        // A block has 128 names of 32 bytes; 68 + 8 x 502 + 2 x 4 are 4092 bytes, and 503 hashes 4100.
        let form = |names| Form::of(names, 128);
        assert_eq!([0, 128, 129, 502, 503].map(form), [Form::Block, Form::Block, Form::Leaf, Form::Leaf, Form::Node]);
    }
}
