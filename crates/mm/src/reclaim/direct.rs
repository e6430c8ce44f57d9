//! Reclaim by a task whose allocation found too little memory, or whose group is above a limit: [`DirectReclaim`].
//!
//! Rule: first wait while the reserve is nearly gone ([`ReserveThrottle`], 3.6). Then scan each node of the zonelist once at priority 12, and again
//! at 11, 10, ... until 32 pages are reclaimed, a zone is ready for compaction, or priority 0 is done. For a costly order,
//! zones that compaction can serve are left alone.
//! Source: `try_to_free_pages()`, `do_try_to_free_pages()`, `shrink_zones()`, `throttle_direct_reclaim()`
//! `try_to_free_mem_cgroup_pages()` (mm/vmscan.c, 4.20; 6.12).
//! Since/until: until 4.10 a reclaimer woke the flushers itself after scanning 1.5 times its target ([`FlusherWakeup`]),
//! until 3.10 it naps between priorities ([`WritebackThrottle`]), until 3.4 it takes the swap token away at priority 0; since 5.16 it waits
//! at priority 1 if there is no progress, unless it is for a limit. Since 5.5, if nothing at all was reclaimed and active pages were spared, all
//! is tried again without sparing them; since 6.8, before that, through all groups, even if there is the root group alone; at last without sparing groups within
//! `memory.low`.
//! Abstracted: a killed task is told to end by its caller.
//! Omitted: cpusets.

use rules::{FlusherWakeup, ReserveThrottle, SlabCaller, WritebackThrottle};
use units::{Gfp, MemcgId, Nanos, NodeId, Order, ZoneId};

use super::shrinker::{SlabPass, SlabStep};
use super::throttle::Wait;
use super::{DEF_PRIORITY, ScanControl, ShrinkNode, Step, ThrottleReason};
use crate::stat::{VmEvent, ZoneEvent};
use crate::trace::TraceEvent;
use crate::{AllocRequest, Effect, Env, LruvecId, Mm, WakeFlusher, ZoneKind};

#[derive(Debug)]
enum Phase {
    /// The reserve is to be looked at; whether it has been before.
    Reserve(bool),
    /// The priorities begin.
    Begin,
    /// The place in the zonelist to go on at.
    Zones(usize),
    /// A node is scanned; then the place to go on at.
    Shrink(ShrinkNode, usize),
    /// The shrinkers, where the reclaimer calls them.
    Slab(SlabPass),
    /// All nodes were scanned at this priority.
    Judge,
    Next,
    Ended,
}

/// One direct reclaim.
#[derive(Debug)]
pub struct DirectReclaim {
    sc: ScanControl,
    node: NodeId,
    this_node_only: bool,
    last_lists: Option<LruvecId>,
    first_node: Option<NodeId>,
    /// A zone with LRU lists of its own was, or may be, reclaimed at this priority.
    reclaimable: bool,
    /// Pages scanned at all priorities.
    total_scanned: u64,
    phase: Phase,
}

impl DirectReclaim {
    /// Reclaim for a request that may use zones up to `highest`.
    pub fn new(request: AllocRequest, highest: ZoneKind) -> DirectReclaim {
        DirectReclaim {
            sc: ScanControl::direct(request.gfp, request.order, highest),
            node: request.node,
            this_node_only: request.gfp.contains(Gfp::THISNODE),
            last_lists: None,
            first_node: None,
            reclaimable: false,
            total_scanned: 0,
            phase: Phase::Reserve(false),
        }
    }

    /// Reclaim for a task on a node whose group `target` is above a limit by so many pages.
    pub fn memcg(target: MemcgId, gfp: Gfp, pages: u64, may_swap: bool, node: NodeId) -> DirectReclaim {
        DirectReclaim {
            sc: ScanControl::memcg(target, gfp, pages, may_swap),
            node,
            this_node_only: false,
            last_lists: None,
            first_node: None,
            reclaimable: false,
            total_scanned: 0,
            phase: Phase::Reserve(false),
        }
    }

    /// Progress as the allocator sees it: pages reclaimed, or 1 if compaction should be tried instead; 1 also while a zone
    /// with LRU lists of its own is worth another scan.
    pub fn progress(&self) -> u64 {
        match self.sc.nr_reclaimed {
            0 => u64::from(self.sc.compaction_ready || self.reclaimable),
            pages => pages,
        }
    }

