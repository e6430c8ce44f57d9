//! Columns that mmtests derives from two readings of `/proc/vmstat` and the time between them.
//!
//! Source: the report that mmtests' `compare-mmtests.pl --print-monitor mmtests-vmstat` makes (638401e0). Each takes the difference and the elapsed seconds and
//! is `None` where a counter that it needs is missing. Per-zone counters of kernels before 4.8 are added up. mmtests
//! cuts percentages to whole numbers; here only the compaction cost, which it also publishes cut, is cut.

use crate::Delta;

/// A column: difference of the counters, elapsed seconds.
pub(crate) type Column = fn(&Delta, f64) -> Option<f64>;

/// Microscopic costs of compaction in mmtests' model: page scanned, isolated, moved, failed to move.
const COST_MIGRATE_SCANNED: f64 = 7.0;
const COST_ISOLATED: f64 = 19.0;
const COST_MIGRATE_SUCCESS: f64 = 1038.0;
const COST_MIGRATE_FAIL: f64 = 14.0;

/// Faults that needed no I/O.
pub(crate) fn minor_faults(delta: &Delta, _: f64) -> Option<f64> {
    Some(count(delta, "pgfault")? - count(delta, "pgmajfault")?)
}

pub(crate) fn zone_normal_velocity(delta: &Delta, elapsed_s: f64) -> Option<f64> {
    zone_velocity(delta, "normal", elapsed_s)
}

pub(crate) fn zone_dma32_velocity(delta: &Delta, elapsed_s: f64) -> Option<f64> {
    zone_velocity(delta, "dma32", elapsed_s)
}

pub(crate) fn zone_dma_velocity(delta: &Delta, elapsed_s: f64) -> Option<f64> {
    zone_velocity(delta, "dma", elapsed_s)
}

/// Pages of a kind of zone that kswapd and direct reclaim scanned per second.
fn zone_velocity(delta: &Delta, zone: &str, elapsed_s: f64) -> Option<f64> {
    let scanned = |who: &str| delta.get(&format!("pgscan_{who}_{zone}")).map(|n| n as f64);
    per_second(scanned("kswapd")? + scanned("direct")?, elapsed_s)
}

/// Splits of huge pages, of one kind until 4.5 and then those of the page itself.
pub(crate) fn thp_splits(delta: &Delta, _: f64) -> Option<f64> {
    count(delta, "thp_split").or_else(|| count(delta, "thp_split_page"))
}

pub(crate) fn kswapd_scanned(delta: &Delta, _: f64) -> Option<f64> {
    count(delta, "pgscan_kswapd")
}

pub(crate) fn kswapd_reclaimed(delta: &Delta, _: f64) -> Option<f64> {
    count(delta, "pgsteal_kswapd")
}

pub(crate) fn direct_scanned(delta: &Delta, _: f64) -> Option<f64> {
    count(delta, "pgscan_direct")
}

pub(crate) fn direct_reclaimed(delta: &Delta, _: f64) -> Option<f64> {
    count(delta, "pgsteal_direct")
}

/// Pages reclaimed per page scanned by kswapd, in percent; 100 if it scanned none.
pub(crate) fn kswapd_efficiency(delta: &Delta, elapsed_s: f64) -> Option<f64> {
    let scanned = kswapd_scanned(delta, elapsed_s)?;
    Some(percent_or(100.0, kswapd_reclaimed(delta, elapsed_s)?, scanned))
}

/// Pages reclaimed per page scanned in direct reclaim, in percent; 100 if none was scanned.
pub(crate) fn direct_efficiency(delta: &Delta, elapsed_s: f64) -> Option<f64> {
    let scanned = direct_scanned(delta, elapsed_s)?;
    Some(percent_or(100.0, direct_reclaimed(delta, elapsed_s)?, scanned))
}

/// Pages that kswapd scanned per second.
pub(crate) fn kswapd_velocity(delta: &Delta, elapsed_s: f64) -> Option<f64> {
    per_second(kswapd_scanned(delta, elapsed_s)?, elapsed_s)
}

/// Pages that direct reclaim scanned per second.
pub(crate) fn direct_velocity(delta: &Delta, elapsed_s: f64) -> Option<f64> {
    per_second(direct_scanned(delta, elapsed_s)?, elapsed_s)
}

/// Share of the scanning that direct reclaim did, in percent; 0 if nothing was scanned.
pub(crate) fn percentage_direct_scans(delta: &Delta, elapsed_s: f64) -> Option<f64> {
    let direct = direct_scanned(delta, elapsed_s)?;
    Some(percent_or(0.0, direct, direct + kswapd_scanned(delta, elapsed_s)?))
}

pub(crate) fn page_writes_by_reclaim(delta: &Delta, _: f64) -> Option<f64> {
    count(delta, "nr_vmscan_write")
}

/// Pages that reclaim wrote to files: all that it wrote but swap.
pub(crate) fn page_writes_file(delta: &Delta, elapsed_s: f64) -> Option<f64> {
    Some(page_writes_by_reclaim(delta, elapsed_s)? - page_writes_anon(delta, elapsed_s)?)
}

pub(crate) fn page_writes_anon(delta: &Delta, _: f64) -> Option<f64> {
    count(delta, "pswpout")
}

pub(crate) fn allocation_stalls(delta: &Delta, _: f64) -> Option<f64> {
    count(delta, "allocstall")
}

pub(crate) fn compaction_stalls(delta: &Delta, _: f64) -> Option<f64> {
    count(delta, "compact_stall")
}

pub(crate) fn compaction_success(delta: &Delta, _: f64) -> Option<f64> {
    count(delta, "compact_success")
}

