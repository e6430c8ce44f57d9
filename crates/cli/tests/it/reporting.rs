//! `report`.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::{mmtwin, stdout, write_inputs};

#[test]
fn kept_runs_become_one_page() {
    let dir = tempfile::tempdir().unwrap();
    write_inputs(dir.path());
    let kernels = ["-k", "4.20-rc3", "-k", "4.20-rc3-boost", "--out", "runs", "--events", "compaction"];
    mmtwin().current_dir(&dir).args(["run", "thpfioscale", "-m", "./tiny.toml"]).args(kernels).assert().success();
    let report = ["report", "runs", "-o", "page.html"];
    fs::write(dir.path().join("page.html"), "what was there before").unwrap();
    mmtwin().current_dir(&dir).args(report).assert().success().stdout("").stderr("");
    let page = fs::read_to_string(dir.path().join("page.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>"), "{page}");
    for part in ["<h1>2 runs</h1>", "4.20-rc3-boost", "Free memory, MiB", "Zones over time", "elapsed_s s ↓"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let mode = fs::metadata(dir.path().join("page.html")).unwrap().permissions().mode();
    let of_others = fs::metadata(dir.path().join("runs")).unwrap().permissions().mode() & 0o044;
    assert_eq!(mode & 0o044, of_others, "as readable as the runs");
    assert_eq!(stdout(mmtwin().current_dir(&dir).args(["report", "runs", "-o", "-"])), page);
    for place in ["missing/page.html", "runs"] {
        let refused = format!("mmtwin: --output {place}: expected the name of a file in a folder that exists\n");
        mmtwin().current_dir(&dir).args(["report", "runs", "-o", place]).assert().code(2).stdout("").stderr(refused);
    }
}

#[test]
fn a_page_says_why_kswapd_was_busy() {
    let dir = tempfile::tempdir().unwrap();
    let machine = ["-m", "node-noswap", "--memory", "256MiB", "-k", "6.12", "-p", "seconds=1", "-p", "readers=0"];
    let mut run = mmtwin();
    run.current_dir(&dir).args(["run", "kswapd-boost", "--out", "runs"]).args(machine);
    let told = stdout(&mut run);
    let sentence = told.lines().find_map(|line| line.strip_prefix("6.12: ")).expect("it gave its node up");
    let page = stdout(mmtwin().current_dir(&dir).args(["report", "runs", "-o", "-"]));
    assert!(page.contains(&format!("<p><b>6.12:</b> {sentence}")), "{sentence}: {page}");
}
