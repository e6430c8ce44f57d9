//! Programs of a desktop that start one after the other: each reads its files, touches memory and computes.
//!
//! Source: the monitor of mmtests (facts of the benchmarks, section F): evolution, which is given 30 seconds;
//! gnome-terminal, in which `find /usr/share` runs to its end; iceweasel, until a page with a table of 100 by 100 is shown.
//! What each of them reads, touches and computes is a guess of the size that such programs of 2011 have: some 20 to 40 MiB of
//! libraries and data in files of a few hundred KiB, as much memory or twice that, and a second or more of CPU time.
//! Abstracted: a program maps each of its files once and reads all of it; what it computes and touches is spread evenly.

use sys::{Access, Dir, FileName, OpenMode, SpawnOptions, Sys};
use units::{Bytes, Nanos, PAGE_SIZE};

use crate::steps::start;
use crate::tree::write_file;

/// A program.
#[derive(Clone, Copy, Debug)]
struct Program {
    name: &'static str,
    metric: &'static str,
    /// Files that it maps, and the size of each.
    files: u64,
    file_size: Bytes,
    /// Memory that it touches.
    memory: Bytes,
    time: Nanos,
    /// Files below `/usr/share` that it looks up.
    finds: u64,
    /// Time that it is given when it is there.
    wait: Nanos,
}

const PROGRAMS: [Program; 3] = [
    Program {
        name: "evolution",
        metric: "app_launch_s/evolution-wait30",
        files: 160,
        file_size: Bytes::kib(256),
        memory: Bytes::mib(60),
        time: Nanos::millis(1_500),
        finds: 0,
        wait: Nanos::secs(30),
    },
    Program {
        name: "gnome-terminal",
        metric: "app_launch_s/gnome-terminal-find",
        files: 100,
        file_size: Bytes::kib(192),
        memory: Bytes::mib(20),
        time: Nanos::millis(800),
        finds: FOUND,
        wait: Nanos::ZERO,
    },
    Program {
        name: "iceweasel",
        metric: "app_launch_s/iceweasel-table",
        files: 120,
        file_size: Bytes::kib(320),
        memory: Bytes::mib(80),
        time: Nanos::millis(3_000),
        finds: 0,
        wait: Nanos::ZERO,
    },
];

/// Files below `/usr/share`, and in a directory of it.
const FOUND: u64 = 20_000;
const FOUND_PER_DIR: u64 = 25;
const FOUND_SIZE: Bytes = Bytes::kib(4);
/// CPU time of `find` and of the terminal for a line: it is formatted and drawn. Guess.
const LINE: Nanos = Nanos::micros(50);

/// Writes the files of all programs.
pub(super) async fn install<S: Sys>(sys: &S) -> sys::Result<()> {
    for program in &PROGRAMS {
        let dir = program.dir(sys).await?;
        for number in 0..program.files {
            write_file(sys, FileName { dir, number }, program.file_size).await?;
        }
    }
    for number in 0..FOUND {
        write_file(sys, found(sys, number).await?, FOUND_SIZE).await?;
    }
    sys.sync().await
}

/// Starts the programs in turn until it is stopped.
pub(super) async fn one_after_the_other<S: Sys>(sys: &S) -> sys::Result<()> {
    loop {
        for program in PROGRAMS {
            if sys.stopping() {
                return Ok(());
            }
            let started = sys.clock();
            let thread =
                start(sys, SpawnOptions::process(program.name), move |sys: S| async move { program.run(&sys).await });
            sys.join(thread).await;
            sys.sample(program.metric, sys.clock().since(started).as_secs_f64());
        }
    }
}

async fn found<S: Sys>(sys: &S, number: u64) -> sys::Result<FileName> {
    let dir = sys.mkdir(&format!("usr/share/{}", number / FOUND_PER_DIR)).await?;
    Ok(FileName { dir, number: number % FOUND_PER_DIR })
}

impl Program {
    async fn dir<S: Sys>(&self, sys: &S) -> sys::Result<Dir> {
        sys.mkdir(&format!("usr/lib/{}", self.name)).await
    }

    async fn run<S: Sys>(&self, sys: &S) -> sys::Result<()> {
        let dir = self.dir(sys).await?;
        let heap = sys.mmap(self.memory, Bytes(PAGE_SIZE)).await?;
        let part = self.memory.0 / self.files / PAGE_SIZE * PAGE_SIZE;
        for number in 0..self.files {
            let fd = sys.open(FileName { dir, number }, OpenMode::Existing).await?;
            let image = sys.mmap_file(fd, self.file_size).await?;
            sys.close(fd).await?;
            sys.touch(image, Bytes(0), self.file_size, Access::Read).await?;
            sys.touch(heap, Bytes(number * part), Bytes(part), Access::Write).await?;
            sys.compute(Nanos(self.time.0 / self.files)).await;
        }
        for number in 0..self.finds {
            sys.stat(found(sys, number).await?).await?;
            sys.compute(LINE).await;
        }
        sys.sleep(self.wait).await;
        Ok(())
    }
}
