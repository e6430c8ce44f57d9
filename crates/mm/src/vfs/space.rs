//! Free blocks of a device, and who has a claim on them.
//!
//! Rule: an allocation takes what it wants contiguously if it can: the extent freed last, or what lies behind the last
//! allocation of a group, beginning with its own group. If no group has so much in one piece, neighbours among the freed
//! extents are joined; then data takes the largest piece there is, while metadata needs a whole one. A block of data is
//! claimed when its page is dirtied and allocated at writeback, so that writeback always finds one; an operation
//! that would need a block that is claimed, or that the file system keeps for itself, fails (`ENOSPC`).
//! Source: `xfs_bmapi_reserve_delalloc()`, `xfs_mod_fdblocks()`, `xfs_reserve_blocks()`, fs/xfs, 4.20;
//! `ext4_da_reserve_space()`, `ext4_calculate_resv_clusters()`, fs/ext4, 4.20.
//! Abstracted: recently freed extents are reused in the reverse order of their freeing; claims need no blocks for the trees
//! that will hold the extents.
//! Omitted: alignment to stripes, the free space trees and their blocks, quotas.

use super::{FsKind, FsSpec};

/// Blocks at the start of a group that hold its headers.
const HEADERS: u32 = 16;
/// Freed extents of a group from which on neighbours among them are joined, each time there are twice as many.
const JOIN_MIN: usize = 1024;

/// The free blocks of an allocation group.
#[derive(Debug)]
struct Group {
    /// First block behind its headers and tables.
    start: u32,
    end: u32,
    /// Everything behind it is free.
    next: u32,
    /// Blocks for directories, from the first that was never used to their end.
    dirs: (u32, u32),
    /// Blocks that nothing holds.
    free: u32,
    /// First block and length of extents before `next` that are free again.
    freed: Vec<(u32, u32)>,
    /// How many there are when neighbours are joined the next time.
    join_at: usize,
}

/// The blocks of a file system.
#[derive(Debug)]
pub(super) struct Space {
    group_blocks: u32,
    groups: Vec<Group>,
    /// Blocks that nothing holds.
    free: u64,
    /// Of these, blocks for pages that are dirty and not allocated yet.
    claimed: u64,
    /// Of these, blocks that the file system keeps so that it can always go on (`m_resblks`, `s_resv_clusters`).
    kept: u64,
}

impl Space {
    pub(super) fn new(spec: &FsSpec) -> Space {
        let group_blocks = spec.ag_blocks();
        let group = |n: u32| {
            let start = n * group_blocks;
            let dirs = start + HEADERS + spec.table_blocks();
            let (next, end) = (dirs + spec.dir_blocks(), start + group_blocks);
            Group { start: dirs, end, next, dirs: (dirs, next), free: end - dirs, freed: Vec::new(), join_at: JOIN_MIN }
        };
        let groups: Vec<Group> = (0..spec.ag_count).map(group).collect();
        let free = groups.iter().map(|g| u64::from(g.free)).sum();
        let kept = match spec.kind {
            FsKind::Xfs => 8192.min(free / 20),
            FsKind::Ext4 => 4096.min(free / 50),
        };
        Space { group_blocks, groups, free, claimed: 0, kept }
    }

    /// Blocks that nothing holds.
    pub(super) fn free(&self) -> u64 {
        self.free
    }

    /// Blocks of a group that nothing holds.
    pub(super) fn free_in(&self, group: u32) -> u32 {
        self.groups[group as usize].free
    }

    /// Blocks of a group, headers and tables included.
    pub(super) fn group_blocks(&self) -> u32 {
        self.group_blocks
    }

    /// Where the tables of a group begin.
    pub(super) fn table(&self, group: u32) -> u32 {
        group * self.group_blocks + HEADERS
    }

    /// Blocks claimed by dirty pages.
    pub(super) fn claimed(&self) -> u64 {
        self.claimed
    }

    /// Blocks that an operation may still claim or take.
    pub(super) fn available(&self) -> u64 {
        self.free.saturating_sub(self.claimed + self.kept)
    }

    /// A page was dirtied that has no block.
    pub(super) fn claim(&mut self) {
        self.claimed += 1;
    }

    /// Pages got their blocks, or were dropped.
    pub(super) fn unclaim(&mut self, blocks: u64) {
        self.claimed = self.claimed.checked_sub(blocks).expect("a claim is given up once");
    }

    /// Takes blocks for metadata, in one piece; none without room.
    pub(super) fn take_for_metadata(&mut self, group: u32, want: u32) -> Option<u32> {
        if self.available() < u64::from(want) {
            return None;
        }
        if let Some(block) = self.groups[group as usize].take_for_dirs(want) {
            self.free -= u64::from(want);
            return Some(block);
        }
        self.take_piece(group, want)
    }

    /// Takes up to `want` contiguous blocks, as near to a group as can be; none if all blocks are in use.
    pub(super) fn take(&mut self, group: u32, want: u32) -> Option<(u32, u32)> {
        let want = want.clamp(1, self.group_blocks - HEADERS);
        if let Some(block) = self.take_piece(group, want) {
            return Some((block, want));
        }
        let pieces = |g: &Group| g.freed.iter().map(|piece| piece.1).chain([g.end - g.next, g.dirs.1 - g.dirs.0]).max();
        let largest = self.groups.iter().filter_map(pieces).max().filter(|blocks| *blocks > 0)?;
        self.take_piece(group, largest).map(|block| (block, largest))
    }

    fn take_piece(&mut self, group: u32, want: u32) -> Option<u32> {
        let block = self.find_piece(group, want).or_else(|| {
            self.groups.iter_mut().for_each(Group::join);
            self.find_piece(group, want)
        })?;
        self.free -= u64::from(want);
        Some(block)
    }

