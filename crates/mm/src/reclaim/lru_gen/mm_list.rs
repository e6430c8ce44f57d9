//! Whose page tables are walked next.
//!
//! Rule: all address spaces of a memory cgroup are on one list, in the order in which they came there. The walkers of a node
//! share one place in it, so that each space is walked once for a generation; when the end is reached, the generation is complete. A space that
//! has not run since its last walk is passed over. From the first space on that came after the last walk had ended,
//! everything is walked in full.
//! Source: `lru_gen_add_mm()`, `lru_gen_del_mm()`, `iterate_mm_list()`, `get_next_mm()`, `lru_gen_use_mm()`; 6.12.
//! Since/until: [`LruPolicy::MultiGenByKswapd`]: in 6.1 and 6.2 the iteration ends as its last space is taken, and the generation is complete
//! once the last walker is through with its own; whoever comes between is told that there is nothing to be done.
//! Omitted: a space of less than 64 pages is passed over.

use rules::LruPolicy;
use units::{MemcgId, SpaceId};

/// A place in the list: spaces get rising numbers.
type Place = u64;

/// The address spaces in the order of the list.
#[derive(Clone, Debug, Default)]
pub(crate) struct MmList {
    spaces: Vec<(Place, SpaceId)>,
    next: Place,
}

impl MmList {
    /// The first space behind a place.
    fn after(&self, place: Option<Place>) -> Option<(Place, SpaceId)> {
        let at = place.map_or(0, |place| self.spaces.partition_point(|(p, _)| *p <= place));
        self.spaces.get(at).copied()
    }

    /// Puts a space at the end.
    fn add(&mut self, space: SpaceId) -> Place {
        let place = self.next;
        self.next += 1;
        self.spaces.push((place, space));
        place
    }

    /// The place of a space.
    fn place_of(&self, space: SpaceId) -> Option<usize> {
        self.spaces.iter().position(|(_, s)| *s == space)
    }

    /// Whether a space is still the one that was at a place.
    pub(super) fn holds(&self, place: Place, space: SpaceId) -> bool {
        self.spaces.binary_search(&(place, space)).is_ok()
    }
}

/// Where the last iteration ended before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Tail {
    /// There has been none.
    Never,
    /// Before this space, which is new.
    Before(Place),
    /// At the end: nothing is new.
    End,
}

/// How far the walkers of a node have come (`struct lru_gen_mm_state`).
#[derive(Clone, Debug)]
pub(super) struct MmState {
    /// The generation that was completed last.
    pub(super) seq: u64,
    /// The space that was taken last; none at the start of the list.
    head: Option<Place>,
    tail: Tail,
    /// Walkers that are at a space (6.1).
    walkers: u32,
    /// Reclaimers that sleep until a new generation begins (6.1).
    pub(super) sleepers: u32,
}

/// What a walker gets from the list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Next {
    /// A space; whether it is the first of this iteration.
    Space { place: Place, space: SpaceId, first: bool },
    /// The iteration has ended with this call: the generation is complete.
    Last,
    /// Others have ended it, or it is not to begin.
    Nothing,
}

impl MmState {
    pub(super) fn new(seq: u64) -> MmState {
        MmState { seq, head: None, tail: Tail::Never, walkers: 0, sleepers: 0 }
    }

    /// A space was put at the end of the list.
    fn added(&mut self, place: Place) {
        if self.tail == Tail::End {
            self.tail = Tail::Before(place);
        }
    }

    /// A space leaves the list, from which it has been taken.
    fn removed(&mut self, list: &MmList, place: Place) {
        if self.head == Some(place) {
            let at = list.spaces.partition_point(|(p, _)| *p < place);
            self.head = at.checked_sub(1).map(|before| list.spaces[before].0);
        }
        if self.tail == Tail::Before(place) {
            self.tail = list.after(Some(place)).map_or(Tail::End, |(next, _)| Tail::Before(next));
        }
    }

    /// The space that leaves the list was the last one of an iteration of several walkers, which ends with that.
    fn ends_without(&mut self, list: &MmList, max_seq: u64) {
        if self.walkers > 0 && self.seq < max_seq && list.after(self.head).is_none() {
            self.seq += 1;
        }
    }

    /// The next space of the iteration for generation `seq`. `force_scan` is set from the first new space on; `ran` says
    /// whether a space has run since it was last taken, and takes note that it is.
    pub(super) fn next(
        &mut self,
        list: &MmList,
        seq: u64,
        force_scan: &mut bool,
        mut ran: impl FnMut(SpaceId) -> bool,
    ) -> Next {
        if seq <= self.seq {
            return Next::Nothing;
        }
        let first = self.head.is_none();
        match self.take(list, force_scan, &mut ran) {
            Some((place, space)) => Next::Space { place, space, first },
            None => {
                self.head = None;
                self.seq += 1;
                Next::Last
            }
        }
    }

