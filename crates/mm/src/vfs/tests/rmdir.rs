//! Directories that are removed.

use super::super::{FsKind, Rmdir};
use super::*;

/// A file system of 4 GiB with a directory in its root.
fn mounted(spec: FsSpec) -> (Mm, FsId, DirId) {
    let mut mm = machine(1, 1 << 15, old_rules());
    let fs = mm.vfs_mkfs(spec);
    let root = mm.vfs_root(fs);
    let dir = mm.vfs_mkdir(&on(0), root).expect("memory is plentiful");
    (mm, fs, dir)
}

fn kinds() -> [FsSpec; 3] {
    let ext4 = FsSpec::ext4(3, Bytes::gib(4));
    [FsSpec::xfs(3, Bytes::gib(4)), ext4, ext4.with_flex_bg()]
}

fn mkdir(mm: &mut Mm, parent: DirId) -> DirId {
    with_reads(mm, |mm| mm.vfs_mkdir(&on(0), parent)).0
}

fn unlink(mm: &mut Mm, file: FileId) {
    with_reads(mm, |mm| mm.vfs_unlink(&on(0), file));
}

fn rmdir(mm: &mut Mm, dir: DirId) -> Rmdir {
    with_reads(mm, |mm| mm.vfs_rmdir(&on(0), dir)).0
}

/// XFS frees the inodes that it has evicted, whose changes are in place then.
fn reclaim(mm: &mut Mm, fs: FsId) {
    if mm.vfs_kind(fs) == FsKind::Xfs {
        write_back(mm, fs);
        mm.vfs_background_reclaim(&on(0));
    }
}

/// Free blocks, inodes in use on disk, and directories that Orlov's rule counts.
fn on_disk(mm: &Mm) -> (u64, u32, String) {
    let fs = &mm.vfs.fs[0];
    let unused = |free: u64| if free == 0 { 0 } else { free.count_zeros() };
    let inodes = fs.chunks.iter().map(|chunk| unused(chunk.free)).sum();
    (fs.space.free(), inodes, format!("{:?}", fs.orlov.as_ref().map(|orlov| orlov.dirs_in_groups())))
}

#[test]
fn an_empty_directory_leaves_a_negative_dentry_and_gives_all_else_back() {
    for spec in kinds() {
        let (mut mm, fs, above) = mounted(spec);
        make(&mut mm, above);
        let mut before = None;
        for _ in 0..3 {
            let dir = mkdir(&mut mm, above);
            let files: Vec<FileId> = (0..300).map(|_| make(&mut mm, dir)).collect();
            with_reads(&mut mm, |mm| mm.vfs_lookup_absent(&on(0), dir, None));
            files[1..].iter().for_each(|file| unlink(&mut mm, *file));
            assert_eq!(rmdir(&mut mm, dir), Rmdir::NotEmpty, "one is left");
            unlink(&mut mm, files[0]);
            reclaim(&mut mm, fs);
            let cached = mm.vfs.cached();
            let blocks = mm.vfs.dirs[dir.0 as usize].blocks.len() as u64;
            let free = mm.vfs.fs[0].space.free();
            assert!(blocks > 1);
            assert_eq!(rmdir(&mut mm, dir), Rmdir::Done);
            assert_eq!(mm.vfs.fs[0].space.free(), free + blocks);
            assert_valid(&mm);
            reclaim(&mut mm, fs);
            // Of 300 names that were removed and one that never was; and the directory's inode.
            assert_eq!(mm.vfs.cached(), (cached.0 - 301, cached.1 - 1), "{spec:?}");
            // ext4 keeps the chunks that the first round took.
            let now = on_disk(&mm);
            assert_eq!(before.get_or_insert(now.clone()), &now, "{spec:?}");
        }
        // Each round left its directory's dentry.
        assert_eq!(mm.vfs.cached(), (2 + 3, 2));
        assert_valid(&mm);
    }
}

