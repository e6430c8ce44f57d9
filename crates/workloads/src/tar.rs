//! tar, which reads the archive of a kernel tree from the pipe of what decompresses it (`tar -xj`, `-xz`, `-tz`).
//!
//! Rule: a member is a header of 512 bytes with a file's bytes behind it, padded to whole blocks; a directory has a header only. Two blocks
//! of zeros are the end, padded to a record. Records of 10 KiB are read, each until it is full (`read_full_records`).
//! Source: GNU tar 1.34, `src/buffer.c`: `short_read()`, `open_compressed_archive()`. Measured of it (sources of linux-6.12, from
//! `bzip2 -d`): 0.57 s to read 1039 MB, 560 ns for a KiB. In the twin its system calls on the pipe and its waits at it take 440 of them (6.12, at
//! the reference's speed, while it unpacks what bzip2 writes).
//! Abstracted: a file is written once all of it has come, where tar writes what it finds in each record.

use sys::{Result, Sys};
use units::{Bytes, Nanos};

use crate::piped::Input;
use crate::tree::{self, FILES_PER_DIR};

/// A block, and a record (`-b 20`).
const BLOCK: u64 = 512;
const RECORD: Bytes = Bytes::kib(10);
/// CPU time of tar itself for a KiB of the archive: what is left of what was measured.
const TAKE: Nanos = Nanos(120);

/// Bytes of a member of the archive.
fn member(size: Bytes) -> u64 {
    BLOCK + size.0.next_multiple_of(BLOCK)
}

/// Size of the archive of so many files of a tree, not compressed.
pub(crate) fn archive_of(files: u32) -> Bytes {
    let dirs = u64::from(files.div_ceil(FILES_PER_DIR)) * member(Bytes(0));
    let members: u64 = (0..files).map(|file| member(tree::size_of(file))).sum();
    Bytes((dirs + members + 2 * BLOCK).next_multiple_of(RECORD.0))
}

/// What tar has of its archive.
#[derive(Debug)]
pub(crate) struct Tar {
    input: Input,
    /// End of the member that it is at.
    end: u64,
}

impl Tar {
    pub(crate) fn new() -> Tar {
        Tar { input: Input::new(RECORD), end: 0 }
    }

    /// Takes the header of a directory.
    pub(crate) async fn directory<S: Sys>(&mut self, sys: &S) -> Result<()> {
        self.file(sys, Bytes(0)).await
    }

    /// Takes a file of this size.
    pub(crate) async fn file<S: Sys>(&mut self, sys: &S, size: Bytes) -> Result<()> {
        let bytes = member(size);
        self.end += bytes;
        self.input.read_to(sys, self.end).await?;
        sys.compute(Nanos(TAKE.0 * bytes / 1024)).await;
        Ok(())
    }

    /// Takes the end of the archive.
    pub(crate) async fn finish<S: Sys>(mut self, sys: &S) -> Result<()> {
        self.input.read_to_end(sys).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_take_whole_blocks_and_the_archive_whole_records() {
        let sizes = [0, 1, 512, 513].map(|size| member(Bytes(size)));
        assert_eq!(sizes, [512, 1024, 1024, 1536]);
        // The first file of a tree has 110 bytes: two headers, a block, and two blocks of zeros.
        assert_eq!((archive_of(0), archive_of(1)), (RECORD, RECORD));
        let files: u64 = (0..1000).map(|file| 512 + tree::size_of(file).0.div_ceil(512) * 512).sum();
        let all: u64 = files + 63 * 512 + 1024;
        assert_eq!(archive_of(1000).0, all.div_ceil(10_240) * 10_240);
    }
}
