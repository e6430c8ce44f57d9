//! Speed of anonymous faults on a machine of 8 GiB, allocation and LRU insertion included.
//!
//! Targets, on an AMD EPYC (Zen 4) of 3.67 GHz: 40 million faults a second one after the other, 25 million scattered ones, and a huge
//! page within 100 ns.

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use mm::anon::{Touch, TouchStop};
use mm::{Costs, Env, MemoryLayout, Mm, NodeSpec, TaskFlags, ZoneKind, ZoneSpan};
use rules::{
    AllocReserves, AnonStart, FreeListEnd, FreeListTypes, HighAtomicReserve, PcpLists, Rules, SwapinLru, ThpDefrag,
    ThpEnabled, Tunables, WatermarkBoost, ZoneSpreading,
};
use units::{CpuId, Nanos, NodeId, Pages, Pfn, SpaceId};

const ERAS: [&str; 2] = ["4.20", "6.12"];
/// Pages of a run: 4 GiB.
const PAGES: u32 = 1 << 20;

fn main() {
    divan::main();
}

fn era(name: &str) -> Rules {
    if name == "6.12" {
        return Rules::newest();
    }
    Rules {
        zone_spreading: ZoneSpreading::Off,
        watermark_boost: WatermarkBoost::Off,
        pcp_lists: PcpLists::OrderZero,
        free_list_types: FreeListTypes::Loose,
        free_list_end: FreeListEnd::Head,
        alloc_reserves: AllocReserves::Harder,
        highatomic_reserve: HighAtomicReserve::OnePercentAndBlock,
        anon_start: AnonStart::Active,
        swapin_lru: SwapinLru::Active,
        ..Rules::newest()
    }
}

/// A machine whose frames the host has touched already, with an area of `PAGES` pages.
fn machine(name: &str, thp: ThpEnabled) -> (Mm, SpaceId, u32) {
    let pages = Pages(8 << 18);
    let zone =
        ZoneSpan { kind: ZoneKind::Normal, start: Pfn(0), spanned: pages, present: pages, managed: pages, hole: None };
    let node = NodeSpec { zones: vec![zone], distance: vec![10] };
    let layout = MemoryLayout { nodes: vec![node], cpu_nodes: vec![NodeId(0); 4] };
    let tunables = Tunables { thp_enabled: thp, thp_defrag: ThpDefrag::Never, ..Tunables::default() };
    let mut mm = Mm::new(&layout, era(name), tunables, Costs::default());
    let space = mm.space_create();
    let vpn = mm.mmap_anon(space, PAGES, 512);
    touch(&mut mm, space, vpn, PAGES);
    mm.munmap(&env(), space, vpn, PAGES);
    let vpn = mm.mmap_anon(space, PAGES, 512);
    (mm, space, vpn)
}

fn env() -> Env {
    Env { now: Nanos::ZERO, cpu: CpuId(0), node: NodeId(0), task: TaskFlags::default() }
}

fn touch(mm: &mut Mm, space: SpaceId, vpn: u32, pages: u32) {
    let mut touch = Touch::new(space, vpn, pages, true, 1 << 60);
    assert_eq!(mm.touch(&env(), black_box(&mut touch), None), TouchStop::Done);
}

/// 4 GiB touched from the first page to the last.
#[divan::bench(args = ERAS, sample_count = 10)]
fn base_sequential(bencher: Bencher, name: &str) {
    let built = || machine(name, ThpEnabled::Never);
    bencher.counter(ItemsCount::new(PAGES)).with_inputs(built).bench_local_refs(|(mm, space, vpn)| {
        touch(mm, *space, *vpn, PAGES);
    });
}

/// 4 GiB touched in a scattered order, one call a page.
#[divan::bench(args = ERAS, sample_count = 10)]
fn base_scattered(bencher: Bencher, name: &str) {
    let built = || machine(name, ThpEnabled::Never);
    bencher.counter(ItemsCount::new(PAGES)).with_inputs(built).bench_local_refs(|(mm, space, vpn)| {
        let mut state = 1u32;
        for _ in 0..PAGES {
            // A full-period generator modulo a power of two visits every page once.
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223) % PAGES;
            touch(mm, *space, *vpn + (state.rotate_left(10) ^ state >> 10) % PAGES, 1);
        }
    });
}

/// 4 GiB touched again: every page is mapped.
#[divan::bench(args = ERAS, sample_count = 10)]
fn base_mapped_again(bencher: Bencher, name: &str) {
    let (mut mm, space, vpn) = machine(name, ThpEnabled::Never);
    touch(&mut mm, space, vpn, PAGES);
    bencher.counter(ItemsCount::new(PAGES)).bench_local(|| touch(&mut mm, space, vpn, PAGES));
}

/// 4 GiB of mapped pages accessed at random, 32 in a call, as the clients of memcached do.
#[divan::bench(args = ERAS, sample_count = 10)]
fn base_accessed_at_random(bencher: Bencher, name: &str) {
    let (mut mm, space, vpn) = machine(name, ThpEnabled::Never);
    touch(&mut mm, space, vpn, PAGES);
    let mut state = 1u32;
    bencher.counter(ItemsCount::new(PAGES)).bench_local(|| {
        for _ in 0..PAGES / 32 {
            let batch: [u32; 32] = std::array::from_fn(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                vpn + (state >> 12) % PAGES
            });
            mm.look_ahead_mapped(space, &batch);
            assert_eq!(mm.access_mapped(&env(), space, black_box(&batch), true), batch.len());
        }
    });
}

/// 2048 huge pages; the time of one is the time of an item.
#[divan::bench(args = ERAS, sample_count = 20)]
fn huge(bencher: Bencher, name: &str) {
    let built = || machine(name, ThpEnabled::Always);
    bencher.counter(ItemsCount::new(PAGES / 512)).with_inputs(built).bench_local_refs(|(mm, space, vpn)| {
        touch(mm, *space, *vpn, PAGES);
    });
}

/// 4 GiB of base pages unmapped and freed.
#[divan::bench(args = ERAS, sample_count = 10)]
fn base_unmap(bencher: Bencher, name: &str) {
    let built = || {
        let (mut mm, space, vpn) = machine(name, ThpEnabled::Never);
        touch(&mut mm, space, vpn, PAGES);
        (mm, space, vpn)
    };
    bencher.counter(ItemsCount::new(PAGES)).with_inputs(built).bench_local_refs(|(mm, space, vpn)| {
        mm.munmap(&env(), *space, *vpn, PAGES);
    });
}
