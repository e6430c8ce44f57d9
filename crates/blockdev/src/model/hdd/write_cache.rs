//! The drive's write cache.
//!
//! **Rule.** A write is done when its data is in the cache, which holds a number of bytes in a number of extents;
//! what touches or overlaps becomes one extent. Extents are written out in ascending order from the head's place and
//! around (C-LOOK), at most [`DESTAGE_SECTORS_MAX`] at a time; their space is free when they are on the medium.
//! **Source.** Ruemmler & Wilkes 1994 (immediate reporting); drives do not publish their policy.
//! **Abstracted.** One dirty store, apart from the read buffer. **Omitted.** Power loss.

/// Longest single destage: 1 MiB, a guess; near the length of a track.
const DESTAGE_SECTORS_MAX: u64 = 2048;

/// Sectors `[start, end)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Extent {
    pub(super) start: u64,
    pub(super) end: u64,
}

impl Extent {
    fn sectors(self) -> u64 {
        self.end - self.start
    }
}

/// Dirty data in the drive.
#[derive(Clone, Debug)]
pub(super) struct WriteCache {
    /// Disjoint, not touching, ascending.
    extents: Vec<Extent>,
    /// In extents and in the destage under way.
    dirty_sectors: u64,
    sectors_max: u64,
    entries_max: usize,
}

impl WriteCache {
    pub(super) fn new(sectors_max: u64, entries_max: usize) -> WriteCache {
        WriteCache { extents: Vec::new(), dirty_sectors: 0, sectors_max, entries_max }
    }

    /// Whether a write of this length can ever enter.
    pub(super) fn can_hold(&self, sectors: u64) -> bool {
        sectors <= self.sectors_max
    }

    /// Extents that touch or overlap `extent`, as a range of indices.
    fn touching(&self, extent: Extent) -> std::ops::Range<usize> {
        let from = self.extents.partition_point(|e| e.end < extent.start);
        let to = self.extents.partition_point(|e| e.start <= extent.end);
        from..to.max(from)
    }

    /// Whether there is room for `extent` now.
    pub(super) fn has_room(&self, extent: Extent) -> bool {
        let entry = self.extents.len() < self.entries_max || !self.touching(extent).is_empty();
        entry && self.dirty_sectors + extent.sectors() <= self.sectors_max
    }

    /// Makes `extent`, for which there is room, dirty.
    pub(super) fn insert(&mut self, extent: Extent) {
        debug_assert!(self.has_room(extent));
        let range = self.touching(extent);
        let Some(first) = self.extents.get(range.start).filter(|_| !range.is_empty()) else {
            self.extents.insert(range.start, extent);
            self.dirty_sectors += extent.sectors();
            return;
        };
        let joined =
            Extent { start: first.start.min(extent.start), end: self.extents[range.end - 1].end.max(extent.end) };
        let before: u64 = self.extents[range.clone()].iter().map(|e| e.sectors()).sum();
        self.dirty_sectors += joined.sectors() - before;
        self.extents[range.start] = joined;
        self.extents.drain(range.start + 1..range.end);
    }

    /// Whether a read of `extent` can be answered from here.
    pub(super) fn contains(&self, extent: Extent) -> bool {
        let at = self.extents.partition_point(|e| e.end < extent.end);
        self.extents.get(at).is_some_and(|e| e.start <= extent.start && extent.end <= e.end)
    }

    /// Takes what to write out next, with the head at sector `from`; give it to [`WriteCache::written`] afterwards.
    pub(super) fn take_next(&mut self, from: u64) -> Option<Extent> {
        let ahead = self.extents.partition_point(|e| e.start < from);
        let index = if ahead < self.extents.len() { ahead } else { 0 };
        let extent = self.extents.get_mut(index)?;
        let start = extent.start;
        let end = extent.end.min(start + DESTAGE_SECTORS_MAX);
        if end == extent.end {
            self.extents.remove(index);
        } else {
            extent.start = end;
        }
        Some(Extent { start, end })
    }

    /// `extent` is on the medium.
    pub(super) fn written(&mut self, extent: Extent) {
        assert!(self.dirty_sectors >= extent.sectors());
        self.dirty_sectors -= extent.sectors();
    }

    /// Whether extents wait to be written out.
    pub(super) fn has_extents(&self) -> bool {
        !self.extents.is_empty()
    }

    /// Whether everything is on the medium.
    pub(super) fn is_clean(&self) -> bool {
        self.dirty_sectors == 0
    }

    /// Whether it is more than half full, by bytes or by extents: then destaging no longer waits for idleness.
    pub(super) fn is_pressed(&self) -> bool {
        self.dirty_sectors * 2 > self.sectors_max || self.extents.len() * 2 > self.entries_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn e(start: u64, end: u64) -> Extent {
        Extent { start, end }
    }

    #[test]
    fn touching_and_overlapping_extents_become_one() {
        let mut cache = WriteCache::new(100, 10);
        for extent in [e(10, 20), e(30, 40), e(50, 60)] {
            cache.insert(extent);
        }
        assert_eq!(cache.dirty_sectors, 30);
        cache.insert(e(20, 30)); // bridges the first two: 30 + 10
        assert_eq!(cache.extents, [e(10, 40), e(50, 60)]);
        assert_eq!(cache.dirty_sectors, 40);
        cache.insert(e(15, 25)); // overwrites
        assert_eq!(cache.dirty_sectors, 40);
        assert!(cache.contains(e(10, 40)) && cache.contains(e(12, 13)));
        assert!(!cache.contains(e(35, 45)) && !cache.contains(e(45, 46)));
    }

    #[test]
    fn room_is_bounded_by_sectors_and_by_extents() {
        let mut cache = WriteCache::new(100, 2);
        cache.insert(e(0, 10));
        cache.insert(e(20, 30));
        assert!(!cache.has_room(e(40, 41)), "a third extent");
        assert!(cache.has_room(e(30, 110)), "grows one: 20 + 80 = 100");
        assert!(!cache.has_room(e(30, 111)));
    }

    #[test]
    fn extents_leave_in_ascending_order_and_around() {
        let mut cache = WriteCache::new(10_000, 10);
        for extent in [e(10, 20), e(300, 310), e(5000, 8000)] {
            cache.insert(extent);
        }
        assert_eq!(cache.take_next(300), Some(e(300, 310)));
        assert_eq!(cache.take_next(310), Some(e(5000, 7048)), "1 MiB at a time");
        assert_eq!(cache.take_next(7048), Some(e(7048, 8000)));
        assert_eq!(cache.take_next(8000), Some(e(10, 20)), "around");
        assert!(!cache.is_clean(), "still in flight");
        for extent in [e(300, 310), e(5000, 8000), e(10, 20)] {
            cache.written(extent);
        }
        assert!(cache.is_clean());
    }
}
