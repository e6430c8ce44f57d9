//! Modules of the kernel: a driver that allocates blocks at a steady pace, and a cache that lies between free blocks.

use std::collections::VecDeque;

use sys::{Barrier, Sys};
use units::{Bytes, Gfp, Nanos, Order, PAGE_SIZE};

/// A driver that allocates blocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Driver {
    pub(super) from: Nanos,
    pub(super) blocks_per_s: u64,
    /// Where the blocks must be (`Gfp::DMA`), or nothing.
    pub(super) zone: Gfp,
    pub(super) order: Order,
    pub(super) held: usize,
}

impl Driver {
    pub(super) async fn run<S: Sys>(self, sys: &S) -> sys::Result<()> {
        sys.sleep(self.from).await;
        let pace = Nanos(Nanos::secs(1).0 / self.blocks_per_s);
        let mut held = VecDeque::new();
        let (mut tried, mut failed) = (0.0, 0.0);
        while !sys.stopping() {
            let block = sys.alloc_pages(Gfp::ATOMIC.with(Gfp::NOWARN).with(self.zone), self.order).await?;
            tried += 1.0;
            failed += f64::from(u8::from(block.is_none()));
            held.extend(block);
            if held.len() > self.held
                && let Some(oldest) = held.pop_front()
            {
                sys.free_pages(oldest).await?;
            }
            sys.sleep(pace).await;
        }
        for block in held {
            sys.free_pages(block).await?;
        }
        sys.sample("alloc_success_pct", (tried - failed) * 100.0 / f64::max(tried, 1.0));
        Ok(())
    }
}

/// A cache of objects that has shrunk: blocks with an object in use stay between others that are free.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scattered {
    /// Memory that it took before, in percent of all.
    pub(super) percent: u64,
    /// Order of its blocks.
    pub(super) order: Order,
    /// Blocks of every four that stay.
    pub(super) kept: usize,
}

impl Scattered {
    /// Takes the memory, gives back what is to be free, and keeps the rest until it is stopped.
    pub(super) async fn run<S: Sys>(self, sys: &S, memory: Bytes, done: Barrier) -> sys::Result<()> {
        let gfp = Gfp::KERNEL.with(Gfp::RECLAIMABLE).with(Gfp::NOWARN);
        let mut taken = Vec::new();
        for _ in 0..memory.0 / 100 * self.percent / PAGE_SIZE / u64::from(self.order.pages()) {
            taken.extend(sys.alloc_pages(gfp, self.order).await?);
        }
        let (kept, free): (Vec<_>, Vec<_>) = taken.into_iter().enumerate().partition(|(at, _)| at % 4 < self.kept);
        for (_, block) in free {
            sys.free_pages(block).await?;
        }
        sys.barrier_wait(done).await;
        while !sys.stopping() {
            sys.sleep(Nanos::millis(100)).await;
        }
        for (_, block) in kept {
            sys.free_pages(block).await?;
        }
        Ok(())
    }
}
