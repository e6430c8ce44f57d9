//! `--on both`: the twin on the inputs of the guest's runs, from where each of them started, and both side by side.

use std::path::{Path, PathBuf};

use observe::RunDir;
use profile::KERNELS;
use report::{RunReport, Worlds, worlds_table};
use tempfile::TempDir;

use crate::args::{On, RunArgs};
use crate::exec::{Answer, Board, Done, Interrupt, Job, execute, verdict};
use crate::failure::Failure;
use crate::kept::column;
use crate::output;
use crate::telling::{head, left_out, report_of};
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
}

/// Refuses a guest whose kernel the twin does not have, before it runs for minutes.
pub(super) fn check_kernels(names: &[String]) -> Result<(), Failure> {
    for name in names {
        let version = RealRun::kernel_version(name);
        if !KERNELS.iter().any(|(known, _)| version.as_deref() == Some(*known)) {
            let known: Vec<&str> = KERNELS.iter().map(|(known, _)| *known).collect();
            let message = format!("--on both: {name}: expected a kernel that the twin has: {}", known.join(", "));
            return Err(Failure::bad_input(message));
        }
    }
    Ok(())
}

/// Runs the twin and prints both worlds; each of `names` has as many of `answers` as there are iterations.
pub(super) fn print(
    args: &RunArgs,
    names: &[String],
    answers: &[Answer],
    places: &Places,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let done: Vec<&Done> = answers.iter().flatten().flatten().collect();
    if done.len() < answers.len() {
        return verdict(answers, interrupt);
    }
    let (twin, wall_s) = run_twin(args, &done, places, interrupt)?;
    if args.common.json {
        let reports: Vec<RunReport> =
            done.iter().copied().chain(&twin).map(|done| report_of(&args.common, done)).collect();
        return output::print_json(&reports);
    }
    let shorter = told_apart(names);
    let worlds: Vec<Worlds> = shorter
        .iter()
        .zip(done.chunks(args.iterations() as usize).zip(twin.chunks(args.iterations() as usize)))
        .map(|(name, (real, twin))| {
            let runs = |done: &mut dyn Iterator<Item = &Done>| {
                column(name.clone(), &done.map(|done| &done.run).collect::<Vec<&RunDir>>())
            };
            Worlds { real: runs(&mut real.iter().copied()), twin: runs(&mut twin.iter()) }
        })
        .collect();
    let seconds = done.iter().map(|done| done.wall_s).sum();
    let took = format!("the guest's runs took {seconds:.0} s on the wall, the twin's {wall_s:.1} s\n");
    let table = worlds_table(&worlds, output::width());
    let notes = left_out(done.iter().copied().chain(&twin));
    let kept = args.common.out.as_ref().map(|out| format!("runs kept in {}\n", out.display())).unwrap_or_default();
    output::print(&(head(args, None, &done, seconds) + &took + &table + &notes + &kept))
}

/// The twin's runs, in the order of the guest's.
fn run_twin(
    args: &RunArgs,
    done: &[&Done],
    places: &Places,
    interrupt: &Interrupt,
) -> Result<(Vec<Done>, f64), Failure> {
    let again = Again { sysctls: &[], out: places.twin.as_deref(), trace: args.trace(), verify: args.common.verify };
    let job = |done: &&Done| again.job(&RealRun::read(done.dir.as_deref().expect("the guest's runs are kept"))?, 0);
    let jobs: Vec<Job> = done.iter().map(job).collect::<Result<_, _>>()?;
    let board = Board::new(jobs.len());
    let answers = execute(&jobs, args.common.jobs(), &board, interrupt);
    drop(board);
    verdict(&answers, interrupt)?;
    let done: Vec<Done> = answers.into_iter().flatten().flatten().collect();
    let wall_s = done.iter().map(|done| done.wall_s).sum();
    Ok((done, wall_s))
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
        let refused = |name: &str| check_kernels(&[name.to_string()]).is_err();
        assert_eq!(["debian-6.12.117+deb12", "debian-9.99.1", "/boot/mine"].map(refused), [false, true, true]);
    }
}
