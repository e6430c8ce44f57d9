//! thpfio3: small files written a page here and a page there, then huge page faults while they are read.
//!
//! Source: own: mmtests' thpfioscale (see thpfioscale.rs) made small, as the reference runs of real guests have it. Steps: a
//! process with four threads, each of which keeps 64 files open and appends a page to a random one; a process with four
//! threads that open random files and read them to their end; half a second later a process that touches each 2 MiB
//! region of private memory once, advised for huge pages, and then one that does so without advice. The random draws
//! are those of the reference runs, whatever the seed of the experiment; `seed` changes them.

use sys::{Access, Advice, Dir, Fd, FileName, OpenMode, SpawnOptions, Sys};
use units::{Bytes, Nanos, PAGE_SIZE};

use crate::steps::{XorShift, join_all, run_process, start};
use crate::{Param, ParamError, Params, WorkloadSpec};

const HUGE_PAGE: Bytes = Bytes::mib(2);
/// First draws of the threads lie so far apart.
const SEED_STEP: u64 = 1_000_003;
/// Time that the readers have for themselves.
const HEAD_START: Nanos = Nanos::millis(500);

/// As the command line lists it.
pub(crate) const SPEC: WorkloadSpec = WorkloadSpec {
    name: "thpfio3",
    doc: "small files written in pieces, then huge page faults while they are read",
    params: &[
        Param { name: "threads", default: "4", doc: "threads that write, and that read" },
        Param { name: "files", default: "8500", doc: "files of each thread" },
        Param { name: "file-size", default: "20KiB", doc: "size of a file, whole pages" },
        Param { name: "open", default: "64", doc: "files that a writer has open" },
        Param { name: "reads", default: "6000", doc: "files that each reader reads" },
        Param { name: "read-size", default: "64KiB", doc: "size of a read" },
        Param { name: "thp-mb", default: "360", doc: "memory that is touched, in MiB" },
        Param { name: "thp-threads", default: "3", doc: "threads that touch it" },
        Param { name: "seed", default: "0", doc: "added to the seed of every thread's draws" },
    ],
};

/// The workload with its parameters.
#[derive(Clone, Debug)]
pub struct ThpFio3 {
    threads: u64,
    files: u64,
    file_pages: u64,
    open: u64,
    reads: u64,
    read_size: Bytes,
    thp_mb: u64,
    thp_threads: u64,
    seed: u64,
}

impl ThpFio3 {
    pub(crate) fn from_params(params: &Params) -> Result<ThpFio3, ParamError> {
        Ok(ThpFio3 {
            threads: params.number("threads", 1, 1024)?,
            files: params.number("files", 1, 1 << 24)?,
            file_pages: params.size("file-size", Bytes(PAGE_SIZE), Bytes::gib(1))?.pages_down().0,
            open: params.number("open", 1, 1 << 16)?,
            reads: params.number("reads", 0, 1 << 32)?,
            read_size: params.size("read-size", Bytes(PAGE_SIZE), Bytes::mib(64))?,
            thp_mb: params.number("thp-mb", 2, 1 << 20)?,
            thp_threads: params.number("thp-threads", 1, 1024)?,
            seed: params.number("seed", 0, 1 << 32)?,
        })
    }

    pub(crate) async fn run<S: Sys>(self, sys: S) -> sys::Result<()> {
        let mut dirs = Vec::new();
        for thread in 0..self.threads {
            dirs.push(sys.mkdir(&format!("s/t{thread}")).await?);
        }
        sys.phase("write");
        let (writers, written) = (self.clone(), dirs.clone());
        run_process(
            &sys,
            SpawnOptions::process("fw"),
            move |sys: S| async move { writers.write(&sys, &written).await },
        )
        .await;
        sys.phase("read");
        let readers = self.clone();
        let reading =
            start(&sys, SpawnOptions::process("fr"), move |sys: S| async move { readers.read(&sys, dirs).await });
        sys.sleep(HEAD_START).await;
        for (phase, advised) in [("fault-advised", true), ("fault", false)] {
            sys.phase(phase);
            let faulters = self.clone();
            run_process(&sys, SpawnOptions::process("thpfault"), move |sys: S| async move {
                faulters.fault(&sys, advised).await
            })
            .await;
        }
        sys.phase("rest");
        sys.join(reading).await;
        Ok(())
    }

    fn draws(&self, thread: usize) -> XorShift {
        XorShift::new(SEED_STEP * (thread as u64 + 1) + self.seed)
    }

