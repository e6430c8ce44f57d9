//! When reclaimers wait, for what and how long.
//!
//! Rule ([`ReclaimThrottle`]): until 5.15 a reclaimer sleeps for at most 100 ms on the queue of congested devices
//! (`congestion_wait()`), or the same only if some device is congested (`wait_iff_congested()`), until a device that is not congested
//! has done with a write (those with blk-mq never say so). If too many pages are isolated he waits the same way until 4.12, again and again, and 100 ms once then. Since 5.16
//! `reclaim_throttle()` has four reasons:
//!
//! | reason | longest wait | woken early by |
//! |---|---|---|
//! | `Writeback` | 100 ms | more than 32 pages written for each waiter |
//! | `Isolated` | 20 ms | a reclaimer that finds fewer isolated pages |
//! | `NoProgress`, `Congested` | 1 jiffy | (skipped unless writing is what is missing) a reclaimer with progress |
//!
//! Until 3.10 `wait_iff_congested()` asks for the zone too, and stands after a batch ([`super::inactive`]) and between
//! priorities of direct reclaim; until 4.6 a request that is tried once more waits by it for 20 ms. Until 4.8 whoever is through with
//! a zone waits while more than the dirty limit and a tenth is under writeback ([`VmWriteout`]). In every era a direct reclaimer
//! waits while less than half of the reserve for reclaim itself is free (`Reserve`); kswapd wakes it.
//! Source: `congestion_wait()`, `wait_iff_congested()` (mm/backing-dev.c, 4.20), `too_many_isolated()`,
//! `throttle_direct_reclaim()`, `allow_direct_reclaim()` (mm/vmscan.c, 4.20; 6.12), `reclaim_throttle()`,
//! `skip_throttle_noprogress()`, `__acct_reclaim_writeback()` (6.12).
//! `throttle_vm_writeout()` (mm/page-writeback.c, 3.1, 3.19).
//! Abstracted: a device is congested when its owner says so ([`Mm::set_device_congested`]); with blk-mq it never is.
//! A jiffy is 4 ms (HZ=250).
//! Omitted: kernel threads other than kswapd, which do not wait; that an end of congestion wakes also a request whose zones have nothing
//! but pages under writeback (`should_reclaim_retry()`, since 4.7).

use rules::{IsolationLimit, IsolationWait, ReclaimThrottle, VmWriteout};
use units::{Gfp, Nanos, NodeId, Pfn};

use super::{SWAP_CLUSTER_MAX, ScanControl};
use crate::env::JIFFY;
use crate::stat::{NodeStat, ZoneStat};
use crate::zone::{MAX_RECLAIM_RETRIES, Wmark};
use crate::{AllocRequest, Effect, Env, LruList, LruvecId, Mm, ZoneKind};

/// `HZ / 10`.
pub(super) const TENTH: Nanos = Nanos::millis(100);
/// `HZ / 50`.
const FIFTIETH: Nanos = Nanos::millis(20);

/// What a reclaimer waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ThrottleReason {
    /// Pages that were to be reclaimed first are still being written (`VMSCAN_THROTTLE_WRITEBACK`).
    Writeback,
    /// Others hold too many pages isolated (`VMSCAN_THROTTLE_ISOLATED`).
    Isolated,
    /// Nothing could be reclaimed at the highest priority (`VMSCAN_THROTTLE_NOPROGRESS`).
    NoProgress,
    /// Every dirty page met is under writeback for the second time (`VMSCAN_THROTTLE_CONGESTED`).
    Congested,
    /// A congested device to be less so, or the next write to end (`congestion_wait()`).
    Device,
    /// kswapd to fill the reserve (`throttle_direct_reclaim()`).
    Reserve,
}

impl ThrottleReason {
    /// Reasons.
    pub const COUNT: usize = 6;
}

/// Reclaimers of a node that wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct NodeThrottle {
    /// How many, by reason.
    waiting: [u32; ThrottleReason::COUNT],
    /// Pages written when the first began to wait for writeback (`nr_reclaim_start`).
    written_at_start: u64,
}

