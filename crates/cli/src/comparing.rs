//! `mmtwin compare`: runs that were kept, side by side.

use std::fs;
use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use observe::{Manifest, Metric, MetricDef, RunDir};
use report::{Column, comparison_table};

use crate::args::CompareArgs;
use crate::failure::Failure;
use crate::output;

/// The file that makes a directory a run directory.
const MANIFEST: &str = "manifest.json";

/// What a column is told apart by: place in the inputs, and value.
type Traits = IndexMap<String, String>;

pub(crate) fn compare(args: &CompareArgs) -> Result<(), Failure> {
    let mut runs = Vec::new();
    for path in &args.runs {
        let found = runs_below(path)?;
        if found.is_empty() {
            let message = format!("{}: expected a run directory or a folder of them, found none", path.display());
            return Err(Failure::bad_input(message));
        }
        for path in found {
            runs.push(RunDir::read(&path).map_err(Failure::bad_input)?);
        }
    }
    for table in tables(&runs) {
        output::print(&table)?;
    }
    Ok(())
}

/// The run directories at and below `path`, in the order of their names.
fn runs_below(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    if path.join(MANIFEST).exists() {
        return Ok(vec![path.to_owned()]);
    }
    let failure = |error| Failure::bad_input(format!("{}: {error}", path.display()));
    let entries: Result<Vec<_>, _> = fs::read_dir(path).map_err(failure)?.collect();
    let mut below: Vec<PathBuf> = entries.map_err(failure)?.into_iter().map(|entry| entry.path()).collect();
    // What starts with a dot is a run that is being written.
    below.retain(|p| p.is_dir() && !p.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.')));
    below.sort();
    let found: Result<Vec<Vec<PathBuf>>, Failure> = below.iter().map(|p| runs_below(p)).collect();
    Ok(found?.concat())
}

/// One table for each workload with its parameters on each machine; one for all if those had a single column each.
fn tables(runs: &[RunDir]) -> Vec<String> {
    let mut cases: IndexMap<String, Vec<&RunDir>> = IndexMap::new();
    for run in runs {
        cases.entry(case_of(&run.manifest)).or_default().push(run);
    }
    let mut groups: Vec<(String, Vec<Column>)> = cases.into_iter().map(|(case, runs)| (case, columns(&runs))).collect();
    if groups.len() > 1 && groups.iter().all(|(_, columns)| columns.len() == 1) {
        groups = vec![(String::new(), columns(&runs.iter().collect::<Vec<_>>()))];
    }
    let width = output::width();
    let table = |(case, columns): &(String, Vec<Column>)| format!("{case}\n{}\n", comparison_table(columns, width));
    groups.iter().map(|group| table(group).trim_start().to_string()).collect()
}

/// A run's workload and machine.
fn case_of(manifest: &Manifest) -> String {
    let params: Vec<String> = manifest.workload.params.iter().map(|(k, v)| format!("{k}={}", plain(v))).collect();
    format!("{} on {}: {}", manifest.workload.name, manifest.machine.name, params.join(" "))
}

/// Runs of one configuration form one column, named by what the columns differ in.
fn columns(runs: &[&RunDir]) -> Vec<Column> {
    let mut configurations: Vec<(&Manifest, Vec<&RunDir>)> = Vec::new();
    for run in runs {
        match configurations.iter_mut().find(|(known, _)| same_configuration(known, &run.manifest)) {
            Some((_, runs)) => runs.push(run),
            None => configurations.push((&run.manifest, vec![run])),
        }
    }
    let traits: Vec<Traits> = configurations.iter().map(|(manifest, _)| traits_of(manifest)).collect();
    let name = |own: &Traits| {
        let differs = |key: &&String| traits.iter().any(|other| other.get(*key) != own.get(*key));
        let names: Vec<&str> =
            own.keys().filter(|key| *key == "kernel" || differs(key)).map(|key| own[key].as_str()).collect();
        names.join(" ")
    };
    let column = |((_, runs), own): (&(_, Vec<&RunDir>), &Traits)| column(name(own), runs);
    configurations.iter().zip(&traits).map(column).collect()
}

/// Whether two runs are iterations of one configuration.
fn same_configuration(a: &Manifest, b: &Manifest) -> bool {
    (a.world, &a.workload, &a.machine, &a.kernel, &a.sysctls)
        == (b.world, &b.workload, &b.machine, &b.kernel, &b.sysctls)
}

fn traits_of(manifest: &Manifest) -> Traits {
    let mut traits = Traits::new();
    traits.insert("kernel".into(), manifest.kernel.name.clone());
    traits.insert("machine".into(), manifest.machine.name.clone());
    traits.insert("world".into(), format!("{:?}", manifest.world).to_lowercase());
    traits.insert("workload".into(), manifest.workload.name.clone());
    let params = manifest.workload.params.iter().map(|(name, value)| (name, plain(value)));
    let sysctls = manifest.sysctls.iter().map(|(name, value)| (name, value.clone()));
    for (name, value) in params.chain(sysctls) {
        traits.insert(name.clone(), format!("{name}={value}"));
    }
    traits
}

fn plain(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_string)
}

