//! `mmtwin validate`: the twin on the inputs of real runs, and how far it is off.

mod budget;
mod own;
mod reference;

use std::path::Path;

use indexmap::IndexMap;
use observe::{Delta, MANIFEST, Program, REFERENCE, RunDir, Snapshot};
use profile::{CounterDef, KERNELS, Kernel, Machine};
use report::{Compared, GroupRuns, ValidationReport, Waiting, validation_text};
use twin::TraceFilter;

use crate::args::ValidateArgs;
use crate::exec::{self, Answer, Board, Done, Interrupt, Job, Setup};
use crate::failure::Failure;
use crate::kept::find;
use crate::output;

/// Fragmentation events, which `/proc/vmstat` does not count.
const EXTFRAG: &str = "extfrag_events";
/// What the names of totals of the pressure files begin with.
const PSI: &str = "psi_";

/// Between the numbers of further runs of the twin for the same real one: more than there are repetitions.
const FURTHER: u32 = 10_000;

/// The tunable that switches the multi-gen LRU.
const LRU_GEN: &str = "lru_gen.enabled";

/// Whether this value of [`LRU_GEN`] is that of the classic LRU.
fn is_off(value: &str) -> bool {
    matches!(value, "n" | "0" | "0x0000")
}

/// A real run, and what is needed to make it again on the twin.
pub(crate) struct RealRun {
    /// Its group: repetitions of the same inputs.
    pub(crate) group: String,
    /// Name of the kernel's profile.
    pub(crate) kernel: String,
    /// The machine as the workload started.
    pub(crate) machine: Machine,
    /// What ran.
    pub(crate) workload: String,
    /// Its parameters.
    pub(crate) params: Vec<(String, String)>,
    /// What groups are told apart by.
    pub(crate) traits: IndexMap<String, String>,
    /// Seed.
    pub(crate) seed: u64,
    /// Number of the repetition.
    pub(crate) iteration: u32,
    /// Seconds that it took on its own clock.
    pub(crate) elapsed_s: Option<f64>,
    /// What was counted.
    counted: Counted,
}

/// What was counted in a run.
struct Counted {
    before: Snapshot,
    after: Snapshot,
    extfrag: Option<u64>,
}

impl Counted {
    /// Growth of each of `counters` that there is.
    fn growth(&self, counters: &[CounterDef]) -> report::Counted {
        let delta = match (&self.before.vmstat, &self.after.vmstat) {
            (Some(before), Some(after)) => Delta::between(before, after),
            _ => Delta::default(),
        };
        let value = |counter: &CounterDef| {
            let value = match counter.name.as_str() {
                EXTFRAG => self.extfrag.map(|events| events as f64),
                name if name.starts_with(PSI) => self.stalled_us(name),
                name if name.contains(':') => self.of_groups(name),
                name => delta.sum_zones(name).map(|growth| growth as f64),
            };
            Some((counter.name.clone(), value?))
        };
        counters.iter().filter_map(value).collect()
    }

    /// Growth of a line of a group's file, such as `memory.stat:pgscan`, over the groups that are below no other; none if there
    /// are no groups. They are made by the workload, so that all begin at 0.
    fn of_groups(&self, name: &str) -> Option<f64> {
        let (file, line) = name.split_once(':')?;
        let top = self.after.groups.iter().filter(|(path, _)| !path.contains('/'));
        let values = top.map(|(_, group)| group.counters.get(file)?.get(line)).collect::<Option<Vec<u64>>>()?;
        (!values.is_empty()).then(|| values.iter().sum::<u64>() as f64)
    }

    /// Growth of a total of the pressure files, in microseconds; none if there is no such file.
    fn stalled_us(&self, name: &str) -> Option<f64> {
        let total = |snapshot: &Snapshot| match name {
            "psi_some_memory" => Some(snapshot.pressure_memory?.some.total_us),
            "psi_full_memory" => Some(snapshot.pressure_memory?.full?.total_us),
            "psi_some_io" => Some(snapshot.pressure_io?.some.total_us),
            "psi_full_io" => Some(snapshot.pressure_io?.full?.total_us),
            "psi_some_cpu" => Some(snapshot.pressure_cpu?.some.total_us),
            _ => None,
        };
        Some(total(&self.after)?.checked_sub(total(&self.before)?)? as f64)
    }
}

impl RealRun {
    /// Reads a run of ours or a reference run.
    pub(crate) fn read(path: &Path) -> Result<RealRun, Failure> {
        if path.join(MANIFEST).exists() { own::read(path) } else { reference::read(path) }
    }

    /// Profile of a kernel by its name: `debian-6.12.117+deb12` is 6.12, `boot/vmlinuz-3.19-rc4-pivot` 3.19-rc4-pivot.
    pub(crate) fn kernel_version(name: &str) -> Option<String> {
        own::version_of(name)
    }

    /// The group of a run that is to be made: of a workload on a machine, under the kernel of a profile, with settings that are
    /// written.
    pub(crate) fn group_of(
        kernel: &str,
        workload: &Program,
        machine: &str,
        sysctls: &IndexMap<String, String>,
    ) -> String {
        own::group_of(kernel, workload, machine, sysctls)
    }

    /// What the twin lacks to make it again.
    fn waits_for(&self) -> Option<String> {
        let known = KERNELS.iter().any(|(name, _)| *name == self.kernel);
        (!known).then(|| format!("there is no kernel {}", self.kernel))
    }
}

