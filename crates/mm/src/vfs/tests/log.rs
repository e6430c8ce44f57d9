//! What changes go to the log, and what is kept for them.

use super::super::cil;
use super::super::disk::Metadata;
use super::*;
use crate::slab::CacheId;

#[test]
fn reading_changes_the_inode_once_after_each_write() {
    let (mut mm, fs, dir) = xfs(old_rules());
    let file = make(&mut mm, dir);
    let (open, _) = with_reads(&mut mm, |mm| mm.vfs_open(&on(0), file));
    let pushed = |mm: &mut Mm| write_back(mm, fs).0;
    pushed(&mut mm);
    let later = Env { now: units::Nanos::millis(4), ..on(0) };
    for (write, changes) in [(false, 1), (false, 0), (true, 1), (false, 0)] {
        if write {
            mm.vfs_update_time(&later, file).expect("memory is plentiful");
            assert_eq!(pushed(&mut mm), 1, "a write changes the time of the change");
        }
        mm.vfs_touch_atime(&later, file).expect("memory is plentiful");
        assert_eq!(pushed(&mut mm), changes);
    }
    mm.vfs_close(&on(0), open);
    assert_valid(&mm);
}

#[test]
fn a_vector_is_freed_with_its_checkpoint_and_the_shadow_is_the_next() {
    let (mut mm, fs, dir) = xfs(old_rules());
    checkpoint(&mut mm, fs);
    let open = create(&mut mm, dir);
    let file = open.file;
    let vectors = |mm: &Mm| (mm.vfs.shadows.has(file.0), mm.vfs.rec(file).has(FileRec::IN_CIL));
    assert_eq!(vectors(&mm), (false, true), "the first change took the one it had");
    mm.log_item(&on(0), file).expect("memory is plentiful");
    mm.log_item(&on(0), file).expect("memory is plentiful");
    assert_eq!(vectors(&mm), (true, true), "the second got it a shadow, the third needs none");
    let before = in_use(&mm, "kmalloc-512");
    checkpoint(&mut mm, fs);
    assert_eq!(vectors(&mm), (true, false));
    mm.log_item(&on(0), file).expect("memory is plentiful");
    assert_eq!(vectors(&mm), (false, true), "the shadow is the vector of the next checkpoint");
    assert_eq!(in_use(&mm, "kmalloc-512"), before, "free objects of a CPU's slab count as used");
    mm.vfs_close(&on(0), open);
    assert_valid(&mm);
}

#[test]
fn until_4_7_a_vector_is_of_one_checkpoint_and_no_other_waits() {
    let (mut mm, fs, dir) = xfs(Rules { log_vectors: LogVectors::AtCommit, ..old_rules() });
    let open = create(&mut mm, dir);
    let file = open.file;
    let state = |mm: &Mm| (mm.vfs.vectors.has(file.0), mm.vfs.shadows.has(file.0));
    checkpoint(&mut mm, fs);
    assert_eq!(state(&mm), (false, false));
    let without = vectors_in_use(&mm);
    for _ in 0..2 {
        mm.log_item(&on(0), file).expect("memory is plentiful");
        assert_eq!(state(&mm), (true, false), "the second change is written over the first");
    }
    mm.allocate_blocks(&on(0), file, 0, 4);
    mm.log_item_nowait(&on(0), file);
    assert_eq!(state(&mm), (true, false), "a larger one took its place");
    assert!(mm.vfs.rec(file).has(FileRec::VECTOR_LARGE));
    checkpoint(&mut mm, fs);
    assert_eq!(state(&mm), (false, false));
    assert_eq!(vectors_in_use(&mm).0, without.0, "free objects of a CPU's slab count as used");
    mm.vfs_close(&on(0), open);
    assert_valid(&mm);
}

#[test]
fn until_4_7_a_block_keeps_no_vector_beside_that_of_the_checkpoint() {
    let (mut mm, fs, dir) = xfs(Rules { log_vectors: LogVectors::AtCommit, ..old_rules() });
    for _ in 0..40 {
        make(&mut mm, dir);
    }
    let number = mm.vfs.buffer_number(fs, Metadata::Directory { dir, index: 0 }).expect("it is in memory");
    let sizes = |mm: &Mm| mm.vfs.buffers[number].log.as_ref().expect("it was changed").sizes();
    // Names 12 to 39, of 31 bytes behind a header of 64: bytes 436 to 1304, chunks 3 to 10; beside the header's and the last: three runs.
    assert_eq!(sizes(&mm), [56 + 4 * 32 + 24 + 10 * 128, 0]);
    checkpoint(&mut mm, fs);
    assert_eq!(sizes(&mm), [0, 0]);
    assert_valid(&mm);
}

