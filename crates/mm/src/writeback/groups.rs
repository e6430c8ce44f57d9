//! What each group's writeback of a device is asked for.
//!
//! Rule: who wants written what is dirty now asks for as many pages as are dirty, and one for each inode in use. Of these each
//! writeback of a device is asked for its part, by the bandwidth of all that have something dirty there, be it a directory. Who
//! wants written what is old asks each for all.
//! Source: `wb_check_start_all()`, `wb_check_old_data_flush()`, `get_nr_dirty_pages()`, `wb_split_bdi_pages()`, fs/fs-writeback.c (4.20; 6.12 the same).
//! Since/until: on XFS a group's directories are its own since 5.3 ([`XfsWriter`](rules::XfsWriter)).
//! Omitted: inodes other than directories that are dirty without pages.

use units::FileId;

use super::{Wb, WbId, jiffies};
use crate::stat::NodeStat;
use crate::{Env, Mm};

/// Inodes in use on a machine that has just booted: `/proc/slabinfo` of a guest of 6.12.
const INODES_OF_BOOT: u64 = 794;

impl Mm {
    /// A name in a directory was made or removed.
    pub(crate) fn directory_dirtied(&mut self, env: &Env, dir: FileId) {
        if self.is_submitters(dir) {
            return;
        }
        self.attach(dir, env.task.memcg);
        let wb = self.wb_of(dir);
        self.writeback.wbs.get_mut(wb).dirty_dir.get_or_insert(jiffies(env.now));
    }

    /// `get_nr_dirty_pages()`.
    fn nr_dirty_pages(&self) -> u64 {
        let inodes = self.vfs.cached().1.saturating_sub(self.vfs.unused_inodes());
        self.stat.node_sum(NodeStat::FileDirty) + inodes + INODES_OF_BOOT
    }

    /// Everything is to be written, directories at once: pages that are asked for.
    pub(super) fn part_of_all(&mut self, wb: WbId) -> u64 {
        let all = self.nr_dirty_pages();
        let dirty = |id: &WbId| {
            let state = &self.writeback.wbs[*id];
            id.device == wb.device && (state.has_dirty_io() || state.dirty_dir.is_some())
        };
        let bandwidth = |state: &Wb| state.avg_write_bandwidth;
        let total: u64 =
            self.writeback.wbs.ids().iter().filter(|id| dirty(id)).map(|id| bandwidth(&self.writeback.wbs[*id])).sum();
        let state = &mut self.writeback.wbs[wb];
        state.dirty_dir = None;
        let own = bandwidth(state);
        if own >= total { all } else { (all * own).div_ceil(total) }
    }

    /// What is old is to be written, directories at once: pages that are asked for.
    pub(super) fn asked_of_old(&mut self, env: &Env, wb: WbId) -> u64 {
        let expire = jiffies(self.expire_interval());
        let now = jiffies(env.now);
        let state = &mut self.writeback.wbs[wb];
        state.dirty_dir = state.dirty_dir.filter(|since| *since + expire > now);
        self.nr_dirty_pages()
    }
}

#[cfg(test)]
mod tests {
    use rules::XfsWriter;
    use units::{MemcgId, Nanos};

    use super::super::{FlushStep, FlushWork, INITIAL_BANDWIDTH};
    use super::*;
    use crate::memcg::ROOT;
    use crate::pagecache::rig::Rig;

    const DEVICE: u16 = 3;

    fn wb(group: MemcgId) -> WbId {
        WbId { group, device: DEVICE }
    }

    /// A file of a group with so many dirty pages.
    fn dirty(rig: &mut Rig, group: MemcgId, pages: u32) -> FileId {
        rig.env.task.memcg = group;
        let file = rig.create();
        (0..pages).for_each(|index| assert!(rig.write(file, index)));
        file
    }

    fn rig() -> (Rig, [MemcgId; 2]) {
        let mut rig = Rig::ext4(1 << 14);
        let groups = ["a", "b"].map(|name| rig.mm.memcg_create(ROOT, name).expect("a name of its own"));
        (rig, groups)
    }

