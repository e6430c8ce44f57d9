//! The slow path of the page allocator until 4.7.
//!
//! Rule: a request above order 0 compacts asynchronously, then every request reclaims. If the request is retried (up to
//! order 3 always; above only with `__GFP_REPEAT`, until as much as it asks for was reclaimed), it waits if the zone that it
//! prefers is congested, and all starts anew, now with light-synchronous compaction. If not, it compacts so a last time. Huge
//! pages give up as soon as compaction is deferred, or every zone's was contended for a lock; those of a fault also if its CPU
//! was wanted, and they never compact synchronously, as khugepaged does.
//! Source: `__alloc_pages_slowpath()`, `should_alloc_retry()`, mm/page_alloc.c, 3.19.
//! Until: [`DirectCompaction::AroundReclaim`](rules::DirectCompaction), 4.7.

use mm::AllocRequest;
use mm::compaction::{CompactPriority, CompactResult, Contention};
use units::{Gfp, Order, Pfn};

use super::Task;
use super::alloc::{try_after_reclaim, try_after_wakeup};

/// What tells the request for a huge page from others (`GFP_TRANSHUGE`), beside not waking kswapd.
const HUGE_PAGE: Gfp = Gfp::COMP.with(Gfp::NOMEMALLOC).with(Gfp::NORETRY).with(Gfp::NOWARN).with(Gfp::MOVABLE);

/// `is_thp_gfp_mask()`.
fn is_huge_page(gfp: Gfp) -> bool {
    gfp.contains(HUGE_PAGE) && !gfp.contains(Gfp::KSWAPD_RECLAIM)
}

/// Whether a request for a huge page fails after its first compaction.
fn huge_page_gives_up(result: CompactResult, contention: Contention, kthread: bool) -> bool {
    result == CompactResult::Deferred
        || match contention {
            Contention::None => false,
            Contention::Cpu => !kthread,
            Contention::Lock => true,
        }
}

/// Whether a request that failed starts over; `reclaimed` pages so far.
fn should_retry(request: AllocRequest, reclaimed: u64) -> bool {
    if request.gfp.contains(Gfp::NORETRY) {
        return false;
    }
    let insists = request.gfp.contains(Gfp::RETRY_MAYFAIL) && reclaimed < u64::from(request.order.pages());
    request.gfp.contains(Gfp::NOFAIL) || request.order <= Order::COSTLY || insists
}

impl Task {
    /// Serves a request that the fast path just refused; `None` if it fails.
    pub(super) async fn alloc_around_reclaim(&self, request: AllocRequest) -> Option<Pfn> {
        let huge_page = is_huge_page(request.gfp);
        let kthread = self.mm(|_, env| env.task.kthread);
        let mut priority = CompactPriority::Async;
        let mut reclaimed = 0;
        loop {
            if let Some(pfn) = self.mm(|mm, env| try_after_wakeup(mm, env, request)) {
                return Some(pfn);
            }
            if !request.gfp.contains(Gfp::DIRECT_RECLAIM) || self.memalloc() {
                return None;
            }
            let (page, result, contention) = self.direct_compact_contended(request, priority).await;
            if page.is_some() {
                return page;
            }
            if huge_page && huge_page_gives_up(result, contention, kthread) {
                return None;
            }
            if !huge_page || kthread {
                priority = CompactPriority::SyncLight;
            }
            let progress = self.direct_reclaim(request).await;
            if progress > 0
                && let Some(pfn) = self.mm(|mm, env| try_after_reclaim(mm, env, request))
            {
                return Some(pfn);
            }
            reclaimed += progress;
            if !should_retry(request, reclaimed) {
                return self.direct_compact(request, priority).await.0;
            }
            if progress == 0
                && let Some(verdict) = self.may_oom(request, progress).await
            {
                return verdict;
            }
            match self.mm(|mm, _| mm.wait_before_retry(request)) {
                Some((node, reason, timeout)) => self.throttle(node, reason, timeout).await,
                None => self.ctx.yield_now().await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use units::NodeId;

    use super::*;

    fn request(gfp: Gfp, order: u8) -> AllocRequest {
        AllocRequest { gfp, order: Order(order), node: NodeId(0) }
    }

    #[test]
    fn small_orders_are_always_retried_and_costly_ones_only_on_request() {
        assert!(should_retry(request(Gfp::KERNEL, 3), 1 << 20));
        assert!(!should_retry(request(Gfp::KERNEL, 4), 0));
        let insistent = Gfp::KERNEL.with(Gfp::RETRY_MAYFAIL);
        // Until 2^9 pages were reclaimed.
        assert!(should_retry(request(insistent, 9), 511));
        assert!(!should_retry(request(insistent, 9), 512));
        assert!(!should_retry(request(Gfp::KERNEL.with(Gfp::NORETRY), 0), 0));
        assert!(should_retry(request(Gfp::KERNEL.with(Gfp::NOFAIL), 9), 1 << 20));
    }

    #[test]
    fn a_huge_page_is_told_by_its_flags() {
        let fault = Gfp::TRANSHUGE.with(Gfp::NORETRY);
        assert!(is_huge_page(fault));
        assert!(!is_huge_page(fault.with(Gfp::KSWAPD_RECLAIM)));
        assert!(!is_huge_page(Gfp::HIGHUSER_MOVABLE.with(Gfp::NOWARN)), "that of a module");
    }

    #[test]
    fn a_wanted_cpu_makes_a_fault_give_up_and_a_lock_khugepaged_too() {
        let gives_up =
            |result, contention| [false, true].map(|kthread| huge_page_gives_up(result, contention, kthread));
        let (ran, deferred) = (CompactResult::Contended, CompactResult::Deferred);
        assert_eq!(gives_up(ran, Contention::None), [false, false], "as it found no target");
        assert_eq!(gives_up(ran, Contention::Cpu), [true, false]);
        assert_eq!(gives_up(ran, Contention::Lock), [true, true]);
        assert_eq!(gives_up(deferred, Contention::None), [true, true]);
    }
}
