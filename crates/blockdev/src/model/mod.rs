//! The media: what happens to a command between its dispatch and its completion.
//!
//! Each model is one file (the disk a directory) and keeps to one contract: `start` takes a command, of which at
//! most `depth` are in the model at once; `next_event` says when `advance` has something to do; `advance(t)` is
//! called at just that instant, or later, and reports commands with the instants at which they finished, ascending.

mod hdd;
mod ram;
mod ssd;
mod usb;

use crate::bio::Op;
use crate::spec::DeviceSpec;
use crate::throttle::ThrottleSpec;
use hdd::Hdd;
pub use hdd::HddSpec;
use ram::Ram;
pub use ram::RamSpec;
use ssd::Ssd;
pub use ssd::{GcSpec, SsdSpec};
use units::Nanos;
use usb::Usb;
pub use usb::UsbSpec;

/// A request as the device sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Command {
    /// The request's slot in the queue's table.
    pub(crate) slot: u32,
    pub(crate) op: Op,
    pub(crate) sector: u64,
    /// 0 for a flush.
    pub(crate) sectors: u32,
}

impl Command {
    /// First sector after it.
    pub(crate) fn end(&self) -> u64 {
        self.sector + u64::from(self.sectors)
    }
}

/// A command that the device is done with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Finished {
    pub(crate) slot: u32,
    pub(crate) at: Nanos,
}

/// One of the models.
#[derive(Clone, Debug)]
pub(crate) enum Model {
    Hdd(Box<Hdd>),
    Ssd(Ssd),
    Ram(Ram),
    Usb(Usb),
}

impl Model {
    /// The model of `spec`, which is valid; `None` for a RAID, which has members in place of a medium.
    pub(crate) fn new(spec: &DeviceSpec, seed: u64) -> Option<Model> {
        Some(match spec {
            DeviceSpec::Hdd(spec) => Model::Hdd(Box::new(Hdd::new(spec, seed))),
            DeviceSpec::Ssd(spec) => Model::Ssd(Ssd::new(spec, seed)),
            DeviceSpec::Ram(spec) => Model::Ram(Ram::new(spec)),
            DeviceSpec::Usb(spec) => Model::Usb(Usb::new(spec)),
            DeviceSpec::Raid0(_) => return None,
        })
    }

    pub(crate) fn start(&mut self, now: Nanos, command: Command) {
        match self {
            Model::Hdd(model) => model.start(now, command),
            Model::Ssd(model) => model.start(now, command),
            Model::Ram(model) => model.start(now, command),
            Model::Usb(model) => model.start(now, command),
        }
    }

    pub(crate) fn next_event(&self) -> Option<Nanos> {
        match self {
            Model::Hdd(model) => model.next_event(),
            Model::Ssd(model) => model.next_event(),
            Model::Ram(model) => model.next_event(),
            Model::Usb(model) => model.next_event(),
        }
    }

    pub(crate) fn advance(&mut self, now: Nanos, out: &mut Vec<Finished>) {
        match self {
            Model::Hdd(model) => model.advance(now, out),
            Model::Ssd(model) => model.advance(now, out),
            Model::Ram(model) => model.advance(now, out),
            Model::Usb(model) => model.advance(now, out),
        }
    }
}

/// What the layers above the medium must know of it.
#[derive(Clone, Debug)]
pub(crate) struct Traits {
    /// Commands in the device at once.
    pub(crate) depth: u32,
    /// Takes bios directly, without a request queue.
    pub(crate) bio_based: bool,
    /// A flush is not queued with other commands (`ata_std_qc_defer()`, drivers/ata/libata-core.c).
    pub(crate) flush_alone: bool,
    /// It is taken for a disk that rotates, which sticks are too (`blk_queue_nonrot()` is false).
    pub(crate) seeks: bool,
    pub(crate) throttle: Option<ThrottleSpec>,
}

impl Traits {
    /// `None` for a RAID.
    pub(crate) fn of(spec: &DeviceSpec) -> Option<Traits> {
        let (depth, bio_based, flush_alone, throttle) = match spec {
            DeviceSpec::Hdd(spec) => (spec.ncq_depth, false, true, &spec.throttle),
            DeviceSpec::Ssd(spec) => (spec.queue_depth, false, spec.flush_alone, &spec.throttle),
            DeviceSpec::Ram(spec) => (u32::MAX, true, false, &spec.throttle),
            DeviceSpec::Usb(spec) => (1, false, true, &spec.throttle),
            DeviceSpec::Raid0(_) => return None,
        };
        let seeks = matches!(spec, DeviceSpec::Hdd(_) | DeviceSpec::Usb(_));
        Some(Traits { depth, bio_based, flush_alone, seeks, throttle: throttle.clone() })
    }
}
