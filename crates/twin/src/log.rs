//! What a run leaves behind beside the counters: samples, phases, trace events, the first failure.

use std::sync::Arc;

use mm::Mm;
use mm::trace::TraceEvent;
use observe::Counters;
use sim::{Ctl, TaskId};
use sys::SysError;
use units::{CpuId, Nanos};

use crate::world::World;

/// Letters of a task's name that tracepoints keep (`TASK_COMM_LEN` less the end of the string).
const COMM_LEN: usize = 15;

/// A trace event with who and when.
#[derive(Clone, Debug)]
pub struct Traced {
    /// When.
    pub at: Nanos,
    /// Name of the task (`comm`), or `<idle>` for what no task caused: an interrupt.
    pub comm: Arc<str>,
    /// Its number, from 1; 0 for `<idle>`.
    pub pid: u32,
    /// CPU.
    pub cpu: CpuId,
    /// The event.
    pub event: TraceEvent,
}

/// CPU time that the machine has used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CpuTime {
    /// By programs outside the kernel.
    pub user: Nanos,
    /// By the kernel.
    pub system: Nanos,
}

/// What `iostat` goes by: requests of a device that have ended, and the time that they took from their submission on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct IoTime {
    /// Reads and writes.
    pub requests: u64,
    /// The sum of their times.
    pub waited: Nanos,
}

/// A part of the workload, and the machine as it began.
#[derive(Clone, Debug)]
pub struct Phase {
    /// When it began.
    pub at: Nanos,
    /// Its name; phases whose names have the same word before a slash belong together.
    pub name: String,
    /// `/proc/vmstat`.
    pub vmstat: Counters,
    /// CPU time used until then.
    pub cpu: CpuTime,
    /// Requests of the mounted device until then.
    pub io: IoTime,
    /// Samples of each metric until then, in the order of `RunLog::samples`.
    samples: Vec<usize>,
}

impl Phase {
    /// Samples of the metric with this place in `RunLog::samples` that were taken before the phase.
    pub fn samples_before(&self, metric: usize) -> usize {
        self.samples.get(metric).copied().unwrap_or(0)
    }
}

/// The log of a run.
#[derive(Debug, Default)]
pub struct RunLog {
    /// Samples of each metric, in the order of their first sample.
    pub samples: Vec<(&'static str, Vec<f64>)>,
    /// When each phase of the workload began.
    pub phases: Vec<Phase>,
    /// How much of the workload is done, from 0 to 1, as far as it says.
    pub done: f64,
    /// Recorded trace events, in the order of their times.
    pub events: Vec<Traced>,
    /// Why the workload could not go on.
    pub failure: Option<SysError>,
    /// Names of tasks that traced, by their number: a million events share them.
    comms: Vec<Option<Arc<str>>>,
}

impl RunLog {
    /// A phase begins.
    pub(crate) fn begin_phase(&mut self, at: Nanos, name: &str, vmstat: Counters, cpu: CpuTime, io: IoTime) {
        let samples = self.samples.iter().map(|(_, values)| values.len()).collect();
        self.phases.push(Phase { at, name: name.to_string(), vmstat, cpu, io, samples });
    }

    /// Records a sample.
    pub(crate) fn sample(&mut self, metric: &'static str, value: f64) {
        match self.samples.iter_mut().find(|(name, _)| *name == metric) {
            Some((_, values)) => values.push(value),
            None => self.samples.push((metric, vec![value])),
        }
    }

    /// The run is over: CPUs that ran ahead of each other recorded out of order.
    pub(crate) fn sort_events(&mut self) {
        self.events.sort_by_key(|event| event.at);
    }

    /// Samples of a metric; none if it was never sampled.
    pub fn of(&self, metric: &str) -> &[f64] {
        self.samples.iter().find(|(name, _)| *name == metric).map_or(&[], |(_, values)| values)
    }

    /// Host bytes.
    pub(crate) fn host_bytes(&self) -> usize {
        let samples: usize = self.samples.iter().map(|(_, values)| values.capacity() * 8).sum();
        samples + self.events.capacity() * size_of::<Traced>()
    }

    /// Moves what a call of a mechanism traced into the log; its caller is still the running task.
    #[cold]
    pub(crate) fn take_trace(&mut self, mm: &mut Mm, ctl: &Ctl<World>) {
        let (comm, pid, cpu) = match ctl.current() {
            Some(task) => (self.comm(task, ctl), task.0 + 1, ctl.cpu()),
            None => ("<idle>".into(), 0, CpuId(0)),
        };
        let at = ctl.now();
        for event in mm.trace.take() {
            units::table::push(&mut self.events, Traced { at, comm: Arc::clone(&comm), pid, cpu, event });
        }
    }

    fn comm(&mut self, task: TaskId, ctl: &Ctl<World>) -> Arc<str> {
        if self.comms.len() <= task.index() {
            self.comms.resize(task.index() + 1, None);
        }
        let comm = || ctl.task_name(task).chars().take(COMM_LEN).collect::<String>().into();
        Arc::clone(self.comms[task.index()].get_or_insert_with(comm))
    }
}
