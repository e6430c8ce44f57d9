//! How much of each list a pass scans, and when active pages are deactivated.
//!
//! Rule, in this order: without swap, or where swapping is not allowed, only file pages. At priority 0, all lists alike.
//! If page cache and free memory together are below the high watermarks, only anonymous pages (so that a tiny cache is
//! not thrashed). If the inactive file list is large, only file pages. Otherwise both, in a ratio made of swappiness
//! and of what reclaim of each kind has cost lately. A list then gives `size >> priority` times its share.
//! An inactive list is low if it holds less than 1 / (1 + ratio) of its pages, ratio = sqrt(10 x size in GiB).
//! Source: `get_scan_count()`, `inactive_list_is_low()` (mm/vmscan.c, 4.20); `prepare_scan_control()`,
//! `get_scan_count()`, `inactive_is_low()` (6.12); `lru_note_cost()` (mm/swap.c, 6.12).
//! Since/until: [`ScanBalance::RotatedRatio`]: the share falls with the part of the scanned pages that was rotated;
//! [`ScanBalance::RefaultCost`]: with refaults, writes and rotations, and the decisions are made once for a pass;
//! [`ScanBalance::IoCost`]: the same without rotations.
//! [`InactiveTarget::FileHalf`]: an inactive file list is low if it is the smaller one, an anonymous one by the size of
//! the zone (`inactive_file_is_low()`, `inactive_anon_is_low()`, 3.19), and whether the lists give anything at this
//! priority is not asked. Lists that give nothing: see small_lists.rs. Until 3.7 anonymous pages have their share however
//! many inactive file pages there are ([`FileFirst`]); until 4.19 shares by rotation are rounded down ([`ShareRounding`]).
//! Omitted: swappiness of cgroups.

use rules::{FileFirst, InactiveTarget, RefaultDetection, ScanBalance, ShareRounding};
use units::{MemcgId, NodeId};

use super::{SWAP_CLUSTER_MAX, ScanControl};
use crate::contention::ONCE;
use crate::memcg::Protection;
use crate::zone::Wmark;
use crate::{Env, LruList, Lruvec, LruvecId, Mm, ZoneKind};

/// log2 of the pages in a GiB.
const GIB_SHIFT: u32 = 18;
/// Swappiness at which file pages are left alone (`MAX_SWAPPINESS`).
const SWAPPINESS_MAX: u64 = 200;
const ANON: usize = 0;
const FILE: usize = 1;

/// What to scan (`enum scan_balance`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Share {
    /// `SCAN_EQUAL`.
    Equal,
    /// `SCAN_FRACT`: [anon, file] over a denominator; rounded up or down.
    Fract { parts: [u64; 2], of: u64, round_up: bool },
    /// `SCAN_ANON`.
    AnonOnly,
    /// `SCAN_FILE`.
    FileOnly,
}

impl Share {
    /// Part of `scan` pages that a list gives.
    pub(super) fn of(self, scan: u64, file: bool) -> u64 {
        match self {
            Share::Equal => scan,
            Share::AnonOnly => scan * u64::from(!file),
            Share::FileOnly => scan * u64::from(file),
            Share::Fract { parts, of, round_up } => {
                let wanted = scan * parts[usize::from(file)];
                if round_up { wanted.div_ceil(of) } else { wanted / of }
            }
        }
    }
}

/// What a pass is to scan.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct ScanCount {
    /// Entries of each list.
    pub nr: [u64; 4],
    /// Pages on the lists that are scanned at all.
    pub lru_pages: u64,
}

/// Whether an inactive list is smaller than it should be beside its active list; both in pages.
pub(super) fn is_low(inactive: u64, active: u64) -> bool {
    inactive * inactive_ratio((inactive + active) >> GIB_SHIFT) < active
}

/// How many times larger the active list may be, by the GiB that both share.
fn inactive_ratio(gib: u64) -> u64 {
    if gib > 0 { (10 * gib).isqrt() } else { 1 }
}

/// Shares by rotation (`get_scan_count()`, 4.20): `prio * scanned / rotated`, each plus one.
fn rotated_ratio(swappiness: u64, scanned: [u64; 2], rotated: [u64; 2], round_up: bool) -> Share {
    let part = |prio: u64, kind: usize| prio * (scanned[kind] + 1) / (rotated[kind] + 1);
    let parts = [part(swappiness, ANON), part(SWAPPINESS_MAX - swappiness, FILE)];
    Share::Fract { parts, of: parts[ANON] + parts[FILE] + 1, round_up }
}

