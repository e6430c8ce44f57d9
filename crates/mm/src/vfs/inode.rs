//! Inodes in memory: from the first use to eviction.
//!
//! Rule: an inode that nothing refers to any more (no dentry) and that has no dirty pages goes on the LRU of its node;
//! one that is there already is marked as referenced, until 4.14 any that loses its last reference. The last reference to an inode without a name evicts it: its
//! pages, blocks and inode on disk are freed. What XFS evicts stays until its reclaim, which frees oldest first.
//! Source: `iput_final()`, `inode_add_lru()`, `evict()`, fs/inode.c, 4.4 and 4.20; `xfs_fs_destroy_inode()`,
//! `xfs_reclaim_inodes_ag()`, fs/xfs/xfs_icache.c, 4.20; `xfs_icwalk_ag()`, 6.12.
//! Since/until: with [`InodeReclaim::NotOnLru`] (5.16) an inode with page cache is not put on the LRU; when its last
//! page goes, the page cache puts it there. [`SingleUse`] says when it is marked, [`XfsReclaim`] says what happens to an inode whose change is only in the log.
//! Abstracted: reclaim goes by the order of eviction, not of inode numbers in each group; the log's change is tracked by
//! cluster; a reclaimer that writes a cluster does not read it first; others who come by meanwhile find it written, and the log, and what is on its way to its place, where
//! in the kernel they leave the inode or wait; any number may reclaim, where in the kernel one may in each allocation group and further ones wait. The log item, or ext4's `jbd2_inode`, is allocated with the first change, the extents' array (iext.rs)
//! with the inode; ext4 has none, but entries (extent_status.rs).
//! Omitted: inactivation in the background (5.14), the per-group radix trees' nodes.

use rules::{InodeReclaim, SingleUse, XfsReclaim};
use units::{FileId, Gfp};

use super::cil::vector_cache;
use super::disk::Metadata;
use super::{FileRec, FsKind, FsSpec, IdList, Need, Obj, Share, Vfs};
use crate::slab::CacheId;
use crate::{Bio, Effect, Env, Mm};

/// Inodes that XFS looks up at a time in each group (`XFS_LOOKUP_BATCH`).
const LOOKUP_BATCH: u64 = 32;
/// Objects of an inode: itself, its extents, its log item, the item's log vector, what security modules keep of it. ext4
/// has neither the second nor the fourth.
pub(super) const PARTS: usize = 5;

impl Mm {
    /// An object, or what is missing.
    pub(super) fn vfs_alloc(&mut self, env: &Env, cache: CacheId, gfp: Gfp) -> Result<Obj, Need> {
        self.memcg_reserve_object(env, cache, gfp)?;
        self.slab_alloc(env, cache, gfp).map_err(|request| Need::Slab(cache, request))
    }

    /// The caches of all parts of an inode.
    fn part_caches(&self, spec: &FsSpec, extents: CacheId, large_shadow: bool) -> [Option<CacheId>; PARTS] {
        let secured = self.rules.struct_sizes.secures_inodes();
        let xfs = spec.kind == FsKind::Xfs;
        let [extents, second] = [extents, vector_cache(spec, large_shadow)].map(|cache| xfs.then_some(cache));
        [Some(spec.inode_cache), extents, Some(spec.item_cache), second, secured.then_some(CacheId::LSM_INODE)]
    }

    /// The same of those that come with it; the log's only if it is `changed`.
    pub(super) fn inode_caches(&self, spec: &FsSpec, extents: CacheId, changed: bool) -> [Option<CacheId>; PARTS] {
        let [inode, extents, item, second, security] = self.part_caches(spec, extents, false);
        [inode, extents, item.filter(|_| changed), second.filter(|_| changed), security]
    }

    /// The parts of an inode, or none and what is missing.
    pub(super) fn alloc_inode(
        &mut self,
        env: &Env,
        caches: [Option<CacheId>; PARTS],
        gfp: Gfp,
    ) -> Result<[Obj; PARTS], Need> {
        let mut objects = [Obj::NONE; PARTS];
        for n in 0..PARTS {
            let Some(cache) = caches[n] else { continue };
            match self.vfs_alloc(env, cache, gfp) {
                Ok(obj) => objects[n] = obj,
                Err(need) => {
                    self.free_inode_parts(env, caches, objects);
                    return Err(need);
                }
            }
        }
        Ok(objects)
    }

