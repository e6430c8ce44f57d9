//! `run` of an experiment: a file with cases of which nothing is published.

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use predicates::str::contains;
use serde_json::Value;

use crate::{json, mmtwin, stdout, write_inputs};

/// `mmtwin run experiment.toml` with `args` in a folder with the tiny inputs.
fn experiment(dir: &Path, args: &[&str]) -> Command {
    write_inputs(dir);
    let mut command = mmtwin();
    command.current_dir(dir).args(["run", "experiment.toml"]).args(args);
    command
}

/// What `field` is in each of the documents.
fn each<'a>(documents: &'a Value, field: &str) -> Vec<&'a Value> {
    documents.as_array().unwrap().iter().map(|document| document.pointer(field).unwrap_or(&Value::Null)).collect()
}

#[test]
fn each_case_has_a_table_of_its_kernels() {
    let dir = tempfile::tempdir().unwrap();
    let told = stdout(&mut experiment(dir.path(), &[]));
    let cases: Vec<&str> = told.split("\n\n").collect();
    assert_eq!(cases.len(), 4, "head, two cases, foot: {told}");
    assert!(cases[0].starts_with("tiny-experiment\n16384 page frames at "), "{told}");
    for (case, head) in [
        (cases[1], "two jobs: thpfioscale on tiny (2 CPUs, 64MiB), seed 1\n"),
        (cases[2], "one job, no swapping: thpfioscale on tiny (2 CPUs, 64MiB), seed 1, vm.swappiness=0\n"),
    ] {
        assert!(case.starts_with(head), "{told}");
        let columns = case.lines().nth(1).unwrap();
        assert!(columns.find("vanilla").unwrap() < columns.find("boost").unwrap(), "{told}");
        assert!(case.contains("elapsed_s s ↓") && case.contains(" ±") && case.contains("Welch p < 0.05"), "{told}");
    }
    assert!(cases[3].starts_with("left out: psi"), "{told}");
}

#[test]
fn the_document_is_a_list_with_the_case_of_each_run() {
    let dir = tempfile::tempdir().unwrap();
    let documents = json(&mut experiment(dir.path(), &["--json"]));
    assert_eq!(each(&documents, "/case")[..4], ["two jobs"; 4]);
    assert_eq!(each(&documents, "/case")[4..], ["one-job"; 4]);
    assert_eq!(each(&documents, "/column")[..4], ["vanilla", "vanilla", "boost", "boost"]);
    assert_eq!(each(&documents, "/manifest/iteration"), [0, 1, 0, 1, 0, 1, 0, 1]);
    assert_eq!(each(&documents, "/manifest/kernel/name")[1..3], ["4.20-rc3", "4.20-rc3-boost"]);
    assert_eq!(each(&documents, "/manifest/workload/params/fio-jobs")[3..5], ["2", "1"]);
    assert_eq!(each(&documents, "/manifest/sysctls/vm.swappiness")[3..5], [&Value::Null, &"0".into()]);
    // One run is a list, too.
    let file = include_str!("../data/experiment.toml");
    let (first, _) = file.rsplit_once("[[case]]").unwrap();
    fs::write(dir.path().join("one.toml"), first).unwrap();
    let args = ["run", "one.toml", "-k", "boost", "--iterations", "1", "--json"];
    assert_eq!(each(&json(mmtwin().current_dir(&dir).args(args)), "/case"), ["two jobs"]);
}

#[test]
fn the_same_seed_gives_the_same_bytes_whatever_the_threads() {
    let dir = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| stdout(&mut experiment(dir.path(), &[&["--json"], args].concat()));
    let one = run(&["--jobs", "1"]);
    assert_eq!(one, run(&["--jobs", "2"]));
    assert_ne!(one, run(&["--seed", "2"]));
}

#[test]
fn what_is_typed_goes_before_what_the_file_says() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("other.toml"), crate::TINY.replace("\"tiny\"", "\"other\"")).unwrap();
    let given = ["-k", "boost", "-k", "vanilla", "-m", "other.toml", "--memory", "96MiB", "-p", "fio-jobs=3"];
    let more = ["--set", "vm.swappiness=10", "--iterations", "1", "--seed", "7", "--verify", "--json"];
    let documents = json(&mut experiment(dir.path(), &[given.as_slice(), &more].concat()));
    assert_eq!(each(&documents, "/column"), ["boost", "vanilla", "boost", "vanilla"]);
    for (field, expected) in [
        ("/manifest/machine/name", "other-96MiB"),
        ("/manifest/workload/params/fio-jobs", "3"),
        ("/manifest/sysctls/vm.swappiness", "10"),
    ] {
        assert_eq!(each(&documents, field), [expected; 4], "{field}");
    }
    assert_eq!(each(&documents, "/manifest/seed"), [7; 4]);
    let settings = ["-k", "boost", "--set", "vm.swappiness=1", "--set", "vm.swappiness=90", "--iterations", "1"];
    let table = stdout(&mut experiment(dir.path(), &settings));
    assert!(table.contains("seed 1, vm.swappiness=1, vm.swappiness=90\n"), "{table}");
    assert!(!table.contains("vm.swappiness=0"), "{table}");
}

#[test]
fn runs_are_kept_by_case_and_kernel_and_never_written_over() {
    let dir = tempfile::tempdir().unwrap();
    let args = ["--iterations", "1", "--out", "runs", "--events", "kmem"];
    experiment(dir.path(), &args).assert().success().stdout(contains("4 runs kept in runs\n"));
    for run in ["two-jobs/vanilla", "two-jobs/boost", "one-job/vanilla", "one-job/boost"] {
        assert!(dir.path().join("runs").join(run).join("iter-0/events.txt").exists(), "{run}");
    }
    stdout(mmtwin().current_dir(&dir).args(["compare", "runs"]));
    let told = "mmtwin: runs/two-jobs/vanilla/iter-0: there is a run already, and nothing is written over\n";
    experiment(dir.path(), &args).assert().code(2).stdout("").stderr(told);
}

#[test]
fn a_published_study_is_an_experiment() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies/watermark-boost.toml");
    // The memory of the study's quick form would take half a minute; the least is enough for tables.
    let args = ["run", file, "--memory", "128MiB", "--iterations", "1", "-k", "lowzone-v5r8", "-k", "boost-v5r8"];
    let told = stdout(mmtwin().args(args));
    assert!(told.starts_with("watermark-boost: Reclaim small amounts of memory when an external "), "{told}");
    for case in [
        "\n1-socket Skylake, MADV_HUGEPAGE: thpfioscale on skylake-1s-128MiB (8 CPUs, 128MiB), seed 1\n",
        "\n2-socket Haswell, default THP: thpfioscale on haswell-2s-128MiB (48 CPUs, 128MiB), seed 1\n",
    ] {
        assert!(told.contains(case), "{told}");
    }
    assert_eq!(told.matches("lowzone-v5r8").count(), 4, "{told}");
    assert!(!told.contains("published"), "{told}");
}