/// Shares by cost (`get_scan_count()`, 6.12): each kind bears a third of the total beside its own cost.
fn refault_cost(swappiness: u64, cost: [u64; 2]) -> Share {
    let sum = cost[ANON] + cost[FILE];
    let loaded = [sum + cost[ANON], sum + cost[FILE]];
    let total = loaded[ANON] + loaded[FILE];
    let part = |prio: u64, kind: usize| prio * (total + 1) / (loaded[kind] + 1);
    let parts = [part(swappiness, ANON), part(SWAPPINESS_MAX - swappiness, FILE)];
    Share::Fract { parts, of: parts[ANON] + parts[FILE], round_up: false }
}

/// Halves both figures of a kind once enough of its pages were scanned (4.20).
fn decay_ratio(lruvec: &mut Lruvec, kind: usize, pages: u64) {
    if lruvec.scanned[kind] > pages / 4 {
        lruvec.scanned[kind] /= 2;
        lruvec.cost[kind] /= 2;
    }
}

impl Mm {
    /// Entries of each list that a pass scans.
    pub(super) fn get_scan_count(&mut self, env: &Env, lru: LruvecId, sc: &mut ScanControl) -> ScanCount {
        let share = self.scan_share(lru, sc);
        let mut count = ScanCount::default();
        for list in LruList::EVICTABLE {
            let size = self.lruvec(lru).size(list, sc.reclaim_idx);
            let scan = self.unprotected(lru, size, sc);
            count.nr[list as usize] = share.of(scan >> sc.priority, list.is_file());
            let left_out = if list.is_file() { Share::AnonOnly } else { Share::FileOnly };
            if share != left_out {
                count.lru_pages += size;
            }
        }
        self.count_small_lists(env, lru, sc, share, &mut count.nr);
        count
    }

    /// What is scanned of a list of this size: the part by which the group uses more than its protection, a batch at least.
    fn unprotected(&mut self, lru: LruvecId, size: u64, sc: &mut ScanControl) -> u64 {
        let memcg = self.memcg_of(lru);
        let Protection { min, low } = self.memcg.protection(sc.target, memcg);
        if min == 0 && low == 0 {
            return size;
        }
        let spared = !sc.low_reclaim && low > min;
        sc.low_skipped |= spared;
        let protection = if spared { low } else { min };
        let used = self.memcg[memcg].usage().max(protection);
        let scan = size - (u128::from(size) * u128::from(protection) / u128::from(used + 1)) as u64;
        scan.max(u64::from(SWAP_CLUSTER_MAX))
    }

    fn scan_share(&mut self, lru: LruvecId, sc: &ScanControl) -> Share {
        let swappiness = self.tunables.swappiness;
        if !sc.may_swap || self.memcg_swap_pages(self.memcg_of(lru)) == 0 || (!sc.is_global() && swappiness == 0) {
            return Share::FileOnly;
        }
        if sc.priority == 0 && swappiness > 0 {
            return Share::Equal;
        }
        match self.rules.scan_balance {
            ScanBalance::RotatedRatio => self.share_by_rotation(lru, sc, swappiness),
            ScanBalance::IoCost | ScanBalance::RefaultCost if sc.file_is_tiny => Share::AnonOnly,
            ScanBalance::IoCost | ScanBalance::RefaultCost if sc.cache_trim_mode => Share::FileOnly,
            ScanBalance::IoCost | ScanBalance::RefaultCost => refault_cost(swappiness, sc.cost),
        }
    }

    fn share_by_rotation(&mut self, lru: LruvecId, sc: &ScanControl, swappiness: u64) -> Share {
        let by_size = self.rules.inactive_target == InactiveTarget::BySize;
        let enough = |mm: &Mm, list| !by_size || mm.lruvec(lru).size(list, sc.reclaim_idx) >> sc.priority > 0;
        if self.file_cache_is_tiny(lru)
            && (!by_size || !self.inactive_list_is_low(lru, false, sc, false))
            && enough(self, LruList::InactiveAnon)
        {
            return Share::AnonOnly;
        }
        let plenty = self.rules.file_first == FileFirst::WhilePlenty
            && !self.inactive_list_is_low(lru, true, sc, false)
            && enough(self, LruList::InactiveFile);
        if plenty {
            return Share::FileOnly;
        }
        let round_up = self.rules.share_rounding == ShareRounding::Up;
        let lruvec = self.lruvec_mut(lru);
        let pages = |lruvec: &Lruvec, active, inactive| {
            lruvec.size(active, ZoneKind::Movable) + lruvec.size(inactive, ZoneKind::Movable)
        };
        let anon = pages(lruvec, LruList::ActiveAnon, LruList::InactiveAnon);
        let file = pages(lruvec, LruList::ActiveFile, LruList::InactiveFile);
        decay_ratio(lruvec, ANON, anon);
        decay_ratio(lruvec, FILE, file);
        rotated_ratio(swappiness, lruvec.scanned, lruvec.cost, round_up)
    }

