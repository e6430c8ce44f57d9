//! The kernel's text files at one moment, as they are.

use std::fs;
use std::path::PathBuf;

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

/// Files of a cgroup.
const GROUP_FILES: &[&str] = &[
    "memory.stat",
    "memory.events",
    "memory.swap.events",
    "memory.current",
    "memory.peak",
    "memory.swap.current",
    "cpu.pressure",
    "io.pressure",
    "memory.pressure",
];

/// CPU time of each task: the one file that the kernel has in pieces.
const TASKS: &str = "tasks";

/// The files that could be read, by their names in a run directory.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Snapshot(pub Vec<(String, Vec<u8>)>);

impl Snapshot {
    /// Reads the files, the counters last.
    pub(crate) fn take_before() -> Snapshot {
        let files = FILES.iter().chain([&VMSTAT]).filter_map(read);
        Snapshot([(TASKS.to_string(), tasks::table())].into_iter().chain(files).collect())
    }

    /// Reads the files, the counters first; those of cgroups, by their paths, too.
    pub(crate) fn take_after(groups: &[(String, PathBuf)]) -> Snapshot {
        let files = [&VMSTAT].into_iter().chain(FILES).filter_map(read);
        let of_groups = groups.iter().flat_map(|(path, dir)| {
            let read = |name| Some((format!("cgroup/{path}/{name}"), fs::read(dir.join(name)).ok()?));
            GROUP_FILES.iter().filter_map(read).collect::<Vec<_>>()
        });
        Snapshot(files.chain(of_groups).chain([(TASKS.to_string(), tasks::table())]).collect())
    }
}

/// A file that this kernel lacks, or that this user may not read, is left out.
fn read((path, name): &(&str, &str)) -> Option<(String, Vec<u8>)> {
    Some((name.to_string(), fs::read(path).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_next_to_the_workload() {
        assert_eq!(Snapshot::take_before().0.last().map(|(name, _)| name.as_str()), Some("vmstat"));
        let after = Snapshot::take_after(&[]).0;
        assert_eq!(after.first().map(|(name, _)| name.as_str()), Some("vmstat"));
        assert_eq!(after.last().map(|(name, _)| name.as_str()), Some("tasks"));
    }

    #[test]
    fn groups_have_their_files_below_their_paths() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("memory.stat"), "anon 1\n").unwrap();
        fs::write(dir.path().join("cgroup.procs"), "1\n").unwrap();
        let after = Snapshot::take_after(&[("app/db".to_string(), dir.path().to_owned())]).0;
        let of_groups: Vec<_> = after.iter().filter(|(name, _)| name.starts_with("cgroup/")).collect();
        assert_eq!(of_groups, [&("cgroup/app/db/memory.stat".to_string(), b"anon 1\n".to_vec())]);
    }
}
