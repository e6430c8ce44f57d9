//! ext3: blocks at once, an indirect block for those behind the twelfth, data before the journal.

use crate::pagecache::rig::Rig;
use crate::vfs::{FsId, Need, OrderedStep};
use crate::{Frame, TaskFlags};

const FS: FsId = FsId(0);

#[test]
fn a_page_has_its_block_before_it_is_written_back() {
    let mut rig = Rig::ext3(1 << 14);
    let file = rig.create();
    let free = rig.mm.vfs.fs[0].space.free();
    for index in 0..3 {
        rig.write(file, index);
    }
    let sectors: Vec<u64> = (0..3).map(|index| rig.mm.map_block(file, index).expect("it has one").sector).collect();
    assert_eq!(sectors, [0, 8, 16].map(|behind| sectors[0] + behind));
    let space = &rig.mm.vfs.fs[0].space;
    assert_eq!((free - space.free(), space.claimed()), (3, 0));
    rig.check();
    // Written again, it keeps it.
    rig.write(file, 1);
    assert_eq!(free - rig.mm.vfs.fs[0].space.free(), 3);
    rig.mm.truncate_pages(&rig.env, file, 0);
    rig.mm.set_inode_size_pages(&rig.env, file, 0);
    assert_eq!(rig.mm.vfs.fs[0].space.free(), free);
    rig.check();
}

#[test]
fn the_thirteenth_block_needs_an_indirect_one() {
    let mut rig = Rig::ext3(1 << 14);
    let handle = rig.mm.vfs_create(&rig.env, rig.dir).expect("memory is plentiful");
    let free = rig.mm.vfs.fs[0].space.free();
    for index in 0..12 {
        rig.write(handle.file, index);
    }
    assert!(!rig.mm.vfs.has_leaf(handle.file));
    rig.write(handle.file, 12);
    assert!(rig.mm.vfs.has_leaf(handle.file));
    for index in 13..40 {
        rig.write(handle.file, index);
    }
    assert_eq!(free - rig.mm.vfs.fs[0].space.free(), 40 + 1);
    rig.check();
    rig.mm.vfs_close(&rig.env, handle);
    rig.mm.vfs_unlink(&rig.env, handle.file).expect("all of it is in memory");
    rig.collect();
    assert_eq!(rig.mm.vfs.fs[0].space.free(), free, "forty and the indirect one");
    rig.check();
}

#[test]
fn reclaim_may_write_what_has_a_block() {
    for (mut rig, written) in [(Rig::ext3(1 << 14), true), (Rig::ext4(1 << 14), false)] {
        let file = rig.create();
        rig.write(file, 0);
        let pfn = rig.page(file, 0);
        for kswapd in [true, false] {
            rig.env.task = TaskFlags { memalloc: true, kswapd, ..TaskFlags::default() };
            assert_eq!(rig.mm.pageout_file(&rig.env, pfn), written, "kswapd: {kswapd}");
            rig.collect();
            rig.complete_all();
            rig.env.task = TaskFlags::default();
            rig.write(file, 0);
        }
        rig.check();
    }
}

#[test]
fn a_page_that_a_fault_holds_locked_is_waited_for_before_the_log_is_written() {
    let mut rig = Rig::ext3(1 << 14);
    let file = rig.create();
    for index in 0..5 {
        rig.write(file, index);
    }
    let held = rig.page(file, 2);
    rig.mm.frames[held].set(Frame::LOCKED);
    assert_eq!(rig.mm.vfs_write_ordered(&rig.env, file, 0, 5), OrderedStep::Wait(held, 2));
    rig.mm.frames[held].clear(Frame::LOCKED);
    assert_eq!(rig.mm.vfs_write_ordered(&rig.env, file, 2, 5), OrderedStep::Done);
    rig.collect();
    assert_eq!(rig.bios.iter().map(|bio| bio.pages).sum::<u32>(), 5);
}

#[test]
fn the_data_of_new_blocks_goes_before_the_log_and_that_of_old_ones_when_it_will() {
    let mut rig = Rig::ext3(1 << 14);
    let files = [rig.create(), rig.create()];
    for index in 0..5 {
        rig.write(files[1], index);
    }
    assert_eq!(rig.mm.vfs_take_ordered(FS), [files[1]], "the other has none");
    // Five pages, three at a time: the second time fewer are left.
    assert_eq!(rig.mm.vfs_write_ordered(&rig.env, files[1], 0, 3), OrderedStep::More(3));
    assert_eq!(rig.mm.vfs_write_ordered(&rig.env, files[1], 3, 3), OrderedStep::Done);
    rig.collect();
    assert_eq!(rig.bios.iter().map(|bio| bio.pages).sum::<u32>(), 5);
    let mut from = 0;
    let waited = rig.mm.vfs_next_ordered(files[1], &mut from).expect("it is being written");
    assert_eq!((waited, from), (rig.page(files[1], 0), 0));
    rig.complete_all();
    assert_eq!(rig.mm.vfs_next_ordered(files[1], &mut from), None);
    rig.write(files[1], 2);
    assert!(rig.mm.vfs_take_ordered(FS).is_empty(), "it had its block");
    rig.check();
}

#[test]
fn a_writer_waits_while_the_block_of_its_inode_is_on_its_way_to_the_log() {
    let mut rig = Rig::ext3(1 << 14);
    let file = rig.create();
    rig.write(file, 0);
    let (id, _) = rig.mm.vfs_begin_commit(&rig.env, FS).expect("something was changed");
    rig.collect();
    assert_eq!(rig.mm.allocate_at_once(&rig.env, file, 1), Err(Need::Journal));
    assert_eq!(rig.mm.allocate_at_once(&rig.env, file, 0), Ok(()), "it has one");
    rig.complete_all();
    rig.mm.vfs_end_commit(&rig.env, FS, id);
    assert_eq!(rig.mm.allocate_at_once(&rig.env, file, 1), Ok(()));
    assert!(!rig.mm.frames[rig.page(file, 0)].has(Frame::WRITEBACK));
    rig.check();
}
