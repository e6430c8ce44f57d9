//! The mechanisms of Linux memory management: synchronous, without a clock, without I/O of their own.
//!
//! A caller passes in where and when it runs ([`Env`]), gets back a verdict or what is missing, and finds what
//! must happen elsewhere (wake kswapd, submit a bio) in [`Effects`]. CPU time is charged as it is used
//! ([`Cpu::charge`](Costs)). `ARCHITECTURE.md` has the map.

pub mod anon;
mod bio_pool;
pub mod column;
pub mod compaction;
mod contention;
mod copy_device;
mod costs;
mod effects;
mod env;
mod frame;
mod irqs_off;
mod links;
mod list;
mod machine;
pub mod memcg;
mod mm;
pub mod near;
mod node;
pub mod pagecache;
pub mod pipe;
mod plug;
mod pool;
mod process;
pub mod reclaim;
mod rmap;
mod scattered;
pub mod slab;
pub mod sparse;
pub mod stat;
pub mod swap;
mod sysctl;
mod tlb;
pub mod trace;
mod validate;
pub mod vfs;
pub mod writeback;
pub mod zone;
mod zsmalloc;

pub use bio_pool::Reserve;
pub use copy_device::{BioEnd, CopyCosts, CopyRoom};
pub use costs::{CompressCosts, Costs};
pub use effects::{Bio, BioMemory, BioTarget, Effect, Effects, WakeFlusher};
pub use env::{AllocRequest, Env, JIFFY, MigrateType, TaskFlags};
pub use frame::{Frame, Frames, Kind};
pub use irqs_off::Asked;
pub use list::List;
pub use machine::{MemoryLayout, NodeSpec, ZoneKind, ZoneSpan};
pub use mm::Mm;
pub use node::{KswapdDeeds, LruList, Lruvec, LruvecId, Node};
pub use process::TaskMemory;
pub use validate::Violation;
pub use zsmalloc::ZsPool;
