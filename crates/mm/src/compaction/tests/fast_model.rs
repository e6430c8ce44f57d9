//! The searches of the free lists against slow models that go over plain vectors.

use proptest::prelude::*;
use rules::TargetSearch;

use super::random::cells;
use super::*;
use crate::List;
use crate::compaction::fast_migrate::FastSearch;

/// Pfns of the free Movable blocks of each order, as listed.
type Lists = Vec<Vec<u32>>;

fn lists(mm: &Mm) -> Lists {
    let movable = |area: &crate::zone::FreeArea| area.lists[MigrateType::Movable as usize];
    let pfns = |list: List| list.iter(&mm.frames).map(|pfn| pfn.0).collect();
    mm.zones[0].free_area.iter().map(|area| pfns(movable(area))).collect()
}

/// Brings every list into another order.
fn shuffle(mm: &mut Mm, seed: u64) {
    let mut state = seed | 1;
    for order in 0..mm.zones[0].free_area.len() {
        let list = &mut mm.zones[0].free_area[order].lists[MigrateType::Movable as usize];
        let mut pfns: Vec<Pfn> = std::iter::from_fn(|| list.pop_front(&mut mm.frames)).collect();
        while !pfns.is_empty() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            list.push_back(&mut mm.frames, pfns.swap_remove((state >> 33) as usize % pfns.len()));
        }
    }
}

/// A zone whose lists are in no order, with two free blocks at the bottom to keep the watermarks out of it.
fn drawn_zone(cells: Vec<Cell>, seed: u64) -> Mm {
    let cells: Vec<Cell> = std::iter::repeat_n(Cell::Free, 2 * BLOCK as usize).chain(cells).collect();
    let mut mm = zone_of_cells(&cells, rules_6_12());
    shuffle(&mut mm, seed);
    mm
}

/// A run that is about to search for an order, with the scanners at these places.
fn drawn_run(mm: &mut Mm, order: u8, mode: MigrateMode, at: (u32, u32), fails: u32) -> CompactRun {
    let control = CompactControl { order: None, mode, whole_zone: true, ..direct(CompactPriority::SyncLight) };
    let mut run = CompactRun::start(mm, &env(0), ZONE, control).expect("without an order every zone suits");
    run.control.order = Some(Order(order));
    run.fast = FastSearch { fails, ..FastSearch::new(Some(Order(order))) };
    (run.scanners.migrate, run.scanners.free) = (Pfn(at.0), Pfn(at.1));
    run
}

/// What a search for a source finds, how many entries it looks at, and the lists after it.
fn model_source(mut lists: Lists, mm: &Mm, order: u8, limit: usize, below: u32) -> (Option<u32>, usize, Lists) {
    let mut looked = 0;
    for order in (3..usize::from(order)).rev() {
        if looked >= limit {
            break;
        }
        for at in 0..lists[order].len() {
            looked += 1;
            let pfn = lists[order][at];
            let found = looked <= limit && pfn < below && !mm.blocks.skip(Pfn(pfn));
            if found || looked > limit {
                lists[order].rotate_left(at + 1);
                if found {
                    return (Some(pfn), looked, lists);
                }
                break;
            }
        }
    }
    (None, looked, lists)
}

/// What a search for targets is to find.
struct TargetModel {
    lists: Lists,
    found: Option<u32>,
    highest: Option<u32>,
    order: u8,
    scanned: u64,
}

