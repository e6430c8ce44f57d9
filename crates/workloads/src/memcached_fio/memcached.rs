//! memcached and its clients.
//!
//! Source: memcached 1.6 (`items.c`, `slabs.c`, `thread.c`), memtier_benchmark with `-c 1 -t THREADS --pipeline 8`: each of its threads has
//! one connection, and the server deals connections out to its threads in turn.
//! Abstracted: a connection is two barriers. The server's thread has all requests of a pipeline at hand when it wakes up, and the client all
//! replies: memcached 1.6 sends them together. Where client and server's thread are one ([`Clients::Paired`]), it weighs as two where CPUs are
//! shared ([`PAIR_NICE`]): one of them is always runnable, and each gets a share. An item lies in the server's memory where the order of
//! its key puts it; a request for it reads the page of its hash bucket and the pages that its header, key and value lie in, and then writes
//! to its header: the server counts who uses an item there (`refcount_incr()` in `do_item_get()`).

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
    async fn new<S: Sys>(sys: &S, keys: Keys) -> sys::Result<Store> {
        let item = keys.value + ITEM_OVERHEAD;
        let chunk = chunk_for(item);
        let slabs = sys.mmap(Bytes(keys.count.div_ceil(SLAB_PAGE / chunk) * SLAB_PAGE), Bytes(PAGE_SIZE)).await?;
        // The table grows once there are 1.5 items for each bucket.
        let buckets = (keys.count * 2 / 3).next_power_of_two().max(512);
        let table = sys.mmap(Bytes(buckets * 8), Bytes(PAGE_SIZE)).await?;
        sys.madvise(slabs, Advice::NoHugePage).await?;
        sys.madvise(table, Advice::NoHugePage).await?;
        sys.touch(table, Bytes(0), table.length, Access::Write).await?;
        Ok(Store { slabs, table, buckets, keys: keys.count, chunk, item })
    }

    /// Where an item begins.
    fn offset(&self, key: u64) -> u64 {
        let per_page = SLAB_PAGE / self.chunk;
        key / per_page * SLAB_PAGE + key % per_page * self.chunk
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
    let store = Store::new(sys, keys).await?;
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
            let begin = self.store.offset(self.rng.random_range(0..self.store.keys));
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
}
