//! Which inodes leave memory, and what it takes to get them back.

use super::*;

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
        assert!(mm.shrinker_scan(&on(0), ShrinkerId::XfsBuf, SHARE, 128, Gfp::NOFS).freed > 0);
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
    mm.prune_dentries(&on(0), SHARE, 10);
    assert_eq!((mm.vfs.cached().0, mm.vfs.unused_inodes()), (0, 1), "only the directory's inode is on the LRU");
    mm.inode_dirty(file, false);
    assert_eq!(mm.vfs.unused_inodes(), 2);
    // Dirty again on the LRU: the shrinker takes it off and does not evict it.
    mm.inode_dirty(file, true);
    assert_eq!(mm.prune_inodes(&on(0), SHARE, 10), 2);
    assert_eq!((mm.vfs.unused_inodes(), mm.vfs.reclaimable_inodes()), (0, 1));
    assert!(mm.vfs.rec(file).inode.is_some() && !mm.vfs.rec(file).has(FileRec::RECLAIMABLE));
    mm.inode_dirty(file, false);
    assert_valid(&mm);
}

/// Reclaims evicted inodes: what was waited for.
fn reclaim(mm: &mut Mm, nr: u64) -> Vec<Bio> {
    let mut left = mm.reclaim_inodes_nr(nr);
    std::iter::from_fn(|| mm.reclaim_evicted(&on(0), &mut left)).collect()
}

#[test]
fn who_reclaims_a_pinned_inode_waits_for_the_log_and_then_for_its_cluster() {
    let (mut mm, fs, dir) = xfs(old_rules());
    checkpoint(&mut mm, fs);
    let file = make(&mut mm, dir);
    assert!(mm.vfs.rec(file).has(FileRec::IN_CIL) && !mm.vfs_log_waits(fs));
    mm.prune_dentries(&on(0), SHARE, 10);
    mm.prune_inodes(&on(0), SHARE, 10);
    let waits = reclaim(&mut mm, 10);
    assert!(mm.vfs_push_waits(fs));
    mm.vfs_take_push(fs);
    assert!(!mm.vfs_push_waits(fs), "once");
    assert!(mm.vfs_log_forced(fs) && !mm.vfs.rec(file).inode.is_some());
    // The log, which this device has at its beginning; then the first chunk of the second group, which begins at 1 GiB and where
    // the file and its directory are, and that of the first, with the root, which is read first.
    const GROUP: u64 = (1 << 30) / 512;
    assert!(waits.iter().all(|bio| bio.sync));
    let at: Vec<(u64, bool)> = waits.iter().map(|bio| (bio.sector, bio.write)).collect();
    assert_eq!(at, [(8, true), (GROUP + 128, true), (128, false), (128, true)]);
    assert_valid(&mm);
}

#[test]
fn inodes_change_in_the_log_are_flushed_or_left() {
    for (flush, left) in [(XfsReclaim::FlushDirty, 0), (XfsReclaim::SkipDirty, 41)] {
        let (mut mm, fs, dir) = xfs(Rules { xfs_reclaim: flush, ..old_rules() });
        for _ in 0..40 {
            make(&mut mm, dir);
        }
        mm.prune_dentries(&on(0), SHARE, 100);
        mm.prune_inodes(&on(0), SHARE, 100);
        assert_eq!(mm.vfs.reclaimable_inodes(), 41);
        assert_eq!(mm.vfs_background_reclaim(&on(0)), 0, "all are pinned");
        checkpoint(&mut mm, fs);
        assert_eq!(mm.vfs_background_reclaim(&on(0)), 0, "the worker never writes");
        // Flushing waits for three clusters: the root's first, which is read before, and both of the directory's group.
        let waits = if left == 0 { 4 } else { 0 };
        assert_eq!((reclaim(&mut mm, 100).len(), mm.vfs.reclaimable_inodes()), (waits, left), "{flush:?}");
        write_back(&mut mm, fs);
        assert_eq!(mm.vfs_background_reclaim(&on(0)), left);
        assert_eq!(mm.vfs.cached(), (0, 0));
        assert_valid(&mm);
    }
}

