//! What an ext4 file has in memory.

use super::*;

#[test]
fn an_ext4_inode_is_freed_with_its_eviction() {
    let mut mm = machine(1, 1 << 15, Rules::newest());
    let fs = mm.vfs_mkfs(FsSpec::ext4(3, Bytes::gib(4)));
    let dir = mm.vfs_root(fs);
    for _ in 0..20 {
        make(&mut mm, dir);
    }
    mm.prune_dentries(&on(0), SHARE, 100);
    assert_eq!(mm.prune_inodes(&on(0), SHARE, 100), 20);
    assert_eq!((mm.vfs.cached(), mm.vfs.reclaimable_inodes()), ((0, 0), 0));
    assert_valid(&mm);
}

/// A machine with an ext4 and its root.
fn ext4(rules: Rules) -> (Mm, DirId) {
    let mut mm = machine(1, 1 << 15, rules);
    let fs = mm.vfs_mkfs(FsSpec::ext4(3, Bytes::gib(4)));
    let root = mm.vfs_root(fs);
    (mm, root)
}

#[test]
fn a_new_ext4_inode_has_its_place_in_a_transaction_and_since_5_1_a_security_blob() {
    for (rules, blobs) in [(Rules::newest(), 1), (old_rules(), 0)] {
        let (mut mm, dir) = ext4(rules);
        for _ in 0..1000 {
            make(&mut mm, dir);
        }
        for (cache, each) in [("extent_status", 0), ("jbd2_inode", 1), ("lsm_inode_cache", blobs), ("xfs_ili", 0)] {
            // Free objects of the CPU's slab count too: 102 of a page at most.
            let objects = in_use(&mm, cache);
            assert!((each * 1000..=each * 1102).contains(&objects), "{cache}: {objects}");
        }
        assert_valid(&mm);
        mm.prune_dentries(&on(0), SHARE, 2000);
        mm.prune_inodes(&on(0), SHARE, 2000);
        assert_valid(&mm);
        // What was freed is used again.
        for _ in 0..1000 {
            make(&mut mm, dir);
        }
        assert!(in_use(&mm, "jbd2_inode") <= 1102);
    }
}

#[test]
fn a_page_that_is_written_on_ext4_has_a_buffer_head_until_it_leaves_its_file() {
    let (mut mm, dir) = ext4(Rules::newest());
    let file = make(&mut mm, dir);
    let before = in_use(&mm, "buffer_head");
    for _ in 0..3 {
        for index in 0..400 {
            let mut hand = None;
            let stop = mm.write_page(&on(0), file, index, &mut hand);
            assert_eq!(stop, crate::pagecache::WriteStop::Done { dirtied: true });
            // Written again, it keeps the one it has.
            mm.write_page(&on(0), file, index, &mut hand);
        }
        // 39 heads fit a page; what was freed is used again.
        let written = in_use(&mm, "buffer_head") - before;
        assert!((400 - 39..=400 + 39).contains(&written), "{written}");
        mm.truncate_pages(&on(0), file, 0);
        assert_valid(&mm);
    }
}
