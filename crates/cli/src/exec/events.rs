//! Trace events of the twin as the records that a run directory keeps.
//!
//! Abstracted: `gfp_flags` are those that the model goes by, with the names of 6.12; kcompactd's zone is not known; a shrinker
//! has its place among the model's for its address, and the size of its function is left out. [`ABSTRACTED`] says so in the manifest.

use observe::{CompactionResult, TraceEvent, TraceRecord, TraceZone, ZoneSection};
use rules::VmscanEvents;
use twin::{RunOutcome, TraceEvent as Event, Traced};
use units::{PAGEBLOCK_ORDER, Pfn, ZoneId};

use super::vmscan;

/// What the recorded tracepoints do not tell.
pub(super) const ABSTRACTED: &str = "tracepoints: gfp_flags is what the model goes by, kcompactd's classzone_idx is written as Normal, \
    a shrinker's address is its number, the size of its function is left out";

/// The events of a run of a kernel with these tracepoints.
pub(super) fn records(outcome: &RunOutcome, vmscan: VmscanEvents) -> Vec<TraceRecord> {
    let zones = outcome.after.zoneinfo.as_ref().map_or(&[][..], |info| &info.zones);
    let record = |traced: &Traced| {
        let Traced { at, comm, pid, cpu, event } = traced;
        Some(TraceRecord { at: *at, cpu: *cpu, comm: comm.clone(), pid: *pid, event: translate(event, vmscan, zones)? })
    };
    outcome.log.events.iter().filter_map(record).collect()
}

/// The kernel's event; none if it has no such tracepoint, or it is about a zone that the machine does not have.
fn translate(event: &Event, vmscan: VmscanEvents, zones: &[ZoneSection]) -> Option<TraceEvent> {
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
        Event::CompactionBegin { zone, migrate_pfn, free_pfn, sync } => {
            let (zone_start, zone_end) = span(zone, zones)?;
            TraceEvent::MmCompactionBegin { zone_start, migrate_pfn, free_pfn, zone_end, sync }
        }
        Event::CompactionEnd { zone, migrate_pfn, free_pfn, sync, status } => {
            let (zone_start, zone_end) = span(zone, zones)?;
            let status = CompactionResult::named(status)?;
            TraceEvent::MmCompactionEnd { zone_start, migrate_pfn, free_pfn, zone_end, sync, status }
        }
        Event::WakeupKcompactd { node, order } => TraceEvent::MmCompactionWakeupKcompactd {
            nid: node,
            order: i32::from(order.0),
            classzone: TraceZone::Normal,
        },
        _ => TraceEvent::Vmscan(vmscan::translate(event, vmscan)?),
    })
}

/// First frame of a zone, and the one after its last.
fn span(zone: ZoneId, zones: &[ZoneSection]) -> Option<(Pfn, Pfn)> {
    let section = zones.get(zone.index())?;
    let start = section.populated.as_ref()?.start_pfn as u32;
    Some((Pfn(start), Pfn(start + section.spanned as u32)))
}
