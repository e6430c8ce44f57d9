//! Taking a batch off the tail of an LRU list.
//!
//! Rule: up to 32 entries from the tail, oldest first. A page of a zone above `reclaim_idx` is put back to the head and
//! does not count, so that the caller is not starved by pages it must not take. A page that may not be taken because it
//! is mapped goes to the head too, but counts.
//! Source: `isolate_lru_pages()`, `__isolate_lru_page()` (mm/vmscan.c, 4.20), `isolate_lru_folios()` (6.12).
//! Since/until: a huge page counts as one entry until 5.2, as 512 pages since 5.3 ([`ScanCounting`]); in either case
//! it ends the batch.
//! Abstracted: the LRU lock; a walk skips each ineligible page at most once.

use rules::ScanCounting;
use smallvec::SmallVec;
use units::{NodeId, Pfn, ZoneId};

use super::ScanControl;
use crate::stat::ZoneEvent;
use crate::{Frame, LruList, LruvecId, Mm, ZoneKind};

/// Frames of one batch, 64 at most unless a huge page was split, in the order in which they are to be handled.
pub(super) type Batch = SmallVec<[Pfn; 64]>;

/// What isolation took.
#[derive(Debug)]
pub(super) struct Isolated {
    /// The pages, oldest first.
    pub pages: Batch,
    /// Base pages in them.
    pub taken: u64,
    /// Looked at, skipped ones included; in entries or base pages as the rule says.
    pub scanned: u64,
}

impl Mm {
    /// Takes up to `nr_to_scan` entries off the tail of a list and counts them as isolated.
    pub(super) fn isolate_lru_pages(
        &mut self,
        lruvec: LruvecId,
        list: LruList,
        nr_to_scan: u32,
        sc: &ScanControl,
    ) -> Isolated {
        let by_pages = self.rules.scan_counting == ScanCounting::BasePages;
        let zone_ids = self.zones_by_kind(lruvec.node);
        let mut lru = self.lruvec(lruvec).lists[list as usize];
        let mut left_on_list = lru.len();
        let (mut scan, mut scanned, mut taken) = (0, 0, 0);
        let mut taken_by_kind = [0; ZoneKind::COUNT];
        let mut skipped_by_kind = [0; ZoneKind::COUNT];
        let mut pages = Batch::new();
        let (mut last_zone, mut kind) = (None, ZoneKind::Dma);
        while scan < u64::from(nr_to_scan) && taken < u64::from(nr_to_scan) && left_on_list > 0 {
            left_on_list -= 1;
            let pfn = lru.back();
            let zone = self.blocks.zone_of(pfn);
            if last_zone != Some(zone) {
                (last_zone, kind) = (Some(zone), self.zones[zone.index()].kind);
            }
            lru.remove(&mut self.frames, pfn);
            let frame = &mut self.frames[pfn];
            let nr_pages = u64::from(frame.nr_pages());
            let counted = if by_pages { nr_pages } else { 1 };
            scanned += counted;
            if kind > sc.reclaim_idx {
                skipped_by_kind[kind as usize] += counted;
                lru.push_front(&mut self.frames, pfn);
                continue;
            }
            scan += counted;
            if !sc.may_unmap && frame.has(Frame::MAPPED) {
                lru.push_front(&mut self.frames, pfn);
                continue;
            }
            frame.clear(Frame::LRU);
            frame.set(Frame::ISOLATED);
            taken += nr_pages;
            taken_by_kind[kind as usize] += nr_pages;
            pages.push(pfn);
        }
        self.lruvec_mut(lruvec).lists[list as usize] = lru;
        for (kind, zone) in zone_ids.iter().enumerate() {
            let Some(zone) = *zone else { continue };
            if taken_by_kind[kind] > 0 {
                self.lru_resize(lruvec, zone, list, -(taken_by_kind[kind] as i64));
            }
            if skipped_by_kind[kind] > 0 {
                self.stat.count_zone(ZoneEvent::Pgskip, self.zones[zone.index()].kind, skipped_by_kind[kind]);
                self.charge(skipped_by_kind[kind] * self.costs.lru_move);
            }
        }
        if taken > 0 {
            self.note_isolated(lruvec, list.is_file(), taken as i64);
        }
        Isolated { pages, taken, scanned }
    }

