use indexmap::IndexMap;
use observe::{Described, Manifest, Program, Snapshot, World};
use units::Nanos;

use super::*;

fn run(kernel: &str, elapsed: f64, faults: &[u64]) -> RunDir {
    let mut series = Series::new(vec!["pgfault".into(), "pswpin".into()]);
    for (second, count) in faults.iter().enumerate() {
        series.push(Nanos::secs(second as u64), vec![*count, 0]);
    }
    let described = |name: &str| Described { name: name.into(), toml: format!("name = \"{name}\" # a < b\n") };
    RunDir {
        manifest: Manifest {
            version: "0".into(),
            world: World::Twin,
            workload: Program { name: "work".into(), params: IndexMap::from([("size".into(), "4MiB".into())]) },
            machine: described("box"),
            kernel: described(kernel),
            sysctls: IndexMap::from([("vm.swappiness".into(), "0".into())]),
            seed: 7,
            iteration: 0,
            omitted: vec!["the moon".into()],
            virtual_s: 3.0,
            wall_s: None,
        },
        before: Snapshot::default(),
        after: Snapshot::default(),
        metrics: vec![Metric::new("elapsed_s", vec![elapsed])],
        series: Some(series),
    }
}

fn case<'a>(columns: &[(&str, &'a [RunDir])]) -> PageCase<'a> {
    let column = |(name, runs): &(&str, &'a [RunDir])| PageColumn {
        column: Column { name: (*name).into(), metrics: runs.iter().flat_map(|run| run.metrics.clone()).collect() },
        runs: runs
            .iter()
            .map(|run| PageRun { run, zones: Some("0 s|FFM|".into()), why_kswapd_is_busy: None })
            .collect(),
    };
    PageCase { title: "work on box".into(), columns: columns.iter().map(column).collect() }
}

#[test]
fn a_page_has_comparison_charts_zones_and_inputs() {
    // 10, 11, 12 against 20, 21, 22: worse, as less time is better.
    let [old, new] = [("old", 10.0), ("new", 20.0)]
        .map(|(kernel, from)| [0.0, 1.0, 2.0].map(|more| run(kernel, from + more, &[0, 50, 90])));
    let page = page(&[case(&[("old", &old), ("new", &new)])]);
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("<h1>6 runs</h1>"), "{page}");
    assert!(page.contains("<td class=\"worse\">21 ±2.48 (+90.9%*)</td>"), "{page}");
    // One chart: swapping stayed at 0, and one sample is no distribution.
    assert_eq!(page.matches("<svg ").count(), 1);
    assert!(page.contains("Page faults, a second") && page.contains("No metric has enough samples."));
    assert_eq!(page.matches("Zones over time").count(), 6);
    assert_eq!(page.matches("<summary>Zones over time, old, iter-").count(), 3, "each run says which it is");
    for input in ["size = &quot;4MiB&quot;", "vm.swappiness = 0", "# a &lt; b", "Left out: the moon", "seed 7"] {
        assert!(page.contains(input), "{input}: {page}");
    }
}

#[test]
fn a_page_stands_by_itself_and_escapes_what_it_is_given() {
    let runs = [run("<script>alert(1)</script>", 1.0, &[0, 1])];
    let page = page(&[case(&[("<b>", &runs)])]);
    assert!(!page.contains("<script") && !page.contains("<b><b>") && page.contains("&lt;b&gt;"));
    let fetched = ["src=", "href=", "url(", "@import", "<link"];
    assert!(fetched.iter().all(|word| !page.contains(word)), "{page}");
}

#[test]
fn what_a_scenario_came_to_stands_before_its_table() {
    let mut scenario = run("6.12", 1.0, &[0, 1]);
    scenario.manifest.workload.name = "cgroup-oom".into();
    let sentence = finding(&scenario).expect("a scenario ends in a sentence");
    let runs = [scenario, run("6.12", 1.0, &[0, 1])];
    let page = page(&[case(&[("6.12", &runs)])]);
    let told = page.find(&format!("<p><b>6.12:</b> {sentence}</p>")).expect("nothing in it needs escaping");
    assert!(told < page.find("Comparison").unwrap());
    assert_eq!(page.matches("<p><b>").count(), 1, "other workloads say nothing");
}

#[test]
fn why_kswapd_was_busy_stands_before_the_table() {
    let runs = [run("6.12", 1.0, &[0, 1]), run("6.12", 1.0, &[0, 1])];
    let mut case = case(&[("6.12", &runs)]);
    case.columns[0].runs[1].why_kswapd_is_busy = Some("it spins".into());
    let page = page(&[case]);
    let told = page.find("<p><b>6.12:</b> it spins</p>").expect("one run has it");
    assert!(told < page.find("Comparison").unwrap());
    assert_eq!(page.matches("<p><b>").count(), 1, "the other was idle");
}

#[test]
fn runs_without_a_series_have_no_charts() {
    let bare = [RunDir { series: None, ..run("old", 1.0, &[]) }];
    let page = page(&[case(&[("old", &bare)])]);
    assert!(page.contains("No run of these kept counters over time.") && !page.contains("<svg "));
}
