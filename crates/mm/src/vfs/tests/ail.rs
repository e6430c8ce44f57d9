//! How what is only in the log is written in place.

use units::Nanos;

use super::super::disk::Metadata;
use super::*;
use crate::{BioEnd, BioTarget, CopyCosts, CopyRoom, Effect};

/// Pushes all that is in the log: how many blocks are queued, and how many were read for it.
fn push(mm: &mut Mm, fs: FsId) -> (usize, u32) {
    let target = push_target(mm, fs);
    with_reads(mm, |mm| mm.vfs_push_metadata(&on(0), fs, target, usize::MAX))
}

/// Shrinks the buffers often enough for any that may go.
fn shrink_buffers(mm: &mut Mm) {
    for _ in 0..4 {
        mm.shrinker_scan(&on(0), ShrinkerId::XfsBuf, SHARE, 1024, Gfp::NOFS);
    }
}

/// Open files, all in place on disk and their clusters not in memory.
fn files_at_rest(mm: &mut Mm, fs: FsId, dir: DirId, count: u32) -> Vec<Handle> {
    let open: Vec<Handle> = (0..count).map(|_| create(mm, dir)).collect();
    write_back(mm, fs);
    shrink_buffers(mm);
    mm.effects.take_into(&mut Vec::new());
    open
}

fn cluster(mm: &Mm, fs: FsId, open: Handle) -> Metadata {
    let (chunk, cluster) = mm.vfs.fs[fs.0 as usize].cluster_of(mm.vfs.attributes.ino(open.file));
    Metadata::Inodes { chunk, cluster }
}

fn close_all(mm: &mut Mm, open: Vec<Handle>) {
    for handle in open {
        mm.vfs_close(&on(0), handle);
    }
    assert_valid(mm);
}

#[test]
fn a_cluster_is_read_to_be_flushed_and_held_until_it_is_written() {
    let (mut mm, fs, dir) = xfs(old_rules());
    let open = files_at_rest(&mut mm, fs, dir, 1);
    let of = cluster(&mm, fs, open[0]);
    let in_memory = |mm: &mut Mm| mm.vfs.buffer_number(fs, of).is_some();
    mm.log_item(&on(0), open[0].file).expect("memory is plentiful");
    assert!(!in_memory(&mut mm), "to log an inode does not take its cluster");
    checkpoint(&mut mm, fs);
    assert_eq!(push(&mut mm, fs), (1, 1));
    shrink_buffers(&mut mm);
    assert!(in_memory(&mut mm), "the queue holds it");
    assert!(!mm.vfs_submit_metadata(&on(0), fs, 1));
    shrink_buffers(&mut mm);
    assert!(!in_memory(&mut mm));
    close_all(&mut mm, open);
}

#[test]
fn an_inode_that_is_pinned_keeps_its_cluster_for_the_next_time() {
    let (mut mm, fs, dir) = xfs(old_rules());
    let open = files_at_rest(&mut mm, fs, dir, 2);
    assert_eq!(cluster(&mm, fs, open[0]), cluster(&mm, fs, open[1]));
    let logged = |mm: &Mm| [0, 1].map(|n: usize| mm.vfs.fs[0].inode_logged(mm.vfs.attributes.ino(open[n].file)));
    mm.log_item(&on(0), open[0].file).expect("memory is plentiful");
    checkpoint(&mut mm, fs);
    mm.log_item(&on(0), open[1].file).expect("memory is plentiful");
    assert_eq!(push(&mut mm, fs), (1, 1));
    assert_eq!(logged(&mm), [false, true], "the second is in the checkpoint that is being collected");
    assert_eq!(push(&mut mm, fs), (0, 0));
    checkpoint(&mut mm, fs);
    assert_eq!(push(&mut mm, fs), (1, 0), "the cluster is still in memory");
    assert_eq!(logged(&mm), [false, false]);
    assert!(!mm.vfs_submit_metadata(&on(0), fs, usize::MAX));
    close_all(&mut mm, open);
}

