//! `mmtwin run EXPERIMENT.toml`: every case of a file as `reproduce` reads it, each with the table that several kernels get.
//! What the file says of published figures and of comparisons is for `reproduce`.

use profile::{Case, Kernel, Machine, Study};
use report::RunReport;

use crate::args::{On, RunArgs};
use crate::cases::{self, Cases, Contender};
use crate::exec::Answer;
use crate::failure::Failure;
use crate::variants::variants;
use crate::{output, running, telling};

/// How the name of an experiment's file ends.
const SUFFIX: &str = ".toml";

/// Whether what is to be run is an experiment's file.
pub(crate) fn is_experiment(workload: &str) -> bool {
    workload.ends_with(SUFFIX)
}

/// An experiment, and what is otherwise than its file says.
struct Experiment<'a> {
    args: &'a RunArgs,
    study: &'a Study,
    /// Names of the columns of each table.
    names: Vec<String>,
    /// The machine of each case.
    machines: Vec<Machine>,
    iterations: u32,
}

/// Runs every case of the file and prints a table for each.
///
/// # Errors
/// What the file or the command line says cannot be used (exit status 2), a run failed, or the user has had enough.
pub(crate) fn run(args: &RunArgs) -> Result<(), Failure> {
    check_world(args)?;
    let study = cases::load(&args.workload)?;
    let contenders = contenders(args, &study)?;
    let machine = other_machine(args, &study)?;
    let iterations = args.iterations.unwrap_or(study.iterations);
    let cases = Cases {
        study: &study,
        contenders: &contenders,
        common: &args.common,
        params: &args.params,
        changes: &args.changes,
        trace: args.trace(),
        iterations,
    };
    let machine_of = |case: &Case| args.common.changed(machine.as_ref().unwrap_or(&case.machine));
    let (machines, jobs) = cases.plan(machine_of)?;
    let names = contenders.iter().map(|contender| contender.name.clone()).collect();
    let experiment = Experiment { args, study: &study, names, machines, iterations };
    running::make(&args.common, &jobs, |answers, wall_s| experiment.print(answers, wall_s))
}

/// The kernels of an experiment are profiles of the twin, which no guest boots.
fn check_world(args: &RunArgs) -> Result<(), Failure> {
    if args.on == On::Twin {
        return Ok(());
    }
    let message = format!(
        "--on {}: {}: an experiment's kernels are models: expected --on twin; `mmtwin run WORKLOAD` runs on real ones",
        args.on.name(),
        args.workload
    );
    Err(Failure::bad_input(message))
}

/// The columns of each table: the kernels that run, each with each setting.
fn contenders<'a>(args: &RunArgs, study: &'a Study) -> Result<Vec<Contender<'a>>, Failure> {
    let settings = variants(&args.common.sysctls);
    let of_kernel = |(name, kernel): (&'a str, &'a Kernel)| {
        settings.iter().map(move |setting| Contender {
            name: setting.of_kernel(name),
            kernel,
            sysctls: setting.sysctls.clone(),
        })
    };
    Ok(kernels(args, study)?.into_iter().flat_map(of_kernel).collect())
}

/// The kernels that were asked for by the experiment's names for them, in that order; all of them if none were.
fn kernels<'a>(args: &RunArgs, study: &'a Study) -> Result<Vec<(&'a str, &'a Kernel)>, Failure> {
    let refused = |name: &str, why: String| Err(Failure::bad_input(format!("--kernel {name}: {why}")));
    let mut chosen: Vec<(&str, &Kernel)> = Vec::new();
    for name in &args.kernels {
        match study.kernels.get_key_value(name) {
            Some((name, _)) if chosen.iter().any(|(other, _)| other == name) => {
                return refused(name, "it is there twice".to_string());
            }
            Some((name, kernel)) => chosen.push((name, kernel)),
            None => {
                let known = study.kernels.keys().cloned().collect::<Vec<_>>().join(", ");
                return refused(name, format!("expected one of the kernels of {}: {known}", args.workload));
            }
        }
    }
    let all = || study.kernels.iter().map(|(name, kernel)| (name.as_str(), kernel)).collect();
    Ok(if chosen.is_empty() { all() } else { chosen })
}

/// The machine that all cases get instead of the one that they have.
fn other_machine(args: &RunArgs, study: &Study) -> Result<Option<Machine>, Failure> {
    let Some(name) = &args.machine else { return Ok(None) };
    let texts: Vec<&String> = study.cases.iter().map(|case| &case.machine.text).collect();
    if texts.iter().any(|text| *text != texts[0]) {
        let message = format!("the cases of {} have several machines: expected none instead of them", args.workload);
        return Err(Failure::bad_input(format!("--machine {name}: {message}")));
    }
    Ok(Some(Machine::load(name)?))
}

impl Experiment<'_> {
    /// Prints the runs that there are: a table for each case.
    fn print(&self, answers: &[Answer], wall_s: f64) -> Result<(), Failure> {
        let done = telling::done(answers);
        if done.is_empty() {
            return Ok(());
        }
        let of_cases = || self.study.cases.iter().zip(answers.chunks(self.names.len() * self.iterations as usize));
        if self.args.common.json {
            let reports: Vec<RunReport> = of_cases().flat_map(|(case, answers)| self.reports(case, answers)).collect();
            return output::print_json(&reports);
        }
        let Study { name, title, .. } = self.study;
        let title = if title.is_empty() { name.clone() } else { format!("{name}: {title}") };
        let tables: String = of_cases()
            .zip(&self.machines)
            .map(|((case, answers), machine)| self.table(case, machine, answers))
            .collect();
        let foot = telling::foot(self.args.common.out.as_deref(), &done);
        let apart = if foot.is_empty() { "" } else { "\n" };
        output::print(&format!("{title}\n{}\n{tables}{apart}{foot}", telling::took(&done, wall_s)))
    }

    /// The table of a case with what runs in it; nothing without any run.
    fn table(&self, case: &Case, machine: &Machine, answers: &[Answer]) -> String {
        if telling::done(answers).is_empty() {
            return String::new();
        }
        let common = &self.args.common;
        let told = |name: &str| common.sysctls.iter().any(|(given, _)| given == name);
        let own = case.sysctls.iter().filter(|(name, _)| !told(name));
        let sysctls: Vec<(String, String)> = own.chain(&common.sysctls).cloned().collect();
        let workload = self.study.workload.get_ref();
        let place = telling::place(workload, machine.name.get_ref(), Some(machine), common.seed, &sysctls);
        let entries = telling::entries(&self.names, answers, self.iterations);
        format!("\n{}: {place}\n{}", case.title, telling::table(&entries))
    }

    /// The documents of a case's runs.
    fn reports(&self, case: &Case, answers: &[Answer]) -> Vec<RunReport> {
        let of_column = |(name, answers): (&String, &[Answer])| -> Vec<RunReport> {
            let (case, column) = (Some(case.config.clone()), Some(name.clone()));
            let report = |done| RunReport {
                case: case.clone(),
                column: column.clone(),
                ..telling::report_of(&self.args.common, done)
            };
            telling::done(answers).into_iter().map(report).collect()
        };
        self.names.iter().zip(answers.chunks(self.iterations as usize)).flat_map(of_column).collect()
    }
}
