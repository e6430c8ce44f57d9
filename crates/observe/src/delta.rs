//! What happened between two readings of `/proc/vmstat`.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::{Counters, is_gauge};

/// Names of zones as they end per-zone counters (`pgalloc_dma32`; `pgscan_kswapd_normal` before 4.8).
const ZONE_SUFFIXES: [&str; 6] = ["dma", "dma32", "normal", "high", "movable", "device"];

/// A state at both ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Gauge {
    /// First reading, in the counter's unit.
    pub before: u64,
    /// Second reading, in the counter's unit.
    pub after: u64,
}

/// The difference of two readings: growth of what grows, both ends of what is a state.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Delta {
    /// after - before. Negative only if the readings are of different boots or are swapped.
    pub counters: IndexMap<String, i64>,
    /// States (see [`is_gauge`]).
    pub gauges: IndexMap<String, Gauge>,
}

impl Delta {
    /// Compares two readings; names that only one of them has are left out.
    pub fn between(before: &Counters, after: &Counters) -> Delta {
        let mut delta = Delta::default();
        for (name, end) in after.iter() {
            let Some(start) = before.get(name) else { continue };
            if is_gauge(name) {
                delta.gauges.insert(name.to_owned(), Gauge { before: start, after: end });
            } else {
                delta.counters.insert(name.to_owned(), end.wrapping_sub(start).cast_signed());
            }
        }
        delta
    }

    /// Growth of `name`, if both readings had it.
    pub fn get(&self, name: &str) -> Option<i64> {
        self.counters.get(name).copied()
    }

    /// Growth of `name` summed over itself and its per-zone parts, whichever of them exist.
    pub fn sum_zones(&self, name: &str) -> Option<i64> {
        let of_zone = |zone: &&str| self.get(&format!("{name}_{zone}"));
        let parts: Vec<i64> = self.get(name).into_iter().chain(ZONE_SUFFIXES.iter().filter_map(of_zone)).collect();
        (!parts.is_empty()).then(|| parts.iter().sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(pairs: &[(&str, u64)]) -> Counters {
        pairs.iter().copied().collect()
    }

    #[test]
    fn counters_grow_and_gauges_keep_both_ends() {
        let before = counters(&[("nr_dirty", 7), ("nr_dirtied", 10), ("pgfault", 5), ("gone", 1)]);
        let after = counters(&[("nr_dirty", 3), ("nr_dirtied", 25), ("pgfault", 4), ("new", 1)]);
        let delta = Delta::between(&before, &after);
        assert_eq!(delta.gauges["nr_dirty"], Gauge { before: 7, after: 3 });
        assert_eq!(delta.get("nr_dirtied"), Some(15));
        assert_eq!(delta.get("pgfault"), Some(-1));
        assert_eq!((delta.counters.len(), delta.gauges.len()), (2, 1));
    }

    #[test]
    fn zones_add_up_in_old_and_new_kernels() {
        let zero = counters(&[
            ("pgscan_direct_normal", 0),
            ("pgscan_direct_dma32", 0),
            ("pgscan_direct_throttle", 0),
            ("pgscan_kswapd", 0),
        ]);
        let after = counters(&[
            ("pgscan_direct_normal", 30),
            ("pgscan_direct_dma32", 12),
            ("pgscan_direct_throttle", 1000),
            ("pgscan_kswapd", 9),
        ]);
        let delta = Delta::between(&zero, &after);
        assert_eq!(delta.sum_zones("pgscan_direct"), Some(42));
        assert_eq!(delta.sum_zones("pgscan_kswapd"), Some(9));
        assert_eq!(delta.sum_zones("allocstall"), None);
    }
}