#[test]
fn the_worker_that_frees_evicted_inodes_is_armed_by_the_first() {
    let (mut mm, fs, dir) = xfs(old_rules());
    let keep = create(&mut mm, dir);
    for _ in 0..2 {
        make(&mut mm, dir);
    }
    // The directory leaves the list as it is in use.
    mm.prune_dentries(&on(0), SHARE, 3);
    let armed = |mm: &mut Mm| {
        let mut effects = Vec::new();
        mm.effects.take_into(&mut effects);
        effects.iter().filter(|effect| **effect == Effect::ArmReclaim).count()
    };
    armed(&mut mm);
    let evict = |mm: &mut Mm| {
        assert_eq!(mm.prune_inodes(&on(0), SHARE, 1), 1);
        armed(mm)
    };
    assert_eq!([evict(&mut mm), evict(&mut mm)], [1, 0], "the second finds it armed");
    write_back(&mut mm, fs);
    assert_eq!(mm.vfs_background_reclaim(&on(0)), 2);
    make(&mut mm, dir);
    mm.prune_dentries(&on(0), SHARE, 1);
    assert_eq!(evict(&mut mm), 1, "there was none");
    mm.vfs_close(&on(0), keep);
    assert_valid(&mm);
}

#[test]
fn a_referenced_inode_gets_another_round() {
    let (mut mm, _, dir) = xfs(old_rules());
    let keep = create(&mut mm, dir);
    let file = make(&mut mm, dir);
    mm.prune_dentries(&on(0), SHARE, 10);
    assert_eq!(mm.vfs.unused_inodes(), 1);
    // Looked up again while its inode is on the LRU, and let go: marked.
    let handle = mm.vfs_open(&on(0), file).unwrap();
    mm.vfs_close(&on(0), handle);
    mm.prune_dentries(&on(0), SHARE, 1);
    assert!(mm.vfs.rec(file).has(FileRec::INODE_LRU | FileRec::INODE_REF));
    assert_eq!((mm.prune_inodes(&on(0), SHARE, 1), mm.vfs.reclaimable_inodes()), (0, 0));
    assert_eq!((mm.prune_inodes(&on(0), SHARE, 1), mm.vfs.reclaimable_inodes()), (1, 1));
    mm.vfs_close(&on(0), keep);
    assert_valid(&mm);
}

#[test]
fn until_4_14_what_was_used_once_gets_another_round_as_well() {
    for (single_use, rounds) in [(SingleUse::Marked, &[0, 1][..]), (SingleUse::Plain, &[1])] {
        let (mut mm, _, dir) = xfs(Rules { single_use, ..old_rules() });
        let keep = create(&mut mm, dir);
        make(&mut mm, dir);
        // The directory is first on the list and in use by then, so that it leaves.
        assert_eq!(mm.prune_dentries(&on(0), SHARE, 1), 1);
        let dentries: Vec<u64> = rounds.iter().map(|_| mm.prune_dentries(&on(0), SHARE, 1)).collect();
        let inodes: Vec<u64> = rounds.iter().map(|_| mm.prune_inodes(&on(0), SHARE, 1)).collect();
        assert_eq!((dentries.as_slice(), inodes.as_slice()), (rounds, rounds), "{single_use:?}");
        assert_eq!(mm.vfs.reclaimable_inodes(), 1);
        mm.vfs_close(&on(0), keep);
        assert_valid(&mm);
    }
}

