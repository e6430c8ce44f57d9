//! What can be typed.

use std::num::NonZero;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand, ValueEnum};
use profile::{FileSystem, ITERATIONS_MAX, Machine, MachineChange, Size, ZramChange};

use twin::{Change, TraceFilter};
use units::Nanos;

use crate::failure::Failure;
use crate::output;
use crate::real::RealArgs;

/// A deterministic twin of Linux memory management in virtual time.
#[derive(Debug, Parser)]
#[command(name = "mmtwin", version, max_term_width = 120, after_help = EXIT_STATUS)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXIT_STATUS: &str = "Results go to standard output, progress and complaints to standard error.\n\
    Exit status: 0 done, 1 a run failed, 2 bad usage or bad input, 130 interrupted.";

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run published studies and print published and twin figures side by side
    #[command(after_help = REPRODUCE_EXAMPLES)]
    Reproduce(ReproduceArgs),
    /// Run a workload on a machine under one or several kernels, or all cases of an experiment
    #[command(after_help = RUN_EXAMPLES)]
    Run(Box<RunArgs>),
    /// Compare runs that were kept with --out
    #[command(after_help = COMPARE_EXAMPLES)]
    Compare(CompareArgs),
    /// Write runs that were kept with --out as one page of HTML, with charts
    #[command(after_help = REPORT_EXAMPLES)]
    Report(ReportArgs),
    /// Run the twin on the inputs of real runs and print how far it is off
    #[command(after_help = VALIDATE_EXAMPLES)]
    Validate(ValidateArgs),
    /// Print a machine as it is, or as it was when a run started
    #[command(after_help = MACHINE_EXAMPLES)]
    Machine(MachineArgs),
    /// List what can be named elsewhere
    List(ListArgs),
    /// Print completions for a shell
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions(CompletionsArgs),
}

const REPRODUCE_EXAMPLES: &str = "Examples:
  mmtwin reproduce                                 every study at full scale
  mmtwin reproduce watermark-boost --quick         one study within half a minute, with less memory
  mmtwin reproduce watermark-boost --memory 16GiB  what if its machines had less memory?
  mmtwin reproduce --json > studies.json           one JSON document
  mmtwin reproduce my-study.toml --out runs        a study of one's own, every run kept";

/// What `run` takes unless it is told otherwise.
const KERNEL: &str = "6.12";
const MACHINE: &str = "small";

const RUN_EXAMPLES: &str = "Examples:
  mmtwin run thpfioscale -m small
  mmtwin run thpfioscale -k 4.20-rc3 -k 4.20-rc3-boost --iterations 5
  mmtwin run thpfioscale -m skylake-1s --memory 8GiB -p madvise=yes
  mmtwin run thpfioscale -k 6.12 --set vm.watermark_boost_factor=0 --set vm.watermark_boost_factor=15000
  mmtwin run thpfioscale --out runs --events kmem,compaction
  mmtwin run job.fio -m small                      a job file of fio; in a guest the real fio runs it
  mmtwin run experiment.toml --iterations 5        every case of a file, a table for each
  mmtwin run experiment.toml -k new -k old         two of its kernels, the first is the baseline
  mmtwin run thpfioscale -m guest-576m --on qemu --kernel-image debian:6.12 --out runs
  mmtwin run thpfioscale -m guest-160m --on both --kernel-image debian:6.12 --iterations 3
  mmtwin run thpfio3 -m guest-576m --on qemu --kernel-image debian:6.12 --events compaction --out runs

A sysctl that is given several times is compared with each of its values. --on both runs the twin's profile of the guest's kernel. \
An option that says nothing to the world of --on is refused.

An experiment is a file as `reproduce` reads it, with or without published figures; it runs on the twin. What is typed goes before \
what it says: -k chooses among its kernels, by its own names for them, -m replaces its machine if it has only one, -p, --set and \
the like hold for all of its cases.";

const COMPARE_EXAMPLES: &str = "Examples:
  mmtwin compare runs                              every run below a folder
  mmtwin compare before/ after/                    two folders of runs

Runs of one configuration are iterations and form one column; the first column is the baseline. Each folder that is typed has \
columns of its own, so that runs of two builds can be compared; runs that are typed themselves stand together. A run counts once, \
symbolic links below a folder are not followed, and what the twin made twice from the same seed in one folder is refused.";

const REPORT_EXAMPLES: &str = "Examples:
  mmtwin run thpfioscale -k 4.20-rc3 -k 4.20-rc3-boost --out runs
  mmtwin report runs -o report.html

The page stands by itself: it fetches nothing and can be sent as it is.";

