//! Input files: what is good loads, what is not is refused with its place and what was expected.

mod builtin;
mod kernels;
mod machines;
mod published;
mod studies;

use std::fs;
use std::path::Path;

use profile::ProfileError;
use tempfile::TempDir;

/// A folder with these files.
fn folder(files: &[(&str, &str)]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, content) in files {
        fs::write(dir.path().join(name), content).unwrap();
    }
    dir
}

fn path(dir: &Path, name: &str) -> String {
    dir.join(name).to_str().unwrap().to_string()
}

/// What `load` says to a file with this content, without the folder.
fn refusal<T>(content: &str, load: impl FnOnce(&str) -> Result<T, ProfileError>) -> String {
    let dir = folder(&[("x.toml", content)]);
    let error = load(&path(dir.path(), "x.toml")).err().expect("must be refused");
    let text = error.to_string().replace(&format!("{}/", dir.path().display()), "");
    assert_eq!(text.lines().count(), 1, "{text}");
    text
}

/// `content` with `from`, which must be there once, replaced.
fn with(content: &str, from: &str, to: &str) -> String {
    assert_eq!(content.matches(from).count(), 1, "{from}");
    content.replace(from, to)
}
