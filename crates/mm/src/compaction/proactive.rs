//! Proactive compaction: kcompactd compacts a node whose free memory is scattered, before anybody needs a large block.
//!
//! - **Rule**: every half second since boot (`HPAGE_FRAG_CHECK_INTERVAL_MSEC`) kcompactd looks at the node's score: the sum over its zones
//!   of the share of free memory that lies in blocks smaller than a huge page, in percent, weighted by the zone's part of
//!   the node. Above the high mark, which is 10 above the low one, it compacts every zone until its score is no higher
//!   than the low mark, `100 - vm.compaction_proactiveness` but at least 5. Neither starts nor goes on while kswapd
//!   runs. If the score has not gone down, the next look comes 64 times as late, unless kcompactd is woken before; in 5.10
//!   it leaves out 64 looks at which it would start. Writing the sysctl makes it look at once since 5.15. With a
//!   proactiveness of 0 it does not look.
//! - **Source**: `fragmentation_score_zone()` to `should_proactive_compact_node()`, `compact_node()`, `kcompactd()`,
//!   `compaction_proactiveness_sysctl_handler()` (mm/compaction.c), `extfrag_for_order()` (mm/vmstat.c), 5.10, 6.1 and 6.12.
//! - **Since/until**: [`ProactiveCompaction`].
//! - **Abstracted**: kswapd runs unless it sleeps of its own accord; one that waits for a lock or for writeback counts as
//!   running.

use rules::ProactiveCompaction;
use units::{Nanos, NodeId, Order, PAGEBLOCK_ORDER, ZoneId};

use super::{CompactControl, CompactResult, CompactRun, CompactStep, CompactionEvent};
use crate::zone::Zone;
use crate::{Effect, Env, Mm};

/// `HPAGE_FRAG_CHECK_INTERVAL_MSEC` is 125 ticks of 4 ms. A timer of that length waits in a level of the wheel with a grain
/// of 8 ticks, to which its end is rounded up, and beyond: 128 ticks (`calc_index()`, kernel/time/timer.c). One 64 times
/// as long has a grain of 512 ticks and ends after 64 times as many.
pub const PROACTIVE_INTERVAL: Nanos = Nanos::millis(512);
/// log2 of how much later the next look comes if one was of no use (`COMPACT_MAX_DEFER_SHIFT`).
const DEFER_SHIFT: u32 = 6;
/// Least of the low mark, in percent.
const LEAST_LOW: u64 = 5;
/// From the low mark to the high one, in percent.
const HIGH_ABOVE_LOW: u64 = 10;

/// Share of a zone's free memory in blocks smaller than a huge page, in percent (`fragmentation_score_zone()`).
fn fragmentation_score(zone: &Zone) -> u64 {
    let blocks =
        |order: usize| zone.free_area[order].lists.iter().map(|list| u64::from(list.len())).sum::<u64>() << order;
    let free: u64 = (0..zone.free_area.len()).map(blocks).sum();
    let whole: u64 = (PAGEBLOCK_ORDER.index()..zone.free_area.len()).map(blocks).sum();
    ((free - whole) * 100).checked_div(free).unwrap_or(0)
}

/// The score of a zone by its part of a node with so many pages (`fragmentation_score_zone_weighted()`).
fn weighted_score(zone: &Zone, present: u64) -> u64 {
    zone.present * fragmentation_score(zone) / (present + 1)
}

/// Score at which compaction ends (`fragmentation_score_wmark(true)`).
fn low_mark(proactiveness: u64) -> u64 {
    (100 - proactiveness).max(LEAST_LOW)
}

/// Score above which it begins (`fragmentation_score_wmark(false)`).
fn high_mark(proactiveness: u64) -> u64 {
    (low_mark(proactiveness) + HIGH_ABOVE_LOW).min(100)
}

impl Mm {
    /// Fragmentation score of a node, in percent (`fragmentation_score_node()`).
    pub fn fragmentation_score(&self, node: NodeId) -> u64 {
        let zones = || self.nodes[node.index()].zones.iter().map(|zone| &self.zones[zone.index()]);
        let present: u64 = zones().map(|zone| zone.present).sum();
        zones().map(|zone| weighted_score(zone, present)).sum()
    }

    /// The score of a zone that ends its compaction (`fragmentation_score_zone()`).
    fn score_of_zone(&self, zone: &Zone) -> u64 {
        if self.rules.proactive_compaction != ProactiveCompaction::ScoreWeighted {
            return fragmentation_score(zone);
        }
        let zones = self.nodes[zone.node.index()].zones.iter();
        weighted_score(zone, zones.map(|other| self.zones[other.index()].present).sum())
    }

    /// The run begins between two looks of every kcompactd: the next is this far off.
    pub fn set_kcompactd_phase(&mut self, first: Nanos) {
        for node in &mut self.nodes {
            node.kcompactd.first_look = Some(first);
        }
    }

