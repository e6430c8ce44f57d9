//! What came back of a guest.

use std::collections::BTreeMap;
use std::io::Read;

use guest::{ERROR_FILE, RESULT_FILE, Results};

/// Lines of the console that an error repeats.
const CONSOLE_LINES: usize = 20;

/// What came back of a guest.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// What the workload measured.
    pub results: Results,
    /// Files by their places in a run directory: `before/vmstat`, `hist/kmem.mm_page_alloc_extfrag`, `guest/dmesg`.
    pub files: BTreeMap<String, Vec<u8>>,
    /// Arguments of QEMU; the paths in them are gone.
    pub arguments: Vec<String>,
    /// SHA-256 of the agent with its libraries: another agent may give another run.
    pub agent_hash: String,
}

/// The answer, read: results and other files, or what the agent complained of.
pub(crate) type Answer = Result<(Results, BTreeMap<String, Vec<u8>>), String>;

/// Reads the tar that the agent sent; nothing if it sent none or not all of it.
pub(crate) fn read_answer(tar: &[u8]) -> Option<Answer> {
    // A tar ends with two blocks of zeros; without them it was cut.
    if tar.len() < 1024 || tar[tar.len() - 1024..].iter().any(|byte| *byte != 0) {
        return None;
    }
    let mut files = BTreeMap::new();
    for entry in tar::Archive::new(tar).entries().ok()? {
        let mut entry = entry.ok()?;
        let path = entry.path().ok()?.to_str()?.to_string();
        let mut content = Vec::new();
        entry.read_to_end(&mut content).ok()?;
        files.insert(path, content);
    }
    if let Some(error) = files.get(ERROR_FILE) {
        return Some(Err(String::from_utf8_lossy(error).into_owned()));
    }
    let results = serde_json::from_slice(&files.remove(RESULT_FILE)?).ok()?;
    Some(Ok((results, files)))
}

/// What a guest that sent nothing died of, as its console tells.
pub(crate) fn cause_of_death(console: &str) -> String {
    let told = |mark: &str| console.lines().rev().find(|line| line.contains(mark)).map(without_stamp);
    if let Some(line) = told("Kernel panic") {
        return format!("the guest's kernel panicked: {line}");
    }
    if let Some(line) = told("Out of memory: Killed process") {
        return format!("the guest ran out of memory: {line}");
    }
    "the guest ended without sending its results".to_string()
}

/// A line of the console without the kernel's time stamp.
fn without_stamp(line: &str) -> &str {
    line.split_once("] ").map_or(line, |(_, text)| text).trim()
}

/// The last lines of the console.
pub(crate) fn tail(console: &str) -> String {
    let lines: Vec<&str> = console.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    if lines.is_empty() {
        return "(it is empty)".to_string();
    }
    lines[lines.len().saturating_sub(CONSOLE_LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tar_of(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut tar = tar::Builder::new(Vec::new());
        for (name, content) in files {
            let mut header = tar::Header::new_gnu();
            header.set_size(content.len() as u64);
            tar.append_data(&mut header, name, *content).unwrap();
        }
        tar.into_inner().unwrap()
    }

    #[test]
    fn an_answer_is_results_or_a_complaint() {
        let results = br#"{"elapsed_ns":5,"samples":[],"phases":[],"series_names":[],"series_rows":[],"missing":[]}"#;
        let tar = tar_of(&[("before/vmstat", b"pgfault 1\n"), (RESULT_FILE, results)]);
        let (results, files) = read_answer(&tar).unwrap().unwrap();
        assert_eq!((results.elapsed_ns, files.len()), (5, 1));
        let tar = tar_of(&[(ERROR_FILE, b"no disk")]);
        assert_eq!(read_answer(&tar), Some(Err("no disk".to_string())));
    }

    #[test]
    fn a_cut_answer_is_none() {
        let tar = tar_of(&[("x", &[1; 4096])]);
        for len in [0, 512, 3000, tar.len() - 1] {
            assert!(read_answer(&tar[..len]).is_none(), "{len} of {} bytes", tar.len());
        }
    }

    #[test]
    fn the_console_tells_of_what_it_died() {
        let panic = "[ 1.2] x\n[    1.500000] Kernel panic - not syncing: No working init found.\n[ 1.6] ---[ end\n";
        assert!(cause_of_death(panic).ends_with("Kernel panic - not syncing: No working init found."));
        assert!(cause_of_death("").contains("without sending"));
        assert_eq!(tail("\n\n"), "(it is empty)");
        let many: String = (0..50).map(|n| format!("{n}\n")).collect();
        assert_eq!((tail(&many).lines().next(), tail(&many).lines().count()), (Some("30"), 20));
    }
}
