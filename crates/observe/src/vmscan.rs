//! Tracepoints of vmscan.
//!
//! Source: the `TP_printk` of include/trace/events/vmscan.h, 2.6.39, 3.1, 3.19, 4.4, 5.0, 6.1, 6.12.

use rules::VmscanEvents;

use crate::layout::Layout;
use crate::{FieldValue, KernelEvent};

const fn layout(name: &'static str, since: VmscanEvents, text: &'static str) -> Layout {
    Layout { name, since: since as u8, text }
}

/// Those of a name oldest first.
#[rustfmt::skip]
pub(crate) const LAYOUTS: [Layout; 28] = {
    use VmscanEvents::{ActivatedByKind, Batches, Contiguous, Generations, Kinds, Shrinkers};
    [
        layout("mm_vmscan_kswapd_sleep", Contiguous, "nid={nid}"),
        layout("mm_vmscan_kswapd_wake", Contiguous, "nid={nid} order={order}"),
        layout("mm_vmscan_kswapd_wake", Batches, "nid={nid} zid={zid} order={order}"),
        layout("mm_vmscan_kswapd_wake", ActivatedByKind, "nid={nid} order={order}"),
        layout("mm_vmscan_wakeup_kswapd", Contiguous, "nid={nid} zid={zid} order={order}"),
        layout("mm_vmscan_wakeup_kswapd", Batches, "nid={nid} zid={zid} order={order} gfp_flags={gfp_flags:s}"),
        layout("mm_vmscan_wakeup_kswapd", ActivatedByKind, "nid={nid} order={order} gfp_flags={gfp_flags:s}"),
        layout("mm_vmscan_direct_reclaim_begin", Contiguous, "order={order} may_writepage={may_writepage} gfp_flags={gfp_flags:s}"),
        layout("mm_vmscan_direct_reclaim_begin", Batches, "order={order} may_writepage={may_writepage} gfp_flags={gfp_flags:s} classzone_idx={classzone_idx}"),
        layout("mm_vmscan_direct_reclaim_begin", ActivatedByKind, "order={order} gfp_flags={gfp_flags:s}"),
        layout("mm_vmscan_direct_reclaim_end", Contiguous, "nr_reclaimed={nr_reclaimed}"),
        layout("mm_vmscan_memcg_reclaim_begin", Contiguous, "order={order} may_writepage={may_writepage} gfp_flags={gfp_flags:s}"),
        layout("mm_vmscan_memcg_reclaim_begin", Batches, "order={order} may_writepage={may_writepage} gfp_flags={gfp_flags:s} classzone_idx={classzone_idx}"),
        layout("mm_vmscan_memcg_reclaim_begin", ActivatedByKind, "order={order} gfp_flags={gfp_flags:s}"),
        layout("mm_vmscan_memcg_reclaim_end", Contiguous, "nr_reclaimed={nr_reclaimed}"),
        layout("mm_vmscan_lru_isolate", Contiguous, "isolate_mode={isolate_mode} order={order} nr_requested={nr_requested} nr_scanned={nr_scanned} nr_taken={nr_taken} contig_taken={contig_taken} contig_dirty={contig_dirty} contig_failed={contig_failed}"),
        layout("mm_vmscan_lru_isolate", Kinds, "isolate_mode={isolate_mode} order={order} nr_requested={nr_requested} nr_scanned={nr_scanned} nr_taken={nr_taken} file={file}"),
        layout("mm_vmscan_lru_isolate", Batches, "isolate_mode={isolate_mode} classzone={classzone} order={order} nr_requested={nr_requested} nr_scanned={nr_scanned} nr_skipped={nr_skipped} nr_taken={nr_taken} lru={lru:s}"),
        layout("mm_vmscan_lru_isolate", Generations, "classzone={classzone} order={order} nr_requested={nr_requested} nr_scanned={nr_scanned} nr_skipped={nr_skipped} nr_taken={nr_taken} lru={lru:s}"),
        layout("mm_vmscan_lru_shrink_inactive", Contiguous, "nid={nid} zid={zid} nr_scanned={nr_scanned} nr_reclaimed={nr_reclaimed} priority={priority} flags={flags:s}"),
        layout("mm_vmscan_lru_shrink_inactive", Batches, "nid={nid} nr_scanned={nr_scanned} nr_reclaimed={nr_reclaimed} nr_dirty={nr_dirty} nr_writeback={nr_writeback} nr_congested={nr_congested} nr_immediate={nr_immediate} nr_activate={nr_activate} nr_ref_keep={nr_ref_keep} nr_unmap_fail={nr_unmap_fail} priority={priority} flags={flags:s}"),
        layout("mm_vmscan_lru_shrink_inactive", ActivatedByKind, "nid={nid} nr_scanned={nr_scanned} nr_reclaimed={nr_reclaimed} nr_dirty={nr_dirty} nr_writeback={nr_writeback} nr_congested={nr_congested} nr_immediate={nr_immediate} nr_activate_anon={nr_activate_anon} nr_activate_file={nr_activate_file} nr_ref_keep={nr_ref_keep} nr_unmap_fail={nr_unmap_fail} priority={priority} flags={flags:s}"),
        layout("mm_vmscan_lru_shrink_active", Batches, "nid={nid} nr_taken={nr_taken} nr_active={nr_active} nr_deactivated={nr_deactivated} nr_referenced={nr_referenced} priority={priority} flags={flags:s}"),
        layout("mm_shrink_slab_start", Shrinkers, "{shrink:s} {shr:s}: objects to shrink {nr_objects_to_shrink} gfp_flags {gfp_flags:s} pgs_scanned {pgs_scanned} lru_pgs {lru_pgs} cache items {cache_items} delta {delta} total_scan {total_scan}"),
        layout("mm_shrink_slab_start", Kinds, "{shrink:s} {shr:s}: nid: {nid} objects to shrink {nr_objects_to_shrink} gfp_flags {gfp_flags:s} pgs_scanned {pgs_scanned} lru_pgs {lru_pgs} cache items {cache_items} delta {delta} total_scan {total_scan}"),
        layout("mm_shrink_slab_start", Batches, "{shrink:s} {shr:s}: nid: {nid} objects to shrink {nr_objects_to_shrink} gfp_flags {gfp_flags:s} cache items {cache_items} delta {delta} total_scan {total_scan} priority {priority}"),
        layout("mm_shrink_slab_end", Shrinkers, "{shrink:s} {shr:s}: unused scan count {unused_scan} new scan count {new_scan} total_scan {total_scan} last shrinker return val {retval}"),
        layout("mm_shrink_slab_end", Kinds, "{shrink:s} {shr:s}: nid: {nid} unused scan count {unused_scan} new scan count {new_scan} total_scan {total_scan} last shrinker return val {retval}"),
    ]
};

