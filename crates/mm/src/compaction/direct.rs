//! Direct compaction: an allocation compacts the zones that could serve it, one after the other.
//!
//! - **Rule**: in the order of the zonelist, zones that are deferred are passed over (not at the hardest priority). The
//!   first zone in which a block should now be free ends it. A synchronous run whose scanners met defers the zone. The
//!   best result of all zones counts. Without `__GFP_IO` nothing is done. The allocation is then tried once; a page
//!   clears the deferral of its zone.
//! - **Source**: `try_to_compact_pages()`, `compact_zone_order()` (mm/compaction.c), `__alloc_pages_direct_compact()`,
//!   `__alloc_pages_slowpath()` (mm/page_alloc.c), 4.20 and 6.12.
//! - **Since/until**: [`CompactionWithdrawn`], [`CompactionStall`], [`PageCapture`](rules::PageCapture) (capture.rs); until
//!   4.7 ([`DirectCompactionRule::AroundReclaim`]) the zone's low watermark for the request, not the result, tells whether
//!   a block should be free now, and a deferred zone counts less than one that is not worth compacting.

use rules::{CompactionStall, CompactionWithdrawn, DirectCompaction as DirectCompactionRule};
use smallvec::SmallVec;
use units::{Gfp, Nanos, Order, Pfn, ZoneId};

use super::{CompactControl, CompactPriority, CompactResult, CompactRun, CompactStep, CompactionEvent};
use crate::stat::VmEvent;
use crate::zone::{AllocFlags, CompactOutcome, Wmark, gfp_zone};
use crate::{AllocRequest, Env, Mm};

/// Direct compaction for one allocation under way (`try_to_compact_pages()`).
#[derive(Debug)]
#[must_use = "finish() gives back what is isolated"]
pub struct DirectCompaction {
    request: AllocRequest,
    priority: CompactPriority,
    flags: AllocFlags,
    zones: SmallVec<[ZoneId; 8]>,
    next: usize,
    run: Option<CompactRun>,
    /// Of the zones that count.
    best: Option<CompactResult>,
    captured: Option<Pfn>,
    stopped: bool,
    /// It gave up for its CPU, or as its task was killed.
    gave_way: bool,
    /// Every zone that was not deferred gave up for a lock (`all_zones_contended`).
    all_locked: bool,
}

/// What direct compaction gave up for (`enum compact_contended`, until 4.7).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Contention {
    /// Nothing.
    None,
    /// Its CPU was wanted by others, or its task was killed.
    Cpu,
    /// In every zone another CPU held a lock.
    Lock,
}

impl DirectCompaction {
    /// For a request above order 0; `flags` are those of its slow path.
    pub fn new(mm: &mut Mm, request: AllocRequest, flags: AllocFlags, priority: CompactPriority) -> DirectCompaction {
        let AllocRequest { order, gfp, .. } = request;
        assert!(order > Order(0), "order 0 needs no compaction");
        let zones = mm.compaction_zones(request);
        if !zones.is_empty() {
            mm.trace.emit_compaction(CompactionEvent::TryToCompactPages { order, gfp, priority });
        }
        DirectCompaction {
            request,
            priority,
            flags,
            zones,
            next: 0,
            run: None,
            best: None,
            captured: None,
            stopped: false,
            gave_way: false,
            all_locked: true,
        }
    }

    /// Another task will be entitled to this CPU after so much CPU time: where it gives up for that, it tries no other zone either.
    pub fn cpu_is_wanted_in(&mut self, mm: &Mm, time: Nanos) {
        self.run.iter_mut().for_each(|run| run.cpu_is_wanted_in(mm, time));
    }

    /// The task was killed: it gives up.
    pub fn interrupt(&mut self) {
        (self.stopped, self.gave_way) = (true, true);
        self.run.iter_mut().for_each(CompactRun::interrupt);
    }

