//! simple-wb: dd processes write four times the memory together, first a few of them, then twice as many, and so on.
//!
//! Source: mmtests' `simple-writeback` of July 2011: for CPU factors from the least to the greatest, doubled each time, as many
//! processes for each CPU (a factor of 0: one in all) run `dd if=/dev/zero ibs=N obs=N` side by side, several times, each to a file of
//! its own, which are equal parts of the whole; the script waits for them in their order, and removes the file of each when it has
//! ended. Then it sleeps for a second, and makes a line of results of each log and time by some twenty short programs (subshells, grep,
//! awk, head, tail, perl), one after the other.
//! Without `bs=` a dd has two buffers: it reads to one, copies that to the other, and writes this (`C_TWOBUFS`, src/dd.c, coreutils).
//! Both are anonymous memory, which reclaim may take while dd waits.
//! Chosen: factors from 1 to 4, four times each, as in the one configuration that says how often (`stress-compaction`, February 2012).
//! All others have 1 to 64 and leave that open; but blocks are 1 MiB in all, with which the buffers of 256 dd would be 512 MiB.
//! Abstracted: copying takes what reading the one and writing to the other does.
//! A guess: what one of the script's programs takes, a millisecond, from its fork to its end.

use sys::{Access, Dir, FileName, OpenMode, SpawnOptions, Sys};
use units::{Bytes, Nanos, PAGE_SIZE};

use crate::steps::{OWN_PAGES, start};

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
    /// Size of each of a dd's two buffers.
    pub(super) block: Bytes,
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
            for _ in 0..jobs * self.iterations {
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
        let blocks = (self.size.0 / jobs / self.block.0).max(1);
        let mut processes = Vec::new();
        for number in 0..jobs {
            let name = FileName { dir, number };
            let dd = move |sys: S| dd(sys, name, blocks, self.block);
            processes.push(start(sys, SpawnOptions::process("dd").own_pages(OWN_PAGES), dd));
        }
        for (number, process) in (0..).zip(processes) {
            sys.join(process).await;
            sys.unlink(FileName { dir, number }).await?;
        }
        Ok(())
    }
}

/// Fills a buffer from `/dev/zero`, copies it to another one and writes that, block after block.
async fn dd<S: Sys>(sys: S, name: FileName, blocks: u64, block: Bytes) -> sys::Result<()> {
    let input = sys.mmap(block, Bytes(PAGE_SIZE)).await?;
    let output = sys.mmap(block, Bytes(PAGE_SIZE)).await?;
    let fd = sys.open(name, OpenMode::Create).await?;
    for number in 0..blocks {
        sys.touch(input, Bytes(0), block, Access::Write).await?;
        sys.touch(input, Bytes(0), block, Access::Read).await?;
        sys.touch(output, Bytes(0), block, Access::Write).await?;
        sys.write_from(fd, Bytes(number * block.0), output, block).await?;
    }
    sys.close(fd).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_double_from_the_first_factor_to_the_last() {
        let jobs = |factors| {
            SimpleWb { size: Bytes::gib(2), cpus: 4, factors, iterations: 1, block: Bytes::mib(1), script: Nanos::ZERO }
                .jobs()
                .collect::<Vec<_>>()
        };
        assert_eq!(jobs((0, 0)), [1]);
        assert_eq!(jobs((0, 4)), [1, 4, 8, 16]);
        assert_eq!(jobs((1, 64)), [4, 8, 16, 32, 64, 128, 256]);
    }
}
