//! New generations, and when they are due.
//!
//! Rule: once no generation is left that may be evicted, or the ones that may hold less than a quarter of the pages, or the
//! youngest one more than half, all page tables are walked and a new generation begins. At most four exist: the oldest
//! one's pages join the next if there were more. A generation of a type that has become empty is dropped; while swapping
//! is possible anonymous pages are never younger than file pages at their old end.
//! Source: `should_run_aging()`, `try_to_inc_max_seq()`, `inc_max_seq()`, `inc_min_seq()`, `try_to_inc_min_seq()`
//! (mm/vmscan.c); 6.12.
//! Since/until: as 6.12; a walk gives way after each GiB, and another task may take part in the same iteration.
//! In 6.1 the last of several walkers begins the generation, and wakes those who sleep until it does; while somebody sleeps, a walk ends with
//! the GiB that it is at.
//! Abstracted: a space that ends while it is walked is gone at once.

use rules::LruPolicy;
use units::SpaceId;

use super::mm_list::Next;
use super::walk::Walk;
use super::{ANON, FILE, LruGen, MAX_NR_GENS, MIN_NR_GENS, evictable, gen_of};
use crate::{Effect, Env, LruList, LruvecId, Mm, ZoneKind};

/// What the sizes of the generations say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct AgingNeed {
    /// A new generation is due.
    pub(super) due: bool,
    /// No generation is left that may be evicted.
    pub(super) out_of_cold: bool,
    /// Base pages in all generations.
    pub(super) total: u64,
}

impl LruGen {
    /// Whether a new generation is due, and how much there is to scan (`should_run_aging()`).
    pub(super) fn aging_need(&self, can_swap: bool) -> AgingNeed {
        let oldest = self.min_seq[usize::from(!can_swap)];
        let total = self.total(can_swap);
        if oldest + MIN_NR_GENS > self.max_seq {
            return AgingNeed { due: true, out_of_cold: true, total };
        }
        // A generation that a type does not have any more holds none of its pages.
        let of = |seq: u64| {
            let kinds = evictable(can_swap).iter().filter(|kind| self.min_seq[**kind] <= seq);
            kinds.map(|kind| self.size(seq, *kind)).sum::<u64>()
        };
        let (young, old) = (of(self.max_seq), of(self.max_seq - MIN_NR_GENS));
        let uneven = young * MIN_NR_GENS > total || old * (MIN_NR_GENS + 2) < total;
        AgingNeed { due: oldest + MIN_NR_GENS >= self.max_seq && uneven, out_of_cold: false, total }
    }

    /// Drops generations at the old end that are empty (`try_to_inc_min_seq()`); whether there were any.
    pub(super) fn drop_empty(&mut self, can_swap: bool) -> bool {
        let mut min_seq = self.min_seq;
        for &kind in evictable(can_swap) {
            let empty = |seq: u64| self.lists[gen_of(seq)][kind].iter().all(|list| list.is_empty());
            while min_seq[kind] + MIN_NR_GENS <= self.max_seq && empty(min_seq[kind]) {
                min_seq[kind] += 1;
            }
        }
        if can_swap {
            min_seq[ANON] = min_seq[ANON].min(min_seq[FILE]);
            min_seq[FILE] = min_seq[ANON].max(self.min_seq[FILE]);
        }
        let mut dropped = false;
        for &kind in evictable(can_swap) {
            if min_seq[kind] != self.min_seq[kind] {
                self.feedback.carry_over(kind);
                self.min_seq[kind] = min_seq[kind];
                dropped = true;
            }
        }
        dropped
    }
}

impl Mm {
    /// Has the pages of the oldest generation of a type join the next one (`inc_min_seq()`).
    fn inc_min_seq(&mut self, lru: LruvecId, kind: usize, can_swap: bool) {
        let at = gen_of(self.lru_gen(lru).min_seq[kind]);
        for zone in 0..ZoneKind::COUNT {
            while (kind == FILE || can_swap) && !self.lru_gen(lru).lists[at][kind][zone].is_empty() {
                let pfn = self.lru_gen(lru).lists[at][kind][zone].back();
                let next = self.lru_gen_inc_gen(pfn);
                self.lru_gen_relist(pfn, next, false);
                self.charge(self.costs.lru_move);
            }
        }
        let lrugen = self.lru_gen_mut(lru);
        lrugen.feedback.carry_over(kind);
        lrugen.min_seq[kind] += 1;
    }

