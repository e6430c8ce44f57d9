//! memcached and its clients.
//!
//! Source: memcached 1.6 (`items.c`, `slabs.c`, `thread.c`), memtier_benchmark with `-c 1 -t THREADS --pipeline 8`: each of its threads has
//! one connection, and the server deals connections out to its threads in turn.
//! Abstracted: a connection is two barriers. The server's thread has all requests of a pipeline at hand when it wakes up, and the client all
//! replies: memcached 1.6 sends them together. Where client and server's thread are one ([`Clients::Paired`]), it weighs as two where CPUs are
//! shared ([`PAIR_NICE`]): one of them is always runnable, and each gets a share. An item lies in the server's memory where the order of
//! its key puts it; a request for it reads the page of its hash bucket and the pages that its header, key and value lie in, and then writes
//! to its header: the server counts who uses an item there (`refcount_incr()` in `do_item_get()`). On its way to the item it reads
//! the header and key of each that stands before it in the bucket's chain (`assoc_find()`, assoc.c), which are those that were stored after
//! it (`assoc_insert()`). Which items share a bucket is drawn anew for each request.
//! Omitted: look-ups before a key is stored; growing the table, which turns chains round; the thread that keeps the LRU of items in order.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use smallvec::SmallVec;
use sys::{Access, Advice, Barrier, Mapping, SpawnOptions, Sys};
use units::{Bytes, Nanos, PAGE_SIZE};

use super::{Board, Times, measure};
use crate::steps::{join_all, start};

/// CPU time of the server for one request, the kernel's sockets and the copies included, on a server like the published one. Guess within
/// what is known: memcached serves 200 to 300 thousand small requests a second and thread over sockets, 3.3 to 5 us each.
const SERVER_CPU: Nanos = Nanos(4_000);
/// The same of the client: memtier_benchmark sends 150 to 200 thousand a second and thread, 5 to 6.7 us each.
const CLIENT_CPU: Nanos = Nanos(6_000);
/// Nice level of a thread that stands for two at 0 (`sched_prio_to_weight[]`, kernel/sched/core.c: 1991 and 1024).
const PAIR_NICE: i8 = -3;
/// Requests that a client sends before it waits (`--pipeline`).
const PIPELINE: usize = 8;
/// A memcached page: slabs are cut from these.
pub(super) const SLAB_PAGE: u64 = 1 << 20;
/// Bytes of an item beside its value: header, CAS, key `memtier-NNNNNNNN`, ends of lines.
const ITEM_OVERHEAD: u64 = 48 + 8 + 17 + 2;
/// Smallest chunk, and how much larger the next class is (`-n 48 -f 1.25`).
const CHUNK_MIN: u64 = 96;
const CHUNK_GROWTH: f64 = 1.25;
/// Bytes that memtier counts for a request: the binary protocol's header and the key. The published figures are that and
/// no more.
const REQUEST_BYTES: f64 = 24.0 + 15.8;

/// Size of the chunks that items of a size are put in.
fn chunk_for(item: u64) -> u64 {
    let mut chunk = CHUNK_MIN;
    while chunk < item {
        chunk = ((chunk as f64 * CHUNK_GROWTH) as u64).next_multiple_of(8);
    }
    chunk
}

/// What the parameter `clients` may say.
pub(super) const CLIENTS: &[(&str, Option<Clients>)] =
    &[("auto", None), ("apart", Some(Clients::Apart)), ("paired", Some(Clients::Paired))];

/// Where the clients are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Clients {
    /// In a process of their own: they and the server's threads wake each other.
    Apart,
    /// A client and the thread that serves it take turns, and are one thread of the server.
    Paired,
}

/// What the server keeps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keys {
    /// How many.
    pub(super) count: u64,
    /// Bytes of a value.
    pub(super) value: u64,
    /// Requests walk the chains of the hash table.
    pub(super) chains: bool,
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
    chains: Option<Chains>,
}

impl Store {
    async fn new<S: Sys>(sys: &S, keys: Keys, threads: u64) -> sys::Result<Store> {
        let item = keys.value + ITEM_OVERHEAD;
        let chunk = chunk_for(item);
        let slabs = sys.mmap(Bytes(keys.count.div_ceil(SLAB_PAGE / chunk) * SLAB_PAGE), Bytes(PAGE_SIZE)).await?;
        // The table grows once there are 1.5 items for each bucket.
        let buckets = (keys.count * 2 / 3).next_power_of_two().max(512);
        let table = sys.mmap(Bytes(buckets * 8), Bytes(PAGE_SIZE)).await?;
        sys.madvise(slabs, Advice::NoHugePage).await?;
        sys.madvise(table, Advice::NoHugePage).await?;
        sys.touch(table, Bytes(0), table.length, Access::Write).await?;
        let share = keys.count.div_ceil(threads);
        let chains = keys.chains.then_some(Chains { share, shares: threads, buckets });
        Ok(Store { slabs, table, buckets, keys: keys.count, chunk, item, chains })
    }

