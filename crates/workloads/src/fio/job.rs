//! Jobs: processes that read or write files of their own until they are done or stopped, and the one that starts them.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use sys::{Dir, Fd, FileAdvice, FileName, OpenMode, SpawnOptions, Sys, SysError, Thread};
use units::{Bytes, Nanos};

use super::pick::{Course, Step};

/// CPU time that fio itself uses for one I/O. Source: fio's null engine does 1 to 2 million IOPS on one core.
const FIO_OVERHEAD: Nanos = Nanos(700);
/// Blocks between two words of progress.
const PROGRESS_BLOCKS: u64 = 1024;

/// `rw=`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pattern {
    /// `write`: each file from its start, created if it does not exist.
    Write,
    /// `randread`: each block of a file once, in random order.
    RandRead,
}

/// `file_service_type=`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FileService {
    /// `roundrobin`: the next file after each I/O.
    RoundRobin,
    /// `random:N`: a random file, changed after N I/Os.
    Random(u32),
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

/// A job section.
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
    /// `time_based` with a runtime longer than the test: goes on until it is stopped.
    pub(crate) time_based: bool,
    /// Number of this clone (`$jobnum`), for its stream of random numbers.
    pub(crate) number: u64,
    /// Where its files are.
    pub(crate) dir: Dir,
    /// If this job tells how far it is: which part of the workload it is.
    pub(crate) share: Option<Share>,
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
    let mut started = Vec::new();
    if !sys.stopping() {
        let start = |job: FioJob| {
            sys.spawn(SpawnOptions::process("fio"), move |sys: S| async move {
                if let Err(error) = job.run(sys.clone()).await {
                    sys.fail(error);
                }
            })
        };
        started.extend(jobs.into_iter().map(start));
    }
    for job in started {
        sys.join(job).await;
    }
    Ok(())
}

impl FioJob {
    fn name(&self, file: u32) -> FileName {
        FileName { dir: self.dir, number: u64::from(file) }
    }

    /// Asks for the size of every file; one that does not exist yet is no error.
    async fn setup_files<S: Sys>(&self, sys: &S) -> sys::Result<()> {
        for file in 0..self.nr_files {
            if sys.stopping() {
                break;
            }
            match sys.stat(self.name(file)).await {
                Ok(_) | Err(SysError::NoEntry) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Runs the job to its end or until the thread is stopped.
    async fn run<S: Sys>(self, sys: S) -> sys::Result<()> {
        let mut rng = ChaCha8Rng::seed_from_u64(sys.seed());
        rng.set_stream(self.number + 1);
        let mut course = Course::new(&self);
        let all = self.file_size.0 / self.block_size.0 * u64::from(self.nr_files);
        let (started, mut served) = (sys.clock(), 0);
        let mut fds: Vec<Option<Fd>> = vec![None; self.nr_files as usize];
        while !sys.stopping()
            && let Some(step) = course.next(&mut rng)
        {
            match step {
                Step::Open(file) => fds[file as usize] = Some(self.open(&sys, file).await?),
                Step::Block { file, block } => {
                    let fd = fds[file as usize].expect("a file is opened before it is used");
                    self.serve(&sys, fd, block).await?;
                    served += 1;
                    if served % PROGRESS_BLOCKS == 0 {
                        self.tell(&sys, served as f64 / all as f64, started);
                    }
                }
                Step::Close(file) => {
                    let fd = fds[file as usize].take().expect("a file is closed once");
                    sys.close(fd).await?;
                }
            }
        }
        for file in course.open_files() {
            // One whose open was announced and did not come about any more has no descriptor.
            if let Some(fd) = fds[file as usize].take() {
                sys.close(fd).await?;
            }
        }
        Ok(())
    }

    async fn serve<S: Sys>(&self, sys: &S, fd: Fd, block: u32) -> sys::Result<()> {
        sys.compute(FIO_OVERHEAD).await;
        let offset = Bytes(u64::from(block) * self.block_size.0);
        match self.pattern {
            Pattern::Write => sys.write(fd, offset, self.block_size).await,
            Pattern::RandRead => sys.read(fd, offset, self.block_size).await.map(drop),
        }
    }

    /// Tells how far the job is, which has served this share of its blocks.
    fn tell<S: Sys>(&self, sys: &S, served: f64, started: Nanos) {
        if let Some(share) = self.share {
            let by_time = |time: Nanos| sys.clock().since(started).as_secs_f64() / time.as_secs_f64();
            let done = share.time.map_or(served, by_time);
            // A job that goes on after its time is no longer what the workload waits for.
            if done < 1.0 {
                sys.progress(share.at(done));
            }
        }
    }

    /// Opens a file; writers create it then (`create_on_open=1`). The kernel is told how it will be read
    /// (`fadvise_hint`, on by default).
    async fn open<S: Sys>(&self, sys: &S, file: u32) -> sys::Result<Fd> {
        let (mode, advice) = match self.pattern {
            Pattern::Write => (OpenMode::Create, FileAdvice::Sequential),
            Pattern::RandRead => (OpenMode::Existing, FileAdvice::Random),
        };
        let fd = sys.open(self.name(file), mode).await?;
        sys.fadvise(fd, advice).await?;
        Ok(fd)
    }
}
