//! fs_mark: in each loop children create files, each in a directory of its own; all are deleted after the last loop.
//!
//! Source: fs_mark 3.3 (`-d DIR.. -D 100 -N 150 -n FILES -L LOOPS -S0 -s SIZE`), as mmtests calls it with a `-d` for each child
//! (`FSMARK_PARALLEL_DIRECTORIES`). A child clears its buffer (`setup()`) and starts in the sub-directory that the seconds of the
//! clock name, so that each loop has one of its own, which XFS puts into the next allocation group. For each file it makes the
//! sub-directory if it is not there (`setup_file_name()`), creates the file and writes it, without fsync, in writes of 16 KiB; the time
//! for that counts. A loop's files per second are the sum over the children, as fs_mark adds them up. The files stay until mmtests removes
//! the directory (`-L` sets `keep_files`): of 25 loops in 512 MiB, which wrote 9.60 million pages, its author counted 9.76 million pages
//! reclaimed (linux-mm, 2011-07-21, version 2 of the series), so that none went with a file.
//! Abstracted: children are threads of one process, where fs_mark forks: 45 faults, of pages that are copied or mapped, before a child's
//! clock starts, and nine after (counted on a run of the program); the names are numbers; files are removed in the order in which children
//! ended, where `rm -rf` goes by directories.
//! Omitted: the children's logs, which lie on another file system; removing the directories.

use std::sync::{Arc, Mutex};

use sys::{Access, Dir, FileName, Mapping, OpenMode, SpawnOptions, Sys};
use units::{Bytes, Nanos, PAGE_SIZE};

use crate::steps::{OWN_PAGES, join_all, start};

/// Sub-directories of a thread (`-D`).
const SUBDIRS: u64 = 100;
/// Files that go to a sub-directory before the next one's turn comes (`-N`).
const FILES_IN_TURN: u64 = 150;
/// Size of a write (`-w`, fs_mark's default).
const WRITE: Bytes = Bytes::kib(16);

/// The program with its parameters.
#[derive(Clone, Copy, Debug)]
pub(super) struct FsMark {
    /// Children, each with a directory of its own.
    pub(super) threads: u64,
    /// Files of each child in a loop.
    pub(super) files: u64,
    pub(super) size: Bytes,
    pub(super) loops: u64,
}

impl FsMark {
    pub(super) async fn run<S: Sys>(self, sys: S) -> sys::Result<()> {
        let mut files = Vec::new();
        for done in 0..self.loops {
            let made = Arc::new(Mutex::new(Made::default()));
            let mut children = Vec::new();
            for child in 0..self.threads {
                let made = Arc::clone(&made);
                children.push(start(
                    &sys,
                    SpawnOptions::thread("fs_mark").own_pages(OWN_PAGES),
                    move |sys: S| async move {
                        let own = self.child(&sys, child, done).await?;
                        made.lock().expect("no child panics holding it").add(own);
                        Ok(())
                    },
                ));
            }
            join_all(&sys, &children).await;
            let made = std::mem::take(&mut *made.lock().expect("no child panics holding it"));
            sys.sample("files_per_s", made.per_s);
            files.extend(made.files);
        }
        for file in files {
            sys.unlink(file).await?;
        }
        Ok(())
    }

    /// What a child does in a loop.
    async fn child<S: Sys>(self, sys: &S, child: u64, done: u64) -> sys::Result<Made> {
        let second = sys.clock().0 / Nanos::secs(1).0;
        let buffer = sys.mmap(WRITE, Bytes(PAGE_SIZE)).await?;
        sys.touch(buffer, Bytes(0), WRITE, Access::Write).await?;
        let started = sys.clock();
        let mut files = Vec::new();
        for number in 0..self.files {
            let dir: Dir = sys.mkdir(&format!("fsmark/{child}/{:02x}", subdir(second, number))).await?;
            let file = FileName { dir, number: done * self.files + number };
            self.write(sys, file, buffer).await?;
            files.push(file);
        }
        let per_s = self.files as f64 / sys.clock().since(started).as_secs_f64();
        sys.munmap(buffer).await?;
        Ok(Made { per_s, files })
    }

    async fn write<S: Sys>(self, sys: &S, file: FileName, buffer: Mapping) -> sys::Result<()> {
        let fd = sys.open(file, OpenMode::Create).await?;
        let mut at = 0;
        while at < self.size.0 {
            sys.write_from(fd, Bytes(at), buffer, Bytes(WRITE.0.min(self.size.0 - at))).await?;
            at += WRITE.0;
        }
        sys.close(fd).await
    }
}

/// Sub-directory of a file of a child that started in this second.
fn subdir(second: u64, number: u64) -> u64 {
    (second + number / FILES_IN_TURN) % SUBDIRS
}

/// What children made in a loop.
#[derive(Default)]
struct Made {
    /// Files per second, added up.
    per_s: f64,
    files: Vec<FileName>,
}

impl Made {
    fn add(&mut self, other: Made) {
        self.per_s += other.per_s;
        self.files.extend(other.files);
    }
}

#[cfg(test)]
mod tests {
    use super::subdir;

    #[test]
    fn sub_directories_begin_at_the_second_and_come_round() {
        let of = |second, numbers: [u64; 3]| numbers.map(|number| subdir(second, number));
        assert_eq!(of(42, [0, 149, 150]), [42, 42, 43]);
        assert_eq!(of(199, [0, 150, 15_000]), [99, 0, 99]);
    }
}
