//! Files on small machines.

use proptest::prelude::*;
use rules::{InodeReclaim, Rules, XfsReclaim};
use units::{Bytes, FileId, Gfp, NodeId, Order};

use super::{DirId, FileRec, FsId, FsSpec, Handle, Need, Scanned, ShrinkerId};
use crate::slab::tests::{assert_valid, exhaust, machine, on, rules_4_20};
use crate::stat::{NodeStat, VmEvent};
use crate::zone::Wmark;
use crate::{AllocRequest, Effect, Env, Mm, TaskFlags};

const NODE: NodeId = NodeId(0);

fn old_rules() -> Rules {
    Rules { inode_reclaim: InodeReclaim::SkipWithPages, xfs_reclaim: XfsReclaim::FlushDirty, ..rules_4_20() }
}

/// A machine with one XFS of 4 GiB and a directory in it.
fn xfs(rules: Rules) -> (Mm, FsId, DirId) {
    let mut mm = machine(1, 1 << 15, rules);
    let fs = mm.vfs_mkfs(FsSpec::xfs(3, Bytes::gib(4)));
    let root = mm.vfs_root(fs);
    let dir = mm.vfs_mkdir(&on(0), root).expect("memory is plentiful");
    (mm, fs, dir)
}

fn create(mm: &mut Mm, dir: DirId) -> Handle {
    mm.vfs_create(&on(0), dir).expect("memory is plentiful")
}

/// A closed file.
fn make(mm: &mut Mm, dir: DirId) -> FileId {
    let handle = create(mm, dir);
    mm.vfs_close(&on(0), handle);
    handle.file
}

/// Repeats an operation after each read; counts the reads.
fn with_reads<T>(mm: &mut Mm, mut step: impl FnMut(&mut Mm) -> Result<T, Need>) -> (T, u32) {
    for reads in 0.. {
        match step(mm) {
            Ok(done) => return (done, reads),
            Err(Need::Read(bio)) => assert!(!bio.write && bio.sync && bio.device == 3),
            Err(need) => panic!("{need:?}"),
        }
    }
    unreachable!()
}

/// Writes the checkpoint to the log, to its end.
fn checkpoint(mm: &mut Mm, fs: FsId) {
    mm.vfs_push_cil(&on(0), fs);
    mm.vfs_free_log_vectors(&on(0), fs);
}

/// Writes the log, and then all that is only in it; says how many blocks, and how many were read for it.
fn write_back(mm: &mut Mm, fs: FsId) -> (usize, u32) {
    checkpoint(mm, fs);
    with_reads(mm, |mm| mm.vfs_push_metadata(&on(0), fs, u64::MAX, usize::MAX))
}

fn in_use(mm: &Mm, name: &str) -> u64 {
    mm.slabs.slabinfo().find(|i| i.name == name).unwrap().active_objs
}

fn shrink(mm: &mut Mm, env: &Env, nr: u64) -> Scanned {
    mm.shrinker_scan(env, ShrinkerId::Superblock, NODE, nr, Gfp::KERNEL)
}

/// The dentry LRU from the head, as numbers of files; `*` after a referenced one.
fn drawn(mm: &Mm, files: &[FileId]) -> String {
    let name = |id: u32| {
        let Some(n) = files.iter().position(|f| f.0 == id) else { return String::new() };
        let star = if mm.vfs.files[id as usize].has(FileRec::DENTRY_REF) { "*" } else { "" };
        format!("{}{star}", (b'a' + n as u8) as char)
    };
    mm.vfs.dentry_lru[0].iter(&mm.vfs.files).map(name).collect::<Vec<_>>().concat()
}

#[test]
fn a_record_takes_72_bytes() {
    assert_eq!(size_of::<FileRec>(), 72);
}

#[test]
fn a_create_takes_the_objects_and_the_chunk_of_the_first_file() {
    let (mut mm, fs, dir) = xfs(old_rules());
    // The directory has the second inode of the root's chunk, which is on disk; its own group gets a new chunk.
    assert_eq!(mm.vfs.buffers(), 0);
    let handle = create(&mut mm, dir);
    // Two clusters of 16 KiB, 32 inodes each: 8 pages.
    assert_eq!(mm.vfs.buffers(), 2);
    assert_eq!(mm.vfs.cached(), (2, 2), "the directory and the file");
    assert_eq!(mm.vfs.unused_dentries(), 1, "the directory was closed before it got a child");
    let clean = mm.vfs_dirty_metadata(fs);
    mm.vfs_close(&on(0), handle);
    assert_eq!((mm.vfs.unused_dentries(), mm.vfs.unused_inodes()), (2, 0), "a dentry keeps its inode");
    assert_eq!(mm.vfs_dirty_metadata(fs), clean);
    for _ in 0..63 {
        make(&mut mm, dir);
    }
    assert_eq!(mm.vfs.fs[0].chunks.len(), 2);
    // 64 names of 40 B: 13 to 64 are in a block; names up to 12 fit the inode.
    assert_eq!(mm.vfs.dirs[dir.0 as usize].blocks.len(), 1);
    assert_eq!(mm.vfs.buffers(), 3);
    make(&mut mm, dir);
    assert_eq!((mm.vfs.fs[0].chunks.len(), mm.vfs.buffers()), (3, 5));
    assert_valid(&mm);
}

