//! What else lives on the machine: services, and the monitors of the benchmark.
//!
//! Rule: one process holds anonymous memory, and every so often accesses all of it, page by page, as a set of daemons and
//! periodic monitors does together; it writes to a share of it, and reads the rest. On a desktop, "firefox and gnome terminal
//! were launching and exiting to vaguely simulate a user": in turn, each until it is there.
//! A guess, since the publication does not say what else ran beside the benchmarks: neither how much memory nor how often. The
//! share that is written to is chosen by the author's run of fs_mark (linux-mm, 2011-07-21), in which 132 thousand pages
//! were swapped out for 352 thousand that were swapped in. Files of the programs are left out, because they lie on another file
//! system than the one that is mounted.

use sys::{Access, Advice, SpawnOptions, Sys, Thread};
use units::{Bytes, Nanos, PAGE_SIZE};

use crate::desktop::{Files, GNOME_TERMINAL, ICEWEASEL};
use crate::steps::{OWN_PAGES, poke_pages, start, time_process};

/// Memory accessed in one go; then the process sleeps for its share of the period.
const PIECE: Bytes = Bytes::mib(1);

/// The process with its parameters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Resident {
    pub(super) size: Bytes,
    /// Time in which all of it is accessed once.
    pub(super) period: Nanos,
    /// Share of it that is written to then, in percent; the rest is read.
    pub(super) written: u64,
}

/// Starts programs in turn, each as soon as the one before has ended; they go on until the thread is stopped.
pub(super) fn start_launches<S: Sys>(sys: &S) -> Thread {
    start(sys, SpawnOptions::thread("launcher"), move |sys: S| launch_in_turn(sys))
}

async fn launch_in_turn<S: Sys>(sys: S) -> sys::Result<()> {
    loop {
        for (program, metric) in [(ICEWEASEL, "app_launch_s/firefox"), (GNOME_TERMINAL, "app_launch_s/gnome-terminal")]
        {
            if sys.stopping() {
                return Ok(());
            }
            let start_up = move |sys: S| async move { program.start_up(&sys, Files::Elsewhere).await };
            time_process(&sys, program.name, metric, start_up).await;
        }
    }
}

impl Resident {
    /// Starts the process; it runs until it is stopped.
    pub(super) fn start<S: Sys>(self, sys: &S) -> Thread {
        start(sys, SpawnOptions::process("resident").own_pages(OWN_PAGES), move |sys: S| self.run(sys))
    }

    async fn run<S: Sys>(self, sys: S) -> sys::Result<()> {
        let map = sys.mmap(self.size, Bytes(PAGE_SIZE)).await?;
        sys.madvise(map, Advice::NoHugePage).await?;
        poke_pages(&sys, map, Bytes(0), self.size, Access::Write).await?;
        let pieces = self.size.0.div_ceil(PIECE.0);
        let pause = Nanos(self.period.0 / pieces);
        let mut piece = 0;
        while !sys.stopping() {
            let at = piece * PIECE.0;
            let length = Bytes(PIECE.0.min(self.size.0 - at));
            poke_pages(&sys, map, Bytes(at), length, self.access(piece)).await?;
            piece = (piece + 1) % pieces;
            sys.sleep(pause).await;
        }
        Ok(())
    }

    /// What is done to a piece: those that are written to are spread evenly.
    fn access(self, piece: u64) -> Access {
        let written_before = |piece: u64| piece * self.written / 100;
        if written_before(piece + 1) > written_before(piece) { Access::Write } else { Access::Read }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_that_are_written_to_are_spread_evenly() {
        let written = |percent, pieces: std::ops::Range<u64>| {
            let resident = Resident { size: Bytes::mib(64), period: Nanos::secs(10), written: percent };
            pieces.filter(|piece| resident.access(*piece) == Access::Write).collect::<Vec<_>>()
        };
        assert_eq!(written(25, 0..12), [3, 7, 11]);
        assert_eq!([0, 37, 100].map(|percent| written(percent, 0..100).len()), [0, 37, 100]);
        assert_eq!(written(37, 0..64).len(), 64 * 37 / 100);
    }
}
