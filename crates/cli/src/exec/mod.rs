//! Runs runs: several at a time, with progress, until they are done or the user has had enough.

mod compaction;
mod cpu;
mod events;
mod fields;
mod interrupt;
mod job;
mod memory;
mod metrics;
mod parts;
mod pool;
mod progress;
mod runner;
mod vmscan;
mod wall;
mod zones;

use std::panic::{AssertUnwindSafe, catch_unwind};

use observe::{Manifest, RunDir, World};
use profile::Machine;
use report::HostUse;
use twin::{RunError, RunOutcome};

use crate::failure::Failure;
use crate::output;
pub(crate) use interrupt::Interrupt;
pub(crate) use job::{Done, Job, Setup, check_free, check_places, place};
pub(crate) use metrics::{Measured, metrics};
pub(crate) use progress::Board;
pub(crate) use wall::Stopwatch;

/// File of a run directory with the picture of the zones.
pub(crate) const ZONES: &str = "zones.txt";
/// File of a run directory that says why kswapd was busy.
pub(crate) const KSWAPD: &str = "kswapd.txt";

/// What a job came to; nothing if it was interrupted or never started.
pub(crate) type Answer = Option<Result<Done, Failure>>;

/// Runs `jobs`, at most `at_once` at a time; the answers are in the order of the jobs.
pub(crate) fn execute(jobs: &[Job], at_once: usize, board: &Board, interrupt: &Interrupt) -> Vec<Answer> {
    let limits = pool::Limits { at_once, bytes: memory::available() };
    let need = |job: &Job| memory::estimate(&job.spec.machine);
    let work = |job: &Job| execute_one(job, board, interrupt);
    let answers = pool::run_all(jobs, need, &limits, || interrupt.is_set(), work);
    answers.into_iter().map(Option::flatten).collect()
}

/// How many of the answers are missing.
pub(crate) fn missing(answers: &[Answer]) -> usize {
    answers.iter().filter(|answer| !matches!(answer, Some(Ok(_)))).count()
}

/// Whether all runs came to their end; otherwise why not.
pub(crate) fn verdict(answers: &[Answer], interrupt: &Interrupt) -> Result<(), Failure> {
    let (missing, all) = (missing(answers), answers.len());
    let failed = answers.iter().flatten().find_map(|answer| answer.as_ref().err());
    match failed {
        _ if missing == 0 => Ok(()),
        Some(failure) if all == 1 => Err(failure.clone()),
        Some(failure) if !interrupt.is_set() => {
            let message = format!("{missing} of {all} runs are missing; the first that failed: {}", failure.message());
            Err(failure.with_message(message))
        }
        _ => Err(Failure::interrupted(format!("interrupted: {missing} of {all} runs are missing"))),
    }
}

fn execute_one(job: &Job, board: &Board, interrupt: &Interrupt) -> Answer {
    let watch = Stopwatch::start();
    let mut line = board.start(job.name());
    // A bug in one run must not take the others with it. Nothing of the run is used afterwards.
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let outcome = runner::run(job, &mut |progress| {
            line.update(progress);
            !interrupt.is_set()
        })?;
        Ok(keep(job, outcome, watch.seconds()))
    }));
    let answer = match outcome {
        Ok(Ok(kept)) => Some(kept),
        Ok(Err(RunError::Interrupted)) => None,
        Ok(Err(error @ (RunError::Device(..) | RunError::Start(..) | RunError::NoRoom(_)))) => {
            Some(Err(Failure::bad_input(error)))
        }
        Ok(Err(error)) => Some(Err(Failure::failed(error))),
        Err(_) => Some(Err(Failure::failed("mmtwin itself failed, as told above"))),
    };
    match &answer {
        Some(Ok(done)) => {
            line.end(&format!("{:.0} s of virtual time in {:.1} s", done.run.manifest.virtual_s, watch.seconds()));
        }
        Some(Err(_)) => line.end("failed"),
        None => line.clear(),
    }
    let place = |f: Failure| f.with_message(format!("{}, seed {}: {}", job.name(), job.spec.seed, f.message()));
    answer.map(|result| result.map_err(place))
}

/// Page frames of a machine: holes between its zones have none.
fn frames(machine: &Machine) -> u64 {
    machine.memory().pages_down().0
}

/// What is kept of a run, in its directory if it has one.
fn keep(job: &Job, outcome: RunOutcome, wall_s: f64) -> Result<Done, Failure> {
    let mut metrics = metrics::metrics(&metrics::Measured::of(&outcome));
    metrics.extend(parts::metrics(&outcome));
    metrics.extend(cpu::metrics(&outcome));
    let why_kswapd_is_busy = cpu::why_kswapd_is_busy(&outcome, &job.spec.machine);
    let events = job.dir.as_ref().map(|_| events::records(&outcome, &job.spec.kernel.rules));
    let why = why_kswapd_is_busy.as_ref().map(|why| (KSWAPD, format!("{why}\n")));
    let kept = zones::kept(&outcome).map(|picture| (ZONES, picture)).into_iter().chain(why);
    let kept = kept.map(|(file, text)| (file.to_string(), text.into_bytes())).collect();
    let printed = zones::printed(&outcome, output::width());
    let run = RunDir {
        manifest: Manifest {
            version: env!("CARGO_PKG_VERSION").to_string(),
            world: World::Twin,
            workload: job.program.clone(),
            machine: job.machine(),
            kernel: job.kernel(),
            sysctls: job.sysctls(),
            seed: job.spec.seed,
            iteration: job.spec.iteration,
            omitted: job.omitted(),
            virtual_s: outcome.virtual_time.as_secs_f64(),
            // It differs from run to run, and the same inputs give the same bytes.
            wall_s: None,
        },
        before: outcome.before,
        after: outcome.after,
        metrics,
        series: outcome.series,
    };
    if let Some((dir, events)) = job.dir.as_ref().zip(events) {
        run.write(dir, &events, &kept).map_err(Failure::writing)?;
    }
    Ok(Done {
        run,
        dir: job.dir.clone(),
        host: Some(HostUse { frames: frames(&job.spec.machine), bytes: outcome.host_bytes }),
        wall_s,
        zones: printed,
        why_kswapd_is_busy,
    })
}
