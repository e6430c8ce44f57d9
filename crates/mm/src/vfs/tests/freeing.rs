//! What freeing the extents of a file takes, in memory and in the log.

use super::super::cil;
use super::*;
use crate::slab::CacheId;

/// A closed file of so many extents of a page: another file takes the blocks behind each.
fn scattered(mm: &mut Mm, dir: DirId, extents: u32) -> FileId {
    let [one, other] = [create(mm, dir), create(mm, dir)];
    for index in 0..extents {
        for handle in [one, other] {
            mm.set_inode_size_pages(&on(0), handle.file, index + 1);
            mm.allocate_blocks(&on(0), handle.file, index, 1);
            mm.note_extent_added(&on(0), handle.file);
        }
    }
    mm.vfs_close(&on(0), one);
    mm.vfs_close(&on(0), other);
    one.file
}

/// Objects that go with the checkpoint that is collected, beside inodes' vectors, by cache.
fn others(mm: &Mm, fs: FsId) -> Vec<(CacheId, usize)> {
    let mut counts = std::collections::BTreeMap::new();
    for (cache, _) in mm.vfs.fs[fs.0 as usize].cil.others() {
        *counts.entry(cache).or_insert(0) += 1;
    }
    counts.into_iter().collect()
}

#[test]
fn extents_are_freed_two_at_a_time_and_their_items_stay_until_the_checkpoint_is_on_disk() {
    let (mut mm, fs, dir) = xfs(old_rules());
    let file = scattered(&mut mm, dir, 5);
    checkpoint(&mut mm, fs);
    mm.vfs_unlink(&on(0), file).expect("memory is plentiful");
    // 2, 2 and 1 extents: an intent and its end with a vector each, of 80 + 16 + 32 and 80 + 16 + 16 bytes; 5 busy extents.
    let expected = [(CacheId::KMALLOC_64, 5), (CacheId::KMALLOC_128, 6), (CacheId::XFS_EFD, 6)];
    assert_eq!(others(&mm, fs), expected);
    // 16 bytes of format, 16 an extent, a header of 12; and the inode, of which only the core is left.
    let target = push_target(&mut mm, fs);
    checkpoint(&mut mm, fs);
    let inode = 56 + 176 + 2 * 12;
    assert_eq!(push_target(&mut mm, fs) - target, inode + 2 * (2 * (16 + 32 + 12) + (16 + 16 + 12)));
    assert_eq!(others(&mm, fs), []);
    let kept = in_use(&mm, "xfs_efd_item");
    for _ in 0..10 {
        let file = scattered(&mut mm, dir, 5);
        mm.vfs_unlink(&on(0), file).expect("memory is plentiful");
        checkpoint(&mut mm, fs);
    }
    assert_eq!(in_use(&mm, "xfs_efd_item"), kept, "what was freed is used again");
    assert_valid(&mm);
}

#[test]
fn the_end_of_a_checkpoint_waits_for_the_next_or_for_who_forces_the_log() {
    let (mut mm, fs, dir) = xfs(old_rules());
    let mut made = 0;
    while !mm.vfs_log_waits(fs) {
        make(&mut mm, dir);
        made += 1;
    }
    mm.effects.take_into(&mut Vec::new());
    let full = mm.vfs_push_cil(&on(0), fs).expect("it is longer than a buffer");
    assert!(full.write && full.pages == 8);
    let mut effects = Vec::new();
    mm.effects.take_into(&mut effects);
    assert!(effects.contains(&Effect::WakeLog(fs)), "the log may need room");
    assert!(!mm.vfs_log_waits(fs), "its end is in memory, and so are its vectors");
    let open = create(&mut mm, dir);
    let last = mm.vfs_force_log(&on(0), fs).expect("an end is in memory");
    assert!(last.sync && mm.vfs_log_forced(fs));
    let done = mm.vfs_take_logged(fs);
    // The first checkpoint's inodes, with the directory's; the second has one. What else there is are vectors of buffers.
    let vector = cil::vector_cache(&mm.vfs.fs[fs.0 as usize].spec, false);
    assert_eq!(done.objects().filter(|(cache, _)| *cache == vector).count(), made + 2);
    mm.vfs_free_logged(&on(0), fs, &done);
    assert!(!mm.vfs_log_waits(fs) && mm.vfs_force_log(&on(0), fs).is_none());
    mm.vfs_close(&on(0), open);
    assert_valid(&mm);
}

#[test]
fn the_array_of_extents_grows_by_the_sizes_of_kmalloc() {
    let (mut mm, fs, dir) = xfs(old_rules());
    // 16 bytes an extent; with 15 of them a node of 256.
    let sizes =
        [(1, 16), (2, 32), (3, 64), (4, 64), (5, 96), (7, 128), (8, 128), (9, 192), (12, 192), (14, 256), (16, 256)];
    for (extents, bytes) in sizes {
        let file = scattered(&mut mm, dir, extents);
        assert_eq!(mm.vfs.array_cache_of(file), CacheId::kmalloc(bytes).unwrap(), "{extents} extents");
        assert!(mm.vfs.rec(file).extents.is_some());
    }
    // One that was evicted comes back with an array of its size; one that goes has none.
    let file = scattered(&mut mm, dir, 6);
    write_back(&mut mm, fs);
    for _ in 0..4 {
        shrink(&mut mm, &on(0), 4096);
    }
    assert!(!mm.vfs.rec(file).inode.is_some());
    let (open, _) = with_reads(&mut mm, |mm| mm.vfs_open(&on(0), file));
    assert_eq!(mm.vfs.array_cache_of(file), CacheId::KMALLOC_96);
    mm.vfs_unlink(&on(0), file).expect("memory is plentiful");
    mm.vfs_close(&on(0), open);
    assert!(!mm.vfs.rec(file).extents.is_some());
    assert_valid(&mm);
}
