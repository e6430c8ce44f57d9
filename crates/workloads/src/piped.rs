//! Programs of which one writes into a pipe what another reads.
//!
//! Source: stdio of glibc (`_IO_new_file_xsputn()`, `_IO_file_xsgetn()`), as strace shows it of bzip2 and cc1 (writes) and of GNU as
//! and tar (reads): a buffer is written when it is full, and read again and again until it is.
//! Abstracted: a reader whose writer was killed goes on as if the rest had come.

use sys::{Pipe, Result, Sys, SysError, Thread};
use units::Bytes;

use crate::steps::join_all;

/// Starts two programs that a pipe connects, and waits until both have ended.
pub(crate) async fn run_piped<S: Sys>(sys: &S, start: impl FnOnce(Pipe) -> [Thread; 2]) -> Result<()> {
    let pipe = sys.pipe().await?;
    let programs = start(pipe);
    sys.close_pipe(pipe).await?;
    join_all(sys, &programs).await;
    Ok(())
}

/// What a program that writes into a pipe ends with: that nobody reads any more ends it, and is no error of the run (`SIGPIPE`).
pub(crate) fn unless_unread(result: Result<()>) -> Result<()> {
    match result {
        Err(SysError::BrokenPipe) => Ok(()),
        result => result,
    }
}

/// What goes to stdout.
#[derive(Debug)]
pub(crate) struct Output {
    /// Size of the buffer.
    buffer: u64,
    /// Bytes that have gone into the buffer, and from there into the pipe.
    put: u64,
    written: u64,
}

impl Output {
    pub(crate) fn new(buffer: Bytes) -> Output {
        Output { buffer: buffer.0, put: 0, written: 0 }
    }

    /// Goes on until so many bytes have been put in all.
    pub(crate) async fn put_to<S: Sys>(&mut self, sys: &S, bytes: u64) -> Result<()> {
        self.put = bytes;
        while self.put - self.written >= self.buffer {
            self.write(sys, self.buffer).await?;
        }
        Ok(())
    }

    /// Writes what is left in the buffer.
    pub(crate) async fn flush<S: Sys>(&mut self, sys: &S) -> Result<()> {
        match self.put - self.written {
            0 => Ok(()),
            left => self.write(sys, left).await,
        }
    }

    async fn write<S: Sys>(&mut self, sys: &S, bytes: u64) -> Result<()> {
        self.written += bytes;
        sys.write_stdout(Bytes(bytes)).await
    }
}

/// What comes from stdin.
#[derive(Debug)]
pub(crate) struct Input {
    /// Size of the buffer.
    buffer: u64,
    /// Bytes that have come.
    came: u64,
    ended: bool,
}

impl Input {
    pub(crate) fn new(buffer: Bytes) -> Input {
        Input { buffer: buffer.0, came: 0, ended: false }
    }

    /// Reads whole buffers until so many bytes of all have come, or the end.
    pub(crate) async fn read_to<S: Sys>(&mut self, sys: &S, bytes: u64) -> Result<()> {
        while self.came < bytes && !self.ended {
            self.fill(sys).await?;
        }
        Ok(())
    }

    /// Reads all that comes until the end.
    pub(crate) async fn read_to_end<S: Sys>(&mut self, sys: &S) -> Result<()> {
        self.read_to(sys, u64::MAX).await
    }

    async fn fill<S: Sys>(&mut self, sys: &S) -> Result<()> {
        let mut left = self.buffer;
        while left > 0 && !self.ended {
            let Bytes(read) = sys.read_stdin(Bytes(left)).await?;
            left -= read;
            self.came += read;
            self.ended = read == 0;
        }
        Ok(())
    }
}
