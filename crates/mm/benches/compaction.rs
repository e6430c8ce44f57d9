//! Speed of compaction's scanners and of migration in a zone of 4 GiB.

use divan::Bencher;
use divan::counter::ItemsCount;
use mm::compaction::{CompactControl, CompactRun, CompactStep};
use mm::zone::{AllocFlags, Wmark};
use mm::{AllocRequest, Costs, Env, Frame, Kind, MemoryLayout, Mm, NodeSpec, TaskFlags, ZoneKind, ZoneSpan};
use rules::{CompactionSearch, PcpLists, Rules, Tunables, WatermarkBoost};
use units::{CpuId, Gfp, Nanos, NodeId, Order, Pages, Pfn, ZoneId};

/// Frames of the zone.
const FRAMES: u32 = 1 << 20;

fn main() {
    divan::main();
}

fn env() -> Env {
    Env { now: Nanos::ZERO, cpu: CpuId(0), node: NodeId(0), task: TaskFlags::default() }
}

/// A zone in which a frame is a page (`true`), free (`false`) or kernel memory (`None`).
fn zone(what: impl Fn(u32) -> Option<bool>) -> Mm {
    let pages = Pages(u64::from(FRAMES));
    let span =
        ZoneSpan { kind: ZoneKind::Normal, start: Pfn(0), spanned: pages, present: pages, managed: pages, hole: None };
    let node = NodeSpec { zones: vec![span], distance: vec![10] };
    let layout = MemoryLayout { nodes: vec![node], cpu_nodes: vec![NodeId(0); 4] };
    let rules = Rules {
        pcp_lists: PcpLists::OrderZero,
        watermark_boost: WatermarkBoost::Off,
        compaction_search: CompactionSearch::Linear,
        ..Rules::newest()
    };
    let mut mm = Mm::new(&layout, rules, Tunables::default(), Costs::default());
    let (env, request) = (env(), AllocRequest { gfp: Gfp::HIGHUSER_MOVABLE, order: Order(0), node: NodeId(0) });
    let flags = AllocFlags { wmark: None, ..AllocFlags::only(Wmark::Min) };
    while mm.get_page_from_freelist(&env, request, flags).is_some() {}
    for pfn in (0..FRAMES).map(Pfn) {
        match what(pfn.0) {
            None => mm.frames[pfn].set_kind(Kind::Kernel, Order(0)),
            Some(false) => mm.free_pages(&env, pfn, Order(0)),
            Some(true) => {
                mm.frames[pfn].set_kind(Kind::Anon, Order(0));
                mm.frames[pfn].set(Frame::SWAPBACKED);
                mm.lru_add(&env, pfn);
            }
        }
    }
    mm.drain_pcp_all();
    mm
}

fn compact(mm: &mut Mm) {
    let env = env();
    let control = CompactControl::everything();
    let mut run = CompactRun::start(mm, &env, ZoneId(0), control).expect("everything is always suitable");
    while run.step(mm, &env) == CompactStep::More {}
    let _ = run.finish(mm, &env);
}

/// The migrate scanner over kernel memory: frames a second.
#[divan::bench(sample_count = 20)]
fn scan_for_pages(bencher: Bencher) {
    let mut mm = zone(|_| None);
    bencher.counter(ItemsCount::new(FRAMES)).bench_local(|| compact(&mut mm));
}

/// One page at the bottom makes the free scanner go through a full zone: frames a second.
#[divan::bench(sample_count = 20)]
fn scan_for_free(bencher: Bencher) {
    let mut mm = zone(|n| (n == 0).then_some(true));
    bencher.counter(ItemsCount::new(FRAMES)).bench_local(|| compact(&mut mm));
}

/// A half-used zone, every second frame: pages moved a second, a quarter of the frames.
#[divan::bench(sample_count = 5)]
fn migrate(bencher: Bencher) {
    let input = || zone(|n| Some(n % 2 == 0));
    bencher.counter(ItemsCount::new(FRAMES / 4)).with_inputs(input).bench_local_refs(compact);
}

/// Every block has a skip hint: pageblocks a second.
#[divan::bench(sample_count = 100)]
fn pass_over_hints(bencher: Bencher) {
    let mut mm = zone(|_| None);
    compact(&mut mm);
    let control = CompactControl { ignore_skip_hint: false, ..CompactControl::everything() };
    bencher.counter(ItemsCount::new(FRAMES / 512)).bench_local(|| {
        let env = env();
        let mut run = CompactRun::start(&mut mm, &env, ZoneId(0), control).expect("always suitable");
        while run.step(&mut mm, &env) == CompactStep::More {}
        run.finish(&mut mm, &env)
    });
}
