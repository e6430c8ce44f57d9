//! `mmtwin run --on qemu`, `--on host` and `--on both`: a workload on a real kernel.
//!
//! Runs are made one after another: each has the machine for itself.

mod args;
mod beside;
mod cgroup;
mod guest_run;
mod host_run;
mod keep;
mod plan;
mod settings;

pub(crate) use args::RealArgs;
pub(crate) use cgroup::Place;

use crate::args::{On, RunArgs};
use crate::exec::{Answer, Board, Interrupt, Stopwatch, check_free, verdict};
use crate::failure::Failure;
use crate::running::{load_machine, print};
use crate::telling;
use crate::variants::Variant;
use beside::Places;
use plan::Planned;
use twin::Progress;

/// Says, knowing how far a run is, whether the user still wants it.
type Watch<'a> = &'a mut dyn FnMut(&Progress<'_>) -> bool;

/// A world that makes runs: nothing if it was interrupted.
trait Kernel {
    /// The kernel alone, as manifests have it.
    fn kernel(&self) -> String;
    /// What is set under it.
    fn variant(&self) -> &Variant;
    /// How it is called in tables.
    fn name(&self) -> String {
        self.variant().of_kernel(&self.kernel())
    }
    /// Makes a run; `go_on` says when the user has had enough.
    fn run(&self, planned: &Planned, go_on: Watch<'_>) -> Answer;
}

pub(crate) fn run(args: &RunArgs) -> Result<(), Failure> {
    // The host is what it is, whatever machine is named.
    let machine = if args.on == On::Host { None } else { Some(load_machine(args)?) };
    let kernels: Vec<Box<dyn Kernel>> = match &machine {
        Some(machine) => guest_run::kernels(args, machine)?,
        None => host_run::kernels(args)?,
    };
    let names: Vec<String> = kernels.iter().map(|kernel| kernel.name()).collect();
    let profiles = if args.on == On::Both { beside::profiles(&kernels)? } else { Vec::new() };
    let places = Places::of(args)?;
    let planned = plan::plan(args, machine.as_ref(), &names, places.real())?;
    check_free(places.real(), planned.iter().filter_map(|run| run.dir.as_deref()))?;
    places.check_twin(&planned, &kernels, &profiles)?;
    let interrupt = Interrupt::install()?;
    let (board, watch) = (Board::new(planned.len()), Stopwatch::start());
    let mut answers = Vec::new();
    for run in &planned {
        answers.push(run_one(kernels[run.kernel].as_ref(), run, &board, &interrupt));
    }
    drop(board);
    let wall_s = watch.seconds();
    let beside = if args.on == On::Both { beside::run(args, &answers, &places, &interrupt) } else { Vec::new() };
    if telling::done(&beside).is_empty() {
        print(args, machine.as_ref(), &names, &answers, wall_s)?;
    } else {
        beside::print(args, &names, &answers, &beside)?;
    }
    verdict(&answers, &interrupt)?;
    verdict(&beside, &interrupt)
}

fn run_one(kernel: &dyn Kernel, run: &Planned, board: &Board, interrupt: &Interrupt) -> Answer {
    if interrupt.is_set() {
        return None;
    }
    let watch = Stopwatch::start();
    let mut line = board.start(run.name.clone());
    let answer = kernel.run(run, &mut |progress| {
        line.real(progress);
        !interrupt.is_set()
    });
    match &answer {
        Some(Ok(done)) => {
            line.end(&format!("{:.1} s of the workload in {:.1} s", done.run.manifest.virtual_s, watch.seconds()));
        }
        Some(Err(_)) => line.end("failed"),
        None => line.clear(),
    }
    answer.map(|result| result.map_err(|f| f.with_message(format!("{}: {}", run.name, f.message()))))
}
