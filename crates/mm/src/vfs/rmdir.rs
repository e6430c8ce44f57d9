//! Removing directories, and the dentries below them that stand for nothing.
//!
//! Rule: all dentries below a directory that nobody uses go before it does; below an empty one these are the negative ones, of names that
//! were removed or looked up in vain. Then it loses its name as a file does: its dentry turns negative, and its inode is evicted, with its blocks
//! and its place on disk. Below it there may be files without a name that are open: dentry and inode of the directory go with the last of them then.
//! Source: `vfs_rmdir()`, fs/namei.c; `shrink_dcache_parent()`, `d_delete()`, fs/dcache.c; `xfs_remove()`, `xfs_inactive()`, fs/xfs/xfs_inode.c;
//! `ext4_rmdir()`, `ext4_empty_dir()`, fs/ext4/namei.c, which reads all blocks of the directory; `ext4_evict_inode()`, `ext4_free_blocks()`,
//! 3.19 and 6.12. It costs what removing a file costs, in which freeing an inode is contained; on ext4 each further extent of blocks costs what
//! one of a file does, and each dentry that goes what shrinking it costs.
//! Abstracted: XFS gives a directory's blocks back as names are removed (`xfs_dir2_block_to_sf()`), here they go with the directory; until 2.6.39
//! its own dentry goes at once (`dentry_unhash()`), here with the directory that it was in.
//! Omitted: a directory that is not empty loses the unused dentries below it before that is found out; a block of ext4 that holds the extents of
//! a directory; records of revoked blocks.

use units::FileId;

use super::checksums::Change;
use super::disk::Metadata;
use super::htree::Htree;
use super::{Dir, DirBlock, DirId, FileRec, FsKind, NONE, Need, Vfs};
use crate::{Env, Mm};

/// What came of removing a directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rmdir {
    /// It is gone.
    Done,
    /// There are names in it (`ENOTEMPTY`).
    NotEmpty,
}

/// Runs of blocks that follow each other.
fn extents(blocks: &[DirBlock]) -> u64 {
    let first = u64::from(!blocks.is_empty());
    first + blocks.windows(2).filter(|pair| pair[0].block + 1 != pair[1].block).count() as u64
}

impl Vfs {
    /// A name below a directory stands for nothing from now on.
    pub(super) fn list_gone(&mut self, file: FileId) {
        let parent = self.attributes.parent(file);
        self.dirs[parent.0 as usize].gone.push_back(&mut self.gone_links, file.0);
    }

    /// It stands for a file again, or is forgotten.
    pub(super) fn unlist_gone(&mut self, file: FileId) {
        let parent = self.attributes.parent(file);
        self.dirs[parent.0 as usize].gone.remove(&mut self.gone_links, file.0);
    }
}

impl Mm {
    /// Removes a directory, after which nothing may be looked up or made in it.
    ///
    /// # Errors
    /// What is missing.
    ///
    /// # Panics
    /// If it is the root of its file system, or was removed before.
    pub fn vfs_rmdir(&mut self, env: &Env, dir: DirId) -> Result<Rmdir, Need> {
        let file = self.vfs.dirs[dir.0 as usize].file;
        assert!(!self.vfs.rec(file).has(FileRec::ROOT), "a root stays");
        if self.vfs.names_of(dir).0 > 0 {
            self.vfs_stat(env, file)?;
            return Ok(Rmdir::NotEmpty);
        }
        self.lookup(env, file)?;
        if let Err(need) = self.look_for_names(env, dir) {
            self.put_unused(env, file);
            return Err(need);
        }
        self.remove_name(env, file)?;
        self.shrink_children(env, dir);
        self.delete_dentry(env, file);
        Ok(Rmdir::Done)
    }

    /// Reads all blocks of a directory of ext4, to see that no name is in them (`ext4_empty_dir()`).
    fn look_for_names(&mut self, env: &Env, dir: DirId) -> Result<(), Need> {
        let Dir { fs, ref blocks, .. } = self.vfs.dirs[dir.0 as usize];
        let read = if self.vfs.fs[fs.0 as usize].spec.kind == FsKind::Ext4 { blocks.len() as u32 } else { 0 };
        for index in 0..read {
            self.read_buffer(env, fs, Metadata::Directory { dir, index })?;
        }
        Ok(())
    }

    /// Frees the dentries below an empty directory that nobody uses (`shrink_dcache_parent()`), and forgets its names.
    fn shrink_children(&mut self, env: &Env, dir: DirId) {
        while let Some(file) = self.vfs.dirs[dir.0 as usize].gone.front().map(FileId) {
            // A name that was looked up in vain goes like one that was removed.
            let rec = self.vfs.rec_mut(file);
            rec.flags = rec.flags & !FileRec::NEGATIVE | FileRec::UNLINKED;
            if rec.dentry.is_some() {
                self.charge(self.costs.shrink_object);
                self.free_dentry(env, file);
            } else {
                self.vfs.unlist_gone(file);
                self.vfs.release_file(file);
            }
        }
    }

    /// Frees the blocks of a directory whose inode goes for good.
    pub(super) fn free_dir_blocks(&mut self, env: &Env, file: FileId) {
        let dir = DirId(self.vfs.attributes.size(file));
        let fs = self.vfs.fs_of(file);
        self.free_dir_buffers(env, dir);
        self.journal_changes(env, fs);
        let Dir { ag, ref mut blocks, ref mut free_dirents, ref mut index, .. } = self.vfs.dirs[dir.0 as usize];
        let blocks = std::mem::take(blocks);
        (*free_dirents, *index) = (Vec::new(), Htree::default());
        if self.fs_kind(file) == FsKind::Ext4 {
            let further = extents(&blocks).saturating_sub(1);
            self.charge(further * self.costs.change_bitmap);
            self.charge_checksums(file, Change::Bitmap, further);
            blocks.iter().for_each(|block| self.journal_forget(env, fs, block.block));
        }
        let fs = self.vfs.fs_mut(fs);
        blocks.iter().for_each(|block| fs.space.give(block.block, 1));
        if let Some(orlov) = &mut fs.orlov {
            orlov.remove_dir(ag);
        }
    }

    /// Frees the buffers that XFS has of a directory; those that are to be written are not any more.
    fn free_dir_buffers(&mut self, env: &Env, dir: DirId) {
        let Dir { fs, ref blocks, .. } = self.vfs.dirs[dir.0 as usize];
        let buffers: Vec<u32> = blocks.iter().map(|block| block.buffer).filter(|number| *number != NONE).collect();
        if buffers.iter().any(|number| self.vfs.buffers[*number as usize].queued) {
            let is_its = |of: &Metadata| matches!(of, Metadata::Directory { dir: owner, .. } if *owner == dir);
            self.vfs.fs_mut(fs).delwri.retain(|of| !is_its(of));
        }
        buffers.into_iter().for_each(|number| self.free_buffer(env, number));
    }
}
