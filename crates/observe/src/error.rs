//! What can be wrong with text that is read, and with a run directory.

use std::path::PathBuf;

use thiserror::Error;

/// Text that is not what its format says.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{file}:{line}: expected {expected}, found {found}")]
pub struct ParseError {
    /// The file as the caller named it.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// What should have stood there.
    pub expected: String,
    /// What stood there, quoted and cut short; "end of file" past the last line.
    pub found: String,
}

/// A run directory that cannot be written or read.
#[derive(Debug, Error)]
pub enum RunError {
    /// The operating system refused.
    #[error("{path}: cannot {action}: {source}")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// The system's answer.
        source: std::io::Error,
    },
    /// The target of a write is there already.
    #[error("{path}: expected no file or directory of that name, found one")]
    Exists {
        /// The run directory.
        path: PathBuf,
    },
    /// A file that every run directory has is missing.
    #[error("{path}: expected {expected}, found no such file")]
    Missing {
        /// The file.
        path: PathBuf,
        /// What the file should hold.
        expected: &'static str,
    },
    /// A text file is not what its format says.
    #[error(transparent)]
    Text(#[from] ParseError),
    /// A JSON file is not what its format says.
    #[error("{path}:{line}: expected {expected}: {message}")]
    Json {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// What the file should hold.
        expected: &'static str,
        /// The JSON reader's complaint.
        message: String,
    },
}