const VALIDATE_EXAMPLES: &str = "Examples:
  mmtwin run untar2 -m guest-160m --on qemu --kernel-image debian:6.12 --set lru_gen.enabled=n --iterations 3 --out real
  mmtwin validate real                             real and twin, counter by counter
  mmtwin validate real --budgets budgets.toml      fails if a group is farther off than its budget

Runs of the same inputs form a group; the twin runs as often, each run from where the real one started.";

const MACHINE_EXAMPLES: &str = "Examples:
  mmtwin machine from-run real/untar2-guest-160m/debian-6.12/iter-0 > started.toml
  mmtwin machine from-host --disks small > host.toml
  mmtwin run thpfioscale -m ./host.toml";

const COMPLETIONS_EXAMPLES: &str = "Example:
  mmtwin completions bash > ~/.local/share/bash-completion/completions/mmtwin";

/// Heading of the options that change what a machine or a kernel is.
const WHAT_IF: &str = "What if";

/// What `run` and `reproduce` have in common.
#[derive(Clone, Debug, Args)]
pub(crate) struct Common {
    /// RAM of the machine instead of its own: 16GiB, 512MiB; nodes keep their shares, all else stays
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, value_parser = Size::parse, help_heading = WHAT_IF)]
    pub(crate) memory: Option<Size>,
    /// CPUs of the machine instead of its own, spread evenly over the nodes
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=1024), help_heading = WHAT_IF)]
    pub(crate) cpus: Option<u32>,
    /// Swap of this size in compressed memory, beside the machine's own and used first: 256MiB, 256MiB:lz4; lzo, lzo-rle (the default), lz4 or zstd
    #[arg(long, value_name = "SIZE[:COMPRESSOR]", allow_hyphen_values = true, value_parser = ZramChange::parse, help_heading = WHAT_IF)]
    pub(crate) zram: Option<ZramChange>,
    /// File system instead of the machine's own: xfs, ext4
    #[arg(long, value_name = "FS", value_parser = file_system, help_heading = WHAT_IF)]
    pub(crate) fs: Option<FileSystem>,
    /// Tunable instead of the kernel's own value (`mmtwin list tunables`); may be given several times
    #[arg(long = "set", value_name = "SYSCTL=VALUE", value_parser = pair, help_heading = WHAT_IF)]
    pub(crate) sysctls: Vec<(String, String)>,
    /// Seed; the same seed gives the same run, and all kernels the same draws
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Runs at the same time [default: CPUs, as far as memory allows]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
    /// Keep every run as DIR/CASE/KERNEL/iter-N; nothing is written over
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Print one JSON document; the same inputs give the same bytes
    #[arg(long)]
    pub(crate) json: bool,
    /// Add wall time to the JSON document, which then differs from run to run
    #[arg(long, requires = "json")]
    pub(crate) timings: bool,
    /// Check every structure of the model all the time (slow)
    #[arg(long)]
    pub(crate) verify: bool,
}

impl Common {
    /// What of the machine is to be otherwise.
    pub(crate) fn machine_change(&self) -> MachineChange {
        MachineChange { memory: self.memory, cpus: self.cpus, zram: self.zram, fs: self.fs }
    }

    /// The machine with what is to be otherwise.
    ///
    /// # Errors
    /// It cannot be so: exit status 2.
    pub(crate) fn changed(&self, machine: &Machine) -> Result<Machine, Failure> {
        let change = self.machine_change();
        Ok(if change.is_empty() { machine.clone() } else { machine.changed(&change)? })
    }

    /// How many runs may run at the same time.
    pub(crate) fn jobs(&self) -> usize {
        at_once(self.jobs)
    }
}

