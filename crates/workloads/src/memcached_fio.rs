//! memcached-fio: a server with two kinds of work, each in a memory cgroup of its own: memcached with its clients, and fio.
//!
//! Source: the mixed workload of the multi-gen LRU's patches (commit f76c83378851, `mixed.sh`). Steps: memcached is filled with
//! keys in their order, by as many clients as it has threads; fio's files are laid out; then fio reads single pages at random,
//! in batches by io_uring, while the clients get keys at random, all equally likely, 8 requests at a time.
//! Abstracted: fio's jobs are threads, as with `--thread`. A client and the server's thread that serves it take turns, and are one thread, which
//! weighs as two where CPUs are shared ([`PAIR_NICE`]): one of them is always runnable, and each gets a share. An item lies in the server's
//! memory where the order of its key puts it; a request for it reads the page of its hash bucket and the pages that its
//! header, key and value lie in, and then writes to its header: the server counts who uses an item there (`refcount_incr()` in `do_item_get()`,
//! memcached's items.c). Both programs' own CPU time is [`GET_CPU`] and [`IO_CPU`].
//! Cut: the publication runs fio for 90 minutes and the clients until each has sent as many requests as there are keys. Here both
//! run for `warm-up-s` and then for `measure-s`, in windows of `window-s`, each of which is a sample: they say whether
//! the rates are steady. The publication also runs each program alone: `keys=65000000 jobs=1 file-mb=1` is its `memcached.sh`,
//! `threads=1 keys=1 jobs=72 fio-max=36GiB` its `fio.sh`, both on disks of 108 GiB.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use smallvec::SmallVec;
use sys::{Access, Advice, Barrier, CgroupLimit, Dir, FileAdvice, FileName, Mapping, OpenMode, SpawnOptions, Sys};
use units::{Bytes, Nanos, PAGE_SIZE};

use crate::steps::{join_all, start};
use crate::{Param, ParamError, Params, WorkloadSpec};

/// CPU time of a client and the server for one request, the kernel's sockets and the copies included, on a server like the published
/// one. Guess within what is known of both: memcached serves 200 to 300 thousand small requests a second and thread over sockets,
/// memtier_benchmark sends 150 to 200 thousand, which is 8.3 to 11.7 us for both.
const GET_CPU: Nanos = Nanos(10_000);
/// CPU time that fio uses for one read there, io_uring's library included. Source: fio's null engine does 1 to 2 million IOPS on
/// one core; a thread that shares its core has 0.55 to 0.6 of that.
const IO_CPU: Nanos = Nanos(1_200);
/// Nice level of a thread that stands for two at 0 (`sched_prio_to_weight[]`, kernel/sched/core.c: 1991 and 1024).
const PAIR_NICE: i8 = -3;
/// Requests that a client sends before it waits (`--pipeline`).
const PIPELINE: usize = 8;
/// Reads that fio submits at once (`iodepth_batch_submit`).
const BATCH: usize = 32;
/// A memcached page: slabs are cut from these.
const SLAB_PAGE: u64 = 1 << 20;
/// Bytes of an item beside its value: header, CAS, key `memtier-NNNNNNNN`, ends of lines.
const ITEM_OVERHEAD: u64 = 48 + 8 + 17 + 2;
/// Smallest chunk, and how much larger the next class is (`-n 48 -f 1.25`).
const CHUNK_MIN: u64 = 96;
const CHUNK_GROWTH: f64 = 1.25;
/// Bytes that memtier counts for a request: the binary protocol's header and the key. The published figures are that and
/// no more.
const REQUEST_BYTES: f64 = 24.0 + 15.8;

