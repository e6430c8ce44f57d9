//! What one compaction of a zone is asked to do.
//!
//! - **Rule**: an allocation compacts asynchronously first and light-synchronously after reclaim; only the hardest
//!   priority takes the whole zone, ignores skip hints and fills blocks of any type. kcompactd is light-synchronous.
//!   `/proc/sys/vm/compact_memory` is fully synchronous and has no order.
//! - **Source**: `struct compact_control` (mm/internal.h), `compact_zone_order()`, `kcompactd_do_work()`,
//!   `compact_node()` (mm/compaction.c), 4.20 and 6.12.
//! - **Omitted**: `alloc_contig_range()`, memory hotplug.

use units::{Gfp, Order};

use super::CompactPriority;
use crate::ZoneKind;
use crate::zone::{AllocFlags, Wmark};

/// How long a migration may wait (`enum migrate_mode`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum MigrateMode {
    /// Never.
    Async,
    /// For locks, not for writeback.
    SyncLight,
    /// For writeback too.
    Sync,
}

/// On whose behalf a zone is compacted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Compactor {
    /// An allocation (`direct_compaction`).
    Direct,
    /// kcompactd.
    Daemon,
    /// kcompactd of a fragmented node that nobody asked for (since 5.9).
    Proactive,
    /// kswapd (until 4.5).
    Kswapd,
    /// `/proc/sys/vm/compact_memory`.
    Admin,
}

/// What one compaction of a zone is asked to do (`struct compact_control`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CompactControl {
    /// Order to make free; `None` compacts everything there is.
    pub order: Option<Order>,
    /// Flags of the allocation: migratetype, and whether file pages may be touched.
    pub gfp: Gfp,
    /// How long migration may wait.
    pub mode: MigrateMode,
    /// Who asks.
    pub who: Compactor,
    /// Scanners start at the zone's ends, whatever was cached.
    pub whole_zone: bool,
    /// Blocks marked to be skipped are scanned all the same.
    pub ignore_skip_hint: bool,
    /// Blocks of any type take migrated pages.
    pub ignore_block_suitable: bool,
    /// Highest zone that the allocation may use: whose lowmem reserve counts.
    pub highest: ZoneKind,
    /// What the allocation's watermark check goes by.
    pub alloc_flags: AllocFlags,
}

impl CompactControl {
    /// For an allocation (`compact_zone_order()`).
    pub fn direct(order: Order, gfp: Gfp, priority: CompactPriority, highest: ZoneKind, flags: AllocFlags) -> Self {
        let hardest = priority == CompactPriority::MIN;
        CompactControl {
            order: Some(order),
            gfp,
            mode: if priority == CompactPriority::Async { MigrateMode::Async } else { MigrateMode::SyncLight },
            who: Compactor::Direct,
            whole_zone: hardest,
            ignore_skip_hint: hardest,
            ignore_block_suitable: hardest,
            highest,
            alloc_flags: flags,
        }
    }

    /// For kcompactd (`kcompactd_do_work()`). Its blocks are sought as for an unmovable allocation.
    pub fn daemon(order: Order, highest: ZoneKind) -> Self {
        CompactControl {
            order: Some(order),
            gfp: Gfp::KERNEL,
            mode: MigrateMode::SyncLight,
            who: Compactor::Daemon,
            whole_zone: false,
            ignore_skip_hint: false,
            ignore_block_suitable: false,
            highest,
            alloc_flags: AllocFlags::only(Wmark::Min),
        }
    }

    /// For kswapd (`compact_pgdat()`, until 4.5): asynchronously, as for an unmovable allocation without flags.
    pub fn kswapd(order: Order) -> Self {
        CompactControl {
            mode: MigrateMode::Async,
            who: Compactor::Kswapd,
            ..CompactControl::daemon(order, ZoneKind::Dma)
        }
    }

    /// For `/proc/sys/vm/compact_memory` (`compact_node()`).
    pub fn everything() -> Self {
        CompactControl {
            order: None,
            mode: MigrateMode::Sync,
            who: Compactor::Admin,
            whole_zone: true,
            ignore_skip_hint: true,
            ..CompactControl::daemon(Order(0), ZoneKind::Movable)
        }
    }

    /// For a fragmented node (`compact_node()` since 5.9): light-synchronously, with everything there is.
    pub fn proactive() -> Self {
        CompactControl { mode: MigrateMode::SyncLight, who: Compactor::Proactive, ..CompactControl::everything() }
    }

    /// Whether an allocation compacts without waiting: it gives up an aligned block at the first page that stays.
    pub(super) fn is_direct_async(&self) -> bool {
        self.who == Compactor::Direct && self.mode == MigrateMode::Async
    }
}
