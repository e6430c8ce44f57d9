//! Memory that all processes of a run share: stop flags, barriers, directories, the first failure, the log.
//!
//! The log is append-only: a writer reserves room with one atomic addition and fills it, so that recording a sample
//! neither waits nor wakes anybody. It is read when all writers have ended.

use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use rustix::thread::futex;
use units::Nanos;

const THREADS_MAX: usize = 4096;
const BARRIERS_MAX: usize = 4096;
const DIRS_MAX: usize = 4096;
const GROUPS_MAX: usize = 1024;
/// Longest name of a directory or path of a group, in bytes.
const NAME_MAX: usize = 120;
/// Room for the log: about two million samples. Pages that are never written take no memory.
const LOG_BYTES: usize = 64 << 20;

/// A thread or a process of the workload.
#[derive(Default)]
pub(crate) struct ThreadSlot {
    /// It was asked to stop.
    pub(crate) stop: AtomicU32,
    /// It has ended.
    pub(crate) done: AtomicU32,
    /// Process that it runs in.
    pub(crate) pid: AtomicI32,
    /// One more than the number of the thread that spawned it; 0 if none did.
    parent: AtomicU32,
}

#[repr(C)]
pub(crate) struct BarrierSlot {
    parties: AtomicU32,
    waiting: AtomicU32,
    round: AtomicU32,
}

#[repr(C)]
struct NameSlot {
    len: AtomicU32,
    name: [std::sync::atomic::AtomicU8; NAME_MAX],
}

/// Names that all processes know by the same numbers.
#[repr(C)]
struct Names<const N: usize> {
    used: AtomicU32,
    slots: [NameSlot; N],
}

impl<const N: usize> Names<N> {
    /// The number of a name, the same as before if it was asked for before; none if it is too long.
    fn number(&self, name: &str, what: &str) -> Option<u32> {
        if name.len() > NAME_MAX {
            return None;
        }
        let known = (0..self.used.load(Ordering::Acquire).min(N as u32)).find(|n| self.is(*n, name));
        if known.is_some() {
            return known;
        }
        let number = take(&self.used, N, what);
        let slot = &self.slots[number as usize];
        for (to, from) in slot.name.iter().zip(name.bytes()) {
            to.store(from, Ordering::Relaxed);
        }
        slot.len.store(name.len() as u32, Ordering::Release);
        Some(number)
    }

    fn is(&self, number: u32, name: &str) -> bool {
        let slot = &self.slots[number as usize];
        let len = slot.len.load(Ordering::Acquire) as usize;
        len == name.len()
            && slot.name[..len].iter().zip(name.bytes()).all(|(b, wanted)| b.load(Ordering::Relaxed) == wanted)
    }

    /// The name of this number, if there is one.
    fn name(&self, number: u32) -> Option<String> {
        let slot = self.slots.get(number as usize)?;
        let len = slot.len.load(Ordering::Acquire) as usize;
        let bytes = slot.name[..len].iter().map(|b| b.load(Ordering::Relaxed)).collect();
        String::from_utf8(bytes).ok().filter(|name| !name.is_empty())
    }
}

/// The shared memory. Only atomics, so that it may be changed through shared references from any process; all zeros
/// is its initial state, which is what an anonymous mapping holds.
#[repr(C)]
pub(crate) struct Shared {
    /// `CLOCK_MONOTONIC` at the start of the run; 0 until it starts.
    start_ns: AtomicU64,
    /// The run may go.
    go: AtomicU32,
    failure: AtomicU32,
    pub(crate) main_pid: AtomicI32,
    threads_used: AtomicU32,
    barriers_used: AtomicU32,
    pipes_used: AtomicU32,
    log_used: AtomicUsize,
    /// One more than the place in the log of the last phase; 0 before the first.
    phase_at: AtomicUsize,
    /// How much of the workload is done, as the bits of an `f64`.
    done: AtomicU64,
    threads: [ThreadSlot; THREADS_MAX],
    barriers: [BarrierSlot; BARRIERS_MAX],
    dirs: Names<DIRS_MAX>,
    groups: Names<GROUPS_MAX>,
    log: [AtomicU64; LOG_BYTES / 8],
}

