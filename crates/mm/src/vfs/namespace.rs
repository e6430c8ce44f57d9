//! Making, opening, closing and removing files; removing directories: rmdir.rs.
//!
//! Rule: a create reads the block of the directory in which the name will be, takes an inode of the directory's
//! allocation group (a new chunk of 64 with its cluster buffers, if none is free), and allocates dentry, inode, log
//! item and file. An open finds dentry and inode in memory or reads what is missing. Every operation that lacks
//! memory or data says what, keeps nothing but what belongs to the file system, and is repeated by the caller.
//! Source: `lookup_open()`, fs/namei.c; `xfs_create()`, `xfs_remove()`, fs/xfs/xfs_inode.c; `d_delete()`, 4.20.
//! What names take: names.rs; which block of a directory of ext4 they are in: htree.rs.
//! Abstracted: names have one length; the hash entries of a directory are spread over its data blocks; writing an inode does not read its cluster first.
//! Omitted: the allocations that end with the operation (transactions, path names).

use units::{FileId, Gfp};

use super::attributes::Attributes;
use super::disk::{Fs, Metadata};
use super::htree::Htree;
use super::inode::PARTS;
use super::{Dir, DirBlock, DirId, FileRec, FsId, FsKind, FsSpec, Handle, IdList, NONE, Need, Obj, Vfs};
use crate::slab::CacheId;
use crate::{Env, Mm};

/// A free place for a file: its name's, and its inode's.
#[derive(Clone, Copy)]
struct Place {
    dirent: u32,
    chunk: u32,
    slot: u32,
}

impl Vfs {
    /// Block of a directory that holds a name; none while all names are in the inode.
    pub(super) fn dir_block_of(&self, dir: DirId, dirent: u32) -> Option<u32> {
        let dir = &self.dirs[dir.0 as usize];
        let spec = &self.fs[dir.fs.0 as usize].spec;
        match spec.kind {
            FsKind::Ext4 => Some(dir.index.block_of(dirent)),
            FsKind::Xfs if dir.dirents.max(dirent + 1) <= spec.inline_dirents => None,
            FsKind::Xfs => Some(dirent / spec.dirents_per_block()),
        }
    }

    /// The root of a directory's index, if it has one.
    pub(super) fn index_root(&self, dir: DirId) -> Option<u32> {
        self.dirs[dir.0 as usize].index.is_indexed().then_some(Htree::ROOT)
    }

    /// The place for the next name, with a block allocated for it.
    fn next_dirent(&mut self, dir: DirId) -> Result<u32, Need> {
        let Dir { fs, dirents, ref free_dirents, .. } = self.dirs[dir.0 as usize];
        let dirent = free_dirents.last().copied().unwrap_or(dirents);
        if self.fs[fs.0 as usize].spec.kind == FsKind::Ext4 {
            self.make_room(dir, dirent)?;
        }
        if let Some(index) = self.dir_block_of(dir, dirent) {
            while self.dirs[dir.0 as usize].blocks.len() <= index as usize {
                self.add_dir_block(dir)?;
            }
        }
        Ok(dirent)
    }

    /// Sees to it that a directory of ext4 has room for a name in the block where it belongs.
    fn make_room(&mut self, dir: DirId, dirent: u32) -> Result<(), Need> {
        let (names, per_block) = self.names_of(dir);
        if !self.dirs[dir.0 as usize].index.is_indexed() {
            if names < per_block {
                return Ok(());
            }
            let leaf = self.add_dir_block(dir)?;
            let Dir { dirents, ref free_dirents, ref mut index, ref mut split, .. } = self.dirs[dir.0 as usize];
            index.index(leaf, (0..dirents).filter(|dirent| !free_dirents.contains(dirent)));
            split.push(leaf);
        }
        if self.dirs[dir.0 as usize].index.is_full(dirent, per_block) {
            let new = self.add_dir_block(dir)?;
            let Dir { index, split, .. } = &mut self.dirs[dir.0 as usize];
            let old = index.split(dirent, new);
            split.extend([Htree::ROOT, old, new]);
        }
        Ok(())
    }

