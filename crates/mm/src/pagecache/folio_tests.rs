//! Large folios: their orders by the kernel's source, and that nothing is lost whatever happens to them.

use proptest::prelude::*;
use rules::{LargeFolios, Rules};
use units::{FileId, Gfp, Order, Pfn};

use super::rig::Rig;
use super::{PageWrite, Readahead, Slot, WriteStop};
use crate::slab::tests::exhaust;
use crate::stat::{NodeStat, VmEvent};
use crate::vfs::Need;
use crate::{Frame, Kind, Mm};

fn rig(rule: LargeFolios) -> Rig {
    Rig::with_rules(1, 1 << 14, Rules { large_folios: rule, ..Rules::newest() })
}

/// First pages and orders of a file's folios.
fn folios(mm: &Mm, file: FileId, pages: u32) -> Vec<(u32, u8)> {
    let mut found = Vec::new();
    for index in 0..pages {
        if let Slot::Page(pfn) = mm.pagecache_get(file, index)
            && mm.folio_indices(pfn).start == index
        {
            found.push((index, mm.frames[pfn].order().0));
        }
    }
    found
}

/// Reads the first pages of a file, each by a call of its own.
fn read_pages(rig: &mut Rig, file: FileId, pages: u32) {
    let mut ra = Readahead::default();
    for index in 0..pages {
        rig.read(file, index, 1, &mut ra);
    }
}

/// Writes pages by one call.
fn write_pages(rig: &mut Rig, file: FileId, index: u32, pages: u32) {
    let mut at = index;
    while at < index + pages {
        at += rig.try_write_many(file, at, index + pages - at).expect("there is room").0;
    }
}

#[test]
fn windows_of_a_stream_are_read_into_folios_of_four_times_the_order_as_far_as_they_are_aligned() {
    let mut rig = rig(LargeFolios::Written);
    let file = rig.on_disk(200);
    read_pages(&mut rig, file, 60);
    // Windows of 4, 8, 16 and 32 pages from 0, 4, 12 and 28 on. The first is of order 0 + 2. The marks of the next two lie in folios of
    // order 2, at 0 + 4 - 3 = 1 rounded down and at 4, so that theirs may be of order 4: 4 to 12 fits order 2 at 4, and at 8, where
    // only four pages are left; 12 to 28 order 2 at 12, 3 at 16 and 2 at 24. The mark at 12 opens 28 to 60: 2 at 28, 4 at 32, 3 at 48, 2
    // at 56; and that at 28 opens 60 to 92: 2 at 60, 4 at 64, 3 at 80, 2 at 88.
    let first = [(0, 2), (4, 2), (8, 2), (12, 2), (16, 3), (24, 2), (28, 2), (32, 4), (48, 3), (56, 2)];
    let last = [(60, 2), (64, 4), (80, 3), (88, 2)];
    assert_eq!(folios(&rig.mm, file, 92), [first.as_slice(), &last].concat());
    rig.check();
}

#[test]
fn a_small_file_is_read_into_folios_up_to_its_end() {
    // 64 KiB are wanted of 7 pages: a window of 32, folios of order 2; where 3 are left, one of order 1, which 6.1 has none of.
    for (rule, expected) in [
        (LargeFolios::Never, [0, 1, 2, 3, 4, 5, 6].map(|index| (index, 0)).to_vec()),
        (LargeFolios::Read, vec![(0, 2), (4, 0), (5, 0), (6, 0)]),
        (LargeFolios::Written, vec![(0, 2), (4, 1), (6, 0)]),
    ] {
        let mut rig = rig(rule);
        let file = rig.on_disk(7);
        rig.read(file, 0, 16, &mut Readahead::default());
        assert_eq!(folios(&rig.mm, file, 7), expected, "{rule:?}");
        rig.check();
    }
}

#[test]
fn a_folio_counts_as_accessed_once_by_a_read_that_goes_through_it() {
    let mut rig = rig(LargeFolios::Written);
    let file = rig.on_disk(4);
    for active in [false, true] {
        let mut ra = Readahead::default();
        (0..4).for_each(|index| _ = rig.read(file, index, 4 - index, &mut ra));
        let frame = rig.mm.frames[rig.page(file, 0)];
        assert_eq!((frame.order(), frame.has(Frame::ACTIVE)), (Order(2), active));
    }
    assert_eq!(rig.mm.stat.event(VmEvent::Pgactivate), 4);
}

