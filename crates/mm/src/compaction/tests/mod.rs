//! A zone drawn block by block, and what compaction makes of it.

mod capture;
mod decisions;
mod events;
mod fast;
mod fast_model;
mod large;
mod pages;
mod proactive;
mod random;
mod scanners;
mod wrapping;

use rules::{
    AsyncAbort, CompactionFinish, CompactionIsolated, CompactionScanned, CompactionSearch, CompactionStall,
    CompactionTargets, CompactionWithdrawn, FailedMigrations, FreeScanner, LargeMigration, LightIsolation, LightLock,
    MigrateYoung, PageCapture, PageblockRescan, ProactiveCompaction, Rules, SkipReset, TargetBlock,
};
use units::{Gfp, NodeId, Order, PAGEBLOCK_PAGES, Pfn, ZoneId};

use super::*;
use crate::zone::testing::{env, one_zone, take};
use crate::zone::{AllocFlags, Wmark};
use crate::{AllocRequest, Env, Frame, Kind, MigrateType, Mm, ZoneKind};

const ZONE: ZoneId = ZoneId(0);
const BLOCK: u32 = PAGEBLOCK_PAGES;
const HUGE: Order = Order(9);
const FLAGS: AllocFlags = AllocFlags::only(Wmark::Min);
const NODE: NodeId = NodeId(0);
const REQUEST: AllocRequest = AllocRequest { gfp: Gfp::TRANSHUGE, order: HUGE, node: NODE };

fn rules_4_20() -> Rules {
    Rules {
        compaction_search: CompactionSearch::Linear,
        compaction_finish: CompactionFinish::StealableAtEnd,
        skip_reset: SkipReset::NotHuge,
        compaction_withdrawn: CompactionWithdrawn::Reclaim,
        migrate_young: MigrateYoung::Forgotten,
        pageblock_rescan: PageblockRescan::Never,
        page_capture: PageCapture::None,
        compaction_targets: CompactionTargets::SinglePages,
        target_block: TargetBlock::BelowPageblock,
        compaction_scanned: CompactionScanned::Looked,
        compaction_isolated: CompactionIsolated::Half,
        compaction_stall: CompactionStall::Ran,
        proactive_compaction: ProactiveCompaction::Never,
        async_abort: AsyncAbort::CpuWanted,
        light_lock: LightLock::Waits,
        ..crate::zone::testing::rules_4_20()
    }
}

/// The rules of 6.12 for compaction; those of 4.20 for everything else.
fn rules_6_12() -> Rules {
    Rules {
        migrate_young: MigrateYoung::Forgotten,
        large_migration: LargeMigration::BelowOrder,
        ..crate::zone::testing::rules_4_20()
    }
}

/// The rules of 6.1 for compaction.
fn rules_6_1() -> Rules {
    Rules {
        large_migration: LargeMigration::Never,
        pageblock_rescan: PageblockRescan::Revisited,
        page_capture: PageCapture::AfterFlush,
        compaction_targets: CompactionTargets::SinglePages,
        target_block: TargetBlock::BelowPageblock,
        compaction_scanned: CompactionScanned::WithTaken,
        compaction_isolated: CompactionIsolated::Half,
        proactive_compaction: ProactiveCompaction::Score,
        light_lock: LightLock::Waits,
        ..rules_6_12()
    }
}

/// What a frame is to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Cell {
    Free,
    /// An anonymous page on the LRU, with these flags besides.
    Page(u32),
    /// Kernel memory.
    Stuck,
}

/// Cells of a block: `.` free, `A` full of pages, `:` every second frame a page, `V` the same with the first page stuck,
/// `K` full of kernel memory.
fn cells_of(letter: char) -> Vec<Cell> {
    let cell = |n: u32| match letter {
        '.' => Cell::Free,
        'A' => Cell::Page(0),
        'K' => Cell::Stuck,
        'V' if n == 0 => Cell::Stuck,
        ':' | 'V' if n.is_multiple_of(2) => Cell::Page(0),
        ':' | 'V' => Cell::Free,
        other => panic!("no such block: {other}"),
    };
    (0..BLOCK).map(cell).collect()
}

