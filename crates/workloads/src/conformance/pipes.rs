//! Pipes: bytes, ends, and who waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sys::{FileName, OpenMode, Result, SpawnOptions, Sys};
use units::{Bytes, Nanos};

use super::{done, size};
use crate::steps::{join_all, start};

/// After so long, whoever could go on has.
const SOON: Nanos = Nanos::millis(20);
/// More than a pipe holds.
const ALL: Bytes = Bytes(100_000);

pub(crate) async fn what_is_written_to_a_pipe_is_read<S: Sys>(sys: S) -> Result<()> {
    let pipe = sys.pipe().await?;
    // At both ends, so that nothing depends on who comes first.
    let process = SpawnOptions::process("both").stdin(pipe).stdout(pipe);
    let process = start(&sys, process, move |sys: S| async move {
        for (writes, reads) in [
            (&[10, 4090, 0, 4096, 5, 4097][..], &[3, 0, 100, 4096, 100_000][..]),
            (&[65_536], &[1, 4095, 4096, 5000, 100_000]),
            (&[1, 1, 1], &[2, 2]),
        ] {
            for length in writes {
                sys.sample("conformance/write", done(sys.write_stdout(Bytes(*length)).await));
            }
            for length in reads {
                sys.sample("conformance/read", size(sys.read_stdin(Bytes(*length)).await));
            }
        }
        Ok(())
    });
    sys.join(process).await;
    sys.close_pipe(pipe).await
}

/// What a full pipe has taken, and what it does not take then.
const FULL: &[(&[u64], u64)] = &[
    (&[65_536], 1),
    // What goes beyond whole pages goes into the last page, if all of it fits.
    (&[61_440, 4000, 96], 1),
    (&[61_440, 4000], 97),
    (&[61_440, 4000], 4096 + 96),
    (&[4095; 16], 2),
];

/// A writer that goes on makes a file.
pub(crate) async fn a_full_pipe_takes_no_more<S: Sys>(sys: S) -> Result<()> {
    let dir = sys.mkdir("a_full_pipe_takes_no_more").await?;
    let (pipe, barrier) = (sys.pipe().await?, sys.barrier(2));
    let file = move |number: usize| FileName { dir, number: number as u64 };
    let writer = start(&sys, SpawnOptions::process("writer").stdout(pipe), move |sys: S| async move {
        for (number, (fits, more)) in FULL.iter().enumerate() {
            for length in *fits {
                sys.write_stdout(Bytes(*length)).await?;
            }
            sys.barrier_wait(barrier).await;
            sys.write_stdout(Bytes(*more)).await?;
            sys.close(sys.open(file(number), OpenMode::Create).await?).await?;
            sys.barrier_wait(barrier).await;
            sys.barrier_wait(barrier).await;
        }
        Ok(())
    });
    let reader = start(&sys, SpawnOptions::process("reader").stdin(pipe), move |sys: S| async move {
        for (number, (fits, _)) in FULL.iter().enumerate() {
            sys.barrier_wait(barrier).await;
            // There is room once the first page is empty.
            for length in [fits[0].min(4096) - 1, 1] {
                sys.sleep(SOON).await;
                sys.sample("conformance/waits", size(sys.stat(file(number)).await));
                sys.sample("conformance/read", size(sys.read_stdin(Bytes(length)).await));
            }
            sys.barrier_wait(barrier).await;
            sys.sample("conformance/goes on", size(sys.stat(file(number)).await));
            sys.sample("conformance/read", size(sys.read_stdin(ALL).await));
            sys.barrier_wait(barrier).await;
        }
        Ok(())
    });
    join_all(&sys, &[writer, reader]).await;
    sys.close_pipe(pipe).await
}

/// Bytes that come until the end.
async fn read_to_the_end<S: Sys>(sys: &S) -> Result<f64> {
    let mut total = 0;
    loop {
        match sys.read_stdin(Bytes(1000)).await? {
            Bytes(0) => return Ok(total as f64),
            Bytes(read) => total += read,
        }
    }
}

pub(crate) async fn a_pipe_ends_with_its_last_writer<S: Sys>(sys: S) -> Result<()> {
    let pipe = sys.pipe().await?;
    let mut processes = vec![start(&sys, SpawnOptions::process("reader").stdin(pipe), |sys: S| async move {
        sys.sample("conformance/total", read_to_the_end(&sys).await?);
        sys.sample("conformance/after the end", size(sys.read_stdin(Bytes(1000)).await));
        Ok(())
    })];
    for (late, length) in [(0, 100_000), (5, 7), (10, 0)] {
        processes.push(start(&sys, SpawnOptions::process("writer").stdout(pipe), move |sys: S| async move {
            sys.sleep(Nanos::millis(late)).await;
            sys.write_stdout(Bytes(length)).await
        }));
    }
    sys.close_pipe(pipe).await?;
    join_all(&sys, &processes).await;
    Ok(())
}