    /// Gives a directory a block more; returns its number.
    fn add_dir_block(&mut self, dir: DirId) -> Result<u32, Need> {
        let Dir { fs, ag, .. } = self.dirs[dir.0 as usize];
        let block = self.fs[fs.0 as usize].space.take_for_metadata(ag, 1).ok_or(Need::Space)?;
        let blocks = &mut self.dirs[dir.0 as usize].blocks;
        blocks.push(DirBlock { block, buffer: NONE, fresh: true, dirty: false });
        Ok(blocks.len() as u32 - 1)
    }

    /// Uses up a place.
    fn take_place(&mut self, dir: DirId, place: Place) -> u32 {
        let record = &mut self.dirs[dir.0 as usize];
        if record.free_dirents.pop().is_none() {
            record.dirents += 1;
        }
        record.index.insert(place.dirent);
        self.fs[record.fs.0 as usize].take_inode(place.chunk, place.slot)
    }

    fn new_dir(&mut self, fs: FsId, file: FileId, ag: u32) -> DirId {
        self.dirs.push(Dir {
            fs,
            file,
            ag,
            last_dir: ag,
            children: 0,
            gone: IdList::EMPTY,
            dirents: 0,
            free_dirents: Vec::new(),
            blocks: Vec::new(),
            index: Htree::default(),
            split: Vec::new(),
        });
        DirId(self.dirs.len() as u32 - 1)
    }

    /// Group of a new directory's inode: with `flex_bg` that of its files, too.
    fn group_of_new_dir(&self, parent: DirId) -> u32 {
        let Dir { fs, file, ag, last_dir, .. } = self.dirs[parent.0 as usize];
        let Fs { orlov, space, .. } = &self.fs[fs.0 as usize];
        match orlov {
            None => ag,
            Some(orlov) if self.rec(file).has(FileRec::ROOT) => orlov.group_of_top_dir(space),
            Some(orlov) => orlov.group_near(space, last_dir),
        }
    }

    /// Makes a file a directory, whose inode went to a group.
    fn make_dir(&mut self, file: FileId, group: u32) -> DirId {
        let (fs, parent) = (self.fs_of(file), self.attributes.parent(file));
        let in_root = self.rec(self.dirs[parent.0 as usize].file).has(FileRec::ROOT);
        let record = &mut self.fs[fs.0 as usize];
        let group = match (&mut record.orlov, record.spec.kind) {
            (Some(orlov), _) => {
                orlov.add_dir(group);
                group
            }
            (None, FsKind::Ext4) if !in_root => group,
            (None, _) => record.rotor(),
        };
        self.dirs[parent.0 as usize].last_dir = group;
        let dir = self.new_dir(fs, file, group);
        self.rec_mut(file).flags |= FileRec::DIR;
        self.attributes.set_size(file, dir.0);
        dir
    }
}

impl Mm {
    /// Makes a file system, empty, and mounts it; the block of ext4's root inode is taken to be in memory since then.
    pub fn vfs_mkfs(&mut self, spec: FsSpec) -> FsId {
        let nodes = self.nodes.len();
        self.vfs.nodes = nodes;
        self.vfs.buffer_lru.resize(nodes, IdList::EMPTY);
        let id = FsId(self.vfs.fs.len() as u8);
        assert!(self.vfs.fs.len() < 64, "at most 64 file systems");
        let mut fs = Fs::new(spec);
        let ag = fs.rotor();
        let (chunk, slot) = fs.find_inode(ag).expect("it is empty");
        let ino = fs.take_inode(chunk, slot);
        if spec.kind == FsKind::Xfs {
            fs.chunks[chunk as usize].fresh = 0;
        }
        self.vfs.fs.push(fs);
        let dir = DirId(self.vfs.dirs.len() as u32);
        let attributes = Attributes { ino, size: dir.0, ..Attributes::below(dir) };
        let root = FileRec { flags: FileRec::DIR | FileRec::ROOT, ..FileRec::UNUSED };
        let file = self.vfs.new_file(id, root, attributes);
        self.vfs.new_dir(id, file, ag);
        if spec.kind == FsKind::Ext4 {
            self.vfs.make_bdev(id);
        }
        id
    }

