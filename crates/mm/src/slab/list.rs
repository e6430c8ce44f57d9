//! A list of slabs, linked through them.

use super::table::Table;
use super::{NONE, Place, Slab};

/// Slabs of a node, from the one that is used first to the one that is used last.
#[derive(Clone, Copy, Debug)]
pub(super) struct List {
    pub(super) head: u32,
    pub(super) tail: u32,
    pub(super) len: u32,
}

impl List {
    pub(super) const EMPTY: List = List { head: NONE, tail: NONE, len: 0 };

    /// The first slab.
    #[inline]
    pub(super) fn first(&self) -> Option<u32> {
        (self.head != NONE).then_some(self.head)
    }

    /// Puts a slab that is on no list on this one, first or last, and says in it where that is.
    pub(super) fn add(&mut self, slabs: &mut Table, number: u32, place: Place, first: bool) {
        self.len += 1;
        let (prev, next) = if first { (NONE, self.head) } else { (self.tail, NONE) };
        match prev {
            NONE => self.head = number,
            _ => slabs[prev].next = number,
        }
        match next {
            NONE => self.tail = number,
            _ => slabs[next].prev = number,
        }
        let slab = &mut slabs[number];
        (slab.prev, slab.next, slab.place) = (prev, next, place);
    }

    /// Takes a slab off.
    pub(super) fn remove(&mut self, slabs: &mut Table, number: u32) {
        let Slab { prev, next, .. } = slabs[number];
        self.len -= 1;
        match prev {
            NONE => self.head = next,
            _ => slabs[prev].next = next,
        }
        match next {
            NONE => self.tail = prev,
            _ => slabs[next].prev = prev,
        }
    }

    /// Free objects of its slabs.
    pub(super) fn free_objects(&self, slabs: &Table) -> u64 {
        let free = |number: u32| u64::from(slabs.free_objects(number));
        std::iter::successors(self.first(), |at| Some(slabs[*at].next).filter(|next| *next != NONE)).map(free).sum()
    }

    /// Walks the list of a node and says what is wrong; how many slabs there are.
    pub(super) fn check(&self, slabs: &Table, node: usize, place: Place, wrong: &mut impl FnMut(String)) -> usize {
        let (mut number, mut prev, mut len) = (self.head, NONE, 0);
        while number != NONE && len <= self.len {
            let slab = &slabs[number];
            if slab.place != place || slab.prev != prev || slab.node.index() != node {
                wrong(format!("slab {number} is listed: {slab:?}"));
            }
            (prev, number, len) = (number, slab.next, len + 1);
        }
        if len != self.len || prev != self.tail {
            wrong(format!("node {node} lists {} slabs, recounted {len}", self.len));
        }
        len as usize
    }
}
