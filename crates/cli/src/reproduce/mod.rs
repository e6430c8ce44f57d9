//! `mmtwin reproduce`: published studies, published and twin figures side by side.

mod rows;

use profile::{Case, STUDIES, Study};
use report::{ReproduceReport, StudyReport, study_table};
use twin::TraceFilter;

use crate::args::ReproduceArgs;
use crate::exec::{self, Answer, Board, Done, Interrupt, Job, Setup, Stopwatch};
use crate::failure::Failure;
use crate::output;
use crate::running::omitted;

pub(crate) fn reproduce(args: &ReproduceArgs) -> Result<(), Failure> {
    let all: Vec<String> = STUDIES.iter().map(|(name, _)| (*name).to_string()).collect();
    let names = if args.studies.is_empty() { &all } else { &args.studies };
    let plans: Result<Vec<Plan>, Failure> = names.iter().map(|name| Plan::new(args, name)).collect();
    let plans = plans?;
    let runs = plans.iter().map(|plan| plan.jobs.len()).sum();
    exec::check_places(plans.iter().flat_map(|plan| &plan.jobs))?;
    let interrupt = Interrupt::install()?;
    let board = Board::new(runs);
    let mut studies = Vec::new();
    let mut answers: Vec<Answer> = Vec::new();
    for plan in &plans {
        let watch = Stopwatch::start();
        let of_study = exec::execute(&plan.jobs, args.common.jobs(), &board, &interrupt);
        let report = plan.report(args, &of_study, watch.seconds());
        answers.extend(of_study);
        if !args.common.json && !(interrupt.is_set() && report.rows.is_empty()) {
            board.suspend(|| output::print(&(study_table(&report, output::width()) + "\n")))?;
        }
        studies.push(report);
    }
    drop(board);
    if args.common.json {
        output::print_json(&ReproduceReport { version: env!("CARGO_PKG_VERSION").to_string(), studies })?;
    }
    match exec::verdict(&answers) {
        (0, _) => Ok(()),
        (missing, Some(failure)) => {
            let message = format!("{missing} of {runs} runs are missing; the first that failed: {}", failure.message());
            Err(failure.with_message(message))
        }
        (missing, None) => Err(Failure::failed(format!("interrupted: {missing} of {runs} runs are missing"))),
    }
}

/// A study with all its runs.
struct Plan {
    study: Study,
    iterations: u32,
    jobs: Vec<Job>,
}

impl Plan {
    fn new(args: &ReproduceArgs, name: &str) -> Result<Plan, Failure> {
        let study = Study::load(name)?;
        check_metrics(&study)?;
        let iterations = args.iterations.unwrap_or(study.iterations);
        let mut jobs = Vec::new();
        for case in &study.cases {
            jobs.extend(jobs_of(args, &study, case, iterations)?);
        }
        Ok(Plan { study, iterations, jobs })
    }

    /// The report of the runs that there are.
    fn report(&self, args: &ReproduceArgs, answers: &[Answer], wall_s: f64) -> StudyReport {
        let done = || answers.iter().flatten().flatten();
        let bytes_per_frame = done().map(|run| run.host_bytes as f64 / run.frames as f64);
        let mut notes = self.study.notes.clone();
        if args.quick {
            let divisor = self.study.quick_divisor;
            let note = "so that the sizes of effects are not those of the full scale.";
            notes.insert(0, format!("Quick run: every machine has 1/{divisor} of the study's memory, {note}"));
        }
        StudyReport {
            study: self.study.name.clone(),
            quick: args.quick,
            wall_s,
            virtual_s: done().map(|run| run.run.manifest.virtual_s).sum(),
            iterations: self.iterations,
            frames: done().map(|run| run.frames).max().unwrap_or(0),
            bytes_per_frame: bytes_per_frame.fold(0.0, f64::max),
            runs_missing: exec::verdict(answers).0,
            omitted: omitted(done()),
            notes,
            rows: rows::rows(&self.study, |case, kernel| self.runs_of(answers, case, kernel)),
        }
    }

    /// The runs of a case under a kernel, by their numbers in the study.
    fn runs_of<'a>(&self, answers: &'a [Answer], case: usize, kernel: usize) -> Vec<&'a [observe::Metric]> {
        let first = (case * self.study.kernels.len() + kernel) * self.iterations as usize;
        let iterations = answers[first..].iter().take(self.iterations as usize);
        iterations.flatten().flatten().map(|done: &Done| done.run.metrics.as_slice()).collect()
    }
}

/// The runs of a case: for each kernel, each iteration.
fn jobs_of(args: &ReproduceArgs, study: &Study, case: &Case, iterations: u32) -> Result<Vec<Job>, Failure> {
    let scaled = if args.quick { Some(case.machine.scaled_down(study.quick_divisor)?) } else { None };
    let setup = Setup {
        case: &case.config,
        machine: scaled.as_ref().unwrap_or(&case.machine),
        workload: study.workload.get_ref(),
        params: &case.params,
        sysctls: &case.sysctls,
        iterations,
        trace: TraceFilter::default(),
        common: &args.common,
    };
    let mut jobs = Vec::new();
    for (name, kernel) in &study.kernels {
        let of_kernel = setup.jobs(name, kernel);
        let place =
            |failure: Failure| study.error_at(case.params_span.clone(), "case.params", failure.message().into());
        jobs.extend(of_kernel.map_err(place)?);
    }
    Ok(jobs)
}

/// Checks that a run answers with the metrics that the study wants.
fn check_metrics(study: &Study) -> Result<(), Failure> {
    for metric in &study.metrics {
        if observe::metric_def(metric.metric.get_ref()).is_none() {
            let message = format!("no metric is named `{}`; `mmtwin list counters` shows all", metric.metric.get_ref());
            return Err(study.error_at(metric.metric.span(), "metric", message).into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_studies_name_workloads_parameters_and_metrics_that_exist() {
        for (name, _) in STUDIES {
            let study = Study::load(name).unwrap();
            assert_eq!(check_metrics(&study), Ok(()), "{name}");
            for case in &study.cases {
                let made = workloads::Workload::new(study.workload.get_ref(), &case.params);
                assert!(made.is_ok(), "{name}: {}", case.title);
            }
        }
    }
}
