//! Zones that begin in a given state.

use proptest::prelude::*;
use rules::{AnonStart, FreeListEnd, HighAtomicReserve, Rules, ZoneFairness};
use units::{CpuId, NodeId, PAGEBLOCK_PAGES, Pages, Pfn, ZoneId};

use crate::anon::StartAnon;
use crate::stat::{NodeStat, ZoneStat};
use crate::zone::testing::{block_types, draw, env, layout, machine, one_zone, span, take, violations};
use crate::zone::{KernelImage, PcpLimits, Watermarks, ZoneStart};
use crate::{Frame, Kind, MigrateType, Mm, ZoneKind, ZoneSpan};

const ZONE: ZoneId = ZoneId(0);

fn started(blocks: u32, start: &ZoneStart) -> Mm {
    let mut mm = one_zone(blocks, Rules::newest());
    mm.start_zone(ZONE, start).unwrap_or_else(|error| panic!("{error}"));
    mm
}

#[test]
fn free_blocks_of_a_type_lie_in_its_pageblocks_and_stay_apart() {
    let mut start = ZoneStart::default();
    start.pageblocks[MigrateType::Unmovable as usize] = 1;
    // Two blocks of 8 pages and one of 16, cut from the pageblock of 512; two free pageblocks and a pair of them.
    start.free[MigrateType::Unmovable as usize][3] = 2;
    start.free[MigrateType::Unmovable as usize][4] = 1;
    start.free[MigrateType::Movable as usize][9] = 2;
    start.free[MigrateType::Movable as usize][10] = 1;
    let mm = started(8, &start);
    assert_eq!(block_types(&mm), "UMMMMMMM");
    let counts = mm.free_counts(ZONE);
    for migratetype in MigrateType::ALL {
        let of_type: Vec<u64> = counts.iter().map(|order| order[migratetype as usize]).collect();
        assert_eq!(of_type, start.free[migratetype as usize], "{}", migratetype.name());
    }
    // The block of 16 is the upper half of the lowest 32 pages; the lower half gives the upper half of 16, that of 8 its own.
    assert_eq!(draw(&mm, 0, 32).matches('.').count(), 8 + 16);
    assert_eq!(violations(&mm), []);
}

/// `setup_zone_migrate_reserve()` begins at the lowest pageblock; what boot uses is highest there.
#[test]
fn the_reserve_of_old_kernels_is_lowest() {
    let rules = Rules {
        free_list_end: FreeListEnd::Head,
        highatomic_reserve: HighAtomicReserve::MigrateReserve,
        ..Rules::newest()
    };
    let mut start = ZoneStart::default();
    start.pageblocks[MigrateType::Unmovable as usize] = 1;
    start.pageblocks[MigrateType::HighAtomic as usize] = 1;
    start.free[MigrateType::HighAtomic as usize][9] = 1;
    start.free[MigrateType::Movable as usize][10] = 2;
    let mut mm = one_zone(8, rules);
    mm.start_zone(ZONE, &start).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(block_types(&mm), "HMMMMMMU");
}

#[test]
fn what_the_zone_kept_from_higher_ones_is_kept_on() {
    let kept = started(8, &ZoneStart { lowmem_reserve: Some([0, 0, 511, 511]), ..ZoneStart::default() });
    assert_eq!(kept.zones[0].lowmem_reserve, [0, 0, 511, 511]);
    // Without, there is nothing above the only zone.
    assert_eq!(started(8, &ZoneStart::default()).zones[0].lowmem_reserve, [0; ZoneKind::COUNT]);
}

#[test]
fn what_boot_computed_counts_until_a_setting_is_written() {
    let start = ZoneStart { watermarks: Some([40, 50, 60]), pcp_batch: Some(3), ..ZoneStart::default() };
    let mut mm = started(64, &start);
    let zone = &mm.zones[0];
    assert_eq!(zone.watermarks, Watermarks { min: 40, low: 50, high: 60, promo: 70 });
    // Two CPUs share the low watermark, and an eighth of 32,768 pages.
    assert_eq!(zone.pcp_limits, PcpLimits { batch: 3, high_min: 25, high_max: 2048 });
    mm.set_tunable("vm.min_free_kbytes", "400").expect("a tunable");
    // 100 pages, a quarter of which is less than a thousandth of the zone; 32 pages, of which 8 + 4 round down to 8, less one.
    let zone = &mm.zones[0];
    assert_eq!(zone.watermarks, Watermarks { min: 100, low: 132, high: 164, promo: 196 });
    assert_eq!((zone.pcp_limits.batch, zone.pcp_limits.high_min), (7, 66));
}

