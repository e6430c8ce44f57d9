//! largecopytar: a large compressed tar is downloaded, unpacked to many times the size of memory, and deleted, while
//! desktop programs are started beside it.
//!
//! Source: mmtests of 2011, `bench-largecopytar` and its monitor of application launches (see launch.rs), and what the posting of the SLUB high-order series says of the run: unpacked to 15 times the memory, nothing copied.
//! Measured: seconds of each step, CPU time of its programs (`time`), and seconds of each launch of a program. The step that copies is there, and does nothing.
//! Abstracted: the session of the desktop is a process that keeps using its memory. Omitted: memory of the network.

mod archive;
mod launch;

use std::future::Future;

use sys::{Access, SpawnOptions, Sys, Thread};
use units::{Bytes, Nanos, PAGE_SIZE};

use crate::steps::{join_all, start};
use crate::{Param, ParamError, Params, WorkloadSpec};
use archive::Archive;

/// As the command line lists it.
pub(crate) const SPEC: WorkloadSpec = WorkloadSpec {
    name: "largecopytar",
    doc: "a tar of many times the memory is downloaded, unpacked and deleted beside starting programs (mmtests)",
    params: &[
        Param { name: "percent", default: "1500", doc: "size of what is unpacked, in percent of memory" },
        Param {
            name: "network-mb-s",
            default: "117",
            doc: "pace of the network, in 10^6 bytes/s (gigabit Ethernet: 117)",
        },
        Param {
            name: "bzip2-mb-s",
            default: "49",
            doc: "pace of bzip2 between its system calls, in 10^6 bytes of contents per second (kernel sources: 49)",
        },
        Param { name: "launches", default: "yes", doc: "yes: programs are started beside it, one after the other" },
        Param { name: "session-mb", default: "160", doc: "memory of the desktop's session, in MiB" },
    ],
};

/// Part of its memory that the session uses in a second.
const SESSION_PARTS: u64 = 30;

/// The workload with its parameters.
#[derive(Clone, Debug)]
pub struct LargeCopyTar {
    percent: u64,
    network_bytes_per_s: u64,
    unpack_bytes_per_s: u64,
    launches: bool,
    session: Bytes,
}

impl LargeCopyTar {
    pub(crate) fn from_params(params: &Params) -> Result<LargeCopyTar, ParamError> {
        Ok(LargeCopyTar {
            percent: params.number("percent", 1, 100_000)?,
            network_bytes_per_s: params.number("network-mb-s", 1, 100_000)? * 1_000_000,
            unpack_bytes_per_s: params.number("bzip2-mb-s", 1, 100_000)? * 1_000_000,
            launches: params.flag("launches")?,
            session: Bytes::mib(params.number("session-mb", 1, 1 << 20)?),
        })
    }

    pub(crate) async fn run<S: Sys>(self, sys: S) -> sys::Result<()> {
        sys.phase("prepare");
        let unpacked = Bytes(sys.info().mem_total.bytes().0 / 100 * self.percent);
        let archive = Archive::new(&sys, unpacked, self.unpack_bytes_per_s).await?;
        launch::install(&sys).await?;
        let desktop = self.start_desktop(&sys);
        sys.phase("test/download");
        let (wget, pace) = (archive, self.network_bytes_per_s);
        let download = move |sys: S| async move { wget.download(&sys, pace).await };
        sys.join(start_program(&sys, SpawnOptions::process("wget"), download)).await;
        sys.progress(0.1);
        sys.phase("test/unpack");
        archive.unpack(&sys).await?;
        sys.progress(0.7);
        sys.phase("test/copy");
        sys.phase("test/delete");
        let delete = move |sys: S| async move { archive.delete(&sys).await };
        sys.join(start_program(&sys, SpawnOptions::process("rm"), delete)).await;
        sys.phase("end");
        for thread in &desktop {
            sys.stop(*thread);
        }
        join_all(&sys, &desktop).await;
        Ok(())
    }

    /// The session, and who starts programs in it.
    fn start_desktop<S: Sys>(&self, sys: &S) -> Vec<Thread> {
        let memory = self.session;
        let mut threads =
            vec![start(sys, SpawnOptions::process("session"), move |sys: S| async move { live(&sys, memory).await })];
        if self.launches {
            let monitor = SpawnOptions::process("launcher");
            threads.push(start(sys, monitor, move |sys: S| async move { launch::one_after_the_other(&sys).await }));
        }
        threads
    }
}

/// Starts a program of the test, which says at its end what it took of the CPUs.
fn start_program<S, F, Fut>(sys: &S, options: SpawnOptions, body: F) -> Thread
where
    S: Sys,
    F: FnOnce(S) -> Fut + Send + 'static,
    Fut: Future<Output = sys::Result<()>> + 'static,
{
    start(sys, options, move |sys: S| async move {
        body(sys.clone()).await?;
        sys.sample("programs_cpu_s", sys.cpu_time().as_secs_f64());
        Ok(())
    })
}

/// Goes on using its memory, a part of it each second.
async fn live<S: Sys>(sys: &S, memory: Bytes) -> sys::Result<()> {
    let heap = sys.mmap(memory, Bytes(PAGE_SIZE)).await?;
    sys.touch(heap, Bytes(0), memory, Access::Write).await?;
    let part = memory.0.div_ceil(SESSION_PARTS).next_multiple_of(PAGE_SIZE);
    let mut at = 0;
    while !sys.stopping() {
        sys.touch(heap, Bytes(at), Bytes(part.min(memory.0 - at)), Access::Read).await?;
        at = if at + part < memory.0 { at + part } else { 0 };
        sys.sleep(Nanos::secs(1)).await;
    }
    Ok(())
}