/// A wait: for what and how long at most.
pub(super) type Wait = (ThrottleReason, Nanos);

impl Mm {
    /// Says whether the write queue of a device is congested.
    pub fn set_device_congested(&mut self, device: u16, congested: bool) {
        let devices = &mut self.reclaim.congested;
        let index = usize::from(device);
        if index >= devices.len() {
            devices.resize(index + 1, false);
        }
        devices[index] = congested;
    }

    /// Whether a device is congested.
    #[inline]
    pub(super) fn device_congested(&self, device: u16) -> bool {
        self.reclaim.congested.get(usize::from(device)).copied().unwrap_or(false)
    }

    /// Whether any device is congested.
    #[inline]
    pub(super) fn any_device_congested(&self) -> bool {
        self.reclaim.congested.contains(&true)
    }

    /// A reclaimer begins to wait.
    pub(super) fn throttle_begin(&mut self, node: NodeId, reason: ThrottleReason) {
        let written = self.stat.node(node, NodeStat::ThrottledWritten);
        let throttle = &mut self.reclaim.throttle[node.index()];
        throttle.waiting[reason as usize] += 1;
        if reason == ThrottleReason::Writeback && throttle.waiting[reason as usize] == 1 {
            throttle.written_at_start = written;
        }
    }

    /// A reclaimer's wait has ended, by time or by being woken; to be called once for every [`super::Step::Throttle`].
    pub fn throttle_end(&mut self, node: NodeId, reason: ThrottleReason) {
        let waiting = &mut self.reclaim.throttle[node.index()].waiting[reason as usize];
        assert!(*waiting > 0, "nobody waits for {reason:?} on {node:?}");
        *waiting -= 1;
    }

    /// Reclaimers of a node that wait for this reason.
    pub fn throttled(&self, node: NodeId, reason: ThrottleReason) -> u32 {
        self.reclaim.throttle[node.index()].waiting[reason as usize]
    }

    /// Wakes those who wait for a reason.
    pub(super) fn wake_throttled(&mut self, node: NodeId, reason: ThrottleReason) {
        if self.throttled(node, reason) > 0 {
            self.effects.push(Effect::WakeThrottled(node, reason));
        }
    }

    /// How long kswapd waits when pages come round under writeback faster than they are written.
    pub(super) fn throttle_writeback(&self) -> Wait {
        match self.rules.reclaim_throttle {
            ReclaimThrottle::Congestion => (ThrottleReason::Device, TENTH),
            ReclaimThrottle::Reasons => (ThrottleReason::Writeback, TENTH),
        }
    }

    /// The writeback of a page has ended: wakes those who wait for that once enough was written
    /// (`acct_reclaim_writeback()`).
    #[inline]
    pub fn acct_reclaim_writeback(&mut self, pfn: Pfn) {
        let node = self.node_of(pfn);
        let throttle = self.reclaim.throttle[node.index()];
        let waiting = throttle.waiting[ThrottleReason::Writeback as usize];
        if waiting == 0 {
            return;
        }
        self.stat.node_add(node, NodeStat::ThrottledWritten, i64::from(self.frames[pfn].nr_pages()));
        let written = self.stat.node(node, NodeStat::ThrottledWritten) - throttle.written_at_start;
        if written > u64::from(SWAP_CLUSTER_MAX * waiting) {
            self.wake_throttled(node, ThrottleReason::Writeback);
        }
    }

    /// How long a direct reclaimer waits in a node whose dirty pages are all stuck; not at all if waiting does not help.
    pub(super) fn throttle_congested(&self, node: NodeId) -> Option<Wait> {
        match self.rules.reclaim_throttle {
            ReclaimThrottle::Congestion => self.any_device_congested().then_some((ThrottleReason::Device, TENTH)),
            ReclaimThrottle::Reasons => {
                (!self.skip_throttle_noprogress(node)).then_some((ThrottleReason::Congested, JIFFY))
            }
        }
    }

