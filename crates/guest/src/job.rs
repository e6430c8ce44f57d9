//! What the guest is to do.

use serde::{Deserialize, Serialize};
use units::Contents;

/// Where the job stands in the initramfs.
pub const JOB_FILE: &str = "/job.json";
/// Where the modules stand in the initramfs.
pub const MODULES_DIR: &str = "/modules";

/// How the guest's disks reach it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Disks {
    /// Memory that the kernel takes for persistent memory, below a linear mapping that hides that it is
    /// synchronous: swap on a synchronous device skips the swap cache.
    Pmem,
    /// virtio-blk.
    Virtio,
}

/// A zram that is used for swap.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Zram {
    /// What it holds, uncompressed.
    pub bytes: u64,
    /// Its priority: higher is used first, and one that no device is given is below all.
    pub priority: u16,
    /// How it compresses, by the word of `comp_algorithm`.
    pub compressor: String,
}

/// A job.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Job {
    /// The workload.
    pub workload: String,
    /// Its parameters.
    pub params: Vec<(String, String)>,
    /// Seed of the experiment.
    pub seed: u64,
    /// Number of the run.
    pub iteration: u32,
    /// Files of [`MODULES_DIR`], in the order in which they are loaded.
    pub modules: Vec<String>,
    /// How the disks come.
    pub disks: Disks,
    /// File system of the first disk, as `mount` calls it.
    pub fs: String,
    /// Whether it is mounted with `noatime`.
    pub noatime: bool,
    /// Whether the second disk is for swap.
    pub swap: bool,
    /// Priority of that swap; without it the kernel's own, below all that are given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swap_priority: Option<u16>,
    /// Swap in compressed memory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub zrams: Vec<Zram>,
    /// What anonymous pages hold, if that matters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contents: Option<Contents>,
    /// `io.max` of the workload on each disk, of all on kernels before 4.5, in bytes per second, for reads and for writes.
    pub io_bytes_per_s: Option<u64>,
    /// Files below `/proc` and `/sys`, and what is written to them before the workload starts.
    pub settings: Vec<(String, String)>,
    /// Tracepoints of which a list is kept, as `system/event`; those that the kernel does not have are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,
    /// Longest time that the workload may take, in seconds of the guest.
    pub limit_s: u32,
    /// Interval of the series, in milliseconds; 0 makes none.
    pub series_ms: u64,
    /// Turns of a loop before the workload, by which runs that are alike otherwise differ in where timers fall.
    pub settle_turns: u64,
}
