//! A service that writes and syncs its log beside a batch job that writes as fast as it can: what the job's `memory.max` is worth to the
//! service.
//!
//! Source: own; users limit the memory of what writes too much, and dirty limits are by group
//! (`balance_dirty_pages()`).

use sys::{CgroupLimit, Fd, FileName, OpenMode, Result, SpawnOptions, Sys};
use units::{Bytes, Nanos};

use crate::groups::{start_in, value};

const MIB: Bytes = Bytes::mib(1);
/// How long both write.
const TIME: Nanos = Nanos::secs(6);
/// What the service writes at a time, and how long it pauses after that.
const RECORD: Bytes = Bytes::kib(64);
const PAUSE: Nanos = Nanos::millis(20);

/// Without and with a `memory.max` of the job.
pub(crate) async fn run<S: Sys>(sys: &S, memory: Bytes, max: Bytes) -> Result<()> {
    side_by_side(sys, "free", memory, None).await?;
    side_by_side(sys, "limited", memory, Some(max)).await
}

async fn side_by_side<S: Sys>(sys: &S, name: &'static str, memory: Bytes, max: Option<Bytes>) -> Result<()> {
    let (web, batch) = (sys.cgroup(&format!("{name}-web")).await?, sys.cgroup(&format!("{name}-batch")).await?);
    sys.cgroup_set(batch, CgroupLimit::Max, max).await?;
    sys.phase(name);
    let (dir, ready) = (sys.mkdir(name).await?, sys.barrier(2));
    let job = start_in(sys, batch, SpawnOptions::process("batch"), move |sys: S| async move {
        let fd = sys.open(FileName { dir, number: 1 }, OpenMode::Create).await?;
        sys.barrier_wait(ready).await;
        let written = write_all_the_time(&sys, fd, memory).await?;
        sys.sample("memcg/batch_mib_s", written as f64 / TIME.as_secs_f64());
        sys.close(fd).await
    });
    let service = start_in(sys, web, SpawnOptions::process("web"), move |sys: S| async move {
        let fd = sys.open(FileName { dir, number: 0 }, OpenMode::Create).await?;
        sys.barrier_wait(ready).await;
        let (start, mut worst, mut sum, mut records, mut dirty) = (sys.clock(), 0.0f64, 0.0, 0, 0.0f64);
        while sys.clock().since(start) < TIME {
            let before = sys.clock();
            sys.write(fd, Bytes(records * RECORD.0), RECORD).await?;
            sys.fsync(fd).await?;
            let ms = sys.clock().since(before).as_secs_f64() * 1e3;
            (worst, sum, records) = (worst.max(ms), sum + ms, records + 1);
            dirty = dirty.max(value(&sys, batch, "memory.stat", "file_dirty").await?);
            sys.sleep(PAUSE).await;
        }
        sys.sample("memcg/web_worst_ms", worst);
        sys.sample("memcg/web_mean_ms", sum / records as f64);
        sys.sample("memcg/batch_dirty_mib", dirty / MIB.0 as f64);
        sys.close(fd).await
    });
    sys.join(service).await;
    sys.join(job).await;
    if let Some(max) = max {
        sys.sample("memcg/max_mib", (max.0 / MIB.0) as f64);
    }
    sys.unlink(FileName { dir, number: 0 }).await?;
    sys.unlink(FileName { dir, number: 1 }).await
}

/// Writes a file of a size from its start to its end, again and again; says how many MiB that were.
async fn write_all_the_time<S: Sys>(sys: &S, fd: Fd, size: Bytes) -> Result<u64> {
    let start = sys.clock();
    let places = (size.0 / MIB.0).max(1);
    let mut written = 0;
    while sys.clock().since(start) < TIME {
        sys.write(fd, Bytes(written % places * MIB.0), MIB).await?;
        written += 1;
    }
    Ok(written)
}
