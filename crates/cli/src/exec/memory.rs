//! How many runs fit into memory.

use std::fs;
use std::path::Path;

use observe::Meminfo;
use profile::Machine;
use units::PAGE_SIZE;

/// Host bytes per simulated frame while a run's files are all cached, measured at full scale: about 2 GB for 64 GiB.
const BYTES_PER_FRAME: u64 = 128;
/// Host bytes of a run that do not grow with the machine.
const BYTES_PER_RUN: u64 = 32 << 20;

/// What a run on `machine` may take, in bytes.
pub(super) fn estimate(machine: &Machine) -> u64 {
    BYTES_PER_RUN + machine.memory().0 / PAGE_SIZE * BYTES_PER_FRAME
}

/// What the host can still give, in bytes; no limit where it does not say.
pub(super) fn available() -> u64 {
    host().unwrap_or(u64::MAX).min(cgroup(Path::new("/sys/fs/cgroup")).unwrap_or(u64::MAX))
}

fn host() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    Some(Meminfo::parse("/proc/meminfo", &text).ok()?.get("MemAvailable")? * 1024)
}

/// What is left below the limit of a container (cgroup v2).
fn cgroup(dir: &Path) -> Option<u64> {
    let number = |file: &str| fs::read_to_string(dir.join(file)).ok()?.trim().parse::<u64>().ok();
    Some(number("memory.max")?.saturating_sub(number("memory.current")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_full_scale_study_is_taken_for_two_gigabytes() {
        // 64 GiB are 2^24 frames; times 128 B = 2 GiB, and 32 MiB.
        let machine = Machine::load("haswell-2s").unwrap();
        assert_eq!(estimate(&machine), (2 << 30) + (32 << 20));
    }

    #[test]
    fn a_container_without_a_limit_is_no_limit() {
        let dir = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| fs::write(dir.path().join(file), text).unwrap();
        assert_eq!(cgroup(dir.path()), None);
        write("memory.current", "300\n");
        write("memory.max", "max\n");
        assert_eq!(cgroup(dir.path()), None);
        write("memory.max", "1000\n");
        assert_eq!(cgroup(dir.path()), Some(700));
    }
}