    /// How long a reclaimer waits for a zone that is flagged as congested, while any device is (`wait_iff_congested()`).
    pub(super) fn wait_iff_congested(&self, lru: LruvecId) -> Option<Wait> {
        (self.lruvec(self.root_of(lru)).congested && self.any_device_congested())
            .then_some((ThrottleReason::Device, TENTH))
    }

    /// How long a request that failed waits for the zone that it prefers, as a reclaimer would, before it is tried once more; the wait is to be
    /// ended as one of reclaim (`__alloc_pages_slowpath()`, until 4.6).
    pub fn wait_before_retry(&mut self, request: AllocRequest) -> Option<(NodeId, ThrottleReason, Nanos)> {
        let preferred = self.request_zones(request).next()?;
        let lru = self.zones[preferred.index()].lru;
        let (reason, _) = self.wait_iff_congested(lru)?;
        self.throttle_begin(lru.node, reason);
        Some((lru.node, reason, FIFTIETH))
    }

    /// How long a reclaimer that is through with a zone waits for what is under writeback, swap included; one that may not do I/O
    /// or enter file systems only once, as it may hold what the writing needs (`throttle_vm_writeout()`).
    pub(super) fn throttle_vm_writeout(&self, sc: &ScanControl, waited: bool) -> Option<Wait> {
        let limit = match self.rules.vm_writeout {
            VmWriteout::Nothing => return None,
            VmWriteout::AboveLimit => self.global_dirty_limits().dirty,
            VmWriteout::AboveHardLimit => self.global_dirty_limits().dirty.max(self.writeback.dirty_limit),
        };
        let exceeds = self.stat.node_sum(NodeStat::Writeback) > limit + limit / 10;
        let waits = exceeds && (!waited || sc.gfp.contains(Gfp::IO.with(Gfp::FS)));
        waits.then_some((ThrottleReason::Device, TENTH))
    }

    /// What direct reclaim does about its progress after a pass: wakes the others who made none, or waits itself, unless it is for
    /// a group's limit (`consider_reclaim_throttle()`).
    pub(super) fn consider_throttle(&mut self, node: NodeId, sc: &ScanControl) -> Option<Wait> {
        if self.rules.reclaim_throttle == ReclaimThrottle::Congestion {
            return None;
        }
        if sc.nr_reclaimed > sc.nr_scanned >> 3 {
            self.wake_throttled(node, ThrottleReason::NoProgress);
            return None;
        }
        let stuck = sc.is_global() && sc.priority == 1 && sc.nr_reclaimed == 0 && !self.skip_throttle_noprogress(node);
        stuck.then_some((ThrottleReason::NoProgress, JIFFY))
    }

    /// Waiting would not help: kswapd has given the node up, or little of what could be reclaimed is being written.
    fn skip_throttle_noprogress(&self, node: NodeId) -> bool {
        let node = &self.nodes[node.index()];
        if node.kswapd.failures >= MAX_RECLAIM_RETRIES {
            return true;
        }
        let reclaimable: u64 = node.zones.iter().map(|&z| self.reclaimable_pages(z)).sum();
        let pending: u64 = node.zones.iter().map(|&z| self.stat.zone(z, ZoneStat::WritePending)).sum();
        2 * pending <= reclaimable
    }

