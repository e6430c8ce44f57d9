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

/// A record that can be on lists.
pub(super) trait Linked {
    /// Its place on the `n`th kind of list.
    fn link(&self, n: usize) -> Link;
    /// The same, to change.
    fn link_mut(&mut self, n: usize) -> &mut Link;
}

/// A list; `N` says which of a record's links it runs through.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lru<const N: usize> {
    head: u32,
    tail: u32,
    len: u32,
}

impl<const N: usize> Lru<N> {
    pub(super) const EMPTY: Lru<N> = Lru { head: NONE, tail: NONE, len: 0 };

    pub(super) fn len(&self) -> u32 {
        self.len
    }

    pub(super) fn front(&self) -> Option<u32> {
        (self.head != NONE).then_some(self.head)
    }

    pub(super) fn push_back<T: Linked>(&mut self, table: &mut [T], id: u32) {
        debug_assert!(table[id as usize].link(N) == Link::NONE && self.head != id, "{id} is on a list");
        *table[id as usize].link_mut(N) = Link { prev: self.tail, next: NONE };
        match self.tail {
            NONE => self.head = id,
            tail => table[tail as usize].link_mut(N).next = id,
        }
        self.tail = id;
        self.len += 1;
    }

    pub(super) fn remove<T: Linked>(&mut self, table: &mut [T], id: u32) {
        let Link { prev, next } = std::mem::replace(table[id as usize].link_mut(N), Link::NONE);
        match prev {
            NONE => {
                debug_assert!(self.head == id, "{id} is not on this list");
                self.head = next;
            }
            _ => table[prev as usize].link_mut(N).next = next,
        }
        match next {
            NONE => self.tail = prev,
            _ => table[next as usize].link_mut(N).prev = prev,
        }
        self.len -= 1;
    }

    pub(super) fn rotate<T: Linked>(&mut self, table: &mut [T], id: u32) {
        self.remove(table, id);
        self.push_back(table, id);
    }

    pub(super) fn iter<'a, T: Linked>(&self, table: &'a [T]) -> impl Iterator<Item = u32> + 'a {
        let mut at = self.head;
        std::iter::from_fn(move || {
            let id = at;
            (id != NONE).then(|| {
                at = table[id as usize].link(N).next;
                id
            })
        })
    }
}
