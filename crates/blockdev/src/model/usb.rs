//! A USB stick or memory card: flash with a simple translation layer.
//!
//! **Rule.** One command at a time. Flash is managed in erase blocks (allocation units). A few are open; in an open one
//! sectors can only be appended. A write elsewhere opens a block: the block's old content before the write is
//! copied to a fresh block. Opening one more than fits closes the least recently written: the old content behind its
//! last write is copied too, and the old block erased. Hence a sequential stream copies nothing, and a small
//! random write costs about one erase block.
//! **Source.** A. Bergmann, "Optimizing Linux with cheap flash drives", LWN 2011 (open allocation units; flashbench).
//! **Abstracted.** Every block holds old data. A gap left by an append is free. The stick has no volatile cache:
//! a flush costs a command.
//! **Omitted.** Wear levelling, the separate fast area for the FAT that some sticks have, TRIM, thermal limits.

use super::{Command, Finished};
use crate::bio::{Op, SECTOR_SIZE};
use crate::rate::Rate;
use crate::spec::{BYTES_PER_S, CAPACITY_BYTES, LATENCY_NS, SpecError, check};
use crate::throttle::ThrottleSpec;
use serde::{Deserialize, Serialize};
use units::Nanos;

/// Figures of a stick.
#[derive(Deserialize, Serialize, Clone, PartialEq, Debug)]
#[serde(deny_unknown_fields)]
pub struct UsbSpec {
    /// Capacity; 64 KiB to 1 PiB.
    pub capacity_bytes: u64,
    /// Fixed cost of a command (USB mass storage protocol) in ns; at most 10^10.
    pub command_latency_ns: u64,
    /// Additional latency of a read in ns; at most 10^10.
    pub read_latency_ns: u64,
    /// Sequential read rate.
    pub read_bytes_per_s: u64,
    /// Sequential write rate.
    pub write_bytes_per_s: u64,
    /// Rate at which the stick copies old content between erase blocks.
    pub copy_bytes_per_s: u64,
    /// Erase block (allocation unit); 4 KiB to 64 MiB.
    pub erase_block_bytes: u64,
    /// Time to erase a block in ns; at most 10^10.
    pub erase_ns: u64,
    /// Erase blocks that can be open at once; 1 to 64.
    pub open_blocks: u32,
    /// A limit in front of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttle: Option<ThrottleSpec>,
}

impl UsbSpec {
    /// A common USB 2.0 stick of about 2010, 8 GB.
    ///
    /// Data-sheet class: 25 MB/s read and 8 MB/s write, sequential. Measured class (flashbench survey): erase
    /// block 4 MiB, a handful of open blocks, erase 2 ms. Guesses: 32 MB/s internal copy, 200 us
    /// per command, 500 us more per read.
    pub fn usb2_stick() -> UsbSpec {
        UsbSpec {
            capacity_bytes: 8_000_000_000,
            command_latency_ns: 200_000,
            read_latency_ns: 500_000,
            read_bytes_per_s: 25_000_000,
            write_bytes_per_s: 8_000_000,
            copy_bytes_per_s: 32_000_000,
            erase_block_bytes: 4 << 20,
            erase_ns: 2_000_000,
            open_blocks: 5,
            throttle: None,
        }
    }

    pub(crate) fn validate(&self) -> Result<(), SpecError> {
        check("capacity_bytes", self.capacity_bytes, CAPACITY_BYTES)?;
        check("command_latency_ns", self.command_latency_ns, LATENCY_NS)?;
        check("read_latency_ns", self.read_latency_ns, LATENCY_NS)?;
        check("read_bytes_per_s", self.read_bytes_per_s, BYTES_PER_S)?;
        check("write_bytes_per_s", self.write_bytes_per_s, BYTES_PER_S)?;
        check("copy_bytes_per_s", self.copy_bytes_per_s, BYTES_PER_S)?;
        check("erase_block_bytes", self.erase_block_bytes, 1 << 12..=1 << 26)?;
        check("erase_ns", self.erase_ns, LATENCY_NS)?;
        check("open_blocks", u64::from(self.open_blocks), 1..=64)?;
        self.throttle.as_ref().map_or(Ok(()), ThrottleSpec::validate)
    }
}

/// An open erase block.
#[derive(Clone, Copy, Debug)]
struct OpenBlock {
    number: u64,
    /// Offset in sectors at which the next append goes.
    append_at: u64,
}

/// The stick's state.
#[derive(Clone, Debug)]
pub(crate) struct Usb {
    command_latency: Nanos,
    read_latency: Nanos,
    read: Rate,
    write: Rate,
    copy: Rate,
    block_sectors: u64,
    erase: Nanos,
    /// Least recently written first.
    open: Vec<OpenBlock>,
    open_max: usize,
    current: Option<Finished>,
}

impl Usb {
    pub(super) fn new(spec: &UsbSpec) -> Usb {
        Usb {
            command_latency: Nanos(spec.command_latency_ns),
            read_latency: Nanos(spec.read_latency_ns),
            read: Rate::bytes_per_s(spec.read_bytes_per_s),
            write: Rate::bytes_per_s(spec.write_bytes_per_s),
            copy: Rate::bytes_per_s(spec.copy_bytes_per_s),
            block_sectors: spec.erase_block_bytes / SECTOR_SIZE,
            erase: Nanos(spec.erase_ns),
            open: Vec::with_capacity(spec.open_blocks as usize),
            open_max: spec.open_blocks as usize,
            current: None,
        }
    }

    pub(super) fn start(&mut self, now: Nanos, command: Command) {
        assert!(self.current.is_none(), "one command at a time");
        let sectors = u64::from(command.sectors);
        let cost = match command.op {
            Op::Read => self.read_latency + self.read.time(sectors),
            Op::Write => self.write.time(sectors) + self.copies(command),
            Op::Flush => Nanos::ZERO,
        };
        self.current = Some(Finished { slot: command.slot, at: now + self.command_latency + cost });
    }

    /// Time for the copies and erasures that a write causes.
    fn copies(&mut self, command: Command) -> Nanos {
        let mut cost = Nanos::ZERO;
        let mut sector = command.sector;
        while sector < command.end() {
            let number = sector / self.block_sectors;
            let block_end = (number + 1) * self.block_sectors;
            let end = command.end().min(block_end);
            let offset = sector - number * self.block_sectors;
            cost += self.append(number, offset, offset + (end - sector));
            sector = end;
        }
        cost
    }

    /// Writes `[from, to)` of erase block `number`.
    fn append(&mut self, number: u64, from: u64, to: u64) -> Nanos {
        let mut cost = Nanos::ZERO;
        let found = self.open.iter().position(|block| block.number == number);
        if let Some(block) = found.map(|i| self.open.remove(i)) {
            if from < block.append_at {
                cost += self.close(block) + self.copy.time(from);
            }
        } else {
            if self.open.len() == self.open_max {
                let oldest = self.open.remove(0);
                cost += self.close(oldest);
            }
            cost += self.copy.time(from);
        }
        self.open.push(OpenBlock { number, append_at: to });
        cost
    }

    fn close(&self, block: OpenBlock) -> Nanos {
        self.copy.time(self.block_sectors - block.append_at) + self.erase
    }

    pub(super) fn next_event(&self) -> Option<Nanos> {
        self.current.map(|finished| finished.at)
    }

    pub(super) fn advance(&mut self, now: Nanos, out: &mut Vec<Finished>) {
        if self.current.is_some_and(|finished| finished.at <= now) {
            out.extend(self.current.take());
        }
    }
}