    /// Does one batch.
    pub fn step(&mut self, mm: &mut Mm, env: &Env) -> Step {
        debug_assert!(!env.task.kswapd);
        loop {
            match &mut self.phase {
                Phase::Reserve(waited) => {
                    let waited = *waited;
                    if let Some(step) = self.look_at_reserve(mm, waited) {
                        return step;
                    }
                }
                Phase::Begin => {
                    if self.sc.is_global() {
                        mm.stat.count_zone(ZoneEvent::Allocstall, self.sc.reclaim_idx, 1);
                    }
                    self.begin_priority();
                }
                Phase::Zones(at) => {
                    let at = *at;
                    self.next_zone(mm, at);
                }
                Phase::Shrink(shrink, at) => match shrink.step(mm, env, &mut self.sc) {
                    Step::Done => {
                        self.reclaimable |= shrink.reclaimable(mm);
                        self.phase = Phase::Zones(*at);
                    }
                    other => return other,
                },
                Phase::Slab(pass) => match pass.step(mm, env, self.node, &mut self.sc) {
                    SlabStep::More => return Step::More,
                    SlabStep::Wait(bio) => return Step::Wait(bio),
                    SlabStep::Done => self.phase = Phase::Judge,
                },
                Phase::Judge => {
                    self.phase = Phase::Next;
                    self.total_scanned += self.sc.nr_scanned;
                    self.wake_flushers(mm);
                    if let Some(node) = self.first_node
                        && let Some((reason, timeout)) = mm.consider_throttle(node, &self.sc).or_else(|| self.nap(mm))
                    {
                        mm.throttle_begin(node, reason);
                        return Step::Throttle(reason, timeout);
                    }
                }
                Phase::Next => self.next_priority(mm),
                Phase::Ended => return Step::Done,
            }
        }
    }

    /// Has as many pages written as were scanned, if many were ([`FlusherWakeup::PagesScanned`]).
    fn wake_flushers(&mut self, mm: &mut Mm) {
        let target = self.sc.nr_to_reclaim;
        let many = self.total_scanned > target + target / 2 && self.sc.nr_reclaimed < target;
        if many && mm.rules.flusher_wakeup == FlusherWakeup::PagesScanned {
            mm.effects.push(Effect::WakeFlushers(WakeFlusher::Pages(self.total_scanned)));
            self.sc.may_writepage = true;
        }
    }

    /// Until 3.10: the wait for the first zone, if it is congested, before a priority below 9.
    fn nap(&self, mm: &Mm) -> Option<Wait> {
        let sc = &self.sc;
        let wanted = mm.rules.writeback_throttle != WritebackThrottle::Flags
            && sc.nr_reclaimed < sc.nr_to_reclaim
            && sc.nr_scanned > 0
            && sc.is_desperate();
        let zones = mm.nodes[self.node.index()].zonelist.iter();
        let first = zones.copied().find(|&zone| wanted && self.is_eligible(mm, zone))?;
        mm.wait_iff_congested(mm.zones[first.index()].lru)
    }

    /// Node that a wait is counted on, for [`Mm::throttle_end`].
    pub fn throttled_node(&self, mm: &Mm) -> NodeId {
        match &self.phase {
            Phase::Reserve(_) => self.reserve_node(mm).unwrap_or(self.node),
            Phase::Next => self.first_node.unwrap_or(self.node),
            _ => self.last_lists.map_or(self.node, |lru| lru.node),
        }
    }

    fn begin_priority(&mut self) {
        self.sc.nr_scanned = 0;
        self.last_lists = None;
        self.first_node = None;
        self.reclaimable = false;
        self.phase = Phase::Zones(0);
    }

    /// Node of the first zone that kernel memory could come from.
    fn reserve_node(&self, mm: &Mm) -> Option<NodeId> {
        let highest = self.sc.reclaim_idx.min(ZoneKind::Normal);
        let zones = mm.nodes[self.node.index()].zonelist.iter();
        zones.map(|z| &mm.zones[z.index()]).find(|z| z.kind <= highest).map(|z| z.node)
    }