#[test]
fn the_dentry_lru_is_in_order_of_the_last_first_close() {
    let (mut mm, _, dir) = xfs(old_rules());
    let files: Vec<FileId> = (0..4).map(|_| make(&mut mm, dir)).collect();
    assert_eq!(drawn(&mm, &files), "abcd");
    // Opened and closed again: stays where it is and is referenced.
    let handle = mm.vfs_open(&on(0), files[1]).unwrap();
    assert_eq!(drawn(&mm, &files), "abcd", "an open does not move it");
    mm.vfs_close(&on(0), handle);
    assert_eq!(drawn(&mm, &files), "ab*cd");
    // The directory is first on the list: in use, it leaves. a goes; b loses its reference and goes to the tail.
    assert_eq!(mm.prune_dentries(&on(0), NODE, 3), 2);
    assert_eq!(drawn(&mm, &files), "cdb");
    assert_eq!(mm.vfs.unused_inodes(), 1, "a's inode lost its dentry");
    // One in use leaves the list and is counted.
    let handle = mm.vfs_open(&on(0), files[2]).unwrap();
    assert_eq!(mm.prune_dentries(&on(0), NODE, 1), 1);
    assert_eq!(drawn(&mm, &files), "db");
    mm.vfs_close(&on(0), handle);
    assert_eq!(drawn(&mm, &files), "dbc");
    assert_valid(&mm);
}

#[test]
fn a_stat_refers_to_the_dentry_without_opening_it() {
    let (mut mm, _, dir) = xfs(old_rules());
    let files: Vec<FileId> = (0..2).map(|_| make(&mut mm, dir)).collect();
    mm.vfs_stat(&on(0), files[0]).expect("it is in memory");
    assert_eq!(drawn(&mm, &files), "a*b");
    let open = mm.vfs_open(&on(0), files[1]).expect("it is in memory");
    mm.vfs_stat(&on(0), files[1]).expect("it is in memory");
    assert_eq!(drawn(&mm, &files), "a*b", "one in use is not marked");
    mm.vfs_close(&on(0), open);
    assert_eq!(drawn(&mm, &files), "a*b*");
}

