//! Scanners that wrap round from a pivot: cases drawn as states, and a slow model of where they may be.

use proptest::prelude::*;
use rules::{CompactionFinish, CompoundSkip, FreeScanner, ScannerStart, ScannersMeet};

use super::super::scanner::{Scanners, block_start};
use super::*;

fn rules_with(start: ScannerStart, meet: ScannersMeet) -> Rules {
    Rules {
        scanner_start: start,
        scanners_meet: meet,
        skip_reset: SkipReset::All,
        free_scanner: FreeScanner::WholePageblock,
        compound_skip: CompoundSkip::FreeAndHuge,
        compaction_finish: CompactionFinish::OwnType,
        ..rules_4_20()
    }
}

fn pivot_rules() -> Rules {
    rules_with(ScannerStart::MovingPivot, ScannersMeet::SamePageblock)
}

/// The state of a zone with its pivot set, and no cached places.
fn zone_with_pivot(letters: &str, pivot: u32) -> Mm {
    let cells: Vec<Cell> = letters.chars().flat_map(cells_of).collect();
    let mut mm = zone_of_cells(&cells, pivot_rules());
    mm.tunables.extfrag_threshold = 0;
    mm.zones[0].compact.pivot = Some(Pfn(pivot * BLOCK));
    mm.zones[0].compact.migrate_pfn = [None; 2];
    mm.zones[0].compact.free_pfn = None;
    mm
}

#[test]
fn from_a_pivot_the_scanners_part_and_meet_round_the_ends() {
    // Above the pivot is little that can be moved, so the migrate scanner comes to the zone's end first:
    //   0 1 2 3 4 5 6 7
    //   : : : : K K : :      pivot at 4
    //       <-- F M -->      they part
    //   M> <F                the migrate scanner has wrapped
    let mut mm = zone_with_pivot("::::KK::", 4);
    let control = CompactControl { order: None, ..direct(CompactPriority::SyncLight) };
    assert_eq!(run(&mut mm, control), CompactResult::Complete);
    // The 512 pages of blocks 6 and 7 fill the holes of 3 and 2. For the first 32 of block 0 the free scanner takes all
    // holes of block 1 and goes on in block 0, where the migrate scanner is: the other holes are given back.
    assert_eq!(used(&mut mm), [256 - 32, 256 + 32, 512, 512, 512, 512, 0, 0]);
    assert_eq!(mm.zones[0].compact.last_met.map(|pfn| pfn.0 / BLOCK), Some(0));
    check(&mut mm);
}

#[test]
fn with_the_pivot_at_the_start_the_zone_is_compacted_as_without_one() {
    for letters in ["::::::::", "V:::::::", "KK::::::AA", ":A.:VK::"] {
        let compacted = |start, meet| {
            let cells: Vec<Cell> = letters.chars().flat_map(cells_of).collect();
            let mut mm = zone_of_cells(&cells, rules_with(start, meet));
            let result = run(&mut mm, direct(CompactPriority::SyncLight));
            check(&mut mm);
            (result, used(&mut mm))
        };
        let without = compacted(ScannerStart::ZoneEnds, ScannersMeet::SamePageblock);
        assert_eq!(compacted(ScannerStart::FixedPivot, ScannersMeet::SamePageblock), without, "{letters}");
    }
}

#[test]
fn the_pivot_moves_only_with_a_restart_after_the_longest_deferral() {
    let mut mm = zone_with_pivot("::::::::", 2);
    mm.zones[0].scanners_met(Pfn(5 * BLOCK + 17));
    assert_eq!(mm.zones[0].compact.pivot, Some(Pfn(2 * BLOCK)), "they have met, and the pivot stays");
    for n in 0..8 {
        mm.blocks.set_skip(Pfn(n * BLOCK), true);
    }
    mm.restart_compaction(ZONE);
    assert_eq!(mm.zones[0].compact.pivot, Some(Pfn(5 * BLOCK)), "down to the pageblock");
    assert!((0..8).all(|n| !mm.blocks.skip(Pfn(n * BLOCK))), "with the skip hints");
}

#[test]
fn free_pages_that_are_given_back_never_send_the_free_scanner_onwards() {
    // The free scanner's way from pivot 4 in a zone of 8: 3 2 1 0 7 6 5 4.
    const WAY: [u32; 8] = [3, 2, 1, 0, 7, 6, 5, 4];
    for (at, place) in WAY.iter().enumerate() {
        for (of_page, page) in WAY.iter().enumerate() {
            let mut mm = zone_with_pivot("........", 4);
            mm.zones[0].compact.free_pfn = Some(Pfn(place * BLOCK));
            mm.zones[0].return_cached_free(Pfn(page * BLOCK + 100));
            let expected = WAY[at.min(of_page)];
            assert_eq!(mm.zones[0].compact.free_pfn, Some(Pfn(expected * BLOCK)), "at {place}, page in {page}");
        }
    }
    let mut mm = zone_with_pivot("........", 4);
    mm.zones[0].return_cached_free(Pfn(2 * BLOCK));
    assert_eq!(mm.zones[0].compact.free_pfn, None, "it starts over, before all others");
}

