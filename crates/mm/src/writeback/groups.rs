//! What each group's writeback of a device is asked for.
//!
//! Rule: who wants written what is dirty now asks for as many pages as are dirty, and one for each inode in use. Each group that has
//! something dirty on the device, be it a directory, has a writeback of its own there, and is asked for its part of that. Who wants
//! written what is old asks each for all.
//! Source: `wb_check_start_all()`, `wb_check_old_data_flush()`, `get_nr_dirty_pages()`, `wb_split_bdi_pages()`, fs/fs-writeback.c (4.20; 6.12 the same).
//! Since/until: groups have their own since 4.2 and where groups are in use, on XFS since 5.3 ([`XfsWriter`]).
//! Abstracted: all write at the same bandwidth, and one flusher writes for all; whose pages lie on other devices counts too.
//! Omitted: inodes other than directories that are dirty without pages.

use rules::XfsWriter;
use smallvec::SmallVec;
use units::{FileId, MemcgId, Nanos};

use super::jiffies;
use crate::stat::NodeStat;
use crate::vfs::FsKind;
use crate::{Env, Mm};

/// Inodes in use on a machine that has just booted: `/proc/slabinfo` of a guest of 6.12.
const INODES_OF_BOOT: u64 = 794;

/// Groups that have changed a directory on a device, and when it became dirty, in jiffies.
#[derive(Clone, Debug, Default)]
pub(super) struct ChangedDirs(SmallVec<[(MemcgId, u64); 2]>);

impl ChangedDirs {
    /// A group changed a directory.
    fn add(&mut self, group: MemcgId, now: u64) {
        if !self.0.iter().any(|(known, _)| *known == group) {
            self.0.push((group, now));
        }
    }

    /// All is written.
    pub(super) fn all_written(&mut self) {
        self.0.clear();
    }
}

impl Mm {
    /// A name in a directory was made or removed.
    pub(crate) fn directory_dirtied(&mut self, env: &Env, dir: FileId) {
        if self.rules.xfs_writer == XfsWriter::Submitter && self.fs_kind(dir) == FsKind::Xfs {
            return;
        }
        let device = self.device_of(dir);
        self.writeback.device_mut(device).changed_dirs.add(env.task.memcg, jiffies(env.now));
    }

    /// `get_nr_dirty_pages()`.
    fn nr_dirty_pages(&self) -> u64 {
        let inodes = self.vfs.cached().1.saturating_sub(self.vfs.unused_inodes());
        self.stat.node_sum(NodeStat::FileDirty) + inodes + INODES_OF_BOOT
    }

    /// Everything on a device is to be written, directories at once: pages that all are asked for, and have.
    pub(super) fn part_of_all(&mut self, device: u16) -> u64 {
        let all = self.nr_dirty_pages();
        let changed = std::mem::take(&mut self.writeback.devices[usize::from(device)].changed_dirs);
        if !self.memcg.in_use() {
            return all;
        }
        let dirty = |group: MemcgId| self.memcg.own_dirty_pages(group);
        let with_pages: SmallVec<[u64; 4]> = self.memcg.ids().map(dirty).filter(|pages| *pages > 0).collect();
        let without = changed.0.iter().filter(|(group, _)| dirty(*group) == 0).count();
        let part = all.div_ceil((with_pages.len() + without).max(1) as u64);
        with_pages.into_iter().map(|pages| pages.min(part)).sum()
    }

    /// What is old on a device is to be written, directories at once: pages that are asked for.
    pub(super) fn asked_of_old(&mut self, env: &Env, device: u16) -> u64 {
        let expire = jiffies(Nanos::millis(self.tunables.dirty_expire_centisecs * 10));
        let now = jiffies(env.now);
        self.writeback.devices[usize::from(device)].changed_dirs.0.retain(|(_, since)| *since + expire > now);
        self.nr_dirty_pages()
    }
}

#[cfg(test)]
mod tests {
    use units::{MemcgId, Nanos};

    use crate::memcg::ROOT;
    use crate::pagecache::rig::Rig;

    const DEVICE: u16 = 3;

    /// A file of each of these groups with so many dirty pages.
    fn dirty<const N: usize>(rig: &mut Rig, files: [(MemcgId, u32); N]) {
        for (group, pages) in files {
            rig.env.task.memcg = group;
            let file = rig.create();
            (0..pages).for_each(|index| assert!(rig.write(file, index)));
        }
    }

    fn rig() -> (Rig, [MemcgId; 2]) {
        let mut rig = Rig::ext4(1 << 14);
        let groups = ["a", "b"].map(|name| rig.mm.memcg_create(ROOT, name).expect("a name of its own"));
        (rig, groups)
    }

    #[test]
    fn groups_that_have_something_dirty_share_what_is_asked_for() {
        let (mut rig, [a, b]) = rig();
        dirty(&mut rig, [(a, 2000), (b, 10)]);
        // Both made names, too, and the file system's own pages are the root's.
        let others = rig.mm.memcg.own_dirty_pages(ROOT);
        let all = rig.mm.nr_dirty_pages();
        let sharing = 2 + u64::from(others > 0);
        let part = all.div_ceil(sharing);
        assert!(part < 2000, "it is not all of it");
        assert_eq!(rig.mm.part_of_all(DEVICE), part + 10 + others.min(part));
    }

    #[test]
    fn a_group_with_nothing_but_a_changed_directory_takes_its_share_once() {
        let (mut rig, [a, b]) = rig();
        dirty(&mut rig, [(a, 3000)]);
        rig.env.task.memcg = b;
        rig.create();
        let with_b = rig.mm.part_of_all(DEVICE);
        assert!(rig.mm.part_of_all(DEVICE) > with_b, "its directory is written");
    }

    #[test]
    fn a_directory_is_old_after_30_seconds() {
        let (mut rig, [a, b]) = rig();
        dirty(&mut rig, [(a, 3000)]);
        rig.env.task.memcg = b;
        rig.create();
        for (seconds, old) in [(29, false), (31, true)] {
            rig.env.now = Nanos::secs(seconds);
            rig.mm.asked_of_old(&rig.env.clone(), DEVICE);
            let dirs = &rig.mm.writeback.devices[usize::from(DEVICE)].changed_dirs.0;
            assert_eq!(dirs.iter().any(|(group, _)| *group == b), !old, "after {seconds} s");
        }
    }
}
