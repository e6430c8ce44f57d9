//! Tracepoints of compaction.
//!
//! Source: the `TP_printk` of include/trace/events/compaction.h, 3.1, 3.18, 4.4, 4.9, 5.0, 6.1, 6.12. Whether `gfp_mask` is a
//! number or names is in gfp_names.rs.

use rules::CompactionEvents;

use crate::layout::Layout;
use crate::{FieldValue, KernelEvent};

const fn layout(name: &'static str, since: CompactionEvents, text: &'static str) -> Layout {
    Layout { name, since: since as u8, text }
}

/// Those of a name oldest first.
#[rustfmt::skip]
pub(crate) const LAYOUTS: [Layout; 20] = {
    use CompactionEvents::{Counts, FreeLists, Priorities, Ranges, Runs};
    [
        layout("mm_compaction_isolate_migratepages", Counts, "nr_scanned={nr_scanned} nr_taken={nr_taken}"),
        layout("mm_compaction_isolate_migratepages", Ranges, "range=({start_pfn:x} ~ {end_pfn:x}) nr_scanned={nr_scanned} nr_taken={nr_taken}"),
        layout("mm_compaction_isolate_freepages", Counts, "nr_scanned={nr_scanned} nr_taken={nr_taken}"),
        layout("mm_compaction_isolate_freepages", Ranges, "range=({start_pfn:x} ~ {end_pfn:x}) nr_scanned={nr_scanned} nr_taken={nr_taken}"),
        layout("mm_compaction_fast_isolate_freepages", FreeLists, "range=({start_pfn:x} ~ {end_pfn:x}) nr_scanned={nr_scanned} nr_taken={nr_taken}"),
        layout("mm_compaction_migratepages", Counts, "nr_migrated={nr_migrated} nr_failed={nr_failed}"),
        layout("mm_compaction_begin", Runs, "zone_start={zone_start} migrate_start={migrate_pfn} free_start={free_pfn} zone_end={zone_end}"),
        layout("mm_compaction_begin", Ranges, "zone_start={zone_start:x} migrate_pfn={migrate_pfn:x} free_pfn={free_pfn:x} zone_end={zone_end:x}, mode={mode:s}"),
        layout("mm_compaction_end", Runs, "status={number}"),
        layout("mm_compaction_end", Ranges, "zone_start={zone_start:x} migrate_pfn={migrate_pfn:x} free_pfn={free_pfn:x} zone_end={zone_end:x}, mode={mode:s} status={status:s}"),
        layout("mm_compaction_try_to_compact_pages", Ranges, "order={order} gfp_mask={gfp_mask:s} mode={migrate_mode}"),
        layout("mm_compaction_try_to_compact_pages", Priorities, "order={order} gfp_mask={gfp_mask:s} priority={priority}"),
        layout("mm_compaction_finished", Ranges, "node={node} zone={zone:8s} order={order} ret={ret:s}"),
        layout("mm_compaction_suitable", Ranges, "node={node} zone={zone:8s} order={order} ret={ret:s}"),
        layout("mm_compaction_deferred", Ranges, "node={node} zone={zone:8s} order={order} order_failed={order_failed} consider={considered} limit={limit}"),
        layout("mm_compaction_defer_compaction", Ranges, "node={node} zone={zone:8s} order={order} order_failed={order_failed} consider={considered} limit={limit}"),
        layout("mm_compaction_defer_reset", Ranges, "node={node} zone={zone:8s} order={order} order_failed={order_failed} consider={considered} limit={limit}"),
        layout("mm_compaction_kcompactd_sleep", Priorities, "nid={nid}"),
        layout("mm_compaction_kcompactd_wake", Priorities, "nid={nid} order={order} classzone_idx={classzone_idx:8s}"),
        layout("mm_compaction_wakeup_kcompactd", Priorities, "nid={nid} order={order} classzone_idx={classzone_idx:8s}"),
    ]
};

