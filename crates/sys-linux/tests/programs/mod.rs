//! The programs.

use std::collections::BTreeMap;

use sys::{Access, Advice, Fd, FileName, Mapping, OpenMode, Result, SpawnOptions, Sys, SysError};
use units::{Bytes, Nanos, PAGE_SIZE};

/// A metric and its samples.
pub(crate) type Seen = (String, Vec<f64>);

/// A result as a number: what it is if it is good, an error below zero.
fn number<T>(result: Result<T>, value: impl FnOnce(T) -> f64) -> f64 {
    let error = |error| match error {
        SysError::NoMemory => -1.0,
        SysError::NoSpace => -2.0,
        SysError::NoEntry => -3.0,
        SysError::Io => -4.0,
        SysError::Invalid => -5.0,
        SysError::BadFd => -6.0,
        SysError::TooManyFiles => -7.0,
        SysError::NotSupported => -8.0,
        SysError::Killed => -9.0,
        SysError::FileTooLarge => -10.0,
        SysError::NeedsModule => -11.0,
        SysError::NoSysctl => -12.0,
    };
    result.map_or_else(error, value)
}

fn size(result: Result<Bytes>) -> f64 {
    number(result, |bytes| bytes.0 as f64)
}

fn done(result: Result<()>) -> f64 {
    number(result, |()| 0.0)
}

const fn pages(n: u64) -> Bytes {
    Bytes(n * PAGE_SIZE)
}

fn resident<S: Sys>(sys: &S, mapping: Mapping, page: u64) {
    sys.sample("resident", f64::from(u8::from(sys.mincore(mapping, pages(page)))));
}

pub(crate) async fn memory_is_resident_once_touched<S: Sys>(sys: S) -> Result<()> {
    let mapping = sys.mmap(Bytes::mib(4), Bytes::mib(2)).await?;
    sys.madvise(mapping, Advice::NoHugePage).await?;
    resident(&sys, mapping, 0);
    sys.poke(mapping, Bytes(3 * PAGE_SIZE + 17), Access::Write).await?;
    sys.touch(mapping, pages(8), pages(4), Access::Write).await?;
    sys.touch(mapping, Bytes(20 * PAGE_SIZE - 1), Bytes(2), Access::Read).await?;
    for page in [2, 3, 4, 7, 8, 11, 12, 18, 19, 20, 21] {
        resident(&sys, mapping, page);
    }
    sys.madvise(mapping, Advice::DontNeed).await?;
    for page in [3, 8, 11] {
        resident(&sys, mapping, page);
    }
    sys.munmap(mapping).await
}

pub(crate) async fn bad_mappings_and_ranges_are_invalid<S: Sys>(sys: S) -> Result<()> {
    let sample = |value| sys.sample("result", value);
    sample(number(sys.mmap(Bytes(0), pages(1)).await, |_| 0.0));
    sample(number(sys.mmap(pages(1), Bytes(100)).await, |_| 0.0));
    let mapping = sys.mmap(pages(4), pages(1)).await?;
    sample(done(sys.touch(mapping, Bytes(0), pages(4), Access::Write).await));
    sample(done(sys.touch(mapping, Bytes(0), Bytes(pages(4).0 + 1), Access::Write).await));
    sample(done(sys.touch(mapping, pages(1), Bytes(0), Access::Write).await));
    sample(done(sys.poke(mapping, pages(4), Access::Read).await));
    sample(done(sys.munmap(mapping).await));
    sample(done(sys.munmap(mapping).await));
    sample(done(sys.poke(mapping, Bytes(0), Access::Read).await));
    sample(done(sys.madvise(mapping, Advice::DontNeed).await));
    resident(&sys, mapping, 0);
    Ok(())
}

pub(crate) async fn a_mapped_file_is_the_file<S: Sys>(sys: S) -> Result<()> {
    let name = FileName { dir: sys.mkdir("d").await?, number: 0 };
    let fd = sys.open(name, OpenMode::Create).await?;
    sys.sample("no page", number(sys.mmap_file(fd, Bytes(0)).await, |_| 0.0));
    sys.write(fd, Bytes(0), pages(8)).await?;
    let mapping = sys.mmap_file(fd, pages(8)).await?;
    // Cached is resident, mapped or not.
    resident(&sys, mapping, 7);
    sys.sample("read", done(sys.touch(mapping, Bytes(0), pages(8), Access::Read).await));
    sys.sample("store", done(sys.poke(mapping, pages(3), Access::Write).await));
    sys.close(fd).await?;
    sys.sample("after close", done(sys.poke(mapping, pages(5), Access::Write).await));
    sys.sample("size", size(sys.stat(name).await));
    sys.sample("outside", done(sys.poke(mapping, pages(8), Access::Read).await));
    sys.sample("unmapped", done(sys.munmap(mapping).await));
    sys.sample("gone", done(sys.poke(mapping, Bytes(0), Access::Read).await));
    let fd = sys.open(name, OpenMode::Existing).await?;
    sys.sample("read", size(sys.read(fd, Bytes(0), pages(9)).await));
    Ok(())
}

