//! `--on both`: the twin on the inputs of the guest's runs, from where each of them started, and both side by side.

use std::path::{Path, PathBuf};

use observe::RunDir;
use profile::KERNELS;
use report::{RunReport, Worlds, worlds_table};
use tempfile::TempDir;

use super::Kernel;
use super::plan::Planned;
use crate::args::{On, RunArgs};
use crate::exec::{Answer, Board, Done, Interrupt, Job, check_free, execute, place};
use crate::failure::Failure;
use crate::kept::column;
use crate::output;
use crate::telling::{done, head, left_out, report_of};
use crate::validating::{Again, RealRun};

/// Where runs are kept, if anywhere.
pub(super) struct Places {
    real: Option<PathBuf>,
    twin: Option<PathBuf>,
    /// The twin starts from what the guest's run directories tell, so that there must be some.
    _for_a_while: Option<TempDir>,
}

impl Places {
    pub(super) fn of(args: &RunArgs) -> Result<Places, Failure> {
        let out = args.common.out.clone();
        if args.on != On::Both {
            return Ok(Places { real: out, twin: None, _for_a_while: None });
        }
        if let Some(out) = out {
            let below = |name| Some(out.join(name));
            return Ok(Places { real: below("real"), twin: below("twin"), _for_a_while: None });
        }
        let place = tempfile::Builder::new().prefix("mmtwin-runs-").tempdir();
        let place = place.map_err(|error| Failure::failed(format!("a directory for runs: {error}")))?;
        Ok(Places { real: Some(place.path().to_owned()), twin: None, _for_a_while: Some(place) })
    }

    pub(super) fn real(&self) -> Option<&Path> {
        self.real.as_deref()
    }