    fn free_inode_parts(&mut self, env: &Env, caches: [Option<CacheId>; PARTS], objects: [Obj; PARTS]) {
        let parts = caches.into_iter().zip(objects).filter(|(_, obj)| obj.is_some());
        for (cache, obj) in parts {
            self.slab_free(env, cache.expect("an object has a cache"), obj);
        }
    }

    /// Whose an inode in memory is.
    fn inode_share(&self, file: FileId) -> Share {
        self.slabs.share_of(self.vfs.spec_of(file).inode_cache, self.vfs.rec(file).inode)
    }

    /// Sees to it that the inode of a file is in memory: the cluster of it must be.
    pub(super) fn get_inode(&mut self, env: &Env, file: FileId) -> Result<(), Need> {
        let rec = *self.vfs.rec(file);
        debug_assert!(rec.has(FileRec::LIVE) && !rec.has(FileRec::UNLINKED));
        if rec.has(FileRec::RECLAIMABLE) {
            self.take_off_reclaim(file);
            return Ok(());
        }
        if rec.inode.is_some() {
            return Ok(());
        }
        let (fs, ino) = (self.vfs.fs_of(file), self.vfs.attributes.ino(file));
        let (chunk, cluster) = self.vfs.fs_mut(fs).cluster_of(ino);
        self.read_buffer(env, fs, Metadata::Inodes { chunk, cluster })?;
        let spec = *self.vfs.spec_of(file);
        let array = self.vfs.size_array(file);
        let [inode, extents, .., security] =
            self.alloc_inode(env, self.inode_caches(&spec, array, false), Gfp::KERNEL)?;
        self.disown(file);
        let rec = self.vfs.rec_mut(file);
        (rec.inode, rec.extents) = (inode, extents);
        self.vfs.security.set(file.0, security);
        self.vfs.nr_inodes += 1;
        Ok(())
    }

    fn take_off_reclaim(&mut self, file: FileId) {
        let mut list = self.vfs.reclaimable.expect("an inode is on it");
        list.remove(&mut self.vfs.inode_links, file.0);
        self.vfs.reclaimable = Some(list);
        self.vfs.rec_mut(file).flags &= !FileRec::RECLAIMABLE;
    }

    /// Whether the page cache lets the inode be shrunk: no page, and no shadow but one in the root of its tree.
    fn mapping_shrinkable(&self, file: FileId) -> bool {
        if self.rules.inode_reclaim != InodeReclaim::NotOnLru {
            return true;
        }
        let trees = &self.pagecache.trees;
        let empty = match trees.next_entry(file.0, 0) {
            None => true,
            Some((index, _)) => index == 0 && trees.next_entry(file.0, 1).is_none(),
        };
        empty && self.nr_cached(file) == 0
    }

    /// Puts an inode that nothing uses on the LRU of its node; `touch` marks one that is there as referenced, if that is what
    /// marks inodes.
    fn add_to_inode_lru(&mut self, file: FileId, touch: bool) {
        let rec = self.vfs.rec(file);
        let busy = FileRec::DIRTY | FileRec::FREEING | FileRec::RECLAIMABLE | FileRec::UNLINKED;
        let in_use = rec.dentry.is_some() || rec.has(busy);
        if in_use || !rec.inode.is_some() || !self.mapping_shrinkable(file) {
            return;
        }
        if self.vfs.rec(file).has(FileRec::INODE_LRU) {
            if touch && self.rules.single_use == SingleUse::Plain {
                self.vfs.rec_mut(file).flags |= FileRec::INODE_REF;
            }
            return;
        }
        let lists = self.vfs.lists_of(self.inode_share(file));
        self.vfs.rec_mut(file).flags |= FileRec::INODE_LRU;
        self.vfs.inode_lru[lists].push_back(&mut self.vfs.inode_links, file.0);
    }

    /// The last page or shadow of the file left the page cache: where inodes with either are not on the LRU, it may go
    /// there now (`inode_add_lru()` from mm/filemap.c, mm/truncate.c and mm/workingset.c, since 5.16).
    pub(crate) fn inode_pages_gone(&mut self, file: FileId) {
        if self.rules.inode_reclaim == InodeReclaim::NotOnLru {
            self.add_to_inode_lru(file, false);
        }
    }

