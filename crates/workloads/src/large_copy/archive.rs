//! The archive: a tar of kernel sources, compressed by bzip2, and the tree that it holds.
//!
//! Source: `tar -xf large-tar-file.tar.bz2` (mmtests, `shellpack-bench-largecopy` and its configurations of 2010 to 2012); sizes
//! of the files are those of a kernel tree (tree.rs). bzip2 takes its archive apart in blocks of 900 kB of contents: it decodes
//! one whole before it writes the first byte of it, so that tar works while it writes, and waits while it decodes; it writes 4 KiB at a time.
//! Measured with bzip2 1.0.8 and GNU tar 1.34 on sources of linux-6.12: 1039 MB, of which the archive has 162, take 21.6 s into a pipe,
//! half of it before a block's first byte. That is 48 MB/s; writing into the pipe takes 1.2 % of it in the twin (6.12, at the reference's
//! speed), so that bzip2 itself has a pace of 49. `wget` writes 16 KiB at a time.
//! Abstracted: headers of tar and what they are padded with, nearly all zeros, take no part of a block, as bzip2 shortens runs first.

use std::ops::Range;

use sys::{Dir, FileName, OpenMode, SpawnOptions, Sys};
use units::{Bytes, Nanos, PAGE_SIZE};

use super::start_program;
use crate::piped::{Output, run_piped, unless_unread};
use crate::tar::{self, Tar};
use crate::tree::{self, FILES_PER_DIR};

/// What bzip2 reads at a time (the buffer of `fread()`), and wget writes.
const READ: u64 = 4 << 10;
const WRITE: u64 = 16 << 10;
/// Contents of files in a block of bzip2 (`bzip2 -9`).
const BLOCK: u64 = 900_000;
/// What bzip2 decodes at a time, and what it writes at a time (`uncompressStream()`, stdio's buffer for a pipe).
const DECODE: u64 = 5_000;
const STDIO: Bytes = Bytes::kib(4);
/// The tree, and how many directories lie in one of it.
const TREE: &str = "linux";
const DIRS_PER_DIR: u32 = 100;
/// Tenths by which the contents are larger than the archive.
const RATIO_TENTHS: u64 = 64;
/// What arrives while wget sleeps.
const ARRIVAL: u64 = 256 << 10;
/// CPU time that wget takes for what it writes at a time: a system call on the socket, and its TCP. Guess: 1 us/KiB.
const RECEIVE: Nanos = Nanos::micros(16);

