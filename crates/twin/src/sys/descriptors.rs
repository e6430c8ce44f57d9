//! The open files of a process.
//!
//! Source: `alloc_fd()`, `fget()`, `fput()`, `close_files()`, fs/file.c (4.20).
//! Rule: a call holds the open file that it works on, so that it outlives a close by another thread. A new open file gets
//! the lowest free descriptor.
//! Abstracted: the number of a descriptor that was closed in the middle of a call is given out again after that call.
//!
//! 4 to 6 bytes a file: a writer of a million small files has them all open, calls work on few of them at a time, and it never
//! reads. What was advised and what readahead remembers is beside.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use mm::column::Column;
use mm::near::Near;
use mm::pagecache::{LastRead, Readahead, RestingWindow};
use mm::sparse::Sparse;
use mm::vfs::{Handle, Handles};
use mm::writeback::ErrorsSeen;
use sys::{Fd, FileAdvice, Result, SysError};
use units::FileId;

/// An open file that calls work on.
#[derive(Clone, Copy, Debug)]
struct Held {
    fd: u32,
    /// The calls, one of a thread at most; `pid_max` (32768) bounds the threads.
    users: u16,
    /// It was closed meanwhile.
    closed: bool,
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
    /// By number.
    const ALL: [Advised; 4] = [Advised::Normal, Advised::Sequential, Advised::Random, Advised::RandomLarge];

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

    fn readahead(self, pages_max: u32) -> Readahead {
        let mut fresh = Readahead::new(pages_max);
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
    table: Handles,
    /// Descriptors that were given out so far.
    len: u32,
    /// Those that calls work on, in no order: as many as threads at most.
    held: Vec<Held>,
    /// Places of the table that were freed.
    free: BinaryHeap<Reverse<u32>>,
    /// Which of [`Advised::ALL`], for each descriptor that was given out: most files of a process have the same.
    advised: Column,
    /// What readahead remembers of files that were read: the last page, and the window.
    last_reads: Near,
    windows: Sparse<RestingWindow>,
    /// Failed writes that open files need not report, where there were any.
    errors_seen: BTreeMap<u32, ErrorsSeen>,
}

impl Descriptors {
    /// The calls that work on an open file, if there are any.
    #[inline]
    fn held(&self, fd: Fd) -> Option<usize> {
        self.held.iter().position(|held| held.fd == fd.0)
    }

    /// The file of a descriptor that was not closed, and the calls that work on it.
    #[inline]
    fn open(&self, fd: Fd) -> Result<(FileId, Option<usize>)> {
        let held = self.held(fd);
        let closed = held.is_some_and(|at| self.held[at].closed);
        Ok((self.table.file(fd.0).filter(|_| !closed).ok_or(SysError::BadFd)?, held))
    }

    /// Gives an open file the lowest free descriptor.
    pub(crate) fn install(&mut self, handle: Handle) -> Fd {
        let fd = self.free.pop().map_or(self.len, |Reverse(fd)| fd);
        self.len = self.len.max(fd + 1);
        self.table.set(fd, handle);
        self.advised.set(fd, Advised::Normal as u32);
        Fd(fd)
    }

    /// Holds an open file for a call, until [`Descriptors::put`].
    #[inline]
    pub(crate) fn hold(&mut self, fd: Fd) -> Result<FileId> {
        let (file, held) = self.open(fd)?;
        match held {
            Some(at) => {
                let users = &mut self.held[at].users;
                *users = users.checked_add(1).expect("fewer threads than pid_max");
            }
            None => self.held.push(Held { fd: fd.0, users: 1, closed: false }),
        }
        Ok(file)
    }

    /// The call is over. What nobody refers to any more is to be closed by the caller.
    #[inline]
    pub(crate) fn put(&mut self, fd: Fd) -> Option<Handle> {
        let at = self.held(fd).expect("a file that is held is in the table");
        let held = &mut self.held[at];
        held.users -= 1;
        if held.users > 0 {
            return None;
        }
        if self.held.swap_remove(at).closed { self.remove(fd) } else { None }
    }

    /// Closes a descriptor. What nobody refers to any more is to be closed by the caller.
    pub(crate) fn close(&mut self, fd: Fd) -> Result<Option<Handle>> {
        let (_, held) = self.open(fd)?;
        match held {
            Some(at) => {
                self.held[at].closed = true;
                Ok(None)
            }
            None => Ok(self.remove(fd)),
        }
    }

    fn remove(&mut self, fd: Fd) -> Option<Handle> {
        let handle = self.table.take(fd.0)?;
        self.errors_seen.remove(&fd.0);
        self.last_reads.set(fd.0, None);
        self.windows.take(fd.0);
        self.free.push(Reverse(fd.0));
        Some(handle)
    }

    /// Frees the whole table; what it referred to is to be closed by the caller, in this order.
    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = Handle> + use<> {
        let Descriptors { mut table, len, .. } = std::mem::take(self);
        (0..len).filter_map(move |fd| table.take(fd))
    }

    /// Takes what `posix_fadvise()` says of the reads to come.
    pub(crate) fn advise(&mut self, fd: Fd, advice: FileAdvice) {
        if self.table.is_open(fd.0) {
            self.advised.set(fd.0, self.advised(fd).and(advice) as u32);
        }
    }

    fn advised(&self, fd: Fd) -> Advised {
        Advised::ALL[self.advised.get(fd.0) as usize]
    }

    /// The readahead state of a file that is held, to be given back by [`Descriptors::keep_readahead`] after the read.
    /// Its device reads at most so many pages ahead.
    pub(crate) fn readahead(&self, fd: Fd, pages_max: u32) -> Readahead {
        let last_read = LastRead::from(self.last_reads.get(fd.0));
        self.advised(fd).readahead(pages_max).resume(last_read, self.windows.get(fd.0))
    }

    /// Remembers the readahead state of a file that is held for its next read.
    pub(crate) fn keep_readahead(&mut self, fd: Fd, readahead: Readahead) {
        if self.table.is_open(fd.0) {
            let (last_read, window) = readahead.rest();
            self.last_reads.set(fd.0, last_read.page());
            self.windows.set(fd.0, window);
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
        self.table.host_bytes()
            + self.advised.host_bytes()
            + self.last_reads.host_bytes()
            + self.windows.host_bytes()
            + self.free.capacity() * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_file_takes_8_bytes() {
        assert_eq!(size_of::<Handle>(), 8);
    }

    #[test]
    fn advice_is_found_by_its_number() {
        assert!(Advised::ALL.iter().enumerate().all(|(number, advised)| *advised as usize == number));
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
