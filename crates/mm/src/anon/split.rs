//! Splitting a huge page.
//!
//! Rule: the deposited page table takes the place of the PMD entry, every tail becomes a page of its own with the
//! head's state, and the tails go next to the head on its LRU list so that reclaim meets them in the order of their
//! addresses. A page that somebody holds or writes cannot be split.
//! Source: `split_huge_page_to_list()`, `__split_huge_page_tail()` (mm/huge_memory.c), `lru_add_page_tail()` (mm/swap.c); 4.20.
//! Abstracted: the tails of an isolated head are isolated too and on no list; who isolated it puts them where it wants.
//! Omitted: splitting only the page table entry; the queue of deferred splits and its shrinker.

use units::{Order, PAGEBLOCK_ORDER, Pfn};

use super::{Leaves, REGION_PAGES, Region, Slot};
use crate::stat::{NodeStat, VmEvent};
use crate::{Env, Frame, Kind, Mm};

impl Mm {
    /// Splits a huge page into base pages; false if it is in use by I/O.
    pub fn split_huge_page(&mut self, _env: &Env, pfn: Pfn) -> bool {
        let head = self.frames[pfn];
        assert!(head.kind() == Kind::Anon && head.order() == PAGEBLOCK_ORDER, "{pfn:?} is not a huge page");
        if head.has_any(Frame::WRITEBACK | Frame::LOCKED | Frame::PINNED) || !head.has(Frame::MAPPED) {
            return false;
        }
        self.split_mapped(pfn);
        true
    }

    /// Splits a mapped huge page; the tails are on the head's LRU list, or isolated like it.
    pub(super) fn split_mapped(&mut self, pfn: Pfn) {
        let head = self.frames[pfn];
        let (space, base) = self.anon_home(pfn);
        let Region::Huge { pfn: mapped, deposit } = self.spaces[space].tables.region(base) else {
            panic!("{pfn:?} is mapped by no region of {space:?}");
        };
        assert_eq!(mapped, pfn);
        let leaf = self.spaces.leaves.take(deposit, space, base);
        self.spaces[space].tables.set_region(base, Region::Table(leaf));
        for n in 0..REGION_PAGES {
            self.spaces.leaves.set(leaf, base + n, Slot::Page(pfn.offset(n)));
        }
        self.frames[pfn].set_order(Order(0));
        self.frames[pfn].place = Leaves::place(leaf, base);
        self.memcg_split(pfn, REGION_PAGES);
        for n in 1..REGION_PAGES {
            self.frames[pfn.offset(n)].split_off(&head, Leaves::place(leaf, base + n));
        }
        if head.has(Frame::LRU) {
            self.lru_insert_tails(pfn, REGION_PAGES);
        }
        self.charge(self.costs.split_huge);
        self.stat.count(VmEvent::ThpSplitPage, 1);
        self.stat.count(VmEvent::ThpSplitPmd, 1);
        self.stat.node_add(self.node_of(pfn), NodeStat::AnonThps, -1);
    }
}
