//! Whatever is wrong with what was given: exit status 2, one line on standard error, nothing on standard output.

use std::fs;

use tempfile::TempDir;

use crate::{mmtwin, write_inputs};

/// Runs `mmtwin` in a folder with the tiny inputs; the one line that it says must contain each of `parts`.
fn refused(args: &[&str], parts: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    write_inputs(dir.path());
    refused_in(&dir, args, parts);
}

fn refused_in(dir: &TempDir, args: &[&str], parts: &[&str]) {
    let assert = mmtwin().current_dir(dir).args(args).assert().code(2).stdout("");
    let told = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
    assert!(told.starts_with("mmtwin: ") && told.ends_with('\n') && told.lines().count() == 1, "{args:?}: {told}");
    for part in parts {
        assert!(told.contains(part), "{args:?}: {told}");
    }
}

#[test]
fn usage() {
    refused(&[], &["expected a command; `mmtwin --help` shows them"]);
    refused(&["runn"], &["unrecognized subcommand 'runn'", "similar subcommand exists: 'run'"]);
    refused(&["run"], &["required arguments were not provided", "<WORKLOAD|JOB.fio|EXPERIMENT.toml>"]);
    refused(&["compare"], &["required arguments were not provided", "<RUN>..."]);
    refused(&["list", "disks"], &["invalid value 'disks' for '<WHAT>'", "workloads, kernels, machines, studies"]);
    refused(&["completions", "tcsh"], &["invalid value 'tcsh' for '<SHELL>'"]);
    refused(&["reproduce", "--fast"], &["unexpected argument '--fast'"]);
    refused(&["validate"], &["required arguments were not provided", "<DIR>..."]);
    refused(&["machine"], &["expected a command"]);
}

#[test]
fn numbers() {
    refused(&["run", "thpfioscale", "--iterations", "0"], &["'0' for '--iterations <N>'", "1..=10000"]);
    refused(&["run", "thpfioscale", "--jobs", "0"], &["'0' for '--jobs <N>'", "1..=1024"]);
    refused(&["run", "thpfioscale", "--seed", "x"], &["'x' for '--seed <N>'"]);
    refused(&["run", "thpfioscale", "--seed", "-1"], &["'-1' for '--seed <N>'"]);
    refused(&["reproduce", "--iterations", "-1"], &["'-1' for '--iterations <N>'", "1..=10000"]);
    refused(&["run", "thpfioscale", "--cpus", "0"], &["'0' for '--cpus <N>'", "1..=1024"]);
    refused(&["run", "thpfioscale", "--memory", "4GB"], &["--memory <SIZE>", "`4GB` is not a size such as \"64GiB\""]);
    for size in ["-1", "-1GiB"] {
        let told = format!("`{size}` is not a size such as \"64GiB\"");
        refused(&["run", "thpfioscale", "--memory", size], &["--memory <SIZE>", &told]);
        refused(&["run", "thpfioscale", "--zram", size], &["--zram <SIZE[:COMPRESSOR]>", &told]);
    }
    refused(&["validate", "runs", "--repeat", "-1"], &["'-1' for '--repeat <N>'", "1..=1000"]);
}

#[test]
fn zram() {
    refused(
        &["run", "thpfioscale", "--zram", "64MiB:gzip"],
        &["`gzip` is no compressor: expected one of lzo, lzo-rle, lz4, zstd"],
    );
    refused(&["run", "thpfioscale", "--zram", "64:lz4:9"], &["`lz4:9` is no compressor"]);
    refused(&["run", "thpfioscale", "--zram", ":lz4"], &["`` is not a size such as"]);
}

#[test]
fn pairs() {
    for bad in ["fio-jobs", "=2", "fio-jobs="] {
        refused(&["run", "thpfioscale", "-p", bad], &["--param <KEY=VALUE>", "expected key=value"]);
        refused(&["run", "thpfioscale", "--set", bad], &["--set <SYSCTL=VALUE>", "expected key=value"]);
    }
}

#[test]
fn a_parameter_has_one_value() {
    let told = "-p dirs=2: it is 1 already: expected each parameter once";
    refused(&["run", "untar2", "-p", "dirs=1", "-p", "files=1", "-p", "dirs=2"], &[told]);
    let told = "-p fio-jobs=1: it is 1 already";
    refused(&["run", "experiment.toml", "-p", "fio-jobs=1", "-p", "fio-jobs=1"], &[told]);
}