#[test]
fn inodes_of_version_4_take_half_the_room() {
    let spec = FsSpec::xfs(3, Bytes::gib(4)).without_crc();
    assert_eq!((spec.chunk_pages(), spec.clusters()), (4, 2));
    // 96 of the core instead of 176, and the 160 bytes behind it.
    assert_eq!(cil::vector_cache(&spec, false), CacheId::kmalloc(56 + 56 + 96 + 2 * 24).unwrap());
    assert_eq!(cil::vector_cache(&spec, true), CacheId::kmalloc(56 + 56 + 96 + 160 + 3 * 24).unwrap());
}

/// Bytes that the blocks of a directory take in the log after so many names, byte by byte: 12 are in the inode before there is a block.
fn block_bytes(names: u32, per_block: u32) -> u64 {
    let changed: Vec<u32> = if names > 12 { (12..names).collect() } else { Vec::new() };
    let blocks = changed.chunk_by(|a, b| a / per_block == b / per_block);
    let bytes_of = |block: &[u32]| {
        let length = (4096 - 64) / per_block;
        let mut bytes = [false; 4096];
        bytes[..64].fill(true);
        bytes[4095] = true;
        for name in block {
            let start = 64 + name % per_block * length;
            bytes[start as usize..=(start + length).min(4095) as usize].fill(true);
        }
        let chunks: Vec<bool> = bytes.chunks(128).map(|chunk| chunk.contains(&true)).collect();
        let runs = chunks.chunk_by(|a, b| a == b).filter(|run| run[0]).count();
        let changed = chunks.iter().filter(|changed| **changed).count();
        // The format and each run have a header.
        24 + 12 + 12 * runs as u64 + 128 * changed as u64
    };
    blocks.map(bytes_of).sum()
}

#[test]
fn a_checkpoint_of_an_eighth_of_the_log_is_written_at_once() {
    // 4 GiB have a log of 10 MiB; 256 bytes an inode without extents.
    let (mut mm, fs, dir) = xfs(old_rules());
    checkpoint(&mut mm, fs);
    let per_block = mm.vfs.fs[fs.0 as usize].spec.dirents_per_block();
    let bytes = |files: u32| 256 * u64::from(files) + block_bytes(files, per_block);
    let mut made = 0;
    while !mm.vfs_log_waits(fs) {
        make(&mut mm, dir);
        made += 1;
    }
    // The directory's inode is not in it: its changes are those of its blocks.
    assert!(bytes(made - 1) < (10 << 20) / 8 && bytes(made) >= (10 << 20) / 8, "{made} files");
    assert_eq!(mm.vfs_take_push(fs), 0, "the log has room");
    assert_eq!(push_target(&mut mm, fs), 256, "the directory's own creation");
    checkpoint(&mut mm, fs);
    assert_eq!(mm.vfs_take_push(fs), 256, "the log has room");
    assert_eq!(push_target(&mut mm, fs), 256 + bytes(made));
    assert_valid(&mm);
}

#[test]
fn an_evicted_inode_gets_its_log_item_back_with_the_first_change() {
    let (mut mm, fs, dir) = xfs(old_rules());
    let file = make(&mut mm, dir);
    write_back(&mut mm, fs);
    for _ in 0..4 {
        shrink(&mut mm, &on(0), 4096);
    }
    assert!(!mm.vfs.rec(file).inode.is_some());
    let (open, _) = with_reads(&mut mm, |mm| mm.vfs_open(&on(0), file));
    assert!(mm.vfs.rec(file).inode.is_some() && !mm.vfs.items.has(file.0), "an inode that is only read has none");
    mm.vfs_touch_atime(&on(0), file).expect("memory is plentiful");
    assert!(mm.vfs.items.has(file.0) && mm.vfs.rec(file).has(FileRec::IN_CIL));
    mm.vfs_close(&on(0), open);
    assert_valid(&mm);
}

/// Objects of the two caches that vectors come from; free objects of a CPU's slab count as used.
fn vectors_in_use(mm: &Mm) -> (u64, u64) {
    (in_use(mm, "kmalloc-512"), in_use(mm, "kmalloc-1k"))
}

#[test]
fn a_vector_has_room_for_extents_once_the_file_has_blocks() {
    // 56 of `xfs_log_vec`, 56 of the format, 176 of the core, 24 a region; and the 336 bytes behind the core of 512.
    let spec = FsSpec::xfs(3, Bytes::gib(4));
    assert_eq!(cil::vector_cache(&spec, false), CacheId::kmalloc(56 + 56 + 176 + 2 * 24).unwrap());
    assert_eq!(cil::vector_cache(&spec, true), CacheId::kmalloc(56 + 56 + 176 + 336 + 3 * 24).unwrap());
}

