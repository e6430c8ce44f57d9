//! The archive: a tar of kernel sources, compressed by bzip2, and the tree that it holds.
//!
//! Source: `tar -xf large-tar-file.tar.bz2` (mmtests, `shellpack-bench-largecopy` and its configurations of 2010 to 2012); sizes
//! of the files are those of a kernel tree (tree.rs). bzip2 takes its archive apart in blocks of 900 kB of contents: it decodes
//! one whole before it writes the first byte of it, so that tar works while it writes, and waits while it decodes. Measured
//! with bzip2 1.0.8 and GNU tar 1.34 on sources of linux-6.12: 1039 MB, of which the archive has 162, take 21.6 s into a pipe,
//! half of it before a block's first byte; tar takes 0.57 s to read them from it. `wget` writes 16 KiB at a time.
//! Abstracted: of a block, tar gets all at once and bzip2 waits for its last byte to be taken, where the pipe holds 64 KiB.

use std::ops::Range;

use sys::{Barrier, Dir, FileName, OpenMode, Sys};
use units::{Bytes, Nanos, PAGE_SIZE};

use super::start_program;
use crate::steps::join_all;
use crate::tree::{self, FILES_PER_DIR};

/// What bzip2 reads at a time (the buffer of `fread()`), and wget writes.
const READ: u64 = 4 << 10;
const WRITE: u64 = 16 << 10;
/// Directories that a block of bzip2 holds: 80 files of 11,265 B (`bzip2 -9`: 900 kB).
const BLOCK_DIRS: u32 = 5;
/// The tree, and how many directories lie in one of it.
const TREE: &str = "linux";
const DIRS_PER_DIR: u32 = 100;
/// Tenths by which the contents are larger than the archive.
const RATIO_TENTHS: u64 = 64;
/// CPU time of tar for a KiB that it reads from the pipe.
const TAKE: Nanos = Nanos(560);
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
    /// Contents that bzip2 decompresses in a second.
    unpack_bytes_per_s: u64,
}

