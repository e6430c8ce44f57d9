//! The lists of the generations, and where a page is put.
//!
//! Rule, for a page that joins: a hot one, marked `ACTIVE`, belongs to the youngest generation; one that cannot be evicted
//! at once (anonymous and not in the swap cache, or about to be written) to the second youngest; one that should go first
//! to the oldest, at its tail; any other to the second oldest if that counts as inactive, else to the oldest. A page that
//! was accessed through a page table belongs to the youngest generation from then on, but stays where it is listed until
//! the eviction meets it.
//! Source: `lru_gen_add_folio()`, `lru_gen_del_folio()`, `lru_gen_update_size()` (include/linux/mm_inline.h),
//! `folio_update_gen()`, `folio_inc_gen()` (mm/vmscan.c), `folio_inc_refs()` (mm/swap.c); 6.12.
//! Since/until: a page that joins the youngest generation keeps its count of accesses in 6.1. Until 6.7 (and 6.1.69) what cannot be evicted
//! at once joins the second oldest generation, and all else the oldest ([`GenerationStart`]).

use rules::{GenerationStart, LruPolicy};
use units::{Pfn, ZoneId};

use super::super::lru::is_file_lru;
use super::{LruGen, MAX_NR_GENS, MIN_NR_GENS, gen_of};
use crate::{Frame, Frames, LruList, LruvecId, Mm, ZoneKind};

/// A list through the frame table whose members do not say which list they are on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Ends {
    head: Pfn,
    tail: Pfn,
}

/// The lists by generation, type and kind of zone.
pub(super) type Lists = [[[Ends; ZoneKind::COUNT]; 2]; MAX_NR_GENS];

impl Ends {
    pub(super) const EMPTY: Ends = Ends { head: Pfn::NONE, tail: Pfn::NONE };

    pub(super) fn is_empty(&self) -> bool {
        !self.tail.is_some()
    }

    /// The page that is evicted next, or `Pfn::NONE`.
    pub(super) fn back(&self) -> Pfn {
        self.tail
    }

    pub(super) fn push_front(&mut self, frames: &mut Frames, pfn: Pfn) {
        debug_assert!(frames[pfn].prev == Pfn::NONE && frames[pfn].next == Pfn::NONE, "{pfn:?} is on a list already");
        let old = std::mem::replace(&mut self.head, pfn);
        frames[pfn].next = old;
        if old.is_some() { frames[old].prev = pfn } else { self.tail = pfn }
    }

    pub(super) fn push_back(&mut self, frames: &mut Frames, pfn: Pfn) {
        debug_assert!(frames[pfn].prev == Pfn::NONE && frames[pfn].next == Pfn::NONE, "{pfn:?} is on a list already");
        let old = std::mem::replace(&mut self.tail, pfn);
        frames[pfn].prev = old;
        if old.is_some() { frames[old].next = pfn } else { self.head = pfn }
    }

    /// The members from head to tail.
    pub(super) fn iter<'a>(&self, frames: &'a Frames) -> impl Iterator<Item = Pfn> + 'a {
        std::iter::successors(Some(self.head).filter(|p| p.is_some()), |p| {
            Some(frames[*p].next).filter(|next| next.is_some())
        })
    }
}

impl LruGen {
    /// Takes a page off whichever list of its type and zone it is on.
    pub(super) fn unlist(&mut self, frames: &mut Frames, pfn: Pfn, kind: usize, zone: ZoneKind) {
        let frame = &mut frames[pfn];
        let (prev, next) = (frame.prev, frame.next);
        (frame.prev, frame.next) = (Pfn::NONE, Pfn::NONE);
        if prev.is_some() {
            frames[prev].next = next;
        } else {
            self.list_with(kind, zone, |list| list.head == pfn).head = next;
        }
        if next.is_some() {
            frames[next].prev = prev;
        } else {
            self.list_with(kind, zone, |list| list.tail == pfn).tail = prev;
        }
    }

    /// Puts a page in front of one that is listed.
    fn list_before(&mut self, frames: &mut Frames, at: Pfn, pfn: Pfn, kind: usize, zone: ZoneKind) {
        let prev = std::mem::replace(&mut frames[at].prev, pfn);
        (frames[pfn].prev, frames[pfn].next) = (prev, at);
        if prev.is_some() {
            frames[prev].next = pfn;
        } else {
            self.list_with(kind, zone, |list| list.head == at).head = pfn;
        }
    }

    fn list_with(&mut self, kind: usize, zone: ZoneKind, is: impl Fn(&Ends) -> bool) -> &mut Ends {
        let mut lists = self.lists.iter_mut().map(|by_kind| &mut by_kind[kind][zone as usize]);
        lists.find(|list| is(list)).expect("the end of a list is listed")
    }

