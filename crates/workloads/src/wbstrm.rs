//! wbstrm: writes a file sequentially, then streams over anonymous memory and the file's mapping side by side.
//!
//! Source: own, as the reference runs of real guests have it: mmtests' `simple-writeback` and `vmscan-mixed-mmap-write` (see
//! reclaim_writeback/simple_wb.rs and mmap_strm.rs) made small and put together. Steps: a process writes a file in blocks and calls fsync; a second one maps
//! private memory (without huge pages) and the file (shared), and in each pass stores into every page of a mebibyte of
//! the one, then loads from every page of a mebibyte of the other; every fourth mebibyte of the file is stored to. With a limit,
//! both run in a memory cgroup.

use sys::{Access, Advice, Cgroup, CgroupLimit, FileName, OpenMode, SpawnOptions, Sys};
use units::{Bytes, PAGE_SIZE};

use crate::groups::run_in;
use crate::steps::{poke_pages, run_process};
use crate::{Param, ParamError, Params, WorkloadSpec};

const MIB: Bytes = Bytes::mib(1);

/// As the command line lists it.
pub(crate) const SPEC: WorkloadSpec = WorkloadSpec {
    name: "wbstrm",
    doc: "sequential writes and fsync, then a stream over anonymous memory and a mapped file",
    params: &[
        Param { name: "write-mb", default: "480", doc: "size of the file, in MiB" },
        Param { name: "block-size", default: "64KiB", doc: "size of a write" },
        Param { name: "anon-mb", default: "230", doc: "anonymous memory of the stream, in MiB" },
        Param { name: "file-mb", default: "230", doc: "part of the file that is mapped, in MiB" },
        Param { name: "passes", default: "2", doc: "passes of the stream" },
        Param { name: "store", default: "yes", doc: "yes: every fourth MiB of the mapping is stored to" },
        Param { name: "memory-max", default: "none", doc: "memory.max of a cgroup that it runs in" },
        Param { name: "memory-high", default: "none", doc: "memory.high of that cgroup" },
    ],
};

/// The workload with its parameters.
#[derive(Clone, Debug)]
pub struct WbStrm {
    write: Bytes,
    block: Bytes,
    anon_mb: u64,
    file_mb: u64,
    passes: u64,
    store: bool,
    limits: [(CgroupLimit, Option<Bytes>); 2],
}

impl WbStrm {
    pub(crate) fn from_params(params: &Params) -> Result<WbStrm, ParamError> {
        let write_mb = params.number("write-mb", 1, 1 << 20)?;
        Ok(WbStrm {
            write: Bytes::mib(write_mb),
            block: params.size("block-size", Bytes(PAGE_SIZE), MIB)?,
            anon_mb: params.number("anon-mb", 1, 1 << 20)?,
            file_mb: params.number("file-mb", 1, write_mb)?,
            passes: params.number("passes", 1, 1 << 20)?,
            store: params.flag("store")?,
            limits: [
                (CgroupLimit::Max, params.size_or_none("memory-max", MIB, Bytes::gib(1024))?),
                (CgroupLimit::High, params.size_or_none("memory-high", MIB, Bytes::gib(1024))?),
            ],
        })
    }

    pub(crate) async fn run<S: Sys>(self, sys: S) -> sys::Result<()> {
        let dir = sys.mkdir("wbstrm").await?;
        let name = FileName { dir, number: 0 };
        let group = self.group(&sys).await?;
        sys.phase("write");
        let writer = self.clone();
        let write = move |sys: S| async move { writer.write(&sys, name).await };
        match group {
            Some(group) => run_in(&sys, group, SpawnOptions::process("swrite"), write).await,
            None => run_process(&sys, SpawnOptions::process("swrite"), write).await,
        }
        sys.phase("stream");
        let stream = move |sys: S| async move { self.stream(&sys, name).await };
        match group {
            Some(group) => run_in(&sys, group, SpawnOptions::process("strm"), stream).await,
            None => run_process(&sys, SpawnOptions::process("strm"), stream).await,
        }
        Ok(())
    }

    /// Whether it runs in a memory cgroup.
    pub(crate) fn is_limited(&self) -> bool {
        self.limits.iter().any(|(_, value)| value.is_some())
    }

    /// The group with the limits, if there are any.
    async fn group<S: Sys>(&self, sys: &S) -> sys::Result<Option<Cgroup>> {
        if !self.is_limited() {
            return Ok(None);
        }
        let group = sys.cgroup("limited").await?;
        for (limit, value) in self.limits {
            sys.cgroup_set(group, limit, value).await?;
        }
        Ok(Some(group))
    }

    async fn write<S: Sys>(&self, sys: &S, name: FileName) -> sys::Result<()> {
        let fd = sys.open(name, OpenMode::Create).await?;
        let mut waited = 0.0;
        let mut at = 0;
        while at < self.write.0 {
            let started = sys.clock();
            sys.write(fd, Bytes(at), Bytes(self.block.0.min(self.write.0 - at))).await?;
            waited += sys.clock().since(started).as_micros_f64();
            at += self.block.0;
        }
        let writes = self.write.0.div_ceil(self.block.0);
        sys.sample("write_wait_ms", waited / 1e3 / writes as f64);
        sys.fsync(fd).await?;
        sys.close(fd).await
    }

    async fn stream<S: Sys>(&self, sys: &S, name: FileName) -> sys::Result<()> {
        let anon = sys.mmap(Bytes::mib(self.anon_mb), Bytes(PAGE_SIZE)).await?;
        sys.madvise(anon, Advice::NoHugePage).await?;
        let fd = sys.open(name, OpenMode::Existing).await?;
        let file = sys.mmap_file(fd, Bytes::mib(self.file_mb)).await?;
        for _ in 0..self.passes {
            for mib in 0..self.anon_mb.max(self.file_mb) {
                if mib < self.anon_mb {
                    poke_pages(sys, anon, Bytes::mib(mib), MIB, Access::Write).await?;
                }
                if mib < self.file_mb {
                    let access = if self.store && mib % 4 == 3 { Access::Write } else { Access::Read };
                    poke_pages(sys, file, Bytes::mib(mib), MIB, access).await?;
                }
            }
        }
        Ok(())
    }
}
