//! Memory cgroups: what is charged to whom, and what limits do.
//!
//! A kernel charges 64 pages at a time, and adds the counters of `memory.stat` up every two seconds; kernel memory is charged
//! too, which `memory.stat` tells apart.

use sys::{Access, Advice, Cgroup, CgroupLimit, FileName, Mapping, OpenMode, Result, SpawnOptions, Sys};
use units::{Bytes, Nanos};

use super::{done, pages, truth};
use crate::groups::{mortal, run_in, start_in, value};
use crate::steps::start;

const MIB: Bytes = Bytes::mib(1);
/// Pages that a CPU charges at once.
const BATCH: f64 = 64.0;
/// Until the counters of `memory.stat` have been added up.
const ADDED_UP: Nanos = Nanos::millis(4500);

/// A limit as the file has it, in bytes; -1 is none.
async fn limit<S: Sys>(sys: &S, group: Cgroup, file: &str) -> Result<f64> {
    let value = value(sys, group, file, "").await?;
    Ok(if value.is_infinite() { -1.0 } else { value })
}

/// A line of `memory.stat` in pages.
async fn stat_pages<S: Sys>(sys: &S, group: Cgroup, word: &str) -> Result<f64> {
    Ok(value(sys, group, "memory.stat", word).await? / pages(1).0 as f64)
}

/// What is charged beside kernel memory, in pages.
async fn charged<S: Sys>(sys: &S, group: Cgroup) -> Result<f64> {
    let current = value(sys, group, "memory.current", "").await? / pages(1).0 as f64;
    Ok(current - stat_pages(sys, group, "kernel").await?)
}

/// Whether these many pages are as many as they should be, but for what one CPU charges at once.
fn near(seen: f64, expected: f64) -> f64 {
    truth((seen - expected).abs() <= BATCH)
}

/// Private memory without huge pages.
async fn memory<S: Sys>(sys: &S, size: Bytes) -> Result<Mapping> {
    let mapping = sys.mmap(size, pages(1)).await?;
    sys.madvise(mapping, Advice::NoHugePage).await?;
    Ok(mapping)
}

/// Stores to every page of new memory.
async fn fill<S: Sys>(sys: &S, size: Bytes) -> Result<Mapping> {
    let mapping = memory(sys, size).await?;
    sys.touch(mapping, Bytes(0), size, Access::Write).await?;
    Ok(mapping)
}

/// Events of a group by their lines.
async fn tell_kills<S: Sys>(sys: &S, group: Cgroup) -> Result<()> {
    for word in ["oom", "oom_kill"] {
        sys.sample("conformance/kills", value(sys, group, "memory.events", word).await?);
    }
    sys.sample("conformance/at max", truth(value(sys, group, "memory.events", "max").await? > 0.0));
    Ok(())
}

pub(crate) async fn limits_are_whole_pages<S: Sys>(sys: S) -> Result<()> {
    let group = sys.cgroup("limits").await?;
    let limits = [
        CgroupLimit::Min,
        CgroupLimit::Low,
        CgroupLimit::High,
        CgroupLimit::Max,
        CgroupLimit::SwapHigh,
        CgroupLimit::SwapMax,
    ];
    for kind in limits {
        sys.sample("conformance/first", limit(&sys, group, kind.file()).await?);
        for value in [Some(Bytes(10 * MIB.0 + 1234)), Some(Bytes(4095)), Some(Bytes(1 << 40)), None] {
            sys.sample("conformance/set", done(sys.cgroup_set(group, kind, value).await));
            sys.sample("conformance/limit", limit(&sys, group, kind.file()).await?);
        }
    }
    for file in ["memory.current", "memory.swap.current"] {
        sys.sample("conformance/empty", limit(&sys, group, file).await?);
    }
    Ok(())
}