#[test]
fn a_call_writes_into_folios_as_large_as_it_is_and_as_they_lie_aligned() {
    let mut rig = rig(LargeFolios::Written);
    let file = rig.create();
    write_pages(&mut rig, file, 4, 16);
    assert_eq!(folios(&rig.mm, file, 64), [(4, 2), (8, 3), (16, 2)]);
    write_pages(&mut rig, file, 0, 1);
    write_pages(&mut rig, file, 32, 16);
    assert_eq!(folios(&rig.mm, file, 64), [(0, 0), (4, 2), (8, 3), (16, 2), (32, 4)]);
    // One that would reach over what is there is smaller.
    write_pages(&mut rig, file, 0, 64);
    let filled = [(0, 0), (1, 0), (2, 1), (4, 2), (8, 3), (16, 2), (20, 2), (24, 3), (32, 4), (48, 4)];
    assert_eq!(folios(&rig.mm, file, 64), filled);
    rig.check();
    // 6.1 writes into single pages.
    let mut rig = self::rig(LargeFolios::Read);
    let file = rig.create();
    write_pages(&mut rig, file, 0, 3);
    assert_eq!(folios(&rig.mm, file, 3), [(0, 0), (1, 0), (2, 0)]);
}

#[test]
fn a_write_makes_do_with_less_where_memory_has_no_such_block() {
    let mut rig = rig(LargeFolios::Written);
    let file = rig.create();
    write_pages(&mut rig, file, 64, 1);
    let mut taken = exhaust(&mut rig.mm, None);
    let mut write = PageWrite::new(file, 0, 8);
    let mut asked = Vec::new();
    while let WriteStop::Need(Need::Page(request)) = rig.mm.write_page(&rig.env, &mut write) {
        asked.push((request.order.0, request.gfp.contains(Gfp::NORETRY)));
        // Only a single page is there at last, and is used.
        write.hand = if request.order == Order(0) { taken.pop() } else { None };
    }
    assert_eq!(asked, [(3, true), (2, true), (1, true), (0, false)]);
    assert_eq!((write.hand, folios(&rig.mm, file, 8)), (None, vec![(0, 0)]));
}

#[test]
fn all_of_a_dirty_folio_counts_and_what_was_changed_is_written() {
    // From 6.6 on only the page; before, all four.
    for (rule, pages) in [(LargeFolios::Read, 4), (LargeFolios::Written, 1)] {
        let mut rig = rig(rule);
        let file = rig.on_disk(4);
        rig.read(file, 0, 4, &mut Readahead::default());
        rig.complete_all();
        assert_eq!(rig.try_write_many(file, 2, 1), Some((1, 4)));
        assert_eq!(rig.mm.stat.node_sum(NodeStat::FileDirty), 4, "{rule:?}");
        assert_eq!(rig.try_write_many(file, 2, 1), Some((1, 0)), "it is dirty already");
        rig.check();
        rig.write_back(file);
        assert_eq!(rig.bios.iter().map(|bio| bio.pages).sum::<u32>(), pages, "{rule:?}");
        assert_eq!(rig.mm.stat.node_sum(NodeStat::Writeback), 4);
        rig.complete_all();
        assert_eq!((rig.mm.stat.node_sum(NodeStat::Writeback), rig.mm.stat.node_sum(NodeStat::Written)), (0, 4));
        rig.check();
    }
}

#[test]
fn a_folio_is_cut_where_the_file_ends_unless_it_is_dirty_in_part() {
    let mut rig = rig(LargeFolios::Written);
    let file = rig.create();
    write_pages(&mut rig, file, 0, 8);
    rig.mm.truncate_pages(&rig.env, file, 5);
    assert_eq!(folios(&rig.mm, file, 8), [(0, 0), (1, 0), (2, 0), (3, 0), (4, 0)]);
    assert_eq!(rig.mm.stat.node_sum(NodeStat::FileDirty), 5);
    rig.check();
    let file = rig.create();
    write_pages(&mut rig, file, 0, 8);
    rig.write_back(file);
    rig.complete_all();
    write_pages(&mut rig, file, 2, 1);
    write_pages(&mut rig, file, 6, 1);
    rig.mm.truncate_pages(&rig.env, file, 5);
    assert_eq!(folios(&rig.mm, file, 8), [(0, 3)]);
    assert_eq!(rig.mm.pagecache.trees.nr_dirty(file.0), 1, "nothing behind the end will be written");
    rig.check();
}

#[test]
fn a_full_device_takes_as_much_of_a_folio_as_it_has_blocks_for() {
    let mut rig = Rig::on_device(1, 1 << 15, Rules::newest(), units::Bytes::mib(80));
    let file = rig.create();
    let mut written = 0;
    while let Some((pages, _)) = rig.try_write_many(file, written, 64) {
        written += pages;
    }
    assert!(written > 64 && written % 64 != 0, "{written}: the last folio is not full");
    assert_eq!(rig.mm.pagecache.trees.nr_dirty(file.0), written, "each has claimed a block");
    rig.check();
    rig.write_back(file);
    rig.complete_all();
    assert_eq!(rig.mm.dirty_pages_of(file), (0, 0));
    rig.check();
    // What has a block can be written again.
    assert_eq!(rig.try_write_many(file, 0, 64).map(|(pages, _)| pages), Some(64));
}