    /// Drops the last reference to an inode.
    pub(super) fn iput(&mut self, env: &Env, file: FileId) {
        let rec = self.vfs.rec(file);
        debug_assert!(!rec.has(FileRec::RECLAIMABLE) && rec.inode.is_some());
        if rec.has(FileRec::UNLINKED) {
            self.evict_inode(env, file);
            return;
        }
        if self.rules.single_use == SingleUse::Marked {
            self.vfs.rec_mut(file).flags |= FileRec::INODE_REF;
        }
        self.add_to_inode_lru(file, true);
    }

    /// Takes an inode off its LRU.
    pub(super) fn remove_from_inode_lru(&mut self, file: FileId) {
        if self.vfs.rec(file).has(FileRec::INODE_LRU) {
            let lists = self.vfs.lists_of(self.inode_share(file));
            self.vfs.inode_lru[lists].remove(&mut self.vfs.inode_links, file.0);
            self.vfs.rec_mut(file).flags &= !(FileRec::INODE_LRU | FileRec::INODE_REF);
        }
    }

    /// Lets an inode go, with its pages; without a name also its blocks and its place on disk.
    pub(super) fn evict_inode(&mut self, env: &Env, file: FileId) {
        self.remove_from_inode_lru(file);
        self.vfs.rec_mut(file).flags |= FileRec::FREEING;
        let rec = *self.vfs.rec(file);
        if !rec.has(FileRec::DIR) {
            self.truncate_pages(env, file, 0);
            self.forget_write_errors(file);
        }
        self.vfs.rec_mut(file).flags &= !(FileRec::FREEING | FileRec::DIRTY | FileRec::INODE_REF);
        if rec.has(FileRec::UNLINKED) {
            self.inactivate(env, file);
        }
        if self.vfs.spec_of(file).kind == FsKind::Xfs {
            let mut list = self.vfs.reclaimable.unwrap_or(IdList::EMPTY);
            if list.is_empty() {
                self.effects.push(Effect::ArmReclaim);
            }
            list.push_back(&mut self.vfs.inode_links, file.0);
            self.vfs.reclaimable = Some(list);
            self.vfs.rec_mut(file).flags |= FileRec::RECLAIMABLE;
        } else {
            self.free_inode(env, file);
        }
    }

    /// Frees what an unlinked file has on disk (`xfs_inactive()`).
    fn inactivate(&mut self, env: &Env, file: FileId) {
        let fs = self.vfs.fs_of(file);
        if self.vfs.rec(file).has(FileRec::DIR) {
            self.free_dir_blocks(env, file);
        }
        self.remove_extents(env, file);
        self.log_freed_extents(env, file);
        self.vfs.free_blocks(file, 0);
        self.free_array(env, file);
        self.log_inode(file);
        let ino = self.vfs.attributes.ino(file);
        self.vfs.attributes.set_ino(file, super::NONE);
        let empty = self.vfs.fs_mut(fs).give_inode(ino);
        if self.vfs.fs_mut(fs).spec.kind == FsKind::Xfs
            && let Some(chunk) = empty
        {
            self.free_chunk_buffers(env, fs, chunk);
            self.vfs.fs_mut(fs).give_chunk(chunk);
        }
    }

    /// Frees the objects of an inode: after a grace period, but ext4's `jbd2_inode` at once (`ext4_clear_inode()`).
    fn free_inode(&mut self, env: &Env, file: FileId) {
        debug_assert!(!self.vfs.rec(file).has(FileRec::INODE_LRU | FileRec::RECLAIMABLE | FileRec::DIRTY));
        self.forget_statuses(env, file);
        let large_shadow = self.vfs.rec(file).has(FileRec::SHADOW_LARGE);
        let caches = self.part_caches(self.vfs.spec_of(file), self.vfs.array_cache_of(file), large_shadow);
        let rec = self.vfs.rec_mut(file);
        rec.flags &= !(FileRec::SHADOW_LARGE | FileRec::FILLED_HOLE);
        let [inode, extents] = [&mut rec.inode, &mut rec.extents].map(std::mem::take);
        let Vfs { items, shadows, security, .. } = &mut self.vfs;
        let [item, shadow, security] = [items, shadows, security].map(|table| table.take(file.0));
        let objects = [inode, extents, item, shadow, security];
        let spec = self.vfs.spec_of(file);
        let at_once = (spec.kind == FsKind::Ext4).then_some(spec.item_cache);
        for (cache, obj) in caches.into_iter().zip(objects).filter(|(_, obj)| obj.is_some()) {
            let owner = cache.expect("an object has a cache");
            if cache == at_once {
                self.slab_free(env, owner, obj);
            } else {
                self.slab_free_rcu(env, owner, obj);
            }
        }
        self.vfs.nr_inodes -= 1;
        self.vfs.release_file(file);
    }

