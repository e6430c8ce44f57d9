//! Taking pages off the oldest generation.
//!
//! Rule: pages are looked at from the tail of the oldest generation of a type until 64 are isolated. One that was promoted
//! goes to the head of the list of its generation; one of a tier that is protected, or accessed more often than can be
//! counted, and one of a zone above `reclaim_idx`, to the tail of the next generation. What cannot be freed after all comes
//! back as hot as a page of a fault; what became clean or unused meanwhile is tried once more. With equal oldest generations
//! the feedback chooses the type.
//! Source: `sort_folio()`, `isolate_folio()`, `scan_folios()`, `isolate_folios()`, `evict_folios()` (mm/vmscan.c); 6.12.
//! Since/until: in 6.1 a page that must be written first is marked for reclaim and moved to the next generation unasked, and
//! a protected page counts as activated; what may not be written does not count. That a page is protected for its number of accesses alone is
//! of 6.7 and 6.1.69 ([`GenerationStart`]), that something is tried once more of 6.2 and 6.1's stable releases ([`RejectedFolios`]). At swappiness 1 file pages go first, at 200 anonymous ones.

use rules::{GenerationStart, LruPolicy, RejectedFolios};
use units::{Gfp, Pfn};

use super::super::ScanControl;
use super::super::isolate::Batch;
use super::super::lru::{End, is_file_lru};
use super::super::page_list::BatchStat;
use super::super::workingset::workingset_counters;
use super::feedback::SWAPPINESS_MAX;
use super::lists::clear_refs;
use super::refault::refs_of;
use super::{ANON, FILE, MAX_LRU_BATCH, MIN_LRU_BATCH, MIN_NR_GENS, gen_of, tier_of};
use crate::contention::ONCE;
use crate::stat::{VmEvent, ZoneEvent};
use crate::{Env, Frame, LruvecId, Mm, ZoneKind};

/// The count of accesses of a page that was accessed more often than can be counted.
const REFS_SATURATED: u32 = 4;

/// What becomes of a page at the tail of the oldest generation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sorted {
    /// It belongs to a younger generation already.
    Promoted,
    /// Its tier is protected.
    Protected,
    /// It lies in a zone that is not to be reclaimed.
    Ineligible,
    /// It must be written first.
    AwaitsWriteback,
    /// It is to be isolated.
    No,
}

/// What came of a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Evicted {
    /// Base pages looked at, 0 if there is no more to be had.
    pub(super) scanned: u64,
    /// They were anonymous ones.
    pub(super) swapped: bool,
}

/// Whether a page must be written, or waited for, before it can be evicted (`sort_folio()`, 6.1).
fn awaits_writeback(frame: &Frame) -> bool {
    frame.has_any(Frame::LOCKED | Frame::WRITEBACK) || (is_file_lru(frame) && frame.has(Frame::DIRTY))
}

/// A run over the lists of a generation.
#[derive(Default)]
struct Scan {
    /// Base pages looked at, sorted out, isolated.
    scanned: u64,
    sorted: u64,
    isolated: u64,
    /// Passed over, for they may not be reclaimed in this context.
    skipped: u64,
    pages: Batch,
}

impl Mm {
    /// Where a page belongs that is at the tail of the list of the oldest generation.
    fn sort_page(&self, lru: LruvecId, pfn: Pfn, zone: ZoneKind, last_tier: usize, sc: &ScanControl) -> Sorted {
        let frame = &self.frames[pfn];
        let oldest = gen_of(self.lru_gen(lru).min_seq[usize::from(is_file_lru(frame))]);
        let refs = refs_of(frame);
        let uncounted = refs == REFS_SATURATED && self.rules.generation_start == GenerationStart::SecondOldest;
        if frame.lru_gen() != Some(oldest) {
            Sorted::Promoted
        } else if tier_of(refs) > last_tier || uncounted {
            Sorted::Protected
        } else if zone > sc.reclaim_idx {
            Sorted::Ineligible
        } else if self.rules.lru_policy == LruPolicy::MultiGenByKswapd && awaits_writeback(frame) {
            Sorted::AwaitsWriteback
        } else {
            Sorted::No
        }
    }

    /// Sorts a page out of the oldest generation if it does not belong there; false if it is to be isolated.
    fn sort_out(&mut self, lru: LruvecId, pfn: Pfn, zone: ZoneKind, last_tier: usize, sc: &ScanControl) -> bool {
        let sorted = self.sort_page(lru, pfn, zone, last_tier, sc);
        if sorted == Sorted::No {
            return false;
        }
        let frame = &self.frames[pfn];
        if sorted == Sorted::Promoted {
            let at = frame.lru_gen().expect("a listed page is in a generation");
            self.lru_gen_relist(pfn, at, true);
            return true;
        }
        let (kind, tier, pages) = (usize::from(is_file_lru(frame)), tier_of(refs_of(frame)), frame.nr_pages());
        let next = self.lru_gen_inc_gen(pfn);
        self.lru_gen_relist(pfn, next, sorted == Sorted::AwaitsWriteback);
        match sorted {
            Sorted::Protected => {
                self.lru_gen_mut(lru).feedback.protected[kind][tier] += u64::from(pages);
                if self.rules.lru_policy == LruPolicy::MultiGenByKswapd {
                    let [_, activate, _] = workingset_counters(kind == FILE);
                    self.stat.node_add(lru.node, activate, i64::from(pages));
                }
            }
            Sorted::AwaitsWriteback => self.frames[pfn].set(Frame::RECLAIM),
            Sorted::Promoted | Sorted::Ineligible | Sorted::No => {}
        }
        true
    }

