//! Taking a batch off the tail of an LRU list.
//!
//! Rule: up to 32 entries from the tail, oldest first. A page of a zone above `reclaim_idx` is put back to the head and
//! does not count, so that the caller is not starved by pages it must not take. A page that may not be taken because it
//! is mapped goes to the head too, but counts.
//! For an order above 0, until 3.3, each page brings along the pages of its list in the aligned block of that order around
//! it, however recent they are, up to the first that is neither on that list nor free ([`IsolationUnit`]). Lumpy reclaim ([`super::lumpy`]) takes
//! those of the other lists too.
//! Source: `isolate_lru_pages()`, `__isolate_lru_page()` (mm/vmscan.c, 3.1 and 4.20), `isolate_lru_folios()` (6.12).
//! Since/until: a huge page counts as one entry until 5.2, as 512 pages since 5.3 ([`ScanCounting`]); in either case
//! it ends the batch.
//! Abstracted: the LRU lock; a walk skips each ineligible page at most once; a block ends at a huge page.

use rules::{IsolationUnit, ScanCounting};
use smallvec::SmallVec;
use units::{NodeId, Order, Pfn, ZoneId};

use super::ScanControl;
use super::lru::lru_of;
use crate::stat::ZoneEvent;
use crate::trace::Contiguous;
use crate::{Frame, Kind, List, LruList, LruvecId, Mm, ZoneKind};

/// Frames of one batch, 64 at most unless a huge page was split or blocks are taken, in the order in which they are to be handled.
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
    /// Skipped, counted so too.
    pub skipped: u64,
    /// Taken around the pages that were at the tail.
    pub contiguous: Contiguous,
    /// Of those, such of [anon, file] as were on other lists.
    pub others: [u64; 2],
}

