//! The counters of `/proc/vmstat` and `/proc/zoneinfo`, under the kernel's names.
//!
//! Source: `enum zone_stat_item`, `enum node_stat_item` (include/linux/mmzone.h), `enum vm_event_item`
//! (include/linux/vm_event_item.h), `vmstat_text` (mm/vmstat.c), 6.12 with the names that 4.20 printed.
//! Abstracted: per-CPU differentials; a counter is always exact here.

use units::{NodeId, ZoneId};

use crate::ZoneKind;

/// An enum of counters with their names.
macro_rules! items {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u8)]
        pub enum $name { $(#[doc = concat!("`", $text, "`")] $variant,)* }

        impl $name {
            /// Every item, in the order of the file.
            pub const ALL: &[$name] = &[$($name::$variant,)*];
            /// Number of items.
            pub const COUNT: usize = Self::ALL.len();

            /// Name as the kernel prints it.
            pub fn name(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }
        }
    };
}

pub(crate) use items;

items!(
    /// Gauges of a zone, in pages.
    ZoneStat {
        FreePages = "nr_free_pages",
        InactiveAnon = "nr_zone_inactive_anon",
        ActiveAnon = "nr_zone_active_anon",
        InactiveFile = "nr_zone_inactive_file",
        ActiveFile = "nr_zone_active_file",
        Unevictable = "nr_zone_unevictable",
        WritePending = "nr_zone_write_pending",
        Mlock = "nr_mlock",
        PageTablePages = "nr_page_table_pages",
        KernelStack = "nr_kernel_stack",
        Zspages = "nr_zspages",
    }
);
items!(
    /// Gauges and counters of a node, in pages.
    NodeStat {
        InactiveAnon = "nr_inactive_anon",
        ActiveAnon = "nr_active_anon",
        InactiveFile = "nr_inactive_file",
        ActiveFile = "nr_active_file",
        Unevictable = "nr_unevictable",
        SlabReclaimable = "nr_slab_reclaimable",
        SlabUnreclaimable = "nr_slab_unreclaimable",
        IsolatedAnon = "nr_isolated_anon",
        IsolatedFile = "nr_isolated_file",
        WorkingsetNodes = "workingset_nodes",
        WorkingsetRefaultAnon = "workingset_refault_anon",
        WorkingsetRefaultFile = "workingset_refault_file",
        WorkingsetActivateAnon = "workingset_activate_anon",
        WorkingsetActivateFile = "workingset_activate_file",
        WorkingsetRestoreAnon = "workingset_restore_anon",
        WorkingsetRestoreFile = "workingset_restore_file",
        WorkingsetNodereclaim = "workingset_nodereclaim",
        AnonMapped = "nr_anon_pages",
        FileMapped = "nr_mapped",
        FilePages = "nr_file_pages",
        FileDirty = "nr_dirty",
        Writeback = "nr_writeback",
        Shmem = "nr_shmem",
        AnonThps = "nr_anon_transparent_hugepages",
        VmscanWrite = "nr_vmscan_write",
        VmscanImmediate = "nr_vmscan_immediate_reclaim",
        Dirtied = "nr_dirtied",
        Written = "nr_written",
        KernelMisc = "nr_kernel_misc_reclaimable",
        SwapCached = "nr_swapcached",
        ThrottledWritten = "nr_throttled_written",
    }
);
items!(
    /// Event counters of the machine.
    VmEvent {
        Pgpgin = "pgpgin",
        Pgpgout = "pgpgout",
        Pswpin = "pswpin",
        Pswpout = "pswpout",
        Pgfree = "pgfree",
        Pgactivate = "pgactivate",
        Pgdeactivate = "pgdeactivate",
        Pglazyfree = "pglazyfree",
        Pglazyfreed = "pglazyfreed",
        Pgfault = "pgfault",
        Pgmajfault = "pgmajfault",
        Pgrefill = "pgrefill",
        Pgreuse = "pgreuse",
        PgstealKswapd = "pgsteal_kswapd",
        PgstealDirect = "pgsteal_direct",
        PgscanKswapd = "pgscan_kswapd",
        PgscanDirect = "pgscan_direct",
        PgscanDirectThrottle = "pgscan_direct_throttle",
        PgscanAnon = "pgscan_anon",
        PgscanFile = "pgscan_file",
        PgstealAnon = "pgsteal_anon",
        PgstealFile = "pgsteal_file",
        Pginodesteal = "pginodesteal",
        SlabsScanned = "slabs_scanned",
        KswapdInodesteal = "kswapd_inodesteal",
        KswapdLowWmarkHitQuickly = "kswapd_low_wmark_hit_quickly",
        KswapdHighWmarkHitQuickly = "kswapd_high_wmark_hit_quickly",
        KswapdSkipCongestionWait = "kswapd_skip_congestion_wait",
        Pageoutrun = "pageoutrun",
        Pgrotated = "pgrotated",
        DropPagecache = "drop_pagecache",
        DropSlab = "drop_slab",
        OomKill = "oom_kill",
        PgmigrateSuccess = "pgmigrate_success",
        PgmigrateFail = "pgmigrate_fail",
        CompactMigrateScanned = "compact_migrate_scanned",
        CompactFreeScanned = "compact_free_scanned",
        CompactIsolated = "compact_isolated",
        CompactStall = "compact_stall",
        CompactFail = "compact_fail",
        CompactSuccess = "compact_success",
        CompactDaemonWake = "compact_daemon_wake",
        CompactDaemonMigrateScanned = "compact_daemon_migrate_scanned",
        CompactDaemonFreeScanned = "compact_daemon_free_scanned",
        ThpFaultAlloc = "thp_fault_alloc",
        ThpFaultFallback = "thp_fault_fallback",
        ThpCollapseAlloc = "thp_collapse_alloc",
        ThpCollapseAllocFailed = "thp_collapse_alloc_failed",
        ThpSplitPage = "thp_split_page",
        ThpSplitPmd = "thp_split_pmd",
        ThpDeferredSplitPage = "thp_deferred_split_page",
        ThpSwpout = "thp_swpout",
        ThpSwpoutFallback = "thp_swpout_fallback",
        SwapRa = "swap_ra",
        SwapRaHit = "swap_ra_hit",
        Zswpin = "zswpin",
        Zswpout = "zswpout",
        Zswpwb = "zswpwb",
        NumaHit = "numa_hit",
        NumaMiss = "numa_miss",
        NumaForeign = "numa_foreign",
        NumaLocal = "numa_local",
        NumaOther = "numa_other",
    }
);
items!(
    /// Event counters kept for each kind of zone; the name is followed by the zone's.
    ZoneEvent {
        Pgalloc = "pgalloc",
        Allocstall = "allocstall",
        Pgskip = "pgskip",
        PgscanKswapd = "pgscan_kswapd",
        PgscanDirect = "pgscan_direct",
        PgstealKswapd = "pgsteal_kswapd",
        PgstealDirect = "pgsteal_direct",
    }
);
items!(
    /// Fragmentation events, counted as the tracepoint `mm_page_alloc_extfrag` is emitted; not in `/proc/vmstat`.
    ExtfragEvent {
        Unmovable = "extfrag_unmovable",
        Movable = "extfrag_movable",
        Reclaimable = "extfrag_reclaimable",
        Whole = "extfrag_whole_block",
    }
);

