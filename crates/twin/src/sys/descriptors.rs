//! The open files of a process.
//!
//! Source: `alloc_fd()`, `fget()`, `fput()`, `close_files()`, fs/file.c (4.20).
//! Rule: a call holds the open file that it works on, so that it outlives a close by another thread. A new open file gets
//! the lowest free descriptor.
//! Abstracted: the number of a descriptor that was closed in the middle of a call is given out again after that call.
//!
//! 12 bytes a file: a writer of a million small files has them all open, and never reads. What readahead remembers is beside.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use mm::pagecache::{Readahead, Resting};
use mm::sparse::Sparse;
use mm::vfs::Handle;
use mm::writeback::ErrorsSeen;
use sys::{Fd, FileAdvice, Result, SysError};
use units::FileId;

/// `read_ahead_kb`: 128 KiB.
const READAHEAD_PAGES: u32 = 32;
/// An open file.
#[derive(Clone, Copy, Debug)]
struct OpenFile {
    handle: Handle,
    /// Calls that work on it, one of a thread at most; `pid_max` (32768) bounds the threads.
    users: u16,
    /// It was closed while calls worked on it.
    closed: bool,
    advised: Advised,
}

/// What `posix_fadvise()` said of the reads to come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Advised {
    Normal,
    Sequential,
    Random,
    /// Random, after sequential: the windows stay as large (`generic_fadvise()`).
    RandomLarge,
}

impl Advised {
    fn and(self, advice: FileAdvice) -> Advised {
        match (advice, self) {
            (FileAdvice::Normal, _) => Advised::Normal,
            (FileAdvice::Sequential, _) => Advised::Sequential,
            (FileAdvice::Random, Advised::Normal | Advised::Random) => Advised::Random,
            (FileAdvice::Random, Advised::Sequential | Advised::RandomLarge) => Advised::RandomLarge,
            // Concerns the cache alone.
            (FileAdvice::DontNeed, before) => before,
        }
    }

    fn readahead(self) -> Readahead {
        let mut fresh = Readahead::new(READAHEAD_PAGES);
        if matches!(self, Advised::Sequential | Advised::RandomLarge) {
            fresh.advise_sequential();
        }
        if matches!(self, Advised::Random | Advised::RandomLarge) {
            fresh.advise_random();
        }
        fresh
    }
}

/// The table (`struct files_struct`).
#[derive(Debug, Default)]
pub(crate) struct Descriptors {
    table: Vec<Option<OpenFile>>,
    /// Places of the table that were freed.
    free: BinaryHeap<Reverse<u32>>,
    /// What readahead remembers of files that were read.
    windows: Sparse<Resting>,
    /// Failed writes that open files need not report, where there were any.
    errors_seen: BTreeMap<u32, ErrorsSeen>,
}

impl Descriptors {
    fn get(&self, fd: Fd) -> Option<&OpenFile> {
        self.table.get(fd.0 as usize)?.as_ref()
    }

    fn get_mut(&mut self, fd: Fd) -> Option<&mut OpenFile> {
        self.table.get_mut(fd.0 as usize)?.as_mut()
    }

    /// The same, as long as it was not closed.
    fn open_mut(&mut self, fd: Fd) -> Result<&mut OpenFile> {
        self.get_mut(fd).filter(|open| !open.closed).ok_or(SysError::BadFd)
    }

    /// Gives an open file the lowest free descriptor.
    pub(crate) fn install(&mut self, handle: Handle) -> Fd {
        let open = Some(OpenFile { handle, users: 0, closed: false, advised: Advised::Normal });
        match self.free.pop() {
            Some(Reverse(fd)) => {
                self.table[fd as usize] = open;
                Fd(fd)
            }
            None => {
                mm::table::push(&mut self.table, open);
                Fd(self.table.len() as u32 - 1)
            }
        }
    }

    /// Holds an open file for a call, until [`Descriptors::put`].
    #[inline]
    pub(crate) fn hold(&mut self, fd: Fd) -> Result<FileId> {
        let open = self.open_mut(fd)?;
        open.users = open.users.checked_add(1).expect("fewer threads than pid_max");
        Ok(open.handle.file)
    }

    /// The call is over. What nobody refers to any more is to be closed by the caller.
    #[inline]
    pub(crate) fn put(&mut self, fd: Fd) -> Option<Handle> {
        let open = self.get_mut(fd).expect("a file that is held is in the table");
        open.users -= 1;
        if open.closed && open.users == 0 { self.remove(fd) } else { None }
    }

    /// Closes a descriptor. What nobody refers to any more is to be closed by the caller.
    pub(crate) fn close(&mut self, fd: Fd) -> Result<Option<Handle>> {
        let open = self.open_mut(fd)?;
        open.closed = true;
        Ok(if open.users == 0 { self.remove(fd) } else { None })
    }

    fn remove(&mut self, fd: Fd) -> Option<Handle> {
        let OpenFile { handle, .. } = self.table.get_mut(fd.0 as usize)?.take()?;
        self.errors_seen.remove(&fd.0);
        self.windows.take(fd.0);
        self.free.push(Reverse(fd.0));
        Some(handle)
    }

    /// Frees the whole table; what it referred to is to be closed by the caller, in this order.
    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = Handle> + use<> {
        std::mem::take(self).table.into_iter().flatten().map(|open| open.handle)
    }

    /// Takes what `posix_fadvise()` says of the reads to come.
    pub(crate) fn advise(&mut self, fd: Fd, advice: FileAdvice) {
        if let Some(open) = self.get_mut(fd) {
            open.advised = open.advised.and(advice);
        }
    }

    /// The readahead state of a file that is held, to be given back by [`Descriptors::keep_readahead`] after the read.
    pub(crate) fn readahead(&self, fd: Fd) -> Readahead {
        let open = self.get(fd).expect("a file that is held is in the table");
        open.advised.readahead().resume(self.windows.get(fd.0))
    }

    /// Remembers the readahead state of a file that is held for its next read.
    pub(crate) fn keep_readahead(&mut self, fd: Fd, readahead: Readahead) {
        if self.get(fd).is_some() {
            self.windows.set(fd.0, readahead.rest());
        }
    }

    /// The failed writes that an open file need not report.
    pub(crate) fn errors_seen(&self, fd: Fd) -> ErrorsSeen {
        self.errors_seen.get(&fd.0).copied().unwrap_or_default()
    }

    /// Remembers them.
    pub(crate) fn keep_errors_seen(&mut self, fd: Fd, seen: ErrorsSeen) {
        if seen != ErrorsSeen::default() {
            self.errors_seen.insert(fd.0, seen);
        }
    }

    /// Host bytes.
    pub(crate) fn host_bytes(&self) -> usize {
        self.table.capacity() * size_of::<Option<OpenFile>>()
            + self.windows.host_bytes()
            + self.free.capacity() * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_file_takes_12_bytes() {
        assert_eq!(size_of::<Option<OpenFile>>(), 12);
    }

    #[test]
    fn advice_replaces_advice_but_random_reads_leave_the_size_of_windows() {
        use FileAdvice::{DontNeed, Normal, Random, Sequential};
        let after = |said: &[FileAdvice]| said.iter().fold(Advised::Normal, |before, advice| before.and(*advice));
        assert_eq!(after(&[Random]), Advised::Random);
        assert_eq!(after(&[Sequential, Random, Random]), Advised::RandomLarge);
        assert_eq!(after(&[Sequential, Random, Sequential]), Advised::Sequential);
        assert_eq!(after(&[Sequential, Normal, Random, DontNeed]), Advised::Random);
    }
}
