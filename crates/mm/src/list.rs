//! Doubly linked lists through the frame table (`struct list_head` of `page->lru`).

use units::Pfn;

use crate::Frames;

/// A list of frames; the links are in the frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct List {
    head: Pfn,
    tail: Pfn,
    len: u32,
}

impl Default for List {
    fn default() -> List {
        List::EMPTY
    }
}

impl List {
    /// No frame.
    pub const EMPTY: List = List { head: Pfn::NONE, tail: Pfn::NONE, len: 0 };

    /// First frame, or `Pfn::NONE`.
    #[inline]
    pub fn front(&self) -> Pfn {
        self.head
    }

    /// Last frame, or `Pfn::NONE`.
    #[inline]
    pub fn back(&self) -> Pfn {
        self.tail
    }

    /// Frames (list entries, not base pages) on it.
    #[inline]
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether nothing is on it.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Puts a frame that is on no list at the front.
    #[inline]
    pub fn push_front(&mut self, frames: &mut Frames, pfn: Pfn) {
        let old = self.head;
        let frame = &mut frames[pfn];
        debug_assert!(frame.prev == Pfn::NONE && frame.next == Pfn::NONE, "{pfn:?} is on a list already");
        frame.next = old;
        if old.is_some() {
            frames[old].prev = pfn;
        } else {
            self.tail = pfn;
        }
        self.head = pfn;
        self.len += 1;
    }

    /// Puts a frame that is on no list at the back.
    #[inline]
    pub fn push_back(&mut self, frames: &mut Frames, pfn: Pfn) {
        let old = self.tail;
        let frame = &mut frames[pfn];
        debug_assert!(frame.prev == Pfn::NONE && frame.next == Pfn::NONE, "{pfn:?} is on a list already");
        frame.prev = old;
        if old.is_some() {
            frames[old].next = pfn;
        } else {
            self.head = pfn;
        }
        self.tail = pfn;
        self.len += 1;
    }

    /// Puts a frame that is on no list in front of one that is on this list.
    #[inline]
    pub fn insert_before(&mut self, frames: &mut Frames, at: Pfn, pfn: Pfn) {
        let prev = frames[at].prev;
        if !prev.is_some() {
            return self.push_front(frames, pfn);
        }
        let frame = &mut frames[pfn];
        debug_assert!(frame.prev == Pfn::NONE && frame.next == Pfn::NONE, "{pfn:?} is on a list already");
        (frame.prev, frame.next) = (prev, at);
        frames[prev].next = pfn;
        frames[at].prev = pfn;
        self.len += 1;
    }

    /// Takes a frame that is on this list off it.
    #[inline]
    pub fn remove(&mut self, frames: &mut Frames, pfn: Pfn) {
        let frame = &mut frames[pfn];
        let (prev, next) = (frame.prev, frame.next);
        frame.prev = Pfn::NONE;
        frame.next = Pfn::NONE;
        if prev.is_some() {
            frames[prev].next = next;
        } else {
            debug_assert!(self.head == pfn, "{pfn:?} is not on this list");
            self.head = next;
        }
        if next.is_some() {
            frames[next].prev = prev;
        } else {
            debug_assert!(self.tail == pfn, "{pfn:?} is not on this list");
            self.tail = prev;
        }
        self.len -= 1;
    }

    /// Turns the list so that a frame on it is the first, in the same cyclic order.
    pub fn turn_to_front(&mut self, frames: &mut Frames, pfn: Pfn) {
        let before = frames[pfn].prev;
        if before.is_some() {
            self.turn(frames, before, pfn);
        }
    }

    /// Turns the list so that a frame on it is the last, in the same cyclic order.
    pub fn turn_to_back(&mut self, frames: &mut Frames, pfn: Pfn) {
        let after = frames[pfn].next;
        if after.is_some() {
            self.turn(frames, pfn, after);
        }
    }

