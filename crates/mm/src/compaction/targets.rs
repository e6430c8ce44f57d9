//! The free pages that a run holds to move pages to.
//!
//! - **Rule**: until 6.8 they are single pages, and the one taken last and highest is used first. Since then they stay
//!   blocks: the smallest is used first, the one taken first before the others; of a block that is split the lower part
//!   is used, and the rest comes first among its order. What is left is given back as it is.
//! - **Source**: `split_map_pages()`, `release_freepages()`, `compaction_alloc()` (mm/compaction.c, 4.20 and 6.1);
//!   `compaction_alloc()`, `compaction_free()`, `release_free_list()` (6.12).
//! - **Since/until**: [`CompactionTargets`].

use rules::CompactionTargets;
use units::{Order, Pfn};

use crate::{Frames, Kind, List, Mm};

/// Free pages held; all lists but the first stay empty where single pages are held.
#[derive(Clone, Debug, Default)]
pub(super) struct Targets {
    lists: [List; Order::MAX.0 as usize + 1],
    pages: u32,
}

impl Targets {
    /// Pages held.
    pub(super) fn pages(&self) -> u32 {
        self.pages
    }

    /// Takes a block that is Held.
    pub(super) fn add(&mut self, mm: &mut Mm, first: Pfn, order: Order) {
        self.pages += order.pages();
        match mm.rules.compaction_targets {
            CompactionTargets::ByOrder => self.lists[order.index()].push_back(&mut mm.frames, first),
            CompactionTargets::SinglePages => {
                mm.split_held(first);
                for n in 0..order.pages() {
                    self.lists[0].push_front(&mut mm.frames, first.offset(n));
                }
            }
        }
    }

    /// The smallest order, from one on, that a block is held of.
    fn smallest_from(&self, order: Order) -> Option<usize> {
        (order.index()..self.lists.len()).find(|order| !self.lists[*order].is_empty())
    }

    /// Whether a block to migrate a folio of an order to is held.
    pub(super) fn has(&self, order: Order) -> bool {
        self.smallest_from(order).is_some()
    }

    /// A block to migrate a folio of an order to.
    pub(super) fn take(&mut self, frames: &mut Frames, order: Order) -> Option<Pfn> {
        let from = self.smallest_from(order)?;
        let pfn = self.lists[from].pop_front(frames)?;
        for lower in (order.0..from as u8).rev().map(Order) {
            let rest = pfn.offset(lower.pages());
            frames[rest].set_kind(Kind::Held, lower);
            self.lists[lower.index()].push_front(frames, rest);
        }
        frames[pfn].set_kind(Kind::Held, order);
        self.pages -= order.pages();
        Some(pfn)
    }

    /// A block that was not used.
    pub(super) fn put_back(&mut self, frames: &mut Frames, pfn: Pfn) {
        let order = frames[pfn].order();
        self.pages += order.pages();
        self.lists[order.index()].push_front(frames, pfn);
    }

    /// A block to give back, from the smallest.
    pub(super) fn release(&mut self, frames: &mut Frames) -> Option<(Pfn, Order)> {
        let order = self.lists.iter().position(|list| !list.is_empty())?;
        let pfn = self.lists[order].pop_front(frames)?;
        self.pages -= 1 << order;
        Some((pfn, Order(order as u8)))
    }
}
