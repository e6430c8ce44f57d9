//! Lists through dense tables by 32-bit links (`list_lru`, and the list of reclaimable inodes).
//!
//! Rule: a new item goes to the tail; the walk starts at the head. Source: mm/list_lru.c, 4.20.
//! Abstracted: locks. Omitted: a list for each cgroup.

use crate::links::{Link, Linked, NONE};

/// A list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lru {
    head: u32,
    tail: u32,
    len: u32,
}

impl Lru {
    pub(super) const EMPTY: Lru = Lru { head: NONE, tail: NONE, len: 0 };

    pub(super) fn len(&self) -> u32 {
        self.len
    }

    pub(super) fn front(&self) -> Option<u32> {
        (self.head != NONE).then_some(self.head)
    }

    pub(super) fn push_back(&mut self, table: &mut impl Linked, id: u32) {
        debug_assert!(table.link(id) == Link::NONE && self.head != id, "{id} is on a list");
        table.set_link(id, Link { prev: self.tail, next: NONE });
        match self.tail {
            NONE => self.head = id,
            tail => table.set_link(tail, Link { next: id, ..table.link(tail) }),
        }
        self.tail = id;
        self.len += 1;
    }

    pub(super) fn remove(&mut self, table: &mut impl Linked, id: u32) {
        let Link { prev, next } = table.link(id);
        table.set_link(id, Link::NONE);
        match prev {
            NONE => {
                debug_assert!(self.head == id, "{id} is not on this list");
                self.head = next;
            }
            _ => table.set_link(prev, Link { next, ..table.link(prev) }),
        }
        match next {
            NONE => self.tail = prev,
            _ => table.set_link(next, Link { prev, ..table.link(next) }),
        }
        self.len -= 1;
    }

    pub(super) fn rotate(&mut self, table: &mut impl Linked, id: u32) {
        self.remove(table, id);
        self.push_back(table, id);
    }

    pub(super) fn iter<'a>(&self, table: &'a impl Linked) -> impl Iterator<Item = u32> + 'a {
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

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;
    use crate::links::Links;

    proptest! {
        #[test]
        fn lists_keep_their_order(
            ops in proptest::collection::vec((0u8..3, 0u32..300), 1..200),
        ) {
            let (mut links, mut list, mut model) = (Links::default(), Lru::EMPTY, VecDeque::new());
            for (op, id) in ops {
                let at = model.iter().position(|listed| *listed == id);
                match (op, at) {
                    (0, None) => {
                        list.push_back(&mut links, id);
                        model.push_back(id);
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
                prop_assert_eq!(list.iter(&links).collect::<VecDeque<_>>(), model.clone());
            }
        }
    }
}
