//! zswap: a cache of compressed pages in front of the swap devices.
//!
//! Rule: while it is on and its pool is within its limit (`max_pool_percent` of memory), it takes every page that compresses. At the limit
//! it takes none until the pool has shrunk to `accept_threshold_percent` of the limit, and a worker writes what was stored first to its
//! device, until it has; each page is passed over once. Where `shrinker_enabled`, reclaim of slabs does the same, by the share of
//! pages that compression saves, less the pages that had to be read from devices meanwhile.
//! Source: `zswap_store()`, `zswap_check_limits()`, `shrink_worker()`, `shrink_memcg_cb()`, `zswap_writeback_entry()`,
//! `zswap_shrinker_count()`, `zswap_shrinker_scan()` (mm/zswap.c, 6.12).
//! Since/until: as in 6.12, in all kernels.
//! Abstracted: one list for all groups and nodes; its entries are not slab objects, and their store takes no memory beside the pool's.
//! Omitted: limits of groups (`memory.zswap.max`), pools of zbud and z3fold, changes of the compressor while pages are stored.

use std::collections::VecDeque;

use units::{Content, Gfp, NodeId, Order, Pfn};

use super::SwapEntry;
use super::kept::{Keeper, Kept, PoolId};
use crate::stat::VmEvent;
use crate::vfs::Scanned;
use crate::zsmalloc::ZsPool;
use crate::{AllocRequest, Effect, Env, Frame, Kind, Mm};

/// What zswap asks for (`zswap_compress()`).
const GFP: Gfp = Gfp(Gfp::NORETRY.0 | Gfp::NOWARN.0 | Gfp::KSWAPD_RECLAIM.0 | Gfp::HIGHMEM.0 | Gfp::MOVABLE.0);
/// What the swap cache's page is asked for by who writes back (`zswap_writeback_entry()`).
const GFP_WRITEBACK: Gfp = Gfp::KERNEL;
/// Failures after which the worker gives up (`MAX_RECLAIM_RETRIES`).
const FAILURES_MAX: u32 = 16;

/// Pages that are gone and stay on the list, however short it is.
const GONE_MIN: u64 = 64;

/// A page on zswap's list, oldest first.
#[derive(Clone, Copy, Debug)]
struct Stored {
    entry: SwapEntry,
    store: u32,
    /// It is passed over once (`entry->referenced`).
    referenced: bool,
}

/// The state of zswap.
#[derive(Clone, Debug, Default)]
pub(super) struct Zswap {
    pub(super) pool: ZsPool,
    /// Stored pages, and some that are gone.
    lru: VecDeque<Stored>,
    stores: u32,
    /// The limit was hit, and the pool has not shrunk enough since (`zswap_pool_reached_full`).
    reached_full: bool,
    /// Pages read from devices since the shrinker last looked (`nr_disk_swapins`).
    disk_swapins: u64,
    failures: u32,
}

impl Zswap {
    /// Host bytes.
    pub(super) fn host_bytes(&self) -> usize {
        self.pool.host_bytes() + self.lru.capacity() * size_of::<Stored>()
    }
}

/// What became of one page of the list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Shrunk {
    /// It was passed over, or is gone.
    Passed,
    WrittenBack,
    /// Somebody has just read it.
    InSwapCache,
    /// There is no page for it.
    NoMemory,
    /// The list is empty.
    Empty,
}

/// What a step of the worker did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ZswapStep {
    /// Something; call again when the device's queue has room.
    More,
    /// It lacks a page; call again with it, or without if there is none.
    NeedPage(AllocRequest),
    /// The pool has shrunk, or cannot.
    Done,
}

impl Mm {
    fn zswap_max_pages(&self) -> u64 {
        self.total_pages().0 * self.tunables.zswap_max_pool_percent / 100
    }

    fn zswap_accept_pages(&self) -> u64 {
        self.zswap_max_pages() * self.tunables.zswap_accept_threshold_percent / 100
    }