    /// Zones of a node by their kind.
    fn zones_by_kind(&self, node: NodeId) -> [Option<ZoneId>; ZoneKind::COUNT] {
        let mut ids = [None; ZoneKind::COUNT];
        for &zone in &self.nodes[node.index()].zones {
            ids[self.zones[zone.index()].kind as usize] = Some(zone);
        }
        ids
    }
}

#[cfg(test)]
mod tests {
    use units::{Gfp, Order};

    use super::super::fixture::{LRU, Machine, rules_4_20};
    use super::*;
    use crate::Kind;

    fn names(m: &Machine, isolated: &Isolated, among: &str) -> String {
        isolated.pages.iter().map(|p| among.chars().find(|c| m.page(*c) == *p).expect("a named page")).collect()
    }

    #[test]
    fn a_batch_takes_the_oldest_first() {
        let mut m = Machine::new(rules_4_20());
        m.add("a b c d", Kind::File, 0);
        let sc = ScanControl::kswapd(Order(0), ZoneKind::Normal);
        let isolated = m.mm.isolate_lru_pages(LRU, LruList::InactiveFile, 3, &sc);
        assert_eq!(names(&m, &isolated, "abcd"), "abc");
        assert_eq!((isolated.taken, isolated.scanned), (3, 3));
        assert_eq!(m.draw(), "inactive: d | active:");
        m.check();
    }

    #[test]
    fn pages_of_higher_zones_are_skipped_to_the_front_and_do_not_count() {
        let mut m = Machine::new(rules_4_20());
        for (name, gfp) in
            [('a', Gfp::HIGHUSER_MOVABLE), ('b', Gfp::DMA32), ('c', Gfp::HIGHUSER_MOVABLE), ('d', Gfp::DMA32)]
        {
            m.add_from(name, Kind::File, 0, gfp);
        }
        let sc = ScanControl::kswapd(Order(0), ZoneKind::Dma32);
        let isolated = m.mm.isolate_lru_pages(LRU, LruList::InactiveFile, 2, &sc);
        assert_eq!(names(&m, &isolated, "abcd"), "bd");
        assert_eq!(m.draw(), "inactive: c a | active:", "the last one skipped is in front");
        assert_eq!((isolated.taken, isolated.scanned), (2, 4), "skipped pages are scanned all the same");
        assert_eq!(m.mm.stat.zone_event(ZoneEvent::Pgskip, ZoneKind::Normal), 2);
        m.check();
    }

    #[test]
    fn a_list_of_skipped_pages_is_walked_once() {
        let mut m = Machine::new(rules_4_20());
        m.add("a b c", Kind::File, 0);
        let sc = ScanControl::kswapd(Order(0), ZoneKind::Dma32);
        let isolated = m.mm.isolate_lru_pages(LRU, LruList::InactiveFile, 32, &sc);
        assert_eq!((isolated.pages.len(), isolated.scanned), (0, 3));
        assert_eq!(m.draw(), "inactive: c b a | active:");
        m.check();
    }

    #[test]
    fn mapped_pages_stay_where_unmapping_is_not_allowed() {
        let mut m = Machine::new(rules_4_20());
        m.add("a b c", Kind::File, 0);
        m.frame('a').set(Frame::MAPPED);
        let mut sc = ScanControl::kswapd(Order(0), ZoneKind::Normal);
        sc.may_unmap = false;
        let isolated = m.mm.isolate_lru_pages(LRU, LruList::InactiveFile, 2, &sc);
        assert_eq!(names(&m, &isolated, "abc"), "b");
        assert_eq!(m.draw(), "inactive: a c | active:");
        m.check();
    }
}
