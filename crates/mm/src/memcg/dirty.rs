//! Dirty pages of a group, and what may be dirty in it.
//!
//! Rule: a writer has to keep two limits: that of the machine and that of the group that owns the inode, whose dirtyable memory is its page cache
//! and as much more as its limits, and those of the groups above, leave room for, but no more than what others have clean.
//! `memory.max` and `memory.high` limit alike. Limits in bytes become ratios of the machine's dirtyable memory. What is known of the group
//! (page cache, dirty pages, pages under writeback) is from when statistics were last added up, where that is late.
//! Source: `mem_cgroup_wb_stats()` (mm/memcontrol.c), `mdtc_calc_avail()`, `domain_dirty_limits()`, `domain_dirty_avail()`
//! (mm/page-writeback.c), 6.12.
//! Since/until: [`LruStatistics`]; since 4.2 where groups are of version 2.

use rules::LruStatistics;
use units::{MemcgId, PAGE_SIZE, Pfn};

use super::{Memcgs, ROOT};
use crate::writeback::{DirtyLimits, Total};
use crate::{LruList, Mm};

/// Dirty pages of a group, and pages under writeback.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct GroupDirty {
    pub(crate) dirty: u64,
    pub(crate) writeback: u64,
}

/// What a group's writers are held to, in pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct GroupLimits {
    pub(crate) limits: DirtyLimits,
    /// Dirty pages as they are known.
    pub(crate) dirty: GroupDirty,
}

/// State of a group's limit (`struct wb_domain`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct GroupDomain {
    /// Limit that follows the computed one down slowly.
    pub(crate) dirty_limit: u64,
    /// When it was last updated, in jiffies.
    pub(crate) updated: u64,
    /// Its writeback on all devices, for the shares of each.
    pub(crate) total: Total,
}

/// What of a group could be dirty: its page cache, and what may be added to it.
fn dirtyable(file: u64, dirty: u64, headroom: u64, (machine, machine_dirty): (u64, u64)) -> u64 {
    let clean = file.saturating_sub(dirty);
    let others_clean = machine.saturating_sub(machine_dirty).saturating_sub(clean);
    file + headroom.min(others_clean)
}

impl Memcgs {
    /// A page of a group became dirty, or ceased to be.
    #[inline]
    pub(crate) fn count_dirty(&mut self, pfn: Pfn, pages: i64) {
        self.count_state(pfn, pages, |group| &mut group.dirty);
    }

    /// A page of a group is under writeback, or no more.
    #[inline]
    pub(crate) fn count_writeback(&mut self, pfn: Pfn, pages: i64) {
        self.count_state(pfn, pages, |group| &mut group.writeback);
    }

    #[inline]
    fn count_state(&mut self, pfn: Pfn, pages: i64, of: fn(&mut GroupDirty) -> &mut u64) {
        if self.in_use() {
            let memcg = self.of_page(pfn);
            let count = of(&mut self[memcg].dirty);
            *count = count.checked_add_signed(pages).expect("no more pages are clean again than were dirty");
        }
    }

    /// Dirty pages of a group and those below it now.
    pub fn dirty_pages(&self, memcg: MemcgId) -> (u64, u64) {
        let groups = self.subtree(memcg).iter().map(|(id, _)| self[*id].dirty);
        groups.fold((0, 0), |(dirty, writeback), group| (dirty + group.dirty, writeback + group.writeback))
    }

    /// Pages that a group may still use (`mem_cgroup_wb_stats()`).
    fn headroom(&self, memcg: MemcgId) -> u64 {
        let room = |id: MemcgId| self[id].limits.max.min(self[id].limits.high).saturating_sub(self[id].usage);
        self.upwards(memcg).filter(|id| *id != ROOT).map(room).min().unwrap_or(u64::MAX)
    }
}

impl Mm {
    /// Remembers what is dirty in each group until statistics are added up again.
    pub(crate) fn flush_memcg_dirty(&mut self) {
        for memcg in self.memcg.ids() {
            let (dirty, writeback) = self.memcg.dirty_pages(memcg);
            self.memcg[memcg].flushed_dirty = GroupDirty { dirty, writeback };
        }
    }

    /// What is dirty in a group and those below it, as far as it is known.
    pub(crate) fn known_dirty(&self, memcg: MemcgId) -> GroupDirty {
        match self.rules.lru_statistics {
            LruStatistics::Flushed => self.memcg[memcg].flushed_dirty,
            LruStatistics::Live | LruStatistics::ByThreshold => {
                let (dirty, writeback) = self.memcg.dirty_pages(memcg);
                GroupDirty { dirty, writeback }
            }
        }
    }

    /// Limits of a group; none of the root group. `machine`: dirtyable pages and dirty pages of the machine,
    /// `with_writeback`: whether the latter include pages under writeback.
    pub(crate) fn memcg_dirty_limits(
        &self,
        memcg: MemcgId,
        machine: (u64, u64),
        with_writeback: bool,
    ) -> Option<GroupLimits> {
        if memcg == ROOT {
            return None;
        }
        let dirty = self.known_dirty(memcg);
        let counted = dirty.dirty + if with_writeback { dirty.writeback } else { 0 };
        let lists = [LruList::InactiveFile, LruList::ActiveFile];
        let file =
            self.nodes.iter().map(|node| self.known_list_pages(self.lruvec_of_memcg(node.id, memcg), lists)).sum();
        let avail = dirtyable(file, counted, self.memcg.headroom(memcg), machine);
        let part = |bytes: u64, ratio: u64| match bytes {
            0 => ratio * PAGE_SIZE / 100,
            _ => bytes.div_ceil(machine.0.max(1)).min(PAGE_SIZE),
        };
        let thresh = part(self.tunables.dirty_bytes, self.tunables.dirty_ratio) * avail / PAGE_SIZE;
        let background =
            part(self.tunables.dirty_background_bytes, self.tunables.dirty_background_ratio) * avail / PAGE_SIZE;
        Some(GroupLimits { limits: DirtyLimits::of(thresh, background), dirty })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_may_dirty_a_part_of_its_cache_and_of_what_others_have_clean() {
        // 1000 pages of cache, 200 of them dirty; 10 000 dirtyable on the machine, 1000 of them dirty: others have
        // 9000 - 800 clean pages.
        assert_eq!(dirtyable(1000, 200, u64::MAX, (10_000, 1000)), 1000 + 8200);
        // Its limits leave room for 500.
        assert_eq!(dirtyable(1000, 200, 500, (10_000, 1000)), 1500);
        // Late statistics may know more dirty pages than there is cache.
        assert_eq!(dirtyable(100, 200, 0, (10_000, 1000)), 100);
    }
}
