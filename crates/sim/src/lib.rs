//! Deterministic virtual time: events, asynchronous tasks, wait queues, fairly shared CPUs, random streams.
//!
//! A [`Sim`] owns a [`World`] and three kinds of activity over it: *events* (device completions, timers),
//! handled synchronously by [`World::handle`]; *tasks* (what runs in process context and may sleep), which are
//! futures polled by the simulation; and the *scheduler*, which decides which task has which CPU. The crate
//! knows nothing of memory management.
//!
//! # CPU time
//!
//! Code of a task runs in zero virtual time; [`Ctl::charge`] says how long it would have taken. From one
//! suspension to the next is a *slice*: it starts at `s`, charges `c` in all, and occupies its CPU until
//! `s + c`. Inside it the clock reads `s` plus what was charged so far, and whatever it issues (a wake-up, an
//! event, the begin of a sleep) takes effect at that reading and not before. [`Ctx::preempt_point`] ends a
//! slice that has used up its quantum: a quantum is therefore the most by which two CPUs' views may be apart.
//!
//! # Determinism
//!
//! Events are ordered by (time, class, sequence). There are no wakers, threads, hash tables or wall clocks:
//! the same program does the same in the same order, always.

mod ctl;
mod ctx;
mod deadlock;
mod event;
mod psi;
mod run;
mod sched;
mod streams;
mod task;
mod topology;
mod wait;

pub use ctl::Ctl;
pub use ctx::Ctx;
pub use deadlock::{BlockedTask, Deadlock};
pub use event::Class;
pub use psi::{MemoryFull, PsiGroup, Resource, Stall};
pub use run::{RunEnd, Sim};
pub use sched::{CpuGroup, SchedParams, SchedPolicy};
pub use streams::Streams;
pub use task::{SpawnOptions, TaskId, TaskState, Wake};
pub use topology::{CPUS_MAX, CpuSet, CpuTopology};
pub use wait::WaitQueueId;

/// What a simulation simulates.
pub trait World: Sized + 'static {
    /// What a device or a timer reports. Kept in the event heap by value, so small types are faster.
    type Event: 'static;
    /// Why a task sleeps. Shown in the deadlock report by its `Debug`.
    type Reason: Copy + Eq + std::fmt::Debug + 'static;

    /// Whether a sleep is a wait for I/O (`in_iowait`).
    fn is_io_wait(_reason: Self::Reason) -> bool {
        false
    }

    /// A CPU turns to a task from another or from idleness (`context_switch()`).
    fn switched_to(&mut self, _task: TaskId) {}

    /// Handles an event when its time has come: interrupt context, so it cannot sleep.
    fn handle(&mut self, event: Self::Event, ctl: &mut Ctl<Self>);
}
