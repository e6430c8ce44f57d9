//! vmscan's trace events with all fields that any kernel prints; `observe` has which one prints what.
//!
//! Source: include/trace/events/vmscan.h, `show_reclaim_flags()`, `trace_shrink_flags()`; `LRU_NAMES`
//! (include/trace/events/mmflags.h); `ISOLATE_*` (include/linux/swap.h, 3.1; include/linux/mmzone.h, 3.19).
//! Abstracted: reclaim is asynchronous in the flags of every batch; until 3.4 some that waited for writeback was not.

use observe::{KernelEvent, gfp_names};
use rules::VmscanEvents;
use twin::{LruIsolate, LruList, ShrinkerId, TraceEvent as Event};

use super::fields::{Field, among, count, nid, number};

const ISOLATE_ACTIVE: i64 = 1;
const ISOLATE_CLEAN: i64 = 1;
const ISOLATE_UNMAPPED: i64 = 2;

/// The event as the kernel prints it; none if it has no such tracepoint, or it is none of vmscan's.
pub(super) fn translate(event: &Event, events: VmscanEvents) -> Option<KernelEvent> {
    let (name, fields) = fields(event, events)?;
    KernelEvent::vmscan(events, name, among(&fields))
}

fn fields(event: &Event, events: VmscanEvents) -> Option<(&'static str, Vec<Field>)> {
    Some(match *event {
        Event::KswapdSleep { node } => ("mm_vmscan_kswapd_sleep", vec![nid(node)]),
        Event::KswapdWake { node, highest, order } => {
            ("mm_vmscan_kswapd_wake", vec![nid(node), number("zid", highest as u8), number("order", order.0)])
        }
        Event::WakeupKswapd { node, zone, order, gfp } => {
            let gfp = ("gfp_flags", gfp_names(gfp).into());
            ("mm_vmscan_wakeup_kswapd", vec![nid(node), number("zid", zone as u8), number("order", order.0), gfp])
        }
        Event::DirectReclaimBegin { memcg, order, gfp, highest } => {
            let name = if memcg { "mm_vmscan_memcg_reclaim_begin" } else { "mm_vmscan_direct_reclaim_begin" };
            // Without laptop mode it always may.
            let writepage = number("may_writepage", true);
            let (order, highest) = (number("order", order.0), number("classzone_idx", highest as u8));
            (name, vec![order, writepage, ("gfp_flags", gfp_names(gfp).into()), highest])
        }
        Event::DirectReclaimEnd { memcg, nr_reclaimed } => {
            let name = if memcg { "mm_vmscan_memcg_reclaim_end" } else { "mm_vmscan_direct_reclaim_end" };
            (name, vec![count("nr_reclaimed", nr_reclaimed)])
        }
        Event::LruIsolate(ref isolate) => ("mm_vmscan_lru_isolate", lru_isolate(isolate, events)),
        Event::LruShrinkInactive(e) => {
            let [anon, file] = e.nr_activate;
            let fields = vec![
                nid(e.node),
                number("zid", e.zone.map_or(0, |zone| zone as u8)),
                number("nr_scanned", e.nr_scanned),
                number("nr_reclaimed", e.nr_reclaimed),
                number("nr_dirty", e.nr_dirty),
                number("nr_writeback", e.nr_writeback),
                number("nr_congested", e.nr_congested),
                number("nr_immediate", e.nr_immediate),
                number("nr_activate", anon + file),
                number("nr_activate_anon", anon),
                number("nr_activate_file", file),
                number("nr_ref_keep", e.nr_ref_keep),
                number("nr_unmap_fail", e.nr_unmap_fail),
                number("priority", e.priority),
                flags(e.file),
            ];
            ("mm_vmscan_lru_shrink_inactive", fields)
        }
        Event::LruShrinkActive(e) => {
            let fields = vec![
                nid(e.node),
                number("nr_taken", e.nr_taken),
                number("nr_active", e.nr_active),
                number("nr_deactivated", e.nr_deactivated),
                number("nr_referenced", e.nr_referenced),
                number("priority", e.priority),
                flags(e.file),
            ];
            ("mm_vmscan_lru_shrink_active", fields)
        }
        Event::ShrinkSlabStart(e) => {
            let [shrink, shr] = shrinker(e.shrinker, events);
            let fields = vec![
                shrink,
                shr,
                nid(e.node),
                count("nr_objects_to_shrink", e.deferred),
                ("gfp_flags", gfp_names(e.gfp).into()),
                count("pgs_scanned", e.lru.0),
                count("lru_pgs", e.lru.1),
                count("cache_items", e.freeable),
                count("delta", e.delta),
                count("total_scan", e.total_scan),
                number("priority", e.priority),
            ];
            ("mm_shrink_slab_start", fields)
        }
        Event::ShrinkSlabEnd(e) => {
            let [shrink, shr] = shrinker(e.shrinker, events);
            // 3.1 reads the count again when it puts off the rest, prints what that adds, and what the last call returned.
            let rereads = events == VmscanEvents::Shrinkers;
            let new_scan = e.deferred_since + e.put_off;
            let fields = vec![
                shrink,
                shr,
                nid(e.node),
                count("unused_scan", if rereads { e.deferred_since } else { e.deferred }),
                count("new_scan", new_scan),
                count("total_scan", if rereads { e.put_off } else { e.total_scan }),
                number("retval", if rereads { e.left } else { e.freed as i64 }),
            ];
            ("mm_shrink_slab_end", fields)
        }
        _ => return None,
    })
}

