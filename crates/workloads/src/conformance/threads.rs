//! Threads, processes, stop flags and barriers.

use sys::{Access, FileName, OpenMode, Result, SpawnOptions, Sys};
use units::{Bytes, Nanos};

use super::{done, pages, size};

pub(crate) async fn threads_share_files_and_processes_do_not<S: Sys>(sys: S) -> Result<()> {
    let name = FileName { dir: sys.mkdir("threads_share_files_and_processes_do_not").await?, number: 0 };
    let fd = sys.open(name, OpenMode::Create).await?;
    sys.write(fd, Bytes(0), Bytes(10)).await?;
    let mapping = sys.mmap(pages(2), pages(1)).await?;
    sys.poke(mapping, Bytes(0), Access::Write).await?;
    for options in [SpawnOptions::thread("thread"), SpawnOptions::process("process")] {
        let other = sys.spawn(options, move |sys: S| async move {
            sys.sample("conformance/read", size(sys.read(fd, Bytes(0), Bytes(100)).await));
            sys.sample("conformance/poke", done(sys.poke(mapping, pages(1), Access::Write).await));
            // A name is everybody's.
            sys.sample("conformance/size", size(sys.stat(name).await));
            if let Ok(own) = sys.open(name, OpenMode::Existing).await {
                sys.sample("conformance/write", done(sys.write(own, Bytes(10), Bytes(10)).await));
                sys.sample("conformance/close", done(sys.close(own).await));
            }
        });
        sys.join(other).await;
        sys.sample("conformance/size", size(sys.stat(name).await));
        sys.sample("conformance/read", size(sys.read(fd, Bytes(0), Bytes(100)).await));
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
    sys.sample("conformance/stopping", f64::from(u8::from(sys.stopping())));
    for thread in threads {
        sys.stop(thread);
    }
    let before = sys.clock();
    sys.sleep(Nanos::millis(5)).await;
    let used = sys.cpu_time();
    sys.compute(Nanos::millis(1)).await;
    sys.sample("conformance/used", f64::from(u8::from(sys.cpu_time().since(used) >= Nanos::micros(900))));
    sys.sample("conformance/slept", f64::from(u8::from(sys.clock().since(before) >= Nanos::millis(5))));
    sys.barrier_wait(barrier).await;
    for thread in threads {
        sys.join(thread).await;
    }
    // Only this thread is left, and it was not asked.
    sys.sample("conformance/stopping", f64::from(u8::from(sys.stopping())));
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
    sys.sample("conformance/stopping", f64::from(u8::from(sys.stopping())));
    sys.stop(bystander);
    sys.join(bystander).await;
    sys.sample("conformance/joined", 1.0);
    Ok(())
}
