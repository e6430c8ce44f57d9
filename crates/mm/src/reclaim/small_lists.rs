//! What a pass scans of lists that are too small for its priority.
//!
//! Rule ([`SmallLists`]): a list of less than `1 << priority` pages gives nothing. Until 2.6.39 what each list gives is saved up
//! over the passes, and scanned once it makes a batch of 32. In 3.0 and 3.1 kswapd, and reclaim for a cgroup's limit, scan a batch of
//! each list that gives nothing, if the lists of the zone together would give less than a batch: so a small zone, ZONE_DMA
//! above all, is scanned at the first priority as much as a zone of 500 MiB. Without swap anonymous lists are let be. As 3.1 was
//! released, a list that gives nothing gives the share that its kind has of a batch, whatever the size of the zone. In 3.19 and
//! 4.4 only kswapd, in a zone that was scanned in vain, and reclaim for a cgroup's limit do so, and only where no list gives
//! anything; a list is never scanned beyond its size. So such a zone is looked at again and again, a batch at a time, and whoever
//! waits for its pages gets those that can be had by now: direct reclaim passes it over, but for its first priority, at which it
//! scans none of a list of less than 4096 pages.
//! Source: `get_scan_count()`, `nr_scan_try_batch()` (mm/vmscan.c; 2.6.39, 3.0, 3.1, 3.19, 4.4).
//! Omitted: that kswapd scans a batch of each list of a group that was removed (4.4, 4.20, 6.12).

use rules::SmallLists;

use super::balance::Share;
use super::{SWAP_CLUSTER_MAX, ScanControl};
use crate::{Env, LruList, LruvecId, Mm};

const BATCH: u64 = SWAP_CLUSTER_MAX as u64;

/// Adds what a list gives to what was saved of it; what is to be scanned now.
fn save_up(saved: &mut u64, gives: u64) -> u64 {
    *saved += gives;
    if *saved >= BATCH { std::mem::take(saved) } else { 0 }
}

