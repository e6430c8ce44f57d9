//! Pages of a group that another group's writeback is to write.
//!
//! Rule: a group remembers for which four writebacks, not its own, pages of it became dirty last, such as blocks of a device
//! that its files have metadata in. Once a writer to its files is beyond the limit to which it may dirty freely, each of these that a page became dirty for
//! within the time after which data is old, and since it was last asked, is asked for as many pages as its group has dirty, and a quarter
//! more. It is not asked again before it has written them, nor forgotten.
//! Source: `mem_cgroup_track_foreign_dirty_slowpath()`, `mem_cgroup_flush_foreign()`, mm/memcontrol.c,
//! `cgroup_writeback_by_id()`, fs/fs-writeback.c (6.12; 5.10 the same).
//! Since/until: [`ForeignDirty`].
//! Omitted: memory for what is asked, without which Linux does not ask; two CPUs that change a record at a time, which has no lock.

use rules::ForeignDirty;
use smallvec::SmallVec;
use units::{MemcgId, Pfn};

use super::{HZ, Request, WbId, jiffies};
use crate::{Effect, Env, Mm};

/// Writebacks that a group remembers (`MEMCG_CGWB_FRN_CNT`).
const REMEMBERED: usize = 4;

/// What a group remembers of a writeback (`struct memcg_cgwb_frn`).
#[derive(Clone, Copy, Debug, Default)]
struct Record {
    wb: Option<WbId>,
    /// When a page became dirty for it, in jiffies; it is brought up to date once a second. `None` when it was asked since.
    at: Option<u64>,
    /// It was asked, and has not written all of that.
    asked: bool,
}

/// Names a record that a request is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RecordId {
    group: MemcgId,
    slot: usize,
}

/// What each group remembers.
#[derive(Debug, Default)]
pub(super) struct Foreign(Vec<[Record; REMEMBERED]>);

impl Foreign {
    /// A page of a group became dirty for the writeback of another.
    fn track(&mut self, group: MemcgId, wb: WbId, now: u64, expire: u64) {
        if group.index() >= self.0.len() {
            self.0.resize_with(group.index() + 1, Default::default);
        }
        let records = &mut self.0[group.index()];
        if let Some(known) = records.iter_mut().find(|record| record.wb == Some(wb)) {
            let interval = HZ.min(expire / 8);
            if known.at.is_none_or(|at| at + interval < now) {
                known.at = Some(now);
            }
            return;
        }
        let free = records.iter_mut().filter(|record| !record.asked && record.at < Some(now));
        if let Some(oldest) = free.min_by_key(|record| record.at) {
            *oldest = Record { wb: Some(wb), at: Some(now), asked: false };
        }
    }

    /// The writebacks that are to be asked for a group's pages now; they count as asked.
    fn take_due(&mut self, group: MemcgId, now: u64, expire: u64) -> impl Iterator<Item = (RecordId, WbId)> {
        let records = self.0.get_mut(group.index()).into_iter().flatten().enumerate();
        records.filter_map(move |(slot, record)| {
            let is_due = !record.asked && record.at.is_some_and(|at| at + expire > now);
            let wb = record.wb.filter(|_| is_due)?;
            (record.at, record.asked) = (None, true);
            Some((RecordId { group, slot }, wb))
        })
    }

    /// What a writeback was asked for is written.
    pub(super) fn done(&mut self, RecordId { group, slot }: RecordId) {
        self.0[group.index()][slot].asked = false;
    }
}

impl Mm {
    /// A page became dirty for a writeback.
    #[inline]
    pub(super) fn track_foreign(&mut self, env: &Env, pfn: Pfn, wb: WbId) {
        if self.rules.foreign_dirty == ForeignDirty::Flushed && self.memcg.in_use() {
            let group = self.memcg.of_page(pfn);
            if group != wb.group {
                self.writeback.foreign.track(group, wb, jiffies(env.now), jiffies(self.expire_interval()));
            }
        }
    }

    /// A writer of a group is to be throttled: what others have to write of its pages is written, too.
    pub(super) fn flush_foreign(&mut self, env: &Env, group: MemcgId) {
        let expire = jiffies(self.expire_interval());
        let due: SmallVec<[_; REMEMBERED]> = self.writeback.foreign.take_due(group, jiffies(env.now), expire).collect();
        for (record, wb) in due {
            let pages = self.known_dirty(wb.group).dirty * 10 / 8;
            self.writeback.wbs[wb].requests.push_back(Request::Foreign { record, pages });
            self.effects.push(Effect::WakeFlusher(wb));
        }
    }
}

#[cfg(test)]
mod tests {
    use units::FileId;

    use super::super::{FlushStep, FlushWork, Pause, TaskDirty};
    use super::*;
    use crate::memcg::ROOT;
    use crate::pagecache::rig::Rig;

    /// 30 s.
    const EXPIRE: u64 = 30 * HZ;
    const GROUP: MemcgId = MemcgId(1);

    fn wb(device: u16) -> WbId {
        WbId::root(device)
    }

