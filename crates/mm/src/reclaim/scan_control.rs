//! What one reclaimer wants and what it has got (`struct scan_control`).
//!
//! Source: `struct scan_control`, `try_to_free_pages()`, `balance_pgdat()` (mm/vmscan.c, 4.20; 6.12).

use rules::MemcgWalkSharing;
use units::{Gfp, MemcgId, Order};

use super::{DEF_PRIORITY, SWAP_CLUSTER_MAX};
use crate::memcg::ROOT;
use crate::{Mm, ZoneKind};

/// What a pass over a node met, in pages (`sc->nr`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NodeScan {
    /// Dirty or under writeback.
    pub dirty: u64,
    /// Dirty and not queued for writing.
    pub unqueued_dirty: u64,
    /// Under writeback for the second time round, or on a congested device.
    pub congested: u64,
    /// Under writeback, seen for the first time.
    pub writeback: u64,
    /// Under writeback, and waited for already.
    pub immediate: u64,
    /// Taken off the inactive file list.
    pub file_taken: u64,
    /// Taken off an inactive list.
    pub taken: u64,
}

/// One reclaimer's aims, limits and results.
#[derive(Clone, Debug)]
pub struct ScanControl {
    /// Group whose limit is behind this; the root group in global reclaim.
    pub target: MemcgId,
    /// Pages to reclaim.
    pub nr_to_reclaim: u64,
    /// What the allocation behind this may do.
    pub gfp: Gfp,
    /// Order of that allocation.
    pub order: Order,
    /// `size >> priority` of each list is scanned in a pass.
    pub priority: i8,
    /// Highest zone to take pages from.
    pub reclaim_idx: ZoneKind,
    /// May write dirty pages.
    pub may_writepage: bool,
    /// May take mapped pages.
    pub may_unmap: bool,
    /// May take anonymous pages.
    pub may_swap: bool,
    /// May call shrinkers.
    pub may_shrink_slab: bool,
    /// A zone is ready for compaction.
    pub compaction_ready: bool,
    /// The batch takes whole blocks, whatever is in them (`RECLAIM_MODE_LUMPYRECLAIM`).
    pub(super) lumpy: bool,
    /// The batch is for contiguous memory, and all that could not be freed of it is being written (not `RECLAIM_MODE_SINGLE`).
    pub(super) contiguous: bool,
    /// Inactive pages looked at since it was last reset.
    pub nr_scanned: u64,
    /// Pages reclaimed in all.
    pub nr_reclaimed: u64,
    /// What the current pass met.
    pub nr: NodeScan,
    /// Costs of [anon, file] when the pass began.
    pub(super) cost: [u64; 2],
    /// Active pages of [anon, file] may be deactivated.
    pub(super) may_deactivate: [bool; 2],
    /// They may in any case.
    pub(super) force_deactivate: bool,
    /// Some could have been scanned and were not.
    pub(super) skipped_deactivate: bool,
    /// Enough inactive cache that does not come back: leave the rest alone.
    pub(super) cache_trim_mode: bool,
    /// That mode found nothing.
    pub(super) cache_trim_mode_failed: bool,
    /// That mode is not to be used.
    pub(super) no_cache_trim_mode: bool,
    /// Groups within `memory.low` are not spared.
    pub(super) low_reclaim: bool,
    /// A group was spared because of its `memory.low`.
    pub(super) low_skipped: bool,
    /// Goes through all groups, not only through some of a walk that it shares (`memcg_full_walk`).
    pub(super) full_walk: bool,
    /// Hardly any page cache is left.
    pub(super) file_is_tiny: bool,
    /// kswapd makes a new generation before the next pass if one is due (`memcgs_need_aging`).
    pub(super) need_aging: bool,
    /// kswapd has to swap in the next pass (`memcgs_need_swapping`), and does not swap in this one
    /// (`memcgs_avoid_swapping`).
    pub(super) need_swapping: bool,
    pub(super) avoid_swapping: bool,
    /// Pages reclaimed before the pass (`last_reclaimed`).
    pub(super) last_reclaimed: u64,
    /// May promote pages in batches, as a walk over page tables does (`reclaim_state->mm_walk`).
    pub(super) has_walk: bool,
}

impl ScanControl {
    fn new(gfp: Gfp, order: Order, reclaim_idx: ZoneKind) -> ScanControl {
        ScanControl {
            target: ROOT,
            nr_to_reclaim: 0,
            gfp,
            order,
            priority: DEF_PRIORITY,
            reclaim_idx,
            may_writepage: true,
            may_unmap: true,
            may_swap: true,
            may_shrink_slab: true,
            compaction_ready: false,
            lumpy: false,
            contiguous: false,
            nr_scanned: 0,
            nr_reclaimed: 0,
            nr: NodeScan::default(),
            cost: [0; 2],
            may_deactivate: [false; 2],
            force_deactivate: false,
            skipped_deactivate: false,
            cache_trim_mode: false,
            cache_trim_mode_failed: false,
            no_cache_trim_mode: false,
            low_reclaim: false,
            low_skipped: false,
            full_walk: false,
            file_is_tiny: false,
            need_aging: false,
            need_swapping: false,
            avoid_swapping: false,
            last_reclaimed: 0,
            has_walk: false,
        }
    }

    /// For kswapd; the target is set at each pass.
    pub fn kswapd(order: Order, highest: ZoneKind) -> ScanControl {
        ScanControl::new(Gfp::KERNEL, order, highest)
    }

    /// For a task whose allocation failed: 32 pages.
    pub fn direct(gfp: Gfp, order: Order, highest: ZoneKind) -> ScanControl {
        ScanControl { nr_to_reclaim: u64::from(SWAP_CLUSTER_MAX), ..ScanControl::new(gfp, order, highest) }
    }

    /// For a task whose group is above a limit.
    pub fn memcg(target: MemcgId, gfp: Gfp, pages: u64, may_swap: bool) -> ScanControl {
        let nr_to_reclaim = pages.max(u64::from(SWAP_CLUSTER_MAX));
        ScanControl { target, nr_to_reclaim, may_swap, ..ScanControl::new(gfp, Order(0), ZoneKind::Movable) }
    }

    /// Whether memory itself is short, not what a group may use.
    pub(super) fn is_global(&self) -> bool {
        self.target == ROOT
    }

    /// After all priorities without any result: whether there is something that was spared, which is not from now on.
    pub(super) fn tries_harder(&mut self, mm: &Mm) -> bool {
        if mm.rules.memcg_walk == MemcgWalkSharing::DirectReclaim && !self.full_walk {
            self.full_walk = true;
            return true;
        }
        if self.skipped_deactivate {
            (self.force_deactivate, self.skipped_deactivate) = (true, false);
            return true;
        }
        let skipped = std::mem::take(&mut self.low_skipped);
        if skipped {
            (self.force_deactivate, self.low_reclaim) = (false, true);
        }
        skipped
    }

    /// Whether the priority is so high that even those who otherwise do not write do so (`< DEF_PRIORITY - 2`).
    pub(super) fn is_desperate(&self) -> bool {
        self.priority < DEF_PRIORITY - 2
    }
}