    /// Checks, before a guest runs for minutes, that the twin's runs that come after it have places of their own. There is one of `profiles`
    /// for each of the kernels.
    pub(super) fn check_twin(
        &self,
        planned: &[Planned],
        kernels: &[Box<dyn Kernel + '_>],
        profiles: &[String],
    ) -> Result<(), Failure> {
        let Some(out) = &self.twin else { return Ok(()) };
        let dir = |run: &Planned| {
            let (kernel, profile) = (&kernels[run.kernel], &profiles[run.kernel]);
            let sysctls = kernel.variant().sysctls.iter().cloned().collect();
            place(out, &RealRun::group_of(profile, &run.program, &run.machine.name, &sysctls), profile, run.iteration)
        };
        let dirs: Vec<PathBuf> = planned.iter().map(dir).collect();
        check_free(Some(out), dirs.iter().map(PathBuf::as_path))
    }
}

/// The twin's profile of each guest's kernel. One that it does not have is refused before it runs for minutes.
pub(super) fn profiles(kernels: &[Box<dyn Kernel + '_>]) -> Result<Vec<String>, Failure> {
    kernels.iter().map(|kernel| profile_of(&kernel.kernel())).collect()
}

fn profile_of(name: &str) -> Result<String, Failure> {
    let known = |version: &String| KERNELS.iter().any(|(known, _)| version == known);
    RealRun::kernel_version(name).filter(known).ok_or_else(|| {
        let known: Vec<&str> = KERNELS.iter().map(|(known, _)| *known).collect();
        Failure::bad_input(format!("--on both: {name}: expected a kernel that the twin has: {}", known.join(", ")))
    })
}

/// Runs the twin on the inputs of each of the guest's runs that came to its end, from where that started; the answers stand where the
/// guest's do.
pub(super) fn run(args: &RunArgs, answers: &[Answer], places: &Places, interrupt: &Interrupt) -> Vec<Answer> {
    let again = Again { sysctls: &[], out: places.twin.as_deref(), trace: args.trace(), verify: args.common.verify };
    let job = |done: &Done| again.job(&RealRun::read(done.dir.as_deref().expect("the guest's runs are kept"))?, 0);
    let mut jobs: Vec<Job> = Vec::new();
    let mut plan = |answer: &Answer| -> Option<Result<(), Failure>> {
        let done = answer.as_ref()?.as_ref().ok()?;
        Some(job(done).map(|job| jobs.push(job)))
    };
    let planned: Vec<_> = answers.iter().map(&mut plan).collect();
    let board = Board::new(jobs.len());
    let mut made = execute(&jobs, args.common.jobs(), &board, interrupt).into_iter();
    let answer = |planned: Option<Result<(), Failure>>| match planned? {
        Ok(()) => made.next().flatten(),
        Err(failure) => Some(Err(failure)),
    };
    planned.into_iter().map(answer).collect()
}

/// Prints what there is of both worlds; each of `names` has as many of the guest's answers as there are iterations, and the twin's
/// stand where the guest's do.
pub(super) fn print(args: &RunArgs, names: &[String], real: &[Answer], twin: &[Answer]) -> Result<(), Failure> {
    let [all_real, all_twin] = [real, twin].map(done);
    if args.common.json {
        let reports: Vec<RunReport> =
            all_real.iter().chain(&all_twin).map(|done| report_of(&args.common, done)).collect();
        return output::print_json(&reports);
    }
    let wall_s = |runs: &[&Done]| runs.iter().map(|done| done.wall_s).sum::<f64>();
    let (seconds, twin_s) = (wall_s(&all_real), wall_s(&all_twin));
    let took = format!("the guest's runs took {seconds:.0} s on the wall, the twin's {twin_s:.1} s\n");
    let table = worlds_table(&worlds(names, real, twin, args.iterations() as usize), output::width());
    let notes = left_out(all_real.iter().chain(&all_twin).copied());
    let kept = args.common.out.as_ref().map(|out| format!("runs kept in {}\n", out.display())).unwrap_or_default();
    output::print(&(head(args, None, &all_real, seconds) + &took + &table + &notes + &kept))
}

/// Both worlds under each setting that a guest came to its end with.
fn worlds(names: &[String], real: &[Answer], twin: &[Answer], iterations: usize) -> Vec<Worlds> {
    let side = |name: &str, answers: &[Answer]| {
        column(name.to_string(), &done(answers).iter().map(|done| &done.run).collect::<Vec<&RunDir>>())
    };
    let of_names = told_apart(names).into_iter().zip(real.chunks(iterations).zip(twin.chunks(iterations)));
    of_names
        .filter(|(_, (real, _))| !done(real).is_empty())
        .map(|(name, (real, twin))| Worlds { real: side(&name, real), twin: side(&name, twin) })
        .collect()
}

/// What the names differ in: what they have in common before the last blank or `=` is cut off.
fn told_apart(names: &[String]) -> Vec<String> {
    let Some(first) = names.first().filter(|_| names.len() > 1) else { return names.to_vec() };
    let shared = |end: &usize| names.iter().all(|name| name.starts_with(&first[..*end]));
    let mut ends = first.char_indices().filter(|(_, c)| " =".contains(*c)).map(|(at, _)| at + 1);
    let cut = ends.rfind(shared).unwrap_or(0);
    names.iter().map(|name| name[cut..].to_string()).collect()
}

#[cfg(test)]
mod tests {
    use indexmap::IndexMap;
    use observe::{Described, Manifest, Metric, Program, Snapshot, World};
    use report::Column;

    use super::*;

    #[test]
    fn columns_are_called_by_what_they_differ_in() {
        let apart = |names: &[&str]| told_apart(&names.iter().map(|name| name.to_string()).collect::<Vec<_>>());
        assert_eq!(apart(&["6.12 vm.x=0", "6.12 vm.x=150"]), ["0", "150"]);
        assert_eq!(apart(&["6.12 vm.x=0", "6.1 vm.x=0"]), ["6.12 vm.x=0", "6.1 vm.x=0"]);
        assert_eq!(apart(&["6.12 vm.x=0", "6.12 vm.y=0"]), ["vm.x=0", "vm.y=0"]);
        assert_eq!(apart(&["6.12"]), ["6.12"]);
    }

    #[test]
    fn a_kernel_that_the_twin_does_not_have_is_refused() {
        let refused = |name: &str| profile_of(name).is_err();
        assert_eq!(["debian-6.12.117+deb12", "debian-9.99.1", "/boot/mine"].map(refused), [false, true, true]);
        assert_eq!(profile_of("old/vmlinuz-3.19-rc4-pivot").unwrap(), "3.19-rc4-pivot");
    }

    /// A run that took so many seconds.
    fn answer(seconds: f64) -> Answer {
        let described = |name: &str| Described { name: name.to_string(), toml: String::new() };
        let run = RunDir {
            manifest: Manifest {
                version: String::new(),
                world: World::Qemu,
                workload: Program { name: "untar2".to_string(), params: IndexMap::new() },
                machine: described("guest-160m"),
                kernel: described("debian-6.12"),
                sysctls: IndexMap::new(),
                seed: 1,
                iteration: 0,
                omitted: Vec::new(),
                virtual_s: seconds,
                wall_s: None,
            },
            before: Snapshot::default(),
            after: Snapshot::default(),
            metrics: vec![Metric::new("elapsed_s", vec![seconds])],
            series: None,
        };
        Some(Ok(Done { run, dir: None, host: None, wall_s: 0.0, zones: None, why_kswapd_is_busy: None }))
    }

    #[test]
    fn what_is_complete_is_beside_each_other_whatever_is_missing() {
        let failed = || Some(Err(Failure::failed("it died")));
        let names = ["k x=0", "k x=1", "k x=2"].map(str::to_string);
        // Two iterations each: one guest died, none was finished, one was interrupted.
        let real = [answer(1.0), failed(), failed(), None, answer(2.0), None];
        let twin = [answer(3.0), None, None, None, failed(), None];
        let worlds = worlds(&names, &real, &twin, 2);
        let samples = |column: &Column| column.metrics.iter().flat_map(|m| m.samples.clone()).collect::<Vec<f64>>();
        let seen: Vec<_> = worlds.iter().map(|w| (w.real.name.as_str(), samples(&w.real), samples(&w.twin))).collect();
        assert_eq!(seen, [("0", vec![1.0], vec![3.0]), ("2", vec![2.0], vec![])]);
    }
}