    /// Root of a file system.
    pub fn vfs_root(&self, fs: FsId) -> DirId {
        let root = self.vfs.dirs.iter().position(|d| d.fs == fs && self.vfs.rec(d.file).has(FileRec::ROOT));
        DirId(root.expect("a file system has a root") as u32)
    }

    /// Finds the place for a new file, with all metadata in memory that making it changes.
    fn prepare_create(&mut self, env: &Env, dir: DirId, group: u32) -> Result<Place, Need> {
        let Dir { fs, file, .. } = self.vfs.dirs[dir.0 as usize];
        self.lookup(env, file)?;
        let dirent = self.vfs.next_dirent(dir)?;
        self.get_dir_block(env, dir, dirent)?;
        let (chunk, slot) = self.vfs.fs_mut(fs).find_inode(group).ok_or(Need::Space)?;
        match self.vfs.fs_mut(fs).spec.kind {
            FsKind::Xfs => self.make_chunk(env, fs, chunk)?,
            FsKind::Ext4 => {
                let (_, cluster) = self.vfs.fs_mut(fs).cluster_of(slot);
                self.get_buffer(env, fs, Metadata::Inodes { chunk, cluster })?;
                self.get_inode_block(env, file)?;
                self.wait_for_log_room(env, fs)?;
                self.may_change(fs, Metadata::Inodes { chunk, cluster })?;
                self.may_change_name(dir, dirent)?;
                self.may_change_split(env, dir)?;
            }
        }
        Ok(Place { dirent, chunk, slot })
    }

    /// Has the buffers of a new chunk in memory and in the log.
    fn make_chunk(&mut self, env: &Env, fs: FsId, chunk: u32) -> Result<(), Need> {
        let clusters = self.vfs.fs_mut(fs).spec.clusters();
        for cluster in 0..clusters {
            if self.vfs.fs_mut(fs).chunks[chunk as usize].fresh >> cluster & 1 == 1 {
                self.get_buffer(env, fs, Metadata::Inodes { chunk, cluster })?;
                self.vfs.fs_mut(fs).log_inode(chunk * 64 + cluster * (64 / clusters));
                self.log_buffer(env, fs, Metadata::Inodes { chunk, cluster }, 0);
            }
        }
        Ok(())
    }

    /// Makes a file or directory in a group, without a user yet; `negative` is its name if that was looked up before.
    fn create_inode(&mut self, env: &Env, dir: DirId, group: u32, negative: Option<FileId>) -> Result<FileId, Need> {
        let created = self.try_create(env, dir, group, negative);
        if created.is_err() {
            self.put_unused(env, self.vfs.dirs[dir.0 as usize].file);
        }
        created
    }

    fn try_create(&mut self, env: &Env, dir: DirId, group: u32, negative: Option<FileId>) -> Result<FileId, Need> {
        let place = self.prepare_create(env, dir, group)?;
        let known = negative.map_or(Obj::NONE, |file| self.vfs.rec(file).dentry);
        let dentry = if known.is_some() { known } else { self.vfs_alloc(env, CacheId::DENTRY, Gfp::KERNEL)? };
        let objects = match self.new_inode_objects(env, dir) {
            Ok(objects) => objects,
            Err(need) => {
                if !known.is_some() {
                    self.slab_free(env, CacheId::DENTRY, dentry);
                }
                return Err(need);
            }
        };
        let [inode, extents, item, shadow, security] = objects;
        let Place { dirent, .. } = place;
        self.charge_create(dir);
        let ino = self.vfs.take_place(dir, place);
        let made = FileRec { inode, extents, ..FileRec::UNUSED };
        let attributes = Attributes { dirent, ino, ..Attributes::below(dir) };
        let file = match negative {
            Some(file) => {
                self.vfs.unlist_gone(file);
                let rec = self.vfs.rec_mut(file);
                let flags = rec.flags & !FileRec::NEGATIVE;
                *rec = FileRec { dentry: rec.dentry, flags, ..made };
                self.vfs.attributes.set(file, attributes);
                file
            }
            None => self.vfs.new_file(self.vfs.dirs[dir.0 as usize].fs, made, attributes),
        };
        self.disown(file);
        self.vfs.items.set(file.0, item);
        self.vfs.shadows.set(file.0, shadow);
        self.vfs.security.set(file.0, security);
        self.vfs.nr_inodes += 1;
        if !known.is_some() {
            self.attach_dentry(file, dentry);
        }
        self.log_dir_change(env, dir, dirent);
        self.log_inode(file);
        self.vfs.timed.set(env, file);
        if shadow.is_some() {
            self.insert_item(env, file);
        }
        self.journal_changes(env, self.vfs.dirs[dir.0 as usize].fs);
        Ok(file)
    }

