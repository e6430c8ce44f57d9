//! What becomes of each page of an inactive batch.
//!
//! Rule, page by page:
//! 1. Under writeback: marked for reclaim at its end and put out of the way ([`StuckPages`]). If kswapd finds it marked
//!    already while the node is flagged for writeback, it counts as immediate, and kswapd will wait.
//! 2. Referenced through a page table: active, or one more round ([`References`]).
//! 3. Anonymous: gets a swap slot (a huge page is split first) and is unmapped.
//! 4. Dirty page cache: written by the reclaimers that [`FilePageout`] names, and left to the flushers by the others, who
//!    mark it for reclaim ([`SkippedDirty`]) and put it out of the way. Other dirty pages are written, if the reclaimer
//!    may.
//! 5. Clean and unmapped: taken from its owner, with a shadow, and freed; if its buffer is in use (a journal keeps it),
//!    it becomes active.
//!
//! Source: `shrink_page_list()`, `page_check_references()`, `pageout()`, `__remove_mapping()` (mm/vmscan.c, 4.20),
//! `shrink_folio_list()` (6.12).
//! Since/until: referenced anonymous pages become active at once until 5.8, at the second look since 5.9
//! ([`AnonStart`]); pages of a congested device count as congested until 5.15 ([`ReclaimThrottle`]), until 3.10 only those
//! that a reclaimer would have written ([`WritebackThrottle`]).
//! Abstracted: a huge page never goes to swap as a whole; it counts as `thp_swpout_fallback`.
//! Waiting for writeback: until 3.4 in a pass of its own ([`super::second_pass`]).
//! Omitted: waiting for writeback of legacy cgroups (case 3), `VM_EXEC`, `VM_LOCKED`; that reclaim for an order above 3 writes to
//! congested devices too (until 3.4).

use rules::{
    AnonStart, FilePageout, ReclaimThrottle, RefaultDetection, ScanCounting, SkippedDirty, StuckPages,
    WritebackThrottle, XfsWritepage,
};
use units::{Gfp, Order, Pfn};

use super::ScanControl;
use super::isolate::Batch;
use super::lru::{End, is_file_lru};
use crate::stat::{NodeStat, VmEvent};
use crate::vfs::FsKind;
use crate::{Env, Frame, Kind, LruvecId, Mm};

/// What a batch met, and what came of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct BatchStat {
    /// Base pages freed.
    pub reclaimed: u64,
    /// Dirty or under writeback; until 3.10 dirty and come as far as to be written.
    pub dirty: u64,
    /// Dirty and not queued.
    pub unqueued_dirty: u64,
    /// On a congested device, or under writeback and marked already.
    pub congested: u64,
    /// Under writeback, marked now.
    pub writeback: u64,
    /// Under writeback and marked already while kswapd wants to wait.
    pub immediate: u64,
    /// Made active, of [anon, file].
    pub activated: [u64; 2],
    /// Referenced, and left for another round.
    pub ref_keep: u64,
    /// Still mapped after all.
    pub unmap_fail: u64,
    /// Written by reclaim itself.
    pub pageout: u64,
    /// Pages of a huge page that was split just now, which are handled next.
    split: u32,
}

impl BatchStat {
    /// Adds what another look at the batch met.
    pub(super) fn add(&mut self, more: &BatchStat) {
        self.reclaimed += more.reclaimed;
        self.dirty += more.dirty;
        self.unqueued_dirty += more.unqueued_dirty;
        self.congested += more.congested;
        self.writeback += more.writeback;
        self.immediate += more.immediate;
        self.activated[0] += more.activated[0];
        self.activated[1] += more.activated[1];
        self.ref_keep += more.ref_keep;
        self.unmap_fail += more.unmap_fail;
        self.pageout += more.pageout;
    }
}

/// What page tables and marks say of a page (`enum page_references`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum References {
    /// `PAGEREF_RECLAIM`.
    Reclaim,
    /// `PAGEREF_RECLAIM_CLEAN`: reclaim it only if it need not be written.
    ReclaimClean,
    /// `PAGEREF_KEEP`: another round.
    Keep,
    /// `PAGEREF_ACTIVATE`.
    Activate,
}

