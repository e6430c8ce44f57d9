//! Dentries: names in memory.
//!
//! Rule: a dentry whose last user goes is put on the tail of the LRU of its node and group; if it is there already, or
//! [`SingleUse`] says so, it is marked as referenced. The shrinker walks from the head: one in use leaves the list, a referenced one gets another
//! round, any other is freed with its reference to the inode and to its directory, which goes too if that was the last. [`DentryScan`] says which
//! of them count.
//! Source: `dput()`, `retain_dentry()`, `dentry_lru_isolate()`, `shrink_dentry_list()`, fs/dcache.c, 4.4, 4.20 and 6.12;
//! `__shrink_dcache_sb()`, `prune_dcache()`, 2.6.39.
//! Since/until: [`SingleUse`], [`DentryScan`].
//! Abstracted: a name that was unlinked without users stays as a negative dentry until it is shrunk or its directory goes (rmdir.rs), as in
//! the kernel, but is never found again. Omitted: names longer than 32 letters (kmalloc).

use rules::{DentryScan, SingleUse};
use units::{FileId, Gfp};

use super::disk::Metadata;
use super::{FileRec, Need, Obj, Share};
use crate::slab::CacheId;
use crate::{Env, Mm};

impl Mm {
    /// Sees to it that the dentry and the inode of a file and those of its directories are in memory.
    pub(super) fn lookup(&mut self, env: &Env, file: FileId) -> Result<(), Need> {
        let rec = *self.vfs.rec(file);
        assert!(rec.has(FileRec::LIVE) && !rec.has(FileRec::UNLINKED), "{file:?} does not exist");
        if rec.dentry.is_some() || rec.has(FileRec::ROOT) {
            return Ok(());
        }
        let directory = self.vfs.dirs[self.vfs.attributes.parent(file).0 as usize].file;
        self.lookup(env, directory)?;
        let found = self.lookup_in_dir(env, file);
        if found.is_err() {
            self.put_unused(env, directory);
        }
        found
    }

    /// The same once its directory is in memory.
    fn lookup_in_dir(&mut self, env: &Env, file: FileId) -> Result<(), Need> {
        let parent = self.vfs.attributes.parent(file);
        self.get_dir_block(env, parent, self.vfs.attributes.dirent(file))?;
        // The dentry comes first, as in the kernel; nothing is kept if the inode is missing.
        let dentry = self.vfs_alloc(env, CacheId::DENTRY, Gfp::KERNEL)?;
        if let Err(need) = self.get_inode(env, file) {
            self.slab_free(env, CacheId::DENTRY, dentry);
            return Err(need);
        }
        self.attach_dentry(file, dentry);
        self.charge_lookup(parent);
        Ok(())
    }

    /// A dentry was looked up and is not used after all.
    pub(super) fn put_unused(&mut self, env: &Env, file: FileId) {
        let rec = self.vfs.rec(file);
        if rec.dentry.is_some() && !rec.has(FileRec::DENTRY_LRU) && !self.dentry_in_use(file) {
            self.dput(env, file);
        }
    }

    /// Reads the block of a directory in which a name is, or will be, and the root of its index before.
    pub(super) fn get_dir_block(&mut self, env: &Env, dir: super::DirId, dirent: u32) -> Result<(), Need> {
        let fs = self.vfs.dirs[dir.0 as usize].fs;
        for index in self.vfs.index_root(dir).into_iter().chain(self.vfs.dir_block_of(dir, dirent)) {
            self.read_buffer(env, fs, Metadata::Directory { dir, index })?;
        }
        Ok(())
    }

    /// Gives a file its dentry, which holds its directory's.
    pub(super) fn attach_dentry(&mut self, file: FileId, dentry: Obj) {
        let rec = self.vfs.rec_mut(file);
        debug_assert!(!rec.dentry.is_some() && !rec.has(FileRec::DENTRY_LRU));
        rec.dentry = dentry;
        let parent = self.vfs.attributes.parent(file);
        self.vfs.dirs[parent.0 as usize].children += 1;
        self.vfs.nr_dentries += 1;
    }

    /// Whether somebody uses a dentry: an open file, or a dentry below it.
    pub(super) fn dentry_in_use(&self, file: FileId) -> bool {
        self.vfs.rec(file).has(FileRec::OPEN) || self.vfs.dir_of(file).is_some_and(|dir| dir.children > 0)
    }

