//! The LRU of groups that 6.12's multi-gen LRU goes through.
//!
//! Rule: the groups of a node are in the present generation or the next one, each in one of 8 bins drawn at random. Global
//! reclaim goes through the bins of the present generation, from a random one on. A group that had to be aged has given
//! enough and moves to the next generation, one that is protected or gave nothing gets another chance at the tail; once
//! the present generation is empty, the next one is the present one.
//! Source: `shrink_many()`, `lru_gen_rotate_memcg()`, `lru_gen_online_memcg()` (mm/vmscan.c), `struct lru_gen_memcg`
//! (include/linux/mmzone.h); 6.12.
//! Since/until: [`rules::LruPolicy::MultiGen`], since e4dde56cd208 (6.3).
//! Abstracted: the draws come from a sequence of their own, which is the same in every run.

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use units::MemcgId;

/// Bins of a generation (`MEMCG_NR_BINS`).
pub(crate) const NR_BINS: usize = 8;
/// Generations (`MEMCG_NR_GENS`): a third one for groups that are being moved.
const NR_GENS: u64 = 3;

/// Where a group goes (`MEMCG_LRU_*`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rotate {
    /// To the tail of its generation: another chance.
    Tail,
    /// To the next generation.
    Young,
}

/// Place of a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Place {
    generation: u64,
    bin: usize,
    /// It was put at the tail and has not been young since (`lrugen->seg`).
    at_tail: bool,
}

/// Groups of a node by generation and bin (`pgdat->memcg_lru`).
#[derive(Clone, Debug)]
pub struct Fifo {
    seq: u64,
    lists: [[Vec<MemcgId>; NR_BINS]; NR_GENS as usize],
    places: Vec<Place>,
    draws: SplitMix64,
}

impl Default for Fifo {
    /// Only the root group.
    fn default() -> Fifo {
        let mut fifo =
            Fifo { seq: 0, lists: Default::default(), places: Vec::new(), draws: SplitMix64::seed_from_u64(0) };
        fifo.add(0);
        fifo
    }
}

impl Fifo {
    /// A new group, at the tail of the present generation.
    pub(crate) fn add(&mut self, memcg: usize) {
        debug_assert_eq!(memcg, self.places.len());
        let place = Place { generation: self.seq, bin: self.draw_bin(), at_tail: false };
        self.places.push(place);
        self.list_mut(place.generation, place.bin).push(MemcgId(memcg as u16));
    }

    /// A bin at random.
    pub(crate) fn draw_bin(&mut self) -> usize {
        (self.draws.next_u64() >> (u64::BITS - NR_BINS.ilog2())) as usize
    }

    fn list_mut(&mut self, generation: u64, bin: usize) -> &mut Vec<MemcgId> {
        &mut self.lists[(generation % NR_GENS) as usize][bin]
    }

    /// The present generation.
    pub(crate) fn seq(&self) -> u64 {
        self.seq
    }

    /// The group in a bin of a generation that comes after another one; the first one without that.
    pub(crate) fn after(&self, generation: u64, bin: usize, previous: Option<MemcgId>) -> Option<MemcgId> {
        let list = &self.lists[(generation % NR_GENS) as usize][bin];
        let at = match previous {
            None => 0,
            Some(id) => 1 + list.iter().position(|other| *other == id)?,
        };
        list.get(at).copied()
    }

    /// Whether a group is at the tail already.
    pub(crate) fn at_tail(&self, memcg: MemcgId) -> bool {
        self.places[memcg.index()].at_tail
    }

    /// Moves a group (`lru_gen_rotate_memcg()`).
    pub(crate) fn rotate(&mut self, memcg: MemcgId, to: Rotate) {
        let old = self.places[memcg.index()];
        let generation = if to == Rotate::Young { self.seq + 1 } else { old.generation };
        let place = Place { generation, bin: self.draw_bin(), at_tail: to == Rotate::Tail };
        self.list_mut(old.generation, old.bin).retain(|id| *id != memcg);
        self.list_mut(place.generation, place.bin).push(memcg);
        self.places[memcg.index()] = place;
        let empty = self.lists[(self.seq % NR_GENS) as usize].iter().all(Vec::is_empty);
        if old.generation == self.seq && empty {
            self.seq += 1;
        }
    }

    /// Whether each of so many groups is in its list, and in no other.
    pub(crate) fn is_sound(&self, groups: usize) -> bool {
        let listed: usize = self.lists.iter().flatten().map(Vec::len).sum();
        let at_home = self.places.iter().enumerate().all(|(id, place)| {
            let list = &self.lists[(place.generation % NR_GENS) as usize][place.bin];
            list.contains(&MemcgId(id as u16)) && (self.seq..=self.seq + 1).contains(&place.generation)
        });
        listed == groups && self.places.len() == groups && at_home
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Groups in the order of one round over a generation.
    fn round(fifo: &Fifo, generation: u64) -> Vec<MemcgId> {
        let mut all: Vec<MemcgId> = (0..NR_BINS)
            .flat_map(|bin| {
                let next = move |id: &MemcgId| fifo.after(generation, bin, Some(*id));
                std::iter::successors(fifo.after(generation, bin, None), next)
            })
            .collect();
        all.sort();
        all
    }

    #[test]
    fn a_generation_ends_when_its_last_group_is_young() {
        let mut fifo = Fifo::default();
        (1..4).for_each(|id| fifo.add(id));
        let all: Vec<MemcgId> = (0..4).map(MemcgId).collect();
        assert_eq!(round(&fifo, 0), all);
        for id in &all[..3] {
            fifo.rotate(*id, Rotate::Young);
            assert_eq!(fifo.seq(), 0);
        }
        assert_eq!((round(&fifo, 0), round(&fifo, 1)), (all[3..].to_vec(), all[..3].to_vec()));
        fifo.rotate(all[3], Rotate::Tail);
        assert!(fifo.at_tail(all[3]) && fifo.seq() == 0);
        fifo.rotate(all[3], Rotate::Young);
        assert_eq!((fifo.seq(), round(&fifo, 1)), (1, all));
        assert!(fifo.is_sound(4));
    }
}
