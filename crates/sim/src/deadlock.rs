//! The report on a run that cannot go on.

use crate::TaskId;
use std::fmt;
use units::Nanos;

/// A task that sleeps, and why.
#[derive(Clone, Debug)]
pub struct BlockedTask {
    /// Which task.
    pub task: TaskId,
    /// Its name.
    pub name: String,
    /// Whether it is a daemon (these may well sleep for ever).
    pub daemon: bool,
    /// Its reason, as `Debug` prints it.
    pub reason: String,
    /// Since when it sleeps.
    pub since: Nanos,
}

/// No event is left while a task that is not a daemon still sleeps.
#[derive(Clone, Debug)]
pub struct Deadlock {
    /// When the last event was handled.
    pub at: Nanos,
    /// Every sleeping task, daemons too, in order of their numbers.
    pub blocked: Vec<BlockedTask>,
}

impl fmt::Display for BlockedTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BlockedTask { task, name, daemon, reason, since } = self;
        let daemon = if *daemon { " (daemon)" } else { "" };
        write!(f, "task {} {name}{daemon}: {reason} since {} ns", task.0, since.0)
    }
}

impl fmt::Display for Deadlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "deadlock at {} ns: no event is left", self.at.0)?;
        self.blocked.iter().try_for_each(|blocked| write!(f, "\n  {blocked}"))
    }
}

impl std::error::Error for Deadlock {}
