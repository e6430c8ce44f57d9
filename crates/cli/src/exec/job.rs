//! One run before it runs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use observe::{Described, Program, RunDir};
use profile::{Kernel, Machine};
use report::HostUse;
use rules::TUNABLES;
use twin::{Change, RunSpec, TraceFilter};
use units::Nanos;
use workloads::Workload;

use super::events;
use crate::failure::Failure;

/// Virtual time between two rows of a kept run's `series.csv`.
const SERIES_STEP: Nanos = Nanos::secs(1);

/// Most bytes of a file's name (`NAME_MAX`).
const FILE_NAME_BYTES_MAX: usize = 255;

/// A run to be made.
pub(crate) struct Job {
    /// Machine and workload, in one word.
    case: String,
    /// The kernel, as the study calls it.
    kernel: String,
    /// What runs.
    pub(super) workload: Workload,
    /// The same, as the manifest tells it.
    pub(super) program: Program,
    /// Everything else that the run depends on.
    pub(super) spec: RunSpec,
    /// Where the run is kept.
    pub(super) dir: Option<PathBuf>,
}

/// A run that was made.
pub(crate) struct Done {
    /// Its inputs and its results.
    pub(crate) run: RunDir,
    /// Where it is kept.
    pub(crate) dir: Option<PathBuf>,
    /// What the model took of the host; none of a real kernel.
    pub(crate) host: Option<HostUse>,
    /// How long it took on the wall, in seconds.
    pub(crate) wall_s: f64,
    /// Its zones over time, drawn; only of runs that record compaction's events.
    pub(crate) zones: Option<String>,
    /// Why kswapd was busy, if it was.
    pub(crate) why_kswapd_is_busy: Option<String>,
}

/// What all runs of a case have in common.
pub(crate) struct Setup<'a> {
    /// Machine and workload, in one word.
    pub(crate) case: &'a str,
    /// Where it runs.
    pub(crate) machine: &'a Machine,
    /// What runs.
    pub(crate) workload: &'a str,
    /// Its parameters.
    pub(crate) params: &'a [(String, String)],
    /// Tunables that differ from the kernel's.
    pub(crate) sysctls: &'a [(String, String)],
    /// Tunables that change while it runs.
    pub(crate) changes: &'a [Change],
    /// Runs of each kernel.
    pub(crate) iterations: u32,
    /// Tracepoints to record.
    pub(crate) trace: TraceFilter,
    /// Seed.
    pub(crate) seed: u64,
    /// Where runs are kept.
    pub(crate) out: Option<&'a Path>,
    /// Check every structure all the time.
    pub(crate) verify: bool,
}

impl Setup<'_> {
    /// Checks that the machine has what a workload needs: files, which each of them uses.
    pub(crate) fn check_machine(&self) -> Result<(), Failure> {
        // Its parameters are checked before anything of the machine.
        Workload::new(self.workload, self.params)?;
        if self.machine.mount.is_none() {
            let machine = self.machine.name.get_ref();
            let message =
                format!("machine {machine}: workload {} needs a file system: expected [mount]", self.workload);
            return Err(Failure::bad_input(message));
        }
        Ok(())
    }

    /// The runs of `kernel`, which is called `name`.
    pub(crate) fn jobs(&self, name: &str, kernel: &Kernel) -> Result<Vec<Job>, Failure> {
        (0..self.iterations).map(|iteration| self.job(name, kernel, iteration)).collect()
    }

    /// One run of `kernel`, which is called `name`.
    pub(crate) fn job(&self, name: &str, kernel: &Kernel, iteration: u32) -> Result<Job, Failure> {
        let (workload, params) = Workload::new(self.workload, self.params)?;
        if workload.makes_cgroups() && !kernel.rules.has_memory_cgroups() {
            return Err(Failure::bad_input(format!(
                "kernel {}: workload {} needs memory cgroups of version 2 with these parameters, which this kernel does not have",
                kernel.name, self.workload
            )));
        }
        let params = params.iter().map(|(key, value)| (key.to_string(), value.into())).collect();
        let program = Program { name: self.workload.to_string(), params };
        let sysctls = [self.machine.sysctls(), self.sysctls.to_vec()].concat();
        let tunables = kernel.tunables_with(&sysctls)?;
        let written: Vec<(String, String)> = self.changes.iter().map(|c| (c.name.clone(), c.value.clone())).collect();
        kernel.tunables_with(&written)?;
        Ok(Job {
            case: self.case.to_string(),
            kernel: name.to_string(),
            workload,
            program,
            spec: RunSpec {
                machine: self.machine.clone(),
                kernel: kernel.clone(),
                tunables,
                seed: self.seed,
                iteration,
                verify: self.verify,
                trace: self.trace,
                series: self.out.map(|_| SERIES_STEP),
                changes: self.changes.to_vec(),
            },
            dir: self.out.map(|out| place(out, self.case, name, iteration)),
        })
    }
}

