//! The archive of a kernel tree, as it is downloaded, listed and unpacked.
//!
//! Source: mmtests of January 2015: `sources_fetch()` (`shellpacks/common.sh`) downloads the archive for each benchmark that wants it
//! (linux-3.0.tar.gz: 96,684,037 bytes), `bench-stresshighalloc.sh` lists it for its name and unpacks it.
//! gzip 1.6 reads and writes 32 KiB at a time (`INBUFSIZ`, `WSIZE`).
//! Abstracted: gzip decodes at an even pace; the network gives 117 MB/s, as gigabit Ethernet does. With a size of 0 there is
//! no file, and only the tree is written, by one process. It is downloaded in whole parts of 128 KiB, the last one too.

use sys::{FileName, OpenMode, SpawnOptions, Sys};
use units::{Bytes, Nanos};

use crate::piped::{run_piped, unless_unread};
use crate::steps::start;
use crate::tar::{self, Tar};
use crate::tree::{FILES_PER_DIR, Tree, UNPACK, size_of};

/// What is downloaded at a time.
const CHUNK: u64 = 128 << 10;
/// What gzip reads, and what it writes at a time.
const WINDOW: u64 = 32 << 10;
/// Time for a chunk to come over the network.
const DOWNLOAD: Nanos = Nanos(CHUNK * 1_000_000_000 / 117_000_000);

/// One archive.
#[derive(Clone, Copy, Debug)]
pub(super) struct Archive {
    /// None if it has no size.
    name: Option<FileName>,
    size: Bytes,
}

impl Archive {
    /// Downloads it into a directory of its own.
    pub(super) async fn fetch<S: Sys>(sys: &S, dir: &str, size: Bytes) -> sys::Result<Archive> {
        if size == Bytes(0) {
            return Ok(Archive { name: None, size });
        }
        let name = FileName { dir: sys.mkdir(dir).await?, number: 0 };
        let fd = sys.open(name, OpenMode::Create).await?;
        for at in (0..size.0).step_by(CHUNK as usize) {
            sys.sleep(DOWNLOAD).await;
            sys.write(fd, Bytes(at), Bytes(CHUNK)).await?;
        }
        sys.close(fd).await?;
        Ok(Archive { name: Some(name), size })
    }

    /// Decodes all of it for its first name (`tar -t`), if there is a file.
    pub(super) async fn list<S: Sys>(&self, sys: &S, files: u32) -> sys::Result<()> {
        match self.name {
            Some(name) => self.decode(sys, name, files, None).await,
            None => Ok(()),
        }
    }

    /// Writes a tree from it (`tar -x`).
    pub(super) async fn unpack<S: Sys>(&self, sys: &S, tree: &Tree) -> sys::Result<()> {
        match self.name {
            Some(name) => self.decode(sys, name, tree.len(), Some(tree.clone())).await,
            None => tree.unpack(sys).await,
        }
    }

    /// gzip and tar, which makes a tree or only reads.
    async fn decode<S: Sys>(&self, sys: &S, name: FileName, files: u32, tree: Option<Tree>) -> sys::Result<()> {
        let size = self.size.0;
        run_piped(sys, |pipe| {
            let gzip = move |sys: S| async move { unless_unread(decompress(&sys, name, size, files).await) };
            let tar = move |sys: S| async move { extract(&sys, files, tree).await };
            [
                start(sys, SpawnOptions::process("gzip").stdout(pipe), gzip),
                start(sys, SpawnOptions::process("tar").stdin(pipe), tar),
            ]
        })
        .await
    }

    pub(super) async fn remove<S: Sys>(&self, sys: &S) -> sys::Result<()> {
        let Some(name) = self.name else { return Ok(()) };
        sys.unlink(name).await?;
        sys.rmdir(name.dir).await
    }
}

/// gzip: reads as much of the file as it decodes, and writes it to the pipe.
async fn decompress<S: Sys>(sys: &S, name: FileName, size: u64, files: u32) -> sys::Result<()> {
    let unpacked = tar::archive_of(files).0;
    let windows = unpacked.div_ceil(WINDOW);
    let time = Nanos(UNPACK.0 * u64::from(files) / windows);
    let fd = sys.open(name, OpenMode::Existing).await?;
    let mut read = 0;
    for window in 0..windows {
        while read < size * (window + 1) / windows {
            sys.read(fd, Bytes(read), Bytes(WINDOW)).await?;
            read += WINDOW;
        }
        sys.compute(time).await;
        sys.write_stdout(Bytes(WINDOW.min(unpacked - window * WINDOW))).await?;
    }
    sys.close(fd).await
}

/// tar: takes all files, and writes them if there is a tree.
async fn extract<S: Sys>(sys: &S, files: u32, tree: Option<Tree>) -> sys::Result<()> {
    let mut tar = Tar::new();
    for file in 0..files {
        if file.is_multiple_of(FILES_PER_DIR) {
            tar.directory(sys).await?;
        }
        tar.file(sys, size_of(file)).await?;
        if let Some(tree) = &tree {
            tree.write(sys, file).await?;
        }
    }
    tar.finish(sys).await
}
