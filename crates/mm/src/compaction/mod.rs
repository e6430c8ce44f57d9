//! Compaction: moving pages together so that large blocks become free.

mod priority;

pub use priority::{CompactPriority, CompactResult};