    /// Where an item begins.
    fn offset(&self, key: u64) -> u64 {
        let per_page = SLAB_PAGE / self.chunk;
        key / per_page * SLAB_PAGE + key % per_page * self.chunk
    }
}

/// Which items stand before another in the chain of its bucket. All shares of the keys are stored at the same time, each in the
/// order of its keys.
#[derive(Clone, Copy)]
struct Chains {
    /// Keys that a client stores.
    share: u64,
    /// How many clients do so.
    shares: u64,
    buckets: u64,
}

impl Chains {
    /// How many keys of each share are stored after this one.
    fn later(self, key: u64) -> u64 {
        self.share - 1 - key % self.share
    }

    /// Items that stand before that of a key, on average.
    fn mean_before(self, key: u64) -> f64 {
        (self.later(key) * self.shares) as f64 / self.buckets as f64
    }

    /// Calls `visit` with the keys of the items before that of a key: of so many that may each be in any bucket, as many are in one as a
    /// Poisson distribution has it.
    fn walk(self, rng: &mut ChaCha8Rng, key: u64, mut visit: impl FnMut(u64)) {
        let none = (-self.mean_before(key)).exp();
        let mut left: f64 = rng.random();
        while left > none {
            let (share, after) = (rng.random_range(0..self.shares), rng.random_range(1..=self.later(key)));
            visit(share * self.share + key % self.share + after);
            left *= rng.random::<f64>();
        }
    }
}

/// A client's connection to the server.
#[derive(Clone, Copy)]
struct Connection {
    /// The requests of a pipeline are there.
    request: Barrier,
    /// Their replies are.
    reply: Barrier,
}

/// What server and load generator share.
#[derive(Clone)]
pub(super) struct Link {
    connections: Vec<Connection>,
    /// The clients have ended; the server's threads are to end with their next wake-up.
    closing: Barrier,
}

impl Link {
    pub(super) fn new<S: Sys>(sys: &S, threads: u64) -> Link {
        let connection = |_| Connection { request: sys.barrier(2), reply: sys.barrier(2) };
        Link { connections: (0..threads).map(connection).collect(), closing: sys.barrier(2) }
    }
}

/// Fills a server with its keys, by as many threads as will serve them.
async fn fill<S: Sys>(sys: &S, keys: Keys, threads: u64) -> sys::Result<Store> {
    let store = Store::new(sys, keys, threads).await?;
    let loaders: Vec<_> = (0..threads)
        .map(|thread| {
            start(sys, SpawnOptions::thread("memcached"), move |sys: S| async move {
                load(&sys, store, thread, threads).await
            })
        })
        .collect();
    join_all(sys, &loaders).await;
    Ok(store)
}

/// The server, from its first key until the clients have ended.
pub(super) async fn serve<S: Sys>(sys: &S, keys: Keys, link: Link, loaded: Barrier) -> sys::Result<()> {
    let store = fill(sys, keys, link.connections.len() as u64).await?;
    sys.barrier_wait(loaded).await;
    let over = Arc::new(AtomicBool::new(false));
    let workers: Vec<_> = (0..)
        .zip(&link.connections)
        .map(|(thread, &connection)| {
            let over = over.clone();
            start(sys, SpawnOptions::thread("memcached"), move |sys: S| async move {
                answer(&sys, Requests::new(&sys, store, thread), connection, &over).await
            })
        })
        .collect();
    sys.barrier_wait(link.closing).await;
    over.store(true, Ordering::Relaxed);
    sys.barrier_wait(link.closing).await;
    join_all(sys, &workers).await;
    Ok(())
}

/// The server with its clients in it.
pub(super) async fn serve_itself<S: Sys>(
    sys: &S,
    (keys, threads): (Keys, u64),
    times: Times,
    [loaded, ready]: [Barrier; 2],
) -> sys::Result<()> {
    let store = fill(sys, keys, threads).await?;
    sys.barrier_wait(loaded).await;
    sys.barrier_wait(ready).await;
    let board = Board::default();
    let pairs: Vec<_> = (0..threads)
        .map(|thread| {
            let board = board.clone();
            let pair = SpawnOptions { nice: PAIR_NICE, ..SpawnOptions::thread("memcached") };
            start(sys, pair, move |sys: S| async move {
                let mut requests = Requests::new(&sys, store, thread);
                while !board.is_over() {
                    requests.answer(&sys).await?;
                    sys.compute(Nanos((SERVER_CPU.0 + CLIENT_CPU.0) * PIPELINE as u64)).await;
                    board.add(PIPELINE);
                }
                Ok(())
            })
        })
        .collect();
    measure(sys, times, &board, take).await;
    join_all(sys, &pairs).await;
    Ok(())
}

/// Records a rate.
fn take<S: Sys>(sys: &S, per_s: f64) {
    sys.sample("ops_per_s", per_s);
    sys.sample("bandwidth_kb_per_s", per_s * REQUEST_BYTES / 1024.0);
}

