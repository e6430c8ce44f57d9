//! `run --on qemu` and `run --on host`.
//!
//! The tests that boot guests take minutes and need QEMU and a Debian kernel (fetched once with apt-get), so that they run only
//! when asked for, as `.ci/run` does: `cargo test --release -p mmtwin --test it -- --ignored real_kernels`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use assert_cmd::Command;
use observe::{RunDir, TraceEvent, TraceRecord};
use predicates::prelude::*;
use predicates::str::contains;
use profile::Machine;

use crate::{events, mmtwin, stdout};

/// Asserts that the arguments are refused with one line that holds all of `told`.
fn refused(args: &[&str], told: &[&str]) {
    let assert = mmtwin().arg("run").args(args).assert().code(2).stdout("");
    let stderr = String::from_utf8(assert.get_output().stderr.clone()).unwrap();
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    for part in told {
        assert!(stderr.contains(part), "{part:?} is not in {stderr:?}");
    }
}

#[test]
fn a_guest_needs_a_kernel_and_a_machine_that_can_be_emulated() {
    refused(&["thpfio3", "--on", "qemu"], &["--on qemu: expected --kernel-image debian:6.12"]);
    let image = ["thpfio3", "--on", "qemu", "-m", "guest-576m", "--kernel-image"];
    refused(&[&image[..], &["/nowhere/vmlinuz"]].concat(), &["--kernel-image /nowhere/vmlinuz: ", "no such file"]);
    refused(&[&image[..], &["debian:sid"]].concat(), &["expected a version such as debian:6.12"]);
    let two_nodes = ["thpfio3", "--on", "qemu", "-m", "haswell-2s", "--kernel-image", "debian:6.12"];
    refused(&two_nodes, &["machine haswell-2s: --on qemu: expected one node"]);
    let setting = [&image[..], &["debian:6.12", "--set", "vm.swappiness=900"]].concat();
    refused(&setting, &["vm.swappiness: `900` is not a whole number from 0 to 200"]);
    refused(&["thpfio3", "--on", "both"], &["--on both: expected --kernel-image debian:6.12"]);
    let dir = tempfile::tempdir().unwrap();
    let mine = dir.path().join("vmlinuz");
    fs::write(&mine, "no kernel").unwrap();
    let both = ["thpfio3", "--on", "both", "-m", "guest-576m", "--kernel-image", mine.to_str().unwrap()];
    refused(&both, &["--on both: ", "expected a kernel that the twin has: ", "6.12"]);
}

#[test]
fn a_kernel_without_the_modules_that_a_guest_needs_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("vmlinuz");
    fs::write(&image, "no kernel").unwrap();
    let image = image.to_str().unwrap();
    let modules = dir.path().to_str().unwrap();
    let args = ["thpfio3", "--on", "qemu", "-m", "guest-576m", "--kernel-image", image, "--modules", modules];
    let told = contains("expected the module dm_mod, built in or as a file; found neither");
    mmtwin().arg("run").args(args).assert().code(2).stderr(told);
    let missing = ["thpfio3", "--on", "qemu", "-m", "guest-576m", "--kernel-image", image, "--modules", "/nowhere"];
    refused(&missing, &["--modules /nowhere: expected a directory"]);
}

#[test]
fn the_host_is_not_touched_without_consent() {
    let dir = tempfile::tempdir().unwrap();
    let host = ["thpfio3", "--on", "host"];
    refused(&host, &["--on host: expected --dir DIR"]);
    refused(&[&host[..], &["--dir", "/nowhere"]].concat(), &["--dir /nowhere: expected a directory, found none"]);
    let here = [&host[..], &["--dir", dir.path().to_str().unwrap()]].concat();
    let set = [&here[..], &["--set", "vm.swappiness=10", "--memory-limit", "64MiB"]].concat();
    refused(&set, &["--set changes this machine for everybody", "--i-know allows it"]);
    refused(&[&here[..], &["--memory-limit", "1MiB"]].concat(), &["expected at least 16MiB"]);
}

