//! Who used the CPUs, as `top` would tell it: seconds by name of task. And why kswapd did, if it was much.

use indexmap::IndexMap;
use observe::{Delta, Metric};
use profile::Machine;
use report::{KswapdEvidence, why_busy};
use twin::{KswapdDeeds, RunOutcome};
use units::Nanos;

use super::frames;

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

/// Why kswapd was busy in a run, or gave up; nothing if it was not and did not.
pub(super) fn why_kswapd_is_busy(outcome: &RunOutcome, machine: &Machine) -> Option<String> {
    let delta = Delta::between(outcome.before.vmstat.as_ref()?, outcome.after.vmstat.as_ref()?);
    let sum = |deed: fn(&KswapdDeeds) -> u64| outcome.kswapd.iter().map(deed).sum();
    let runs: u64 = sum(|deeds| deeds.runs);
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
        scanned: grown(&delta, "pgscan_kswapd"),
        reclaimed: grown(&delta, "pgsteal_kswapd"),
        came_back: grown(&delta, "workingset_refault_file") + grown(&delta, "workingset_refault"),
        files_reclaimed: files_reclaimed(&delta),
        cache_pct: sum(|deeds| deeds.cache_pages) as f64 / runs.max(1) as f64 / frames(machine) as f64 * 100.0,
        has_swap: machine.has_swap(),
        memcgs: outcome.after.groups.len() as u64,
    })
}

/// Growth of a counter, summed over zones where it has zones; 0 if this kernel has none.
fn grown(delta: &Delta, name: &str) -> u64 {
    delta.sum_zones(name).map_or(0, |growth| growth.max(0).cast_unsigned())
}

/// Pages of files that were reclaimed. Kernels before 5.8 do not count them apart: there they are what was reclaimed and was
/// not written to swap.
fn files_reclaimed(delta: &Delta) -> u64 {
    match delta.get("pgsteal_file") {
        Some(_) => grown(delta, "pgsteal_file"),
        None => {
            (grown(delta, "pgsteal_kswapd") + grown(delta, "pgsteal_direct")).saturating_sub(grown(delta, "pswpout"))
        }
    }
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
    use observe::Counters;

    use super::*;

    #[test]
    fn what_swap_in_memory_took_was_no_file() {
        let delta = |pairs: &[(&str, u64)]| {
            let zero: Counters = pairs.iter().map(|&(name, _)| (name, 0)).collect();
            Delta::between(&zero, &pairs.iter().copied().collect())
        };
        // zswap keeps 300 pages, which pswpout does not count.
        let of_6_12 = [("pgsteal_kswapd", 900), ("pgsteal_direct", 100), ("zswpout", 300), ("pgsteal_file", 700)];
        assert_eq!(files_reclaimed(&delta(&of_6_12)), 700);
        let of_4_4 = [("pgsteal_kswapd_dma32", 900), ("pgsteal_direct_normal", 100), ("pswpout", 300)];
        assert_eq!(files_reclaimed(&delta(&of_4_4)), 700);
        assert_eq!(files_reclaimed(&Delta::default()), 0);
    }

    #[test]
    fn tasks_of_a_name_are_added_up_and_the_busiest_comes_first() {
        let times = [("tar", 3), ("kswapd0", 4), ("tar", 2), ("idle", 0)];
        let times: Vec<(String, Nanos)> = times.map(|(name, ns)| (name.to_string(), Nanos(ns))).into();
        assert_eq!(by_name(&times), [("tar", Nanos(5)), ("kswapd0", Nanos(4)), ("idle", Nanos(0))]);
    }
}
