//! What a request takes when its own lists are empty.

use rules::{BlockStealing, Rules, WatermarkBoost};
use units::{Order, Pfn, ZoneId};

use crate::stat::ExtfragEvent;
use crate::trace::{TraceEvent, TraceFilter};
use crate::zone::testing::{block_types, draw, make_lru, one_zone, rules_4_20, take, violations};
use crate::{MigrateType, Mm};

const MOVABLE: MigrateType = MigrateType::Movable;
const UNMOVABLE: MigrateType = MigrateType::Unmovable;
const RECLAIMABLE: MigrateType = MigrateType::Reclaimable;

/// A machine all of whose pageblocks are taken whole by movable pages, in ascending order of frames.
fn full_of_huge_pages(blocks: u32, rules: Rules) -> Mm {
    let mut mm = one_zone(blocks, rules);
    while let Some(pfn) = take(&mut mm, MOVABLE, 9) {
        make_lru(&mut mm, pfn);
    }
    assert_eq!(mm.zones[0].free_pages, 0);
    mm
}

/// Frees `pages` of the 512 that a huge page in block `block` holds, beginning with page `from`; the rest stay single
/// movable pages, on an LRU list or not.
fn open_block(mm: &mut Mm, block: u32, from: u32, pages: u32, lru: bool) {
    let first = Pfn(block * 512);
    mm.frames[first].set_kind(crate::Kind::Held, Order(9));
    mm.split_held(first);
    for n in 0..512 {
        if lru {
            make_lru(mm, first.offset(n));
        }
    }
    for n in from..from + pages {
        mm.frames[first.offset(n)].clear(crate::Frame::LRU);
        mm.free_pages(&crate::zone::testing::env(0), first.offset(n), Order(0));
    }
    mm.drain_pcp_all();
    assert_eq!(violations(mm), []);
}

fn free_of(mm: &Mm, migratetype: MigrateType) -> u64 {
    let counts = mm.free_counts(ZoneId(0));
    counts.iter().enumerate().map(|(order, types)| types[migratetype as usize] << order).sum()
}

#[test]
fn a_request_takes_the_largest_block_and_its_pageblocks_with_it() {
    for rules in [rules_4_20(), Rules::newest()] {
        let mut mm = one_zone(8, rules);
        let pfn = take(&mut mm, UNMOVABLE, 0).expect("memory is free");
        // An order 10 block is two pageblocks.
        let own = pfn.0 / 1024 * 2;
        let expected: String = (0..8).map(|b| if b / 2 == own / 2 { 'U' } else { 'M' }).collect();
        assert_eq!(block_types(&mm), expected);
        assert_eq!(mm.stat.extfrag(ExtfragEvent::Whole), 1);
        assert_eq!(mm.stat.extfrag(ExtfragEvent::Unmovable), 0);
        assert_eq!(violations(&mm), []);
    }
}

#[test]
fn until_6_9_an_unmovable_request_moves_all_free_pages_of_a_block_that_keeps_its_type() {
    let mut mm = full_of_huge_pages(8, rules_4_20());
    // 255 of 512 pages are free, the others movable: 255 + 0 < 256.
    open_block(&mut mm, 3, 0, 255, true);
    take(&mut mm, UNMOVABLE, 1).expect("pages are free");
    assert_eq!(block_types(&mm), "MMMMMMMM");
    assert_eq!(free_of(&mm, UNMOVABLE), 253);
    assert_eq!(free_of(&mm, MOVABLE), 0);
    assert_eq!(mm.stat.extfrag(ExtfragEvent::Unmovable), 1);
}

