//! What comes back: a tar.

use std::io::{self, Write};

use serde::{Deserialize, Serialize};

/// The file of the tar that holds a [`Results`].
pub const RESULT_FILE: &str = "result.json";
/// The file of the tar that says what went wrong; then there is no other.
pub const ERROR_FILE: &str = "error";

/// The file of the tar that holds the list of tracepoints, if one is kept.
pub const EVENTS_FILE: &str = "events.txt";

/// A phase of the workload.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Phase {
    /// When it began, in ns since the start.
    pub at_ns: u64,
    /// Its name.
    pub name: String,
}

/// What the workload measured.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Results {
    /// Length of the workload, in ns.
    pub elapsed_ns: u64,
    /// Samples by metric.
    pub samples: Vec<(String, Vec<f64>)>,
    /// Phases.
    pub phases: Vec<Phase>,
    /// Names of the counters of the series.
    pub series_names: Vec<String>,
    /// Time in ns and values of each row.
    pub series_rows: Vec<(u64, Vec<u64>)>,
    /// What this kernel could not be made to show.
    pub missing: Vec<String>,
}

impl Results {
    /// What a workload measured; its snapshots become files of `before/` and `after/`.
    pub fn of(done: sys_linux::Workload, mut missing: Vec<String>) -> (Results, Vec<(String, Vec<u8>)>) {
        let mut files = Vec::new();
        for (place, snapshot) in [("before", done.before), ("after", done.after)] {
            files.extend(snapshot.0.into_iter().map(|(name, content)| (format!("{place}/{name}"), content)));
        }
        let (mut series_names, mut series_rows) = (Vec::new(), Vec::new());
        if let Some(series) = done.series {
            if series.cut {
                missing.push("series: it ends before the workload does, because its memory was full".to_string());
            }
            series_names = series.names;
            series_rows = series.rows.into_iter().map(|(at, values)| (at.0, values)).collect();
        }
        let phases = done.phases.into_iter().map(|phase| Phase { at_ns: phase.at.0, name: phase.name }).collect();
        let (elapsed_ns, samples) = (done.elapsed.0, done.samples);
        (Results { elapsed_ns, samples, phases, series_names, series_rows, missing }, files)
    }
}

/// Writes files as a tar: the same files give the same bytes.
pub(crate) fn write_tar(files: &[(String, Vec<u8>)], out: impl Write) -> io::Result<()> {
    let mut tar = tar::Builder::new(out);
    for (name, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, name, content.as_slice())?;
    }
    tar.into_inner()?.flush()
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn files_come_back() {
        let files = [("before/vmstat".to_string(), b"pgfault 1\n".to_vec()), ("x".to_string(), Vec::new())];
        let mut bytes = Vec::new();
        write_tar(&files, &mut bytes).unwrap();
        let mut archive = tar::Archive::new(bytes.as_slice());
        let read = archive.entries().unwrap().map(|entry| {
            let mut entry = entry.unwrap();
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            (entry.path().unwrap().to_str().unwrap().to_string(), content)
        });
        assert_eq!(read.collect::<Vec<_>>(), files);
    }
}