    /// One step of the zone at hand. `Done` says the best result of all zones; nothing is held any more then.
    pub fn step(&mut self, mm: &mut Mm, env: &Env) -> CompactStep {
        if let Some(run) = &mut self.run {
            let zone = run.zone();
            mm.begin_capture(zone, self.request.order, run.migratetype, self.captured);
            let step = run.step(mm, env);
            self.captured = mm.end_capture(zone, self.captured);
            if let CompactStep::Done(_) = step {
                let result = self.end_run(mm, env);
                self.settle(mm, zone, result);
                return self.more(mm);
            }
            return step;
        }
        let Some(&zone) = self.zones.get(self.next).filter(|_| !self.stopped) else {
            return CompactStep::Done(self.best(mm));
        };
        self.next += 1;
        if self.priority > CompactPriority::MIN && mm.compaction_deferred(zone, self.request.order) {
            if !deferred_counts_least(mm) {
                self.note(CompactResult::Deferred);
            }
            return self.more(mm);
        }
        let AllocRequest { order, gfp, .. } = self.request;
        let control = CompactControl::direct(order, gfp, self.priority, gfp_zone(gfp), self.flags);
        match CompactRun::start(mm, env, zone, control) {
            Ok(run) => self.run = Some(run),
            Err(result) => {
                self.all_locked = false;
                self.settle(mm, zone, result);
            }
        }
        self.more(mm)
    }

    /// Ends the run at hand, if any: what it gives back may be captured too.
    fn end_run(&mut self, mm: &mut Mm, env: &Env) -> CompactResult {
        let Some(run) = self.run.take() else { return CompactResult::Contended };
        (self.stopped, self.gave_way) = (self.stopped | run.cpu_wanted, self.gave_way | run.cpu_wanted);
        self.all_locked &= run.contended && !run.cpu_wanted;
        let zone = run.zone();
        mm.begin_capture(zone, self.request.order, run.migratetype, self.captured);
        let result = run.finish(mm, env);
        self.captured = mm.end_capture(zone, self.captured);
        if self.captured.is_some() { CompactResult::Success } else { result }
    }

    fn more(&self, mm: &Mm) -> CompactStep {
        let left = self.run.is_some() || (!self.stopped && self.next < self.zones.len());
        if left { CompactStep::More } else { CompactStep::Done(self.best(mm)) }
    }

    /// The best result so far; if no zone counts, that all were deferred where that counts least.
    fn best(&self, mm: &Mm) -> CompactResult {
        let all_deferred = deferred_counts_least(mm) && !self.zones.is_empty();
        self.best.unwrap_or(if all_deferred { CompactResult::Deferred } else { CompactResult::Skipped })
    }

    /// What it gave up for, as those who compact around reclaim ask: a run that found no target counts as none.
    pub fn contention(&self) -> Contention {
        if self.gave_way {
            Contention::Cpu
        } else if self.all_locked && self.best.is_some_and(CompactResult::ran) {
            Contention::Lock
        } else {
            Contention::None
        }
    }

    pub(super) fn note(&mut self, result: CompactResult) {
        self.best = self.best.max(Some(result));
    }

    fn settle(&mut self, mm: &mut Mm, zone: ZoneId, result: CompactResult) {
        let order = self.request.order;
        self.note(result);
        let should_succeed = match mm.rules.direct_compaction {
            DirectCompactionRule::Priorities => result == CompactResult::Success,
            DirectCompactionRule::AroundReclaim => {
                let low = mm.wmark(zone, Wmark::Low);
                mm.zone_watermark_ok(zone, order, low, gfp_zone(self.request.gfp), self.flags)
            }
        };
        if should_succeed {
            mm.compaction_defer_reset(zone, order, false);
            (self.stopped, self.all_locked) = (true, false);
        } else if self.priority != CompactPriority::Async
            && matches!(result, CompactResult::Complete | CompactResult::PartialSkipped)
        {
            mm.defer_compaction(zone, order);
        }
    }

