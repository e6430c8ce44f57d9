//! The agent that is a guest's first process.
//!
//! It mounts what it needs, loads modules, makes the disks usable, applies settings, runs a workload by [`sys_linux`]
//! in a cgroup (before 4.5 in none), and returns everything as a tar through the debug port 0xe9, so that no disk is needed for results.
//! Meanwhile it says how far it is through the debug port 0xea. Then it powers the guest off. What goes wrong is returned in place of the results and stands on the console.
//!
//! The job ([`Job`]) stands in `/job.json` of the initramfs.

mod agent;
mod answer;
mod disks;
mod dm;
mod fio;
mod job;
mod mounts;
mod port;
mod progress;
mod swap;
mod zram;

pub use agent::main;
pub use answer::{ERROR_FILE, EVENTS_FILE, Phase, RESULT_FILE, Results};
pub use fio::{FIO, FIO_WORKLOAD};
pub use job::{Disks, JOB_FILE, Job, MODULES_DIR, Zram};
pub use progress::{PROGRESS_PORT, Progress};
