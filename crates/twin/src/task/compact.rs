//! Compaction by a task: direct, and kcompactd's.
//!
//! Abstracted: a task gives way after each step only, a scan and up to 32 pages moved. Since 5.1
//! ([`AsyncAbort::BetweenZones`](rules::AsyncAbort)) it asks whether its CPU is wanted right after it may have given way, which is left out.

use mm::compaction::{CompactPriority, CompactResult, CompactStep, Contention, DirectCompaction};
use mm::{AllocRequest, Frame};
use units::Pfn;

use super::Task;
use crate::reason::SleepReason;

impl Task {
    /// Compacts the zones that a request may use, and tries the allocation once (`__alloc_pages_direct_compact`).
    pub(super) async fn direct_compact(
        &self,
        request: AllocRequest,
        priority: CompactPriority,
    ) -> (Option<Pfn>, CompactResult) {
        let (page, result, _) = self.direct_compact_contended(request, priority).await;
        (page, result)
    }

    /// The same; says what it gave up for, too.
    pub(super) async fn direct_compact_contended(
        &self,
        request: AllocRequest,
        priority: CompactPriority,
    ) -> (Option<Pfn>, CompactResult, Contention) {
        if request.order.0 == 0 || self.mm(|mm, _| mm.rules.compaction == rules::Compaction::NotBuilt) {
            return (None, CompactResult::Skipped, Contention::None);
        }
        let before = self.set_flags(|flags| flags.memalloc = true);
        let stall = self.memstall_enter();
        let (outcome, contention) = self.try_to_compact_pages(request, priority).await;
        self.memstall_leave(stall);
        self.restore_flags(before);
        let page = self.mm(|mm, env| {
            let flags = mm.gfp_to_alloc_flags(env, request);
            mm.after_direct_compaction(env, request, flags, outcome)
        });
        (page, outcome.0, contention)
    }

    /// The best result of all zones with the block captured, and what was given up for.
    async fn try_to_compact_pages(
        &self,
        request: AllocRequest,
        priority: CompactPriority,
    ) -> ((CompactResult, Option<Pfn>), Contention) {
        let mut run = self.mm(|mm, env| {
            let flags = mm.gfp_to_alloc_flags(env, request);
            DirectCompaction::new(mm, request, flags, priority)
        });
        loop {
            let wanted_in = self.ctx.with(|_, ctl| ctl.until_preempted());
            self.mm(|mm, _| run.cpu_is_wanted_in(mm, wanted_in));
            if self.fatal_signal_pending() {
                run.interrupt();
            }
            match self.mm(|mm, env| run.step(mm, env)) {
                CompactStep::Done(_) => break,
                step => self.after_compact_step(step).await,
            }
        }
        let contention = run.contention();
        (self.mm(|mm, env| run.finish(mm, env)), contention)
    }

    /// Sleeps or gives way as a step of compaction says.
    pub(crate) async fn after_compact_step(&self, step: CompactStep) {
        match step {
            CompactStep::More | CompactStep::Done(_) => self.ctx.preempt_point().await,
            CompactStep::Wait(pfn) => self.wait_on_page_bit(pfn, Frame::LOCKED | Frame::WRITEBACK).await,
            CompactStep::Throttle(time) => self.ctx.sleep(SleepReason::ReclaimThrottle, time).await,
        }
    }

    /// Whether another task waits for this CPU (`need_resched()`); the end of a slice alone does not count.
    pub(super) fn cpu_is_wanted(&self) -> bool {
        self.ctx.with(|_, ctl| ctl.need_resched() && ctl.nr_running(ctl.cpu()) > 1)
    }
}
