//! The archive: a tar of kernel sources, compressed, and the tree that it holds.
//!
//! Source: sizes of the files are those of a kernel tree (tree.rs); linux-2.6.39.tar.gz is a 4.4th of its contents;
//! `gzip -d` reads 32 KiB at a time, `wget` writes 16 KiB.
//! Abstracted: gzip and tar, a pipe between them, go on together a directory at a time.

use sys::{Barrier, Dir, FileName, OpenMode, SpawnOptions, Sys};
use units::{Bytes, Nanos, PAGE_SIZE};

use crate::steps::{join_all, start};
use crate::tree::{self, FILES_PER_DIR};

/// Tenths by which the contents are larger than the archive.
const RATIO_TENTHS: u64 = 44;
/// What gzip reads at a time, and wget writes.
const READ: u64 = 32 << 10;
const WRITE: u64 = 16 << 10;
/// What arrives while wget sleeps.
const ARRIVAL: u64 = 256 << 10;
/// CPU time that wget takes for what it writes at a time: a system call on the socket, and its TCP. Guess: 1 us/KiB.
const RECEIVE: Nanos = Nanos::micros(16);

/// An archive on disk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Archive {
    name: FileName,
    files: u32,
    size: Bytes,
}

impl Archive {
    /// An archive of a tree that takes so much of the disk.
    pub(super) async fn new<S: Sys>(sys: &S, unpacked: Bytes) -> sys::Result<Archive> {
        let (mut files, mut pages, mut bytes) = (0, 0, 0);
        while pages * PAGE_SIZE < unpacked.0 {
            let size = tree::size_of(files).0;
            (files, pages, bytes) = (files + 1, pages + size.div_ceil(PAGE_SIZE), bytes + size);
        }
        let name = FileName { dir: sys.mkdir("download").await?, number: 0 };
        Ok(Archive { name, files, size: Bytes(bytes * 10 / RATIO_TENTHS) })
    }

    /// Writes it as it comes in over the network.
    pub(super) async fn download<S: Sys>(&self, sys: &S, bytes_per_s: u64) -> sys::Result<()> {
        let fd = sys.open(self.name, OpenMode::Create).await?;
        let start = sys.clock();
        let mut at = 0;
        while at < self.size.0 {
            let arrived = Nanos(((at + ARRIVAL) as f64 / bytes_per_s as f64 * 1e9) as u64);
            sys.sleep(arrived.since(sys.clock().since(start))).await;
            for part in (at..self.size.0.min(at + ARRIVAL)).step_by(WRITE as usize) {
                sys.compute(RECEIVE).await;
                sys.write(fd, Bytes(part), Bytes(WRITE.min(self.size.0 - part))).await?;
            }
            at += ARRIVAL;
        }
        sys.close(fd).await
    }

    /// Unpacks it (`tar xzf`).
    pub(super) async fn unpack<S: Sys>(&self, sys: &S) {
        let (pipe, archive) = (sys.barrier(2), *self);
        let gzip =
            start(sys, SpawnOptions::process("gzip"), move |sys: S| async move { archive.inflate(&sys, pipe).await });
        let tar =
            start(sys, SpawnOptions::process("tar"), move |sys: S| async move { archive.extract(&sys, pipe).await });
        join_all(sys, &[gzip, tar]).await;
    }

    async fn inflate<S: Sys>(&self, sys: &S, pipe: Barrier) -> sys::Result<()> {
        let fd = sys.open(self.name, OpenMode::Existing).await?;
        let mut at = 0;
        for dir in 0..self.dirs() {
            let end = self.size.0 * u64::from(dir + 1) / u64::from(self.dirs());
            while at < end {
                sys.read(fd, Bytes(at), Bytes(READ)).await?;
                at += READ;
            }
            sys.compute(Nanos(tree::UNPACK.0 * u64::from(self.files_in(dir)))).await;
            sys.barrier_wait(pipe).await;
        }
        sys.close(fd).await
    }

    async fn extract<S: Sys>(&self, sys: &S, pipe: Barrier) -> sys::Result<()> {
        for number in 0..self.dirs() {
            sys.barrier_wait(pipe).await;
            let dir = make_dir(sys, number).await?;
            for file in 0..self.files_in(number) {
                let size = tree::size_of(number * FILES_PER_DIR + file);
                tree::write_file(sys, FileName { dir, number: u64::from(file) }, size).await?;
            }
        }
        Ok(())
    }

    /// Removes the tree and the archive (`rm -rf`).
    pub(super) async fn delete<S: Sys>(&self, sys: &S) -> sys::Result<()> {
        for number in 0..self.dirs() {
            let dir = make_dir(sys, number).await?;
            for file in 0..self.files_in(number) {
                sys.unlink(FileName { dir, number: u64::from(file) }).await?;
            }
        }
        sys.unlink(self.name).await
    }

    fn dirs(&self) -> u32 {
        self.files.div_ceil(FILES_PER_DIR)
    }

    fn files_in(&self, dir: u32) -> u32 {
        FILES_PER_DIR.min(self.files - dir * FILES_PER_DIR)
    }
}

/// A directory of the tree, made if it is not there.
async fn make_dir<S: Sys>(sys: &S, number: u32) -> sys::Result<Dir> {
    sys.mkdir(&format!("linux/{}/{number}", number / 100)).await
}

#[cfg(test)]
mod tests {
    use sys::Dir;

    use super::*;

    #[test]
    fn every_file_is_in_one_directory() {
        let name = FileName { dir: Dir(0), number: 0 };
        for files in [1, 15, 16, 17, 1000] {
            let archive = Archive { name, files, size: Bytes(0) };
            assert_eq!((0..archive.dirs()).map(|dir| archive.files_in(dir)).sum::<u32>(), files);
        }
    }
}