#[test]
fn what_was_dirty_only_behind_the_new_end_is_clean() {
    let mut rig = rig(LargeFolios::Written);
    let file = rig.create();
    write_pages(&mut rig, file, 0, 8);
    rig.write_back(file);
    rig.complete_all();
    write_pages(&mut rig, file, 6, 1);
    assert_eq!(rig.mm.stat.node_sum(NodeStat::FileDirty), 8);
    rig.mm.truncate_pages(&rig.env, file, 5);
    assert_eq!((folios(&rig.mm, file, 8), rig.mm.stat.node_sum(NodeStat::FileDirty)), (vec![(0, 3)], 0));
    rig.check();
    assert_eq!(rig.mm.invalidate_clean_pages(&rig.env, file), 8);
    rig.check();
}

const PAGES: u32 = 96;

/// What happens to a file.
#[derive(Clone, Copy, Debug)]
enum Step {
    Write(u32, u32),
    Read(u32, u32),
    WriteBack,
    Complete(usize),
    Truncate(u32),
    Evict(u32),
    Split(u32),
    Migrate(u32),
}

fn step() -> impl Strategy<Value = Step> {
    let page = || 0..PAGES;
    prop_oneof![
        (page(), 1_u32..40).prop_map(|(index, pages)| Step::Write(index, pages.min(PAGES - index))),
        (page(), 1_u32..40).prop_map(|(index, pages)| Step::Read(index, pages.min(PAGES - index))),
        Just(Step::WriteBack),
        (0_usize..4).prop_map(Step::Complete),
        page().prop_map(Step::Truncate),
        page().prop_map(Step::Evict),
        page().prop_map(Step::Split),
        page().prop_map(Step::Migrate),
    ]
}

/// Moves a folio to another block, as compaction does.
fn migrate(rig: &mut Rig, file: FileId, index: u32) {
    let Slot::Page(old) = rig.mm.pagecache_get(file, index) else { return };
    if rig.mm.frames[old].has_any(Frame::LOCKED | Frame::WRITEBACK) {
        return;
    }
    let request =
        crate::AllocRequest { gfp: Gfp::HIGHUSER_MOVABLE, order: rig.mm.frames[old].order(), node: rig.env.node };
    let new = rig.mm.alloc_pages(&rig.env, request).expect("memory is plentiful");
    rig.mm.lru_del(old);
    rig.mm.pagecache_replace(old, new);
    rig.mm.lru_add(&rig.env, new);
    rig.mm.free_pages(&rig.env, old, request.order);
}

fn run(rig: &mut Rig, file: FileId, step: Step) {
    match step {
        Step::Write(index, pages) => write_pages(rig, file, index, pages),
        Step::Read(index, pages) => {
            let mut ra = Readahead::default();
            let end = (index + pages).min(rig.mm.inode_size_pages(file));
            (index..end).for_each(|at| _ = rig.read(file, at, end - at, &mut ra));
        }
        Step::WriteBack => rig.write_back(file),
        Step::Complete(bios) => (0..bios).for_each(|_| _ = rig.complete_one()),
        Step::Truncate(from) => {
            rig.mm.truncate_pages(&rig.env, file, from);
            rig.mm.set_inode_size_pages(&rig.env, file, from.min(rig.mm.inode_size_pages(file)));
        }
        Step::Evict(index) => {
            const BUSY: u32 = Frame::DIRTY | Frame::WRITEBACK | Frame::LOCKED;
            if let Slot::Page(pfn) = rig.mm.pagecache_get(file, index)
                && !rig.mm.frames[pfn].has_any(BUSY)
            {
                rig.evict(file, index);
            }
        }
        Step::Split(index) => {
            if let Slot::Page(pfn) = rig.mm.pagecache_get(file, index)
                && rig.mm.frames[pfn].order() > Order(0)
            {
                rig.mm.split_folio(pfn);
            }
        }
        Step::Migrate(index) => migrate(rig, file, index),
    }
}

proptest! {
    /// Whatever becomes of a file's folios, counters, lists, tags and slots agree, and at last nothing is under way and no memory is lost.
    #[test]
    fn folios_are_whole_and_accounted_for(
        rule in prop::sample::select(vec![LargeFolios::Read, LargeFolios::Written]), steps in prop::collection::vec(step(), 1..60),
    ) {
        let mut rig = rig(rule);
        let file = rig.create();
        for step in steps {
            run(&mut rig, file, step);
            rig.collect();
            rig.check();
        }
        rig.mm.truncate_pages(&rig.env, file, 0);
        rig.complete_all();
        rig.check();
        prop_assert_eq!(rig.mm.nr_cached(file), 0);
        prop_assert!(rig.mm.pagecache.folio_ios.is_empty());
        let lost = |pfn: u32| matches!(rig.mm.frames[Pfn(pfn)].kind(), Kind::File | Kind::Held);
        prop_assert_eq!((0..rig.mm.frames.len() as u32).filter(|pfn| lost(*pfn)).count(), 0);
    }
}
