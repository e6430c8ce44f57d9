//! What the allocator looks like just after boot.

use rules::Rules;
use units::{Pages, Pfn, ZoneId};

use crate::stat::ZoneStat;
use crate::zone::testing::{block_types, draw, layout, machine, one_zone, rules_4_20, span, take, violations};
use crate::{MigrateType, ZoneKind};

#[test]
fn all_memory_is_free_in_the_largest_blocks() {
    for rules in [rules_4_20(), Rules::newest()] {
        // 9 pageblocks: four blocks of order 10 and one of order 9, all Movable.
        let mm = one_zone(9, rules);
        let counts = mm.free_counts(ZoneId(0));
        assert_eq!(counts[10][MigrateType::Movable as usize], 4);
        assert_eq!(counts[9][MigrateType::Movable as usize], 1);
        assert_eq!(counts.iter().flatten().sum::<u64>(), 5);
        assert_eq!(mm.stat.zone(ZoneId(0), ZoneStat::FreePages), 9 * 512);
        assert_eq!(block_types(&mm), "MMMMMMMMM");
        assert_eq!(violations(&mm), []);
    }
}

#[test]
fn frames_that_are_not_managed_and_holes_stay_reserved() {
    let mut zone = span(ZoneKind::Dma32, 0, 8);
    // The first 3 frames are the kernel's; 16 frames from 32 on do not exist.
    zone.present = Pages(4096 - 16);
    zone.managed = Pages(4096 - 16 - 3);
    zone.hole = Some((Pfn(32), Pages(16)));
    let mm = machine(&layout(vec![vec![zone]]), rules_4_20());
    assert_eq!(draw(&mm, 0, 64), "###.............................################................");
    assert_eq!(violations(&mm), []);
}

#[test]
fn until_5_9_the_highest_block_is_used_first_and_since_then_the_lowest() {
    let mut old = one_zone(8, rules_4_20());
    assert_eq!(take(&mut old, MigrateType::Movable, 10), Some(Pfn(3 * 1024)));
    let mut new = one_zone(8, Rules::newest());
    assert_eq!(take(&mut new, MigrateType::Movable, 10), Some(Pfn(0)));
}

#[test]
fn a_zone_that_starts_in_the_middle_of_a_block_gets_smaller_blocks_first() {
    let mut zone = span(ZoneKind::Dma, 0, 8);
    zone.start = Pfn(1);
    zone.spanned = Pages(4095);
    zone.present = Pages(4095);
    zone.managed = Pages(4095);
    let mm = machine(&layout(vec![vec![zone]]), rules_4_20());
    // 1 + 2 + 4 + ... + 512 = 1023 pages, then three blocks of 1024.
    let counts: Vec<u64> = mm.free_counts(ZoneId(0)).iter().map(|c| c[MigrateType::Movable as usize]).collect();
    assert_eq!(counts, [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3]);
    assert_eq!(violations(&mm), []);
}
