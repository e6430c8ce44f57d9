//! The command line: glue between the crates that know something.
//!
//! `args` says what can be typed, one module a command what it does; `exec` runs the runs that `run` and `reproduce` plan.

mod applying;
mod args;
mod capturing;
mod cases;
mod comparing;
mod completing;
mod exec;
mod experiment;
mod failure;
mod job_file;
mod kept;
mod listing;
mod output;
mod real;
mod reporting;
mod reproduce;
mod running;
mod telling;
mod validating;
mod variants;

use std::process::ExitCode;

use args::{Cli, Command};
use clap::Parser;
use failure::Failure;

/// Small tables grow and shrink all the time, for which a run takes a twentieth to a tenth longer with the C library's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let done = match Cli::try_parse() {
        Ok(cli) => execute(&cli.command),
        Err(error) => args::explain(&error),
    };
    done.map_or_else(|failure| failure.report(), |()| ExitCode::SUCCESS)
}

fn execute(command: &Command) -> Result<(), Failure> {
    match command {
        Command::Reproduce(args) => reproduce::reproduce(args),
        Command::Run(args) => running::run(args),
        Command::Compare(args) => comparing::compare(args),
        Command::Report(args) => reporting::report(args),
        Command::Validate(args) => validating::validate(args),
        Command::Machine(args) => capturing::machine(args),
        Command::List(args) => listing::list(args),
        Command::Completions(args) => completing::complete(args),
    }
}
