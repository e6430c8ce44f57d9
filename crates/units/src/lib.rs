//! Units and identifiers shared by every crate, how their large tables grow, and what pages hold.
//!
//! A quantity carries its unit in its type: a page frame number is not a page count, and nanoseconds are
//! not bytes. The types are plain copies of an integer, with the few operations that make sense for them.

mod content;
mod gfp;
mod ids;
mod names;
mod parse;
mod size;
pub mod table;
mod time;

pub use content::{Content, Contents};
pub use gfp::Gfp;
pub use ids::{CpuId, FileId, MemcgId, NodeId, Pfn, SpaceId, ZoneId};
pub use names::did_you_mean;
pub use parse::{ScaleError, parse_scaled};
pub use size::{Bytes, Order, PAGE_SHIFT, PAGE_SIZE, PAGEBLOCK_ORDER, PAGEBLOCK_PAGES, Pages};
pub use time::Nanos;
