//! The slow path of the page allocator.
//!
//! Rule: wake kswapd; try again at the min watermark; for costly or unmovable high orders compact first; reclaim; compact;
//! retry while there is progress; kill somebody.
//! A request that may sleep is a preemption point (`might_sleep_if()` in `__alloc_pages()`, with `CONFIG_PREEMPT_VOLUNTARY`, which
//! Debian's and Ubuntu's kernels have and all others are taken to have).
//! Source: `__alloc_pages_slowpath()`, mm/page_alloc.c, 4.20 and 6.12.
//! Until: before 4.8 the path was another one, see alloc_around_reclaim.rs.
//! Abstracted: the point is behind a request that was refused at first, where the kernel's is before the next one or at the return to user mode;
//! who wakes kswapd for a boost with a page that he got at once gives way at the end of his call, but in readahead (`Need::Resched`).
//! CPUs' page lists are emptied at once (`drain_all_pages()`), where from 4.11 to 5.19 each CPU's worker does it and the task sleeps for that.
//! Omitted: cpusets, zone lists changed by memory hotplug, warnings.

use mm::compaction::{CompactPriority, CompactResult};
use mm::slab::SlabRequest;
use mm::vfs::Need;
use mm::writeback::JournalWait;
use mm::zone::{AllocFlags, CompactRetries, ReclaimRetry};
use mm::{AllocRequest, Env, Frame, MigrateType, Mm};
use rules::DirectCompaction;
use units::{Gfp, Order, Pfn};

use super::Task;
use crate::reason::SleepReason;
use crate::standstill::Allocating;

impl Task {
    /// Serves a request that the fast path just refused, sleeping if it must and may; `None` if the request fails.
    ///
    /// What may reclaim or compact is boxed: every system call may come here, and its future is copied whole wherever it is handed over.
    pub(crate) async fn alloc_pages_slowpath(&self, request: AllocRequest) -> Option<Pfn> {
        let around_reclaim = self.look(|mm| mm.rules.direct_compaction) == DirectCompaction::AroundReclaim;
        if !around_reclaim && let Some(pfn) = self.mm(|mm, env| try_after_wakeup(mm, env, request)) {
            self.might_sleep(request).await;
            return Some(pfn);
        }
        let outer = self.says_it_allocates(Some(Allocating { request, since: self.ctx.now() }));
        let page = if around_reclaim {
            Box::pin(self.alloc_around_reclaim(request)).await
        } else {
            Box::pin(self.compact_and_reclaim(request)).await
        };
        self.says_it_allocates(outer);
        self.might_sleep(request).await;
        page
    }

    /// A preemption point for who may sleep for memory.
    async fn might_sleep(&self, request: AllocRequest) {
        if request.gfp.contains(Gfp::DIRECT_RECLAIM) {
            self.ctx.preempt_point().await;
        }
    }

    /// Notes what this task is in the slow path of; what it was in before.
    fn says_it_allocates(&self, allocating: Option<Allocating>) -> Option<Allocating> {
        let task = self.ctx.task();
        self.ctx.with(|world, _| std::mem::replace(&mut world.task_mut(task).allocating, allocating))
    }

    async fn compact_and_reclaim(&self, request: AllocRequest) -> Option<Pfn> {
        let may_reclaim = request.gfp.contains(Gfp::DIRECT_RECLAIM);
        let costly = request.order > Order::COSTLY;
        let mut retries = CompactRetries::default();
        let compact_first = request.order.0 > 0 && MigrateType::of(request.gfp) != MigrateType::Movable;
        if may_reclaim && (costly || compact_first) && !self.memalloc() {
            let (page, result) = self.direct_compact(request, CompactPriority::INITIAL).await;
            if page.is_some() {
                return page;
            }
            if costly && request.gfp.contains(Gfp::NORETRY) {
                if self.mm(|mm, _| mm.gives_up_after(result, request.gfp)) {
                    return None;
                }
                retries.priority = CompactPriority::INITIAL;
            }
        }
        self.retry_until_hopeless(request, retries).await
    }

    /// Provides what an operation on files lacks; `None` if there is no memory, or no room on the device, for it.
    pub(crate) async fn satisfy(&self, need: Need) -> Option<()> {
        match need {
            Need::Slab(cache, request) => {
                let pfn = self.slab_pages(request).await?;
                self.mm(|mm, env| mm.slab_add_page(env, cache, pfn));
            }
            Need::Page(request) => {
                let pfn = self.alloc_pages_slowpath(request).await?;
                self.mm(|mm, env| mm.vfs_add_page(env, pfn));
            }
            Need::Read(bio) => self.metadata_io(bio).await,
            Need::Resched => self.ctx.preempt_point().await,
            Need::Journal => self.wait_for_journal(JournalWait::Block).await,
            Need::Written(pfn) => self.wait_on_page_bit(pfn, Frame::LOCKED | Frame::WRITEBACK).await,
            Need::Charge(charge) => Box::pin(self.charge_memcg(charge)).await?,
            Need::Space => return self.mm(|mm, _| (mm.vfs_free_preallocations() > 0).then_some(())),
        }
        Some(())
    }

