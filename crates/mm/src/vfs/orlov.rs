//! Where ext4's directories and inodes go.
//!
//! Rule: a directory in the root goes to the group with the fewest directories of those that have as many free inodes and
//! blocks as the mean, looked for from a place that its name gives. Any other goes to the group where its parent's last one
//! went, or the next behind it that has not a 16th of a block group's inodes more directories than the mean, and whose free
//! inodes and blocks are at most a quarter of a group below the mean: trees grow on, a quarter of a group at a time. A
//! file's inode is in the group of its directory, or the next that has one.
//! Source: `find_group_orlov()`, `find_group_other()`, fs/ext4/ialloc.c, 2.6.39 to 6.12 (groups are `flex_bg`'s).
//! Abstracted: the place that a name gives is drawn from the number of directories made. Omitted: the quadratic search of
//! `find_group_other()` without `flex_bg`.

use super::FsSpec;
use super::space::Space;

/// Spreads numbers over all 32 bits (2^32 divided by the golden ratio).
const SPREAD: u32 = 2_654_435_769;

/// Inodes and directories of the groups.
#[derive(Debug)]
pub(super) struct Orlov {
    inodes_per_group: u32,
    /// Blocks of the table that a chunk of 64 inodes takes.
    chunk_blocks: u32,
    dirs_beyond_mean: u32,
    groups: Vec<Group>,
    free_inodes: u64,
    dirs: u32,
    /// Directories made, those that are gone too.
    made: u32,
}

#[derive(Clone, Copy, Debug)]
struct Group {
    free_inodes: u32,
    /// Chunks of its table that were in use at least once.
    chunks: u32,
    dirs: u32,
}

impl Orlov {
    pub(super) fn new(spec: &FsSpec) -> Orlov {
        let inodes_per_group = spec.table_blocks() / spec.chunk_pages() * 64;
        let group = Group { free_inodes: inodes_per_group, chunks: 0, dirs: 0 };
        Orlov {
            inodes_per_group,
            chunk_blocks: spec.chunk_pages(),
            dirs_beyond_mean: spec.dirs_beyond_mean(),
            groups: vec![group; spec.ag_count as usize],
            free_inodes: u64::from(inodes_per_group) * u64::from(spec.ag_count),
            dirs: 0,
            made: 0,
        }
    }

    /// The groups, beginning with one of them.
    fn from(&self, group: u32) -> impl Iterator<Item = u32> + use<> {
        let nr = self.groups.len() as u32;
        (0..nr).map(move |n| (group + n) % nr)
    }

    /// The group of a new inode that belongs in `group`; none if no inode is free.
    pub(super) fn group_of_inode(&self, group: u32) -> Option<u32> {
        self.from(group).find(|group| self.groups[*group as usize].free_inodes > 0)
    }

    /// Takes the next chunk of a group's table into use; says where in the table it is, in blocks.
    pub(super) fn next_chunk(&mut self, group: u32) -> u32 {
        let chunks = &mut self.groups[group as usize].chunks;
        *chunks += 1;
        assert!(*chunks * 64 <= self.inodes_per_group, "an inode was free");
        (*chunks - 1) * self.chunk_blocks
    }

    pub(super) fn take_inode(&mut self, group: u32) {
        self.groups[group as usize].free_inodes -= 1;
        self.free_inodes -= 1;
    }

    pub(super) fn give_inode(&mut self, group: u32) {
        self.groups[group as usize].free_inodes += 1;
        self.free_inodes += 1;
    }

    /// A directory was made in a group.
    pub(super) fn add_dir(&mut self, group: u32) {
        self.groups[group as usize].dirs += 1;
        self.dirs += 1;
        self.made += 1;
    }

    /// A directory that was made in a group is gone.
    pub(super) fn remove_dir(&mut self, group: u32) {
        self.groups[group as usize].dirs -= 1;
        self.dirs -= 1;
    }

