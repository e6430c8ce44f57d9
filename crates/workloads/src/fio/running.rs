//! A job that runs: opens, reads, writes, waits, and says what it achieved.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use sys::{Access, Advice, Fd, FileAdvice, Mapping, OpenMode, Sys};
use units::{Bytes, Nanos};

use super::job::{Engine, FioJob, Setup};
use super::pick::{Course, Order, Step};

/// CPU time that fio itself uses for one I/O on a CPU of speed 1: the next block, clocks, statistics. Calibration: fio 3.33 in guests of
/// QEMU that count instructions takes 1,790 to 1,890 between two reads, of which every program's 250 for a call are charged with the call; four
/// instructions are taken for a ns. Its null engine does 1 to 2 million IOPS on one core.
const FIO_OVERHEAD: Nanos = Nanos(397);
/// Blocks between two words of progress.
const PROGRESS_BLOCKS: u64 = 1024;

/// A file in use.
#[derive(Clone, Copy)]
struct Open {
    fd: Fd,
    mapping: Option<Mapping>,
}

/// The files of a job that are open, 4 bytes each, as they may be a million.
struct OpenFiles {
    /// Descriptors, or [`OpenFiles::NONE`].
    descriptors: Vec<u32>,
    /// Numbers of the mappings, if the job maps its files; each is as long as the file.
    mappings: Vec<u32>,
    length: Bytes,
}

impl OpenFiles {
    const NONE: u32 = u32::MAX;

    fn new(job: &FioJob) -> OpenFiles {
        let files = job.nr_files as usize;
        let mapped = if job.engine == Engine::Mmap { files } else { 0 };
        let (descriptors, mappings) = (vec![OpenFiles::NONE; files], vec![OpenFiles::NONE; mapped]);
        OpenFiles { descriptors, mappings, length: job.file_size }
    }

    fn get(&self, file: u32) -> Option<Open> {
        let fd = Some(self.descriptors[file as usize]).filter(|fd| *fd != OpenFiles::NONE)?;
        let mapping = self.mappings.get(file as usize).map(|id| Mapping { id: *id, length: self.length });
        Some(Open { fd: Fd(fd), mapping })
    }

    fn add(&mut self, file: u32, open: Open) {
        self.descriptors[file as usize] = open.fd.0;
        if let Some(mapping) = open.mapping {
            debug_assert!(mapping.length == self.length);
            self.mappings[file as usize] = mapping.id;
        }
    }

    fn take(&mut self, file: u32) -> Option<Open> {
        let open = self.get(file);
        self.descriptors[file as usize] = OpenFiles::NONE;
        open
    }
}

/// I/Os of one direction since the ramp time was over.
#[derive(Clone, Copy, Default)]
struct Tally {
    ios: u64,
    /// Time that they took, of all together.
    took: Nanos,
}

/// A job that runs.
pub(super) struct Running<S: Sys> {
    sys: S,
    job: FioJob,
    files: OpenFiles,
    started: Nanos,
    /// What it takes between two I/Os on this machine.
    overhead: Nanos,
    /// Blocks served.
    served: u64,
    /// Writes since the last `fsync`.
    unsynced: u64,
    /// Reads and writes.
    tallies: [Tally; 2],
}

impl<S: Sys> Running<S> {
    /// Runs the job to its end or until the thread is stopped.
    pub(super) async fn run(sys: S, job: FioJob) -> sys::Result<()> {
        if job.start_delay > Nanos::ZERO {
            sys.sleep(job.start_delay).await;
        }
        let mut rng = ChaCha8Rng::seed_from_u64(sys.seed());
        rng.set_stream(job.number + 1);
        let mut course = Course::new(&job);
        let (files, started) = (OpenFiles::new(&job), sys.clock());
        let overhead = Nanos((FIO_OVERHEAD.0 as f64 / sys.info().cpu_speed) as u64);
        let mut running =
            Running { sys, job, files, started, overhead, served: 0, unsynced: 0, tallies: Default::default() };
        while running.goes_on()
            && let Some(step) = course.next(&mut rng)
        {
            running.step(step).await?;
        }
        running.finish(course.open_files().collect()).await
    }

    fn goes_on(&self) -> bool {
        let in_time = |runtime| self.sys.clock().since(self.started) < self.job.ramp + runtime;
        !self.sys.stopping() && self.job.runtime.is_none_or(in_time)
    }

    async fn step(&mut self, step: Step) -> sys::Result<()> {
        match step {
            Step::Open(file) => {
                let open = self.open(file).await?;
                self.files.add(file, open);
            }
            Step::StartOver(file) => {
                let open = self.files.get(file).expect("a file is opened before it is used");
                self.forget(open.fd).await?;
            }
            Step::Close(file) => {
                let open = self.files.take(file).expect("a file is closed once");
                self.close(open).await?;
            }
            Step::Block { file, block, write } => {
                let open = self.files.get(file).expect("a file is opened before it is used");
                self.serve(open, block, write).await?;
                if self.served.is_multiple_of(PROGRESS_BLOCKS) {
                    self.job.tell(&self.sys, self.served as f64 / self.job.blocks() as f64, self.started);
                }
                self.pace().await;
            }
        }
        Ok(())
    }

