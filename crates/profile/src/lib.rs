//! Machines, kernels and studies as data: TOML files, checked, with errors that name file, line and key.
//!
//! The files of `machines/`, `kernels/` and `studies/` are built in; a path to a file of one's own works wherever a
//! name does.

mod builtin;
mod counters;
mod error;
mod kernel;
mod machine;
mod name;
mod place;
mod published;
mod size;
mod study;
mod text;

pub use builtin::{KERNELS, MACHINES, STUDIES};
pub use counters::{Budget, CounterDef, budgets, counters};
pub use error::ProfileError;
pub use kernel::{AddressRange, ImageDef, Kernel};
pub use machine::{
    Booted, CompressNs, ContentsDef, CpuDef, Disk, FileSystem, MIGRATE_TYPES, Machine, MachineChange, MachineState,
    Mount, NodeDef, ORDERS, PcpDef, SwapArea, ZONE_NAMES, ZoneDef, ZramChange, ZramDef,
};
pub use published::{Published, PublishedRow};
pub use size::Size;
pub use study::{Across, Case, Comparison, ITERATIONS_MAX, MetricMap, PART, Quick, Study, Take};
pub use text::quoted;
