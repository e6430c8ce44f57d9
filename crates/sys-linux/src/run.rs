//! One workload, from its first process to the end of its last.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitOptions, WaitStatus};
use sys::SysError;
use thiserror::Error;
use units::Nanos;

use crate::collect::{Sampler, Series, Snapshot};
use crate::process::{Config, Process};
use crate::shared::{Entry, Shared, Told};
use crate::spin::Spinner;
use crate::threads::{ended_well, exit_after, fork};
use crate::{SysLinux, block_on};

/// Time between two looks at a workload that somebody watches.
const WATCH_STEP: Duration = Duration::from_millis(50);

/// A part of a workload.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Phase {
    /// When it began, since the start of the run.
    pub at: Nanos,
    /// Its name.
    pub name: String,
}

/// What a workload came to.
#[derive(Debug)]
pub struct Workload {
    /// From its start to the end of its last thread.
    pub elapsed: Nanos,
    /// Samples of each metric, in the order of their first sample.
    pub samples: Vec<(String, Vec<f64>)>,
    /// Its phases.
    pub phases: Vec<Phase>,
    /// What the kernel showed just before.
    pub before: Snapshot,
    /// What the kernel showed just after.
    pub after: Snapshot,
    /// Counters over time, if they were asked for.
    pub series: Option<Series>,
}

/// Why a workload did not come to its end.
#[derive(Debug, Error)]
pub enum RunError {
    /// It said that it could not go on.
    #[error("the workload failed in phase `{phase}`: {error}")]
    Workload {
        /// Why.
        error: SysError,
        /// Where.
        phase: String,
    },
    /// A signal that it did not send itself.
    #[error("the workload was ended by signal {signal} in phase `{phase}`{}", out_of_memory(*.signal))]
    Signal {
        /// The signal.
        signal: i32,
        /// Where.
        phase: String,
    },
    /// It took longer than it may.
    #[error("the workload was not finished after {limit_s} s, in phase `{phase}`")]
    TooLong {
        /// What it may take.
        limit_s: u64,
        /// Where.
        phase: String,
    },
    /// It recorded more than there is room for.
    #[error("the workload recorded more samples than the 64 MiB log holds")]
    LogFull,
    /// Whoever watches it said so.
    #[error("interrupted")]
    Interrupted,
    /// It could not be started.
    #[error("{what}: {source}")]
    Start {
        /// What was tried.
        what: &'static str,
        /// The system's answer.
        source: std::io::Error,
    },
}

fn out_of_memory(signal: i32) -> &'static str {
    if signal == Signal::KILL.as_raw() { " (the kernel kills so when memory is out)" } else { "" }
}

/// How a run is started and watched.
pub struct Supervision<'a, 'b> {
    /// What is done with the number of the first process before it starts: putting it into a cgroup.
    pub enter: &'a mut dyn FnMut(i32) -> std::io::Result<()>,
    /// What the workload may take, in whole seconds.
    pub limit_s: u32,
    /// Interval of the series, if one is wanted.
    pub series: Option<Nanos>,
    /// Asked now and then whether to go on; without it, the supervisor sleeps until the workload has ended.
    pub watch: Option<Watch<'b>>,
}

