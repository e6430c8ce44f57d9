//! Machines, kernels and studies as data: TOML files, checked, with errors that name file, line and key.
//!
//! The files of `machines/`, `kernels/` and `studies/` are built in; a path to a file of one's own works wherever a
//! name does.

mod builtin;
mod error;
mod kernel;
mod machine;
mod size;
mod study;
mod text;

pub use builtin::{KERNELS, MACHINES, STUDIES};
pub use error::ProfileError;
pub use kernel::{Era, Kernel};
pub use machine::{CpuDef, Disk, FileSystem, Machine, Mount, NodeDef, SwapArea};
pub use size::Size;
pub use study::{Case, Comparison, MetricMap, Published, PublishedRow, Study};
