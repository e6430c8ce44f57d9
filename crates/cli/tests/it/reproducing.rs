//! `reproduce`, on a study of a user's own that takes seconds.

use std::path::Path;

use crate::{json, mmtwin, stdout, write_inputs};

fn reproduce(dir: &Path, args: &[&str]) -> String {
    write_inputs(dir);
    stdout(mmtwin().current_dir(dir).args(["reproduce", "study.toml"]).args(args))
}

#[test]
fn the_document_has_the_fields_of_the_design() {
    let dir = tempfile::tempdir().unwrap();
    let document: serde_json::Value = serde_json::from_str(&reproduce(dir.path(), &["--json"])).unwrap();
    let study = &document["studies"][0];
    assert_eq!((&study["study"], &study["quick"]), (&"tiny-study".into(), &false.into()));
    assert_eq!((&study["iterations"], &study["runs_missing"]), (&2.into(), &0.into()));
    for positive in ["virtual_s", "frames", "bytes_per_frame"] {
        assert!(study[positive].as_f64().unwrap() > 0.0, "{positive}");
    }
    let row = &study["rows"][0];
    assert_eq!(study["rows"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&row["config"], &row["metric"]),
        (&"skylake1s/thpfioscale-xfs/default-thp".into(), &"extfrag events".into())
    );
    assert_eq!((&row["baseline"], &row["variant"]), (&"4.20-rc3".into(), &"boost-v5r8".into()));
    assert_eq!(row["published"]["baseline"], 804_694.0);
    assert!(row["twin"]["baseline"].is_f64() && row["twin"]["variant"].is_f64());
}

#[test]
fn the_same_seed_gives_the_same_bytes_whatever_the_threads() {
    let dir = tempfile::tempdir().unwrap();
    let [one, two] = ["1", "2"].map(|jobs| reproduce(dir.path(), &["--json", "--jobs", jobs]));
    assert_eq!(one, two);
    let other = reproduce(dir.path(), &["--json", "--seed", "2"]);
    assert_ne!(other, one);
    let timed = reproduce(dir.path(), &["--json", "--timings"]);
    assert!(timed.contains("\"wall_s\": ") && !one.contains("wall_s"), "{timed}");
}

#[test]
fn a_quick_run_says_how_much_memory_its_machines_have() {
    let dir = tempfile::tempdir().unwrap();
    let table = reproduce(dir.path(), &["--quick", "--out", "runs"]);
    assert!(table.contains("\nQUICK, on a smaller scale: tiny with 48MiB; 1 iteration, seed 1: "), "{table}");
    assert!(table.contains("  - Quick: a note for tests.\n"), "{table}");
    assert!(table.contains("\ntiny, default THP: 2 CPUs, 48 MiB (skylake1s/thpfioscale-xfs/default-thp)\n"), "{table}");
    assert!(table.contains("Left out of the model:\n  - psi") && table.contains("  - A test.\n"), "{table}");
    let kept = dir.path().join("runs/skylake1s-thpfioscale-xfs-default-thp/boost-v5r8/iter-0/manifest.json");
    let manifest: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(kept).unwrap()).unwrap();
    // The kept machine is the one that ran.
    assert_eq!(manifest["machine"]["name"], "tiny-48MiB");
    assert!(manifest["machine"]["toml"].as_str().unwrap().contains("memory = \"48MiB\"\n"), "{manifest}");
}

#[test]
fn parameters_of_the_quick_form_go_before_those_of_the_cases() {
    let dir = tempfile::tempdir().unwrap();
    write_inputs(dir.path());
    let text = std::fs::read_to_string(dir.path().join("study.toml")).unwrap();
    let less = text.replace("note = \"a note", "params = { fio-jobs = 1 }\nnote = \"a note");
    std::fs::write(dir.path().join("less.toml"), less).unwrap();
    let run = |args: &[&str], out: &str| {
        let args = [&["reproduce", "less.toml", "--iterations", "1", "--out", out], args].concat();
        let told = stdout(mmtwin().current_dir(&dir).args(args));
        let kept = dir.path().join(out).join("skylake1s-thpfioscale-xfs-default-thp/4.20-rc3/iter-0/manifest.json");
        let manifest: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(kept).unwrap()).unwrap();
        (told, manifest["workload"]["params"]["fio-jobs"].clone())
    };
    let (told, jobs) = run(&["--quick"], "quick");
    assert!(told.contains("\nQUICK, on a smaller scale: tiny with 48MiB, fio-jobs=1; 1 iteration, seed 1: "), "{told}");
    assert_eq!(jobs, "1");
    assert_eq!(run(&[], "full").1, "2");
}

#[test]
fn a_what_if_is_told_apart_from_the_study() {
    let dir = tempfile::tempdir().unwrap();
    let boost = ["--set", "vm.watermark_boost_factor=0"];
    let table =
        reproduce(dir.path(), &[&boost[..], &["--memory", "96MiB", "--cpus", "4", "--iterations", "1"]].concat());
    let scale = "\nWHAT IF: 96MiB of memory, 4 CPUs, vm.watermark_boost_factor=0; 1 iteration, seed 1: ";
    assert!(table.contains(scale), "{table}");
    assert!(table.contains("\ntiny, default THP: 4 CPUs, 96 MiB (skylake1s"), "{table}");
    let table = reproduce(dir.path(), &[&boost[..], &["--iterations", "1"]].concat());
    assert!(table.contains("\nWHAT IF: vm.watermark_boost_factor=0; 1 iteration"), "{table}");
}

#[test]
fn a_study_without_published_figures_shows_the_twins() {
    let dir = tempfile::tempdir().unwrap();
    write_inputs(dir.path());
    let own = include_str!("../data/study.toml").replace("published = [\"000_watermark_boost.json\"]\n", "");
    std::fs::write(dir.path().join("own.toml"), own).unwrap();
    let args = ["reproduce", "own.toml", "--iterations", "1", "--json"];
    let row = json(mmtwin().current_dir(&dir).args(args))["studies"][0]["rows"][0].clone();
    assert!(row["published"]["baseline"].is_null() && row["twin"]["baseline"].is_f64(), "{row}");
}
