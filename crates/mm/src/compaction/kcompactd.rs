//! kcompactd: compacts a node in the background after kswapd.
//!
//! - **Rule**: who wakes it raises the order and lowers the highest zone that it is to serve; it is woken only if it
//!   sleeps and some zone suits. It compacts each zone up to that one unless deferred or unsuitable, light-synchronously
//!   and within the skip hints; once it compacted a zone from its end, from the ends of those that follow, whatever they remember, as the
//!   request is one for all. A zone whose scanners met is deferred after every CPU's page lists are drained; where a
//!   block should be free the deferral is relaxed. A request that came meanwhile for a higher order stays.
//! - **Source**: `wakeup_kcompactd()`, `kcompactd_node_suitable()`, `kcompactd_do_work()`, `kcompactd()`
//!   (mm/compaction.c, 4.20 and 6.12).
//! - **Since**: 4.6.
//! - **Abstracted**: all zones' page lists are drained, not only the zone's.
//!
//! What it does of its own accord is in proactive.rs.

use rules::BackgroundCompaction;
use units::{NodeId, Order, ZoneId};

use super::{CompactControl, CompactResult, CompactRun, CompactStep, CompactionEvent};
use crate::stat::VmEvent;
use crate::zone::{AllocFlags, Wmark};
use crate::{Effect, Env, Mm, ZoneKind};

impl Mm {
    /// Whether compaction may help in a zone that kcompactd is asked to serve (`kcompactd_node_suitable()`).
    pub fn kcompactd_node_suitable(&mut self, node: NodeId) -> bool {
        let state = &self.nodes[node.index()].kcompactd;
        let (order, highest) = (state.max_order, state.highest_zone.unwrap_or(ZoneKind::Movable));
        (0..self.nodes[node.index()].zones.len()).any(|at| {
            let zone = self.nodes[node.index()].zones[at];
            self.zones[zone.index()].kind <= highest
                && self.compaction_suitable(zone, order, AllocFlags::only(Wmark::Min), highest)
                    == CompactResult::Continue
        })
    }

    /// Asks the kcompactd of a node to make blocks of an order (`wakeup_kcompactd()`).
    pub fn wakeup_kcompactd(&mut self, node: NodeId, order: Order, highest: ZoneKind) {
        if order == Order(0) || self.rules.background_compaction == BackgroundCompaction::Kswapd {
            return;
        }
        let state = &mut self.nodes[node.index()].kcompactd;
        state.max_order = state.max_order.max(order);
        state.highest_zone = Some(state.highest_zone.map_or(highest, |old| old.min(highest)));
        if state.running || !self.kcompactd_node_suitable(node) {
            return;
        }
        self.charge(self.costs.wake_up);
        self.trace.emit_compaction(CompactionEvent::WakeupKcompactd { node, order, highest });
        self.effects.push(Effect::WakeKcompactd(node, order));
    }
}

/// One round of kcompactd under way (`kcompactd_do_work()`).
#[derive(Debug)]
#[must_use = "finish() gives back what is isolated"]
pub struct KcompactdWork {
    node: NodeId,
    order: Order,
    highest: ZoneKind,
    next: usize,
    pub(super) run: Option<CompactRun>,
    /// A zone was compacted from its end, and all that follow are, too (`cc->whole_zone`).
    pub(super) whole_zone: bool,
}

impl KcompactdWork {
    /// Takes up what is asked for; `None` if nothing is, and kcompactd sleeps. To be asked again after each round.
    pub fn begin(mm: &mut Mm, node: NodeId) -> Option<KcompactdWork> {
        let leaves_out = mm.rules.proactive_compaction.leaves_out_looks();
        let state = &mut mm.nodes[node.index()].kcompactd;
        state.running = state.max_order > Order(0) && !state.proactive_trigger;
        if !state.running {
            return None;
        }
        if !leaves_out {
            // What it has been asked for ends the time of its being of no use.
            state.proactive_defer = 0;
        }
        let (order, highest) = (state.max_order, state.highest_zone.unwrap_or(ZoneKind::Movable));
        mm.trace.emit_compaction(CompactionEvent::KcompactdWake { node, order, highest });
        mm.stat.count(VmEvent::CompactDaemonWake, 1);
        Some(KcompactdWork { node, order, highest, next: 0, run: None, whole_zone: false })
    }

    /// One step of the zone at hand. `Done` ends the round; nothing is held any more then.
    pub fn step(&mut self, mm: &mut Mm, env: &Env) -> CompactStep {
        if let Some(run) = &mut self.run {
            let step = run.step(mm, env);
            let CompactStep::Done(_) = step else { return step };
            let zone = run.zone();
            let result = self.run.take().map_or(CompactResult::Contended, |run| run.finish(mm, env));
            self.settle(mm, zone, result);
            return CompactStep::More;
        }
        let Some(&zone) = mm.nodes[self.node.index()].zones.get(self.next) else {
            self.end(mm);
            return CompactStep::Done(CompactResult::Continue);
        };
        self.next += 1;
        let kind = mm.zones[zone.index()].kind;
        if kind > self.highest || mm.compaction_deferred(zone, self.order) {
            return CompactStep::More;
        }
        let control =
            CompactControl { whole_zone: self.whole_zone, ..CompactControl::daemon(self.order, self.highest) };
        // The zone's own kind counts here, the request's in the run.
        let suits = mm.compaction_suitable(zone, self.order, control.alloc_flags, kind);
        if suits == CompactResult::Continue {
            match CompactRun::start(mm, env, zone, control) {
                Ok(run) => {
                    self.whole_zone = run.scanners.whole_zone;
                    self.run = Some(run);
                }
                Err(result) => self.settle(mm, zone, result),
            }
        }
        CompactStep::More
    }

    fn settle(&self, mm: &mut Mm, zone: ZoneId, result: CompactResult) {
        match result {
            CompactResult::Success => mm.compaction_defer_reset(zone, self.order, false),
            CompactResult::PartialSkipped | CompactResult::Complete => {
                mm.drain_pcp_all();
                mm.defer_compaction(zone, self.order);
            }
            _ => {}
        }
    }

    fn end(&self, mm: &mut Mm) {
        let state = &mut mm.nodes[self.node.index()].kcompactd;
        if state.max_order <= self.order {
            state.max_order = Order(0);
        }
        if state.highest_zone.unwrap_or(ZoneKind::Movable) >= self.highest {
            state.highest_zone = None;
        }
    }

    /// Gives up a round that has not ended.
    pub fn finish(mut self, mm: &mut Mm, env: &Env) {
        if let Some(run) = self.run.take() {
            run.finish(mm, env);
        }
    }
}
