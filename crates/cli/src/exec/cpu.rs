//! Who used the CPUs, as `top` would tell it: seconds by name of task. And why kswapd did, if it was much.

use indexmap::IndexMap;
use observe::{Counters, Metric};
use report::{KswapdEvidence, why_busy};
use twin::{KswapdDeeds, RunOutcome};
use units::Nanos;

/// Tasks that used less than one part in so many of the run's time are left out.
const SHARE_MIN: u64 = 1000;

/// CPU time of the tasks of each name, most of it first; of all kswapds; and slabs of the least order.
pub(super) fn metrics(outcome: &RunOutcome) -> Vec<Metric> {
    let times = by_name(&outcome.cpu_times);
    let shown = times.iter().filter(|(_, time)| time.0 > outcome.virtual_time.0 / SHARE_MIN);
    let mut metrics: Vec<Metric> =
        shown.map(|(name, time)| Metric::new(&format!("task_cpu_s/{name}"), vec![time.as_secs_f64()])).collect();
    metrics.push(Metric::new("kswapd_cpu_s", vec![kswapd_s(&outcome.cpu_times)]));
    let for_blocks: u64 = outcome.kswapd.iter().map(|deeds| deeds.for_blocks_time.0).sum();
    metrics.push(Metric::new("kswapd_cpu_s/high-order", vec![Nanos(for_blocks).as_secs_f64()]));
    metrics.extend(kswapd_pct(outcome).map(|share| Metric::new("kswapd_cpu_pct", vec![share])));
    metrics.push(Metric::new("slab_order_fallbacks", vec![outcome.slab_order_fallbacks as f64]));
    metrics
}

/// CPU time of all kswapds, in seconds.
fn kswapd_s(times: &[(String, Nanos)]) -> f64 {
    let kswapds = times.iter().filter(|(name, _)| name.starts_with("kswapd"));
    kswapds.map(|(_, time)| time.as_secs_f64()).sum()
}

/// The same in percent of the run's time; none for a run that took none.
fn kswapd_pct(outcome: &RunOutcome) -> Option<f64> {
    let elapsed_s = outcome.virtual_time.as_secs_f64();
    (elapsed_s > 0.0).then(|| kswapd_s(&outcome.cpu_times) / elapsed_s * 100.0)
}

/// Why kswapd was busy in a run, or gave up; nothing if it was and did neither.
pub(super) fn why_kswapd_is_busy(outcome: &RunOutcome, has_swap: bool) -> Option<String> {
    let (before, after) = (outcome.before.vmstat.as_ref()?, outcome.after.vmstat.as_ref()?);
    let sum = |deed: fn(&KswapdDeeds) -> u64| outcome.kswapd.iter().map(deed).sum();
    let grown = |names: &[&str]| names.iter().map(|name| total(after, name) - total(before, name)).sum();
    let (runs, frames): (u64, u64) = (sum(|deeds| deeds.runs), outcome.frames.max(1));
    why_busy(&KswapdEvidence {
        cpu_pct: kswapd_pct(outcome)?,
        runs,
        for_blocks: sum(|deeds| deeds.for_blocks),
        futile: sum(|deeds| deeds.futile),
        futile_boosted: sum(|deeds| deeds.futile_boosted),
        futile_unwritten: sum(|deeds| deeds.futile_unwritten),
        given_up: sum(|deeds| deeds.given_up),
        awake_as_balanced: sum(|deeds| deeds.awake_as_balanced),
        awake_for_reserve: sum(|deeds| deeds.awake_for_reserve),
        scanned: grown(&["pgscan_kswapd"]),
        reclaimed: grown(&["pgsteal_kswapd"]),
        came_back: grown(&["workingset_refault_file", "workingset_refault"]),
        files_reclaimed: grown(&["pgsteal_kswapd", "pgsteal_direct"]).saturating_sub(grown(&["pswpout"])),
        cache_pct: sum(|deeds| deeds.cache_pages) as f64 / runs.max(1) as f64 / frames as f64 * 100.0,
        has_swap,
    })
}

/// A counter, summed over zones where it has zones; 0 if this kernel has none.
fn total(counters: &Counters, name: &str) -> u64 {
    let of_zone = |known: &str| {
        known.strip_prefix(name).is_some_and(|rest| matches!(rest, "" | "_dma" | "_dma32" | "_normal" | "_movable"))
    };
    counters.iter().filter(|(known, _)| of_zone(known)).map(|(_, value)| value).sum()
}

/// Sums by name, the largest first; names that used the same stay in the order of their tasks.
fn by_name(times: &[(String, Nanos)]) -> Vec<(&str, Nanos)> {
    let mut sums: IndexMap<&str, Nanos> = IndexMap::new();
    for (name, time) in times {
        let sum = sums.entry(name).or_default();
        *sum = Nanos(sum.0 + time.0);
    }
    let mut sorted: Vec<(&str, Nanos)> = sums.into_iter().collect();
    sorted.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_of_a_name_are_added_up_and_the_busiest_comes_first() {
        let times = [("tar", 3), ("kswapd0", 4), ("tar", 2), ("idle", 0)];
        let times: Vec<(String, Nanos)> = times.map(|(name, ns)| (name.to_string(), Nanos(ns))).into();
        assert_eq!(by_name(&times), [("tar", Nanos(5)), ("kswapd0", Nanos(4)), ("idle", Nanos(0))]);
    }
}
