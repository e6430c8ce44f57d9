//! What is known of each pageblock: migratetype, zone, compaction's skip hint.
//!
//! Rule: free pages are grouped by mobility in blocks of 2 MiB; a block's type says to which free lists its pages
//! return. On a machine with fewer than a block for each type, grouping is off and every request is Unmovable.
//! Source: `set_pageblock_migratetype()`, `build_all_zonelists()` (mm/page_alloc.c, 4.20 and 6.12).
//! Abstracted: two zones never share a pageblock (asserted); the kernel tolerates that and then moves nothing.
//! Omitted: MIGRATE_CMA.

use units::{Gfp, PAGEBLOCK_ORDER, PAGEBLOCK_PAGES, Pfn, ZoneId};

use crate::{MemoryLayout, MigrateType};

use super::flags::{GfpClass, GfpClasses};

/// What a free looks up: two bytes a pageblock.
#[derive(Clone, Copy, Debug)]
struct Block {
    zone: ZoneId,
    migratetype: MigrateType,
}

/// What is known of each pageblock.
#[derive(Clone, Debug)]
pub struct PageBlocks {
    blocks: Vec<Block>,
    skip: Vec<bool>,
    grouping_disabled: bool,
    classes: GfpClasses,
}

impl PageBlocks {
    /// Every block Movable, as `memmap_init_zone()` leaves them.
    pub fn new(layout: &MemoryLayout) -> PageBlocks {
        let count = layout.end_pfn().div_ceil(PAGEBLOCK_PAGES) as usize;
        let none = ZoneId(u8::MAX);
        let mut blocks = vec![Block { zone: none, migratetype: MigrateType::Movable }; count];
        let spans = layout.nodes.iter().flat_map(|n| &n.zones);
        for (id, span) in spans.enumerate() {
            let last = span.start.0 + span.spanned.0 as u32 - 1;
            let zone = ZoneId(u8::try_from(id).expect("at most 255 zones"));
            for block in &mut blocks[block_index(span.start)..=block_index(Pfn(last))] {
                assert!(block.zone == none, "zones {} and {id} share a pageblock", block.zone.0);
                block.zone = zone;
            }
        }
        let grouping_disabled = layout.managed().0 < u64::from(PAGEBLOCK_PAGES) * MigrateType::COUNT as u64;
        let classes = GfpClasses::new(grouping_disabled);
        PageBlocks { blocks, skip: vec![false; count], grouping_disabled, classes }
    }

    /// Number of pageblocks from pfn 0 on.
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Whether there is no pageblock at all.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Whether the machine is too small for mobility grouping (`page_group_by_mobility_disabled`).
    pub fn grouping_disabled(&self) -> bool {
        self.grouping_disabled
    }

    /// Highest zone and migratetype of a request.
    #[inline]
    pub(crate) fn class_of(&self, gfp: Gfp) -> GfpClass {
        self.classes.of(gfp)
    }

    /// Zone of a frame; a number that no zone has if it lies between zones.
    #[inline]
    pub fn zone_of(&self, pfn: Pfn) -> ZoneId {
        self.blocks[block_index(pfn)].zone
    }

    /// Migratetype of the block that a frame lies in.
    #[inline]
    pub fn migratetype(&self, pfn: Pfn) -> MigrateType {
        self.blocks[block_index(pfn)].migratetype
    }

    /// Zone and migratetype in one look.
    #[inline]
    pub(crate) fn zone_and_type(&self, pfn: Pfn) -> (ZoneId, MigrateType) {
        let block = self.blocks[block_index(pfn)];
        (block.zone, block.migratetype)
    }

    /// Changes the type of the block that a frame lies in; without grouping every movable type becomes Unmovable.
    pub fn set_migratetype(&mut self, pfn: Pfn, migratetype: MigrateType) {
        let grouped = (migratetype as usize) < MigrateType::PCP_COUNT;
        let effective = if self.grouping_disabled && grouped { MigrateType::Unmovable } else { migratetype };
        self.blocks[block_index(pfn)].migratetype = effective;
    }

    /// Whether compaction should pass over the block (`PB_migrate_skip`).
    #[inline]
    pub fn skip(&self, pfn: Pfn) -> bool {
        self.skip[block_index(pfn)]
    }

    /// Sets or clears compaction's skip hint.
    pub fn set_skip(&mut self, pfn: Pfn, skip: bool) {
        self.skip[block_index(pfn)] = skip;
    }
}

/// Index of the pageblock that a frame lies in.
#[inline]
fn block_index(pfn: Pfn) -> usize {
    (pfn.0 >> PAGEBLOCK_ORDER.0) as usize
}

#[cfg(test)]
mod tests {
    use units::{NodeId, Pages};

    use super::*;
    use crate::{NodeSpec, ZoneKind, ZoneSpan};

    fn layout(pages: u64) -> MemoryLayout {
        let span = ZoneSpan {
            kind: ZoneKind::Dma32,
            start: Pfn(0),
            spanned: Pages(pages),
            present: Pages(pages),
            managed: Pages(pages),
            hole: None,
        };
        let node = NodeSpec { zones: vec![span], distance: vec![10] };
        MemoryLayout { nodes: vec![node], cpu_nodes: vec![NodeId(0)] }
    }

    #[test]
    fn what_a_free_looks_up_takes_two_bytes() {
        assert_eq!(size_of::<Block>(), 2);
    }

    #[test]
    fn type_and_skip_hint_do_not_disturb_each_other() {
        let mut blocks = PageBlocks::new(&layout(8 * 512));
        blocks.set_skip(Pfn(512), true);
        blocks.set_migratetype(Pfn(1023), MigrateType::HighAtomic);
        assert_eq!(blocks.migratetype(Pfn(512)), MigrateType::HighAtomic);
        assert_eq!(blocks.migratetype(Pfn(511)), MigrateType::Movable);
        assert!(blocks.skip(Pfn(700)) && !blocks.skip(Pfn(1024)));
    }

    #[test]
    fn grouping_needs_a_block_for_each_type() {
        // 5 types x 512 pages.
        assert!(!PageBlocks::new(&layout(2560)).grouping_disabled());
        assert!(PageBlocks::new(&layout(2559)).grouping_disabled());
    }

    #[test]
    fn without_grouping_a_claimed_block_is_unmovable() {
        let mut blocks = PageBlocks::new(&layout(2048));
        blocks.set_migratetype(Pfn(0), MigrateType::Reclaimable);
        assert_eq!(blocks.migratetype(Pfn(0)), MigrateType::Unmovable);
    }
}
