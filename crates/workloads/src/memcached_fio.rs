//! memcached-fio: a server with two kinds of work, each in a memory cgroup of its own: memcached with its clients, and fio.
//!
//! Source: the mixed workload of the multi-gen LRU's patches (commit f76c83378851, `mixed.sh`). Steps: memcached is filled with
//! keys in their order, by as many clients as it has threads; fio's files are laid out; then fio reads single pages at random,
//! in batches by io_uring, while the clients get keys at random, all equally likely, 8 requests at a time.
//! Abstracted: fio's jobs are threads, as with `--thread`. Both programs' own CPU time is that of [`memcached`] and [`IO_CPU`].
//! Cut: the publication runs fio for 90 minutes, the first 200 s alone, and the clients until each has sent as many requests as there are
//! keys. Here both run for `warm-up-s` and then for `measure-s`, in windows of `window-s`, each of which is a sample: they say whether
//! the rates are steady. What is swapped in a second is so after 85 s on 128 GiB, under the classic LRU and without patch 9. The publication also
//! runs each program alone: `keys=65000000 jobs=1 file-mb=1` is its `memcached.sh`, `threads=1 keys=1 jobs=72 fio-max=36GiB` its `fio.sh`, both on
//! disks of 108 GiB.

mod groups;
mod memcached;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sys::{Barrier, CgroupLimit, Dir, FileAdvice, FileName, OpenMode, SpawnOptions, Sys};
use units::{Bytes, Nanos, PAGE_SIZE};

use crate::steps::{join_all, start};
use crate::{Param, ParamError, Params, WorkloadSpec};
use groups::{GROUPS, Groups};
use memcached::{CLIENTS, Clients, Keys, Link, SLAB_PAGE};

/// CPU time that fio uses for one read there, io_uring's library included. Source: fio's null engine does 1 to 2 million IOPS on
/// one core; a thread that shares its core has 0.55 to 0.6 of that.
const IO_CPU: Nanos = Nanos(1_200);
/// Reads that fio submits at once (`iodepth_batch_submit`).
const BATCH: usize = 32;

/// As the command line lists it.
pub(crate) const SPEC: WorkloadSpec = WorkloadSpec {
    name: "memcached-fio",
    doc: "memcached under random GETs in one memory cgroup, buffered random reads by fio in another",
    params: &[
        Param { name: "threads", default: "36", doc: "threads of memcached, each with a client" },
        Param {
            name: "clients",
            default: "auto",
            doc: "apart: clients in a process of their own; paired: each one thread with the server's; auto: paired on one CPU",
        },
        Param { name: "keys", default: "auto", doc: "keys; auto: 50 million for 128 GiB of memory" },
        Param {
            name: "chains",
            default: "auto",
            doc: "yes: a request reads the items that stand before its own in the hash table; auto: where clients are apart",
        },
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
            doc: "seconds before the measurement; auto: 90 for 128 GiB, 1 at least",
        },
        Param {
            name: "measure-s",
            default: "auto",
            doc: "seconds of the measurement; auto: 10 for 128 GiB, 2 at least",
        },
        Param { name: "window-s", default: "1", doc: "seconds of a sample" },
        Param { name: "fio-max", default: "none", doc: "memory.max of fio's cgroup" },
        Param {
            name: "groups",
            default: "beside",
            doc: "beside: memcached and fio have a cgroup each; systemd: a service's and a login's, with the clients in the latter",
        },
    ],
};