    /// Who is short of memory itself waits once for at most a second if the caller may hold file system locks, else until there is a reserve.
    fn look_at_reserve(&mut self, mm: &mut Mm, waited: bool) -> Option<Step> {
        let enters_fs = self.sc.gfp.contains(Gfp::FS);
        let waits = mm.rules.reserve_throttle == ReserveThrottle::HalfOfReserve && self.sc.is_global();
        let node = self.reserve_node(mm).filter(|_| waits && (enters_fs || !waited));
        if let Some(node) = node
            && !mm.allow_direct_reclaim(node)
        {
            mm.stat.count(VmEvent::PgscanDirectThrottle, u64::from(!waited));
            mm.throttle_begin(node, ThrottleReason::Reserve);
            self.phase = Phase::Reserve(true);
            return Some(Step::Throttle(ThrottleReason::Reserve, if enters_fs { Nanos::MAX } else { Nanos::secs(1) }));
        }
        let ScanControl { order, gfp, reclaim_idx: highest, .. } = self.sc;
        mm.trace.emit(TraceEvent::DirectReclaimBegin { memcg: !self.sc.is_global(), order, gfp, highest });
        self.phase = Phase::Begin;
        None
    }

    /// Goes on in the zonelist.
    fn next_zone(&mut self, mm: &mut Mm, at: usize) {
        let Some(&zone) = mm.nodes[self.node.index()].zonelist.get(at) else {
            self.phase = self.slab_pass(mm).map_or(Phase::Judge, Phase::Slab);
            return;
        };
        self.phase = Phase::Zones(at + 1);
        if !self.is_eligible(mm, zone) {
            return;
        }
        let mut lru = mm.zones[zone.index()].lru;
        if !self.sc.is_global() {
            lru = mm.lruvec_of_memcg(lru.node, self.sc.target);
        }
        if self.sc.priority != DEF_PRIORITY && mm.zone_with(lru).is_some_and(|zone| mm.zone_given_up(zone)) {
            return;
        }
        if self.sc.order > Order::COSTLY && mm.compaction_ready(zone, &self.sc) {
            self.sc.compaction_ready = true;
            return;
        }
        self.first_node.get_or_insert(lru.node);
        if self.last_lists != Some(lru) {
            self.last_lists = Some(lru);
            self.phase = Phase::Shrink(ShrinkNode::new(lru), at + 1);
        }
    }

    /// The shrinkers' pass after a priority, by the pages of all zones that the request may use ([`SlabCaller`]).
    fn slab_pass(&self, mm: &Mm) -> Option<SlabPass> {
        if mm.rules.slab_caller != SlabCaller::Reclaimer {
            return None;
        }
        let zones = mm.nodes[self.node.index()].zonelist.iter().filter(|zone| self.is_eligible(mm, **zone));
        let pages = zones.map(|zone| mm.reclaimable_pages(*zone)).sum();
        Some(SlabPass::new(mm, &self.sc, self.sc.nr_scanned, pages))
    }

    fn is_eligible(&self, mm: &Mm, zone: ZoneId) -> bool {
        let zone = &mm.zones[zone.index()];
        zone.managed > 0 && zone.kind <= self.sc.reclaim_idx && (!self.this_node_only || zone.node == self.node)
    }

    fn next_priority(&mut self, mm: &mut Mm) {
        let sc = &mut self.sc;
        if sc.nr_reclaimed < sc.nr_to_reclaim && !sc.compaction_ready && sc.priority > 0 {
            sc.may_writepage |= sc.is_desperate();
            sc.priority -= 1;
            if sc.priority == 0 {
                mm.disable_swap_token();
            }
            self.begin_priority();
            return;
        }
        self.end_of_priorities(mm);
        let sc = &mut self.sc;
        if sc.nr_reclaimed == 0 && !sc.compaction_ready && sc.tries_harder(mm) {
            sc.priority = DEF_PRIORITY;
            self.phase = Phase::Begin;
            return;
        }
        let (memcg, nr_reclaimed) = (!self.sc.is_global(), self.progress());
        mm.trace.emit(TraceEvent::DirectReclaimEnd { memcg, nr_reclaimed });
        self.phase = Phase::Ended;
    }

    /// Remembers the refaults so far, and takes back that the group at its limit is congested.
    fn end_of_priorities(&self, mm: &mut Mm) {
        for node in (0..mm.nodes.len()).map(|n| NodeId(n as u8)) {
            let zones = &mm.nodes[node.index()].zones;
            if zones.iter().any(|&z| self.is_eligible(mm, z)) {
                mm.snapshot_refaults(node, self.sc.target);
                if !self.sc.is_global() {
                    let lru = mm.lruvec_of_memcg(node, self.sc.target);
                    mm.lruvec_mut(lru).congested = false;
                }
            }
        }
    }
}
