//! Pages and shadows come into a file and leave it.
//!
//! Rule: a new page goes on an LRU list at once. If its slot holds a shadow, the refault is judged first, unless the
//! page will be overwritten (`__GFP_WRITE`). Nodes of the tree that are missing are allocated before the page is put
//! in ([`TreeNodes`]); nodes that lose their last entry are freed.
//! Source: `add_to_page_cache_lru()`, `page_cache_delete()`, `unaccount_page_cache_page()`, mm/filemap.c (4.20; 6.12
//! the same on order-0 folios); `migrate_page_move_mapping()`, mm/migrate.c.
//! Abstracted: nodes are allocated before the page is, not after; a page never fails to go in once it is allocated.

use rules::TreeNodes;
use units::{FileId, Gfp, Order, Pfn};

use super::folio::FolioPlace;
use super::{Slot, slots};
use crate::slab::{CacheId, Obj};
use crate::stat::{NodeStat, ZoneStat};
use crate::vfs::Need;
use crate::{AllocRequest, Env, Frame, Kind, Mm};

/// Flags that say how an allocation may be served (`GFP_RECLAIM_MASK`), which nodes inherit from the page.
const RECLAIM_MASK: Gfp = Gfp(Gfp::RECLAIM.0
    | Gfp::HIGH.0
    | Gfp::IO.0
    | Gfp::FS.0
    | Gfp::NOWARN.0
    | Gfp::RETRY_MAYFAIL.0
    | Gfp::NOFAIL.0
    | Gfp::NORETRY.0
    | Gfp::MEMALLOC.0
    | Gfp::NOMEMALLOC.0);

impl Mm {
    /// Has the nodes at hand that a folio needs.
    #[inline]
    pub(crate) fn reserve_nodes(&mut self, env: &Env, place: FolioPlace, gfp: Gfp) -> Result<(), Need> {
        let missing = self.nodes_missing_for(place);
        if missing <= self.pagecache.trees.spare.len() {
            return Ok(());
        }
        self.allocate_nodes(env, missing, gfp)
    }

    fn allocate_nodes(&mut self, env: &Env, missing: usize, gfp: Gfp) -> Result<(), Need> {
        let cache = CacheId::RADIX_TREE_NODE;
        let gfp = Gfp(gfp.0 & RECLAIM_MASK.0);
        while self.pagecache.trees.spare.len() < missing {
            self.memcg_reserve_object(env, cache, gfp)?;
            let obj = match self.node_under_lock(env, cache) {
                Some(obj) => obj,
                None => self.slab_alloc(env, cache, gfp).map_err(|req| Need::Slab(cache, req))?,
            };
            let share = self.shadow_share(obj);
            self.pagecache.trees.spare.push((obj, share));
        }
        Ok(())
    }

    /// A node without sleeping, which wakes kswapd for the order of the cache's slabs where memory is short.
    fn node_under_lock(&mut self, env: &Env, cache: CacheId) -> Option<Obj> {
        let tried = self.rules.tree_nodes == TreeNodes::UnderLock;
        tried.then(|| self.slab_alloc_nowait(env, cache, Gfp::NOWAIT)).filter(|obj| obj.is_some())
    }

    /// A folio for the cache: what the caller holds, if it is of that order, or a new one. `Err` is the request for the slow path.
    #[inline]
    pub(crate) fn cache_folio(
        &mut self,
        env: &Env,
        order: Order,
        gfp: Gfp,
        hand: &mut Option<Pfn>,
    ) -> Result<Pfn, AllocRequest> {
        let req = AllocRequest { gfp, order, node: env.node };
        if let Some(pfn) = *hand
            && self.frames[pfn].order() != order
        {
            self.free_hand(env, hand);
        }
        hand.take().or_else(|| self.alloc_pages(env, req)).ok_or(req)
    }

    /// Puts a fresh folio into a file and on an LRU list; the nodes must be reserved.
    #[inline]
    pub(super) fn add_to_page_cache(&mut self, env: &Env, pfn: Pfn, file: FileId, index: u32, gfp: Gfp) {
        self.insert_page(env, pfn, file, index, gfp);
        self.lru_add(env, pfn);
    }