/// A machine of one zone; each page's place is the frame where it began.
fn zone_of_cells(cells: &[Cell], rules: Rules) -> Mm {
    let mut mm = one_zone(cells.len() as u32 / BLOCK, rules);
    while take(&mut mm, MigrateType::Movable, 0).is_some() {}
    // As on a zone of a gigabyte or more: freed pages wait on the CPU's list and do not merge under the scanner.
    let managed = std::mem::replace(&mut mm.zones[0].managed, 1 << 18);
    mm.setup_pcp_limits();
    mm.zones[0].managed = managed;
    let env = env(0);
    for (at, cell) in cells.iter().enumerate() {
        let pfn = Pfn(at as u32);
        assert_eq!(mm.frames[pfn].kind(), Kind::Held, "everything is taken");
        match cell {
            Cell::Free => mm.free_pages(&env, pfn, Order(0)),
            Cell::Stuck => mm.frames[pfn].set_kind(Kind::Kernel, Order(0)),
            Cell::Page(flags) => {
                let frame = &mut mm.frames[pfn];
                frame.set_kind(Kind::Anon, Order(0));
                frame.set(Frame::SWAPBACKED | flags);
                frame.place = pfn.0;
                mm.lru_add(&env, pfn);
            }
        }
    }
    mm.drain_pcp_all();
    mm
}

fn zone_of_blocks(letters: &str) -> Mm {
    zone_under(letters, rules_4_20())
}

fn zone_under(letters: &str, rules: Rules) -> Mm {
    let cells: Vec<Cell> = letters.chars().flat_map(cells_of).collect();
    zone_of_cells(&cells, rules)
}

/// Blocks with a skip hint.
fn skips(mm: &Mm) -> String {
    (0..mm.blocks.len() as u32).map(|n| if mm.blocks.skip(Pfn(n * BLOCK)) { 's' } else { '-' }).collect()
}

/// Compacts for an allocation.
fn compact_and_capture(mm: &mut Mm, priority: CompactPriority) -> (CompactResult, Option<Pfn>) {
    let env = env(0);
    let mut work = DirectCompaction::new(mm, REQUEST, FLAGS, priority);
    while work.step(mm, &env) == CompactStep::More {}
    work.finish(mm, &env)
}

/// Frames in use in each block.
fn used(mm: &mut Mm) -> Vec<u32> {
    mm.drain_pcp_all();
    let block_of = |n: u32| (n * BLOCK..(n + 1) * BLOCK).filter(|pfn| in_use(mm, Pfn(*pfn))).count() as u32;
    (0..mm.blocks.len() as u32).map(block_of).collect()
}

fn in_use(mm: &Mm, pfn: Pfn) -> bool {
    !matches!(mm.frames[pfn].kind(), Kind::Buddy | Kind::Tail | Kind::Pcp)
}

/// Where each page is now, by the frame where it began.
fn places(mm: &Mm) -> Vec<(u32, Pfn)> {
    let frames = (0..mm.frames.len() as u32).map(Pfn);
    let mut places: Vec<_> =
        frames.filter(|p| mm.frames[*p].kind() == Kind::Anon).map(|p| (mm.frames[p].place, p)).collect();
    places.sort_unstable();
    places
}

/// Nothing is held, lost or counted wrongly.
fn check(mm: &mut Mm) {
    let mut violations = Vec::new();
    mm.validate_zone(&mut violations);
    mm.validate_reclaim(&mut violations);
    mm.validate_compaction(&mut violations);
    assert!(violations.is_empty(), "{violations:?}");
    let mut frames = (0..mm.frames.len() as u32).map(|pfn| &mm.frames[Pfn(pfn)]);
    assert!(!frames.any(|f| f.kind() == Kind::Held && f.prev.is_some()), "a run that is over holds no targets");
}

fn direct(priority: CompactPriority) -> CompactControl {
    CompactControl::direct(HUGE, Gfp::TRANSHUGE, priority, ZoneKind::Normal, FLAGS)
}

/// Runs one compaction to its end, at most as many steps as the zone has frames.
fn run(mm: &mut Mm, control: CompactControl) -> CompactResult {
    let env: Env = env(0);
    let mut run = match CompactRun::start(mm, &env, ZONE, control) {
        Ok(run) => run,
        Err(result) => return result,
    };
    for _ in 0..mm.frames.len() + 2 {
        if let CompactStep::Done(_) = run.step(mm, &env) {
            return run.finish(mm, &env);
        }
    }
    panic!("the scanners do not end: {run:?}");
}