pub(crate) async fn reads_end_where_the_file_ends<S: Sys>(sys: S) -> Result<()> {
    let name = FileName { dir: sys.mkdir("d").await?, number: 0 };
    let fd = sys.open(name, OpenMode::Create).await?;
    sys.sample("size", size(sys.stat(name).await));
    sys.sample("read", size(sys.read(fd, Bytes(0), Bytes(10)).await));
    sys.write(fd, Bytes(0), Bytes(10_000)).await?;
    sys.sample("size", size(sys.stat(name).await));
    for (offset, length) in
        [(0, 10), (0, 10_000), (0, 20_000), (4095, 2), (9_999, 5), (10_000, 1), (12_288, 1), (99_999, 9)]
    {
        sys.sample("read", size(sys.read(fd, Bytes(offset), Bytes(length)).await));
    }
    // Beyond the end: a hole, then the data.
    sys.write(fd, Bytes(50_000), Bytes(1)).await?;
    sys.sample("size", size(sys.stat(name).await));
    sys.sample("read", size(sys.read(fd, Bytes(20_000), Bytes(40_000)).await));
    // A write inside does not move the end.
    sys.write(fd, Bytes(0), Bytes(1)).await?;
    sys.sample("size", size(sys.stat(name).await));
    sys.fsync(fd).await?;
    sys.close(fd).await
}

pub(crate) async fn truncation_cuts_and_extends<S: Sys>(sys: S) -> Result<()> {
    let name = FileName { dir: sys.mkdir("d").await?, number: 0 };
    let fd = sys.open(name, OpenMode::Create).await?;
    sys.write(fd, Bytes(0), Bytes(12_288)).await?;
    for length in [12_288, 100, 4096, 4097, 0, 20_000] {
        sys.truncate(fd, Bytes(length)).await?;
        sys.sample("size", size(sys.stat(name).await));
        sys.sample("read", size(sys.read(fd, Bytes(0), Bytes(30_000)).await));
    }
    sys.sync().await?;
    sys.close(fd).await
}

pub(crate) async fn a_removed_file_lives_until_its_last_close<S: Sys>(sys: S) -> Result<()> {
    let name = FileName { dir: sys.mkdir("d").await?, number: 7 };
    let old = sys.open(name, OpenMode::Create).await?;
    sys.write(old, Bytes(0), Bytes(5000)).await?;
    sys.sample("result", done(sys.unlink(name).await));
    sys.sample("result", done(sys.unlink(name).await));
    sys.sample("size", size(sys.stat(name).await));
    sys.sample("read", size(sys.read(old, Bytes(0), Bytes(9000)).await));
    sys.sample("result", number(sys.open(name, OpenMode::Existing).await, |_| 0.0));
    let new = sys.open(name, OpenMode::Create).await?;
    sys.sample("size", size(sys.stat(name).await));
    sys.write(new, Bytes(0), Bytes(3)).await?;
    sys.sample("read", size(sys.read(old, Bytes(0), Bytes(9000)).await));
    sys.sample("read", size(sys.read(new, Bytes(0), Bytes(9000)).await));
    sys.close(old).await?;
    sys.sample("read", size(sys.read(old, Bytes(0), Bytes(1)).await));
    sys.sample("result", done(sys.close(old).await));
    sys.sample("size", size(sys.stat(name).await));
    sys.close(new).await
}

pub(crate) async fn missing_files_have_no_entry<S: Sys>(sys: S) -> Result<()> {
    let dir = sys.mkdir("a/b").await?;
    let again = sys.mkdir("a/b").await? == dir;
    sys.sample("the same directory again", f64::from(u8::from(again)));
    let name = FileName { dir, number: 1_000_000 };
    sys.sample("result", number(sys.open(name, OpenMode::Existing).await, |_| 0.0));
    sys.sample("result", size(sys.stat(name).await));
    sys.sample("result", done(sys.unlink(name).await));
    sys.sample("result", done(sys.close(Fd(3)).await));
    sys.sample("result", done(sys.fsync(Fd(3)).await));
    sys.sample("result", done(sys.write(Fd(3), Bytes(0), Bytes(1)).await));
    Ok(())
}

pub(crate) async fn threads_share_files_and_processes_do_not<S: Sys>(sys: S) -> Result<()> {
    let name = FileName { dir: sys.mkdir("d").await?, number: 0 };
    let fd = sys.open(name, OpenMode::Create).await?;
    sys.write(fd, Bytes(0), Bytes(10)).await?;
    let mapping = sys.mmap(pages(2), pages(1)).await?;
    sys.poke(mapping, Bytes(0), Access::Write).await?;
    for options in [SpawnOptions::thread("thread"), SpawnOptions::process("process")] {
        let other = sys.spawn(options, move |sys: S| async move {
            sys.sample("read", size(sys.read(fd, Bytes(0), Bytes(100)).await));
            sys.sample("poke", done(sys.poke(mapping, pages(1), Access::Write).await));
            // A name is everybody's.
            sys.sample("size", size(sys.stat(name).await));
            if let Ok(own) = sys.open(name, OpenMode::Existing).await {
                sys.sample("write", done(sys.write(own, Bytes(10), Bytes(10)).await));
                sys.sample("close", done(sys.close(own).await));
            }
        });
        sys.join(other).await;
        sys.sample("size", size(sys.stat(name).await));
        sys.sample("read", size(sys.read(fd, Bytes(0), Bytes(100)).await));
    }
    Ok(())
}

