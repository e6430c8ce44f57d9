//! The one place where what the twin measured gets its names in the registry.

use observe::{Delta, Metric, derived_metrics};
use twin::{Phase, RunOutcome};

/// Samples of workloads by the name of their metric; other samples have the same name on both sides.
const SAMPLES: &[(&str, &str)] = &[("fault-base", "fault_base_us"), ("fault-huge", "fault_huge_us")];

/// Requested types of a fragmentation event, in the order in which the twin counts them.
const EXTFRAG_TYPES: [&str; 3] = ["unmovable", "movable", "reclaimable"];

/// What a run answers with.
pub(super) fn metrics(outcome: &RunOutcome) -> Vec<Metric> {
    let elapsed_s = outcome.virtual_time.as_secs_f64();
    let mut metrics = vec![Metric::new("elapsed_s", vec![elapsed_s])];
    metrics.extend(phases(outcome));
    metrics.extend(outcome.log.samples.iter().map(|(name, values)| Metric::new(registered(name), values.clone())));
    let faults = |name: &str| outcome.log.of(name).len();
    metrics.extend(huge_share(faults("fault-huge"), faults("fault-base")));
    metrics.push(Metric::new("extfrag_events", vec![outcome.extfrag.iter().sum::<u64>() as f64]));
    for (kind, events) in EXTFRAG_TYPES.iter().zip(outcome.extfrag) {
        metrics.push(Metric::new(&format!("extfrag_events/{kind}"), vec![events as f64]));
    }
    if let (Some(before), Some(after)) = (&outcome.before.vmstat, &outcome.after.vmstat) {
        metrics.extend(derived_metrics(&Delta::between(before, after), elapsed_s));
    }
    metrics
}

/// How long each phase took.
fn phases(outcome: &RunOutcome) -> Vec<Metric> {
    let phases = &outcome.log.phases;
    let ends = phases.iter().skip(1).map(|next| next.at).chain([outcome.virtual_time]);
    let phase = |(phase, end): (&Phase, units::Nanos)| {
        Metric::new(&format!("elapsed_s/{}", phase.name), vec![end.since(phase.at).as_secs_f64()])
    };
    phases.iter().zip(ends).map(phase).collect()
}

/// Share of the regions that got a huge page; nothing if no region was touched.
fn huge_share(huge: usize, base: usize) -> Option<Metric> {
    let all = huge + base;
    (all > 0).then(|| Metric::new("fault_huge_pct", vec![huge as f64 / all as f64 * 100.0]))
}

fn registered(sample: &str) -> &str {
    SAMPLES.iter().find(|(name, _)| *name == sample).map_or(sample, |(_, metric)| metric)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_named_here_is_registered() {
        let samples = SAMPLES.iter().map(|(_, metric)| *metric);
        for name in samples.chain(["elapsed_s", "fault_huge_pct", "extfrag_events/movable"]) {
            assert!(observe::metric_def(name).is_some(), "{name}");
        }
    }

    #[test]
    fn the_share_of_huge_pages_is_in_percent() {
        assert_eq!(huge_share(3, 1).unwrap().samples, [75.0]);
        assert_eq!(huge_share(0, 4).unwrap().samples, [0.0]);
        assert_eq!(huge_share(0, 0), None);
    }
}
