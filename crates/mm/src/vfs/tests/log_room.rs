//! Room in the log of ext4 on a small machine.

use units::{Bytes, FileId, Nanos};

use super::super::log_room::InLog;
use super::super::{FsId, Need};
use crate::pagecache::rig::Rig;
use crate::vfs::CommitId;
use crate::{Effect, Env, Frame};
use rules::Rules;

const FS: FsId = FsId(0);

/// Blocks that fill a transaction: a third of the log's 4096, less six for descriptors.
const FULL: u32 = 1365 - 6;

/// A machine with a log of 4096 blocks, of which two transactions of 1365 leave no room for a third.
fn rig() -> Rig {
    Rig::ext4_on(1 << 16, Rules::newest(), Bytes::mib(256))
}

/// Makes files until the transaction is full, and commits it; gives one whose inode is in a block with others of it only.
fn fill_transaction(rig: &mut Rig) -> FileId {
    rig.at(Nanos::secs(1));
    let mut files = Vec::new();
    while rig.mm.vfs_commit_due(FS) != Some(rig.env.now) {
        files.push(rig.create());
    }
    commit(rig);
    files[files.len() / 2]
}

fn commit(rig: &mut Rig) {
    let (id, _) = rig.mm.vfs_begin_commit(&rig.env, FS).expect("something was changed");
    rig.collect();
    rig.complete_all();
    rig.mm.vfs_end_commit(&rig.env, FS, id);
    rig.check();
}

#[test]
fn who_finds_no_room_has_what_is_dirty_of_the_oldest_transaction_written() {
    let mut rig = rig();
    (0..2).for_each(|_| _ = fill_transaction(&mut rig));
    let bdev = rig.mm.vfs.fs[0].bdev.expect("an ext4 has one");
    let dirty = rig.mm.dirty_pages_of(bdev).0;
    assert!(dirty > FULL, "those of the second, and of the first what it did not change again");
    let Err(Need::Written(pfn)) = rig.mm.vfs_create(&rig.env, rig.dir) else { panic!("two transactions fill the log") };
    assert!(rig.mm.frames[pfn].has(Frame::WRITEBACK | Frame::WAITERS));
    let (left, written) = rig.mm.dirty_pages_of(bdev);
    assert_eq!((left, written), (FULL, dirty - FULL), "the blocks of the second stay");
    rig.collect();
    rig.complete_all();
    assert!(rig.mm.vfs_create(&rig.env, rig.dir).is_ok());
    rig.check();
}

#[test]
fn who_finds_no_room_has_the_running_transaction_committed_that_changed_the_oldest_again() {
    let mut rig = rig();
    let first = fill_transaction(&mut rig);
    fill_transaction(&mut rig);
    // As who frees an inode does, without waiting.
    rig.mm.log_item_nowait(&rig.env, first);
    assert_eq!(rig.mm.vfs_commit_due(FS), Some(Nanos::secs(1 + 5)), "it began with the first change since");
    rig.effects.clear();
    let later = Env { now: Nanos::secs(2), ..rig.env };
    assert_eq!(rig.mm.vfs_update_time(&later, first), Err(Need::Journal));
    rig.collect();
    assert!(rig.effects.contains(&Effect::WakeLog(FS)));
    assert_eq!(rig.mm.vfs_commit_due(FS), Some(Nanos::secs(1)), "it is committed before its time");
    commit(&mut rig);
    // The rest of the oldest is still to be written.
    assert!(matches!(rig.mm.vfs_update_time(&later, first), Err(Need::Written(_))));
    rig.collect();
    rig.complete_all();
    assert_eq!(rig.mm.vfs_update_time(&later, first), Ok(()));
}

#[test]
fn what_the_flusher_wrote_makes_room() {
    let mut rig = rig();
    (0..2).for_each(|_| _ = fill_transaction(&mut rig));
    rig.write_back(rig.mm.vfs.fs[0].bdev.expect("an ext4 has one"));
    rig.complete_all();
    assert!(rig.mm.vfs_create(&rig.env, rig.dir).is_ok());
}

#[test]
fn a_transaction_leaves_the_log_after_those_before_it() {
    let mut log = InLog::default();
    let id = CommitId::nth;
    (1..=3).for_each(|n| log.add(id(n), 300));
    // 300 blocks, 2 descriptors and the commit block each.
    assert_eq!(log.used(), 3 * 303);
    log.arrived(id(2), [7].into_iter());
    log.release(7);
    assert_eq!(log.used(), 3 * 303, "the first is not there yet");
    log.arrived(id(1), [7, 8].into_iter());
    log.arrived(id(3), [7].into_iter());
    assert_eq!(log.used(), 3 * 303, "block 8 is the first's, 7 the third's by now");
    log.release(8);
    assert_eq!(log.used(), 303);
    log.release(7);
    assert_eq!(log.used(), 0);
}