#[test]
fn memory_is_handed_out_from_the_end_that_boot_began_with() {
    // Two free pairs of pageblocks and a single one; an Unmovable pageblock; 64 pages of another one.
    let mut start = ZoneStart { pageblocks: [1, 0, 0, 0, 0], ..ZoneStart::default() };
    let free = &mut start.free[MigrateType::Movable as usize];
    (free[10], free[9], free[6]) = (2, 1, 1);
    let taken = |end: FreeListEnd| {
        let mut mm = one_zone(8, Rules { free_list_end: end, ..Rules::newest() });
        mm.start_zone(ZONE, &start).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(violations(&mm), []);
        let mut block = |order| take(&mut mm, MigrateType::Movable, order).expect("it is free").0 / 512;
        let pages = [10, 10, 9].map(&mut block).to_vec();
        (block_types(&mm), pages)
    };
    // A pair must be aligned, so that what is left alone is the pageblock beside the odd one.
    assert_eq!(taken(FreeListEnd::Tail), ("UMMMMMMM".to_string(), vec![4, 6, 3]));
    assert_eq!(taken(FreeListEnd::Head), ("MMMMMMMU".to_string(), vec![2, 0, 4]));
}

#[test]
fn a_piece_that_nothing_was_cut_off_may_be_free_as_a_whole() {
    // ZONE_DMA of a PC that gave 21 pages away before its allocator had them: 15 below 64 KiB, 6 below the BIOS's hole.
    let mut start = ZoneStart { pageblocks: [1, 0, 0, 0, 0], ..ZoneStart::default() };
    let free = [1, 0, 0, 1, 2, 1, 1, 0, 1];
    start.free[MigrateType::Unmovable as usize][..free.len()].copy_from_slice(&free);
    let dma = ZoneSpan {
        kind: ZoneKind::Dma,
        start: Pfn(1),
        spanned: Pages(4095),
        present: Pages(3998),
        managed: Pages(3998 - 21),
        hole: Some((Pfn(159), Pages(97))),
    };
    let mut mm = machine(&layout(vec![vec![dma]]), Rules::newest());
    mm.start_zone(ZONE, &start).unwrap_or_else(|error| panic!("{error}"));
    let counts = mm.free_counts(ZONE);
    assert_eq!(counts.map(|order| order[MigrateType::Unmovable as usize])[..free.len()], free);
    assert_eq!(violations(&mm), []);
}

#[test]
fn the_pageblock_below_the_bios_is_used_first_from_whichever_end_boot_began() {
    // ZONE_DMA again: with one Unmovable pageblock of eight, free pairs can only be in the other seven.
    let mut start = ZoneStart { pageblocks: [1, 0, 0, 0, 0], ..ZoneStart::default() };
    (start.free[MigrateType::Movable as usize][10], start.free[MigrateType::Movable as usize][9]) = (3, 1);
    for end in [FreeListEnd::Head, FreeListEnd::Tail] {
        let dma = ZoneSpan {
            kind: ZoneKind::Dma,
            start: Pfn(1),
            spanned: Pages(4095),
            present: Pages(3998),
            managed: Pages(3977),
            hole: Some((Pfn(159), Pages(97))),
        };
        let mut mm = machine(&layout(vec![vec![dma]]), Rules { free_list_end: end, ..Rules::newest() });
        mm.start_zone(ZONE, &start).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(block_types(&mm), "UMMMMMMM");
        assert_eq!(violations(&mm), []);
    }
}

