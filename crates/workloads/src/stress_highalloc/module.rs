//! The module that allocates blocks of order 9 (`stap-scripts/highalloc.stp`).
//!
//! What it got it gives back in the reverse order, the newest first, as the pool of hugetlb does that stands for it in real
//! worlds (`enqueue_huge_page()`, `free_pool_huge_page()`, mm/hugetlb.c, 3.19). Where a free list begins with what came
//! last, that decides from which end memory is handed out afterwards.

use sys::Sys;
use units::{Bytes, Gfp, Nanos, Order};

/// Order of a block: that of a huge page.
const ORDER: Order = Order(9);
/// Size of a block.
pub(super) const BLOCK: Bytes = Bytes::mib(2);
/// An attempt that fails after this time is the last.
const FAIL_TIME_MAX: Nanos = Nanos::secs(1200);
/// An attempt that succeeds after this time is the last.
const SUCCESS_TIME_MAX: Nanos = Nanos::secs(600);
/// A tick at HZ = 250: the module looks at `jiffies`.
const SPIN: Nanos = Nanos::millis(4);

/// Words for the flags of the allocations; each has `__GFP_NOWARN` besides.
pub(super) const GFP_FLAGS: &[(&str, Gfp)] = &[
    ("highuser-movable", Gfp::HIGHUSER_MOVABLE),
    ("like-hugetlb", Gfp::HIGHUSER_MOVABLE.with(Gfp::RETRY_MAYFAIL)),
    ("like-thp", Gfp::HIGHUSER_MOVABLE.with(Gfp::NOMEMALLOC).with(Gfp::NORETRY).without(Gfp::KSWAPD_RECLAIM)),
];

/// What one phase attempts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attempts {
    pub(super) count: u64,
    pub(super) gfp: Gfp,
    /// From one attempt to the next, if the first does not take longer.
    pub(super) pace: Nanos,
}

/// What came of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outcome {
    pub(super) attempts: u64,
    pub(super) success: u64,
}

impl Attempts {
    pub(super) async fn run<S: Sys>(self, sys: &S) -> sys::Result<Outcome> {
        let mut held = Vec::new();
        let mut next = sys.clock();
        for _ in 0..self.count {
            while sys.clock() < next {
                sys.compute(next.since(sys.clock()).min(SPIN)).await;
            }
            let started = sys.clock();
            next = started + self.pace;
            let block = sys.alloc_pages(self.gfp.with(Gfp::NOWARN), ORDER).await?;
            let taken = sys.clock().since(started);
            let too_long = if block.is_some() { SUCCESS_TIME_MAX } else { FAIL_TIME_MAX };
            held.extend(block);
            if taken > too_long {
                break;
            }
        }
        let success = held.len() as u64;
        while let Some(block) = held.pop() {
            sys.free_pages(block).await?;
        }
        Ok(Outcome { attempts: self.count.max(1), success })
    }
}
