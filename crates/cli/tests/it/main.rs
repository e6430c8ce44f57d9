//! The program from outside: what is typed, what comes out, how it ends.

mod bad_input;
mod interrupting;
mod listing;
mod real_kernels;
mod reproducing;
mod running;

use std::path::Path;

use assert_cmd::Command;

/// The program.
fn mmtwin() -> Command {
    Command::new(env!("CARGO_BIN_EXE_mmtwin"))
}

/// A machine and parameters that make a run of a second.
const TINY: &str = include_str!("../data/tiny.toml");

/// Writes the tiny machine and a study on it below `dir`.
fn write_inputs(dir: &Path) {
    std::fs::write(dir.join("tiny.toml"), TINY).unwrap();
    std::fs::write(dir.join("study.toml"), include_str!("../data/study.toml")).unwrap();
}

/// Standard output of a command that must succeed.
fn stdout(command: &mut Command) -> String {
    let assert = command.assert().success();
    String::from_utf8(assert.get_output().stdout.clone()).unwrap()
}

/// A JSON document of which every `wall_s` is blanked.
fn blanked(json: &str) -> serde_json::Value {
    fn blank(value: &mut serde_json::Value) {
        match value {
            serde_json::Value::Object(fields) => {
                fields.remove("wall_s");
                fields.values_mut().for_each(blank);
            }
            serde_json::Value::Array(items) => items.iter_mut().for_each(blank),
            _ => {}
        }
    }
    let mut value = serde_json::from_str(json).unwrap();
    blank(&mut value);
    value
}
