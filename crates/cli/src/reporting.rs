//! `mmtwin report`: runs that were kept, as one page of HTML.

use std::fs::{self, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use page::{PageCase, PageColumn, PageRun, page};

use crate::args::ReportArgs;
use crate::exec::ZONES;
use crate::failure::Failure;
use crate::kept::{self, Case, Configuration, Kept};
use crate::output;

/// What stands for standard output.
const STDOUT: &str = "-";
/// Mode of the page before the umask; a temporary file would be closed to other users.
const MODE: u32 = 0o666;

pub(crate) fn report(args: &ReportArgs) -> Result<(), Failure> {
    let runs = kept::read(&args.runs)?;
    let cases: Vec<PageCase<'_>> = kept::cases(&runs).iter().map(page_case).collect::<Result<_, _>>()?;
    let html = page(&cases);
    if args.output.as_os_str() == STDOUT { output::print(&html) } else { write(&args.output, &html) }
}

fn page_case<'a>(case: &Case<'a>) -> Result<PageCase<'a>, Failure> {
    let column = |configuration: &Configuration<'a>| {
        let runs = configuration.runs.iter().map(|kept| page_run(kept)).collect::<Result<_, _>>()?;
        Ok(PageColumn { column: configuration.column(), runs })
    };
    let title = if case.title.is_empty() { "Runs" } else { case.title.as_str() };
    let columns = case.configurations.iter().map(column).collect::<Result<_, Failure>>()?;
    Ok(PageCase { title: title.to_owned(), columns })
}

fn page_run(kept: &Kept) -> Result<PageRun<'_>, Failure> {
    let path = kept.path.join(ZONES);
    let zones = match fs::read_to_string(&path) {
        Ok(zones) => Some(zones),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(Failure::bad_input(format!("{}: {error}", path.display()))),
    };
    Ok(PageRun { run: &kept.run, zones })
}

/// Writes the page beside its place and puts it there when it is complete, over what was there before.
fn write(path: &Path, html: &str) -> Result<(), Failure> {
    let failure = |error: std::io::Error| Failure::failed(format!("{}: {error}", path.display()));
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !parent.is_dir() || path.is_dir() {
        let expected = "expected the name of a file in a folder that exists";
        return Err(Failure::bad_input(format!("--output {}: {expected}", path.display())));
    }
    let permissions = Permissions::from_mode(MODE);
    let mut file = tempfile::Builder::new().permissions(permissions).tempfile_in(parent).map_err(failure)?;
    file.write_all(html.as_bytes()).map_err(failure)?;
    file.persist(path).map_err(|error| failure(error.error))?;
    Ok(())
}
