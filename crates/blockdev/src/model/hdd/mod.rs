//! A rotating disk.
//!
//! **Rule.** One arm, one thing at a time: the queued command that it can position for soonest (NCQ, shortest
//! positioning time first), or an extent of the write cache. Positioning is a seek by distance, then the rotation to
//! the first sector, from where the platter is at that instant. Reads that the write cache or the read buffer holds and
//! writes that the cache takes cost only the interface. Dirty data goes out when the drive has been idle for
//! [`DESTAGE_IDLE`], when a flush asks for it, and when the cache is more than half full; then the arm alternates
//! between commands and destaging.
//! **Source.** Ruemmler & Wilkes 1994; the parts name theirs.
//! **Abstracted.** A flush finds no other command in the drive (the layer above sees to it).
//! **Omitted.** An age limit in NCQ; FUA; errors and retries of the medium; spin-down.

mod geometry;
mod read_ahead;
mod seek;
mod spec;
mod write_cache;

use super::{Command, Finished};
use crate::bio::{Op, SECTOR_SIZE};
use crate::rate::Rate;
use geometry::Geometry;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use read_ahead::{Hit, ReadAhead};
use seek::SeekCurve;
pub use spec::HddSpec;
use std::collections::VecDeque;
use units::Nanos;
use write_cache::{Extent, WriteCache};

/// How long the drive is idle before it destages unasked: a guess.
const DESTAGE_IDLE: Nanos = Nanos::millis(2);

#[derive(Clone, Copy, Debug)]
enum Work {
    Command(Command),
    Destage(Extent),
}

/// The disk's state.
#[derive(Clone, Debug)]
pub(crate) struct Hdd {
    geometry: Geometry,
    curve: SeekCurve,
    /// Rotation of the platter at time zero, in ns; drawn from the seed.
    phase: u64,
    write_settle: Nanos,
    overhead: Nanos,
    interface: Rate,
    cache: WriteCache,
    buffer: ReadAhead,
    /// Commands that the drive has not acted on yet.
    arriving: VecDeque<(Nanos, Command)>,
    /// Commands that need the arm, oldest first.
    queued: Vec<Command>,
    /// Writes that wait for room in the cache.
    throttled: VecDeque<Command>,
    flush: Option<Command>,
    active: Option<(Nanos, Work)>,
    /// Transfers over the interface, one after another.
    replies: VecDeque<Finished>,
    interface_free_at: Nanos,
    /// The sector at which the head ended, and its cylinder.
    head: (u64, u64),
    idle_since: Nanos,
    /// Whether the arm served a command last, so that a pressed cache goes next.
    destage_turn: bool,
}

impl Hdd {
    pub(super) fn new(spec: &HddSpec, seed: u64) -> Hdd {
        let geometry = Geometry::new(spec);
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        Hdd {
            curve: SeekCurve::new(spec, geometry.cylinders()),
            phase: rng.random_range(0..geometry.revolution()),
            geometry,
            write_settle: Nanos::micros(spec.write_settle_us),
            overhead: Nanos::micros(spec.command_overhead_us),
            interface: Rate::bytes_per_s(spec.interface_bytes_per_s),
            cache: WriteCache::new(spec.write_cache_bytes / SECTOR_SIZE, spec.write_cache_entries as usize),
            buffer: ReadAhead::new(spec.read_ahead_bytes / SECTOR_SIZE, spec.read_segments as usize),
            arriving: VecDeque::new(),
            queued: Vec::new(),
            throttled: VecDeque::new(),
            flush: None,
            active: None,
            replies: VecDeque::new(),
            interface_free_at: Nanos::ZERO,
            head: (0, 0),
            idle_since: Nanos::ZERO,
            destage_turn: false,
        }
    }

    pub(super) fn start(&mut self, now: Nanos, command: Command) {
        self.arriving.push_back((now + self.overhead, command));
    }

    pub(super) fn next_event(&self) -> Option<Nanos> {
        let arrival = self.arriving.front().map(|&(at, _)| at);
        let work = match self.active {
            Some((finish, _)) => Some(finish),
            None => self.cache.has_extents().then(|| self.idle_since + DESTAGE_IDLE),
        };
        let reply = self.replies.front().map(|reply| reply.at);
        [arrival, work, reply].into_iter().flatten().min()
    }

    pub(super) fn advance(&mut self, now: Nanos, out: &mut Vec<Finished>) {
        while let Some(at) = self.next_event().filter(|&at| at <= now) {
            self.step(at, out);
        }
    }

    /// Everything that happens at `now`.
    fn step(&mut self, now: Nanos, out: &mut Vec<Finished>) {
        if let Some((finish, work)) = self.active
            && finish <= now
        {
            self.active = None;
            self.finish(now, work, out);
        }
        while let Some(&(_, command)) = self.arriving.front().filter(|(at, _)| *at <= now) {
            self.arriving.pop_front();
            self.idle_since = now;
            self.arrive(now, command);
        }
        while let Some(&reply) = self.replies.front().filter(|reply| reply.at <= now) {
            self.replies.pop_front();
            out.push(reply);
        }
        if self.active.is_none() {
            self.start_work(now);
        }
        if self.active.is_none()
            && self.cache.is_clean()
            && let Some(flush) = self.flush.take()
        {
            out.push(Finished { slot: flush.slot, at: now });
        }
    }

