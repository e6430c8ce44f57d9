//! Reference runs: runs of real guests that another program made and described in its own words.
//!
//! ```text
//! run.json      what ran, on what, under which kernel and settings
//! sysctl.txt    "name value" lines
//! thp           the two files of transparent_hugepage, one a line
//! before/ after/
//! ```

use std::fs;
use std::path::Path;

use indexmap::IndexMap;
use serde::Deserialize;

use crate::RunError;

/// The file that makes a directory a reference run.
pub const REFERENCE: &str = "run.json";

/// What `run.json` says, as far as a run can be made from it again.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct ReferenceRun {
    /// Version of the kernel, such as `6.12`.
    pub kernel: String,
    /// Name of the workload.
    pub workload: String,
    /// Name of what was varied.
    pub variant: String,
    /// Number of the repetition, from 1.
    pub rep: u32,
    /// RAM of the guest, in MiB.
    pub mem_mb: u64,
    /// CPUs of the guest.
    pub smp: u32,
    /// The commands that ran, one a line.
    pub job: String,
    /// Files of sysfs that were written.
    #[serde(default)]
    pub sysfs: IndexMap<String, String>,
    /// Sysctls that were written.
    #[serde(default)]
    pub sysctls: IndexMap<String, serde_json::Value>,
    /// Seed of the guest.
    pub seed: u64,
    /// Name of the run; all but the repetition names its group.
    pub id: String,
    /// Whether it came to its end.
    pub ok: bool,
    /// Stamps of the guest's clock in seconds, by name.
    pub guest: IndexMap<String, String>,
}

impl ReferenceRun {
    /// Reads `run.json` of the directory `path`.
    ///
    /// # Errors
    /// It cannot be read, or lacks one of the fields.
    pub fn read(path: &Path) -> Result<ReferenceRun, RunError> {
        let path = path.join(REFERENCE);
        let text =
            fs::read_to_string(&path).map_err(|source| RunError::Io { path: path.clone(), action: "read", source })?;
        serde_json::from_str(&text).map_err(|error| RunError::Json {
            line: error.line(),
            path,
            expected: "what a reference run says of itself",
            message: error.to_string(),
        })
    }

    /// Name of its group: its own without the repetition.
    pub fn group(&self) -> &str {
        self.id.strip_suffix(&format!("-r{}", self.rep)).unwrap_or(&self.id)
    }

    /// Seconds from the start of the workload to its end; none if the stamps are missing.
    pub fn elapsed_s(&self) -> Option<f64> {
        Some(self.stamp("END")? - self.stamp("START")?)
    }

    /// Seconds from the guest's boot to the start of the workload.
    pub fn uptime_s(&self) -> Option<f64> {
        self.stamp("START")
    }

    fn stamp(&self, name: &str) -> Option<f64> {
        self.guest.get(name)?.parse().ok()
    }
}

/// `name value` lines, such as `/proc/sys/vm` is often kept in; a value of several words is kept as it is.
pub fn parse_settings(text: &str) -> IndexMap<String, String> {
    let line =
        |line: &str| line.split_once(char::is_whitespace).map(|(name, value)| (name.into(), value.trim().into()));
    text.lines().filter_map(line).collect()
}

/// The word in brackets of a file of sysfs that lists all words.
pub fn chosen_word(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once('[')?;
    Some(rest.split_once(']')?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_named_without_the_repetition() {
        let text = r#"{"kernel": "6.12", "workload": "w", "variant": "v", "rep": 12, "mem_mb": 160, "smp": 1, "job": "",
            "seed": 3, "id": "6.12-w-v-icount-r12", "ok": true, "guest": {"START": "3.50", "END": "12.25"}}"#;
        let run: ReferenceRun = serde_json::from_str(text).unwrap();
        assert_eq!((run.group(), run.uptime_s()), ("6.12-w-v-icount", Some(3.5)));
        assert_eq!(run.elapsed_s(), Some(8.75));
    }

    #[test]
    fn settings_and_words_are_read() {
        let settings = parse_settings("vm.swappiness 60\nvm.lowmem_reserve_ratio 256\t256\t32\n\n");
        assert_eq!(settings["vm.swappiness"], "60");
        assert_eq!(settings["vm.lowmem_reserve_ratio"], "256\t256\t32");
        assert_eq!(chosen_word("always [madvise] never\n"), Some("madvise"));
        assert_eq!(chosen_word("on"), None);
    }
}