#[test]
fn until_3_11_a_scan_of_dentries_goes_on_until_it_has_found_enough_without_a_mark() {
    for (dentry_scan, freed, left) in [(DentryScan::Unmarked, 2, "bc"), (DentryScan::All, 0, "debc")] {
        let rules = Rules { single_use: SingleUse::Marked, dentry_scan, ..old_rules() };
        let (mut mm, _, dir) = xfs(rules);
        let keep = create(&mut mm, dir);
        let files: Vec<FileId> = (0..5).map(|_| make(&mut mm, dir)).collect();
        assert_eq!(drawn(&mm, &files), "a*b*c*d*e*");
        // The directory, first on the list and in use, leaves it; all others lose their mark, each once.
        let first = mm.prune_dentries(&on(0), SHARE, 6);
        assert_eq!((first, drawn(&mm, &files)), (1, "abcde".to_string()), "{dentry_scan:?}");
        for file in [files[1], files[2]] {
            let handle = mm.vfs_open(&on(0), file).unwrap();
            mm.vfs_close(&on(0), handle);
        }
        assert_eq!(drawn(&mm, &files), "ab*c*de");
        assert_eq!((mm.prune_dentries(&on(0), SHARE, 1), drawn(&mm, &files)), (1, "b*c*de".to_string()));
        assert_eq!((mm.prune_dentries(&on(0), SHARE, 2), drawn(&mm, &files)), (freed, left.to_string()));
        mm.vfs_close(&on(0), keep);
        assert_valid(&mm);
    }
}

/// Caches so many clean pages of a file.
fn cache_pages(mm: &mut Mm, file: FileId, pages: u32) {
    mm.set_inode_size_pages(&on(0), file, pages);
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
    mm.prune_dentries(&on(0), SHARE, 10);
    (mm, file)
}

fn stolen(mm: &Mm) -> [u64; 2] {
    [VmEvent::Pginodesteal, VmEvent::KswapdInodesteal].map(|e| mm.stat.event(e))
}

#[test]
fn inodes_with_pages_lose_them_first() {
    let (mut mm, file) = forgotten(InodeReclaim::InvalidatePages, 70);
    // First visit: the pages go, and the reference that is dropped then marks the inode. Second: another round.
    assert_eq!((mm.prune_inodes(&on(0), SHARE, 1), mm.nr_cached(file)), (0, 0));
    assert_eq!(stolen(&mm), [70, 0]);
    assert_eq!((mm.prune_inodes(&on(0), SHARE, 1), mm.vfs.reclaimable_inodes()), (0, 0));
    assert_eq!((mm.prune_inodes(&on(0), SHARE, 1), mm.vfs.reclaimable_inodes()), (1, 1));
    assert_valid(&mm);
    let (mut mm, _) = forgotten(InodeReclaim::InvalidatePages, 5);
    let kswapd = Env { task: TaskFlags { kswapd: true, ..TaskFlags::default() }, ..on(0) };
    mm.prune_inodes(&kswapd, SHARE, 1);
    assert_eq!(stolen(&mm), [0, 5]);
}

#[test]
fn inodes_with_more_than_one_page_are_skipped() {
    let (mut mm, file) = forgotten(InodeReclaim::SkipWithPages, 2);
    assert_eq!((mm.prune_inodes(&on(0), SHARE, 50), mm.nr_cached(file)), (0, 2));
    assert_eq!((mm.vfs.unused_inodes(), stolen(&mm)), (1, [0, 0]));
    // One page is the boundary: it is dropped, and the inode goes two visits later.
    let (mut mm, file) = forgotten(InodeReclaim::SkipWithPages, 1);
    assert_eq!((mm.prune_inodes(&on(0), SHARE, 3), mm.nr_cached(file)), (1, 0));
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
    assert_eq!((mm.prune_inodes(&on(0), SHARE, 1), mm.vfs.unused_inodes()), (1, 0));
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
    let (mut mm, fs, dir) = xfs(old_rules());
    for _ in 0..50 {
        make(&mut mm, dir);
    }
    // 50 files and the directory.
    assert_eq!(mm.shrinker_count(ShrinkerId::Superblock, SHARE), 51);
    mm.tunables.vfs_cache_pressure = 20;
    assert_eq!(mm.shrinker_count(ShrinkerId::Superblock, SHARE), 51 * 20 / 100);
    mm.tunables.vfs_cache_pressure = 0;
    assert_eq!(mm.shrinker_count(ShrinkerId::Superblock, SHARE), 0);
    assert_eq!(mm.shrinker_count(ShrinkerId::XfsBuf, SHARE), 0, "new ones are held by what logs them");
    write_back(&mut mm, fs);
    assert_eq!(
        mm.shrinker_count(ShrinkerId::XfsBuf, SHARE),
        4,
        "two clusters, a directory block, and the root's cluster"
    );
    let scanned = mm.shrinker_scan(&on(0), ShrinkerId::Superblock, SHARE, 1024, Gfp::NOFS);
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
    assert_eq!(mm.prune_dentries(&on(0), SHARE, 41), 41);
    assert_eq!((mm.vfs.unused_dentries(), mm.vfs.unused_inodes()), (60, 40));
    // 60 + 40 + 0 + 1 = 101; 50 * 60 / 101 = 29 and 50 * 40 / 101 = 19, each one more.
    assert_eq!(shrink(&mut mm, &on(0), 50), Scanned { scanned: 50, freed: 30 + 20, evicted: 0 });
    assert_eq!((mm.vfs.unused_dentries(), mm.vfs.unused_inodes()), (30, 40 + 30 - 20));
    assert_eq!(mm.vfs.reclaimable_inodes(), 20);
    mm.vfs_close(&on(0), keep);
    assert_valid(&mm);
}

