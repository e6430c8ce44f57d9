//! Steps that several programs have in common.

use std::future::Future;

use sys::{Access, Mapping, SpawnOptions, Sys, Thread};
use units::{Bytes, PAGE_SIZE};

/// Pages of its own that a program uses between any two sleeps. Of dd (coreutils 9.1) `/proc/PID/clear_refs` and `smaps` say five
/// beside its buffers in a second of writing: one of its data, three of libraries' and the loader's, one of its stack. In a guest of 3.1 a
/// thread that stands for a child of fs_mark swaps in three of its stack and two of its heap each time (faults by address).
pub(crate) const OWN_PAGES: u32 = 5;

/// Waits for threads, in their order.
pub(crate) async fn join_all<S: Sys>(sys: &S, threads: &[Thread]) {
    for thread in threads {
        sys.join(*thread).await;
    }
}

/// Starts a process or a thread whose error fails the run.
pub(crate) fn start<S, F, Fut>(sys: &S, options: SpawnOptions, body: F) -> Thread
where
    S: Sys,
    F: FnOnce(S) -> Fut + Send + 'static,
    Fut: Future<Output = sys::Result<()>> + 'static,
{
    sys.spawn(options, move |sys: S| async move {
        if let Err(error) = body(sys.clone()).await {
            sys.fail(error);
        }
    })
}

/// Runs a process to its end.
pub(crate) async fn run_process<S, F, Fut>(sys: &S, options: SpawnOptions, body: F)
where
    S: Sys,
    F: FnOnce(S) -> Fut + Send + 'static,
    Fut: Future<Output = sys::Result<()>> + 'static,
{
    let process = start(sys, options, body);
    sys.join(process).await;
}

/// Runs a process to its end, and records the seconds that it took as a metric.
pub(crate) async fn time_process<S, F, Fut>(sys: &S, name: &str, metric: &'static str, body: F)
where
    S: Sys,
    F: FnOnce(S) -> Fut + Send + 'static,
    Fut: Future<Output = sys::Result<()>> + 'static,
{
    let started = sys.clock();
    run_process(sys, SpawnOptions::process(name), body).await;
    sys.sample(metric, sys.clock().since(started).as_secs_f64());
}

/// Accesses one byte of each page of a range.
pub(crate) async fn poke_pages<S: Sys>(
    sys: &S,
    mapping: Mapping,
    offset: Bytes,
    length: Bytes,
    access: Access,
) -> sys::Result<()> {
    for at in (offset.0..offset.0 + length.0).step_by(PAGE_SIZE as usize) {
        sys.poke(mapping, Bytes(at), access).await?;
    }
    Ok(())
}

/// The generator of the programs that the reference runs were made with: Marsaglia's xorshift with 64 bits (13, 7, 17).
pub(crate) struct XorShift(u64);

impl XorShift {
    /// Starts at `seed`, which must not be 0.
    pub(crate) fn new(seed: u64) -> XorShift {
        assert!(seed != 0, "0 has no successor but 0");
        XorShift(seed)
    }

    /// The next number below `limit`.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_follows_its_rule() {
        // From 1: 1 ^ 1<<13 = 0x2001; >>7 is 0x40, so 0x2041; <<17 is 0x4082_0000, so 0x4082_2041.
        assert_eq!(XorShift::new(1).below(u64::MAX), 0x4082_2041);
    }
}