/// What happens to a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    /// Its owner has let it go; it is to be freed.
    Free,
    /// Back to the inactive list.
    Keep,
    /// To the active list.
    Activate,
}

/// The verdict over a page by `ptes` page table references and its mark, which is taken; none of that matters in lumpy reclaim.
fn check_references(frame: &mut Frame, ptes: u32, anon_start: AnonStart, lumpy: bool) -> References {
    let marked = frame.take(Frame::REFERENCED);
    if lumpy {
        return References::Reclaim;
    }
    if ptes > 0 {
        if !is_file_lru(frame) && anon_start == AnonStart::Active {
            return References::Activate;
        }
        frame.set(Frame::REFERENCED);
        return if marked || ptes > 1 { References::Activate } else { References::Keep };
    }
    if marked && is_file_lru(frame) { References::ReclaimClean } else { References::Reclaim }
}

/// Whether a page is page cache that nothing keeps from being freed: clean, unmapped and unused. Whether it was read is
/// no matter then.
#[inline]
fn is_plain(frame: &Frame) -> bool {
    const SPECIAL: u32 = Frame::LOCKED
        | Frame::UNEVICTABLE
        | Frame::MAPPED
        | Frame::DIRTY
        | Frame::WRITEBACK
        | Frame::SWAPBACKED
        | Frame::SWAPCACHE
        | Frame::PINNED;
    frame.kind() == Kind::File && !frame.has_any(SPECIAL)
}

/// The lists whose clock an eviction moves: those of the group whose reclaim this is.
#[inline]
fn clock_of(mm: &Mm, lru: LruvecId, sc: &ScanControl) -> LruvecId {
    if mm.memcg.in_use() { mm.lruvec_of_memcg(lru.node, sc.target) } else { lru }
}

impl Mm {
    /// Handles a batch of isolated pages, oldest first: frees what can be freed. What is left is isolated still, in the
    /// order in which it was met.
    pub(super) fn shrink_page_list(
        &mut self,
        env: &Env,
        lru: LruvecId,
        pages: &[Pfn],
        sc: &mut ScanControl,
    ) -> (BatchStat, Batch) {
        let mut stat = BatchStat::default();
        let (mut freed, mut kept) = (Batch::new(), Batch::new());
        for &pfn in pages {
            self.shrink_one_page(env, lru, pfn, sc, &mut stat, (&mut freed, &mut kept));
            for tail in (1..=std::mem::take(&mut stat.split)).map(|n| pfn.offset(n)) {
                self.shrink_one_page(env, lru, tail, sc, &mut stat, (&mut freed, &mut kept));
            }
        }
        self.tlb_flush();
        stat.reclaimed = freed.iter().map(|pfn| u64::from(self.frames[*pfn].nr_pages())).sum();
        self.stat.count(VmEvent::Pgactivate, stat.activated.iter().sum());
        self.charge(
            (freed.len() + kept.len()) as u64 * self.costs.scan_page
                + freed.len() as u64 * self.costs.reclaim_page
                + kept.len() as u64 * self.costs.lru_move,
        );
        self.free_reclaimed(env, &freed);
        (stat, kept)
    }

    /// Frees a page that reclaim has written and waited for, unless it is in use again.
    pub(super) fn free_written(
        &mut self,
        env: &Env,
        lru: LruvecId,
        pfn: Pfn,
        sc: &mut ScanControl,
    ) -> (BatchStat, Batch) {
        let mut kept = Batch::new();
        let busy = self.frames[pfn].has_any(Frame::DIRTY | Frame::WRITEBACK | Frame::LOCKED | Frame::MAPPED);
        let fate = if busy { Fate::Keep } else { self.remove_mapping(env, clock_of(self, lru, sc), pfn) };
        let mut stat = BatchStat::default();
        match fate {
            Fate::Free => {
                stat.reclaimed = u64::from(self.frames[pfn].nr_pages());
                self.charge(self.costs.reclaim_page);
                self.free_reclaimed(env, &[pfn]);
                return (stat, kept);
            }
            Fate::Activate => {
                stat.activated[usize::from(is_file_lru(&self.frames[pfn]))] += 1;
                self.stat.count(VmEvent::Pgactivate, 1);
                self.frames[pfn].set(Frame::ACTIVE);
            }
            Fate::Keep => {}
        }
        self.keep_in_lumpy(pfn, sc);
        kept.push(pfn);
        (stat, kept)
    }

