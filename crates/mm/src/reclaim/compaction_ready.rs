//! Whether reclaim should leave the rest to compaction.
//!
//! Rule: a zone suits compaction if order-0 pages are free above a watermark (low for costly orders, min otherwise) plus
//! twice the order's size, and, for costly orders, if the lack is one of contiguity and not of memory (fragmentation
//! index above `extfrag_threshold`). Direct reclaim for a costly order skips such a zone once it is even above high.
//! Source: `compaction_ready()`, `should_continue_reclaim()`, `in_reclaim_compaction()` (mm/vmscan.c, 4.20; 6.12),
//! `compaction_suitable()`, `compact_gap()` (mm/compaction.c), `fragmentation_index()` (mm/vmstat.c).
//! Since/until: [`ReclaimForCompaction`].

use rules::ReclaimForCompaction;
use units::{Gfp, NodeId, Order, ZoneId};

use super::{DEF_PRIORITY, ScanControl};
use crate::zone::{AllocFlags, Wmark, compact_gap};
use crate::{LruList, Mm, ZoneKind};

/// No allocation flag at all.
const PLAIN: AllocFlags = AllocFlags::only(Wmark::Min);

/// How a zone stands to a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Suitable {
    /// It could be served now.
    Served,
    /// Compaction may help.
    Compact,
    /// Memory is lacking.
    Skip,
}

/// 1000 x the share of fragmentation in the failure of a request; `None` if it would not fail
/// (`__fragmentation_index()`).
fn fragmentation_index(free_counts: &[[u64; 5]; 11], order: Order) -> Option<u64> {
    let (mut blocks, mut free, mut suitable) = (0, 0, 0);
    for (at, area) in free_counts.iter().enumerate() {
        let count: u64 = area.iter().sum();
        blocks += count;
        free += count << at;
        if at >= order.index() {
            suitable += count;
        }
    }
    if blocks == 0 {
        return Some(0);
    }
    let lacking = (1000 + free * 1000 / u64::from(order.pages())) / blocks;
    (suitable == 0).then(|| 1000_u64.saturating_sub(lacking))
}

impl Mm {
    fn compaction_suitable(&self, zone: ZoneId, order: Order, highest: ZoneKind) -> Suitable {
        if self.zone_watermark_ok(zone, order, self.wmark(zone, Wmark::Min), highest, PLAIN) {
            return Suitable::Served;
        }
        let mark = self.wmark(zone, if order > Order::COSTLY { Wmark::Low } else { Wmark::Min });
        if !self.zone_watermark_ok(zone, Order(0), mark + compact_gap(order), highest, PLAIN) {
            return Suitable::Skip;
        }
        if order > Order::COSTLY {
            let index = fragmentation_index(&self.free_counts(zone), order);
            if index.is_some_and(|index| index <= self.tunables.extfrag_threshold) {
                return Suitable::Skip;
            }
        }
        Suitable::Compact
    }

    /// Whether direct reclaim for a costly order leaves a zone to compaction (`compaction_ready()`).
    pub fn compaction_ready(&self, zone: ZoneId, sc: &ScanControl) -> bool {
        match self.compaction_suitable(zone, sc.order, sc.reclaim_idx) {
            Suitable::Served => true,
            Suitable::Skip => false,
            Suitable::Compact => {
                let mark = self.wmark(zone, Wmark::High) + compact_gap(sc.order);
                self.zone_watermark_ok(zone, Order(0), mark, sc.reclaim_idx, PLAIN)
            }
        }
    }

    /// Whether a node is scanned once more because compaction would lack free pages; `reclaimed` and `scanned` are those
    /// of the pass that just ended.
    pub(super) fn should_continue_reclaim(&self, node: NodeId, reclaimed: u64, scanned: u64, sc: &ScanControl) -> bool {
        if sc.order == Order(0) || (sc.order <= Order::COSTLY && sc.priority >= DEF_PRIORITY - 2) {
            return false;
        }
        let suits = |mm: &Mm| {
            let zones = mm.nodes[node.index()].zones.iter();
            zones
                .filter(|z| mm.zones[z.index()].kind <= sc.reclaim_idx && mm.zones[z.index()].managed > 0)
                .any(|&z| mm.compaction_suitable(z, sc.order, sc.reclaim_idx) != Suitable::Skip)
        };
        let gap = compact_gap(sc.order);
        let anon = if self.swap_free_pages() > 0 { self.lru_size(node, LruList::InactiveAnon) } else { 0 };
        let inactive = self.lru_size(node, LruList::InactiveFile) + anon;
        match self.rules.reclaim_for_compaction {
            ReclaimForCompaction::WhileProgress => reclaimed > 0 && !suits(self) && inactive > gap,
            ReclaimForCompaction::UntilGapReclaimed => {
                let gives_up = if sc.gfp.contains(Gfp::RETRY_MAYFAIL) { scanned == 0 } else { true };
                if reclaimed == 0 && gives_up {
                    return false;
                }
                (sc.nr_reclaimed < gap && inactive > gap) || !suits(self)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_small_blocks_are_fragmentation_and_few_are_lack() {
        let mut counts = [[0; 5]; 11];
        counts[0][1] = 4096;
        // 1000 - (1000 + 4096 x 1000 / 512) / 4096 = 1000 - 9000 / 4096 = 998.
        assert_eq!(fragmentation_index(&counts, Order(9)), Some(998));
        counts[0][1] = 2;
        // 1000 - (1000 + 3) / 2 = 499.
        assert_eq!(fragmentation_index(&counts, Order(9)), Some(499));
        counts[9][1] = 1;
        assert_eq!(fragmentation_index(&counts, Order(9)), None);
    }
}
