//! The limit that a cgroup sets on the bytes per second of its bios.
//!
//! **Rule.** Reads and writes are limited apart. Time is cut into slices of a tenth of a second from the first bio after a
//! pause on. By the end of each slice a slice's worth of bytes may have gone, and all of it at once: what a slice leaves unused is
//! lost. A bio that does not fit waits for the slice's end, and as long beyond it as its excess takes at the limit. Bios of a
//! direction go in order. Time has the grain of the tick.
//!
//! **Source.** `tg_may_dispatch()`, `tg_within_bps_limit()`, `throtl_trim_slice()`, `DFL_THROTL_SLICE`,
//! block/blk-throttle.c (6.12).
//!
//! **Abstracted.** It holds commands that the queue has dispatched, where the kernel holds bios before they become requests.
//!
//! **Omitted.** Limits on operations, hierarchies of cgroups.

use crate::bio::{Op, SECTOR_SIZE};
use crate::model::Command;
use std::collections::VecDeque;
use units::Nanos;

/// `1 / CONFIG_HZ`, as Debian builds.
const TICK: Nanos = Nanos::millis(4);
const TICKS_PER_S: u64 = 250;
/// `DFL_THROTL_SLICE`, in ticks.
const SLICE: u64 = TICKS_PER_S / 10;

/// A direction's slice and what waits for it. Instants are in ticks.
#[derive(Clone, Debug, Default)]
struct Direction {
    start: u64,
    end: u64,
    /// Bytes that went since `start`.
    dispatched: u64,
    held: VecDeque<(Nanos, Command)>,
    /// When the first of those held may go.
    ready: Nanos,
}

impl Direction {
    /// Ticks that the first held command has to wait at tick `now`; `fresh` if nothing waited before it.
    fn wait(&mut self, bytes_per_s: u64, now: u64, bytes: u64, fresh: bool) -> u64 {
        let used = now < self.start || now > self.end;
        if used && fresh {
            (self.start, self.end, self.dispatched) = (now, now + SLICE, 0);
        } else if self.end < now + SLICE {
            self.end = (now + SLICE).next_multiple_of(SLICE);
        }
        let elapsed = now - self.start;
        let rounded = elapsed.max(1).next_multiple_of(SLICE);
        let allowed = bytes_per_s * rounded / TICKS_PER_S;
        if self.dispatched + bytes <= allowed {
            return 0;
        }
        let excess = self.dispatched + bytes - allowed;
        let wait = (excess * TICKS_PER_S / bytes_per_s).max(1) + (rounded - elapsed);
        self.end = self.end.max((now + wait).next_multiple_of(SLICE));
        wait
    }

    /// Bytes that may go at tick `now` if nothing waits.
    fn room(&self, bytes_per_s: u64, now: u64) -> u64 {
        if now < self.start || now > self.end {
            return bytes_per_s * SLICE / TICKS_PER_S;
        }
        let rounded = (now - self.start).max(1).next_multiple_of(SLICE);
        (bytes_per_s * rounded / TICKS_PER_S).saturating_sub(self.dispatched)
    }

    /// Works out when the first held command may go.
    fn look_again(&mut self, bytes_per_s: u64, now: Nanos, fresh: bool) {
        let Some(&(held_at, command)) = self.held.front() else { return };
        let tick = now.max(held_at).0 / TICK.0;
        let wait = self.wait(bytes_per_s, tick, bytes_of(&command), fresh);
        self.ready = if wait == 0 { now.max(held_at) } else { Nanos((tick + wait) * TICK.0) };
    }

    /// Forgets the slices that are over (`throtl_trim_slice()`).
    fn trim(&mut self, bytes_per_s: u64, now: u64) {
        if now > self.end {
            return;
        }
        self.end = (now + SLICE).next_multiple_of(SLICE);
        let over = (now - self.start) / SLICE * SLICE;
        self.dispatched = self.dispatched.saturating_sub(bytes_per_s * over / TICKS_PER_S);
        self.start += over;
    }
}

fn bytes_of(command: &Command) -> u64 {
    u64::from(command.sectors) * SECTOR_SIZE
}

/// The limit on both directions.
#[derive(Clone, Debug)]
pub(crate) struct IoMax {
    bytes_per_s: u64,
    /// Reads and writes.
    directions: [Direction; 2],
}

impl IoMax {
    pub(crate) fn new(bytes_per_s: u64) -> IoMax {
        IoMax { bytes_per_s, directions: Default::default() }
    }

    pub(crate) fn hold(&mut self, now: Nanos, command: Command) {
        let direction = &mut self.directions[usize::from(command.op == Op::Write)];
        direction.held.push_back((now, command));
        if direction.held.len() == 1 {
            direction.look_again(self.bytes_per_s, now, true);
        }
    }

    /// Bytes of an operation that would not have to wait now.
    pub(crate) fn room(&self, now: Nanos, op: Op) -> u64 {
        let direction = &self.directions[usize::from(op == Op::Write)];
        if direction.held.is_empty() { direction.room(self.bytes_per_s, now.0 / TICK.0) } else { 0 }
    }

    /// Counts bytes that went without having been held.
    pub(crate) fn pass(&mut self, now: Nanos, op: Op, bytes: u64) {
        let direction = &mut self.directions[usize::from(op == Op::Write)];
        let tick = now.0 / TICK.0;
        direction.wait(self.bytes_per_s, tick, bytes, true);
        direction.dispatched += bytes;
        direction.trim(self.bytes_per_s, tick);
    }

