//! A run directory, the same whichever world made it.
//!
//! ```text
//! manifest.json   all inputs
//! metrics.json    what the run answers with
//! before/ after/  the kernel's text files
//! series.csv      counters over time (optional)
//! events.txt      tracepoints as ftrace text (optional)
//! zones.txt       what each part of the zones holds over time, drawn (optional)
//! kswapd.txt      why kswapd was busy, in one sentence (optional)
//! hist/           histograms of tracepoints (real kernels)
//! guest/ host/    settings and log of a real kernel (optional)
//! ```
//! It is written beside its place under a temporary name and renamed when it is complete, so that a run directory under
//! its own name is never half written.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Delta, Manifest, Metric, RunError, Series, Snapshot, TraceRecord, write_ftrace};

/// The file that makes a directory a run directory.
pub const MANIFEST: &str = "manifest.json";
const METRICS: &str = "metrics.json";
const SERIES: &str = "series.csv";
const EVENTS: &str = "events.txt";

/// Mode of a run directory before the umask; a temporary directory would be closed to other users.
const DIR_MODE: u32 = 0o777;

/// A run, as its directory holds it (its events apart, which can be many).
#[derive(Clone, PartialEq, Debug)]
pub struct RunDir {
    /// All inputs.
    pub manifest: Manifest,
    /// What the kernel showed when the workload started.
    pub before: Snapshot,
    /// What it showed when the workload had ended.
    pub after: Snapshot,
    /// What the workload measured.
    pub metrics: Vec<Metric>,
    /// Counters over time.
    pub series: Option<Series>,
}

impl RunDir {
    /// Growth of `/proc/vmstat` over the run; empty if one of the readings is missing.
    pub fn delta(&self) -> Delta {
        match (&self.before.vmstat, &self.after.vmstat) {
            (Some(before), Some(after)) => Delta::between(before, after),
            _ => Delta::default(),
        }
    }

    /// Writes the run as the directory `path`, with its events if there are any, and with more files by their places below
    /// `path`. A file that the run directory has itself is left out of these: it is written from what was read. Missing
    /// parent directories are made.
    ///
    /// # Errors
    /// There is something at `path`, or it cannot be written.
    pub fn write(&self, path: &Path, events: &[TraceRecord], more: &BTreeMap<String, Vec<u8>>) -> Result<(), RunError> {
        if fs::symlink_metadata(path).is_ok() {
            return Err(RunError::Exists { path: path.to_owned() });
        }
        let parent = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        make_dir(parent)?;
        let unfinished = tempfile::Builder::new()
            .prefix(".unfinished-run-")
            .permissions(fs::Permissions::from_mode(DIR_MODE))
            .tempdir_in(parent)
            .map_err(io("make a temporary directory in", parent))?;
        self.write_files(unfinished.path(), events)?;
        write_more(unfinished.path(), more)?;
        fs::rename(unfinished.path(), path).map_err(io("rename a finished run to", path))?;
        // The directory is gone under its temporary name, so there is nothing to remove.
        let _ = unfinished.keep();
        Ok(())
    }

    fn write_files(&self, dir: &Path, events: &[TraceRecord]) -> Result<(), RunError> {
        write_text(&dir.join(MANIFEST), &to_json(&self.manifest))?;
        write_text(&dir.join(METRICS), &to_json(&self.metrics))?;
        for (name, snapshot) in [("before", &self.before), ("after", &self.after)] {
            let dir = dir.join(name);
            make_dir(&dir)?;
            for (file, text) in snapshot.files() {
                let path = dir.join(file);
                make_dir(path.parent().expect("it is below the directory"))?;
                write_text(&path, &text)?;
            }
        }
        if let Some(series) = &self.series {
            write_text(&dir.join(SERIES), &series.write())?;
        }
        if !events.is_empty() {
            write_text(&dir.join(EVENTS), &write_ftrace(events))?;
        }
        Ok(())
    }

    /// Reads the run directory `path`.
    pub fn read(path: &Path) -> Result<RunDir, RunError> {
        let series_path = path.join(SERIES);
        let series =
            read_text(&series_path)?.map(|text| Series::parse(&series_path.to_string_lossy(), &text)).transpose()?;
        Ok(RunDir {
            manifest: read_json(&path.join(MANIFEST), "the manifest of a run directory")?,
            metrics: read_json(&path.join(METRICS), "the metrics of a run")?,
            before: Snapshot::read(&path.join("before"))?,
            after: Snapshot::read(&path.join("after"))?,
            series,
        })
    }
}

/// Writes files that are not there yet.
fn write_more(dir: &Path, more: &BTreeMap<String, Vec<u8>>) -> Result<(), RunError> {
    for (place, content) in more {
        let path = dir.join(place);
        let below = Path::new(place).components().all(|part| matches!(part, Component::Normal(_)));
        if below && !path.exists() {
            make_dir(path.parent().expect("it is below the directory"))?;
            fs::write(&path, content).map_err(io("write", &path))?;
        }
    }
    Ok(())
}

fn io<'a>(action: &'static str, path: &'a Path) -> impl FnOnce(std::io::Error) -> RunError + 'a {
    move |source| RunError::Io { path: path.to_owned(), action, source }
}

fn make_dir(path: &Path) -> Result<(), RunError> {
    fs::create_dir_all(path).map_err(io("make the directory", path))
}

fn write_text(path: &Path, text: &str) -> Result<(), RunError> {
    fs::write(path, text).map_err(io("write", path))
}

/// The text of a file; `None` if there is none.
fn read_text(path: &Path) -> Result<Option<String>, RunError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io("read", path)(error)),
    }
}

fn to_json(value: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(value).expect("plain data with string keys");
    text.push('\n');
    text
}

fn read_json<T: DeserializeOwned>(path: &Path, expected: &'static str) -> Result<T, RunError> {
    let text = read_text(path)?.ok_or_else(|| RunError::Missing { path: path.to_owned(), expected })?;
    serde_json::from_str(&text).map_err(|error| RunError::Json {
        path: path.to_owned(),
        line: error.line(),
        expected,
        message: error.to_string(),
    })
}
