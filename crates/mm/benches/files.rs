//! Speed of slab caches and of files coming and going, on a machine of 8 GiB.

use std::hint::black_box;

use divan::Bencher;
use divan::counter::ItemsCount;
use mm::memcg::ROOT;
use mm::slab::{CacheId, Obj};
use mm::vfs::{DirId, FsSpec, Share, ShrinkerId};
use mm::{Costs, Env, MemoryLayout, Mm, NodeSpec, TaskFlags, ZoneKind, ZoneSpan};
use rules::{Rules, Tunables};
use units::{Bytes, CpuId, FileId, Gfp, Nanos, NodeId, Pages, Pfn};

/// Objects or files of a bulk bench.
const MANY: usize = 1 << 20;

fn main() {
    divan::main();
}

fn machine() -> Mm {
    let pages = Pages(8 << 18);
    let zone =
        ZoneSpan { kind: ZoneKind::Normal, start: Pfn(0), spanned: pages, present: pages, managed: pages, hole: None };
    let node = NodeSpec { zones: vec![zone], distance: vec![10] };
    let layout = MemoryLayout { nodes: vec![node], cpu_nodes: vec![NodeId(0); 4] };
    Mm::new(&layout, Rules::newest(), Tunables::default(), Costs::default())
}

fn env() -> Env {
    Env { now: Nanos::ZERO, cpu: CpuId(0), node: NodeId(0), task: TaskFlags::default() }
}

fn xfs() -> (Mm, DirId) {
    let mut mm = machine();
    let fs = mm.vfs_mkfs(FsSpec::xfs(0, Bytes::gib(1024)));
    let dir = mm.vfs_root(fs);
    (mm, dir)
}

/// One object allocated and freed again.
#[divan::bench]
fn object_pair(bencher: Bencher) {
    let (mut mm, env) = (machine(), env());
    bencher.counter(ItemsCount::new(1000usize)).bench_local(|| {
        for _ in 0..1000 {
            let obj = mm.slab_alloc(black_box(&env), CacheId::DENTRY, Gfp::KERNEL).expect("memory is free");
            mm.slab_free(&env, CacheId::DENTRY, obj);
        }
    });
}

/// A million objects allocated, then freed in the same order.
#[divan::bench(args = [CacheId::DENTRY, CacheId::XFS_INODE], sample_count = 5)]
fn object_bulk_pair(bencher: Bencher, cache: CacheId) {
    let (mut mm, env) = (machine(), env());
    bencher.counter(ItemsCount::new(MANY)).bench_local(|| {
        let alloc = |_| mm.slab_alloc(&env, cache, Gfp::KERNEL).expect("memory is free");
        let objects: Vec<Obj> = (0..MANY).map(alloc).collect();
        for obj in objects {
            mm.slab_free(&env, cache, obj);
        }
    });
}

/// A million files created and closed.
#[divan::bench(sample_count = 5)]
fn create_and_close(bencher: Bencher) {
    let env = env();
    bencher.counter(ItemsCount::new(MANY)).with_inputs(xfs).bench_local_values(|(mut mm, dir)| {
        for _ in 0..MANY {
            let handle = mm.vfs_create(&env, dir).expect("memory is free");
            mm.vfs_close(&env, handle);
        }
        mm
    });
}

/// Files that are in memory, opened and closed.
#[divan::bench(sample_count = 5)]
fn open_and_close(bencher: Bencher) {
    let ((mut mm, dir), env) = (xfs(), env());
    let mut create = || {
        let handle = mm.vfs_create(&env, dir).expect("memory is free");
        mm.vfs_close(&env, handle);
        handle.file
    };
    let files: Vec<FileId> = (0..MANY).map(|_| create()).collect();
    bencher.counter(ItemsCount::new(MANY)).bench_local(|| {
        for file in &files {
            let handle = mm.vfs_open(&env, *file).expect("it is in memory");
            mm.vfs_close(&env, handle);
        }
    });
}

/// A million files in memory, shrunk until none is.
#[divan::bench(sample_count = 5)]
fn shrink_all(bencher: Bencher) {
    let env = env();
    let filled = || {
        let (mut mm, dir) = xfs();
        for _ in 0..MANY {
            let handle = mm.vfs_create(&env, dir).expect("memory is free");
            mm.vfs_close(&env, handle);
        }
        let fs = mm::vfs::FsId(0);
        mm.vfs_force_log(&env, fs);
        mm.vfs_push_metadata(&env, fs, u64::MAX, usize::MAX).expect("the clusters are in memory");
        mm.vfs_submit_metadata(&env, fs, usize::MAX);
        mm
    };
    let share = Share { node: NodeId(0), memcg: ROOT };
    bencher.counter(ItemsCount::new(MANY)).with_inputs(filled).bench_local_values(|mut mm| {
        while mm.vfs.cached() != (0, 0) {
            mm.shrinker_scan(&env, ShrinkerId::Superblock, share, 1024, Gfp::KERNEL);
        }
        mm
    });
}
