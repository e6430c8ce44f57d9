//! A zone as compaction sees it: what each pageblock holds, and where the scanners go on.
//!
//! Not of the kernel: `/proc/pagetypeinfo` tells how many pageblocks there are of each type, not where, and not which of
//! them a page that stays keeps from becoming free.

use units::{NodeId, Order, PAGEBLOCK_ORDER, PAGEBLOCK_PAGES, Pfn, ZoneId};

use crate::{Kind, Mm, ZoneKind};

/// What a pageblock holds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum BlockUse {
    /// It is free as a whole.
    Free,
    /// Nothing but pages that can be moved, and free ones: compaction could make it free.
    Movable,
    /// Pages that can be moved, and at least one that stays.
    Mixed,
    /// Kernel memory and free pages, or a hole: nothing that can be moved.
    Stays,
    /// One block of a pageblock's size or more is in use: a huge page, or what a module got.
    Taken,
}

/// A zone at one moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ZoneMap {
    /// Its node.
    pub node: NodeId,
    /// Its kind.
    pub kind: ZoneKind,
    /// Its pageblocks, from the lowest.
    pub blocks: Vec<BlockUse>,
    /// Pageblock where the next synchronous migrate scanner goes on, counted from the zone's first; none if it starts
    /// over.
    pub migrate: Option<u32>,
    /// The same for the free scanner.
    pub free: Option<u32>,
    /// The pivot, where scanners have one.
    pub pivot: Option<u32>,
}

impl Mm {
    /// Every zone as it is now. Looks at every frame.
    pub fn zone_maps(&self) -> Vec<ZoneMap> {
        (0..self.zones.len() as u8).map(|zone| self.zone_map(ZoneId(zone))).collect()
    }

    fn zone_map(&self, zone: ZoneId) -> ZoneMap {
        let state = &self.zones[zone.index()];
        let (start, end) = (state.start, state.start.0 + state.spanned as u32);
        let first = start.align_down(PAGEBLOCK_ORDER);
        let starts = (first.0..end).step_by(PAGEBLOCK_PAGES as usize);
        let blocks = starts.map(|at| self.block_use(Pfn(at).max(start), end.min(at + PAGEBLOCK_PAGES))).collect();
        let number = |pfn: Pfn| (pfn.0 - first.0) / PAGEBLOCK_PAGES;
        ZoneMap {
            node: state.node,
            kind: state.kind,
            blocks,
            migrate: state.compact.migrate_pfn[1].map(number),
            free: state.compact.free_pfn.map(number),
            pivot: state.compact.pivot.map(number),
        }
    }

    /// What the frames from `at` to before `end`, of one pageblock, hold.
    fn block_use(&self, mut at: Pfn, end: u32) -> BlockUse {
        let (mut movable, mut stays) = (false, false);
        while at.0 < end {
            let frame = &self.frames[at];
            let pages = match frame.kind() {
                Kind::Buddy if frame.order() >= PAGEBLOCK_ORDER => return BlockUse::Free,
                Kind::Buddy => frame.order().pages(),
                // A block of the largest order begins in the pageblock before.
                Kind::Tail if at == at.align_down(PAGEBLOCK_ORDER) => return self.use_of_larger(at),
                Kind::Anon | Kind::File if frame.order() < PAGEBLOCK_ORDER => {
                    movable = true;
                    frame.nr_pages()
                }
                // Free, but not yet with its neighbours.
                Kind::Pcp => 1,
                Kind::Anon | Kind::File | Kind::Hugetlb | Kind::Kernel if frame.order() >= PAGEBLOCK_ORDER => {
                    return BlockUse::Taken;
                }
                _ => {
                    stays = true;
                    frame.nr_pages()
                }
            };
            at = at.offset(pages.max(1));
        }
        match (movable, stays) {
            (true, true) => BlockUse::Mixed,
            (false, true) => BlockUse::Stays,
            (_, false) => BlockUse::Movable,
        }
    }

    /// What a pageblock holds whose first frame is no first frame of a block.
    fn use_of_larger(&self, at: Pfn) -> BlockUse {
        let larger = at.align_down(Order::MAX);
        if self.frames[larger].kind() == Kind::Buddy { BlockUse::Free } else { BlockUse::Taken }
    }
}