/// What groups are told apart by. Runs of different programs are no pair, whatever else they have in common.
fn traits(
    maker: &str,
    kernel: &str,
    workload: &str,
    mglru: bool,
    written: impl Iterator<Item = (String, String)>,
) -> IndexMap<String, String> {
    let lru = if mglru { "multi-gen" } else { "classic" };
    let fixed = [("maker", maker), ("kernel", kernel), ("workload", workload), ("LRU", lru)];
    fixed.into_iter().map(|(name, value)| (name.to_string(), value.to_string())).chain(written).collect()
}

pub(crate) fn validate(args: &ValidateArgs) -> Result<(), Failure> {
    let counters = profile::counters(args.counters.as_deref())?;
    if let Some(file) = &args.budgets {
        budget::check_growth(file, &args.budgets_before)?;
    }
    let mut groups: IndexMap<String, Vec<RealRun>> = IndexMap::new();
    for found in find(&args.dirs, &[MANIFEST, REFERENCE], "a run of a real kernel")? {
        let run = RealRun::read(&found.path)?;
        groups.entry(run.group.clone()).or_default().push(run);
    }
    let (waiting, groups): (Vec<_>, Vec<_>) = groups.into_iter().partition(|(_, runs)| runs[0].waits_for().is_some());
    let again =
        Again { sysctls: &args.sysctls, out: args.out.as_deref(), trace: TraceFilter::default(), verify: args.verify };
    let repeats = 0..u32::from(args.repeat);
    let runs = groups.iter().flat_map(|(_, runs)| runs);
    let jobs = runs.flat_map(|run| repeats.clone().map(|nth| again.job(run, nth))).collect::<Result<Vec<_>, _>>()?;
    exec::check_places(args.out.as_deref(), &jobs)?;
    let interrupt = Interrupt::install()?;
    let board = Board::new(jobs.len());
    let answers = exec::execute(&jobs, args.jobs(), &board, &interrupt);
    drop(board);
    let report = report_of(&counters, groups, &answers, usize::from(args.repeat), waiting);
    if args.json {
        output::print_json(&report)?;
    } else {
        output::print(&validation_text(&report, output::width()))?;
    }
    exec::verdict(&answers, &interrupt)?;
    args.budgets.as_deref().map_or(Ok(()), |file| budget::check(file, &report))
}

/// How real runs are made again on the twin.
pub(crate) struct Again<'a> {
    /// Tunables instead of the real runs'.
    pub(crate) sysctls: &'a [(String, String)],
    /// Where the twin's runs are kept.
    pub(crate) out: Option<&'a Path>,
    /// Tracepoints to record.
    pub(crate) trace: TraceFilter,
    /// Check every structure of the model all the time.
    pub(crate) verify: bool,
}

impl Again<'_> {
    /// The `nth` run of the twin from where the real one started: the first has the draws of the real one's repetition.
    pub(crate) fn job(&self, run: &RealRun, nth: u32) -> Result<Job, Failure> {
        let kernel = Kernel::load(&run.kernel)?;
        let setup = Setup {
            case: &run.group,
            machine: &run.machine,
            workload: &run.workload,
            params: &run.params,
            sysctls: self.sysctls,
            changes: &[],
            iterations: 1,
            trace: self.trace,
            seed: run.seed,
            out: self.out,
            verify: self.verify,
        };
        setup.check_machine()?;
        setup.job(&kernel.name, &kernel, run.iteration + nth * FURTHER)
    }
}

fn report_of(
    counters: &[CounterDef],
    groups: Vec<(String, Vec<RealRun>)>,
    answers: &[Answer],
    repeat: usize,
    waiting: Vec<(String, Vec<RealRun>)>,
) -> ValidationReport {
    let wait = |group: String, runs: &[RealRun], why: String| Waiting { group, n_real: runs.len(), why };
    let waits = |(group, runs): (String, Vec<RealRun>)| wait(group, &runs, runs[0].waits_for().unwrap_or_default());
    let mut waiting: Vec<Waiting> = waiting.into_iter().map(waits).collect();
    let mut answers = answers.iter();
    let mut compared = Vec::new();
    for (group, runs) in groups {
        let twin: Vec<&Done> = answers.by_ref().take(runs.len() * repeat).flatten().flatten().collect();
        if twin.len() < runs.len() * repeat {
            waiting.push(wait(group, &runs, "the twin did not come to the end of every run".to_string()));
            continue;
        }
        compared.push(GroupRuns {
            group,
            traits: runs[0].traits.clone(),
            real: runs.iter().map(|run| run.counted.growth(counters)).collect(),
            twin: twin.iter().map(|done| counted(done).growth(counters)).collect(),
            elapsed_s: (
                runs.iter().filter_map(|run| run.elapsed_s).collect(),
                twin.iter().map(|done| done.run.manifest.virtual_s).collect(),
            ),
        });
    }
    let counter =
        |counter: &CounterDef| Compared { name: counter.name.clone(), floor: counter.floor, effect: counter.effect };
    let counters: Vec<Compared> = counters.iter().map(counter).collect();
    ValidationReport::of(env!("CARGO_PKG_VERSION"), &counters, &compared, waiting)
}

/// What the twin counted.
fn counted(done: &Done) -> Counted {
    Counted { before: done.run.before.clone(), after: done.run.after.clone(), extfrag: extfrag_of(&done.run) }
}

/// Fragmentation events of a run, if they were counted.
fn extfrag_of(run: &RunDir) -> Option<u64> {
    let metric = run.metrics.iter().find(|metric| metric.name == EXTFRAG)?;
    metric.samples.first().map(|events| *events as u64)
}
