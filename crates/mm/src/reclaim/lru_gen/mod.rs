//! The multi-gen LRU: pages in up to four generations instead of two lists.
//!
//! Rule: the youngest generation is `max_seq`, the oldest of each type `min_seq`; between 2 and 4 exist at a time. Pages
//! that a fault brings in are the youngest, others join near the old end. The aging makes a new generation once the cold
//! ones run out: it walks the page tables and brings every page that was accessed through them into it. The eviction takes
//! pages from the oldest generation, sorts out those that have been promoted or are protected, and unmaps and frees the
//! rest. Pages accessed through file descriptors move through tiers, not generations; a feedback loop on refaults
//! decides which tiers of which type are evicted.
//!
//! | file | what |
//! |---|---|
//! | `lists` | the lists, and where a page is put |
//! | `feedback` | refaults against evictions, by type and tier |
//! | `bloom`, `mm_list`, `walk` | page-table walks: where it is worth to look, whose turn it is, the walk |
//! | `aging` | new generations, and when they are due |
//! | `look_around` | what the eviction tells the aging |
//! | `evict` | taking pages off the oldest generation |
//! | `shrink` | one reclaimer's work on a node |
//! | `by_kswapd` | the same in 6.1 |
//! | `refault` | shadows of evicted pages |
//! | `state` | switching generations on and off while the system runs |
//!
//! Source: mm/vmscan.c from `get_lruvec()` to `lru_gen_shrink_node()`, include/linux/mm_inline.h, `struct lru_gen_folio`
//! (include/linux/mmzone.h), Documentation/mm/multigen_lru.rst; 6.12.
//! Since/until: [`rules::LruPolicy::MultiGen`] is 6.12's, where reclaim of a node ends as soon as its target is met;
//! [`rules::LruPolicy::MultiGenByKswapd`] is 6.1's.
//! Abstracted: sizes follow at once where the kernel batches them; pagevecs; a tick is as fine as the clock.
//! Omitted: the debugfs files, `CONFIG_LRU_GEN_STATS`.

mod aging;
mod bloom;
mod by_kswapd;
mod evict;
mod feedback;
mod lists;
mod look_around;
mod mm_list;
mod refault;
mod shrink;
mod state;
mod validate;
mod walk;

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

use units::Nanos;

use crate::{Frames, LruvecId, Mm, ZoneKind};

#[cfg(test)]
use aging::{Aged, Aging};
use bloom::BloomFilters;
pub(super) use by_kswapd::{AgeMemcgs, AgeStep, Progress, ShrinkLruvec};
use feedback::Feedback;
use lists::{Ends, Lists};
pub(crate) use mm_list::MmList;
use mm_list::MmState;
pub(super) use shrink::{ShrinkGen, ShrinkGens};

/// Generations that are never evicted: one that is being filled and one whose pages get a second chance.
const MIN_NR_GENS: u64 = 2;
/// Generations that may exist.
const MAX_NR_GENS: usize = 4;
/// Tiers of a generation.
const MAX_NR_TIERS: usize = 4;
/// Pages isolated at once (`MIN_LRU_BATCH`).
const MIN_LRU_BATCH: u64 = 64;
/// Pages looked at in one go (`MAX_LRU_BATCH`).
pub(super) const MAX_LRU_BATCH: u32 = 64 * 64;
/// Index of anonymous pages in what is kept by type.
const ANON: usize = 0;
/// Index of file pages.
const FILE: usize = 1;

/// Generations of a node's pages (`struct lru_gen_folio`, `struct lru_gen_mm_state`).
#[derive(Clone, Debug)]
pub struct LruGen {
    /// Whether pages are kept here; if not, they are on active and inactive lists.
    enabled: bool,
    /// The youngest generation.
    max_seq: u64,
    /// The oldest generation of [anon, file].
    min_seq: [u64; 2],
    /// When each generation began.
    births: [Nanos; MAX_NR_GENS],
    /// The lists; a page may be on the list of an older generation than its own until the eviction meets it.
    lists: Lists,
    /// Base pages that belong to each generation, by type and kind of zone.
    nr_pages: [[[u64; ZoneKind::COUNT]; 2]; MAX_NR_GENS],
    /// Evictions and refaults.
    feedback: Feedback,
    /// How far the aging has come.
    mm_state: MmState,
    /// Where page tables are worth a walk.
    filters: BloomFilters,
}

