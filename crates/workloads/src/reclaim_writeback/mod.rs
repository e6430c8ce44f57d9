//! reclaim-writeback: fs_mark, simple-wb and mmap-strm one after the other, each a part of the run.
//!
//! Source: the three benchmarks of the series "Reduce filesystem writeback from page reclaim" (ee72886d8e), as mmtests ran
//! them in August 2011; sizes follow the memory.

mod fsmark;
mod mmap_strm;
mod resident;
mod simple_wb;

use sys::{SpawnOptions, Sys};
use units::{Bytes, Nanos, PAGE_SIZE};

use crate::steps::run_process;
use crate::{Param, ParamError, Params, WorkloadSpec};
use fsmark::FsMark;
use mmap_strm::MmapStrm;
use resident::{Resident, start_launches};
use simple_wb::SimpleWb;

/// As the command line lists it.
pub(crate) const SPEC: WorkloadSpec = WorkloadSpec {
    name: "reclaim-writeback",
    doc: "fs_mark, then dd to files, then stores to mapped files and anonymous memory",
    params: &[
        Param { name: "threads", default: "auto", doc: "threads of fs_mark and mmap-strm; auto: one for each CPU" },
        Param { name: "file-size", default: "10MiB", doc: "size of a file of fs_mark" },
        Param {
            name: "fsmark-files",
            default: "auto",
            doc: "files of a loop of fs_mark; auto: of three times the memory",
        },
        Param { name: "fsmark-loops", default: "10", doc: "loops of fs_mark; 0 leaves it out" },
        Param { name: "wb-memory", default: "4", doc: "what all dd write together, in multiples of the memory" },
        Param { name: "wb-factor-min", default: "1", doc: "dd for each CPU at first; 0: one in all" },
        Param { name: "wb-factor-max", default: "4", doc: "dd for each CPU at last; doubled each time" },
        Param { name: "wb-iterations", default: "4", doc: "how often each number of dd writes; 0 leaves it out" },
        Param {
            name: "wb-block",
            default: "1MiB",
            doc: "size of each of the two buffers of dd, whose blocks they are",
        },
        Param { name: "wb-script-ms", default: "20", doc: "what the script takes for each dd, in milliseconds" },
        Param { name: "strm-memory", default: "3", doc: "mappings of mmap-strm, in multiples of the memory" },
        Param { name: "strm-anon", default: "30", doc: "share of them that is anonymous, in percent" },
        Param { name: "strm-passes", default: "5", doc: "passes of mmap-strm; 0 leaves it out" },
        Param {
            name: "strm-start-ms",
            default: "1",
            doc: "what its script takes to start each process, in milliseconds",
        },
        Param { name: "memory", default: "auto", doc: "what sizes follow, in MiB; auto: MemTotal" },
        Param { name: "resident", default: "64MiB", doc: "memory of the system that runs beside" },
        Param { name: "resident-period", default: "10", doc: "seconds in which all of that is accessed once" },
        Param { name: "resident-written", default: "37", doc: "share of it that is written to, in percent" },
        Param { name: "launches", default: "no", doc: "yes: firefox and gnome-terminal are launched beside, in turn" },
    ],
};

/// The workload with its parameters.
#[derive(Clone, Debug)]
pub struct ReclaimWriteback {
    threads: Option<u64>,
    file_size: Bytes,
    fsmark_files: Option<u64>,
    fsmark_loops: u64,
    wb_memory: u64,
    wb_factors: (u64, u64),
    wb_iterations: u64,
    wb_block: Bytes,
    wb_script: Nanos,
    strm_memory: u64,
    strm_anon_pct: u64,
    strm_passes: u64,
    strm_start: Nanos,
    memory_mib: Option<u64>,
    resident: Resident,
    launches: bool,
}

