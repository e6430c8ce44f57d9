//! The slow path of the page allocator until 4.7.
//!
//! Rule: a request above order 0 compacts asynchronously, then every request reclaims. If the request is retried (up to
//! order 3 always; above only with `__GFP_REPEAT`, until as much as it asks for was reclaimed), all starts anew, now with
//! light-synchronous compaction. If not, it compacts so a last time. Huge pages of a fault give up as soon as compaction is
//! deferred or contended, and never compact synchronously.
//! Source: `__alloc_pages_slowpath()`, `should_alloc_retry()`, mm/page_alloc.c, 3.19.
//! Until: [`DirectCompaction::AroundReclaim`](rules::DirectCompaction), 4.7.
//! Abstracted: the wait for a congested zone before a retry gives way only.

use mm::AllocRequest;
use mm::compaction::{CompactPriority, CompactResult};
use units::{Gfp, Order, Pfn};

use super::Task;
use super::alloc::{try_after_reclaim, try_after_wakeup};

/// What tells the request of a huge page fault from others (`GFP_TRANSHUGE`), beside not waking kswapd.
const HUGE_FAULT: Gfp = Gfp::COMP.with(Gfp::NOMEMALLOC).with(Gfp::NORETRY).with(Gfp::NOWARN).with(Gfp::MOVABLE);

fn is_huge_fault(gfp: Gfp) -> bool {
    gfp.contains(HUGE_FAULT) && !gfp.contains(Gfp::KSWAPD_RECLAIM)
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
        let huge_fault = is_huge_fault(request.gfp);
        let mut priority = CompactPriority::Async;
        let mut reclaimed = 0;
        loop {
            if let Some(pfn) = self.mm(|mm, env| try_after_wakeup(mm, env, request)) {
                return Some(pfn);
            }
            if !request.gfp.contains(Gfp::DIRECT_RECLAIM) || self.memalloc() {
                return None;
            }
            let (page, result) = self.direct_compact(request, priority).await;
            if page.is_some() {
                return page;
            }
            if huge_fault && matches!(result, CompactResult::Deferred | CompactResult::Contended) {
                return None;
            }
            if !huge_fault {
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
            self.ctx.yield_now().await;
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
    fn a_huge_page_of_a_fault_is_told_by_its_flags() {
        let fault = Gfp::TRANSHUGE.with(Gfp::NORETRY);
        assert!(is_huge_fault(fault));
        assert!(!is_huge_fault(fault.with(Gfp::KSWAPD_RECLAIM)));
        assert!(!is_huge_fault(Gfp::HIGHUSER_MOVABLE.with(Gfp::NOWARN)), "that of a module");
    }
}