    /// Whether zswap takes no pages for now (`zswap_check_limits()`).
    fn zswap_is_full(&mut self) -> bool {
        let pages = self.zswap_total_pages();
        if pages >= self.zswap_max_pages() {
            self.swap.zswap.reached_full = true;
        } else if pages <= self.zswap_accept_pages() {
            self.swap.zswap.reached_full = false;
        }
        self.swap.zswap.reached_full
    }

    /// Takes a page, if it does.
    pub(super) fn zswap_store(&mut self, env: &Env, entry: SwapEntry, content: Content) -> bool {
        if !self.tunables.zswap_enabled.is_on() {
            return false;
        }
        if self.zswap_is_full() {
            self.effects.push(Effect::WakeZswap);
            return false;
        }
        let bytes = match content {
            Content::SameFilled => {
                self.keep_word(entry, Keeper::Zswap);
                self.stat.count(VmEvent::Zswpout, 1);
                return true;
            }
            Content::Bytes(bytes) => bytes,
        };
        self.charge_compress(self.tunables.zswap_compressor);
        if u64::from(bytes) >= units::PAGE_SIZE {
            return false;
        }
        let Some(zspage) = self.zs_malloc(env, PoolId::Zswap, bytes, GFP) else { return false };
        let zswap = &mut self.swap.zswap;
        zswap.stores = zswap.stores.wrapping_add(1);
        let store = zswap.stores;
        zswap.lru.push_back(Stored { entry, store, referenced: true });
        self.swap.set_kept(entry, Kept::Compressed { pool: PoolId::Zswap, zspage, bytes: bytes as u16, store });
        self.zswap_forget_gone();
        self.stat.count(VmEvent::Zswpout, 1);
        true
    }

    /// Takes pages that are gone from the list once they are more than half of it.
    fn zswap_forget_gone(&mut self) {
        if self.swap.zswap.lru.len() as u64 <= 2 * self.zswap_stored_pages() + GONE_MIN {
            return;
        }
        let mut lru = std::mem::take(&mut self.swap.zswap.lru);
        lru.retain(|stored| self.zswap_is_stored(stored));
        self.swap.zswap.lru = lru;
    }

    /// Whether a place of the list stands for what its slot holds now.
    fn zswap_is_stored(&self, stored: &Stored) -> bool {
        match self.swap.kept(stored.entry) {
            Kept::Compressed { pool: PoolId::Zswap, store, .. } => store == stored.store,
            _ => false,
        }
    }

    /// A page had to be read from a device (`zswap_folio_swapin()`).
    pub(super) fn zswap_missed(&mut self) {
        self.swap.zswap.disk_swapins += 1;
    }

    /// Looks at the page stored first.
    fn zswap_shrink_one(&mut self, env: &Env, hand: &mut Option<Pfn>) -> Shrunk {
        let Some(stored) = self.swap.zswap.lru.pop_front() else { return Shrunk::Empty };
        if !self.zswap_is_stored(&stored) {
            return Shrunk::Passed;
        }
        let rotated = Stored { referenced: false, ..stored };
        if stored.referenced {
            self.swap.zswap.lru.push_back(rotated);
            return Shrunk::Passed;
        }
        let shrunk = self.zswap_write_back(env, stored.entry, hand);
        if shrunk != Shrunk::WrittenBack {
            self.swap.zswap.lru.push_back(rotated);
        }
        shrunk
    }

