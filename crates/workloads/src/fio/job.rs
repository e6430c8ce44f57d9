//! Jobs: what they are, how their files are set up, and the process that starts them.

use sys::{Dir, FileName, OpenMode, SpawnOptions, Sys, SysError, Thread};
use units::{Bytes, Nanos};

use super::pick::Pattern;
use super::running::Running;
use crate::steps::{join_all, start};

/// `file_service_type=`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FileService {
    /// `roundrobin:N`: the next file after N I/Os.
    RoundRobin(u32),
    /// `random:N`: a random file, changed after N I/Os.
    Random(u32),
    /// `sequential`: the next file when this one has no block left.
    Sequential,
}

/// `ioengine=`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Engine {
    /// `read()` and `write()`, one after another.
    Calls,
    /// Loads and stores in a shared mapping.
    Mmap,
}

/// What is done about a file before the jobs start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Setup {
    /// It is asked for; who opens it for writing creates it (`create_on_open`).
    OnOpen,
    /// It is there, empty if it was not.
    Empty,
    /// It is there as long as it will be, with data.
    Full {
        /// Whether its data is on the disk then (`create_fsync`).
        fsync: bool,
    },
}

/// How far a job is, for those who wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    /// How much of the whole workload is done when the job starts, from 0 to 1.
    pub(crate) from: f64,
    /// And when it ends.
    pub(crate) to: f64,
    /// How long the job takes, if it is not over with its blocks.
    pub(crate) time: Option<Nanos>,
}

impl Share {
    /// How much of the whole is done once this share of the job is.
    pub(crate) fn at(&self, done: f64) -> f64 {
        self.from + (self.to - self.from) * done
    }
}

/// A clone of a job section.
#[derive(Clone, Debug)]
pub(crate) struct FioJob {
    /// `rw`.
    pub(crate) pattern: Pattern,
    /// `bs`.
    pub(crate) block_size: Bytes,
    /// `filesize`.
    pub(crate) file_size: Bytes,
    /// `nrfiles`.
    pub(crate) nr_files: u32,
    /// `file_service_type`.
    pub(crate) service: FileService,
    /// `time_based`: goes on until it is stopped, or its time is over.
    pub(crate) time_based: bool,
    /// `runtime`: ends after so long, the ramp time apart.
    pub(crate) runtime: Option<Nanos>,
    /// `ramp_time`: what is done before is not measured.
    pub(crate) ramp: Nanos,
    /// `startdelay`.
    pub(crate) start_delay: Nanos,
    /// `thinktime`: how long it sleeps, and after how many blocks.
    pub(crate) think: Option<(Nanos, u64)>,
    /// `rate`: bytes per second at most.
    pub(crate) rate: Option<Bytes>,
    /// `io_size` times `loops`, if it is not the size of all files once.
    pub(crate) io_size: Option<Bytes>,
    /// `ioengine`.
    pub(crate) engine: Engine,
    /// What is done about its files first.
    pub(crate) setup: Setup,
    /// `invalidate`: drops what of a file is cached when it is opened.
    pub(crate) invalidate: bool,
    /// `fadvise_hint`: says how a file will be read when it is opened.
    pub(crate) hint: bool,
    /// `fsync`: after so many writes.
    pub(crate) fsync_every: Option<u64>,
    /// `end_fsync`.
    pub(crate) end_fsync: bool,
    /// Whether it tells what it achieved.
    pub(crate) measured: bool,
    /// A thread of fio's process instead of a process of its own (`thread`), and its nice level.
    pub(crate) spawn: SpawnOptions,
    /// Number of this clone (`$jobnum`), for its stream of random numbers.
    pub(crate) number: u64,
    /// Where its files are.
    pub(crate) dir: Dir,
    /// If this job tells how far it is: which part of the workload it is.
    pub(crate) share: Option<Share>,
}

impl FioJob {
    /// A job whose files are created as it first writes them, without any option that slows or measures.
    pub(crate) fn new(pattern: Pattern, file_size: Bytes, nr_files: u32, dir: Dir) -> FioJob {
        FioJob {
            pattern,
            block_size: Bytes::kib(4),
            file_size,
            nr_files,
            service: FileService::RoundRobin(1),
            time_based: false,
            runtime: None,
            ramp: Nanos::ZERO,
            start_delay: Nanos::ZERO,
            think: None,
            rate: None,
            io_size: None,
            engine: Engine::Calls,
            setup: Setup::OnOpen,
            invalidate: false,
            hint: true,
            fsync_every: None,
            end_fsync: false,
            measured: false,
            spawn: SpawnOptions::process("fio"),
            number: 0,
            dir,
            share: None,
        }
    }

