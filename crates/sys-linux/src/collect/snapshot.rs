//! The kernel's text files at one moment, as they are.

use std::fs;

use super::tasks;

/// Files that are read: where they stand, and what they are called in a run directory.
const FILES: &[(&str, &str)] = &[
    ("/proc/zoneinfo", "zoneinfo"),
    ("/proc/buddyinfo", "buddyinfo"),
    ("/proc/pagetypeinfo", "pagetypeinfo"),
    ("/proc/meminfo", "meminfo"),
    ("/proc/slabinfo", "slabinfo"),
    ("/proc/pressure/memory", "pressure_memory"),
    ("/proc/pressure/io", "pressure_io"),
    ("/proc/pressure/cpu", "pressure_cpu"),
    ("/proc/diskstats", "diskstats"),
    ("/proc/stat", "stat"),
    ("/proc/swaps", "swaps"),
    ("/proc/uptime", "uptime"),
    ("/sys/kernel/debug/lru_gen", "lru_gen"),
];

/// The counters: read as close to the workload as can be.
const VMSTAT: (&str, &str) = ("/proc/vmstat", "vmstat");

/// CPU time of each task: the one file that the kernel has in pieces.
const TASKS: &str = "tasks";

/// The files that could be read, by their names in a run directory.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Snapshot(pub Vec<(&'static str, Vec<u8>)>);

impl Snapshot {
    /// Reads the files, the counters last.
    pub(crate) fn take_before() -> Snapshot {
        let files = FILES.iter().chain([&VMSTAT]).filter_map(read);
        Snapshot([(TASKS, tasks::table())].into_iter().chain(files).collect())
    }

    /// Reads the files, the counters first.
    pub(crate) fn take_after() -> Snapshot {
        let files = [&VMSTAT].into_iter().chain(FILES).filter_map(read);
        Snapshot(files.chain([(TASKS, tasks::table())]).collect())
    }
}

/// A file that this kernel lacks, or that this user may not read, is left out.
fn read((path, name): &(&'static str, &'static str)) -> Option<(&'static str, Vec<u8>)> {
    Some((*name, fs::read(path).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_next_to_the_workload() {
        assert_eq!(Snapshot::take_before().0.last().map(|(name, _)| *name), Some("vmstat"));
        assert_eq!(Snapshot::take_after().0.first().map(|(name, _)| *name), Some("vmstat"));
        assert_eq!(Snapshot::take_after().0.last().map(|(name, _)| *name), Some("tasks"));
    }
}
