//! Speed of the page cache on a machine of 8 GiB, per page.

use std::hint::black_box;

use divan::Bencher;
use divan::counter::ItemsCount;
use mm::pagecache::{PageWrite, ReadStop, Readahead, Slot, WriteStop};
use mm::vfs::{DirId, FsSpec};
use mm::writeback::{EndIoStep, Fsync, FsyncStep};
use mm::{Costs, Effect, Env, MemoryLayout, Mm, NodeSpec, TaskFlags, ZoneKind, ZoneSpan};
use rules::{Rules, Tunables};
use units::{Bytes, CpuId, FileId, Gfp, Nanos, NodeId, Order, Pages, Pfn};

/// Pages of a bench.
const MANY: u32 = 1 << 20;

fn main() {
    divan::main();
}

fn env() -> Env {
    Env { now: Nanos::ZERO, cpu: CpuId(0), node: NodeId(0), task: TaskFlags::default() }
}

fn machine() -> (Mm, DirId) {
    let pages = Pages(8 << 18);
    let zone =
        ZoneSpan { kind: ZoneKind::Normal, start: Pfn(0), spanned: pages, present: pages, managed: pages, hole: None };
    let node = NodeSpec { zones: vec![zone], distance: vec![10] };
    let layout = MemoryLayout { nodes: vec![node], cpu_nodes: vec![NodeId(0); 4] };
    // All of memory may be dirty, so that no allocation takes the slow path.
    let tunables = Tunables { dirty_ratio: 100, dirty_background_ratio: 90, ..Tunables::default() };
    let mut mm = Mm::new(&layout, Rules::newest(), tunables, Costs::default());
    let fs = mm.vfs_mkfs(FsSpec::xfs(0, Bytes::gib(1024)));
    let dir = mm.vfs_root(fs);
    (mm, dir)
}

fn create(mm: &mut Mm, dir: DirId) -> FileId {
    mm.vfs_create(&env(), dir).expect("memory is free").file
}

fn write(mm: &mut Mm, env: &Env, file: FileId, index: u32) {
    let stop = mm.write_page(env, &mut PageWrite::new(file, index, 1));
    debug_assert!(matches!(stop, WriteStop::Done { .. }), "{stop:?}");
}

/// Completes everything submitted.
fn complete(mm: &mut Mm, env: &Env, effects: &mut Vec<Effect>) {
    mm.effects.take_into(effects);
    for effect in effects.iter() {
        let Effect::Submit(bio) = effect else { continue };
        mm.end_bio(env, bio, true);
        while mm.end_io_step(env) == EndIoStep::Done {}
    }
}

/// Brings a file to the device.
fn fsync(mm: &mut Mm, env: &Env, file: FileId, effects: &mut Vec<Effect>) {
    let mut fsync = Fsync::default();
    loop {
        match mm.fsync_step(env, file, &mut fsync) {
            FsyncStep::Done => return,
            FsyncStep::Log(bio) => {
                mm.begin_metadata(bio);
            }
            FsyncStep::More | FsyncStep::Journal(_) | FsyncStep::Wait(_) => {}
        }
        complete(mm, env, effects);
    }
}

/// A machine with a clean cached file of 4 GiB.
fn cached() -> (Mm, FileId) {
    let ((mut mm, dir), env) = (machine(), env());
    let file = create(&mut mm, dir);
    (0..MANY).for_each(|index| write(&mut mm, &env, file, index));
    fsync(&mut mm, &env, file, &mut Vec::new());
    (mm, file)
}

fn read(mm: &mut Mm, env: &Env, file: FileId, index: u32, ra: &mut Readahead) {
    let stop = mm.read_page(env, file, index, 1, ra, &mut None);
    debug_assert!(stop == ReadStop::Done, "{stop:?}");
}