#[test]
fn what_xfs_has_evicted_counts_for_every_group() {
    let (mut mm, _, dir) = xfs(old_rules());
    let keep = create(&mut mm, dir);
    for _ in 0..30 {
        make(&mut mm, dir);
    }
    // The directory leaves the list; of 30 inodes without dentries 20 are evicted.
    assert_eq!((mm.prune_dentries(&on(0), SHARE, 31), mm.prune_inodes(&on(0), SHARE, 20)), (31, 20));
    let other = Share { memcg: units::MemcgId(1), ..SHARE };
    assert_eq!(mm.shrinker_count(ShrinkerId::Superblock, SHARE), 10 + 20);
    assert_eq!(mm.shrinker_count(ShrinkerId::Superblock, other), 20);
    mm.vfs_close(&on(0), keep);
    assert_valid(&mm);
}

#[test]
fn until_3_0_dentries_and_inodes_have_shrinkers_of_their_own_that_count_in_hundreds() {
    let rules = Rules { vfs_shrinkers: rules::VfsShrinkers::Apart, ..old_rules() };
    let (mut mm, _, dir) = xfs(rules);
    for _ in 0..300 {
        let handle = create(&mut mm, dir);
        mm.vfs_close(&on(0), handle);
    }
    assert_eq!(mm.shrinker_count(ShrinkerId::Superblock, SHARE), 0);
    assert_eq!(mm.shrinker_count(ShrinkerId::Dentries, SHARE), 300, "of 301");
    assert_eq!(mm.shrinker_count(ShrinkerId::Inodes, SHARE), 0, "dentries hold their inodes");
    let nofs = mm.shrinker_scan(&on(0), ShrinkerId::Dentries, SHARE, 128, Gfp::NOFS);
    assert_eq!(nofs, Scanned::default());
    let scanned = mm.shrinker_scan(&on(0), ShrinkerId::Dentries, SHARE, 128, Gfp::KERNEL);
    // A batch goes twice into 301: half of them, and one.
    assert_eq!((scanned.scanned, scanned.freed), (128, 151));
    assert_eq!(mm.shrinker_count(ShrinkerId::Dentries, SHARE), 100, "of 150");
    assert_eq!(mm.shrinker_count(ShrinkerId::Inodes, SHARE), 100, "of 150: the directory is in use");
    assert_valid(&mm);
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
    assert_eq!((mm.prune_inodes(&on(0), SHARE, 1), stolen(&mm)), (0, [1, 0]), "the shadow first");
    assert_eq!((mm.prune_inodes(&on(0), SHARE, 1), stolen(&mm)), (1, [1, 0]));
    assert_valid(&mm);
}