    /// The parts of a new inode.
    fn new_inode_objects(&mut self, env: &Env, dir: DirId) -> Result<[Obj; PARTS], Need> {
        let fs = self.vfs.dirs[dir.0 as usize].fs;
        let spec = self.vfs.fs_mut(fs).spec;
        self.alloc_inode(env, self.inode_caches(&spec, spec.extent_cache, true), Gfp::NOFS)
    }

    /// Whether the block of a name may be changed now.
    fn may_change_name(&self, dir: DirId, dirent: u32) -> Result<(), Need> {
        let fs = self.vfs.dirs[dir.0 as usize].fs;
        self.vfs
            .dir_block_of(dir, dirent)
            .map_or(Ok(()), |index| self.may_change(fs, Metadata::Directory { dir, index }))
    }

    /// The same of those that making room for it changes, which are read for that.
    fn may_change_split(&mut self, env: &Env, dir: DirId) -> Result<(), Need> {
        let fs = self.vfs.dirs[dir.0 as usize].fs;
        for at in 0..self.vfs.dirs[dir.0 as usize].split.len() {
            let block = Metadata::Directory { dir, index: self.vfs.dirs[dir.0 as usize].split[at] };
            self.read_buffer(env, fs, block)?;
            self.may_change(fs, block)?;
        }
        Ok(())
    }

    /// Notes that a name in a directory changed.
    fn log_dir_change(&mut self, env: &Env, dir: DirId, dirent: u32) {
        for index in std::mem::take(&mut self.vfs.dirs[dir.0 as usize].split) {
            self.vfs.log_dir_block(dir, index);
        }
        if let Some(index) = self.vfs.dir_block_of(dir, dirent) {
            self.vfs.log_dir_block(dir, index);
            self.log_name(env, dir, index, dirent);
        }
        let file = self.vfs.dirs[dir.0 as usize].file;
        self.log_inode(file);
        self.directory_dirtied(env, file);
    }

    /// Creates a file and opens it.
    pub fn vfs_create(&mut self, env: &Env, dir: DirId) -> Result<Handle, Need> {
        self.create_and_open(env, dir, None)
    }

    /// Creates and opens the file of a name that [`Mm::vfs_lookup_absent`] did not find.
    pub fn vfs_create_absent(&mut self, env: &Env, name: FileId) -> Result<Handle, Need> {
        assert!(self.vfs.rec(name).has(FileRec::NEGATIVE), "{name:?} exists");
        self.create_and_open(env, self.vfs.attributes.parent(name), Some(name))
    }

    fn create_and_open(&mut self, env: &Env, dir: DirId, negative: Option<FileId>) -> Result<Handle, Need> {
        let filp = self.vfs_alloc(env, CacheId::FILP, Gfp::KERNEL)?;
        match self.create_inode(env, dir, self.vfs.dirs[dir.0 as usize].ag, negative) {
            Ok(file) => {
                self.vfs.add_open(file);
                Ok(Handle { file, filp })
            }
            Err(need) => {
                self.slab_free(env, CacheId::FILP, filp);
                Err(need)
            }
        }
    }