impl Isolated {
    /// Base pages of [anon, file], `file` saying what list they were taken off, but for the others.
    pub(super) fn by_kind(&self, file: bool) -> [u64; 2] {
        let mut pages = self.others;
        pages[usize::from(file)] += self.taken - self.others.iter().sum::<u64>();
        pages
    }
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
        let (mut contiguous, mut others) = (Contiguous::default(), [0; 2]);
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
            if sc.order > Order(0) && self.rules.isolation_unit == IsolationUnit::AlignedBlock {
                let before = others;
                let around = self.isolate_block_around((lruvec, list, &mut lru), pfn, sc, &mut pages, &mut others);
                let more = u64::from(around.taken);
                contiguous.add(around);
                (scan, scanned, taken) = (scan + more, scanned + more, taken + more);
                let of_list = more - (others[0] - before[0]) - (others[1] - before[1]);
                taken_by_kind[kind as usize] += of_list;
                left_on_list -= of_list as u32;
            }
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
        let isolated = Isolated { pages, taken, scanned, skipped: skipped_by_kind.iter().sum(), contiguous, others };
        for (file, pages) in [false, true].into_iter().zip(isolated.by_kind(list.is_file())) {
            if pages > 0 {
                self.note_isolated(lruvec, file, pages as i64);
            }
        }
        isolated
    }

    /// Takes what is on the same list in the aligned block around a page, in lumpy reclaim on any, up to the first frame that is neither there
    /// nor free.
    fn isolate_block_around(
        &mut self,
        (lruvec, list, lru): (LruvecId, LruList, &mut List),
        page: Pfn,
        sc: &ScanControl,
        pages: &mut Batch,
        others: &mut [u64; 2],
    ) -> Contiguous {
        let order = sc.order;
        let (zone, start) = (self.blocks.zone_of(page), Pfn(page.0 & !(order.pages() - 1)));
        let end = start.offset(order.pages());
        let no_swap = self.swap.free_pages() == 0;
        let (mut at, mut around) = (start, Contiguous::default());
        while at < end {
            let frame = &self.frames[at];
            if at == page {
                at = at.offset(1);
                continue;
            }
            if matches!(frame.kind(), Kind::Buddy | Kind::Pcp) {
                at = at.offset(frame.nr_pages());
                continue;
            }
            let unswappable = no_swap && frame.kind() == Kind::Anon && !frame.has(Frame::SWAPCACHE);
            let own = lru_of(frame);
            let wanted = own == list || (sc.lumpy && own != LruList::Unevictable);
            let here = frame.has(Frame::LRU) && wanted && frame.order() == Order(0);
            if !here || unswappable || self.blocks.zone_of(at) != zone || self.lruvec_of(at) != lruvec {
                break;
            }
            if own == list {
                lru.remove(&mut self.frames, at);
            } else {
                self.take_off_other_list(lruvec, own, zone, at);
                others[usize::from(own.is_file())] += 1;
            }
            self.frames[at].clear(Frame::LRU);
            self.frames[at].set(Frame::ISOLATED);
            pages.push(at);
            around.taken += 1;
            around.dirty += u32::from(self.frames[at].has(Frame::DIRTY));
            at = at.offset(1);
        }
        around.failed = u32::from(at < end);
        around
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
    use proptest::prelude::*;
    use units::Gfp;

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

    /// What the rule of blocks takes, page by page; the list oldest first.
    fn slow_batch(m: &Machine, list: &[Pfn], nr_to_scan: usize, order: Order) -> Vec<Pfn> {
        let free = |at: Pfn| {
            let head = (0..=at.0).rev().map(Pfn).find(|&head| m.mm.frames[head].kind() != Kind::Tail);
            head.is_some_and(|head| matches!(m.mm.frames[head].kind(), Kind::Buddy | Kind::Pcp))
        };
        let mut batch = Vec::new();
        while batch.len() < nr_to_scan {
            let Some(&oldest) = list.iter().find(|pfn| !batch.contains(*pfn)) else { break };
            batch.push(oldest);
            let block = oldest.0 >> order.0 << order.0;
            for at in (block..block + order.pages()).map(Pfn).filter(|&at| at != oldest) {
                if list.contains(&at) && !batch.contains(&at) {
                    batch.push(at);
                } else if !free(at) {
                    break;
                }
            }
        }
        batch
    }

    proptest! {
        /// A batch brings along the blocks around its pages: a page is on the list (0), active (1), not on a list (2) or free.
        #[test]
        fn a_batch_of_an_order_takes_aligned_blocks(
            states in prop::collection::vec(0_u8..4, 1..80), nr_to_scan in 1_usize..12, order in 0_u8..4,
        ) {
            let mut m = Machine::new(rules::Rules { isolation_unit: IsolationUnit::AlignedBlock, ..rules_4_20() });
            let flags = |state: u8| if state == 1 { Frame::ACTIVE } else { 0 };
            let pages: Vec<(u8, Pfn)> = states
                .iter()
                .map(|&state| (state, m.add_page(Kind::Anon, flags(state), Gfp::HIGHUSER_MOVABLE).expect("it is empty")))
                .collect();
            let env = m.env;
            for &(state, pfn) in &pages {
                if state > 1 {
                    m.mm.lru_del(pfn);
                }
                if state == 3 {
                    m.mm.frames[pfn].set_kind(Kind::Held, Order(0));
                    m.mm.free_pages(&env, pfn, Order(0));
                }
            }
            m.mm.swap.add_device(&crate::swap::SwapSpec {
                device: 5, start_sector: 0, pages: 100, priority: 0, rotational: true,
            });
            let list: Vec<Pfn> = pages.iter().filter(|(state, _)| *state == 0).map(|&(_, pfn)| pfn).collect();
            let expected = slow_batch(&m, &list, nr_to_scan, Order(order));
            let sc = ScanControl::kswapd(Order(order), ZoneKind::Normal);
            let isolated = m.mm.isolate_lru_pages(LRU, LruList::InactiveAnon, nr_to_scan as u32, &sc);
            prop_assert_eq!(isolated.pages.to_vec(), expected);
            prop_assert_eq!((isolated.taken, isolated.scanned), (isolated.pages.len() as u64, isolated.pages.len() as u64));
            m.check();
        }
    }

    #[test]
    fn without_swap_space_a_block_ends_at_an_anonymous_page() {
        let mut m = Machine::new(rules::Rules { isolation_unit: IsolationUnit::AlignedBlock, ..rules_4_20() });
        m.add("a b c d e f g h", Kind::Anon, 0);
        let sc = ScanControl::kswapd(Order(2), ZoneKind::Normal);
        let isolated = m.mm.isolate_lru_pages(LRU, LruList::InactiveAnon, 1, &sc);
        assert_eq!((names(&m, &isolated, "abcdefgh").as_str(), isolated.taken), ("a", 1));
    }
}