#[test]
fn what_is_on_its_way_to_the_log_waits_for_the_next_time() {
    let (mut mm, fs, dir) = xfs(old_rules());
    let open = files_at_rest(&mut mm, fs, dir, 1);
    mm.log_item(&on(0), open[0].file).expect("memory is plentiful");
    mm.vfs_force_log(&on(0), fs);
    let done = mm.vfs_take_logged(fs);
    assert_eq!(push(&mut mm, fs), (0, 0), "its checkpoint is not known to be on disk");
    assert!(!mm.vfs_push_waits(fs));
    mm.reclaim_inodes_nr(10);
    let target = mm.vfs_take_push(fs);
    let pushed = with_reads(&mut mm, |mm| mm.vfs_push_metadata(&on(0), fs, target, usize::MAX));
    assert_eq!(pushed, (0, 0), "nor for who reclaims inodes");
    mm.vfs_free_logged(&on(0), fs, &done);
    assert_eq!(push(&mut mm, fs), (1, 1));
    close_all(&mut mm, open);
}

#[test]
fn a_cluster_with_nothing_but_pinned_inodes_is_not_read() {
    let (mut mm, fs, dir) = xfs(old_rules());
    let open = files_at_rest(&mut mm, fs, dir, 1);
    mm.log_item(&on(0), open[0].file).expect("memory is plentiful");
    checkpoint(&mut mm, fs);
    mm.log_item(&on(0), open[0].file).expect("memory is plentiful");
    assert_eq!(push(&mut mm, fs), (0, 0), "its item moves on with the next checkpoint");
    checkpoint(&mut mm, fs);
    assert_eq!(push(&mut mm, fs), (1, 1));
    close_all(&mut mm, open);
}

#[test]
fn a_limit_on_who_writes_files_does_not_hold_metadata_back() {
    let (mut mm, fs, dir) = xfs(old_rules());
    let device = mm.vfs.fs[fs.0 as usize].spec.device;
    let nothing = CopyCosts { bio: Nanos::ZERO, read: Nanos::ZERO, write: Nanos::ZERO };
    mm.set_bio_end(device, BioEnd::Copy(nothing));
    mm.set_copy_room(device, CopyRoom { exempt: u64::MAX, ..CopyRoom::default() });
    let open = files_at_rest(&mut mm, fs, dir, 1);
    mm.log_item(&on(0), open[0].file).expect("memory is plentiful");
    checkpoint(&mut mm, fs);
    assert_eq!(push(&mut mm, fs), (1, 1));
    mm.effects.take_into(&mut Vec::new());
    assert!(!mm.vfs_submit_metadata(&on(0), fs, 1));
    let mut effects = Vec::new();
    mm.effects.take_into(&mut effects);
    let writes: Vec<_> = effects.iter().filter(|e| matches!(e, Effect::Submit(_) | Effect::Copied { .. })).collect();
    assert!(matches!(writes[..], [Effect::Copied { of_root: true, .. }]), "{writes:?}");
    close_all(&mut mm, open);
}

#[test]
fn what_is_queued_is_written_in_the_order_of_the_disk() {
    let (mut mm, fs, dir) = xfs(old_rules());
    // Three clusters of 32 inodes, logged from the last to the first.
    let open = files_at_rest(&mut mm, fs, dir, 96);
    for handle in open.iter().rev() {
        mm.log_item(&on(0), handle.file).expect("memory is plentiful");
    }
    checkpoint(&mut mm, fs);
    assert_eq!(push(&mut mm, fs).1, 3, "each of them is read");
    mm.effects.take_into(&mut Vec::new());
    let mut sectors = Vec::new();
    for more in [true, true, false] {
        assert_eq!(mm.vfs_submit_metadata(&on(0), fs, 1), more);
        let mut effects = Vec::new();
        mm.effects.take_into(&mut effects);
        sectors.extend(effects.iter().filter_map(|effect| match effect {
            Effect::Submit(bio) if bio.target == BioTarget::Metadata => Some(bio.sector),
            _ => None,
        }));
    }
    assert!(sectors.len() == 3 && sectors.is_sorted(), "{sectors:?}");
    close_all(&mut mm, open);
}
