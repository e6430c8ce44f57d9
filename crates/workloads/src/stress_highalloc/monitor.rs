//! mmtests' monitors: programs that look at the system every ten seconds and append to a log.
//!
//! Source: mmtests of February 2015, `MONITORS_GZIP="proc-vmstat top slabinfo"`, `MONITORS_WITH_LATENCY="vmstat iostat"`,
//! `MONITOR_UPDATE_FREQUENCY=10`.
//! Abstracted: each starts one short program a time and appends 8 KiB.

use sys::{Access, Dir, FileName, OpenMode, SpawnOptions, Sys, Thread};
use units::{Bytes, Nanos, PAGE_SIZE};

const NAMES: [&str; 5] = ["proc-vmstat", "top", "slabinfo", "vmstat", "iostat"];
const INTERVAL: Nanos = Nanos::secs(10);
const ENTRY: Bytes = Bytes::kib(8);
/// Pages that a short program touches, and CPU time that it takes.
const PAGES: u64 = 400;
const TIME: Nanos = Nanos::millis(5);

/// Starts the monitors of a run.
pub(super) async fn start<S: Sys>(sys: &S, run: u64) -> sys::Result<Vec<Thread>> {
    let dir = sys.mkdir(&format!("log/run-{run}")).await?;
    let start = |(number, name): (usize, &&str)| {
        sys.spawn(SpawnOptions::process(*name), move |sys: S| async move {
            if let Err(error) = watch(&sys, dir, number as u64).await {
                sys.fail(error);
            }
        })
    };
    Ok(NAMES.iter().enumerate().map(start).collect())
}

async fn watch<S: Sys>(sys: &S, dir: Dir, number: u64) -> sys::Result<()> {
    let log = sys.open(FileName { dir, number }, OpenMode::Create).await?;
    let mut at = Bytes(0);
    while !sys.stopping() {
        let look = sys.spawn(SpawnOptions::process("cat"), |sys: S| async move {
            if let Err(error) = look(&sys).await {
                sys.fail(error);
            }
        });
        sys.join(look).await;
        sys.write(log, at, ENTRY).await?;
        at = Bytes(at.0 + ENTRY.0);
        sys.sleep(INTERVAL).await;
    }
    sys.close(log).await
}

async fn look<S: Sys>(sys: &S) -> sys::Result<()> {
    let heap = sys.mmap(Bytes(PAGES * PAGE_SIZE), Bytes(PAGE_SIZE)).await?;
    sys.touch(heap, Bytes(0), heap.length, Access::Write).await?;
    sys.compute(TIME).await;
    Ok(())
}
