//! Counters over time.
//!
//! A process of its own reads `/proc/vmstat` at fixed times into memory that it has filled and locked beforehand, so that it
//! neither allocates nor writes while the workload runs.

use std::fs;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use rustix::process::{Pid, Signal, WaitOptions};
use rustix::thread::futex;
use rustix::time::Timespec;
use units::Nanos;

use crate::process::Tell;
use crate::shared::{Shared, monotonic, wake};
use crate::threads::{exit_after, fork};

const VMSTAT: &str = "/proc/vmstat";
/// Room for the rows: a row of 6.12 takes about 1.5 KiB, so that 1300 fit.
const ROOM_BYTES: usize = 2 << 20;

/// Readings of the same counters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Series {
    /// Names of the counters.
    pub names: Vec<String>,
    /// Time since the start of the run, and the values.
    pub rows: Vec<(Nanos, Vec<u64>)>,
    /// It had to stop before the workload's end, because its memory was full.
    pub cut: bool,
}

#[repr(C)]
struct Room {
    stop: AtomicU32,
    cut: AtomicU32,
    /// Words in use.
    used: AtomicUsize,
    words: [AtomicU64; ROOM_BYTES / 8],
}

/// The process that reads the counters.
pub(crate) struct Sampler {
    room: &'static Room,
    names: Vec<String>,
    pid: Option<Pid>,
}

impl Sampler {
    /// Starts reading every `interval`, from the start of the run on.
    pub(crate) fn start(shared: &'static Shared, interval: Nanos, tell: Option<Tell>) -> std::io::Result<Sampler> {
        let text = fs::read_to_string(VMSTAT)?;
        let names = text.lines().filter_map(|line| Some(line.split_once(' ')?.0.to_owned())).collect();
        let room = map_room()?;
        let number = shared.new_thread(None);
        match fork()? {
            Some(pid) => Ok(Sampler { room, names, pid: Some(pid) }),
            None => exit_after(shared, number, || sample(shared, room, interval, text.len(), tell)),
        }
    }

    /// Ends the process and gives what it read.
    pub(crate) fn stop(mut self) -> Series {
        self.end();
        let used = self.room.used.load(Ordering::Acquire);
        let words: Vec<u64> = self.room.words[..used].iter().map(|word| word.load(Ordering::Relaxed)).collect();
        let rows = words.chunks_exact(self.names.len() + 1).map(|row| (Nanos(row[0]), row[1..].to_vec()));
        let cut = self.room.cut.load(Ordering::Acquire) != 0;
        Series { rows: rows.collect(), cut, names: self.names.clone() }
    }

    fn end(&mut self) {
        let Some(pid) = self.pid.take() else { return };
        self.room.stop.store(1, Ordering::Release);
        wake(&self.room.stop);
        // It may still wait for a start that never came. What it has read is in the room.
        let _ = rustix::process::kill_process(pid, Signal::KILL);
        let _ = rustix::io::retry_on_intr(|| rustix::process::waitpid(Some(pid), WaitOptions::empty()));
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.end();
    }
}

#[allow(unsafe_code)]
fn map_room() -> std::io::Result<&'static Room> {
    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
    // SAFETY: a new, zeroed mapping of the type's size that is never unmapped; the type holds atomics only.
    unsafe {
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let address = mmap_anonymous(std::ptr::null_mut(), size_of::<Room>(), protection, flags)?;
        Ok(&*address.cast::<Room>())
    }
}

/// Keeps the rows in memory. A user who may not lock it risks a sampler that is late, which its time stamps tell.
#[allow(unsafe_code)]
fn lock_memory(room: &Room) {
    let address: *const Room = room;
    // SAFETY: the whole of a mapping that is never unmapped.
    let _ = unsafe { rustix::mm::mlock(address.cast_mut().cast(), size_of::<Room>()) };
}

fn sample(shared: &Shared, room: &Room, interval: Nanos, text_len: usize, tell: Option<Tell>) {
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    let Ok(file) = fs::File::open(VMSTAT) else { return };
    // Numbers grow; the text with the largest ones is less than twice as long.
    let mut text = vec![0; text_len * 2];
    lock_memory(room);
    shared.wait_for_start();
    let mut next = monotonic();
    while room.stop.load(Ordering::Acquire) == 0 {
        let Ok(len) = read_all(&file, &mut text) else { return };
        if !room.push(shared.now(), &text[..len]) {
            room.cut.store(1, Ordering::Release);
            return;
        }
        if let Some(tell) = tell {
            shared.tell(tell);
        }
        next += interval;
        let wait = next.since(monotonic());
        let timeout = Timespec { tv_sec: (wait.0 / 1_000_000_000) as i64, tv_nsec: (wait.0 % 1_000_000_000) as i64 };
        // It ends when the time is over, or when the word has changed.
        let _ = futex::wait(&room.stop, futex::Flags::empty(), 0, Some(&timeout));
    }
}

/// The kernel gives the text in pieces.
fn read_all(file: &fs::File, text: &mut [u8]) -> std::io::Result<usize> {
    let mut len = 0;
    loop {
        match file.read_at(&mut text[len..], len as u64)? {
            0 => return Ok(len),
            read => len += read,
        }
    }
}

impl Room {
    /// Appends a row; false if it does not fit.
    fn push(&self, at: Nanos, text: &[u8]) -> bool {
        let used = self.used.load(Ordering::Relaxed);
        let values = text.split(|byte| *byte == b'\n').filter_map(value_of);
        let mut len = 0;
        for value in std::iter::once(at.0).chain(values) {
            let Some(word) = self.words.get(used + len) else { return false };
            word.store(value, Ordering::Relaxed);
            len += 1;
        }
        self.used.store(used + len, Ordering::Release);
        true
    }
}

/// The number at the end of `name number`.
fn value_of(line: &[u8]) -> Option<u64> {
    let blank = line.iter().position(|byte| *byte == b' ')?;
    Some(line[blank + 1..].iter().fold(0u64, |sum, digit| sum.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_without_allocating() {
        assert_eq!(value_of(b"pgfault 1234"), Some(1234));
        assert_eq!(value_of(b""), None);
    }

    #[test]
    fn counters_are_read_until_stopped() {
        let shared = Shared::map().unwrap();
        let sampler = Sampler::start(shared, Nanos::millis(5), None).unwrap();
        shared.start();
        std::thread::sleep(std::time::Duration::from_millis(60));
        let series = sampler.stop();
        assert!(series.rows.len() >= 2, "{} rows", series.rows.len());
        let pgfault = series.names.iter().position(|name| name == "pgfault").unwrap();
        assert!(series.rows.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1[pgfault] <= w[1].1[pgfault]));
        assert!(!series.cut);
    }
}
