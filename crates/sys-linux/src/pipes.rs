//! Pipes.
//!
//! A pipe ends when all have closed their ends, so that a child must not keep one that it does not know of. The table therefore owns every end
//! that is open in the process, those too that were closed while another thread was using them, and a child closes what it does not inherit.
//! Who writes without a reader gets `EPIPE`: the runtime of Rust programs ignores `SIGPIPE`, and forks inherit that.

use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::pipe::PipeFlags;
use sys::{Pipe, Result, SpawnOptions, SysError};
use units::Bytes;

use crate::SysLinux;
use crate::errno::sys_error;
use crate::files::write_all;
use crate::process::lock;

/// An end of a pipe.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Side {
    Read,
    Write,
}

/// An end that is open.
struct End {
    fd: OwnedFd,
    /// Calls under way.
    users: u32,
    /// It was closed meanwhile.
    closed: bool,
}

impl End {
    fn new(fd: OwnedFd) -> End {
        End { fd, users: 0, closed: false }
    }
}

/// The ends that a process has open.
#[derive(Default)]
pub(crate) struct Pipes {
    ends: BTreeMap<(u32, Side), End>,
    /// The pipe that is stdin, and that which is stdout.
    standard: [Option<u32>; 2],
}

/// The ends that a process starts with.
fn wanted(options: &SpawnOptions) -> impl Iterator<Item = (u32, Side)> + use<> {
    let both = [(options.stdin, Side::Read), (options.stdout, Side::Write)];
    both.into_iter().filter_map(|(pipe, side)| Some((pipe?.0, side)))
}

impl Pipes {
    /// Whether a process may be spawned so.
    pub(crate) fn hold(&self, options: &SpawnOptions) -> bool {
        wanted(options).all(|end| self.ends.get(&end).is_some_and(|end| !end.closed))
    }

    /// In a child that was spawned so: what it has of its parent's table, the rest of which is closed.
    pub(crate) fn inherited(&mut self, options: &SpawnOptions) -> Pipes {
        let mut own = Pipes::default();
        for (pipe, side) in wanted(options) {
            let end = self.ends.remove(&(pipe, side)).expect("the parent holds it");
            own.ends.insert((pipe, side), End::new(end.fd));
            own.standard[side as usize] = Some(pipe);
        }
        self.ends.clear();
        own
    }

    /// Begins a call on stdin or stdout, which stays open until [`Pipes::end_call`].
    fn begin_call(&mut self, side: Side) -> Result<(u32, RawFd)> {
        let pipe = self.standard[side as usize].ok_or(SysError::BadFd)?;
        let end = self.ends.get_mut(&(pipe, side)).filter(|end| !end.closed).ok_or(SysError::BadFd)?;
        end.users += 1;
        Ok((pipe, end.fd.as_raw_fd()))
    }

    fn end_call(&mut self, pipe: u32, side: Side) {
        let end = self.ends.get_mut(&(pipe, side)).expect("who uses an end keeps it open");
        end.users -= 1;
        if end.closed && end.users == 0 {
            self.ends.remove(&(pipe, side));
        }
    }

    /// Closes an end, or has the last call do it; false if it is not open.
    fn close(&mut self, pipe: u32, side: Side) -> bool {
        let Some(end) = self.ends.get_mut(&(pipe, side)).filter(|end| !end.closed) else { return false };
        end.closed = true;
        if end.users == 0 {
            self.ends.remove(&(pipe, side));
        }
        true
    }
}

impl SysLinux {
    pub(crate) fn make_pipe(&self) -> Result<Pipe> {
        let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(sys_error)?;
        let pipe = self.process.shared.new_pipe();
        let ends = [(Side::Read, read), (Side::Write, write)];
        lock(&self.process.pipes).ends.extend(ends.map(|(side, fd)| ((pipe, side), End::new(fd))));
        Ok(Pipe(pipe))
    }

    pub(crate) fn close_ends(&self, pipe: Pipe) -> Result<()> {
        let mut pipes = lock(&self.process.pipes);
        let closed = [Side::Read, Side::Write].map(|side| pipes.close(pipe.0, side));
        if closed.contains(&true) { Ok(()) } else { Err(SysError::BadFd) }
    }

    pub(crate) fn read_from_stdin(&self, length: Bytes) -> Result<Bytes> {
        self.with_standard(Side::Read, |stdin| {
            let mut buffer = self.buffer(length)?;
            let part = &mut buffer[..length.0 as usize];
            let read = rustix::io::retry_on_intr(|| rustix::io::read(stdin, &mut *part)).map_err(sys_error)?;
            Ok(Bytes(read as u64))
        })
    }

    pub(crate) fn write_to_stdout(&self, length: Bytes) -> Result<()> {
        self.with_standard(Side::Write, |stdout| {
            let buffer = self.buffer(length)?;
            write_all(Bytes(0), length, |done, _| rustix::io::write(stdout, &buffer[done as usize..length.0 as usize]))
        })
    }

    /// Calls with stdin or stdout.
    #[allow(unsafe_code)]
    fn with_standard<R>(&self, side: Side, call: impl FnOnce(BorrowedFd<'_>) -> Result<R>) -> Result<R> {
        let (pipe, fd) = lock(&self.process.pipes).begin_call(side)?;
        // SAFETY: the table keeps the descriptor open until the call has ended.
        let result = call(unsafe { BorrowedFd::borrow_raw(fd) });
        lock(&self.process.pipes).end_call(pipe, side);
        result
    }
}
