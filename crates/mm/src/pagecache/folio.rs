//! Large folios: blocks of pages of a file that the page cache keeps as one.
//!
//! Rule ([`LargeFolios`]): what is read ahead of XFS is allocated in blocks that double twice with each window, up to a huge page, and
//! what is written in blocks as large as the call; each aligned in the file as in memory, and no larger than the window or the call.
//! Such a block has one state, one place on the LRU and one end of its I/O. Every slot of the tree that it covers names its first frame.
//! Which of its pages were changed the slots' tags say.
//! Source: `page_cache_ra_order()`, mm/readahead.c, `__filemap_get_folio()`, `filemap_get_order()`, mm/filemap.c, `iomap_get_folio()`,
//! `ifs_set_range_dirty()`, fs/iomap/buffered-io.c; 6.1 and 6.12.
//! Since/until: [`LargeFolios`]; blocks of two pages since 8897277acfef (6.9), hence not where only reads are in blocks.
//! Abstracted: a block of 64 pages or more has the tree's bottom nodes that single pages would need. A single page that is read ahead is
//! charged to its group until it fits, where the kernel tries once. What a folio holds is valid as a whole, since all of it is read, or
//! written by who makes it, as far as there are blocks.

use std::ops::Range;

use rules::LargeFolios;
use units::{FileId, Gfp, Order, PAGEBLOCK_ORDER, Pfn};

use super::leaf::NODE_SLOTS;
use super::{Slot, slots};
use crate::vfs::{FsKind, Need};
use crate::{Env, Frame, Kind, Mm};

/// By how many orders the blocks of a window are larger than the block whose mark opened it.
const ORDERS_PER_WINDOW: u8 = 2;

/// The largest order, at most `most`, by which a block may begin at a page.
fn aligned(index: u32, most: Order) -> Order {
    Order(most.0.min(index.trailing_zeros() as u8))
}

/// Order of the block that a write of `pages` pages from `index` on begins with.
pub(super) fn order_to_write(index: u32, pages: u32) -> Order {
    aligned(index, Order((pages.ilog2() as u8).min(PAGEBLOCK_ORDER.0)))
}

/// Order of the blocks of a window of `size` pages that a block of order `before` opened.
pub(super) fn order_of_window(before: Order, size: u32) -> Order {
    Order((before.0 + ORDERS_PER_WINDOW).min(PAGEBLOCK_ORDER.0).min(size.ilog2() as u8))
}

/// Where in a file a folio is to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FolioPlace {
    pub(crate) file: FileId,
    /// Its first page.
    pub(crate) index: u32,
    pub(crate) order: Order,
}

impl FolioPlace {
    /// That of a single page.
    pub(crate) fn page(file: FileId, index: u32) -> FolioPlace {
        FolioPlace { file, index, order: Order(0) }
    }

    /// Its pages.
    pub(super) fn indices(self) -> Range<u32> {
        self.index..self.index + self.order.pages()
    }
}

impl Mm {
    /// Where a file may have large folios (`mapping_large_folio_support()`).
    fn large_folios_of(&self, file: FileId) -> LargeFolios {
        let of_xfs = self.bdev_gfp(file).is_none() && self.fs_kind(file) == FsKind::Xfs;
        if of_xfs { self.rules.large_folios } else { LargeFolios::Never }
    }

    /// Whether what is read ahead of a file goes into large folios.
    pub(super) fn reads_large_folios(&self, file: FileId) -> bool {
        self.large_folios_of(file) != LargeFolios::Never
    }

    /// Whether what is written to a file does.
    pub(super) fn writes_large_folios(&self, file: FileId) -> bool {
        self.large_folios_of(file) == LargeFolios::Written
    }

    /// Most pages that a write copies at a time, from page `index` on (`mapping_max_folio_size()`).
    pub fn write_chunk_pages(&self, file: FileId, index: u32) -> u32 {
        let most = PAGEBLOCK_ORDER.pages();
        if self.writes_large_folios(file) { most - index % most } else { 1 }
    }

    /// Order of the block of a window, of blocks of order `most`, that begins at `index` and ends before `end`.
    pub(super) fn order_ahead(&self, index: u32, end: u32, most: Order) -> Order {
        let fits = Order((end - index).ilog2() as u8);
        let order = aligned(index, most).min(fits);
        if order == Order(1) && self.rules.large_folios == LargeFolios::Read { Order(0) } else { order }
    }

    /// The pages of its file that a folio holds.
    #[inline]
    pub(crate) fn folio_indices(&self, pfn: Pfn) -> Range<u32> {
        let (_, first) = self.file_home(pfn);
        first..first + self.frames[pfn].nr_pages()
    }

