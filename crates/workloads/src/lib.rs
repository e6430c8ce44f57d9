//! Workload programs, written once against [`Sys`](sys::Sys).
//!
//! One file a program. A program states its parameters as data ([`WorkloadSpec`]), so that the command line can
//! list and check them, and has its line in the one registry, `registry.rs`.

mod cgroup_scenarios;
mod cgroup_writers;
pub mod conformance;
mod desktop;
mod fio;
mod groups;
mod large_copy;
mod memcached_fio;
mod param;
mod piped;
mod reclaim_writeback;
mod registry;
mod squeeze;
mod steps;
mod stress_highalloc;
mod tar;
mod thpfio3;
mod thpfioscale;
mod tree;
mod untar2;
mod wbstrm;

pub use fio::{FioFile, JobFileError};
pub use param::{Param, ParamError, Params};
pub use registry::{WORKLOADS, Workload, WorkloadSpec};
