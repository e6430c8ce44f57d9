//! Runs the processes of a case. Any call may be refused: a program goes on with what it has.

use std::sync::{Arc, Mutex};

use sys::{Access, Advice, Dir, Fd, FileName, Mapping, OpenMode, SpawnOptions, Sys};
use units::{Bytes, Nanos, PAGE_SIZE};

use super::case::*;

/// Path of the directory of all.
const COMMON: &str = "swarm/all";
/// Names from here on are those of [`Op::Many`].
const MANY: u64 = 64;
/// Most files of one [`Op::Many`].
const MANY_MAX: u64 = 600;
/// Most bytes of a call on a pipe, which holds half as much.
const WRITTEN_AT_ONCE: u64 = 32 * PAGE_SIZE;
/// Daemons are idle after so long.
const SETTLE: Nanos = Nanos::secs(45);

/// What the threads of a process share.
struct Shared {
    mappings: [Option<Mapping>; MAPPINGS as usize],
    fds: [Option<Fd>; FDS as usize],
}

/// What a thread knows.
#[derive(Clone)]
struct Thread<S: Sys> {
    sys: S,
    shared: Arc<Mutex<Shared>>,
    /// The directory of its process and that of all.
    dirs: [Dir; 2],
    /// Number of its process.
    process: usize,
    /// Pages of the machine.
    machine: u64,
}

/// Path of the directory of a process.
fn own(process: usize) -> String {
    format!("swarm/{process}")
}

/// The whole program.
pub(super) async fn run<S: Sys>(sys: S, case: Arc<Case>) -> sys::Result<()> {
    let Ok(common) = sys.mkdir(COMMON).await else { return Ok(()) };
    let mut dirs = vec![common];
    let mut processes = Vec::new();
    for number in 0..case.processes.len() {
        let Ok(own) = sys.mkdir(&own(number)).await else { continue };
        dirs.push(own);
        let its = Arc::clone(&case);
        let process = sys.spawn(SpawnOptions::process(format!("process-{number}")), move |sys| {
            run_process(sys, its, number, [own, common])
        });
        processes.push((process, case.processes[number].stop_ms));
    }
    for (process, stop) in &processes {
        if let Some(ms) = stop {
            sys.sleep(Nanos::millis(*ms)).await;
            sys.stop(*process);
        }
    }
    for (process, _) in processes {
        sys.join(process).await;
    }
    clean_up(&sys, &dirs).await;
    Ok(())
}

/// Leaves the machine as it was.
async fn clean_up<S: Sys>(sys: &S, dirs: &[Dir]) {
    for dir in dirs {
        empty(sys, *dir).await;
        let _ = sys.rmdir(*dir).await;
    }
    let _ = sys.sync().await;
    sys.sleep(SETTLE).await;
}

/// Removes all files of a directory.
async fn empty<S: Sys>(sys: &S, dir: Dir) {
    for number in (0..u64::from(NAMES)).chain(MANY..MANY + 256 + MANY_MAX) {
        // A name that does not exist is refused, and so is one while memory is short.
        let _ = sys.unlink(FileName { dir, number }).await;
    }
}

async fn run_process<S: Sys>(sys: S, case: Arc<Case>, number: usize, dirs: [Dir; 2]) {
    let shared = Arc::new(Mutex::new(Shared { mappings: Default::default(), fds: Default::default() }));
    let process = &case.processes[number];
    let machine = case.machine.pages();
    for (at, round) in process.rounds.iter().enumerate() {
        let barrier = sys.barrier(round.len() as u32);
        let mut threads = Vec::new();
        for nth in 1..round.len() {
            let (case, shared) = (Arc::clone(&case), Arc::clone(&shared));
            threads.push(sys.spawn(SpawnOptions::thread(format!("thread-{number}-{nth}")), move |sys: S| async move {
                sys.barrier_wait(barrier).await;
                let thread = Thread { sys, shared, dirs, process: number, machine };
                thread.run(&case.processes[number].rounds[at][nth]).await;
            }));
        }
        sys.barrier_wait(barrier).await;
        let thread = Thread { sys: sys.clone(), shared: Arc::clone(&shared), dirs, process: number, machine };
        thread.run(&round[0]).await;
        if process.leaves_threads && at + 1 == process.rounds.len() {
            return;
        }
        for thread in threads {
            sys.join(thread).await;
        }
    }
}

