//! Objects that are to be freed together, remembered in few bytes.
//!
//! Objects that follow each other in their cache are one entry: new slabs give theirs in order, so that a million objects that were
//! allocated in a row take some ten bytes for each of their slabs. What SLAB's arrays got back in order they give in the opposite one.

use super::{CacheId, Obj};
use units::table;

/// Entries, the newest first, of which one may go on: callers allocate from a few caches in turn.
const OPEN: usize = 6;

/// Objects of a cache that follow each other, upwards or downwards.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Run {
    first: Obj,
    /// From the first to the last, which is below it if this is negative.
    reach: i16,
    cache: CacheId,
}

impl Run {
    /// The run with one object more, if that follows the last one.
    fn with(self, obj: Obj) -> Option<Run> {
        let reach = i16::try_from(i64::from(obj.0) - i64::from(self.first.0)).ok()?;
        let step = i32::from(reach) - i32::from(self.reach);
        let goes_on = if self.reach == 0 { step.abs() == 1 } else { step == i32::from(self.reach.signum()) };
        goes_on.then_some(Run { reach, ..self })
    }

    /// Its objects, in the order in which they came.
    fn objects(self) -> impl Iterator<Item = (CacheId, Obj)> {
        let step = i32::from(self.reach.signum());
        let at = move |n: u16| self.first.0.wrapping_add_signed(step * i32::from(n));
        (0..=self.reach.unsigned_abs()).map(move |n| (self.cache, Obj(at(n))))
    }
}

/// Objects of any caches.
#[derive(Debug, Default)]
pub struct ObjectRuns {
    runs: Vec<Run>,
}

impl ObjectRuns {
    /// Adds an object.
    pub(crate) fn push(&mut self, cache: CacheId, obj: Obj) {
        debug_assert!(obj.is_some());
        let open = self.runs.len().saturating_sub(OPEN);
        let last = self.runs[open..].iter_mut().rev().find(|run| run.cache == cache);
        match last.and_then(|run| run.with(obj).map(|longer| (run, longer))) {
            Some((run, longer)) => *run = longer,
            None => table::push(&mut self.runs, Run { first: obj, reach: 0, cache }),
        }
    }

    /// Adds what another one has, which is empty then.
    pub(crate) fn append(&mut self, other: &mut ObjectRuns) {
        if self.runs.is_empty() {
            std::mem::swap(&mut self.runs, &mut other.runs);
        } else {
            self.runs.append(&mut other.runs);
        }
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (CacheId, Obj)> + '_ {
        self.runs.iter().flat_map(|run| run.objects())
    }

    pub(crate) fn host_bytes(&self) -> usize {
        self.runs.capacity() * size_of::<Run>()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn neighbours_of_a_few_caches_in_turn_are_an_entry_each() {
        let mut runs = ObjectRuns::default();
        for n in 0..100 {
            runs.push(CacheId(1), Obj(n));
            runs.push(CacheId(2), Obj(500 + n));
        }
        assert_eq!(runs.runs.len(), 2);
        runs.push(CacheId(2), Obj(7));
        assert_eq!(runs.runs.len(), 3, "one from another slab begins another entry");
        (1..=5).rev().for_each(|n| runs.push(CacheId(2), Obj(n)));
        assert_eq!(runs.runs.len(), 4, "downwards, too");
        assert!(runs.iter().skip(201).map(|(_, obj)| obj.0).eq([5, 4, 3, 2, 1]), "in the order in which they came");
    }

    proptest! {
        #[test]
        fn none_is_lost(objects in proptest::collection::vec((0u16..4, 0u32..12), 0..80), split in 0usize..80) {
            let (mut runs, mut rest) = (ObjectRuns::default(), ObjectRuns::default());
            for (n, (cache, obj)) in objects.iter().enumerate() {
                let part = if n < split { &mut runs } else { &mut rest };
                part.push(CacheId(*cache), Obj(*obj));
            }
            runs.append(&mut rest);
            prop_assert!(rest.is_empty() && runs.is_empty() == objects.is_empty());
            let mut found: Vec<(u16, u32)> = runs.iter().map(|(cache, obj)| (cache.0, obj.0)).collect();
            let mut expected = objects;
            found.sort_unstable();
            expected.sort_unstable();
            prop_assert_eq!(found, expected);
        }
    }
}