pub(crate) async fn who_touches_a_page_first_pays_for_it<S: Sys>(sys: S) -> Result<()> {
    let (one, other) = (sys.cgroup("first").await?, sys.cgroup("second").await?);
    let name = FileName { dir: sys.mkdir("who_touches_a_page_first_pays_for_it").await?, number: 0 };
    run_in(&sys, one, mortal("first"), move |sys: S| async move {
        let fd = sys.open(name, OpenMode::Create).await?;
        // A program's buffer is memory too.
        sys.write(fd, Bytes(0), MIB).await?;
        let mapping = memory(&sys, Bytes(16 * MIB.0)).await?;
        sys.sleep(ADDED_UP).await;
        let before = [stat_pages(&sys, one, "anon").await?, stat_pages(&sys, one, "file").await?];
        let all = charged(&sys, one).await?;
        // Loads of memory that was never stored to take none.
        sys.touch(mapping, Bytes(8 * MIB.0), Bytes(8 * MIB.0), Access::Read).await?;
        sys.touch(mapping, Bytes(0), Bytes(8 * MIB.0), Access::Write).await?;
        sys.touch(mapping, Bytes(0), Bytes(8 * MIB.0), Access::Write).await?;
        for at in 0..4 {
            sys.write(fd, Bytes(at * MIB.0), MIB).await?;
        }
        sys.fsync(fd).await?;
        sys.sleep(ADDED_UP).await;
        sys.sample("conformance/anon", near(stat_pages(&sys, one, "anon").await? - before[0], 2048.0));
        sys.sample("conformance/file", near(stat_pages(&sys, one, "file").await? - before[1], 768.0));
        sys.sample("conformance/charged", near(charged(&sys, one).await? - all, 2048.0 + 768.0));
        Ok(())
    })
    .await;
    run_in(&sys, other, mortal("second"), move |sys: S| async move {
        let fd = sys.open(name, OpenMode::Existing).await?;
        for at in 0..4 {
            sys.read(fd, Bytes(at * MIB.0), MIB).await?;
        }
        sys.sleep(ADDED_UP).await;
        sys.sample("conformance/file of others", near(stat_pages(&sys, other, "file").await?, 0.0));
        sys.close(fd).await
    })
    .await;
    Ok(())
}

pub(crate) async fn a_page_is_paid_for_until_it_is_gone<S: Sys>(sys: S) -> Result<()> {
    let group = sys.cgroup("gone").await?;
    let name = FileName { dir: sys.mkdir("a_page_is_paid_for_until_it_is_gone").await?, number: 0 };
    let tell = |charged: f64, expected: u64| near(charged, expected as f64);
    run_in(&sys, group, mortal("first"), move |sys: S| async move {
        let mapping = memory(&sys, Bytes(8 * MIB.0)).await?;
        sys.poke(mapping, Bytes(0), Access::Write).await?;
        let fd = sys.open(name, OpenMode::Create).await?;
        sys.write(fd, Bytes(0), MIB).await?;
        sys.fsync(fd).await?;
        sys.sleep(ADDED_UP).await;
        let before = charged(&sys, group).await?;
        sys.touch(mapping, Bytes(0), Bytes(8 * MIB.0), Access::Write).await?;
        sys.sample("conformance/charged", tell(charged(&sys, group).await? - before, 2047));
        sys.madvise(mapping, Advice::DontNeed).await?;
        sys.sample("conformance/charged", tell(charged(&sys, group).await? - before, 0));
        sys.truncate(fd, Bytes(0)).await?;
        sys.sample("conformance/charged", near(charged(&sys, group).await? - before, -257.0));
        sys.close(fd).await
    })
    .await;
    // Whoever has ended pays for nothing, and files stay.
    run_in(&sys, group, mortal("second"), move |sys: S| async move {
        fill(&sys, MIB).await?;
        let fd = sys.open(name, OpenMode::Existing).await?;
        sys.write(fd, Bytes(0), MIB).await?;
        sys.close(fd).await
    })
    .await;
    sys.sleep(ADDED_UP).await;
    sys.sample("conformance/left", near(charged(&sys, group).await?, 256.0));
    sys.sample("conformance/left", stat_pages(&sys, group, "anon").await?);
    Ok(())
}

pub(crate) async fn a_group_above_max_is_killed_and_nobody_else<S: Sys>(sys: S) -> Result<()> {
    let (group, bystander) = (sys.cgroup("container").await?, sys.cgroup("bystander").await?);
    sys.cgroup_set(group, CgroupLimit::Max, Some(Bytes(16 * MIB.0))).await?;
    sys.cgroup_set(group, CgroupLimit::SwapMax, Some(Bytes(0))).await?;
    let waiting = start_in(&sys, bystander, mortal("bystander"), |sys: S| async move {
        fill(&sys, Bytes(4 * MIB.0)).await?;
        while !sys.stopping() {
            sys.sleep(Nanos::millis(1)).await;
        }
        sys.sample("conformance/survives", 1.0);
        Ok(())
    });
    for size in [12, 20, 12, 64] {
        run_in(&sys, group, mortal("app"), move |sys: S| async move {
            fill(&sys, Bytes(size * MIB.0)).await?;
            sys.sample("conformance/fits", size as f64);
            Ok(())
        })
        .await;
        tell_kills(&sys, group).await?;
    }
    let peak = value(&sys, group, "memory.peak", "").await? / pages(1).0 as f64;
    sys.sample("conformance/peak", near(peak, 4096.0));
    sys.sample("conformance/left", near(charged(&sys, group).await?, 0.0));
    sys.stop(waiting);
    sys.join(waiting).await;
    tell_kills(&sys, bystander).await
}

