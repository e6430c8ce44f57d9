//! Where runs lie: the directories at and below what was typed.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// A run's directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Found {
    /// The directory.
    pub(crate) path: PathBuf,
    /// The folder of runs that was typed; nothing if that is the run itself.
    pub(crate) folder: Option<PathBuf>,
}

/// The directories at and below each of `paths` that have one of the files `marks`; in the order of the paths, and below each
/// in the order of their names. One that several paths lead to is there once. Symbolic links below a path are not followed,
/// and what begins with a dot is passed over: it is a run that is being written.
///
/// # Errors
/// A path cannot be read, or has no such directory: `expected` says what one would be.
pub(crate) fn find(paths: &[PathBuf], marks: &[&str], expected: &str) -> Result<Vec<Found>, Failure> {
    let (mut found, mut known) = (Vec::new(), BTreeSet::new());
    for typed in paths {
        let below = runs_below(typed, marks)?;
        if below.is_empty() {
            let message = format!("{}: expected {expected} or a folder of them, found none", typed.display());
            return Err(Failure::bad_input(message));
        }
        for path in below {
            if known.insert(path.canonicalize().map_err(|error| unreadable(&path, error))?) {
                let folder = (path != *typed).then(|| typed.components().collect());
                found.push(Found { path, folder });
            }
        }
    }
    Ok(found)
}

fn runs_below(path: &Path, marks: &[&str]) -> Result<Vec<PathBuf>, Failure> {
    if marks.iter().any(|mark| path.join(mark).exists()) {
        return Ok(vec![path.to_owned()]);
    }
    let mut below = Vec::new();
    for entry in fs::read_dir(path).map_err(|error| unreadable(path, error))? {
        let entry = entry.map_err(|error| unreadable(path, error))?;
        let is_dir = entry.file_type().map_err(|error| unreadable(path, error))?.is_dir();
        if is_dir && !entry.file_name().to_string_lossy().starts_with('.') {
            below.push(entry.path());
        }
    }
    below.sort();
    let found: Result<Vec<Vec<PathBuf>>, Failure> = below.iter().map(|path| runs_below(path, marks)).collect();
    Ok(found?.concat())
}

fn unreadable(path: &Path, error: std::io::Error) -> Failure {
    Failure::bad_input(format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A folder with the runs `a/0`, `a/1` and `b`, one that is being written, and links back to them.
    fn folder() -> tempfile::TempDir {
        let place = tempfile::tempdir().unwrap();
        for run in ["runs/a/0", "runs/a/1", "runs/b", "runs/a/.unfinished-run-x"] {
            fs::create_dir_all(place.path().join(run)).unwrap();
            fs::write(place.path().join(run).join("mark"), "").unwrap();
        }
        symlink(".", place.path().join("runs/loop")).unwrap();
        symlink("a/0", place.path().join("runs/again")).unwrap();
        symlink("runs/b", place.path().join("link")).unwrap();
        place
    }

    fn found(place: &Path, typed: &[&str]) -> Vec<(String, Option<String>)> {
        let below = |path: &Path| path.strip_prefix(place).unwrap().to_str().unwrap().to_owned();
        let paths: Vec<PathBuf> = typed.iter().map(|path| place.join(path)).collect();
        let found = find(&paths, &["other", "mark"], "a run").unwrap();
        found.iter().map(|f| (below(&f.path), f.folder.as_deref().map(below))).collect()
    }

    #[test]
    fn neither_links_nor_unfinished_runs_are_found_below_a_folder() {
        let place = folder();
        let expected = ["runs/a/0", "runs/a/1", "runs/b"].map(|run| (run.to_owned(), Some("runs".to_owned())));
        assert_eq!(found(place.path(), &["runs/"]), expected);
    }

    #[test]
    fn a_run_that_several_paths_lead_to_is_one_run() {
        let place = folder();
        let typed = ["link", "runs/b", "runs/a", "runs/a/../a/1", "runs"];
        let folder = Some("runs/a".to_owned());
        let runs = [("link", None), ("runs/a/0", folder.clone()), ("runs/a/1", folder)];
        assert_eq!(found(place.path(), &typed), runs.map(|(run, folder)| (run.to_owned(), folder)));
    }

    #[test]
    fn a_folder_without_runs_is_refused() {
        let place = folder();
        let error = find(&[place.path().join("runs")], &["other"], "a run").unwrap_err();
        assert!(error.message().ends_with("runs: expected a run or a folder of them, found none"), "{error:?}");
    }
}