    /// Creates a directory.
    pub fn vfs_mkdir(&mut self, env: &Env, parent: DirId) -> Result<DirId, Need> {
        let group = self.vfs.group_of_new_dir(parent);
        let file = self.create_inode(env, parent, group, None)?;
        let dir = self.vfs.make_dir(file, group);
        self.make_first_block(env, dir);
        self.dput(env, file);
        Ok(dir)
    }

    /// Gives a new directory of ext4 its first block (`ext4_init_new_dir()`); where memory for it is missing, the first name does.
    fn make_first_block(&mut self, env: &Env, dir: DirId) {
        let fs = self.vfs.dirs[dir.0 as usize].fs;
        if self.vfs.fs_mut(fs).spec.kind != FsKind::Ext4 {
            return;
        }
        let first = self.vfs.next_dirent(dir).and_then(|dirent| self.get_dir_block(env, dir, dirent).map(|()| dirent));
        if let Ok(dirent) = first {
            self.log_dir_change(env, dir, dirent);
            self.journal_changes(env, fs);
        }
    }

    /// Opens a file.
    pub fn vfs_open(&mut self, env: &Env, file: FileId) -> Result<Handle, Need> {
        let filp = self.vfs_alloc(env, CacheId::FILP, Gfp::KERNEL)?;
        if let Err(need) = self.lookup(env, file) {
            self.slab_free(env, CacheId::FILP, filp);
            return Err(need);
        }
        self.vfs.add_open(file);
        self.charge(self.costs.open_file + self.costs.open_close);
        Ok(Handle { file, filp })
    }

    /// Whether a name is that of a file, and not only of one that was looked for.
    pub fn vfs_exists(&self, name: FileId) -> bool {
        !self.vfs.rec(name).has(FileRec::NEGATIVE)
    }

    /// Looks a name up that does not exist; `known` if it was looked up before. Its dentry stays until it is shrunk, or
    /// becomes that of the file which [`Mm::vfs_create_absent`] makes.
    pub fn vfs_lookup_absent(&mut self, env: &Env, dir: DirId, known: Option<FileId>) -> Result<FileId, Need> {
        if let Some(name) = known.filter(|name| self.vfs.rec(*name).dentry.is_some()) {
            self.charge(self.costs.open_file);
            self.dput(env, name);
            return Ok(name);
        }
        let directory = self.vfs.dirs[dir.0 as usize].file;
        self.lookup(env, directory)?;
        let dentry = match self.negative_dentry(env, dir) {
            Ok(dentry) => dentry,
            Err(need) => {
                self.put_unused(env, directory);
                return Err(need);
            }
        };
        let absent = FileRec { flags: FileRec::NEGATIVE, ..FileRec::UNUSED };
        let fs = self.vfs.dirs[dir.0 as usize].fs;
        let name = known.unwrap_or_else(|| {
            let name = self.vfs.new_file(fs, absent, Attributes::below(dir));
            self.vfs.list_gone(name);
            name
        });
        self.attach_dentry(name, dentry);
        self.dput(env, name);
        self.charge(self.costs.open_file);
        Ok(name)
    }

    /// A dentry, once a block of the directory was searched in vain: the last that has names.
    fn negative_dentry(&mut self, env: &Env, dir: DirId) -> Result<Obj, Need> {
        if let Some(last) = self.vfs.dirs[dir.0 as usize].dirents.checked_sub(1) {
            self.get_dir_block(env, dir, last)?;
        }
        self.vfs_alloc(env, CacheId::DENTRY, Gfp::KERNEL)
    }

    /// Looks a file up without opening it (`stat`).
    pub fn vfs_stat(&mut self, env: &Env, file: FileId) -> Result<(), Need> {
        self.lookup(env, file)?;
        self.charge(self.costs.open_file);
        if !self.vfs.rec(file).has(FileRec::ROOT) && !self.dentry_in_use(file) {
            self.dput(env, file);
        }
        Ok(())
    }

