//! Files on small machines.

mod ail;
mod block_map;
mod blocks;
mod eviction;
mod ext4;
mod extent_status;
mod extent_tree;
mod freeing;
mod jbd2;
mod log;
mod log_room;
mod rmdir;
mod shares;

use proptest::prelude::*;
use rules::{DentryScan, InodeReclaim, LogVectors, Prandom, Rules, SingleUse, XfsReclaim, XfsWriteEnd};
use units::{Bytes, FileId, Gfp, NodeId, Order};

use super::{DirId, FileRec, FsId, FsSpec, Handle, Need, Scanned, Share, ShrinkerId};
use crate::memcg::ROOT;
use crate::slab::tests::{assert_valid, exhaust, machine, on, rules_4_20};
use crate::stat::{NodeStat, VmEvent};
use crate::zone::Wmark;
use crate::{AllocRequest, Bio, Effect, Env, Mm, TaskFlags};

const NODE: NodeId = NodeId(0);
const SHARE: Share = Share { node: NODE, memcg: ROOT };

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
    mm.vfs_force_log(&on(0), fs);
    let done = mm.vfs_take_logged(fs);
    mm.vfs_free_logged(&on(0), fs, &done);
}

/// Up to where in the log changes are written in place when all are to be.
fn push_target(mm: &mut Mm, fs: FsId) -> u64 {
    mm.vfs_push_logged(fs);
    mm.vfs_take_push(fs)
}

/// Writes the log, and then all that is only in it; says how many blocks, and how many were read for it.
fn write_back(mm: &mut Mm, fs: FsId) -> (usize, u32) {
    checkpoint(mm, fs);
    let pushed = with_reads(mm, |mm| mm.vfs_push_metadata(&on(0), fs, u64::MAX, usize::MAX));
    assert!(!mm.vfs_submit_metadata(&on(0), fs, usize::MAX));
    pushed
}

fn in_use(mm: &Mm, name: &str) -> u64 {
    mm.slabs.slabinfo().find(|i| i.name == name).unwrap().active_objs
}

fn shrink(mm: &mut Mm, env: &Env, nr: u64) -> Scanned {
    let mut scanned = mm.shrinker_scan(env, ShrinkerId::Superblock, SHARE, nr, Gfp::KERNEL);
    while let Some(bio) = mm.reclaim_evicted(env, &mut scanned.evicted) {
        mm.submit(env, bio);
    }
    scanned
}

/// The dentry LRU from the head, as numbers of files; `*` after a referenced one.
fn drawn(mm: &Mm, files: &[FileId]) -> String {
    let name = |id: u32| {
        let Some(n) = files.iter().position(|f| f.0 == id) else { return String::new() };
        let star = if mm.vfs.files[id as usize].has(FileRec::DENTRY_REF) { "*" } else { "" };
        format!("{}{star}", (b'a' + n as u8) as char)
    };
    mm.vfs.dentry_lru[0].iter(&mm.vfs.dentry_links).map(name).collect::<Vec<_>>().concat()
}

#[test]
fn a_record_takes_20_bytes() {
    assert_eq!(size_of::<FileRec>(), 20);
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
    assert_eq!(mm.prune_dentries(&on(0), SHARE, 3), 2);
    assert_eq!(drawn(&mm, &files), "cdb");
    assert_eq!(mm.vfs.unused_inodes(), 1, "a's inode lost its dentry");
    // One in use leaves the list and is counted.
    let handle = mm.vfs_open(&on(0), files[2]).unwrap();
    assert_eq!(mm.prune_dentries(&on(0), SHARE, 1), 1);
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
    mm.prune_dentries(&on(0), SHARE, 1000);
    assert_eq!(mm.vfs.cached(), (0, 1), "the directory's inode");
    assert_eq!(in_use(&mm, "filp"), mm.slabs.slabinfo().find(|i| i.name == "filp").unwrap().num_objs);
    // Their records are used again.
    let again = make(&mut mm, dir);
    assert!(again.0 <= files[299].0);
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
    assert_eq!(mm.prune_dentries(&on(0), SHARE, 100), 2, "it, and the directory in which it was the only name");
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
                        other => panic!("{other:?}"),
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
 let _ = mm.shrinker_scan(&on(0), ShrinkerId::XfsBuf, SHARE, u64::from(pick % 16), Gfp::KERNEL);
}
                9 => {
                    if pick % 2 == 0 {
                        checkpoint(&mut mm, fs);
                    }
                    with_reads(&mut mm, |mm| mm.vfs_push_metadata(&on(0), fs, u64::MAX, at(8)));
                    mm.vfs_submit_metadata(&on(0), fs, at(4));
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