    /// How long a direct reclaimer waits because more pages are isolated than are left on the inactive list; those
    /// who may do I/O and enter file systems already at an eighth (`too_many_isolated()`).
    pub(super) fn too_many_isolated(
        &mut self,
        env: &Env,
        lru: LruvecId,
        list: LruList,
        sc: &ScanControl,
    ) -> Option<Wait> {
        if env.task.kswapd {
            return None;
        }
        let node = self.root_of(lru);
        let isolated = self.isolated_below(node)[usize::from(list.is_file())];
        let inactive = self.lru_size_below(node, list);
        let eighth = self.rules.isolation_limit == IsolationLimit::Eighth && sc.gfp.contains(Gfp::IO.with(Gfp::FS));
        let allowed = if eighth { inactive >> 3 } else { inactive };
        let wait = self.rules.isolation_wait;
        if isolated <= allowed {
            if wait == IsolationWait::Throttle {
                self.wake_throttled(lru.node, ThrottleReason::Isolated);
            }
            return None;
        }
        Some(match wait {
            IsolationWait::Congestion => (ThrottleReason::Device, TENTH),
            IsolationWait::Sleep => (ThrottleReason::Isolated, TENTH),
            IsolationWait::Throttle => (ThrottleReason::Isolated, FIFTIETH),
        })
    }

    /// Whether a task may reclaim directly: half of the reserve below the min watermarks is free. If not, kswapd is
    /// woken (`allow_direct_reclaim()`).
    pub fn allow_direct_reclaim(&mut self, node: NodeId) -> bool {
        let n = &self.nodes[node.index()];
        if n.kswapd.failures >= MAX_RECLAIM_RETRIES {
            return true;
        }
        let (mut reserve, mut free) = (0, 0);
        for &id in &n.zones {
            let zone = &self.zones[id.index()];
            if zone.kind <= ZoneKind::Normal && zone.managed > 0 && self.reclaimable_pages(id) > 0 {
                reserve += self.wmark(id, Wmark::Min);
                free += zone.free_pages;
            }
        }
        let allowed = reserve == 0 || free > reserve / 2;
        let kswapd = &mut self.nodes[node.index()].kswapd;
        if !allowed && kswapd.asleep {
            kswapd.asleep = false;
            kswapd.highest_zone = Some(kswapd.highest_zone.map_or(ZoneKind::Normal, |z| z.min(ZoneKind::Normal)));
            self.effects.push(Effect::WakeKswapd(node));
        }
        allowed
    }
}

#[cfg(test)]
mod tests {
    use rules::{EmptyZones, Rules};
    use units::Order;

    use super::super::fixture::{LRU, Machine, NODE, env, rules_4_20};
    use super::*;
    use crate::{Frame, Kind};

    #[test]
    fn a_waiter_for_writeback_is_woken_by_the_33rd_page() {
        let mut m = Machine::new(Rules::newest());
        m.add("a", Kind::File, 0);
        let pfn = m.page('a');
        m.mm.acct_reclaim_writeback(pfn);
        assert_eq!(m.mm.stat.node(NODE, NodeStat::ThrottledWritten), 0, "nobody waits");
        m.mm.throttle_begin(NODE, ThrottleReason::Writeback);
        for _ in 0..32 {
            m.mm.acct_reclaim_writeback(pfn);
        }
        assert_eq!(m.effects(), []);
        m.mm.acct_reclaim_writeback(pfn);
        assert_eq!(m.effects(), [Effect::WakeThrottled(NODE, ThrottleReason::Writeback)]);
        m.mm.throttle_end(NODE, ThrottleReason::Writeback);
        m.mm.acct_reclaim_writeback(pfn);
        assert_eq!(m.effects(), []);
    }

    #[test]
    fn an_ordinary_reclaimer_waits_once_more_than_an_eighth_is_isolated() {
        let mut m = Machine::new(Rules::newest());
        let pages = "abcdefghijklmnop";
        m.add(pages, Kind::File, 0);
        m.add("qr", Kind::File, 0);
        let sc = ScanControl::direct(Gfp::KERNEL, Order(0), ZoneKind::Normal);
        let (direct, list) = (env(false), LruList::InactiveFile);
        let (q, r) = (m.page('q'), m.page('r'));
        m.mm.lru_isolate(q);
        m.mm.lru_isolate(r);
        // 16 left, 2 isolated: 16 / 8 = 2, not more.
        assert_eq!(m.mm.too_many_isolated(&direct, LRU, list, &sc), None);
        let p = m.page('p');
        m.mm.lru_isolate(p);
        let wait = Some((ThrottleReason::Isolated, Nanos::millis(20)));
        assert_eq!(m.mm.too_many_isolated(&direct, LRU, list, &sc), wait);
        assert_eq!(m.mm.too_many_isolated(&env(true), LRU, list, &sc), None, "kswapd never waits for that");
        let noio = ScanControl::direct(Gfp::NOIO, Order(0), ZoneKind::Normal);
        assert_eq!(m.mm.too_many_isolated(&direct, LRU, list, &noio), None, "15 >= 3");
    }

