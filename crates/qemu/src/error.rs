//! Why a guest could not be run.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Why a guest could not be run.
#[derive(Debug, Error)]
pub enum QemuError {
    /// Something that has to be installed is not there.
    #[error("{what} is not there; {remedy}")]
    Missing {
        /// What.
        what: String,
        /// How to get it.
        remedy: String,
    },
    /// An input cannot be used.
    #[error("{0}")]
    Input(String),
    /// A program that prepares something failed.
    #[error("{program} failed: {message}")]
    Program {
        /// The program with its arguments.
        program: String,
        /// Its complaint.
        message: String,
    },
    /// A file of the host.
    #[error("{path}: cannot {action}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// The system's answer.
        source: io::Error,
    },
    /// The guest ended in another way than by itself; the console's last lines tell how.
    #[error("{what}\nthe console's last lines:\n{console}")]
    Guest {
        /// What happened.
        what: String,
        /// Last lines of the console.
        console: String,
    },
    /// The user has had enough.
    #[error("interrupted")]
    Interrupted,
}

impl QemuError {
    /// Whether other inputs, or installing something, would help.
    pub fn is_bad_input(&self) -> bool {
        matches!(self, QemuError::Missing { .. } | QemuError::Input(_))
    }
}

/// Says which file an operation of the system concerned.
pub(crate) fn io_error<'a>(action: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> QemuError + 'a {
    move |source| QemuError::Io { path: path.to_owned(), action, source }
}