    /// Blocks that it serves, if it is not limited by time.
    pub(super) fn blocks(&self) -> u64 {
        let once = self.file_size.0 / self.block_size.0 * u64::from(self.nr_files);
        self.io_size.map_or(once, |size| (size.0 / self.block_size.0).max(1))
    }
}

/// The command `fio`, while it runs.
#[derive(Clone, Copy)]
pub(crate) struct Fio(Thread);

impl Fio {
    /// Starts fio with some jobs.
    pub(crate) fn start<S: Sys>(sys: &S, jobs: Vec<FioJob>) -> Fio {
        Fio(sys.spawn(SpawnOptions::process("fio"), move |sys: S| async move {
            if let Err(error) = run_jobs(&sys, jobs).await {
                sys.fail(error);
            }
        }))
    }

    /// `SIGINT`: every job stops after its present I/O.
    pub(crate) fn stop<S: Sys>(&self, sys: &S) {
        sys.stop(self.0);
    }

    /// Waits for its end.
    pub(crate) async fn join<S: Sys>(&self, sys: &S) {
        sys.join(self.0).await;
    }
}

/// Sets all files up, one job after the other (`create_serialize`), and lets the jobs run.
async fn run_jobs<S: Sys>(sys: &S, jobs: Vec<FioJob>) -> sys::Result<()> {
    for job in &jobs {
        job.setup_files(sys).await?;
    }
    run_together(sys, jobs).await;
    Ok(())
}

/// Lets jobs run whose files are there.
pub(super) async fn run_together<S: Sys>(sys: &S, jobs: Vec<FioJob>) {
    let mut started = Vec::new();
    if !sys.stopping() {
        started.extend(jobs.into_iter().map(|job| start(sys, job.spawn.clone(), |sys: S| Running::run(sys, job))));
    }
    join_all(sys, &started).await;
}

impl FioJob {
    pub(super) fn name(&self, file: u32) -> FileName {
        FileName { dir: self.dir, number: u64::from(file) }
    }

    /// Asks for the size of every file, and makes those that have to be there.
    pub(super) async fn setup_files<S: Sys>(&self, sys: &S) -> sys::Result<()> {
        for file in 0..self.nr_files {
            if sys.stopping() {
                break;
            }
            let size = match sys.stat(self.name(file)).await {
                Ok(size) => Some(size),
                Err(SysError::NoEntry) => None,
                Err(error) => return Err(error),
            };
            match self.setup {
                Setup::Empty if size.is_none() => {
                    let fd = sys.open(self.name(file), OpenMode::Create).await?;
                    sys.close(fd).await?;
                }
                Setup::Full { fsync } if size.is_none_or(|size| size < self.file_size) => {
                    self.lay_out(sys, file, fsync).await?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Writes a whole file (`extend_file()`).
    async fn lay_out<S: Sys>(&self, sys: &S, file: u32, fsync: bool) -> sys::Result<()> {
        let fd = sys.open(self.name(file), OpenMode::Create).await?;
        let mut at = 0;
        while at < self.file_size.0 && !sys.stopping() {
            let length = self.block_size.0.min(self.file_size.0 - at);
            sys.write(fd, Bytes(at), Bytes(length)).await?;
            at += length;
        }
        if fsync {
            sys.fsync(fd).await?;
        }
        sys.close(fd).await
    }

    /// Tells how far the job is, which has served this share of its blocks.
    pub(super) fn tell<S: Sys>(&self, sys: &S, served: f64, started: Nanos) {
        if let Some(share) = self.share {
            let by_time = |time: Nanos| sys.clock().since(started).as_secs_f64() / time.as_secs_f64();
            let done = share.time.map_or(served, by_time);
            // A job that goes on after its time is no longer what the workload waits for.
            if done < 1.0 {
                sys.progress(share.at(done));
            }
        }
    }
}
