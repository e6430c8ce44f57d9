//! Requests in order of sector and in order of arrival at once.
//!
//! Abstracted: a sorted array in place of a red-black tree.

use super::{Request, Side};
use crate::slab::{NIL, Slab};
use units::Nanos;

/// Queued requests that are dispatched together.
#[derive(Clone, Debug)]
pub(super) struct Sorted {
    /// First sector and slot, ascending.
    sectors: Vec<(u64, u32)>,
    oldest: u32,
    youngest: u32,
    /// How long after its arrival a request is preferred to sector order.
    expire: Nanos,
}

impl Sorted {
    pub(super) fn new(expire: Nanos) -> Sorted {
        Sorted { sectors: Vec::new(), oldest: NIL, youngest: NIL, expire }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sectors.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.sectors.len()
    }

    /// The request that waits longest, if its deadline has passed.
    pub(super) fn expired(&self, requests: &Slab<Request>, now: Nanos) -> Option<u32> {
        (self.oldest != NIL && requests[self.oldest].expires <= now).then_some(self.oldest)
    }

    /// The request that waits longest.
    pub(super) fn oldest(&self) -> u32 {
        self.oldest
    }

    /// The first request that begins at or after a sector.
    pub(super) fn from(&self, sector: u64) -> Option<u32> {
        self.sectors.get(self.lower_bound((sector, 0))).map(|&(_, slot)| slot)
    }

    /// The requests next to `slot`, before and behind it.
    pub(super) fn around(&self, requests: &Slab<Request>, slot: u32) -> (Option<u32>, Option<u32>) {
        let at = self.lower_bound((requests[slot].sector, slot));
        let slot_at = |at: usize| self.sectors.get(at).map(|&(_, slot)| slot);
        (at.checked_sub(1).and_then(slot_at), slot_at(at + 1))
    }

    /// Adds a request that arrives now.
    pub(super) fn insert(&mut self, requests: &mut Slab<Request>, slot: u32, now: Nanos) {
        let request = &mut requests[slot];
        request.expires = now + self.expire;
        self.sort_in((request.sector, slot));
        self.push_youngest(requests, slot);
    }

    pub(super) fn remove(&mut self, requests: &mut Slab<Request>, slot: u32) {
        self.sort_out((requests[slot].sector, slot));
        self.unlink(requests, slot);
    }

    /// The request that `part` may join, and where.
    pub(super) fn find_merge(
        &self,
        requests: &Slab<Request>,
        part: &Request,
        sectors_max: u32,
        front_merges: bool,
    ) -> Option<(u32, Side)> {
        let joins = |slot: u32, side| {
            let request = &requests[slot];
            let fits = request.sectors + part.sectors <= sectors_max;
            (fits && request.touches(part) == Some(side)).then_some((slot, side))
        };
        let at = self.lower_bound((part.sector, 0));
        let before = at.checked_sub(1).map(|i| self.sectors[i].1);
        let back = before.and_then(|slot| joins(slot, Side::Back));
        back.or_else(|| {
            let after = self.from(part.end()).filter(|_| front_merges);
            after.and_then(|slot| joins(slot, Side::Front))
        })
    }

    /// `slot` now begins earlier than at `before`.
    pub(super) fn moved(&mut self, requests: &Slab<Request>, slot: u32, before: u64) {
        self.sort_out((before, slot));
        self.sort_in((requests[slot].sector, slot));
    }

    /// `slot` and its neighbour on `side`, in sector order.
    pub(super) fn neighbours(&self, requests: &Slab<Request>, slot: u32, side: Side) -> Option<(u32, u32)> {
        let (before, behind) = self.around(requests, slot);
        match side {
            Side::Back => behind.map(|next| (slot, next)),
            Side::Front => before.map(|previous| (previous, slot)),
        }
    }

    /// Takes `second` out, which joins `first`; `first` inherits the earlier deadline and its place.
    pub(super) fn absorb(&mut self, requests: &mut Slab<Request>, first: u32, second: u32) {
        let (a, b) = (requests[first], requests[second]);
        self.sort_out((b.sector, second));
        if b.expires < a.expires {
            self.unlink(requests, first);
            requests[first].expires = b.expires;
            self.replace(requests, second, first);
        } else {
            self.unlink(requests, second);
        }
    }

    /// Index of the first request at or after `key`.
    fn lower_bound(&self, key: (u64, u32)) -> usize {
        self.sectors.partition_point(|&entry| entry < key)
    }

    fn sort_in(&mut self, key: (u64, u32)) {
        let at = self.lower_bound(key);
        self.sectors.insert(at, key);
    }

    fn sort_out(&mut self, key: (u64, u32)) {
        let at = self.lower_bound(key);
        let removed = self.sectors.remove(at);
        assert_eq!(removed, key, "a queued request is in sector order");
    }

    fn push_youngest(&mut self, requests: &mut Slab<Request>, slot: u32) {
        requests[slot].older = self.youngest;
        requests[slot].younger = NIL;
        match self.youngest {
            NIL => self.oldest = slot,
            youngest => requests[youngest].younger = slot,
        }
        self.youngest = slot;
    }

    fn unlink(&mut self, requests: &mut Slab<Request>, slot: u32) {
        let Request { older, younger, .. } = requests[slot];
        match older {
            NIL => self.oldest = younger,
            older => requests[older].younger = younger,
        }
        match younger {
            NIL => self.youngest = older,
            younger => requests[younger].older = older,
        }
    }

    /// Puts `slot`, which is not linked, where `place` is, and unlinks `place`.
    fn replace(&mut self, requests: &mut Slab<Request>, place: u32, slot: u32) {
        let Request { older, younger, .. } = requests[place];
        requests[slot].older = older;
        requests[slot].younger = younger;
        match older {
            NIL => self.oldest = slot,
            older => requests[older].younger = slot,
        }
        match younger {
            NIL => self.youngest = slot,
            younger => requests[younger].older = slot,
        }
    }
}
