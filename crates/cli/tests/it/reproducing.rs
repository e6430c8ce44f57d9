//! `reproduce`, on a study of a user's own that takes seconds.

use std::path::Path;

use crate::{blanked, mmtwin, stdout, write_inputs};

fn reproduce(dir: &Path, args: &[&str]) -> String {
    write_inputs(dir);
    stdout(mmtwin().current_dir(dir).args(["reproduce", "study.toml"]).args(args))
}

#[test]
fn the_document_has_the_fields_of_the_design() {
    let dir = tempfile::tempdir().unwrap();
    let json: serde_json::Value = serde_json::from_str(&reproduce(dir.path(), &["--json"])).unwrap();
    let study = &json["studies"][0];
    assert_eq!((&study["study"], &study["quick"]), (&"tiny-study".into(), &false.into()));
    assert_eq!((&study["iterations"], &study["runs_missing"]), (&2.into(), &0.into()));
    for positive in ["wall_s", "virtual_s", "frames", "bytes_per_frame"] {
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
fn the_document_does_not_depend_on_the_threads() {
    let dir = tempfile::tempdir().unwrap();
    let [one, two] = ["1", "2"].map(|jobs| blanked(&reproduce(dir.path(), &["--json", "--jobs", jobs])));
    assert_eq!(one, two);
    let other = blanked(&reproduce(dir.path(), &["--json", "--seed", "2"]));
    assert_eq!(other["studies"][0]["rows"][0]["published"], one["studies"][0]["rows"][0]["published"]);
}

#[test]
fn the_table_says_what_it_is_made_of() {
    let dir = tempfile::tempdir().unwrap();
    let table = reproduce(dir.path(), &["--quick", "--iterations", "1", "--out", "runs"]);
    assert!(table.starts_with("tiny-study, reduced scale: 1 iterations, "), "{table}");
    assert!(table.contains("  - Quick run: every machine has 1/2 of the study's memory"), "{table}");
    assert!(table.contains("patches 1-4 against vanilla: skylake1s/thpfioscale-xfs/default-thp\n"), "{table}");
    assert!(table.contains("Left out of the model:\n  - psi") && table.contains("  - A test.\n"), "{table}");
    let kept = dir.path().join("runs/skylake1s-thpfioscale-xfs-default-thp/boost-v5r8/iter-0/manifest.json");
    let manifest: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(kept).unwrap()).unwrap();
    // 64 MiB by the study's divisor of 2, so that the kept machine is the one that ran.
    assert!(manifest["machine"]["toml"].as_str().unwrap().contains("memory = 33554432\n"), "{manifest}");
}
