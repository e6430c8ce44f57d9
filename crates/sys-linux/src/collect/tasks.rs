//! CPU time of each task, as `top` shows it.

use std::fmt::Write;
use std::fs;
use std::path::Path;

/// Lines of process number, nanoseconds on a CPU and name, of all processes by number: from `/proc/PID/schedstat`
/// (`CONFIG_SCHED_INFO`) and `/proc/PID/comm`. What ended meanwhile is left out.
pub(super) fn table() -> Vec<u8> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut tasks: Vec<(u32, u64, String)> = entries.filter_map(|entry| read(&entry.path())).collect();
    tasks.sort_unstable();
    let mut text = String::new();
    for (number, time, name) in tasks {
        writeln!(text, "{number} {time} {name}").expect("a String");
    }
    text.into_bytes()
}

fn read(directory: &Path) -> Option<(u32, u64, String)> {
    let number = directory.file_name()?.to_str()?.parse().ok()?;
    let times = fs::read_to_string(directory.join("schedstat")).ok()?;
    let name = fs::read_to_string(directory.join("comm")).ok()?;
    Some((number, times.split_whitespace().next()?.parse().ok()?, name.trim_end().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_in_the_table() {
        let table = String::from_utf8(table()).unwrap();
        let own = format!("{} ", std::process::id());
        let line = table.lines().find(|line| line.starts_with(&own)).expect("a line for this process");
        assert!(line.split(' ').nth(1).is_some_and(|time| time.parse::<u64>().is_ok()), "{line}");
    }
}