/// An archive on disk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Archive {
    name: FileName,
    files: u32,
    /// Bytes of all files.
    contents: u64,
    size: u64,
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
        Ok(Archive { name, files, contents: bytes, size: bytes * 10 / RATIO_TENTHS, unpack_bytes_per_s })
    }

    /// Writes it as it comes in over the network.
    pub(super) async fn download<S: Sys>(&self, sys: &S, bytes_per_s: u64) -> sys::Result<()> {
        let fd = sys.open(self.name, OpenMode::Create).await?;
        let start = sys.clock();
        let mut at = 0;
        while at < self.size {
            let arrived = Nanos(((at + ARRIVAL) as f64 / bytes_per_s as f64 * 1e9) as u64);
            sys.sleep(arrived.since(sys.clock().since(start))).await;
            for part in (at..self.size.min(at + ARRIVAL)).step_by(WRITE as usize) {
                sys.compute(RECEIVE).await;
                sys.write(fd, Bytes(part), Bytes(WRITE.min(self.size - part))).await?;
            }
            at += ARRIVAL;
        }
        sys.close(fd).await
    }

    /// Unpacks it (`tar -xf`).
    pub(super) async fn unpack<S: Sys>(&self, sys: &S) -> sys::Result<()> {
        let archive = *self;
        run_piped(sys, |pipe| {
            let bzip2 = SpawnOptions::process("bzip2").stdout(pipe);
            let decompress = move |sys: S| async move { unless_unread(archive.decompress(&sys).await) };
            let tar = SpawnOptions::process("tar").stdin(pipe);
            let extract = move |sys: S| async move { archive.extract(&sys).await };
            [start_program(sys, bzip2, decompress), start_program(sys, tar, extract)]
        })
        .await
    }

    /// bzip2: reads and decodes a block, and writes it to the pipe.
    async fn decompress<S: Sys>(&self, sys: &S) -> sys::Result<()> {
        let fd = sys.open(self.name, OpenMode::Existing).await?;
        let unpacked = tar::archive_of(self.files).0;
        let mut output = Output::new(STDIO);
        for block in 0..self.blocks() {
            let packed = self.part(self.size, block);
            for at in packed.clone().step_by(READ as usize) {
                sys.read(fd, Bytes(at), Bytes(READ.min(packed.end - at))).await?;
            }
            let half = Nanos(length(self.part(self.contents, block)) * 1_000_000_000 / self.unpack_bytes_per_s / 2);
            sys.compute(half).await;
            write_block(sys, &mut output, self.part(unpacked, block), half).await?;
        }
        output.flush(sys).await?;
        sys.close(fd).await
    }

    /// tar: makes the files.
    async fn extract<S: Sys>(&self, sys: &S) -> sys::Result<()> {
        let mut tar = Tar::new();
        for number in 0..self.dirs() {
            tar.directory(sys).await?;
            let dir = make_dir(sys, number).await?;
            for file in self.files_in(number) {
                let size = tree::size_of(file);
                tar.file(sys, size).await?;
                tree::write_file(sys, FileName { dir, number: u64::from(file % FILES_PER_DIR) }, size).await?;
            }
        }
        tar.finish(sys).await
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

    fn blocks(&self) -> u64 {
        self.contents.div_ceil(BLOCK)
    }

    /// What a block has of so many bytes.
    fn part(&self, bytes: u64, block: u64) -> Range<u64> {
        bytes * block / self.blocks()..bytes * (block + 1) / self.blocks()
    }
}

fn length(range: Range<u64>) -> u64 {
    range.end - range.start
}

/// Decodes what is left of a block, and writes its bytes.
async fn write_block<S: Sys>(sys: &S, output: &mut Output, bytes: Range<u64>, time: Nanos) -> sys::Result<()> {
    for at in bytes.clone().step_by(DECODE as usize) {
        let decoded = at..bytes.end.min(at + DECODE);
        sys.compute(Nanos(time.0 * length(decoded.clone()) / length(bytes.clone()))).await;
        output.put_to(sys, decoded.end).await?;
    }
    Ok(())
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
        let contents = (0..files).map(|file| tree::size_of(file).0).sum();
        Archive { name: FileName { dir: Dir(0), number: 0 }, files, contents, size: 0, unpack_bytes_per_s: 1 }
    }

    #[test]
    fn every_file_is_in_one_directory() {
        for files in [1, 15, 16, 17, 80, 81, 1000] {
            let archive = of_files(files);
            let all: Vec<u32> = (0..archive.dirs()).flat_map(|dir| archive.files_in(dir)).collect();
            assert_eq!(all, (0..files).collect::<Vec<_>>());
        }
    }

    #[test]
    fn blocks_of_900_kb_have_all_of_it_once() {
        let archive = of_files(8000);
        for bytes in [archive.contents, tar::archive_of(8000).0, 12_345_678] {
            let parts: Vec<Range<u64>> = (0..archive.blocks()).map(|block| archive.part(bytes, block)).collect();
            assert!(parts.windows(2).all(|two| two[0].end == two[1].start));
            assert_eq!((parts[0].start, parts[parts.len() - 1].end), (0, bytes));
        }
        for block in 0..archive.blocks() {
            let contents = length(archive.part(archive.contents, block));
            assert!((890_000..=BLOCK).contains(&contents), "{contents}");
        }
    }
}