#[test]
fn a_small_workload_runs_on_the_host() {
    let dir = tempfile::tempdir().unwrap();
    let files = dir.path().join("files");
    fs::create_dir(&files).unwrap();
    let mut command = mmtwin();
    command.current_dir(&dir).args(["run", "untar2", "--on", "host", "--dir", "files", "--i-know", "--out", "runs"]);
    command.args(["-p", "dirs=3", "-p", "files=20"]);
    let table = stdout(&mut command);
    assert!(table.starts_with("untar2 on host, seed 1\n") && table.contains("elapsed_s/remove"), "{table}");
    assert_eq!(fs::read_dir(&files).unwrap().count(), 0, "what was made is removed");
    let compared = stdout(mmtwin().current_dir(&dir).args(["compare", "runs"]));
    assert!(compared.starts_with("untar2 on host: dirs=3 "), "{compared}");
}

/// A short workload in a small guest, kept below `out`.
fn guest(dir: &Path, workload: &str, args: &[&str]) -> Command {
    let mut command = mmtwin();
    command.current_dir(dir).args([
        "run",
        workload,
        "-m",
        "guest-160m",
        "--on",
        "qemu",
        "--kernel-image",
        "debian:6.12",
    ]);
    command.args(args);
    command
}

/// All files below `dir` by their places, the wall time in the manifest apart.
fn files_below(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_string();
        if path.is_dir() {
            files.extend(files_below(&path).into_iter().map(|(place, content)| (format!("{name}/{place}"), content)));
        } else {
            let text = fs::read(&path).unwrap();
            let keep = |line: &&[u8]| !String::from_utf8_lossy(line).contains("\"wall_s\"");
            files.insert(name, text.split_inclusive(|byte| *byte == b'\n').filter(keep).collect::<Vec<_>>().concat());
        }
    }
    files
}

const SMALL: [&str; 8] = ["-p", "files=1500", "-p", "reads=300", "-p", "thp-mb=60", "--set", "thp.enabled=always"];

#[test]
#[ignore = "boots guests for minutes: needs QEMU (apt-get install qemu-system-x86) and a Debian kernel"]
fn the_same_inputs_are_the_same_run_to_the_last_byte() {
    let dir = tempfile::tempdir().unwrap();
    for out in ["a", "b"] {
        guest(dir.path(), "thpfio3", &SMALL).args(["--out", out]).assert().success();
    }
    let (a, b) = (files_below(&dir.path().join("a")), files_below(&dir.path().join("b")));
    let differ: Vec<&String> = a.keys().filter(|place| a.get(*place) != b.get(*place)).collect();
    assert!(differ.is_empty() && a.len() == b.len(), "{differ:?} differ");
    for place in ["before/vmstat", "after/zoneinfo", "hist/kmem.mm_page_alloc_extfrag", "guest/dmesg", "series.csv"] {
        assert!(a.keys().any(|known| known.ends_with(place)), "{place} is not in {:?}", a.keys());
    }
}

#[test]
#[ignore = "boots guests for minutes: needs QEMU (apt-get install qemu-system-x86) and a Debian kernel"]
fn a_guests_tracepoints_are_listed_and_add_up() {
    let dir = tempfile::tempdir().unwrap();
    let told = ["--out", "runs", "--events", "vmscan,compaction"];
    let table = stdout(guest(dir.path(), "thpfio3", &SMALL).args(told));
    assert!(!table.contains("list of tracepoints"), "{table}");
    let files = files_below(&dir.path().join("runs"));
    let place = files.keys().find(|place| place.ends_with("/events.txt")).expect("a list is kept");
    let place = dir.path().join("runs").join(place.trim_end_matches("/events.txt"));
    let run = RunDir::read(&place).unwrap();
    let events = events(&place);
    let sum = |name: &str, field: &str| -> u64 {
        let of_name = |record: &TraceRecord| match &record.event {
            TraceEvent::OfKernel(event) if event.name() == name => event.number(field),
            _ => None,
        };
        events.iter().filter_map(of_name).sum::<i64>() as u64
    };
    let gained = |name: &str| run.delta().get(name).unwrap() as u64;
    let reclaimed = gained("pgsteal_kswapd") + gained("pgsteal_direct");
    assert!(reclaimed > 0);
    // What is reclaimed between the two snapshots and the list's own beginning and end is next to nothing.
    let listed = sum("mm_vmscan_lru_shrink_inactive", "nr_reclaimed");
    assert!(listed.abs_diff(reclaimed) * 100 <= reclaimed, "{listed} of {reclaimed}");
    assert_eq!(sum("mm_compaction_migratepages", "nr_migrated"), gained("pgmigrate_success"));
}

