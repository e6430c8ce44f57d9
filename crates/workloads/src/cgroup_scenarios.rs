//! What users of memory cgroups run into: five programs, each of which the command line ends in one sentence with its evidence
//! (`report::finding`).
//!
//! Source: own; the situations are those that users of containers describe (FootprintAI/Containarium#1454, vm0-ai/vm0#27110 and
//! neondatabase/neon#5444 on GitHub and others): a program that livelocks above `memory.high` without swap, a neighbour that reads far more than there is memory, what `memory.low` is worth against it, one that
//! writes more than the disk takes (cgroup_writers.rs), and a container that is killed beside free memory. Sizes are shares of the machine's memory.

use sys::{Access, Advice, Barrier, Cgroup, CgroupLimit, Dir, Fd, FileName, OpenMode, Result, SpawnOptions, Sys};
use units::{Bytes, Nanos};

use crate::cgroup_writers;
use crate::groups::{mortal, run_in, start_in, value};
use crate::{ParamError, Params, WorkloadSpec};

const MIB: Bytes = Bytes::mib(1);
/// What a program takes above its `memory.high`.
const ABOVE: Bytes = Bytes::mib(16);

const fn spec(name: &'static str, doc: &'static str) -> WorkloadSpec {
    WorkloadSpec { name, doc, params: &[] }
}

/// As the command line lists them.
pub(crate) const HIGH: WorkloadSpec = spec("cgroup-high", "a program above its memory.high in a group without swap");
/// See [`HIGH`].
pub(crate) const NOISY: WorkloadSpec = spec(
    "cgroup-noisy",
    "a service that lives on its page cache beside a batch job that reads more than there is memory",
);
/// See [`HIGH`].
pub(crate) const LOW: WorkloadSpec = spec("cgroup-low", "the same without and with memory.low over the service");
/// See [`HIGH`].
pub(crate) const WRITERS: WorkloadSpec = spec(
    "cgroup-writers",
    "a service that writes its log beside a batch job that writes all the time, without and with memory.max over the job",
);
/// See [`HIGH`].
pub(crate) const OOM: WorkloadSpec =
    spec("cgroup-oom", "a container that needs more than its memory.max beside free memory");

/// One of the programs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CgroupScenario {
    /// Above `memory.high` without swap.
    High,
    /// A noisy neighbour.
    Noisy,
    /// The same, and with `memory.low`.
    Low,
    /// A neighbour that writes, without and with `memory.max`.
    Writers,
    /// A container out of memory.
    Oom,
}

impl CgroupScenario {
    /// The program of the workload that has these parameters, of which there are none.
    pub(crate) fn from_params(params: &Params) -> std::result::Result<CgroupScenario, ParamError> {
        let scenarios = [
            (HIGH, CgroupScenario::High),
            (NOISY, CgroupScenario::Noisy),
            (LOW, CgroupScenario::Low),
            (WRITERS, CgroupScenario::Writers),
            (OOM, CgroupScenario::Oom),
        ];
        let found = scenarios.iter().find(|(spec, _)| spec.name == params.workload());
        Ok(found.expect("it is registered for these").1)
    }

    pub(crate) async fn run<S: Sys>(self, sys: S) -> Result<()> {
        let memory = sys.info().mem_total.bytes();
        let part = |of: u64| Bytes((memory.0 / of / MIB.0).max(1) * MIB.0);
        match self {
            CgroupScenario::High => high(&sys, part(16)).await,
            CgroupScenario::Noisy => neighbours(&sys, "noisy", &Neighbours::new(memory, part(8), None)).await,
            CgroupScenario::Low => {
                neighbours(&sys, "bare", &Neighbours::new(memory, part(8), None)).await?;
                // Some more than the file: the limit counts what CPUs have charged and not used, too.
                let low = Bytes(part(8).0 * 33 / 32);
                neighbours(&sys, "covered", &Neighbours::new(memory, part(8), Some(low))).await
            }
            CgroupScenario::Writers => cgroup_writers::run(&sys, memory, part(8)).await,
            CgroupScenario::Oom => oom(&sys, part(32)).await,
        }
    }
}

fn mib(size: Bytes) -> f64 {
    (size.0 / MIB.0) as f64
}

/// Private memory without huge pages.
async fn heap<S: Sys>(sys: &S, size: Bytes) -> Result<sys::Mapping> {
    let mapping = sys.mmap(size, MIB).await?;
    sys.madvise(mapping, Advice::NoHugePage).await?;
    Ok(mapping)
}

/// A program that needs a little more than `memory.high`, in a group without swap.
async fn high<S: Sys>(sys: &S, high: Bytes) -> Result<()> {
    let group = sys.cgroup("app").await?;
    sys.cgroup_set(group, CgroupLimit::High, Some(high)).await?;
    sys.cgroup_set(group, CgroupLimit::SwapMax, Some(Bytes(0))).await?;
    sys.sample("memcg/high_mib", mib(high));
    sys.sample("memcg/above_mib", mib(ABOVE));
    sys.phase("app");
    run_in(sys, group, SpawnOptions::process("app"), move |sys: S| async move {
        let memory = heap(&sys, Bytes(high.0 + ABOVE.0)).await?;
        let started = sys.clock();
        sys.touch(memory, Bytes(0), high, Access::Write).await?;
        let full = sys.clock();
        for at in (high.0..high.0 + ABOVE.0).step_by(MIB.0 as usize) {
            sys.touch(memory, Bytes(at), MIB, Access::Write).await?;
        }
        sys.sample("memcg/below_s", full.since(started).as_secs_f64());
        sys.sample("memcg/above_s", sys.clock().since(full).as_secs_f64());
        Ok(())
    })
    .await;
    sys.sample("memcg/high", value(sys, group, "memory.events", "high").await?);
    sys.sample("memcg/oom_kill", value(sys, group, "memory.events", "oom_kill").await?);
    sys.sample("memcg/steal", value(sys, group, "memory.stat", "pgsteal").await?);
    Ok(())
}

