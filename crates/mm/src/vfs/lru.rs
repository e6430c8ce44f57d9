//! Lists through dense tables by 32-bit links (`list_lru`, and the list of reclaimable inodes).
//!
//! Rule: a new item goes to the tail; the walk starts at the head. Source: mm/list_lru.c, 4.20.
//! Abstracted: locks. Omitted: a list for each cgroup.

/// No item.
pub(super) const NONE: u32 = u32::MAX;

/// Neighbours on a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Link {
    pub(super) prev: u32,
    pub(super) next: u32,
}

impl Link {
    pub(super) const NONE: Link = Link { prev: NONE, next: NONE };
}

/// A table of the links of items, each of which is on one list at most.
pub(super) trait Linked {
    /// Neighbours of an item.
    fn link(&self, id: u32) -> Link;
    /// The same, to change.
    fn link_mut(&mut self, id: u32) -> &mut Link;
    /// An item is about to be put on a list.
    fn joins(&mut self, _id: u32) {}
    /// An item was taken off.
    fn left(&mut self, _id: u32) {}
}

/// Items whose links lie together.
const CHUNK: usize = 64;

/// Links of some items.
#[derive(Debug)]
struct Chunk {
    /// Items on a list.
    listed: u32,
    links: [Link; CHUNK],
}

/// The links of items that mostly are on no list, such as the files that a program has open: where a chunk of items has none on
/// a list, it takes no room.
#[derive(Debug, Default)]
pub(super) struct Links {
    chunks: Vec<Option<Box<Chunk>>>,
    present: usize,
}

impl Links {
    pub(super) fn host_bytes(&self) -> usize {
        self.chunks.capacity() * size_of::<Option<Box<Chunk>>>() + self.present * size_of::<Chunk>()
    }
}

impl Linked for Links {
    #[inline]
    fn link(&self, id: u32) -> Link {
        let chunk = self.chunks.get(id as usize / CHUNK).and_then(Option::as_ref);
        chunk.map_or(Link::NONE, |chunk| chunk.links[id as usize % CHUNK])
    }

    #[inline]
    fn link_mut(&mut self, id: u32) -> &mut Link {
        let chunk = self.chunks[id as usize / CHUNK].as_mut().expect("an item on a list has a link");
        &mut chunk.links[id as usize % CHUNK]
    }

    fn joins(&mut self, id: u32) {
        let at = id as usize / CHUNK;
        if at >= self.chunks.len() {
            self.chunks.resize_with(at + 1, || None);
        }
        let chunk = self.chunks[at].get_or_insert_with(|| {
            self.present += 1;
            Box::new(Chunk { listed: 0, links: [Link::NONE; CHUNK] })
        });
        chunk.listed += 1;
    }

    fn left(&mut self, id: u32) {
        let chunk = &mut self.chunks[id as usize / CHUNK];
        let listed = &mut chunk.as_mut().expect("it was on a list").listed;
        *listed -= 1;
        if *listed == 0 {
            *chunk = None;
            self.present -= 1;
        }
    }
}

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
        table.joins(id);
        *table.link_mut(id) = Link { prev: self.tail, next: NONE };
        match self.tail {
            NONE => self.head = id,
            tail => table.link_mut(tail).next = id,
        }
        self.tail = id;
        self.len += 1;
    }

    pub(super) fn remove(&mut self, table: &mut impl Linked, id: u32) {
        let Link { prev, next } = std::mem::replace(table.link_mut(id), Link::NONE);
        table.left(id);
        match prev {
            NONE => {
                debug_assert!(self.head == id, "{id} is not on this list");
                self.head = next;
            }
            _ => table.link_mut(prev).next = next,
        }
        match next {
            NONE => self.tail = prev,
            _ => table.link_mut(next).prev = prev,
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

    proptest! {
        #[test]
        fn lists_keep_their_order_and_links_of_no_item_take_no_room(
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
                let chunks: std::collections::BTreeSet<u32> = model.iter().map(|id| id / 64).collect();
                prop_assert_eq!(links.present, chunks.len());
            }
        }
    }
}
