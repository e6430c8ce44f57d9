//! Block devices as pure state machines: no clock, no executor, no memory management.
//!
//! **Rule.** A [`BlockDevice`] takes [`Bio`]s at instants that its owner names, says by [`BlockDevice::next_event`]
//! when it has something to do, and hands back [`Completion`]s from [`BlockDevice::advance`]. Between them lie the
//! layers of a Linux block device: splitting at `max_sectors_kb`, merging, a scheduler, a number of commands in
//! the device, an optional throttle, and a model of the medium. Bios submitted in one instant without an
//! `advance` between them are one plug: they merge and are sorted before the first of them is dispatched.
//!
//! **Source.** block/blk-core.c, block/blk-merge.c, block/blk-flush.c, block/mq-deadline.c of Linux 6.12 (and
//! block/blk-core.c of 3.x for congestion); each model names its own.
//!
//! **Abstracted.** One hardware queue and one software queue. A submitter is never put to sleep here: it asks
//! [`BlockDevice::refuses`] and [`BlockDevice::congested`] and sleeps by itself. No data is stored, so no two
//! requests to one sector are ordered.
//!
//! **Omitted.** BFQ, Kyber; I/O priorities and cgroups (io.weight, io.latency); writeback throttling
//! (blk-wbt); discard; zoned devices; FUA; polling; CPU time (the owner charges it).
//!
//! Same specification, seed and calls give the same completions. How often `advance` is called between two
//! instants changes nothing, but for the plug.

mod bio;
mod device;
mod disk;
mod fault;
mod io_max;
mod model;
mod queue;
mod raid0;
mod rate;
mod slab;
mod spec;
mod stats;
mod throttle;

pub use bio::{Bio, Completion, IoError, Op, SECTOR_SIZE};
pub use device::{BlockDevice, Room};
pub use fault::Fault;
pub use model::{GcSpec, HddSpec, RamSpec, SsdSpec, UsbSpec};
pub use queue::{Batch, CfqSpec, DeadlineSpec, QueueSpec, SchedulerSpec, Wakes};
pub use raid0::Raid0Spec;
pub use spec::{DeviceSpec, SpecError};
pub use stats::{DeviceStats, OpStats};
pub use throttle::{ThrottleKind, ThrottleSpec};