/// As the command line lists it.
pub(crate) const SPEC: WorkloadSpec = WorkloadSpec {
    name: "memcached-fio",
    doc: "memcached under random GETs in one memory cgroup, buffered random reads by fio in another",
    params: &[
        Param { name: "threads", default: "36", doc: "threads of memcached, each with a client" },
        Param { name: "keys", default: "auto", doc: "keys; auto: 50 million for 128 GiB of memory" },
        Param { name: "value", default: "2000", doc: "bytes of a value" },
        Param { name: "jobs", default: "36", doc: "fio's jobs" },
        Param {
            name: "file-mb",
            default: "auto",
            doc: "size of a job's file in MiB; auto: 1408 for 128 GiB of memory",
        },
        Param {
            name: "warm-up-s",
            default: "auto",
            doc: "seconds before the measurement; auto: 40 for 128 GiB, 1 at least",
        },
        Param {
            name: "measure-s",
            default: "auto",
            doc: "seconds of the measurement; auto: 10 for 128 GiB, 2 at least",
        },
        Param { name: "window-s", default: "1", doc: "seconds of a sample" },
        Param { name: "fio-max", default: "none", doc: "memory.max of fio's cgroup" },
    ],
};

/// The workload with its parameters.
#[derive(Clone, Debug)]
pub struct MemcachedFio {
    threads: u64,
    keys: Option<u64>,
    chunk: u64,
    item: u64,
    jobs: u64,
    file_mb: Option<u64>,
    warm_up: Option<u64>,
    measure: Option<u64>,
    window: u64,
    fio_max: Option<Bytes>,
}

/// Size of the chunks that items of a size are put in.
fn chunk_for(item: u64) -> u64 {
    let mut chunk = CHUNK_MIN;
    while chunk < item {
        chunk = ((chunk as f64 * CHUNK_GROWTH) as u64).next_multiple_of(8);
    }
    chunk
}

/// How long everything runs, in seconds.
#[derive(Clone, Copy)]
struct Times {
    warm_up: u64,
    measure: u64,
    window: u64,
}

/// What the threads of a process share.
#[derive(Clone, Default)]
struct Board {
    /// Requests served.
    served: Arc<AtomicU64>,
    /// The threads are to end.
    over: Arc<AtomicBool>,
}

/// The server's memory: where items and the hash table are.
#[derive(Clone, Copy)]
struct Store {
    slabs: Mapping,
    table: Mapping,
    buckets: u64,
    keys: u64,
    chunk: u64,
    item: u64,
}

impl Store {
    /// Where an item begins.
    fn offset(&self, key: u64) -> u64 {
        let per_page = SLAB_PAGE / self.chunk;
        key / per_page * SLAB_PAGE + key % per_page * self.chunk
    }
}

impl MemcachedFio {
    pub(crate) fn from_params(params: &Params) -> Result<MemcachedFio, ParamError> {
        let item = params.number("value", 1, SLAB_PAGE / 2)? + ITEM_OVERHEAD;
        Ok(MemcachedFio {
            threads: params.number("threads", 1, 1024)?,
            keys: params.number_or_auto("keys", 1, 1 << 32)?,
            chunk: chunk_for(item),
            item,
            jobs: params.number("jobs", 1, 1024)?,
            file_mb: params.number_or_auto("file-mb", 1, 1 << 20)?,
            warm_up: params.number_or_auto("warm-up-s", 0, 1 << 20)?,
            measure: params.number_or_auto("measure-s", 1, 1 << 20)?,
            window: params.number("window-s", 1, 1 << 20)?,
            fio_max: params.size_or_none("fio-max", Bytes::mib(1), Bytes::gib(1024))?,
        })
    }

    pub(crate) async fn run<S: Sys>(self, sys: S) -> sys::Result<()> {
        let memory = sys.info().node_mem[0].bytes().0 as f64 / (128_u64 << 30) as f64;
        let keys = self.keys.unwrap_or((50e6 * memory) as u64).max(self.threads);
        let file_mb = self.file_mb.unwrap_or((1408.0 * memory).ceil() as u64);
        // Memory turns over in proportion to its size.
        let times = Times {
            warm_up: self.warm_up.unwrap_or((40.0 * memory).ceil() as u64),
            measure: self.measure.unwrap_or((10.0 * memory).ceil() as u64).max(2 * self.window),
            window: self.window,
        };
        let (loaded, ready) = (sys.barrier(2), sys.barrier(3));
        let server = self.clone();
        sys.phase("load");
        let memcached = start(&sys, SpawnOptions::process("memcached"), move |sys: S| async move {
            let group = sys.cgroup("memcached").await?;
            sys.cgroup_enter(group).await?;
            server.serve(&sys, keys, times, [loaded, ready]).await
        });
        sys.barrier_wait(loaded).await;
        sys.phase("layout");
        let reader = self.clone();
        let fio = start(&sys, SpawnOptions::process("fio"), move |sys: S| async move {
            let group = sys.cgroup("fio").await?;
            if let Some(max) = reader.fio_max {
                sys.cgroup_set(group, CgroupLimit::Max, Some(max)).await?;
            }
            sys.cgroup_enter(group).await?;
            reader.read(&sys, file_mb, times, ready).await
        });
        sys.barrier_wait(ready).await;
        sys.phase("warm-up");
        sys.sleep(Nanos::secs(times.warm_up)).await;
        sys.phase("measure");
        join_all(&sys, &[memcached, fio]).await;
        Ok(())
    }

