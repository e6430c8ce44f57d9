//! The archive of a kernel tree, as it is downloaded, listed and unpacked.
//!
//! Source: mmtests of January 2015: `sources_fetch()` (`shellpacks/common.sh`) downloads the archive for each benchmark that wants it
//! (linux-3.0.tar.gz: 96,684,037 bytes), `bench-stresshighalloc.sh` lists it for its name and unpacks it.
//! Abstracted: gzip decodes at an even pace; the network gives 117 MB/s, as gigabit Ethernet does. With a size of 0 there is
//! no file, and only the tree is written. It is downloaded in whole parts of 128 KiB, the last one too.

use sys::{FileName, OpenMode, Sys};
use units::{Bytes, Nanos};

use crate::tree::{Tree, UNPACK};

/// What is read and written at a time.
const CHUNK: u64 = 128 << 10;
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
        if self.name.is_none() {
            return Ok(());
        }
        self.decode(sys, files, async |_| {
            sys.compute(UNPACK).await;
            Ok(())
        })
        .await
    }

    /// Writes a tree from it (`tar -x`).
    pub(super) async fn unpack<S: Sys>(&self, sys: &S, tree: &Tree) -> sys::Result<()> {
        self.decode(sys, tree.len(), async |file| tree.unpack(sys, file).await).await
    }

    /// Reads as much of it as there are files done, and does the next.
    async fn decode<S: Sys>(
        &self,
        sys: &S,
        files: u32,
        mut file: impl AsyncFnMut(u32) -> sys::Result<()>,
    ) -> sys::Result<()> {
        let fd = match self.name {
            Some(name) => Some(sys.open(name, OpenMode::Existing).await?),
            None => None,
        };
        let mut read = 0;
        for number in 0..files {
            let done = (self.size.0 * u64::from(number + 1)).div_ceil(u64::from(files));
            while let Some(fd) = fd.filter(|_| read < done) {
                sys.read(fd, Bytes(read), Bytes(CHUNK)).await?;
                read += CHUNK;
            }
            file(number).await?;
        }
        match fd {
            Some(fd) => sys.close(fd).await,
            None => Ok(()),
        }
    }

    pub(super) async fn remove<S: Sys>(&self, sys: &S) -> sys::Result<()> {
        let Some(name) = self.name else { return Ok(()) };
        sys.unlink(name).await?;
        sys.rmdir(name.dir).await
    }
}