#[test]
fn lists_of_cpus_hold_what_they_held_and_what_the_caller_takes() {
    let mut start = ZoneStart { pcp: vec![(5, 40), (7, 40)], spare: 3, ..ZoneStart::default() };
    start.free[MigrateType::Movable as usize][10] = 1;
    let mut mm = started(8, &start);
    assert_eq!(mm.pcps.count_and_high(CpuId(0), ZONE), (5 + 3, 40));
    assert_eq!(mm.pcps.count_and_high(CpuId(1), ZONE), (7, 40));
    mm.start_anon(&env(0), ZONE, &StartAnon { active: 1, inactive: 1, mapped: 1, unevictable: 1 }).expect("room");
    // Their page tables come from the free block.
    let listed = |item| mm.stat.node(NodeId(0), item);
    let lists = [NodeStat::InactiveAnon, NodeStat::ActiveAnon, NodeStat::Unevictable].map(listed);
    assert_eq!((lists, mm.stat.zone(ZONE, ZoneStat::Mlock)), ([1; 3], 1));
    let accessed = (0..8 * 512).filter(|pfn| mm.frames[Pfn(*pfn)].has(Frame::YOUNG)).count();
    assert_eq!(accessed, 2, "what processes map, and what is locked");
    assert_eq!(violations(&mm), []);
}

/// Until 5.8 a new page of anonymous memory starts on the active list.
#[test]
fn what_was_inactive_is_so_whatever_a_new_page_would_be() {
    for anon_start in [AnonStart::Active, AnonStart::Inactive] {
        let mut mm = one_zone(8, Rules { anon_start, ..Rules::newest() });
        let start = StartAnon { active: 2, inactive: 5, mapped: 3, unevictable: 1 };
        mm.start_anon(&env(0), ZONE, &start).expect("room");
        let listed = |item| mm.stat.node(NodeId(0), item);
        let lists = [NodeStat::InactiveAnon, NodeStat::ActiveAnon, NodeStat::Unevictable].map(listed);
        assert_eq!(lists, [5, 2, 1], "{anon_start:?}");
        assert_eq!(violations(&mm), []);
    }
}

#[test]
fn what_the_caller_takes_is_no_free_memory() {
    let mut start = ZoneStart { pageblocks: [1, 0, 0, 0, 0], ..ZoneStart::default() };
    // Three pages, and a page table of each level.
    (start.spare, start.spare_kernel) = (3, 4);
    start.free[MigrateType::Unmovable as usize][3] = 2;
    start.free[MigrateType::Movable as usize][10] = 1;
    let mut mm = started(8, &start);
    let free = mm.free_counts(ZONE);
    mm.start_anon(&env(0), ZONE, &StartAnon { active: 1, inactive: 2, ..StartAnon::default() }).expect("room");
    assert_eq!(mm.free_counts(ZONE), free);
    assert_eq!(violations(&mm), []);
}

/// Zones take turns under 4.4, and its fast path leaves a zone alone that is at its watermark.
#[test]
fn what_was_in_a_zone_is_there_whichever_zone_would_give_it_now() {
    let rules = Rules { zone_fairness: ZoneFairness::Batches, ..Rules::newest() };
    let zones = vec![span(ZoneKind::Dma, 0, 8), span(ZoneKind::Dma32, 8, 32)];
    let mut mm = machine(&layout(vec![zones]), rules);
    let mut start = ZoneStart { pageblocks: [1, 0, 0, 0, 0], spare: 100, spare_kernel: 4, ..ZoneStart::default() };
    start.free[MigrateType::Movable as usize][0] = 1;
    let anon = StartAnon { inactive: 100, ..StartAnon::default() };
    for zone in [ZoneId(0), ZoneId(1)] {
        mm.start_zone(zone, &start).unwrap_or_else(|error| panic!("{error}"));
    }
    for zone in [ZoneId(1), ZoneId(0)] {
        mm.start_anon(&env(0), zone, &anon).expect("its spare pages are enough");
    }
    for zone in [ZoneId(0), ZoneId(1)] {
        assert_eq!(mm.stat.zone(zone, ZoneStat::FreePages), 1, "{zone:?}");
        let first = mm.zones[zone.index()].start.0;
        let pages = first..first + mm.zones[zone.index()].spanned as u32;
        assert_eq!(pages.filter(|pfn| mm.frames[Pfn(*pfn)].kind() == Kind::Anon).count(), 100, "{zone:?}");
    }
    let more = StartAnon { inactive: 2, ..StartAnon::default() };
    let error = mm.start_anon(&env(0), ZoneId(0), &more).expect_err("one page is free");
    assert_eq!(error.to_string(), "zone DMA: no memory for what was anonymous or locked");
}