/// `mmtwin reproduce`.
#[derive(Debug, Args)]
pub(crate) struct ReproduceArgs {
    /// Names of studies, or files [default: all]
    #[arg(value_name = "STUDY")]
    pub(crate) studies: Vec<String>,
    /// On a smaller scale, as the study says, to see within half a minute whether the effects are there
    #[arg(long, conflicts_with_all = ["memory", "cpus"])]
    pub(crate) quick: bool,
    /// Runs of each configuration [default: what the study says]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = iterations())]
    pub(crate) iterations: Option<u32>,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// `mmtwin run`.
#[derive(Clone, Debug, Args)]
pub(crate) struct RunArgs {
    /// Name of a workload (`mmtwin list workloads`), a job file of fio, or an experiment's file
    #[arg(value_name = "WORKLOAD|JOB.fio|EXPERIMENT.toml")]
    pub(crate) workload: String,
    /// Kernel, by name or file; several are compared, the first is the baseline [default: 6.12, or all of an experiment's]
    #[arg(short, long = "kernel", value_name = "KERNEL")]
    pub(crate) kernels: Vec<String>,
    /// Machine, by name or file [default: small, or what an experiment says]
    #[arg(short, long, value_name = "MACHINE")]
    pub(crate) machine: Option<String>,
    /// Parameter of the workload; each may be given once
    #[arg(short, long = "param", value_name = "KEY=VALUE", value_parser = pair)]
    pub(crate) params: Vec<(String, String)>,
    /// Tunable that changes so many seconds after the start, on the twin: lru_gen.enabled=n@5; may be given several times
    #[arg(long = "change", value_name = "SYSCTL=VALUE@SECONDS", value_parser = change, help_heading = WHAT_IF)]
    pub(crate) changes: Vec<Change>,
    /// Where to run
    #[arg(long, value_enum, value_name = "WORLD", default_value = "twin")]
    pub(crate) on: On,
    /// Runs of each kernel, each with draws of its own [default: 1, or what an experiment says]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = iterations())]
    pub(crate) iterations: Option<u32>,
    /// Tracepoints to keep in the run directories; a real kernel keeps the last 4 MiB of each CPU
    #[arg(long, value_name = "GROUPS", value_enum, value_delimiter = ',', requires = "out")]
    pub(crate) events: Vec<EventGroup>,
    #[command(flatten)]
    pub(crate) real: RealArgs,
    #[command(flatten)]
    pub(crate) common: Common,
}

impl RunArgs {
    /// Names or files of the kernels that run a workload: one or more.
    pub(crate) fn kernels(&self) -> Vec<&str> {
        if self.kernels.is_empty() { vec![KERNEL] } else { self.kernels.iter().map(String::as_str).collect() }
    }

    /// Checks that no parameter has two values. A tunable may: its values are compared.
    ///
    /// # Errors
    /// One has: exit status 2.
    pub(crate) fn check_params(&self) -> Result<(), Failure> {
        for (number, (name, value)) in self.params.iter().enumerate() {
            if let Some((_, before)) = self.params[..number].iter().find(|(other, _)| other == name) {
                let message = format!("-p {name}={value}: it is {before} already: expected each parameter once");
                return Err(Failure::bad_input(message));
            }
        }
        Ok(())
    }

    /// Name or file of the machine that runs a workload.
    pub(crate) fn machine(&self) -> &str {
        self.machine.as_deref().unwrap_or(MACHINE)
    }

    /// Runs of a workload under each kernel: 1 or more.
    pub(crate) fn iterations(&self) -> u32 {
        self.iterations.unwrap_or(1)
    }

    /// The tracepoints that are read, as they stand below tracefs's `events`.
    pub(crate) fn tracepoints(&self) -> Vec<String> {
        let of_group = |group: &EventGroup| observe::tracepoints(group.system());
        self.events.iter().flat_map(of_group).collect()
    }

    /// Tracepoints to record.
    pub(crate) fn trace(&self) -> TraceFilter {
        let records = |group| self.events.contains(&group);
        TraceFilter {
            kmem: records(EventGroup::Kmem),
            vmscan: records(EventGroup::Vmscan),
            compaction: records(EventGroup::Compaction),
        }
    }
}

/// Where a workload can run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum On {
    /// The model
    Twin,
    /// A real kernel in a guest of QEMU
    Qemu,
    /// The kernel of this machine, in a cgroup
    Host,
    /// A guest of QEMU, and the twin from where each of the guest's runs started: side by side
    Both,
}

impl On {
    /// As it is typed.
    pub(crate) fn name(self) -> &'static str {
        match self {
            On::Twin => "twin",
            On::Qemu => "qemu",
            On::Host => "host",
            On::Both => "both",
        }
    }
}

/// A group of tracepoints.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum EventGroup {
    /// Page allocator
    Kmem,
    /// Reclaim
    Vmscan,
    /// Compaction
    Compaction,
}

impl EventGroup {
    /// Name of the group in tracefs.
    fn system(self) -> &'static str {
        match self {
            EventGroup::Kmem => "kmem",
            EventGroup::Vmscan => "vmscan",
            EventGroup::Compaction => "compaction",
        }
    }
}

/// `mmtwin compare`.
#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// Run directories, or folders of them
    #[arg(value_name = "RUN", required = true)]
    pub(crate) runs: Vec<PathBuf>,
}

/// `mmtwin report`.
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Run directories, or folders of them
    #[arg(value_name = "RUN", required = true)]
    pub(crate) runs: Vec<PathBuf>,
    /// Where the page goes; what is there is replaced; - is standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
}