    /// Decompresses a page into the swap cache and writes it to its device (`zswap_writeback_entry()`).
    fn zswap_write_back(&mut self, env: &Env, entry: SwapEntry, hand: &mut Option<Pfn>) -> Shrunk {
        if self.swap.cached(entry).is_some() {
            return Shrunk::InSwapCache;
        }
        let memcg = self.memcg_of_slot(entry);
        if self.memcg_reserve(env, memcg, Order(0), GFP_WRITEBACK).is_err() {
            return Shrunk::NoMemory;
        }
        let request = AllocRequest { gfp: GFP_WRITEBACK, order: Order(0), node: env.node };
        let Some(pfn) = hand.take().or_else(|| self.alloc_without_sleep(env, request)) else { return Shrunk::NoMemory };
        let Kept::Compressed { bytes, .. } = self.swap.kept(entry) else { unreachable!("it was looked at") };
        let frame = &mut self.frames[pfn];
        debug_assert_eq!(frame.kind(), Kind::Held);
        frame.set_kind(Kind::Anon, Order(0));
        frame.set(Frame::SWAPBACKED | Frame::UPTODATE | Frame::RECLAIM);
        self.memcg_commit(env, memcg, pfn);
        self.swapcache_insert(pfn, entry);
        self.lru_add(env, pfn);
        self.charge_decompress(self.tunables.zswap_compressor, u32::from(bytes));
        self.drop_kept(env, entry);
        self.stat.count(VmEvent::Zswpwb, 1);
        self.start_swap_write(env, pfn, entry);
        Shrunk::WrittenBack
    }

    /// A step of the worker that shrinks the pool to its threshold (`shrink_worker()`).
    pub fn zswap_shrink_step(&mut self, env: &Env, hand: Option<Pfn>) -> ZswapStep {
        let given = hand.is_some();
        let mut hand = hand;
        let mut step = ZswapStep::More;
        if self.zswap_total_pages() <= self.zswap_accept_pages() {
            step = ZswapStep::Done;
        } else {
            match self.zswap_shrink_one(env, &mut hand) {
                Shrunk::Passed | Shrunk::WrittenBack => {}
                Shrunk::NoMemory if !given => {
                    step = ZswapStep::NeedPage(AllocRequest { gfp: GFP_WRITEBACK, order: Order(0), node: env.node });
                }
                Shrunk::NoMemory | Shrunk::InSwapCache => self.swap.zswap.failures += 1,
                Shrunk::Empty => step = ZswapStep::Done,
            }
        }
        if let Some(pfn) = hand {
            self.free_pages(env, pfn, Order(0));
        }
        if self.swap.zswap.failures >= FAILURES_MAX {
            step = ZswapStep::Done;
        }
        if step == ZswapStep::Done {
            self.swap.zswap.failures = 0;
        }
        step
    }

    /// Pages that the shrinker offers (`zswap_shrinker_count()`).
    pub(crate) fn zswap_count(&mut self, node: NodeId) -> u64 {
        let stored = self.zswap_stored_pages();
        if !self.tunables.zswap_shrinker_enabled.is_on() || stored == 0 || node != NodeId(0) {
            return 0;
        }
        let missed = self.swap.zswap.disk_swapins;
        self.swap.zswap.disk_swapins = missed.saturating_sub(stored);
        stored.saturating_sub(missed) * self.zswap_total_pages() / stored
    }

    /// Writes back up to so many pages (`zswap_shrinker_scan()`).
    pub(crate) fn zswap_scan(&mut self, env: &Env, nr: u64, gfp: Gfp) -> Scanned {
        let mut result = Scanned::default();
        if !gfp.contains(Gfp::IO) || !gfp.contains(Gfp::FS) {
            return result;
        }
        while result.scanned < nr {
            match self.zswap_shrink_one(env, &mut None) {
                Shrunk::Passed => result.scanned += 1,
                Shrunk::WrittenBack => {
                    result.scanned += 1;
                    result.freed += 1;
                }
                Shrunk::InSwapCache | Shrunk::NoMemory | Shrunk::Empty => break,
            }
        }
        result
    }

    /// Pages on the list that are stored still.
    #[cfg(test)]
    pub(crate) fn zswap_listed(&self) -> usize {
        self.swap.zswap.lru.iter().filter(|stored| self.zswap_is_stored(stored)).count()
    }
}