    async fn write<S: Sys>(&self, sys: &S, dirs: &[Dir]) -> sys::Result<()> {
        let thread = |(number, dir): (usize, &Dir)| {
            let (writer, dir) = (self.clone(), *dir);
            let name = SpawnOptions::thread(format!("fw-{number}"));
            start(sys, name, move |sys: S| async move { writer.write_thread(&sys, number, dir).await })
        };
        let threads: Vec<_> = dirs.iter().enumerate().map(thread).collect();
        join_all(sys, &threads).await;
        Ok(())
    }

    /// One writer: a random one of its places gets a page; an empty place opens the next file.
    async fn write_thread<S: Sys>(&self, sys: &S, thread: usize, dir: Dir) -> sys::Result<()> {
        let mut rng = self.draws(thread);
        let mut places: Vec<Option<(Fd, u64)>> = vec![None; self.open as usize];
        let (mut next, mut live) = (0, 0);
        loop {
            let mut place = rng.below(self.open) as usize;
            if places[place].is_none() {
                if next < self.files {
                    let fd = sys.open(FileName { dir, number: next }, OpenMode::Create).await?;
                    places[place] = Some((fd, 0));
                    next += 1;
                    live += 1;
                } else if live == 0 {
                    return Ok(());
                } else {
                    let after = |n: usize| (place + n) % places.len();
                    place = (1..).map(after).find(|p| places[*p].is_some()).expect("a place is live");
                }
            }
            let (fd, page) = places[place].as_mut().expect("opened or found above");
            sys.write(*fd, Bytes(*page * PAGE_SIZE), Bytes(PAGE_SIZE)).await?;
            *page += 1;
            if *page == self.file_pages {
                sys.close(*fd).await?;
                places[place] = None;
                live -= 1;
            }
        }
    }

    async fn read<S: Sys>(&self, sys: &S, dirs: Vec<Dir>) -> sys::Result<()> {
        let thread = |number: usize| {
            let (reader, dirs) = (self.clone(), dirs.clone());
            let name = SpawnOptions::thread(format!("fr-{number}"));
            start(sys, name, move |sys: S| async move { reader.read_thread(&sys, number, &dirs).await })
        };
        let threads: Vec<_> = (0..dirs.len()).map(thread).collect();
        join_all(sys, &threads).await;
        Ok(())
    }

    /// One reader: random files of all threads, each to its end.
    async fn read_thread<S: Sys>(&self, sys: &S, thread: usize, dirs: &[Dir]) -> sys::Result<()> {
        let mut rng = self.draws(thread);
        for _ in 0..self.reads {
            let dir = dirs[rng.below(dirs.len() as u64) as usize];
            let number = rng.below(self.files);
            let fd = sys.open(FileName { dir, number }, OpenMode::Existing).await?;
            let mut at = 0;
            loop {
                let read = sys.read(fd, Bytes(at), self.read_size).await?;
                if read == Bytes(0) {
                    break;
                }
                at += read.0;
            }
            sys.close(fd).await?;
        }
        Ok(())
    }

    async fn fault<S: Sys>(&self, sys: &S, advised: bool) -> sys::Result<()> {
        let share = Bytes::mib(self.thp_mb / self.thp_threads);
        let mut threads = Vec::new();
        for number in 0..self.thp_threads {
            let regions = share.0 / HUGE_PAGE.0;
            let mapping = sys.mmap(Bytes(regions.max(1) * HUGE_PAGE.0), HUGE_PAGE).await?;
            if advised {
                sys.madvise(mapping, Advice::HugePage).await?;
            }
            let name = SpawnOptions::thread(format!("thpfault-{number}"));
            threads.push((name, mapping, regions));
        }
        let run = |(name, mapping, regions): (SpawnOptions, sys::Mapping, u64)| {
            start(sys, name, move |sys: S| async move {
                for region in 0..regions {
                    let at = Bytes(region * HUGE_PAGE.0);
                    let started = sys.clock();
                    sys.poke(mapping, at, Access::Write).await?;
                    let latency = sys.clock().since(started).as_micros_f64();
                    let huge = sys.mincore(mapping, Bytes(at.0 + 64 * PAGE_SIZE));
                    sys.sample(if huge { "fault-huge" } else { "fault-base" }, latency);
                }
                Ok(())
            })
        };
        let threads: Vec<_> = threads.into_iter().map(run).collect();
        join_all(sys, &threads).await;
        Ok(())
    }
}