#[test]
fn directories_within_go_first_and_the_last_takes_all_dentries_along() {
    for spec in kinds() {
        let (mut mm, fs, top) = mounted(spec);
        let below: Vec<DirId> = (0..20).map(|_| mkdir(&mut mm, top)).collect();
        assert_eq!(rmdir(&mut mm, top), Rmdir::NotEmpty);
        for dir in &below {
            assert_eq!(rmdir(&mut mm, *dir), Rmdir::Done);
        }
        reclaim(&mut mm, fs);
        assert_eq!(mm.vfs.cached(), (21, 1), "negative ones, and the directory");
        assert_eq!(rmdir(&mut mm, top), Rmdir::Done);
        reclaim(&mut mm, fs);
        assert_eq!((mm.vfs.cached(), mm.vfs.unused_dentries()), ((1, 0), 1), "its own");
        assert_valid(&mm);
        mm.prune_dentries(&on(0), SHARE, 10);
        assert_eq!(mm.vfs.cached(), (0, 0));
        // All records but those of the root and of ext4's device are free.
        let live = mm.vfs.files.iter().filter(|rec| rec.has(FileRec::LIVE)).count();
        assert_eq!(live, if mm.vfs_kind(fs) == FsKind::Xfs { 1 } else { 2 });
        assert_valid(&mm);
    }
}

#[test]
fn a_file_that_is_open_without_a_name_keeps_its_directory_in_memory() {
    for spec in kinds() {
        let (mut mm, fs, above) = mounted(spec);
        let dir = mkdir(&mut mm, above);
        let (open, gone) = (create(&mut mm, dir), make(&mut mm, dir));
        for file in [open.file, gone] {
            unlink(&mut mm, file);
        }
        let blocks = mm.vfs.dirs[dir.0 as usize].blocks.len();
        assert_eq!(rmdir(&mut mm, dir), Rmdir::Done);
        assert_valid(&mm);
        reclaim(&mut mm, fs);
        assert_eq!(mm.vfs.cached(), (3, 3), "the file, its directory and the one above");
        assert_eq!(mm.vfs.dirs[dir.0 as usize].blocks.len(), blocks);
        // Both are unhashed: nothing of them is found again, and the one above may go.
        assert_eq!(rmdir(&mut mm, above), Rmdir::Done);
        assert_valid(&mm);
        mm.vfs_close(&on(0), open);
        assert_valid(&mm);
        reclaim(&mut mm, fs);
        assert_eq!((mm.vfs.cached(), mm.vfs.dirs[dir.0 as usize].blocks.len()), ((0, 0), 0));
    }
}

#[test]
fn names_that_were_looked_up_in_vain_are_forgotten_with_their_directory() {
    for shrunk in [false, true] {
        let (mut mm, fs, above) = mounted(FsSpec::xfs(3, Bytes::gib(4)));
        let dir = mkdir(&mut mm, above);
        let (one, other) =
            (mm.vfs_lookup_absent(&on(0), dir, None).unwrap(), mm.vfs_lookup_absent(&on(0), dir, None).unwrap());
        if shrunk {
            mm.prune_dentries(&on(0), SHARE, 100);
        }
        // One becomes a file, which goes: its record is listed once, as that of a removed name.
        let handle = with_reads(&mut mm, |mm| mm.vfs_create_absent(&on(0), one)).0;
        assert_valid(&mm);
        mm.vfs_close(&on(0), handle);
        unlink(&mut mm, one);
        assert_valid(&mm);
        assert_eq!(rmdir(&mut mm, dir), Rmdir::Done);
        reclaim(&mut mm, fs);
        for name in [one, other] {
            assert!(!mm.vfs.rec(name).has(FileRec::LIVE), "{name:?}: its record is free");
        }
        assert_valid(&mm);
    }
}

#[test]
fn a_directory_that_is_on_disk_only_is_read_to_be_removed() {
    let (mut mm, _, above) = mounted(FsSpec::ext4(3, Bytes::gib(4)));
    make(&mut mm, above);
    let dir = mm.vfs_populate_dir(above);
    let file = mm.vfs_populate(dir, 1);
    unlink(&mut mm, file);
    let records = mm.vfs.cached();
    mm.prune_dentries(&on(0), SHARE, 100);
    mm.prune_inodes(&on(0), SHARE, 100);
    assert_eq!((records, mm.vfs.cached()), ((4, 3), (0, 0)));
    assert_eq!(rmdir(&mut mm, dir), Rmdir::Done);
    assert_eq!(mm.vfs.cached(), (2, 1), "of the directory above, and a negative one");
    assert_valid(&mm);
}

