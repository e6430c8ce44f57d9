//! The one place where what the twin measured gets its names in the registry.

use observe::{Delta, Metric, Pressure, Snapshot, derived_metrics};
use twin::RunOutcome;
use units::Nanos;

/// Samples of workloads by the name of their metric; other samples have the same name on both sides.
const SAMPLES: &[(&str, &str)] = &[("fault-base", "fault_base_us"), ("fault-huge", "fault_huge_us")];

/// Requested types of a fragmentation event, in the order in which the twin counts them.
const EXTFRAG_TYPES: [&str; 3] = ["unmovable", "movable", "reclaimable"];

/// What a run measured, in whichever world.
pub(crate) struct Measured<'a> {
    /// Length of the run.
    pub(crate) elapsed: Nanos,
    /// When each phase began.
    pub(crate) phases: Vec<(Nanos, &'a str)>,
    /// Samples by name.
    pub(crate) samples: Vec<(&'a str, &'a [f64])>,
    /// Fragmentation events by requested type; none where they could not be counted.
    pub(crate) extfrag: Option<[u64; 3]>,
    /// `/proc` before the run.
    pub(crate) before: &'a Snapshot,
    /// `/proc` after it.
    pub(crate) after: &'a Snapshot,
}

impl<'a> Measured<'a> {
    /// What the twin measured.
    pub(super) fn of(outcome: &'a RunOutcome) -> Measured<'a> {
        Measured {
            elapsed: outcome.virtual_time,
            phases: outcome.log.phases.iter().map(|phase| (phase.at, phase.name.as_str())).collect(),
            samples: outcome.log.samples.iter().map(|(name, values)| (*name, values.as_slice())).collect(),
            extfrag: Some(outcome.extfrag),
            before: &outcome.before,
            after: &outcome.after,
        }
    }

    fn nr_samples(&self, name: &str) -> usize {
        self.samples.iter().find(|(known, _)| *known == name).map_or(0, |(_, values)| values.len())
    }
}

/// What a run answers with.
pub(crate) fn metrics(run: &Measured<'_>) -> Vec<Metric> {
    let elapsed_s = run.elapsed.as_secs_f64();
    let mut metrics = vec![Metric::new("elapsed_s", vec![elapsed_s])];
    metrics.extend(phases(run));
    metrics.extend(run.samples.iter().map(|(name, values)| Metric::new(registered(name), values.to_vec())));
    metrics.extend(huge_share(run.nr_samples("fault-huge"), run.nr_samples("fault-base")));
    if let Some(extfrag) = run.extfrag {
        metrics.push(Metric::new("extfrag_events", vec![extfrag.iter().sum::<u64>() as f64]));
        for (kind, events) in EXTFRAG_TYPES.iter().zip(extfrag) {
            metrics.push(Metric::new(&format!("extfrag_events/{kind}"), vec![events as f64]));
        }
    }
    if let (Some(before), Some(after)) = (&run.before.vmstat, &run.after.vmstat) {
        metrics.extend(derived_metrics(&Delta::between(before, after), elapsed_s));
    }
    metrics.extend(pressure(run.before, run.after));
    metrics
}

/// Time in which tasks stalled, by resource.
fn pressure(before: &Snapshot, after: &Snapshot) -> Vec<Metric> {
    let files = [
        ("memory", &before.pressure_memory, &after.pressure_memory),
        ("io", &before.pressure_io, &after.pressure_io),
        ("cpu", &before.pressure_cpu, &after.pressure_cpu),
    ];
    let mut metrics = Vec::new();
    for (resource, before, after) in files {
        let (Some(before), Some(after)) = (before, after) else { continue };
        let grown = |of: fn(&Pressure) -> u64| of(after).saturating_sub(of(before)) as f64 / 1e6;
        metrics.push(Metric::new(&format!("psi_some_s/{resource}"), vec![grown(|p| p.some.total_us)]));
        // Of CPUs it is not defined for the system.
        if resource != "cpu" && after.full.is_some() {
            let full = grown(|p| p.full.map_or(0, |line| line.total_us));
            metrics.push(Metric::new(&format!("psi_full_s/{resource}"), vec![full]));
        }
    }
    metrics
}

/// How long each phase took.
fn phases(run: &Measured<'_>) -> Vec<Metric> {
    let ends = run.phases.iter().skip(1).map(|next| next.0).chain([run.elapsed]);
    let phase = |((start, name), end): (&(Nanos, &str), Nanos)| {
        Metric::new(&format!("elapsed_s/{name}"), vec![end.since(*start).as_secs_f64()])
    };
    run.phases.iter().zip(ends).map(phase).collect()
}

/// Share of the regions that got a huge page; nothing if no region was touched.
fn huge_share(huge: usize, base: usize) -> Option<Metric> {
    let all = huge + base;
    (all > 0).then(|| Metric::new("fault_huge_pct", vec![huge as f64 / all as f64 * 100.0]))
}

pub(super) fn registered(sample: &str) -> &str {
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
