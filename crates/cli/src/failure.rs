//! How a command ends that does not succeed: a message and an exit status.

use std::io::{self, Write};
use std::process::ExitCode;

use profile::ProfileError;
use rules::TunableError;
use workloads::ParamError;

/// Exit status of a run that failed.
const FAILED: u8 = 1;
/// Exit status of bad usage and of bad input.
const BAD_INPUT: u8 = 2;
/// Exit status after Ctrl-C, as shells give it: 128 and the number of SIGINT.
pub(crate) const INTERRUPTED: u8 = 130;

/// Why a command did not succeed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Failure {
    status: u8,
    message: String,
}

impl Failure {
    /// What the user gave cannot be used.
    pub(crate) fn bad_input(message: impl ToString) -> Failure {
        Failure { status: BAD_INPUT, message: message.to_string() }
    }

    /// What was asked for was tried and did not come to its end.
    pub(crate) fn failed(message: impl ToString) -> Failure {
        Failure { status: FAILED, message: message.to_string() }
    }

    /// The user has had enough.
    pub(crate) fn interrupted(message: impl ToString) -> Failure {
        Failure { status: INTERRUPTED, message: message.to_string() }
    }

    /// A run directory that cannot be written.
    pub(crate) fn writing(error: observe::RunError) -> Failure {
        match error {
            observe::RunError::Exists { .. } => Failure::bad_input(error),
            _ => Failure::failed(error),
        }
    }

    /// The same status with another message.
    pub(crate) fn with_message(&self, message: String) -> Failure {
        Failure { message, ..*self }
    }

    /// The message, for the user.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Tells the user and gives the exit status.
    pub(crate) fn report(&self) -> ExitCode {
        // Without a standard error there is nobody to tell; the status still says it.
        let _ = writeln!(io::stderr().lock(), "mmtwin: {}", self.message);
        ExitCode::from(self.status)
    }
}

impl From<ProfileError> for Failure {
    fn from(error: ProfileError) -> Failure {
        Failure::bad_input(error)
    }
}

impl From<ParamError> for Failure {
    fn from(error: ParamError) -> Failure {
        Failure::bad_input(error)
    }
}

impl From<TunableError> for Failure {
    fn from(error: TunableError) -> Failure {
        Failure::bad_input(error)
    }
}