    fn shrink_one_page(
        &mut self,
        env: &Env,
        lru: LruvecId,
        pfn: Pfn,
        sc: &mut ScanControl,
        stat: &mut BatchStat,
        (freed, kept): (&mut Batch, &mut Batch),
    ) {
        let fate = if is_plain(&self.frames[pfn]) {
            sc.nr_scanned += u64::from(self.frames[pfn].nr_pages());
            self.remove_mapping(env, clock_of(self, lru, sc), pfn)
        } else {
            self.shrink_page(env, lru, pfn, sc, stat)
        };
        match fate {
            Fate::Free => return freed.push(pfn),
            Fate::Activate => {
                if self.frames[pfn].has(Frame::SWAPCACHE) && self.swap.is_full() {
                    self.try_to_free_swap(env, pfn);
                }
                stat.activated[usize::from(is_file_lru(&self.frames[pfn]))] += self.counted(pfn);
                self.frames[pfn].set(Frame::ACTIVE);
            }
            Fate::Keep => {}
        }
        self.keep_in_lumpy(pfn, sc);
        kept.push(pfn);
    }

    /// Puts pages back on the lists that their flags name, in order, each to the front.
    pub(super) fn putback_inactive_pages(&mut self, lru: LruvecId, pages: &[Pfn]) {
        for &pfn in pages {
            self.frames[pfn].clear(Frame::ISOLATED);
            let list = self.lru_link(pfn, End::Front);
            if list.is_active() {
                let nr_pages = u64::from(self.frames[pfn].nr_pages());
                self.note_recent(lru, list.is_file(), 0, nr_pages);
                if self.swap_has_shadows() {
                    self.age_nonresident(lru, nr_pages);
                }
            }
        }
    }

    fn shrink_page(&mut self, env: &Env, lru: LruvecId, pfn: Pfn, sc: &mut ScanControl, stat: &mut BatchStat) -> Fate {
        let frame = &self.frames[pfn];
        debug_assert!(frame.has(Frame::ISOLATED) && !frame.has(Frame::ACTIVE));
        if frame.has(Frame::LOCKED) {
            return Fate::Keep;
        }
        self.count_scanned(pfn, sc);
        let frame = &self.frames[pfn];
        if frame.has(Frame::UNEVICTABLE) || (!sc.may_unmap && frame.has(Frame::MAPPED)) {
            return Fate::Keep;
        }
        if self.lru_gen_enabled() && frame.has(Frame::MAPPED | Frame::REFERENCED) {
            return Fate::Keep; // a walk promoted it while it was isolated
        }
        self.count_dirty(pfn, stat);
        if self.frames[pfn].has(Frame::WRITEBACK) {
            return self.meet_writeback(env, lru, pfn, stat);
        }
        let ptes = if self.frames[pfn].has(Frame::MAPPED) { self.page_referenced(env, pfn) } else { 0 };
        if ptes > 0 && self.lru_gen_enabled() {
            self.lru_gen_look_around(pfn, sc.has_walk);
        }
        let references = check_references(&mut self.frames[pfn], ptes, self.rules.anon_start, sc.lumpy);
        match references {
            References::Activate => return Fate::Activate,
            References::Keep => {
                stat.ref_keep += self.counted(pfn);
                return Fate::Keep;
            }
            References::Reclaim | References::ReclaimClean => {}
        }
        if let Some(fate) = self.give_swap(env, pfn, sc, stat) {
            return fate;
        }
        if self.frames[pfn].has(Frame::MAPPED) && !self.try_to_unmap(env, pfn) {
            stat.unmap_fail += self.counted(pfn);
            return Fate::Activate;
        }
        if self.frames[pfn].has(Frame::DIRTY)
            && let Some(fate) = self.meet_dirty(env, lru, pfn, references, sc, stat)
        {
            return fate;
        }
        self.remove_mapping(env, clock_of(self, lru, sc), pfn)
    }