#[test]
fn until_3_19_what_is_split_off_may_stay_behind_although_the_rest_of_the_pageblock_moves() {
    // 255 free pages: blocks of 128, 64, ... 1. Two pages of the largest are asked for.
    for (block_stealing, stays) in [(BlockStealing::HalfFree, 0), (BlockStealing::HalfFreeRestStays, 126)] {
        let mut mm = full_of_huge_pages(8, Rules { block_stealing, ..rules_4_20() });
        open_block(&mut mm, 3, 0, 255, true);
        take(&mut mm, UNMOVABLE, 1).expect("pages are free");
        assert_eq!(block_types(&mm), "MMMMMMMM");
        assert_eq!((free_of(&mm, UNMOVABLE), free_of(&mm, MOVABLE)), (253 - stays, stays), "{block_stealing:?}");
    }
    // With 256 the pageblock comes along, and with it what is split off.
    for block_stealing in [BlockStealing::HalfFree, BlockStealing::HalfFreeRestStays] {
        let mut mm = full_of_huge_pages(8, Rules { block_stealing, ..rules_4_20() });
        open_block(&mut mm, 3, 0, 256, true);
        take(&mut mm, UNMOVABLE, 1).expect("pages are free");
        assert_eq!(block_types(&mm), "MMMUMMMM");
        assert_eq!(free_of(&mm, UNMOVABLE), 254);
    }
}

#[test]
fn since_4_0_the_rest_of_a_small_block_follows_and_unmovable_requests_take_the_pageblock_of_any() {
    use BlockStealing::{HalfFree, HalfFreeRestFollows, HalfFreeRestStays};
    // 15 free pages: blocks of 8, 4, 2 and 1, all below half a pageblock's order. Two pages of the largest are asked for.
    let left = |block_stealing, wanted| {
        let mut mm = full_of_huge_pages(8, Rules { block_stealing, ..rules_4_20() });
        if wanted == MOVABLE {
            mm.change_pageblock_range(Pfn(3 * 512), Order(9), UNMOVABLE);
        }
        open_block(&mut mm, 3, 0, 15, true);
        take(&mut mm, wanted, 1).expect("pages are free");
        (free_of(&mm, wanted), free_of(&mm, if wanted == MOVABLE { UNMOVABLE } else { MOVABLE }))
    };
    for rule in [HalfFree, HalfFreeRestStays] {
        assert_eq!((left(rule, UNMOVABLE), left(rule, MOVABLE)), ((0, 13), (0, 13)), "{rule:?}");
    }
    // Without its pageblock, the 6 pages beside the two.
    assert_eq!(left(HalfFreeRestFollows, MOVABLE), (6, 7));
    assert_eq!([UNMOVABLE, RECLAIMABLE].map(|wanted| left(HalfFreeRestFollows, wanted)), [(13, 0); 2]);
}

#[test]
fn a_block_is_claimed_when_half_of_it_is_free() {
    for rules in [rules_4_20(), Rules::newest()] {
        let mut mm = full_of_huge_pages(8, rules);
        open_block(&mut mm, 3, 0, 256, true);
        take(&mut mm, UNMOVABLE, 1).expect("pages are free");
        assert_eq!(block_types(&mm), "MMMUMMMM");
        assert_eq!(free_of(&mm, UNMOVABLE), 254);
        assert_eq!(violations(&mm), []);
    }
}

#[test]
fn in_a_movable_block_pages_that_cannot_move_count_for_an_unmovable_request() {
    for rules in [rules_4_20(), Rules::newest()] {
        let mut mm = full_of_huge_pages(8, rules);
        // 100 free; the 412 others are on no LRU list: 100 + (512 - 100 - 0) = 512.
        open_block(&mut mm, 3, 0, 100, false);
        take(&mut mm, UNMOVABLE, 1).expect("pages are free");
        assert_eq!(block_types(&mm), "MMMUMMMM");
    }
}

#[test]
fn a_movable_request_takes_the_smallest_block_unless_half_a_pageblock_order_is_free() {
    for rules in [rules_4_20(), Rules::newest()] {
        let mut mm = one_zone(8, rules);
        // Everything becomes unmovable.
        let mut held = Vec::new();
        while let Some(pfn) = take(&mut mm, UNMOVABLE, 9) {
            held.push(pfn);
        }
        assert_eq!(block_types(&mm), "UUUUUUUU");
        let block = 2 * 512;
        mm.split_held(Pfn(block));
        let env = crate::zone::testing::env(0);
        // Free: 8 pages (order 3) and 1 page. 9 / 2 = 4 is more than either.
        for n in (64..72).chain([100]) {
            mm.free_pages(&env, Pfn(block + n), Order(0));
        }
        mm.drain_pcp_all();
        assert_eq!(take(&mut mm, MOVABLE, 0), Some(Pfn(block + 100)));
        assert_eq!(mm.stat.extfrag(ExtfragEvent::Movable), 1);
        assert_eq!(free_of(&mm, UNMOVABLE), 8);
        assert_eq!(block_types(&mm), "UUUUUUUU");
        assert_eq!(violations(&mm), []);
    }
}