impl Job {
    /// What the user sees of it.
    pub(super) fn name(&self) -> String {
        format!("{} {} iter-{}", self.case, self.kernel, self.spec.iteration)
    }

    pub(super) fn machine(&self) -> Described {
        Described { name: self.spec.machine.name.get_ref().clone(), toml: self.spec.machine.text.clone() }
    }

    pub(super) fn kernel(&self) -> Described {
        Described { name: self.spec.kernel.name.clone(), toml: self.spec.kernel.text.clone() }
    }

    /// What the models leave out, and what the recorded tracepoints do not tell.
    pub(super) fn omitted(&self) -> Vec<String> {
        let traced = self.spec.trace != TraceFilter::default();
        let kernel = self.spec.kernel.omitted.iter().cloned();
        kernel.chain(traced.then(|| events::ABSTRACTED.to_string())).collect()
    }

    /// Tunables that differ from the kernel's own, and those that change in the run, with the second.
    pub(super) fn sysctls(&self) -> IndexMap<String, String> {
        let differs = TUNABLES.iter().filter(|t| (t.get)(&self.spec.tunables) != (t.get)(&self.spec.kernel.tunables));
        let changes = self.spec.changes.iter().map(|c| (format!("{}@{}", c.name, c.at.as_secs_f64()), c.value.clone()));
        differs.map(|t| (t.name.to_string(), (t.get)(&self.spec.tunables))).chain(changes).collect()
    }
}

/// Where a run of a case under a kernel is kept below `out`.
pub(crate) fn place(out: &Path, case: &str, kernel: &str, iteration: u32) -> PathBuf {
    out.join(one_word(case)).join(one_word(kernel)).join(format!("iter-{iteration}"))
}

/// Checks, before anything runs, that every run that is to be kept has a place of its own in a folder that can be
/// written.
pub(crate) fn check_places<'a>(out: Option<&Path>, jobs: impl IntoIterator<Item = &'a Job>) -> Result<(), Failure> {
    check_free(out, jobs.into_iter().filter_map(|job| job.dir.as_deref()))
}

/// The same of places.
pub(crate) fn check_free<'a>(out: Option<&Path>, dirs: impl IntoIterator<Item = &'a Path>) -> Result<(), Failure> {
    let mut places: BTreeSet<&Path> = BTreeSet::new();
    for dir in dirs {
        if !places.insert(dir) {
            return Err(Failure::bad_input(format!("{}: two runs would be kept there", dir.display())));
        }
        if let Some(name) = dir.iter().find(|name| name.len() > FILE_NAME_BYTES_MAX) {
            let message = format!("--out: {}: expected a name of {FILE_NAME_BYTES_MAX} bytes at most", name.display());
            return Err(Failure::bad_input(message));
        }
        if dir.symlink_metadata().is_ok() {
            let message = format!("{}: there is a run already, and nothing is written over", dir.display());
            return Err(Failure::bad_input(message));
        }
    }
    let Some(out) = out else { return Ok(()) };
    // Nothing is made yet: a run that is interrupted leaves no empty folder.
    tempfile::tempfile_in(nearest_folder(out))
        .map(drop)
        .map_err(|error| Failure::bad_input(format!("--out {}: {error}", out.display())))
}

/// What there is of a path: the path itself, or the folder in which it will be made.
fn nearest_folder(path: &Path) -> &Path {
    let there = path.ancestors().find(|part| part.symlink_metadata().is_ok());
    there.unwrap_or(Path::new("."))
}

/// `name` as one component of a path.
fn one_word(name: &str) -> String {
    let word = name.replace(['/', ' ', ':'], "-");
    if word.starts_with('.') { format!("_{word}") } else { word }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_folder_that_can_be_made_is_not_made_before_a_run_is_kept() {
        let there = tempfile::tempdir().unwrap();
        assert!(check_free(Some(&there.path().join("a/b")), []).is_ok());
        assert_eq!(fs::read_dir(there.path()).unwrap().count(), 0);
        assert_eq!(nearest_folder(Path::new("not-there/b")), Path::new("."));
    }

    #[test]
    fn a_place_has_names_that_files_can_have() {
        let place = |bytes: usize| Path::new("out").join("x".repeat(bytes)).join("iter-0");
        assert_eq!(check_free(None, [place(255).as_path()]), Ok(()));
        let error = check_free(None, [place(256).as_path()]).unwrap_err();
        assert!(error.message().ends_with("xxx: expected a name of 255 bytes at most"), "{}", error.message());
    }

    #[test]
    fn a_name_is_one_component_of_a_path() {
        assert_eq!(one_word("skylake1s/thpfioscale-xfs/default-thp"), "skylake1s-thpfioscale-xfs-default-thp");
        for name in ["..", ".", "../x", "/"] {
            assert_eq!(Path::new("out").join(one_word(name)).components().count(), 2, "{name}");
        }
    }
}
