//! Shadows of evicted pages, and what a refault says.
//!
//! Rule: an evicted page leaves the generation that was the oldest then and its count of accesses; if it comes back while
//! that is still the oldest one, its tier has a refault. A page that comes back in a fault, or whose tier was the last one,
//! was wrongly evicted: it starts in the last tier.
//! Source: `lru_gen_eviction()`, `lru_gen_test_recent()`, `lru_gen_refault()`, `folio_lru_refs()`; 6.12.
//! Since/until: in 6.1 only refaults of that kind are counted at all, and not as activations. Until 6.7 (and 6.1.69) one that was accessed four
//! times is not taken for wrongly evicted, and all that are start in the second tier ([`GenerationStart`]).
//! Abstracted: a shadow has as many bits for generation and count as the classic one has for its clock.

use rules::{GenerationStart, LruPolicy};
use units::Pfn;

use super::super::lru::is_file_lru;
use super::super::workingset::workingset_counters;
use super::tier_of;
use crate::memcg::Refault;
use crate::{Env, Frame, LruvecId, Mm};

/// Bits of a count of accesses (`LRU_REFS_WIDTH`).
const REFS_WIDTH: u32 = 2;
/// The largest count.
const REFS_MAX: u32 = (1 << REFS_WIDTH) - 1;

/// Accesses beyond the first (`folio_lru_refs()`).
pub(super) fn refs_of(frame: &Frame) -> u32 {
    frame.lru_refs() + u32::from(frame.has(Frame::WORKINGSET))
}

impl Mm {
    /// Notes the eviction of a page; what is returned belongs in its slot.
    pub(in crate::reclaim) fn lru_gen_eviction(&mut self, lru: LruvecId, pfn: Pfn) -> u32 {
        let frame = &self.frames[pfn];
        let (kind, refs, pages) = (usize::from(is_file_lru(frame)), refs_of(frame), u64::from(frame.nr_pages()));
        let (layout, zone) = (self.reclaim.shadows, self.zone_of(pfn));
        let lrugen = self.lru_gen_mut(lru);
        lrugen.feedback.evicted[kind][tier_of(refs)] += pages;
        let token = lrugen.min_seq[kind] << REFS_WIDTH | u64::from(refs.saturating_sub(1));
        layout.pack_token((zone, self.memcg_of(lru)), token, refs > 0)
    }

    /// Judges the return of an evicted page.
    pub(in crate::reclaim) fn lru_gen_refault(&mut self, env: &Env, pfn: Pfn, shadow: u32) {
        let layout = self.reclaim.shadows;
        let ((zone, memcg), token, workingset) = layout.unpack_token(shadow);
        let lru = self.lruvec_of(pfn);
        if self.zones[zone.index()].node != lru.node || memcg != self.memcg_of(lru) {
            return;
        }
        let frame = &self.frames[pfn];
        let (kind, pages) = (usize::from(is_file_lru(frame)), i64::from(frame.nr_pages()));
        let [refault, activate, restore] = workingset_counters(kind == super::FILE);
        let by_kswapd = self.rules.lru_policy == LruPolicy::MultiGenByKswapd;
        if !by_kswapd {
            self.stat.node_add(lru.node, refault, pages);
            self.memcg_note_refault(lru, kind == super::FILE, Refault::Refaulted, pages as u64);
        }
        let lrugen = self.lru_gen_mut(lru);
        if token >> REFS_WIDTH != layout.fold_token(lrugen.min_seq[kind] << REFS_WIDTH) >> REFS_WIDTH {
            return;
        }
        let refs = (token as u32 & REFS_MAX) + u32::from(workingset);
        lrugen.feedback.refaulted[kind][tier_of(refs)] += pages as u64;
        self.stat.node_add(lru.node, if by_kswapd { refault } else { activate }, pages);
        let what = if by_kswapd { Refault::Refaulted } else { Refault::Activated };
        self.memcg_note_refault(lru, kind == super::FILE, what, pages as u64);
        let fixed = self.rules.generation_start == GenerationStart::SecondOldest;
        if env.task.in_lru_fault || refs > REFS_MAX || (fixed && refs == REFS_MAX) {
            let frame = &mut self.frames[pfn];
            frame.set(Frame::WORKINGSET);
            if fixed {
                frame.set_lru_refs(REFS_MAX);
            }
            self.stat.node_add(lru.node, restore, pages);
            self.memcg_note_refault(lru, kind == super::FILE, Refault::Restored, pages as u64);
        }
    }
}
