//! Tracepoints: every decision that the kernel traces, with the kernel's fields.

use units::{NodeId, Order, Pfn, ZoneId};

use crate::MigrateType;

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
        /// Highest zone wanted.
        zone: ZoneId,
        /// Order.
        order: Order,
    },
    /// `vmscan:mm_vmscan_kswapd_wake`.
    KswapdWake {
        /// Node.
        node: NodeId,
        /// Order.
        order: Order,
    },
    /// `vmscan:mm_vmscan_kswapd_sleep`.
    KswapdSleep {
        /// Node.
        node: NodeId,
    },
    /// `vmscan:mm_vmscan_direct_reclaim_begin`.
    DirectReclaimBegin {
        /// Order.
        order: Order,
    },
    /// `vmscan:mm_vmscan_direct_reclaim_end`.
    DirectReclaimEnd {
        /// Pages reclaimed.
        nr_reclaimed: u64,
    },
    /// `compaction:mm_compaction_begin`.
    CompactionBegin {
        /// Zone.
        zone: ZoneId,
        /// Migrate scanner.
        migrate_pfn: Pfn,
        /// Free scanner.
        free_pfn: Pfn,
        /// Synchronous.
        sync: bool,
    },
    /// `compaction:mm_compaction_end`.
    CompactionEnd {
        /// Zone.
        zone: ZoneId,
        /// Migrate scanner.
        migrate_pfn: Pfn,
        /// Free scanner.
        free_pfn: Pfn,
        /// `COMPACT_*` as the kernel names it.
        status: &'static str,
    },
    /// `compaction:mm_compaction_wakeup_kcompactd`.
    WakeupKcompactd {
        /// Node.
        node: NodeId,
        /// Order.
        order: Order,
    },
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
            | TraceEvent::DirectReclaimEnd { .. } => self.filter.vmscan,
            TraceEvent::CompactionBegin { .. }
            | TraceEvent::CompactionEnd { .. }
            | TraceEvent::WakeupKcompactd { .. } => self.filter.compaction,
        };
        if wanted {
            self.pending.push(event);
        }
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