fn lru_isolate(e: &LruIsolate, events: VmscanEvents) -> Vec<Field> {
    let bit = |set: bool, bit: i64| if set { bit } else { 0 };
    let mode = match events {
        VmscanEvents::Contiguous | VmscanEvents::Shrinkers => bit(e.list.is_active(), ISOLATE_ACTIVE),
        VmscanEvents::Kinds => bit(!e.may_unmap, ISOLATE_UNMAPPED) | bit(!e.may_writepage, ISOLATE_CLEAN),
        _ => bit(!e.may_unmap, ISOLATE_UNMAPPED),
    };
    vec![
        number("isolate_mode", mode),
        number("classzone", e.highest as u8),
        number("order", e.order.0),
        number("nr_requested", e.nr_requested),
        number("nr_scanned", e.nr_scanned),
        number("nr_skipped", e.nr_skipped),
        number("nr_taken", e.nr_taken),
        number("contig_taken", e.contiguous.taken),
        number("contig_dirty", e.contiguous.dirty),
        number("contig_failed", e.contiguous.failed),
        number("file", e.list.is_file()),
        ("lru", lru_name(e.list).into()),
    ]
}

fn lru_name(list: LruList) -> &'static str {
    match list {
        LruList::InactiveAnon => "inactive_anon",
        LruList::ActiveAnon => "active_anon",
        LruList::InactiveFile => "inactive_file",
        LruList::ActiveFile => "active_file",
        LruList::Unevictable => "unevictable",
    }
}

fn flags(file: bool) -> Field {
    ("flags", if file { "RECLAIM_WB_FILE|RECLAIM_WB_ASYNC" } else { "RECLAIM_WB_ANON|RECLAIM_WB_ASYNC" }.into())
}

/// A shrinker's function, as `trace-cmd report` prints it, and its address.
fn shrinker(id: ShrinkerId, events: VmscanEvents) -> [Field; 2] {
    // Since 3.12 counting and scanning have a function each.
    let one = matches!(events, VmscanEvents::Contiguous | VmscanEvents::Shrinkers);
    let function = match id {
        ShrinkerId::Superblock if one => "prune_super+0x0",
        ShrinkerId::Superblock => "super_cache_scan+0x0",
        ShrinkerId::ExtentStatus => "ext4_es_scan+0x0",
        ShrinkerId::XfsBuf if one => "xfs_buftarg_shrink+0x0",
        ShrinkerId::XfsBuf => "xfs_buftarg_shrink_scan+0x0",
        ShrinkerId::ShadowNodes | ShrinkerId::SwapShadowNodes => "scan_shadow_nodes+0x0",
        ShrinkerId::Dentries => "shrink_dcache_memory+0x0",
        ShrinkerId::Inodes => "shrink_icache_memory+0x0",
        ShrinkerId::XfsInodes => "xfs_reclaim_inode_shrink+0x0",
        ShrinkerId::Zswap => "zswap_shrinker_scan+0x0",
    };
    [("shrink", function.into()), ("shr", format!("{:016x}", id as u8 + 1).into())]
}