    fn due(foreign: &mut Foreign, now: u64) -> Vec<u16> {
        foreign.take_due(GROUP, now, EXPIRE).map(|(_, wb)| wb.device).collect()
    }

    #[test]
    fn a_writeback_is_asked_once_for_what_became_dirty_within_30_seconds() {
        let mut foreign = Foreign::default();
        foreign.track(GROUP, wb(7), 1000, EXPIRE);
        assert_eq!(due(&mut foreign, 1000 + EXPIRE), [], "it is old, and the flusher at it");
        assert_eq!(due(&mut foreign, 999 + EXPIRE), [7]);
        foreign.track(GROUP, wb(7), 1001 + EXPIRE, EXPIRE);
        assert_eq!(due(&mut foreign, 1001 + EXPIRE), [], "it is at it");
        foreign.done(RecordId { group: GROUP, slot: 0 });
        assert_eq!(due(&mut foreign, 1001 + EXPIRE), [7]);
        foreign.done(RecordId { group: GROUP, slot: 0 });
        assert_eq!(due(&mut foreign, 1002 + EXPIRE), [], "nothing became dirty since");
        assert!(foreign.take_due(ROOT, 1000, EXPIRE).next().is_none(), "of another group");
    }

    #[test]
    fn its_time_moves_on_by_seconds() {
        let mut foreign = Foreign::default();
        for now in [1000, 1000 + HZ] {
            foreign.track(GROUP, wb(7), now, EXPIRE);
        }
        assert_eq!(due(&mut foreign, 1000 + EXPIRE), []);
        foreign.track(GROUP, wb(7), 1001 + HZ, EXPIRE);
        assert_eq!(due(&mut foreign, 1000 + HZ + EXPIRE), [7]);
    }

    #[test]
    fn a_fifth_takes_the_place_of_the_oldest_that_is_not_at_work() {
        let mut foreign = Foreign::default();
        foreign.track(GROUP, wb(0), 1000, EXPIRE);
        assert_eq!(due(&mut foreign, 1000), [0]);
        (1..4).for_each(|n| foreign.track(GROUP, wb(n), 1000 + u64::from(n), EXPIRE));
        foreign.track(GROUP, wb(4), 1003, EXPIRE);
        assert_eq!(due(&mut foreign, 1003), [4, 2, 3], "in the place of 1");
        foreign.track(GROUP, wb(5), 1004, EXPIRE);
        assert_eq!(due(&mut foreign, 1004), [], "all four are at work");
    }

    #[test]
    fn none_of_this_jiffy_makes_room() {
        let mut foreign = Foreign::default();
        (0..5).for_each(|n| foreign.track(GROUP, wb(n), 1000, EXPIRE));
        assert_eq!(due(&mut foreign, 1000), [0, 1, 2, 3]);
    }

    /// Runs the flusher of the root group until it sleeps; says how many pages it submitted.
    fn flush(rig: &mut Rig, device: u16) -> u32 {
        let (mut work, mut pages) = (FlushWork::default(), 0);
        loop {
            let step = rig.mm.writeback_step(&rig.env, wb(device), &mut work, 1024);
            rig.collect();
            pages += rig.bios.iter().map(|bio| bio.pages).sum::<u32>();
            rig.complete_all();
            match step {
                FlushStep::More => {}
                FlushStep::Idle(_) => return pages,
                step => panic!("{step:?} for nothing"),
            }
        }
    }

    #[test]
    fn a_throttled_writer_has_its_groups_blocks_of_the_device_written() {
        let mut rig = Rig::ext4(1 << 14);
        let group = rig.mm.memcg_create(ROOT, "a").expect("a name of its own");
        rig.env.task.memcg = group;
        let file = rig.create();
        let device = rig.mm.device_of(file);
        let bdev = (0..8).map(FileId).find(|file| rig.mm.bdev_gfp(*file).is_some()).expect("an ext4 has one");
        let (id, _) = rig.mm.vfs_begin_commit(&rig.env, rig.mm.fs_id(file)).expect("the file is new");
        rig.mm.vfs_end_commit(&rig.env, rig.mm.fs_id(file), id);
        let blocks = rig.mm.dirty_pages_of(bdev).0;
        assert!(blocks > 0, "its inode is in a block");
        let limit = rig.mm.global_dirty_limits().dirty as u32;
        (0..limit).for_each(|index| assert!(rig.write(file, index)));
        let mut task = TaskDirty::default();
        rig.mm.balance_dirty_pages(&rig.env, file, 0, &mut task);
        assert!(!rig.effects.contains(&Effect::WakeFlusher(wb(device))), "nothing was dirtied since");
        let pause = rig.mm.balance_dirty_pages(&rig.env, file, 1 << 10, &mut task);
        assert!(matches!(pause, Pause::Sleep(_)));
        rig.collect();
        assert!(rig.effects.contains(&Effect::WakeFlusher(wb(device))));
        assert_eq!((flush(&mut rig, device), rig.mm.dirty_pages_of(bdev).0), (blocks, 0));
    }
}
