//! The lock of an XFS inode as its flusher finds it.
//!
//! Rule: writing a page of a file holds the inode's lock while its place is looked up and a block for it is reserved. A flusher, or
//! kswapd, that meanwhile wants to know the blocks of a run does not wait: it leaves the first page of the run dirty, the
//! flusher goes on with the next, and puts the inode behind all other dirty ones after its slice.
//! Source: `__xfs_get_blocks()`, `xfs_map_blocks()`, `xfs_vm_writepage()` (fs/xfs/xfs_aops.c), `writeback_sb_inodes()`
//! (fs/fs-writeback.c); 3.1.
//! Since/until: [`MapLock`].
//! Abstracted: the calls in a slice of a task's time all happen at its start here. The lock counts as held for as much of the slice
//! as the writer held it, and which attempt fails is not drawn: at a lock that is held for three tenths of the time, three
//! of ten do. That all of the look-up's cost is under the lock is a guess.
//! Omitted: other holders of the lock (truncation, the end of writes beyond the size).

use std::collections::BTreeMap;

use rules::MapLock;
use units::{FileId, Nanos};

use crate::vfs::FsKind;
use crate::{Env, Mm};

/// CPU time that a task takes in one go, as whoever runs the tasks lets it.
pub const TASK_SLICE: Nanos = Nanos::micros(50);
/// Writers that are remembered beyond their slice.
const WRITERS_MAX: usize = 256;

/// When a file's writer last had a CPU, and for how long of that slice it held the lock.
#[derive(Clone, Copy, Debug)]
struct Held {
    at: Nanos,
    ns: u64,
}

/// Locks of the inodes that were written to of late.
#[derive(Debug, Default)]
pub(super) struct Ilocks {
    held: BTreeMap<u32, Held>,
    /// Parts of a slice by which attempts have met a lock so far; a failure takes a whole one.
    met_ns: u64,
}

impl Ilocks {
    fn hold(&mut self, file: FileId, now: Nanos, ns: u64) {
        if self.held.len() > WRITERS_MAX {
            self.held.retain(|_, held| now.since(held.at) < TASK_SLICE);
        }
        let held = self.held.entry(file.0).or_insert(Held { at: now, ns: 0 });
        if held.at != now {
            *held = Held { at: now, ns: 0 };
        }
        held.ns = (held.ns + ns).min(TASK_SLICE.0);
    }

    fn attempt_fails(&mut self, file: FileId, now: Nanos) -> bool {
        let Some(held) = self.held.get(&file.0).filter(|held| now.since(held.at) < TASK_SLICE) else { return false };
        self.met_ns += held.ns;
        let fails = self.met_ns >= TASK_SLICE.0;
        if fails {
            self.met_ns -= TASK_SLICE.0;
        }
        fails
    }
}

impl Mm {
    /// A page of a file is being written by a program, which takes so long to look up its place, in ns.
    pub(crate) fn hold_ilock(&mut self, env: &Env, file: FileId, ns: u64) {
        if self.rules.map_lock == MapLock::Try && self.fs_kind(file) == FsKind::Xfs {
            self.writeback.ilocks.hold(file, env.now, ns);
        }
    }

    /// Whether somebody who must not wait for the lock finds it held.
    pub(super) fn ilock_is_held(&mut self, env: &Env, file: FileId) -> bool {
        self.rules.map_lock == MapLock::Try
            && self.fs_kind(file) == FsKind::Xfs
            && self.writeback.ilocks.attempt_fails(file, env.now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_fail_as_often_as_the_lock_is_held() {
        let mut locks = Ilocks::default();
        let (file, now) = (FileId(3), Nanos::secs(1));
        assert!(!locks.attempt_fails(file, now), "nobody writes");
        // Six pages of 2.5 us: three tenths of 50 us.
        (0..6).for_each(|_| locks.hold(file, now, 2_500));
        let failed = (0..100).filter(|_| locks.attempt_fails(file, now)).count();
        assert_eq!(failed, 30);
        assert!((0..10).all(|_| !locks.attempt_fails(FileId(4), now)), "another inode's");
        assert!((0..10).all(|_| !locks.attempt_fails(file, now + TASK_SLICE)), "its writer has no CPU any more");
        // In its next slice the writer begins anew.
        locks.hold(file, now + TASK_SLICE, 5_000);
        let failed = (0..100).filter(|_| locks.attempt_fails(file, now + TASK_SLICE)).count();
        assert_eq!(failed, 10);
    }
}