/// A zone of 8 pageblocks, of which the last so many are managed.
fn eight_pageblocks(managed: u64) -> ZoneSpan {
    ZoneSpan {
        kind: ZoneKind::Normal,
        start: Pfn(0),
        spanned: Pages(8 * 512),
        present: Pages(8 * 512),
        managed: Pages(managed * 512),
        hole: None,
    }
}

#[test]
fn movable_pageblocks_have_room_for_what_the_caller_takes() {
    // 8 pageblocks, the first not managed, and 3 Unmovable: 4 Movable ones have room for 1280 free pages and 768 more.
    let mut start = ZoneStart { pageblocks: [3, 0, 0, 0, 0], ..ZoneStart::default() };
    start.free[MigrateType::Movable as usize][10] = 1;
    start.free[MigrateType::Movable as usize][8] = 1;
    let types = |spare: u32| {
        let mut mm = machine(&layout(vec![vec![eight_pageblocks(7)]]), Rules::newest());
        mm.start_zone(ZONE, &ZoneStart { spare, ..start.clone() }).unwrap_or_else(|error| panic!("{error}"));
        block_types(&mm)
    };
    assert_eq!([768, 769].map(types), ["MUUUMMMM", "UUUMMMMM"].map(String::from));
}

#[test]
fn pageblocks_of_memory_that_is_not_managed_take_the_types_of_those_that_are_lacking() {
    // 8 pageblocks, the first two not managed, 3 Unmovable and 5 Movable ones; 4 of those are free, and 256 pages of another.
    let mut start = ZoneStart { pageblocks: [3, 0, 0, 0, 0], ..ZoneStart::default() };
    start.free[MigrateType::Movable as usize][10] = 2;
    start.free[MigrateType::Movable as usize][8] = 1;
    let mut mm = machine(&layout(vec![vec![eight_pageblocks(6)]]), Rules::newest());
    mm.start_zone(ZONE, &start).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(block_types(&mm), "UUUMMMMM", "one of the three is managed");
    assert_eq!(mm.free_counts(ZONE).map(|order| order[MigrateType::Movable as usize])[8..], [1, 0, 2]);
    assert_eq!(violations(&mm), []);
}

#[test]
fn whole_free_pageblocks_of_a_rare_type_are_managed_as_a_whole() {
    // 8 pageblocks, of the first two half is managed; one Unmovable one is free, and 128 or 384 pages of another.
    let cases = [
        (FreeListEnd::Tail, 0, "UMUMMMMM"),
        (FreeListEnd::Head, 0, "MUMMMMMU"),
        (FreeListEnd::Tail, 1, "MMUUMMMM"),
        (FreeListEnd::Head, 1, "MMMMMMUU"),
    ];
    for (end, of_256, types) in cases {
        let hole = Some((Pfn(256), Pages(512)));
        let span = ZoneSpan { present: Pages(7 * 512), managed: Pages(7 * 512), hole, ..eight_pageblocks(8) };
        let mut start = ZoneStart { pageblocks: [2, 0, 0, 0, 0], ..ZoneStart::default() };
        start.free[MigrateType::Unmovable as usize][9] = 1;
        start.free[MigrateType::Unmovable as usize][7..9].copy_from_slice(&[1, of_256]);
        let mut mm = machine(&layout(vec![vec![span]]), Rules { free_list_end: end, ..Rules::newest() });
        mm.start_zone(ZONE, &start).unwrap_or_else(|error| panic!("{end:?}: {error}"));
        assert_eq!(block_types(&mm), types, "{end:?}");
        assert_eq!(mm.free_counts(ZONE).map(|order| order[MigrateType::Unmovable as usize])[7..], [1, of_256, 1, 0]);
        assert_eq!(violations(&mm), []);
    }
}

#[test]
fn a_rare_type_keeps_as_many_managed_pageblocks_as_its_free_blocks_take() {
    // 8 pageblocks, the first two not managed, 3 Unmovable: one of them is free, and half of another.
    let mut start = ZoneStart { pageblocks: [3, 0, 0, 0, 0], ..ZoneStart::default() };
    start.free[MigrateType::Unmovable as usize][9] = 1;
    start.free[MigrateType::Unmovable as usize][8] = 1;
    start.free[MigrateType::Movable as usize][10] = 2;
    let mut mm = machine(&layout(vec![vec![eight_pageblocks(6)]]), Rules::newest());
    mm.start_zone(ZONE, &start).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(block_types(&mm), "UMUUMMMM");
    assert_eq!(violations(&mm), []);
}

