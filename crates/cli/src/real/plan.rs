//! The runs that a command asks for.

use std::path::{Path, PathBuf};

use observe::{Described, Program};
use profile::Machine;
use workloads::Workload;

use crate::args::RunArgs;
use crate::exec::place;
use crate::failure::Failure;

/// A run to be made.
pub(super) struct Planned {
    /// What the user sees of it.
    pub(super) name: String,
    /// Which of the kernels.
    pub(super) kernel: usize,
    /// Number of the run.
    pub(super) iteration: u32,
    /// Where it is kept.
    pub(super) dir: Option<PathBuf>,
    /// The workload, as the manifest tells it.
    pub(super) program: Program,
    /// The machine.
    pub(super) machine: Described,
}

/// Every iteration of every kernel, on the machine that was described or on the host.
pub(super) fn plan(
    args: &RunArgs,
    machine: Option<&Machine>,
    kernels: &[String],
    out: Option<&Path>,
) -> Result<Vec<Planned>, Failure> {
    let (_, params) = Workload::new(&args.workload, &args.params)?;
    let params = params.iter().map(|(key, value)| (key.to_string(), value.into())).collect();
    let program = Program { name: args.workload.clone(), params };
    let machine = match machine {
        Some(machine) => Described { name: machine.name.get_ref().clone(), toml: machine.text.clone() },
        None => Described { name: "host".to_string(), toml: String::new() },
    };
    let case = format!("{}-{}", args.workload, machine.name);
    let planned = |(number, kernel): (usize, &String), iteration: u32| Planned {
        name: format!("{case} {kernel} iter-{iteration}"),
        kernel: number,
        iteration,
        dir: out.map(|out| place(out, &case, kernel, iteration)),
        program: program.clone(),
        machine: machine.clone(),
    };
    let runs = kernels.iter().enumerate();
    Ok(runs.flat_map(|kernel| (0..args.iterations()).map(move |i| (kernel, i))).map(|(k, i)| planned(k, i)).collect())
}
