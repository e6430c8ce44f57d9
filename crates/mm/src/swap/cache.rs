//! The swap cache: anonymous pages that have a slot.
//!
//! Rule: `add_to_swap` gives a page a slot and marks it dirty; `try_to_unmap` then leaves the slot in the page table;
//! `swapcache_remove` lets the page go and leaves its shadow. A page that is mapped again keeps its slot until swap runs
//! short, or until it is written to ([`rules::SlotOfWritten`]).
//! Source: `add_to_swap()`, `delete_from_swap_cache()` (mm/swap_state.c), `try_to_free_swap()` (mm/swapfile.c); 4.20 and 6.12.
//! Abstracted: while a page is in the swap cache its frame's place is the slot, and the slot knows space and virtual page.
//! Omitted: nodes of the swap cache's tree as slab memory ([`super::shadow_nodes`] has those with only shadows).

use rules::AnonStart;
use units::{NodeId, Order, Pfn};

use super::SwapEntry;
use crate::stat::NodeStat;
use crate::{Env, Frame, Kind, Mm};

impl Mm {
    /// Free swap slots, in pages.
    pub fn swap_free_pages(&self) -> u64 {
        self.swap.free_pages()
    }

    /// Slots of all swap devices, free or not, in pages.
    pub fn swap_total_pages(&self) -> u64 {
        self.swap.total_pages()
    }

    /// The slot of a page in the swap cache.
    pub fn swap_entry_of(&self, pfn: Pfn) -> Option<SwapEntry> {
        self.frames[pfn].has(Frame::SWAPCACHE).then(|| self.swap_entry(pfn))
    }

    /// The slot of a page that is in the swap cache.
    #[inline]
    pub(crate) fn swap_entry(&self, pfn: Pfn) -> SwapEntry {
        debug_assert!(self.frames[pfn].has(Frame::SWAPCACHE));
        SwapEntry(self.frames[pfn].place)
    }

    /// Gives an anonymous page a swap slot; false if swap is full. A huge page must be split first.
    pub fn add_to_swap(&mut self, env: &Env, pfn: Pfn) -> bool {
        let frame = self.frames[pfn];
        assert!(frame.kind() == Kind::Anon && frame.order() == Order(0) && !frame.has(Frame::SWAPCACHE));
        debug_assert!(frame.has(Frame::MAPPED));
        if !self.memcg_may_swap(pfn) {
            return false;
        }
        let cpu = env.cpu.index();
        let frames = &self.frames;
        let reusable = |p: Pfn| !frames[p].has_any(Frame::LOCKED | Frame::WRITEBACK);
        let Some(entry) = self.swap.alloc(cpu, reusable) else { return false };
        if let Some(holder) = self.swap.cached(entry) {
            self.try_to_free_swap(env, holder);
        }
        let (space, vpn) = self.anon_home(pfn);
        self.swap.occupy(entry, cpu, vpn);
        self.swap.set_space(entry, space);
        self.memcg_charge_swap(pfn, entry);
        self.swapcache_insert(pfn, entry);
        self.frames[pfn].set(Frame::DIRTY);
        true
    }

    /// Puts a page into the cache for a slot that is in use.
    pub(crate) fn swapcache_insert(&mut self, pfn: Pfn, entry: SwapEntry) {
        self.swap.set_cached(entry, pfn, self.node_of(pfn));
        self.note_swap_shadow_nodes();
        self.frames[pfn].set(Frame::SWAPCACHE);
        self.frames[pfn].place = entry.0;
        self.count_cached(self.node_of(pfn), 1);
    }

    /// The cache holds another frame for a slot: the page has been migrated.
    pub(crate) fn swapcache_replace(&mut self, old: Pfn, new: Pfn) {
        let entry = self.swap_entry(new);
        debug_assert_eq!(self.swap.cached(entry), Some(old));
        self.swap.set_cached(entry, new, self.node_of(new));
    }

    /// Counts pages into or out of the swap cache.
    pub(crate) fn count_cached(&mut self, node: NodeId, pages: i64) {
        self.stat.node_add(node, NodeStat::FilePages, pages);
        self.stat.node_add(node, NodeStat::SwapCached, pages);
    }

    /// Takes a page out of the cache; its slot is free if no page table entry refers to it.
    fn leave_cache(&mut self, env: &Env, pfn: Pfn, shadow: Option<u32>) {
        let entry = self.swap_entry(pfn);
        if self.frames[pfn].has(Frame::MAPPED) {
            let (space, vpn) = self.swap.home(entry);
            self.frames[pfn].place = self.place_in_table(space, vpn);
        }
        self.frames[pfn].clear(Frame::SWAPCACHE);
        let free = self.swap.uncache(entry, shadow);
        self.note_swap_shadow_nodes();
        if free {
            self.swap_freed(env, entry);
        }
        self.count_cached(self.node_of(pfn), -1);
    }

    /// Drops a clean unmapped page from the swap cache, keeping the slot for its page table entry. The shadow is kept
    /// where anonymous refaults are detected (`rules.anon_start`). The frame is the caller's to free.
    pub fn swapcache_remove(&mut self, env: &Env, pfn: Pfn, shadow: u32) {
        let frame = &self.frames[pfn];
        assert!(frame.has(Frame::SWAPCACHE), "{pfn:?} has no swap slot to come back from");
        assert!(!frame.has_any(Frame::MAPPED | Frame::DIRTY | Frame::WRITEBACK | Frame::LOCKED | Frame::LRU));
        let keep = self.rules.anon_start == AnonStart::Inactive;
        self.leave_cache(env, pfn, keep.then_some(shadow));
        self.frames[pfn].set_kind(Kind::Held, Order(0));
    }

    /// A page table entry does not refer to a slot any more.
    pub(crate) fn swap_put(&mut self, env: &Env, entry: SwapEntry) {
        let free = self.swap.put(entry);
        self.note_swap_shadow_nodes();
        if free {
            self.swap_freed(env, entry);
        }
    }

    /// A slot is free.
    fn swap_freed(&mut self, env: &Env, entry: SwapEntry) {
        self.drop_kept(env, entry);
        self.memcg_uncharge_swap(entry);
    }

    /// Drops a page from the swap cache whose slot nothing refers to.
    pub(crate) fn swapcache_drop(&mut self, env: &Env, pfn: Pfn) {
        debug_assert!(!self.swap.is_used(self.swap_entry(pfn)));
        self.leave_cache(env, pfn, None);
    }

    /// A mapped page gives up its slot unless it is being written (`try_to_free_swap()`).
    pub(crate) fn try_to_free_swap(&mut self, env: &Env, pfn: Pfn) -> bool {
        let frame = &self.frames[pfn];
        if !frame.has(Frame::SWAPCACHE) || frame.has_any(Frame::WRITEBACK | Frame::LOCKED) {
            return false;
        }
        if self.swap.is_used(self.swap_entry(pfn)) {
            return false;
        }
        self.swapcache_drop(env, pfn);
        self.frames[pfn].set(Frame::DIRTY);
        true
    }
}