    /// Directories of each group.
    #[cfg(test)]
    pub(super) fn dirs_in_groups(&self) -> Vec<u32> {
        self.groups.iter().map(|group| group.dirs).collect()
    }

    /// Means over the groups: free inodes and free blocks.
    fn means(&self, space: &Space) -> (u32, u32) {
        let nr = self.groups.len() as u64;
        ((self.free_inodes / nr) as u32, (space.free() / nr) as u32)
    }

    /// The group of a new directory in the root.
    pub(super) fn group_of_top_dir(&self, space: &Space) -> u32 {
        let (inodes, blocks) = self.means(space);
        let start = ((u64::from(self.made.wrapping_mul(SPREAD)) * self.groups.len() as u64) >> 32) as u32;
        let good =
            |group: &u32| self.groups[*group as usize].free_inodes >= inodes.max(1) && space.free_in(*group) >= blocks;
        let best = self.from(start).filter(good).min_by_key(|group| self.groups[*group as usize].dirs);
        best.unwrap_or_else(|| self.group_of_inode(start).unwrap_or(start))
    }

    /// The group of a new directory whose parent's last one went to `last`.
    pub(super) fn group_near(&self, space: &Space, last: u32) -> u32 {
        let (inodes, blocks) = self.means(space);
        let inodes_min = inodes.saturating_sub(self.inodes_per_group / 4).max(1);
        let blocks_min = blocks.saturating_sub(space.group_blocks() / 4);
        let dirs_max = self.dirs / self.groups.len() as u32 + self.dirs_beyond_mean;
        let good = |group: &u32| {
            let Group { free_inodes, dirs, .. } = self.groups[*group as usize];
            dirs < dirs_max && free_inodes >= inodes_min && space.free_in(*group) >= blocks_min
        };
        self.from(last).find(good).unwrap_or_else(|| self.group_of_inode(last).unwrap_or(last))
    }
}

#[cfg(test)]
mod tests {
    use units::Bytes;

    use super::*;

    /// Eight groups of 2 GiB: 131,072 inodes each, of block groups of 8192.
    fn eight() -> (Orlov, Space) {
        let spec = FsSpec::ext4(0, Bytes::gib(16)).with_flex_bg();
        (Orlov::new(&spec), Space::new(&spec))
    }

    #[test]
    fn a_group_takes_512_directories_more_than_the_mean() {
        let (mut orlov, space) = eight();
        let mut group = 3;
        let mut went = Vec::new();
        for _ in 0..1400 {
            group = orlov.group_near(&space, group);
            orlov.add_dir(group);
            went.push(group);
        }
        // With d directories in all a group is full with 512 + d / 8: the first one with 585 (585 = 512 + 73).
        let first = went.iter().take_while(|group| **group == 3).count();
        assert_eq!(first, 585);
        assert!(went[585..1200].iter().all(|group| *group == 4), "then the next one");
    }

    #[test]
    fn a_group_is_left_when_a_quarter_of_its_inodes_more_than_the_mean_is_gone() {
        let (mut orlov, space) = eight();
        // After n inodes the mean is n / 8 lower: left at 131,072 - n < 131,072 - n / 8 - 32,768, n > 37,449.
        for _ in 0..37_449 {
            orlov.take_inode(5);
        }
        assert_eq!(orlov.group_near(&space, 5), 5);
        orlov.take_inode(5);
        orlov.take_inode(5);
        assert_eq!(orlov.group_near(&space, 5), 6);
        for _ in 37_451..131_072 {
            orlov.take_inode(5);
        }
        assert_eq!(orlov.group_of_inode(5), Some(6));
    }

    #[test]
    fn directories_in_the_root_are_spread() {
        let (mut orlov, space) = eight();
        for _ in 0..8 {
            let group = orlov.group_of_top_dir(&space);
            orlov.take_inode(group);
            orlov.add_dir(group);
        }
        assert!(orlov.groups.iter().all(|group| group.dirs == 1), "{:?}", orlov.groups);
    }
}
