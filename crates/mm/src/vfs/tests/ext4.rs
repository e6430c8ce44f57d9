//! What an ext4 file has in memory.

use super::*;
use crate::pagecache::PageWrite;

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

/// 300 names: 204 fill a block, which then is the root of two leaves.
#[test]
fn a_directory_of_ext4_has_an_index_when_its_block_is_full_and_its_root_is_read_for_every_name() {
    let (mut mm, dir) = ext4(Rules::newest());
    let blocks = |mm: &Mm| mm.vfs.dirs[dir.0 as usize].blocks.len();
    let files: Vec<FileId> = (0..204).map(|_| make(&mut mm, dir)).collect();
    assert_eq!(blocks(&mm), 1);
    let more: Vec<FileId> = (0..96).map(|_| make(&mut mm, dir)).collect();
    assert_eq!(blocks(&mm), 3);
    let logged = (0..3).filter(|index| mm.vfs.dirs[dir.0 as usize].blocks[*index].dirty).count();
    assert_eq!(logged, 3, "the split changed all of them");
    assert_valid(&mm);
    let read = |mm: &Mm, file: &FileId| {
        let leaf = mm.vfs.dir_block_of(dir, mm.vfs.attributes.dirent(*file)).expect("a block");
        assert!((1..3).contains(&leaf));
        mm.vfs.index_root(dir)
    };
    assert!(files.iter().chain(&more).all(|file| read(&mm, file) == Some(0)));
    for file in files.iter().chain(&more) {
        mm.vfs_unlink(&on(0), *file).expect("all is in memory");
    }
    assert_eq!(blocks(&mm), 3, "blocks stay");
    assert_valid(&mm);
}

#[test]
fn a_page_that_is_written_on_ext4_has_a_buffer_head_until_it_leaves_its_file() {
    let (mut mm, dir) = ext4(Rules::newest());
    let file = make(&mut mm, dir);
    let before = in_use(&mm, "buffer_head");
    for _ in 0..3 {
        for index in 0..400 {
            let mut write = PageWrite::new(file, index, 1);
            let stop = mm.write_page(&on(0), &mut write);
            assert_eq!(stop, crate::pagecache::WriteStop::Done { written: 1, dirtied: 1 });
            // Written again, it keeps the one it has.
            mm.write_page(&on(0), &mut write);
        }
        // 39 heads fit a page; what was freed is used again.
        let written = in_use(&mm, "buffer_head") - before;
        assert!((400 - 39..=400 + 39).contains(&written), "{written}");
        mm.truncate_pages(&on(0), file, 0);
        assert_valid(&mm);
    }
}

#[test]
fn a_directory_of_ext4_has_its_first_block_in_memory_and_in_the_journal_from_its_start() {
    let (mut mm, root) = ext4(Rules::newest());
    let top = mm.vfs_mkdir(&on(0), root).expect("memory is plentiful");
    // The first directory in it brings the block of its inode, which is the other's, too.
    mm.vfs_mkdir(&on(0), top).expect("memory is plentiful");
    let before = mm.blockdev_pages();
    let dir = mm.vfs_mkdir(&on(0), top).expect("memory is plentiful");
    assert_eq!(mm.blockdev_pages() - before, 1);
    assert!(mm.vfs.dirs[dir.0 as usize].blocks[0].block > 0);
    // The first name finds it there.
    make(&mut mm, dir);
    assert_eq!(mm.blockdev_pages() - before, 1);
    assert_valid(&mm);
}

#[test]
fn with_flex_bg_inodes_lie_in_tables_and_directories_before_the_data() {
    let mut mm = machine(1, 1 << 15, Rules::newest());
    let fs = mm.vfs_mkfs(FsSpec::ext4(3, Bytes::gib(4)).with_flex_bg());
    let root = mm.vfs_root(fs);
    let dir = mm.vfs_mkdir(&on(0), root).expect("memory is plentiful");
    for _ in 0..200 {
        let handle = create(&mut mm, dir);
        mm.set_inode_size_pages(&on(0), handle.file, 2);
        mm.allocate_blocks(&on(0), handle.file, 0, 2);
        mm.vfs_close(&on(0), handle);
    }
    // Two groups of 2 GiB, each with 16 blocks of headers, a table of an inode for each 16 KiB: 2 GiB / 16 KiB / 16 a block,
    // and directories until block 32,768.
    let group = mm.vfs.dirs[dir.0 as usize].ag * (2 << 18);
    let (table, data) = (group + 16, group + 32_768 + 16);
    let chunks: Vec<u32> = mm.vfs.fs[0].chunks.iter().filter(|c| c.block >= group).map(|c| c.block).collect();
    assert!(chunks.ends_with(&[table + 4, table + 8, table + 12]), "{chunks:?}: 201 inodes in chunks of 64");
    assert!((table + 8192..data).contains(&mm.vfs.dirs[dir.0 as usize].blocks[0].block));
    let attributes = &mm.vfs.attributes;
    let mut files = (0..).take(mm.vfs.files.len()).map(FileId);
    assert!(files.all(|file| attributes.blocks(file) != 2 || attributes.first_block(file) >= data));
    assert_valid(&mm);
}

#[test]
fn a_small_ext4_with_flex_bg_can_be_filled() {
    let mut mm = machine(1, 1 << 15, Rules::newest());
    let fs = mm.vfs_mkfs(FsSpec::ext4(3, Bytes::mib(64)).with_flex_bg());
    let dir = mm.vfs_root(fs);
    // 16,384 blocks / 64 are tables: 4096 inodes, one of which is the root's.
    for _ in 0..4095 {
        make(&mut mm, dir);
    }
    assert_eq!(mm.vfs_create(&on(0), dir), Err(Need::Space));
    assert_valid(&mm);
}

/// CPU time of a step, in ns.
fn cost(mm: &mut Mm, step: impl FnOnce(&mut Mm)) -> u64 {
    mm.take_cpu_ns();
    step(mm);
    mm.take_cpu_ns()
}

#[test]
fn a_new_name_costs_by_the_names_of_its_block() {
    let (mut mm, dir) = ext4(Rules::newest());
    let of_name = mm.costs.search_name;
    // All names but the first cost the same beside their search; of 204 to a block, three quarters are looked at once there are two.
    let costs: Vec<u64> = (0..260).map(|_| cost(&mut mm, |mm| _ = make(mm, dir))).collect();
    let search = |names: usize| costs[names] - costs[1] + of_name;
    assert_eq!([2, 50, 203].map(search), [2, 50, 203].map(|names| names as u64 * of_name));
    assert_eq!(costs[259] - costs[1], (153 - 1) * of_name);
}

#[test]
fn a_time_of_change_is_set_once_in_a_tick() {
    let (mut mm, dir) = ext4(Rules::newest());
    let (one, other) = (make(&mut mm, dir), make(&mut mm, dir));
    let at = |ms| Env { now: units::Nanos::millis(ms), ..on(0) };
    // With the checksum of an inode of 256 bytes.
    let of_time = mm.costs.new_time_ext4 + mm.costs.crc32c_kib / 4;
    let mut set = |file, ms| cost(&mut mm, |mm| mm.vfs_update_time(&at(ms), file).unwrap());
    set(one, 4);
    let again = set(one, 7);
    let (next_tick, of_another) = (set(one, 8), set(other, 8));
    assert_eq!(next_tick - again, of_time);
    assert_eq!(of_another, next_tick);
}