    fn find_piece(&mut self, group: u32, want: u32) -> Option<u32> {
        let count = self.groups.len();
        let nearest = |n: usize| (group as usize + n) % count;
        let found = (0..count).find_map(|n| self.groups[nearest(n)].take(want));
        found.or_else(|| (0..count).find_map(|n| self.groups[nearest(n)].take_for_dirs(want)))
    }

    /// Takes up to `want` blocks that follow `end` directly.
    pub(super) fn extend(&mut self, end: u32, want: u32) -> u32 {
        let group = self.groups.get_mut((end / self.group_blocks) as usize);
        let Some(group) = group.filter(|g| g.next == end && end < g.end) else { return 0 };
        let got = want.min(group.end - end);
        group.next += got;
        group.free -= got;
        self.free -= u64::from(got);
        got
    }

    pub(super) fn give(&mut self, block: u32, blocks: u32) {
        if blocks == 0 {
            return;
        }
        self.free += u64::from(blocks);
        let group = &mut self.groups[(block / self.group_blocks) as usize];
        group.free += blocks;
        if block + blocks == group.next {
            group.next = block;
        } else if let Some(last) = group.freed.last_mut().filter(|(b, n)| b + n == block) {
            last.1 += blocks;
        } else {
            group.freed.push((block, blocks));
            if group.freed.len() >= group.join_at {
                group.join();
                group.join_at = JOIN_MIN.max(2 * group.freed.len());
            }
        }
    }

    /// Memory of the host that it takes, in bytes.
    pub(super) fn host_bytes(&self) -> usize {
        self.groups.iter().map(|g| g.freed.capacity() * size_of::<(u32, u32)>()).sum()
    }

    /// All of it, headers excepted.
    pub(super) fn total(&self) -> u64 {
        self.groups.iter().map(|g| u64::from(g.end - g.start)).sum()
    }
}

impl Group {
    /// Takes `want` blocks of the extent freed last, of what was never used, or of any extent that has so many.
    fn take(&mut self, want: u32) -> Option<u32> {
        let last = self.freed.len().checked_sub(1).filter(|at| self.freed[*at].1 >= want);
        if last.is_none() && self.end - self.next >= want {
            self.next += want;
            self.free -= want;
            return Some(self.next - want);
        }
        let at = last.or_else(|| self.freed.iter().rposition(|(_, blocks)| *blocks >= want))?;
        self.free -= want;
        let piece = &mut self.freed[at];
        let first = piece.0;
        *piece = (first + want, piece.1 - want);
        if piece.1 == 0 {
            self.freed.remove(at);
        }
        Some(first)
    }

    /// Takes `want` blocks of those for directories.
    fn take_for_dirs(&mut self, want: u32) -> Option<u32> {
        let (first, end) = self.dirs;
        (end - first >= want).then(|| {
            self.dirs.0 += want;
            self.free -= want;
            first
        })
    }

    /// Joins neighbours among the freed extents, and the last of them with what was never used.
    fn join(&mut self) {
        self.freed.sort_unstable();
        self.freed.dedup_by(|later, kept| {
            let follows = kept.0 + kept.1 == later.0;
            if follows {
                kept.1 += later.1;
            }
            follows
        });
        if let Some((block, _)) = self.freed.pop_if(|(block, blocks)| *block + *blocks == self.next) {
            self.next = block;
        }
    }
}

#[cfg(test)]
mod tests {
    use units::Bytes;

    use super::*;

    /// Four groups of 4096 blocks, of which 16 are headers; a twentieth of 16,320 is kept: 816.
    fn small() -> Space {
        Space::new(&FsSpec::xfs(0, Bytes::mib(64)))
    }

    #[test]
    fn metadata_leaves_what_is_claimed_or_kept() {
        let mut space = small();
        assert_eq!((space.total(), space.available()), (16_320, 16_320 - 816));
        while space.available() > 8 {
            space.claim();
        }
        assert!(space.take_for_metadata(0, 8).is_some(), "8 are left");
        assert!(space.take_for_metadata(0, 1).is_none());
        space.unclaim(1);
        assert!(space.take_for_metadata(0, 1).is_some());
    }

    #[test]
    fn data_goes_on_to_the_other_groups_and_ends_with_small_pieces() {
        let mut space = small();
        assert_eq!(space.take(1, 4080), Some((4096 + 16, 4080)));
        assert_eq!(space.take(1, 4080), Some((8192 + 16, 4080)));
        assert_eq!(space.take(1, 4000), Some((3 * 4096 + 16, 4000)));
        assert_eq!(space.take(1, 4000), Some((16, 4000)));
        assert_eq!(space.free(), 160);
        assert_eq!(space.take(1, 100), Some((3 * 4096 + 4016, 80)), "80 are left of each");
        assert_eq!(space.take(1, 100), Some((4016, 80)));
        assert_eq!((space.take(1, 1), space.free()), (None, 0));
    }

    #[test]
    fn neighbours_are_joined_when_no_piece_is_large_enough() {
        let mut space = small();
        for group in 0..4 {
            assert_eq!(space.take(group, 4080).map(|(_, blocks)| blocks), Some(4080));
        }
        for block in [100, 116, 108, 300] {
            space.give(block, 8);
        }
        assert_eq!(space.take_piece(0, 25), None);
        assert_eq!(space.take_piece(0, 24), Some(100), "three of 8 blocks side by side");
        assert_eq!(space.take_piece(0, 8), Some(300));
        space.give(4088, 8);
        space.give(4080, 8);
        assert_eq!(space.take_piece(0, 16), Some(4080), "they are the end of the group again");
    }
}