    #[test]
    fn until_4_12_who_finds_too_many_isolated_waits_as_for_a_device() {
        let wait = |isolation_wait| {
            let mut m = Machine::new(Rules { isolation_wait, ..rules_4_20() });
            m.add("ab", Kind::File, 0);
            let a = m.page('a');
            m.mm.lru_isolate(a);
            let sc = ScanControl::direct(Gfp::KERNEL, Order(0), ZoneKind::Normal);
            m.mm.too_many_isolated(&env(false), LRU, LruList::InactiveFile, &sc)
        };
        assert_eq!(wait(IsolationWait::Congestion), Some((ThrottleReason::Device, TENTH)));
        assert_eq!(wait(IsolationWait::Sleep), Some((ThrottleReason::Isolated, TENTH)));
        assert_eq!(wait(IsolationWait::Throttle), Some((ThrottleReason::Isolated, FIFTIETH)));
    }

    #[test]
    fn until_4_8_more_than_the_limit_and_a_tenth_under_writeback_makes_reclaimers_wait() {
        let mut m = Machine::new(Rules { vm_writeout: VmWriteout::AboveLimit, ..rules_4_20() });
        let limit = m.mm.global_dirty_limits().dirty;
        let set = |m: &mut Machine, pages: u64| {
            let now = m.mm.stat.node(NODE, NodeStat::Writeback);
            m.mm.stat.node_add(NODE, NodeStat::Writeback, pages as i64 - now as i64);
        };
        let kswapd = ScanControl::kswapd(Order(0), ZoneKind::Normal);
        let noio = ScanControl::direct(Gfp::NOIO, Order(0), ZoneKind::Normal);
        let wait = Some((ThrottleReason::Device, TENTH));
        set(&mut m, limit + limit / 10);
        assert_eq!(m.mm.throttle_vm_writeout(&kswapd, false), None, "it must be exceeded");
        set(&mut m, limit + limit / 10 + 1);
        assert_eq!([false, true].map(|waited| m.mm.throttle_vm_writeout(&kswapd, waited)), [wait; 2]);
        assert_eq!([false, true].map(|waited| m.mm.throttle_vm_writeout(&noio, waited)), [wait, None], "once");
        m.mm.rules.vm_writeout = VmWriteout::AboveHardLimit;
        m.mm.writeback.dirty_limit = limit + 10;
        assert_eq!(m.mm.throttle_vm_writeout(&kswapd, false), None, "the limit follows slowly");
        set(&mut m, (limit + 10) + (limit + 10) / 10 + 1);
        assert_eq!(m.mm.throttle_vm_writeout(&kswapd, false), wait);
        m.mm.rules.vm_writeout = VmWriteout::Nothing;
        assert_eq!(m.mm.throttle_vm_writeout(&kswapd, false), None);
        set(&mut m, 0);
    }

    #[test]
    fn direct_reclaim_is_allowed_while_half_of_the_reserve_is_free() {
        let mut m = Machine::new(rules_4_20());
        m.fill(Kind::File, 0);
        assert!(m.mm.allow_direct_reclaim(NODE));
        let zones = m.mm.nodes[0].zones.clone();
        let reserve: u64 = zones.iter().map(|&z| m.mm.wmark(z, Wmark::Min)).sum();
        let first = zones[0].index();
        for &z in &zones {
            m.mm.zones[z.index()].free_pages = 0;
        }
        m.mm.zones[first].free_pages = reserve / 2 + 1;
        assert!(m.mm.allow_direct_reclaim(NODE));
        m.mm.zones[first].free_pages = reserve / 2;
        m.mm.nodes[0].kswapd.asleep = true;
        m.effects();
        assert!(!m.mm.allow_direct_reclaim(NODE));
        assert_eq!(m.effects(), [Effect::WakeKswapd(NODE)]);
        m.mm.nodes[0].kswapd.failures = MAX_RECLAIM_RETRIES;
        assert!(m.mm.allow_direct_reclaim(NODE), "kswapd has given up");
    }

