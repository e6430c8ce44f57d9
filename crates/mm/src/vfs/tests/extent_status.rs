//! What ext4 remembers of extents.

use rules::ExtentStatus;

use super::*;
use crate::pagecache::rig::Rig;

const STATUS: ShrinkerId = ShrinkerId::ExtentStatus;

fn freeable(rig: &mut Rig) -> u64 {
    rig.mm.shrinker_count(STATUS, SHARE)
}

fn shrink_statuses(rig: &mut Rig, nr: u64) -> u64 {
    let freed = rig.mm.shrinker_scan(&rig.env, STATUS, SHARE, nr, Gfp::KERNEL).freed;
    rig.check();
    freed
}

#[test]
fn a_written_file_has_an_entry_of_its_blocks_and_one_of_the_hole_behind_them() {
    let mut rig = Rig::ext4(1 << 14);
    let file = rig.create();
    assert_eq!(freeable(&mut rig), 0, "nothing was looked up");
    rig.write(file, 0);
    assert_eq!(freeable(&mut rig), 1, "the hole; the blocks are delayed");
    rig.write_back(file);
    rig.complete_all();
    assert_eq!(freeable(&mut rig), 2);
    assert_eq!(shrink_statuses(&mut rig, 10), 2);
    assert_eq!(freeable(&mut rig), 0);
}

#[test]
fn a_delayed_entry_stays_and_one_that_was_looked_up_gets_another_round() {
    let mut rig = Rig::ext4(1 << 14);
    let file = rig.create();
    rig.write(file, 0);
    rig.write(file, 1);
    assert_eq!(shrink_statuses(&mut rig, 10), 0, "the second page looked the hole up");
    assert_eq!(shrink_statuses(&mut rig, 10), 1);
    rig.write_back(file);
    rig.complete_all();
    assert_eq!((freeable(&mut rig), shrink_statuses(&mut rig, 1)), (1, 1));
    // A read that finds nothing in memory looks the blocks up.
    rig.evict(file, 0);
    rig.read(file, 0, 1, &mut crate::pagecache::Readahead::new(32));
    assert_eq!(freeable(&mut rig), 1);
}

#[test]
fn until_4_20_the_mark_is_lost_and_until_3_7_there_is_nothing() {
    for (extent_status, freed) in [(ExtentStatus::Marked, 0), (ExtentStatus::Unmarked, 1), (ExtentStatus::None, 0)] {
        let mut rig = Rig::ext4_with(1 << 14, Rules { extent_status, ..Rules::newest() });
        let file = rig.create();
        rig.write(file, 0);
        rig.write(file, 1);
        assert_eq!(freeable(&mut rig), u64::from(extent_status != ExtentStatus::None), "the hole");
        assert_eq!(shrink_statuses(&mut rig, 10), freed);
    }
}

#[test]
fn the_shrinker_goes_on_where_it_stopped() {
    let mut rig = Rig::ext4(1 << 14);
    let files: Vec<FileId> = (0..10).map(|_| rig.create()).collect();
    for &file in &files {
        rig.write(file, 0);
        rig.write_back(file);
    }
    rig.complete_all();
    assert_eq!(freeable(&mut rig), 20);
    assert_eq!((shrink_statuses(&mut rig, 5), shrink_statuses(&mut rig, 5)), (5, 5));
    // Two of each file but the third, of which the hole was left when it came to it.
    let left = |file: &FileId| {
        let rec = rig.mm.vfs.rec(*file);
        u8::from(rec.extents.is_some()) + u8::from(rec.second.is_some())
    };
    assert_eq!(files.iter().map(left).collect::<Vec<_>>(), [0, 0, 1, 0, 0, 1, 2, 2, 2, 2]);
}
