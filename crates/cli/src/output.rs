//! Standard output: results and nothing else.

use std::io::{self, ErrorKind, IsTerminal, Write};

use serde::Serialize;

use crate::failure::Failure;

/// Width of tables that do not go to a terminal, in columns.
const WIDTH: u16 = 120;
/// Narrowest and widest tables on a terminal, in columns.
const WIDTH_MIN: u16 = 60;
const WIDTH_MAX: u16 = 160;

/// Writes a result.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    write(io::stdout().lock(), text).map_err(|error| Failure::failed(format!("standard output: {error}")))
}

/// Writes a result to where somebody may read it. A reader that has seen enough (`| head`) is no error.
pub(crate) fn write(mut out: impl Write, text: &str) -> io::Result<()> {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        done => done,
    }
}

/// Writes a document.
pub(crate) fn print_json(document: &impl Serialize) -> Result<(), Failure> {
    print(&report::to_json(document).map_err(Failure::failed)?)
}

/// Columns that a table may take.
pub(crate) fn width() -> u16 {
    let size = io::stdout().is_terminal().then(terminal_size::terminal_size).flatten();
    size.map_or(WIDTH, |(width, _)| width.0.clamp(WIDTH_MIN, WIDTH_MAX))
}