    fn arrive(&mut self, now: Nanos, command: Command) {
        let extent = extent(command);
        match command.op {
            Op::Flush => self.flush = Some(command),
            Op::Read if self.cache.contains(extent) => self.reply(now, command),
            Op::Read => match self.buffer.lookup(&self.geometry, now, extent) {
                Hit::Full => {
                    self.buffer.consumed(&self.geometry, now, extent);
                    self.reply(now, command);
                }
                Hit::Streaming(_) | Hit::Miss => self.queued.push(command),
            },
            Op::Write if self.cache.can_hold(u64::from(command.sectors)) => {
                self.throttled.push_back(command);
                self.admit(now);
            }
            Op::Write => self.queued.push(command),
        }
    }

    /// Takes waiting writes into the cache as far as there is room.
    fn admit(&mut self, now: Nanos) {
        while let Some(&command) = self.throttled.front() {
            if !self.cache.has_room(extent(command)) {
                return;
            }
            self.throttled.pop_front();
            self.cache.insert(extent(command));
            self.reply(now, command);
        }
    }

    /// Moves a command's data over the interface and completes it.
    fn reply(&mut self, now: Nanos, command: Command) {
        let time = self.interface.time(u64::from(command.sectors));
        self.interface_free_at = self.interface_free_at.max(now) + time;
        self.replies.push_back(Finished { slot: command.slot, at: self.interface_free_at });
    }

    fn finish(&mut self, now: Nanos, work: Work, out: &mut Vec<Finished>) {
        match work {
            Work::Destage(extent) => {
                self.cache.written(extent);
                self.admit(now);
            }
            Work::Command(command) => {
                self.idle_since = now;
                out.push(Finished { slot: command.slot, at: now });
                if command.op == Op::Read {
                    self.buffer.start(&self.geometry, now, extent(command));
                    self.answer_queued(now);
                }
            }
        }
    }

    /// Answers the queued reads that lie within what was just read.
    fn answer_queued(&mut self, now: Nanos) {
        let mut index = 0;
        while let Some(&command) = self.queued.get(index) {
            let hit = self.buffer.lookup(&self.geometry, now, extent(command));
            if command.op == Op::Read && hit == Hit::Full {
                self.queued.remove(index);
                self.reply(now, command);
            } else {
                index += 1;
            }
        }
    }

    fn start_work(&mut self, now: Nanos) {
        let pressed = self.cache.is_pressed() || self.flush.is_some();
        let destage = self.cache.has_extents()
            && (pressed && (self.destage_turn || self.queued.is_empty())
                || self.queued.is_empty() && now >= self.idle_since + DESTAGE_IDLE);
        if destage {
            self.destage_turn = false;
            self.take_head(now);
            let next = self.cache.take_next(self.head.0);
            let extent = next.expect("the cache has extents");
            let begin = self.positioned_at(now, extent.start, Op::Write);
            self.transfer(begin, extent, Work::Destage(extent));
        } else if !self.queued.is_empty() {
            self.destage_turn = true;
            self.start_command(now);
        }
    }

    fn start_command(&mut self, now: Nanos) {
        let streaming = self.queued.iter().enumerate().find_map(|(index, &command)| {
            match self.buffer.lookup(&self.geometry, now, extent(command)) {
                Hit::Streaming(finish) if command.op == Op::Read => Some((index, finish)),
                _ => None,
            }
        });
        if let Some((index, finish)) = streaming {
            let command = self.queued.remove(index);
            self.place_head(command.end());
            self.active = Some((finish, Work::Command(command)));
            return;
        }
        self.take_head(now);
        let times = self.queued.iter().enumerate();
        let soonest = times.map(|(i, c)| (self.positioned_at(now, c.sector, c.op), i)).min();
        let (begin, index) = soonest.expect("commands are queued");
        let command = self.queued.remove(index);
        self.transfer(begin, extent(command), Work::Command(command));
    }

    /// Ends the read-ahead and puts the head where it got to.
    fn take_head(&mut self, now: Nanos) {
        if let Some(reached) = self.buffer.stop(&self.geometry, now) {
            self.place_head(reached);
        }
    }

    fn place_head(&mut self, sector: u64) {
        let position = self.geometry.position(sector);
        self.head = (sector, self.geometry.cylinder(position));
    }

    /// When the head is at the beginning of `sector`, if it sets out at `now`.
    fn positioned_at(&self, now: Nanos, sector: u64, op: Op) -> Nanos {
        let position = self.geometry.position(sector);
        let distance = self.geometry.cylinder(position).abs_diff(self.head.1);
        let mut at = now + self.curve.time(distance);
        if op == Op::Write && distance > 0 {
            at += self.write_settle;
        }
        at + self.geometry.rotation(at.0 + self.phase, position)
    }

    fn transfer(&mut self, begin: Nanos, extent: Extent, work: Work) {
        let time = self.geometry.position(extent.end) - self.geometry.position(extent.start);
        self.place_head(extent.end);
        self.active = Some((begin + Nanos(time), work));
    }
}

fn extent(command: Command) -> Extent {
    Extent { start: command.sector, end: command.end() }
}
