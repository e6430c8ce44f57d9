//! thpfioscale: huge page faults while fio reads many small files.
//!
//! Source: mmtests of November 2018, `config-global-dhp__workload_thpfioscale{,-madvhugepage}`,
//! `thpfioscale-bench` and `thpfioscale.c`. Steps: 4 fio processes write 64 KiB files of 1.5 times the memory, created as
//! they are first written; sync; 4 fio processes read the same files at random; after as long a warm-up as the
//! writing took, threads map 3/4 of node 0's memory together and each faults half of its 2 MiB regions. One
//! sample is the time to store one byte, ask whether page 64 of the region is resident (then it is a huge page), and
//! fill the region. Then fio is stopped and the files are removed: `run-mmtests.sh` stops its monitors after that.
//! Omitted: removing the directories.

use sys::{Access, Advice, Barrier, Dir, FileName, Mapping, SpawnOptions, Sys, Thread};
use units::{Bytes, Nanos};

use crate::fio::{FileService, Fio, FioJob, Pattern, Share};
use crate::steps::join_all;
use crate::{Param, ParamError, Params, WorkloadSpec};

const HUGE_PAGE: Bytes = Bytes::mib(2);
/// How long after the signal the script looks whether fio is still there.
const LOOK_AFTER: Nanos = Nanos::secs(5);
/// How much of a run is done when the files are written, and when the faults begin: guesses for those who wait.
const DONE_WRITTEN: f64 = 0.45;
const DONE_WARM: f64 = 0.9;

/// As the command line lists it.
pub(crate) const SPEC: WorkloadSpec = WorkloadSpec {
    name: "thpfioscale",
    doc: "huge page faults while fio reads many small files that it wrote before (mmtests)",
    params: &[
        Param { name: "fio-jobs", default: "4", doc: "fio processes, writing and then reading" },
        Param { name: "fio-ratio", default: "1.5", doc: "size of all files, as a multiple of the memory" },
        Param { name: "file-size", default: "64KiB", doc: "size of a file" },
        Param { name: "thp-threads", default: "auto", doc: "faulting threads; auto: (CPUs per node - fio-jobs) / 4" },
        Param { name: "thp-ratio", default: "0.75", doc: "memory mapped, as a share of node 0" },
        Param { name: "madvise", default: "no", doc: "yes: MADV_HUGEPAGE on the mapping" },
        Param {
            name: "warmup-s",
            default: "auto",
            doc: "seconds of reading before the faults; auto: as long as writing took",
        },
    ],
};

/// The workload with its parameters.
#[derive(Clone, Debug)]
pub struct ThpFioScale {
    fio_jobs: u32,
    fio_ratio: f64,
    file_size: Bytes,
    thp_threads: Option<u64>,
    thp_ratio: f64,
    madvise: bool,
    warmup_s: Option<u64>,
}

impl ThpFioScale {
    pub(crate) fn from_params(params: &Params) -> Result<ThpFioScale, ParamError> {
        Ok(ThpFioScale {
            fio_jobs: params.number("fio-jobs", 1, 1024)? as u32,
            fio_ratio: params.fraction("fio-ratio", 100.0)?,
            file_size: params.size("file-size", Bytes::kib(4), Bytes::gib(1024))?,
            thp_threads: params.number_or_auto("thp-threads", 1, 1024)?,
            thp_ratio: params.fraction("thp-ratio", 1.0)?,
            madvise: params.flag("madvise")?,
            warmup_s: params.number_or_auto("warmup-s", 0, 1_000_000)?,
        })
    }

    pub(crate) async fn run<S: Sys>(self, sys: S) -> sys::Result<()> {
        let mut dirs = Vec::new();
        for job in 0..self.fio_jobs {
            dirs.push(sys.mkdir(&format!("thpfilescale/{job}")).await?);
        }
        sys.phase("write");
        let started = sys.clock();
        let writing = Share { from: 0.0, to: DONE_WRITTEN, time: None };
        Fio::start(&sys, self.jobs(&sys, &dirs, Pattern::WRITE, writing)).join(&sys).await;
        let written = sys.clock().since(started);
        sys.sync().await?;
        sys.phase("warm-up");
        let warmup = self.warmup_s.map_or(written, Nanos::secs);
        let warming = Share { from: DONE_WRITTEN, to: DONE_WARM, time: Some(warmup) };
        let readers = Fio::start(&sys, self.jobs(&sys, &dirs, Pattern::RAND_READ, warming));
        sys.sleep(warmup).await;
        sys.phase("fault");
        let faulters = self.start_faulters(&sys);
        join_all(&sys, &faulters).await;
        sys.phase("stop");
        readers.stop(&sys);
        sys.sleep(LOOK_AFTER).await;
        readers.join(&sys).await;
        sys.phase("remove");
        let rm = self.start_rm(&sys, &dirs);
        sys.join(rm).await;
        Ok(())
    }

