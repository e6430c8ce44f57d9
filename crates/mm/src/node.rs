//! What a node knows: its zones, its LRU lists, and the state of its kswapd and kcompactd.
//!
//! Source: `struct pglist_data`, `struct lruvec` (include/linux/mmzone.h, 6.12).

use units::{Nanos, NodeId, Order, ZoneId};

use crate::memcg::Fifo;
use crate::reclaim::{LruGen, LruStats};
use crate::{List, ZoneKind};

/// The LRU lists (`enum lru_list`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum LruList {
    /// `LRU_INACTIVE_ANON`.
    InactiveAnon = 0,
    /// `LRU_ACTIVE_ANON`.
    ActiveAnon = 1,
    /// `LRU_INACTIVE_FILE`.
    InactiveFile = 2,
    /// `LRU_ACTIVE_FILE`.
    ActiveFile = 3,
    /// `LRU_UNEVICTABLE`.
    Unevictable = 4,
}

impl LruList {
    /// Lists.
    pub const COUNT: usize = 5;
    /// Those that reclaim scans.
    pub const EVICTABLE: [LruList; 4] =
        [LruList::InactiveAnon, LruList::ActiveAnon, LruList::InactiveFile, LruList::ActiveFile];

    /// Whether it holds page cache.
    pub fn is_file(self) -> bool {
        matches!(self, LruList::InactiveFile | LruList::ActiveFile)
    }

    /// Whether it is an active list.
    pub fn is_active(self) -> bool {
        matches!(self, LruList::ActiveAnon | LruList::ActiveFile)
    }
}

/// Names the LRU lists of a group of tasks on a node, or of a zone where each zone has its own.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct LruvecId {
    /// The node.
    pub node: NodeId,
    /// Place in the node's `lruvecs`.
    pub part: u16,
}

impl LruvecId {
    /// The lists of a node's root group.
    pub const fn of_node(node: NodeId) -> LruvecId {
        LruvecId { node, part: 0 }
    }
}

/// LRU lists with their sizes, what balances them, and what reclaim has met on them.
#[derive(Clone, Debug, Default)]
pub struct Lruvec {
    /// The lists, most recent first.
    pub lists: [List; LruList::COUNT],
    /// Generations, where they take the place of the lists.
    pub lru_gen: Option<Box<LruGen>>,
    /// Base pages on each list, by kind of zone; of generations, those that count for it.
    pub sizes: [[u64; ZoneKind::COUNT]; LruList::COUNT],
    /// Cost of reclaiming [anon, file] (`lruvec->anon_cost`, `file_cost`; `recent_rotated` before 5.8).
    pub cost: [u64; 2],
    /// Pages scanned of [anon, file] (`recent_scanned`, before 5.8).
    pub scanned: [u64; 2],
    /// Entries of each list that were too few to scan so far, where they are saved up (`nr_saved_scan`).
    pub saved: [u64; 4],
    /// Evictions and activations so far: the clock of refault distances (`nonresident_age`, `inactive_age`).
    pub nonresident_age: u64,
    /// Refaults of [anon, file] that made a page active (`WORKINGSET_ACTIVATE`).
    pub activated: [u64; 2],
    /// Refault counter of [anon, file] when reclaim last looked (`lruvec->refaults`).
    pub refaults: [u64; 2],
    /// Its statistics when they were last flushed.
    pub flushed: LruStats,
    /// Bytes of [reclaimable, unreclaimable] slab objects that are charged to a group (`NR_SLAB_RECLAIMABLE_B`, `NR_SLAB_UNRECLAIMABLE_B`).
    pub slab_bytes: [u64; 2],
    /// Base pages of [anon, file] that are isolated.
    pub isolated: [u64; 2],
    /// Reclaim meets so many pages under writeback that it waits (`PGDAT_WRITEBACK`, `ZONE_WRITEBACK` before 4.8).
    pub writeback_seen: bool,
    /// Reclaim meets so many dirty pages that kswapd may write them (`PGDAT_DIRTY`, `ZONE_DIRTY`).
    pub dirty_seen: bool,
    /// A device that its dirty pages go to is congested (`PGDAT_CONGESTED`, `ZONE_CONGESTED`).
    pub congested: bool,
}

