//! Joins the simulation and the mechanisms into a machine that runs workloads.
//!
//! The only crate that knows both virtual time and memory: `mm` says what happens, `sim` when, and the tasks here
//! (kswapd, kcompactd, flushers, the slow path of an allocation) are where the kernel sleeps.

mod boot;
mod booted;
mod devices;
mod log;
mod notify;
mod reason;
mod run;
mod snapshot;
mod standstill;
mod start;
#[cfg(test)]
mod swarm;
mod sys;
mod task;
mod world;

pub use log::{CpuTime, IoTime, Phase, RunLog, Traced};
pub use mm::KswapdDeeds;
pub use mm::compaction::{BlockUse, ZoneMap};
pub use mm::compaction::{CompactPriority, CompactResult, CompactionEvent, Deferral, Scanner};
pub use mm::trace::{Contiguous, LruIsolate, TraceEvent, TraceFilter};
pub use mm::vfs::ShrinkerId;
pub use mm::{LruList, ZoneKind};
pub use reason::SleepReason;
pub use run::{Change, Progress, RunError, RunOutcome, RunSpec, run};
pub use standstill::{AllocatingTask, Standstill};
pub use sys::SysTwin;
