//! The machine as `/proc` shows it.

mod buddy;
mod counters;
mod meminfo;
mod slab;
mod zones;

use mm::Mm;
use observe::{Era, Snapshot};

pub(crate) use counters::vmstat;

/// Every file of `/proc` that the model has.
pub(crate) fn snapshot(mm: &Mm, era: Era) -> Snapshot {
    Snapshot {
        vmstat: Some(counters::vmstat(mm, era)),
        zoneinfo: Some(zones::zoneinfo(mm, era)),
        buddyinfo: Some(buddy::buddyinfo(mm)),
        pagetypeinfo: Some(buddy::pagetypeinfo(mm)),
        meminfo: Some(meminfo::meminfo(mm)),
        slabinfo: Some(slab::slabinfo(mm)),
        ..Snapshot::default()
    }
}
