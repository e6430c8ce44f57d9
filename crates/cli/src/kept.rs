//! Runs that were kept: reading them, and grouping them into what is compared with each other.

use std::fs;
use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use observe::{Manifest, Metric, MetricDef, RunDir};
use report::Column;

use crate::failure::Failure;

/// The file that makes a directory a run directory.
const MANIFEST: &str = "manifest.json";

/// What a column is told apart by: place in the inputs, and value.
type Traits = IndexMap<String, String>;

/// A run, and where it is.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Kept {
    pub(crate) path: PathBuf,
    pub(crate) run: RunDir,
}

/// The iterations of one configuration.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Configuration<'a> {
    /// What tells it from the others of its case.
    pub(crate) name: String,
    pub(crate) runs: Vec<&'a Kept>,
}

impl Configuration<'_> {
    pub(crate) fn column(&self) -> Column {
        let runs: Vec<&RunDir> = self.runs.iter().map(|kept| &kept.run).collect();
        column(self.name.clone(), &runs)
    }
}

/// What is compared with each other.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Case<'a> {
    /// Workload, machine and parameters; nothing if they differ.
    pub(crate) title: String,
    pub(crate) configurations: Vec<Configuration<'a>>,
}

/// The run directories at and below each of the paths, which must have some.
pub(crate) fn read(paths: &[PathBuf]) -> Result<Vec<Kept>, Failure> {
    let mut runs = Vec::new();
    for path in paths {
        let found = runs_below(path)?;
        if found.is_empty() {
            let message = format!("{}: expected a run directory or a folder of them, found none", path.display());
            return Err(Failure::bad_input(message));
        }
        for path in found {
            let run = RunDir::read(&path).map_err(Failure::bad_input)?;
            runs.push(Kept { path, run });
        }
    }
    Ok(runs)
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

/// A case for each workload with its parameters on each machine; one for all if those had a single configuration each.
pub(crate) fn cases(runs: &[Kept]) -> Vec<Case<'_>> {
    let mut groups: IndexMap<String, Vec<&Kept>> = IndexMap::new();
    for kept in runs {
        groups.entry(title_of(&kept.run.manifest)).or_default().push(kept);
    }
    let cases: Vec<Case<'_>> =
        groups.into_iter().map(|(title, runs)| Case { title, configurations: configurations(&runs) }).collect();
    if cases.len() > 1 && cases.iter().all(|case| case.configurations.len() == 1) {
        return vec![Case { title: String::new(), configurations: configurations(&runs.iter().collect::<Vec<_>>()) }];
    }
    cases
}

/// A run's workload and machine.
fn title_of(manifest: &Manifest) -> String {
    let place = format!("{} on {}", manifest.workload.name, manifest.machine.name);
    let params: Vec<String> = manifest.workload.params.iter().map(|(k, v)| format!("{k}={}", plain(v))).collect();
    if params.is_empty() { place } else { format!("{place}: {}", params.join(" ")) }
}

/// Runs of one configuration belong together, named by what the configurations differ in.
fn configurations<'a>(runs: &[&'a Kept]) -> Vec<Configuration<'a>> {
    let mut groups: Vec<(&Manifest, Vec<&'a Kept>)> = Vec::new();
    for kept in runs {
        let manifest = &kept.run.manifest;
        match groups.iter_mut().find(|(known, _)| same_configuration(known, manifest)) {
            Some((_, runs)) => runs.push(kept),
            None => groups.push((manifest, vec![*kept])),
        }
    }
    let traits: Vec<Traits> = groups.iter().map(|(manifest, _)| traits_of(manifest)).collect();
    let name = |own: &Traits| {
        let differs = |key: &&String| traits.iter().any(|other| other.get(*key) != own.get(*key));
        let names: Vec<&str> =
            own.keys().filter(|key| *key == "kernel" || differs(key)).map(|key| own[key].as_str()).collect();
        names.join(" ")
    };
    groups.into_iter().zip(&traits).map(|((_, runs), own)| Configuration { name: name(own), runs }).collect()
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
    traits.insert("world".into(), manifest.world.to_string());
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

    fn kept(machine: &str, kernel: &str, sysctls: &[(&str, &str)], samples: &[f64]) -> Kept {
        Kept { path: PathBuf::new(), run: run(machine, kernel, sysctls, samples) }
    }

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
        let runs = [kept("m", "k", &[], &[1.0, 2.0, 3.0]), kept("m", "k", &[], &[10.0])];
        let configurations = configurations(&runs.iter().collect::<Vec<_>>());
        assert_eq!(configurations.len(), 1);
        let samples: Vec<f64> = configurations[0].column().metrics.iter().flat_map(|m| m.samples.clone()).collect();
        assert_eq!(samples, [2.0, 10.0]);
    }

    #[test]
    fn configurations_are_named_by_what_they_differ_in() {
        let runs = [kept("m", "k", &[], &[1.0]), kept("m", "k", &[("vm.swappiness", "0")], &[1.0])];
        let configurations = configurations(&runs.iter().collect::<Vec<_>>());
        let names: Vec<&str> = configurations.iter().map(|configuration| configuration.name.as_str()).collect();
        assert_eq!(names, ["k", "k vm.swappiness=0"]);
    }

    #[test]
    fn machines_stand_together_only_if_nothing_else_is_to_be_compared() {
        let old = [kept("a", "old", &[], &[1.0]), kept("b", "old", &[], &[2.0])];
        let together = cases(&old);
        let names: Vec<&str> = together.iter().flat_map(|c| &c.configurations).map(|c| c.name.as_str()).collect();
        assert_eq!((together.len(), names), (1, vec!["old a", "old b"]));
        let all = [old.as_slice(), &[kept("a", "new", &[], &[1.0]), kept("b", "new", &[], &[2.0])]].concat();
        let titles: Vec<String> = cases(&all).into_iter().map(|case| case.title).collect();
        assert_eq!(titles, ["w on a", "w on b"]);
    }
}