pub(crate) async fn clean_files_give_way_below_max<S: Sys>(sys: S) -> Result<()> {
    const SIZE: u64 = 24;
    let group = sys.cgroup("files").await?;
    let name = FileName { dir: sys.mkdir("clean_files_give_way_below_max").await?, number: 0 };
    sys.cgroup_set(group, CgroupLimit::Max, Some(Bytes(12 * MIB.0))).await?;
    run_in(&sys, group, mortal("app"), move |sys: S| async move {
        let fd = sys.open(name, OpenMode::Create).await?;
        for at in 0..SIZE {
            sys.write(fd, Bytes(at * MIB.0), MIB).await?;
        }
        sys.fsync(fd).await?;
        for at in 0..SIZE {
            sys.sample("conformance/read", super::size(sys.read(fd, Bytes(at * MIB.0), MIB).await));
        }
        sys.close(fd).await
    })
    .await;
    tell_kills(&sys, group).await?;
    let current = value(&sys, group, "memory.current", "").await?;
    sys.sample("conformance/below max", truth(current <= 12.0 * MIB.0 as f64));
    let taken = value(&sys, group, "memory.stat", "pgsteal").await?;
    // All but what fits was taken back, once as it was written and again as it was read.
    sys.sample("conformance/taken", truth(taken >= pages_of(SIZE - 12)));
    Ok(())
}

fn pages_of(mib: u64) -> f64 {
    (mib * MIB.0 / pages(1).0) as f64
}

pub(crate) async fn above_high_a_task_waits_and_goes_on<S: Sys>(sys: S) -> Result<()> {
    let group = sys.cgroup("high").await?;
    sys.cgroup_set(group, CgroupLimit::High, Some(Bytes(12 * MIB.0))).await?;
    sys.cgroup_set(group, CgroupLimit::SwapMax, Some(Bytes(0))).await?;
    run_in(&sys, group, mortal("app"), move |sys: S| async move {
        let mapping = memory(&sys, Bytes(14 * MIB.0)).await?;
        let started = sys.clock();
        sys.touch(mapping, Bytes(0), Bytes(10 * MIB.0), Access::Write).await?;
        sys.sample("conformance/fast below", truth(sys.clock().since(started) < Nanos::millis(500)));
        sys.touch(mapping, Bytes(10 * MIB.0), Bytes(4 * MIB.0), Access::Write).await?;
        // Sixth of the limit too much, with the square of that, for each of the last batches of 64.
        sys.sample("conformance/slow above", truth(sys.clock().since(started) > Nanos::secs(1)));
        sys.sample("conformance/all there", truth((0..3584).all(|page| sys.mincore(mapping, pages(page)))));
        let current = value(&sys, group, "memory.current", "").await?;
        sys.sample("conformance/above", truth(current >= 14.0 * MIB.0 as f64));
        Ok(())
    })
    .await;
    sys.sample("conformance/high", truth(value(&sys, group, "memory.events", "high").await? > 0.0));
    tell_kills(&sys, group).await
}