    /// Page cache and free pages of a node together are below its high watermarks.
    fn file_cache_is_tiny(&self, lru: LruvecId) -> bool {
        let lru = self.root_of(lru);
        let free: u64 = self.zones_of(lru).map(|z| self.zones[z.index()].free_pages).sum();
        let high: u64 = self.zones_of(lru).map(|z| self.wmark(z, Wmark::High)).sum();
        self.lru_size_below(lru, LruList::ActiveFile) + self.lru_size_below(lru, LruList::InactiveFile) + free <= high
    }

    /// Decides for a pass what may be deactivated (`prepare_scan_control()`).
    pub(super) fn prepare_scan_control(&mut self, lru: LruvecId, sc: &mut ScanControl) {
        if self.rules.scan_balance == ScanBalance::RotatedRatio {
            return;
        }
        sc.cost = self.lruvec(lru).cost;
        let stats = self.lru_stats_of_pass(lru);
        for kind in [ANON, FILE] {
            sc.may_deactivate[kind] = sc.force_deactivate
                || stats.activated[kind] != self.lruvec(lru).refaults[kind]
                || self.node_inactive_is_low(lru, kind == FILE);
        }
        let inactive_file = stats.size(LruList::InactiveFile);
        sc.cache_trim_mode = inactive_file >> sc.priority > 0 && !sc.may_deactivate[FILE] && !sc.no_cache_trim_mode;
        sc.file_is_tiny = sc.is_global()
            && self.file_cache_is_tiny(lru)
            && !sc.may_deactivate[ANON]
            && self.lru_size_below(lru, LruList::InactiveAnon) >> sc.priority > 0;
    }

    /// `inactive_is_low()` of 6.12: over all zones of the node and all groups below, as far as the statistics know.
    fn node_inactive_is_low(&self, lru: LruvecId, file: bool) -> bool {
        let ((inactive, active), stats) = (pair(file), self.lru_stats(lru));
        is_low(stats.size(inactive), stats.size(active))
    }

    /// `inactive_list_is_low()` of 4.20: in the zones that may be reclaimed; while pages are refaulting, an inactive
    /// file list is never large enough.
    fn inactive_list_is_low(&self, lru: LruvecId, file: bool, sc: &ScanControl, reclaiming: bool) -> bool {
        if !file && self.swap.total_pages() == 0 {
            return false;
        }
        let lruvec = self.lruvec(lru);
        let (inactive, active) = pair(file);
        let (inactive, active) = (lruvec.size(inactive, sc.reclaim_idx), lruvec.size(active, sc.reclaim_idx));
        if self.rules.inactive_target == InactiveTarget::FileHalf {
            let managed: u64 = self.zones_of(lru).map(|z| self.zones[z.index()].managed).sum();
            return inactive * if file { 1 } else { inactive_ratio(managed >> GIB_SHIFT) } < active;
        }
        let refaulting = lruvec.activated[FILE] != lruvec.refaults[FILE];
        if file && reclaiming && refaulting { active > 0 } else { is_low(inactive, active) }
    }

    /// Whether pages of an active list may be deactivated now.
    pub(super) fn may_shrink_active(&self, lru: LruvecId, list: LruList, sc: &mut ScanControl) -> bool {
        debug_assert!(list.is_active());
        match self.rules.scan_balance {
            ScanBalance::RotatedRatio => self.inactive_list_is_low(lru, list.is_file(), sc, true),
            ScanBalance::IoCost | ScanBalance::RefaultCost => {
                let may = sc.may_deactivate[usize::from(list.is_file())];
                sc.skipped_deactivate |= !may;
                may
            }
        }
    }

