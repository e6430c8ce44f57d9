//! Reverse mapping: what reclaim and compaction ask of the owner of a frame.
//!
//! Rule: the frame names its space and virtual page, and so its page table entry. A page is referenced if that entry was
//! used since somebody last asked, or the swap token spares its space (`swap::token`); unmapping an anonymous page leaves its swap slot there; migration points it at the
//! new frame.
//! Source: `page_referenced()`, `try_to_unmap()` (mm/rmap.c), `remove_migration_pte()` (mm/migrate.c); 4.20 and 6.12.
//! Abstracted: an anonymous page has one mapping at most; the accessed bit is a flag of the frame. Pages of files:
//! `pagecache::mapped`.
//! Omitted: `VM_LOCKED`, `MADV_FREE`.

use units::{FileId, Order, PAGEBLOCK_ORDER, Pfn, SpaceId};

use crate::anon::{Region, Slot};
use crate::stat::NodeStat;
use crate::swap::SwapEntry;
use crate::{Env, Frame, Kind, Mm};

impl Mm {
    /// References through page tables since last asked (clears them), and those that the swap token makes up.
    #[inline]
    pub fn page_referenced(&mut self, env: &Env, pfn: Pfn) -> u32 {
        let frame = &mut self.frames[pfn];
        if !frame.has(Frame::MAPPED) {
            return 0;
        }
        let referenced = frame.take(Frame::YOUNG);
        self.charge(self.costs.rmap_page + if referenced { self.costs.rmap_young } else { 0 });
        u32::from(referenced) + self.token_references(env, pfn)
    }

    /// Whether a page table maps the page.
    #[inline]
    pub fn is_mapped(&self, pfn: Pfn) -> bool {
        self.frames[pfn].has(Frame::MAPPED)
    }

    /// Removes every mapping; an anonymous page must have a slot by then, and a huge page must have been split.
    /// Page table and page share the `DIRTY` flag, so that it is right afterwards. False if the page stays mapped.
    pub fn try_to_unmap(&mut self, _env: &Env, pfn: Pfn) -> bool {
        let frame = self.frames[pfn];
        if !frame.has(Frame::MAPPED) {
            return true;
        }
        if frame.kind() == Kind::File {
            self.unmap_file_page(pfn);
            return true;
        }
        if frame.kind() != Kind::Anon || frame.order() != Order(0) || !frame.has(Frame::SWAPCACHE) {
            return false;
        }
        let ((space, vpn), entry) = (self.anon_home(pfn), self.swap_entry(pfn));
        self.replace_slot(space, vpn, Slot::Page(pfn), Slot::Swap(entry));
        self.swap_unmapped(space, entry);
        let written = self.frames[pfn].has(Frame::WRITTEN);
        self.frames[pfn].clear(Frame::MAPPED | Frame::YOUNG | Frame::WRITTEN);
        self.stat.node_add(self.node_of(pfn), NodeStat::AnonMapped, -1);
        self.charge(self.costs.unmap_page);
        self.tlb_unmapped(space, written);
        true
    }

    /// Points the owner's page table entry, or the swap cache, at the new frame, which takes over the old one's state
    /// but for its place on the LRU. Both have one order; the old frame belongs to nobody then.
    pub fn migrate_anon(&mut self, old: Pfn, new: Pfn) {
        let from = self.frames[old];
        assert!(from.kind() == Kind::Anon && self.frames[new].kind() == Kind::Held);
        assert!(!from.has_any(Frame::LRU | Frame::WRITEBACK | Frame::LOCKED), "{old:?} cannot be migrated now");
        assert_eq!(from.order(), self.frames[new].order());
        let to = &mut self.frames[new];
        to.set_kind(Kind::Anon, from.order());
        to.copy_flags_from(&from);
        to.place = from.place;
        if from.has(Frame::MAPPED) {
            let (space, vpn) = self.anon_home(old);
            if from.order() == PAGEBLOCK_ORDER {
                self.set_huge_home(new, (space, vpn));
                self.replace_huge(space, vpn, old, new);
            } else {
                self.replace_slot(space, vpn, Slot::Page(old), Slot::Page(new));
            }
        }
        if from.has(Frame::SWAPCACHE) {
            self.swapcache_replace(old, new);
        }
        self.move_gauges(&from, old, new);
        let from = &mut self.frames[old];
        let isolated = from.has(Frame::ISOLATED);
        from.set_kind(Kind::Held, from.order());
        if isolated {
            from.set(Frame::ISOLATED | Frame::SWAPBACKED);
        }
    }

    /// Moves what is counted of a page from one node to another.
    fn move_gauges(&mut self, from: &Frame, old: Pfn, new: Pfn) {
        let (here, there) = (self.node_of(old), self.node_of(new));
        if here == there {
            return;
        }
        let pages = i64::from(from.nr_pages());
        if from.has(Frame::MAPPED) {
            self.stat.node_add(here, NodeStat::AnonMapped, -pages);
            self.stat.node_add(there, NodeStat::AnonMapped, pages);
        }
        if from.has(Frame::MAPPED) && from.order() == PAGEBLOCK_ORDER {
            self.stat.node_add(here, NodeStat::AnonThps, -1);
            self.stat.node_add(there, NodeStat::AnonThps, 1);
        }
        if from.has(Frame::SWAPCACHE) {
            self.count_cached(here, -1);
            self.count_cached(there, 1);
        }
    }

    /// Space and virtual page of an anonymous page's mapping.
    #[inline]
    pub(crate) fn anon_home(&self, pfn: Pfn) -> (SpaceId, u32) {
        let frame = &self.frames[pfn];
        if frame.has(Frame::SWAPCACHE) {
            self.swap.home(SwapEntry(frame.place))
        } else if frame.order() == PAGEBLOCK_ORDER {
            (SpaceId(frame.place), self.frames[pfn.offset(1)].place)
        } else {
            self.spaces.leaves.home(frame.place)
        }
    }

    /// Notes which pages a huge page is.
    pub(crate) fn set_huge_home(&mut self, pfn: Pfn, (space, base): (SpaceId, u32)) {
        self.frames[pfn].place = space.0;
        self.frames[pfn.offset(1)].place = base;
    }

    /// File and index of a page of the page cache.
    #[inline]
    pub(crate) fn file_home(&self, pfn: Pfn) -> (FileId, u32) {
        let frame = &self.frames[pfn];
        debug_assert!(frame.kind() == Kind::File);
        let (file, index) = self.pagecache.trees.home(frame.place);
        (FileId(file), index)
    }

    /// Changes the page table entry of a page, which must be `from`.
    pub(crate) fn replace_slot(&mut self, space: SpaceId, vpn: u32, from: Slot, to: Slot) {
        let Region::Table(leaf) = self.spaces[space].tables.region(vpn) else {
            panic!("{space:?} has no page table at page {vpn}");
        };
        assert_eq!(self.spaces.leaves.get(leaf, vpn), from, "{space:?} maps something else at page {vpn}");
        self.spaces.leaves.set(leaf, vpn, to);
    }

    fn replace_huge(&mut self, space: SpaceId, vpn: u32, old: Pfn, new: Pfn) {
        let Region::Huge { pfn, deposit } = self.spaces[space].tables.region(vpn) else {
            panic!("{space:?} maps no huge page at page {vpn}");
        };
        assert_eq!(pfn, old);
        self.spaces[space].tables.set_region(vpn, Region::Huge { pfn: new, deposit });
    }
}