impl Lruvec {
    /// Whether generations of these lists have lost pages to reclaim.
    pub(crate) fn evicted_any(&self) -> bool {
        self.lru_gen.as_ref().is_some_and(|lru_gen| lru_gen.has_evicted())
    }

    /// Base pages on a list in zones up to `highest`.
    pub fn size(&self, list: LruList, highest: ZoneKind) -> u64 {
        self.sizes[list as usize][..=highest as usize].iter().sum()
    }
}

/// State of kswapd (`pgdat->kswapd_*`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Kswapd {
    /// Largest order asked for since it last ran.
    pub order: Order,
    /// Highest zone asked for since it last ran.
    pub highest_zone: Option<ZoneKind>,
    /// Runs in a row that reclaimed nothing.
    pub failures: u32,
    /// Sleeps, and may be woken.
    pub asleep: bool,
    /// What it has done so far.
    pub deeds: KswapdDeeds,
}

/// What kswapd has done since boot: not the kernel's to know, but who asks why it is busy wants it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct KswapdDeeds {
    /// Runs, or rounds of one where it goes through the priorities again.
    pub runs: u64,
    /// Those of them that were for blocks of an order above 0.
    pub for_blocks: u64,
    /// CPU time of these.
    pub for_blocks_time: Nanos,
    /// Page cache of its node when each of them began, in pages, summed up.
    pub cache_pages: u64,
    /// Those of the runs that reclaimed nothing.
    pub futile: u64,
    /// Those of these that only worked off a boost of the watermarks.
    pub futile_boosted: u64,
    /// Those of these in which generations gave nothing because no page may be written.
    pub futile_unwritten: u64,
    /// Times that it gave the node up, after 16 such runs in a row.
    pub given_up: u64,
    /// Times that it stayed awake because enough zones were balanced for its order.
    pub awake_as_balanced: u64,
    /// Times that it stayed awake for what a zone keeps back from requests that may use a higher one.
    pub awake_for_reserve: u64,
}

/// State of kcompactd (`pgdat->kcompactd_*`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Kcompactd {
    /// Largest order asked for since it last ran.
    pub max_order: Order,
    /// Lowest of the highest zones asked for since it last ran; `None` is all of the node.
    pub highest_zone: Option<ZoneKind>,
    /// Runs, and need not be woken.
    pub running: bool,
    /// Is to look at the node's fragmentation at once (`proactive_compact_trigger`).
    pub proactive_trigger: bool,
    /// Its first look at the node's fragmentation is this far off when the run begins.
    pub first_look: Option<Nanos>,
    /// Its last round was of no use: looks that it leaves out, or in one sleep of as many.
    pub proactive_defer: u32,
}

/// One NUMA node.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its number.
    pub id: NodeId,
    /// Its populated zones, lowest kind first.
    pub zones: Vec<ZoneId>,
    /// All zones of the machine in the order in which an allocation on this node tries them: this node's from the
    /// highest kind down, then those of the next nearest node (`ZONELIST_FALLBACK`).
    pub zonelist: Vec<ZoneId>,
    /// First zone of the zonelist that a request may use, by the highest kind that it allows (`preferred_zoneref`).
    pub preferred: [Option<ZoneId>; ZoneKind::COUNT],
    /// LRU lists: one set for each memory cgroup by its number, or one for each zone in the order of `zones`.
    pub lruvecs: Vec<Lruvec>,
    /// The LRU of memory cgroups.
    pub fifo: Fifo,
    /// kswapd.
    pub kswapd: Kswapd,
    /// kcompactd.
    pub kcompactd: Kcompactd,
}