#[test]
fn blocks_get_an_inode_a_larger_vector_and_data_on_disk_a_shadow() {
    let (mut mm, fs, dir) = xfs(old_rules());
    checkpoint(&mut mm, fs);
    let open = create(&mut mm, dir);
    let file = open.file;
    let state = |mm: &Mm| {
        let rec = mm.vfs.rec(file);
        let [shadow, vector] = [&mm.vfs.shadows, &mm.vfs.vectors].map(|table| table.get(file.0));
        [vector.is_some(), rec.has(FileRec::VECTOR_LARGE), shadow.is_some(), rec.has(FileRec::SHADOW_LARGE)]
    };
    assert_eq!(state(&mm), [true, false, false, false], "made, in the checkpoint");
    mm.set_inode_size_pages(&on(0), file, 4);
    mm.allocate_blocks(&on(0), file, 0, 4);
    mm.log_item_nowait(&on(0), file);
    assert_eq!(
        state(&mm),
        [true, true, true, false],
        "the larger one took the place of the first, which is the shadow"
    );
    mm.log_data_written(&on(0), file, 4);
    assert_eq!(state(&mm), [true, true, true, true], "the checkpoint keeps its vector, the item has a shadow");
    mm.log_data_written(&on(0), file, 4);
    checkpoint(&mut mm, fs);
    assert_eq!(state(&mm), [false, false, true, true], "the size was logged once");
    let before = vectors_in_use(&mm);
    mm.log_item_nowait(&on(0), file);
    assert_eq!(state(&mm), [true, true, false, false]);
    checkpoint(&mut mm, fs);
    assert_eq!(vectors_in_use(&mm), before);
    mm.vfs_close(&on(0), open);
    assert_valid(&mm);
}

#[test]
fn extents_that_were_written_are_not_logged_with_a_later_change() {
    let (mut mm, fs, dir) = xfs(old_rules());
    let open = create(&mut mm, dir);
    let file = open.file;
    mm.allocate_blocks(&on(0), file, 0, 4);
    mm.log_item_nowait(&on(0), file);
    checkpoint(&mut mm, fs);
    let large = |mm: &mut Mm| {
        mm.log_item(&on(0), file).expect("memory is plentiful");
        mm.vfs.rec(file).has(FileRec::VECTOR_LARGE)
    };
    assert!(large(&mut mm), "the cluster is not written");
    checkpoint(&mut mm, fs);
    while mm.vfs_push_metadata(&on(0), fs, u64::MAX, usize::MAX) != Ok(0) {}
    assert!(!mm.vfs_submit_metadata(&on(0), fs, usize::MAX));
    assert!(!large(&mut mm), "a cluster that is not in memory was read, and written");
    checkpoint(&mut mm, fs);
    mm.allocate_blocks(&on(0), file, 4, 4);
    assert!(large(&mut mm), "there is another extent");
    mm.vfs_close(&on(0), open);
    assert_valid(&mm);
}

#[test]
fn extents_that_were_unwritten_are_logged_with_the_size_when_the_data_is_there() {
    for (xfs_write_end, extents) in [(XfsWriteEnd::LogsSize, false), (XfsWriteEnd::Converts, true)] {
        let (mut mm, fs, dir) = xfs(Rules { xfs_write_end, ..old_rules() });
        let open = create(&mut mm, dir);
        let file = open.file;
        mm.allocate_blocks(&on(0), file, 0, 4);
        mm.log_item_nowait(&on(0), file);
        checkpoint(&mut mm, fs);
        while mm.vfs_push_metadata(&on(0), fs, u64::MAX, usize::MAX) != Ok(0) {}
        assert!(!mm.vfs_submit_metadata(&on(0), fs, usize::MAX));
        mm.set_inode_size_pages(&on(0), file, 4);
        mm.log_data_written(&on(0), file, 4);
        assert_eq!(mm.vfs.rec(file).has(FileRec::VECTOR_LARGE), extents);
        assert!(mm.vfs.rec(file).has(FileRec::IN_CIL));
        mm.vfs_close(&on(0), open);
        assert_valid(&mm);
    }
}

#[test]
fn each_end_of_data_behind_the_size_on_disk_is_logged_and_no_other() {
    let (mut mm, fs, dir) = xfs(old_rules());
    let open = create(&mut mm, dir);
    let file = open.file;
    mm.allocate_blocks(&on(0), file, 0, 16);
    // Pages that the file has, where data that was written ends, and whether that is behind what is on disk.
    for (size, end, logged) in
        [(4, 4, true), (4, 4, false), (6, 2, false), (6, 16, true), (6, 16, false), (3, 3, false), (4, 4, true)]
    {
        mm.set_inode_size_pages(&on(0), file, size);
        checkpoint(&mut mm, fs);
        assert_eq!(mm.data_changes_inode(file, end), logged, "{size} {end}");
        mm.log_data_written(&on(0), file, end);
        assert_eq!(mm.vfs.rec(file).has(FileRec::IN_CIL), logged, "{size} {end}");
    }
    mm.vfs_close(&on(0), open);
    assert_valid(&mm);
}

