//! Studies that name what is not there.

use profile::{STUDIES, Study};
use units::Bytes;

use crate::{folder, path, refusal, with};

const STUDY: &str = r#"
name = "mine"
title = "mine"
workload = "thpfioscale"
iterations = 2
[quick]
params = { fio-jobs = 1 }
iterations = 1
memory = { small = "1GiB" }
note = "half"
[kernels]
old = "4.20-rc3"
new = "own.toml"
[[case]]
config = "small"
title = "small"
machine = "small"
params = { fio-jobs = 2, madvise = "yes" }
sysctls = { "vm.swappiness" = 10 }
[[comparison]]
title = "new against old"
baseline = []
baseline-kernel = "old"
variant = []
variant-kernel = "new"
metrics = ["events"]
[[metric]]
name = "events"
metric = "extfrag_events"
take = "total"
unit = "events"
better = "lower"
published = []
"#;

/// The same with a built-in kernel only, so that it can stand alone.
fn alone() -> String {
    with(STUDY, "own.toml", "5.0")
}

fn refused(from: &str, to: &str) -> String {
    refusal(&with(&alone(), from, to), Study::load)
}

#[test]
fn a_users_study_names_files_beside_it() {
    let own = "name = \"own\"\ndescription = \"\"\nbase = \"5.0\"\n";
    let dir = folder(&[("study.toml", STUDY), ("own.toml", own)]);
    let study = Study::load(&path(dir.path(), "study.toml")).unwrap();
    let names: Vec<(&str, &str)> = study.kernels.iter().map(|(key, k)| (key.as_str(), k.name.as_str())).collect();
    assert_eq!(names, [("old", "4.20-rc3"), ("new", "own")]);
    let pair = |name: &str, value: &str| (name.to_string(), value.to_string());
    assert_eq!(study.cases[0].params, [pair("fio-jobs", "2"), pair("madvise", "yes")]);
    assert_eq!(study.cases[0].sysctls, [pair("vm.swappiness", "10")]);
    let quick = study.quick.unwrap();
    assert_eq!(quick.params, [pair("fio-jobs", "1")]);
    let machine = quick.machine(&study.cases[0].machine).unwrap();
    assert_eq!((machine.memory(), quick.iterations), (Bytes::gib(1), 1));
    assert_eq!(machine.name.get_ref(), "small-1GiB");
}

/// The least that can be run.
const EXPERIMENT: &str = r#"
name = "mine"
workload = "thpfioscale"
[kernels]
old = "4.20-rc3"
[[case]]
title = "small, as it is"
machine = "small"
"#;

#[test]
fn an_experiment_needs_neither_figures_nor_comparisons() {
    let dir = folder(&[("x.toml", EXPERIMENT)]);
    let study = Study::load(&path(dir.path(), "x.toml")).unwrap();
    assert_eq!((study.title.as_str(), study.iterations), ("", 1));
    assert!(study.comparisons.is_empty() && study.metrics.is_empty() && study.published.is_empty());
    let case = &study.cases[0];
    assert_eq!((case.config.as_str(), case.title.as_str()), ("small, as it is", "small, as it is"));
    assert!(case.params.is_empty() && case.sysctls.is_empty());
}

#[test]
fn an_experiment_says_what_runs() {
    let refused = |from: &str, to: &str| refusal(&with(EXPERIMENT, from, to), Study::load);
    for (line, key) in [
        ("name = \"mine\"\n", "x.toml:1: name"),
        ("workload = \"thpfioscale\"\n", "x.toml:1: workload"),
        ("[kernels]\nold = \"4.20-rc3\"\n", "x.toml:1: kernels"),
        ("title = \"small, as it is\"\n", "x.toml:6: case.title"),
        ("machine = \"small\"\n", "x.toml:6: case.machine"),
    ] {
        assert!(refused(line, "").starts_with(&format!("{key}: missing field `")), "{}", refused(line, ""));
    }
    assert_eq!(refused("old = \"4.20-rc3\"", ""), "x.toml:4: kernels: expected one or more");
    let no_case = "[kernels]\nold = \"4.20-rc3\"\n[[case]]\ntitle = \"small, as it is\"\nmachine = \"small\"\n";
    assert_eq!(refused(no_case, "case = []\nkernels = { old = \"5.0\" }\n"), "x.toml:1: case: expected one or more");
    let unknown = refused("machine = \"small\"", "machine = \"small\"\nparam = { x = 1 }");
    assert!(unknown.starts_with("x.toml:9: case.param: unknown field `param`, expected one of"), "{unknown}");
    let word = refused("workload = ", "iterations = \"two\"\nworkload = ");
    assert!(word.starts_with("x.toml:3: iterations: invalid type: string \"two\", expected u32"), "{word}");
}

#[test]
fn cases_can_be_told_apart_and_found_among_published_figures() {
    let twice = |second: &str| {
        let second = format!("machine = \"small\"\n[[case]]\n{second}\nmachine = \"skylake-1s\"");
        refusal(&with(EXPERIMENT, "machine = \"small\"", &second), Study::load)
    };
    let expected = "two cases are called `small, as it is`: expected a name of its own for each";
    assert_eq!(twice("title = \"small, as it is\""), format!("x.toml:10: case.title: {expected}"));
    let config = twice("title = \"other\"\nconfig = \"small, as it is\"");
    assert_eq!(config, format!("x.toml:11: case.config: {expected}"));
    let figures = "workload = \"thpfioscale\"\npublished = [\"000_watermark_boost.json\"]";
    let nameless = refusal(&with(EXPERIMENT, "workload = \"thpfioscale\"", figures), Study::load);
    let expected = "x.toml:8: case.config: missing: expected the start of what the published figures call the case";
    assert_eq!(nameless, expected);
}

