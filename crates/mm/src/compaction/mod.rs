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
//! | `isolate_migrate.rs`, `isolate_free.rs`, `migrate.rs` | the work |
//! | `finished.rs`, `run.rs` | one zone |
//! | `direct.rs`, `kcompactd.rs` | who asks |
//! | `map.rs` | a zone drawn, for who wants to see what came of it |
//!
//! **Omitted**: what kernels since 5.1 do with `CompactionSearch::FreeLists`: `fast_find_migrateblock()`,
//! `fast_isolate_freepages()`, page capture, rescanning a block (`finish_pageblock`), and clearing of hints only where
//! pages are. Under that rule the search here is still linear; only the end of a run follows it (`finished.rs`).

mod control;
mod defer;
mod direct;
mod finished;
mod fragindex;
mod isolate_free;
mod isolate_migrate;
mod kcompactd;
mod map;
mod migrate;
mod priority;
mod run;
mod scanner;
mod skip;
mod suitable;
#[cfg(test)]
mod tests;
mod validate;

pub use control::{CompactControl, Compactor, MigrateMode};
pub use direct::DirectCompaction;
pub use kcompactd::KcompactdWork;
pub use map::{BlockUse, ZoneMap};
pub use priority::{CompactPriority, CompactResult};
pub use run::{CompactRun, CompactStep};
pub use suitable::compaction_suitable;
