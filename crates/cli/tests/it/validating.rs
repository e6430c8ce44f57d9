//! `validate` and `machine`.

use std::fs;

use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;

use crate::{json, mmtwin, stdout};

/// Small copies of reference runs: two of a workload that the twin can run, one that waits.
const REFERENCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/reference");

#[test]
fn groups_are_compared_counter_by_counter_and_others_wait() {
    let document = json(mmtwin().args(["validate", REFERENCE, "--json"]));
    let group = &document["groups"][0];
    assert_eq!(document["groups"].as_array().unwrap().len(), 1);
    assert_eq!((&group["group"], &group["n_real"]), (&"6.12-wbstrm-classic-icount".into(), &2.into()));
    let counter = |name: &str| {
        let counters = group["counters"].as_array().unwrap();
        counters.iter().find(|counter| counter["name"] == name).cloned().unwrap_or_else(|| panic!("{name}"))
    };
    // The growth of nr_dirtied in both copies: after - before, whose median, and mean, is 152073.
    let dirtied = counter("nr_dirtied");
    assert_eq!((&dirtied["class"], dirtied["real_median"].as_f64().unwrap().round()), (&"S".into(), 152_073.0));
    // 480 MiB of writes are 122880 pages, and two passes store to a fourth of 230 MiB: 2 * 57 * 256. The blocks of metadata that
    // the journal commits come on top; the guests have 9.
    let metadata = dirtied["twin_median"].as_f64().unwrap() - 152_064.0;
    assert!((1.0..=9.0).contains(&metadata), "{metadata}");
    assert_eq!(document["waiting"][0]["group"], "5.15-wbstrm-classic-icount");
    assert!(document["summary"]["S"]["n"].as_u64().unwrap() > 5);
}

#[test]
fn a_machine_starts_where_the_run_started() {
    let run = format!("{REFERENCE}/6.12-wbstrm-classic-icount-r1");
    let machine = stdout(mmtwin().args(["machine", "from-run", &run]));
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("started.toml"), &machine).unwrap();
    let args = ["run", "wbstrm", "-m", "started.toml", "-p", "write-mb=1", "-p", "anon-mb=1", "-p", "file-mb=1"];
    mmtwin().current_dir(dir.path()).args(args).args(["--verify", "--out", "runs"]).assert().success();
    let before = dir.path().join("runs/wbstrm-6.12-wbstrm-classic-icount-r1/6.12/iter-0/before");
    let same = |file: &str, lines: &[&str]| {
        let [twin, real] =
            [before.join(file), format!("{run}/before/{file}").into()].map(|path| fs::read_to_string(path).unwrap());
        let chosen = |text: &str| -> Vec<String> {
            let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
            text.lines().map(words).filter(|line| lines.iter().any(|start| line.starts_with(start))).collect()
        };
        // The twin has no zones without memory.
        let (twin, mut real) = (chosen(&twin), chosen(&real));
        assert!(!twin.is_empty());
        real.truncate(twin.len());
        assert_eq!(twin, real, "{file}");
    };
    same("pagetypeinfo", &["Node 0, zone"]);
    same("zoneinfo", &["spanned", "present", "managed", "start_pfn", "pages free"]);
}

#[test]
fn budgets_are_kept_and_not_generous() {
    let dir = tempfile::tempdir().unwrap();
    let check = |median: f64, p90: f64| {
        let budgets =
            format!("[[budget]]\ngroup = \"6.12-wbstrm-classic-icount\"\nmedian-pct = {median}\np90-pct = {p90}\n");
        fs::write(dir.path().join("budgets.toml"), budgets).unwrap();
        mmtwin().current_dir(dir.path()).args(["validate", REFERENCE, "--budgets", "budgets.toml"]).assert()
    };
    let document = json(mmtwin().args(["validate", REFERENCE, "--json"]));
    let of = |key: &str| document["groups"][0][key].as_f64().unwrap();
    let (median, p90) = (of("median_error_pct"), of("p90_error_pct"));
    check(median + 0.1, p90 + 0.1).success();
    check(median - 0.1, p90 + 0.1).code(1).stderr(contains("median-pct: "));
    check(median + 0.1, p90 + 3.0).code(1).stderr(contains("is more than is needed"));
}

#[test]
fn budgets_that_grew_are_refused_before_anything_runs() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, p90: f64| {
        let budget = format!("[[budget]]\ngroup = \"untar2\"\nmedian-pct = 2.0\np90-pct = {p90}\n");
        fs::write(dir.path().join(name), budget).unwrap();
    };
    let check = |now: f64, before: [f64; 2]| {
        write("now.toml", now);
        write("first.toml", before[0]);
        write("second.toml", before[1]);
        let mut command = mmtwin();
        command.current_dir(dir.path()).args(["validate", "nowhere", "--budgets", "now.toml"]);
        command.args(["--budgets-before", "first.toml", "--budgets-before", "second.toml"]).assert()
    };
    check(9.0, [12.0, 9.0]).code(2).stderr(contains("nowhere"));
    let grown = "now.toml: larger than in second.toml: untar2: p90-pct: 10, expected 9 at most";
    check(10.0, [12.0, 9.0]).code(1).stderr(contains(grown));
    mmtwin().args(["validate", REFERENCE, "--budgets-before", "x.toml"]).assert().code(2).stderr(contains("--budgets"));
}

#[test]
fn what_is_no_run_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_str().unwrap();
    mmtwin().args(["validate", path]).assert().code(2).stderr(contains("expected a run of a real kernel"));
    fs::write(dir.path().join("run.json"), "{\"kernel\": \"6.12\"}").unwrap();
    mmtwin().args(["validate", path]).assert().code(2).stderr(contains("run.json:1").and(contains("missing field")));
    mmtwin().args(["machine", "from-run", path]).assert().code(2).stderr(contains("run.json:1"));
}
