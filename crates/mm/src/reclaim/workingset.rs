//! Workingset detection: does a page that comes back belong to what memory should hold?
//!
//! Rule: the inactive list is a queue, and every eviction and every activation moves it by one. A clock counts these
//! (`nonresident_age`). An evicted page leaves the clock's reading in its slot; when it is read again, the difference
//! is how many more inactive pages memory would have needed to keep it: its refault distance. A page whose distance is
//! not larger than what it competes with becomes active at once.
//! Source: `workingset_eviction()`, `workingset_refault()`, `workingset_test_recent()` (mm/workingset.c, 4.20; 6.12),
//! `lru_note_cost()` (mm/swap.c, 6.12).
//! Since/until: [`RefaultDetection`], 3.15. Competes with the active file pages until 5.7, with all pages of the other kind too since 5.8
//! ([`ScanBalance`]); anonymous pages leave shadows since 5.9 (`AnonStart`). Whether the clock ticks before it is read: [`EvictionClock`].
//! Abstracted: a shadow has 31 bits where Linux has 63: one for "was in the working set", enough for the zone,
//! the rest for the clock, whose low bits are dropped if it would come round before 16 times the frames of memory were evicted.
//! A refault is judged in the group whose reclaim evicted the page; the clocks of all groups above a page tick with it. Until 5.4 only
//! the page's own group has a clock, judges it and counts it ([`RefaultDetection::OwnGroup`]).

use rules::{AnonStart, EvictionClock, RefaultDetection, ScanBalance};
use units::{MemcgId, Pfn, ZoneId};

use super::lru::is_file_lru;
use crate::memcg::Refault;
use crate::stat::NodeStat;
use crate::{Env, Frame, LruList, LruvecId, Mm};

/// Bits of a shadow entry.
const SHADOW_BITS: u32 = 31;
/// Of those, bits for the memory cgroup, where there are others than the root group: for few of them, and for many.
const MEMCG_BITS: [u32; 2] = [6, 10];
/// Groups that shadows can tell apart, the root group included.
pub(crate) const MEMCGS_MAX: usize = 1 << MEMCG_BITS[1];
/// Bits of the clock beyond those that count memory's frames: it comes round after so many times as many evictions, as Linux's never
/// does. 16 times are a choice.
const ROUND_BITS: u32 = 4;

/// How the bits of a shadow are divided on a machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ShadowLayout {
    /// Bits that hold the zone, and above it the group.
    zone_bits: u32,
    /// Of those, bits that hold the group.
    memcg_bits: u32,
    /// Low bits of the clock that are dropped (`bucket_order`).
    bucket_order: u32,
}

impl ShadowLayout {
    pub(super) fn new(nr_zones: usize, memcg_bits: u32, nr_frames: usize) -> ShadowLayout {
        let zone_bits = nr_zones.next_power_of_two().trailing_zeros() + memcg_bits;
        let clock_bits = SHADOW_BITS - 1 - zone_bits;
        let needed = usize::BITS - nr_frames.saturating_sub(1).leading_zeros() + ROUND_BITS;
        ShadowLayout { zone_bits, memcg_bits, bucket_order: needed.saturating_sub(clock_bits) }
    }

    /// Packs zone and group.
    fn place(self, zone: ZoneId, memcg: MemcgId) -> u64 {
        u64::from(memcg.0) << (self.zone_bits - self.memcg_bits) | u64::from(zone.0)
    }

    /// Zone and group of an entry.
    fn unplace(self, entry: u64) -> (ZoneId, MemcgId) {
        let zone_bits = self.zone_bits - self.memcg_bits;
        let memcg = (entry >> zone_bits) & ((1 << self.memcg_bits) - 1);
        (ZoneId((entry & ((1 << zone_bits) - 1)) as u8), MemcgId(memcg as u16))
    }

    /// Bits of the clock that survive, after the low ones were dropped.
    fn mask(self) -> u64 {
        (1 << (SHADOW_BITS - 1 - self.zone_bits)) - 1
    }

    fn pack(self, (zone, memcg): (ZoneId, MemcgId), clock: u64, workingset: bool) -> u32 {
        let clock = (clock >> self.bucket_order) & self.mask();
        ((clock << self.zone_bits | self.place(zone, memcg)) << 1 | u64::from(workingset)) as u32
    }

    fn unpack(self, shadow: u32) -> Shadow {
        let entry = u64::from(shadow >> 1);
        let (zone, memcg) = self.unplace(entry);
        Shadow { zone, memcg, clock: (entry >> self.zone_bits) << self.bucket_order, workingset: shadow & 1 != 0 }
    }

    /// Packs a token of the multi-gen LRU, none of whose bits is dropped but those that do not fit.
    pub(super) fn pack_token(self, (zone, memcg): (ZoneId, MemcgId), token: u64, workingset: bool) -> u32 {
        ((self.fold_token(token) << self.zone_bits | self.place(zone, memcg)) << 1 | u64::from(workingset)) as u32
    }

