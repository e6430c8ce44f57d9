//! What compaction's tracepoints tell.
//!
//! - **Source**: include/trace/events/compaction.h, and where mm/compaction.c hits them, 3.1, 4.4, 5.0 and 6.12.
//! - **Since/until**: [`CompactionEvents`](rules::CompactionEvents): which of them a kernel has is not asked here, but where they are printed.
//! - **Abstracted**: a scan of the migrate scanner that must wait for a page is told as two. A cluster for which there were too
//!   few targets has failed but for the pages that were moved; 5.0 counts those as moved that failed before the targets ran out.

use units::{Gfp, NodeId, Order, Pfn, ZoneId};

use super::{CompactPriority, CompactResult};
use crate::{Mm, ZoneKind};

/// Who looks for pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scanner {
    /// The migrate scanner.
    Migrate,
    /// The free scanner.
    Free,
    /// The search of the free lists for targets.
    FreeLists,
}

/// What is decided about the deferral of a zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Deferral {
    /// An attempt is let pass.
    Deferred,
    /// It is deferred.
    Defer,
    /// It is not deferred any more, or for fewer orders.
    Reset,
}

/// One event; the variants are the kernel's tracepoints (`compaction:mm_compaction_*`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CompactionEvent {
    /// `isolate_migratepages`, `isolate_freepages` and `fast_isolate_freepages`.
    Isolate {
        /// Who looked.
        scanner: Scanner,
        /// Where it began.
        start: Pfn,
        /// First frame not looked at.
        end: Pfn,
        /// Frames that count as looked at.
        nr_scanned: u64,
        /// Pages taken.
        nr_taken: u64,
    },
    /// `migratepages`.
    Migratepages {
        /// Pages moved.
        nr_migrated: u64,
        /// Pages that were not.
        nr_failed: u64,
    },
    /// `begin`.
    Begin {
        /// Zone.
        zone: ZoneId,
        /// Migrate scanner.
        migrate_pfn: Pfn,
        /// Free scanner.
        free_pfn: Pfn,
        /// Synchronous.
        sync: bool,
    },
    /// `end`.
    End {
        /// Zone.
        zone: ZoneId,
        /// Migrate scanner.
        migrate_pfn: Pfn,
        /// Free scanner.
        free_pfn: Pfn,
        /// Synchronous.
        sync: bool,
        /// What it came to.
        status: CompactResult,
    },
    /// `try_to_compact_pages`.
    TryToCompactPages {
        /// Order.
        order: Order,
        /// What the allocation may do.
        gfp: Gfp,
        /// How hard it tries.
        priority: CompactPriority,
    },
    /// `finished`.
    Finished {
        /// Zone.
        zone: ZoneId,
        /// Order; none if everything is compacted.
        order: Option<Order>,
        /// Whether the run goes on.
        ret: CompactResult,
    },
    /// `suitable`.
    Suitable {
        /// Zone.
        zone: ZoneId,
        /// Order; none if everything is to be compacted.
        order: Option<Order>,
        /// Whether compaction makes sense.
        ret: CompactResult,
    },
    /// `deferred`, `defer_compaction` and `defer_reset`.
    Deferral {
        /// Which.
        what: Deferral,
        /// Zone.
        zone: ZoneId,
        /// Order of the attempt.
        order: Order,
        /// Lowest order that is deferred.
        order_failed: Order,
        /// Attempts let pass.
        considered: u32,
        /// Attempts to let pass.
        limit: u32,
    },
    /// `kcompactd_sleep`.
    KcompactdSleep {
        /// Node.
        node: NodeId,
    },
    /// `kcompactd_wake`.
    KcompactdWake {
        /// Node.
        node: NodeId,
        /// Order.
        order: Order,
        /// Highest zone to compact.
        highest: ZoneKind,
    },
    /// `wakeup_kcompactd`.
    WakeupKcompactd {
        /// Node.
        node: NodeId,
        /// Order.
        order: Order,
        /// Highest zone to compact.
        highest: ZoneKind,
    },
}

impl Mm {
    /// Tells what was decided about the deferral of a zone, as it is then.
    pub(super) fn trace_deferral(&mut self, what: Deferral, zone: ZoneId, order: Order) {
        let state = &self.zones[zone.index()].compact;
        let (order_failed, considered, limit) = (state.order_failed, state.considered, state.defer_limit());
        self.trace.emit_compaction(CompactionEvent::Deferral { what, zone, order, order_failed, considered, limit });
    }
}