#[test]
fn reading_changes_the_inode_once_after_each_write() {
    let (mut mm, fs, dir) = xfs(old_rules());
    let file = make(&mut mm, dir);
    let (open, _) = with_reads(&mut mm, |mm| mm.vfs_open(&on(0), file));
    let pushed = |mm: &mut Mm| write_back(mm, fs).0;
    pushed(&mut mm);
    for (write, changes) in [(false, 1), (false, 0), (true, 1), (false, 0)] {
        if write {
            mm.vfs_update_time(&on(0), file).expect("memory is plentiful");
            assert_eq!(pushed(&mut mm), 1, "a write changes the time of the change");
        }
        mm.vfs_touch_atime(&on(0), file).expect("memory is plentiful");
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
    let vectors = |mm: &Mm| (mm.vfs.rec(file).log_vector.is_some(), mm.vfs.rec(file).has(FileRec::IN_CIL));
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
fn a_checkpoint_of_an_eighth_of_the_log_is_written_at_once() {
    // 4 GiB have a log of 10 MiB; 284 bytes an inode.
    let (mut mm, fs, dir) = xfs(old_rules());
    checkpoint(&mut mm, fs);
    let mut made = 0;
    while !mm.vfs_log_waits(fs) {
        make(&mut mm, dir);
        made += 1;
    }
    // The directory is not in it: its own changes are those of its blocks.
    assert_eq!(made, (10 << 20) / 8 / 284 + 1);
    assert_eq!(mm.vfs_push_target(fs, true), 284, "the directory's own creation");
    checkpoint(&mut mm, fs);
    assert_eq!(mm.vfs_push_target(fs, true), 284 * (made + 1));
    assert_eq!(mm.vfs_push_target(fs, false), 0, "the log has room");
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
    assert!(mm.vfs.rec(file).inode.is_some() && !mm.vfs.rec(file).ili.is_some(), "an inode that is only read has none");
    mm.vfs_touch_atime(&on(0), file).expect("memory is plentiful");
    assert!(mm.vfs.rec(file).ili.is_some() && mm.vfs.rec(file).has(FileRec::IN_CIL));
    mm.vfs_close(&on(0), open);
    assert_valid(&mm);
}

#[test]
fn an_evicted_file_is_read_again_from_its_cluster() {
    let (mut mm, fs, dir) = xfs(old_rules());
    let files: Vec<FileId> = (0..40).map(|_| make(&mut mm, dir)).collect();
    // Flushing the directory's own inode reads the cluster of it; the others were made in memory.
    assert_eq!(write_back(&mut mm, fs).1, 1);
    // Dentries, then inodes, then what XFS keeps: three scans of everything.
    for _ in 0..4 {
        shrink(&mut mm, &on(0), 4096);
    }
    assert_eq!(mm.vfs.cached(), (0, 0), "the directory went with its last child");
    // Buffers are still there.
    let (handle, reads) = with_reads(&mut mm, |mm| mm.vfs_open(&on(0), files[0]));
    assert_eq!((reads, mm.vfs.cached()), (0, (2, 2)));
    mm.vfs_close(&on(0), handle);
    for _ in 0..4 {
        shrink(&mut mm, &on(0), 4096);
    }
    // References 2, 1, 0: the third visit frees. Clusters and one directory block, and the root's chunk's first
    // cluster, which the directory's own inode was read from.
    while mm.vfs.buffers() > 0 {
        assert!(mm.shrinker_scan(&on(0), ShrinkerId::XfsBuf, NODE, 128, Gfp::NOFS).freed > 0);
    }
    // The directory's inode, its block, and the cluster of the file: three reads.
    let (handle, reads) = with_reads(&mut mm, |mm| mm.vfs_open(&on(0), files[39]));
    assert_eq!(reads, 3);
    mm.vfs_close(&on(0), handle);
    // Inode 39 is in the second cluster (32 to 63), as is 35; inode 1 is not.
    assert_eq!(with_reads(&mut mm, |mm| mm.vfs_open(&on(0), files[35])).1, 0);
    assert_eq!(with_reads(&mut mm, |mm| mm.vfs_open(&on(0), files[1])).1, 1);
    assert_valid(&mm);
}

#[test]
fn a_dirty_inode_is_not_evicted_and_goes_on_the_lru_when_clean() {
    let (mut mm, _, dir) = xfs(old_rules());
    let file = make(&mut mm, dir);
    mm.inode_dirty(file, true);
    mm.prune_dentries(&on(0), NODE, 10);
    assert_eq!((mm.vfs.cached().0, mm.vfs.unused_inodes()), (0, 1), "only the directory's inode is on the LRU");
    mm.inode_dirty(file, false);
    assert_eq!(mm.vfs.unused_inodes(), 2);
    // Dirty again on the LRU: the shrinker takes it off and does not evict it.
    mm.inode_dirty(file, true);
    assert_eq!(mm.prune_inodes(&on(0), NODE, 10), 2);
    assert_eq!((mm.vfs.unused_inodes(), mm.vfs.reclaimable_inodes()), (0, 1));
    assert!(mm.vfs.rec(file).inode.is_some() && !mm.vfs.rec(file).has(FileRec::RECLAIMABLE));
    mm.inode_dirty(file, false);
    assert_valid(&mm);
}

#[test]
fn inodes_change_in_the_log_are_flushed_or_left() {
    for (flush, left) in [(XfsReclaim::FlushDirty, 0), (XfsReclaim::SkipDirty, 41)] {
        let (mut mm, fs, dir) = xfs(Rules { xfs_reclaim: flush, ..old_rules() });
        for _ in 0..40 {
            make(&mut mm, dir);
        }
        mm.prune_dentries(&on(0), NODE, 100);
        mm.prune_inodes(&on(0), NODE, 100);
        assert_eq!(mm.vfs.reclaimable_inodes(), 41);
        mm.reclaim_inodes_nr(&on(0), 100);
        assert_eq!(mm.vfs.reclaimable_inodes(), 41, "all are pinned");
        checkpoint(&mut mm, fs);
        assert_eq!(mm.vfs_background_reclaim(&on(0)), 0, "the worker never writes");
        mm.effects.take_into(&mut Vec::new());
        mm.reclaim_inodes_nr(&on(0), 100);
        let mut effects = Vec::new();
        mm.effects.take_into(&mut effects);
        let writes = effects.iter().filter(|e| matches!(e, Effect::Submit(bio) if bio.write)).count();
        // Flushing writes three clusters: the root's first, and both of the directory's group.
        assert_eq!((mm.vfs.reclaimable_inodes(), writes), (left, if left == 0 { 3 } else { 0 }), "{flush:?}");
        write_back(&mut mm, fs);
        assert_eq!(mm.vfs_background_reclaim(&on(0)), left);
        assert_eq!(mm.vfs.cached(), (0, 0));
        assert_valid(&mm);
    }
}

#[test]
fn a_referenced_inode_gets_another_round() {
    let (mut mm, _, dir) = xfs(old_rules());
    let keep = create(&mut mm, dir);
    let file = make(&mut mm, dir);
    mm.prune_dentries(&on(0), NODE, 10);
    assert_eq!(mm.vfs.unused_inodes(), 1);
    // Looked up again while its inode is on the LRU, and let go: marked.
    let handle = mm.vfs_open(&on(0), file).unwrap();
    mm.vfs_close(&on(0), handle);
    mm.prune_dentries(&on(0), NODE, 1);
    assert!(mm.vfs.rec(file).has(FileRec::INODE_LRU | FileRec::INODE_REF));
    assert_eq!((mm.prune_inodes(&on(0), NODE, 1), mm.vfs.reclaimable_inodes()), (0, 0));
    assert_eq!((mm.prune_inodes(&on(0), NODE, 1), mm.vfs.reclaimable_inodes()), (1, 1));
    mm.vfs_close(&on(0), keep);
    assert_valid(&mm);
}

/// Caches so many clean pages of a file.
fn cache_pages(mm: &mut Mm, file: FileId, pages: u32) {
    mm.set_inode_size_pages(file, pages);
    let request = AllocRequest { gfp: Gfp::HIGHUSER_MOVABLE, order: Order(0), node: NODE };
    for index in 0..pages {
        let pfn = mm.alloc_pages(&on(0), request).expect("memory is plentiful");
        mm.pagecache_insert(&on(0), pfn, file, index).expect("memory is plentiful");
    }
}

/// A file with so many clean pages whose dentry is gone; a file that keeps the directory.
fn forgotten(rule: InodeReclaim, pages: u32) -> (Mm, FileId) {
    let (mut mm, _, dir) = xfs(Rules { inode_reclaim: rule, ..old_rules() });
    create(&mut mm, dir);
    let file = make(&mut mm, dir);
    cache_pages(&mut mm, file, pages);
    mm.prune_dentries(&on(0), NODE, 10);
    (mm, file)
}

fn stolen(mm: &Mm) -> [u64; 2] {
    [VmEvent::Pginodesteal, VmEvent::KswapdInodesteal].map(|e| mm.stat.event(e))
}

#[test]
fn inodes_with_pages_lose_them_first() {
    let (mut mm, file) = forgotten(InodeReclaim::InvalidatePages, 70);
    // First visit: the pages go, and the reference that is dropped then marks the inode. Second: another round.
    assert_eq!((mm.prune_inodes(&on(0), NODE, 1), mm.nr_cached(file)), (0, 0));
    assert_eq!(stolen(&mm), [70, 0]);
    assert_eq!((mm.prune_inodes(&on(0), NODE, 1), mm.vfs.reclaimable_inodes()), (0, 0));
    assert_eq!((mm.prune_inodes(&on(0), NODE, 1), mm.vfs.reclaimable_inodes()), (1, 1));
    assert_valid(&mm);
    let (mut mm, _) = forgotten(InodeReclaim::InvalidatePages, 5);
    let kswapd = Env { task: TaskFlags { kswapd: true, ..TaskFlags::default() }, ..on(0) };
    mm.prune_inodes(&kswapd, NODE, 1);
    assert_eq!(stolen(&mm), [0, 5]);
}

#[test]
fn inodes_with_more_than_one_page_are_skipped() {
    let (mut mm, file) = forgotten(InodeReclaim::SkipWithPages, 2);
    assert_eq!((mm.prune_inodes(&on(0), NODE, 50), mm.nr_cached(file)), (0, 2));
    assert_eq!((mm.vfs.unused_inodes(), stolen(&mm)), (1, [0, 0]));
    // One page is the boundary: it is dropped, and the inode goes two visits later.
    let (mut mm, file) = forgotten(InodeReclaim::SkipWithPages, 1);
    assert_eq!((mm.prune_inodes(&on(0), NODE, 3), mm.nr_cached(file)), (1, 0));
    assert_eq!((mm.vfs.reclaimable_inodes(), stolen(&mm)), (1, [1, 0]));
    assert_valid(&mm);
}

#[test]
fn inodes_with_pages_are_not_on_the_lru() {
    let (mut mm, file) = forgotten(InodeReclaim::NotOnLru, 3);
    assert_eq!(mm.vfs.unused_inodes(), 0);
    assert_eq!(mm.invalidate_clean_pages(&on(0), file), 3);
    mm.inode_pages_gone(file);
    assert_eq!(mm.vfs.unused_inodes(), 1);
    // Pages again while it is on the list: it leaves the list and stays in memory.
    cache_pages(&mut mm, file, 2);
    assert_eq!((mm.prune_inodes(&on(0), NODE, 1), mm.vfs.unused_inodes()), (1, 0));
    assert_eq!((mm.vfs.reclaimable_inodes(), mm.nr_cached(file)), (0, 2));
    assert_valid(&mm);
}

#[test]
fn the_pages_of_an_unlinked_file_go_with_it() {
    let (mut mm, _, dir) = xfs(old_rules());
    let file = make(&mut mm, dir);
    let free = mm.stat.zone_sum(crate::stat::ZoneStat::FreePages);
    cache_pages(&mut mm, file, 500);
    mm.vfs_unlink(&on(0), file).expect("everything is in memory");
    mm.drain_pcp_all();
    assert_eq!((mm.nr_cached(file), mm.stat.node_sum(NodeStat::FilePages)), (0, 0));
    // Tree nodes came and went; a page of them is kept by the cache, as may be pages on per-CPU lists before.
    let after = mm.stat.zone_sum(crate::stat::ZoneStat::FreePages);
    assert!(after + 16 >= free, "{free} pages were free, {after} are");
    assert_valid(&mm);
}

#[test]
fn counts_are_scaled_by_vfs_cache_pressure_and_refused_without_fs() {
    let (mut mm, _, dir) = xfs(old_rules());
    for _ in 0..50 {
        make(&mut mm, dir);
    }
    // 50 files and the directory.
    assert_eq!(mm.shrinker_count(ShrinkerId::Superblock, NODE), 51);
    mm.tunables.vfs_cache_pressure = 20;
    assert_eq!(mm.shrinker_count(ShrinkerId::Superblock, NODE), 51 * 20 / 100);
    mm.tunables.vfs_cache_pressure = 0;
    assert_eq!(mm.shrinker_count(ShrinkerId::Superblock, NODE), 0);
    assert_eq!(mm.shrinker_count(ShrinkerId::XfsBuf, NODE), 3, "two clusters and a directory block");
    let scanned = mm.shrinker_scan(&on(0), ShrinkerId::Superblock, NODE, 1024, Gfp::NOFS);
    assert_eq!((scanned, mm.vfs.cached()), (Scanned::default(), (51, 51)));
}

#[test]
fn a_scan_is_divided_in_proportion() {
    let (mut mm, _, dir) = xfs(old_rules());
    let keep = create(&mut mm, dir);
    for _ in 0..100 {
        make(&mut mm, dir);
    }
    // The directory leaves the list first, then 40 files: 60 dentries and 40 inodes stay on their lists.
    assert_eq!(mm.prune_dentries(&on(0), NODE, 41), 41);
    assert_eq!((mm.vfs.unused_dentries(), mm.vfs.unused_inodes()), (60, 40));
    // 60 + 40 + 0 + 1 = 101; 50 * 60 / 101 = 29 and 50 * 40 / 101 = 19, each one more.
    assert_eq!(shrink(&mut mm, &on(0), 50), Scanned { scanned: 50, freed: 30 + 20 });
    assert_eq!((mm.vfs.unused_dentries(), mm.vfs.unused_inodes()), (30, 40 + 30 - 20));
    assert_eq!(mm.vfs.reclaimable_inodes(), 20);
    mm.vfs_close(&on(0), keep);
    assert_valid(&mm);
}

#[test]
fn nothing_is_left_after_everything_is_unlinked() {
    let (mut mm, fs, dir) = xfs(old_rules());
    let files: Vec<FileId> = (0..300).map(|_| make(&mut mm, dir)).collect();
    let open = mm.vfs_open(&on(0), files[7]).unwrap();
    for file in &files {
        with_reads(&mut mm, |mm| mm.vfs_unlink(&on(0), *file));
    }
    // The open one still has its inode; the others' are with XFS, their dentries negative.
    assert_eq!((mm.vfs.reclaimable_inodes(), mm.vfs.cached()), (299, (301, 301)));
    mm.vfs_close(&on(0), open);
    write_back(&mut mm, fs);
    assert_eq!(mm.vfs_background_reclaim(&on(0)), 300);
    assert_eq!(mm.vfs.cached(), (300, 1), "300 = 299 negative and the directory");
    assert_eq!(mm.vfs.fs[0].chunks.iter().filter(|c| c.free != 0).count(), 1, "only the root's chunk is left");
    mm.prune_dentries(&on(0), NODE, 1000);
    assert_eq!(mm.vfs.cached(), (0, 1), "the directory's inode");
    assert_eq!(in_use(&mm, "filp"), mm.slabs.slabinfo().find(|i| i.name == "filp").unwrap().num_objs);
    // Their records are used again.
    let again = make(&mut mm, dir);
    assert!(again.0 <= files[299].0);
    assert_valid(&mm);
}

#[test]
fn a_file_written_page_by_page_is_contiguous() {
    let (mut mm, _, dir) = xfs(old_rules());
    let [one, two] = [create(&mut mm, dir), create(&mut mm, dir)];
    // Both grow to 16 pages before writeback allocates: the whole file at once, whatever page is written first.
    for handle in [one, two] {
        mm.set_inode_size_pages(handle.file, 16);
    }
    assert_eq!(mm.map_block(one.file, 0), None, "delayed");
    let first = mm.allocate_blocks(one.file, 0, 1);
    let other = mm.allocate_blocks(two.file, 0, 16);
    assert_eq!((first.pages, other.pages), (1, 16));
    assert_ne!(first.sector, other.sector);
    for index in 0..16 {
        let extent = mm.map_block(one.file, index).unwrap();
        assert_eq!(extent.sector, first.sector + u64::from(index) * 8);
    }
    // From 64 KiB on an open file has as much again in advance: the next 16 pages follow, too.
    mm.set_inode_size_pages(one.file, 32);
    assert_eq!(mm.allocate_blocks(one.file, 16, 16).sector, first.sector + 16 * 8);
    // The close gives back what is beyond the end.
    assert!(mm.map_block(two.file, 16).is_some());
    mm.vfs_close(&on(0), two);
    assert!(mm.map_block(two.file, 15).is_some() && mm.map_block(two.file, 16).is_none());
    mm.set_inode_size_pages(one.file, 4);
    assert!(mm.map_block(one.file, 3).is_some() && mm.map_block(one.file, 4).is_none());
    mm.vfs_close(&on(0), one);
    assert_valid(&mm);
}

#[test]
fn files_written_with_holes_keep_their_extents_apart() {
    let (mut mm, _, dir) = xfs(old_rules());
    let handle = create(&mut mm, dir);
    mm.set_inode_size_pages(handle.file, 8);
    let tail = mm.allocate_blocks(handle.file, 6, 2);
    let head = mm.allocate_blocks(handle.file, 0, 2);
    assert_eq!((head.pages, tail.pages), (2, 2));
    assert_eq!(mm.map_block(handle.file, 7).unwrap().sector, tail.sector + 8);
    assert_eq!(mm.map_block(handle.file, 1).unwrap().sector, head.sector + 8);
    mm.set_inode_size_pages(handle.file, 7);
    assert!(mm.map_block(handle.file, 6).is_some() && mm.map_block(handle.file, 7).is_none());
    mm.set_inode_size_pages(handle.file, 0);
    assert!((0..8).all(|n| mm.map_block(handle.file, n).is_none()));
    mm.vfs_close(&on(0), handle);
}

#[test]
fn files_on_disk_take_no_memory_until_they_are_opened() {
    let mut mm = machine(1, 1 << 15, old_rules());
    let fs = mm.vfs_mkfs(FsSpec::xfs(3, Bytes::gib(64)));
    let root = mm.vfs_root(fs);
    let dir = mm.vfs_populate_dir(root);
    let files: Vec<FileId> = (0..1000).map(|_| mm.vfs_populate(dir, 16)).collect();
    assert_eq!((mm.vfs.cached(), mm.vfs.buffers()), ((0, 0), 0));
    assert_eq!(mm.stat.node_sum(NodeStat::SlabReclaimable), 0);
    let extent = mm.map_block(files[10], 3).unwrap();
    assert_eq!((extent.pages, extent.device), (13, 3));
    // The directory's inode is in the root's first cluster; then its block and the file's cluster.
    let (handle, reads) = with_reads(&mut mm, |mm| mm.vfs_open(&on(0), files[999]));
    assert_eq!((reads, mm.inode_size_pages(handle.file)), (3, 16));
    mm.vfs_close(&on(0), handle);
    assert_valid(&mm);
}

#[test]
fn until_3_0_dentries_and_inodes_have_shrinkers_of_their_own_that_count_in_hundreds() {
    let rules = Rules { vfs_shrinkers: rules::VfsShrinkers::Apart, ..old_rules() };
    let (mut mm, _, dir) = xfs(rules);
    for _ in 0..250 {
        let handle = create(&mut mm, dir);
        mm.vfs_close(&on(0), handle);
    }
    assert_eq!(mm.shrinker_count(ShrinkerId::Superblock, NODE), 0);
    assert_eq!(mm.shrinker_count(ShrinkerId::Dentries, NODE), 200, "of 250");
    assert_eq!(mm.shrinker_count(ShrinkerId::Inodes, NODE), 0, "dentries hold their inodes");
    let nofs = mm.shrinker_scan(&on(0), ShrinkerId::Dentries, NODE, 128, Gfp::NOFS);
    assert_eq!(nofs, Scanned::default());
    let scanned = mm.shrinker_scan(&on(0), ShrinkerId::Dentries, NODE, 128, Gfp::KERNEL);
    assert_eq!((scanned.scanned, scanned.freed), (128, 128));
    assert_eq!(mm.shrinker_count(ShrinkerId::Dentries, NODE), 100, "of 122");
    assert_eq!(mm.shrinker_count(ShrinkerId::Inodes, NODE), 100, "of 128");
    assert_valid(&mm);
}

#[test]
fn an_ext4_inode_is_freed_with_its_eviction() {
    let mut mm = machine(1, 1 << 15, Rules::newest());
    let fs = mm.vfs_mkfs(FsSpec::ext4(3, Bytes::gib(4)));
    let dir = mm.vfs_root(fs);
    for _ in 0..20 {
        make(&mut mm, dir);
    }
    mm.prune_dentries(&on(0), NODE, 100);
    assert_eq!(mm.prune_inodes(&on(0), NODE, 100), 20);
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
fn an_ext4_inode_has_its_extents_its_place_in_a_transaction_and_since_5_1_a_security_blob() {
    for (rules, blobs) in [(Rules::newest(), 1), (old_rules(), 0)] {
        let (mut mm, dir) = ext4(rules);
        for _ in 0..1000 {
            make(&mut mm, dir);
        }
        for (cache, each) in [("extent_status", 1), ("jbd2_inode", 1), ("lsm_inode_cache", blobs), ("xfs_ili", 0)] {
            // Free objects of the CPU's slab count too: 102 of a page at most.
            let objects = in_use(&mm, cache);
            assert!((each * 1000..=each * 1102).contains(&objects), "{cache}: {objects}");
        }
        assert_valid(&mm);
        mm.prune_dentries(&on(0), NODE, 2000);
        mm.prune_inodes(&on(0), NODE, 2000);
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

#[test]
fn a_shadow_in_the_root_is_stolen_from_an_inode_and_counts() {
    let (mut mm, file) = forgotten(InodeReclaim::NotOnLru, 1);
    let crate::pagecache::Slot::Page(pfn) = mm.pagecache_get(file, 0) else { panic!("it is cached") };
    mm.lru_del(pfn);
    let shadow = mm.workingset_eviction(pfn);
    mm.pagecache_remove(&on(0), pfn, Some(shadow));
    mm.free_pages(&on(0), pfn, Order(0));
    assert_eq!(mm.vfs.unused_inodes(), 1);
    assert_eq!((mm.prune_inodes(&on(0), NODE, 1), stolen(&mm)), (0, [1, 0]), "the shadow first");
    assert_eq!((mm.prune_inodes(&on(0), NODE, 1), stolen(&mm)), (1, [1, 0]));
    assert_valid(&mm);
}

#[test]
fn a_name_that_does_not_exist_has_a_dentry_which_its_file_takes_over() {
    let (mut mm, _, dir) = xfs(Rules::newest());
    make(&mut mm, dir);
    let (dentries, inodes) = mm.vfs.cached();
    let name = mm.vfs_lookup_absent(&on(0), dir, None).unwrap();
    assert!(!mm.vfs_exists(name));
    assert_eq!(mm.vfs.cached(), (dentries + 1, inodes));
    assert_valid(&mm);
    assert_eq!(mm.vfs_lookup_absent(&on(0), dir, Some(name)), Ok(name), "it is found again");
    assert_eq!(mm.vfs.cached(), (dentries + 1, inodes));
    let handle = mm.vfs_create_absent(&on(0), name).unwrap();
    assert!(mm.vfs_exists(name) && handle.file == name);
    assert_eq!(mm.vfs.cached(), (dentries + 1, inodes + 1));
    mm.vfs_close(&on(0), handle);
    assert_valid(&mm);
}

#[test]
fn a_shrunk_negative_dentry_is_looked_up_anew() {
    let (mut mm, _, dir) = xfs(Rules::newest());
    let name = mm.vfs_lookup_absent(&on(0), dir, None).unwrap();
    let before = mm.vfs.cached().0;
    assert_eq!(mm.prune_dentries(&on(0), NODE, 100), 2, "it, and the directory in which it was the only name");
    assert_eq!(mm.vfs.cached().0, before - 2);
    assert_valid(&mm);
    mm.vfs_lookup_absent(&on(0), dir, Some(name)).unwrap();
    assert_eq!(mm.vfs.cached().0, before);
    let handle = mm.vfs_create_absent(&on(0), name).unwrap();
    mm.vfs_close(&on(0), handle);
    assert_valid(&mm);
}

#[test]
fn what_lacks_memory_keeps_nothing_and_is_repeated() {
    let (mut mm, _, dir) = xfs(old_rules());
    let mut held = exhaust(&mut mm, Some(Wmark::Min));
    let mut asked = 0;
    for _ in 0..100 {
        let mut done = false;
        while !done {
            match mm.vfs_create(&on(0), dir) {
                Ok(handle) => {
                    mm.vfs_close(&on(0), handle);
                    done = true;
                }
                Err(need) => {
                    asked += 1;
                    // The slow path: reclaim frees something, and the request is served.
                    for pfn in held.drain(held.len() - 16..) {
                        mm.free_pages(&on(0), pfn, Order(0));
                    }
                    mm.drain_pcp_all();
                    let (cache, missing) = match need {
                        Need::Slab(cache, missing) => (Some(cache), missing.pages),
                        Need::Page(missing) => (None, missing),
                        Need::Read(_) | Need::Space | Need::Charge(_) => panic!("{need:?}"),
                    };
                    let flags = mm.gfp_to_alloc_flags(&on(0), missing);
                    let pfn = mm.get_page_from_freelist(&on(0), missing, flags).expect("16 pages came free");
                    match cache {
                        Some(cache) => mm.slab_add_page(&on(0), cache, pfn),
                        None => mm.vfs_add_page(&on(0), pfn),
                    }
                }
            }
        }
    }
    assert!(asked > 10, "memory was short {asked} times");
    assert_eq!(mm.vfs.cached(), (101, 101));
    let mut violations = Vec::new();
    mm.validate_slab(&mut violations);
    mm.validate_vfs(&mut violations);
    assert!(violations.is_empty(), "{violations:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn files_come_and_go_without_a_trace(
        rule in 0usize..3,
        steps in prop::collection::vec((0u8..10, any::<u16>()), 1..600),
    ) {
        let inode_reclaim =
            [InodeReclaim::InvalidatePages, InodeReclaim::SkipWithPages, InodeReclaim::NotOnLru][rule];
        let (mut mm, fs, dir) = xfs(Rules { inode_reclaim, ..old_rules() });
        let (mut files, mut open): (Vec<FileId>, Vec<Handle>) = (Vec::new(), Vec::new());
        for (kind, pick) in steps {
            let at = |len: usize| pick as usize % len.max(1);
            match kind {
                0..=2 => {
                    let handle = with_reads(&mut mm, |mm| mm.vfs_create(&on(0), dir)).0;
                    prop_assert!(!files.contains(&handle.file));
                    files.push(handle.file);
                    open.push(handle);
                }
                3 if !files.is_empty() => {
                    let file = files[at(files.len())];
                    if pick % 3 == 0 {
                        // May lack a read; whoever gives up then leaves nothing behind.
                        let _ = mm.vfs_stat(&on(0), file);
                        continue;
                    }
                    open.push(with_reads(&mut mm, |mm| mm.vfs_open(&on(0), file)).0);
                }
                4 | 5 if !open.is_empty() => {
                    let handle = open.swap_remove(at(open.len()));
                    mm.vfs_close(&on(0), handle);
                }
                6 if !files.is_empty() => {
                    let file = files.swap_remove(at(files.len()));
                    with_reads(&mut mm, |mm| mm.vfs_unlink(&on(0), file));
                }
                7 => {
 let _ = shrink(&mut mm, &on(0), u64::from(pick % 64));
}
                8 => {
 let _ = mm.shrinker_scan(&on(0), ShrinkerId::XfsBuf, NODE, u64::from(pick % 16), Gfp::KERNEL);
}
                9 => {
                    if pick % 2 == 0 {
                        checkpoint(&mut mm, fs);
                    }
                    with_reads(&mut mm, |mm| mm.vfs_push_metadata(&on(0), fs, u64::MAX, at(8)));
                    mm.vfs_background_reclaim(&on(0));
                }
                _ => {}
            }
        }
        let mut violations = Vec::new();
        mm.validate_slab(&mut violations);
        mm.validate_vfs(&mut violations);
        prop_assert!(violations.is_empty(), "{violations:?}");
        for handle in open {
            mm.vfs_close(&on(0), handle);
        }
        for file in files {
            with_reads(&mut mm, |mm| mm.vfs_unlink(&on(0), file));
        }
        write_back(&mut mm, fs);
        for _ in 0..8 {
            shrink(&mut mm, &on(0), 4096);
        }
        mm.vfs_background_reclaim(&on(0));
        prop_assert_eq!(mm.vfs.cached(), (0, 0));
        let free = mm.vfs.fs[0].chunks.iter().map(|c| c.free.count_zeros()).filter(|used| *used < 64).sum::<u32>();
        prop_assert_eq!(free, 2, "the root and the directory have inodes on disk");
        assert_valid(&mm);
    }
}