    /// Counts a page as scanned: a mapped one, or one in the swap cache, twice where entries are counted.
    fn count_scanned(&self, pfn: Pfn, sc: &mut ScanControl) {
        let frame = &self.frames[pfn];
        sc.nr_scanned += match self.rules.scan_counting {
            ScanCounting::Entries => 1 + u64::from(frame.has_any(Frame::MAPPED | Frame::SWAPCACHE)),
            ScanCounting::BasePages => u64::from(frame.nr_pages()),
        };
    }

    /// Counts a page of the file system that is dirty or being written; anonymous pages are none of the flushers'
    /// business.
    fn count_dirty(&self, pfn: Pfn, stat: &mut BatchStat) {
        let frame = &self.frames[pfn];
        if frame.kind() != Kind::File || !frame.has_any(Frame::DIRTY | Frame::WRITEBACK) {
            return;
        }
        if self.rules.writeback_throttle != WritebackThrottle::Flags {
            return;
        }
        let (pages, writeback) = (self.counted(pfn), frame.has(Frame::WRITEBACK));
        stat.dirty += pages;
        if !writeback {
            stat.unqueued_dirty += pages;
        }
        let busy_device = self.rules.reclaim_throttle == ReclaimThrottle::Congestion && self.on_congested_device(pfn);
        if busy_device || (writeback && frame.has(Frame::RECLAIM)) {
            stat.congested += pages;
        }
    }

    /// Whether a page of a file belongs on a device whose write queue is congested.
    fn on_congested_device(&self, pfn: Pfn) -> bool {
        self.any_device_congested() && self.device_congested(self.device_of(self.file_home(pfn).0))
    }

    /// What happens to a page that cannot be reclaimed before it is written.
    fn stuck(&self) -> Fate {
        match self.rules.stuck_pages {
            StuckPages::Inactive | StuckPages::InactiveMarked => Fate::Keep,
            StuckPages::Active => Fate::Activate,
        }
    }

    fn meet_writeback(&mut self, env: &Env, lru: LruvecId, pfn: Pfn, stat: &mut BatchStat) -> Fate {
        let pages = self.counted(pfn);
        let writeback_seen = self.lruvec(self.root_of(lru)).writeback_seen;
        let frame = &mut self.frames[pfn];
        if self.rules.stuck_pages == StuckPages::Inactive {
            stat.writeback += pages;
        } else if env.task.kswapd && frame.has(Frame::RECLAIM) && writeback_seen {
            stat.immediate += pages;
        } else {
            frame.set(Frame::RECLAIM);
            stat.writeback += pages;
        }
        self.stuck()
    }

    /// Whether this reclaimer writes a dirty page of a file that it meets.
    fn writes_file_page(&self, env: &Env, lru: LruvecId, pfn: Pfn, sc: &ScanControl) -> bool {
        let kswapd = env.task.kswapd;
        match self.rules.file_pageout {
            FilePageout::Anyone => true,
            FilePageout::Kswapd => kswapd,
            FilePageout::KswapdInTrouble => kswapd && sc.is_desperate(),
            FilePageout::KswapdAtDirtyTail => kswapd && self.lruvec(self.root_of(lru)).dirty_seen,
            FilePageout::KswapdSecondTime => {
                kswapd && self.lruvec(self.root_of(lru)).dirty_seen && self.frames[pfn].has(Frame::RECLAIM)
            }
        }
    }

    /// A dirty page of a file is left to the flushers.
    fn skip_dirty(&mut self, lru: LruvecId, pfn: Pfn) -> Fate {
        if self.rules.skipped_dirty == SkippedDirty::Marked {
            self.frames[pfn].set(Frame::RECLAIM);
            self.stat.node_add(lru.node, NodeStat::VmscanImmediate, i64::from(self.frames[pfn].nr_pages()));
        }
        self.stuck()
    }

