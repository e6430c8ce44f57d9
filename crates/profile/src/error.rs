//! Errors of input files.

use thiserror::Error;

/// An input file that cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum ProfileError {
    /// Neither a built-in name nor a readable file.
    #[error("unknown {what} `{name}`: {closest}not a file, and not one of {expected}")]
    Unknown {
        /// Machine, kernel or study.
        what: &'static str,
        /// What was asked for.
        name: String,
        /// What may have been meant, as a question.
        closest: String,
        /// Built-in names.
        expected: String,
    },
    /// A file that cannot be read.
    #[error("{file}: {reason}")]
    Unreadable {
        /// The file.
        file: String,
        /// Why.
        reason: String,
    },
    /// A file that says something impossible.
    #[error("{file}:{line}: {key}: {message}")]
    Invalid {
        /// The file.
        file: String,
        /// Line, from 1.
        line: usize,
        /// The key concerned.
        key: String,
        /// What is wrong and what was expected.
        message: String,
    },
    /// A machine that cannot have the size that was asked for.
    #[error("machine {machine} with {what}: {key}: {message}")]
    Changed {
        /// The machine.
        machine: String,
        /// What was asked for.
        what: String,
        /// The key of its file that would be impossible.
        key: String,
        /// What was expected.
        message: String,
    },
}
