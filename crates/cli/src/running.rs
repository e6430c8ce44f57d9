//! `mmtwin run`: a workload on a machine under one or several kernels; [`experiment`] runs the cases of a file.

use profile::{Kernel, Machine};
use report::RunReport;

use crate::applying::check_options;
use crate::args::{Common, On, RunArgs};
use crate::exec::{self, Answer, Board, Interrupt, Job, Setup, Stopwatch};
use crate::failure::Failure;
use crate::telling::{self, entries, foot, head, report_of, table};
use crate::variants::variants;
use crate::{experiment, job_file, output, real};

pub(crate) fn run(args: &RunArgs) -> Result<(), Failure> {
    check_options(args)?;
    args.check_params()?;
    if experiment::is_experiment(&args.workload) {
        return experiment::run(args);
    }
    let args = &job_file::read(args)?;
    if args.on != On::Twin {
        return real::run(args);
    }
    let machine = load_machine(args)?;
    let kernels = load_kernels(&args.kernels())?;
    let (names, jobs) = plan(args, &machine, &kernels)?;
    make(&args.common, &jobs, |answers, wall_s| print(args, Some(&machine), &names, answers, wall_s))
}

/// Makes the runs on the twin and has `print` tell of what they came to, in the order of the jobs, and how long they took on
/// the wall, in seconds.
///
/// # Errors
/// A run failed, or the user has had enough; what is complete is printed before.
pub(crate) fn make(
    common: &Common,
    jobs: &[Job],
    print: impl FnOnce(&[Answer], f64) -> Result<(), Failure>,
) -> Result<(), Failure> {
    exec::check_places(common.out.as_deref(), jobs)?;
    let interrupt = Interrupt::install()?;
    let (board, watch) = (Board::new(jobs.len()), Stopwatch::start());
    let answers = exec::execute(jobs, common.jobs(), &board, &interrupt);
    drop(board);
    print(&answers, watch.seconds())?;
    exec::verdict(&answers, &interrupt)
}

/// The machine that was named, with what is to be otherwise.
pub(crate) fn load_machine(args: &RunArgs) -> Result<Machine, Failure> {
    args.common.changed(&Machine::load(args.machine())?)
}

fn load_kernels(names: &[&str]) -> Result<Vec<Kernel>, Failure> {
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

/// The runs, and the names of their columns: each kernel with each setting.
fn plan(args: &RunArgs, machine: &Machine, kernels: &[Kernel]) -> Result<(Vec<String>, Vec<Job>), Failure> {
    let (mut names, mut jobs) = (Vec::new(), Vec::new());
    for kernel in kernels {
        for variant in variants(&args.common.sysctls) {
            let name = variant.of_kernel(&kernel.name);
            jobs.extend(jobs_of(args, machine, kernel, &name, &variant.sysctls)?);
            names.push(name);
        }
    }
    Ok((names, jobs))
}

fn jobs_of(
    args: &RunArgs,
    machine: &Machine,
    kernel: &Kernel,
    name: &str,
    sysctls: &[(String, String)],
) -> Result<Vec<Job>, Failure> {
    let setup = Setup {
        case: &format!("{}-{}", args.workload, machine.name.get_ref()),
        machine,
        workload: &args.workload,
        params: &args.params,
        sysctls,
        changes: &args.changes,
        iterations: args.iterations(),
        trace: args.trace(),
        seed: args.common.seed,
        out: args.common.out.as_deref(),
        verify: args.common.verify,
    };
    setup.check_machine()?;
    setup.jobs(name, kernel)
}

/// Prints the runs that there are.
///
/// `machine` is the one that was described, if one was; there is a column for each of `kernels`.
pub(crate) fn print(
    args: &RunArgs,
    machine: Option<&Machine>,
    kernels: &[String],
    answers: &[Answer],
    wall_s: f64,
) -> Result<(), Failure> {
    let done = telling::done(answers);
    if done.is_empty() {
        return Ok(());
    }
    if args.common.json {
        let reports: Vec<RunReport> = done.iter().map(|done| report_of(&args.common, done)).collect();
        return match reports.as_slice() {
            [report] if answers.len() == 1 => output::print_json(report),
            reports => output::print_json(&reports),
        };
    }
    let table = table(&entries(kernels, answers, args.iterations()));
    let foot = foot(args.common.out.as_deref(), &done);
    output::print(&(head(args, machine, &done, wall_s) + &table + &foot))
}
