//! Small machines and drawn states for the tests of the allocator.

use rules::{
    AllocReserves, BoostGuards, FreeListEnd, FreeListTypes, HighAtomicReserve, MinFreeLimit, PcpLists, Rules, Tunables,
    WatermarkBoost, ZoneSpreading,
};
use units::{CpuId, Gfp, Nanos, NodeId, Order, PAGEBLOCK_PAGES, Pages, Pfn};

use crate::{
    AllocRequest, Costs, Env, Frame, Kind, MemoryLayout, MigrateType, Mm, NodeSpec, TaskFlags, Violation, ZoneKind,
    ZoneSpan,
};

/// The rules of 4.20-rc3.
pub(crate) fn rules_4_20() -> Rules {
    Rules {
        large_folios: rules::LargeFolios::Never,
        large_migration: rules::LargeMigration::Never,
        zone_spreading: ZoneSpreading::Off,
        watermark_boost: WatermarkBoost::Off,
        pcp_lists: PcpLists::OrderZero,
        free_list_types: FreeListTypes::Loose,
        free_list_end: FreeListEnd::Head,
        alloc_reserves: AllocReserves::Harder,
        highatomic_reserve: HighAtomicReserve::OnePercentAndBlock,
        boost_guards: BoostGuards::None,
        quick_check: rules::QuickCheck::AllFree,
        min_free_limit: MinFreeLimit::Mib64,
        reclaim_throttle: rules::ReclaimThrottle::Congestion,
        ..Rules::newest()
    }
}

/// A zone of whole pageblocks without holes.
pub(crate) fn span(kind: ZoneKind, first_block: u32, blocks: u32) -> ZoneSpan {
    let pages = Pages(u64::from(blocks * PAGEBLOCK_PAGES));
    let start = Pfn(first_block * PAGEBLOCK_PAGES);
    ZoneSpan { kind, start, spanned: pages, present: pages, managed: pages, hole: None }
}

/// Nodes at a distance of 20 with two CPUs each.
pub(crate) fn layout(nodes: Vec<Vec<ZoneSpan>>) -> MemoryLayout {
    let count = nodes.len();
    let distance = |at| (0..count).map(|to| if to == at { 10 } else { 20 }).collect();
    let specs = nodes.into_iter().enumerate().map(|(at, zones)| NodeSpec { zones, distance: distance(at) });
    let cpu_nodes = (0..count).flat_map(|n| [NodeId(n as u8); 2]).collect();
    MemoryLayout { nodes: specs.collect(), cpu_nodes }
}

/// A machine with little memory kept free, so that small zones can be used up.
pub(crate) fn machine(layout: &MemoryLayout, rules: Rules) -> Mm {
    let tunables = Tunables { min_free_kbytes: 64, ..Tunables::default() };
    Mm::new(layout, rules, tunables, Costs::default())
}

/// One Normal zone of some pageblocks from pfn 0 on.
pub(crate) fn one_zone(blocks: u32, rules: Rules) -> Mm {
    machine(&layout(vec![vec![span(ZoneKind::Normal, 0, blocks)]]), rules)
}

/// A task on a CPU of node 0.
pub(crate) fn env(cpu: u16) -> Env {
    Env { now: Nanos::ZERO, cpu: CpuId(cpu), node: NodeId(0), task: TaskFlags::default() }
}

/// A request on node 0.
pub(crate) fn request(gfp: Gfp, order: u8) -> AllocRequest {
    AllocRequest { gfp, order: Order(order), node: NodeId(0) }
}

/// Flags of a request for a type.
pub(crate) fn gfp_of(migratetype: MigrateType) -> Gfp {
    match migratetype {
        MigrateType::Movable => Gfp::HIGHUSER_MOVABLE,
        MigrateType::Reclaimable => Gfp::KERNEL.with(Gfp::RECLAIMABLE),
        _ => Gfp::KERNEL,
    }
}

/// Allocates down to nothing: watermarks do not count.
pub(crate) fn take(mm: &mut Mm, migratetype: MigrateType, order: u8) -> Option<Pfn> {
    let mut env = env(0);
    env.task.memalloc = true;
    let req = request(gfp_of(migratetype), order);
    let flags = mm.reserve_alloc_flags(&env, req.gfp).expect("a reclaimer may use the reserves");
    mm.get_page_from_freelist(&env, req, flags)
}

/// Lets a held block be an anonymous page on an LRU list, as far as the allocator looks.
pub(crate) fn make_lru(mm: &mut Mm, pfn: Pfn) {
    let order = mm.frames[pfn].order();
    mm.frames[pfn].set_kind(Kind::Anon, order);
    mm.frames[pfn].set(Frame::LRU);
}

/// Frames `[first, first + count)`: `.` free, `p` on a per-CPU list, `#` reserved, `L` on an LRU list, `A` otherwise in
/// use.
pub(crate) fn draw(mm: &Mm, first: u32, count: u32) -> String {
    let mut drawing = Vec::new();
    let mut at = 0;
    while (at as usize) < mm.frames.len() {
        let frame = &mm.frames[Pfn(at)];
        let (letter, pages) = match frame.kind() {
            Kind::Reserved | Kind::Tail => ('#', 1),
            Kind::Buddy => ('.', frame.nr_pages()),
            Kind::Pcp => ('p', frame.nr_pages()),
            _ if frame.has(Frame::LRU) => ('L', frame.nr_pages()),
            _ => ('A', frame.nr_pages()),
        };
        drawing.extend(std::iter::repeat_n(letter, pages as usize));
        at += pages;
    }
    drawing[first as usize..(first + count) as usize].iter().collect()
}

/// Types of all pageblocks by their first letter.
pub(crate) fn block_types(mm: &Mm) -> String {
    let letter = |block: usize| {
        let migratetype = mm.blocks.migratetype(Pfn(block as u32 * PAGEBLOCK_PAGES));
        migratetype.name().chars().next().unwrap_or('?')
    };
    (0..mm.blocks.len()).map(letter).collect()
}

/// The allocator's violations.
pub(crate) fn violations(mm: &Mm) -> Vec<Violation> {
    let mut found = Vec::new();
    mm.validate_zone(&mut found);
    found
}
