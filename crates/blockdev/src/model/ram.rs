//! A RAM disk or persistent memory.
//!
//! **Rule.** A bio takes a fixed time plus a copy at memory bandwidth, and bios do not wait for each other.
//! **Source.** drivers/block/brd.c, drivers/nvdimm/pmem.c (6.12): the copy runs in the submitter's context.
//! **Abstracted.** Unless it is said to be synchronous, the copy takes device time, not CPU time. The owner of a synchronous one
//! does not call the model at all, but charges the same time to the submitter.
//! **Omitted.** Contention for memory bandwidth.

use super::{Command, Finished};
use crate::Op;
use crate::rate::Rate;
use crate::spec::{BYTES_PER_S, CAPACITY_BYTES, LATENCY_NS, SpecError, check};
use crate::throttle::ThrottleSpec;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use units::Nanos;

/// Figures of a RAM disk.
#[derive(Deserialize, Serialize, Clone, PartialEq, Debug)]
#[serde(deny_unknown_fields)]
pub struct RamSpec {
    /// Capacity; 64 KiB to 1 PiB.
    pub capacity_bytes: u64,
    /// Fixed cost of a bio in ns; at most 10^10.
    pub latency_ns: u64,
    /// Copy bandwidth, bytes per second.
    pub copy_bytes_per_s: u64,
    /// The same of writes, where they take longer: persistent memory is written past the caches (`memcpy_flushcache()`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_bytes_per_s: Option<u64>,
    /// A bio ends before its submission returns, and its cost is CPU time of the submitter (`brd`, `pmem`).
    #[serde(default)]
    pub synchronous: bool,
    /// A limit in front of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttle: Option<ThrottleSpec>,
}

impl RamSpec {
    /// DDR4 memory, 2015 on. The capacity is the user's. Guesses, to be calibrated: 1 us per bio for the block
    /// layer and brd's page lookup, 8 GB/s for one core's `memcpy` beyond the caches.
    pub fn ddr4(capacity_bytes: u64) -> RamSpec {
        RamSpec {
            capacity_bytes,
            latency_ns: 1_000,
            copy_bytes_per_s: 8_000_000_000,
            write_bytes_per_s: None,
            synchronous: false,
            throttle: None,
        }
    }

    /// Copy bandwidth of reads or writes, bytes per second.
    pub fn bytes_per_s(&self, op: Op) -> u64 {
        self.write_bytes_per_s.filter(|_| op == Op::Write).unwrap_or(self.copy_bytes_per_s)
    }

    pub(crate) fn validate(&self) -> Result<(), SpecError> {
        check("capacity_bytes", self.capacity_bytes, CAPACITY_BYTES)?;
        check("latency_ns", self.latency_ns, LATENCY_NS)?;
        check("copy_bytes_per_s", self.copy_bytes_per_s, BYTES_PER_S)?;
        self.write_bytes_per_s.map_or(Ok(()), |rate| check("write_bytes_per_s", rate, BYTES_PER_S))?;
        self.throttle.as_ref().map_or(Ok(()), ThrottleSpec::validate)
    }
}

/// Bios under way.
#[derive(Clone, Debug)]
pub(crate) struct Ram {
    latency: Nanos,
    read: Rate,
    write: Rate,
    /// When, in which order of arrival, and which request.
    replies: BinaryHeap<Reverse<(Nanos, u64, u32)>>,
    arrivals: u64,
}

impl Ram {
    pub(super) fn new(spec: &RamSpec) -> Ram {
        Ram {
            latency: Nanos(spec.latency_ns),
            read: Rate::bytes_per_s(spec.bytes_per_s(Op::Read)),
            write: Rate::bytes_per_s(spec.bytes_per_s(Op::Write)),
            replies: BinaryHeap::new(),
            arrivals: 0,
        }
    }

    pub(super) fn start(&mut self, now: Nanos, command: Command) {
        let copy = if command.op == Op::Write { self.write } else { self.read };
        let cost = self.latency + copy.time(u64::from(command.sectors));
        self.arrivals += 1;
        self.replies.push(Reverse((now + cost, self.arrivals, command.slot)));
    }

    pub(super) fn next_event(&self) -> Option<Nanos> {
        self.replies.peek().map(|reply| reply.0.0)
    }

    pub(super) fn advance(&mut self, now: Nanos, out: &mut Vec<Finished>) {
        while self.next_event().is_some_and(|at| at <= now) {
            let reply = self.replies.pop();
            out.extend(reply.map(|Reverse((at, _, slot))| Finished { slot, at }));
        }
    }
}