/// The workload with its parameters.
#[derive(Clone, Debug)]
pub struct MemcachedFio {
    threads: u64,
    clients: Option<Clients>,
    keys: Option<u64>,
    chains: Option<bool>,
    value: u64,
    jobs: u64,
    file_mb: Option<u64>,
    warm_up: Option<u64>,
    measure: Option<u64>,
    window: u64,
    fio_max: Option<Bytes>,
    groups: Groups,
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

impl Board {
    fn add(&self, served: usize) {
        self.served.fetch_add(served as u64, Ordering::Relaxed);
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }
}

impl MemcachedFio {
    pub(crate) fn from_params(params: &Params) -> Result<MemcachedFio, ParamError> {
        Ok(MemcachedFio {
            threads: params.number("threads", 1, 1024)?,
            clients: params.choice("clients", CLIENTS)?,
            keys: params.number_or_auto("keys", 1, 1 << 32)?,
            chains: params.choice("chains", &[("auto", None), ("yes", Some(true)), ("no", Some(false))])?,
            value: params.number("value", 1, SLAB_PAGE / 2)?,
            jobs: params.number("jobs", 1, 1024)?,
            file_mb: params.number_or_auto("file-mb", 1, 1 << 20)?,
            warm_up: params.number_or_auto("warm-up-s", 0, 1 << 20)?,
            measure: params.number_or_auto("measure-s", 1, 1 << 20)?,
            window: params.number("window-s", 1, 1 << 20)?,
            fio_max: params.size_or_none("fio-max", Bytes::mib(1), Bytes::gib(1024))?,
            groups: params.choice("groups", GROUPS)?,
        })
    }

    pub(crate) async fn run<S: Sys>(self, sys: S) -> sys::Result<()> {
        let memory = sys.info().node_mem[0].bytes().0 as f64 / (128_u64 << 30) as f64;
        let keys = self.keys.unwrap_or((50e6 * memory) as u64).max(self.threads);
        let file_mb = self.file_mb.unwrap_or((1408.0 * memory).ceil() as u64);
        // Memory turns over in proportion to its size.
        let times = Times {
            warm_up: self.warm_up.unwrap_or((90.0 * memory).ceil() as u64),
            measure: self.measure.unwrap_or((10.0 * memory).ceil() as u64).max(2 * self.window),
            window: self.window,
        };
        let (loaded, ready) = (sys.barrier(2), sys.barrier(3));
        // On one CPU they take turns anyway.
        let apart = self.clients.map_or(sys.info().cpus > 1, |clients| clients == Clients::Apart);
        let (chains, threads) = (self.chains.unwrap_or(apart), self.threads);
        let keys = Keys { count: keys, value: self.value, chains };
        let link = apart.then(|| Link::new(&sys, threads));
        let served = link.clone();
        let groups = self.groups;
        sys.phase("load");
        let memcached = start(&sys, SpawnOptions::process("memcached"), move |sys: S| async move {
            let service = groups.make_service(&sys).await?;
            sys.cgroup_enter(service).await?;
            match served {
                Some(link) => memcached::serve(&sys, keys, link, loaded).await,
                None => memcached::serve_itself(&sys, (keys, threads), times, [loaded, ready]).await,
            }
        });
        sys.barrier_wait(loaded).await;
        sys.phase("layout");
        let shell = groups.make_shell(&sys).await?;
        let reader = self.clone();
        let memtier = link.map(|link| {
            start(&sys, SpawnOptions::process("memtier"), move |sys: S| async move {
                if let Some(group) = groups.of_clients(shell) {
                    sys.cgroup_enter(group).await?;
                }
                memcached::request(&sys, times, link, ready).await
            })
        });
        let fio = start(&sys, SpawnOptions::process("fio"), move |sys: S| async move {
            if let Some(max) = reader.fio_max {
                sys.cgroup_set(shell, CgroupLimit::Max, Some(max)).await?;
            }
            sys.cgroup_enter(shell).await?;
            reader.read(&sys, file_mb, times, ready).await
        });
        sys.barrier_wait(ready).await;
        sys.phase("warm-up");
        sys.sleep(Nanos::secs(times.warm_up)).await;
        sys.phase("measure");
        join_all(&sys, memtier.as_slice()).await;
        join_all(&sys, &[memcached, fio]).await;
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
    while !board.is_over() {
        batch.iter_mut().for_each(|page| *page = rng.random_range(0..pages));
        sys.read_batch(fd, &batch).await?;
        sys.compute(Nanos(IO_CPU.0 * BATCH as u64)).await;
        board.add(BATCH);
    }
    sys.close(fd).await
}
