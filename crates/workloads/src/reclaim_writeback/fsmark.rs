//! fs_mark: threads create files, each in a directory of its own; all are deleted after the last loop.
//!
//! Source: fs_mark 3.3 (`-d DIR.. -D 100 -N 150 -n FILES -L LOOPS -t 1 -S0 -s SIZE`), as mmtests calls it. Steps of a loop: each
//! thread clears its buffer (`setup()`) and with it creates and writes its files, without fsync, in writes of 16 KiB; the time for that counts. A loop's files per second
//! are the sum over the threads, as fs_mark adds them up. The files stay until mmtests removes the directory (`-L` sets `keep_files`): of 25
//! loops in 512 MiB, which wrote 9.60 million pages, its author counted 9.76 million pages reclaimed (linux-mm, 2011-07-21,
//! version 2 of the series), so that none went with a file.
//! Abstracted: threads of one process, where fs_mark forks; the names are numbers; a thread's time begins before it clears its
//! buffer, not after.

use std::sync::{Arc, Mutex};

use sys::{Access, Dir, FileName, OpenMode, SpawnOptions, Sys};
use units::{Bytes, PAGE_SIZE};

use crate::steps::{join_all, start};

/// Sub-directories of a thread (`-D`).
const SUBDIRS: u64 = 100;
/// Files that go to a sub-directory before the next one's turn comes (`-N`).
const FILES_IN_TURN: u64 = 150;
/// Size of a write (`-w`, fs_mark's default).
const WRITE: Bytes = Bytes::kib(16);

/// The program with its parameters.
#[derive(Clone, Copy, Debug)]
pub(super) struct FsMark {
    pub(super) threads: u64,
    /// Files of each thread in a loop.
    pub(super) files: u64,
    pub(super) size: Bytes,
    pub(super) loops: u64,
}

impl FsMark {
    pub(super) async fn run<S: Sys>(self, sys: S) -> sys::Result<()> {
        for done in 0..self.loops {
            let rates = Arc::new(Mutex::new(0.0));
            let mut threads = Vec::new();
            for thread in 0..self.threads {
                let rates = Arc::clone(&rates);
                threads.push(start(&sys, SpawnOptions::thread("fs_mark"), move |sys: S| async move {
                    let rate = self.thread(&sys, thread, done).await?;
                    *rates.lock().expect("no thread panics holding it") += rate;
                    Ok(())
                }));
            }
            join_all(&sys, &threads).await;
            sys.sample("files_per_s", *rates.lock().expect("no thread panics holding it"));
        }
        self.remove(&sys).await
    }

    /// One loop of one thread; its files per second.
    async fn thread<S: Sys>(self, sys: &S, thread: u64, done: u64) -> sys::Result<f64> {
        let started = sys.clock();
        let buffer = sys.mmap(WRITE, Bytes(PAGE_SIZE)).await?;
        sys.touch(buffer, Bytes(0), WRITE, Access::Write).await?;
        for number in 0..self.files {
            let fd = sys.open(name(sys, thread, done * self.files + number).await?, OpenMode::Create).await?;
            let mut at = 0;
            while at < self.size.0 {
                sys.write_from(fd, Bytes(at), buffer, Bytes(WRITE.0.min(self.size.0 - at))).await?;
                at += WRITE.0;
            }
            sys.close(fd).await?;
        }
        sys.munmap(buffer).await?;
        Ok(self.files as f64 / sys.clock().since(started).as_secs_f64())
    }

    /// Removes the files of all loops, and leaves the directories.
    async fn remove<S: Sys>(self, sys: &S) -> sys::Result<()> {
        for thread in 0..self.threads {
            for number in 0..self.loops * self.files {
                sys.unlink(name(sys, thread, number).await?).await?;
            }
        }
        Ok(())
    }
}

async fn name<S: Sys>(sys: &S, thread: u64, number: u64) -> sys::Result<FileName> {
    let subdir = number / FILES_IN_TURN % SUBDIRS;
    let dir: Dir = sys.mkdir(&format!("fsmark/{thread}/{subdir:02}")).await?;
    Ok(FileName { dir, number })
}
