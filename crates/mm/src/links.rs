//! Neighbours on lists of what has numbers.

use crate::column::Column;
use crate::table;

/// No item.
pub(crate) const NONE: u32 = u32::MAX;

/// Neighbours on a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Link {
    pub(crate) prev: u32,
    pub(crate) next: u32,
}

impl Link {
    pub(crate) const NONE: Link = Link { prev: NONE, next: NONE };
}

/// A table of the links of items, each of which is on one list at most.
pub(crate) trait Linked {
    /// Neighbours of an item.
    fn link(&self, id: u32) -> Link;
    /// Sets them.
    fn set_link(&mut self, id: u32, link: Link);
}

/// The links of items that mostly are on no list, such as the files that a program has open, and are listed in about the order of
/// their numbers, such as the files that it closes: 2 to 4 bytes each then.
#[derive(Debug, Default)]
pub(crate) struct Links {
    /// Items with a neighbour, a bit each.
    linked: Vec<u64>,
    /// Neighbours; who has none on a side stands for it himself, as he is near.
    prev: Column,
    next: Column,
}

impl Links {
    /// Host bytes.
    pub(crate) fn host_bytes(&self) -> usize {
        self.linked.capacity() * size_of::<u64>() + self.prev.host_bytes() + self.next.host_bytes()
    }
}

/// Word and bit of an item.
#[inline]
fn place(id: u32) -> (usize, u64) {
    ((id / u64::BITS) as usize, 1 << (id % u64::BITS))
}

impl Linked for Links {
    #[inline]
    fn link(&self, id: u32) -> Link {
        let (word, bit) = place(id);
        if self.linked.get(word).is_none_or(|linked| linked & bit == 0) {
            return Link::NONE;
        }
        let but_itself = |neighbour| if neighbour == id { NONE } else { neighbour };
        Link { prev: but_itself(self.prev.get(id)), next: but_itself(self.next.get(id)) }
    }

    #[inline]
    fn set_link(&mut self, id: u32, link: Link) {
        let (word, bit) = place(id);
        if word >= self.linked.len() {
            table::grow(&mut self.linked, word + 1, 0);
        }
        let before = self.linked[word];
        if link == Link::NONE {
            self.linked[word] = before & !bit;
            if before == bit {
                [&mut self.prev, &mut self.next].into_iter().for_each(|column| column.fill(id, 0));
            }
            return;
        }
        self.linked[word] = before | bit;
        let or_itself = |neighbour| if neighbour == NONE { id } else { neighbour };
        for (column, neighbour) in [(&mut self.prev, link.prev), (&mut self.next, link.next)] {
            match before {
                // What was there has nothing to do with it.
                0 => column.fill(id, or_itself(neighbour)),
                _ => column.set(id, or_itself(neighbour)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_listed_in_their_order_take_few_bytes_and_none_when_they_are_gone() {
        let mut links = Links::default();
        let none = |neighbour: Option<u32>| neighbour.unwrap_or(NONE);
        let linked =
            |id: u32| Link { prev: none(id.checked_sub(1)), next: none(Some(id + 1).filter(|next| *next < 8192)) };
        (0..8192).for_each(|id| links.set_link(id, linked(id)));
        assert!((0..8192).all(|id| links.link(id) == linked(id)) && links.link(8192) == Link::NONE);
        // 65 numbers in each direction are 8 bits; beside there are 8 bytes and a bit in three tables for 64.
        assert!(links.host_bytes() < 8192 * 5 / 2, "{} bytes", links.host_bytes());
        (0..8192).for_each(|id| links.set_link(id, Link::NONE));
        assert!(links.host_bytes() < 8192 / 2, "{} bytes", links.host_bytes());
    }
}