#[test]
fn what_a_study_names_must_exist() {
    assert!(refused("\"4.20-rc3\"", "\"4.19\"").starts_with("x.toml:12: kernels: unknown kernel `4.19`"));
    assert!(
        refused("machine = \"small\"", "machine = \"tiny\"")
            .starts_with("x.toml:17: case.machine: unknown machine `tiny`")
    );
    assert!(refused("vm.swappiness", "vm.swap").starts_with("x.toml:19: case.sysctls: unknown tunable `vm.swap`"));
    let kernel = refused("baseline-kernel = \"old\"", "baseline-kernel = \"older\"");
    assert_eq!(kernel, "x.toml:23: comparison: no kernel is named `older`: expected one of old, new");
    let metric = refused("metrics = [\"events\"]", "metrics = [\"stalls\"]");
    assert_eq!(metric, "x.toml:26: comparison.metrics: no metric is named `stalls`: expected one of events");
    let part = refused("metrics = [\"events\"]", "metrics = [\"events\"]\nbaseline-part = \"run-1\"");
    assert!(part.contains("metric: `events` is a metric of whole runs, and"), "{part}");
    let whole = refused("metric = \"extfrag_events\"", "metric = \"extfrag_events/{part}\"");
    assert!(whole.ends_with("compares a whole run: expected baseline-part and variant-part"), "{whole}");
    let published = refused("iterations = 2", "iterations = 2\npublished = [\"007.json\"]");
    let expected =
        "x.toml:6: published: unknown publication `007.json`: not a file, and not one of 000_watermark_boost";
    assert!(published.starts_with(expected), "{published}");
}

#[test]
fn numbers_and_words_of_a_study_are_checked() {
    for number in ["0", "10001"] {
        let told = refused("iterations = 2", &format!("iterations = {number}"));
        assert_eq!(told, "x.toml:5: iterations: expected 1 to 10000");
    }
    let small = refused("\"1GiB\"", "\"1MiB\"");
    let expected = "x.toml:9: quick.memory: machine small with 1MiB of memory: node.memory: expected";
    assert!(small.starts_with(expected), "{small}");
    let unknown = refused("{ small = \"1GiB\" }", "{ large = \"1GiB\" }");
    assert_eq!(unknown, "x.toml:9: quick.memory: expected names of the study's machines, found `large`");
    let none = refused("iterations = 1", "iterations = 0");
    assert_eq!(none, "x.toml:8: quick.iterations: expected 1 to 10000");
    assert!(refused("\"total\"", "\"median\"").starts_with("x.toml:30: metric.take: unknown variant `median`"));
    assert!(refused("\"lower\"", "\"less\"").starts_with("x.toml:32: metric.better: unknown variant `less`"));
}

#[test]
fn a_broken_file_that_a_study_names_names_its_own_place() {
    let dir = folder(&[("study.toml", STUDY), ("own.toml", "name = 1\n")]);
    let error = Study::load(&path(dir.path(), "study.toml")).unwrap_err().to_string();
    assert!(error.contains("own.toml:1: name: invalid type"), "{error}");
}

#[test]
fn published_figures_can_lie_beside_the_study() {
    let named = with(&alone(), "iterations = 2", "iterations = 2\npublished = [\"own.json\"]");
    let row = r#"["events", "old", "small", 12.5, "events", null, null]"#;
    let load = |json: &str| {
        let dir = folder(&[("study.toml", &named), ("own.json", json)]);
        Study::load(&path(dir.path(), "study.toml")).map_err(|error| error.to_string())
    };
    let study = load(&format!("{{\"source\": \"mine\", \"rows\": [{row}]}}")).unwrap();
    assert_eq!(study.published[0].rows[0].value, Some(12.5));
    let error = load("{\n\"source\": 1}").unwrap_err();
    assert!(error.contains("own.json:2: published figures: invalid type: integer `1`"), "{error}");
}

#[test]
fn every_metric_of_a_built_in_study_is_compared() {
    for (name, _) in STUDIES {
        let study = Study::load(name).unwrap();
        for metric in &study.metrics {
            let used = study.comparisons.iter().flat_map(|c| c.metrics(&study)).any(|m| m.name == metric.name);
            assert!(used, "{name}: {}", metric.name);
        }
    }
}

#[test]
fn names_can_be_told_in_a_line_and_be_part_of_a_path() {
    let expected = "expected a name of 1 to 128 bytes without `/` and control characters";
    let refused = |from: &str, to: &str| refusal(&with(EXPERIMENT, from, to), Study::load);
    assert_eq!(refused("\"mine\"", "\"\""), format!("x.toml:2: name: {expected}"));
    assert_eq!(refused("old = ", "\"a/b\" = "), format!("x.toml:5: kernels: {expected}"));
    let case = |title: &str| with(EXPERIMENT, "small, as it is", title);
    let expected = "x.toml:7: case.title: expected a name of 1 to 255 bytes without control characters";
    for bad in ["", "a\\tb", &"x".repeat(256)] {
        assert_eq!(refusal(&case(bad), Study::load), expected, "{bad}");
    }
    let dir = folder(&[("x.toml", &case("skylake1s/thpfioscale-xfs"))]);
    assert!(Study::load(&path(dir.path(), "x.toml")).is_ok());
}