    fn first(&self) -> Option<usize> {
        let waiting = (0..2).filter(|&at| !self.directions[at].held.is_empty());
        waiting.min_by_key(|&at| self.directions[at].ready)
    }

    pub(crate) fn next_event(&self) -> Option<Nanos> {
        self.first().map(|at| self.directions[at].ready)
    }

    pub(crate) fn release(&mut self, now: Nanos) -> Option<Command> {
        let direction = &mut self.directions[self.first()?];
        if direction.ready > now {
            return None;
        }
        let (_, command) = direction.held.pop_front()?;
        direction.dispatched += bytes_of(&command);
        direction.trim(self.bytes_per_s, now.0 / TICK.0);
        direction.look_again(self.bytes_per_s, now, false);
        Some(command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: u64 = 100 << 20;
    /// 1 MiB.
    const SECTORS: u32 = 2048;

    fn command(op: Op, slot: u32) -> Command {
        Command { slot, op, sector: 0, sectors: SECTORS }
    }

    /// When each of so many commands of 1 MiB, held at once, goes; in milliseconds.
    fn times(io_max: &mut IoMax, op: Op, from: Nanos, commands: u32) -> Vec<u64> {
        (0..commands).for_each(|slot| io_max.hold(from, command(op, slot)));
        let mut at = Vec::new();
        for slot in 0..commands {
            let ready = io_max.next_event().expect("a command is held");
            assert_eq!(io_max.release(ready).map(|command| command.slot), Some(slot), "in order");
            at.push(ready.0 / 1_000_000);
        }
        at
    }

    #[test]
    fn a_slice_goes_at_once_and_the_next_when_it_is_over() {
        let mut io_max = IoMax::new(RATE);
        let at = times(&mut io_max, Op::Write, Nanos::ZERO, 25);
        // 10 MiB in each tenth of a second. The eleventh lacks 1 MiB of the first slice: 100 ms and 10 ms, in ticks of
        // 4 ms, later; in the second slice the allowance has become 20 MiB, so the others of it go with it.
        assert_eq!(at[..10], [0; 10]);
        assert_eq!(at[10..20], [108; 10]);
        assert_eq!(at[20], 208);
    }

    #[test]
    fn over_a_long_time_the_rate_is_kept() {
        let mut io_max = IoMax::new(RATE);
        let at = times(&mut io_max, Op::Read, Nanos::ZERO, 1000);
        assert!(at[999].abs_diff(9_900) <= 104, "10 s of 100 MiB/s, the last slice at its beginning: {}", at[999]);
    }

    #[test]
    fn reads_do_not_wait_for_writes() {
        let mut io_max = IoMax::new(RATE);
        (0..20).for_each(|slot| io_max.hold(Nanos::ZERO, command(Op::Write, slot)));
        (0..10).for_each(|_| assert!(io_max.release(Nanos::ZERO).is_some()));
        assert_eq!(io_max.release(Nanos::ZERO), None);
        io_max.hold(Nanos::ZERO, command(Op::Read, 99));
        assert_eq!(io_max.release(Nanos::ZERO).map(|command| command.slot), Some(99));
    }

    /// When bios of so many sectors, each so long after the one before, go; with `passing` those that there is room for are not
    /// held at all.
    fn departures(bios: &[(u64, u32)], passing: bool) -> Vec<Nanos> {
        let (mut io_max, mut now, mut gone) = (IoMax::new(RATE), Nanos::ZERO, vec![Nanos::MAX; bios.len()]);
        let release = |io_max: &mut IoMax, gone: &mut Vec<Nanos>, until: Nanos| {
            while let Some(at) = io_max.next_event().filter(|at| *at <= until) {
                let command = io_max.release(at).expect("it is ready");
                gone[command.slot as usize] = at;
            }
        };
        for (slot, &(gap, sectors)) in bios.iter().enumerate() {
            now += Nanos(gap);
            release(&mut io_max, &mut gone, now);
            let bytes = u64::from(sectors) * SECTOR_SIZE;
            if passing && io_max.room(now, Op::Write) >= bytes {
                io_max.pass(now, Op::Write, bytes);
                gone[slot] = now;
            } else {
                io_max.hold(now, Command { slot: slot as u32, op: Op::Write, sector: 0, sectors });
                release(&mut io_max, &mut gone, now);
            }
        }
        release(&mut io_max, &mut gone, Nanos::MAX);
        gone
    }

    proptest::proptest! {
        /// Asking for room first changes nothing: no bio goes earlier or later for it.
        #[test]
        fn what_there_is_room_for_would_not_have_waited(
            bios in proptest::collection::vec((0u64..60_000_000, 1u32..20_000), 1..80),
        ) {
            proptest::prop_assert_eq!(departures(&bios, true), departures(&bios, false));
        }
    }

    #[test]
    fn a_pause_buys_no_more_than_a_slice() {
        let mut io_max = IoMax::new(RATE);
        times(&mut io_max, Op::Read, Nanos::ZERO, 1);
        let at = times(&mut io_max, Op::Read, Nanos::secs(60), 11);
        assert_eq!((at[9], at[10]), (60_000, 60_108));
    }
}
