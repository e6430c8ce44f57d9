//! Runs that were kept: reading them, and grouping them into what is compared with each other.

mod find;
mod names;

use std::path::PathBuf;

use indexmap::IndexMap;
use observe::{MANIFEST, Metric, MetricDef, RunDir, World};
use report::Column;

use crate::failure::Failure;
pub(crate) use find::{Found, find};
pub(crate) use names::in_a_name;
use names::{names, title_of};

/// A run, and where it is.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Kept {
    /// Its directory.
    pub(crate) path: PathBuf,
    /// The folder of runs that was typed; nothing if that is the run itself.
    folder: Option<PathBuf>,
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

/// The runs at and below each of the paths, which must have some.
///
/// # Errors
/// A path has no run, one of them cannot be read, or the twin made the same run twice.
pub(crate) fn read(paths: &[PathBuf]) -> Result<Vec<Kept>, Failure> {
    let mut runs = Vec::new();
    for Found { path, folder } in find(paths, &[MANIFEST], "a run directory")? {
        let run = RunDir::read(&path).map_err(Failure::bad_input)?;
        runs.push(Kept { path, folder, run });
    }
    check_distinct(&runs)?;
    Ok(runs)
}

/// Refuses two runs of one configuration that the twin made from the same draws: they are one run, and tell no more than one.
/// Real kernels draw for themselves.
fn check_distinct(runs: &[Kept]) -> Result<(), Failure> {
    let draws = |kept: &Kept| (kept.run.manifest.seed, kept.run.manifest.iteration);
    let is_same =
        |a: &Kept, b: &Kept| a.run.manifest.world == World::Twin && draws(a) == draws(b) && same_configuration(a, b);
    for (number, first) in runs.iter().enumerate() {
        if let Some(second) = runs[number + 1..].iter().find(|second| is_same(first, second)) {
            let (seed, iteration) = draws(first);
            return Err(Failure::bad_input(format!(
                "{} and {}: expected two runs, found one made twice (seed {seed}, iteration {iteration}); runs of two \
                 builds are compared as two folders",
                first.path.display(),
                second.path.display()
            )));
        }
    }
    Ok(())
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

/// Runs of one configuration belong together, named by what the configurations differ in.
fn configurations<'a>(runs: &[&'a Kept]) -> Vec<Configuration<'a>> {
    let mut groups: Vec<Vec<&'a Kept>> = Vec::new();
    for kept in runs {
        match groups.iter_mut().find(|group| same_configuration(group[0], kept)) {
            Some(group) => group.push(kept),
            None => groups.push(vec![*kept]),
        }
    }
    let firsts: Vec<&Kept> = groups.iter().map(|group| group[0]).collect();
    names(&firsts).into_iter().zip(groups).map(|(name, runs)| Configuration { name, runs }).collect()
}

/// Whether two runs are iterations of one configuration. Each folder that was typed has its own, and so has each version of
/// the twin.
fn same_configuration(a: &Kept, b: &Kept) -> bool {
    let (one, other) = (&a.run.manifest, &b.run.manifest);
    a.folder == b.folder
        && (one.world != World::Twin || one.version == other.version)
        && (one.world, &one.workload, &one.machine, &one.kernel, &one.sysctls)
            == (other.world, &other.workload, &other.machine, &other.kernel, &other.sysctls)
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
pub(super) mod tests {
    use observe::{Described, Manifest, Program, Snapshot};

    use super::*;

    /// A run of the twin, given by itself.
    pub(crate) fn kept(machine: &str, kernel: &str, sysctls: &[(&str, &str)], samples: &[f64]) -> Kept {
        Kept { path: PathBuf::new(), folder: None, run: run(machine, kernel, sysctls, samples) }
    }

    fn run(machine: &str, kernel: &str, sysctls: &[(&str, &str)], samples: &[f64]) -> RunDir {
        let described = |name: &str| Described { name: name.into(), toml: String::new() };
        RunDir {
            manifest: Manifest {
                version: "1".into(),
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
    fn each_folder_and_each_version_has_configurations_of_its_own() {
        let mut runs = [(); 4].map(|()| kept("m", "k", &[], &[1.0]));
        runs[2].folder = Some("before".into());
        runs[3].run.manifest.version = "2".into();
        let sizes = |runs: &[Kept]| -> Vec<usize> {
            configurations(&runs.iter().collect::<Vec<_>>()).iter().map(|c| c.runs.len()).collect()
        };
        assert_eq!(sizes(&runs), [2, 1, 1]);
        runs.iter_mut().for_each(|kept| kept.run.manifest.world = World::Qemu);
        assert_eq!(sizes(&runs), [3, 1], "a real kernel is the same whichever version ran it");
    }

    #[test]
    fn the_same_run_of_the_twin_does_not_count_twice() {
        let mut runs = [(); 2].map(|()| kept("m", "k", &[], &[1.0]));
        (runs[0].path, runs[1].path) = ("a/0".into(), "b/0".into());
        let told = check_distinct(&runs).unwrap_err().message().to_string();
        assert!(
            told.starts_with("a/0 and b/0: expected two runs, found one made twice (seed 1, iteration 0)"),
            "{told}"
        );
        let differs = |change: fn(&mut Kept)| {
            let mut runs = runs.clone();
            change(&mut runs[1]);
            check_distinct(&runs).is_ok()
        };
        assert!(differs(|kept| kept.run.manifest.iteration = 1) && differs(|kept| kept.run.manifest.seed = 2));
        assert!(differs(|kept| kept.folder = Some("b".into())), "of another build");
        assert!(differs(|kept| kept.run.manifest.kernel.toml = "scan = 1".into()));
        runs.iter_mut().for_each(|kept| kept.run.manifest.world = World::Qemu);
        assert_eq!(check_distinct(&runs), Ok(()), "two guests");
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