#[test]
#[ignore = "boots guests for minutes: needs QEMU (apt-get install qemu-system-x86) and a Debian kernel"]
fn both_worlds_stand_side_by_side() {
    let dir = tempfile::tempdir().unwrap();
    let small = ["-p", "fio-ratio=0.5", "-p", "warmup-s=1", "--on", "both", "--out", "runs"];
    let settings = ["--set", "vm.watermark_boost_factor=0", "--set", "vm.watermark_boost_factor=15000"];
    let machine = Machine::load("guest-160m").unwrap().text + "\n[sysctls]\n\"vm.dirty_ratio\" = 40\n";
    fs::write(dir.path().join("m.toml"), machine).unwrap();
    let mut command = mmtwin();
    command.current_dir(&dir).args(["run", "thpfioscale", "-m", "m.toml", "--kernel-image", "debian:6.12"]);
    let assert = command.args(small).args(settings).assert().success();
    let told = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let (table, progress) = (told(&assert.get_output().stdout), told(&assert.get_output().stderr));
    let head = table.lines().find(|line| line.contains("metric")).unwrap().split_whitespace().collect::<Vec<_>>();
    assert_eq!(head.join(" "), "metric real 0 twin 0 real 15000 twin 15000 real effect twin effect");
    for phase in ["boot", "write", "warm-up", "fault", "stop", "remove"] {
        assert!(progress.contains(&format!("iter-0: {phase}, ")), "{phase} is not in {progress}");
    }
    // The readers were told to stop, and their warm-up lasted as long as it was to.
    let warm_up = table.lines().find(|line| line.contains("elapsed_s/warm-up s")).unwrap();
    let real: f64 = warm_up.split_whitespace().nth(3).unwrap().parse().unwrap();
    assert!((1.0..1.5).contains(&real), "{warm_up}");
    let validated = stdout(mmtwin().current_dir(&dir).args(["validate", "runs/real"]));
    assert!(validated.contains("vm.watermark_boost_factor=15000: 1 real runs"), "{validated}");
    assert_eq!(fs::read_dir(dir.path().join("runs/twin")).unwrap().count(), 2);
    let kept = files_below(&dir.path().join("runs/real"));
    let mut of_guests = kept.iter().filter(|(place, _)| place.ends_with("guest/sysctl"));
    let has_the_machines = |text: &[u8]| String::from_utf8_lossy(text).lines().any(|line| line == "vm.dirty_ratio 40");
    assert!(of_guests.clone().count() == 2 && of_guests.all(|(_, text)| has_the_machines(text)));
}

#[test]
#[ignore = "boots guests for minutes: needs QEMU (apt-get install qemu-system-x86) and a Debian kernel"]
fn both_worlds_answer_the_programs_of_conformance_alike() {
    let machine = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/guest-small-disk.toml");
    for lru_gen in ["y", "n"] {
        let dir = tempfile::tempdir().unwrap();
        let mut command = mmtwin();
        command.current_dir(&dir).args(["run", "conformance", "-m", machine, "--on", "both", "--out", "runs"]);
        command.args(["--kernel-image", "debian:6.12", "--set", &format!("lru_gen.enabled={lru_gen}")]);
        command.assert().success();
        let [real, twin] = ["runs/real", "runs/twin"].map(|world| seen(&dir.path().join(world)));
        assert!(real.len() > 40, "{:?}", real.keys());
        for (name, values) in &real {
            assert_eq!(
                twin.get(name),
                Some(values),
                "{name}, lru_gen.enabled={lru_gen}; left: the twin, right: the guest"
            );
        }
    }
}

