//! A flash disk.
//!
//! **Rule.** A read waits for a free channel, holds it for the read latency, then crosses the controller and the
//! interface; a write crosses those first, then holds a channel for the write latency (into the drive's
//! buffer). The crossing is a pipe, first come first served: a fixed overhead per command plus the bytes at the
//! lower of media and interface rate. So one command alone takes latency + overhead + transfer, many at once are
//! bounded by channels / latency and by the pipe. After a seeded number of written bytes the pipe stands
//! still for a garbage collection.
//! **Source.** The shape of data sheets (IOPS at depth 1 and 32, sequential rates); channels as in DiskSim's SSD extension
//! (Agrawal et al., USENIX ATC 2008).
//! **Abstracted.** Any channel serves any address. The overhead is per command, not per 4 KiB: data sheets give
//! nearly the interface rate for large commands, which a cost per 4 KiB would forbid.
//! **Omitted.** SLC cache exhaustion, write amplification by fill level, TRIM, read disturb, power states.

use super::{Command, Finished};
use crate::bio::{Op, SECTOR_SIZE};
use crate::rate::Rate;
use crate::spec::{BYTES_PER_S, CAPACITY_BYTES, LATENCY_NS, SpecError, check};
use crate::throttle::ThrottleSpec;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use units::Nanos;

/// Figures of a flash disk.
#[derive(Deserialize, Serialize, Clone, PartialEq, Debug)]
#[serde(deny_unknown_fields)]
pub struct SsdSpec {
    /// Capacity; 64 KiB to 1 PiB.
    pub capacity_bytes: u64,
    /// Commands in the device at once; 1 to 65,535: 32 for SATA (NCQ), 1023 is Linux's usual for NVMe.
    pub queue_depth: u32,
    /// Latencies that can overlap; 1 to 1024.
    pub channels: u32,
    /// Time that a read holds a channel in ns; at most 10^10.
    pub read_latency_ns: u64,
    /// Time that a write holds a channel in ns; at most 10^10.
    pub write_latency_ns: u64,
    /// Controller time per command, one at a time, in ns; at most 10^10.
    pub command_overhead_ns: u64,
    /// Sustained read rate of the flash.
    pub read_bytes_per_s: u64,
    /// Sustained write rate of the flash.
    pub write_bytes_per_s: u64,
    /// Rate of the interface.
    pub interface_bytes_per_s: u64,
    /// Time of a flush in ns; at most 10^10.
    pub flush_latency_ns: u64,
    /// Whether a flush excludes other commands: true for SATA, false for NVMe.
    pub flush_alone: bool,
    /// Occasional pauses; none if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gc: Option<GcSpec>,
    /// A limit in front of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttle: Option<ThrottleSpec>,
}

/// Pauses for garbage collection.
#[derive(Deserialize, Serialize, Clone, PartialEq, Debug)]
#[serde(deny_unknown_fields)]
pub struct GcSpec {
    /// Mean of the bytes written between two pauses, uniform within half of it on either side; 4 KiB to 1 PiB.
    pub interval_bytes: u64,
    /// Mean length of a pause in ns, uniform within half of it on either side; at most 10^10.
    pub pause_ns: u64,
}

impl SsdSpec {
    /// A consumer SATA drive of 2015, 256 GB (Samsung 850 and alike).
    ///
    /// Data-sheet class: 540 / 520 MB/s, 4 KiB reads 10 k IOPS at depth 1 and 97 k at 32, writes 40 k and 90 k,
    /// interface 550 MB/s net of 6 Gb/s. Derived: the latencies are 1 / IOPS at depth 1 less overhead and transfer,
    /// the overhead is 1 / IOPS at depth 32 less transfer. Guesses: 16 channels (8 with two planes), flush 500 us, no GC.
    pub fn sata_2015() -> SsdSpec {
        SsdSpec {
            capacity_bytes: 256_060_514_304,
            queue_depth: 32,
            channels: 16,
            read_latency_ns: 89_715,
            write_latency_ns: 14_423,
            command_overhead_ns: 2_700,
            read_bytes_per_s: 540_000_000,
            write_bytes_per_s: 520_000_000,
            interface_bytes_per_s: 550_000_000,
            flush_latency_ns: 500_000,
            flush_alone: true,
            gc: None,
            throttle: None,
        }
    }

