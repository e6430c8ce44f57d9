//! khugepaged.
//!
//! Rule: it sleeps until a space may have huge pages; then it looks at `pages_to_scan` pages at a time, and sleeps
//! `scan_sleep_millisecs` before it goes on. The first time in such a turn that it gets no huge page it sleeps `alloc_sleep_millisecs`;
//! the second time the turn is over.
//! Source: `khugepaged()`, `khugepaged_do_scan()`, `khugepaged_wait_work()`, `khugepaged_alloc_sleep()` (mm/huge_memory.c, 3.19;
//! mm/khugepaged.c, 4.20 and 6.12). What it does is in `mm::anon`; here it sleeps, and asks for huge pages.

use mm::anon::CollapseTarget;
use sim::Ctx;
use units::Nanos;

use super::Task;
use crate::reason::SleepReason;
use crate::world::World;

/// Runs until the end of the simulation.
pub(crate) async fn khugepaged(ctx: Ctx<World>) {
    let task = Task::new(ctx);
    task.set_flags(|flags| flags.kthread = true);
    loop {
        let queue = task.ctx.with(|world, _| world.queues.khugepaged);
        if !task.look(|mm| mm.khugepaged_has_work()) {
            task.ctx.wait(queue, SleepReason::KhugepagedIdle).await;
        }
        task.khugepaged_do_scan().await;
        if task.look(|mm| mm.khugepaged_has_work()) {
            let pause = task.look(|mm| Nanos::millis(mm.tunables.khugepaged_scan_sleep_millisecs));
            task.ctx.sleep(SleepReason::KhugepagedIdle, pause).await;
        }
    }
}

impl Task {
    /// One turn.
    async fn khugepaged_do_scan(&self) {
        let pages = self.look(|mm| mm.tunables.khugepaged_pages_to_scan) as u32;
        let (mut progress, mut rounds, mut may_wait) = (0, 0, true);
        while progress < pages {
            rounds += u32::from(self.look(|mm| mm.khugepaged_between_rounds()));
            if rounds == 2 || !self.look(|mm| mm.khugepaged_has_work()) {
                return;
            }
            let scan = self.mm(|mm, _| mm.khugepaged_scan_mm_slot(pages - progress));
            progress += scan.progress;
            self.ctx.preempt_point().await;
            let Some(target) = scan.target else { continue };
            if self.collapse(target).await {
                continue;
            }
            if !std::mem::take(&mut may_wait) {
                return;
            }
            let pause = self.look(|mm| Nanos::millis(mm.tunables.khugepaged_alloc_sleep_millisecs));
            self.ctx.sleep(SleepReason::KhugepagedAlloc, pause).await;
        }
    }

    /// Gets a huge page for a region and makes it one; false if there was none.
    async fn collapse(&self, target: CollapseTarget) -> bool {
        let request = self.look(|mm| mm.khugepaged_request(target));
        let mut huge = self.mm(|mm, env| mm.alloc_pages(env, request));
        if huge.is_none() {
            huge = self.alloc_pages_slowpath(request).await;
        }
        self.mm(|mm, _| mm.khugepaged_allocated(huge.is_some()));
        let Some(pfn) = huge else { return false };
        self.mm(|mm, env| mm.collapse_huge_page(env, target, pfn));
        self.ctx.preempt_point().await;
        true
    }
}