#[test]
fn workloads_in_cgroups_on_a_kernel_without_them() {
    let told = "needs memory cgroups of version 2 with these parameters, which this kernel does not have";
    for (workload, kernel, param) in [
        ("cgroup-high", "3.19-rc4", None),
        ("squeeze", "2.6.39-rc7", Some("containers=2")),
        ("memcached-fio", "4.4", None),
    ] {
        let params: Vec<&str> = param.iter().flat_map(|param| ["-p", param]).collect();
        let args = [&["run", workload, "-m", "tiny.toml", "-k", kernel], &params[..]].concat();
        refused(&args, &[&format!("kernel {kernel}: workload {workload} {told}")]);
    }
}

#[test]
fn names_that_no_folder_of_a_run_could_have() {
    let dir = tempfile::tempdir().unwrap();
    write_inputs(dir.path());
    let text = fs::read_to_string(dir.path().join("tiny.toml")).unwrap();
    let expected = "bad.toml:1: name: expected a name of 1 to 128 bytes without `/` and control characters";
    for name in ["x".repeat(300), String::new(), "a\\nb".to_string()] {
        fs::write(dir.path().join("bad.toml"), text.replace("\"tiny\"", &format!("\"{name}\""))).unwrap();
        refused_in(&dir, &["run", "untar2", "-m", "bad.toml", "--out", "runs"], &[expected]);
    }
    assert!(!dir.path().join("runs").exists());
}

#[test]
fn names_of_workloads_parameters_and_tunables() {
    refused(
        &["run", "thpfio"],
        &["unknown workload `thpfio`; did you mean `thpfio3`? expected one of stress-highalloc, thpfioscale"],
    );
    refused(
        &["run", "thpfioscale", "-p", "jobs=2"],
        &["workload thpfioscale has no parameter `jobs`; it has fio-jobs, "],
    );
    refused(&["run", "thpfioscale", "-p", "fio-jobs=0"], &["fio-jobs=0: expected a whole number from 1 to 1024"]);
    refused(&["run", "thpfioscale", "--set", "vm.swapiness=1"], &["`vm.swapiness`; did you mean `vm.swappiness`?"]);
    refused(&["run", "thpfioscale", "--set", "thp.enabled=yes"], &["thp.enabled: `yes` is not one of always, madvise"]);
}

#[test]
fn machines_kernels_and_studies() {
    refused(
        &["run", "thpfioscale", "-m", "laptop"],
        &["unknown machine `laptop`", "skylake-1s, skylake-1s-64g, haswell-2s, "],
    );
    refused(&["run", "thpfioscale", "-k", "4.20"], &["unknown kernel `4.20`", "4.20-rc3, "]);
    refused(&["run", "thpfioscale", "-k", "6.12", "-k", "6.12"], &["--kernel 6.12: two kernels are named `6.12`"]);
    refused(&["run", "thpfioscale", "-m", "missing.toml"], &["missing.toml: No such file"]);
    refused(&["reproduce", "slub"], &["unknown study `slub`", "watermark-boost"]);
}

#[test]
fn files_are_named_with_line_and_key() {
    let dir = tempfile::tempdir().unwrap();
    write_inputs(dir.path());
    let change = |file: &str, from: &str, to: &str| {
        let text = fs::read_to_string(dir.path().join(file)).unwrap();
        assert!(text.contains(from), "{from}");
        fs::write(dir.path().join(format!("bad-{file}")), text.replace(from, to)).unwrap();
    };
    change("tiny.toml", "count = 2", "count = 0");
    refused_in(&dir, &["run", "thpfioscale", "-m", "bad-tiny.toml"], &["bad-tiny.toml:5: cpus.count: 0 CPUs"]);
    for (from, to, told) in [
        ("fio-jobs = 2", "jobs = 2", "bad-study.toml:21: case.params: workload thpfioscale has no parameter `jobs`"),
        ("\"thpfioscale\"", "\"thpfio\"", "unknown workload `thpfio`"),
        ("\"extfrag_events\"", "\"extfrag\"", "bad-study.toml:33: metric: no metric is named `extfrag`"),
        ("\"4.20-rc3-boost\"", "\"5.9\"", "bad-study.toml:15: kernels: unknown kernel `5.9`"),
        ("\"48MiB\"", "\"16MiB\"", "bad-study.toml:10: quick.memory: machine tiny with 16MiB of memory: node.memory: "),
        (
            "{ tiny = \"48MiB\" }",
            "{ tiny = \"48MiB\" }\nparams = { jobs = 1 }",
            "bad-study.toml:11: quick.params: workload ",
        ),
    ] {
        change("study.toml", from, to);
        refused_in(&dir, &["reproduce", "bad-study.toml"], &[told]);
    }
}