/// A process that was spawned while another thread of its parent's was writing, and goes on until the reader has seen the end.
pub(crate) async fn a_child_holds_no_end_that_it_was_not_given<S: Sys>(sys: S) -> Result<()> {
    let (pipe, barrier) = (sys.pipe().await?, sys.barrier(2));
    let reader = start(&sys, SpawnOptions::process("reader").stdin(pipe), move |sys: S| async move {
        sys.sleep(SOON + SOON).await;
        sys.sample("conformance/total", read_to_the_end(&sys).await?);
        sys.barrier_wait(barrier).await;
        Ok(())
    });
    let writer = start(&sys, SpawnOptions::process("writer").stdout(pipe), move |sys: S| async move {
        let writes = |sys: S| async move { sys.write_stdout(Bytes(200_000)).await };
        let thread = start(&sys, SpawnOptions::thread("writer"), writes);
        sys.sleep(SOON).await;
        let child = start(&sys, SpawnOptions::process("child"), move |sys: S| async move {
            sys.barrier_wait(barrier).await;
            Ok(())
        });
        sys.join(thread).await;
        sys.close_pipe(pipe).await?;
        sys.join(child).await;
        Ok(())
    });
    sys.close_pipe(pipe).await?;
    join_all(&sys, &[reader, writer]).await;
    Ok(())
}

pub(crate) async fn who_writes_without_a_reader_is_told<S: Sys>(sys: S) -> Result<()> {
    let (pipe, barrier) = (sys.pipe().await?, sys.barrier(2));
    let reader = start(&sys, SpawnOptions::process("reader").stdin(pipe), move |sys: S| async move {
        sys.barrier_wait(barrier).await;
        sys.read_stdin(Bytes(10)).await?;
        sys.sleep(SOON).await;
        Ok(())
    });
    let writer = start(&sys, SpawnOptions::process("writer").stdout(pipe), move |sys: S| async move {
        sys.barrier_wait(barrier).await;
        // It waits for room when the reader ends.
        for length in [200_000, 1, 0, 1] {
            sys.sample("conformance/write", done(sys.write_stdout(Bytes(length)).await));
        }
        Ok(())
    });
    sys.close_pipe(pipe).await?;
    join_all(&sys, &[reader, writer]).await;
    Ok(())
}

pub(crate) async fn a_process_has_the_ends_that_it_was_given<S: Sys>(sys: S) -> Result<()> {
    let (pipe, other) = (sys.pipe().await?, sys.pipe().await?);
    sys.sample("conformance/read", size(sys.read_stdin(Bytes(1)).await));
    sys.sample("conformance/write", done(sys.write_stdout(Bytes(1)).await));
    let given_one = start(&sys, SpawnOptions::process("writer").stdout(pipe), move |sys: S| async move {
        sys.sample("conformance/read", size(sys.read_stdin(Bytes(1)).await));
        sys.sample("conformance/write", done(sys.write_stdout(Bytes(5)).await));
        for pipe in [other, pipe, pipe] {
            sys.sample("conformance/close", done(sys.close_pipe(pipe).await));
        }
        sys.sample("conformance/write", done(sys.write_stdout(Bytes(5)).await));
        Ok(())
    });
    sys.join(given_one).await;
    // An end is handed on to a child, whose own pipe is another one.
    let child = start(&sys, SpawnOptions::process("child").stdin(pipe), move |sys: S| async move {
        let own = sys.pipe().await?;
        sys.sample("conformance/own", f64::from(u8::from(own != pipe && own != other)));
        let grandchild =
            start(&sys, SpawnOptions::process("grandchild").stdin(pipe).stdout(own), move |sys: S| async move {
                sys.sample("conformance/read", size(sys.read_stdin(ALL).await));
                sys.write_stdout(Bytes(3)).await
            });
        sys.join(grandchild).await;
        sys.close_pipe(own).await
    });
    sys.join(child).await;
    for pipe in [pipe, pipe, other] {
        sys.sample("conformance/close", done(sys.close_pipe(pipe).await));
    }
    Ok(())
}

pub(crate) async fn threads_share_the_ends_of_their_process<S: Sys>(sys: S) -> Result<()> {
    let pipe = sys.pipe().await?;
    let process = SpawnOptions::process("threads").stdin(pipe).stdout(pipe);
    let process = start(&sys, process, move |sys: S| async move {
        const WRITTEN: u64 = 3 * 100_000;
        let read = Arc::new(AtomicU64::new(0));
        let writer = start(&sys, SpawnOptions::thread("writer"), |sys: S| async move {
            for _ in 0..3 {
                sys.write_stdout(Bytes(WRITTEN / 3)).await?;
            }
            Ok(())
        });
        let count = Arc::clone(&read);
        let reader = start(&sys, SpawnOptions::thread("reader"), move |sys: S| async move {
            while count.load(Ordering::Relaxed) < WRITTEN {
                count.fetch_add(sys.read_stdin(Bytes(777)).await?.0, Ordering::Relaxed);
            }
            Ok(())
        });
        join_all(&sys, &[writer, reader]).await;
        sys.sample("conformance/total", read.load(Ordering::Relaxed) as f64);
        let closer =
            start(&sys, SpawnOptions::thread("closer"), move |sys: S| async move { sys.close_pipe(pipe).await });
        sys.join(closer).await;
        sys.sample("conformance/read", size(sys.read_stdin(Bytes(1)).await));
        sys.sample("conformance/write", done(sys.write_stdout(Bytes(1)).await));
        Ok(())
    });
    sys.close_pipe(pipe).await?;
    sys.join(process).await;
    Ok(())
}
