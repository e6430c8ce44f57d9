//! `mmtwin completions`.

use clap::CommandFactory;

use crate::args::{Cli, CompletionsArgs};
use crate::failure::Failure;
use crate::output;

pub(crate) fn complete(args: &CompletionsArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "mmtwin", &mut script);
    output::print(&String::from_utf8_lossy(&script))
}