#[test]
fn an_experiments_file_is_named_with_line_and_key() {
    let dir = tempfile::tempdir().unwrap();
    write_inputs(dir.path());
    let text = fs::read_to_string(dir.path().join("experiment.toml")).unwrap();
    for (from, to, told) in [
        (
            "\"thpfioscale\"",
            "\"thpfio\"",
            "bad.toml:2: workload: unknown workload `thpfio`; did you mean `thpfio3`? expected one of",
        ),
        (
            "fio-jobs = 2",
            "fio-jobs = 0",
            "bad.toml:12: case.params: fio-jobs=0: expected a whole number from 1 to 1024",
        ),
        ("\"4.20-rc3-boost\"", "\"5.9\"", "bad.toml:7: kernels: unknown kernel `5.9`"),
        ("vm.swappiness", "vm.swap", "bad.toml:18: case.sysctls: unknown tunable `vm.swap`"),
        ("title = \"two jobs\"", "", "bad.toml:9: case.title: missing field `title`"),
        ("iterations = 2", "iterations = 0", "bad.toml:3: iterations: expected 1 to 10000"),
    ] {
        assert!(text.contains(from), "{from}");
        fs::write(dir.path().join("bad.toml"), text.replace(from, to)).unwrap();
        refused_in(&dir, &["run", "bad.toml", "--out", "runs"], &[told]);
    }
    refused_in(&dir, &["run", "none.toml"], &["none.toml: No such file"]);
    let study = fs::read_to_string(dir.path().join("study.toml")).unwrap();
    fs::write(dir.path().join("bad.toml"), study.replace("\"extfrag_events\"", "\"extfrag\"")).unwrap();
    refused_in(&dir, &["run", "bad.toml", "--out", "runs"], &["bad.toml:33: metric: no metric is named `extfrag`"]);
    assert!(!dir.path().join("runs").exists());
}

#[test]
fn what_an_experiment_does_not_leave_open() {
    let refused =
        |args: &[&str], told: &str| refused(&[&["run", "experiment.toml", "--out", "runs"], args].concat(), &[told]);
    refused(&["-k", "6.12"], "--kernel 6.12: expected one of the kernels of experiment.toml: vanilla, boost");
    refused(&["-k", "boost", "-k", "boost"], "--kernel boost: it is there twice");
    refused(&["-p", "jobs=2"], "workload thpfioscale has no parameter `jobs`");
    refused(&["--set", "vm.swap=1"], "unknown tunable `vm.swap`");
    refused(&["-m", "laptop"], "unknown machine `laptop`");
    for world in ["qemu", "host", "both"] {
        refused(
            &["--on", world],
            &format!("--on {world}: experiment.toml: an experiment's kernels are models: expected"),
        );
    }
}

#[test]
fn several_machines_are_not_replaced_by_one() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies/watermark-boost.toml");
    refused(&["run", file, "-m", "small"], &["--machine small: the cases of ", "have several machines"]);
}

#[test]
fn a_study_without_comparisons_is_not_reproduced() {
    let dir = tempfile::tempdir().unwrap();
    write_inputs(dir.path());
    let text = fs::read_to_string(dir.path().join("study.toml")).unwrap();
    let (cases, comparison) = text.split_once("[[comparison]]").unwrap();
    fs::write(dir.path().join("bare.toml"), cases).unwrap();
    let told = "bare.toml:1: comparison: missing: expected one [[comparison]] or more to reproduce";
    refused_in(&dir, &["reproduce", "bare.toml"], &[told]);
    let (comparison, _) = comparison.split_once("metrics").unwrap();
    fs::write(dir.path().join("bare.toml"), format!("{cases}[[comparison]]{comparison}")).unwrap();
    let told = "bare.toml:1: metric: missing: expected one [[metric]] or more to reproduce";
    refused_in(&dir, &["reproduce", "bare.toml"], &[told]);
}