    /// The last user of a dentry goes.
    pub(super) fn dput(&mut self, env: &Env, file: FileId) {
        debug_assert!(!self.dentry_in_use(file));
        let rec = *self.vfs.rec(file);
        if rec.has(FileRec::UNHASHED) {
            return self.kill_dentry(env, file);
        }
        if rec.has(FileRec::DENTRY_LRU) || self.rules.single_use == SingleUse::Marked {
            self.vfs.rec_mut(file).flags |= FileRec::DENTRY_REF;
        }
        if !rec.has(FileRec::DENTRY_LRU) {
            let lists = self.vfs.lists_of(self.dentry_share(file));
            self.vfs.rec_mut(file).flags |= FileRec::DENTRY_LRU;
            self.vfs.dentry_lru[lists].push_back(&mut self.vfs.dentry_links, file.0);
        }
    }

    /// A name was removed: its dentry turns negative and its inode goes, or both go with their last user (`d_delete()`).
    pub(super) fn delete_dentry(&mut self, env: &Env, file: FileId) {
        self.vfs.rec_mut(file).flags |= FileRec::UNLINKED;
        if self.dentry_in_use(file) {
            self.vfs.rec_mut(file).flags |= FileRec::UNHASHED;
        } else {
            self.iput(env, file);
            self.dput(env, file);
            self.vfs.list_gone(file);
        }
    }

    /// Whose the dentry of a file is.
    pub(super) fn dentry_share(&self, file: FileId) -> Share {
        self.slabs.share_of(CacheId::DENTRY, self.vfs.rec(file).dentry)
    }

    fn remove_from_dentry_lru(&mut self, file: FileId) {
        let rec = *self.vfs.rec(file);
        if rec.has(FileRec::DENTRY_LRU) {
            let lists = self.vfs.lists_of(self.dentry_share(file));
            self.vfs.dentry_lru[lists].remove(&mut self.vfs.dentry_links, file.0);
            self.vfs.rec_mut(file).flags &= !(FileRec::DENTRY_LRU | FileRec::DENTRY_REF);
        }
    }

    /// Frees a dentry that nobody uses, and those of its directories if it was the last that used them.
    pub(super) fn kill_dentry(&mut self, env: &Env, file: FileId) {
        let mut at = file;
        loop {
            at = self.free_dentry(env, at);
            if self.dentry_in_use(at) || self.vfs.rec(at).has(FileRec::ROOT) {
                return;
            }
        }
    }

    /// Frees a dentry that nobody uses; its inode loses a reference, and so does its directory, which it returns.
    pub(super) fn free_dentry(&mut self, env: &Env, file: FileId) -> FileId {
        debug_assert!(!self.dentry_in_use(file));
        self.remove_from_dentry_lru(file);
        let rec = self.vfs.rec_mut(file);
        let has_inode = rec.inode.is_some() && !rec.has(FileRec::RECLAIMABLE);
        let is_gone = rec.has(FileRec::UNLINKED) && !rec.has(FileRec::UNHASHED);
        let dentry = std::mem::replace(&mut rec.dentry, Obj::NONE);
        self.vfs.nr_dentries -= 1;
        self.slab_free_rcu(env, CacheId::DENTRY, dentry);
        if has_inode {
            self.iput(env, file);
        }
        if is_gone {
            self.vfs.unlist_gone(file);
        }
        let parent = self.vfs.attributes.parent(file);
        self.vfs.release_file(file);
        let dir = &mut self.vfs.dirs[parent.0 as usize];
        dir.children -= 1;
        dir.file
    }

    /// Shrinks a dentry LRU (`prune_dcache_sb()`); says how many left it.
    pub(super) fn prune_dentries(&mut self, env: &Env, share: Share, nr: u64) -> u64 {
        let lists = self.vfs.lists_of(share);
        let looked_at_max = match self.rules.dentry_scan {
            DentryScan::All => nr,
            // Those that lose their mark are set aside until the scan is over.
            DentryScan::Unmarked => u64::from(self.vfs.dentry_lru[lists].len()),
        };
        let mut removed = 0;
        for _ in 0..looked_at_max {
            let Some(id) = self.vfs.dentry_lru[lists].front().filter(|_| removed < nr) else { break };
            self.charge(self.costs.shrink_object);
            let file = FileId(id);
            if self.dentry_in_use(file) {
                self.remove_from_dentry_lru(file);
            } else if self.vfs.rec(file).has(FileRec::DENTRY_REF) {
                self.vfs.rec_mut(file).flags &= !FileRec::DENTRY_REF;
                self.vfs.dentry_lru[lists].rotate(&mut self.vfs.dentry_links, id);
                continue;
            } else {
                self.kill_dentry(env, file);
            }
            removed += 1;
        }
        removed
    }
}
