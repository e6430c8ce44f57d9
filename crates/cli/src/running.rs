//! `mmtwin run`: a workload on a machine under one or several kernels.

use observe::RunDir;
use profile::{Kernel, Machine};
use report::{RunReport, comparison_table};
use twin::TraceFilter;

use crate::args::{EventGroup, On, RunArgs};
use crate::comparing::column;
use crate::exec::{self, Answer, Board, Done, Interrupt, Job, Setup};
use crate::failure::Failure;
use crate::output;
use crate::real;

pub(crate) fn run(args: &RunArgs) -> Result<(), Failure> {
    if args.on != On::Twin {
        return real::run(args);
    }
    let machine = Machine::load(&args.machine)?;
    let kernels = load_kernels(&args.kernels)?;
    let jobs = plan(args, &machine, &kernels)?;
    let interrupt = Interrupt::install()?;
    let board = Board::new(jobs.len());
    let answers = exec::execute(&jobs, args.common.jobs(), &board, &interrupt);
    drop(board);
    let names: Vec<String> = kernels.iter().map(|kernel| kernel.name.clone()).collect();
    conclude(args, &names, &answers)
}

/// Prints the runs that there are, a column for each of `kernels`, and says how the command ends.
pub(crate) fn conclude(args: &RunArgs, kernels: &[String], answers: &[Answer]) -> Result<(), Failure> {
    print(args, kernels, answers)?;
    match exec::verdict(answers) {
        (0, _) => Ok(()),
        (_, Some(failure)) => Err(failure.clone()),
        (missing, None) => {
            Err(Failure::failed(format!("interrupted: {missing} of {} runs are missing", answers.len())))
        }
    }
}

fn load_kernels(names: &[String]) -> Result<Vec<Kernel>, Failure> {
    let mut kernels: Vec<Kernel> = Vec::new();
    for name in names {
        let kernel = Kernel::load(name)?;
        if kernels.iter().any(|other| other.name == kernel.name) {
            return Err(Failure::bad_input(format!("--kernel {name}: two kernels are named `{}`", kernel.name)));
        }
        kernels.push(kernel);
    }
    Ok(kernels)
}

fn plan(args: &RunArgs, machine: &Machine, kernels: &[Kernel]) -> Result<Vec<Job>, Failure> {
    let records = |group| args.events.contains(&group);
    let setup = Setup {
        case: &format!("{}-{}", args.workload, machine.name),
        machine,
        workload: &args.workload,
        params: &args.params,
        sysctls: &args.sysctls,
        iterations: args.iterations,
        trace: TraceFilter {
            kmem: records(EventGroup::Kmem),
            vmscan: records(EventGroup::Vmscan),
            compaction: records(EventGroup::Compaction),
        },
        common: &args.common,
    };
    let jobs: Result<Vec<Vec<Job>>, Failure> = kernels.iter().map(|kernel| setup.jobs(&kernel.name, kernel)).collect();
    let jobs: Vec<Job> = jobs?.into_iter().flatten().collect();
    exec::check_places(&jobs)?;
    Ok(jobs)
}

/// Prints the runs that there are.
fn print(args: &RunArgs, kernels: &[String], answers: &[Answer]) -> Result<(), Failure> {
    let done: Vec<&Done> = answers.iter().flatten().flatten().collect();
    if done.is_empty() {
        return Ok(());
    }
    if args.common.json {
        let reports: Vec<RunReport> = done.iter().map(|done| report_of(done)).collect();
        return match reports.as_slice() {
            [report] if answers.len() == 1 => output::print_json(report),
            reports => output::print_json(&reports),
        };
    }
    let mut columns = Vec::new();
    for (name, answers) in kernels.iter().zip(answers.chunks(args.iterations as usize)) {
        let runs: Vec<&RunDir> = answers.iter().flatten().flatten().map(|done| &done.run).collect();
        columns.push(column(name.clone(), &runs));
    }
    let manifest = &done[0].run.manifest;
    let head = format!("{} on {}, seed {}\n", manifest.workload.name, manifest.machine.name, manifest.seed);
    output::print(&(head + &comparison_table(&columns, output::width()) + &foot(args, &done)))
}

fn report_of(done: &Done) -> RunReport {
    RunReport::of(&done.run, done.dir.as_ref().map(|dir| dir.to_string_lossy()).as_deref())
}

/// What is left out of the model, and where the runs are.
fn foot(args: &RunArgs, done: &[&Done]) -> String {
    let mut out = String::new();
    for line in omitted(done.iter().copied()) {
        out.push_str(&format!("left out: {line}\n"));
    }
    if let Some(dir) = &args.common.out {
        out.push_str(&format!("{} runs kept in {}\n", done.len(), dir.display()));
    }
    out
}

/// Everything that some run's models leave out, once.
pub(crate) fn omitted<'a>(done: impl Iterator<Item = &'a Done>) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in done.flat_map(|done| &done.run.manifest.omitted) {
        if !lines.contains(line) {
            lines.push(line.clone());
        }
    }
    lines
}
