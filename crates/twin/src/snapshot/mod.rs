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
use profile::{Era, Kernel};
use units::Nanos;

pub(crate) use counters::vmstat;
pub(crate) use memcg::{add_groups, memcg_file};
pub(crate) use pressure::{add_pressure, pressure};
pub(crate) use series::sample;

/// Every file of `/proc` that `mm` knows.
pub(crate) fn snapshot(mm: &Mm, kernel: &Kernel, now: Nanos) -> Snapshot {
    let era = era(kernel);
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

/// Whose format of the files a kernel has.
pub(crate) fn era(kernel: &Kernel) -> observe::Era {
    match kernel.era {
        Era::V3_19 => observe::Era::V3_19,
        Era::V4_20 => observe::Era::V4_20,
        Era::V6_12 => observe::Era::V6_12,
    }
}