    /// memcached and its clients.
    async fn serve<S: Sys>(self, sys: &S, keys: u64, times: Times, [loaded, ready]: [Barrier; 2]) -> sys::Result<()> {
        let per_page = SLAB_PAGE / self.chunk;
        let slabs = sys.mmap(Bytes(keys.div_ceil(per_page) * SLAB_PAGE), Bytes(PAGE_SIZE)).await?;
        // The table grows once there are 1.5 items for each bucket.
        let buckets = (keys * 2 / 3).next_power_of_two().max(512);
        let table = sys.mmap(Bytes(buckets * 8), Bytes(PAGE_SIZE)).await?;
        sys.madvise(slabs, Advice::NoHugePage).await?;
        sys.madvise(table, Advice::NoHugePage).await?;
        sys.touch(table, Bytes(0), table.length, Access::Write).await?;
        let store = Store { slabs, table, buckets, keys, chunk: self.chunk, item: self.item };
        let loaders: Vec<_> = (0..self.threads)
            .map(|thread| {
                start(sys, SpawnOptions::thread("memcached"), move |sys: S| async move {
                    load(&sys, store, thread, self.threads).await
                })
            })
            .collect();
        join_all(sys, &loaders).await;
        sys.barrier_wait(loaded).await;
        sys.barrier_wait(ready).await;
        let board = Board::default();
        let clients: Vec<_> = (0..self.threads)
            .map(|thread| {
                let board = board.clone();
                let pair = SpawnOptions { nice: PAIR_NICE, ..SpawnOptions::thread("memcached") };
                start(sys, pair, move |sys: S| async move { get(&sys, store, thread, &board).await })
            })
            .collect();
        let take = |sys: &S, per_s: f64| {
            sys.sample("ops_per_s", per_s);
            sys.sample("bandwidth_kb_per_s", per_s * REQUEST_BYTES / 1024.0);
        };
        measure(sys, times, &board, take).await;
        join_all(sys, &clients).await;
        Ok(())
    }

    /// fio.
    async fn read<S: Sys>(self, sys: &S, file_mb: u64, times: Times, ready: Barrier) -> sys::Result<()> {
        let dir = sys.mkdir("mglru").await?;
        for job in 0..self.jobs {
            lay_out(sys, FileName { dir, number: job }, file_mb).await?;
        }
        sys.barrier_wait(ready).await;
        let board = Board::default();
        let jobs: Vec<_> = (0..self.jobs)
            .map(|job| {
                let board = board.clone();
                start(sys, SpawnOptions::thread("fio"), move |sys: S| async move {
                    read_at_random(&sys, dir, job, file_mb, &board).await
                })
            })
            .collect();
        let take = |sys: &S, per_s: f64| {
            sys.sample("iops", per_s);
            sys.sample("bandwidth_mib_per_s", per_s * PAGE_SIZE as f64 / (1 << 20) as f64);
        };
        measure(sys, times, &board, take).await;
        join_all(sys, &jobs).await;
        Ok(())
    }
}

/// Lets the threads of a process run to the end of the measurement; `take` is called with the requests served in a second, for
/// each window.
async fn measure<S: Sys>(sys: &S, times: Times, board: &Board, take: impl Fn(&S, f64)) {
    let Times { warm_up, measure, window } = times;
    sys.sleep(Nanos::secs(warm_up)).await;
    let read = || (sys.clock(), board.served.load(Ordering::Relaxed));
    let mut before = read();
    for at in 0..measure.div_ceil(window) {
        sys.progress((warm_up + at * window) as f64 / (warm_up + measure) as f64);
        sys.sleep(Nanos::secs(window)).await;
        let now = read();
        take(sys, (now.1 - before.1) as f64 / now.0.since(before.0).as_secs_f64());
        before = now;
    }
    board.over.store(true, Ordering::Relaxed);
}

