//! A limit on bytes and operations per second in front of the medium.
//!
//! **Rule** ([`ThrottleKind::Qemu`]; [`ThrottleKind::IoMax`] is told in `io_max`). Each limit is a leaky bucket: a request passes as soon as the bucket's level is at most the burst, and
//! adds its size afterwards, so that a large one overshoots once and is paid for later. Requests pass in order.
//! **Source.** QEMU util/throttle.c (`throttle_compute_wait()`: a bucket of avg/10, that is 100 ms, where no burst is
//! configured).
//! **Abstracted.** Reads and writes share one bucket (`bps-total`, `iops-total`); flushes pass in order without a charge.
//! **Omitted.** `bps-max` with a length, `iops-size`, throttle groups.

use crate::io_max::IoMax;
use crate::model::Command;
use crate::rate::{FRACTION_BITS, Rate};
use crate::spec::{BYTES_PER_S, SpecError, check};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use units::Nanos;

/// Who limits.
#[derive(Deserialize, Serialize, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ThrottleKind {
    /// QEMU (`throttling.bps-total`), reads and writes together.
    #[default]
    #[serde(rename = "qemu")]
    Qemu,
    /// The kernel for a cgroup (`io.max`), reads and writes apart; bytes only.
    #[serde(rename = "io.max")]
    IoMax,
}

/// Limits; at least one of the two rates.
#[derive(Deserialize, Serialize, Clone, PartialEq, Debug)]
#[serde(deny_unknown_fields)]
pub struct ThrottleSpec {
    /// Whose rule it is.
    #[serde(default)]
    pub by: ThrottleKind,
    /// Bytes per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_s: Option<u64>,
    /// Requests per second, reads and writes together; 1 to 10^9.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iops: Option<u64>,
    /// What may pass at once after a pause, as time at the limit; 0 to 60,000 ms. QEMU's default is 100 ms.
    #[serde(default = "default_burst_ms")]
    pub burst_ms: u64,
}

fn default_burst_ms() -> u64 {
    100
}

impl ThrottleSpec {
    pub(crate) fn validate(&self) -> Result<(), SpecError> {
        if let Some(rate) = self.bytes_per_s {
            check("throttle.bytes_per_s", rate, BYTES_PER_S)?;
        }
        if let Some(iops) = self.iops {
            check("throttle.iops", iops, 1..=1_000_000_000)?;
        }
        if self.by == ThrottleKind::IoMax && (self.bytes_per_s.is_none() || self.iops.is_some()) {
            return Err(SpecError {
                field: "throttle".to_owned(),
                value: "no limit on bytes alone".to_owned(),
                expected: "bytes_per_s and no iops with by = \"io.max\"".to_owned(),
            });
        }
        if self.bytes_per_s.is_none() && self.iops.is_none() {
            return Err(SpecError {
                field: "throttle".to_owned(),
                value: "empty".to_owned(),
                expected: "bytes_per_s, iops or both".to_owned(),
            });
        }
        check("throttle.burst_ms", self.burst_ms, 0..=60_000)
    }
}

/// One leaky bucket, kept as the instant at which it will be empty.
#[derive(Clone, Debug)]
struct Bucket {
    rate: Rate,
    /// In 2^-24 ns, so that no rounding accumulates.
    empty_at: u128,
}

impl Bucket {
    fn new(rate: Rate) -> Bucket {
        Bucket { rate, empty_at: 0 }
    }

    /// The first instant at which the level is at most `burst`; a fraction of a ns early, never late, so that no
    /// fraction is lost over many requests.
    fn ready_at(&self, burst: Nanos) -> Nanos {
        let ready = self.empty_at.saturating_sub(u128::from(burst.0) << FRACTION_BITS);
        Nanos((ready >> FRACTION_BITS) as u64)
    }

    fn charge(&mut self, now: Nanos, units: u64) {
        let now = u128::from(now.0) << FRACTION_BITS;
        self.empty_at = self.empty_at.max(now) + self.rate.fine(units);
    }
}

/// Commands held back, and when the first of them may go.
#[derive(Clone, Debug)]
pub(crate) enum Throttle {
    Buckets(Buckets),
    IoMax(IoMax),
}

impl Throttle {
    pub(crate) fn new(spec: &ThrottleSpec) -> Throttle {
        match (spec.by, spec.bytes_per_s) {
            (ThrottleKind::IoMax, Some(bytes_per_s)) => Throttle::IoMax(IoMax::new(bytes_per_s)),
            _ => Throttle::Buckets(Buckets::new(spec)),
        }
    }

    /// Takes a command that was dispatched at `now`.
    pub(crate) fn hold(&mut self, now: Nanos, command: Command) {
        match self {
            Throttle::Buckets(buckets) => buckets.held.push_back((now, command)),
            Throttle::IoMax(slices) => slices.hold(now, command),
        }
    }

    /// When the first held command may go to the device.
    pub(crate) fn next_event(&self) -> Option<Nanos> {
        match self {
            Throttle::Buckets(buckets) => buckets.next_event(),
            Throttle::IoMax(slices) => slices.next_event(),
        }
    }

    /// Lets the first held command go if it may by `now`.
    pub(crate) fn release(&mut self, now: Nanos) -> Option<Command> {
        match self {
            Throttle::Buckets(buckets) => buckets.release(now),
            Throttle::IoMax(slices) => slices.release(now),
        }
    }
}

/// The buckets of both limits, and what waits for them.
#[derive(Clone, Debug)]
pub(crate) struct Buckets {
    bytes: Option<Bucket>,
    ops: Option<Bucket>,
    burst: Nanos,
    held: VecDeque<(Nanos, Command)>,
}

impl Buckets {
    fn new(spec: &ThrottleSpec) -> Buckets {
        Buckets {
            bytes: spec.bytes_per_s.map(Rate::bytes_per_s).map(Bucket::new),
            ops: spec.iops.map(Rate::per_s).map(Bucket::new),
            burst: Nanos::millis(spec.burst_ms),
            held: VecDeque::new(),
        }
    }

    fn next_event(&self) -> Option<Nanos> {
        let (held_at, command) = self.held.front()?;
        if command.sectors == 0 {
            return Some(*held_at);
        }
        let buckets = [&self.bytes, &self.ops];
        let ready = buckets.into_iter().flatten();
        Some(ready.fold(*held_at, |at, bucket| at.max(bucket.ready_at(self.burst))))
    }

    fn release(&mut self, now: Nanos) -> Option<Command> {
        if self.next_event()? > now {
            return None;
        }
        let (_, command) = self.held.pop_front()?;
        if command.sectors > 0 {
            if let Some(bucket) = &mut self.bytes {
                bucket.charge(now, u64::from(command.sectors));
            }
            if let Some(bucket) = &mut self.ops {
                bucket.charge(now, 1);
            }
        }
        Some(command)
    }
}