/// How far a workload is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Told<'a> {
    /// Time since its start.
    pub now: Nanos,
    /// The phase that it is in, cut to 64 bytes; `start` before the first.
    pub phase: &'a str,
    /// How much of it is done, from 0 to 1, as far as it says.
    pub done: f64,
}

/// Longest name of a phase that is told, in bytes.
const PHASE_MAX: usize = 64;

/// An entry of the log.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Entry {
    /// A sample of a metric.
    Sample { metric: String, value: f64 },
    /// A phase began.
    Phase { at: Nanos, name: String },
}

const KIND_SAMPLE: u64 = 1;
const KIND_PHASE: u64 = 2;

impl Shared {
    /// Maps fresh shared memory. It stays mapped for the life of the process: threads of a run that failed may still
    /// look at it.
    #[allow(unsafe_code)]
    pub(crate) fn map() -> rustix::io::Result<&'static Shared> {
        use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
        // SAFETY: a new mapping of the type's size, zeroed, page-aligned and never unmapped; all zeros is a valid
        // value, and every field is atomic.
        unsafe {
            let address = mmap_anonymous(
                std::ptr::null_mut(),
                size_of::<Shared>(),
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED | MapFlags::NORESERVE,
            )?;
            Ok(&*address.cast::<Shared>())
        }
    }

    /// Lets the workload start; its clock starts now.
    pub(crate) fn start(&self) {
        self.start_ns.store(monotonic().0, Ordering::Relaxed);
        self.go.store(1, Ordering::Release);
        wake(&self.go);
    }

    /// Waits for [`Shared::start`].
    pub(crate) fn wait_for_start(&self) {
        wait_until(&self.go, |go| go != 0);
    }

    /// Time since the start.
    pub(crate) fn now(&self) -> Nanos {
        monotonic().since(Nanos(self.start_ns.load(Ordering::Relaxed)))
    }

    /// Keeps the first failure.
    pub(crate) fn fail(&self, error: sys::SysError) {
        let code = crate::errno::code_of(error);
        let _ = self.failure.compare_exchange(0, code, Ordering::AcqRel, Ordering::Relaxed);
    }

    pub(crate) fn failure(&self) -> Option<sys::SysError> {
        crate::errno::error_of(self.failure.load(Ordering::Acquire))
    }

    /// A new thread, spawned by another one or by none.
    pub(crate) fn new_thread(&self, parent: Option<u32>) -> u32 {
        let number = take(&self.threads_used, THREADS_MAX, "threads");
        self.thread(number).parent.store(parent.map_or(0, |parent| parent + 1), Ordering::Release);
        number
    }

    /// Whether a thread, or one that it comes from, was asked to stop.
    pub(crate) fn is_stopping(&self, number: u32) -> bool {
        let mut line =
            std::iter::successors(Some(number), |n| self.thread(*n).parent.load(Ordering::Acquire).checked_sub(1));
        line.any(|number| self.thread(number).stop.load(Ordering::Acquire) != 0)
    }

    pub(crate) fn thread(&self, number: u32) -> &ThreadSlot {
        &self.threads[number as usize]
    }

    pub(crate) fn new_barrier(&self, parties: u32) -> u32 {
        let number = take(&self.barriers_used, BARRIERS_MAX, "barriers");
        self.barriers[number as usize].parties.store(parties, Ordering::Release);
        number
    }

    /// Number of a new pipe.
    pub(crate) fn new_pipe(&self) -> u32 {
        self.pipes_used.fetch_add(1, Ordering::AcqRel)
    }

    /// Waits until all parties have come.
    pub(crate) fn wait_at_barrier(&self, number: u32) {
        let barrier = &self.barriers[number as usize];
        let round = barrier.round.load(Ordering::Acquire);
        if barrier.waiting.fetch_add(1, Ordering::AcqRel) + 1 == barrier.parties.load(Ordering::Acquire) {
            barrier.waiting.store(0, Ordering::Release);
            barrier.round.fetch_add(1, Ordering::AcqRel);
            wake(&barrier.round);
        } else {
            wait_until(&barrier.round, |now| now != round);
        }
    }

    /// Number of a directory that was made, the same as before if it was asked for before; none if its name is too long.
    pub(crate) fn new_dir(&self, name: &str) -> Option<u32> {
        self.dirs.number(name, "directories")
    }

    /// Name of a directory; none if there is none of this number.
    pub(crate) fn dir(&self, number: u32) -> Option<String> {
        self.dirs.name(number)
    }

    /// The same of a cgroup.
    pub(crate) fn new_group(&self, path: &str) -> Option<u32> {
        self.groups.number(path, "groups")
    }

    /// Path of a cgroup below the run's; none if there is none of this number.
    pub(crate) fn group(&self, number: u32) -> Option<String> {
        self.groups.name(number)
    }

    /// Paths of all cgroups.
    pub(crate) fn groups(&self) -> impl Iterator<Item = String> {
        (0..self.groups.used.load(Ordering::Acquire).min(GROUPS_MAX as u32)).filter_map(|number| self.group(number))
    }

    pub(crate) fn sample(&self, metric: &str, value: f64) {
        // A log that is full is told at the end.
        let _ = self.append(KIND_SAMPLE, value.to_bits(), metric);
    }

    pub(crate) fn phase(&self, name: &str) {
        if let Some(at) = self.append(KIND_PHASE, self.now().0, name) {
            self.phase_at.store(at + 1, Ordering::Release);
        }
    }

    /// An entry is a word with its kind and the length of its text, a word with its value, and the text.
    /// Its place; none if there is no room for it.
    fn append(&self, kind: u64, value: u64, text: &str) -> Option<usize> {
        let words = 2 + text.len().div_ceil(8);
        let at = self.log_used.fetch_add(words, Ordering::AcqRel);
        let room = self.log.get(at..at + words)?;
        room[1].store(value, Ordering::Relaxed);
        for (word, chunk) in room[2..].iter().zip(text.as_bytes().chunks(8)) {
            let mut bytes = [0; 8];
            bytes[..chunk.len()].copy_from_slice(chunk);
            word.store(u64::from_le_bytes(bytes), Ordering::Relaxed);
        }
        room[0].store(kind | (text.len() as u64) << 8, Ordering::Release);
        Some(at)
    }

    /// The text of a complete entry, without allocating; what is longer than `buffer` is cut.
    fn text_of<'b>(&self, at: usize, buffer: &'b mut [u8; PHASE_MAX]) -> &'b str {
        let len = ((self.log[at].load(Ordering::Acquire) >> 8) as usize).min(PHASE_MAX);
        for (chunk, word) in buffer[..len].chunks_mut(8).zip(&self.log[at + 2..]) {
            chunk.copy_from_slice(&word.load(Ordering::Relaxed).to_le_bytes()[..chunk.len()]);
        }
        std::str::from_utf8(&buffer[..len]).unwrap_or("?")
    }

    /// So much of the workload is done; whether that is another hundredth than before.
    pub(crate) fn set_done(&self, done: f64) -> bool {
        let before = f64::from_bits(self.done.swap(done.to_bits(), Ordering::Relaxed));
        (before * 100.0).floor() != (done * 100.0).floor()
    }

    /// Calls `tell` with how far the workload is.
    pub(crate) fn tell<R>(&self, tell: impl FnOnce(&Told<'_>) -> R) -> R {
        let mut buffer = [0; PHASE_MAX];
        let phase = match self.phase_at.load(Ordering::Acquire) {
            0 => "start",
            at => self.text_of(at - 1, &mut buffer),
        };
        let started = self.start_ns.load(Ordering::Relaxed) > 0;
        let now = if started { self.now() } else { Nanos::ZERO };
        tell(&Told { now, phase, done: f64::from_bits(self.done.load(Ordering::Relaxed)) })
    }

    /// All entries in order; none if the log was too small for them.
    pub(crate) fn entries(&self) -> Option<Vec<Entry>> {
        let used = self.log_used.load(Ordering::Acquire);
        let log = self.log.get(..used)?;
        let mut entries = Vec::new();
        let mut at = 0;
        while at < used {
            let head = log[at].load(Ordering::Acquire);
            if head == 0 {
                // Its writer was killed while it wrote; what follows cannot be found.
                break;
            }
            let (kind, len) = (head & 0xff, (head >> 8) as usize);
            let value = log[at + 1].load(Ordering::Relaxed);
            let words = &log[at + 2..at + 2 + len.div_ceil(8)];
            let mut bytes: Vec<u8> = words.iter().flat_map(|w| w.load(Ordering::Relaxed).to_le_bytes()).collect();
            bytes.truncate(len);
            let text = String::from_utf8_lossy(&bytes).into_owned();
            entries.push(match kind {
                KIND_SAMPLE => Entry::Sample { metric: text, value: f64::from_bits(value) },
                _ => Entry::Phase { at: Nanos(value), name: text },
            });
            at += 2 + len.div_ceil(8);
        }
        Some(entries)
    }
}

