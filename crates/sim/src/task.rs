//! Tasks: what is known of each beside its future.

use crate::{CpuGroup, CpuSet, WaitQueueId};
use units::Nanos;

/// A task. Numbers are never reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TaskId(pub u32);

impl TaskId {
    /// Index into a table of tasks.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// How a new task is to run.
#[derive(Clone, Debug)]
pub struct SpawnOptions {
    /// As in `/proc/PID/comm`: `"kswapd0"`.
    pub name: String,
    /// CPUs it may run on.
    pub cpus: CpuSet,
    /// -20 (favoured) to 19; each level is worth a factor of 1.25 in CPU time.
    pub nice: i8,
    /// The group with which it shares CPU time.
    pub group: Option<CpuGroup>,
    /// A daemon (kswapd, a flusher) does not keep the run alive.
    pub daemon: bool,
}

impl SpawnOptions {
    /// Nice 0, in no group, not a daemon.
    pub fn new(name: impl Into<String>, cpus: CpuSet) -> SpawnOptions {
        SpawnOptions { name: name.into(), cpus, nice: 0, group: None, daemon: false }
    }

    /// With this nice level, -20 to 19.
    pub fn nice(self, nice: i8) -> SpawnOptions {
        SpawnOptions { nice, ..self }
    }

    /// In this group.
    pub fn group(self, group: Option<CpuGroup>) -> SpawnOptions {
        SpawnOptions { group, ..self }
    }

    /// As a daemon.
    pub fn daemon(self) -> SpawnOptions {
        SpawnOptions { daemon: true, ..self }
    }
}

/// How a wait ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wake {
    /// Somebody woke the task.
    Woken,
    /// The time was over first.
    TimedOut,
}

/// What a task is doing, for reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TaskState<R> {
    /// Running, or able to and waiting for a CPU.
    Runnable,
    /// Asleep.
    Blocked {
        /// Why.
        reason: R,
        /// Since when.
        since: Nanos,
    },
    /// Over.
    Exited,
}

/// Where a task stands with regard to waking.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    Runnable,
    Blocked,
    /// A wake-up is on its way: issued in a slice, in effect when that slice's clock gets there.
    Waking,
    Exited,
}

/// The hot part of a task's record.
pub(crate) struct Task<R> {
    pub(crate) phase: Phase,
    /// From its dispatch to the end of its slice. A wake-up in between only keeps it from going to sleep.
    pub(crate) on_cpu: bool,
    pub(crate) killed: bool,
    pub(crate) daemon: bool,
    /// Whether the heap holds a timeout for the present block.
    pub(crate) timeout_armed: bool,
    /// How the last block ended.
    pub(crate) wake: Wake,
    /// Number of the present block, so that a timeout of an earlier one is known as stale.
    pub(crate) block: u32,
    pub(crate) reason: Option<R>,
    /// Begin of the present block.
    pub(crate) since: Nanos,
    /// Where others wait for its exit; made by the first of them.
    pub(crate) exit_queue: Option<WaitQueueId>,
}

impl<R: Copy> Task<R> {
    pub(crate) fn new(daemon: bool) -> Self {
        Task {
            phase: Phase::Runnable,
            on_cpu: false,
            killed: false,
            daemon,
            timeout_armed: false,
            wake: Wake::Woken,
            block: 0,
            reason: None,
            since: Nanos::ZERO,
            exit_queue: None,
        }
    }

    pub(crate) fn state(&self) -> TaskState<R> {
        match (self.phase, self.reason) {
            // Until what it charged last is over it keeps the run alive.
            (Phase::Exited, _) if self.on_cpu => TaskState::Runnable,
            (Phase::Exited, _) => TaskState::Exited,
            (Phase::Blocked | Phase::Waking, Some(reason)) => TaskState::Blocked { reason, since: self.since },
            _ => TaskState::Runnable,
        }
    }
}
