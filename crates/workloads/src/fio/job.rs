//! One fio job: a process that reads or writes its own files until they are done or it is stopped.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use sys::{Dir, Fd, FileAdvice, FileName, OpenMode, Sys};
use units::{Bytes, Nanos};

use super::pick::{BlockMaps, FilePicker};

/// CPU time that fio itself uses for one I/O. Source: fio's null engine does 1 to 2 million IOPS on one core.
const FIO_OVERHEAD: Nanos = Nanos(700);

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
}

impl FioJob {
    /// Runs the job to its end or until the thread is stopped.
    pub(crate) async fn run<S: Sys>(self, sys: S) -> sys::Result<()> {
        let mut rng = ChaCha8Rng::seed_from_u64(sys.seed());
        rng.set_stream(self.number + 1);
        let blocks = (self.file_size.0 / self.block_size.0) as u32;
        let mut left = if self.time_based { u64::MAX } else { u64::from(blocks) * u64::from(self.nr_files) };
        let mut open: Vec<Option<Fd>> = vec![None; self.nr_files as usize];
        let mut picker = FilePicker::new(self.service, self.nr_files);
        let mut maps = BlockMaps::new(blocks);
        while left > 0 && !sys.stopping() {
            left -= 1;
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
        }
        for fd in open.into_iter().flatten() {
            sys.close(fd).await?;
        }
        Ok(())
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