/// 12 pageblocks behind four that are in no zone, so many pages of them reserved; one is Unmovable, one Reclaimable, five are free.
fn with_image(image: KernelImage, reserved: u64, end: FreeListEnd, start: &ZoneStart) -> Mm {
    let span = ZoneSpan {
        kind: ZoneKind::Dma32,
        start: Pfn(4 * PAGEBLOCK_PAGES),
        spanned: Pages(12 * 512),
        present: Pages(12 * 512),
        managed: Pages(12 * 512 - reserved),
        hole: None,
    };
    let mut start = ZoneStart { pageblocks: [1, 0, 1, 0, 0], image: Some(image), ..start.clone() };
    (start.free[MigrateType::Movable as usize][10], start.free[MigrateType::Movable as usize][9]) = (2, 1);
    let mut mm = machine(&layout(vec![vec![span]]), Rules { free_list_end: end, ..Rules::newest() });
    mm.start_zone(ZONE, &start).unwrap_or_else(|error| panic!("{error}"));
    let free = mm.free_counts(ZONE).map(|order| order[MigrateType::Movable as usize]);
    assert_eq!(free, start.free[MigrateType::Movable as usize]);
    assert_eq!(violations(&mm), []);
    mm
}

/// Text of 700 pages and read-only data of 500 at the zone's start: 324 and 12 pages pad them.
const IMAGE: KernelImage =
    KernelImage { start: Pfn(4 * 512), text: Pages(700), rodata: Pages(500), boot_only: Vec::new(), free: false };

/// Runs of frames from the zone's start on that are managed or not.
fn managed_runs(mm: &Mm) -> Vec<(bool, usize)> {
    let frames: Vec<bool> = (4 * 512..16 * 512).map(|pfn| mm.frames[Pfn(pfn)].kind() != Kind::Reserved).collect();
    frames.chunk_by(|a, b| a == b).map(|run| (run[0], run.len())).collect()
}

#[test]
fn what_pads_the_image_is_movable_and_in_use_and_taken_first() {
    // Three pageblocks of the image and 100 pages are reserved, data, bss and the memory map among them.
    let spare = ZoneStart { spare: 336, ..ZoneStart::default() };
    for (end, types) in [(FreeListEnd::Tail, "MMMURMMMMMMM"), (FreeListEnd::Head, "MMMUMMMMMMMR")] {
        let mut mm = with_image(IMAGE, 3 * 512 + 100, end, &spare);
        // As much is reserved as before: where 336 pages of padding are not, others are.
        let runs = [(false, 700), (true, 324), (false, 500), (true, 12), (false, 436), (true, 8 * 512 + 76)];
        assert_eq!(managed_runs(&mm), runs, "{end:?}");
        // The partly reserved pageblock goes to the first of the rarer types, those of the image to none.
        assert_eq!(block_types(&mm)[4..], *types, "{end:?}");
        // The caller's pages are those of the padding, all 336 of them.
        let padding = |pfn: u32| (2748..3072).contains(&pfn) || (3572..3584).contains(&pfn);
        for pfn in 4 * 512..16 * 512 {
            assert_eq!(mm.frames[Pfn(pfn)].kind() == Kind::Pcp, padding(pfn), "frame {pfn}, {end:?}");
            let frame = &mm.frames[Pfn(pfn)];
            assert!(!padding(pfn) || !frame.prev.is_some() && !frame.next.is_some(), "frame {pfn} is on no list");
        }
        assert_eq!(take(&mut mm, MigrateType::Movable, 0), Some(Pfn(2748)));
    }
}