impl Archive {
    /// An archive of a tree that takes so much of the disk.
    pub(super) async fn new<S: Sys>(sys: &S, unpacked: Bytes, unpack_bytes_per_s: u64) -> sys::Result<Archive> {
        let (mut files, mut pages, mut bytes) = (0, 0, 0);
        while pages * PAGE_SIZE < unpacked.0 {
            let size = tree::size_of(files).0;
            (files, pages, bytes) = (files + 1, pages + size.div_ceil(PAGE_SIZE), bytes + size);
        }
        let name = FileName { dir: sys.mkdir("download").await?, number: 0 };
        Ok(Archive { name, files, size: Bytes(bytes * 10 / RATIO_TENTHS), unpack_bytes_per_s })
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

    /// Unpacks it (`tar -xf`).
    pub(super) async fn unpack<S: Sys>(&self, sys: &S) {
        let (pipe, archive) = (sys.barrier(2), *self);
        let bzip2 = start_program(sys, "bzip2", move |sys: S| async move { archive.decompress(&sys, pipe).await });
        let tar = start_program(sys, "tar", move |sys: S| async move { archive.extract(&sys, pipe).await });
        join_all(sys, &[bzip2, tar]).await;
    }

    /// bzip2: reads and decodes a block, and writes its contents to the pipe.
    async fn decompress<S: Sys>(&self, sys: &S, pipe: Barrier) -> sys::Result<()> {
        let fd = sys.open(self.name, OpenMode::Existing).await?;
        let mut at = 0;
        for block in 0..self.blocks() {
            let end = self.size.0 * u64::from(block + 1) / u64::from(self.blocks());
            let half = Nanos(self.bytes_in(block) * 1_000_000_000 / self.unpack_bytes_per_s / 2);
            while at < end {
                sys.read(fd, Bytes(at), Bytes(READ.min(end - at))).await?;
                at += READ.min(end - at);
            }
            sys.compute(half).await;
            sys.barrier_wait(pipe).await;
            sys.compute(half).await;
            sys.barrier_wait(pipe).await;
        }
        sys.close(fd).await
    }

    /// tar: makes the files of a block.
    async fn extract<S: Sys>(&self, sys: &S, pipe: Barrier) -> sys::Result<()> {
        for block in 0..self.blocks() {
            sys.barrier_wait(pipe).await;
            for number in self.dirs_in(block) {
                let dir = make_dir(sys, number).await?;
                for file in self.files_in(number) {
                    let size = tree::size_of(file);
                    sys.compute(Nanos(TAKE.0 * size.0 / 1024)).await;
                    tree::write_file(sys, FileName { dir, number: u64::from(file % FILES_PER_DIR) }, size).await?;
                }
            }
            sys.barrier_wait(pipe).await;
        }
        Ok(())
    }

    /// Removes the tree and the archive (`rm -rf`).
    pub(super) async fn delete<S: Sys>(&self, sys: &S) -> sys::Result<()> {
        for hundred in 0..self.dirs().div_ceil(DIRS_PER_DIR) {
            for number in hundred * DIRS_PER_DIR..self.dirs().min((hundred + 1) * DIRS_PER_DIR) {
                let dir = make_dir(sys, number).await?;
                for file in self.files_in(number) {
                    sys.unlink(FileName { dir, number: u64::from(file % FILES_PER_DIR) }).await?;
                }
                sys.rmdir(dir).await?;
            }
            sys.rmdir(sys.mkdir(&format!("{TREE}/{hundred}")).await?).await?;
        }
        sys.rmdir(sys.mkdir(TREE).await?).await?;
        sys.unlink(self.name).await
    }

    fn dirs(&self) -> u32 {
        self.files.div_ceil(FILES_PER_DIR)
    }

    fn files_in(&self, dir: u32) -> Range<u32> {
        dir * FILES_PER_DIR..self.files.min((dir + 1) * FILES_PER_DIR)
    }

    fn blocks(&self) -> u32 {
        self.dirs().div_ceil(BLOCK_DIRS)
    }

    fn dirs_in(&self, block: u32) -> Range<u32> {
        block * BLOCK_DIRS..self.dirs().min((block + 1) * BLOCK_DIRS)
    }

    fn bytes_in(&self, block: u32) -> u64 {
        self.dirs_in(block).flat_map(|dir| self.files_in(dir)).map(|file| tree::size_of(file).0).sum()
    }
}

/// A directory of the tree, made if it is not there.
async fn make_dir<S: Sys>(sys: &S, number: u32) -> sys::Result<Dir> {
    sys.mkdir(&format!("{TREE}/{}/{number}", number / DIRS_PER_DIR)).await
}

#[cfg(test)]
mod tests {
    use sys::Dir;

    use super::*;

    fn of_files(files: u32) -> Archive {
        Archive { name: FileName { dir: Dir(0), number: 0 }, files, size: Bytes(0), unpack_bytes_per_s: 1 }
    }

    #[test]
    fn every_file_is_in_one_directory_and_every_directory_in_one_block() {
        for files in [1, 15, 16, 17, 80, 81, 1000] {
            let archive = of_files(files);
            let dirs: Vec<u32> = (0..archive.blocks()).flat_map(|block| archive.dirs_in(block)).collect();
            assert_eq!(dirs, (0..archive.dirs()).collect::<Vec<_>>());
            let all: Vec<u32> = dirs.into_iter().flat_map(|dir| archive.files_in(dir)).collect();
            assert_eq!(all, (0..files).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_block_of_bzip2_holds_900_kb() {
        let archive = of_files(8000);
        let bytes: u64 = (0..archive.blocks()).map(|block| archive.bytes_in(block)).sum();
        let mean = bytes / u64::from(archive.blocks());
        assert!((855_000..945_000).contains(&mean), "{mean}");
    }
}
