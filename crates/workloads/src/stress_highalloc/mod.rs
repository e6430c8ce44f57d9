//! stress-highalloc: blocks of order 9 for a kernel module while kernels are being built, and at rest.
//!
//! Source: mmtests of February 2015, `config-global-dhp__stress-highalloc-performance`,
//! `vmr/bin/bench-stresshighalloc.sh`, `stap-scripts/highalloc.stp`. Steps of one run: a kernel tree is unpacked, copied
//! once for each 400 MB of memory, and each copy built by a `make -j1` as soon as it is there; the first tree follows.
//! After 5 minutes a module tries to allocate 95 % of memory in blocks of 2 MiB, one every 125 ms, holds what it got and
//! then frees it (phase 1); after 5 s again (phase 2). 180 s later the builds are killed and the trees removed; a file of
//! the size of memory is written, read and removed, caches are dropped, `min_free_kbytes` is set to 1024, and the
//! module tries once more (phase 3). The next run follows without a reboot. mmtests' monitors run beside all of that.
//! Measured: successful attempts of each phase in percent, cut to a whole number.
//! That configuration runs kernbench and vmr-stream first, each time; `kernbench` and `stream` do so here (by default they are left out).
//! Abstracted: while it waits for its next attempt the module spins, as the original does (`schedule()` in a loop). A
//! killed build ends with the program that it is just running. Compiling the module itself is left out.

mod archive;
mod build;
mod kernbench;
mod module;
mod monitor;
mod program;
mod stream;

use sys::{FileName, OpenMode, SpawnOptions, Sys, Thread};
use units::{Bytes, Gfp, Nanos};

use crate::tree::Tree;
use crate::{Param, ParamError, Params, WorkloadSpec};
use archive::Archive;
use build::{Builder, Compile, Job};
use kernbench::Kernbench;
use module::{Attempts, Outcome};

/// As the command line lists it.
pub(crate) const SPEC: WorkloadSpec = WorkloadSpec {
    name: "stress-highalloc",
    doc: "order-9 allocations of a kernel module beside kernel builds, and at rest, several runs without a reboot (mmtests)",
    params: &[
        Param { name: "runs", default: "3", doc: "runs one after the other, without a reboot" },
        Param {
            name: "kernels",
            default: "auto",
            doc: "copies of the kernel tree built at once; auto: MemTotal / 400 MB",
        },
        Param {
            name: "kernbench",
            default: "0",
            doc: "builds of one tree with a job for each CPU before each run; mmtests: 6",
        },
        Param { name: "stream", default: "0", doc: "programs of STREAM of each size before each run; mmtests: 10" },
        Param {
            name: "archive",
            default: "0KiB",
            doc: "size of the archive that is downloaded and unpacked; mmtests: 94418KiB",
        },
        Param { name: "gfp", default: "highuser-movable", doc: "flags: highuser-movable, like-hugetlb or like-thp" },
        Param { name: "percent", default: "95", doc: "share of memory that is tried for, in percent" },
        Param { name: "mb-per-sec", default: "16", doc: "pace of the attempts, in MiB/s" },
        Param { name: "warmup-s", default: "300", doc: "seconds of building before the first attempt" },
        Param { name: "wait-s", default: "180", doc: "seconds of building after phase 2" },
        Param { name: "files", default: "36788", doc: "files of a kernel tree (linux-3.0 has 36788)" },
        Param { name: "units", default: "1783", doc: "files that a build compiles (x86-64 defconfig of linux-3.1)" },
        Param { name: "cc1-pages", default: "6500", doc: "pages that the compiler touches for one file" },
        Param {
            name: "unit-ms",
            default: "376",
            doc: "CPU time of building one file, in ms: the published user time by that of 10 builds",
        },
    ],
};

/// The workload with its parameters.
#[derive(Clone, Debug)]
pub struct StressHighalloc {
    runs: u64,
    kernels: Option<u64>,
    kernbench: u64,
    stream: u64,
    archive: Bytes,
    gfp: Gfp,
    percent: u64,
    mb_per_sec: u64,
    warmup: Nanos,
    wait: Nanos,
    files: u32,
    compile: Compile,
}

impl StressHighalloc {
    pub(crate) fn from_params(params: &Params) -> Result<StressHighalloc, ParamError> {
        Ok(StressHighalloc {
            runs: params.number("runs", 1, 100)?,
            kernels: params.number_or_auto("kernels", 1, 1000)?,
            kernbench: params.number("kernbench", 0, 1000)?,
            stream: params.number("stream", 0, 1000)?,
            archive: params.size("archive", Bytes(0), Bytes::gib(1))?,
            gfp: params.choice("gfp", module::GFP_FLAGS)?,
            percent: params.number("percent", 1, 100)?,
            mb_per_sec: params.number("mb-per-sec", 1, 1_000_000)?,
            warmup: Nanos::secs(params.number("warmup-s", 0, 1_000_000)?),
            wait: Nanos::secs(params.number("wait-s", 0, 1_000_000)?),
            files: params.number("files", 1, 10_000_000)? as u32,
            compile: Compile {
                units: params.number("units", 1, 1_000_000)? as u32,
                pages: params.number("cc1-pages", 1, 1_000_000)? as u32,
                time: Nanos::millis(params.number("unit-ms", 0, 1_000_000)?),
            },
        })
    }

    pub(crate) async fn run<S: Sys>(self, sys: S) -> sys::Result<()> {
        let memory = sys.info().mem_total.bytes();
        let kernels = self.kernels.unwrap_or(memory.0 / (400 << 20)).max(1);
        for run in 1..=self.runs {
            self.run_before(&sys, run).await?;
            self.run_once(&sys, run, kernels).await?;
            sys.progress(run as f64 / self.runs as f64);
        }
        Ok(())
    }

