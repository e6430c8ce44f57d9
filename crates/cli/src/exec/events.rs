//! Trace events of the twin as the records that a run directory keeps.
//!
//! Abstracted: the model does not carry `gfp_flags`, nor the zone for which kcompactd is woken; [`ABSTRACTED`] says so in
//! the manifest.

use observe::{CompactionResult, TraceEvent, TraceRecord, TraceZone, ZoneSection};
use twin::{RunOutcome, TraceEvent as Event, Traced};
use units::{Gfp, PAGEBLOCK_ORDER, Pages, Pfn, ZoneId};

/// What the recorded tracepoints do not tell.
pub(super) const ABSTRACTED: &str = "tracepoints: gfp_flags is written as none, classzone_idx as Normal";

/// The events of a run.
pub(super) fn records(outcome: &RunOutcome) -> Vec<TraceRecord> {
    let zones = outcome.after.zoneinfo.as_ref().map_or(&[][..], |info| &info.zones);
    let record = |traced: &Traced| {
        let Traced { at, comm, pid, cpu, event } = traced;
        Some(TraceRecord { at: *at, cpu: *cpu, comm: comm.clone(), pid: *pid, event: translate(event, zones)? })
    };
    outcome.log.events.iter().filter_map(record).collect()
}

/// The kernel's event; none if it is about a zone that the machine does not have.
fn translate(event: &Event, zones: &[ZoneSection]) -> Option<TraceEvent> {
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
        Event::WakeupKswapd { node, order, .. } => {
            TraceEvent::MmVmscanWakeupKswapd { nid: node, order, gfp_flags: Gfp::NONE }
        }
        Event::KswapdWake { node, order } => TraceEvent::MmVmscanKswapdWake { nid: node, order },
        Event::KswapdSleep { node } => TraceEvent::MmVmscanKswapdSleep { nid: node },
        Event::DirectReclaimBegin { order } => TraceEvent::MmVmscanDirectReclaimBegin { order, gfp_flags: Gfp::NONE },
        Event::DirectReclaimEnd { nr_reclaimed } => {
            TraceEvent::MmVmscanDirectReclaimEnd { nr_reclaimed: Pages(nr_reclaimed) }
        }
        Event::CompactionBegin { zone, migrate_pfn, free_pfn, sync } => {
            let (zone_start, zone_end) = span(zone, zones)?;
            TraceEvent::MmCompactionBegin { zone_start, migrate_pfn, free_pfn, zone_end, sync }
        }
        Event::CompactionEnd { zone, migrate_pfn, free_pfn, status, .. } => {
            let (zone_start, zone_end) = span(zone, zones)?;
            let status = CompactionResult::named(status)?;
            TraceEvent::MmCompactionEnd { zone_start, migrate_pfn, free_pfn, zone_end, sync: false, status }
        }
        Event::WakeupKcompactd { node, order } => TraceEvent::MmCompactionWakeupKcompactd {
            nid: node,
            order: i32::from(order.0),
            classzone: TraceZone::Normal,
        },
    })
}

/// First frame of a zone, and the one after its last.
fn span(zone: ZoneId, zones: &[ZoneSection]) -> Option<(Pfn, Pfn)> {
    let section = zones.get(zone.index())?;
    let start = section.populated.as_ref()?.start_pfn as u32;
    Some((Pfn(start), Pfn(start + section.spanned as u32)))
}