    /// Zone and group, token, and "was accessed more than once" of a shadow of the multi-gen LRU.
    pub(super) fn unpack_token(self, shadow: u32) -> ((ZoneId, MemcgId), u64, bool) {
        let entry = u64::from(shadow >> 1);
        (self.unplace(entry), entry >> self.zone_bits, shadow & 1 != 0)
    }

    /// What a shadow keeps of a token.
    pub(super) fn fold_token(self, token: u64) -> u64 {
        token & self.mask()
    }

    /// Evictions and activations between a shadow's clock and `now`.
    fn distance(self, now: u64, then: u64) -> u64 {
        now.wrapping_sub(then) & (self.mask() << self.bucket_order | ((1 << self.bucket_order) - 1))
    }
}

/// What a shadow says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Shadow {
    zone: ZoneId,
    /// Whose reclaim evicted it.
    memcg: MemcgId,
    clock: u64,
    workingset: bool,
}

/// The counters of refaults, of activations and of restored pages of a type.
pub(super) fn workingset_counters(file: bool) -> [NodeStat; 3] {
    if file {
        [NodeStat::WorkingsetRefaultFile, NodeStat::WorkingsetActivateFile, NodeStat::WorkingsetRestoreFile]
    } else {
        [NodeStat::WorkingsetRefaultAnon, NodeStat::WorkingsetActivateAnon, NodeStat::WorkingsetRestoreAnon]
    }
}

impl Mm {
    /// Moves the clock of refault distances.
    #[inline]
    pub(super) fn age_nonresident(&mut self, lru: LruvecId, ticks: u64) {
        self.lruvec_mut(lru).nonresident_age += ticks;
        if self.rules.refault_detection == RefaultDetection::OwnGroup {
            return;
        }
        let mut above = self.memcg[self.memcg_of(lru)].parent();
        while let Some(memcg) = above {
            self.lruvec_mut(LruvecId { part: memcg.0, ..lru }).nonresident_age += ticks;
            above = self.memcg[memcg].parent();
        }
    }

    /// Has shadows tell so many groups apart from now on, the root group included; false if there are shadows already that do not.
    pub(crate) fn shadows_with_memcgs(&mut self, memcgs: usize) -> bool {
        if memcgs <= 1 << self.reclaim.shadows.memcg_bits {
            return true;
        }
        let mut lruvecs = self.nodes.iter().flat_map(|node| &node.lruvecs);
        let evicted = lruvecs.any(|lruvec| lruvec.nonresident_age > 0 || lruvec.evicted_any());
        if !evicted {
            let bits = MEMCG_BITS[usize::from(memcgs > 1 << MEMCG_BITS[0])];
            self.reclaim.shadows = ShadowLayout::new(self.zones.len(), bits, self.frames.len());
        }
        !evicted
    }

    /// Notes the eviction of a page; what is returned belongs in its slot.
    pub fn workingset_eviction(&mut self, pfn: Pfn) -> u32 {
        self.evict_from(self.root_of(self.lruvec_of(pfn)), pfn)
    }

    /// Notes the eviction of a page by reclaim of these lists: its own, or those of a group above.
    #[inline]
    pub(super) fn evict_from(&mut self, lru: LruvecId, pfn: Pfn) -> u32 {
        if self.lru_gen_enabled() {
            return self.lru_gen_eviction(self.lruvec_of(pfn), pfn);
        }
        let lru = match self.rules.refault_detection {
            RefaultDetection::OwnGroup => self.lruvec_of(pfn),
            RefaultDetection::ReclaimRoot | RefaultDetection::None => lru,
        };
        let (layout, workingset) = (self.reclaim.shadows, self.frames[pfn].has(Frame::WORKINGSET));
        let ticks = self.counted(pfn);
        let before = self.lruvec(lru).nonresident_age;
        self.age_nonresident(lru, ticks);
        let clock = match self.rules.eviction_clock {
            EvictionClock::TicksFirst => before + ticks,
            EvictionClock::ReadFirst => before,
        };
        layout.pack((self.zone_of(pfn), self.memcg_of(lru)), clock, workingset)
    }

    /// Whether evicted anonymous pages leave shadows in the swap cache.
    #[inline]
    pub(super) fn swap_has_shadows(&self) -> bool {
        self.rules.anon_start == AnonStart::Inactive
    }

