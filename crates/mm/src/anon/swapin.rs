//! Faults on swapped pages.
//!
//! Rule: a page in the swap cache is mapped as soon as it is up to date; otherwise a window of slots, or of pages, around it is
//! read into the swap cache, a frame for each, and the fault waits for its own page. A write, or a swap more than
//! half full, gives the slot up at once.
//! Source: `do_swap_page()` (mm/memory.c), `swap_cluster_readahead()`, `__read_swap_cache_async()` (mm/swap_state.c); 4.20, 6.12.
//! Since/until: whether a page from the swap cache is activated when it is mapped: [`SwapinLru`]; since 5.9 a shadow entry decides
//! (`rules.anon_start` = inactive). One that passed the cache by waits in its CPU's pagevec as it is mapped, so that `activate_page()` leaves it
//! alone; that the last of a pagevec is activated is left out. Which carry `PG_workingset` from the start: [`SwapinWorkingset`].
//! Pages of zram, and of devices whose bios end at once, pass the swap cache by (see copy_device.rs).

use rules::{SwapinLru, SwapinWorkingset};
use units::{Gfp, Order, Pfn, SpaceId};

use super::fault::{GFP_SWAPIN, access_flags};
use super::{Leaves, Slot, Tally, Touch, TouchStop};
use crate::stat::VmEvent;
use crate::swap::SwapEntry;
use crate::{Env, Frame, Kind, Mm};

/// By what a window counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum By {
    /// Slots.
    Slot,
    /// Pages of the space.
    Address,
}

/// What is still to be read for a fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Window {
    /// The slot that the fault needs.
    wanted: SwapEntry,
    by: By,
    /// Next slot or page to look at.
    next: u32,
    /// Last one.
    last: u32,
}

impl Mm {
    /// The page at `touch.vpn` is on swap: maps it, or starts reading it. `None` means that it is mapped.
    pub(super) fn swap_in(
        &mut self,
        env: &Env,
        touch: &mut Touch,
        leaf: u32,
        entry: SwapEntry,
        tally: &mut Tally,
    ) -> Option<TouchStop> {
        if touch.window.is_some_and(|w| w.wanted != entry) {
            touch.window = None;
        }
        if touch.window.is_none() && self.swaps_at_once(entry) && self.swap.cached(entry).is_none() {
            return self.swap_in_at_once(env, touch, leaf, entry, tally).err();
        }
        if touch.window.is_none() {
            if let Some(pfn) = self.swap.cached(entry) {
                return self.map_from_cache(env, touch, leaf, (entry, pfn), tally);
            }
            self.grab_swap_token(touch.space);
            touch.window = Some(self.begin_window(touch, entry));
            if !std::mem::replace(&mut touch.major, true) {
                self.count_major_fault(env);
            }
        }
        loop {
            if let Some(stop) = self.read_window(env, touch, leaf) {
                return Some(stop);
            }
            touch.window = None;
            if let Some(pfn) = self.swap.cached(entry) {
                return self.map_from_cache(env, touch, leaf, (entry, pfn), tally);
            }
            // Reclaimed again for the frames of the other slots: it is read alone.
            touch.window = Some(Window { wanted: entry, by: By::Slot, next: entry.0, last: entry.0 });
        }
    }

    /// Reads a page from a synchronous device past the swap cache and maps it; its slot is free (`SWP_SYNCHRONOUS_IO`).
    fn swap_in_at_once(
        &mut self,
        env: &Env,
        touch: &mut Touch,
        leaf: u32,
        entry: SwapEntry,
        tally: &mut Tally,
    ) -> Result<(), TouchStop> {
        let memcg = self.memcg_of_slot(entry);
        self.memcg_reserve(env, memcg, Order(0), Gfp::KERNEL).map_err(TouchStop::Need)?;
        let pfn = self.take_page(env, touch, GFP_SWAPIN).map_err(TouchStop::NeedPage)?;
        self.grab_swap_token(touch.space);
        let shadow = self.swap.shadow(entry);
        let frame = &mut self.frames[pfn];
        debug_assert_eq!(frame.kind(), Kind::Held);
        frame.set_kind(Kind::Anon, Order(0));
        frame.set(Frame::SWAPBACKED | Frame::UPTODATE | Frame::MAPPED | Frame::DIRTY | access_flags(touch.write));
        frame.place = Leaves::place(leaf, touch.vpn);
        self.memcg_commit(env, memcg, pfn);
        if let Some(shadow) = shadow {
            self.workingset_refault(env, pfn, shadow);
        }
        self.lru_add(env, pfn);
        self.count_major_fault(env);
        self.charge(self.costs.fault);
        self.read_swap_at_once(env, entry);
        self.spaces.leaves.set(leaf, touch.vpn, Slot::Page(pfn));
        self.spaces[touch.space].swapents -= 1;
        tally.map(self, pfn, 1);
        tally.faults += 1;
        self.swap_put(env, entry);
        Ok(())
    }

