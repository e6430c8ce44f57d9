//! Speed of the page allocator on a machine of 8 GiB.
//!
//! Targets, on an AMD EPYC (Zen 4) of 3.67 GHz, for allocating a block and freeing it: order 0 through a per-CPU list within 4 ns, many
//! at once through the buddy lists within 18 ns, freed in random order within 30 ns; order 9 within 12 ns, many at once within 30 ns.

use std::hint::black_box;

use divan::Bencher;
use divan::counter::ItemsCount;
use mm::{AllocRequest, Costs, Env, MemoryLayout, Mm, NodeSpec, TaskFlags, ZoneKind, ZoneSpan};
use rules::{AllocReserves, FreeListEnd, FreeListTypes, HighAtomicReserve, PcpLists, Rules, Tunables, WatermarkBoost};
use units::{CpuId, Gfp, Nanos, NodeId, Order, Pages, Pfn};

const ERAS: [&str; 2] = ["4.20", "6.12"];
/// Pages or huge pages that a bulk bench allocates: 4 GiB.
const PAGES: usize = 1 << 20;
const HUGE: usize = 2048;

fn main() {
    divan::main();
}

fn era(name: &str) -> Rules {
    if name == "6.12" {
        return Rules::newest();
    }
    Rules {
        zone_spreading: rules::ZoneSpreading::Off,
        watermark_boost: WatermarkBoost::Off,
        pcp_lists: PcpLists::OrderZero,
        free_list_types: FreeListTypes::Loose,
        free_list_end: FreeListEnd::Head,
        alloc_reserves: AllocReserves::Harder,
        highatomic_reserve: HighAtomicReserve::OnePercentAndBlock,
        ..Rules::newest()
    }
}

fn machine(name: &str) -> Mm {
    let pages = Pages(8 << 18);
    let zone =
        ZoneSpan { kind: ZoneKind::Normal, start: Pfn(0), spanned: pages, present: pages, managed: pages, hole: None };
    let node = NodeSpec { zones: vec![zone], distance: vec![10] };
    let layout = MemoryLayout { nodes: vec![node], cpu_nodes: vec![NodeId(0); 4] };
    Mm::new(&layout, era(name), Tunables::default(), Costs::default())
}

fn env() -> Env {
    Env { now: Nanos::ZERO, cpu: CpuId(0), node: NodeId(0), task: TaskFlags::default() }
}

fn movable(order: u8) -> AllocRequest {
    AllocRequest { gfp: Gfp::HIGHUSER_MOVABLE, order: Order(order), node: NodeId(0) }
}

/// A fixed permutation of `0..len`: steps by an odd number that is far from any power of two.
fn shuffled(len: usize) -> impl Iterator<Item = usize> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut order: Vec<usize> = (0..len).collect();
    for at in (1..len).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        order.swap(at, (state >> 33) as usize % (at + 1));
    }
    order.into_iter()
}

/// One page allocated and freed again: the per-CPU list is neither empty nor full.
#[divan::bench(args = ERAS)]
fn order_0_pair(bencher: Bencher, name: &str) {
    let (mut mm, env) = (machine(name), env());
    bencher.counter(ItemsCount::new(1000usize)).bench_local(|| {
        for _ in 0..1000 {
            let pfn = mm.alloc_pages(&env, movable(0)).expect("memory is free");
            mm.free_pages(&env, black_box(pfn), Order(0));
        }
    });
}

/// 4 GiB allocated page by page, then freed in the same order.
#[divan::bench(args = ERAS, sample_count = 10)]
fn order_0_bulk_pair(bencher: Bencher, name: &str) {
    let (mut mm, env) = (machine(name), env());
    let mut pages = vec![Pfn::NONE; PAGES];
    bencher.counter(ItemsCount::new(PAGES)).bench_local(|| {
        for page in &mut pages {
            *page = mm.alloc_pages(&env, movable(0)).expect("memory is free");
        }
        for &page in &pages {
            mm.free_pages(&env, page, Order(0));
        }
    });
}

/// The frees alone, in random order.
#[divan::bench(args = ERAS, sample_count = 10)]
fn order_0_free_random(bencher: Bencher, name: &str) {
    let (mm, env) = (std::cell::RefCell::new(machine(name)), env());
    let order: Vec<usize> = shuffled(PAGES).collect();
    bencher
        .counter(ItemsCount::new(PAGES))
        .with_inputs(|| {
            let mut mm = mm.borrow_mut();
            let pages: Vec<Pfn> =
                (0..PAGES).map(|_| mm.alloc_pages(&env, movable(0)).expect("memory is free")).collect();
            order.iter().map(|&at| pages[at]).collect::<Vec<Pfn>>()
        })
        .bench_local_values(|pages| {
            let mut mm = mm.borrow_mut();
            for page in pages {
                mm.free_pages(&env, page, Order(0));
            }
        });
}

/// One huge page allocated and freed again.
#[divan::bench(args = ERAS)]
fn order_9_pair(bencher: Bencher, name: &str) {
    let (mut mm, env) = (machine(name), env());
    bencher.counter(ItemsCount::new(1000usize)).bench_local(|| {
        for _ in 0..1000 {
            let pfn = mm.alloc_pages(&env, movable(9)).expect("memory is free");
            mm.free_pages(&env, black_box(pfn), Order(9));
        }
    });
}

/// 4 GiB allocated in huge pages, then freed.
#[divan::bench(args = ERAS)]
fn order_9_bulk_pair(bencher: Bencher, name: &str) {
    let (mut mm, env) = (machine(name), env());
    let mut pages = vec![Pfn::NONE; HUGE];
    bencher.counter(ItemsCount::new(HUGE)).bench_local(|| {
        for page in &mut pages {
            *page = mm.alloc_pages(&env, movable(9)).expect("memory is free");
        }
        for &page in &pages {
            mm.free_pages(&env, page, Order(9));
        }
    });
}