    /// Files of one job.
    fn nr_files<S: Sys>(&self, sys: &S) -> u32 {
        let total = (sys.info().mem_total.bytes().0 as f64 * self.fio_ratio) as u64;
        (total / self.file_size.0 / u64::from(self.fio_jobs)).max(1) as u32
    }

    /// A job for each directory, of which the first tells how far it is.
    fn jobs<S: Sys>(&self, sys: &S, dirs: &[Dir], pattern: Pattern, share: Share) -> Vec<FioJob> {
        let reading = pattern == Pattern::RAND_READ;
        let job = |(number, dir): (usize, &Dir)| FioJob {
            service: if reading { FileService::Random(16) } else { FileService::RoundRobin(1) },
            time_based: reading,
            number: number as u64 + if reading { 1000 } else { 0 },
            share: (number == 0).then_some(share),
            ..FioJob::new(pattern, self.file_size, self.nr_files(sys), *dir)
        };
        dirs.iter().enumerate().map(job).collect()
    }

    /// `rm -rf`: the monitors that count the events run until it has ended.
    fn start_rm<S: Sys>(&self, sys: &S, dirs: &[Dir]) -> Thread {
        let (dirs, nr_files) = (dirs.to_vec(), u64::from(self.nr_files(sys)));
        sys.spawn(SpawnOptions::process("rm"), move |sys: S| async move {
            for dir in dirs {
                for number in 0..nr_files {
                    if let Err(error) = sys.unlink(FileName { dir, number }).await {
                        sys.fail(error);
                    }
                }
            }
        })
    }

    fn start_faulters<S: Sys>(&self, sys: &S) -> Vec<Thread> {
        let info = sys.info();
        let per_node = u64::from(info.cpus) / info.node_mem.len() as u64;
        let auto = (per_node.saturating_sub(u64::from(self.fio_jobs)) / 4).max(1);
        let threads = self.thp_threads.unwrap_or(auto);
        let total = (info.node_mem[0].bytes().0 as f64 * self.thp_ratio) as u64;
        let share = total / threads;
        let length = Bytes(share.next_multiple_of(4 * HUGE_PAGE.0));
        let regions = share / HUGE_PAGE.0 / 2;
        let barrier = sys.barrier(threads as u32);
        let faulter = Faulter { length, regions, madvise: self.madvise, barrier };
        let start = |number: u64| {
            let share = (number == 0).then_some(Share { from: DONE_WARM, to: 1.0, time: None });
            sys.spawn(SpawnOptions::thread(format!("thpfioscale-{number}")), move |sys: S| async move {
                if let Err(error) = faulter.run(&sys, share).await {
                    sys.fail(error);
                }
            })
        };
        (0..threads).map(start).collect()
    }
}

/// A faulting thread.
#[derive(Clone, Copy)]
struct Faulter {
    length: Bytes,
    regions: u64,
    madvise: bool,
    barrier: Barrier,
}

impl Faulter {
    async fn run<S: Sys>(self, sys: &S, share: Option<Share>) -> sys::Result<()> {
        let mapping = sys.mmap(self.length, HUGE_PAGE).await?;
        if self.madvise {
            sys.madvise(mapping, Advice::HugePage).await?;
        }
        sys.barrier_wait(self.barrier).await;
        for region in 0..self.regions {
            fault_region(sys, mapping, Bytes(region * HUGE_PAGE.0)).await?;
            if let Some(share) = share {
                sys.progress(share.at(region as f64 / self.regions as f64));
            }
        }
        sys.munmap(mapping).await
    }
}

/// One sample.
async fn fault_region<S: Sys>(sys: &S, mapping: Mapping, at: Bytes) -> sys::Result<()> {
    let started = sys.clock();
    sys.poke(mapping, at, Access::Write).await?;
    let huge = sys.mincore(mapping, Bytes(at.0 + 64 * units::PAGE_SIZE));
    sys.touch(mapping, at, HUGE_PAGE, Access::Write).await?;
    let latency = sys.clock().since(started).as_micros_f64();
    sys.sample(if huge { "fault-huge" } else { "fault-base" }, latency);
    Ok(())
}