    /// Begins a generation after `seq`, unless somebody else has (`inc_max_seq()`).
    pub(super) fn inc_max_seq(&mut self, env: &Env, lru: LruvecId, seq: u64, can_swap: bool) -> bool {
        if seq != self.lru_gen(lru).max_seq {
            return false;
        }
        for kind in [FILE, ANON] {
            if self.lru_gen(lru).nr_gens(kind) == MAX_NR_GENS as u64 {
                self.inc_min_seq(lru, kind, can_swap);
            }
        }
        // What was the second youngest generation is inactive now. The new one may hold anonymous pages from long ago,
        // if they could not be swapped: they are active now.
        let (last, next) = (gen_of(seq - 1), gen_of(seq + 1));
        let zones: Vec<_> = self.zones_of(lru).collect();
        for zone in zones {
            let zone_kind = self.zones[zone.index()].kind as usize;
            for (kind, inactive, active) in
                [(ANON, LruList::InactiveAnon, LruList::ActiveAnon), (FILE, LruList::InactiveFile, LruList::ActiveFile)]
            {
                let nr_pages = &self.lru_gen(lru).nr_pages;
                let delta = nr_pages[last][kind][zone_kind] as i64 - nr_pages[next][kind][zone_kind] as i64;
                if delta != 0 {
                    self.lru_resize(lru, zone, inactive, delta);
                    self.lru_resize(lru, zone, active, -delta);
                }
            }
        }
        let lrugen = self.lru_gen_mut(lru);
        lrugen.births[next] = env.now;
        lrugen.max_seq += 1;
        if lrugen.mm_state.sleepers > 0 {
            self.effects.push(Effect::WakeAging(lru.node));
        }
        true
    }
}

/// What a step of the aging came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::reclaim) enum Aged {
    /// There is more to walk.
    More,
    /// It has ended; whether this call began a new generation.
    Done(bool),
}

/// A walk over all page tables that ends in a new generation (`try_to_inc_max_seq()`).
#[derive(Debug)]
pub(in crate::reclaim) struct Aging {
    walk: Walk,
    /// The space that is walked, its place in the list, and the region to go on with.
    at: Option<(u64, SpaceId, u32)>,
    /// It has taken a space in this iteration.
    holds: bool,
}

impl Aging {
    pub(in crate::reclaim) fn new(mm: &Mm, lru: LruvecId, can_swap: bool) -> Aging {
        let seq = mm.lru_gen(lru).max_seq;
        Aging { walk: Walk { lru, seq, can_swap, force_scan: false }, at: None, holds: false }
    }

    /// The youngest generation when it began.
    pub(super) fn seq(&self) -> u64 {
        self.walk.seq
    }

    /// Walks a GiB of a space.
    pub(in crate::reclaim) fn step(&mut self, mm: &mut Mm, env: &Env) -> Aged {
        let lru = self.walk.lru;
        if let Some((place, space, region)) = self.at.take() {
            let stale = mm.lru_gen(lru).max_seq != self.walk.seq
                || !mm.spaces.mm_lists[usize::from(lru.part)].holds(place, space);
            let next = if stale { None } else { mm.lru_gen_walk_gib(&self.walk, space, region) };
            if let Some(region) = next
                && mm.lru_gen(lru).mm_state.sleepers == 0
            {
                self.at = Some((place, space, region));
            }
            return Aged::More;
        }
        if !mm.tunables.lru_gen_enabled.mm_walk() {
            let completes = mm.lru_gen_mut(lru).mm_state.skip(self.walk.seq);
            return Aged::Done(completes && self.begin_generation(mm, env));
        }
        let next = self.next_space(mm);
        self.holds = matches!(next, Next::Space { .. });
        match next {
            Next::Space { place, space, first } => {
                if first {
                    mm.lru_gen_mut(lru).filters.reset(self.walk.seq + 1);
                }
                self.at = Some((place, space, 0));
                Aged::More
            }
            Next::Last => Aged::Done(self.begin_generation(mm, env)),
            Next::Nothing => Aged::Done(false),
        }
    }

