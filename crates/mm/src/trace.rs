//! Tracepoints: every decision that the kernel traces, with the kernel's fields.

use units::{Gfp, NodeId, Order, Pfn};

use crate::compaction::CompactionEvent;
use crate::vfs::ShrinkerId;
use crate::{LruList, MigrateType, ZoneKind};

/// What isolation took around the pages of a batch, until 3.4.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Contiguous {
    /// Pages taken.
    pub taken: u32,
    /// Dirty ones among them.
    pub dirty: u32,
    /// Blocks that were not taken whole.
    pub failed: u32,
}

impl Contiguous {
    /// Counts what was taken around one more page.
    pub(crate) fn add(&mut self, more: Contiguous) {
        self.taken += more.taken;
        self.dirty += more.dirty;
        self.failed += more.failed;
    }
}

/// `vmscan:mm_vmscan_lru_isolate`; in list entries or base pages, as the kernel counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LruIsolate {
    /// Highest zone to take pages from.
    pub highest: ZoneKind,
    /// Order.
    pub order: Order,
    /// Asked for.
    pub nr_requested: u32,
    /// Looked at, skipped ones included.
    pub nr_scanned: u32,
    /// Passed over for their zone.
    pub nr_skipped: u32,
    /// Base pages taken.
    pub nr_taken: u32,
    /// Taken around them.
    pub contiguous: Contiguous,
    /// Mapped pages may be taken.
    pub may_unmap: bool,
    /// Dirty pages may be written.
    pub may_writepage: bool,
    /// The list.
    pub list: LruList,
}

/// `vmscan:mm_vmscan_lru_shrink_inactive`; in list entries or base pages, as the kernel counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LruShrinkInactive {
    /// Node.
    pub node: NodeId,
    /// Zone, where each has lists of its own.
    pub zone: Option<ZoneKind>,
    /// Looked at.
    pub nr_scanned: u32,
    /// Base pages freed.
    pub nr_reclaimed: u32,
    /// Dirty or under writeback.
    pub nr_dirty: u32,
    /// Under writeback, marked now.
    pub nr_writeback: u32,
    /// On a congested device, or under writeback and marked already.
    pub nr_congested: u32,
    /// Under writeback and marked already, where kswapd waits for that.
    pub nr_immediate: u32,
    /// Made active, of [anon, file].
    pub nr_activate: [u32; 2],
    /// Referenced, and left for another round.
    pub nr_ref_keep: u32,
    /// Still mapped after all.
    pub nr_unmap_fail: u32,
    /// Priority.
    pub priority: i8,
    /// Page cache.
    pub file: bool,
}

/// `vmscan:mm_vmscan_lru_shrink_active`; in base pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LruShrinkActive {
    /// Node.
    pub node: NodeId,
    /// Taken off the list.
    pub nr_taken: u32,
    /// Put back on it.
    pub nr_active: u32,
    /// Put on the inactive list.
    pub nr_deactivated: u32,
    /// Rotated for their references.
    pub nr_referenced: u32,
    /// Priority.
    pub priority: i8,
    /// Page cache.
    pub file: bool,
}

/// `vmscan:mm_shrink_slab_start`; in objects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShrinkSlabStart {
    /// Shrinker.
    pub shrinker: ShrinkerId,
    /// Node.
    pub node: NodeId,
    /// What the allocation behind this may do.
    pub gfp: Gfp,
    /// Put off by earlier passes.
    pub deferred: u64,
    /// LRU pages that the pass has looked at, and those on the lists, where they decide.
    pub lru: (u64, u64),
    /// Offered to be freed.
    pub freeable: u64,
    /// To scan because of this pass alone.
    pub delta: u64,
    /// To scan in all.
    pub total_scan: u64,
    /// Priority.
    pub priority: i8,
}

/// `vmscan:mm_shrink_slab_end`; in objects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShrinkSlabEnd {
    /// Shrinker.
    pub shrinker: ShrinkerId,
    /// Node.
    pub node: NodeId,
    /// Freed.
    pub freed: u64,
    /// Offered still, after the last call; 0 if there was none, -1 if it was refused.
    pub left: i64,
    /// Put off by earlier passes, as the pass began.
    pub deferred: u64,
    /// Put off by others while it ran.
    pub deferred_since: u64,
    /// Put off now.
    pub put_off: u64,
    /// Not scanned of what was to be.
    pub total_scan: u64,
}