    /// The benchmarks that mmtests runs first.
    async fn run_before<S: Sys>(&self, sys: &S, run: u64) -> sys::Result<()> {
        if self.kernbench > 0 {
            sys.phase(&format!("before-{run}/kernbench"));
            let kernbench =
                Kernbench { passes: self.kernbench, archive: self.archive, files: self.files, compile: self.compile };
            kernbench.run(sys, run).await?;
        }
        if self.stream > 0 {
            sys.phase(&format!("before-{run}/stream"));
            stream::run(sys, self.stream).await?;
        }
        Ok(())
    }

    async fn run_once<S: Sys>(&self, sys: &S, run: u64, kernels: u64) -> sys::Result<()> {
        let begin = |part: &str| sys.phase(&format!("run-{run}/{part}"));
        begin("prepare");
        let monitors = monitor::start(sys, run).await?;
        let archive = Archive::fetch(sys, &format!("archive-{run}"), self.archive).await?;
        archive.list(sys, self.files).await?;
        let (trees, builders) = self.start_builds(sys, run, kernels, &archive).await?;
        begin("build");
        sys.sleep(self.warmup).await;
        begin("phase-1");
        self.attempt(sys).await?;
        begin("pause");
        sys.sleep(Nanos::secs(5)).await;
        begin("phase-2");
        self.attempt(sys).await?;
        begin("wait");
        sys.sleep(Nanos::secs(5) + self.wait).await;
        begin("clean");
        stop_all(sys, &builders).await;
        for tree in &trees {
            tree.remove(sys).await?;
        }
        self.stream(sys, run).await?;
        sys.set_sysctl("vm.drop_caches", 3).await?;
        let min_free = sys.sysctl("vm.min_free_kbytes").await?;
        sys.set_sysctl("vm.min_free_kbytes", 1024).await?;
        begin("phase-3");
        self.attempt(sys).await?;
        sys.set_sysctl("vm.min_free_kbytes", min_free).await?;
        stop_all(sys, &monitors).await;
        archive.remove(sys).await
    }

    /// Unpacks a tree, copies it, and starts to build each copy when it is there, the first tree last.
    async fn start_builds<S: Sys>(
        &self,
        sys: &S,
        run: u64,
        copies: u64,
        archive: &Archive,
    ) -> sys::Result<(Vec<Tree>, Vec<Thread>)> {
        let name = |number: u64| format!("run-{run}/linux-{number}");
        let first = Tree::new(sys, &name(0), self.files).await?;
        archive.unpack(sys, &first).await?;
        let (mut trees, mut builders) = (vec![first], Vec::new());
        for number in 1..=copies {
            let copy = Tree::new(sys, &name(number), self.files).await?;
            copy.copy_of(sys, &trees[0]).await?;
            builders.push(self.build(sys, &copy, run << 16 | number).await?);
            trees.push(copy);
        }
        builders.push(self.build(sys, &trees[0], run << 16).await?);
        Ok((trees, builders))
    }

    /// Cleans and configures a tree, and starts to build it.
    async fn build<S: Sys>(&self, sys: &S, tree: &Tree, number: u64) -> sys::Result<Thread> {
        let mut builder = Builder::new(tree.clone(), self.compile, sys.seed(), number);
        builder.configure(sys).await?;
        Ok(sys.spawn(SpawnOptions::process(format!("make-{}", number & 0xFFFF)), move |sys: S| async move {
            builder.compile(&sys, Job::ONLY).await;
            builder.link(&sys).await;
        }))
    }

    /// One phase: the module loads, tries, and unloads.
    async fn attempt<S: Sys>(&self, sys: &S) -> sys::Result<()> {
        let memory = sys.info().mem_total.bytes();
        let attempts = Attempts {
            count: memory.0 / module::BLOCK.0 * self.percent / 100,
            gfp: self.gfp,
            // As the script computes it: whole bytes in a millisecond, whole milliseconds for a block.
            pace: Nanos::millis(module::BLOCK.0 / ((self.mb_per_sec << 20) / 1000)),
        };
        let thread = sys.spawn(SpawnOptions::module("highalloc"), move |sys: S| async move {
            match attempts.run(&sys).await {
                Ok(outcome) => report(&sys, &outcome),
                Err(error) => sys.fail(error),
            }
        });
        sys.join(thread).await;
        Ok(())
    }

    /// Writes a file of the size of memory, reads it and removes it (`dd`, `cat`, `rm`).
    async fn stream<S: Sys>(&self, sys: &S, run: u64) -> sys::Result<()> {
        let name = FileName { dir: sys.mkdir(&format!("run-{run}")).await?, number: 0 };
        let size = Bytes(sys.info().mem_total.bytes().0 >> 20 << 20);
        let fd = sys.open(name, OpenMode::Create).await?;
        for at in (0..size.0).step_by(1 << 20) {
            sys.write(fd, Bytes(at), Bytes::mib(1)).await?;
        }
        sys.close(fd).await?;
        let fd = sys.open(name, OpenMode::Existing).await?;
        for at in (0..size.0).step_by(128 << 10) {
            sys.read(fd, Bytes(at), Bytes::kib(128)).await?;
        }
        sys.close(fd).await?;
        sys.unlink(name).await
    }
}

fn report<S: Sys>(sys: &S, outcome: &Outcome) {
    sys.sample("alloc_success_pct", (outcome.success * 100 / outcome.attempts) as f64);
}

async fn stop_all<S: Sys>(sys: &S, threads: &[Thread]) {
    for thread in threads {
        sys.stop(*thread);
    }
    for thread in threads {
        sys.join(*thread).await;
    }
}
