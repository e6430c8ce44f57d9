//! Reclaim: LRU lists or generations, the scan, workingset detection and the shrinkers.
//!
//! Two steppers do the work of the two who reclaim: [`BalancePgdat`] that of kswapd, [`DirectReclaim`] that of a task
//! whose allocation found too little. Both drive a [`ShrinkNode`], which handles one batch of at most
//! [`SWAP_CLUSTER_MAX`] list entries (64 of generations), or one batch of a shrinker, in a step. Their caller sleeps when told to and
//! gives up the CPU in between; everything that a pass remembers is in the stepper.
//!
//! Abstracted: pagevecs (a page is on its list at once, whatever waits in one (pagevec.rs); their cost is in `lru_move`), isolation beyond a step (no
//! other task ever sees a page that reclaim holds, but in a second pass).
//! Omitted: laptop mode, hibernation, demotion to slower nodes, `VM_EXEC` pages staying
//! active.

mod accessed;
mod active;
mod again;
mod balance;
mod compaction_ready;
mod direct;
mod events;
mod every_zone;
mod free_list;
mod inactive;
mod isolate;
mod kswapd;
mod kswapd_sleep;
mod lru;
mod lru_gen;
mod lru_stats;
mod lumpy;
mod node;
mod page_list;
mod pagevec;
mod scan_control;
mod second_pass;
mod shrinker;
mod small_lists;
mod stat_flush;
mod throttle;
mod validate;
mod vmpressure;
mod workingset;
mod zone_scope;

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod groups_model;
#[cfg(test)]
mod tests;

pub use again::BalanceAgain;
pub use direct::DirectReclaim;
pub use every_zone::BalanceZones;
pub use kswapd::{BalancePgdat, BoostSnapshot};
pub use kswapd_sleep::KswapdRequest;
pub use lru_gen::LruGen;
pub(crate) use lru_gen::MmList;
pub use lru_stats::LruStats;
pub use node::{ShrinkNode, Step};
pub use scan_control::{NodeScan, ScanControl};
pub use throttle::ThrottleReason;

use throttle::NodeThrottle;
pub(crate) use workingset::MEMCGS_MAX;
use workingset::ShadowLayout;

/// Priority of the first pass: `size >> 12` of each list is scanned (`DEF_PRIORITY`, include/linux/mmzone.h).
pub const DEF_PRIORITY: i8 = 12;
/// List entries in a batch, and pages that a direct reclaimer wants (`SWAP_CLUSTER_MAX`, include/linux/swap.h).
pub const SWAP_CLUSTER_MAX: u32 = 32;

/// What reclaim remembers between passes.
#[derive(Debug)]
pub struct Reclaim {
    /// Objects that each shrinker left unscanned, by share (`shrinker->nr_deferred`).
    deferred: Vec<shrinker::Deferred>,
    /// Reclaimers that wait, by node.
    throttle: Vec<NodeThrottle>,
    /// Devices whose write queue is congested (`bdi_write_congested()`), by device number.
    congested: Vec<bool>,
    /// Pressure on each group.
    pressure: Vec<vmpressure::Pressure>,
    /// How shadow entries are packed.
    shadows: ShadowLayout,
    /// Pages that are new in the page cache.
    pagevecs: pagevec::Pagevecs,
    /// Flushes of the memory cgroups' statistics.
    stat_flush: stat_flush::StatFlush,
}

impl Reclaim {
    /// Nothing put off, nobody waiting; on a machine with that many nodes, zones and frames.
    pub fn new(nr_nodes: usize, nr_zones: usize, nr_frames: usize) -> Reclaim {
        Reclaim {
            deferred: vec![shrinker::Deferred::default(); nr_nodes],
            throttle: vec![NodeThrottle::default(); nr_nodes],
            congested: Vec::new(),
            pressure: Vec::new(),
            shadows: ShadowLayout::new(nr_zones, 0, nr_frames),
            pagevecs: pagevec::Pagevecs::default(),
            stat_flush: stat_flush::StatFlush::default(),
        }
    }
}