    /// Judges the return of an evicted page: `pfn` is its new frame, not yet on a list. A page that belongs to the
    /// working set gets `ACTIVE`. Not to be called for a page that will be overwritten (`__GFP_WRITE`).
    pub fn workingset_refault(&mut self, env: &Env, pfn: Pfn, shadow: u32) {
        if self.lru_gen_enabled() {
            return self.lru_gen_refault(env, pfn, shadow);
        }
        let layout = self.reclaim.shadows;
        let shadow = layout.unpack(shadow);
        debug_assert!(shadow.zone.index() < self.zones.len());
        let mut evicted_from = self.zones[shadow.zone.index()].lru;
        if self.memcg.in_use() {
            evicted_from.part = shadow.memcg.0;
        }
        let file = is_file_lru(&self.frames[pfn]);
        let pages = u64::from(self.frames[pfn].nr_pages());
        let counted_on = match self.rules.scan_balance {
            ScanBalance::RotatedRatio => evicted_from,
            ScanBalance::IoCost | ScanBalance::RefaultCost => self.lruvec_of(pfn),
        };
        let [refault, activate, restore] = workingset_counters(file);
        self.stat.node_add(counted_on.node, refault, pages as i64);
        self.memcg_note_refault(counted_on, file, Refault::Refaulted, pages);
        let now = self.lruvec(evicted_from).nonresident_age;
        if layout.distance(now, shadow.clock) > self.workingset_size(evicted_from, file) {
            return;
        }
        self.frames[pfn].set(Frame::ACTIVE);
        self.age_nonresident(counted_on, pages);
        self.stat.node_add(counted_on.node, activate, pages as i64);
        self.lruvec_mut(counted_on).activated[usize::from(file)] += pages;
        self.memcg_note_refault(counted_on, file, Refault::Activated, pages);
        if shadow.workingset {
            self.frames[pfn].set(Frame::WORKINGSET);
            self.note_cost(counted_on, file, pages, 0);
            self.stat.node_add(counted_on.node, restore, pages as i64);
            self.memcg_note_refault(counted_on, file, Refault::Restored, pages);
        }
    }

    /// Pages that a refaulting one competes with.
    fn workingset_size(&self, lru: LruvecId, file: bool) -> u64 {
        if self.rules.refault_detection == RefaultDetection::OwnGroup {
            return self.lru_size(lru, LruList::ActiveFile);
        }
        let stats = self.lru_stats(lru);
        let size = |list| stats.size(list);
        let active_file = size(LruList::ActiveFile);
        match self.rules.scan_balance {
            ScanBalance::RotatedRatio => active_file,
            ScanBalance::IoCost | ScanBalance::RefaultCost => {
                let other_file = if file { 0 } else { size(LruList::InactiveFile) };
                let anon = if self.memcg_swap_pages(self.memcg_of(lru)) == 0 {
                    0
                } else {
                    size(LruList::ActiveAnon) + if file { size(LruList::InactiveAnon) } else { 0 }
                };
                active_file + other_file + anon
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rules::Rules;

    use super::super::fixture::{LRU, Machine};
    use super::*;
    use crate::Kind;
    use crate::memcg::ROOT;

    #[test]
    fn whether_an_eviction_is_after_itself_on_its_clock_is_a_rule() {
        for (eviction_clock, expected) in [(EvictionClock::TicksFirst, 8), (EvictionClock::ReadFirst, 7)] {
            let mut m = Machine::new(Rules { eviction_clock, ..Rules::newest() });
            m.add("a", Kind::File, 0);
            m.mm.lruvec_mut(LRU).nonresident_age = 7;
            let shadow = m.mm.workingset_eviction(m.page('a'));
            assert_eq!(m.mm.reclaim.shadows.unpack(shadow).clock, expected);
            assert_eq!(m.mm.lruvec(LRU).nonresident_age, 8);
        }
    }

    #[test]
    fn a_shadow_gives_back_what_was_packed() {
        for nr_nodes in [1, 2, 3, 8] {
            let layout = ShadowLayout::new(nr_nodes, 0, 1 << 23);
            assert_eq!(layout.bucket_order, 0, "32 GiB need 23 + 4 bits of clock");
            for (node, clock, workingset) in [(0, 0, false), (nr_nodes as u8 - 1, 12_345_678, true)] {
                let shadow = layout.pack((ZoneId(node), ROOT), clock, workingset);
                assert!(shadow < 1 << SHADOW_BITS);
                assert_eq!(layout.unpack(shadow), Shadow { zone: ZoneId(node), memcg: ROOT, clock, workingset });
            }
        }
    }

    #[test]
    fn a_machine_with_more_frames_than_the_clock_has_values_drops_low_bits() {
        // 8 zones: 31 - 1 - 3 = 27 bits of clock; 16 times 2^26 frames need 30, so 3 are dropped.
        let layout = ShadowLayout::new(8, 0, 1 << 26);
        assert_eq!(layout.bucket_order, 3);
        assert_eq!(layout.unpack(layout.pack((ZoneId(5), ROOT), 1_000_007, false)).clock, 1_000_000);
        // With groups 17 are left; 16 times 2^17 frames need 21.
        let with_memcgs = ShadowLayout::new(8, MEMCG_BITS[1], 1 << 17);
        assert_eq!(with_memcgs.bucket_order, 4);
        let far = (16 << 17) - 64;
        assert_eq!(
            with_memcgs
                .distance(far + 64, with_memcgs.unpack(with_memcgs.pack((ZoneId(5), MemcgId(1000)), 64, false)).clock),
            far
        );
    }

    #[test]
    fn a_distance_survives_the_wrap_of_the_clock() {
        let layout = ShadowLayout::new(1, 0, 1 << 20);
        let wrap = layout.mask() + 1;
        let then = layout.unpack(layout.pack((ZoneId(0), ROOT), wrap - 10, false)).clock;
        assert_eq!(layout.distance(wrap + 32, then), 42);
    }
}