    /// The inode got its first dirty page, or has none any more: it may not be evicted while dirty.
    pub fn inode_dirty(&mut self, file: FileId, dirty: bool) {
        let rec = self.vfs.rec_mut(file);
        debug_assert!(!rec.has(FileRec::RECLAIMABLE), "{file:?} is evicted");
        if dirty {
            rec.flags |= FileRec::DIRTY;
            self.log_inode(file);
        } else {
            rec.flags &= !FileRec::DIRTY;
            self.add_to_inode_lru(file, true);
        }
    }

    /// XFS is to free evicted inodes: `nr` of them, in whole batches, and one batch of every further group; first what is in
    /// the log is to be written in place (`xfs_reclaim_inodes_nr()`). Says how many it is to go over.
    pub(super) fn reclaim_inodes_nr(&mut self, nr: u64) -> u64 {
        self.push_logs();
        let groups = self.vfs.fs.iter().filter(|f| f.spec.kind == FsKind::Xfs).map(|f| f.spec.ag_count).max();
        let batches = nr.div_ceil(LOOKUP_BATCH) + u64::from(groups.unwrap_or(1) - 1);
        self.vfs.reclaimable_inodes().min(batches * LOOKUP_BATCH)
    }

    /// Goes over so many evicted inodes, oldest first, which it counts down, up to one that the caller must wait for: until
    /// this bio has ended.
    pub(crate) fn reclaim_evicted(&mut self, env: &Env, left: &mut u64) -> Option<Bio> {
        while let Some(file) = self.oldest_evicted().filter(|_| *left > 0) {
            if self.rules.xfs_reclaim == XfsReclaim::FlushDirty
                && let Some(bio) = self.flush_evicted(env, file)
            {
                return Some(bio);
            }
            self.reclaim_inode(env, file);
            *left -= 1;
        }
        *left = 0;
        None
    }

    /// While there are any, XFS frees every 5 seconds all evicted inodes that have no change left in the log (`xfs_reclaim_worker()`);
    /// says how many.
    pub fn vfs_background_reclaim(&mut self, env: &Env) -> u64 {
        let before = self.vfs.reclaimable_inodes();
        for _ in 0..before {
            let Some(file) = self.oldest_evicted() else { break };
            self.reclaim_inode(env, file);
        }
        before - self.vfs.reclaimable_inodes()
    }

    fn oldest_evicted(&self) -> Option<FileId> {
        self.vfs.reclaimable.and_then(|list| list.front()).map(FileId)
    }

    /// Frees the oldest evicted inode, or leaves it for the next time as its change is only in the log.
    fn reclaim_inode(&mut self, env: &Env, file: FileId) {
        self.charge(self.costs.shrink_object);
        if self.vfs.rec(file).has(FileRec::IN_CIL) || self.logged_cluster(file).is_some() {
            let mut list = self.vfs.reclaimable.expect("it is not empty");
            list.rotate(&mut self.vfs.inode_links, file.0);
            self.vfs.reclaimable = Some(list);
        } else {
            self.take_off_reclaim(file);
            self.free_inode(env, file);
        }
    }

