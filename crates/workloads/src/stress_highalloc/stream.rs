//! STREAM over arrays of growing size.
//!
//! Source: mmtests of January 2015, `vmr/bin/bench-stream.sh` as `shellpack-bench-vmr-stream` calls it: three sizes for each power of
//! two from 2 MiB to the largest that memory holds, 2 GiB at most, and ten programs of each, one after the other. STREAM (`stream.c`,
//! `NTIMES` 10) goes ten times over its three arrays with four kernels, which read or write an array ten times in all.
//! Abstracted: the arrays are written to once, and what is done to them is CPU time.
//! A guess: that memory gives 10 GB/s, as two channels of DDR3 do to one CPU.
//! Omitted: gcc, which compiles the program for each size; mmtests' monitors.

use sys::{Access, SpawnOptions, Sys};
use units::{Bytes, Nanos, PAGE_SIZE};

use crate::steps::run_process;

const POWERS: std::ops::RangeInclusive<u32> = 21..=31;
/// Sizes from a power of two to the next.
const INCREMENTS: u64 = 3;
/// Bytes that a program moves for each byte of its arrays: ten times ten arrays, of which there are three.
const MOVED: u64 = 100 / 3;
/// Bytes moved in a microsecond.
const BANDWIDTH: u64 = 10_000;

/// Sizes of all arrays of a program, in the order in which they are run.
fn sizes(memory: Bytes) -> impl Iterator<Item = Bytes> {
    let largest = POWERS.filter(|power| 1 << power <= memory.0).max();
    let steps = move |power: u32| {
        let steps = if Some(power) == largest { 1 } else { INCREMENTS };
        (0..steps).map(move |step| Bytes((1 << power) + (1 << power) / INCREMENTS * step))
    };
    (*POWERS.start()..=largest.unwrap_or(0)).flat_map(steps)
}

/// So many programs of each size.
pub(super) async fn run<S: Sys>(sys: &S, instances: u64) -> sys::Result<()> {
    for size in sizes(sys.info().mem_total.bytes()) {
        for _ in 0..instances {
            run_process(sys, SpawnOptions::process("stream"), move |sys: S| async move { stream(&sys, size).await })
                .await;
        }
    }
    Ok(())
}

async fn stream<S: Sys>(sys: &S, size: Bytes) -> sys::Result<()> {
    let arrays = sys.mmap(Bytes(size.0.next_multiple_of(PAGE_SIZE)), Bytes(PAGE_SIZE)).await?;
    sys.touch(arrays, Bytes(0), arrays.length, Access::Write).await?;
    sys.compute(Nanos::micros(size.0 * MOVED / BANDWIDTH)).await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_grow_in_thirds_to_the_largest_power_that_memory_holds() {
        let mib = |memory| sizes(memory).map(|size| size.0 >> 20).collect::<Vec<_>>();
        assert_eq!(mib(Bytes::mib(20)), [2, 2, 3, 4, 5, 6, 8, 10, 13, 16]);
        assert_eq!(mib(Bytes::mib(3922)).last(), Some(&2048));
        assert_eq!(mib(Bytes::mib(900)).last(), Some(&512));
        assert_eq!(mib(Bytes::mib(1)), []);
    }
}
