//! The program from outside: what is typed, what comes out, how it ends.

mod bad_input;
mod comparing;
mod documents;
mod experimenting;
mod interrupting;
mod listing;
mod real_kernels;
mod reporting;
mod reproducing;
mod running;
mod tracing;
mod validating;

use std::path::Path;

use assert_cmd::Command;
use observe::{TraceRecord, parse_ftrace};

/// The program.
fn mmtwin() -> Command {
    Command::new(env!("CARGO_BIN_EXE_mmtwin"))
}

/// A machine and parameters that make a run of a second.
const TINY: &str = include_str!("../data/tiny.toml");

/// Writes the tiny machine, a study and an experiment on it below `dir`.
fn write_inputs(dir: &Path) {
    std::fs::write(dir.join("tiny.toml"), TINY).unwrap();
    std::fs::write(dir.join("study.toml"), include_str!("../data/study.toml")).unwrap();
    std::fs::write(dir.join("experiment.toml"), include_str!("../data/experiment.toml")).unwrap();
}

/// The tracepoints that a kept run recorded: without any it has no file of them.
fn events(run: &Path) -> Vec<TraceRecord> {
    let text = std::fs::read_to_string(run.join("events.txt")).unwrap_or_default();
    parse_ftrace("events.txt", &text).unwrap()
}

/// Standard output of a command that must succeed.
fn stdout(command: &mut Command) -> String {
    let assert = command.assert().success();
    String::from_utf8(assert.get_output().stdout.clone()).unwrap()
}

/// Standard output of a command that must succeed with a JSON document.
fn json(command: &mut Command) -> serde_json::Value {
    serde_json::from_str(&stdout(command)).unwrap()
}