    /// Takes a page off its list for reclaim; false if it cannot be reclaimed in this context.
    fn isolate_page(&mut self, pfn: Pfn, sc: &ScanControl) -> bool {
        let by_kswapd = self.rules.lru_policy == LruPolicy::MultiGenByKswapd;
        let frame = &mut self.frames[pfn];
        let anon_without_slot = !is_file_lru(frame) && !frame.has(Frame::SWAPCACHE);
        let dirty = frame.has(Frame::DIRTY) && (by_kswapd || !is_file_lru(frame));
        let may_write = sc.gfp.contains(Gfp::IO) && (!by_kswapd || sc.may_writepage);
        if ((dirty || anon_without_slot) && !may_write) || (by_kswapd && !sc.may_unmap && frame.has(Frame::MAPPED)) {
            return false;
        }
        if by_kswapd {
            frame.clear(Frame::RECLAIM);
        }
        if !frame.has(Frame::REFERENCED) {
            clear_refs(frame);
        }
        frame.clear(Frame::REFERENCED);
        self.lru_gen_del(pfn, true);
        self.frames[pfn].set(Frame::ISOLATED);
        true
    }

    /// Scans the list of one zone. `left` is how many entries may still be looked at.
    fn scan_zone(
        &mut self,
        lru: LruvecId,
        (kind, zone): (usize, ZoneKind),
        last_tier: usize,
        left: &mut u32,
        sc: &ScanControl,
        scan: &mut Scan,
    ) {
        let at = gen_of(self.lru_gen(lru).min_seq[kind]);
        let (mut moved, mut skipped) = (Batch::new(), 0);
        while *left > 0 && scan.isolated.max(skipped) < MIN_LRU_BATCH {
            let pfn = self.lru_gen(lru).lists[at][kind][zone as usize].back();
            if !pfn.is_some() {
                break;
            }
            *left -= 1;
            let pages = u64::from(self.frames[pfn].nr_pages());
            scan.scanned += pages;
            if self.sort_out(lru, pfn, zone, last_tier, sc) {
                scan.sorted += pages;
            } else if self.isolate_page(pfn, sc) {
                scan.isolated += pages;
                scan.pages.push(pfn);
            } else {
                let (lrugen, frames) = self.lru_gen_and_frames(lru);
                lrugen.unlist(frames, pfn, kind, zone);
                moved.push(pfn);
                skipped += pages;
            }
        }
        let (lrugen, frames) = self.lru_gen_and_frames(lru);
        for pfn in moved {
            lrugen.lists[at][kind][zone as usize].push_front(frames, pfn);
        }
        if skipped > 0 {
            self.stat.count_zone(ZoneEvent::Pgskip, zone, skipped);
            scan.skipped += skipped;
        }
    }

    /// Scans the oldest generation of a type: from zone `reclaim_idx` down, then the zones above it, whose pages only change
    /// their generation. Returns what was isolated, and how much was looked at, 0 if that was of no use.
    fn scan_oldest(
        &mut self,
        env: &Env,
        lru: LruvecId,
        kind: usize,
        last_tier: usize,
        sc: &mut ScanControl,
    ) -> (u64, Batch) {
        let mut scan = Scan::default();
        if self.lru_gen(lru).nr_gens(kind) == MIN_NR_GENS {
            return (0, scan.pages);
        }
        let mut left = MAX_LRU_BATCH;
        let (eligible, others) = ZoneKind::ALL.split_at(sc.reclaim_idx as usize + 1);
        for zone in eligible.iter().rev().chain(others.iter().rev()) {
            self.scan_zone(lru, (kind, *zone), last_tier, &mut left, sc, &mut scan);
            if left == 0 || scan.isolated >= MIN_LRU_BATCH {
                break;
            }
        }
        if sc.is_global() {
            let by_whom = if env.task.kswapd { VmEvent::PgscanKswapd } else { VmEvent::PgscanDirect };
            self.stat.count(by_whom, scan.isolated);
            self.stat.count(VmEvent::Pgrefill, scan.sorted);
        }
        self.memcg_note_scan(self.memcg_of(lru), env.task.kswapd, scan.isolated, 0);
        self.stat.count(if kind == FILE { VmEvent::PgscanFile } else { VmEvent::PgscanAnon }, scan.isolated);
        if self.traces_generations() {
            self.trace_scan(kind == FILE, [scan.scanned, scan.skipped, scan.isolated], sc);
        }
        self.charge(u64::from(MAX_LRU_BATCH - left) * self.costs.lru_move);
        self.lru_lock(lru, u64::from(MAX_LRU_BATCH - left), ONCE);
        if kind == FILE && self.rules.lru_policy == LruPolicy::MultiGen {
            sc.nr.file_taken += scan.isolated;
        }
        (if scan.isolated > 0 || left == 0 { scan.scanned } else { 0 }, scan.pages)
    }