/// What the programs of the run below `dir` saw, by name.
fn seen(dir: &Path) -> BTreeMap<String, Vec<f64>> {
    let files = files_below(dir);
    let (_, text) = files.iter().find(|(place, _)| place.ends_with("metrics.json")).expect("a run is there");
    let metrics: serde_json::Value = serde_json::from_slice(text).unwrap();
    let samples = |metric: &serde_json::Value| serde_json::from_value(metric["samples"].clone()).unwrap();
    let named = |metric: &serde_json::Value| (metric["name"].as_str().unwrap().to_string(), samples(metric));
    metrics.as_array().unwrap().iter().map(named).filter(|(name, _)| name.starts_with("conformance/")).collect()
}

#[test]
#[ignore = "boots guests for minutes: needs QEMU (apt-get install qemu-system-x86) and a Debian kernel"]
fn zram_of_a_guest_takes_what_its_pages_compress_to() {
    let dir = tempfile::tempdir().unwrap();
    let small = ["-p", "write-mb=16", "-p", "anon-mb=110", "-p", "file-mb=16", "-p", "passes=1"];
    guest(dir.path(), "wbstrm", &small).args(["--zram", "16MiB:lz4", "--out", "runs"]).assert().success();
    let files = files_below(&dir.path().join("runs"));
    let (_, text) = files.iter().find(|(place, _)| place.ends_with("guest/zram0.mm_stat")).expect("it has a zram");
    let text = String::from_utf8_lossy(text).into_owned();
    // The most that it took: 16 MiB of pages that compress to half, each with its header, its handle and what is lost between sizes.
    let most: f64 = text.split_whitespace().nth(4).unwrap().parse().unwrap();
    let share = most / f64::from(16 << 20);
    assert!((0.5..0.6).contains(&share), "{share} of it: {text}");
}

#[test]
#[ignore = "boots guests for minutes: needs QEMU (apt-get install qemu-system-x86) and a Debian kernel"]
fn what_goes_wrong_in_a_guest_is_told_with_the_consoles_last_lines() {
    let dir = tempfile::tempdir().unwrap();
    let told = |what: &'static str| contains(what).and(contains("the console's last lines:"));
    // 16 times 160 MiB do not fit a disk of 1.5 GiB.
    let full = ["-p", "fio-ratio=16", "-p", "file-size=4MiB"];
    guest(dir.path(), "thpfioscale", &full).assert().code(1).stderr(told("in phase `write`: no space left"));
    // Memory and swap together hold 416 MiB.
    let memory = ["-p", "anon-mb=600", "-p", "write-mb=1", "-p", "file-mb=1", "--set"];
    let refused = [&memory[..], &["vm.overcommit_memory=0"]].concat();
    guest(dir.path(), "wbstrm", &refused).assert().code(1).stderr(told("in phase `stream`: out of memory (ENOMEM)"));
    let killed = [&memory[..], &["vm.overcommit_memory=1"]].concat();
    let console = told("in phase `stream`: killed").and(contains("Out of memory: Killed process"));
    guest(dir.path(), "wbstrm", &killed).assert().code(1).stderr(console);
    guest(dir.path(), "untar2", &["--time-limit", "1"]).assert().code(1).stderr(told("was not finished after 1 s"));
    guest(dir.path(), "untar2", &["--wall-limit", "1"]).assert().code(1).stderr(told("after 1 s on the wall"));
    guest(dir.path(), "untar2", &["--set", "vm.no_such=1"]).assert().code(1).stderr(told("/proc/sys/vm/no_such: `1`"));
}