    /// Whether the active anonymous list is to be aged although it is not scanned.
    pub(super) fn anon_wants_aging(&self, lru: LruvecId, sc: &ScanControl) -> bool {
        if self.lru_gen_enabled() {
            return false;
        }
        match self.rules.scan_balance {
            ScanBalance::RotatedRatio => self.inactive_list_is_low(lru, false, sc, true),
            ScanBalance::IoCost | ScanBalance::RefaultCost => {
                self.swap.total_pages() > 0 && self.node_inactive_is_low(lru, false)
            }
        }
    }

    /// Remembers the refaults so far, so that the next pass sees new ones (`snapshot_refaults()`).
    pub(super) fn snapshot_refaults(&mut self, node: NodeId, target: MemcgId) {
        self.end_stat_flush();
        if self.rules.refault_detection == RefaultDetection::ReclaimRoot {
            let lru = self.lruvec_of_memcg(node, target);
            self.lruvec_mut(lru).refaults = self.lru_stats(lru).activated;
            return;
        }
        // Where zones have lists of their own nobody asks ([`InactiveTarget::FileHalf`]).
        for (memcg, _) in self.memcg.subtree(target) {
            let lruvec = &mut self.nodes[node.index()].lruvecs[usize::from(memcg.0)];
            lruvec.refaults = lruvec.activated;
        }
    }

    /// Adds to the cost of reclaiming a kind: 32 for each page of I/O, one for each rotated; before rotations counted, one for each page of
    /// I/O. Old costs fade once they exceed a quarter of the lists. The groups above bear them too, each under the lock of its lists
    /// (`lru_note_cost()`).
    pub(super) fn note_cost(&mut self, lru: LruvecId, file: bool, io_pages: u64, rotated: u64) {
        let added = match self.rules.scan_balance {
            ScanBalance::RotatedRatio => return,
            ScanBalance::IoCost => io_pages,
            ScanBalance::RefaultCost => io_pages * u64::from(SWAP_CLUSTER_MAX) + rotated,
        };
        let mut at = Some(self.memcg_of(lru));
        while let Some(memcg) = at {
            let lru = self.lruvec_of_memcg(lru.node, memcg);
            // Held about as long as for moving a page.
            self.lru_lock(lru, 1, ONCE);
            let pages = self.lru_stats(lru).total();
            let cost = &mut self.lruvec_mut(lru).cost;
            cost[usize::from(file)] += added;
            if cost[ANON] + cost[FILE] > pages / 4 {
                cost[ANON] /= 2;
                cost[FILE] /= 2;
            }
            at = self.memcg[memcg].parent();
        }
    }
}

