//! `compare`: which runs form a column, and how columns are called.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::{mmtwin, stdout, write_inputs};

/// Keeps two runs of the machine in `tiny.toml` in the folder `out`.
fn keep(dir: &Path, out: &str) {
    let args = ["run", "thpfioscale", "-m", "./tiny.toml", "-p", "fio-jobs=2", "--iterations", "2", "--out", out];
    mmtwin().current_dir(dir).args(args).assert().success();
}

fn compare(dir: &Path, runs: &[&str]) -> String {
    stdout(mmtwin().current_dir(dir).arg("compare").args(runs))
}

/// The line with the names of the columns.
fn head(table: &str) -> &str {
    table.lines().nth(1).unwrap()
}

#[test]
fn a_run_counts_once() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    write_inputs(dir);
    keep(dir, "a");
    let once = compare(dir, &["a"]);
    symlink(".", dir.join("a/loop")).unwrap();
    symlink("a", dir.join("link")).unwrap();
    let run = "a/thpfioscale-tiny/6.12/iter-0";
    for twice in [["a", "a"].as_slice(), &["a", "./a/"], &["a", "link"], &["a", run]] {
        assert_eq!(compare(dir, twice), once, "{twice:?}");
    }
    keep(dir, "a/again");
    let told = "mmtwin: a/again/thpfioscale-tiny/6.12/iter-0 and a/thpfioscale-tiny/6.12/iter-0: expected two runs, \
                found one made twice (seed 1, iteration 0); runs of two builds are compared as two folders\n";
    mmtwin().current_dir(dir).args(["compare", "a"]).assert().code(2).stdout("").stderr(told);
}

#[test]
fn two_folders_have_columns_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    write_inputs(dir);
    keep(dir, "before");
    keep(dir, "after");
    let table = compare(dir, &["before/", "after"]);
    assert_eq!(head(&table).split_whitespace().collect::<Vec<_>>(), ["metric", "6.12", "before", "6.12", "after"]);
    assert!(table.contains("(+0.0%)") && !table.contains("%*)"), "the same runs: {table}");
    let runs = ["before/thpfioscale-tiny/6.12/iter-0", "after/thpfioscale-tiny/6.12/iter-1"];
    let table = compare(dir, &runs);
    assert_eq!(head(&table).matches("6.12").count(), 1, "runs that are typed themselves are one folder: {table}");
}

#[test]
fn an_edited_machine_has_a_column_of_another_name() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    write_inputs(dir);
    keep(dir, "runs/a");
    let text = fs::read_to_string(dir.join("tiny.toml")).unwrap();
    fs::write(dir.join("tiny.toml"), format!("# edited\n{text}")).unwrap();
    keep(dir, "runs/b");
    let table = compare(dir, &["runs"]);
    assert_eq!(head(&table).matches("6.12 machine ").count(), 2, "{table}");
}
