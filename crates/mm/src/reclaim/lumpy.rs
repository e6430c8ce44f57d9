//! Lumpy reclaim: how a kernel without compaction gets at blocks of pages under pressure.
//!
//! Rule ([`Compaction::NotBuilt`]): for an order above 3, and for a lower one below priority 10, a batch takes the whole aligned block around each page,
//! pages of other lists and active ones included, and does not ask whether they were used. It goes on so until it has to keep
//! a page for another reason than that it is being written: its block is lost. What is being written has a pass of its own
//! ([`super::second_pass`]).
//! Source: `set_reclaim_mode()`, `reset_reclaim_mode()`, `page_check_references()`, `shrink_page_list()`, `clear_active_flags()` (mm/vmscan.c, 2.6.39).
//! Until: c53919adc045 (3.5).

use rules::{Compaction, IsolationUnit};
use units::{Order, Pfn, ZoneId};

use super::ScanControl;
use crate::stat::VmEvent;
use crate::{Frame, LruList, LruvecId, Mm};

impl Mm {
    /// Says what a batch, or another look at it, is for, lumpy reclaim or reclaim for compaction (`set_reclaim_mode()`).
    pub(super) fn set_reclaim_mode(&self, sc: &mut ScanControl) {
        let blocks = self.rules.isolation_unit == IsolationUnit::AlignedBlock;
        sc.contiguous = sc.order > Order::COSTLY || (sc.order > Order(0) && sc.is_desperate());
        sc.lumpy = blocks && sc.contiguous && self.rules.compaction == Compaction::NotBuilt;
    }

    /// Takes a page off another list than the one that is scanned; an active one is inactive now.
    pub(super) fn take_off_other_list(&mut self, lruvec: LruvecId, list: LruList, zone: ZoneId, pfn: Pfn) {
        let mut other = self.lruvec(lruvec).lists[list as usize];
        other.remove(&mut self.frames, pfn);
        self.lruvec_mut(lruvec).lists[list as usize] = other;
        self.lru_resize(lruvec, zone, list, -1);
        if list.is_active() {
            self.frames[pfn].clear(Frame::ACTIVE);
            self.stat.count(VmEvent::Pgdeactivate, 1);
        }
    }

    /// Ends reclaim of contiguous memory for the batch if a page is kept that is not being written (`reset_reclaim_mode()`).
    pub(super) fn keep_in_lumpy(&self, pfn: Pfn, sc: &mut ScanControl) {
        let written = self.frames[pfn].has(Frame::WRITEBACK);
        sc.lumpy &= written;
        sc.contiguous &= written;
    }
}

#[cfg(test)]
mod tests {
    use rules::{Rules, XfsWritepage};
    use units::Gfp;

    use super::super::fixture::{LRU, Machine, rules_4_20};
    use super::*;
    use crate::stat::NodeStat;
    use crate::{Kind, ZoneKind};

    fn machine() -> Machine {
        Machine::new(Rules {
            isolation_unit: IsolationUnit::AlignedBlock,
            compaction: Compaction::NotBuilt,
            xfs_writepage: XfsWritepage::Cluster,
            ..rules_4_20()
        })
    }

    fn at(order: u8, priority: i8) -> ScanControl {
        ScanControl { priority, ..ScanControl::kswapd(Order(order), ZoneKind::Normal) }
    }

    #[test]
    fn it_begins_below_priority_10_or_above_order_3_where_nothing_compacts() {
        let mut m = machine();
        let lumpy = |m: &Machine, order, priority| {
            let mut sc = at(order, priority);
            m.mm.set_reclaim_mode(&mut sc);
            sc.lumpy
        };
        assert_eq!(
            [(0, 0), (1, 10), (1, 9), (3, 10), (4, 12)].map(|(o, p)| lumpy(&m, o, p)),
            [false, false, true, false, true]
        );
        m.mm.rules.compaction = Compaction::Built;
        assert!(!lumpy(&m, 1, 9) && !lumpy(&m, 4, 12));
    }

    /// Four pages of a block: `a` inactive, `b` and `d` active, `c` anonymous.
    fn block(m: &mut Machine) -> [Pfn; 4] {
        let page = |m: &mut Machine, kind, flags| m.add_page(kind, flags, Gfp::HIGHUSER_MOVABLE).expect("it is empty");
        let pages = [
            page(m, Kind::File, 0),
            page(m, Kind::File, Frame::ACTIVE),
            page(m, Kind::Anon, Frame::SWAPBACKED),
            page(m, Kind::File, Frame::ACTIVE | Frame::REFERENCED),
        ];
        assert!(pages[0].0 % 4 == 0 && (0..4).all(|n| pages[n as usize] == pages[0].offset(n)), "{pages:?}");
        m.mm.swap.add_device(&crate::swap::SwapSpec {
            device: 5,
            start_sector: 0,
            pages: 100,
            priority: 0,
            rotational: true,
        });
        pages
    }

    #[test]
    fn it_takes_pages_of_all_lists_around_a_page() {
        for (priority, taken) in [(10, 1), (9, 4)] {
            let mut m = machine();
            let pages = block(&mut m);
            let mut sc = at(2, priority);
            m.mm.set_reclaim_mode(&mut sc);
            let isolated = m.mm.isolate_lru_pages(LRU, LruList::InactiveFile, 1, &sc);
            assert_eq!((isolated.pages.to_vec(), isolated.taken), (pages[..taken].to_vec(), taken as u64));
            let others = if taken > 1 { [1, 2] } else { [0, 0] };
            assert_eq!((isolated.others, isolated.by_kind(true)), (others, [others[0], others[1] + 1]));
            assert_eq!(m.mm.stat.event(VmEvent::Pgdeactivate), others[1], "the active ones");
            assert_eq!(m.mm.stat.node(LRU.node, NodeStat::IsolatedAnon), others[0]);
            assert!(isolated.pages.iter().all(|pfn| !m.mm.frames[*pfn].has(Frame::ACTIVE)));
        }
    }

    #[test]
    fn a_page_that_is_kept_ends_it_but_not_one_that_is_being_written() {
        let mut m = machine();
        let [first, second, ..] = block(&mut m);
        m.mm.frames[first].set(Frame::WRITEBACK);
        let mut sc = ScanControl { lumpy: true, ..at(2, 9) };
        m.mm.keep_in_lumpy(first, &mut sc);
        assert!(sc.lumpy);
        m.mm.keep_in_lumpy(second, &mut sc);
        assert!(!sc.lumpy);
        m.mm.keep_in_lumpy(first, &mut sc);
        assert!(!sc.lumpy, "for the rest of the batch");
    }
}
