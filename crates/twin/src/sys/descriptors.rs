//! The open files of a process.
//!
//! 16 bytes a file: a writer of a million small files has them all open, and never reads. What readahead remembers of a
//! file is kept beside, once it is read.

use mm::pagecache::Readahead;
use mm::vfs::Handle;
use sys::{Fd, FileAdvice};
use units::FileId;

/// `read_ahead_kb`: 128 KiB.
const READAHEAD_PAGES: u32 = 32;
/// No window; ends a list of free ones.
const NONE: u32 = u32::MAX;

/// An open file.
#[derive(Clone, Copy, Debug)]
struct OpenFile {
    handle: Handle,
    /// Place of its readahead state, or [`NONE`].
    window: u32,
    /// What was last advised.
    advice: FileAdvice,
}

/// A place in the table.
#[derive(Clone, Copy, Debug)]
enum Descriptor {
    Open(OpenFile),
    /// The place that was freed before this one, or [`NONE`].
    Free(u32),
}

/// The table (`struct files_struct`).
#[derive(Debug)]
pub(crate) struct Descriptors {
    table: Vec<Descriptor>,
    /// The place freed last.
    free: u32,
    windows: Vec<Readahead>,
    free_windows: Vec<u32>,
}

impl Descriptors {
    pub(crate) fn new() -> Descriptors {
        Descriptors { table: Vec::new(), free: NONE, windows: Vec::new(), free_windows: Vec::new() }
    }

    fn get(&self, fd: Fd) -> Option<&OpenFile> {
        match self.table.get(fd.0 as usize) {
            Some(Descriptor::Open(open)) => Some(open),
            _ => None,
        }
    }

    fn get_mut(&mut self, fd: Fd) -> Option<&mut OpenFile> {
        match self.table.get_mut(fd.0 as usize) {
            Some(Descriptor::Open(open)) => Some(open),
            _ => None,
        }
    }

    /// Gives an open file the number that was freed last, or a new one.
    pub(crate) fn install(&mut self, handle: Handle) -> Fd {
        let open = Descriptor::Open(OpenFile { handle, window: NONE, advice: FileAdvice::Normal });
        let at = self.free;
        match self.table.get_mut(at as usize) {
            Some(place) => {
                let Descriptor::Free(next) = std::mem::replace(place, open) else {
                    unreachable!("descriptor {at} is on the list of free ones")
                };
                self.free = next;
                Fd(at)
            }
            None => {
                mm::table::push(&mut self.table, open);
                Fd(self.table.len() as u32 - 1)
            }
        }
    }

    /// The file, if the descriptor is open.
    #[inline]
    pub(crate) fn file(&self, fd: Fd) -> Option<FileId> {
        self.get(fd).map(|open| open.handle.file)
    }

    /// Frees a descriptor; what it referred to is to be closed by the caller.
    pub(crate) fn remove(&mut self, fd: Fd) -> Option<Handle> {
        let OpenFile { handle, window, .. } = *self.get(fd)?;
        if window != NONE {
            self.free_windows.push(window);
        }
        self.table[fd.0 as usize] = Descriptor::Free(self.free);
        self.free = fd.0;
        Some(handle)
    }

    /// Frees the whole table; what it referred to is to be closed by the caller, in this order.
    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = Handle> + use<> {
        let table = std::mem::replace(self, Descriptors::new()).table;
        table.into_iter().filter_map(|descriptor| match descriptor {
            Descriptor::Open(open) => Some(open.handle),
            Descriptor::Free(_) => None,
        })
    }

    /// Takes what `posix_fadvise()` says of the reads to come.
    pub(crate) fn advise(&mut self, fd: Fd, advice: FileAdvice) {
        let Some(open) = self.get_mut(fd) else { return };
        open.advice = advice;
        let window = open.window as usize;
        if let Some(window) = self.windows.get_mut(window) {
            advise(window, advice);
        }
    }

    /// The readahead state of a file, to be given back by [`Descriptors::keep_readahead`] once the read is done.
    pub(crate) fn readahead(&self, fd: Fd) -> Option<Readahead> {
        let open = self.get(fd)?;
        if open.window != NONE {
            return Some(self.windows[open.window as usize]);
        }
        let mut fresh = Readahead::new(READAHEAD_PAGES);
        advise(&mut fresh, open.advice);
        Some(fresh)
    }

    /// Remembers the readahead state of a file for its next read.
    pub(crate) fn keep_readahead(&mut self, fd: Fd, readahead: Readahead) {
        let Some(Descriptor::Open(open)) = self.table.get_mut(fd.0 as usize) else { return };
        if open.window == NONE {
            open.window = self.free_windows.pop().unwrap_or(self.windows.len() as u32);
        }
        match self.windows.get_mut(open.window as usize) {
            Some(window) => *window = readahead,
            None => mm::table::push(&mut self.windows, readahead),
        }
    }

    /// Host bytes.
    pub(crate) fn host_bytes(&self) -> usize {
        self.table.capacity() * size_of::<Descriptor>()
            + self.windows.capacity() * size_of::<Readahead>()
            + self.free_windows.capacity() * 4
    }
}

fn advise(readahead: &mut Readahead, advice: FileAdvice) {
    match advice {
        FileAdvice::Normal => readahead.advise_normal(),
        FileAdvice::Sequential => readahead.advise_sequential(),
        FileAdvice::Random => readahead.advise_random(),
        // Concerns the cache alone.
        FileAdvice::DontNeed => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_file_takes_16_bytes() {
        assert_eq!(size_of::<Descriptor>(), 16);
    }
}