    /// Gives back what is held, also when abandoned before the end; the best result so far, and the block captured.
    pub fn finish(mut self, mm: &mut Mm, env: &Env) -> (CompactResult, Option<Pfn>) {
        if self.run.is_some() {
            let result = self.end_run(mm, env);
            self.note(result);
        }
        (self.best(mm), self.captured)
    }
}

/// Whether `COMPACT_DEFERRED` is the least of all results (include/linux/compaction.h, 4.4).
fn deferred_counts_least(mm: &Mm) -> bool {
    mm.rules.direct_compaction == DirectCompactionRule::AroundReclaim
}

impl CompactResult {
    /// What the decision whether to retry makes of it.
    pub fn outcome(self, rule: CompactionWithdrawn) -> CompactOutcome {
        match self {
            CompactResult::Success => CompactOutcome::Succeeded,
            CompactResult::Skipped | CompactResult::NotSuitableZone => CompactOutcome::Skipped,
            CompactResult::Complete | CompactResult::NoSuitablePage | CompactResult::Continue => CompactOutcome::Failed,
            _ if rule == CompactionWithdrawn::RaisePriority => CompactOutcome::Failed,
            _ => CompactOutcome::Withdrawn,
        }
    }
}

impl Mm {
    /// The zones that direct compaction for a request walks; none if it may not do I/O (or, until 4.7, enter a file
    /// system).
    pub fn compaction_zones(&self, request: AllocRequest) -> SmallVec<[ZoneId; 8]> {
        let needed = match self.rules.direct_compaction {
            DirectCompactionRule::Priorities => Gfp::IO,
            DirectCompactionRule::AroundReclaim => Gfp::IO.with(Gfp::FS),
        };
        if !request.gfp.contains(needed) {
            return SmallVec::new();
        }
        let (highest, local) = (gfp_zone(request.gfp), request.gfp.contains(Gfp::THISNODE));
        let zonelist = self.nodes[request.node.index()].zonelist.iter().copied();
        let allowed = |zone: &ZoneId| {
            let zone = &self.zones[zone.index()];
            zone.kind <= highest && (!local || zone.node == request.node)
        };
        zonelist.filter(allowed).collect()
    }

    /// Takes the captured block, or tries the allocation, after direct compaction. Counts `compact_stall`, and
    /// `compact_success` or `compact_fail`, unless the attempt does not count ([`CompactionStall`]); then it does nothing.
    pub fn after_direct_compaction(
        &mut self,
        env: &Env,
        request: AllocRequest,
        flags: AllocFlags,
        (result, captured): (CompactResult, Option<Pfn>),
    ) -> Option<Pfn> {
        let counts = match self.rules.compaction_stall {
            CompactionStall::Ran => result.ran(),
            CompactionStall::Every => true,
            CompactionStall::Deferred => result.ran() || result == CompactResult::Deferred,
        };
        if !counts {
            return None;
        }
        self.stat.count(VmEvent::CompactStall, 1);
        let page = captured.or_else(|| self.get_page_from_freelist(env, request, flags));
        let Some(pfn) = page else {
            self.stat.count(VmEvent::CompactFail, 1);
            return None;
        };
        let zone = self.zone_of(pfn);
        self.zones[zone.index()].compact.blockskip_flush = false;
        self.compaction_defer_reset(zone, request.order, true);
        self.stat.count(VmEvent::CompactSuccess, 1);
        page
    }

    /// Whether a costly request with `__GFP_NORETRY` fails at once after its first compaction, without reclaim.
    pub fn gives_up_after(&self, result: CompactResult, gfp: Gfp) -> bool {
        match self.rules.compaction_withdrawn {
            CompactionWithdrawn::Reclaim => result == CompactResult::Deferred,
            CompactionWithdrawn::RaisePriority => {
                matches!(result, CompactResult::Deferred | CompactResult::Skipped) || gfp.contains(Gfp::THISNODE)
            }
        }
    }
}