    /// Cuts the list between two neighbours and joins its ends: `last` becomes the last frame, `first` the first.
    fn turn(&mut self, frames: &mut Frames, last: Pfn, first: Pfn) {
        debug_assert!(
            frames[last].next == first && frames[first].prev == last,
            "{last:?} and {first:?}: no neighbours"
        );
        frames[self.tail].next = self.head;
        frames[self.head].prev = self.tail;
        frames[last].next = Pfn::NONE;
        frames[first].prev = Pfn::NONE;
        (self.head, self.tail) = (first, last);
    }

    /// Takes the first frame off.
    #[inline]
    pub fn pop_front(&mut self, frames: &mut Frames) -> Option<Pfn> {
        let pfn = self.head;
        if !pfn.is_some() {
            return None;
        }
        self.remove(frames, pfn);
        Some(pfn)
    }

    /// Takes the last frame off.
    #[inline]
    pub fn pop_back(&mut self, frames: &mut Frames) -> Option<Pfn> {
        let pfn = self.tail;
        if !pfn.is_some() {
            return None;
        }
        self.remove(frames, pfn);
        Some(pfn)
    }

    /// The frames from front to back; for tests and whole-structure checks.
    pub fn iter<'a>(&self, frames: &'a Frames) -> impl Iterator<Item = Pfn> + 'a {
        let mut at = self.head;
        std::iter::from_fn(move || {
            let pfn = at;
            pfn.is_some().then(|| {
                at = frames[pfn].next;
                pfn
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Frame;

    #[test]
    fn frames_leave_in_the_order_of_the_list() {
        let mut frames = Frames::new(8, 8);
        (0..8).for_each(|pfn| frames[Pfn(pfn)] = Frame::RESERVED);
        let mut list = List::EMPTY;
        for n in [3, 1, 4] {
            list.push_back(&mut frames, Pfn(n));
        }
        list.push_front(&mut frames, Pfn(5));
        list.remove(&mut frames, Pfn(1));
        assert_eq!(list.iter(&frames).map(|p| p.0).collect::<Vec<_>>(), [5, 3, 4]);
        list.insert_before(&mut frames, Pfn(4), Pfn(6));
        list.insert_before(&mut frames, Pfn(5), Pfn(7));
        assert_eq!(list.iter(&frames).map(|p| p.0).collect::<Vec<_>>(), [7, 5, 3, 6, 4]);
        list.remove(&mut frames, Pfn(6));
        list.remove(&mut frames, Pfn(7));
        assert_eq!(list.pop_back(&mut frames), Some(Pfn(4)));
        assert_eq!(list.pop_front(&mut frames), Some(Pfn(5)));
        assert_eq!(list.len(), 1);
    }
    #[test]
    fn a_list_turns_in_its_cyclic_order() {
        let mut frames = Frames::new(8, 8);
        (0..8).for_each(|pfn| frames[Pfn(pfn)] = Frame::RESERVED);
        let mut list = List::EMPTY;
        (1..5).for_each(|n| list.push_back(&mut frames, Pfn(n)));
        let both_ways = |list: &List, frames: &Frames| {
            let forth: Vec<u32> = list.iter(frames).map(|p| p.0).collect();
            let mut back = Vec::new();
            let mut at = list.back();
            while at.is_some() {
                back.push(at.0);
                at = frames[at].prev;
            }
            back.reverse();
            assert_eq!(forth, back);
            forth
        };
        list.turn_to_front(&mut frames, Pfn(3));
        assert_eq!(both_ways(&list, &frames), [3, 4, 1, 2]);
        list.turn_to_front(&mut frames, Pfn(3));
        list.turn_to_back(&mut frames, Pfn(2));
        assert_eq!(both_ways(&list, &frames), [3, 4, 1, 2]);
        list.turn_to_back(&mut frames, Pfn(3));
        assert_eq!(both_ways(&list, &frames), [4, 1, 2, 3]);
        assert_eq!(list.len(), 4);
    }
}