/// All counters of a machine.
#[derive(Clone, Debug)]
pub struct VmStat {
    zones: Vec<[i64; ZoneStat::COUNT]>,
    nodes: Vec<[i64; NodeStat::COUNT]>,
    events: [u64; VmEvent::COUNT],
    zone_events: [[u64; ZoneKind::COUNT]; ZoneEvent::COUNT],
    extfrag: [u64; ExtfragEvent::COUNT],
}

impl VmStat {
    /// All zero.
    pub fn new(nr_zones: usize, nr_nodes: usize) -> VmStat {
        VmStat {
            zones: vec![[0; ZoneStat::COUNT]; nr_zones],
            nodes: vec![[0; NodeStat::COUNT]; nr_nodes],
            events: [0; VmEvent::COUNT],
            zone_events: [[0; ZoneKind::COUNT]; ZoneEvent::COUNT],
            extfrag: [0; ExtfragEvent::COUNT],
        }
    }

    /// Adds to a zone's gauge.
    #[inline]
    pub fn zone_add(&mut self, zone: ZoneId, item: ZoneStat, delta: i64) {
        self.zones[zone.index()][item as usize] += delta;
    }

    /// A zone's gauge.
    #[inline]
    pub fn zone(&self, zone: ZoneId, item: ZoneStat) -> u64 {
        self.zones[zone.index()][item as usize].max(0) as u64
    }

    /// Sum of a gauge over all zones.
    pub fn zone_sum(&self, item: ZoneStat) -> u64 {
        self.zones.iter().map(|z| z[item as usize]).sum::<i64>().max(0) as u64
    }

    /// Adds to a node's gauge or counter.
    #[inline]
    pub fn node_add(&mut self, node: NodeId, item: NodeStat, delta: i64) {
        self.nodes[node.index()][item as usize] += delta;
    }

    /// A node's gauge or counter.
    #[inline]
    pub fn node(&self, node: NodeId, item: NodeStat) -> u64 {
        self.nodes[node.index()][item as usize].max(0) as u64
    }

    /// Sum of a gauge or counter over all nodes.
    pub fn node_sum(&self, item: NodeStat) -> u64 {
        self.nodes.iter().map(|n| n[item as usize]).sum::<i64>().max(0) as u64
    }

    /// Counts an event.
    #[inline]
    pub fn count(&mut self, event: VmEvent, n: u64) {
        self.events[event as usize] += n;
    }

    /// An event counter.
    pub fn event(&self, event: VmEvent) -> u64 {
        self.events[event as usize]
    }

    /// Counts an event of a kind of zone.
    #[inline]
    pub fn count_zone(&mut self, event: ZoneEvent, kind: ZoneKind, n: u64) {
        self.zone_events[event as usize][kind as usize] += n;
    }

    /// An event counter of a kind of zone.
    pub fn zone_event(&self, event: ZoneEvent, kind: ZoneKind) -> u64 {
        self.zone_events[event as usize][kind as usize]
    }

    /// Counts a fragmentation event.
    #[inline]
    pub fn count_extfrag(&mut self, event: ExtfragEvent) {
        self.extfrag[event as usize] += 1;
    }

    /// A fragmentation counter.
    pub fn extfrag(&self, event: ExtfragEvent) -> u64 {
        self.extfrag[event as usize]
    }
}