impl KernelEvent {
    /// An event of vmscan as a kernel with these tracepoints prints it, of all fields that any prints. `None`: it has no such
    /// tracepoint.
    ///
    /// # Panics
    /// If a field is missing that the kernel prints.
    pub fn vmscan(events: VmscanEvents, name: &str, field: impl Fn(&str) -> Option<FieldValue>) -> Option<KernelEvent> {
        KernelEvent::new(&LAYOUTS, events as u8, name, field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNELS: [VmscanEvents; 6] = [
        VmscanEvents::Contiguous,
        VmscanEvents::Shrinkers,
        VmscanEvents::Kinds,
        VmscanEvents::Batches,
        VmscanEvents::ActivatedByKind,
        VmscanEvents::Generations,
    ];

    fn of(kernel: VmscanEvents, name: &str) -> Option<KernelEvent> {
        KernelEvent::vmscan(kernel, name, |_| Some(0.into()))
    }

    #[test]
    fn a_kernel_has_the_tracepoints_that_came_before_it() {
        let has = |kernel, name| of(kernel, name).is_some();
        assert!(!has(VmscanEvents::Contiguous, "mm_shrink_slab_start"));
        assert!(has(VmscanEvents::Shrinkers, "mm_shrink_slab_start"));
        assert!(!has(VmscanEvents::Kinds, "mm_vmscan_lru_shrink_active"));
        assert!(has(VmscanEvents::Batches, "mm_vmscan_lru_shrink_active"));
        assert!(KERNELS.into_iter().all(|kernel| has(kernel, "mm_vmscan_lru_shrink_inactive")));
        assert!(!has(VmscanEvents::Generations, "mm_page_alloc_extfrag"));
    }

    fn keys(kernel: VmscanEvents, name: &str) -> Vec<&'static str> {
        of(kernel, name).map_or(Vec::new(), |event| event.keys())
    }

    #[test]
    fn a_batch_of_a_node_says_more_than_that_of_a_zone_and_later_what_was_activated_by_kind() {
        let name = "mm_vmscan_lru_shrink_inactive";
        let old = ["nid", "zid", "nr_scanned", "nr_reclaimed", "priority", "flags"];
        assert_eq!(keys(VmscanEvents::Kinds, name), old);
        let met = ["nr_dirty", "nr_writeback", "nr_congested", "nr_immediate"];
        let rest = ["nr_ref_keep", "nr_unmap_fail", "priority", "flags"];
        let with =
            |activated: &[&'static str]| [&["nid", "nr_scanned", "nr_reclaimed"], &met[..], activated, &rest].concat();
        assert_eq!(keys(VmscanEvents::Batches, name), with(&["nr_activate"]));
        for kernel in [VmscanEvents::ActivatedByKind, VmscanEvents::Generations] {
            assert_eq!(keys(kernel, name), with(&["nr_activate_anon", "nr_activate_file"]));
        }
    }

    #[test]
    fn lines_of_real_kernels_are_read() {
        // The columns of 4.4, 5.0 and 6.12; the names of functions as trace_pipe and as trace-cmd have them.
        for (name, text, key, number) in [
            ("mm_vmscan_kswapd_wake", "nid=0 zid=3 order=9", "zid", 3),
            ("mm_vmscan_kswapd_wake", "nid=0 order=9", "order", 9),
            ("mm_vmscan_wakeup_kswapd", "nid=0 zid=2 order=0", "zid", 2),
            ("mm_vmscan_wakeup_kswapd", "nid=1 order=4 gfp_flags=GFP_KERNEL|__GFP_COMP", "nid", 1),
            ("mm_vmscan_direct_reclaim_begin", "order=2 may_writepage=1 gfp_flags=GFP_KERNEL", "may_writepage", 1),
            (
                "mm_vmscan_lru_isolate",
                "isolate_mode=2 order=0 nr_requested=32 nr_scanned=32 nr_taken=31 file=1",
                "nr_taken",
                31,
            ),
            (
                "mm_shrink_slab_start",
                "super_cache_scan+0x0/0x1b0 00000000b2fbc6c5: nid: 0 objects to shrink 12 gfp_flags GFP_KERNEL cache \
                 items 40960 delta 20 total_scan 22 priority 12 ",
                "cache_items",
                40960,
            ),
            (
                "mm_shrink_slab_end",
                "scan_shadow_nodes+0x0 ffff88003e5a9398: nid: 0 unused scan count 0 new scan count -3 total_scan -3 last \
                 shrinker return val 128",
                "new_scan",
                -3,
            ),
        ] {
            let event = KernelEvent::parse(name, text).expect(name).expect(name);
            assert_eq!(event.number(key), Some(number), "{text}");
            assert_eq!(event.to_string(), text.trim_end());
        }
    }
}
