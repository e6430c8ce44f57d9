//! What each part of a run measured, where the workload has parts: the phases whose names have the same word before a slash.
//!
//! A part's metrics are called like those of the run, with the part after a slash; a phase's samples have its whole name
//! there.

use observe::{Counters, Delta, Metric, derived_metrics};
use twin::{CpuTime, IoTime, Phase, RunOutcome};
use units::Nanos;

use super::metrics::registered;

/// A moment of a run, with what is counted until then.
struct Mark<'a> {
    at: Nanos,
    cpu: CpuTime,
    io: IoTime,
    vmstat: &'a Counters,
}

impl<'a> Mark<'a> {
    fn of(phase: &'a Phase) -> Mark<'a> {
        Mark { at: phase.at, cpu: phase.cpu, io: phase.io, vmstat: &phase.vmstat }
    }
}

/// The CPU time of the run, and the metrics of its parts.
pub(super) fn metrics(outcome: &RunOutcome) -> Vec<Metric> {
    let mut metrics = cpu_time("", CpuTime::default(), outcome.cpu);
    let phases = &outcome.log.phases;
    for group in phases.chunk_by(|a, b| part(a).is_some() && part(a) == part(b)) {
        if let Some(name) = part(&group[0])
            && let Some(end) = end_of(outcome, group)
        {
            metrics.extend(of_part(name, &Mark::of(&group[0]), &end));
        }
    }
    for (number, phase) in phases.iter().enumerate().filter(|(_, phase)| part(phase).is_some()) {
        metrics.extend(samples(outcome, phase, phases.get(number + 1)));
    }
    metrics
}

/// The part to which a phase belongs.
fn part(phase: &Phase) -> Option<&str> {
    phase.name.split_once('/').map(|(part, _)| part)
}

/// Where the phase after a group begins, or the end of the run.
fn end_of<'a>(outcome: &'a RunOutcome, group: &[Phase]) -> Option<Mark<'a>> {
    let last = group.last()?.at;
    match outcome.log.phases.iter().find(|phase| phase.at > last) {
        Some(next) => Some(Mark::of(next)),
        None => {
            let vmstat = outcome.after.vmstat.as_ref()?;
            Some(Mark { at: outcome.virtual_time, cpu: outcome.cpu, io: outcome.io, vmstat })
        }
    }
}

fn of_part(name: &str, start: &Mark<'_>, end: &Mark<'_>) -> Vec<Metric> {
    let suffix = format!("/{name}");
    let elapsed_s = end.at.since(start.at).as_secs_f64();
    let mut metrics = vec![Metric::new(&format!("elapsed_s{suffix}"), vec![elapsed_s])];
    metrics.extend(cpu_time(&suffix, start.cpu, end.cpu));
    metrics.extend(io_wait(start.io, end.io).map(|wait| Metric::new(&format!("avg_wait_ms{suffix}"), vec![wait])));
    let derived = derived_metrics(&Delta::between(start.vmstat, end.vmstat), elapsed_s);
    metrics.extend(derived.into_iter().map(|metric| Metric::new(&(metric.name + &suffix), metric.samples)));
    metrics
}

fn cpu_time(suffix: &str, start: CpuTime, end: CpuTime) -> Vec<Metric> {
    let seconds = |kind: &str, start: Nanos, end: Nanos| {
        Metric::new(&format!("{kind}_s{suffix}"), vec![end.since(start).as_secs_f64()])
    };
    let both = |time: CpuTime| Nanos(time.user.0 + time.system.0);
    vec![
        seconds("user", start.user, end.user),
        seconds("system", start.system, end.system),
        seconds("cpu", both(start), both(end)),
    ]
}

/// Mean time of the requests that ended in between, in milliseconds.
fn io_wait(start: IoTime, end: IoTime) -> Option<f64> {
    let requests = end.requests - start.requests;
    (requests > 0).then(|| end.waited.since(start.waited).as_secs_f64() * 1e3 / requests as f64)
}

/// What was sampled in a phase.
fn samples(outcome: &RunOutcome, phase: &Phase, next: Option<&Phase>) -> Vec<Metric> {
    let in_phase = |(number, (name, values)): (usize, &(&str, Vec<f64>))| {
        let end = next.map_or(values.len(), |next| next.samples_before(number));
        let values = &values[phase.samples_before(number)..end];
        (!values.is_empty()).then(|| Metric::new(&format!("{}/{}", registered(name), phase.name), values.to_vec()))
    };
    outcome.log.samples.iter().enumerate().filter_map(in_phase).collect()
}
