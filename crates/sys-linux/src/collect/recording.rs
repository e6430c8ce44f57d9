//! A list of tracepoints: the kernel writes them into a buffer for each CPU, which is read when the workload has ended.
//!
//! The buffers are those of an instance, so that nobody else's tracing is touched. They are of a fixed size: what does not fit
//! takes the place of the oldest.
//! Source: Documentation/trace/ftrace.rst and events.rst (6.12); instances are there since 3.10.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Size of the buffer of a CPU, in KiB: a guess of what is enough, some 60,000 events of 64 bytes, and little beside the memory
/// of the smallest guest.
const BUFFER_KIB: u64 = 4 << 10;

/// Events that are being recorded; the instance is taken away when this goes.
pub struct Recording {
    instance: PathBuf,
}

impl Recording {
    /// Starts to record those of the events (`system/event`) that this kernel has, if any are asked for.
    pub fn begin(tracefs: &Path, events: &[String]) -> Option<io::Result<Recording>> {
        (!events.is_empty()).then(|| Recording::start(tracefs, events))
    }

    fn start(tracefs: &Path, events: &[String]) -> io::Result<Recording> {
        let instance = tracefs.join(format!("instances/mmtwin-{}", std::process::id()));
        fs::create_dir(&instance)?;
        let recording = Recording { instance };
        recording.set("buffer_size_kb", &BUFFER_KIB.to_string())?;
        for event in events {
            match recording.set(&format!("events/{event}/enable"), "1") {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(recording)
    }

    /// What was recorded, as the kernel prints it; tells in `missing` what it lacks.
    pub fn end(recording: Option<io::Result<Recording>>, missing: &mut Vec<String>) -> Option<Vec<u8>> {
        match recording?.and_then(|recording| recording.read()) {
            Ok((text, lost)) => {
                missing.extend((lost > 0).then(|| lost_text(lost)));
                Some(text)
            }
            Err(error) => {
                missing.push(format!("list of tracepoints: {error}"));
                None
            }
        }
    }

    /// The events, and how many older ones they have taken the place of.
    fn read(&self) -> io::Result<(Vec<u8>, u64)> {
        self.set("tracing_on", "0")?;
        let mut lost = 0;
        for cpu in fs::read_dir(self.instance.join("per_cpu"))? {
            lost += overrun(&fs::read_to_string(cpu?.path().join("stats"))?);
        }
        Ok((fs::read(self.instance.join("trace"))?, lost))
    }

    /// Writes a setting, which must be there: a file that is not would be made.
    fn set(&self, file: &str, value: &str) -> io::Result<()> {
        use std::io::Write;
        fs::OpenOptions::new().write(true).open(self.instance.join(file))?.write_all(value.as_bytes())
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        // On the way out there is nobody to tell; what stays is of this process alone.
        let _ = fs::remove_dir(&self.instance);
    }
}

fn lost_text(lost: u64) -> String {
    format!("tracepoints: the oldest {lost} are lost, for which the {} MiB of a CPU had no room", BUFFER_KIB >> 10)
}

/// Events that were written over, as a CPU's `stats` tells (`overrun: 5`).
fn overrun(stats: &str) -> u64 {
    let count = |line: &str| line.strip_prefix("overrun:")?.trim().parse().ok();
    stats.lines().find_map(count).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_over_is_told() {
        assert_eq!(overrun("entries: 9\noverrun: 12\ncommit overrun: 3\nbytes: 1\n"), 12);
        assert_eq!(overrun(""), 0);
        assert_eq!(lost_text(12), "tracepoints: the oldest 12 are lost, for which the 4 MiB of a CPU had no room");
    }

    #[test]
    fn who_asks_for_nothing_touches_nothing_and_what_is_refused_is_missing() {
        let nowhere = Path::new("/nonexistent");
        let mut missing = Vec::new();
        assert!(Recording::begin(nowhere, &[]).is_none());
        let refused = Recording::begin(nowhere, &["kmem/mm_page_alloc".to_string()]);
        assert_eq!(Recording::end(refused, &mut missing), None);
        assert!(missing[0].starts_with("list of tracepoints: "), "{missing:?}");
    }
}
