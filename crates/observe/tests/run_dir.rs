//! Run directories: complete or not there, and clear about what is wrong with them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use observe::{
    Counters, Described, KernelEvent, Manifest, Metric, Program, RunDir, RunError, Series, Snapshot, TraceEvent,
    TraceRecord, World, parse_ftrace,
};
use rules::CompactionEvents;
use units::{CpuId, Nanos};

fn snapshot() -> Snapshot {
    let data = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/6.12");
    Snapshot::read(&data).unwrap()
}

fn run() -> RunDir {
    let mut after = snapshot();
    let vmstat: &mut Counters = after.vmstat.as_mut().unwrap();
    vmstat.set("pgfault", vmstat.get("pgfault").unwrap() + 1000);
    let mut series = Series::new(vec!["pgfault".into()]);
    series.push(Nanos(0), vec![5]);
    let params = [("threads".to_owned(), 4.into()), ("file_mb".to_owned(), 1.5.into())];
    RunDir {
        manifest: Manifest {
            version: "0.1.0".into(),
            world: World::Twin,
            workload: Program { name: "fsmark".into(), params: params.into_iter().collect() },
            machine: Described { name: "small".into(), toml: "memory = \"512M\"\n".into() },
            kernel: Described { name: "6.12".into(), toml: String::new() },
            sysctls: [("vm.swappiness".to_owned(), "60".to_owned())].into_iter().collect(),
            seed: 1,
            iteration: 0,
            omitted: vec!["page_owner".into()],
            virtual_s: 12.5,
            wall_s: None,
        },
        before: snapshot(),
        after,
        metrics: vec![Metric::new("files_per_s", vec![30.78, 32.69])],
        series: Some(series),
    }
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_run_comes_back_with_its_events() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("deep/run-0");
    let event =
        KernelEvent::compaction(CompactionEvents::Priorities, "mm_compaction_kcompactd_sleep", |_| Some(0.into()));
    let event = TraceEvent::OfKernel(event.expect("a tracepoint of that kernel"));
    let events = [TraceRecord { at: Nanos(5_000), cpu: CpuId(0), comm: "kcompactd0".into(), pid: 45, event }];
    run().write(&path, &events, &BTreeMap::new()).unwrap();
    assert_eq!(names(&path), ["after", "before", "events.txt", "manifest.json", "metrics.json", "series.csv"]);
    assert_eq!(names(path.parent().unwrap()), ["run-0"]);
    let read = RunDir::read(&path).unwrap();
    assert_eq!(read, run());
    let text = fs::read_to_string(path.join("events.txt")).unwrap();
    assert_eq!(parse_ftrace("events.txt", &text).unwrap(), events);
    assert_eq!(read.delta().get("pgfault"), Some(1000));
}

#[test]
fn a_run_is_never_written_over() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("run");
    fs::write(&path, "precious").unwrap();
    let error = run().write(&path, &[], &BTreeMap::new()).unwrap_err();
    assert!(matches!(error, RunError::Exists { .. }), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    assert_eq!(names(place.path()), ["run"]);
}

#[test]
fn two_runs_of_the_same_inputs_are_the_same_bytes() {
    let place = tempfile::tempdir().unwrap();
    let bytes = |name: &str| {
        let path = place.path().join(name);
        run().write(&path, &[], &BTreeMap::new()).unwrap();
        let files = ["manifest.json", "metrics.json", "series.csv", "before/zoneinfo", "after/vmstat"];
        files.map(|file| fs::read(path.join(file)).unwrap())
    };
    assert_eq!(bytes("a"), bytes("b"));
}

#[test]
fn a_missing_manifest_is_named() {
    let place = tempfile::tempdir().unwrap();
    let error = RunDir::read(place.path()).unwrap_err().to_string();
    assert!(error.contains("manifest.json: expected the manifest of a run directory"), "{error}");
}

#[test]
fn a_bad_manifest_and_a_bad_vmstat_are_named_with_their_lines() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("run");
    run().write(&path, &[], &BTreeMap::new()).unwrap();
    fs::write(path.join("after/vmstat"), "pgfault 1\npgfault\n").unwrap();
    let error = RunDir::read(&path).unwrap_err().to_string();
    assert!(error.contains("after/vmstat:2: expected \"name value\" of /proc/vmstat"), "{error}");
    fs::write(path.join("manifest.json"), "{\n  \"version\": 3\n}\n").unwrap();
    let error = RunDir::read(&path).unwrap_err().to_string();
    assert!(error.contains("manifest.json:2: expected the manifest"), "{error}");
}