    /// The type to begin with, and its last tier if that is known already.
    fn first_kind(&self, lru: LruvecId, swappiness: u64, sc: &ScanControl) -> (usize, Option<usize>) {
        let lrugen = self.lru_gen(lru);
        if swappiness == 0 {
            (FILE, None)
        } else if lrugen.min_seq[ANON] < lrugen.min_seq[FILE] {
            (ANON, None)
        } else if swappiness == 1 {
            (FILE, None)
        } else if swappiness == SWAPPINESS_MAX {
            (ANON, None)
        } else if !sc.gfp.contains(Gfp::IO) && self.rules.lru_policy == LruPolicy::MultiGen {
            (FILE, None)
        } else {
            let (kind, tier) = lrugen.feedback.kind_and_tier(swappiness);
            (kind, Some(tier))
        }
    }

    /// Isolates pages of one type, of the other if there is nothing. Returns how much was looked at, the type, the pages.
    fn isolate_oldest(
        &mut self,
        env: &Env,
        lru: LruvecId,
        swappiness: u64,
        sc: &mut ScanControl,
    ) -> (u64, usize, Batch) {
        let (mut kind, mut tier) = self.first_kind(lru, swappiness, sc);
        for _ in usize::from(swappiness == 0)..2 {
            let last_tier = tier.take().unwrap_or_else(|| self.lru_gen(lru).feedback.tier_to_evict(kind));
            let (scanned, pages) = self.scan_oldest(env, lru, kind, last_tier, sc);
            if scanned > 0 {
                return (scanned, kind, pages);
            }
            kind = 1 - kind;
        }
        (0, kind, Batch::new())
    }

    /// Evicts a batch (`evict_folios()`).
    pub(super) fn evict_pages(&mut self, env: &Env, lru: LruvecId, swappiness: u64, sc: &mut ScanControl) -> Evicted {
        let (mut scanned, kind, mut pages) = self.isolate_oldest(env, lru, swappiness, sc);
        let lrugen = self.lru_gen_mut(lru);
        scanned += u64::from(lrugen.drop_empty(swappiness > 0));
        if lrugen.nr_gens(usize::from(swappiness == 0)) == MIN_NR_GENS {
            scanned = 0;
        }
        let swapped = kind == ANON && !pages.is_empty();
        let mut again = false;
        while !pages.is_empty() {
            let (stat, kept) = self.shrink_page_list(env, lru, &pages, sc);
            self.count_evicted(env, (lru, kind), &stat, sc);
            if self.traces_generations() {
                self.trace_shrink_inactive(lru, kind == FILE, scanned, &stat, sc.priority);
            }
            if !kept.is_empty() {
                self.lru_lock(lru, kept.len() as u64, ONCE);
            }
            pages = self.put_back_evicted(&kept, again);
            again = true;
        }
        Evicted { scanned, swapped }
    }

    fn count_evicted(&mut self, env: &Env, (lru, kind): (LruvecId, usize), stat: &BatchStat, sc: &mut ScanControl) {
        self.memcg_note_scan(self.memcg_of(lru), env.task.kswapd, 0, stat.reclaimed);
        if self.rules.lru_policy == LruPolicy::MultiGen {
            sc.nr.unqueued_dirty += stat.unqueued_dirty;
        }
        sc.nr_reclaimed += stat.reclaimed;
        if sc.is_global() {
            let by_whom = if env.task.kswapd { VmEvent::PgstealKswapd } else { VmEvent::PgstealDirect };
            self.stat.count(by_whom, stat.reclaimed);
        }
        self.stat.count(if kind == FILE { VmEvent::PgstealFile } else { VmEvent::PgstealAnon }, stat.reclaimed);
    }

    /// Puts back what was not freed, but for pages that deserve another try, if there is one and this was not it.
    fn put_back_evicted(&mut self, kept: &[Pfn], again: bool) -> Batch {
        const IN_USE: u32 =
            Frame::ACTIVE | Frame::REFERENCED | Frame::MAPPED | Frame::LOCKED | Frame::DIRTY | Frame::WRITEBACK;
        let retries = self.rules.rejected_folios == RejectedFolios::Retried;
        let mut retry = Batch::new();
        for &pfn in kept {
            let frame = &mut self.frames[pfn];
            if frame.has(Frame::RECLAIM) && frame.has_any(Frame::DIRTY | Frame::WRITEBACK) {
                if frame.has(Frame::WORKINGSET) {
                    frame.set(Frame::REFERENCED);
                }
            } else if !retries {
                if frame.has(Frame::WORKINGSET) {
                    frame.set(Frame::REFERENCED);
                }
                frame.set(Frame::ACTIVE);
            } else if again || frame.has_any(IN_USE) {
                clear_refs(frame);
                frame.set(Frame::ACTIVE);
            } else {
                retry.push(pfn);
                continue;
            }
            frame.clear(Frame::ISOLATED);
            self.lru_link(pfn, End::Front);
        }
        retry
    }
}
