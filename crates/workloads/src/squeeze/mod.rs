//! squeeze: little room for the page cache, a device driver that wants large blocks, or both: what keeps kswapd busy.
//!
//! Source: own; it makes the situations that users describe who find kswapd at 100 % (coreos/bugs#1424,
//! bottlerocket-os/bottlerocket#4916, QubesOS/qubes-issues#3313 on GitHub and others): programs that take nearly all of memory and no swap beside files in use, and drivers whose buffers are of a high order (a gigabit network
//! card with jumbo frames of 9000 bytes receives 13 000 in a second, each into a block of order 2).
//! Steps: a cache of the kernel's takes memory and shrinks, so that its last objects lie between free blocks; a process takes memory,
//! and goes on using it; readers go through a mapped file in rounds, or through files of their own in containers below their
//! limits; a module allocates blocks that it may not wait for, at a steady pace, and frees the oldest.

mod driver;

use sys::{Access, Advice, Cgroup, CgroupLimit, FileName, OpenMode, SpawnOptions, Sys, Thread};
use units::{Bytes, Gfp, Nanos, Order, PAGE_SIZE};

use self::driver::{Driver, Scattered};
use crate::groups::start_in;
use crate::steps::{join_all, poke_pages, start};
use crate::{Param, ParamError, Params, WorkloadSpec};

/// Part of the memory, or of a file, that is used at a time.
const PART: Bytes = Bytes::mib(1);
/// CPU time of a reader for a part: 10 GB/s.
const READ: Nanos = Nanos::micros(100);
/// A container's limit, in percent of the file that it reads.
const LIMIT_PERCENT: u64 = 25;

