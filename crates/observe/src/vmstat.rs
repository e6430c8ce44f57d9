//! Which names `/proc/vmstat` has, in which order, and which of them are gauges: as data.
//!
//! Source: the array `vmstat_text`, mm/vmstat.c, of the era's kernel (`data/vmstat-*.txt`).

use rules::Era;

/// Names that do not start with `nr_` and yet are a state, not a count of events.
const GAUGES: [&str; 1] = ["workingset_nodes"];

/// Names that start with `nr_` and yet only ever grow.
const GROWING: [&str; 11] = [
    "nr_dirtied",
    "nr_written",
    "nr_throttled_written",
    "nr_vmscan_write",
    "nr_vmscan_immediate_reclaim",
    "nr_foll_pin_acquired",
    "nr_foll_pin_released",
    "nr_tlb_remote_flush",
    "nr_tlb_remote_flush_received",
    "nr_tlb_local_flush_all",
    "nr_tlb_local_flush_one",
];

/// The names that a kernel of `era` can print, in its order: x86-64, without those that only debugging options build.
pub fn vmstat_names(era: Era) -> impl Iterator<Item = &'static str> {
    let table = match era {
        Era::V3_19 => include_str!("../data/vmstat-3.19.txt"),
        Era::V4_20 => include_str!("../data/vmstat-4.20.txt"),
        Era::V6_12 => include_str!("../data/vmstat-6.12.txt"),
    };
    table.lines().filter(|line| !line.starts_with('#'))
}

/// Whether `name` tells a state (pages that are dirty now) and not a count that only grows (pages dirtied so far).
pub fn is_gauge(name: &str) -> bool {
    GAUGES.contains(&name) || (name.starts_with("nr_") && !GROWING.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gauges_and_counts() {
        for name in ["nr_free_pages", "nr_dirty", "nr_dirty_threshold", "workingset_nodes"] {
            assert!(is_gauge(name), "{name}");
        }
        for name in ["nr_dirtied", "nr_vmscan_write", "pgfault", "workingset_refault_anon", "numa_hit"] {
            assert!(!is_gauge(name), "{name}");
        }
    }

    #[test]
    fn no_name_stands_twice() {
        for era in Era::ALL {
            let mut names: Vec<_> = vmstat_names(era).collect();
            let n = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), n, "{era:?}");
        }
    }

    #[test]
    fn every_growing_name_exists_unless_it_needs_a_debugging_option() {
        for name in GROWING.iter().filter(|name| !name.starts_with("nr_tlb_")) {
            assert!(vmstat_names(Era::V6_12).any(|n| n == *name), "{name}");
        }
    }
}
