//! simple-wb: one dd writes a file of four times the memory, again and again.
//!
//! Source: mmtests' `simple-writeback` of 2011 with one job: `dd if=/dev/zero ibs=1M obs=1M`, then `rm` of the file.

use sys::{FileName, OpenMode, Sys};
use units::Bytes;

const BLOCK: Bytes = Bytes::mib(1);

/// The program with its parameters.
#[derive(Clone, Copy, Debug)]
pub(super) struct SimpleWb {
    pub(super) size: Bytes,
    pub(super) iterations: u64,
}

impl SimpleWb {
    pub(super) async fn run<S: Sys>(self, sys: S) -> sys::Result<()> {
        let dir = sys.mkdir("simple-wb").await?;
        for number in 0..self.iterations {
            let name = FileName { dir, number };
            let fd = sys.open(name, OpenMode::Create).await?;
            let mut at = 0;
            while at < self.size.0 {
                sys.write(fd, Bytes(at), Bytes(BLOCK.0.min(self.size.0 - at))).await?;
                at += BLOCK.0;
            }
            sys.close(fd).await?;
            sys.unlink(name).await?;
        }
        Ok(())
    }
}