    /// The same in 6.1; `holds` says whether the walker is through with a space of this iteration.
    pub(super) fn next_of_several(
        &mut self,
        list: &MmList,
        (seq, holds): (u64, bool),
        force_scan: &mut bool,
        mut ran: impl FnMut(SpaceId) -> bool,
    ) -> Next {
        let stale = seq <= self.seq;
        let first = self.walkers == 0;
        let mut taken = None;
        if !stale {
            if first {
                self.head = None;
            }
            taken = self.take(list, force_scan, &mut ran);
            self.seq += u64::from(list.after(self.head).is_none());
        }
        self.walkers = self.walkers + u32::from(taken.is_some()) - u32::from(holds);
        match taken {
            Some((place, space)) => Next::Space { place, space, first },
            None if self.walkers == 0 && (holds || !stale) => Next::Last,
            None => Next::Nothing,
        }
    }

    /// Takes the next space that is to be walked.
    fn take(
        &mut self,
        list: &MmList,
        force_scan: &mut bool,
        ran: &mut impl FnMut(SpaceId) -> bool,
    ) -> Option<(Place, SpaceId)> {
        loop {
            let (place, space) = list.after(self.head)?;
            self.head = Some(place);
            if self.tail == Tail::Never || self.tail == Tail::Before(place) {
                self.tail = list.after(Some(place)).map_or(Tail::End, |(next, _)| Tail::Before(next));
                *force_scan = true;
            }
            let has_run = ran(space);
            if has_run || *force_scan {
                return Some((place, space));
            }
        }
    }

    /// Completes a generation without a walk (`iterate_mm_list_nowalk()`); false if others have, or walk still.
    pub(super) fn skip(&mut self, seq: u64) -> bool {
        let completes = seq > self.seq && self.walkers == 0;
        if completes {
            *self = MmState { sleepers: self.sleepers, ..MmState::new(self.seq + 1) };
        }
        completes
    }
}

impl crate::Mm {
    /// Puts a new space on the list of those that the aging walks (`lru_gen_add_mm()`).
    pub(crate) fn lru_gen_add_mm(&mut self, space: SpaceId) {
        if self.lru_gen_enabled() {
            let memcg = self.spaces[space].memcg;
            let lists = &mut self.spaces.mm_lists;
            if lists.len() <= memcg.index() {
                lists.resize_with(memcg.index() + 1, MmList::default);
            }
            let place = lists[memcg.index()].add(space);
            self.mm_states(memcg).for_each(|(state, ..)| state.added(place));
        }
    }

    /// A CPU turns to a thread of a space (`lru_gen_use_mm()`).
    pub fn lru_gen_use_mm(&mut self, space: SpaceId) {
        self.spaces[space].lru_gen_ran = u64::MAX;
    }

    /// Takes a space off that list (`lru_gen_del_mm()`).
    pub(crate) fn lru_gen_del_mm(&mut self, space: SpaceId, memcg: MemcgId) {
        let Some(list) = self.spaces.mm_lists.get_mut(memcg.index()) else { return };
        if let Some(at) = list.place_of(space) {
            let (place, _) = list.spaces.remove(at);
            let several = self.rules.lru_policy == LruPolicy::MultiGenByKswapd;
            self.mm_states(memcg).for_each(|(state, list, max_seq)| {
                state.removed(list, place);
                if several {
                    state.ends_without(list, max_seq);
                }
            });
        }
    }