    /// The generation that a page joins.
    fn seq_for(&self, frame: &Frame, reclaiming: bool, start: GenerationStart) -> u64 {
        let kind = usize::from(is_file_lru(frame));
        let at_once = start == GenerationStart::Oldest;
        let awaits_writeback = frame.has(Frame::RECLAIM) && frame.has_any(Frame::DIRTY | Frame::WRITEBACK);
        if frame.has(Frame::ACTIVE) {
            self.max_seq
        } else if awaits_writeback || (!is_file_lru(frame) && !frame.has(Frame::SWAPCACHE)) {
            if at_once { self.min_seq[kind] + 1 } else { self.max_seq - 1 }
        } else if at_once || reclaiming || self.min_seq[kind] + MIN_NR_GENS >= self.max_seq {
            self.min_seq[kind]
        } else {
            self.min_seq[kind] + 1
        }
    }
}

/// The list that a page of a generation counts for in `/proc/vmstat`.
fn counted_as(kind: usize, active: bool) -> LruList {
    match (kind, active) {
        (super::ANON, false) => LruList::InactiveAnon,
        (super::ANON, true) => LruList::ActiveAnon,
        (_, false) => LruList::InactiveFile,
        (_, true) => LruList::ActiveFile,
    }
}

/// Forgets every access through file descriptors (`folio_clear_lru_refs()`).
pub(super) fn clear_refs(frame: &mut Frame) {
    frame.clear(Frame::REFERENCED | Frame::WORKINGSET);
    frame.set_lru_refs(0);
}

impl Mm {
    /// Puts a page that is on no list into a generation; `reclaiming`: at the tail, to go first.
    pub(in crate::reclaim) fn lru_gen_add(&mut self, pfn: Pfn, reclaiming: bool) -> LruList {
        let (zone, lru) = (self.zone_of(pfn), self.lruvec_of(pfn));
        let zone_kind = self.zones[zone.index()].kind;
        let (forgets, start) = (self.rules.lru_policy == LruPolicy::MultiGen, self.rules.generation_start);
        let (lrugen, frames) = self.lru_gen_and_frames(lru);
        let frame = &mut frames[pfn];
        debug_assert!(frame.lru_gen().is_none(), "{pfn:?} is in a generation");
        let (kind, at) = (usize::from(is_file_lru(frame)), gen_of(lrugen.seq_for(frame, reclaiming, start)));
        if frame.take(Frame::ACTIVE) && forgets {
            frame.clear(Frame::REFERENCED);
            frame.set_lru_refs(0);
        }
        frame.set_lru_gen(Some(at));
        frame.set(Frame::LRU);
        let pages = i64::from(frame.nr_pages());
        let list = &mut lrugen.lists[at][kind][zone_kind as usize];
        if reclaiming {
            list.push_back(frames, pfn);
        } else {
            list.push_front(frames, pfn);
        }
        let counted = counted_as(kind, lrugen.is_active(at));
        self.lru_gen_resize((lru, zone), kind, None, Some(at), pages);
        counted
    }

    /// Takes a page out of its generation. Unless it is to be reclaimed, one that counts as active is marked so.
    pub(in crate::reclaim) fn lru_gen_del(&mut self, pfn: Pfn, reclaiming: bool) -> LruList {
        let (zone, lru) = (self.zone_of(pfn), self.lruvec_of(pfn));
        let zone_kind = self.zones[zone.index()].kind;
        let (lrugen, frames) = self.lru_gen_and_frames(lru);
        let frame = &mut frames[pfn];
        let at = frame.lru_gen().expect("the page is in a generation");
        let (kind, active) = (usize::from(is_file_lru(frame)), lrugen.is_active(at));
        frame.set_lru_gen(None);
        frame.clear(Frame::LRU);
        if active && !reclaiming {
            frame.set(Frame::ACTIVE);
        }
        let pages = i64::from(frame.nr_pages());
        lrugen.unlist(frames, pfn, kind, zone_kind);
        self.lru_gen_resize((lru, zone), kind, Some(at), None, pages);
        counted_as(kind, active)
    }

    /// Puts the tails of a page that was split on its list in front of it, and in its generation.
    pub(crate) fn lru_gen_add_tails(&mut self, pfn: Pfn, tails: impl Iterator<Item = Pfn>) {
        let (lru, zone_kind) = (self.lruvec_of(pfn), self.zones[self.zone_of(pfn).index()].kind);
        let (lrugen, frames) = self.lru_gen_and_frames(lru);
        let head = frames[pfn];
        for tail in tails {
            frames[tail].set(Frame::LRU);
            frames[tail].set_lru_gen(head.lru_gen());
            frames[tail].set_lru_refs(head.lru_refs());
            lrugen.list_before(frames, pfn, tail, usize::from(is_file_lru(&head)), zone_kind);
        }
    }

