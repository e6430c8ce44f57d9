//! `mmtwin report`: runs that were kept, as one page of HTML.

use std::fs::{self, File, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use page::{PageCase, PageColumn, PageRun, page};

use crate::args::ReportArgs;
use crate::exec::{KSWAPD, ZONES};
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
    let text = |file| {
        let path = kept.path.join(file);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Failure::bad_input(format!("{}: {error}", path.display()))),
        }
    };
    Ok(PageRun { run: &kept.run, zones: text(ZONES)?, why_kswapd_is_busy: text(KSWAPD)? })
}

/// Writes the page: beside its place, over what was there before once it is complete, if that is a plain file or nothing. What is
/// there and is none (a device, a pipe) is written to, and a symlink stays and leads to the page.
fn write(path: &Path, html: &str) -> Result<(), Failure> {
    let failure = |error: std::io::Error| Failure::failed(format!("{}: {error}", path.display()));
    let place = match fs::metadata(path) {
        Ok(there) if there.is_dir() => return Err(no_place(path)),
        Ok(there) if there.is_file() => fs::canonicalize(path).map_err(failure)?,
        Err(_) if !path.is_symlink() => path.to_owned(),
        // No plain file, or a symlink to nothing, which makes what it leads to.
        _ => return File::create(path).and_then(|file| output::write(file, html)).map_err(failure),
    };
    let parent = place.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !parent.is_dir() {
        return Err(no_place(path));
    }
    let permissions = Permissions::from_mode(MODE);
    let mut file = tempfile::Builder::new().permissions(permissions).tempfile_in(parent).map_err(failure)?;
    file.write_all(html.as_bytes()).map_err(failure)?;
    file.persist(&place).map_err(|error| failure(error.error))?;
    Ok(())
}

fn no_place(path: &Path) -> Failure {
    let expected = "expected the name of a file in a folder that exists";
    Failure::bad_input(format!("--output {}: {expected}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{FileTypeExt, symlink};
    use std::process::Command;
    use std::thread;

    use super::*;

    #[test]
    fn a_symlink_stays_and_what_it_leads_to_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let (target, link) = (dir.path().join("target"), dir.path().join("link"));
        symlink("target", &link).unwrap();
        for page in ["into nothing", "over the page"] {
            write(&link, page).unwrap();
            assert!(link.is_symlink());
            assert_eq!(fs::read_to_string(&target).unwrap(), page);
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "nothing else is left");
    }

    #[test]
    fn what_is_no_plain_file_is_written_to_and_stays_what_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let reader = thread::spawn({
            let pipe = pipe.clone();
            move || fs::read_to_string(pipe).unwrap()
        });
        write(&pipe, "page").unwrap();
        assert_eq!(reader.join().unwrap(), "page");
        assert!(pipe.metadata().unwrap().file_type().is_fifo());
        write(Path::new("/dev/null"), "page").unwrap();
        assert!(Path::new("/dev/null").metadata().unwrap().file_type().is_char_device());
    }

    #[test]
    fn a_folder_is_no_place_nor_is_one_that_is_missing() {
        let dir = tempfile::tempdir().unwrap();
        assert!(write(dir.path(), "page").is_err());
        assert!(write(&dir.path().join("missing/page"), "page").is_err());
    }
}