    /// The places of all walkers of a group, each with its list and the youngest generation.
    fn mm_states(&mut self, memcg: MemcgId) -> impl Iterator<Item = (&mut MmState, &MmList, u64)> {
        let list = &self.spaces.mm_lists[memcg.index()];
        let lruvecs = self.nodes.iter_mut().map(move |node| &mut node.lruvecs[memcg.index()]);
        let lrugens = lruvecs.filter_map(|lruvec| lruvec.lru_gen.as_deref_mut());
        lrugens.map(move |lrugen| (&mut lrugen.mm_state, list, lrugen.max_seq))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(spaces: &[u32]) -> MmList {
        let mut list = MmList::default();
        spaces.iter().for_each(|space| {
            list.add(SpaceId(*space));
        });
        list
    }

    /// One whole iteration: the spaces walked, `!` where they are walked in full.
    fn iterate(state: &mut MmState, list: &MmList, seq: u64, ran: &[u32]) -> String {
        let (mut force, mut out) = (false, String::new());
        loop {
            match state.next(list, seq, &mut force, |space| ran.contains(&space.0)) {
                Next::Space { space, first, .. } => {
                    let (begin, mark) = (if first { "" } else { " " }, if force { "!" } else { "" });
                    out += &format!("{begin}{}{mark}", space.0);
                }
                Next::Last => return out,
                Next::Nothing => return out + " stale",
            }
        }
    }

    #[test]
    fn the_first_iteration_and_what_is_new_are_walked_in_full() {
        let (mut list, mut state) = (list(&[1, 2, 3]), MmState::new(2));
        assert_eq!(iterate(&mut state, &list, 3, &[]), "1! 2! 3!");
        assert_eq!(state.seq, 3);
        assert_eq!(iterate(&mut state, &list, 3, &[1]), " stale", "this generation is complete");
        assert_eq!(iterate(&mut state, &list, 4, &[1, 3]), "1 3", "2 has not run");
        let place = list.add(SpaceId(4));
        state.added(place);
        assert_eq!(iterate(&mut state, &list, 5, &[3]), "3 4!");
        assert_eq!(iterate(&mut state, &list, 6, &[4]), "4");
    }

    #[test]
    fn a_space_that_ends_leaves_the_iteration_where_it_was() {
        let (mut list, mut state) = (list(&[1, 2, 3]), MmState::new(2));
        iterate(&mut state, &list, 3, &[]);
        let mut force = false;
        let ran = |_| true;
        let Next::Space { place, first: true, .. } = state.next(&list, 4, &mut force, ran) else { panic!("a space") };
        assert!(list.holds(place, SpaceId(1)));
        list.spaces.remove(0);
        state.removed(&list, place);
        let next = state.next(&list, 4, &mut force, ran);
        assert!(matches!(next, Next::Space { space: SpaceId(2), first: true, .. }), "{next:?}");
        let (place, _) = list.spaces.remove(0);
        state.removed(&list, place);
        assert!(matches!(state.next(&list, 4, &mut force, ran), Next::Space { space: SpaceId(3), .. }));
        assert_eq!(state.next(&list, 4, &mut force, ran), Next::Last);
        assert!(!force && state.seq == 4);
    }

    fn take_of_several(state: &mut MmState, list: &MmList, seq: u64, holds: bool) -> Next {
        state.next_of_several(list, (seq, holds), &mut false, |_| true)
    }

    #[test]
    fn the_last_of_several_walkers_completes_the_generation() {
        let (list, mut state) = (list(&[1, 2]), MmState::new(2));
        let space = |next| matches!(next, Next::Space { .. });
        assert!(space(take_of_several(&mut state, &list, 3, false)));
        assert_eq!(state.seq, 2);
        assert!(space(take_of_several(&mut state, &list, 3, false)), "another one takes the second space");
        assert_eq!((state.seq, state.walkers), (3, 2), "the iteration ends as its last space is taken");
        assert_eq!(take_of_several(&mut state, &list, 3, false), Next::Nothing, "a third one finds nothing to do");
        assert!(!state.skip(3) && !state.skip(4), "nor may anyone begin a generation without a walk");
        assert_eq!(take_of_several(&mut state, &list, 3, true), Next::Nothing, "one of the two still walks");
        assert_eq!(take_of_several(&mut state, &list, 3, true), Next::Last);
        assert!(matches!(take_of_several(&mut state, &list, 4, false), Next::Space { first: true, .. }));
    }

    #[test]
    fn an_iteration_of_several_ends_as_its_last_space_leaves() {
        let (mut list, mut state) = (list(&[1, 2]), MmState::new(2));
        assert!(matches!(take_of_several(&mut state, &list, 3, false), Next::Space { first: true, .. }));
        let (place, _) = list.spaces.pop().expect("the second");
        state.removed(&list, place);
        state.ends_without(&list, 3);
        assert_eq!(state.seq, 3);
        assert_eq!(take_of_several(&mut state, &list, 3, true), Next::Last);
    }

    #[test]
    fn a_list_of_spaces_that_have_not_run_is_through_at_once() {
        let (list, mut state) = (list(&[1, 2]), MmState::new(2));
        state.tail = Tail::End;
        assert_eq!(state.next_of_several(&list, (3, false), &mut false, |_| false), Next::Last);
        assert_eq!((state.seq, state.walkers), (3, 0));
    }

    #[test]
    fn a_generation_can_be_completed_without_a_walk_once() {
        let mut state = MmState::new(2);
        assert!(state.skip(3) && !state.skip(3));
        assert_eq!(iterate(&mut state, &list(&[1]), 4, &[]), "1!", "nobody knows what was walked");
    }
}
