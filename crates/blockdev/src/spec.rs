//! What a device is: read from the machine's TOML file.

use crate::model::{HddSpec, RamSpec, SsdSpec, UsbSpec};
use crate::raid0::Raid0Spec;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;
use units::Bytes;

/// A kind of device and its figures; in TOML the key `model` names the kind.
#[derive(Deserialize, Serialize, Clone, PartialEq, Debug)]
#[serde(tag = "model", rename_all = "kebab-case", deny_unknown_fields)]
pub enum DeviceSpec {
    /// A rotating disk.
    Hdd(HddSpec),
    /// A flash disk on SATA or NVMe.
    Ssd(SsdSpec),
    /// A RAM disk (brd) or persistent memory.
    Ram(RamSpec),
    /// A USB stick or memory card.
    Usb(UsbSpec),
    /// Stripes over several devices.
    Raid0(Raid0Spec),
}

impl DeviceSpec {
    /// Checks every figure against its legal range.
    ///
    /// # Errors
    /// The first field out of range, its value and what was expected.
    pub fn validate(&self) -> Result<(), SpecError> {
        match self {
            DeviceSpec::Hdd(spec) => spec.validate(),
            DeviceSpec::Ssd(spec) => spec.validate(),
            DeviceSpec::Ram(spec) => spec.validate(),
            DeviceSpec::Usb(spec) => spec.validate(),
            DeviceSpec::Raid0(spec) => spec.validate(),
        }
    }

    /// What the device holds.
    pub fn capacity(&self) -> Bytes {
        match self {
            DeviceSpec::Hdd(spec) => Bytes(spec.capacity_bytes),
            DeviceSpec::Ssd(spec) => Bytes(spec.capacity_bytes),
            DeviceSpec::Ram(spec) => Bytes(spec.capacity_bytes),
            DeviceSpec::Usb(spec) => Bytes(spec.capacity_bytes),
            DeviceSpec::Raid0(spec) => spec.capacity(),
        }
    }

    /// Largest window of readahead in KiB as the kernel sets it.
    pub fn read_ahead_kb(&self) -> u32 {
        match self {
            DeviceSpec::Raid0(spec) => spec.read_ahead_kb().max(READ_AHEAD_KB),
            _ => READ_AHEAD_KB,
        }
    }
}

/// A figure out of its range.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{field}` is {value}: expected {expected}")]
pub struct SpecError {
    /// The field, with its path below the device (`members[1].rpm`).
    pub field: String,
    /// What it is.
    pub value: String,
    /// What it may be.
    pub expected: String,
}

/// Window of readahead of any device (`VM_MAX_READAHEAD`).
const READ_AHEAD_KB: u32 = 128;
/// Legal capacities: 64 KiB to 1 PiB.
pub(crate) const CAPACITY_BYTES: RangeInclusive<u64> = 1 << 16..=1 << 50;
/// Legal rates: 1 KB/s to 1 TB/s.
pub(crate) const BYTES_PER_S: RangeInclusive<u64> = 1_000..=1_000_000_000_000;
/// Legal latencies in ns: up to 10 s.
pub(crate) const LATENCY_NS: RangeInclusive<u64> = 0..=10_000_000_000;

/// Accepts `value` if it lies in `range`.
pub(crate) fn check(field: &str, value: u64, range: RangeInclusive<u64>) -> Result<(), SpecError> {
    if range.contains(&value) {
        return Ok(());
    }
    Err(SpecError {
        field: field.to_owned(),
        value: value.to_string(),
        expected: format!("{} to {}", range.start(), range.end()),
    })
}