    /// Gives an anonymous page a swap slot, so that it can be unmapped. `Some` if it cannot go on.
    fn give_swap(&mut self, env: &Env, pfn: Pfn, sc: &mut ScanControl, stat: &mut BatchStat) -> Option<Fate> {
        let frame = &self.frames[pfn];
        if frame.kind() != Kind::Anon {
            return None;
        }
        let huge = frame.order() > Order(0);
        if !frame.has(Frame::SWAPBACKED) {
            return (huge && !self.split_isolated(env, pfn, sc, stat)).then_some(Fate::Keep);
        }
        if frame.has(Frame::SWAPCACHE) {
            return None;
        }
        if !sc.gfp.contains(Gfp::IO) || frame.has(Frame::PINNED) {
            return Some(Fate::Keep);
        }
        if huge {
            if self.swap_free_pages() == 0 || !self.split_isolated(env, pfn, sc, stat) {
                return Some(Fate::Activate);
            }
            self.stat.count(VmEvent::ThpSwpoutFallback, 1);
        }
        (!self.add_to_swap(env, pfn)).then_some(Fate::Activate)
    }

    /// Splits an isolated huge page. Its first page stays in the batch, and the others, isolated like it, are handled next.
    fn split_isolated(&mut self, env: &Env, pfn: Pfn, sc: &mut ScanControl, stat: &mut BatchStat) -> bool {
        let nr_pages = self.frames[pfn].nr_pages();
        if !self.split_huge_page(env, pfn) {
            return false;
        }
        debug_assert!(self.frames[pfn].has(Frame::ISOLATED) && self.frames[pfn].order() == Order(0));
        if self.rules.scan_counting == ScanCounting::BasePages {
            sc.nr_scanned -= u64::from(nr_pages - 1);
        }
        stat.split += nr_pages - 1;
        true
    }

    /// What happens to a dirty page; `None` if it is clean by now and can be freed.
    fn meet_dirty(
        &mut self,
        env: &Env,
        lru: LruvecId,
        pfn: Pfn,
        references: References,
        sc: &ScanControl,
        stat: &mut BatchStat,
    ) -> Option<Fate> {
        let file = is_file_lru(&self.frames[pfn]);
        if self.rules.writeback_throttle != WritebackThrottle::Flags {
            stat.dirty += 1;
        }
        if file && !self.writes_file_page(env, lru, pfn, sc) {
            return Some(self.skip_dirty(lru, pfn));
        }
        let frame = &self.frames[pfn];
        let may_enter_fs = sc.gfp.contains(Gfp::FS) || (frame.has(Frame::SWAPCACHE) && sc.gfp.contains(Gfp::IO));
        if references == References::ReclaimClean || !may_enter_fs || !sc.may_writepage || frame.has(Frame::PINNED) {
            return Some(Fate::Keep);
        }
        if file && !self.may_write_to_queue(env, pfn) {
            stat.congested += 1;
            return Some(Fate::Keep);
        }
        self.tlb_flush_written();
        let frame = &mut self.frames[pfn];
        frame.set(Frame::RECLAIM);
        let started =
            if frame.kind() == Kind::File { self.pageout_file(env, pfn) } else { self.pageout_anon(env, pfn) };
        if !started {
            self.frames[pfn].clear(Frame::RECLAIM);
            return Some(self.writepage_refused(lru, pfn));
        }
        stat.pageout += 1;
        self.stat.node_add(lru.node, NodeStat::VmscanWrite, 1);
        let frame = &mut self.frames[pfn];
        if frame.has_any(Frame::WRITEBACK | Frame::DIRTY | Frame::LOCKED) {
            return Some(Fate::Keep);
        }
        frame.clear(Frame::RECLAIM);
        None
    }