impl ReclaimWriteback {
    pub(crate) fn from_params(params: &Params) -> Result<ReclaimWriteback, ParamError> {
        Ok(ReclaimWriteback {
            threads: params.number_or_auto("threads", 1, 4096)?,
            file_size: params.size("file-size", Bytes(1), Bytes::gib(1))?,
            fsmark_files: params.number_or_auto("fsmark-files", 1, 1 << 32)?,
            fsmark_loops: params.number("fsmark-loops", 0, 1000)?,
            wb_memory: params.number("wb-memory", 1, 100)?,
            wb_factors: (params.number("wb-factor-min", 0, 1024)?, params.number("wb-factor-max", 0, 1024)?),
            wb_iterations: params.number("wb-iterations", 0, 1000)?,
            wb_block: params.size("wb-block", Bytes(PAGE_SIZE), Bytes::mib(1024))?,
            wb_script: Nanos::millis(params.number("wb-script-ms", 0, 10_000)?),
            strm_memory: params.number("strm-memory", 1, 100)?,
            strm_anon_pct: params.number("strm-anon", 0, 100)?,
            strm_passes: params.number("strm-passes", 0, 1000)?,
            strm_start: Nanos::millis(params.number("strm-start-ms", 0, 10_000)?),
            memory_mib: params.number_or_auto("memory", 1, 1 << 24)?,
            resident: Resident {
                size: params.size("resident", Bytes(PAGE_SIZE), Bytes::gib(64))?,
                period: Nanos::secs(params.number("resident-period", 1, 86_400)?),
                written: params.number("resident-written", 0, 100)?,
            },
            launches: params.flag("launches")?,
        })
    }

    pub(crate) async fn run<S: Sys>(self, sys: S) -> sys::Result<()> {
        let beside = [Some(self.resident.start(&sys)), self.launches.then(|| start_launches(&sys))];
        self.benchmarks(&sys).await;
        for thread in beside.into_iter().flatten() {
            sys.stop(thread);
            sys.join(thread).await;
        }
        Ok(())
    }

    async fn benchmarks<S: Sys>(self, sys: &S) {
        let info = sys.info();
        let threads = self.threads.unwrap_or(u64::from(info.cpus));
        let memory = self.memory_mib.map_or_else(|| info.mem_total.bytes(), Bytes::mib);
        let times = |n: u64| Bytes(memory.0 * n);
        let work = [self.fsmark_loops, self.wb_iterations, self.strm_passes].map(|n| n as f64);
        let all: f64 = work.iter().sum();
        if self.fsmark_loops > 0 {
            let files = self.fsmark_files.unwrap_or(times(3).0 / self.file_size.0);
            let files = (files / threads).max(1);
            let fsmark = FsMark { threads, files, size: self.file_size, loops: self.fsmark_loops };
            sys.phase("fsmark/loops");
            run_process(sys, SpawnOptions::process("fs_mark"), move |sys: S| fsmark.run(sys)).await;
            sys.progress(work[0] / all);
        }
        if self.wb_iterations > 0 {
            let (size, cpus) = (times(self.wb_memory), u64::from(info.cpus));
            let simple = SimpleWb {
                size,
                cpus,
                factors: self.wb_factors,
                iterations: self.wb_iterations,
                block: self.wb_block,
                script: self.wb_script,
            };
            sys.phase("simple-wb/dd");
            run_process(sys, SpawnOptions::process("simple-wb"), move |sys: S| simple.run(sys)).await;
            sys.progress((work[0] + work[1]) / all);
        }
        if self.strm_passes > 0 {
            let mixed = times(self.strm_memory);
            let anon = Bytes(mixed.0 / 100 * self.strm_anon_pct);
            let stream = MmapStrm {
                threads,
                stream: times(4),
                file: Bytes(mixed.0 - anon.0),
                anon,
                passes: self.strm_passes,
                start: self.strm_start,
            };
            sys.phase("mmap-strm/mixed");
            run_process(sys, SpawnOptions::process("mmap-strm"), move |sys: S| stream.run(sys)).await;
        }
    }
}
