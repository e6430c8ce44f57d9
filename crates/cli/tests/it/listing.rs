//! What needs no run: help, lists, completions.

use predicates::prelude::*;
use predicates::str::contains;

use crate::{mmtwin, stdout};

#[test]
fn help_has_examples_and_the_exit_status() {
    let help = stdout(mmtwin().arg("--help"));
    assert!(help.contains("Exit status: 0 done, 1 a run failed"), "{help}");
    for command in ["reproduce", "run", "compare", "report", "completions"] {
        mmtwin().args([command, "--help"]).assert().success().stdout(contains("Example")).stderr("");
    }
    mmtwin().arg("--version").assert().success().stdout(format!("mmtwin {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn lists_name_what_there_is() {
    for (what, names) in [
        ("workloads", ["thpfioscale", "fio-jobs=4: fio processes"].as_slice()),
        ("kernels", &["4.20-rc3-boost", "6.12"]),
        ("machines", &["haswell-2s", "65536"]),
        ("studies", &["watermark-boost", "lowzone-v5r8"]),
        ("tunables", &["vm.watermark_boost_factor", "thp.defrag"]),
        ("counters", &["pgscan_kswapd", "fault_huge_us"]),
    ] {
        let list = stdout(mmtwin().args(["list", what]));
        assert!(names.iter().all(|name| list.contains(name)), "{list}");
        assert!(list.lines().all(|line| line.chars().count() <= 120), "{list}");
    }
}

#[test]
fn lists_are_documents_too() {
    for what in ["workloads", "kernels", "machines", "studies", "tunables", "counters"] {
        let json: serde_json::Value = serde_json::from_str(&stdout(mmtwin().args(["list", what, "--json"]))).unwrap();
        assert_eq!(json["version"], env!("CARGO_PKG_VERSION"));
        let rows = json[what].as_array().unwrap();
        assert!(!rows.is_empty() && rows.iter().all(|row| row["name"].is_string()), "{what}");
    }
}

#[test]
fn a_counter_says_which_kernels_print_it() {
    let json: serde_json::Value = serde_json::from_str(&stdout(mmtwin().args(["list", "counters", "--json"]))).unwrap();
    let find = |name: &str| json["counters"].as_array().unwrap().iter().find(|row| row["name"] == name).unwrap();
    assert_eq!(find("workingset_refault")["kernels"], serde_json::json!(["3.19", "4.20"]));
    assert_eq!(find("workingset_refault_anon")["kernels"], serde_json::json!(["6.12"]));
    assert_eq!(find("pgfault")["kernels"], serde_json::json!(["3.19", "4.20", "6.12"]));
    assert_eq!(find("nr_dirty")["kind"], "gauge");
}

#[test]
fn every_shell_gets_its_completions() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = mmtwin().args(["completions", shell]).assert().success();
        script.stdout(contains("mmtwin").and(contains("reproduce")));
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let command =
        format!("{} list counters | head -n 1 >/dev/null; echo ${{PIPESTATUS[0]}}", env!("CARGO_BIN_EXE_mmtwin"));
    assert_cmd::Command::new("bash").args(["-c", &command]).assert().success().stdout("0\n").stderr("");
}