/// Compactions that allocating tasks did and that gave the page, in percent; 0 if none was tried.
pub(crate) fn compaction_efficiency(delta: &Delta, elapsed_s: f64) -> Option<f64> {
    let stalls = compaction_stalls(delta, elapsed_s)?;
    Some(percent_or(0.0, compaction_success(delta, elapsed_s)?, stalls))
}

/// Pages that the migration scanner saw per page that the free scanner saw, in percent; 0 if that saw none.
pub(crate) fn compaction_scan_efficiency(delta: &Delta, _: f64) -> Option<f64> {
    let free = count(delta, "compact_free_scanned")?;
    Some(percent_or(0.0, count(delta, "compact_migrate_scanned")?, free))
}

/// mmtests' cost of compaction, in millions of its units, cut to a whole number.
///
/// Its term for the free scanner is never counted, because mmtests asks for a counter that does not exist.
pub(crate) fn compaction_cost(delta: &Delta, _: f64) -> Option<f64> {
    let cost = COST_MIGRATE_SCANNED * count(delta, "compact_migrate_scanned")?
        + COST_ISOLATED * count(delta, "compact_isolated")?
        + COST_MIGRATE_SUCCESS * count(delta, "pgmigrate_success")?
        + COST_MIGRATE_FAIL * count(delta, "pgmigrate_fail")?;
    Some((cost / 1e6).trunc())
}

/// Growth of a counter, summed over zones where it has zones.
pub(crate) fn count(delta: &Delta, name: &str) -> Option<f64> {
    delta.sum_zones(name).map(|n| n as f64)
}

fn percent_or(empty: f64, part: f64, whole: f64) -> f64 {
    if whole == 0.0 { empty } else { part * 100.0 / whole }
}

fn per_second(n: f64, elapsed_s: f64) -> Option<f64> {
    (elapsed_s > 0.0).then(|| n / elapsed_s)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Counters;

    fn delta(pairs: &[(&str, u64)]) -> Delta {
        let zero: Counters = pairs.iter().map(|&(name, _)| (name, 0)).collect();
        Delta::between(&zero, &pairs.iter().copied().collect())
    }

    #[test]
    fn reclaim_by_hand() {
        let d = delta(&[
            ("pgscan_kswapd", 3_000),
            ("pgsteal_kswapd", 1_860),
            ("pgscan_direct", 1_000),
            ("pgsteal_direct", 900),
        ]);
        assert_eq!(kswapd_efficiency(&d, 10.0), Some(62.0)); // 186000/3000
        assert_eq!(direct_efficiency(&d, 10.0), Some(90.0));
        assert_eq!(kswapd_velocity(&d, 10.0), Some(300.0));
        assert_eq!(direct_velocity(&d, 0.0), None);
        assert_eq!(percentage_direct_scans(&d, 10.0), Some(25.0)); // 1000/4000
    }

    #[test]
    fn nothing_scanned_is_fully_efficient() {
        let names = ["pgscan_kswapd", "pgsteal_kswapd", "pgscan_direct", "pgsteal_direct"];
        let d = delta(&names.map(|name| (name, 0)));
        assert_eq!(kswapd_efficiency(&d, 1.0), Some(100.0));
        assert_eq!(percentage_direct_scans(&d, 1.0), Some(0.0));
        assert_eq!(kswapd_efficiency(&Delta::default(), 1.0), None);
    }

    #[test]
    fn zones_of_old_kernels_add_up() {
        let d = delta(&[
            ("pgscan_kswapd_dma32", 10),
            ("pgscan_kswapd_normal", 30),
            ("pgsteal_kswapd_dma32", 5),
            ("pgsteal_kswapd_normal", 5),
        ]);
        assert_eq!(kswapd_efficiency(&d, 1.0), Some(25.0)); // 10/40
    }

    #[test]
    fn zones_are_told_apart_where_the_kernel_does() {
        let d = delta(&[("pgscan_kswapd_dma32", 30), ("pgscan_direct_dma32", 10), ("pgscan_kswapd_normal", 5)]);
        assert_eq!(zone_dma32_velocity(&d, 8.0), Some(5.0)); // 40/8
        assert_eq!(zone_normal_velocity(&d, 8.0), None);
        let faults = delta(&[("pgfault", 100), ("pgmajfault", 3), ("thp_split_page", 2)]);
        assert_eq!((minor_faults(&faults, 1.0), thp_splits(&faults, 1.0)), (Some(97.0), Some(2.0)));
    }

    #[test]
    fn writes_and_stalls_by_hand() {
        let d = delta(&[("nr_vmscan_write", 100), ("pswpout", 30), ("allocstall_dma32", 4), ("allocstall_normal", 6)]);
        assert_eq!(page_writes_file(&d, 1.0), Some(70.0));
        assert_eq!(page_writes_anon(&d, 1.0), Some(30.0));
        assert_eq!(allocation_stalls(&d, 1.0), Some(10.0));
    }

    #[test]
    fn compaction_by_hand() {
        let d = delta(&[
            ("compact_stall", 200),
            ("compact_success", 50),
            ("compact_migrate_scanned", 1_000_000),
            ("compact_free_scanned", 8_000_000),
            ("compact_isolated", 200_000),
            ("pgmigrate_success", 90_000),
            ("pgmigrate_fail", 10_000),
        ]);
        assert_eq!(compaction_efficiency(&d, 1.0), Some(25.0));
        assert_eq!(compaction_scan_efficiency(&d, 1.0), Some(12.5));
        // 7*1e6 + 19*2e5 + 1038*9e4 + 14*1e4 = 7.0e6 + 3.8e6 + 93.42e6 + 0.14e6 = 104.36e6.
        assert_eq!(compaction_cost(&d, 1.0), Some(104.0));
    }
}