    /// How long kcompactd, which goes to sleep, sleeps at most; none if until it is woken.
    pub fn kcompactd_timeout(&mut self, node: NodeId) -> Option<Nanos> {
        self.trace.emit_compaction(CompactionEvent::KcompactdSleep { node });
        let looks = self.rules.proactive_compaction != ProactiveCompaction::Never;
        let state = &mut self.nodes[node.index()].kcompactd;
        if let Some(first) = state.first_look.take().filter(|_| looks && self.tunables.compaction_proactiveness > 0) {
            return Some(first);
        }
        let late = state.proactive_defer > 0 && !self.rules.proactive_compaction.leaves_out_looks();
        let interval = Nanos(PROACTIVE_INTERVAL.0 << if late { DEFER_SHIFT } else { 0 });
        (looks && self.tunables.compaction_proactiveness > 0).then_some(interval)
    }

    /// Whether kcompactd looks at its node's fragmentation now.
    pub fn kcompactd_looks(&self, node: NodeId) -> bool {
        self.nodes[node.index()].kcompactd.proactive_trigger
    }

    /// kcompactd has slept its time without being asked for anything: it looks.
    pub fn kcompactd_time_to_look(&mut self, node: NodeId) {
        let state = &mut self.nodes[node.index()].kcompactd;
        state.proactive_trigger |= state.max_order == Order(0);
    }

    /// The proactiveness was written: kcompactd of every node looks at once.
    pub(crate) fn trigger_proactive_compaction(&mut self) {
        let rule = self.rules.proactive_compaction;
        let deaf = rule == ProactiveCompaction::Never || rule.leaves_out_looks();
        if deaf || self.tunables.compaction_proactiveness == 0 {
            return;
        }
        for node in 0..self.nodes.len() {
            let state = &mut self.nodes[node].kcompactd;
            if !state.proactive_trigger {
                state.proactive_trigger = true;
                self.effects.push(Effect::WakeKcompactd(NodeId(node as u8), PAGEBLOCK_ORDER));
            }
        }
    }

    fn should_proactive_compact_node(&self, node: NodeId) -> bool {
        let proactiveness = self.tunables.compaction_proactiveness;
        let idle = self.nodes[node.index()].kswapd.asleep;
        proactiveness > 0 && idle && self.fragmentation_score(node) > high_mark(proactiveness)
    }

    /// Whether proactive compaction of a zone goes on.
    pub(super) fn proactive_verdict(&self, zone: ZoneId) -> CompactResult {
        let state = &self.zones[zone.index()];
        if !self.nodes[state.node.index()].kswapd.asleep {
            return CompactResult::PartialSkipped;
        }
        let fragmented = self.score_of_zone(state) > low_mark(self.tunables.compaction_proactiveness);
        if fragmented { CompactResult::Continue } else { CompactResult::Success }
    }
}

/// One round over all zones of a fragmented node (`compact_node()`).
#[derive(Debug)]
#[must_use = "finish() gives back what is isolated"]
pub struct ProactiveWork {
    node: NodeId,
    score_before: u64,
    next: usize,
    run: Option<CompactRun>,
}

impl ProactiveWork {
    /// kcompactd looks at its node; `None` if it sleeps again.
    pub fn begin(mm: &mut Mm, node: NodeId) -> Option<ProactiveWork> {
        let fragmented = mm.should_proactive_compact_node(node);
        let score_before = mm.fragmentation_score(node);
        let leaves_out = mm.rules.proactive_compaction.leaves_out_looks();
        let state = &mut mm.nodes[node.index()].kcompactd;
        let starts = fragmented && !(leaves_out && state.proactive_defer > 0);
        if !leaves_out {
            state.proactive_defer = 0;
        } else if fragmented {
            state.proactive_defer = state.proactive_defer.saturating_sub(1);
        }
        state.running = starts;
        if !starts {
            state.proactive_trigger = false;
        }
        starts.then_some(ProactiveWork { node, score_before, next: 0, run: None })
    }

    /// One step of the zone at hand. `Done` ends the round; nothing is held any more then.
    pub fn step(&mut self, mm: &mut Mm, env: &Env) -> CompactStep {
        if let Some(run) = &mut self.run {
            let step = run.step(mm, env);
            if let (CompactStep::Done(_), Some(run)) =
                (step, self.run.take_if(|_| matches!(step, CompactStep::Done(_))))
            {
                run.finish(mm, env);
                return CompactStep::More;
            }
            return step;
        }
        let Some(&zone) = mm.nodes[self.node.index()].zones.get(self.next) else {
            self.end(mm);
            return CompactStep::Done(CompactResult::Continue);
        };
        self.next += 1;
        self.run = CompactRun::start(mm, env, zone, CompactControl::proactive()).ok();
        CompactStep::More
    }

    fn end(&self, mm: &mut Mm) {
        let deferred = mm.fragmentation_score(self.node) >= self.score_before;
        let state = &mut mm.nodes[self.node.index()].kcompactd;
        state.proactive_defer = if deferred { 1 << DEFER_SHIFT } else { 0 };
        state.proactive_trigger = false;
    }

    /// Gives up a round that has not ended.
    pub fn finish(mut self, mm: &mut Mm, env: &Env) {
        if let Some(run) = self.run.take() {
            run.finish(mm, env);
        }
    }
}
