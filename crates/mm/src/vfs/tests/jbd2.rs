//! Metadata of ext4 in the page cache of its device, and the journal that keeps it.

use super::super::disk::Metadata;
use super::super::jbd2::CommitId;
use super::super::{FileRec, FsId, Need};
use crate::pagecache::rig::Rig;
use crate::writeback::{FlushStep, FlushWork, JournalWait, WbId};
use crate::{Bio, Effect, Env, Frame, Kind, Mm, WakeFlusher};
use rules::{DeviceMigration, JournalRelease, JournalTransaction, Rules};
use units::{FileId, Pfn};

const FS: FsId = FsId(0);

/// Pages of metadata, by block.
fn metadata(mm: &Mm) -> Vec<Pfn> {
    let bdev = mm.vfs.fs[0].bdev.expect("an ext4 has one");
    assert!(mm.vfs.rec(bdev).has(FileRec::BDEV));
    let mut blocks = Vec::new();
    let mut from = Some(0);
    while let Some((block, _)) = from.and_then(|from| mm.pagecache.trees.next_entry(bdev.0, from)) {
        blocks.extend(mm.block_page(bdev, block));
        from = block.checked_add(1);
    }
    blocks
}

fn count(rig: &Rig, flag: u32) -> usize {
    metadata(&rig.mm).into_iter().filter(|pfn| rig.mm.frames[*pfn].has(flag)).count()
}

fn begin(rig: &mut Rig) -> Option<(CommitId, Bio)> {
    let begun = rig.mm.vfs_begin_commit(&rig.env, FS);
    rig.collect();
    rig.complete_all();
    begun
}

fn commit(rig: &mut Rig) {
    let (id, _) = begin(rig).expect("something was changed");
    rig.mm.vfs_end_commit(&rig.env, FS, id);
    rig.check();
}

fn write_back(rig: &mut Rig) {
    let bdev: FileId = rig.mm.vfs.fs[0].bdev.expect("an ext4 has one");
    rig.write_back(bdev);
    rig.complete_all();
}

#[test]
fn a_block_of_metadata_is_an_active_page_of_the_device_with_a_buffer() {
    let mut rig = Rig::ext4(1 << 14);
    for _ in 0..64 {
        rig.create();
    }
    // 64 inodes, the root's included, of 256 B are 4 blocks, the 65th is the first of a fifth; 64 names of 20 B a third of a block.
    assert_eq!((metadata(&rig.mm).len(), rig.mm.blockdev_pages()), (6, 6));
    for pfn in metadata(&rig.mm) {
        let frame = rig.mm.frames[pfn];
        assert!(frame.kind() == Kind::File && frame.has(Frame::ACTIVE) && frame.has(Frame::UPTODATE));
        assert!(rig.mm.has_buffers(pfn));
    }
    rig.check();
}

#[test]
fn a_changed_block_is_kept_until_it_was_written_and_a_later_commit_finds_that() {
    let mut rig = Rig::ext4(1 << 14);
    rig.create();
    let blocks = metadata(&rig.mm).len();
    assert_eq!(
        (blocks, count(&rig, Frame::PINNED), count(&rig, Frame::DIRTY)),
        (2, 2, 0),
        "an inode table, a directory"
    );
    commit(&mut rig);
    assert_eq!((count(&rig, Frame::PINNED), count(&rig, Frame::DIRTY)), (2, 2));
    assert!(begin(&mut rig).is_none(), "nothing was changed");
    assert_eq!(count(&rig, Frame::PINNED), 2, "not written yet");
    write_back(&mut rig);
    assert_eq!((count(&rig, Frame::PINNED), count(&rig, Frame::DIRTY)), (2, 0));
    assert!(begin(&mut rig).is_none());
    assert_eq!(count(&rig, Frame::PINNED), 0);
    rig.check();
}

/// A file whose metadata is on disk and not in memory, and the file that stands for the device.
fn evicted(rig: &mut Rig) -> (FileId, FileId) {
    let file = rig.create();
    commit(rig);
    write_back(rig);
    assert!(begin(rig).is_none());
    let bdev = rig.mm.vfs.fs[0].bdev.expect("an ext4 has one");
    for pfn in metadata(&rig.mm) {
        rig.evict(bdev, rig.mm.file_home(pfn).1);
    }
    rig.at(units::Nanos::secs(1));
    (file, bdev)
}

#[test]
fn a_block_that_somebody_brings_in_after_its_change_is_kept_from_then_on() {
    let mut rig = Rig::ext4(1 << 14);
    let (file, bdev) = evicted(&mut rig);
    rig.mm.log_item_nowait(&rig.env, file);
    assert_eq!((metadata(&rig.mm).len(), rig.mm.vfs_commit_due(FS).is_some()), (0, true), "changed, and not in memory");
    let table = Metadata::Inodes { chunk: 0, cluster: 0 };
    while rig.mm.get_block(&rig.env, FS, bdev, table).is_err() {}
    assert_eq!(count(&rig, Frame::PINNED), 1);
    commit(&mut rig);
    assert_eq!(count(&rig, Frame::DIRTY), 1);
}

