//! The machine as `/proc` shows it.

mod buddy;
mod counters;
mod lru_gen;
mod memcg;
mod meminfo;
mod pressure;
mod series;
mod slab;
mod zones;

use mm::Mm;
use observe::Snapshot;
use profile::Kernel;
use units::Nanos;

pub(crate) use counters::vmstat;
pub(crate) use memcg::{add_groups, memcg_file};
pub(crate) use pressure::{add_pressure, pressure};
pub(crate) use series::sample;

/// Every file of `/proc` that `mm` knows.
pub(crate) fn snapshot(mm: &Mm, kernel: &Kernel, now: Nanos) -> Snapshot {
    let era = kernel.era;
    Snapshot {
        vmstat: Some(counters::vmstat(mm, era)),
        zoneinfo: Some(zones::zoneinfo(mm, era)),
        buddyinfo: Some(buddy::buddyinfo(mm)),
        pagetypeinfo: Some(buddy::pagetypeinfo(mm)),
        meminfo: Some(meminfo::meminfo(mm, era)),
        slabinfo: Some(slab::slabinfo(mm)),
        lru_gen: lru_gen::lru_gen(mm, now),
        ..Snapshot::default()
    }
}