    /// What an evicted inode's change needs before the inode may go: that the checkpoint which pins it is in the log, that its cluster
    /// is in memory, and that this is written (`xfs_reclaim_inode()`). None if the cluster finds no memory: the inode is left then.
    fn flush_evicted(&mut self, env: &Env, file: FileId) -> Option<Bio> {
        let fs = self.vfs.fs_of(file);
        if self.is_pinned(file)
            && let Some(bio) = self.vfs_force_log(env, fs)
        {
            return Some(bio);
        }
        let (chunk, cluster) = self.logged_cluster(file)?;
        let of = Metadata::Inodes { chunk, cluster };
        match self.get_buffer(env, fs, of) {
            Ok(()) => self.begin_metadata_write(env, fs, of, true),
            Err(Need::Read(bio)) => Some(bio),
            Err(_) => None,
        }
    }

    /// The cluster of an inode that has changes which are only in the log.
    fn logged_cluster(&self, file: FileId) -> Option<(u32, u32)> {
        let (fs, ino) = (self.vfs.fs_of(file), self.vfs.attributes.ino(file));
        let fs = &self.vfs.fs[fs.0 as usize];
        (ino != super::NONE && fs.inode_logged(ino)).then(|| fs.cluster_of(ino))
    }

    /// Shrinks an inode LRU (`prune_icache_sb()`); says how many left it.
    pub(super) fn prune_inodes(&mut self, env: &Env, share: Share, nr: u64) -> u64 {
        let lists = self.vfs.lists_of(share);
        let mut removed = 0;
        for _ in 0..nr {
            let Some(id) = self.vfs.inode_lru[lists].front() else { break };
            self.charge(self.costs.shrink_object);
            let file = FileId(id);
            match self.inode_verdict(file) {
                Verdict::Busy => self.remove_from_inode_lru(file),
                Verdict::Evict => self.evict_inode(env, file),
                Verdict::Rotate => {
                    self.vfs.rec_mut(file).flags &= !FileRec::INODE_REF;
                    self.vfs.inode_lru[lists].rotate(&mut self.vfs.inode_links, id);
                    continue;
                }
                Verdict::Invalidate => {
                    self.steal_pages(env, file);
                    continue;
                }
            }
            removed += 1;
        }
        removed
    }

    /// What is to be done with the oldest inode (`inode_lru_isolate()`).
    fn inode_verdict(&self, file: FileId) -> Verdict {
        let rec = self.vfs.rec(file);
        if rec.dentry.is_some() || rec.has(FileRec::DIRTY) || !self.mapping_shrinkable(file) {
            return Verdict::Busy;
        }
        let pages = if rec.has(FileRec::DIR) { 0 } else { self.nr_cached(file) };
        // Since 5.16 a shadow in the root keeps the inode for another round too (`mapping_empty()`).
        let shadow = self.rules.inode_reclaim == InodeReclaim::NotOnLru
            && !rec.has(FileRec::DIR)
            && self.pagecache.trees.next_entry(file.0, 0).is_some();
        let keep = self.rules.inode_reclaim == InodeReclaim::SkipWithPages && pages > 1;
        if rec.has(FileRec::INODE_REF) || keep {
            Verdict::Rotate
        } else if pages > 0 || shadow {
            Verdict::Invalidate
        } else {
            Verdict::Evict
        }
    }

    /// Drops the clean pages of an inode; the reference held meanwhile marks it as referenced when dropped. Where inodes
    /// with pages are not on the LRU, only a shadow is left to drop, which counts as a page does
    /// (`mapping_try_invalidate()`), and the inode is pinned in another way (`inode_pin_lru_isolating()`, 6.11).
    fn steal_pages(&mut self, env: &Env, file: FileId) {
        let newer = self.rules.inode_reclaim == InodeReclaim::NotOnLru;
        let shadow = newer && self.pagecache.trees.next_entry(file.0, 0).is_some();
        let pages = self.invalidate_clean_pages(env, file) + u64::from(shadow);
        let event =
            if env.task.kswapd { crate::stat::VmEvent::KswapdInodesteal } else { crate::stat::VmEvent::Pginodesteal };
        self.stat.count(event, pages);
        if !newer {
            self.vfs.rec_mut(file).flags |= FileRec::INODE_REF;
        }
    }
}

/// What the shrinker does with an inode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    /// Is in use or dirty: leaves the LRU (`LRU_REMOVED`).
    Busy,
    /// Gets another round (`LRU_ROTATE`).
    Rotate,
    /// Loses its clean pages, or its shadow, first (`LRU_RETRY`).
    Invalidate,
    /// Goes (`LRU_REMOVED`).
    Evict,
}