#[test]
fn who_changes_an_inode_has_its_block_read_first() {
    let mut rig = Rig::ext4(1 << 14);
    let (file, _) = evicted(&mut rig);
    let lacking = rig.mm.vfs_update_time(&rig.env, file);
    assert!(matches!(lacking, Err(Need::Read(_))), "{lacking:?}");
    assert_eq!((metadata(&rig.mm).len(), rig.mm.vfs_commit_due(FS)), (1, None), "read, and not changed");
    assert_eq!(rig.mm.vfs_update_time(&rig.env, file), Ok(()));
    assert_eq!((count(&rig, Frame::PINNED), rig.mm.vfs_commit_due(FS).is_some()), (1, true));
}

#[test]
fn what_is_on_its_way_to_the_log_is_not_changed_until_it_is_there() {
    let mut rig = Rig::ext4(1 << 14);
    let file = rig.create();
    rig.write(file, 0);
    let (id, _) = begin(&mut rig).expect("something was changed");
    let later = Env { now: units::Nanos::secs(1), ..rig.env };
    // The file's inode and another one's are of one block, and so are their names.
    assert_eq!(rig.mm.vfs_update_time(&later, file), Err(Need::Journal));
    assert_eq!(rig.mm.vfs_create(&later, rig.dir), Err(Need::Journal));
    let mut work = FlushWork::default();
    rig.mm.ask_flushers(WakeFlusher::Vmscan);
    let stopped = |step| !matches!(step, FlushStep::More);
    let step = (0..8).map(|_| rig.mm.writeback_step(&later, WbId::root(3), &mut work, 64)).find(|step| stopped(*step));
    assert_eq!(step, Some(FlushStep::Journal(JournalWait::Block)), "it has no block yet");
    rig.effects.clear();
    rig.mm.vfs_end_commit(&later, FS, id);
    rig.collect();
    assert!(rig.effects.contains(&Effect::WakeJournalled));
    assert_eq!(rig.mm.vfs_update_time(&later, file), Ok(()));
    assert!(rig.mm.vfs_create(&later, rig.dir).is_ok());
    rig.check();
}

#[test]
fn a_commit_writes_each_block_once_with_descriptors_and_a_commit_block() {
    let mut rig = Rig::ext4(1 << 14);
    for _ in 0..20 {
        rig.create();
    }
    // 21 inodes are on 2 blocks, 20 names on 1; a descriptor and the commit block.
    let (id, bio) = begin(&mut rig).expect("something was changed");
    assert_eq!((bio.pages, bio.write), (5, true));
    assert!(rig.objects("buffer_head") >= 6, "3 of the pages, 3 of the copies");
    rig.mm.vfs_end_commit(&rig.env, FS, id);
    rig.check();
}

#[test]
fn a_commit_hands_the_log_the_blocks_of_a_descriptor_at_a_time() {
    let mut rig = Rig::ext4(1 << 14);
    // 16 inodes of 256 B are on a block, so that these are on more than 252.
    for _ in 0..16 * 260 {
        rig.create();
    }
    let changed = metadata(&rig.mm).len() as u64;
    assert!(changed > 252 && changed <= 2 * 252, "{changed} blocks");
    let id = rig.mm.vfs_take_commit(&rig.env, FS).expect("something was changed");
    rig.mm.take_cpu_ns();
    let block = rig.mm.costs.commit_block;
    assert!(rig.mm.vfs_log_commit(&rig.env, FS, id).is_none(), "the log takes more than those of one descriptor");
    let first = rig.mm.take_cpu_ns();
    assert!((252 * block..2 * 252 * block).contains(&first), "{first} ns for 252 blocks and their bios");
    let last = rig.mm.vfs_log_commit(&rig.env, FS, id).expect("the others fit a descriptor");
    let rest = rig.mm.take_cpu_ns();
    assert!(last.write && ((changed - 252) * block..first).contains(&rest), "{rest} ns for what is left");
    rig.mm.vfs_end_commit(&rig.env, FS, id);
    assert_eq!(count(&rig, Frame::DIRTY) as u64, changed);
    rig.check();
}

#[test]
fn a_block_that_is_changed_during_its_commit_waits_for_the_next() {
    let mut rig = Rig::ext4(1 << 14);
    rig.create();
    let id = rig.mm.vfs_take_commit(&rig.env, FS).expect("something was changed");
    rig.create();
    assert!(rig.mm.vfs_log_commit(&rig.env, FS, id).is_some(), "a descriptor names both");
    rig.collect();
    rig.mm.vfs_end_commit(&rig.env, FS, id);
    assert_eq!(count(&rig, Frame::DIRTY), 0, "both blocks were changed again");
    commit(&mut rig);
    assert_eq!(count(&rig, Frame::DIRTY), 2);
}