#[test]
fn until_6_9_a_movable_request_steals_a_pageblock_with_an_order_4_block() {
    let mut mm = one_zone(8, rules_4_20());
    while take(&mut mm, UNMOVABLE, 9).is_some() {}
    let block = 2 * 512;
    mm.split_held(Pfn(block));
    let env = crate::zone::testing::env(0);
    // 16 pages from 64 on are a block of order 4; page 100 goes along as it is in the same pageblock.
    for n in (64..80).chain([100]) {
        mm.free_pages(&env, Pfn(block + n), Order(0));
    }
    mm.drain_pcp_all();
    let taken = take(&mut mm, MOVABLE, 0).expect("pages are free");
    assert!(taken == Pfn(block + 100), "the smallest block of the own list: {taken:?}");
    assert_eq!(free_of(&mm, UNMOVABLE), 0);
    assert_eq!(free_of(&mm, MOVABLE), 16);
    assert_eq!(block_types(&mm), "UUUUUUUU");
}

#[test]
fn reclaimable_prefers_unmovable_blocks_and_unmovable_reclaimable_ones() {
    let mut mm = one_zone(8, rules_4_20());
    take(&mut mm, UNMOVABLE, 10).expect("memory is free");
    take(&mut mm, RECLAIMABLE, 10).expect("memory is free");
    take(&mut mm, UNMOVABLE, 9).expect("memory is free");
    let types = block_types(&mm);
    assert_eq!(types.matches('U').count(), 4, "{types}");
    // Three kinds have free blocks; the order 9 block that is left of the last pair is Unmovable.
    take(&mut mm, RECLAIMABLE, 9).expect("memory is free");
    let after = block_types(&mm);
    // The largest block wins over the preferred type: the pair that is still Movable.
    assert_eq!(after.matches('M').count(), 0, "{after}");
    take(&mut mm, RECLAIMABLE, 9).expect("memory is free");
    take(&mut mm, RECLAIMABLE, 9).expect("memory is free");
    assert_eq!(block_types(&mm).matches('U').count(), 3);
}

#[test]
fn each_fallback_is_traced_with_the_fields_of_the_kernel() {
    let mut mm = full_of_huge_pages(8, rules_4_20());
    open_block(&mut mm, 3, 0, 256, true);
    mm.trace.filter = TraceFilter { kmem: true, ..TraceFilter::default() };
    take(&mut mm, UNMOVABLE, 1).expect("pages are free");
    let expected = TraceEvent::PageAllocExtfrag {
        pfn: Pfn(3 * 512),
        alloc_order: Order(1),
        fallback_order: Order(8),
        alloc_migratetype: UNMOVABLE,
        fallback_migratetype: MOVABLE,
        change_ownership: true,
    };
    assert_eq!(mm.trace.take(), [expected]);
}

#[test]
fn a_whole_pageblock_is_no_fragmentation_and_does_not_boost() {
    let rules = Rules { watermark_boost: WatermarkBoost::PageblockStep, ..rules_4_20() };
    let mut mm = one_zone(8, rules);
    take(&mut mm, UNMOVABLE, 0).expect("memory is free");
    assert_eq!(mm.zones[0].boost, 0);
}

#[test]
fn without_grouping_every_request_shares_all_blocks() {
    // 4 pageblocks are less than the 5 that grouping needs.
    let mut mm = one_zone(4, rules_4_20());
    let a = take(&mut mm, MOVABLE, 1).expect("memory is free");
    let b = take(&mut mm, UNMOVABLE, 1).expect("memory is free");
    assert_eq!(b.0, a.0 + 2);
    assert_eq!(draw(&mm, a.0, 8), "AAAA....");
    assert_eq!(violations(&mm), []);
}