    /// Pages for a slab: those of the speculative order, or of the least one (`allocate_slab()`).
    async fn slab_pages(&self, request: SlabRequest) -> Option<Pfn> {
        if let Some(pfn) = self.alloc_pages_slowpath(request.pages).await {
            return Some(pfn);
        }
        let least = request.fallback?;
        self.might_sleep(least).await;
        match self.mm(|mm, env| mm.alloc_pages(env, least)) {
            Some(pfn) => Some(pfn),
            None => self.alloc_pages_slowpath(least).await,
        }
    }

    /// The loop of reclaim and compaction.
    async fn retry_until_hopeless(&self, request: AllocRequest, mut retries: CompactRetries) -> Option<Pfn> {
        let costly = request.order > Order::COSTLY;
        let mut no_progress_loops = 0;
        loop {
            if let Some(pfn) = self.mm(|mm, env| try_after_wakeup(mm, env, request)) {
                return Some(pfn);
            }
            if !request.gfp.contains(Gfp::DIRECT_RECLAIM) || self.memalloc() {
                return None;
            }
            let progress = self.direct_reclaim(request).await;
            if progress > 0
                && let Some(pfn) = self.mm(|mm, env| try_after_reclaim(mm, env, request))
            {
                return Some(pfn);
            }
            let (page, result) = self.direct_compact(request, retries.priority).await;
            if page.is_some() {
                return page;
            }
            if request.gfp.contains(Gfp::NORETRY) || costly && !request.gfp.contains(Gfp::RETRY_MAYFAIL) {
                return None;
            }
            let retry = self.mm(|mm, env| {
                let flags = mm.gfp_to_alloc_flags(env, request);
                let can_swap = mm.swap.free_pages() > 0;
                mm.should_reclaim_retry(request, flags, progress > 0, &mut no_progress_loops, can_swap)
            });
            match retry {
                ReclaimRetry::Again => {
                    self.ctx.yield_now().await;
                    continue;
                }
                ReclaimRetry::Wait(timeout) => {
                    self.ctx.sleep(SleepReason::ReclaimThrottle, timeout).await;
                    continue;
                }
                ReclaimRetry::GiveUp => {}
            }
            if progress > 0 && self.should_compact_retry(request, &mut retries, result) {
                continue;
            }
            if let Some(verdict) = self.may_oom(request, progress).await {
                return verdict;
            }
            no_progress_loops = 0;
        }
    }

    fn should_compact_retry(&self, request: AllocRequest, retries: &mut CompactRetries, result: CompactResult) -> bool {
        self.mm(|mm, env| {
            let flags = mm.gfp_to_alloc_flags(env, request);
            let suitable = mm.compaction_zonelist_suitable(request, flags, mm.swap.free_pages() > 0);
            retries.should_retry(request.order, result.outcome(mm.rules.compaction_withdrawn), suitable)
        })
    }

    pub(super) fn memalloc(&self) -> bool {
        self.mm(|_, env| env.task.memalloc)
    }
}

/// Wakes kswapd if the request may, and tries at the watermark that it may go down to.
pub(super) fn try_after_wakeup(mm: &mut Mm, env: &Env, request: AllocRequest) -> Option<Pfn> {
    if request.gfp.contains(Gfp::KSWAPD_RECLAIM) {
        mm.wake_all_kswapds(request);
    }
    try_freelists(mm, env, request)
}

/// After progress in direct reclaim: if the pages are not to be had, they may be on other CPUs' lists, or reserved
/// (`__alloc_pages_direct_reclaim()`).
pub(super) fn try_after_reclaim(mm: &mut Mm, env: &Env, request: AllocRequest) -> Option<Pfn> {
    try_freelists(mm, env, request).or_else(|| {
        mm.unreserve_highatomic(request, false);
        mm.drain_pcp_all();
        try_freelists(mm, env, request)
    })
}

fn try_freelists(mm: &mut Mm, env: &Env, request: AllocRequest) -> Option<Pfn> {
    let flags: AllocFlags = mm.gfp_to_alloc_flags(env, request);
    mm.get_page_from_freelist(env, request, flags)
}