    /// Closes a file; the last close gives preallocated blocks back and lets the dentry go to its LRU.
    pub fn vfs_close(&mut self, env: &Env, handle: Handle) {
        let Handle { file, filp } = handle;
        self.slab_free(env, CacheId::FILP, filp);
        if self.vfs.remove_open(file) {
            return;
        }
        if !self.vfs.rec(file).has(FileRec::DIR) {
            self.vfs.free_blocks(file, self.vfs.attributes.size(file));
        }
        if !self.dentry_in_use(file) {
            self.dput(env, file);
        }
    }

    /// Removes a file's name; what it has goes at once, or with its last close.
    pub fn vfs_unlink(&mut self, env: &Env, file: FileId) -> Result<(), Need> {
        assert!(!self.vfs.rec(file).has(FileRec::DIR), "{file:?} is a directory");
        self.remove_name(env, file)?;
        self.delete_dentry(env, file);
        Ok(())
    }

    /// Takes a name out of its directory, and counts it out in the inode.
    pub(super) fn remove_name(&mut self, env: &Env, file: FileId) -> Result<(), Need> {
        self.lookup(env, file)?;
        let (parent, dirent) = (self.vfs.attributes.parent(file), self.vfs.attributes.dirent(file));
        let directory = self.vfs.dirs[parent.0 as usize].file;
        let there = self.get_dir_block(env, parent, dirent).and_then(|()| self.get_inode_block(env, directory));
        let there = there.and_then(|()| self.get_leaf(env, file));
        let free = there.and_then(|()| self.may_change_name(parent, dirent));
        if let Err(need) = free.and_then(|()| self.log_change(env, file)) {
            self.put_unused(env, file);
            return Err(need);
        }
        self.charge_unlink(parent);
        let record = &mut self.vfs.dirs[parent.0 as usize];
        record.free_dirents.push(dirent);
        record.index.remove(dirent);
        self.log_dir_change(env, parent, dirent);
        self.journal_changes(env, self.vfs.fs_of(file));
        Ok(())
    }

    /// A file of so many pages that is on disk since before the run, and not in memory.
    ///
    /// # Panics
    /// Without room for it in one piece.
    pub fn vfs_populate(&mut self, dir: DirId, pages: u32) -> FileId {
        self.populate_in(dir, self.vfs.dirs[dir.0 as usize].ag, pages)
    }

    fn populate_in(&mut self, dir: DirId, group: u32, pages: u32) -> FileId {
        let fs = self.vfs.dirs[dir.0 as usize].fs;
        let dirent = self.vfs.next_dirent(dir).expect("there is room");
        let changed = std::mem::take(&mut self.vfs.dirs[dir.0 as usize].split);
        for index in changed.into_iter().chain(self.vfs.dir_block_of(dir, dirent)) {
            self.vfs.dirs[dir.0 as usize].blocks[index as usize].fresh = false;
        }
        let (chunk, slot) = self.vfs.fs_mut(fs).find_inode(group).expect("there is room");
        self.vfs.fs_mut(fs).chunks[chunk as usize].fresh = 0;
        let ino = self.vfs.take_place(dir, Place { dirent, chunk, slot });
        let attributes = Attributes { parent: dir, dirent, ino, size: pages, blocks: pages };
        let file = self.vfs.new_file(fs, FileRec::UNUSED, attributes);
        if pages > 0 {
            let (block, blocks) = self.vfs.fs_mut(fs).space.take(group, pages).expect("there is room");
            assert!(blocks == pages, "a file of {pages} pages fits an allocation group");
            self.vfs.attributes.set_first_block(file, block);
        }
        file
    }

    /// A directory that is on disk since before the run, and not in memory.
    pub fn vfs_populate_dir(&mut self, parent: DirId) -> DirId {
        let group = self.vfs.group_of_new_dir(parent);
        let file = self.populate_in(parent, group, 0);
        self.vfs.make_dir(file, group)
    }
}
