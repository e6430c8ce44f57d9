//! Trace events of the twin as the records that a run directory keeps.
//!
//! Abstracted: `gfp_flags` and `gfp_mask` are those that the model goes by, with the names of 6.12; a shrinker has its place
//! among the model's for its address, and the size of its function is left out. [`ABSTRACTED`] says so in the manifest.

use observe::{TraceEvent, TraceRecord, ZoneSection};
use rules::Rules;
use twin::{RunOutcome, TraceEvent as Event, Traced};
use units::PAGEBLOCK_ORDER;

use super::{compaction, vmscan};

/// What the recorded tracepoints do not tell.
pub(super) const ABSTRACTED: &str = "tracepoints: gfp_flags and gfp_mask are what the model goes by, \
    a shrinker's address is its number, the size of its function is left out";

/// The events of a run of a kernel with these rules.
pub(super) fn records(outcome: &RunOutcome, rules: &Rules) -> Vec<TraceRecord> {
    let zones = outcome.after.zoneinfo.as_ref().map_or(&[][..], |info| &info.zones);
    let record = |traced: &Traced| {
        let Traced { at, comm, pid, cpu, event } = traced;
        Some(TraceRecord { at: *at, cpu: *cpu, comm: comm.clone(), pid: *pid, event: translate(event, rules, zones)? })
    };
    outcome.log.events.iter().filter_map(record).collect()
}

/// The kernel's event; none if it has no such tracepoint, or it is about a zone that the machine does not have.
fn translate(event: &Event, rules: &Rules, zones: &[ZoneSection]) -> Option<TraceEvent> {
    Some(match *event {
        Event::PageAllocExtfrag {
            pfn,
            alloc_order,
            fallback_order,
            alloc_migratetype,
            fallback_migratetype,
            change_ownership,
        } => TraceEvent::MmPageAllocExtfrag {
            pfn,
            alloc_order,
            fallback_order,
            pageblock_order: PAGEBLOCK_ORDER,
            alloc_migratetype: alloc_migratetype as u8,
            fallback_migratetype: fallback_migratetype as u8,
            change_ownership,
        },
        Event::Compaction(ref event) => {
            TraceEvent::OfKernel(compaction::translate(event, rules.compaction_events, zones)?)
        }
        _ => TraceEvent::OfKernel(vmscan::translate(event, rules.vmscan_events)?),
    })
}