    /// Puts a fresh folio into a file, and on no list yet; the nodes must be reserved.
    #[inline]
    pub(crate) fn insert_page(&mut self, env: &Env, pfn: Pfn, file: FileId, index: u32, gfp: Gfp) {
        let frame = &mut self.frames[pfn];
        debug_assert!(frame.kind() == Kind::Held && index.is_multiple_of(frame.nr_pages()));
        let (order, pages) = (frame.order(), frame.nr_pages());
        frame.set_kind(Kind::File, order);
        self.memcg_commit(env, env.task.memcg, pfn);
        let mut old = 0;
        // From the last one on, which needs all nodes of its leaf; what counts is the last shadow.
        for at in (index..index + pages).rev() {
            let was = self.pagecache.trees.insert(file.0, at, slots::page(pfn));
            assert!(!slots::is_page(was), "page {at} of {file:?} is cached already");
            old = if old == 0 { was } else { old };
        }
        self.frames[pfn].place = self.pagecache.trees.place(file.0, index);
        self.note_shadow_nodes();
        self.stat.node_add(self.node_of(pfn), NodeStat::FilePages, i64::from(pages));
        self.charge(self.costs.cache_insert);
        if let Slot::Shadow(shadow) = slots::unpack(old)
            && !gfp.contains(Gfp::WRITE)
        {
            self.workingset_refault(env, pfn, shadow);
        }
    }

    /// Puts a page that was read or written elsewhere into a file: the frame is `Held`; it becomes clean and
    /// up to date. `Err` says what is missing; the page stays the caller's then.
    pub fn pagecache_insert(&mut self, env: &Env, pfn: Pfn, file: FileId, index: u32) -> Result<(), Need> {
        let gfp = self.mapping_gfp(file);
        self.reserve_nodes(env, FolioPlace { file, index, order: self.frames[pfn].order() }, gfp)?;
        self.add_to_page_cache(env, pfn, file, index, gfp);
        self.frames[pfn].set(Frame::UPTODATE);
        Ok(())
    }

    /// Takes a clean unmapped folio that is on no LRU list out of its file and leaves a shadow (reclaim) or nothing
    /// (truncation). The frame is `Held` afterwards.
    pub fn pagecache_remove(&mut self, env: &Env, pfn: Pfn, shadow: Option<u32>) {
        let frame = &self.frames[pfn];
        debug_assert!(frame.kind() == Kind::File && !frame.has_any(Frame::DIRTY | Frame::WRITEBACK | Frame::MAPPED));
        debug_assert!(!frame.has_any(Frame::LRU), "{pfn:?} is on an LRU list");
        let ((FileId(file), first), order) = (self.file_home(pfn), frame.order());
        self.frames[pfn].set_kind(Kind::Held, order);
        for index in first..first + order.pages() {
            let old = match shadow {
                Some(shadow) => self.pagecache.trees.replace(file, index, slots::shadow(shadow)),
                None => self.pagecache.trees.erase(file, index),
            };
            assert!(old == slots::page(pfn), "page {index} of file {file} is another frame than {pfn:?}");
        }
        self.stat.node_add(self.node_of(pfn), NodeStat::FilePages, -i64::from(order.pages()));
        self.charge(self.costs.cache_insert);
        self.free_buffers(env, pfn);
        self.free_nodes(env);
        self.note_shadow_nodes();
        if self.pagecache.trees.nr_pages(file) == 0 {
            self.inode_pages_gone(FileId(file));
        }
    }

    /// Migration: `new`, which is `Held`, takes the place of `old`, which becomes `Held`. Both are on no LRU list.
    pub fn pagecache_replace(&mut self, old: Pfn, new: Pfn) {
        let (from, (FileId(file), first)) = (self.frames[old], self.file_home(old));
        debug_assert!(from.kind() == Kind::File && !from.has_any(Frame::LRU | Frame::WRITEBACK));
        if from.has(Frame::MAPPED) {
            self.move_file_mappings(old, new);
        }
        let to = &mut self.frames[new];
        debug_assert!(to.kind() == Kind::Held && to.order() == from.order() && !to.has_any(Frame::LRU));
        to.set_kind(Kind::File, from.order());
        to.place = from.place;
        to.copy_flags_from(&from);
        self.frames[old].set_kind(Kind::Held, from.order());
        self.move_buffers(old, new);
        for index in first..first + from.nr_pages() {
            let was = self.pagecache.trees.replace(file, index, slots::page(new));
            assert!(slots::unpack(was) == Slot::Page(old), "page {index} of file {file} is another frame than {old:?}");
        }
        let pages = i64::from(from.nr_pages());
        for (pfn, sign) in [(old, -pages), (new, pages)] {
            let (zone, node) = (self.zone_of(pfn), self.node_of(pfn));
            self.stat.node_add(node, NodeStat::FilePages, sign);
            if from.has(Frame::DIRTY) {
                self.stat.node_add(node, NodeStat::FileDirty, sign);
                self.stat.zone_add(zone, ZoneStat::WritePending, sign);
            }
        }
    }

    /// Gives nodes that are gone back to their cache, once the tree is as it shall be.
    #[inline]
    pub(super) fn free_nodes(&mut self, env: &Env) {
        while let Some(obj) = self.pagecache.trees.released.pop() {
            self.slab_free_rcu(env, CacheId::RADIX_TREE_NODE, obj);
        }
        self.pagecache.trees.settle();
    }
}
