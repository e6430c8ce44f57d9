//! The registry of metrics: a new metric is one entry.

use compare::Better::{self, Higher, Lower, None as Neither};

use crate::derived::{self, Column};
use crate::{Delta, Metric};

/// What is known of a metric beforehand.
#[derive(Clone, Copy, Debug)]
pub struct MetricDef {
    /// Its name, in snake case.
    pub name: &'static str,
    /// Unit of its samples.
    pub unit: &'static str,
    /// Which way is better.
    pub better: Better,
    /// One line that says what it is.
    pub doc: &'static str,
    derive: Option<Derive>,
}

/// How a metric comes out of two readings of `/proc/vmstat`.
#[derive(Clone, Copy, Debug)]
enum Derive {
    /// By a rule of its own.
    Column(Column),
    /// As the growth of a counter, summed over zones where it has zones.
    Counter(&'static str),
}

impl MetricDef {
    /// Whether it is computed from `/proc/vmstat`.
    pub fn is_derived(&self) -> bool {
        self.derive.is_some()
    }
}

/// A metric that a workload records.
const fn recorded(name: &'static str, unit: &'static str, better: Better, doc: &'static str) -> MetricDef {
    MetricDef { name, unit, better, doc, derive: None }
}

/// A metric that is computed from two readings of `/proc/vmstat`.
const fn derived(
    name: &'static str,
    unit: &'static str,
    better: Better,
    column: Column,
    doc: &'static str,
) -> MetricDef {
    MetricDef { name, unit, better, doc, derive: Some(Derive::Column(column)) }
}

/// A metric that is the growth of a counter.
const fn counted(
    name: &'static str,
    unit: &'static str,
    better: Better,
    counter: &'static str,
    doc: &'static str,
) -> MetricDef {
    MetricDef { name, unit, better, doc, derive: Some(Derive::Counter(counter)) }
}

/// Every metric that mmtwin knows by name.
#[rustfmt::skip]
pub const METRICS: &[MetricDef] = &[
    recorded("elapsed_s", "s", Lower, "time of the whole workload or of a phase"),
    recorded("user_s", "s", Neither, "CPU time of programs outside the kernel"),
    recorded("system_s", "s", Neither, "CPU time of the kernel"),
    recorded("cpu_s", "s", Lower, "CPU time of programs and of the kernel"),
    recorded("task_cpu_s", "s", Neither, "CPU time of all tasks of a name"),
    recorded("programs_cpu_s", "s", Lower, "CPU time of a program that the test itself runs, as time(1) tells it"),
    recorded("kswapd_cpu_s", "s", Lower, "CPU time of all kswapds; high-order: of their runs for blocks of more than a page"),
    recorded("kswapd_cpu_pct", "%", Lower, "CPU time of all kswapds, in percent of the time that one CPU had"),
    recorded("psi_some_s", "s", Lower, "time in which tasks stalled for want of memory, I/O or a CPU (/proc/pressure)"),
    recorded("psi_full_s", "s", Lower, "time in which no task got on for want of memory or I/O (/proc/pressure)"),
    recorded("slab_order_fallbacks", "slabs", Neither, "slabs that had to be of the least order"),
    recorded("files_per_s", "files/s", Higher, "files created and written per second (fs_mark)"),
    recorded("iops", "IOPS", Higher, "I/O operations per second (fio)"),
    recorded("bandwidth_mib_per_s", "MiB/s", Higher, "bytes read or written per second (fio)"),
    recorded("fio_read_iops", "IOPS", Higher, "reads per second of a job (fio)"),
    recorded("fio_write_iops", "IOPS", Higher, "writes per second of a job (fio)"),
    recorded("fio_read_lat_us", "us", Lower, "mean time of a read (fio)"),
    recorded("fio_write_lat_us", "us", Lower, "mean time of a write (fio)"),
    recorded("ops_per_s", "ops/s", Higher, "requests served per second (memcached)"),
    recorded("bandwidth_kb_per_s", "KB/s", Higher, "bytes of requests served per second (memcached)"),
    recorded("fault_base_us", "us", Lower, "first touch of a 2 MiB region that got base pages"),
    recorded("fault_huge_us", "us", Lower, "first touch of a 2 MiB region that got a huge page"),
    recorded("fault_huge_pct", "%", Higher, "regions that got a huge page"),
    recorded("alloc_success_pct", "% of attempts", Higher, "high-order allocations that succeeded (stress-highalloc)"),
    recorded("app_launch_s", "s", Lower, "start of an application beside the workload"),
    recorded("avg_wait_ms", "ms", Lower, "mean time of a request to the mounted device, from submission to its end (iostat's await)"),
    recorded("write_wait_ms", "ms", Lower, "mean wait of a write"),
    recorded("memcg", "as named", Neither, "what a scenario of memory cgroups saw"),
    recorded("conformance", "answers", Neither, "what a program of the workload conformance saw"),
    recorded("extfrag_events", "events", Lower, "fallbacks to another mobility below the pageblock order"),
    derived("minor_faults", "faults", Neither, derived::minor_faults, "page faults without I/O"),
    counted("major_faults", "faults", Lower, "pgmajfault", "page faults with I/O"),
    counted("swap_ins", "pages", Lower, "pswpin", "pages read from swap"),
    counted("dma_allocs", "pages", Neither, "pgalloc_dma", "pages allocated from ZONE_DMA"),
    counted("dma32_allocs", "pages", Neither, "pgalloc_dma32", "pages allocated from ZONE_DMA32"),
    counted("normal_allocs", "pages", Neither, "pgalloc_normal", "pages allocated from ZONE_NORMAL"),
    counted("movable_allocs", "pages", Neither, "pgalloc_movable", "pages allocated from ZONE_MOVABLE"),
    derived("kswapd_scanned", "pages", Neither, derived::kswapd_scanned, "pages scanned by kswapd"),
    derived("kswapd_reclaimed", "pages", Neither, derived::kswapd_reclaimed, "pages reclaimed by kswapd"),
    derived("kswapd_efficiency_pct", "%", Higher, derived::kswapd_efficiency, "pages reclaimed per page scanned by kswapd"),
    derived("kswapd_velocity", "pages/s", Neither, derived::kswapd_velocity, "pages scanned per second by kswapd"),
    derived("direct_scanned", "pages", Lower, derived::direct_scanned, "pages scanned in direct reclaim"),
    derived("direct_reclaimed", "pages", Lower, derived::direct_reclaimed, "pages reclaimed in direct reclaim"),
    derived("direct_efficiency_pct", "%", Higher, derived::direct_efficiency, "pages reclaimed per page scanned in direct reclaim"),
    derived("direct_velocity", "pages/s", Lower, derived::direct_velocity, "pages scanned per second in direct reclaim"),
    derived("direct_scans_pct", "%", Lower, derived::percentage_direct_scans, "share of the scanning that direct reclaim did"),
    derived("zone_normal_velocity", "pages/s", Neither, derived::zone_normal_velocity, "pages of ZONE_NORMAL scanned per second (kernels before 4.8)"),
    derived("zone_dma32_velocity", "pages/s", Neither, derived::zone_dma32_velocity, "pages of ZONE_DMA32 scanned per second (kernels before 4.8)"),
    derived("zone_dma_velocity", "pages/s", Neither, derived::zone_dma_velocity, "pages of ZONE_DMA scanned per second (kernels before 4.8)"),
    derived("reclaim_writes", "pages", Lower, derived::page_writes_by_reclaim, "pages written by reclaim"),
    derived("reclaim_writes_file", "pages", Lower, derived::page_writes_file, "file pages written by reclaim"),
    derived("reclaim_writes_anon", "pages", Neither, derived::page_writes_anon, "pages swapped out"),
    counted("reclaim_immediate", "pages", Lower, "nr_vmscan_immediate_reclaim", "dirty pages that reclaim marked to be freed at the end of their writeback"),
    counted("reclaim_rescued", "pages", Neither, "pgrescued", "pages taken back from reclaim (kernels that were never released)"),
    counted("sector_reads", "KiB", Lower, "pgpgin", "read from disks"),
    counted("sector_writes", "KiB", Lower, "pgpgout", "written to disks"),
    counted("slabs_scanned", "objects", Neither, "slabs_scanned", "objects that shrinkers looked at"),
    counted("direct_inode_steals", "pages", Lower, "pginodesteal", "pages of inodes that direct reclaim freed"),
    counted("kswapd_inode_steals", "pages", Lower, "kswapd_inodesteal", "pages of inodes that kswapd freed"),
    counted("kswapd_skipped_wait", "waits", Lower, "kswapd_skip_congestion_wait", "waits that kswapd left out (kernels before 3.8)"),
    counted("thp_fault_alloc", "huge pages", Higher, "thp_fault_alloc", "faults that got a huge page"),
    counted("thp_fault_fallback", "faults", Lower, "thp_fault_fallback", "faults that should have got a huge page and did not"),
    counted("thp_collapse_alloc", "huge pages", Higher, "thp_collapse_alloc", "huge pages that khugepaged allocated"),
    counted("thp_collapse_failed", "huge pages", Lower, "thp_collapse_alloc_failed", "huge pages that khugepaged could not allocate"),
    derived("thp_splits", "huge pages", Lower, derived::thp_splits, "huge pages split into small ones"),
    derived("allocation_stalls", "stalls", Lower, derived::allocation_stalls, "allocations that entered direct reclaim"),
    derived("compaction_stalls", "stalls", Lower, derived::compaction_stalls, "allocations that entered direct compaction"),
    derived("compaction_success", "pages", Higher, derived::compaction_success, "direct compactions that gave the page"),
    counted("compaction_failures", "stalls", Lower, "compact_fail", "direct compactions that did not give the page"),
    counted("migrate_success", "pages", Neither, "pgmigrate_success", "pages moved"),
    counted("migrate_failures", "pages", Lower, "pgmigrate_fail", "pages that could not be moved"),
    counted("compaction_isolated", "pages", Neither, "compact_isolated", "pages that compaction's scanners took"),
    counted("compaction_migrate_scanned", "pages", Lower, "compact_migrate_scanned", "pages that the migrate scanner looked at"),
    counted("compaction_free_scanned", "pages", Lower, "compact_free_scanned", "pages that the free scanner looked at"),
    derived("compaction_efficiency_pct", "%", Higher, derived::compaction_efficiency, "share of direct compactions that gave the page"),
    derived("compaction_scan_efficiency_pct", "%", Higher, derived::compaction_scan_efficiency, "pages seen by the migration scanner per page seen by the free scanner"),
    derived("compaction_cost", "model units", Lower, derived::compaction_cost, "mmtests' cost of compaction"),
];

/// The entry of a metric; what stands after a slash in `name` only tells several of a kind apart.
pub fn metric_def(name: &str) -> Option<&'static MetricDef> {
    let kind = name.split_once('/').map_or(name, |(kind, _)| kind);
    METRICS.iter().find(|def| def.name == kind)
}

