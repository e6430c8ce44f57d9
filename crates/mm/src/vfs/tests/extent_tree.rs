//! The block that holds the extents of a file which has more of them than its inode holds.

use crate::pagecache::rig::Rig;
use crate::vfs::disk::Metadata;
use crate::vfs::{FsId, Handle};
use crate::{Frame, Kind};
use units::FileId;

const FS: FsId = FsId(0);

/// Two files that take the blocks behind each other's: each has as many extents as pages.
fn interleaved(rig: &mut Rig, extents: u32) -> [Handle; 2] {
    let handles = [0; 2].map(|_| rig.mm.vfs_create(&rig.env, rig.dir).expect("memory is plentiful"));
    rig.collect();
    for index in 0..extents {
        for handle in handles {
            rig.write(handle.file, index);
            rig.write_back(handle.file);
            rig.complete_all();
        }
    }
    handles
}

fn leaf_of(rig: &Rig, file: FileId) -> u32 {
    rig.mm.vfs.place(FS, Metadata::Leaf(file)).0
}

fn leaves(rig: &Rig) -> usize {
    rig.mm.vfs.fs[0].leaves.len()
}

/// Commits what is running; says how many pages went to the log last.
fn commit(rig: &mut Rig) -> u32 {
    let (id, bio) = rig.mm.vfs_begin_commit(&rig.env, FS).expect("something was changed");
    rig.collect();
    rig.complete_all();
    rig.mm.vfs_end_commit(&rig.env, FS, id);
    bio.pages
}

fn remove(rig: &mut Rig, handle: Handle) {
    rig.mm.vfs_close(&rig.env, handle);
    rig.mm.vfs_unlink(&rig.env, handle.file).expect("all of it is in memory");
    rig.collect();
}

#[test]
fn the_fifth_extent_moves_all_to_a_block_of_the_device_that_the_journal_keeps() {
    let mut rig = Rig::ext4(1 << 14);
    let four = interleaved(&mut rig, 4);
    let cached = rig.mm.blockdev_pages();
    assert_eq!(leaves(&rig), 0);
    let five = interleaved(&mut rig, 5);
    assert_eq!(
        (leaves(&rig), rig.mm.blockdev_pages()),
        (2, cached + 2),
        "the new inodes are in a block that was there"
    );
    for handle in five {
        let bdev = rig.mm.vfs.fs[0].bdev.expect("an ext4 has one");
        let pfn = rig.mm.block_page(bdev, leaf_of(&rig, handle.file)).expect("it is in memory");
        let frame = rig.mm.frames[pfn];
        assert!(frame.kind() == Kind::File && frame.has(Frame::PINNED) && !frame.has(Frame::DIRTY));
    }
    rig.check();
    for handle in four.into_iter().chain(five) {
        remove(&mut rig, handle);
    }
    assert_eq!(leaves(&rig), 0);
    rig.check();
}

#[test]
fn a_leaf_is_in_each_transaction_that_changes_it() {
    let mut rig = Rig::ext4(1 << 14);
    let [one, _] = interleaved(&mut rig, 5);
    // A block of inodes, a directory, two leaves, a descriptor and the commit block.
    assert_eq!(commit(&mut rig), 6);
    rig.write(one.file, 9);
    rig.write_back(one.file);
    rig.complete_all();
    // The sixth extent: its inode and its leaf.
    assert_eq!(commit(&mut rig), 4);
    rig.mm.set_inode_size_pages(&rig.env, one.file, 5);
    // It is shorter: the same two.
    assert_eq!(commit(&mut rig), 4);
    rig.check();
}

#[test]
fn what_was_changed_in_the_leaf_of_a_removed_file_is_not_written() {
    for commits in 0..2 {
        let mut rig = Rig::ext4(1 << 14);
        let [one, other] = interleaved(&mut rig, 5);
        let leaf = leaf_of(&rig, one.file);
        let bdev = rig.mm.vfs.fs[0].bdev.expect("an ext4 has one");
        let free = rig.mm.vfs.fs[0].space.free();
        for _ in 0..commits {
            commit(&mut rig);
        }
        remove(&mut rig, one);
        assert_eq!(rig.mm.vfs.fs[0].space.free(), free + 6, "five blocks and the leaf");
        let pfn = rig.mm.block_page(bdev, leaf).expect("it is still in memory");
        assert!(!rig.mm.frames[pfn].has(Frame::DIRTY));
        // The block of inodes, the directory, the other's leaf if it was not committed before, descriptor, commit block.
        assert_eq!(commit(&mut rig), if commits == 0 { 5 } else { 4 });
        assert!(!rig.mm.frames[pfn].has_any(Frame::DIRTY | Frame::PINNED));
        rig.check();
        remove(&mut rig, other);
        rig.check();
    }
}

#[test]
fn a_leaf_that_is_freed_while_it_is_committed_stays_clean() {
    let mut rig = Rig::ext4(1 << 14);
    let [one, _] = interleaved(&mut rig, 5);
    let leaf = leaf_of(&rig, one.file);
    let bdev = rig.mm.vfs.fs[0].bdev.expect("an ext4 has one");
    let id = rig.mm.vfs_take_commit(&rig.env, FS).expect("something was changed");
    remove(&mut rig, one);
    while rig.mm.vfs_log_commit(&rig.env, FS, id).is_none() {}
    rig.collect();
    rig.complete_all();
    rig.mm.vfs_end_commit(&rig.env, FS, id);
    let pfn = rig.mm.block_page(bdev, leaf).expect("it is still in memory");
    assert!(!rig.mm.frames[pfn].has(Frame::DIRTY));
    rig.check();
}
