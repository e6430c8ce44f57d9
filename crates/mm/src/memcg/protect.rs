//! What `memory.min` and `memory.low` come to.
//!
//! Rule: a group is protected by what it asks for, as far as it uses it. Groups that together ask for more than the one
//! above them has share that in proportion. What the one above has and nobody asks for is shared in proportion to what
//! is used beyond the protection. A group that uses no more than its protection is passed over; of one that uses more
//! only the part is scanned by which it does.
//! Source: `mem_cgroup_calculate_protection()`, `effective_protection()` (mm/memcontrol.c), `get_scan_count()` (mm/vmscan.c);
//! 6.1. The last sharing is that of a mount with `memory_recursiveprot`, as systemd mounts it.
//! Since/until: a group whose own limit makes it reclaim is not protected from itself (since 5.10).

use units::MemcgId;

use super::{Memcg, Memcgs, ROOT};

/// Effective `memory.min` and `memory.low`, in pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Protection {
    pub(crate) min: u64,
    pub(crate) low: u64,
}

impl Protection {
    /// Whether `memory.min` covers all that is used.
    pub(crate) fn below_min(self, usage: u64) -> bool {
        self.min >= usage
    }

    /// Whether `memory.low` does.
    pub(crate) fn below_low(self, usage: u64) -> bool {
        self.low >= usage
    }
}

/// Share of a group in the protection of the one above it.
fn effective(usage: u64, parent_usage: u64, setting: u64, parent_effective: u64, siblings: u64) -> u64 {
    let protected = usage.min(setting);
    if siblings > parent_effective {
        return (u128::from(protected) * u128::from(parent_effective) / u128::from(siblings)) as u64;
    }
    let unclaimed = parent_effective - siblings;
    if unclaimed > 0 && parent_usage > siblings && usage > protected {
        let share = u128::from(unclaimed) * u128::from(usage - protected) / u128::from(parent_usage - siblings);
        return protected + share as u64;
    }
    protected
}

impl Memcgs {
    /// Protection of a group from reclaim on behalf of `target`, which is not protected itself.
    pub(crate) fn protection(&self, target: MemcgId, memcg: MemcgId) -> Protection {
        if memcg == target || memcg == ROOT {
            return Protection::default();
        }
        Protection {
            min: self.effective(target, memcg, |group| group.limits.min),
            low: self.effective(target, memcg, |group| group.limits.low),
        }
    }

    fn effective(&self, target: MemcgId, memcg: MemcgId, setting: fn(&Memcg) -> u64) -> u64 {
        let group = &self[memcg];
        let Some(parent) = group.parent.filter(|_| group.usage > 0) else { return 0 };
        if parent == target || parent == ROOT {
            return setting(group);
        }
        let siblings = self[parent].children.iter().map(|id| self[*id].usage.min(setting(&self[*id]))).sum();
        let above = self.effective(target, parent, setting);
        effective(group.usage, self[parent].usage, setting(group), above, siblings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_that_ask_for_too_much_share_what_there_is() {
        // 300 pages for two groups that use and ask for 400 and 200: 200 and 100.
        assert_eq!(effective(400, 600, 400, 300, 600), 200);
        assert_eq!(effective(200, 600, 200, 300, 600), 100);
        // What is not used does not count.
        assert_eq!(effective(50, 250, 200, 300, 250), 50);
    }

    #[test]
    fn what_nobody_asks_for_goes_to_those_who_use_more() {
        // 300 above, 100 asked for: 200 are shared by use beyond it, 300 of 400 here: 100 + 200 x 300 / 400.
        assert_eq!(effective(400, 500, 100, 300, 100), 250);
        assert_eq!(effective(100, 500, 100, 300, 100), 100, "it is covered already");
    }
}