/// Reads of cached pages one after the other.
#[divan::bench(sample_count = 10)]
fn hit_sequential(bencher: Bencher) {
    let ((mut mm, file), env, mut ra) = (cached(), env(), Readahead::default());
    bencher.counter(ItemsCount::new(MANY)).bench_local(|| {
        (0..MANY).for_each(|index| read(&mut mm, black_box(&env), file, index, &mut ra));
    });
}

/// Reads of cached pages here and there.
#[divan::bench(sample_count = 10)]
fn hit_random(bencher: Bencher) {
    let ((mut mm, file), env, mut ra) = (cached(), env(), Readahead::default());
    let mut at = 1u32;
    bencher.counter(ItemsCount::new(MANY)).bench_local(|| {
        for _ in 0..MANY {
            at = at.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            read(&mut mm, black_box(&env), file, at >> 12, &mut ra);
        }
    });
}

/// A lookup alone.
#[divan::bench(sample_count = 10)]
fn get_random(bencher: Bencher) {
    let (mm, file) = cached();
    let mut at = 1u32;
    bencher.counter(ItemsCount::new(MANY)).bench_local(|| {
        let mut found = 0;
        for _ in 0..MANY {
            at = at.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            found += u32::from(matches!(mm.pagecache_get(file, at >> 12), Slot::Page(_)));
        }
        found
    });
}

/// New pages written and truncated again: in one file, and in files of 16 pages.
#[divan::bench(args = [MANY, 16], sample_count = 5)]
fn write_new_and_truncate(bencher: Bencher, pages: u32) {
    let ((mut mm, dir), env, mut effects) = (machine(), env(), Vec::new());
    let files: Vec<FileId> = (0..MANY / pages).map(|_| create(&mut mm, dir)).collect();
    bencher.counter(ItemsCount::new(MANY)).bench_local(|| {
        for &file in &files {
            (0..pages).for_each(|index| write(&mut mm, black_box(&env), file, index));
        }
        for &file in &files {
            mm.truncate_pages(&env, file, 0);
        }
        complete(&mut mm, &env, &mut effects);
    });
}

/// New pages written, brought to the device and truncated.
#[divan::bench(args = [MANY, 16], sample_count = 5)]
fn write_fsync_and_truncate(bencher: Bencher, pages: u32) {
    let ((mut mm, dir), env, mut effects) = (machine(), env(), Vec::new());
    let files: Vec<FileId> = (0..MANY / pages).map(|_| create(&mut mm, dir)).collect();
    bencher.counter(ItemsCount::new(MANY)).bench_local(|| {
        for &file in &files {
            (0..pages).for_each(|index| write(&mut mm, black_box(&env), file, index));
            fsync(&mut mm, &env, file, &mut effects);
            mm.truncate_pages(&env, file, 0);
        }
    });
}

/// A miss: a page is allocated and put in where its shadow is, and the one 256 K pages back is evicted.
#[divan::bench(sample_count = 5)]
fn insert_and_evict(bencher: Bencher) {
    let ((mut mm, dir), env) = (machine(), env());
    let file = create(&mut mm, dir);
    let resident = MANY / 4;
    let req = mm::AllocRequest { gfp: Gfp::HIGHUSER_MOVABLE, order: Order(0), node: NodeId(0) };
    let mut next = 0u32;
    let mut turn = |mm: &mut Mm| {
        let index = next % MANY;
        let pfn = mm.alloc_pages(&env, req).expect("memory is free");
        mm.pagecache_insert(&env, pfn, file, index).expect("memory is free");
        if next >= resident {
            let old = (next - resident) % MANY;
            let Slot::Page(pfn) = mm.pagecache_get(file, old) else { panic!("page {old} is cached") };
            mm.lru_del(pfn);
            let shadow = mm.workingset_eviction(pfn);
            mm.pagecache_remove(&env, pfn, Some(shadow));
            mm.free_pages(&env, pfn, Order(0));
        }
        next += 1;
    };
    (0..MANY + resident).for_each(|_| turn(&mut mm));
    bencher.counter(ItemsCount::new(MANY)).bench_local(|| (0..MANY).for_each(|_| turn(&mut mm)));
}