impl Mm {
    /// Corrects what is scanned of each list of a zone, or of a group's, by the rule of small lists.
    pub(super) fn count_small_lists(
        &mut self,
        env: &Env,
        lru: LruvecId,
        sc: &ScanControl,
        share: Share,
        nr: &mut [u64; 4],
    ) {
        let lets_be = !env.task.kswapd && sc.is_global();
        match self.rules.small_lists {
            SmallLists::LeftAlone => {}
            SmallLists::ForcedInVain => {
                let in_vain = env.task.kswapd && self.zone_with(lru).is_some_and(|zone| self.zone_given_up(zone));
                if nr.iter().any(|nr| *nr > 0) || sc.is_global() && !in_vain {
                    return;
                }
                for list in LruList::EVICTABLE {
                    let size = self.lruvec(lru).size(list, sc.reclaim_idx);
                    // A list that gives something, of which its kind has no share, still gives none.
                    let scan = if size >> sc.priority == 0 { size.min(BATCH) } else { size >> sc.priority };
                    nr[list as usize] = share.of(scan, list.is_file());
                }
            }
            SmallLists::SavedUp => {
                let saved = &mut self.lruvec_mut(lru).saved;
                for (nr, saved) in nr.iter_mut().zip(saved) {
                    *nr = save_up(saved, *nr);
                }
            }
            SmallLists::Forced => {
                let pages: u64 =
                    LruList::EVICTABLE.iter().map(|&list| self.lruvec(lru).size(list, sc.reclaim_idx)).sum();
                if pages >> sc.priority >= BATCH || lets_be {
                    return;
                }
                let swap = sc.may_swap && self.memcg_swap_pages(self.memcg_of(lru)) > 0;
                for list in LruList::EVICTABLE {
                    if nr[list as usize] == 0 && (list.is_file() || swap) {
                        nr[list as usize] = BATCH;
                    }
                }
            }
            SmallLists::ForcedShare => {
                for list in LruList::EVICTABLE {
                    if nr[list as usize] == 0 && !lets_be {
                        nr[list as usize] = share.of(BATCH, list.is_file());
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rules::{KswapdRun, LruScope, Rules};
    use units::{Gfp, MemcgId, Order};

    use super::super::fixture::{LRU, Machine, env, rules_4_20};
    use super::*;
    use crate::swap::SwapSpec;
    use crate::{Kind, ZoneKind};

    #[test]
    fn what_is_saved_up_is_scanned_when_it_makes_a_batch() {
        let mut saved = 0;
        let scanned: Vec<u64> = [10, 10, 11, 1, 40, 0].map(|gives| save_up(&mut saved, gives)).into();
        // 10, 20, 31, then 32; 40 at once.
        assert_eq!((scanned, saved), (vec![0, 0, 0, 32, 40, 0], 0));
    }

    /// What kswapd, or direct reclaim, scans of 64 inactive file pages, which give `gives` of themselves.
    fn scanned(rule: SmallLists, kswapd: bool, priority: i8, swap: bool, gives: u64) -> [u64; 4] {
        let mut m = Machine::new(Rules { small_lists: rule, ..rules_4_20() });
        if swap {
            m.mm.swap.add_device(&SwapSpec { device: 5, start_sector: 0, pages: 9, priority: 0, rotational: true });
        }
        for _ in 0..64 {
            m.add_page(Kind::File, 0, Gfp::HIGHUSER_MOVABLE).expect("the machine is empty");
        }
        let mut sc = ScanControl::kswapd(Order(0), ZoneKind::Normal);
        sc.priority = priority;
        let mut nr = [0, 0, gives, 0];
        let share = if swap { Share::Fract { parts: [1, 2], of: 4, round_up: false } } else { Share::FileOnly };
        m.mm.count_small_lists(&env(kswapd), LRU, &sc, share, &mut nr);
        nr
    }

    fn forced(kswapd: bool, priority: i8, swap: bool, gives: u64) -> [u64; 4] {
        scanned(SmallLists::Forced, kswapd, priority, swap, gives)
    }

    #[test]
    fn kswapd_scans_a_batch_of_each_list_where_all_together_give_less() {
        assert_eq!(forced(true, 2, true, 0), [32; 4], "64 >> 2 is 16");
        assert_eq!(forced(true, 1, true, 0), [0; 4], "64 >> 1 is a batch");
        assert_eq!(forced(true, 2, true, 16), [32, 32, 16, 32], "what gives something gives that");
        assert_eq!(forced(true, 2, false, 0), [0, 0, 32, 32], "no swap");
        assert_eq!(forced(false, 2, true, 0), [0; 4], "direct reclaim has other zones");
    }

    #[test]
    fn kswapd_scans_of_a_batch_what_the_kind_has_of_the_zone() {
        let forced = |kswapd, swap, gives| scanned(SmallLists::ForcedShare, kswapd, 1, swap, gives);
        assert_eq!(forced(true, true, 16), [8, 8, 16, 16], "32 x 1 / 4 and 32 x 2 / 4, however large the zone");
        assert_eq!(forced(true, false, 0), [0, 0, 32, 32], "no swap");
        assert_eq!(forced(false, true, 0), [0; 4]);
    }

    /// What is scanned by 3.19's rule of 64 inactive file pages in a zone of which so many pages were scanned since one was freed.
    fn in_vain(scanned: u64, kswapd: bool, priority: i8, gives: u64) -> [u64; 4] {
        let rules = Rules {
            small_lists: SmallLists::ForcedInVain,
            lru_scope: LruScope::Zone,
            kswapd_run: KswapdRun::Once,
            ..rules_4_20()
        };
        let mut m = Machine::new(rules);
        let pages: Vec<_> =
            (0..64).map(|_| m.add_page(Kind::File, 0, Gfp::HIGHUSER_MOVABLE).expect("it is empty")).collect();
        let zone = m.mm.zone_of(pages[0]);
        m.mm.zones[zone.index()].pages_scanned = scanned;
        let lru = m.mm.zones[zone.index()].lru;
        let mut sc = ScanControl::kswapd(Order(0), ZoneKind::Normal);
        sc.priority = priority;
        let mut nr = [0, 0, gives, 0];
        m.mm.count_small_lists(&env(kswapd), lru, &sc, Share::FileOnly, &mut nr);
        nr
    }

    #[test]
    fn kswapd_scans_a_batch_of_a_zone_that_was_scanned_in_vain() {
        // Six times 64 pages.
        assert_eq!(in_vain(384, true, 12, 0), [0, 0, 32, 0]);
        assert_eq!(in_vain(383, true, 12, 0), [0; 4], "not yet in vain");
        assert_eq!(in_vain(384, false, 12, 0), [0; 4], "direct reclaim has other zones");
        assert_eq!(in_vain(384, true, 12, 1), [0, 0, 1, 0], "where a list gives something, none is forced");
        assert_eq!(in_vain(384, true, 6, 0), [0, 0, 1, 0], "64 >> 6 is what the list gives in its share");
    }

    #[test]
    fn no_list_is_forced_beyond_its_size() {
        let rules = Rules { small_lists: SmallLists::ForcedInVain, ..rules_4_20() };
        let mut m = Machine::new(rules);
        for _ in 0..31 {
            m.add_page(Kind::File, 0, Gfp::HIGHUSER_MOVABLE).expect("the machine is empty");
        }
        let sc = ScanControl::memcg(MemcgId(1), Gfp::KERNEL, 1, true);
        let mut nr = [0; 4];
        m.mm.count_small_lists(&env(false), LRU, &sc, Share::FileOnly, &mut nr);
        assert_eq!(nr, [0, 0, 31, 0]);
    }
}