#[test]
fn a_machine_without_a_mount() {
    let dir = tempfile::tempdir().unwrap();
    let text = crate::TINY.split("[mount]").next().unwrap();
    fs::write(dir.path().join("bare.toml"), text).unwrap();
    let told = "machine tiny: workload thpfioscale needs a file system: expected [mount]";
    refused_in(&dir, &["run", "thpfioscale", "-m", "bare.toml"], &[told]);
}

#[test]
fn machines_that_cannot_be() {
    let tiny =
        |args: &[&str], told: &str| refused(&[&["run", "thpfioscale", "-m", "tiny.toml"], args].concat(), &[told]);
    tiny(&["--memory", "16MiB"], "machine tiny with 16MiB of memory: node.memory: expected 32MiB or more a node");
    tiny(
        &["--memory", "9TiB"],
        "machine tiny with 9TiB of memory: node.memory: expected 32MiB or more a node and 8TiB",
    );
    let cpus = ["run", "thpfioscale", "-m", "haswell-2s", "--cpus", "1"];
    refused(&cpus, &["machine haswell-2s with 1 CPUs: node: 2 nodes and 1 CPUs: expected"]);
    refused(&["reproduce", "--quick", "--memory", "4GiB"], &["'--quick' cannot be used with '--memory <SIZE>'"]);
    refused(&["run", "thpfioscale", "--timings"], &["required arguments were not provided", "--json"]);
}

#[test]
fn worlds() {
    refused(&["run", "thpfioscale", "--on", "mars"], &["'mars' for '--on <WORLD>'"]);
}

#[test]
fn places_that_cannot_be_written() {
    for out in ["tiny.toml", "tiny.toml/runs", "/proc/runs"] {
        refused(&["run", "thpfioscale", "-m", "tiny.toml", "--out", out], &[&format!("--out {out}: ")]);
    }
}

#[test]
fn events() {
    refused(&["run", "thpfioscale", "--events", "kmem"], &["required arguments were not provided", "--out <DIR>"]);
    refused(&["run", "thpfioscale", "--out", "x", "--events", "block"], &["'block' for '--events <GROUPS>'", "kmem"]);
}

#[test]
fn run_directories() {
    refused(&["compare", "missing"], &["missing: No such file"]);
    refused(&["compare", "."], &[".: expected a run directory or a folder of them, found none"]);
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("run")).unwrap();
    fs::write(dir.path().join("run/manifest.json"), "{\n}\n").unwrap();
    for command in [["compare", "run"].as_slice(), &["report", "run", "-o", "page.html"]] {
        refused_in(&dir, command, &["run/manifest.json:2: expected the manifest of a run directory"]);
    }
    assert!(!dir.path().join("page.html").exists());
    refused(&["report", "run"], &["required arguments were not provided", "--output <FILE>"]);
}

#[test]
fn a_job_file_that_cannot_be_used_names_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let cases = [
        ("[a]\nrw=read\nsize=1m\nbogus=1\n", "bad.fio:4: bogus: expected an option of fio, found none of this name"),
        ("[a]\nsize=1m\ndirect=1\n", "bad.fio:3: direct=1: expected I/O through the page cache"),
        ("rw=read\n", "bad.fio:1: `rw=read`: expected a section"),
    ];
    for (text, told) in cases {
        std::fs::write(dir.path().join("bad.fio"), text).unwrap();
        let assert = mmtwin().current_dir(&dir).args(["run", "bad.fio"]).assert().code(2).stdout("");
        let stderr = String::from_utf8(assert.get_output().stderr.clone()).unwrap();
        assert!(stderr.lines().count() == 1 && stderr.contains(told), "{stderr}");
    }
    let missing = mmtwin().current_dir(&dir).args(["run", "none.fio"]).assert().code(2);
    assert!(String::from_utf8_lossy(&missing.get_output().stderr).contains("none.fio: "));
    let given = mmtwin().current_dir(&dir).args(["run", "bad.fio", "-p", "x=1"]).assert().code(2);
    assert!(String::from_utf8_lossy(&given.get_output().stderr).contains("expected no parameter"));
}