impl<S: Sys> Thread<S> {
    async fn run(&self, ops: &[Op]) {
        for op in ops {
            if self.sys.stopping() {
                return;
            }
            // What the system refuses is part of the test.
            let _ = self.step(op).await;
        }
    }

    fn mapping(&self, slot: u8) -> sys::Result<Mapping> {
        self.shared.lock().unwrap().mappings[slot as usize].ok_or(sys::SysError::Invalid)
    }

    fn fd(&self, slot: u8) -> sys::Result<Fd> {
        self.shared.lock().unwrap().fds[slot as usize].ok_or(sys::SysError::BadFd)
    }

    fn range(&self, from: Share, size: Share, odd: u16) -> (Bytes, Bytes) {
        let odd = u64::from(odd);
        let (from, size) = (from.of(self.machine) - 1, size.of(self.machine));
        (Bytes(from * PAGE_SIZE + odd / 2), Bytes(size * PAGE_SIZE - odd))
    }

    fn name(&self, name: u8, shared: bool) -> FileName {
        FileName { dir: self.dirs[usize::from(shared)], number: u64::from(name) }
    }

    async fn step(&self, op: &Op) -> sys::Result<()> {
        let sys = &self.sys;
        match *op {
            Op::Map { slot, size, huge_aligned } => self.map(slot, size, huge_aligned).await.map(drop),
            Op::Fill { slot, size, huge, reads } => self.fill(slot, size, huge, reads).await,
            Op::Unmap { slot } => sys.munmap(self.mapping(slot)?).await,
            Op::Advise { slot, advice } => sys.madvise(self.mapping(slot)?, advice).await,
            Op::Touch { slot, from, size, access } => self.touch(slot, from, size, access).await,
            Op::Open { fd, name, shared, create } => {
                let mode = if create { OpenMode::Create } else { OpenMode::Existing };
                let opened = sys.open(self.name(name, shared), mode).await?;
                let before = self.shared.lock().unwrap().fds[fd as usize].replace(opened);
                match before {
                    Some(fd) => sys.close(fd).await,
                    None => Ok(()),
                }
            }
            Op::Close { fd } => sys.close(self.fd(fd)?).await,
            Op::Write { fd, from, size, odd } => {
                let (offset, length) = self.range(from, size, odd);
                sys.write(self.fd(fd)?, offset, length).await
            }
            Op::Read { fd, from, size, odd } => {
                let (offset, length) = self.range(from, size, odd);
                sys.read(self.fd(fd)?, offset, length).await.map(drop)
            }
            Op::Truncate { fd, size } => {
                sys.truncate(self.fd(fd)?, Bytes((size.of(self.machine) - 1) * PAGE_SIZE)).await
            }
            Op::Fsync { fd } => sys.fsync(self.fd(fd)?).await,
            Op::Fadvise { fd, advice } => sys.fadvise(self.fd(fd)?, advice).await,
            Op::Unlink { name, shared } => sys.unlink(self.name(name, shared)).await,
            Op::Rmdir { shared, emptied } => self.remake(shared, emptied).await,
            Op::Sync => sys.sync().await,
            Op::Stream { name, shared, size, reads } => self.stream(self.name(name, shared), size, reads).await,
            Op::Many { first, size, pages, remove } => self.many(first, size, pages, remove).await,
            Op::Pipe { written, read, odd } => self.pipe(written, read, odd).await,
            Op::Sleep { us } => {
                sys.sleep(Nanos::micros(u64::from(us))).await;
                Ok(())
            }
            Op::Compute { us } => {
                sys.compute(Nanos::micros(u64::from(us))).await;
                Ok(())
            }
        }
    }