    #[test]
    fn those_that_have_something_dirty_share_what_is_asked_for_by_their_bandwidth() {
        let (mut rig, [a, b]) = rig();
        dirty(&mut rig, a, 2000);
        dirty(&mut rig, b, 10);
        // Metadata is the root's, if there is any.
        let root = rig.mm.writeback.wbs.get(wb(ROOT)).is_some_and(Wb::has_dirty_io);
        let all = rig.mm.nr_dirty_pages();
        // b writes three times as fast.
        rig.mm.writeback.wbs[wb(b)].avg_write_bandwidth = 3 * INITIAL_BANDWIDTH;
        let quarters = 4 + u64::from(root);
        assert_eq!(rig.mm.part_of_all(wb(b)), (all * 3).div_ceil(quarters));
        assert_eq!(rig.mm.part_of_all(wb(a)), all.div_ceil(quarters));
    }

    #[test]
    fn a_group_with_nothing_but_a_changed_directory_takes_its_share_once() {
        let (mut rig, [a, b]) = rig();
        dirty(&mut rig, a, 3000);
        rig.env.task.memcg = b;
        let dir = rig.mm.vfs_mkdir(&rig.env, rig.dir).expect("there is memory");
        rig.mm.vfs_create(&rig.env, dir).expect("there is memory");
        let with_b = rig.mm.part_of_all(wb(a));
        rig.mm.part_of_all(wb(b));
        assert!(rig.mm.part_of_all(wb(a)) > with_b, "its directory is written");
    }

    #[test]
    fn a_directory_is_old_after_30_seconds() {
        let (mut rig, [_, b]) = rig();
        rig.env.task.memcg = b;
        let dir = rig.mm.vfs_mkdir(&rig.env, rig.dir).expect("there is memory");
        rig.mm.vfs_create(&rig.env, dir).expect("there is memory");
        for (seconds, old) in [(29, false), (31, true)] {
            rig.env.now = Nanos::secs(seconds);
            rig.mm.asked_of_old(&rig.env.clone(), wb(b));
            assert_eq!(rig.mm.writeback.wbs[wb(b)].dirty_dir.is_none(), old, "after {seconds} s");
        }
    }

    #[test]
    fn a_flusher_writes_what_its_group_owns() {
        let (mut rig, [a, b]) = rig();
        let (of_a, of_b) = (dirty(&mut rig, a, 300), dirty(&mut rig, b, 500));
        // What others write to it later is its owner's, too.
        rig.env.task.memcg = b;
        assert!(rig.write(of_a, 300));
        let dirty = |rig: &Rig, group| rig.mm.writeback.pages_of(wb(group)).0;
        assert_eq!((dirty(&rig, a), dirty(&rig, b)), (301, 500));
        rig.mm.ask_flushers(crate::WakeFlusher::Vmscan);
        let mut work = FlushWork::default();
        while rig.mm.writeback_step(&rig.env, wb(a), &mut work, 1024) == FlushStep::More {}
        rig.collect();
        assert_eq!((dirty(&rig, a), dirty(&rig, b)), (0, 500));
        assert_eq!((rig.mm.dirty_pages_of(of_a).0, rig.mm.dirty_pages_of(of_b).0), (0, 500));
        rig.complete_all();
        rig.check();
    }

    #[test]
    fn a_group_beyond_its_own_limit_is_written_and_no_other() {
        let (mut rig, [a, b]) = rig();
        // Each has written half of all lately.
        for group in [a, b] {
            let file = dirty(&mut rig, group, 500);
            rig.write_back(file);
            rig.complete_all();
        }
        // Room for 1000 pages: a tenth of what is dirtyable is 100 at most.
        rig.mm.memcg[a].limits.max = 1000;
        dirty(&mut rig, a, 200);
        dirty(&mut rig, b, 200);
        assert!(rig.mm.wb_over_bg_thresh(&rig.env, wb(a)));
        assert!(!rig.mm.wb_over_bg_thresh(&rig.env, wb(b)));
    }

    #[test]
    fn xfs_writes_for_the_root_group_until_5_3() {
        for (writer, owner) in [(XfsWriter::Submitter, ROOT), (XfsWriter::Owner, MemcgId(1))] {
            let mut rig = Rig::new(1, 1 << 14);
            rig.mm.rules.xfs_writer = writer;
            let group = rig.mm.memcg_create(ROOT, "a").expect("the first");
            let file = dirty(&mut rig, group, 1);
            assert_eq!(rig.mm.wb_of(file), wb(owner), "{writer:?}");
        }
    }
}
