//! Compaction's trace events with all fields that any kernel prints; `observe` has which one prints what.
//!
//! Source: include/trace/events/compaction.h; `compaction_status_string` (mm/compaction.c, 4.4); `COMPACT_*`
//! (include/linux/compaction.h, 3.18, 4.4), where a run that gave up counted as partial; `enum migrate_mode`.

use observe::{KernelEvent, ZoneSection, gfp_bits, gfp_names};
use rules::CompactionEvents;
use twin::{CompactPriority, CompactResult, CompactionEvent as Event, Deferral, Scanner, ZoneKind};
use units::{NodeId, Order, Pfn};

use super::fields::{Field, among, count, nid, number};

/// The event as the kernel prints it; none if it has no such tracepoint, or it is about a zone that the machine does not have.
pub(super) fn translate(event: &Event, events: CompactionEvents, zones: &[ZoneSection]) -> Option<KernelEvent> {
    let (name, fields) = fields(event, events, zones)?;
    KernelEvent::compaction(events, name, among(&fields))
}

fn fields(event: &Event, events: CompactionEvents, zones: &[ZoneSection]) -> Option<(&'static str, Vec<Field>)> {
    Some(match *event {
        Event::Isolate { scanner, start, end, nr_scanned, nr_taken } => {
            let name = match scanner {
                Scanner::Migrate => "mm_compaction_isolate_migratepages",
                Scanner::Free => "mm_compaction_isolate_freepages",
                Scanner::FreeLists => "mm_compaction_fast_isolate_freepages",
            };
            let counts = [count("nr_scanned", nr_scanned), count("nr_taken", nr_taken)];
            (name, [pfn("start_pfn", start), pfn("end_pfn", end)].into_iter().chain(counts).collect())
        }
        Event::Migratepages { nr_migrated, nr_failed } => {
            ("mm_compaction_migratepages", vec![count("nr_migrated", nr_migrated), count("nr_failed", nr_failed)])
        }
        Event::Begin { zone, migrate_pfn, free_pfn, sync } => {
            ("mm_compaction_begin", scanners(zones.get(zone.index())?, migrate_pfn, free_pfn, sync)?)
        }
        Event::End { zone, migrate_pfn, free_pfn, sync, status } => {
            let mut fields = scanners(zones.get(zone.index())?, migrate_pfn, free_pfn, sync)?;
            fields.push(("status", status_name(status, events).into()));
            fields.push(number("number", status_3_18(status)));
            ("mm_compaction_end", fields)
        }
        Event::TryToCompactPages { order, gfp, priority } => {
            let gfp = match events {
                CompactionEvents::GfpNames | CompactionEvents::FreeLists => gfp_names(gfp),
                _ => format!("{:#x}", gfp_bits(gfp, events)),
            };
            let mode = number("migrate_mode", priority != CompactPriority::Async);
            let priority = number("priority", priority as u8);
            (
                "mm_compaction_try_to_compact_pages",
                vec![number("order", order.0), ("gfp_mask", gfp.into()), mode, priority],
            )
        }
        Event::Finished { zone, order, ret } => {
            ("mm_compaction_finished", result(zones.get(zone.index())?, order, ret, events))
        }
        Event::Suitable { zone, order, ret } => {
            ("mm_compaction_suitable", result(zones.get(zone.index())?, order, ret, events))
        }
        Event::Deferral { what, zone, order, order_failed, considered, limit } => {
            let name = match what {
                Deferral::Deferred => "mm_compaction_deferred",
                Deferral::Defer => "mm_compaction_defer_compaction",
                Deferral::Reset => "mm_compaction_defer_reset",
            };
            let mut fields = of_zone(zones.get(zone.index())?, Some(order));
            fields.push(number("order_failed", order_failed.0));
            fields.extend([number("considered", considered), number("limit", limit)]);
            (name, fields)
        }
        Event::KcompactdSleep { node } => ("mm_compaction_kcompactd_sleep", vec![nid(node)]),
        Event::KcompactdWake { node, order, highest } => ("mm_compaction_kcompactd_wake", woken(node, order, highest)),
        Event::WakeupKcompactd { node, order, highest } => {
            ("mm_compaction_wakeup_kcompactd", woken(node, order, highest))
        }
    })
}

fn scanners(zone: &ZoneSection, migrate: Pfn, free: Pfn, sync: bool) -> Option<Vec<Field>> {
    let start = zone.populated.as_ref()?.start_pfn;
    Some(vec![
        count("zone_start", start),
        pfn("migrate_pfn", migrate),
        pfn("free_pfn", free),
        count("zone_end", start + zone.spanned),
        ("mode", if sync { "sync" } else { "async" }.into()),
    ])
}

fn of_zone(zone: &ZoneSection, order: Option<Order>) -> Vec<Field> {
    // /proc/sys/vm/compact_memory and proactive compaction have none.
    let order = order.map_or(-1, |order| i64::from(order.0));
    vec![number("node", zone.node), ("zone", zone.zone.clone().into()), number("order", order)]
}

fn result(zone: &ZoneSection, order: Option<Order>, ret: CompactResult, events: CompactionEvents) -> Vec<Field> {
    let mut fields = of_zone(zone, order);
    fields.push(("ret", status_name(ret, events).into()));
    fields
}

fn woken(node: NodeId, order: Order, highest: ZoneKind) -> Vec<Field> {
    vec![nid(node), number("order", order.0), ("classzone_idx", highest.name().into())]
}

fn status_name(result: CompactResult, events: CompactionEvents) -> &'static str {
    match (events, result) {
        (CompactionEvents::Ranges, CompactResult::Success) => "partial",
        (CompactionEvents::Ranges, CompactResult::PartialSkipped) => "complete",
        _ => result.name(),
    }
}

fn status_3_18(result: CompactResult) -> u8 {
    match result {
        CompactResult::Deferred => 0,
        CompactResult::Skipped | CompactResult::NotSuitableZone => 1,
        CompactResult::Continue | CompactResult::NoSuitablePage => 2,
        CompactResult::Success | CompactResult::Contended => 3,
        CompactResult::Complete | CompactResult::PartialSkipped => 4,
    }
}

fn pfn(key: &'static str, pfn: Pfn) -> Field {
    number(key, pfn.0)
}
