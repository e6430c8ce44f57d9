//! What else lives on the machine: services, and the monitors of the benchmark.
//!
//! Rule: one process holds anonymous memory, and every so often accesses all of it, page by page, as a set of daemons and
//! periodic monitors does together. On a desktop, programs are launched beside: one after the other, each fills memory of its
//! own and ends, and the next one comes five seconds later.
//! A guess, since the publication does not say what ran beside the benchmarks: neither how much memory nor how often. A
//! program's launch is one of firefox and gnome-terminal "to vaguely simulate a user"; its files are left out, because they
//! lie on another file system than the one that is mounted.

use sys::{Access, Advice, SpawnOptions, Sys, Thread};
use units::{Bytes, Nanos, PAGE_SIZE};

use crate::steps::{poke_pages, run_process, start};

/// Memory accessed in one go; then the process sleeps for its share of the period.
const PIECE: Bytes = Bytes::mib(1);

/// The process with its parameters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Resident {
    pub(super) size: Bytes,
    /// Time in which all of it is accessed once.
    pub(super) period: Nanos,
}

/// Time between the end of a launched program and the next launch.
const BREAK: Nanos = Nanos::secs(5);

/// Programs that are launched again and again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Launches {
    /// Memory that a program fills.
    pub(super) size: Bytes,
}

impl Launches {
    /// Starts them, if they have a size; they go on until the thread is stopped.
    pub(super) fn start<S: Sys>(self, sys: &S) -> Option<Thread> {
        let launcher = move |sys: S| self.run(sys);
        (self.size.0 > 0).then(|| start(sys, SpawnOptions::thread("launcher"), launcher))
    }

    async fn run<S: Sys>(self, sys: S) -> sys::Result<()> {
        while !sys.stopping() {
            let started = sys.clock();
            run_process(&sys, "program", move |sys: S| async move {
                let map = sys.mmap(self.size, Bytes(PAGE_SIZE)).await?;
                sys.madvise(map, Advice::NoHugePage).await?;
                poke_pages(&sys, map, Bytes(0), self.size, Access::Write).await
            })
            .await;
            sys.sample("app_launch_s", sys.clock().since(started).as_secs_f64());
            sys.sleep(BREAK).await;
        }
        Ok(())
    }
}

impl Resident {
    /// Starts the process; it runs until it is stopped.
    pub(super) fn start<S: Sys>(self, sys: &S) -> Thread {
        start(sys, SpawnOptions::process("resident"), move |sys: S| self.run(sys))
    }

    async fn run<S: Sys>(self, sys: S) -> sys::Result<()> {
        let map = sys.mmap(self.size, Bytes(PAGE_SIZE)).await?;
        sys.madvise(map, Advice::NoHugePage).await?;
        poke_pages(&sys, map, Bytes(0), self.size, Access::Write).await?;
        let pieces = self.size.0.div_ceil(PIECE.0);
        let pause = Nanos(self.period.0 / pieces);
        let mut at = 0;
        while !sys.stopping() {
            let length = Bytes(PIECE.0.min(self.size.0 - at));
            poke_pages(&sys, map, Bytes(at), length, Access::Read).await?;
            at = (at + PIECE.0) % (pieces * PIECE.0);
            sys.sleep(pause).await;
        }
        Ok(())
    }
}
