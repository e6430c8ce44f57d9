//! The registry of metrics: a new metric is one entry.

use compare::Better::{self, Higher, Lower, None as Neither};

use crate::derived::{self, Derive};
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

/// A metric that a workload records.
const fn recorded(name: &'static str, unit: &'static str, better: Better, doc: &'static str) -> MetricDef {
    MetricDef { name, unit, better, doc, derive: None }
}

/// A metric that is computed from two readings of `/proc/vmstat`.
const fn derived(
    name: &'static str,
    unit: &'static str,
    better: Better,
    derive: Derive,
    doc: &'static str,
) -> MetricDef {
    MetricDef { name, unit, better, doc, derive: Some(derive) }
}

/// Every metric that mmtwin knows by name.
#[rustfmt::skip]
pub const METRICS: &[MetricDef] = &[
    recorded("elapsed_s", "s", Lower, "time of the whole workload or of a phase"),
    recorded("files_per_s", "files/s", Higher, "files created and written per second (fs_mark)"),
    recorded("iops", "IOPS", Higher, "I/O operations per second (fio)"),
    recorded("bandwidth_mib_per_s", "MiB/s", Higher, "bytes read or written per second (fio)"),
    recorded("ops_per_s", "ops/s", Higher, "requests served per second (memcached)"),
    recorded("bandwidth_kb_per_s", "KB/s", Higher, "bytes of requests served per second (memcached)"),
    recorded("fault_base_us", "us", Lower, "first touch of a 2 MiB region that got base pages"),
    recorded("fault_huge_us", "us", Lower, "first touch of a 2 MiB region that got a huge page"),
    recorded("fault_huge_pct", "%", Higher, "regions that got a huge page"),
    recorded("alloc_success_pct", "% of attempts", Higher, "high-order allocations that succeeded (stress-highalloc)"),
    recorded("app_launch_s", "s", Lower, "start of an application beside the workload"),
    recorded("write_wait_ms", "ms", Lower, "mean wait of a write"),
    recorded("extfrag_events", "events", Lower, "fallbacks to another mobility below the pageblock order"),
    derived("kswapd_scanned", "pages", Neither, derived::kswapd_scanned, "pages scanned by kswapd"),
    derived("kswapd_reclaimed", "pages", Neither, derived::kswapd_reclaimed, "pages reclaimed by kswapd"),
    derived("kswapd_efficiency_pct", "%", Higher, derived::kswapd_efficiency, "pages reclaimed per page scanned by kswapd"),
    derived("kswapd_velocity", "pages/s", Neither, derived::kswapd_velocity, "pages scanned per second by kswapd"),
    derived("direct_scanned", "pages", Lower, derived::direct_scanned, "pages scanned in direct reclaim"),
    derived("direct_reclaimed", "pages", Lower, derived::direct_reclaimed, "pages reclaimed in direct reclaim"),
    derived("direct_efficiency_pct", "%", Higher, derived::direct_efficiency, "pages reclaimed per page scanned in direct reclaim"),
    derived("direct_velocity", "pages/s", Lower, derived::direct_velocity, "pages scanned per second in direct reclaim"),
    derived("direct_scans_pct", "%", Lower, derived::percentage_direct_scans, "share of the scanning that direct reclaim did"),
    derived("reclaim_writes", "pages", Lower, derived::page_writes_by_reclaim, "pages written by reclaim"),
    derived("reclaim_writes_file", "pages", Lower, derived::page_writes_file, "file pages written by reclaim"),
    derived("reclaim_writes_anon", "pages", Neither, derived::page_writes_anon, "pages swapped out"),
    derived("allocation_stalls", "stalls", Lower, derived::allocation_stalls, "allocations that entered direct reclaim"),
    derived("compaction_stalls", "stalls", Lower, derived::compaction_stalls, "allocations that entered direct compaction"),
    derived("compaction_success", "pages", Higher, derived::compaction_success, "direct compactions that gave the page"),
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
    let compute = |def: &MetricDef| Some(Metric::new(def.name, vec![def.derive?(delta, elapsed_s)?]));
    METRICS.iter().filter_map(compute).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Counters;

    #[test]
    fn names_are_unique_snake_case_and_documented() {
        for (index, def) in METRICS.iter().enumerate() {
            assert!(def.name.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{}", def.name);
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