/// What the service reads again and again, what its neighbour reads once, and what the service is promised.
#[derive(Clone, Copy)]
struct Neighbours {
    web: Bytes,
    batch: Bytes,
    low: Option<Bytes>,
}

impl Neighbours {
    fn new(memory: Bytes, web: Bytes, low: Option<Bytes>) -> Neighbours {
        Neighbours { web, batch: Bytes(memory.0 * 3 / 2 / MIB.0 * MIB.0), low }
    }
}

/// A service that lives on its page cache, beside a batch job that reads far more than there is memory.
async fn neighbours<S: Sys>(sys: &S, name: &'static str, sizes: &Neighbours) -> Result<()> {
    let (web, batch) = (sys.cgroup(&format!("{name}-web")).await?, sys.cgroup(&format!("{name}-batch")).await?);
    sys.cgroup_set(web, CgroupLimit::Low, sizes.low.or(Some(Bytes(0)))).await?;
    sys.phase(name);
    let (dir, ready, sizes) = (sys.mkdir(name).await?, sys.barrier(2), *sizes);
    let service = start_in(sys, web, SpawnOptions::process("web"), move |sys: S| async move {
        serve(&sys, dir, sizes.web, ready).await
    });
    let job = start_in(sys, batch, SpawnOptions::process("batch"), move |sys: S| async move {
        sys.barrier_wait(ready).await;
        let name = FileName { dir, number: 1 };
        let fd = make_file(&sys, name, sizes.batch).await?;
        read_file(&sys, fd, sizes.batch).await?;
        sys.sleep(Nanos::secs(1)).await;
        sys.barrier_wait(ready).await;
        sys.close(fd).await?;
        sys.unlink(name).await
    });
    sys.join(service).await;
    sys.join(job).await;
    sys.sample("memcg/web_mib", mib(sizes.web));
    sys.sample("memcg/steal_web", value(sys, web, "memory.stat", "pgsteal").await?);
    sys.sample("memcg/steal_batch", value(sys, batch, "memory.stat", "pgsteal").await?);
    sys.sample("memcg/low", value(sys, web, "memory.events", "low").await?);
    Ok(())
}

/// Reads its file before and after the batch job.
async fn serve<S: Sys>(sys: &S, dir: Dir, size: Bytes, ready: Barrier) -> Result<()> {
    let name = FileName { dir, number: 0 };
    let fd = make_file(sys, name, size).await?;
    read_file(sys, fd, size).await?;
    let alone = sys.clock();
    read_file(sys, fd, size).await?;
    sys.sample("memcg/alone_ms", sys.clock().since(alone).as_secs_f64() * 1e3);
    sys.barrier_wait(ready).await;
    sys.barrier_wait(ready).await;
    let after = sys.clock();
    read_file(sys, fd, size).await?;
    sys.sample("memcg/after_ms", sys.clock().since(after).as_secs_f64() * 1e3);
    sys.close(fd).await?;
    sys.unlink(name).await
}

async fn make_file<S: Sys>(sys: &S, name: FileName, size: Bytes) -> Result<Fd> {
    let fd = sys.open(name, OpenMode::Create).await?;
    for at in (0..size.0).step_by(MIB.0 as usize) {
        sys.write(fd, Bytes(at), MIB).await?;
    }
    sys.fsync(fd).await?;
    Ok(fd)
}

/// Reads a file from its start to its end.
async fn read_file<S: Sys>(sys: &S, fd: Fd, size: Bytes) -> Result<()> {
    for at in (0..size.0).step_by(MIB.0 as usize) {
        sys.read(fd, Bytes(at), MIB).await?;
    }
    Ok(())
}

/// A container that needs half as much again as its `memory.max`, on a machine with much free memory.
async fn oom<S: Sys>(sys: &S, max: Bytes) -> Result<()> {
    let group: Cgroup = sys.cgroup("container").await?;
    sys.cgroup_set(group, CgroupLimit::Max, Some(max)).await?;
    sys.cgroup_set(group, CgroupLimit::SwapMax, Some(Bytes(0))).await?;
    sys.phase("container");
    run_in(sys, group, mortal("app"), move |sys: S| async move {
        let need = Bytes(max.0 * 3 / 2);
        let memory = heap(&sys, need).await?;
        sys.touch(memory, Bytes(0), need, Access::Write).await
    })
    .await;
    sys.sample("memcg/max_mib", mib(max));
    sys.sample("memcg/max", value(sys, group, "memory.events", "max").await?);
    sys.sample("memcg/oom", value(sys, group, "memory.events", "oom").await?);
    sys.sample("memcg/oom_kill", value(sys, group, "memory.events", "oom_kill").await?);
    sys.sample("memcg/peak_mib", value(sys, group, "memory.peak", "").await? / MIB.0 as f64);
    Ok(())
}