#[test]
fn removing_a_directory_costs_what_removing_a_file_does() {
    for spec in kinds() {
        let (mut mm, _, above) = mounted(spec);
        let (dir, file) = (mkdir(&mut mm, above), make(&mut mm, above));
        // Neither is the last inode of its chunk.
        make(&mut mm, above);
        let names: Vec<FileId> = (0..5).map(|_| make(&mut mm, dir)).collect();
        names.into_iter().for_each(|name| unlink(&mut mm, name));
        mm.take_cpu_ns();
        unlink(&mut mm, file);
        let of_file = mm.take_cpu_ns();
        assert_eq!(rmdir(&mut mm, dir), Rmdir::Done);
        // Dentries are freed after a grace period.
        assert_eq!(mm.take_cpu_ns(), of_file + 5 * mm.costs.shrink_object, "{spec:?}");
    }
}

#[test]
fn a_block_that_is_to_be_written_goes_with_its_directory() {
    let (mut mm, fs, above) = mounted(FsSpec::xfs(3, Bytes::gib(4)));
    let dir = mkdir(&mut mm, above);
    let files: Vec<FileId> = (0..200).map(|_| make(&mut mm, dir)).collect();
    files.into_iter().for_each(|file| unlink(&mut mm, file));
    checkpoint(&mut mm, fs);
    with_reads(&mut mm, |mm| mm.vfs_push_metadata(&on(0), fs, u64::MAX, usize::MAX));
    let queued = mm.vfs.fs[0].delwri.len();
    let blocks = mm.vfs.dirs[dir.0 as usize].blocks.len();
    assert_eq!(blocks, 2, "128 names of 32 bytes a block");
    assert_eq!(rmdir(&mut mm, dir), Rmdir::Done);
    assert_eq!(mm.vfs.fs[0].delwri.len(), queued - blocks);
    assert!(!mm.vfs_submit_metadata(&on(0), fs, usize::MAX));
    // Changes that are only in the log are not looked for any more.
    write_back(&mut mm, fs);
    assert_valid(&mm);
}

/// Directories in directories, with files in them, some of which are open, come and go.
fn tree_without_a_trace(spec: FsSpec, steps: Vec<(u8, u16)>) {
    let (mut mm, fs, top) = mounted(spec);
    let (mut dirs, mut files, mut open) = (vec![(top, None)], Vec::<(FileId, DirId)>::new(), Vec::<Handle>::new());
    for (kind, pick) in steps {
        let at = |len: usize| pick as usize % len.max(1);
        let (dir, _) = dirs[at(dirs.len())];
        match kind {
            0 => dirs.push((mkdir(&mut mm, dir), Some(dir))),
            1 | 2 => {
                let handle = with_reads(&mut mm, |mm| mm.vfs_create(&on(0), dir)).0;
                files.push((handle.file, dir));
                open.push(handle);
            }
            3 if !open.is_empty() => mm.vfs_close(&on(0), open.swap_remove(at(open.len()))),
            4 if !files.is_empty() => {
                let (file, _) = files.swap_remove(at(files.len()));
                unlink(&mut mm, file);
            }
            5 | 6 if dir != top => {
                let empty = files.iter().all(|(_, of)| *of != dir) && dirs.iter().all(|(_, of)| *of != Some(dir));
                let expected = if empty { Rmdir::Done } else { Rmdir::NotEmpty };
                assert_eq!(rmdir(&mut mm, dir), expected);
                dirs.retain(|(other, _)| !empty || *other != dir);
            }
            7 => _ = with_reads(&mut mm, |mm| mm.vfs_lookup_absent(&on(0), dir, None)),
            8 => _ = shrink(&mut mm, &on(0), u64::from(pick % 64)),
            9 => reclaim(&mut mm, fs),
            _ => {}
        }
    }
    assert_valid(&mm);
    open.into_iter().for_each(|handle| mm.vfs_close(&on(0), handle));
    files.into_iter().for_each(|(file, _)| unlink(&mut mm, file));
    // A directory is made after the one that it is in.
    for (dir, _) in dirs.into_iter().rev() {
        assert_eq!(rmdir(&mut mm, dir), Rmdir::Done);
    }
    reclaim(&mut mm, fs);
    mm.prune_dentries(&on(0), SHARE, 100);
    assert_eq!(mm.vfs.cached(), (0, 0));
    assert_eq!(on_disk(&mm).1, 1, "the root's inode");
    assert_valid(&mm);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn trees_come_and_go_without_a_trace(
        kind in 0usize..3,
        steps in prop::collection::vec((0u8..10, any::<u16>()), 1..400),
    ) {
        tree_without_a_trace(kinds()[kind], steps);
    }
}
