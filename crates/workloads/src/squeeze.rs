//! squeeze: little room for the page cache, a device driver that wants large blocks, or both: what keeps kswapd busy.
//!
//! Source: own; it makes the situations that users describe who find kswapd at 100 % (facts of the users): programs that take
//! nearly all of memory and no swap beside files in use, and drivers whose buffers are of a high order (a gigabit network
//! card with jumbo frames of 9000 bytes receives 13 000 in a second, each into a block of order 2).
//! Steps: a process takes memory, and goes on using it; readers go through a mapped file in rounds; a module allocates blocks
//! that it may not wait for, at a steady pace, and frees the oldest.

use std::collections::VecDeque;

use sys::{Access, Advice, FileName, OpenMode, SpawnOptions, Sys};
use units::{Bytes, Gfp, Nanos, Order, PAGE_SIZE};

use crate::steps::{join_all, poke_pages, start};
use crate::{Param, ParamError, Params, WorkloadSpec};

/// Part of the memory, or of a file, that is used at a time.
const PART: Bytes = Bytes::mib(1);
/// CPU time of a reader for a part: 10 GB/s.
const READ: Nanos = Nanos::micros(100);

/// The parameters, with these defaults.
const fn params(defaults: [&'static str; 10]) -> [Param; 10] {
    let [seconds, anon, anon_seconds, file, readers, blocks, from, order, zone, held] = defaults;
    [
        Param { name: "seconds", default: seconds, doc: "how long, in seconds" },
        Param { name: "anon-percent", default: anon, doc: "memory that a process takes and uses, in percent of all" },
        Param { name: "anon-seconds", default: anon_seconds, doc: "how long it has it, in seconds; auto: to the end" },
        Param { name: "file-percent", default: file, doc: "size of the file, in percent of memory" },
        Param { name: "readers", default: readers, doc: "processes that read the file" },
        Param {
            name: "blocks-per-s",
            default: blocks,
            doc: "blocks that the driver allocates in a second; 0: no driver",
        },
        Param { name: "driver-from", default: from, doc: "when the driver starts, in seconds" },
        Param { name: "order", default: order, doc: "order of a block" },
        Param { name: "zone", default: zone, doc: "what of the memory the driver's device reaches: any, dma32 or dma" },
        Param { name: "held", default: held, doc: "blocks that the driver holds" },
    ]
}

/// As the command line lists it.
pub(crate) const SPEC: WorkloadSpec = WorkloadSpec {
    name: "squeeze",
    doc: "memory taken, a mapped file read in rounds, and blocks allocated by a driver, side by side",
    params: &params(["60", "50", "auto", "60", "2", "0", "0", "2", "any", "256"]),
};

/// The same with the sizes that make kswapd take page cache that is in use, because nothing else can be reclaimed.
pub(crate) const CACHE: WorkloadSpec = WorkloadSpec {
    name: "kswapd-cache",
    doc: "squeeze with programs that take most of memory beside a file that many read; for machines without swap",
    params: &params(["10", "80", "auto", "30", "6", "0", "0", "2", "any", "256"]),
};

/// The workload with its parameters.
#[derive(Clone, Copy, Debug)]
pub struct Squeeze {
    time: Nanos,
    anon_percent: u64,
    anon_time: Nanos,
    file_percent: u64,
    readers: u64,
    driver: Driver,
}

/// A driver that allocates blocks.
#[derive(Clone, Copy, Debug)]
struct Driver {
    from: Nanos,
    blocks_per_s: u64,
    /// Where the blocks must be (`Gfp::DMA`), or nothing.
    zone: Gfp,
    order: Order,
    held: usize,
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
            driver: Driver {
                from: Nanos::secs(params.number("driver-from", 0, 1_000_000)?),
                blocks_per_s: params.number("blocks-per-s", 0, 10_000_000)?,
                zone: params.choice("zone", &[("any", Gfp(0)), ("dma32", Gfp::DMA32), ("dma", Gfp::DMA)])?,
                order: Order(params.number("order", 0, 9)? as u8),
                held: params.number("held", 0, 1 << 24)? as usize,
            },
        })
    }

    pub(crate) async fn run<S: Sys>(self, sys: S) -> sys::Result<()> {
        let memory = sys.info().mem_total.bytes();
        let share = |percent: u64| Bytes((memory.0 / 100 * percent) & !(PART.0 - 1));
        let (anon, size) = (share(self.anon_percent), share(self.file_percent));
        let file = FileName { dir: sys.mkdir("squeeze").await?, number: 0 };
        sys.phase("prepare");
        write(&sys, file, size).await?;
        sys.phase("squeeze");
        let mut threads = Vec::new();
        let time = self.anon_time;
        if anon.0 > 0 {
            threads.push(start(&sys, SpawnOptions::process("hog"), move |sys: S| async move {
                hold(&sys, anon, time).await
            }));
        }
        for _ in 0..if size.0 > 0 { self.readers } else { 0 } {
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

impl Driver {
    async fn run<S: Sys>(self, sys: &S) -> sys::Result<()> {
        sys.sleep(self.from).await;
        let pace = Nanos(Nanos::secs(1).0 / self.blocks_per_s);
        let mut held = VecDeque::new();
        let (mut tried, mut failed) = (0.0, 0.0);
        while !sys.stopping() {
            let block = sys.alloc_pages(Gfp::ATOMIC.with(Gfp::NOWARN).with(self.zone), self.order).await?;
            tried += 1.0;
            failed += f64::from(u8::from(block.is_none()));
            held.extend(block);
            if held.len() > self.held
                && let Some(oldest) = held.pop_front()
            {
                sys.free_pages(oldest).await?;
            }
            sys.sleep(pace).await;
        }
        for block in held {
            sys.free_pages(block).await?;
        }
        sys.sample("alloc_success_pct", (tried - failed) * 100.0 / f64::max(tried, 1.0));
        Ok(())
    }
}
