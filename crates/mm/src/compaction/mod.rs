//! Compaction: moving pages together so that large blocks become free.
//!
//! Two scanners work in a zone. The migrate scanner goes up and isolates movable pages, the free scanner comes down and
//! isolates free pages to move them to; when they meet, the zone is done. Who compacts is an allocation
//! ([`DirectCompaction`]) or kcompactd ([`KcompactdWork`]), zone by zone; [`CompactRun`] is one zone, in steps between
//! which the caller may yield the CPU or wait.
//!
//! | file | what |
//! |---|---|
//! | `priority.rs`, `control.rs` | how hard, on whose behalf, and what came of it |
//! | `suitable.rs`, `fragindex.rs`, `defer.rs` | whether to start |
//! | `scanner.rs`, `skip.rs` | where the scanners are, and what they pass over |
//! | `isolate_migrate.rs`, `isolate_free.rs`, `targets.rs`, `migrate.rs` | the work |
//! | `fast_migrate.rs`, `fast_free.rs`, `reset_useful.rs` | what the free lists show, and which hints are cleared (since 5.1) |
//! | `finished.rs`, `run.rs` | one zone |
//! | `direct.rs`, `capture.rs`, `kcompactd.rs`, `proactive.rs` | who asks |
//! | `events.rs` | what the tracepoints tell |
//! | `map.rs` | a zone drawn, for who wants to see what came of it |

mod capture;
mod contended;
mod control;
mod defer;
mod direct;
mod events;
mod fast_free;
mod fast_migrate;
mod finished;
mod fragindex;
mod isolate_free;
mod isolate_migrate;
mod kcompactd;
mod map;
mod migrate;
mod priority;
mod proactive;
mod reset_useful;
mod run;
mod scanner;
mod skip;
mod suitable;
mod targets;
#[cfg(test)]
mod tests;
mod validate;

pub use control::{CompactControl, Compactor, MigrateMode};
pub use direct::{Contention, DirectCompaction};
pub use events::{CompactionEvent, Deferral, Scanner};
pub use kcompactd::KcompactdWork;
pub use map::{BlockUse, ZoneMap};
pub use priority::{CompactPriority, CompactResult};
pub use proactive::{PROACTIVE_INTERVAL, ProactiveWork};
pub use run::{CompactRun, CompactStep};
pub(crate) use suitable::compaction_verdict;