    /// What is to be read for a fault on the page that has a slot.
    fn begin_window(&mut self, touch: &Touch, entry: SwapEntry) -> Window {
        let page_cluster = self.tunables.page_cluster as u32;
        if self.swap_reads_by_address()
            && let Some(area) = self.spaces[touch.space].find_mut(touch.vpn)
        {
            let pages = area.readahead.begin(touch.vpn, area.start..area.end, page_cluster);
            return Window { wanted: entry, by: By::Address, next: pages.start, last: pages.end - 1 };
        }
        let (next, last) = self.swap_readahead_window(entry);
        Window { wanted: entry, by: By::Slot, next, last }
    }

    /// Reads everything in the window that is on swap and not cached; `None` when the window is done.
    fn read_window(&mut self, env: &Env, touch: &mut Touch, leaf: u32) -> Option<TouchStop> {
        while let Some(window) = &mut touch.window
            && window.next <= window.last
        {
            let (at, wanted) = (window.next, window.wanted);
            let entry = match window.by {
                By::Slot => Some(SwapEntry(at)),
                By::Address => self.spaces.leaves.get(leaf, at).swapped(),
            };
            if let Some(entry) = entry
                && self.swap.is_used(entry)
                && self.swap.cached(entry).is_none()
            {
                if let Err(need) = self.memcg_reserve(env, self.memcg_of_slot(entry), Order(0), Gfp::KERNEL) {
                    return Some(TouchStop::Need(need));
                }
                match self.take_page(env, touch, GFP_SWAPIN) {
                    Ok(pfn) => self.read_slot(env, pfn, entry, entry == wanted),
                    Err(request) => return Some(TouchStop::NeedPage(request)),
                }
            }
            if let Some(window) = &mut touch.window {
                window.next += 1;
            }
        }
        None
    }

    /// Puts a fresh frame into the swap cache, locked, and starts reading it.
    fn read_slot(&mut self, env: &Env, pfn: Pfn, entry: SwapEntry, wanted: bool) {
        let shadow = self.swap.shadow(entry);
        let frame = &mut self.frames[pfn];
        debug_assert_eq!(frame.kind(), Kind::Held);
        frame.set_kind(Kind::Anon, Order(0));
        frame.set(Frame::SWAPBACKED | Frame::LOCKED);
        self.memcg_commit(env, self.memcg_of_slot(entry), pfn);
        if !wanted {
            self.frames[pfn].set(Frame::READAHEAD);
            self.stat.count(VmEvent::SwapRa, 1);
        }
        self.swapcache_insert(pfn, entry);
        if let Some(shadow) = shadow {
            self.workingset_refault(env, pfn, shadow);
        }
        if self.rules.swapin_workingset == SwapinWorkingset::EveryPage {
            self.frames[pfn].set(Frame::WORKINGSET);
        }
        self.lru_add(env, pfn);
        self.read_swap_page(env, pfn, entry, wanted);
    }

    /// Maps a page of the swap cache at `touch.vpn`, or waits for it.
    fn map_from_cache(
        &mut self,
        env: &Env,
        touch: &mut Touch,
        leaf: u32,
        (entry, pfn): (SwapEntry, Pfn),
        tally: &mut Tally,
    ) -> Option<TouchStop> {
        let frame = &mut self.frames[pfn];
        if frame.has(Frame::LOCKED) {
            frame.set(Frame::WAITERS);
            return Some(TouchStop::Wait(pfn));
        }
        if !frame.has(Frame::UPTODATE) {
            return Some(TouchStop::IoError);
        }
        let read_ahead = frame.take(Frame::READAHEAD);
        self.note_swap_hit(touch, read_ahead);
        let frame = &mut self.frames[pfn];
        frame.set(Frame::MAPPED | access_flags(touch.write));
        self.swap.set_space(entry, touch.space);
        self.spaces.leaves.set(leaf, touch.vpn, Slot::Page(pfn));
        self.spaces[touch.space].swapents -= 1;
        tally.map(self, pfn, 1);
        tally.faults += 1;
        touch.major = false;
        self.charge(self.costs.fault);
        if self.rules.swapin_lru == SwapinLru::Active {
            self.activate_page(pfn);
        }
        self.swap_put(env, entry);
        if touch.write || self.swap.is_full() {
            self.try_to_free_swap(env, pfn);
        }
        None
    }

    /// The swap cache had the page of a fault, which had been read ahead or not (`lookup_swap_cache()`).
    fn note_swap_hit(&mut self, touch: &Touch, read_ahead: bool) {
        self.stat.count(VmEvent::SwapRaHit, u64::from(read_ahead));
        if !self.swap_reads_by_address() {
            self.swap.readahead_hits(u32::from(read_ahead));
        } else if let Some(area) = self.spaces[touch.space].find_mut(touch.vpn) {
            area.readahead.found(touch.vpn, read_ahead);
        }
    }

    /// The page of a space has left its page table for a slot.
    pub(crate) fn swap_unmapped(&mut self, space: SpaceId, entry: SwapEntry) {
        self.swap.get(entry);
        self.spaces[space].rss -= 1;
        self.spaces[space].swapents += 1;
    }
}
