//! simple-wb: dd processes write four times the memory together, first a few of them, then twice as many, and so on.
//!
//! Source: mmtests' `simple-writeback`: for CPU factors from the least to the greatest, doubled each time, as many processes for each
//! CPU (a factor of 0: one in all) run `dd if=/dev/zero ibs=1M obs=1M` side by side, each to a file of its own, which are equal parts of
//! the whole; the script waits for them in their order, and removes the file of each when it has ended. Then it sleeps for a second, and
//! makes a line of results of each job's log by some twenty short programs (subshells, grep, awk, head, tail, perl), one after the other.
//! The buffer of a dd is anonymous memory, which reclaim may take while dd waits within its write: in a guest of 3.1 with the lists
//! of 3.1-rc1 all dd together take 112 s instead of 79 because of that.
//! Abstracted: a block is written in pieces, so that what is missing of the buffer is missed as the copy comes to it; 64 KiB is a choice, the
//! copy goes page by page.
//! A guess: what one of the script's programs takes, a millisecond, from its fork to its end.

use sys::{Access, Dir, FileName, OpenMode, SpawnOptions, Sys};
use units::{Bytes, Nanos, PAGE_SIZE};

use crate::steps::start;

const BLOCK: Bytes = Bytes::mib(1);
/// Part of a block that is written at a time.
const PIECE: Bytes = Bytes::kib(64);
/// What the script sleeps after the files are removed.
const PAUSE: Nanos = Nanos::secs(1);

/// The program with its parameters.
#[derive(Clone, Copy, Debug)]
pub(super) struct SimpleWb {
    /// Bytes that all processes write together.
    pub(super) size: Bytes,
    pub(super) cpus: u64,
    /// Processes for each CPU, at first and at last; 0 stands for one in all.
    pub(super) factors: (u64, u64),
    pub(super) iterations: u64,
    /// Time of the script's programs for each process.
    pub(super) script: Nanos,
}

impl SimpleWb {
    pub(super) async fn run<S: Sys>(self, sys: S) -> sys::Result<()> {
        let dir = sys.mkdir("simple-wb").await?;
        for jobs in self.jobs() {
            for _ in 0..self.iterations {
                self.write(&sys, dir, jobs).await?;
            }
            sys.sleep(PAUSE).await;
            for _ in 0..jobs {
                sys.compute(self.script).await;
            }
        }
        Ok(())
    }

    /// How many processes there are, each time.
    fn jobs(self) -> impl Iterator<Item = u64> {
        let (first, last) = self.factors;
        let factors = std::iter::successors(Some(first), |factor| Some((factor * 2).max(1)));
        factors.take_while(move |factor| *factor <= last).map(move |factor| (self.cpus * factor).max(1))
    }

    /// All files, one for each process.
    async fn write<S: Sys>(self, sys: &S, dir: Dir, jobs: u64) -> sys::Result<()> {
        let blocks = (self.size.0 / jobs / BLOCK.0).max(1);
        let mut processes = Vec::new();
        for number in 0..jobs {
            let name = FileName { dir, number };
            let dd = move |sys: S| dd(sys, name, blocks);
            processes.push(start(sys, SpawnOptions::process("dd"), dd));
        }
        for (number, process) in (0..).zip(processes) {
            sys.join(process).await;
            sys.unlink(FileName { dir, number }).await?;
        }
        Ok(())
    }
}

/// Fills its buffer from `/dev/zero` and writes it, block after block.
async fn dd<S: Sys>(sys: S, name: FileName, blocks: u64) -> sys::Result<()> {
    let buffer = sys.mmap(BLOCK, Bytes(PAGE_SIZE)).await?;
    let fd = sys.open(name, OpenMode::Create).await?;
    for block in 0..blocks {
        sys.touch(buffer, Bytes(0), BLOCK, Access::Write).await?;
        for at in (0..BLOCK.0).step_by(PIECE.0 as usize) {
            sys.touch(buffer, Bytes(at), PIECE, Access::Read).await?;
            sys.write(fd, Bytes(block * BLOCK.0 + at), PIECE).await?;
        }
    }
    sys.close(fd).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_double_from_the_first_factor_to_the_last() {
        let jobs = |factors| {
            SimpleWb { size: Bytes::gib(2), cpus: 4, factors, iterations: 1, script: Nanos::ZERO }
                .jobs()
                .collect::<Vec<_>>()
        };
        assert_eq!(jobs((0, 0)), [1]);
        assert_eq!(jobs((0, 4)), [1, 4, 8, 16]);
        assert_eq!(jobs((1, 64)), [4, 8, 16, 32, 64, 128, 256]);
    }
}