#[test]
fn free_blocks_lie_in_what_is_freed_of_the_image_as_far_as_they_are_whole_pieces_of_it() {
    // Besides the padding, what only boot needs: 16 pages of the second pageblock behind it, blocks of 4, 8 and 4.
    let boot_only = vec![(Pfn(8 * 512 + 4), Pfn(8 * 512 + 20))];
    let image = KernelImage { boot_only, free: true, ..IMAGE };
    let mut start = ZoneStart::default();
    // Text is padded from frame 2748 on: blocks of 4, 64 and 256 pages; read-only data from 3572: 4 and 8.
    let movable = &mut start.free[MigrateType::Movable as usize];
    (movable[2], movable[3], movable[6], movable[8]) = (2, 3, 1, 1);
    let mm = with_image(image, 5 * 512 + 100, FreeListEnd::Head, &start);
    let free_at = |order: u8| -> Vec<u32> {
        let list = &mm.zones[0].free_area[usize::from(order)].lists[MigrateType::Movable as usize];
        list.iter(&mm.frames).map(|pfn| pfn.0).collect()
    };
    // What is freed last goes out first, and the padding after what only boot needs: of the four blocks of 4 the two of the padding are in use.
    // One block of 8 pages is left for memory elsewhere.
    assert_eq!((free_at(8), free_at(6)), (vec![2816], vec![2752]));
    assert_eq!(free_at(2), [4112, 4100]);
    let eight = free_at(3);
    assert_eq!(eight[..2], [3576, 4104]);
    assert!(eight.len() == 3 && eight[2] > 9 * 512);
}

#[test]
fn an_image_without_padding_changes_nothing_and_one_that_is_not_there_neither() {
    let start = ZoneStart { spare: 100, ..ZoneStart::default() };
    let seen = |image, reserved| {
        let mm = with_image(image, reserved, FreeListEnd::Tail, &start);
        (managed_runs(&mm), block_types(&mm))
    };
    let expected = |reserved: usize| vec![(false, reserved), (true, 12 * 512 - reserved)];
    let full = KernelImage { text: Pages(1024), rodata: Pages(512), ..IMAGE };
    assert_eq!(seen(full, 1636), (expected(1636), "MMMMMMMURMMMMMMM".to_string()));
    // One page of the last pageblock is managed; or it lies elsewhere, or behind the end.
    assert_eq!(seen(IMAGE, 3 * 512 - 1).0, expected(3 * 512 - 1));
    assert_eq!(seen(KernelImage { start: Pfn(5 * 512), ..IMAGE }, 4 * 512).0, expected(4 * 512));
    assert_eq!(seen(KernelImage { rodata: Pages(11 * 512), ..IMAGE }, 4 * 512).0, expected(4 * 512));
    // All of it reserved, to the page: the padding is managed in place of what is behind.
    assert_eq!(seen(IMAGE, 3 * 512).0[..4], [(false, 700), (true, 324), (false, 500), (true, 12)]);
}

#[test]
fn what_does_not_fit_is_told() {
    let refused = |start: &ZoneStart| one_zone(8, Rules::newest()).start_zone(ZONE, start).unwrap_err().to_string();
    let mut start = ZoneStart::default();
    start.free[MigrateType::Reclaimable as usize][0] = 1;
    assert_eq!(refused(&start), "zone Normal: no room in its Reclaimable pageblocks for the free blocks of order 0");
    let mut start = ZoneStart::default();
    start.pageblocks[MigrateType::Unmovable as usize] = 9;
    assert_eq!(refused(&start), "zone Normal: no room for 9 pageblocks of type Unmovable");
    let start = ZoneStart { pcp: vec![(8 * 512 + 1, 0)], ..ZoneStart::default() };
    assert_eq!(refused(&start), "zone Normal: too few pages in use for the lists of its CPUs");
}

proptest! {
    #[test]
    fn any_state_that_fits_is_taken_exactly(
        rare in 0_u64..4,
        low in proptest::collection::vec(0_u64..6, 6),
        rare_low in proptest::collection::vec(0_u64..4, 6),
        whole in 0_u64..3,
        pcp in 0_u32..64,
    ) {
        let mut start = ZoneStart { pageblocks: [rare, 0, 0, 0, 0], pcp: vec![(pcp, 100)], ..ZoneStart::default() };
        let movable = &mut start.free[MigrateType::Movable as usize];
        movable[..6].copy_from_slice(&low);
        movable[9] = whole;
        if rare > 0 {
            start.free[MigrateType::Unmovable as usize][..6].copy_from_slice(&rare_low);
        }
        let mm = started(12, &start);
        let counts = mm.free_counts(ZONE);
        for migratetype in MigrateType::ALL {
            let of_type: Vec<u64> = counts.iter().map(|order| order[migratetype as usize]).collect();
            prop_assert_eq!(of_type, start.free[migratetype as usize]);
        }
        prop_assert_eq!(mm.pcp_pages(ZONE), u64::from(pcp));
        prop_assert_eq!(violations(&mm), []);
    }
}