#[test]
fn remembered_places_move_along_the_scanners_way_only() {
    const MIGRATE_WAY: [u32; 8] = [4, 5, 6, 7, 0, 1, 2, 3];
    const FREE_WAY: [u32; 8] = [3, 2, 1, 0, 7, 6, 5, 4];
    for from in 0..8usize {
        for to in 0..8usize {
            let mut mm = zone_with_pivot("........", 4);
            mm.zones[0].compact.migrate_pfn = [Some(Pfn(MIGRATE_WAY[from] * BLOCK)); 2];
            mm.zones[0].compact.free_pfn = Some(Pfn(FREE_WAY[from] * BLOCK));
            mm.zones[0].advance_cached_migrate(Pfn(MIGRATE_WAY[to] * BLOCK), true);
            mm.zones[0].retreat_cached_free(Pfn(FREE_WAY[to] * BLOCK));
            let farther = from.max(to);
            let state = &mm.zones[0].compact;
            assert_eq!(state.migrate_pfn, [Some(Pfn(MIGRATE_WAY[farther] * BLOCK)); 2], "{from} to {to}");
            assert_eq!(state.free_pfn, Some(Pfn(FREE_WAY[farther] * BLOCK)), "{from} to {to}");
        }
    }
}

/// Both scanners' ways through a zone of `blocks` pageblocks, block by block.
fn ways(blocks: u32, pivot: u32) -> (Vec<u32>, Vec<u32>) {
    let migrate: Vec<u32> = (pivot..blocks).chain(0..pivot).collect();
    let free = migrate.iter().rev().copied().collect();
    (migrate, free)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Wherever the two are on their ways, they have met exactly if together they have come as far as the zone is long.
    #[test]
    fn meeting_equals_the_slow_model(blocks in 2u32..40, pivot in 0u32..40, migrated in 0usize..40, freed in 0usize..40, within in 0u32..BLOCK) {
        let (pivot, n) = (pivot % blocks, blocks as usize);
        let (migrated, freed) = (migrated % n, freed % n);
        let (migrate_way, free_way) = ways(blocks, pivot);
        // Places at which one of them has come round to where it began are never reached.
        prop_assume!(migrated + freed <= n);
        let mut mm = one_zone(blocks, pivot_rules());
        mm.zones[0].compact.pivot = Some(Pfn(pivot * BLOCK));
        let mut scanners = Scanners::begin(&mut mm.zones[0], false, true, &mm.rules);
        scanners.migrate = Pfn(migrate_way[migrated] * BLOCK + within);
        scanners.free = Pfn(free_way[freed] * BLOCK);
        prop_assert_eq!(scanners.met(), migrated + freed + 1 >= n, "{:?}", scanners);
        if !scanners.met() {
            // Neither is allowed into the other's block, nor out of the zone.
            prop_assert!(scanners.migrate_limit() <= block_start(Pfn(scanners.end.0 + BLOCK - 1)));
            prop_assert!(scanners.free_limit() >= block_start(scanners.start));
        }
    }

    /// From any pivot, over any zone: every run ends, inside the zone, and every page is still there.
    #[test]
    fn wrapping_runs_end_and_lose_nothing(
        letters in proptest::collection::vec(proptest::sample::select(vec!['.', 'A', ':', 'V', 'K']), 8),
        pivot in 0u32..8,
        moving in any::<bool>(),
        same_frame in any::<bool>(),
        asynchronous in any::<bool>(),
        rounds in 1usize..5,
    ) {
        let start = if moving { ScannerStart::MovingPivot } else { ScannerStart::ZoneEnds };
        let meet = if same_frame && !moving { ScannersMeet::SameFrame } else { ScannersMeet::SamePageblock };
        let cells: Vec<Cell> = letters.iter().copied().flat_map(cells_of).collect();
        let mut mm = zone_of_cells(&cells, rules_with(start, meet));
        mm.tunables.extfrag_threshold = 0;
        if moving {
            mm.zones[0].compact.pivot = Some(Pfn(pivot * BLOCK));
            mm.zones[0].reset_cached_positions();
        }
        let before: Vec<u32> = places(&mm).iter().map(|p| p.0).collect();
        let priority = if asynchronous { CompactPriority::Async } else { CompactPriority::SyncLight };
        for round in 0..rounds {
            let control = CompactControl { order: (round % 2 == 0).then_some(HUGE), ..direct(priority) };
            let _ = run(&mut mm, control);
            if round == 1 {
                mm.restart_compaction(ZONE);
            }
            let after: Vec<u32> = places(&mm).iter().map(|p| p.0).collect();
            prop_assert_eq!(&after, &before);
            check(&mut mm);
        }
    }
}

#[test]
fn a_map_tells_what_keeps_blocks_from_becoming_free() {
    let mut mm = zone_of_blocks(".:VK::::");
    mm.zones[0].compact.migrate_pfn = [Some(Pfn(BLOCK)), Some(Pfn(2 * BLOCK))];
    let map = mm.zone_maps().swap_remove(0);
    use BlockUse::{Free, Mixed, Movable, Stays, Taken};
    assert_eq!(map.blocks, [Free, Movable, Mixed, Stays, Movable, Movable, Movable, Movable]);
    assert_eq!((map.migrate, map.pivot), (Some(2), None), "the synchronous scanner's place");
    let huge = take(&mut mm, MigrateType::Movable, 9).expect("a block is free");
    mm.frames[huge].set_kind(Kind::Kernel, HUGE);
    assert_eq!(mm.zone_maps()[0].blocks[0], Taken);
}
