//! `mmtwin run`: a workload on a machine under one or several kernels.

use observe::RunDir;
use profile::{Kernel, Machine, Size};
use report::{RunReport, comparison_table, finding};
use twin::TraceFilter;

use crate::args::{EventGroup, On, RunArgs};
use crate::exec::{self, Answer, Board, Done, Interrupt, Job, Setup, Stopwatch};
use crate::failure::Failure;
use crate::job_file;
use crate::kept::column;
use crate::output;
use crate::real;
use crate::variants::variants;

pub(crate) fn run(args: &RunArgs) -> Result<(), Failure> {
    let args = &job_file::read(args)?;
    if args.on != On::Twin {
        return real::run(args);
    }
    let machine = load_machine(args)?;
    let kernels = load_kernels(&args.kernels)?;
    let (names, jobs) = plan(args, &machine, &kernels)?;
    let interrupt = Interrupt::install()?;
    let (board, watch) = (Board::new(jobs.len()), Stopwatch::start());
    let answers = exec::execute(&jobs, args.common.jobs(), &board, &interrupt);
    drop(board);
    print(args, Some(&machine), &names, &answers, watch.seconds())?;
    exec::verdict(&answers, &interrupt)
}

/// The machine that was named, with what is to be otherwise.
pub(crate) fn load_machine(args: &RunArgs) -> Result<Machine, Failure> {
    let change = args.common.machine_change();
    let machine = Machine::load(&args.machine)?;
    Ok(if change.is_empty() { machine } else { machine.changed(&change)? })
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
    exec::check_places(args.common.out.as_deref(), &jobs)?;
    Ok((names, jobs))
}

fn jobs_of(
    args: &RunArgs,
    machine: &Machine,
    kernel: &Kernel,
    name: &str,
    sysctls: &[(String, String)],
) -> Result<Vec<Job>, Failure> {
    let records = |group| args.events.contains(&group);
    let setup = Setup {
        case: &format!("{}-{}", args.workload, machine.name.get_ref()),
        machine,
        workload: &args.workload,
        params: &args.params,
        sysctls,
        changes: &args.changes,
        iterations: args.iterations,
        trace: TraceFilter {
            kmem: records(EventGroup::Kmem),
            vmscan: records(EventGroup::Vmscan),
            compaction: records(EventGroup::Compaction),
        },
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
    let done: Vec<&Done> = answers.iter().flatten().flatten().collect();
    if done.is_empty() {
        return Ok(());
    }
    if args.common.json {
        let reports: Vec<RunReport> = done.iter().map(|done| report_of(args, done)).collect();
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
    let table = comparison_table(&columns, output::width());
    output::print(&(head(args, machine, &done, wall_s) + &pictures(&done) + &table + &foot(args, &done)))
}

pub(crate) fn report_of(args: &RunArgs, done: &Done) -> RunReport {
    let wall_s = args.common.timings.then_some(done.wall_s);
    let dir = done.dir.as_ref().map(|dir| dir.to_string_lossy());
    let why_kswapd_is_busy = done.why_kswapd_is_busy.clone();
    RunReport { why_kswapd_is_busy, ..RunReport::of(&done.run, done.host, wall_s, dir.as_deref()) }
}

/// What ran where, and what that took.
pub(crate) fn head(args: &RunArgs, machine: Option<&Machine>, done: &[&Done], wall_s: f64) -> String {
    let sysctls: Vec<String> = args.common.sysctls.iter().map(|(name, value)| format!(", {name}={value}")).collect();
    let size = machine.map(|machine| format!(" ({} CPUs, {})", machine.cpus.count.get_ref(), Size(machine.memory())));
    let seconds: f64 = done.iter().map(|done| done.run.manifest.virtual_s).sum();
    let hosts = done.iter().filter_map(|done| done.host);
    let took = match hosts.max_by(|a, b| a.bytes_per_frame().total_cmp(&b.bytes_per_frame())) {
        Some(host) => format!(
            "{} page frames at {:.1} B of host memory each at the peak; {seconds:.0} s of virtual time",
            host.frames,
            host.bytes_per_frame()
        ),
        None => format!("{seconds:.1} s of the workload"),
    };
    format!(
        "{} on {}{}, seed {}{}\n{took} in {wall_s:.1} s\n",
        args.workload,
        done[0].run.manifest.machine.name,
        size.unwrap_or_default(),
        args.common.seed,
        sysctls.concat(),
    )
}

/// The zones over time of the first run of each kernel that has them.
fn pictures(done: &[&Done]) -> String {
    let first = |done: &&&Done| done.run.manifest.iteration == 0;
    let picture = |done: &&Done| Some(format!("{}\n{}", done.run.manifest.kernel.name, done.zones.as_ref()?));
    done.iter().filter(first).filter_map(picture).collect()
}

/// Why kswapd was busy, what is left out of the model, and where the runs are.
fn foot(args: &RunArgs, done: &[&Done]) -> String {
    let mut out = String::new();
    for (run, why) in done.iter().filter_map(|done| Some((&done.run.manifest, done.why_kswapd_is_busy.as_ref()?))) {
        out.push_str(&format!("{}: {why}\n", run.kernel.name));
    }
    for done in done {
        let run = &done.run;
        out.extend(finding(run).map(|sentence| format!("{}: {sentence}\n", run.manifest.kernel.name)));
    }
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