fn model_target(
    lists: Lists,
    (request, first): (u8, u8),
    mut limit: usize,
    (preferred, least): (u32, u32),
    one_block: bool,
) -> TargetModel {
    let mut model = TargetModel { lists, found: None, highest: None, order: first.min(request - 1), scanned: 0 };
    // Round robin downwards, each order once.
    for order in (0..request).map(|n| (model.order + request - n) % request).collect::<Vec<_>>() {
        let list = &mut model.lists[usize::from(order)];
        let (mut seen, mut best, mut stop) = (0, None, None);
        for at in (0..list.len()).rev() {
            seen += 1;
            model.highest = model.highest.max(Some(list[at] / BLOCK * BLOCK));
            if list[at] >= preferred {
                (best, stop, model.order) = (Some(at), Some(at), order);
                break;
            }
            if list[at] >= least && best.is_none_or(|best: usize| list[at] > list[best]) {
                best = Some(at);
                limit /= 2;
            }
            if seen >= limit {
                stop = Some(at);
                break;
            }
        }
        model.scanned += seen as u64;
        if let Some(first) = best.or(stop) {
            let pfn = list[first];
            list.rotate_left(first);
            if best.is_some() {
                list.remove(0);
                model.found = Some(pfn);
                model.scanned += if one_block { 0 } else { (1 << order) - 1 };
                return model;
            }
        }
        if seen >= limit {
            limit = if one_block { (limit / 2).min(1) } else { (limit / 2).max(1) };
        }
    }
    model.order = (model.order + request - 1) % request;
    model
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn the_search_for_a_source_equals_the_slow_model(
        (cells, seed, hints) in (cells(), any::<u64>(), any::<u16>()),
        order in 4u8..=10,
        (migrate, free) in (0u32..9, 0u32..9),
        fails in 0u32..8,
    ) {
        let mut mm = drawn_zone(cells, seed);
        (0..10).for_each(|n| mm.blocks.set_skip(Pfn(n * BLOCK), hints >> n & 1 == 1));
        let (migrate, free) = (migrate.min(free) * BLOCK, (migrate.max(free) + 1) * BLOCK);
        let mut run = drawn_run(&mut mm, order, MigrateMode::SyncLight, (migrate, free), fails);
        run.migratetype = MigrateType::Movable;
        let distance = (free - migrate) / if migrate == 0 { 2 } else { 8 };
        let below = (migrate + distance) / BLOCK * BLOCK;
        let (found, looked, after) = model_source(lists(&mm), &mm, order, (32 >> fails) + 1, below);
        let went_to = run.fast_find_migrateblock(&mut mm);
        prop_assert_eq!(went_to, Pfn(found.map_or(migrate, |pfn| pfn / BLOCK * BLOCK)));
        prop_assert_eq!(run.fast.fails, if found.is_some() { 0 } else { fails + 1 });
        prop_assert_eq!(run.migrate_scanned, looked as u64);
        prop_assert_eq!(lists(&mm), after);
        let _ = run.finish(&mut mm, &env(0));
        check(&mut mm);
    }

    #[test]
    fn the_search_for_targets_equals_the_slow_model(
        (cells, seed) in (cells(), any::<u64>()),
        (order, first) in (1u8..=10, 0u8..10),
        (migrate, free) in (0u32..9, 0u32..9),
        (fails, at_start, cached, one_block) in (0u32..8, any::<bool>(), 0u32..10, any::<bool>()),
    ) {
        let mut mm = drawn_zone(cells, seed);
        if one_block {
            (mm.rules.target_search, mm.rules.compaction_scanned) = (TargetSearch::OneBlock, CompactionScanned::Looked);
        }
        let (migrate, free) = (migrate.min(free) * BLOCK, (migrate.max(free) + 1) * BLOCK);
        // Asynchronous runs of an allocation take nothing around what they find.
        let mut run = drawn_run(&mut mm, order, MigrateMode::Async, (migrate, free), fails);
        (run.fast.order, run.to_migrate) = (first, 1);
        mm.zones[0].compact.init_free_pfn = Some(Pfn(if at_start { 0 } else { free + 1 }));
        mm.zones[0].compact.free_pfn = Some(Pfn(cached * BLOCK));
        let half = ((32usize >> fails) + 1) >> 1;
        let limit = if at_start { 256 } else if one_block { half.min(1) } else { half.max(1) };
        let block_of = |pfn: u32| pfn / BLOCK * BLOCK;
        let (preferred, least) = (block_of(free - (free - migrate) / 4), block_of(free - (free - migrate) / 2));
        let model = model_target(lists(&mm), (order, first), limit, (preferred, least), one_block);
        run.fast_isolate_freepages(&mut mm);
        prop_assert_eq!(run.targets.pages() > 0, model.found.is_some());
        prop_assert_eq!(lists(&mm), model.lists);
        prop_assert_eq!((run.fast.order, run.free_scanned), (model.order, model.scanned));
        let low_candidate = model.found.is_some_and(|pfn| pfn < preferred);
        let fails_after = if model.found.is_none() { fails + 1 } else if low_candidate { fails } else { 0 };
        prop_assert_eq!(run.fast.fails, fails_after);
        let went_down = model.found.is_none() && at_start;
        let free_after = if went_down { model.highest.filter(|h| one_block || *h >= least).unwrap_or(least) } else { free };
        prop_assert_eq!(run.scanners.free, Pfn(free_after));
        let lowered = model.highest.filter(|highest| *highest >= cached * BLOCK);
        let cached_after = lowered.map_or(Some(cached * BLOCK), |highest| highest.checked_sub(BLOCK));
        prop_assert_eq!(mm.zones[0].compact.free_pfn, cached_after.map(Pfn));
        let _ = run.finish(&mut mm, &env(0));
        mm.zones[0].compact.free_pfn = None;
        check(&mut mm);
    }
}