    /// The dirty pages among those that a folio holds, by their index.
    pub(crate) fn dirty_indices(&self, pfn: Pfn) -> Vec<u32> {
        let (FileId(file), _) = self.file_home(pfn);
        let Range { start, end } = self.folio_indices(pfn);
        let next = |from: u32| self.pagecache.trees.next_dirty(file, from).filter(|index| *index < end);
        std::iter::successors(next(start), |index| next(index + 1)).collect()
    }

    /// Nodes of a file's tree that are missing for a folio; more than that, if it needs several leaves.
    #[inline]
    pub(super) fn nodes_missing_for(&self, place: FolioPlace) -> usize {
        let last_of_leaf = |at: u32| (at | (NODE_SLOTS - 1)).min(place.indices().end - 1);
        let leaves = place.indices().step_by(NODE_SLOTS as usize);
        leaves.map(|at| self.pagecache.trees.nodes_missing(place.file.0, last_of_leaf(at))).sum()
    }

    /// Whether one of the pages of a place is cached.
    #[inline]
    pub(super) fn is_any_cached(&self, place: FolioPlace) -> bool {
        place.indices().any(|index| matches!(self.pagecache_get(place.file, index), Slot::Page(_)))
    }

    /// All that a new folio takes. A large one is not insisted on, and readahead not on its charge either (`ra_alloc_folio()`,
    /// `__filemap_get_folio()`).
    #[inline]
    pub(super) fn new_folio(
        &mut self,
        env: &Env,
        place: FolioPlace,
        gfp: Gfp,
        hand: &mut Option<Pfn>,
    ) -> Result<Pfn, Need> {
        let large = place.order > Order(0);
        let noretry = large && gfp.contains(Gfp::NORETRY);
        let reserved = self.memcg_reserve(env, env.task.memcg, place.order, gfp);
        reserved.map_err(|need| need.with_noretry(noretry))?;
        self.reserve_nodes(env, place, gfp)?;
        let gfp = if large { gfp.with(Gfp::NORETRY).with(Gfp::NOWARN) } else { gfp };
        self.cache_folio(env, place.order, gfp, hand).map_err(Need::Page)
    }

    /// Makes a folio the single pages that it holds; false if it is in use by I/O, or partly dirty (`split_folio()`,
    /// `iomap_release_folio()`).
    pub(crate) fn split_folio(&mut self, pfn: Pfn) -> bool {
        let head = self.frames[pfn];
        debug_assert!(head.kind() == Kind::File && head.order() > Order(0));
        let busy = head.has_any(Frame::WRITEBACK | Frame::LOCKED | Frame::PINNED);
        let partly_dirty = head.has(Frame::DIRTY) && self.dirty_indices(pfn).len() < head.nr_pages() as usize;
        if busy || partly_dirty {
            return false;
        }
        if head.has(Frame::MAPPED) {
            self.unmap_file_page(pfn);
        }
        let ((FileId(file), first), head, pages) = (self.file_home(pfn), self.frames[pfn], head.nr_pages());
        self.frames[pfn].set_order(Order(0));
        self.memcg_split(pfn, pages);
        for n in 1..pages {
            let place = self.pagecache.trees.place(file, first + n);
            self.frames[pfn.offset(n)].split_off(&head, place);
            let was = self.pagecache.trees.replace(file, first + n, slots::page(pfn.offset(n)));
            debug_assert!(slots::unpack(was) == Slot::Page(pfn));
        }
        if head.has(Frame::LRU) {
            self.lru_insert_tails(pfn, pages);
        }
        self.charge(u64::from(pages) * self.costs.cache_insert);
        true
    }

    /// Cuts a folio that holds pages before `from` and pages from there on, or takes from the latter what made them dirty, if it
    /// cannot be cut (`truncate_inode_partial_folio()`).
    pub(super) fn truncate_partial_folio(&mut self, env: &Env, file: FileId, from: u32) {
        let Some(Slot::Page(pfn)) = from.checked_sub(1).map(|last| self.pagecache_get(file, last)) else { return };
        let Range { end, .. } = self.folio_indices(pfn);
        if end <= from || self.split_folio(pfn) {
            return;
        }
        let dirty = self.dirty_indices(pfn);
        dirty.iter().filter(|index| **index >= from).for_each(|index| self.drop_dirty(env, file, *index));
        if dirty.iter().all(|index| *index >= from) {
            // The next writeback would find nothing to write of it.
            self.account_cleaned(env, pfn);
        }
    }
}
