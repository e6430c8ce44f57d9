//! Programs of a desktop, as they start.
//!
//! Rule: a program maps its files one after the other and reads each; as it goes on it touches memory of its own and computes.
//! A guess: what each of them reads, touches and computes has the size that such programs of 2011 have, some 20 to 40 MiB of
//! libraries and data in files of a few hundred KiB, as much memory or twice that, and a second or more of CPU time.
//! Abstracted: a program maps each of its files once and reads all of it; what it computes and touches is spread evenly.

use sys::{Access, Dir, FileName, OpenMode, Sys};
use units::{Bytes, Nanos, PAGE_SIZE};

use crate::tree::write_file;

/// A program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Program {
    pub(crate) name: &'static str,
    /// Files that it maps, and the size of each.
    files: u64,
    file_size: Bytes,
    /// Memory that it touches.
    memory: Bytes,
    time: Nanos,
}

pub(crate) const EVOLUTION: Program = Program {
    name: "evolution",
    files: 160,
    file_size: Bytes::kib(256),
    memory: Bytes::mib(60),
    time: Nanos::millis(1_500),
};
pub(crate) const GNOME_TERMINAL: Program = Program {
    name: "gnome-terminal",
    files: 100,
    file_size: Bytes::kib(192),
    memory: Bytes::mib(20),
    time: Nanos::millis(800),
};
/// Firefox, by the name that Debian gave it.
pub(crate) const ICEWEASEL: Program = Program {
    name: "iceweasel",
    files: 120,
    file_size: Bytes::kib(320),
    memory: Bytes::mib(80),
    time: Nanos::millis(3_000),
};

/// Where the files of programs lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Files {
    /// On the file system of the run.
    Installed,
    /// On another one, which is left out, as they are then.
    Elsewhere,
}

impl Program {
    /// Writes its files.
    pub(crate) async fn install<S: Sys>(&self, sys: &S) -> sys::Result<()> {
        let dir = self.dir(sys).await?;
        for number in 0..self.files {
            write_file(sys, FileName { dir, number }, self.file_size).await?;
        }
        Ok(())
    }

    /// What its process does until it is there.
    pub(crate) async fn start_up<S: Sys>(&self, sys: &S, files: Files) -> sys::Result<()> {
        let dir = match files {
            Files::Installed => Some(self.dir(sys).await?),
            Files::Elsewhere => None,
        };
        let heap = sys.mmap(self.memory, Bytes(PAGE_SIZE)).await?;
        let part = self.memory.0 / self.files / PAGE_SIZE * PAGE_SIZE;
        for number in 0..self.files {
            if let Some(dir) = dir {
                self.read_file(sys, FileName { dir, number }).await?;
            }
            sys.touch(heap, Bytes(number * part), Bytes(part), Access::Write).await?;
            sys.compute(Nanos(self.time.0 / self.files)).await;
        }
        Ok(())
    }

    async fn dir<S: Sys>(&self, sys: &S) -> sys::Result<Dir> {
        sys.mkdir(&format!("usr/lib/{}", self.name)).await
    }

    async fn read_file<S: Sys>(&self, sys: &S, name: FileName) -> sys::Result<()> {
        let fd = sys.open(name, OpenMode::Existing).await?;
        let image = sys.mmap_file(fd, self.file_size).await?;
        sys.close(fd).await?;
        sys.touch(image, Bytes(0), self.file_size, Access::Read).await
    }
}