/// The inactive and the active list of a kind.
fn pair(file: bool) -> (LruList, LruList) {
    if file { (LruList::InactiveFile, LruList::ActiveFile) } else { (LruList::InactiveAnon, LruList::ActiveAnon) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::fixture::{LRU, Machine, rules_4_20};
    use super::*;
    use crate::swap::SwapSpec;

    const GIB: u64 = 1 << GIB_SHIFT;

    #[test]
    fn an_inactive_list_may_be_smaller_where_there_is_more_memory() {
        // Below 1 GiB the ratio is 1: low as soon as it is the smaller one.
        assert!(is_low(99, 100) && !is_low(100, 100));
        // 4 GiB: sqrt(40) = 6; 10 GiB: sqrt(100) = 10; 100 GiB: sqrt(1000) = 31.
        for (total, ratio) in [(4 * GIB, 6), (10 * GIB, 10), (100 * GIB, 31)] {
            let limit = total.div_ceil(1 + ratio);
            assert!(!is_low(limit, total - limit), "{total}");
            assert!(is_low(limit - 1, total - limit + 1), "{total}");
        }
    }

    #[test]
    fn a_kind_that_is_rotated_more_is_scanned_less() {
        // Swappiness 60: anon 60 x 1001/1 = 60060, file 140 x 1001/501 = 279 (140140/501).
        let share = rotated_ratio(60, [1000, 1000], [0, 500], true);
        assert_eq!(share, Share::Fract { parts: [60_060, 279], of: 60_340, round_up: true });
        // 1000 pages: anon ceil(1000 x 60060 / 60340) = 996, file ceil(4.6) = 5.
        assert_eq!((share.of(1000, false), share.of(1000, true)), (996, 5));
        let share = rotated_ratio(60, [1000, 1000], [0, 500], false);
        assert_eq!((share.of(1000, false), share.of(1000, true)), (995, 4), "4.19 and before round down");
    }

    #[test]
    fn plenty_of_inactive_file_pages_spares_anonymous_ones_since_3_8() {
        for (file_first, spared) in [(FileFirst::Never, false), (FileFirst::WhilePlenty, true)] {
            let mut m = Machine::new(rules::Rules { file_first, ..rules_4_20() });
            m.mm.swap.add_device(&SwapSpec { device: 5, start_sector: 0, pages: 9, priority: 0, rotational: true });
            m.add("a b c d", crate::Kind::File, 0);
            m.add("e f", crate::Kind::Anon, 0);
            let mut sc = ScanControl::kswapd(units::Order(0), ZoneKind::Normal);
            sc.priority = 2;
            assert_eq!(m.mm.scan_share(LRU, &sc) == Share::FileOnly, spared);
            sc.priority = 3;
            assert_ne!(m.mm.scan_share(LRU, &sc), Share::FileOnly, "4 >> 3 is nothing");
        }
    }

    #[test]
    fn a_kind_that_costs_everything_still_bears_a_third() {
        // Swappiness 100, all cost on anon: loaded [2c, c], total 3c. anon 100 x (3c+1)/(2c+1), file 100 x (3c+1)/(c+1).
        let c = 999_999;
        let Share::Fract { parts, of, .. } = refault_cost(100, [c, 0]) else { panic!("a fraction") };
        assert_eq!(parts, [100 * (3 * c + 1) / (2 * c + 1), 100 * (3 * c + 1) / (c + 1)]);
        assert!((parts[ANON] as f64 / of as f64 - 1.0 / 3.0).abs() < 0.01);
    }

    #[test]
    fn equal_costs_leave_the_ratio_to_swappiness() {
        let share = refault_cost(60, [500, 500]);
        let Share::Fract { parts, .. } = share else { panic!("a fraction") };
        // loaded 1500 each, total 3000: 60 x 3001/1501 = 119, 140 x 3001/1501 = 279.
        assert_eq!(parts, [119, 279]);
    }

    #[test]
    fn rotations_cost_nothing_before_6_2_and_a_32nd_of_a_page_of_io_since() {
        for (scan_balance, expected) in [(ScanBalance::IoCost, [10, 0]), (ScanBalance::RefaultCost, [10 * 32 + 7, 0])] {
            let mut mm = crate::anon::testing::Machine::new(rules::Rules { scan_balance, ..rules::Rules::newest() }).mm;
            let lru = LruvecId { node: NodeId(0), part: 0 };
            // Empty lists: nothing is a quarter of them, and all costs are halved at once.
            mm.note_cost(lru, false, 10, 7);
            assert_eq!(mm.lruvec(lru).cost, expected.map(|cost: u64| cost / 2));
        }
    }

    proptest! {
        /// Of a list, as many pages are scanned as lie above the protected part, counted one by one.
        #[test]
        fn a_list_gives_what_lies_above_the_protection(
            size in 0_u64..3000, usage in 0_u64..4000, min in 0_u64..3000, low in 0_u64..3000, second_round in any::<bool>(),
        ) {
            let mut mm = crate::anon::testing::Machine::new(rules::Rules::newest()).mm;
            let group = mm.memcg_create(crate::memcg::ROOT, "a").expect("the first one");
            mm.memcg[group].limits.min = min;
            mm.memcg[group].limits.low = low;
            mm.memcg_force_charge(units::CpuId(0), group, usage);
            let mut sc = ScanControl::kswapd(units::Order(0), ZoneKind::Normal);
            sc.low_reclaim = second_round;
            let lru = LruvecId { node: NodeId(0), part: group.0 };
            let scan = mm.unprotected(lru, size, &mut sc);
            // An empty group has nothing to protect.
            let (min, low) = if usage > 0 { (min, low) } else { (0, 0) };
            let protected = if second_round { min } else { min.max(low) };
            let used = usage.max(protected);
            let above = (1..=size).filter(|page| page * (used + 1) > size * protected).count() as u64;
            let expected = if min == 0 && low == 0 { size } else { above.max(u64::from(SWAP_CLUSTER_MAX)) };
            prop_assert_eq!(scan, expected);
            prop_assert_eq!(sc.low_skipped, !second_round && low > min, "reclaim comes again before it kills");
        }
    }
}