/// The next number of a table.
fn take(used: &AtomicU32, max: usize, what: &str) -> u32 {
    let number = used.fetch_add(1, Ordering::AcqRel);
    assert!((number as usize) < max, "a workload may have {max} {what}");
    number
}

/// `CLOCK_MONOTONIC`.
pub(crate) fn monotonic() -> Nanos {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Nanos(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
}

/// Sleeps until the word, which other processes may change, is as wanted.
pub(crate) fn wait_until(word: &AtomicU32, wanted: impl Fn(u32) -> bool) {
    loop {
        let value = word.load(Ordering::Acquire);
        if wanted(value) {
            return;
        }
        // A changed word, a signal and a wake-up all mean: look again.
        let _ = futex::wait(word, futex::Flags::empty(), value, None);
    }
}

/// Wakes all that wait for the word.
pub(crate) fn wake(word: &AtomicU32) {
    futex::wake(word, futex::Flags::empty(), i32::MAX as u32).expect("the word is mapped");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_back_in_order() {
        let shared = Shared::map().unwrap();
        assert_eq!(shared.tell(|told| told.phase.to_string()), "start");
        shared.start();
        shared.sample("fault-base", 1.5);
        shared.phase("a phase with a long name");
        shared.sample("m", -2.0);
        assert_eq!([0.005, 0.25, 0.255, 0.25].map(|done| shared.set_done(done)), [false, true, false, false]);
        let told = |told: &Told<'_>| (told.phase.to_string(), told.done);
        assert_eq!(shared.tell(told), ("a phase with a long name".to_string(), 0.25));
        let entries = shared.entries().unwrap();
        assert_eq!(entries[0], Entry::Sample { metric: "fault-base".into(), value: 1.5 });
        assert!(matches!(&entries[1], Entry::Phase { name, .. } if name == "a phase with a long name"));
        assert_eq!(entries[2], Entry::Sample { metric: "m".into(), value: -2.0 });
        assert_eq!(entries.len(), 3);
    }

    #[test]
    fn a_log_that_is_full_says_so() {
        let shared = Shared::map().unwrap();
        let name = "x".repeat(1 << 16);
        for _ in 0..LOG_BYTES / name.len() + 1 {
            shared.sample(&name, 0.0);
        }
        assert_eq!(shared.entries(), None);
    }

    #[test]
    fn the_first_failure_is_kept() {
        let shared = Shared::map().unwrap();
        assert_eq!(shared.failure(), None);
        shared.fail(sys::SysError::NoSpace);
        shared.fail(sys::SysError::Io);
        assert_eq!(shared.failure(), Some(sys::SysError::NoSpace));
    }

    #[test]
    fn directories_are_found_by_number() {
        let shared = Shared::map().unwrap();
        let (a, b) = (shared.new_dir("a/b").unwrap(), shared.new_dir("c").unwrap());
        assert_eq!(shared.new_dir("a/b"), Some(a), "the same directory again");
        assert_eq!((shared.dir(a).as_deref(), shared.dir(b).as_deref()), (Some("a/b"), Some("c")));
        assert_eq!(shared.dir(b + 1), None);
        assert_eq!(shared.new_dir(&"x".repeat(NAME_MAX + 1)), None);
    }
}