    /// Opens a file; writers create it then. The kernel is told to forget it (`invalidate`), and how it will be read.
    async fn open(&self, file: u32) -> sys::Result<Open> {
        let (sys, job) = (&self.sys, &self.job);
        let creates = job.pattern.writes() && job.setup == Setup::OnOpen;
        let fd = sys.open(job.name(file), if creates { OpenMode::Create } else { OpenMode::Existing }).await?;
        self.forget(fd).await?;
        if job.hint {
            let sequential = job.pattern.order == Order::Sequential;
            sys.fadvise(fd, if sequential { FileAdvice::Sequential } else { FileAdvice::Random }).await?;
        }
        let mapping = match job.engine {
            Engine::Calls => None,
            Engine::Mmap => Some(self.map(fd).await?),
        };
        Ok(Open { fd, mapping })
    }

    /// Has the kernel forget what of a file is cached, if that was asked for (`file_invalidate_cache()`).
    async fn forget(&self, fd: Fd) -> sys::Result<()> {
        if self.job.invalidate { self.sys.fadvise(fd, FileAdvice::DontNeed).await } else { Ok(()) }
    }

    /// Maps a file, and says how the mapping will be read too (`fio_mmap_file()`).
    async fn map(&self, fd: Fd) -> sys::Result<Mapping> {
        let mapping = self.sys.mmap_file(fd, self.job.file_size).await?;
        if self.job.hint && self.job.pattern.order != Order::Sequential {
            self.sys.madvise(mapping, Advice::Random).await?;
        }
        Ok(mapping)
    }

    async fn close(&self, open: Open) -> sys::Result<()> {
        if let Some(mapping) = open.mapping {
            self.sys.munmap(mapping).await?;
        }
        self.sys.close(open.fd).await
    }

    async fn serve(&mut self, open: Open, block: u32, write: bool) -> sys::Result<()> {
        let (sys, length) = (&self.sys, self.job.block_size);
        sys.compute(self.overhead).await;
        let (offset, before) = (Bytes(u64::from(block) * length.0), sys.clock());
        match (open.mapping, write) {
            (None, true) => sys.write(open.fd, offset, length).await?,
            (None, false) => sys.read(open.fd, offset, length).await.map(drop)?,
            (Some(mapping), true) => sys.touch(mapping, offset, length, Access::Write).await?,
            (Some(mapping), false) => sys.touch(mapping, offset, length, Access::Read).await?,
        }
        let now = sys.clock();
        if now.since(self.started) >= self.job.ramp {
            let tally = &mut self.tallies[usize::from(write)];
            *tally = Tally { ios: tally.ios + 1, took: tally.took + now.since(before) };
        }
        self.served += 1;
        self.unsynced += u64::from(write);
        if self.job.fsync_every.is_some_and(|every| self.unsynced >= every) {
            self.unsynced = 0;
            sys.fsync(open.fd).await?;
        }
        Ok(())
    }

    /// Sleeps as `thinktime` and `rate` say.
    async fn pace(&self) {
        if let Some((time, blocks)) = self.job.think
            && self.served.is_multiple_of(blocks)
        {
            self.sys.sleep(time).await;
        }
        if let Some(rate) = self.job.rate {
            let seconds = (self.served * self.job.block_size.0) as f64 / rate.0 as f64;
            let due = self.started + Nanos((seconds * 1e9) as u64);
            let early = due.since(self.sys.clock());
            if early > Nanos::ZERO {
                self.sys.sleep(early).await;
            }
        }
    }

    /// Closes what is open, and says what was achieved.
    async fn finish(mut self, open: Vec<u32>) -> sys::Result<()> {
        let measured = self.sys.clock().since(self.started + self.job.ramp).as_secs_f64();
        for file in open {
            // One whose open was announced and did not come about any more has no descriptor.
            if let Some(open) = self.files.take(file) {
                if self.job.end_fsync {
                    self.sys.fsync(open.fd).await?;
                }
                self.close(open).await?;
            }
        }
        if self.job.measured && measured > 0.0 {
            let names = [("fio_read_iops", "fio_read_lat_us"), ("fio_write_iops", "fio_write_lat_us")];
            for ((iops, latency), tally) in names.into_iter().zip(self.tallies).filter(|(_, tally)| tally.ios > 0) {
                self.sys.sample(iops, tally.ios as f64 / measured);
                self.sys.sample(latency, tally.took.as_micros_f64() / tally.ios as f64);
            }
        }
        Ok(())
    }
}
