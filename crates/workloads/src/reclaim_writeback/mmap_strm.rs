//! mmap-strm: a stream over a mapped sparse file, then stores to mapped files and anonymous memory side by side.
//!
//! Source: mmtests' micro tests of 2011. `mapped-file-stream`: one process loads from every page of a mapped sparse file of
//! four times the memory. `vmscan-mixed-mmap-write`: of three times the memory, 70 % are sparse files and 30 % anonymous; for
//! each thread one process stores into every page of its file's mapping, and one into every page of its anonymous mapping,
//! the file twice as often. From its second pass on a process loads what it stored before it stores again ("verify last write",
//! usemem.c of September 2010, vm-scalability; mmtests takes the one that was posted to linux-mm that year), so that a page that
//! is gone comes back by a load. The script starts the file's first, one after the other, each in the time of its `echo`, fork and
//! exec, while those before it dirty pages. bash takes 0.8 ms for each on a current server (200 programs that end at once, on one CPU).
//! Abstracted: `MADV_RANDOM` of the first mapping (the file has no blocks to read around).

use sys::{Access, Advice, Fd, FileName, Mapping, OpenMode, SpawnOptions, Sys};
use units::{Bytes, Nanos, PAGE_SIZE};

use crate::steps::{OWN_PAGES, join_all, poke_pages, run_process, start};

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
        run_process(&sys, SpawnOptions::process("mapped-stream"), move |sys: S| read_stream(sys, sparse, stream)).await;
        sys.unlink(sparse).await?;
        let mut processes = Vec::new();
        for thread in 1..=self.threads {
            let (name, share) = (FileName { dir, number: thread }, whole_pages(self.file, self.threads));
            let file = move |sys: S| touch_file(sys, name, share, 2 * self.passes);
            sys.compute(self.start).await;
            processes.push(start(&sys, SpawnOptions::process("usemem-file").own_pages(OWN_PAGES), file));
        }
        for _ in 0..self.threads {
            let share = whole_pages(self.anon, self.threads);
            let anon = move |sys: S| touch_anon(sys, share, self.passes);
            sys.compute(self.start).await;
            processes.push(start(&sys, SpawnOptions::process("usemem-anon").own_pages(OWN_PAGES), anon));
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

/// Loads from every page of a mapped file.
async fn read_stream<S: Sys>(sys: S, name: FileName, size: Bytes) -> sys::Result<()> {
    let (fd, map) = map_file(&sys, name, size).await?;
    poke_pages(&sys, map, Bytes(0), size, Access::Read).await?;
    sys.munmap(map).await?;
    sys.close(fd).await
}

/// Stores into every page of a mapped file.
async fn touch_file<S: Sys>(sys: S, name: FileName, size: Bytes, passes: u64) -> sys::Result<()> {
    let (fd, map) = map_file(&sys, name, size).await?;
    store_and_verify(&sys, map, size, passes).await?;
    sys.munmap(map).await?;
    sys.close(fd).await
}

async fn touch_anon<S: Sys>(sys: S, size: Bytes, passes: u64) -> sys::Result<()> {
    let map = sys.mmap(size, Bytes(PAGE_SIZE)).await?;
    sys.madvise(map, Advice::NoHugePage).await?;
    store_and_verify(&sys, map, size, passes).await?;
    sys.munmap(map).await
}

/// Maps a sparse file.
async fn map_file<S: Sys>(sys: &S, name: FileName, size: Bytes) -> sys::Result<(Fd, Mapping)> {
    let fd = sys.open(name, OpenMode::Create).await?;
    sys.truncate(fd, size).await?;
    Ok((fd, sys.mmap_file(fd, size).await?))
}

/// Stores into every page, pass after pass, and reads what the pass before stored.
async fn store_and_verify<S: Sys>(sys: &S, map: Mapping, size: Bytes, passes: u64) -> sys::Result<()> {
    for pass in 0..passes {
        for at in (0..size.0).step_by(PAGE_SIZE as usize).map(Bytes) {
            if pass > 0 {
                sys.poke(map, at, Access::Read).await?;
            }
            sys.poke(map, at, Access::Write).await?;
        }
    }
    Ok(())
}
