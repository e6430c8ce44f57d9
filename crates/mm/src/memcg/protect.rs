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
    use proptest::prelude::*;
    use rules::Rules;

    use super::*;
    use crate::anon::testing::Machine;

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

    /// A group of the model: the one above it, what it uses itself, what it asks for.
    type Asks = (prop::sample::Index, u64, u64);

    /// What a level is given, handed out page by page: first to each who asks and uses, in turn by what they claim; then, once all
    /// of them have that, to those who use more. Whole shares are compared, so that rounding is the only difference.
    fn hand_out(given: f64, usage: &[f64], asked: &[f64]) -> Vec<f64> {
        let claims: Vec<f64> = usage.iter().zip(asked).map(|(used, asked)| used.min(*asked)).collect();
        let claimed: f64 = claims.iter().sum();
        if claimed > given {
            return claims.iter().map(|claim| given * claim / claimed).collect();
        }
        let bare: Vec<f64> = usage.iter().zip(&claims).map(|(used, claim)| used - claim).collect();
        let all_bare: f64 = bare.iter().sum();
        let share = |(claim, bare): (&f64, &f64)| {
            claim + if all_bare > 0.0 { (given - claimed) * bare / all_bare } else { 0.0 }
        };
        claims.iter().zip(&bare).map(share).collect()
    }

    proptest! {
        /// The protection of each group, asked for one by one, is what handing it out level by level from the root gives.
        #[test]
        fn protection_is_handed_out_from_the_root(
            groups in prop::collection::vec((any::<prop::sample::Index>(), 0_u64..5000, 0_u64..6000), 1..12)
        ) {
            let groups: Vec<Asks> = groups;
            let mut mm = Machine::new(Rules::newest()).mm;
            let (mut parents, mut usage) = (vec![0_usize], vec![0.0; groups.len() + 1]);
            for (n, (above, own, low)) in groups.iter().enumerate() {
                let parent = above.index(n + 1);
                let id = mm.memcg_create(MemcgId(parent as u16), &n.to_string()).expect("a new name");
                mm.memcg[id].limits.low = *low;
                parents.push(parent);
                let mut at = n + 1;
                while at > 0 {
                    usage[at] += *own as f64;
                    at = parents[at];
                }
            }
            for (n, used) in usage.iter().enumerate().skip(1) {
                mm.memcg[MemcgId(n as u16)].usage = *used as u64;
            }
            let low = |n: usize| groups[n - 1].2 as f64;
            let mut expected = vec![0.0; usage.len()];
            // Those above were made before those below.
            for parent in 0..usage.len() {
                let children: Vec<usize> = (1..usage.len()).filter(|n| parents[*n] == parent).collect();
                let of = |value: &dyn Fn(usize) -> f64| children.iter().map(|n| value(*n)).collect::<Vec<f64>>();
                let mut shares = of(&low);
                if parent > 0 {
                    // What the group above uses itself competes for what nobody asks for, too.
                    let (mut used, mut asked) = (of(&|n| usage[n]), of(&low));
                    used.push(usage[parent] - used.iter().sum::<f64>());
                    asked.push(0.0);
                    shares = hand_out(expected[parent], &used, &asked);
                }
                for (child, share) in children.iter().zip(shares) {
                    expected[*child] = if usage[*child] > 0.0 { share } else { 0.0 };
                }
            }
            for (n, expected) in expected.iter().enumerate().skip(1) {
                let Protection { min, low } = mm.memcg.protection(ROOT, MemcgId(n as u16));
                prop_assert_eq!(min, 0, "nobody asked for that");
                // Each level rounds down once.
                prop_assert!((low as f64 - expected).abs() <= 13.0, "group {} has {}, not {}", n, low, expected);
            }
        }
    }
}