/// A column of iterations. Each counts once in each metric, with the mean of its samples: samples of one run depend on each
/// other, so that taken together they would seem to tell more than they do. What parts of a run have of the counters is
/// left to the run's file: it is the same table once more for each part.
pub(crate) fn column(name: String, runs: &[&RunDir]) -> Column {
    let of_run = |metric: &Metric| {
        let samples = metric.summary().mean.into_iter().collect();
        Metric { samples, ..metric.clone() }
    };
    let of_a_part = |name: &str| name.contains('/') && observe::metric_def(name).is_some_and(MetricDef::is_derived);
    let shown = runs.iter().flat_map(|run| &run.metrics).filter(|metric| !of_a_part(&metric.name));
    Column { name, metrics: shown.map(of_run).collect() }
}

#[cfg(test)]
mod tests {
    use observe::{Described, Program, Snapshot, World};

    use super::*;

    fn run(machine: &str, kernel: &str, sysctls: &[(&str, &str)], samples: &[f64]) -> RunDir {
        let described = |name: &str| Described { name: name.into(), toml: String::new() };
        RunDir {
            manifest: Manifest {
                version: String::new(),
                world: World::Twin,
                workload: Program { name: "w".into(), params: IndexMap::new() },
                machine: described(machine),
                kernel: described(kernel),
                sysctls: sysctls.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect(),
                seed: 1,
                iteration: 0,
                omitted: Vec::new(),
                virtual_s: 1.0,
                wall_s: None,
            },
            before: Snapshot::default(),
            after: Snapshot::default(),
            metrics: vec![Metric::new("iops", samples.to_vec())],
            series: None,
        }
    }

    #[test]
    fn an_iteration_counts_once_whatever_its_samples() {
        let runs = [run("m", "k", &[], &[1.0, 2.0, 3.0]), run("m", "k", &[], &[10.0])];
        let columns = columns(&runs.iter().collect::<Vec<_>>());
        assert_eq!(columns.len(), 1);
        let samples: Vec<f64> = columns[0].metrics.iter().flat_map(|m| m.samples.clone()).collect();
        assert_eq!(samples, [2.0, 10.0]);
    }

    #[test]
    fn columns_are_named_by_what_they_differ_in() {
        let runs = [run("m", "k", &[], &[1.0]), run("m", "k", &[("vm.swappiness", "0")], &[1.0])];
        let names: Vec<String> = columns(&runs.iter().collect::<Vec<_>>()).into_iter().map(|c| c.name).collect();
        assert_eq!(names, ["k", "k vm.swappiness=0"]);
    }

    #[test]
    fn machines_stand_in_one_table_only_if_nothing_else_is_to_be_compared() {
        let (a, b) = (run("a", "old", &[], &[1.0]), run("b", "old", &[], &[2.0]));
        let (a_new, b_new) = (run("a", "new", &[], &[1.0]), run("b", "new", &[], &[2.0]));
        let together = tables(&[a.clone(), b.clone()]);
        assert_eq!(together.len(), 1);
        assert!(together[0].contains("old a") && together[0].contains("old b"), "{}", together[0]);
        let apart = tables(&[a, b, a_new, b_new]);
        assert_eq!(apart.len(), 2);
        assert!(apart[0].starts_with("w on a:") && apart[1].starts_with("w on b:"));
    }
}