impl KernelEvent {
    /// An event of compaction as a kernel with these tracepoints prints it, of all fields that any prints. `None`: it has no such
    /// tracepoint.
    ///
    /// # Panics
    /// If a field is missing that the kernel prints.
    pub fn compaction(
        events: CompactionEvents,
        name: &str,
        field: impl Fn(&str) -> Option<FieldValue>,
    ) -> Option<KernelEvent> {
        KernelEvent::new(&LAYOUTS, events as u8, name, field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNELS: [CompactionEvents; 6] = [
        CompactionEvents::Counts,
        CompactionEvents::Runs,
        CompactionEvents::Ranges,
        CompactionEvents::Priorities,
        CompactionEvents::GfpNames,
        CompactionEvents::FreeLists,
    ];

    /// The tracepoints of a kernel, without what all begin with.
    fn of(kernel: CompactionEvents) -> Vec<&'static str> {
        let mut names: Vec<&str> = LAYOUTS.iter().map(|layout| layout.name).collect();
        names.dedup();
        names.retain(|name| KernelEvent::compaction(kernel, name, |_| Some(0.into())).is_some());
        names.into_iter().map(|name| name.trim_start_matches("mm_compaction_")).collect()
    }

    #[test]
    fn a_kernel_has_the_tracepoints_that_came_before_it() {
        let came = |nth: usize| {
            let before = nth.checked_sub(1).map_or(Vec::new(), |before| of(KERNELS[before]));
            of(KERNELS[nth]).into_iter().filter(|name| !before.contains(name)).collect::<Vec<_>>()
        };
        assert_eq!(came(0), ["isolate_migratepages", "isolate_freepages", "migratepages"]);
        assert_eq!(came(1), ["begin", "end"]);
        let decisions = ["finished", "suitable", "deferred", "defer_compaction", "defer_reset"];
        assert_eq!(came(2), [&["try_to_compact_pages"], &decisions[..]].concat());
        assert_eq!(came(3), ["kcompactd_sleep", "kcompactd_wake", "wakeup_kcompactd"]);
        assert_eq!(came(4), [""; 0]);
        assert_eq!(came(5), ["fast_isolate_freepages"]);
    }

    #[test]
    fn lines_of_real_kernels_come_back() {
        // 4.4, 4.18, 5.0 and 6.12; the last as the kernel pads it.
        let lines = [
            "mm_compaction_begin: zone_start=0x1000 migrate_pfn=0x1000 free_pfn=0x24000 zone_end=0x24000, mode=async",
            "mm_compaction_end: zone_start=0x1000 migrate_pfn=0x4e00 free_pfn=0x4e80 zone_end=0x24000, mode=async status=complete",
            "mm_compaction_finished: node=0 zone=DMA32    order=9 ret=continue",
            "mm_compaction_try_to_compact_pages: order=9 gfp_mask=0x4752ca mode=0",
            "mm_compaction_defer_reset: node=0 zone=DMA32    order=9 order_failed=10 consider=0 limit=1",
            "mm_compaction_defer_compaction: node=0 zone=DMA32    order=9 order_failed=0 consider=0 limit=4",
            "mm_compaction_suitable: node=0 zone=DMA32    order=3 ret=success",
            "mm_compaction_try_to_compact_pages: order=9 gfp_mask=0x2342ca priority=1",
            "mm_compaction_deferred: node=0 zone=DMA32    order=9 order_failed=0 consider=1 limit=4",
            "mm_compaction_finished: node=0 zone=DMA32    order=9 ret=no_suitable_page",
            "mm_compaction_isolate_migratepages: range=(0x1200 ~ 0x1400) nr_scanned=512 nr_taken=0",
            "mm_compaction_isolate_freepages: range=(0x23800 ~ 0x23a00) nr_scanned=512 nr_taken=0",
            "mm_compaction_migratepages: nr_migrated=32 nr_failed=0",
            "mm_compaction_fast_isolate_freepages: range=(0x13400 ~ 0x23e00) nr_scanned=64 nr_taken=64",
            // The scanners have passed each other, and half of the distance between them is a large number.
            "mm_compaction_fast_isolate_freepages: range=(0x8000000000006800 ~ 0x6800) nr_scanned=21 nr_taken=0",
            "mm_compaction_finished: node=0 zone=DMA32    order=-1 ret=continue",
            "mm_compaction_try_to_compact_pages: order=9 gfp_mask=GFP_TRANSHUGE|__GFP_NORETRY|__GFP_THISNODE priority=2",
            "mm_compaction_kcompactd_sleep: nid=0",
            "mm_compaction_wakeup_kcompactd: nid=0 order=9 classzone_idx=Normal  ",
        ];
        for line in lines {
            let (name, text) = line.split_once(": ").expect("a name and fields");
            let event = KernelEvent::parse(name, text).expect(name).expect(line);
            assert_eq!(event.to_string(), text);
        }
    }
}
