//! How many runs fit into memory.

use std::fs;

use observe::Meminfo;
use profile::Machine;
use units::PAGE_SIZE;

use crate::real::Place;

/// Host bytes of a run for each frame of its machine. Measured: 32 on XFS and 49 on ext4 where small files fill the cache (the
/// watermark-boost study), 18 to 36 where none do.
const BYTES_PER_FRAME: u64 = 50;
/// Host bytes of a run that do not grow with the machine, at most: files that are not in the cache, and what the allocator keeps.
/// Measured of the process: 575 MB of conformance, which writes beyond 8 TB, 385 of largecopytar, whose trees are files by the
/// million, 223 of stress-highalloc, 30 to 90 of others.
const BYTES_PER_RUN: u64 = 576 << 20;

/// What a run on `machine` may take, in bytes.
pub(super) fn estimate(machine: &Machine) -> u64 {
    BYTES_PER_RUN + machine.memory().0 / PAGE_SIZE * BYTES_PER_FRAME
}

/// What the host can still give, in bytes; no limit where it does not say.
pub(super) fn available() -> u64 {
    let group = Place::find().and_then(|place| place.left()).map_or(u64::MAX, |bytes| bytes.0);
    host().unwrap_or(u64::MAX).min(group)
}

fn host() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    Some(Meminfo::parse("/proc/meminfo", &text).ok()?.get("MemAvailable")? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_covers_what_was_measured() {
        // 64 GiB are 2^24 frames at 32 B (README: 31.7 to 32.0 at full scale).
        assert!(estimate(&Machine::load("haswell-2s").unwrap()) >= (1 << 24) * 32);
        // 575,244 kB of a process that ran conformance with 64 MiB, 384,632 kB of one that ran largecopytar.
        assert!(estimate(&Machine::load("guest-160m").unwrap()) >= 575_244 << 10);
        assert!(estimate(&Machine::load("server-2g").unwrap()) >= 384_632 << 10);
    }
}