#[test]
fn a_dirty_block_that_the_journal_took_over_is_written_without_io() {
    let mut rig = Rig::ext4(1 << 14);
    rig.create();
    commit(&mut rig);
    rig.create();
    assert_eq!(count(&rig, Frame::DIRTY), 2);
    let bdev = rig.mm.vfs.fs[0].bdev.expect("an ext4 has one");
    rig.write_back(bdev);
    assert!(rig.bios.is_empty());
    assert_eq!((count(&rig, Frame::DIRTY), count(&rig, Frame::WRITEBACK)), (0, 0));
    rig.check();
}

#[test]
fn a_transaction_is_committed_five_seconds_after_it_began() {
    let mut rig = Rig::ext4(1 << 14);
    assert_eq!(rig.mm.vfs_commit_due(FS), None);
    rig.at(units::Nanos::secs(3));
    rig.create();
    rig.at(units::Nanos::secs(4));
    rig.create();
    assert_eq!(rig.mm.vfs_commit_due(FS), Some(units::Nanos::secs(8)));
    commit(&mut rig);
    assert_eq!(rig.mm.vfs_commit_due(FS), None);
}

#[test]
fn a_transaction_that_has_its_part_of_the_journal_is_committed_at_once() {
    // 256 MiB have a journal of 16 MiB: 4096 blocks. A third is 1365, a quarter 1024; less a descriptor for each 253 of them, 6 and 5.
    for (journal_transaction, most) in [(JournalTransaction::Third, 1359), (JournalTransaction::Quarter, 1019)] {
        let rules = Rules { journal_transaction, ..Rules::newest() };
        let mut rig = Rig::ext4_on(1 << 16, rules, units::Bytes::mib(256));
        rig.at(units::Nanos::secs(3));
        // 16 inodes in a block, the root's the first of them, and all blocks of the directory.
        let blocks = |rig: &Rig, files: usize| (files + 1).div_ceil(16) + rig.mm.vfs.dirs[0].blocks.len();
        let mut files = 0;
        while blocks(&rig, files) < most {
            assert_ne!(rig.mm.vfs_commit_due(FS), Some(units::Nanos::secs(3)), "{files} files");
            rig.create();
            files += 1;
        }
        assert!(files > 12_000, "a block holds 204 names and one of inodes 16, so that a file takes at most a twelfth");
        assert_eq!(rig.mm.vfs_commit_due(FS), Some(units::Nanos::secs(3)), "{files} files");
    }
}

#[test]
fn until_5_13_whoever_wants_a_written_block_takes_it() {
    for (journal_release, takes) in [(JournalRelease::OnDemand, 2), (JournalRelease::Shrinker, 0)] {
        let mut rig = Rig::ext4_with(1 << 14, Rules { journal_release, ..Rules::newest() });
        rig.create();
        let ask = |rig: &mut Rig| {
            let pages = metadata(&rig.mm);
            let taken = pages.into_iter().filter(|pfn| rig.mm.release_buffer(&rig.env, *pfn)).count();
            rig.check();
            taken
        };
        assert_eq!(ask(&mut rig), 0, "they are in the running transaction");
        commit(&mut rig);
        assert_eq!(ask(&mut rig), 0, "they are dirty");
        write_back(&mut rig);
        assert_eq!(ask(&mut rig), takes);
        assert_eq!(count(&rig, Frame::PINNED), 2 - takes);
        // What is left, drop_caches makes droppable.
        rig.mm.drop_slab(&rig.env);
        assert_eq!(count(&rig, Frame::PINNED), 0);
    }
}

#[test]
fn until_4_20_dirty_metadata_must_be_written_before_it_moves_and_files_need_not() {
    for device_migration in [DeviceMigration::CleanWithoutBuffers, DeviceMigration::WithBuffers] {
        let mut rig = Rig::ext4_with(1 << 14, Rules { device_migration, ..Rules::newest() });
        rig.create();
        let stay = |rig: &Rig| {
            let frames = (0..rig.mm.frames.len() as u32).map(|pfn| rig.mm.frames[Pfn(pfn)]);
            frames.filter(|frame| rig.mm.must_be_written_to_move(frame)).count()
        };
        commit(&mut rig);
        let dirty = if device_migration == DeviceMigration::WithBuffers { 0 } else { count(&rig, Frame::DIRTY) };
        assert_eq!(stay(&rig), dirty, "{device_migration:?}");
        write_back(&mut rig);
        assert_eq!(stay(&rig), 0, "{device_migration:?}");
    }
}

#[test]
fn every_look_up_of_an_inodes_block_marks_it() {
    let mut rig = Rig::ext4(4096);
    let file = rig.create();
    for pfn in metadata(&rig.mm) {
        rig.mm.frames[pfn].clear(Frame::REFERENCED);
    }
    let env = rig.env;
    assert_eq!(rig.mm.get_inode_block(&env, file), Ok(()));
    assert_eq!(count(&rig, Frame::REFERENCED), 1);
}