/// The parameters, with these defaults.
const fn params(defaults: [&'static str; 13]) -> [Param; 14] {
    let [seconds, anon, anon_seconds, file, readers, scattered, unit, kept, groups, blocks, order, zone, held] =
        defaults;
    [
        Param { name: "seconds", default: seconds, doc: "how long, in seconds" },
        Param { name: "anon-percent", default: anon, doc: "memory that a process takes and uses, in percent of all" },
        Param { name: "anon-seconds", default: anon_seconds, doc: "how long it has it, in seconds; auto: to the end" },
        Param { name: "file-percent", default: file, doc: "size of the file, in percent of memory" },
        Param { name: "readers", default: readers, doc: "processes that read the file" },
        Param {
            name: "scattered-percent",
            default: scattered,
            doc: "memory that a cache of the kernel took before it shrank, in percent of all",
        },
        Param { name: "scattered-order", default: unit, doc: "order of its blocks" },
        Param { name: "scattered-kept", default: kept, doc: "how many of every four of these stay" },
        Param {
            name: "containers",
            default: groups,
            doc: "memory cgroups; the readers are in them then, each with a file of its own and a memory.max of a quarter of it",
        },
        Param {
            name: "blocks-per-s",
            default: blocks,
            doc: "blocks that the driver allocates in a second; 0: no driver",
        },
        Param { name: "driver-from", default: "0", doc: "when the driver starts, in seconds" },
        Param { name: "order", default: order, doc: "order of a block" },
        Param { name: "zone", default: zone, doc: "what of the memory the driver's device reaches: any, dma32 or dma" },
        Param { name: "held", default: held, doc: "blocks that the driver holds" },
    ]
}

/// As the command line lists it.
pub(crate) const SPEC: WorkloadSpec = WorkloadSpec {
    name: "squeeze",
    doc: "memory taken, a mapped file read in rounds, and blocks allocated by a driver, side by side",
    params: &params(["60", "50", "auto", "60", "2", "0", "0", "1", "0", "0", "2", "any", "256"]),
};

/// The same with the sizes that make kswapd take page cache that is in use, because nothing else can be reclaimed.
pub(crate) const CACHE: WorkloadSpec = WorkloadSpec {
    name: "kswapd-cache",
    doc: "squeeze with programs that take most of memory beside a file that many read; for machines without swap",
    params: &params(["10", "80", "auto", "30", "6", "0", "0", "1", "0", "0", "2", "any", "256"]),
};

/// The same where there is much free memory and none of it in blocks of the order that a network card asks for, 552 000 times a
/// second: a line of 40 Gbit/s full of frames of 9000 bytes.
pub(crate) const ORDER: WorkloadSpec = WorkloadSpec {
    name: "kswapd-order",
    doc: "squeeze with a network card that asks for blocks of order 2 in vain; for 2.6.39-rc7",
    params: &params(["10", "0", "auto", "0", "0", "90", "0", "1", "0", "552000", "2", "any", "1000000"]),
};

/// The same where a network card takes blocks of 64 KiB as fast as it can, most of which come out of a pageblock of another kind, which
/// boosts the watermarks; where reclaim below a container's limit finds something again and again, so that kswapd does not give up; and where there
/// are as many memory cgroups as a node has with 110 pods (each with one of its own, one for its sandbox, and one for each container), services,
/// and groups that were removed but have pages charged to them.
pub(crate) const BOOST: WorkloadSpec = WorkloadSpec {
    name: "kswapd-boost",
    doc: "squeeze with a network card whose blocks boost the watermarks, beside a thousand containers; for the multi-gen LRU",
    params: &params(["10", "0", "auto", "3", "6", "86", "4", "3", "1000", "1000000", "4", "any", "700"]),
};

/// The workload with its parameters.
#[derive(Clone, Copy, Debug)]
pub struct Squeeze {
    time: Nanos,
    anon_percent: u64,
    anon_time: Nanos,
    file_percent: u64,
    readers: u64,
    scattered: Scattered,
    containers: u64,
    driver: Driver,
}

impl Squeeze {
    pub(crate) fn from_params(params: &Params) -> Result<Squeeze, ParamError> {
        let seconds = params.number("seconds", 1, 1_000_000)?;
        let anon_seconds = params.number_or_auto("anon-seconds", 0, 1_000_000)?.unwrap_or(seconds);
        Ok(Squeeze {
            time: Nanos::secs(seconds),
            anon_time: Nanos::secs(anon_seconds),
            anon_percent: params.number("anon-percent", 0, 200)?,
            file_percent: params.number("file-percent", 0, 1000)?,
            readers: params.number("readers", 0, 1000)?,
            scattered: Scattered {
                percent: params.number("scattered-percent", 0, 100)?,
                order: Order(params.number("scattered-order", 0, 9)? as u8),
                kept: params.number("scattered-kept", 0, 4)? as usize,
            },
            containers: params.number("containers", 0, 1000)?,
            driver: Driver {
                from: Nanos::secs(params.number("driver-from", 0, 1_000_000)?),
                blocks_per_s: params.number("blocks-per-s", 0, 10_000_000)?,
                zone: params.choice("zone", &[("any", Gfp(0)), ("dma32", Gfp::DMA32), ("dma", Gfp::DMA)])?,
                order: Order(params.number("order", 0, 9)? as u8),
                held: params.number("held", 0, 1 << 24)? as usize,
            },
        })
    }

    /// Whether it makes memory cgroups.
    pub(crate) fn has_containers(&self) -> bool {
        self.containers > 0
    }

    pub(crate) async fn run<S: Sys>(self, sys: S) -> sys::Result<()> {
        let memory = sys.info().mem_total.bytes();
        let share = |percent: u64| Bytes((memory.0 / 100 * percent) & !(PART.0 - 1));
        let (anon, size) = (share(self.anon_percent), share(self.file_percent));
        let dir = sys.mkdir("squeeze").await?;
        let file = FileName { dir, number: 0 };
        sys.phase("prepare");
        let containers = self.make_containers(&sys, size).await?;
        write(&sys, file, size).await?;
        let mut threads = Vec::new();
        if self.scattered.percent > 0 {
            threads.push(self.start_cache(&sys, memory).await);
        }
        sys.phase("squeeze");
        for (number, &container) in (1..).zip(&containers) {
            let reader = SpawnOptions::process("container");
            threads.push(start_in(&sys, container, reader, move |sys: S| async move {
                let own = FileName { dir, number };
                write(&sys, own, size).await?;
                stream(&sys, own, size).await
            }));
        }
        let time = self.anon_time;
        if anon.0 > 0 {
            threads.push(start(&sys, SpawnOptions::process("hog"), move |sys: S| async move {
                hold(&sys, anon, time).await
            }));
        }
        let readers = if size.0 > 0 && self.containers == 0 { self.readers } else { 0 };
        for _ in 0..readers {
            let reader = SpawnOptions::process("reader");
            threads.push(start(&sys, reader, move |sys: S| async move { read_in_rounds(&sys, file, size).await }));
        }
        if self.driver.blocks_per_s > 0 {
            let driver = self.driver;
            threads.push(start(
                &sys,
                SpawnOptions::module("driver"),
                move |sys: S| async move { driver.run(&sys).await },
            ));
        }
        sys.sleep(self.time).await;
        for thread in &threads {
            sys.stop(*thread);
        }
        join_all(&sys, &threads).await;
        Ok(())
    }

    /// Starts the cache of the kernel's, which has shrunk then.
    async fn start_cache<S: Sys>(self, sys: &S, memory: Bytes) -> Thread {
        let done = sys.barrier(2);
        let cache = start(sys, SpawnOptions::module("cache"), move |sys: S| async move {
            self.scattered.run(&sys, memory, done).await
        });
        sys.barrier_wait(done).await;
        cache
    }

    /// The containers; gives those that read, which get a limit, in their order.
    async fn make_containers<S: Sys>(self, sys: &S, size: Bytes) -> sys::Result<Vec<Cgroup>> {
        let mut reading = Vec::new();
        for number in 0..self.containers {
            let group = sys.cgroup(&format!("container-{number}")).await?;
            if number < self.readers && size.0 > 0 {
                sys.cgroup_set(group, CgroupLimit::Max, Some(Bytes(size.0 / 100 * LIMIT_PERCENT))).await?;
                reading.push(group);
            }
        }
        Ok(reading)
    }
}

/// Reads a file from its start to its end, over and over, by calls.
async fn stream<S: Sys>(sys: &S, file: FileName, size: Bytes) -> sys::Result<()> {
    let fd = sys.open(file, OpenMode::Existing).await?;
    loop {
        for at in (0..size.0).step_by(PART.0 as usize) {
            if sys.stopping() {
                return Ok(());
            }
            sys.read(fd, Bytes(at), PART).await?;
        }
    }
}

async fn write<S: Sys>(sys: &S, file: FileName, size: Bytes) -> sys::Result<()> {
    let fd = sys.open(file, OpenMode::Create).await?;
    for at in (0..size.0).step_by(PART.0 as usize) {
        sys.write(fd, Bytes(at), PART).await?;
    }
    sys.fsync(fd).await?;
    sys.close(fd).await
}

/// Takes memory for some time, and uses all of it in every ten seconds.
async fn hold<S: Sys>(sys: &S, memory: Bytes, time: Nanos) -> sys::Result<()> {
    let end = sys.clock() + time;
    let heap = sys.mmap(memory, Bytes(PAGE_SIZE)).await?;
    sys.madvise(heap, Advice::NoHugePage).await?;
    sys.touch(heap, Bytes(0), memory, Access::Write).await?;
    let pause = Nanos(Nanos::secs(10).0 * PART.0 / memory.0);
    loop {
        for at in (0..memory.0).step_by(PART.0 as usize) {
            if sys.stopping() || sys.clock() >= end {
                return Ok(());
            }
            poke_pages(sys, heap, Bytes(at), PART, Access::Read).await?;
            sys.sleep(pause).await;
        }
    }
}

async fn read_in_rounds<S: Sys>(sys: &S, file: FileName, size: Bytes) -> sys::Result<()> {
    let fd = sys.open(file, OpenMode::Existing).await?;
    let image = sys.mmap_file(fd, size).await?;
    loop {
        for at in (0..size.0).step_by(PART.0 as usize) {
            if sys.stopping() {
                return Ok(());
            }
            poke_pages(sys, image, Bytes(at), PART, Access::Read).await?;
            sys.compute(READ).await;
        }
    }
}