    pub(crate) fn validate(&self) -> Result<(), SpecError> {
        check("capacity_bytes", self.capacity_bytes, CAPACITY_BYTES)?;
        check("queue_depth", u64::from(self.queue_depth), 1..=65_535)?;
        check("channels", u64::from(self.channels), 1..=1024)?;
        check("read_latency_ns", self.read_latency_ns, LATENCY_NS)?;
        check("write_latency_ns", self.write_latency_ns, LATENCY_NS)?;
        check("command_overhead_ns", self.command_overhead_ns, LATENCY_NS)?;
        check("read_bytes_per_s", self.read_bytes_per_s, BYTES_PER_S)?;
        check("write_bytes_per_s", self.write_bytes_per_s, BYTES_PER_S)?;
        check("interface_bytes_per_s", self.interface_bytes_per_s, BYTES_PER_S)?;
        check("flush_latency_ns", self.flush_latency_ns, LATENCY_NS)?;
        if let Some(gc) = &self.gc {
            check("gc.interval_bytes", gc.interval_bytes, 1 << 12..=1 << 50)?;
            check("gc.pause_ns", gc.pause_ns, LATENCY_NS)?;
        }
        self.throttle.as_ref().map_or(Ok(()), ThrottleSpec::validate)
    }
}

/// When the next pause comes.
#[derive(Clone, Debug)]
struct Gc {
    spec: GcSpec,
    rng: ChaCha8Rng,
    sectors_left: u64,
}

impl Gc {
    fn new(spec: &GcSpec, seed: u64) -> Gc {
        let mut gc = Gc { spec: spec.clone(), rng: ChaCha8Rng::seed_from_u64(seed), sectors_left: 0 };
        gc.sectors_left = gc.draw(gc.spec.interval_bytes / SECTOR_SIZE);
        gc
    }

    fn draw(&mut self, mean: u64) -> u64 {
        self.rng.random_range(mean / 2..=mean + mean / 2)
    }

    /// The pause that writing `sectors` more brings about, if any.
    fn pause(&mut self, sectors: u64) -> Nanos {
        if sectors < self.sectors_left {
            self.sectors_left -= sectors;
            return Nanos::ZERO;
        }
        let over = sectors - self.sectors_left;
        let interval = self.draw(self.spec.interval_bytes / SECTOR_SIZE);
        self.sectors_left = interval.saturating_sub(over);
        Nanos(self.draw(self.spec.pause_ns))
    }
}

/// Where a command is; at one instant the first of these ends first.
#[derive(Clone, Copy, Debug)]
enum Stage {
    /// The drive's buffer takes a write; holds a channel.
    Program,
    /// The drive flushes.
    Flush,
    /// Data crosses controller and interface.
    Cross,
    /// The flash is read; holds a channel.
    Sense,
}

const STAGES: [Stage; 4] = [Stage::Program, Stage::Flush, Stage::Cross, Stage::Sense];

/// The drive's state.
#[derive(Clone, Debug)]
pub(crate) struct Ssd {
    read_latency: Nanos,
    write_latency: Nanos,
    flush_latency: Nanos,
    overhead: Nanos,
    read: Rate,
    write: Rate,
    channels_free: u32,
    waiting: VecDeque<Command>,
    pipe_free_at: Nanos,
    /// What is under way in each stage. A stage takes a constant time or is a pipe, so each ends in order.
    stages: [VecDeque<(Nanos, Command)>; 4],
    gc: Option<Box<Gc>>,
}