/// One event; the variants are the kernel's tracepoints.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TraceEvent {
    /// `kmem:mm_page_alloc_extfrag`.
    PageAllocExtfrag {
        /// First frame of the block taken.
        pfn: Pfn,
        /// Order asked for.
        alloc_order: Order,
        /// Order of the block taken.
        fallback_order: Order,
        /// Type asked for.
        alloc_migratetype: MigrateType,
        /// Type of the list it was taken from.
        fallback_migratetype: MigrateType,
        /// Whether the pageblock changes its type.
        change_ownership: bool,
    },
    /// `vmscan:mm_vmscan_wakeup_kswapd`.
    WakeupKswapd {
        /// Node.
        node: NodeId,
        /// The zone that is short where each is balanced, else the highest wanted.
        zone: ZoneKind,
        /// Order.
        order: Order,
        /// What the allocation behind this may do.
        gfp: Gfp,
    },
    /// `vmscan:mm_vmscan_kswapd_wake`.
    KswapdWake {
        /// Node.
        node: NodeId,
        /// Highest zone to balance.
        highest: ZoneKind,
        /// Order.
        order: Order,
    },
    /// `vmscan:mm_vmscan_kswapd_sleep`.
    KswapdSleep {
        /// Node.
        node: NodeId,
    },
    /// `vmscan:mm_vmscan_direct_reclaim_begin`, or `mm_vmscan_memcg_reclaim_begin`.
    DirectReclaimBegin {
        /// A group is above its limit.
        memcg: bool,
        /// Order.
        order: Order,
        /// What the allocation behind this may do.
        gfp: Gfp,
        /// Highest zone to take pages from.
        highest: ZoneKind,
    },
    /// `vmscan:mm_vmscan_direct_reclaim_end`, or `mm_vmscan_memcg_reclaim_end`.
    DirectReclaimEnd {
        /// A group is above its limit.
        memcg: bool,
        /// Pages reclaimed.
        nr_reclaimed: u64,
    },
    /// A batch is taken off a list.
    LruIsolate(LruIsolate),
    /// A batch of an inactive list is through.
    LruShrinkInactive(LruShrinkInactive),
    /// A batch of an active list is through.
    LruShrinkActive(LruShrinkActive),
    /// A shrinker's pass begins.
    ShrinkSlabStart(ShrinkSlabStart),
    /// A shrinker's pass ends.
    ShrinkSlabEnd(ShrinkSlabEnd),
    /// One of compaction.
    Compaction(CompactionEvent),
}

/// Which tracepoints are recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TraceFilter {
    /// `kmem:`.
    pub kmem: bool,
    /// `vmscan:`.
    pub vmscan: bool,
    /// `compaction:`.
    pub compaction: bool,
}

/// Events recorded since they were last taken; nothing is kept unless the filter asks for it.
#[derive(Default, Debug)]
pub struct Trace {
    /// What to record.
    pub filter: TraceFilter,
    pending: Vec<TraceEvent>,
}

impl Trace {
    /// Records an event if its group is wanted.
    #[inline]
    pub fn emit(&mut self, event: TraceEvent) {
        let wanted = match event {
            TraceEvent::PageAllocExtfrag { .. } => self.filter.kmem,
            TraceEvent::WakeupKswapd { .. }
            | TraceEvent::KswapdWake { .. }
            | TraceEvent::KswapdSleep { .. }
            | TraceEvent::DirectReclaimBegin { .. }
            | TraceEvent::DirectReclaimEnd { .. }
            | TraceEvent::LruIsolate(_)
            | TraceEvent::LruShrinkInactive(_)
            | TraceEvent::LruShrinkActive(_)
            | TraceEvent::ShrinkSlabStart(_)
            | TraceEvent::ShrinkSlabEnd(_) => self.filter.vmscan,
            TraceEvent::Compaction(_) => self.filter.compaction,
        };
        if wanted {
            self.pending.push(event);
        }
    }

    /// Records an event of compaction if they are wanted.
    #[inline]
    pub(crate) fn emit_compaction(&mut self, event: CompactionEvent) {
        self.emit(TraceEvent::Compaction(event));
    }

    /// Whether anything was recorded.
    #[inline]
    pub fn is_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Takes what was recorded.
    pub fn take(&mut self) -> Vec<TraceEvent> {
        std::mem::take(&mut self.pending)
    }
}