/// `mmtwin validate`.
#[derive(Debug, Args)]
pub(crate) struct ValidateArgs {
    /// Runs of real kernels (--on qemu), or folders of them
    #[arg(value_name = "DIR", required = true)]
    pub(crate) dirs: Vec<PathBuf>,
    /// Which counters count, instead of the built-in list
    #[arg(long, value_name = "FILE")]
    pub(crate) counters: Option<String>,
    /// How far off each group may be; a group that is farther, or a budget that is too large, is a failure
    #[arg(long, value_name = "FILE")]
    pub(crate) budgets: Option<String>,
    /// Budgets of before, which none of today's may be larger than or lack; may be given several times
    #[arg(long, value_name = "FILE", requires = "budgets")]
    pub(crate) budgets_before: Vec<String>,
    /// Tunable of the twin instead of the real run's; may be given several times
    #[arg(long = "set", value_name = "SYSCTL=VALUE", value_parser = pair, help_heading = WHAT_IF)]
    pub(crate) sysctls: Vec<(String, String)>,
    /// Runs of the twin for each real run, each with draws of its own
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) repeat: u16,
    /// Runs at the same time [default: CPUs, as far as memory allows]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Keep the twin's runs as DIR/GROUP/KERNEL/iter-N; nothing is written over
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
    /// Check every structure of the model all the time (slow)
    #[arg(long)]
    pub(crate) verify: bool,
}

impl ValidateArgs {
    /// How many runs may run at the same time.
    pub(crate) fn jobs(&self) -> usize {
        at_once(self.jobs)
    }
}

/// How many runs may run at the same time if that many were asked for.
fn at_once(jobs: Option<u16>) -> usize {
    let cpus = || std::thread::available_parallelism().map_or(1, NonZero::get);
    jobs.map_or_else(cpus, usize::from)
}

/// `mmtwin machine`.
#[derive(Debug, Args)]
pub(crate) struct MachineArgs {
    /// Where it is seen
    #[command(subcommand)]
    pub(crate) from: MachineSource,
}

/// Where a machine is seen.
#[derive(Debug, Subcommand)]
pub(crate) enum MachineSource {
    /// The guest of a run, as the workload started
    FromRun {
        /// The run's directory
        #[arg(value_name = "RUN")]
        run: PathBuf,
    },
    /// This host, now
    FromHost {
        /// Machine whose disks, swap and mount it gets: a host does not tell how fast its own are
        #[arg(long, value_name = "MACHINE", default_value = "small")]
        disks: String,
    },
}

/// `mmtwin list`.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// What to list
    #[arg(value_enum, value_name = "WHAT")]
    pub(crate) what: Listed,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

/// What can be listed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Listed {
    /// Programs with their parameters
    Workloads,
    /// Built-in kernels
    Kernels,
    /// Built-in machines
    Machines,
    /// Published studies
    Studies,
    /// Sysctls and huge page settings
    Tunables,
    /// Counters of /proc/vmstat, and the metrics of a run
    Counters,
}

/// `mmtwin completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum, value_name = "SHELL")]
    pub(crate) shell: clap_complete::Shell,
}

fn iterations() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=i64::from(ITERATIONS_MAX))
}

/// A file system by its name.
fn file_system(text: &str) -> Result<FileSystem, String> {
    [FileSystem::Xfs, FileSystem::Ext4]
        .into_iter()
        .find(|fs| fs.name() == text)
        .ok_or_else(|| "expected xfs or ext4".to_string())
}

/// `key=value`.
fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() && !value.trim().is_empty() => {
            Ok((key.trim().to_string(), value.trim().to_string()))
        }
        _ => Err("expected key=value".to_string()),
    }
}

/// A tunable, its value, and when it is written.
fn change(text: &str) -> Result<Change, String> {
    let expected = || "expected key=value@seconds".to_string();
    let (what, when) = text.rsplit_once('@').ok_or_else(expected)?;
    let (name, value) = pair(what).map_err(|_| expected())?;
    let seconds: f64 = when.trim().parse().map_err(|_| expected())?;
    if !(0.0..=1e6).contains(&seconds) {
        return Err("expected 0 to 1000000 seconds".to_string());
    }
    Ok(Change { at: Nanos::from_secs_f64(seconds), name, value })
}

/// What clap has to say: help and version are printed, the rest becomes one line.
pub(crate) fn explain(error: &clap::Error) -> Result<(), Failure> {
    let text = error.render().to_string();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => output::print(&text),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            Err(Failure::bad_input("expected a command; `mmtwin --help` shows them"))
        }
        _ => {
            let is_advice = |line: &str| line.starts_with("Usage:") || line.starts_with("For more");
            let told = text.lines().map(str::trim).take_while(|line| !is_advice(line));
            let line = told.filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
            Err(Failure::bad_input(line.strip_prefix("error: ").unwrap_or(&line)))
        }
    }
}
