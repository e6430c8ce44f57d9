//! One fio job: a process that reads or writes its own files until they are done or it is stopped.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use sys::{Dir, Fd, FileAdvice, FileName, OpenMode, Sys};
use units::{Bytes, Nanos};

use super::pick::{BlockMaps, FilePicker};

/// CPU time that fio itself uses for one I/O. Source: fio's null engine does 1 to 2 million IOPS on one core.
const FIO_OVERHEAD: Nanos = Nanos(700);
/// Blocks between two words of progress.
const PROGRESS_BLOCKS: u64 = 1024;

/// `rw=`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pattern {
    /// `write`: each file from its start.
    Write,
    /// `randread`: each block of a file once, in random order.
    RandRead,
}

/// `file_service_type=`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FileService {
    /// `roundrobin`: the next open file after each I/O.
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
    /// `time_based` with a runtime longer than the test: starts over until it is stopped.
    pub(crate) time_based: bool,
    /// Number of this clone (`$jobnum`), for its stream of random numbers.
    pub(crate) number: u64,
    /// Where its files are.
    pub(crate) dir: Dir,
    /// If this job tells how far it is: which part of the workload it is.
    pub(crate) share: Option<Share>,
}

impl FioJob {
    /// Runs the job to its end or until the thread is stopped.
    pub(crate) async fn run<S: Sys>(self, sys: S) -> sys::Result<()> {
        let mut rng = ChaCha8Rng::seed_from_u64(sys.seed());
        rng.set_stream(self.number + 1);
        let blocks = (self.file_size.0 / self.block_size.0) as u32;
        let all = u64::from(blocks) * u64::from(self.nr_files);
        let started = sys.clock();
        let mut served = 0;
        let mut open: Vec<Option<Fd>> = vec![None; self.nr_files as usize];
        let mut picker = FilePicker::new(self.service, self.nr_files);
        let mut maps = BlockMaps::new(blocks);
        while (self.time_based || served < all) && !sys.stopping() {
            let file = picker.next(&mut rng);
            let fd = match open[file as usize] {
                Some(fd) => fd,
                None => *open[file as usize].insert(self.open(&sys, file).await?),
            };
            let block = match self.pattern {
                Pattern::Write => maps.next_sequential(file),
                Pattern::RandRead => maps.next_random(file, &mut rng),
            };
            sys.compute(FIO_OVERHEAD).await;
            let offset = Bytes(u64::from(block) * self.block_size.0);
            match self.pattern {
                Pattern::Write => sys.write(fd, offset, self.block_size).await?,
                Pattern::RandRead => drop(sys.read(fd, offset, self.block_size).await?),
            }
            served += 1;
            if served % PROGRESS_BLOCKS == 0 {
                self.tell(&sys, served as f64 / all as f64, started);
            }
        }
        for fd in open.into_iter().flatten() {
            sys.close(fd).await?;
        }
        Ok(())
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

    /// Opens a file; writers create it then (`create_on_open=1`), readers advise random access
    /// (`fadvise_hint`, on by default).
    async fn open<S: Sys>(&self, sys: &S, file: u32) -> sys::Result<Fd> {
        let name = FileName { dir: self.dir, number: u64::from(file) };
        match self.pattern {
            Pattern::Write => {
                let fd = sys.open(name, OpenMode::Create).await?;
                sys.fadvise(fd, FileAdvice::Sequential).await?;
                Ok(fd)
            }
            Pattern::RandRead => {
                let fd = sys.open(name, OpenMode::Existing).await?;
                sys.fadvise(fd, FileAdvice::Random).await?;
                Ok(fd)
            }
        }
    }
}