pub(crate) async fn swapped_pages_come_back<S: Sys>(sys: S) -> Result<()> {
    let group = sys.cgroup("swapped").await?;
    sys.cgroup_set(group, CgroupLimit::Max, Some(Bytes(8 * MIB.0))).await?;
    run_in(&sys, group, mortal("app"), move |sys: S| async move {
        let mapping = fill(&sys, Bytes(16 * MIB.0)).await?;
        let there = (0..4096).filter(|page| sys.mincore(mapping, pages(*page))).count() as f64;
        sys.sample("conformance/fits", truth(there <= pages_of(8) && there > pages_of(4)));
        let swapped = value(&sys, group, "memory.swap.current", "").await? / pages(1).0 as f64;
        sys.sample("conformance/swapped", truth(swapped >= pages_of(8)));
        for page in [0, 1, 2000, 4095, 17] {
            sys.sample("conformance/load", done(sys.poke(mapping, pages(page), Access::Read).await));
            sys.sample("conformance/back", truth(sys.mincore(mapping, pages(page))));
        }
        sys.sample("conformance/loads", done(sys.touch(mapping, Bytes(0), Bytes(16 * MIB.0), Access::Read).await));
        sys.sample("conformance/faults", truth(value(&sys, group, "memory.stat", "pgmajfault").await? > 0.0));
        sys.munmap(mapping).await?;
        // But for the program's own pages.
        let slots = value(&sys, group, "memory.swap.current", "").await? / pages(1).0 as f64;
        sys.sample("conformance/slots", near(slots, 0.0));
        Ok(())
    })
    .await;
    tell_kills(&sys, group).await
}

pub(crate) async fn swap_ends_where_swap_max_says<S: Sys>(sys: S) -> Result<()> {
    let group = sys.cgroup("swap-max").await?;
    sys.cgroup_set(group, CgroupLimit::Max, Some(Bytes(8 * MIB.0))).await?;
    sys.cgroup_set(group, CgroupLimit::SwapMax, Some(pages(1029))).await?;
    for size in [10, 20] {
        run_in(&sys, group, mortal("app"), move |sys: S| async move {
            fill(&sys, Bytes(size * MIB.0)).await?;
            let swapped = value(&sys, group, "memory.swap.current", "").await? / pages(1).0 as f64;
            sys.sample("conformance/swapped", truth(swapped >= pages_of(2) && swapped <= 1029.0));
            Ok(())
        })
        .await;
        tell_kills(&sys, group).await?;
        let slots = value(&sys, group, "memory.swap.current", "").await? / pages(1).0 as f64;
        sys.sample("conformance/slots", near(slots, 0.0));
    }
    // How often a slot was refused before it was killed depends on how fast swap is.
    let refused = value(&sys, group, "memory.swap.events", "max").await?;
    sys.sample("conformance/swap fail", truth(value(&sys, group, "memory.swap.events", "fail").await? >= refused));
    Ok(())
}

pub(crate) async fn groups_above_see_what_happens_below<S: Sys>(sys: S) -> Result<()> {
    let (above, below) = (sys.cgroup("above").await?, sys.cgroup("above/below").await?);
    let beside = sys.cgroup("above/beside").await?;
    sys.cgroup_set(above, CgroupLimit::Max, Some(Bytes(16 * MIB.0))).await?;
    sys.cgroup_set(above, CgroupLimit::SwapMax, Some(Bytes(0))).await?;
    sys.cgroup_set(below, CgroupLimit::Max, Some(Bytes(8 * MIB.0))).await?;
    // One is killed at its own limit, the other at the limit of the group above.
    for (group, size) in [(below, 12), (beside, 12), (beside, 24)] {
        run_in(&sys, group, mortal("app"), move |sys: S| async move {
            fill(&sys, Bytes(size * MIB.0)).await?;
            sys.sample("conformance/fits", size as f64);
            Ok(())
        })
        .await;
        for group in [above, below, beside] {
            tell_kills(&sys, group).await?;
        }
    }
    Ok(())
}

/// A reader grows until it is killed, while a writer waits for room.
pub(crate) async fn who_is_killed_closes_its_pipe<S: Sys>(sys: S) -> Result<()> {
    let (group, pipe) = (sys.cgroup("piped").await?, sys.pipe().await?);
    sys.cgroup_set(group, CgroupLimit::Max, Some(Bytes(16 * MIB.0))).await?;
    sys.cgroup_set(group, CgroupLimit::SwapMax, Some(Bytes(0))).await?;
    let writer = start(&sys, SpawnOptions::process("writer").stdout(pipe), |sys: S| async move {
        sys.sample("conformance/write", done(sys.write_stdout(MIB).await));
        Ok(())
    });
    run_in(&sys, group, mortal("reader").stdin(pipe), move |sys: S| async move {
        sys.sample("conformance/read", super::size(sys.read_stdin(Bytes(10)).await));
        fill(&sys, Bytes(64 * MIB.0)).await.map(drop)
    })
    .await;
    // Only now, so that the writer found a reader.
    sys.close_pipe(pipe).await?;
    sys.join(writer).await;
    tell_kills(&sys, group).await
}