    async fn map(&self, slot: u8, size: Share, huge_aligned: bool) -> sys::Result<Mapping> {
        let align = Bytes(if huge_aligned { 512 } else { 1 } * PAGE_SIZE);
        let mapping = self.sys.mmap(Bytes(size.of(self.machine) * PAGE_SIZE), align).await?;
        let before = self.shared.lock().unwrap().mappings[slot as usize].replace(mapping);
        if let Some(before) = before {
            // It may be gone already.
            let _ = self.sys.munmap(before).await;
        }
        Ok(mapping)
    }

    async fn fill(&self, slot: u8, size: Share, huge: bool, reads: u8) -> sys::Result<()> {
        let mapping = self.map(slot, size, huge).await?;
        if huge {
            self.sys.madvise(mapping, Advice::HugePage).await?;
        }
        self.sys.touch(mapping, Bytes(0), mapping.length, Access::Write).await?;
        for _ in 0..reads {
            self.sys.touch(mapping, Bytes(0), mapping.length, Access::Read).await?;
        }
        Ok(())
    }

    /// Others may use the directory meanwhile: what they make in it keeps it.
    async fn remake(&self, shared: bool, emptied: bool) -> sys::Result<()> {
        let (dir, path) = (self.dirs[usize::from(shared)], if shared { COMMON.to_string() } else { own(self.process) });
        if emptied {
            empty(&self.sys, dir).await;
        }
        let removed = self.sys.rmdir(dir).await;
        assert_eq!(self.sys.mkdir(&path).await?, dir, "a directory of one name is one");
        removed
    }

    async fn stream(&self, name: FileName, size: Share, reads: u8) -> sys::Result<()> {
        let length = Bytes(size.of(self.machine) * PAGE_SIZE);
        let fd = self.sys.open(name, OpenMode::Create).await?;
        let mut done = self.sys.write(fd, Bytes(0), length).await;
        for _ in 0..reads {
            done = done.and(self.sys.read(fd, Bytes(0), length).await.map(drop));
        }
        self.sys.close(fd).await.and(done)
    }

    async fn touch(&self, slot: u8, from: u8, size: Share, access: Access) -> sys::Result<()> {
        let mapping = self.mapping(slot)?;
        let pages = mapping.length.0 / PAGE_SIZE;
        let from = pages * u64::from(from) / 256;
        let size = size.of(self.machine).min(pages - from);
        self.sys.touch(mapping, Bytes(from * PAGE_SIZE), Bytes(size * PAGE_SIZE), access).await
    }

    /// The reader reads at least so much, unless the writer ends before.
    async fn pipe(&self, written: Share, read: Share, odd: u16) -> sys::Result<()> {
        let [written, read] = [written, read].map(|share| share.of(self.machine) * PAGE_SIZE);
        let call = Bytes(WRITTEN_AT_ONCE - u64::from(odd));
        let pipe = self.sys.pipe().await?;
        let writer = self.sys.spawn(SpawnOptions::process("writer").stdout(pipe), move |sys: S| async move {
            for _ in 0..written.div_ceil(call.0) {
                if sys.write_stdout(call).await.is_err() {
                    return;
                }
            }
        });
        let reader = self.sys.spawn(SpawnOptions::process("reader").stdin(pipe), move |sys: S| async move {
            let mut left = read;
            while left > 0 {
                match sys.read_stdin(call).await {
                    Ok(Bytes(bytes)) if bytes > 0 => left = left.saturating_sub(bytes),
                    _ => return,
                }
            }
        });
        self.sys.close_pipe(pipe).await?;
        self.sys.join(writer).await;
        self.sys.join(reader).await;
        Ok(())
    }

    async fn many(&self, first: u8, size: Share, pages: u8, remove: bool) -> sys::Result<()> {
        let first = MANY + u64::from(first);
        for number in first..first + size.of(self.machine).min(MANY_MAX) {
            let name = FileName { dir: self.dirs[0], number };
            if remove {
                self.sys.unlink(name).await?;
                continue;
            }
            let fd = self.sys.open(name, OpenMode::Create).await?;
            let written = self.sys.write(fd, Bytes(0), Bytes(u64::from(pages) * PAGE_SIZE)).await;
            self.sys.close(fd).await?;
            written?;
        }
        Ok(())
    }
}