impl Default for LruGen {
    fn default() -> LruGen {
        LruGen {
            enabled: true,
            max_seq: MIN_NR_GENS + 1,
            min_seq: [0; 2],
            births: [Nanos::ZERO; MAX_NR_GENS],
            lists: [[[Ends::EMPTY; ZoneKind::COUNT]; 2]; MAX_NR_GENS],
            nr_pages: [[[0; ZoneKind::COUNT]; 2]; MAX_NR_GENS],
            feedback: Feedback::default(),
            mm_state: MmState::new(MIN_NR_GENS),
            filters: BloomFilters::default(),
        }
    }
}

/// The types that may be evicted.
fn evictable(can_swap: bool) -> &'static [usize] {
    if can_swap { &[ANON, FILE] } else { &[FILE] }
}

/// Where a generation is kept (`lru_gen_from_seq()`).
#[inline]
fn gen_of(seq: u64) -> usize {
    (seq % MAX_NR_GENS as u64) as usize
}

/// Tier of a page by its accesses beyond the first (`lru_tier_from_refs()`).
#[inline]
fn tier_of(refs: u32) -> usize {
    (refs + 1).next_power_of_two().trailing_zeros() as usize
}

impl LruGen {
    /// Whether a generation counts as active in `/proc/vmstat` (`lru_gen_is_active()`).
    #[inline]
    fn is_active(&self, at: usize) -> bool {
        at == gen_of(self.max_seq) || at == gen_of(self.max_seq - 1)
    }

    /// Whether pages were ever evicted.
    pub(crate) fn has_evicted(&self) -> bool {
        self.feedback != Feedback::default()
    }

    /// Generations of a type (`get_nr_gens()`).
    fn nr_gens(&self, kind: usize) -> u64 {
        self.max_seq - self.min_seq[kind] + 1
    }

    /// Base pages of a type in a generation.
    fn size(&self, seq: u64, kind: usize) -> u64 {
        self.nr_pages[gen_of(seq)][kind].iter().sum()
    }

    /// Base pages of the types that may be evicted, in all generations.
    fn total(&self, can_swap: bool) -> u64 {
        evictable(can_swap).iter().flat_map(|&kind| self.seqs(kind).map(move |seq| self.size(seq, kind))).sum()
    }

    /// Number, begin, anonymous and file pages of each generation, oldest first.
    pub fn generations(&self) -> impl Iterator<Item = (u64, Nanos, [u64; 2])> {
        self.seqs(ANON).map(|seq| {
            let of = |kind: usize| if self.seqs(kind).contains(&seq) { self.size(seq, kind) } else { 0 };
            (seq, self.births[gen_of(seq)], [of(ANON), of(FILE)])
        })
    }

    /// The generations of a type, oldest first.
    fn seqs(&self, kind: usize) -> std::ops::RangeInclusive<u64> {
        self.min_seq[kind]..=self.max_seq
    }
}

impl Mm {
    /// Whether pages are kept in generations.
    #[inline]
    pub(crate) fn lru_gen_enabled(&self) -> bool {
        self.nodes[0].lruvecs[0].lru_gen.as_ref().is_some_and(|lru_gen| lru_gen.enabled)
    }

    /// Generations of these lists; there must be some.
    #[inline]
    fn lru_gen(&self, lru: LruvecId) -> &LruGen {
        self.lruvec(lru).lru_gen.as_deref().expect("the lists have generations")
    }

    /// The same, to be changed.
    #[inline]
    fn lru_gen_mut(&mut self, lru: LruvecId) -> &mut LruGen {
        self.lruvec_mut(lru).lru_gen.as_deref_mut().expect("the lists have generations")
    }

    /// The same together with the frames that the lists run through.
    #[inline]
    fn lru_gen_and_frames(&mut self, lru: LruvecId) -> (&mut LruGen, &mut Frames) {
        let lruvec = &mut self.nodes[lru.node.index()].lruvecs[usize::from(lru.part)];
        (lruvec.lru_gen.as_deref_mut().expect("the lists have generations"), &mut self.frames)
    }
}