pub(crate) async fn threads_stop_when_asked_and_meet_at_barriers<S: Sys>(sys: S) -> Result<()> {
    let barrier = sys.barrier(3);
    let spawn = |options: SpawnOptions| {
        sys.spawn(options, move |sys: S| async move {
            sys.barrier_wait(barrier).await;
            while !sys.stopping() {
                sys.sleep(Nanos::millis(1)).await;
            }
            sys.barrier_wait(barrier).await;
        })
    };
    let threads = [spawn(SpawnOptions::thread("thread")), spawn(SpawnOptions::process("process"))];
    sys.barrier_wait(barrier).await;
    sys.sample("stopping", f64::from(u8::from(sys.stopping())));
    for thread in threads {
        sys.stop(thread);
    }
    let before = sys.clock();
    sys.sleep(Nanos::millis(5)).await;
    sys.compute(Nanos::micros(100)).await;
    sys.sample("slept", f64::from(u8::from(sys.clock().since(before) >= Nanos::millis(5))));
    sys.barrier_wait(barrier).await;
    for thread in threads {
        sys.join(thread).await;
    }
    // Only this thread is left, and it was not asked.
    sys.sample("stopping", f64::from(u8::from(sys.stopping())));
    Ok(())
}

/// A process that only waits for its children: the signal to its group is all that ends them.
pub(crate) async fn who_is_stopped_is_stopped_with_all_that_it_spawned<S: Sys>(sys: S) -> Result<()> {
    let until_stopped = |sys: S| async move {
        while !sys.stopping() {
            sys.sleep(Nanos::millis(1)).await;
        }
    };
    let bystander = sys.spawn(SpawnOptions::process("bystander"), until_stopped);
    let parent = sys.spawn(SpawnOptions::process("parent"), move |sys: S| async move {
        let child = sys.spawn(SpawnOptions::process("child"), move |sys: S| async move {
            let grandchild = sys.spawn(SpawnOptions::thread("grandchild"), until_stopped);
            sys.join(grandchild).await;
        });
        sys.join(child).await;
        // Who comes after the signal is as little wanted.
        let late = sys.spawn(SpawnOptions::process("late"), until_stopped);
        sys.join(late).await;
    });
    sys.sleep(Nanos::millis(5)).await;
    sys.stop(parent);
    sys.join(parent).await;
    sys.sample("stopping", f64::from(u8::from(sys.stopping())));
    sys.stop(bystander);
    sys.join(bystander).await;
    sys.sample("joined", 1.0);
    Ok(())
}

/// An operation on one of a few files, of which each has at most one open descriptor that is kept.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FileOp {
    Open { file: u64, create: bool },
    Close { file: u64 },
    Write { file: u64, at: u64, length: u64 },
    Read { file: u64, at: u64, length: u64 },
    Truncate { file: u64, length: u64 },
    Stat { file: u64 },
    Unlink { file: u64 },
}

/// Carries out operations and records what each saw. An open file may have lost its name.
pub(crate) async fn file_ops<S: Sys>(sys: S, ops: Vec<FileOp>) -> Result<()> {
    let dir = sys.mkdir("d").await?;
    let mut open: BTreeMap<u64, Fd> = BTreeMap::new();
    // No process has so many files, so that this one is never open.
    let fd = |open: &BTreeMap<u64, Fd>, file| open.get(&file).copied().unwrap_or(Fd(999));
    for op in ops {
        let seen = match op {
            FileOp::Open { file, .. } if open.contains_key(&file) => 1.0,
            FileOp::Open { file, create } => {
                let mode = if create { OpenMode::Create } else { OpenMode::Existing };
                number(sys.open(FileName { dir, number: file }, mode).await, |fd| {
                    open.insert(file, fd);
                    0.0
                })
            }
            FileOp::Close { file } => {
                let closed = done(sys.close(fd(&open, file)).await);
                open.remove(&file);
                closed
            }
            FileOp::Write { file, at, length } => done(sys.write(fd(&open, file), Bytes(at), Bytes(length)).await),
            FileOp::Read { file, at, length } => size(sys.read(fd(&open, file), Bytes(at), Bytes(length)).await),
            FileOp::Truncate { file, length } => done(sys.truncate(fd(&open, file), Bytes(length)).await),
            FileOp::Stat { file } => size(sys.stat(FileName { dir, number: file }).await),
            FileOp::Unlink { file } => done(sys.unlink(FileName { dir, number: file }).await),
        };
        sys.sample("seen", seen);
    }
    Ok(())
}