/// Stores a thread's share of the keys.
async fn load<S: Sys>(sys: &S, store: Store, thread: u64, threads: u64) -> sys::Result<()> {
    let pages = store.slabs.length.0 / SLAB_PAGE;
    for page in pages * thread / threads..pages * (thread + 1) / threads {
        sys.touch(store.slabs, Bytes(page * SLAB_PAGE), Bytes(SLAB_PAGE), Access::Write).await?;
    }
    Ok(())
}

/// Gets keys at random until the end.
async fn get<S: Sys>(sys: &S, store: Store, thread: u64, board: &Board) -> sys::Result<()> {
    let mut rng = ChaCha8Rng::seed_from_u64(sys.seed());
    rng.set_stream(1 + thread);
    let mut items: SmallVec<[u64; 4 * PIPELINE]> = SmallVec::new();
    let (mut buckets, mut headers): (SmallVec<[u64; PIPELINE]>, SmallVec<[u64; PIPELINE]>) = Default::default();
    while !board.over.load(Ordering::Relaxed) {
        items.clear();
        buckets.clear();
        headers.clear();
        for _ in 0..PIPELINE {
            buckets.push(rng.random_range(0..store.buckets) * 8);
            let begin = store.offset(rng.random_range(0..store.keys));
            let last = begin + store.item - 1;
            headers.push(begin);
            items.extend((begin / PAGE_SIZE..=last / PAGE_SIZE).map(|page| page * PAGE_SIZE));
        }
        sys.poke_many(store.table, &buckets, Access::Read).await?;
        sys.poke_many(store.slabs, &items, Access::Read).await?;
        sys.poke_many(store.slabs, &headers, Access::Write).await?;
        sys.compute(Nanos(GET_CPU.0 * PIPELINE as u64)).await;
        board.served.fetch_add(PIPELINE as u64, Ordering::Relaxed);
    }
    Ok(())
}

/// Writes a file from its start to its end.
async fn lay_out<S: Sys>(sys: &S, name: FileName, file_mb: u64) -> sys::Result<()> {
    let fd = sys.open(name, OpenMode::Create).await?;
    for mib in 0..file_mb {
        sys.write(fd, Bytes::mib(mib), Bytes::mib(1)).await?;
    }
    sys.close(fd).await
}

/// Reads pages of a file at random until the end.
async fn read_at_random<S: Sys>(sys: &S, dir: Dir, job: u64, file_mb: u64, board: &Board) -> sys::Result<()> {
    let mut rng = ChaCha8Rng::seed_from_u64(sys.seed());
    rng.set_stream((1 << 32) + job);
    let pages = (Bytes::mib(file_mb).0 / PAGE_SIZE) as u32;
    let fd = sys.open(FileName { dir, number: job }, OpenMode::Existing).await?;
    sys.fadvise(fd, FileAdvice::Random).await?;
    let mut batch = [0; BATCH];
    while !board.over.load(Ordering::Relaxed) {
        batch.iter_mut().for_each(|page| *page = rng.random_range(0..pages));
        sys.read_batch(fd, &batch).await?;
        sys.compute(Nanos(IO_CPU.0 * BATCH as u64)).await;
        board.served.fetch_add(BATCH as u64, Ordering::Relaxed);
    }
    sys.close(fd).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_lie_in_chunks_of_their_class() {
        // 96, 120, 152, ... each 1.25 times the one before, rounded up to 8 bytes.
        assert_eq!([chunk_for(96), chunk_for(97), chunk_for(121)], [96, 120, 152]);
        let chunk = chunk_for(2000 + ITEM_OVERHEAD);
        assert!(chunk >= 2000 + ITEM_OVERHEAD && (chunk as f64 / CHUNK_GROWTH) < (2000 + ITEM_OVERHEAD) as f64);
    }
}