/// All metrics that can be computed from `delta` over `elapsed_s` seconds, each with one sample.
pub fn derived_metrics(delta: &Delta, elapsed_s: f64) -> Vec<Metric> {
    let value = |def: &MetricDef| match def.derive? {
        Derive::Column(column) => column(delta, elapsed_s),
        Derive::Counter(name) => derived::count(delta, name),
    };
    let compute = |def: &MetricDef| Some(Metric::new(def.name, vec![value(def)?]));
    METRICS.iter().filter_map(compute).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Counters;

    #[test]
    fn names_are_unique_snake_case_and_documented() {
        for (index, def) in METRICS.iter().enumerate() {
            assert!(def.name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'), "{}", def.name);
            assert!(!def.doc.is_empty() && !def.unit.is_empty(), "{}", def.name);
            assert!(METRICS[..index].iter().all(|other| other.name != def.name), "{}", def.name);
        }
    }

    #[test]
    fn what_stands_after_a_slash_is_no_part_of_the_kind() {
        assert_eq!(metric_def("fault_huge_us/4").unwrap().unit, "us");
        assert!(metric_def("fault_huge").is_none());
    }

    #[test]
    fn only_what_can_be_computed_is_there() {
        let zero: Counters = [("allocstall_normal", 0)].into_iter().collect();
        let end: Counters = [("allocstall_normal", 12)].into_iter().collect();
        let metrics = derived_metrics(&Delta::between(&zero, &end), 2.0);
        assert_eq!(metrics, [Metric::new("allocation_stalls", vec![12.0])]);
    }
}
