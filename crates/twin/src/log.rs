//! What a run leaves behind beside the counters: samples, phases, trace events, the first failure.

use mm::Mm;
use mm::trace::TraceEvent;
use sim::Ctl;
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
    pub comm: String,
    /// Its number, from 1; 0 for `<idle>`.
    pub pid: u32,
    /// CPU.
    pub cpu: CpuId,
    /// The event.
    pub event: TraceEvent,
}

/// The log of a run.
#[derive(Debug, Default)]
pub struct RunLog {
    /// Samples of each metric, in the order of their first sample.
    pub samples: Vec<(&'static str, Vec<f64>)>,
    /// When each phase of the workload began.
    pub phases: Vec<(Nanos, String)>,
    /// Recorded trace events, in the order of their times.
    pub events: Vec<Traced>,
    /// Why the workload could not go on.
    pub failure: Option<SysError>,
}

impl RunLog {
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

    /// Moves what a call of a mechanism traced into the log; its caller is still the running task.
    #[cold]
    pub(crate) fn take_trace(&mut self, mm: &mut Mm, ctl: &Ctl<World>) {
        let (comm, pid, cpu) = match ctl.current() {
            Some(task) => (ctl.task_name(task).chars().take(COMM_LEN).collect(), task.0 + 1, ctl.cpu()),
            None => ("<idle>".to_string(), 0, CpuId(0)),
        };
        let at = ctl.now();
        let traced = mm.trace.take().into_iter().map(|event| Traced { at, comm: comm.clone(), pid, cpu, event });
        self.events.extend(traced);
    }
}