    fn next_space(&mut self, mm: &mut Mm) -> Next {
        let Walk { lru, seq, .. } = self.walk;
        let bit = 1_u64 << (lru.node.index() % 64);
        let lrugen = mm.nodes[lru.node.index()].lruvecs[usize::from(lru.part)].lru_gen.as_deref_mut();
        let state = &mut lrugen.expect("the lists have generations").mm_state;
        // A group in which no process ever was has no list.
        let Some(list) = mm.spaces.mm_lists.get_mut(usize::from(lru.part)) else {
            return if state.skip(seq) { Next::Last } else { Next::Nothing };
        };
        let list = std::mem::take(list);
        let ran = |space| {
            let ran = &mut mm.spaces[space].lru_gen_ran;
            let has_run = *ran & bit != 0;
            *ran &= !bit;
            has_run
        };
        let next = if mm.rules.lru_policy == LruPolicy::MultiGenByKswapd {
            state.next_of_several(&list, (seq, self.holds), &mut self.walk.force_scan, ran)
        } else {
            state.next(&list, seq, &mut self.walk.force_scan, ran)
        };
        mm.spaces.mm_lists[usize::from(lru.part)] = list;
        next
    }

    fn begin_generation(&self, mm: &mut Mm, env: &Env) -> bool {
        mm.inc_max_seq(env, self.walk.lru, self.walk.seq, self.walk.can_swap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Generations 1 to `max_seq` with these sizes of [anon, file], oldest first.
    fn generations(sizes: &[[u64; 2]]) -> LruGen {
        let mut lrugen = LruGen { max_seq: sizes.len() as u64, min_seq: [1; 2], ..LruGen::default() };
        for (seq, size) in (1..).zip(sizes) {
            for kind in [ANON, FILE] {
                lrugen.nr_pages[gen_of(seq)][kind][ZoneKind::Normal as usize] = size[kind];
            }
        }
        lrugen
    }

    fn due(sizes: &[[u64; 2]], can_swap: bool) -> bool {
        generations(sizes).aging_need(can_swap).due
    }

    #[test]
    fn with_two_generations_a_new_one_is_due_and_nothing_is_cold() {
        let need = generations(&[[10, 10], [10, 10]]).aging_need(true);
        assert_eq!(need, AgingNeed { due: true, out_of_cold: true, total: 40 });
    }

    #[test]
    fn with_three_a_new_one_is_due_while_the_oldest_is_small_or_the_youngest_large() {
        // 400 pages: the oldest should hold 100 at least, the youngest 200 at most.
        assert!(!due(&[[50, 50], [100, 0], [0, 200]], true));
        assert!(due(&[[50, 49], [100, 1], [0, 200]], true));
        assert!(due(&[[50, 50], [99, 0], [0, 201]], true));
        // Without swap only file pages count: the oldest has 50 of 250.
        assert!(due(&[[50, 50], [100, 0], [0, 200]], false));
        assert_eq!(generations(&[[50, 50], [100, 0], [0, 200]]).aging_need(false).total, 250);
    }

    #[test]
    fn with_four_there_is_enough_to_evict() {
        assert!(!due(&[[0, 0], [0, 0], [0, 0], [0, 200]], true));
    }

    #[test]
    fn empty_generations_are_dropped_but_for_the_last_two_and_anon_stays_behind_file() {
        let mut lrugen = LruGen { max_seq: 4, min_seq: [1; 2], ..LruGen::default() };
        let occupied = super::super::lists::Ends::with(units::Pfn(7));
        lrugen.lists[gen_of(2)][FILE][0] = occupied;
        assert!(lrugen.drop_empty(true));
        assert_eq!(lrugen.min_seq, [2, 2], "anon could go to 3, file could not");
        lrugen.lists[gen_of(2)][FILE][0] = super::super::lists::Ends::EMPTY;
        lrugen.lists[gen_of(2)][ANON][0] = occupied;
        assert!(!lrugen.drop_empty(true), "anon cannot go, and file waits for it");
        assert!(lrugen.drop_empty(false), "without swap it does not");
        assert_eq!(lrugen.min_seq, [2, 3]);
    }
}