    /// Counts base pages from one generation to another, `None` being no generation, and between the active and inactive
    /// sizes.
    pub(super) fn lru_gen_resize(
        &mut self,
        (lru, zone): (LruvecId, ZoneId),
        kind: usize,
        from: Option<usize>,
        to: Option<usize>,
        pages: i64,
    ) {
        let zone_kind = self.zones[zone.index()].kind as usize;
        let lrugen = self.lru_gen_mut(lru);
        for (at, delta) in [(from, -pages), (to, pages)] {
            if let Some(at) = at {
                let size = &mut lrugen.nr_pages[at][kind][zone_kind];
                *size = size.checked_add_signed(delta).expect("a generation gives no more pages than it has");
            }
        }
        let counted = |at: usize| counted_as(kind, lrugen.is_active(at));
        let (left, joined) = (from.map(counted), to.map(counted));
        if left == joined {
            return;
        }
        for (list, delta) in [(left, -pages), (joined, pages)] {
            if let Some(list) = list {
                self.lru_resize(lru, zone, list, delta);
            }
        }
    }

    /// A page was accessed through a page table: it belongs to the youngest generation. One that is isolated is marked
    /// instead.
    pub(super) fn lru_gen_promote(&mut self, pfn: Pfn) {
        let (zone, lru) = (self.zone_of(pfn), self.lruvec_of(pfn));
        let youngest = gen_of(self.lru_gen(lru).max_seq);
        let frame = &mut self.frames[pfn];
        let Some(old) = frame.lru_gen() else {
            frame.set(Frame::REFERENCED);
            return;
        };
        frame.set_lru_gen(Some(youngest));
        clear_refs(frame);
        if old != youngest {
            let (kind, pages) = (usize::from(is_file_lru(frame)), i64::from(frame.nr_pages()));
            self.lru_gen_resize((lru, zone), kind, Some(old), Some(youngest), pages);
        }
    }

    /// Moves a page of the oldest generation into the next one; one that was promoted meanwhile stays as it is. Returns
    /// its generation; the caller moves it to the tail of that list.
    pub(super) fn lru_gen_inc_gen(&mut self, pfn: Pfn) -> usize {
        let (zone, lru) = (self.zone_of(pfn), self.lruvec_of(pfn));
        let frame = &mut self.frames[pfn];
        let kind = usize::from(is_file_lru(frame));
        let at = frame.lru_gen().expect("the page is in a generation");
        let lrugen = self.nodes[lru.node.index()].lruvecs[usize::from(lru.part)].lru_gen.as_deref();
        let oldest = lrugen.expect("the lists have generations").min_seq[kind];
        if at != gen_of(oldest) {
            return at;
        }
        let next = gen_of(oldest + 1);
        frame.set_lru_gen(Some(next));
        clear_refs(frame);
        let pages = i64::from(frame.nr_pages());
        self.lru_gen_resize((lru, zone), kind, Some(at), Some(next), pages);
        next
    }

    /// Moves a listed page to the list of a generation.
    pub(super) fn lru_gen_relist(&mut self, pfn: Pfn, at: usize, front: bool) {
        let (lru, zone_kind) = (self.lruvec_of(pfn), self.zones[self.zone_of(pfn).index()].kind);
        let (lrugen, frames) = self.lru_gen_and_frames(lru);
        let kind = usize::from(is_file_lru(&frames[pfn]));
        lrugen.unlist(frames, pfn, kind, zone_kind);
        let list = &mut lrugen.lists[at][kind][zone_kind as usize];
        if front { list.push_front(frames, pfn) } else { list.push_back(frames, pfn) }
    }

    /// Notes an access through a file descriptor: referenced, then workingset, then counted (`folio_inc_refs()`).
    pub(in crate::reclaim) fn lru_gen_inc_refs(&mut self, pfn: Pfn) {
        let frame = &mut self.frames[pfn];
        if frame.has(Frame::UNEVICTABLE) {
            return;
        }
        if !frame.has(Frame::REFERENCED) {
            frame.set(Frame::REFERENCED);
        } else if !frame.has(Frame::WORKINGSET) {
            frame.set(Frame::WORKINGSET);
        } else {
            frame.set_lru_refs((frame.lru_refs() + 1).min(3));
        }
    }
}

#[cfg(test)]
impl Ends {
    /// A list of one page, for tests of what needs to know whether it is empty.
    pub(super) fn with(pfn: Pfn) -> Ends {
        Ends { head: pfn, tail: pfn }
    }
}
