//! Unmapping: what `munmap`, `MADV_DONTNEED`, exit and the OOM reaper do to pages.
//!
//! Rule: a mapped page is freed, with its swap slot if it has one; a swapped one gives up its slot and, if nobody
//! works on it, its page in the swap cache. A huge page that is unmapped in part is split.
//! Source: `zap_pte_range()`, `zap_huge_pmd()`, `free_swap_and_cache()`, `free_page_and_swap_cache()`; 4.20.
//! Abstracted: the deferred split of a huge page happens at once, so that its unmapped part is free at once; a page
//! under I/O is freed when the I/O ends, not when reclaim meets it. A page that reclaim or compaction has isolated
//! is left to them: `is_orphan` says so, and whoever isolated it frees it.

use std::ops::Range;

use units::{Order, PAGEBLOCK_ORDER, Pfn, SpaceId};

use super::{REGION_PAGES, Region, Slot, Tally, pgtable::Level};
use crate::stat::{NodeStat, VmEvent};
use crate::swap::SwapEntry;
use crate::{Env, Frame, Kind, Mm};

/// Slots whose frames are looked at together.
const ZAP_AHEAD: u32 = 16;

impl Mm {
    /// Unmaps every page of a range inside one area; page tables stay.
    pub(crate) fn zap_range(&mut self, env: &Env, space: SpaceId, range: Range<u32>) {
        let mut tally = Tally::default();
        let mut at = range.start;
        while at < range.end {
            let base = at & !(REGION_PAGES - 1);
            let end = range.end.min(base.saturating_add(REGION_PAGES));
            let mut region = self.spaces[space].tables.region(at);
            if let Region::Huge { pfn, deposit } = region {
                if end - at == REGION_PAGES {
                    self.zap_huge(env, space, base, (pfn, deposit), &mut tally);
                } else {
                    self.stat.count(VmEvent::ThpDeferredSplitPage, 1);
                    assert!(!self.frames[pfn].has(Frame::ISOLATED), "{pfn:?} is unmapped in part while isolated");
                    self.split_mapped(pfn);
                    region = self.spaces[space].tables.region(at);
                }
            }
            if let Region::Table(leaf) = region {
                self.zap_table(env, space, leaf, at..end, &mut tally);
            }
            at = end;
        }
        tally.settle(self, space);
    }

    /// Empties slots of one page table, so many at a time that the first looks at their frames overlap.
    fn zap_table(&mut self, env: &Env, space: SpaceId, leaf: u32, range: Range<u32>, tally: &mut Tally) {
        let mut at = range.start;
        while at < range.end {
            let next = range.end.min(at + ZAP_AHEAD);
            let slots = self.spaces.leaves.slots(leaf, at..next);
            if slots.clone().any(|slot| slot != Slot::None) {
                self.frames.look_ahead(slots.filter_map(Slot::page));
                for vpn in at..next {
                    self.zap_slot(env, space, leaf, vpn, tally);
                }
            }
            at = next;
        }
    }

    fn zap_slot(&mut self, env: &Env, space: SpaceId, leaf: u32, vpn: u32, tally: &mut Tally) {
        let slot = self.spaces.leaves.get(leaf, vpn);
        if slot == Slot::None {
            return;
        }
        self.spaces.leaves.set(leaf, vpn, Slot::None);
        match slot {
            Slot::Page(pfn) if self.frames[pfn].kind() == Kind::File => {
                self.charge(self.costs.zap_page);
                self.file_page_unmapped(env, pfn, (space, vpn));
            }
            Slot::Page(pfn) => {
                tally.map(self, pfn, -1);
                self.charge(self.costs.zap_page);
                self.frames[pfn].clear(Frame::MAPPED);
                self.free_unmapped(env, pfn);
            }
            Slot::Swap(entry) => {
                self.spaces[space].swapents -= 1;
                self.free_swap_and_cache(env, entry);
            }
            Slot::Zero | Slot::None => {}
        }
    }

    fn zap_huge(&mut self, env: &Env, space: SpaceId, base: u32, (pfn, deposit): (Pfn, Pfn), tally: &mut Tally) {
        self.spaces[space].tables.set_region(base, Region::None);
        self.table_frame_freed(env, space, Level::Pte, deposit);
        tally.map(self, pfn, -i64::from(REGION_PAGES));
        self.stat.node_add(self.node_of(pfn), NodeStat::AnonThps, -1);
        self.charge(self.costs.zap_page);
        self.frames[pfn].clear(Frame::MAPPED);
        self.free_unmapped(env, pfn);
    }

    /// Drops a slot that a page table entry held.
    fn free_swap_and_cache(&mut self, env: &Env, entry: SwapEntry) {
        self.swap_put(env, entry);
        if let Some(pfn) = self.swap.cached(entry) {
            self.free_unmapped(env, pfn);
        }
    }

    /// Frees an anonymous page that nothing maps any more, unless somebody works on it: I/O frees it at its end,
    /// and who isolated it when putting it back.
    pub(crate) fn free_unmapped(&mut self, env: &Env, pfn: Pfn) {
        let frame = &self.frames[pfn];
        debug_assert!(frame.kind() == Kind::Anon && !frame.has(Frame::MAPPED));
        if frame.has_any(Frame::LOCKED | Frame::WRITEBACK | Frame::ISOLATED) {
            return;
        }
        if frame.has(Frame::SWAPCACHE) {
            if self.swap.is_used(self.swap_entry(pfn)) {
                return;
            }
            self.swapcache_drop(env, pfn);
        }
        if self.frames[pfn].has(Frame::LRU) {
            self.lru_del(pfn);
        }
        let order = self.frames[pfn].order();
        debug_assert!(order == Order(0) || order == PAGEBLOCK_ORDER);
        self.frames[pfn].set_kind(Kind::Held, order);
        self.free_pages(env, pfn, order);
    }

    /// Whether an isolated anonymous page has lost its owner meanwhile: who isolated it clears `ISOLATED` and calls
    /// `free_orphan` where it would have put the page back.
    pub fn is_orphan(&self, pfn: Pfn) -> bool {
        let frame = &self.frames[pfn];
        frame.kind() == Kind::Anon
            && !frame.has(Frame::MAPPED)
            && !(frame.has(Frame::SWAPCACHE) && self.swap.is_used(self.swap_entry(pfn)))
    }

    /// Frees an orphan that is on no list and not isolated any more; under I/O it is freed at its end.
    pub fn free_orphan(&mut self, env: &Env, pfn: Pfn) {
        assert!(self.is_orphan(pfn) && !self.frames[pfn].has_any(Frame::LRU | Frame::ISOLATED));
        self.free_unmapped(env, pfn);
    }
}