#[test]
fn until_3_3_a_size_is_not_logged() {
    let (mut mm, fs, dir) = xfs(Rules { xfs_write_end: XfsWriteEnd::MarksDirty, ..old_rules() });
    let open = create(&mut mm, dir);
    let file = open.file;
    mm.allocate_blocks(&on(0), file, 0, 4);
    mm.set_inode_size_pages(&on(0), file, 4);
    write_back(&mut mm, fs);
    assert_eq!(mm.vfs_dirty_metadata(fs), 0);
    assert!(mm.data_changes_inode(file, 4));
    mm.log_data_written(&on(0), file, 4);
    assert!(!mm.data_changes_inode(file, 4) && !mm.vfs.rec(file).has(FileRec::IN_CIL));
    assert_eq!(mm.vfs_dirty_metadata(fs), 1, "its cluster");
    mm.vfs_close(&on(0), open);
    assert_valid(&mm);
}

#[test]
fn a_hole_that_is_filled_is_converted_since_5_8() {
    for (xfs_write_end, converted) in [(XfsWriteEnd::LogsSize, false), (XfsWriteEnd::Converts, true)] {
        let (mut mm, fs, dir) = xfs(Rules { xfs_write_end, ..old_rules() });
        let open = create(&mut mm, dir);
        let file = open.file;
        mm.set_inode_size_pages(&on(0), file, 600);
        mm.allocate_blocks(&on(0), file, 599, 1);
        mm.log_data_written(&on(0), file, 600);
        checkpoint(&mut mm, fs);
        mm.allocate_blocks(&on(0), file, 0, 1);
        assert_eq!(mm.data_changes_inode(file, 1), converted);
        mm.log_data_written(&on(0), file, 1);
        assert!(!mm.data_changes_inode(file, 1));
        mm.vfs_close(&on(0), open);
        assert_valid(&mm);
    }
}

#[test]
fn a_small_shadow_gives_way_to_a_large_one() {
    let (mut mm, fs, dir) = xfs(old_rules());
    let open = create(&mut mm, dir);
    let file = open.file;
    mm.log_item(&on(0), file).expect("memory is plentiful");
    checkpoint(&mut mm, fs);
    assert!(mm.vfs.shadows.has(file.0) && !mm.vfs.rec(file).has(FileRec::SHADOW_LARGE));
    mm.allocate_blocks(&on(0), file, 0, 4);
    mm.log_item(&on(0), file).expect("memory is plentiful");
    let rec = mm.vfs.rec(file);
    assert!(rec.has(FileRec::IN_CIL) && rec.has(FileRec::VECTOR_LARGE) && !mm.vfs.shadows.has(file.0));
    mm.vfs_close(&on(0), open);
    assert_valid(&mm);
}

#[test]
fn a_block_keeps_its_item_until_it_is_written_and_its_vector_until_the_checkpoint() {
    let (mut mm, fs, dir) = xfs(old_rules());
    let per_block = mm.vfs.fs[fs.0 as usize].spec.dirents_per_block();
    write_back(&mut mm, fs);
    for _ in 0..2 * per_block {
        make(&mut mm, dir);
    }
    let number = mm.vfs.buffer_number(fs, Metadata::Directory { dir, index: 1 }).expect("it is in memory");
    // The last name found all chunks changed: it got a shadow for them, and the vector had room already.
    assert_eq!(mm.vfs.buffers[number].log.as_ref().unwrap().sizes(), [56 + 2 * 32 + 24 + 4096; 2]);
    checkpoint(&mut mm, fs);
    assert_eq!(mm.vfs.buffers[number].log.as_ref().unwrap().sizes()[0], 0, "the vector is freed with the checkpoint");
    write_back(&mut mm, fs);
    assert!(mm.vfs.buffers[number].log.is_none(), "it is written");
    assert_valid(&mm);
}

#[test]
fn each_transaction_draws_a_number_since_5_19() {
    let setting_a_time = |prandom| {
        let (mut mm, _, dir) = xfs(Rules { prandom, ..Rules::newest() });
        let file = make(&mut mm, dir);
        let later = Env { now: units::Nanos::millis(4), ..on(0) };
        mm.take_cpu_ns();
        mm.vfs_update_time(&later, file).expect("memory is plentiful");
        (mm.take_cpu_ns(), mm.costs.random_number)
    };
    let ((own, _), (random, number)) = (setting_a_time(Prandom::Own), setting_a_time(Prandom::Random));
    assert_eq!(random - own, number);
}