impl Ssd {
    pub(super) fn new(spec: &SsdSpec, seed: u64) -> Ssd {
        let slower = |media: u64| Rate::bytes_per_s(media.min(spec.interface_bytes_per_s));
        Ssd {
            read_latency: Nanos(spec.read_latency_ns),
            write_latency: Nanos(spec.write_latency_ns),
            flush_latency: Nanos(spec.flush_latency_ns),
            overhead: Nanos(spec.command_overhead_ns),
            read: slower(spec.read_bytes_per_s),
            write: slower(spec.write_bytes_per_s),
            channels_free: spec.channels,
            waiting: VecDeque::new(),
            pipe_free_at: Nanos::ZERO,
            stages: Default::default(),
            gc: spec.gc.as_ref().map(|gc| Box::new(Gc::new(gc, seed))),
        }
    }

    pub(super) fn start(&mut self, now: Nanos, command: Command) {
        match command.op {
            Op::Read => self.take_channel(now, command),
            Op::Write => self.cross(now, command),
            Op::Flush => self.enter(Stage::Flush, now + self.flush_latency, command),
        }
    }

    /// `command` is in `stage` until `end`.
    fn enter(&mut self, stage: Stage, end: Nanos, command: Command) {
        let stage = &mut self.stages[stage as usize];
        debug_assert!(stage.back().is_none_or(|last| last.0 <= end));
        stage.push_back((end, command));
    }

    fn take_channel(&mut self, now: Nanos, command: Command) {
        if self.channels_free == 0 {
            self.waiting.push_back(command);
            return;
        }
        self.channels_free -= 1;
        self.access(now, command);
    }

    /// The flash access of a command that has a channel.
    fn access(&mut self, now: Nanos, command: Command) {
        if command.op == Op::Write {
            self.enter(Stage::Program, now + self.write_latency, command);
        } else {
            self.enter(Stage::Sense, now + self.read_latency, command);
        }
    }

    fn release_channel(&mut self, now: Nanos) {
        match self.waiting.pop_front() {
            Some(command) => self.access(now, command),
            None => self.channels_free += 1,
        }
    }

    /// Sends a command's data through the pipe.
    fn cross(&mut self, now: Nanos, command: Command) {
        let sectors = u64::from(command.sectors);
        let (rate, pause) = if command.op == Op::Write {
            let pause = self.gc.as_mut().map(|gc| gc.pause(sectors));
            (self.write, pause.unwrap_or_default())
        } else {
            (self.read, Nanos::ZERO)
        };
        let begin = self.pipe_free_at.max(now) + pause;
        self.pipe_free_at = begin + self.overhead + rate.time(sectors);
        self.enter(Stage::Cross, self.pipe_free_at, command);
    }

    /// The end of the first stage to end, and that stage.
    fn first_end(&self) -> Option<(Nanos, Stage)> {
        let mut first = None;
        for stage in STAGES {
            if let Some(&(end, _)) = self.stages[stage as usize].front()
                && first.is_none_or(|(at, _)| end < at)
            {
                first = Some((end, stage));
            }
        }
        first
    }

    pub(super) fn next_event(&self) -> Option<Nanos> {
        self.first_end().map(|(at, _)| at)
    }

    pub(super) fn advance(&mut self, now: Nanos, out: &mut Vec<Finished>) {
        while let Some((at, stage)) = self.first_end().filter(|&(at, _)| at <= now) {
            let ended = self.stages[stage as usize].pop_front();
            let (_, command) = ended.expect("the stage holds a command");
            match stage {
                Stage::Sense => {
                    self.release_channel(at);
                    self.cross(at, command);
                    continue;
                }
                Stage::Cross if command.op == Op::Write => {
                    self.take_channel(at, command);
                    continue;
                }
                Stage::Program => self.release_channel(at),
                Stage::Cross | Stage::Flush => {}
            }
            out.push(Finished { slot: command.slot, at });
        }
    }
}
