//! Compaction by a task: direct, and kcompactd's.

use mm::AllocRequest;
use mm::compaction::{CompactControl, CompactPriority, CompactResult, CompactRun, CompactStep};
use mm::zone::gfp_zone;
use mm::Frame;
use units::{Gfp, ZoneId};

use super::Task;
use crate::reason::SleepReason;

impl Task {
    /// Compacts the zones that a request may use, until one has what it needs (`try_to_compact_pages`).
    pub(super) async fn try_to_compact_pages(
        &self,
        request: AllocRequest,
        priority: CompactPriority,
    ) -> CompactResult {
        if !request.gfp.contains(Gfp::IO) {
            return CompactResult::Skipped;
        }
        let mut best = CompactResult::Skipped;
        let highest = gfp_zone(request.gfp);
        let flags = self.mm(|mm, env| mm.gfp_to_alloc_flags(env, request));
        for zone in self.mm(|mm, _| mm.compaction_zones(request)) {
            if priority > CompactPriority::MIN && self.mm(|mm, _| mm.compaction_deferred(zone, request.order)) {
                best = best.max(CompactResult::Deferred);
                continue;
            }
            let control = CompactControl::direct(request.order, request.gfp, priority, highest, flags);
            let result = self.compact_zone(zone, control).await;
            best = best.max(result);
            if result == CompactResult::Success {
                self.mm(|mm, _| mm.compaction_defer_reset(zone, request.order, false));
                break;
            }
            let tried = matches!(result, CompactResult::Complete | CompactResult::PartialSkipped);
            if priority != CompactPriority::Async && tried {
                self.mm(|mm, _| mm.defer_compaction(zone, request.order));
            }
            let contended = priority == CompactPriority::Async && self.ctx.with(|_, ctl| ctl.need_resched());
            if contended || self.oom_killed() {
                break;
            }
        }
        best
    }

    /// One zone (`compact_zone`).
    pub(super) async fn compact_zone(&self, zone: ZoneId, control: CompactControl) -> CompactResult {
        let mut run = match self.mm(|mm, env| CompactRun::start(mm, env, zone, control)) {
            Ok(run) => run,
            Err(result) => return result,
        };
        loop {
            if self.ctx.with(|_, ctl| ctl.need_resched()) {
                run.cpu_is_wanted();
            }
            match self.mm(|mm, env| run.step(mm, env)) {
                CompactStep::More => self.ctx.preempt_point().await,
                CompactStep::Wait(pfn) => {
                    self.wait_on_page_bit(pfn, Frame::LOCKED | Frame::WRITEBACK).await;
                }
                CompactStep::Throttle(time) => self.ctx.sleep(SleepReason::ReclaimThrottle, time).await,
                CompactStep::Done(_) => break,
            }
            if self.oom_killed() {
                run.interrupt();
            }
        }
        self.mm(|mm, env| run.finish(mm, env))
    }
}
