//! Lists of what has numbers, and the neighbours on them.

use crate::column::{self, Column};
use units::table;

/// No item.
pub(crate) const NONE: u32 = u32::MAX;

/// Neighbours on a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Link {
    pub(crate) prev: u32,
    pub(crate) next: u32,
}

impl Default for Link {
    fn default() -> Link {
        Link::NONE
    }
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

    /// Sets one of them, of an item that is on a list.
    #[inline]
    fn set_prev(&mut self, id: u32, prev: u32) {
        self.set_link(id, Link { prev, ..self.link(id) });
    }

    /// Sets the other one.
    #[inline]
    fn set_next(&mut self, id: u32, next: u32) {
        self.set_link(id, Link { next, ..self.link(id) });
    }
}

/// A list of items, through a table of their links.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct IdList {
    head: u32,
    tail: u32,
    len: u32,
}

impl IdList {
    pub(crate) const EMPTY: IdList = IdList { head: NONE, tail: NONE, len: 0 };

    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    pub(crate) fn front(&self) -> Option<u32> {
        (self.head != NONE).then_some(self.head)
    }

    pub(crate) fn back(&self) -> Option<u32> {
        (self.tail != NONE).then_some(self.tail)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn push_back(&mut self, table: &mut impl Linked, id: u32) {
        debug_assert!(table.link(id) == Link::NONE && self.head != id, "{id} is on a list");
        table.set_link(id, Link { prev: self.tail, next: NONE });
        match self.tail {
            NONE => self.head = id,
            tail => table.set_next(tail, id),
        }
        self.tail = id;
        self.len += 1;
    }

    pub(crate) fn push_front(&mut self, table: &mut impl Linked, id: u32) {
        debug_assert!(table.link(id) == Link::NONE && self.head != id, "{id} is on a list");
        table.set_link(id, Link { prev: NONE, next: self.head });
        match self.head {
            NONE => self.tail = id,
            head => table.set_prev(head, id),
        }
        self.head = id;
        self.len += 1;
    }

    pub(crate) fn remove(&mut self, table: &mut impl Linked, id: u32) {
        let Link { prev, next } = table.link(id);
        table.set_link(id, Link::NONE);
        match prev {
            NONE => {
                debug_assert!(self.head == id, "{id} is not on this list");
                self.head = next;
            }
            _ => table.set_next(prev, next),
        }
        match next {
            NONE => self.tail = prev,
            _ => table.set_prev(next, prev),
        }
        self.len -= 1;
    }

    pub(crate) fn rotate(&mut self, table: &mut impl Linked, id: u32) {
        self.remove(table, id);
        self.push_back(table, id);
    }

    pub(crate) fn iter<'a>(&self, table: &'a impl Linked) -> impl Iterator<Item = u32> + 'a {
        let mut at = self.head;
        std::iter::from_fn(move || {
            let id = at;
            (id != NONE).then(|| {
                at = table.link(id).next;
                id
            })
        })
    }
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
    /// Whether an item has a neighbour.
    #[inline]
    fn is_linked(&self, id: u32) -> bool {
        let (word, bit) = place(id);
        self.linked.get(word).is_some_and(|linked| linked & bit != 0)
    }

    /// Host bytes.
    pub(crate) fn host_bytes(&self) -> usize {
        self.linked.capacity() * size_of::<u64>() + self.prev.host_bytes() + self.next.host_bytes()
    }
}

// A word's items are a group of both columns, so that the first of them to be listed and the last to go may fill it.
const _: () = assert!(u64::BITS == column::GROUP);

/// Word and bit of an item.
#[inline]
fn place(id: u32) -> (usize, u64) {
    ((id / u64::BITS) as usize, 1 << (id % u64::BITS))
}

impl Linked for Links {
    #[inline]
    fn link(&self, id: u32) -> Link {
        if !self.is_linked(id) {
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

    // The column of the other side is left alone where the item has a neighbour before and after.
    #[inline]
    fn set_prev(&mut self, id: u32, prev: u32) {
        if !self.is_linked(id) {
            self.set_link(id, Link { prev, next: NONE });
        } else if prev != NONE {
            self.prev.set(id, prev);
        } else if self.next.get(id) != id {
            self.prev.set(id, id);
        } else {
            self.set_link(id, Link::NONE);
        }
    }

    #[inline]
    fn set_next(&mut self, id: u32, next: u32) {
        if !self.is_linked(id) {
            self.set_link(id, Link { prev: NONE, next });
        } else if next != NONE {
            self.next.set(id, next);
        } else if self.prev.get(id) != id {
            self.next.set(id, id);
        } else {
            self.set_link(id, Link::NONE);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

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

    proptest! {
        #[test]
        fn lists_keep_their_order(
            ops in proptest::collection::vec((0u8..4, 0u32..300), 1..200),
        ) {
            let (mut links, mut list, mut model) = (Links::default(), IdList::EMPTY, VecDeque::new());
            for (op, id) in ops {
                let at = model.iter().position(|listed| *listed == id);
                match (op, at) {
                    (0, None) => {
                        list.push_back(&mut links, id);
                        model.push_back(id);
                    }
                    (3, None) => {
                        list.push_front(&mut links, id);
                        model.push_front(id);
                    }
                    (1, Some(at)) => {
                        list.remove(&mut links, id);
                        model.remove(at);
                    }
                    (2, Some(at)) => {
                        list.rotate(&mut links, id);
                        model.remove(at);
                        model.push_back(id);
                    }
                    _ => {}
                }
                prop_assert!(list.iter(&links).eq(model.iter().copied()));
                let ends = (model.front().copied(), model.back().copied());
                prop_assert_eq!((list.front(), list.back(), list.len() as usize), (ends.0, ends.1, model.len()));
                prop_assert_eq!(list.is_empty(), model.is_empty());
            }
        }
    }
}