/// Stores a thread's share of the keys.
async fn load<S: Sys>(sys: &S, store: Store, thread: u64, threads: u64) -> sys::Result<()> {
    let pages = store.slabs.length.0 / SLAB_PAGE;
    for page in pages * thread / threads..pages * (thread + 1) / threads {
        sys.touch(store.slabs, Bytes(page * SLAB_PAGE), Bytes(SLAB_PAGE), Access::Write).await?;
    }
    Ok(())
}

/// Requests for keys at random, a pipeline at a time.
struct Requests {
    rng: ChaCha8Rng,
    store: Store,
    items: SmallVec<[u64; 4 * PIPELINE]>,
    buckets: SmallVec<[u64; PIPELINE]>,
    headers: SmallVec<[u64; PIPELINE]>,
}

impl Requests {
    fn new<S: Sys>(sys: &S, store: Store, thread: u64) -> Requests {
        let mut rng = ChaCha8Rng::seed_from_u64(sys.seed());
        rng.set_stream(1 + thread);
        Requests { rng, store, items: SmallVec::new(), buckets: SmallVec::new(), headers: SmallVec::new() }
    }

    /// What the server does in its memory for the next pipeline.
    async fn answer<S: Sys>(&mut self, sys: &S) -> sys::Result<()> {
        self.items.clear();
        self.buckets.clear();
        self.headers.clear();
        for _ in 0..PIPELINE {
            self.buckets.push(self.rng.random_range(0..self.store.buckets) * 8);
            let key = self.rng.random_range(0..self.store.keys);
            if let Some(chains) = self.store.chains {
                let (store, items) = (self.store, &mut self.items);
                chains.walk(&mut self.rng, key, |before| items.push(store.offset(before.min(store.keys - 1))));
            }
            let begin = self.store.offset(key);
            let last = begin + self.store.item - 1;
            self.headers.push(begin);
            self.items.extend((begin / PAGE_SIZE..=last / PAGE_SIZE).map(|page| page * PAGE_SIZE));
        }
        sys.poke_many(self.store.table, &self.buckets, Access::Read).await?;
        sys.poke_many(self.store.slabs, &self.items, Access::Read).await?;
        sys.poke_many(self.store.slabs, &self.headers, Access::Write).await
    }
}

/// A thread of the server: answers the requests of its connection until the end.
async fn answer<S: Sys>(sys: &S, mut requests: Requests, connection: Connection, over: &AtomicBool) -> sys::Result<()> {
    loop {
        sys.barrier_wait(connection.request).await;
        if over.load(Ordering::Relaxed) {
            return Ok(());
        }
        requests.answer(sys).await?;
        sys.compute(Nanos(SERVER_CPU.0 * PIPELINE as u64)).await;
        sys.barrier_wait(connection.reply).await;
    }
}

/// The load generator.
pub(super) async fn request<S: Sys>(sys: &S, times: Times, link: Link, ready: Barrier) -> sys::Result<()> {
    sys.barrier_wait(ready).await;
    let board = Board::default();
    let clients: Vec<_> = link
        .connections
        .iter()
        .map(|&connection| {
            let board = board.clone();
            start(sys, SpawnOptions::thread("memtier"), move |sys: S| async move {
                ask(&sys, connection, &board).await;
                Ok(())
            })
        })
        .collect();
    measure(sys, times, &board, take).await;
    join_all(sys, &clients).await;
    sys.barrier_wait(link.closing).await;
    sys.barrier_wait(link.closing).await;
    for connection in link.connections {
        sys.barrier_wait(connection.request).await;
    }
    Ok(())
}

/// A client: sends a pipeline of requests and waits for the replies, until the end.
async fn ask<S: Sys>(sys: &S, connection: Connection, board: &Board) {
    while !board.is_over() {
        sys.compute(Nanos(CLIENT_CPU.0 * PIPELINE as u64)).await;
        sys.barrier_wait(connection.request).await;
        sys.barrier_wait(connection.reply).await;
        board.add(PIPELINE);
    }
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

    #[test]
    fn those_stored_later_stand_before_an_item() {
        // 3 shares of 1000 keys in 2000 buckets: 1.5 items in each, of which 3 x 999 / 2000 were stored after the first key.
        let chains = Chains { share: 1000, shares: 3, buckets: 2000 };
        assert_eq!([0, 1999, 2998].map(|key| chains.mean_before(key)), [1.4985, 0.0, 0.0015]);
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let (mut walked, rounds) = (0, 20);
        for key in (0..rounds).flat_map(|_| 0..3000) {
            chains.walk(&mut rng, key, |before| {
                assert!(before < 3000 && before % 1000 > key % 1000);
                walked += 1;
            });
        }
        // Each of the pairs of keys of different rank once: 3 x 3 x 1000 x 999 / 2 pairs, a 2000th of which share a bucket.
        let expected = f64::from(rounds) * 9.0 * 1000.0 * 999.0 / 2.0 / 2000.0;
        let deviations = (f64::from(walked) - expected) / expected.sqrt();
        assert!(deviations.abs() < 3.0, "{walked} of {expected}");
    }
}