    /// Whether a page of a file may be written though that may block: kswapd may, and whoever writes to that very device
    /// (`may_write_to_queue()`).
    fn may_write_to_queue(&self, env: &Env, pfn: Pfn) -> bool {
        let writes_to = |device| env.task.writes_to == Some(device);
        env.task.kswapd || !self.on_congested_device(pfn) || writes_to(self.device_of(self.file_home(pfn).0))
    }

    /// A page that its owner did not write: it stays, dirty as it was; where there is no `->writepage` at all, it is
    /// active.
    fn writepage_refused(&mut self, lru: LruvecId, pfn: Pfn) -> Fate {
        let frame = &self.frames[pfn];
        let file = frame.kind() == Kind::File;
        if file && self.rules.xfs_writepage == XfsWritepage::Never && self.fs_kind(self.file_home(pfn).0) == FsKind::Xfs
        {
            return Fate::Activate;
        }
        self.stat.node_add(lru.node, NodeStat::VmscanWrite, i64::from(file));
        Fate::Keep
    }

    /// Takes a clean, unmapped page from its owner.
    #[inline]
    fn remove_mapping(&mut self, env: &Env, lru: LruvecId, pfn: Pfn) -> Fate {
        let frame = &self.frames[pfn];
        if frame.has(Frame::PINNED) && self.has_buffers(pfn) && !self.release_buffer(env, pfn) {
            return Fate::Activate;
        }
        let frame = &self.frames[pfn];
        if frame.has_any(Frame::PINNED | Frame::DIRTY) {
            return Fate::Keep;
        }
        match (frame.kind(), frame.has(Frame::SWAPBACKED)) {
            (Kind::File, false) => {
                let remembers = self.rules.refault_detection != RefaultDetection::None;
                let shadow = remembers.then(|| self.evict_from(lru, pfn));
                self.pagecache_remove(env, pfn, shadow);
            }
            (Kind::Anon, true) => {
                let shadow = if self.swap_has_shadows() { self.evict_from(lru, pfn) } else { 0 };
                self.swapcache_remove(env, pfn, shadow);
            }
            (Kind::Anon, false) => self.stat.count(VmEvent::Pglazyfreed, 1),
            _ => return Fate::Keep,
        }
        Fate::Free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(flags: u32) -> Frame {
        let mut frame = Frame::RESERVED;
        frame.set(flags);
        frame
    }

    #[test]
    fn an_anonymous_page_that_was_used_is_activated_at_once_before_5_9() {
        let mut page = frame(Frame::SWAPBACKED);
        assert_eq!(check_references(&mut page, 1, AnonStart::Active, false), References::Activate);
        assert_eq!(check_references(&mut page, 1, AnonStart::Inactive, false), References::Keep);
        assert_eq!(check_references(&mut page, 1, AnonStart::Inactive, false), References::Activate);
    }

    #[test]
    fn a_mapped_file_page_needs_two_references() {
        let mut page = frame(0);
        assert_eq!(check_references(&mut page, 1, AnonStart::Active, false), References::Keep);
        assert!(page.has(Frame::REFERENCED));
        assert_eq!(check_references(&mut page, 1, AnonStart::Active, false), References::Activate);
        assert_eq!(check_references(&mut frame(0), 2, AnonStart::Active, false), References::Activate);
    }

    #[test]
    fn a_page_read_once_goes_unless_it_must_be_written() {
        assert_eq!(
            check_references(&mut frame(Frame::REFERENCED), 0, AnonStart::Active, false),
            References::ReclaimClean
        );
        assert_eq!(check_references(&mut frame(0), 0, AnonStart::Active, false), References::Reclaim);
        let mut anon = frame(Frame::SWAPBACKED | Frame::REFERENCED);
        assert_eq!(check_references(&mut anon, 0, AnonStart::Active, false), References::Reclaim);
        let mut used = frame(Frame::REFERENCED);
        assert_eq!(
            check_references(&mut used, 2, AnonStart::Active, true),
            References::Reclaim,
            "lumpy reclaim does not ask"
        );
        assert!(!used.has(Frame::REFERENCED));
    }
}
