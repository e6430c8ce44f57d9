//! Who used the CPUs, as `top` would tell it: seconds by name of task.

use indexmap::IndexMap;
use observe::Metric;
use twin::RunOutcome;
use units::Nanos;

/// Tasks that used less than one part in so many of the run's time are left out.
const SHARE_MIN: u64 = 1000;

/// CPU time of the tasks of each name, most of it first; of all kswapds; and slabs of the least order.
pub(super) fn metrics(outcome: &RunOutcome) -> Vec<Metric> {
    let times = by_name(&outcome.cpu_times);
    let shown = times.iter().filter(|(_, time)| time.0 > outcome.virtual_time.0 / SHARE_MIN);
    let mut metrics: Vec<Metric> =
        shown.map(|(name, time)| Metric::new(&format!("task_cpu_s/{name}"), vec![time.as_secs_f64()])).collect();
    let kswapds = times.iter().filter(|(name, _)| name.starts_with("kswapd"));
    let kswapd = kswapds.map(|(_, time)| time.as_secs_f64()).sum::<f64>();
    metrics.push(Metric::new("kswapd_cpu_s", vec![kswapd]));
    let elapsed_s = outcome.virtual_time.as_secs_f64();
    if elapsed_s > 0.0 {
        metrics.push(Metric::new("kswapd_cpu_pct", vec![kswapd / elapsed_s * 100.0]));
    }
    metrics.push(Metric::new("slab_order_fallbacks", vec![outcome.slab_order_fallbacks as f64]));
    metrics
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
