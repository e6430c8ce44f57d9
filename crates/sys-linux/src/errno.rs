//! The system's error numbers as errors that both worlds report.

use rustix::io::Errno;
use sys::SysError;

/// The error that `errno` is to a workload. One that has no name of its own is [`SysError::Io`].
pub(crate) fn sys_error(errno: Errno) -> SysError {
    match errno {
        Errno::NOMEM | Errno::AGAIN => SysError::NoMemory,
        Errno::NOSPC | Errno::DQUOT => SysError::NoSpace,
        Errno::NOENT => SysError::NoEntry,
        Errno::NOTEMPTY => SysError::NotEmpty,
        Errno::INVAL | Errno::EXIST | Errno::PERM | Errno::ACCESS => SysError::Invalid,
        Errno::BADF => SysError::BadFd,
        Errno::FBIG => SysError::FileTooLarge,
        Errno::MFILE | Errno::NFILE => SysError::TooManyFiles,
        Errno::PIPE => SysError::BrokenPipe,
        Errno::NOSYS => SysError::NotSupported,
        _ => SysError::Io,
    }
}

const CODES: [SysError; 14] = [
    SysError::NoMemory,
    SysError::NoSpace,
    SysError::NoEntry,
    SysError::Io,
    SysError::Invalid,
    SysError::BadFd,
    SysError::FileTooLarge,
    SysError::TooManyFiles,
    SysError::NotSupported,
    SysError::Killed,
    SysError::NeedsModule,
    SysError::NoSysctl,
    SysError::NotEmpty,
    SysError::BrokenPipe,
];

/// An error as a number above 0, for memory that processes share.
pub(crate) fn code_of(error: SysError) -> u32 {
    CODES.iter().position(|e| *e == error).expect("every error has a code") as u32 + 1
}

/// The error with this number; none for 0.
pub(crate) fn error_of(code: u32) -> Option<SysError> {
    CODES.get((code as usize).checked_sub(1)?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_come_back_and_none_is_zero() {
        assert_eq!(error_of(0), None);
        for error in CODES {
            assert_eq!(error_of(code_of(error)), Some(error));
        }
        assert_eq!(error_of(CODES.len() as u32 + 1), None);
    }
}
