//! What is to be run for a study, and the report of what was.

use profile::{Case, Machine, Quick, Study};
use report::{CaseReport, StudyReport};
use twin::TraceFilter;

use super::rows;
use crate::args::ReproduceArgs;
use crate::cases::{self, Cases, Contender};
use crate::exec::{self, Answer, Done, Job};
use crate::failure::Failure;
use crate::telling::omitted;

/// A study with all its runs.
pub(super) struct Plan<'a> {
    args: &'a ReproduceArgs,
    study: Study,
    iterations: u32,
    /// The machine of each case.
    machines: Vec<Machine>,
    pub(super) jobs: Vec<Job>,
}

impl<'a> Plan<'a> {
    pub(super) fn new(args: &'a ReproduceArgs, name: &str) -> Result<Plan<'a>, Failure> {
        let study = cases::load(name)?;
        check_comparable(&study)?;
        if args.quick && study.quick.is_none() {
            return Err(Failure::bad_input(format!("--quick: study {} has no [quick]", study.name)));
        }
        let quick = study.quick.as_ref().filter(|_| args.quick);
        let of_study = quick.map_or(study.iterations, |quick| quick.iterations);
        let iterations = args.iterations.unwrap_or(of_study);
        let sysctls = &args.common.sysctls;
        let contender = |(name, kernel)| Contender { name: String::clone(name), kernel, sysctls: sysctls.clone() };
        let contenders: Vec<Contender<'_>> = study.kernels.iter().map(contender).collect();
        let cases = Cases {
            study: &study,
            contenders: &contenders,
            common: &args.common,
            params: quick.map_or(&[], |quick| quick.params.as_slice()),
            changes: &[],
            trace: TraceFilter::default(),
            iterations,
        };
        let (machines, jobs) = cases.plan(|case| match quick {
            Some(quick) => Ok(quick.machine(&case.machine)?),
            None => args.common.changed(&case.machine),
        })?;
        Ok(Plan { args, iterations, machines, jobs, study })
    }

    /// The report of the runs that there are.
    pub(super) fn report(&self, answers: &[Answer], wall_s: f64) -> StudyReport {
        let done = || answers.iter().flatten().flatten();
        let hosts = done().filter_map(|run| run.host);
        let hungriest = hosts.max_by(|a, b| a.bytes_per_frame().total_cmp(&b.bytes_per_frame()));
        let told = !self.args.common.json || self.args.common.timings;
        StudyReport {
            study: self.study.name.clone(),
            title: self.study.title.clone(),
            quick: self.args.quick,
            scale: self.scale(),
            seed: self.args.common.seed,
            wall_s: told.then_some(wall_s),
            virtual_s: done().map(|run| run.run.manifest.virtual_s).sum(),
            iterations: self.iterations,
            frames: hungriest.map_or(0, |host| host.frames),
            bytes_per_frame: hungriest.map_or(0.0, |host| host.bytes_per_frame()),
            runs_missing: exec::missing(answers),
            omitted: omitted(done()),
            notes: self.notes(),
            sensitivity: self.study.sensitivity.clone(),
            cases: self.study.cases.iter().zip(&self.machines).map(case_report).collect(),
            rows: rows::rows(&self.study, |case, kernel| self.runs_of(answers, case, kernel)),
        }
    }

    /// In which scale it runs, and what is otherwise than the study says.
    fn scale(&self) -> String {
        let common = &self.args.common;
        let mut parts = match self.quick() {
            Some(Quick { memory, params, .. }) => {
                let memory = memory.iter().map(|(name, memory)| format!("{name} with {memory}"));
                memory.chain(params.iter().map(|(name, value)| format!("{name}={value}"))).collect()
            }
            None => Vec::new(),
        };
        parts.extend(common.memory.map(|memory| format!("{memory} of memory")));
        parts.extend(common.cpus.map(|cpus| format!("{cpus} CPUs")));
        parts.extend(common.zram.map(|zram| format!("{zram} of zram")));
        parts.extend(common.fs.map(|fs| fs.name().to_string()));
        parts.extend(common.sysctls.iter().map(|(name, value)| format!("{name}={value}")));
        let head = match self.quick() {
            Some(_) => "QUICK, on a smaller scale: ",
            None if parts.is_empty() => "full scale",
            None => "WHAT IF: ",
        };
        format!("{head}{}", parts.join(", "))
    }

    fn notes(&self) -> Vec<String> {
        let quick = self.quick().map(|quick| format!("Quick: {}", quick.note));
        quick.into_iter().chain(self.study.notes.iter().cloned()).collect()
    }

    /// The quick form of the study, if it is what was asked for.
    fn quick(&self) -> Option<&Quick> {
        self.study.quick.as_ref().filter(|_| self.args.quick)
    }

    /// The runs of a case under a kernel, by their numbers in the study.
    fn runs_of<'b>(&self, answers: &'b [Answer], case: usize, kernel: usize) -> Vec<&'b [observe::Metric]> {
        let first = (case * self.study.kernels.len() + kernel) * self.iterations as usize;
        let iterations = answers[first..].iter().take(self.iterations as usize);
        iterations.flatten().flatten().map(|done: &Done| done.run.metrics.as_slice()).collect()
    }
}

fn case_report((case, machine): (&Case, &Machine)) -> CaseReport {
    CaseReport {
        config: case.config.clone(),
        title: case.title.clone(),
        machine: machine.name.get_ref().clone(),
        cpus: *machine.cpus.count.get_ref(),
        memory_bytes: machine.memory().0,
    }
}

/// Checks that the study says what is to be compared, which an experiment that is only run need not.
fn check_comparable(study: &Study) -> Result<(), Failure> {
    let wanted = [("comparison", study.comparisons.is_empty()), ("metric", study.metrics.is_empty())];
    match wanted.into_iter().find(|(_, lacks)| *lacks) {
        Some((key, _)) => {
            let message = format!("missing: expected one [[{key}]] or more to reproduce; `mmtwin run` needs none");
            Err(study.error_at(0..0, key, message).into())
        }
        None => Ok(()),
    }
}
