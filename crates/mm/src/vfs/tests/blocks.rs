//! Where the blocks of a file lie.

use super::*;

#[test]
fn a_file_written_page_by_page_is_contiguous() {
    let (mut mm, _, dir) = xfs(old_rules());
    let [one, two] = [create(&mut mm, dir), create(&mut mm, dir)];
    // Both grow to 16 pages before writeback allocates: all that is dirty at once.
    for handle in [one, two] {
        mm.set_inode_size_pages(&on(0), handle.file, 16);
    }
    assert_eq!(mm.map_block(one.file, 0), None, "delayed");
    let first = mm.allocate_blocks(&on(0), one.file, 0, 16);
    let other = mm.allocate_blocks(&on(0), two.file, 0, 16);
    assert_eq!((first.pages, other.pages), (16, 16));
    assert_ne!(first.sector, other.sector);
    for index in 0..16 {
        let extent = mm.map_block(one.file, index).unwrap();
        assert_eq!(extent.sector, first.sector + u64::from(index) * 8);
    }
    // From 64 KiB on an open file has as much again in advance: the next 16 pages follow, too.
    mm.set_inode_size_pages(&on(0), one.file, 32);
    assert_eq!(mm.allocate_blocks(&on(0), one.file, 16, 16).sector, first.sector + 16 * 8);
    // The close gives back what is beyond the end.
    assert!(mm.map_block(two.file, 16).is_some());
    mm.vfs_close(&on(0), two);
    assert!(mm.map_block(two.file, 15).is_some() && mm.map_block(two.file, 16).is_none());
    mm.set_inode_size_pages(&on(0), one.file, 4);
    assert!(mm.map_block(one.file, 3).is_some() && mm.map_block(one.file, 4).is_none());
    mm.vfs_close(&on(0), one);
    assert_valid(&mm);
}

#[test]
fn what_of_a_sparse_file_was_not_stored_to_stays_a_hole() {
    let (mut mm, _, dir) = xfs(old_rules());
    let handle = create(&mut mm, dir);
    mm.set_inode_size_pages(&on(0), handle.file, 1000);
    mm.allocate_blocks(&on(0), handle.file, 100, 4);
    let mapped: Vec<u32> = (0..1000).filter(|index| mm.map_block(handle.file, *index).is_some()).collect();
    assert_eq!(mapped, [100, 101, 102, 103]);
    mm.vfs_close(&on(0), handle);
    assert_valid(&mm);
}

#[test]
fn files_written_with_holes_keep_their_extents_apart() {
    let (mut mm, _, dir) = xfs(old_rules());
    let handle = create(&mut mm, dir);
    mm.set_inode_size_pages(&on(0), handle.file, 8);
    let tail = mm.allocate_blocks(&on(0), handle.file, 6, 2);
    let head = mm.allocate_blocks(&on(0), handle.file, 0, 2);
    assert_eq!((head.pages, tail.pages), (2, 2));
    assert_eq!(mm.map_block(handle.file, 7).unwrap().sector, tail.sector + 8);
    assert_eq!(mm.map_block(handle.file, 1).unwrap().sector, head.sector + 8);
    mm.set_inode_size_pages(&on(0), handle.file, 7);
    assert!(mm.map_block(handle.file, 6).is_some() && mm.map_block(handle.file, 7).is_none());
    mm.set_inode_size_pages(&on(0), handle.file, 0);
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
