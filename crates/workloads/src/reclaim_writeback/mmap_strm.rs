//! mmap-strm: a stream over a mapped sparse file, then stores to mapped files and anonymous memory side by side.
//!
//! Source: mmtests' micro tests of 2011. `mapped-file-stream`: one process loads from every page of a mapped sparse file of
//! four times the memory. `vmscan-mixed-mmap-write`: of three times the memory, 70 % are sparse files and 30 % anonymous; for
//! each thread one process stores into every page of its file's mapping, and one into every page of its anonymous mapping,
//! the file twice as often. The script starts the file's first, one after the other, each in the time of its `echo`, fork and exec,
//! while those before it dirty pages. bash takes 0.8 ms for each on a current server (200 programs that end at once, on one CPU).
//! Abstracted: `MADV_RANDOM` of the first mapping (the file has no blocks to read around).

use sys::{Access, Advice, FileName, OpenMode, SpawnOptions, Sys};
use units::{Bytes, Nanos, PAGE_SIZE};

use crate::steps::{join_all, poke_pages, run_process, start};

/// The program with its parameters.
#[derive(Clone, Copy, Debug)]
pub(super) struct MmapStrm {
    pub(super) threads: u64,
    /// Size of the file of the stream.
    pub(super) stream: Bytes,
    /// Mapped files of all threads.
    pub(super) file: Bytes,
    /// Anonymous memory of all threads.
    pub(super) anon: Bytes,
    /// Passes over the anonymous memory; there are twice as many over the files.
    pub(super) passes: u64,
    /// What the script takes to start a process.
    pub(super) start: Nanos,
}

impl MmapStrm {
    pub(super) async fn run<S: Sys>(self, sys: S) -> sys::Result<()> {
        let dir = sys.mkdir("mmap-strm").await?;
        let sparse = FileName { dir, number: 0 };
        let stream = self.stream;
        run_process(&sys, "mapped-stream", move |sys: S| map_and_touch(sys, sparse, stream, 1, Access::Read)).await;
        sys.unlink(sparse).await?;
        let mut processes = Vec::new();
        for thread in 1..=self.threads {
            let (name, share) = (FileName { dir, number: thread }, whole_pages(self.file, self.threads));
            let file = move |sys: S| map_and_touch(sys, name, share, 2 * self.passes, Access::Write);
            sys.compute(self.start).await;
            processes.push(start(&sys, SpawnOptions::process("usemem-file"), file));
        }
        for _ in 0..self.threads {
            let share = whole_pages(self.anon, self.threads);
            let anon = move |sys: S| touch_anon(sys, share, self.passes);
            sys.compute(self.start).await;
            processes.push(start(&sys, SpawnOptions::process("usemem-anon"), anon));
        }
        join_all(&sys, &processes).await;
        for number in 1..=self.threads {
            sys.unlink(FileName { dir, number }).await?;
        }
        Ok(())
    }
}

/// An equal share of memory, in whole pages.
fn whole_pages(all: Bytes, shares: u64) -> Bytes {
    Bytes((all.0 / shares / PAGE_SIZE).max(1) * PAGE_SIZE)
}

async fn map_and_touch<S: Sys>(sys: S, name: FileName, size: Bytes, passes: u64, access: Access) -> sys::Result<()> {
    let fd = sys.open(name, OpenMode::Create).await?;
    sys.truncate(fd, size).await?;
    let map = sys.mmap_file(fd, size).await?;
    for _ in 0..passes {
        poke_pages(&sys, map, Bytes(0), size, access).await?;
    }
    sys.munmap(map).await?;
    sys.close(fd).await
}

async fn touch_anon<S: Sys>(sys: S, size: Bytes, passes: u64) -> sys::Result<()> {
    let map = sys.mmap(size, Bytes(PAGE_SIZE)).await?;
    sys.madvise(map, Advice::NoHugePage).await?;
    for _ in 0..passes {
        poke_pages(&sys, map, Bytes(0), size, Access::Write).await?;
    }
    sys.munmap(map).await
}
