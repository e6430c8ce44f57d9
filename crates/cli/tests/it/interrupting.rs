//! Ctrl-C: what is complete is kept and printed.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::write_inputs;

/// Starts 200 runs, one after the other, and waits until two have ended.
fn start(dir: &Path, args: &[&str]) -> (Child, String) {
    write_inputs(dir);
    let mut child = Command::new(env!("CARGO_BIN_EXE_mmtwin"))
        .current_dir(dir)
        .args(args)
        .args(["--jobs", "1", "--iterations", "200", "--out", "runs"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = String::new();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    while told.lines().count() < 2 {
        assert_ne!(stderr.read_line(&mut told).unwrap(), 0, "{told}");
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    stderr.read_to_string(&mut told).unwrap();
    (child, told)
}

fn end(child: Child) -> (Option<i32>, String) {
    let Output { status, stdout, .. } = child.wait_with_output().unwrap();
    (status.code(), String::from_utf8(stdout).unwrap())
}

#[test]
fn an_interrupted_run_prints_what_is_complete() {
    let dir = tempfile::tempdir().unwrap();
    let (child, told) = start(dir.path(), &["run", "thpfioscale", "-m", "tiny.toml", "-p", "fio-jobs=2"]);
    let (status, table) = end(child);
    assert_eq!(status, Some(130), "{told}");
    assert!(told.contains("mmtwin: interrupted: ") && told.ends_with(" of 200 runs are missing\n"), "{told}");
    assert!(table.contains("elapsed_s") && table.contains("runs kept in runs\n"), "{table}");
    let kept = std::fs::read_dir(dir.path().join("runs/thpfioscale-tiny/6.12")).unwrap();
    let names: Vec<String> = kept.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert!((2..200).contains(&names.len()) && names.iter().all(|name| name.starts_with("iter-")), "{names:?}");
}

#[test]
fn an_interrupted_experiment_prints_the_cases_that_have_runs() {
    let dir = tempfile::tempdir().unwrap();
    let (child, told) = start(dir.path(), &["run", "experiment.toml"]);
    let (status, tables) = end(child);
    assert_eq!(status, Some(130), "{told}");
    assert!(told.ends_with(" of 800 runs are missing\n"), "{told}");
    assert!(tables.contains("\ntwo jobs: thpfioscale on tiny") && tables.contains("runs kept in runs\n"), "{tables}");
    // All runs so far are of the first case.
    assert!(!tables.contains("one-job"), "{tables}");
    assert!(dir.path().join("runs/two-jobs/vanilla/iter-0/manifest.json").exists());
}

#[test]
fn an_interrupted_study_says_what_is_missing() {
    let dir = tempfile::tempdir().unwrap();
    let (child, told) = start(dir.path(), &["reproduce", "study.toml", "--json"]);
    let (status, json) = end(child);
    assert_eq!(status, Some(130), "{told}");
    assert!(told.ends_with(" of 400 runs are missing\n"), "{told}");
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let missing = json["studies"][0]["runs_missing"].as_u64().unwrap();
    assert!((1..=398).contains(&missing), "{missing}");
    // All runs so far are of the first kernel, so that no effect is complete.
    assert_eq!(json["studies"][0]["rows"], serde_json::json!([]));
}
