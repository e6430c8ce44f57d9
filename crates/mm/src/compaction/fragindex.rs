//! The fragmentation index: is an allocation failing for want of memory or for want of order?
//!
//! - **Rule**: with `n` free blocks of `f` pages in all, none large enough for `r` pages, the index is
//!   `1000 - (1000 + f * 1000 / r) / n`, in integers: towards 0 memory is lacking, towards 1000 it is fragmented. With
//!   no free block it is 0, with a block that is large enough -1000.
//! - **Source**: `__fragmentation_index()`, `fill_contig_page_info()` (mm/vmstat.c, 4.20 and 6.12).
//! - **Since**: 2.6.35.

use units::{Order, ZoneId};

use crate::Mm;
use crate::zone::Zone;

/// Thousandths; -1000 if the request would find a block.
pub(super) fn fragmentation_index(zone: &Zone, order: Order) -> i32 {
    let (mut free_pages, mut blocks, mut suitable) = (0u64, 0u64, 0u64);
    for (at, area) in zone.free_area.iter().enumerate() {
        let here: u64 = area.lists.iter().map(|list| u64::from(list.len())).sum();
        blocks += here;
        free_pages += here << at;
        suitable += if at >= order.index() { here } else { 0 };
    }
    if blocks == 0 {
        return 0;
    }
    if suitable > 0 {
        return -1000;
    }
    let lacking = (1000 + free_pages * 1000 / u64::from(order.pages())) / blocks;
    1000 - i32::try_from(lacking).expect("at most 2000: the blocks are smaller than the request")
}

impl Mm {
    /// Fragmentation index of a zone for an order, in thousandths (`/sys/kernel/debug/extfrag/extfrag_index`).
    pub fn fragmentation_index(&self, zone: ZoneId, order: Order) -> i32 {
        fragmentation_index(&self.zones[zone.index()], order)
    }
}
