//! `Sys` by real system calls, and collectors of what the kernel shows.
//!
//! - [`SysLinux`]: each call blocks, so that a workload's future is ready at once; [`block_on`] runs it. A thread of the
//!   workload is a thread of the system. A process is a `fork()`: own address space, own tables of open files and pipes, all
//!   empty as the workload sees them but for its stdin and stdout. What the processes of a run share (stop flags, barriers, the log of samples)
//!   stands in memory that they all map.
//! - [`run`]: one workload from its first process to the end of its last, with what it recorded.
//! - [`collect`]: the kernel's text files, a series of counters, histograms of tracepoints.
//!
//! **Abstracted.** A process starts from a copy of its parent's page tables (which are small: the workload's own
//! mappings are not copied, `MADV_DONTFORK`), where the twin's starts empty.

mod block_on;
mod cgroups;
pub mod collect;
mod contents;
mod errno;
mod files;
mod info;
mod kernel;
mod memory;
mod pipes;
mod process;
mod run;
mod shared;
mod spin;
mod sys_impl;
mod threads;

pub use block_on::block_on;
pub use info::system_info;
pub use process::{Config, SyncScope, Tell};
pub use run::{Phase, RunError, Supervision, Watch, Workload, run};
pub use shared::Told;
pub use sys_impl::SysLinux;