    #[test]
    fn a_zone_without_pages_on_lists_has_its_free_ones_since_6_13() {
        let mut m = Machine::new(Rules { empty_zones: EmptyZones::Nothing, ..Rules::newest() });
        m.add("a", Kind::File, 0);
        let (zone, other) = (m.mm.zone_of(m.page('a')), m.mm.zone_of(Pfn(0)));
        assert_ne!(zone, other);
        let reclaimable = |m: &Machine| [zone, other].map(|zone| m.mm.reclaimable_pages(zone));
        assert_eq!(reclaimable(&m), [1, 0]);
        m.mm.rules.empty_zones = EmptyZones::FreePages;
        assert_eq!(reclaimable(&m), [1, m.mm.zones[other.index()].free_pages]);
    }

    #[test]
    fn without_progress_reclaim_waits_at_priority_1_unless_it_is_for_a_limit() {
        let mut m = Machine::new(Rules { empty_zones: EmptyZones::Nothing, ..Rules::newest() });
        // All that could be reclaimed is being written.
        m.add("ab", Kind::File, Frame::WRITEBACK);
        let zone = m.mm.zone_of(m.page('a'));
        m.mm.stat.zone_add(zone, ZoneStat::WritePending, 2);
        let direct = ScanControl { priority: 1, ..ScanControl::direct(Gfp::KERNEL, Order(0), ZoneKind::Normal) };
        let limit = ScanControl { priority: 1, ..ScanControl::memcg(units::MemcgId(1), Gfp::KERNEL, 32, true) };
        assert_eq!(m.mm.consider_throttle(NODE, &direct), Some((ThrottleReason::NoProgress, JIFFY)));
        assert_eq!(m.mm.consider_throttle(NODE, &limit), None);
        assert_eq!(m.mm.consider_throttle(NODE, &ScanControl { priority: 2, ..direct }), None);
        m.mm.stat.zone_add(zone, ZoneStat::WritePending, -2);
    }

    #[test]
    fn until_5_15_only_a_congested_device_makes_direct_reclaim_wait() {
        let mut m = Machine::new(rules_4_20());
        m.add("a", Kind::File, Frame::WRITEBACK);
        assert_eq!(m.mm.throttle_congested(NODE), None);
        m.mm.set_device_congested(3, true);
        assert_eq!(m.mm.throttle_congested(NODE), Some((ThrottleReason::Device, Nanos::millis(100))));
        m.mm.set_device_congested(3, false);
        assert_eq!(m.mm.throttle_congested(NODE), None);
    }

    #[test]
    fn a_request_is_tried_once_more_after_20_ms_where_zone_and_device_are_congested() {
        let mut m = Machine::new(rules_4_20());
        let request = AllocRequest { gfp: Gfp::HIGHUSER_MOVABLE, order: Order(0), node: NODE };
        m.mm.set_device_congested(3, true);
        assert_eq!(m.mm.wait_before_retry(request), None, "its zone is not congested");
        m.mm.lruvec_mut(LRU).congested = true;
        assert_eq!(m.mm.wait_before_retry(request), Some((NODE, ThrottleReason::Device, Nanos::millis(20))));
        assert_eq!(m.mm.throttled(NODE, ThrottleReason::Device), 1);
        m.mm.throttle_end(NODE, ThrottleReason::Device);
        m.mm.set_device_congested(3, false);
        assert_eq!(m.mm.wait_before_retry(request), None);
    }
}
