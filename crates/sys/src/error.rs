//! Errors that both worlds report alike.

use std::fmt;

/// Why the system refused a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SysError {
    /// `ENOMEM`.
    NoMemory,
    /// `ENOSPC`.
    NoSpace,
    /// `ENOENT`.
    NoEntry,
    /// `ENOTEMPTY`.
    NotEmpty,
    /// `EIO`.
    Io,
    /// `EINVAL`.
    Invalid,
    /// `EBADF`.
    BadFd,
    /// `EFBIG`.
    FileTooLarge,
    /// `EMFILE` or `ENFILE`.
    TooManyFiles,
    /// `EPIPE`: nobody is left who could read what is written.
    BrokenPipe,
    /// `ENOSYS`: this world does not have the call.
    NotSupported,
    /// The process was killed (out of memory). No program sees it: a killed thread does not come back from its call.
    Killed,
    /// Only a kernel module can do this, and this world has none.
    NeedsModule,
    /// This world cannot read or write this sysctl.
    NoSysctl,
}

impl fmt::Display for SysError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SysError::NoMemory => "out of memory (ENOMEM)",
            SysError::NoSpace => "no space left on the device (ENOSPC)",
            SysError::NoEntry => "no such file (ENOENT)",
            SysError::NotEmpty => "directory not empty (ENOTEMPTY)",
            SysError::Io => "input/output error (EIO)",
            SysError::Invalid => "invalid argument (EINVAL)",
            SysError::BadFd => "bad file descriptor (EBADF)",
            SysError::FileTooLarge => "file too large (EFBIG)",
            SysError::TooManyFiles => "too many open files (EMFILE)",
            SysError::BrokenPipe => "broken pipe (EPIPE)",
            SysError::NotSupported => "not supported in this world (ENOSYS)",
            SysError::Killed => "killed",
            SysError::NeedsModule => "only a kernel module can do this, and there is none here",
            SysError::NoSysctl => "this sysctl cannot be used here",
        })
    }
}

impl std::error::Error for SysError {}
