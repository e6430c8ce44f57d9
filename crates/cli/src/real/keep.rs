//! From what a real kernel showed to a run directory.

use std::collections::BTreeMap;

use guest::Results;
use observe::{Described, EXTFRAG_HIST, Manifest, RunDir, Series, Snapshot, TraceHist, World, extfrag_events};
use units::Nanos;

use super::plan::Planned;
use crate::args::RunArgs;
use crate::exec::{Done, Measured, metrics};
use crate::failure::Failure;

/// What a real kernel gave.
pub(super) struct Evidence {
    /// Which world it is.
    pub(super) world: World,
    /// The kernel, and what else identifies it.
    pub(super) kernel: Described,
    /// What the workload measured.
    pub(super) results: Results,
    /// Files by their places in the run directory.
    pub(super) files: BTreeMap<String, Vec<u8>>,
    /// Settings that were written.
    pub(super) sysctls: Vec<(String, String)>,
    /// What stands in for what.
    pub(super) omitted: Vec<String>,
    /// Seconds on the wall.
    pub(super) wall_s: f64,
}

/// The run, in its directory if it has one.
pub(super) fn keep(args: &RunArgs, planned: &Planned, evidence: Evidence) -> Result<Done, Failure> {
    let Evidence { world, kernel, sysctls, results, files, mut omitted, wall_s } = evidence;
    let snapshot = |place: &str| {
        Snapshot::parse(place, &files).map_err(|error| Failure::failed(format!("the kernel's files: {error}")))
    };
    let (before, after) = (snapshot("before")?, snapshot("after")?);
    omitted.extend(results.missing.iter().cloned());
    let metrics = metrics(&Measured {
        elapsed: Nanos(results.elapsed_ns),
        phases: results.phases.iter().map(|phase| (Nanos(phase.at_ns), phase.name.as_str())).collect(),
        samples: results.samples.iter().map(|(name, values)| (name.as_str(), values.as_slice())).collect(),
        extfrag: extfrag(&files)?,
        before: &before,
        after: &after,
    });
    let run = RunDir {
        manifest: Manifest {
            version: env!("CARGO_PKG_VERSION").to_string(),
            world,
            workload: planned.program.clone(),
            machine: planned.machine.clone(),
            kernel,
            sysctls: sysctls.into_iter().collect(),
            seed: args.common.seed,
            iteration: planned.iteration,
            omitted,
            virtual_s: Nanos(results.elapsed_ns).as_secs_f64(),
            wall_s: Some(wall_s),
        },
        before,
        after,
        metrics,
        series: series(results),
    };
    if let Some(dir) = &planned.dir {
        run.write(dir, &[], &files).map_err(Failure::writing)?;
    }
    Ok(Done { run, dir: planned.dir.clone(), host: None, wall_s, zones: None, why_kswapd_is_busy: None })
}

fn extfrag(files: &BTreeMap<String, Vec<u8>>) -> Result<Option<[u64; 3]>, Failure> {
    let Some(text) = files.get(EXTFRAG_HIST) else { return Ok(None) };
    let histograms = TraceHist::parse(EXTFRAG_HIST, &String::from_utf8_lossy(text)).map_err(Failure::failed)?;
    Ok(extfrag_events(&histograms))
}

fn series(results: Results) -> Option<Series> {
    if results.series_rows.is_empty() {
        return None;
    }
    let columns = results.series_names.len();
    let mut series = Series::new(results.series_names);
    for (at, values) in results.series_rows.into_iter().filter(|(_, values)| values.len() == columns) {
        series.push(Nanos(at), values);
    }
    Some(series)
}