/// Says, knowing how far the workload is, whether to go on.
pub type Watch<'a> = &'a mut dyn FnMut(&Told<'_>) -> bool;

/// Runs `workload` in a process group of its own and waits for its end; nothing of it runs when this returns.
///
/// # Errors
/// The workload failed, was killed or took too long; the system refused a process.
pub fn run<F, Fut>(config: Config, supervision: Supervision<'_, '_>, workload: F) -> Result<Workload, RunError>
where
    F: FnOnce(SysLinux) -> Fut,
    Fut: Future<Output = sys::Result<()>>,
{
    let start = |what| move |source: std::io::Error| RunError::Start { what, source };
    let shared = Shared::map().map_err(|e| start("memory that the run's processes share")(e.into()))?;
    let tell = config.tell;
    let root_group = config.cgroup.clone();
    let process = Process::new(shared, Arc::new(config), Spinner::calibrate());
    let sampler = supervision.series.map(|interval| Sampler::start(shared, interval, tell)).transpose();
    let sampler = sampler.map_err(start("the process that samples counters"))?;
    let main = start_main(process, workload, supervision.limit_s).map_err(start("the workload's first process"))?;
    let group = Group(Some(main));
    (supervision.enter)(main.as_raw_pid()).map_err(start("the workload's cgroup"))?;
    let before = Snapshot::take_before();
    shared.start();
    wait_for(main, shared, supervision.watch)?;
    let elapsed = shared.now();
    let paths = root_group.iter().flat_map(|root| shared.groups().map(|path| (path.clone(), root.join(path))));
    let after = Snapshot::take_after(&paths.collect::<Vec<_>>());
    let status = group.end().map_err(start("waiting for the workload"))?;
    let series = sampler.map(Sampler::stop);
    let (samples, phases) = sorted(shared.entries().ok_or(RunError::LogFull)?);
    verdict(shared, status, supervision.limit_s, &phases)?;
    Ok(Workload { elapsed, samples, phases, before, after, series })
}

/// The process group of a run, which ends with it. Its first process is waited for last, so that the group's number is
/// nobody else's until then.
struct Group(Option<Pid>);

impl Group {
    /// Kills what is left and gives the first process's end.
    fn end(mut self) -> std::io::Result<WaitStatus> {
        let pid = self.0.take().expect("it ends once");
        Ok(end_group(pid)?.expect("it blocks until there is a status").1)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(pid) = self.0 {
            // A run that failed has said why.
            let _ = end_group(pid);
        }
    }
}

fn end_group(pid: Pid) -> rustix::io::Result<Option<(Pid, WaitStatus)>> {
    // Without a process in it but those that have ended, there is nothing to kill.
    let _ = rustix::process::kill_process_group(pid, Signal::KILL);
    rustix::io::retry_on_intr(|| rustix::process::waitpid(Some(pid), WaitOptions::empty()))
}

/// Forks the workload's first process, which waits for the start.
fn start_main<F, Fut>(process: Process, workload: F, limit_s: u32) -> std::io::Result<Pid>
where
    F: FnOnce(SysLinux) -> Fut,
    Fut: Future<Output = sys::Result<()>>,
{
    let shared = process.shared;
    let number = shared.new_thread(None);
    match fork()? {
        Some(pid) => {
            shared.main_pid.store(pid.as_raw_pid(), Ordering::Release);
            // Both sides do it, so that it is done whichever runs first.
            let _ = rustix::process::setpgid(Some(pid), Some(pid));
            Ok(pid)
        }
        None => exit_after(shared, number, || {
            let _ = rustix::process::setpgid(None, None);
            let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
            shared.wait_for_start();
            arm_limit(limit_s);
            let sys = SysLinux::new(Arc::new(process), number);
            if let Err(error) = block_on(workload(sys.clone())) {
                sys.fail_run(error);
            }
            sys.end_process();
        }),
    }
}

/// Lets the kernel end this process after so many seconds.
#[allow(unsafe_code)]
fn arm_limit(seconds: u32) {
    // SAFETY: sets a timer of the process; no handler is installed, so that its signal ends the process.
    unsafe { libc::alarm(seconds) };
}

/// Waits until a process has ended, and leaves its status to be taken.
fn wait_for(pid: Pid, shared: &Shared, watch: Option<Watch<'_>>) -> Result<(), RunError> {
    let wait = |more| {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | more;
        let waited = rustix::io::retry_on_intr(|| rustix::process::waitid(WaitId::Pid(pid), options));
        waited.map_err(|error| RunError::Start { what: "waiting for the workload", source: error.into() })
    };
    let Some(go_on) = watch else { return wait(WaitIdOptions::empty()).map(drop) };
    while wait(WaitIdOptions::NOHANG)?.is_none() {
        if !shared.tell(&mut *go_on) {
            return Err(RunError::Interrupted);
        }
        std::thread::sleep(WATCH_STEP);
    }
    Ok(())
}

fn verdict(shared: &Shared, status: WaitStatus, limit_s: u32, phases: &[Phase]) -> Result<(), RunError> {
    let phase = phases.last().map_or("start", |phase| &phase.name).to_string();
    if let Some(error) = shared.failure() {
        return Err(RunError::Workload { error, phase });
    }
    match status.terminating_signal() {
        Some(signal) if signal == Signal::ALARM.as_raw() => Err(RunError::TooLong { limit_s: limit_s.into(), phase }),
        Some(signal) => Err(RunError::Signal { signal, phase }),
        None if ended_well(status) => Ok(()),
        None => Err(RunError::Workload { error: SysError::Killed, phase }),
    }
}

/// Samples by metric, and phases.
fn sorted(entries: Vec<Entry>) -> (Vec<(String, Vec<f64>)>, Vec<Phase>) {
    let (mut samples, mut phases) = (Vec::<(String, Vec<f64>)>::new(), Vec::new());
    for entry in entries {
        match entry {
            Entry::Phase { at, name } => phases.push(Phase { at, name }),
            Entry::Sample { metric, value } => match samples.iter_mut().find(|(name, _)| *name == metric) {
                Some((_, values)) => values.push(value),
                None => samples.push((metric, vec![value])),
            },
        }
    }
    (samples, phases)
}
