//! What is drawn over time, and how it is taken from counters.
//!
//! A level is drawn as it is read; of a counter that only grows the rate is drawn. Kernels that count by zone have the zone's name
//! at the end of a counter's (`pgscan_kswapd_normal`, until 4.8): all zones are taken together.

use observe::Series;
use units::PAGE_SIZE;

/// How readings become what is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// A number of pages, drawn in MiB.
    Level,
    /// Events or pages since boot, drawn for each second.
    Rate,
}

/// One chart: a title and the counters that are added up for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Quantity {
    pub(crate) title: String,
    pub(crate) kind: Kind,
    pub(crate) counters: Vec<String>,
}

/// Ends that tell zones apart.
const ZONES: [&str; 6] = ["dma", "dma32", "normal", "high", "movable", "device"];

/// Levels, by what they are called on the page.
const LEVELS: [(&str, &[&str]); 9] = [
    ("Free memory", &["nr_free_pages"]),
    ("Page cache", &["nr_file_pages"]),
    ("Anonymous memory", &["nr_anon_pages"]),
    ("Slab that can be reclaimed", &["nr_slab_reclaimable"]),
    ("Other slab", &["nr_slab_unreclaimable"]),
    ("Page tables", &["nr_page_table_pages"]),
    ("Dirty", &["nr_dirty"]),
    ("Under writeback", &["nr_writeback"]),
    ("Mapped files", &["nr_mapped"]),
];

/// Rates, likewise.
const RATES: [(&str, &[&str]); 22] = [
    ("Page faults", &["pgfault"]),
    ("Major faults", &["pgmajfault"]),
    ("Pages allocated", &["pgalloc"]),
    ("Pages that kswapd scanned", &["pgscan_kswapd"]),
    ("Pages that kswapd reclaimed", &["pgsteal_kswapd"]),
    ("Pages scanned by direct reclaim", &["pgscan_direct"]),
    ("Pages reclaimed by direct reclaim", &["pgsteal_direct"]),
    ("Allocation stalls", &["allocstall"]),
    ("Slab objects scanned", &["slabs_scanned"]),
    ("Refaults", &["workingset_refault", "workingset_refault_anon", "workingset_refault_file"]),
    ("Pages swapped out", &["pswpout"]),
    ("Pages swapped in", &["pswpin"]),
    ("Pages that reclaim wrote", &["nr_vmscan_write"]),
    ("Pages dirtied", &["nr_dirtied"]),
    ("Pages written", &["nr_written"]),
    ("Pages moved", &["pgmigrate_success"]),
    ("Pages that failed to move", &["pgmigrate_fail"]),
    ("Frames that the migrate scanner looked at", &["compact_migrate_scanned"]),
    ("Frames that the free scanner looked at", &["compact_free_scanned"]),
    ("Stalls for compaction", &["compact_stall"]),
    ("Huge pages by fault", &["thp_fault_alloc"]),
    ("Faults that found no huge page", &["thp_fault_fallback"]),
];

/// What is drawn of runs with these series, in the order of the page.
pub(crate) fn quantities<'a>(series: impl Iterator<Item = &'a Series>) -> Vec<Quantity> {
    let fixed = |list: &[(&str, &[&str])], kind| -> Vec<Quantity> {
        let quantity = |(title, counters): &(&str, &[&str])| Quantity {
            title: (*title).to_owned(),
            kind,
            counters: counters.iter().map(|counter| (*counter).to_owned()).collect(),
        };
        list.iter().map(quantity).collect()
    };
    let mut all = fixed(&LEVELS, Kind::Level);
    all.extend(fixed(&RATES, Kind::Rate));
    for column in series.flat_map(Series::columns) {
        let Some((title, kind)) = by_type(column) else { continue };
        let quantity = Quantity { title, kind, counters: vec![column.clone()] };
        if !all.contains(&quantity) {
            all.push(quantity);
        }
    }
    all
}

/// What the twin reads beside the kernel's counters: free pages of a zone by the migratetype of their list
/// (`free_0_normal_movable`), and fragmentation events by the type that was asked for (`extfrag_movable`).
fn by_type(column: &str) -> Option<(String, Kind)> {
    if let Some(migratetype) = column.strip_prefix("extfrag_") {
        return Some((format!("Fragmentation events, {migratetype} requests"), Kind::Rate));
    }
    let mut parts = column.strip_prefix("free_")?.splitn(3, '_');
    let (node, zone, migratetype) = (parts.next()?, parts.next()?, parts.next()?);
    let known = ZONES.contains(&zone) && node.parse::<u32>().is_ok();
    known.then(|| (format!("Free and {migratetype}, node {node}, zone {zone}"), Kind::Level))
}

impl Quantity {
    /// The unit of what is drawn.
    pub(crate) fn unit(&self) -> &'static str {
        match self.kind {
            Kind::Level => "MiB",
            Kind::Rate => "a second",
        }
    }

    /// What is drawn of a series: seconds and values; nothing if it has none of the counters.
    pub(crate) fn points(&self, series: &Series) -> Vec<(f64, f64)> {
        let of_mine = |column: &str| self.counters.iter().any(|counter| is_of(column, counter));
        let wanted: Vec<usize> =
            series.columns().iter().enumerate().filter(|(_, column)| of_mine(column)).map(|(index, _)| index).collect();
        if wanted.is_empty() {
            return Vec::new();
        }
        let sum = |values: &[u64]| wanted.iter().map(|index| values[*index]).sum::<u64>() as f64;
        let readings: Vec<(f64, f64)> =
            series.rows().iter().map(|row| (row.at.as_secs_f64(), sum(&row.values))).collect();
        let step = readings.len().div_ceil(POINTS).max(1);
        match self.kind {
            Kind::Level => readings.chunks(step).map(level).collect(),
            Kind::Rate => rates(&readings, step),
        }
    }
}

/// Points that a line has at most: more than a chart is wide would only make the page larger.
const POINTS: usize = 400;

/// Whether a column is the counter, or a zone's part of it.
fn is_of(column: &str, counter: &str) -> bool {
    let zone = column.strip_prefix(counter).and_then(|end| end.strip_prefix('_'));
    column == counter || zone.is_some_and(|zone| ZONES.contains(&zone))
}

/// The mean of some readings in MiB, where the last of them is.
fn level(readings: &[(f64, f64)]) -> (f64, f64) {
    let pages = readings.iter().map(|(_, pages)| pages).sum::<f64>() / readings.len() as f64;
    (readings[readings.len() - 1].0, pages * PAGE_SIZE as f64 / (1 << 20) as f64)
}

/// Growth for each second from every `step`th reading to the next. A counter that is less than before began anew.
fn rates(readings: &[(f64, f64)], step: usize) -> Vec<(f64, f64)> {
    let ends: Vec<(f64, f64)> = readings.iter().step_by(step).copied().collect();
    let rate = |pair: &[(f64, f64)]| {
        let ((from, before), (to, after)) = (pair[0], pair[1]);
        (to > from).then(|| (to, (after - before).max(0.0) / (to - from)))
    };
    ends.windows(2).filter_map(rate).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use units::Nanos;

    use super::*;

    fn series(columns: &[&str], rows: &[(u64, &[u64])]) -> Series {
        let mut series = Series::new(columns.iter().map(|name| (*name).to_owned()).collect());
        for (second, values) in rows {
            series.push(Nanos::secs(*second), values.to_vec());
        }
        series
    }

    fn quantity(kind: Kind, counter: &str) -> Quantity {
        Quantity { title: String::new(), kind, counters: vec![counter.to_owned()] }
    }

    #[test]
    fn levels_are_mib_and_rates_are_for_a_second() {
        let of = series(&["nr_dirty", "pgfault"], &[(0, &[256, 100]), (2, &[512, 300]), (3, &[512, 300])]);
        assert_eq!(quantity(Kind::Level, "nr_dirty").points(&of), [(0.0, 1.0), (2.0, 2.0), (3.0, 2.0)]);
        assert_eq!(quantity(Kind::Rate, "pgfault").points(&of), [(2.0, 100.0), (3.0, 0.0)]);
    }

    #[test]
    fn zones_are_taken_together_and_other_counters_are_not() {
        let columns = ["pgscan_direct_dma", "pgscan_direct_normal", "pgscan_direct_throttle"];
        let of = series(&columns, &[(0, &[0, 0, 0]), (1, &[3, 4, 50])]);
        assert_eq!(quantity(Kind::Rate, "pgscan_direct").points(&of), [(1.0, 7.0)]);
        assert!(quantity(Kind::Rate, "pgscan_kswapd").points(&of).is_empty());
    }

    #[test]
    fn the_twins_own_columns_have_titles() {
        let of = series(&["free_1_dma32_movable", "extfrag_movable", "free_list"], &[]);
        let titles: Vec<String> = quantities([&of].into_iter()).into_iter().map(|quantity| quantity.title).collect();
        assert!(titles.contains(&"Free and movable, node 1, zone dma32".to_owned()), "{titles:?}");
        assert!(titles.contains(&"Fragmentation events, movable requests".to_owned()), "{titles:?}");
        assert_eq!(titles.len(), LEVELS.len() + RATES.len() + 2);
    }

    #[test]
    fn a_counter_that_begins_anew_has_no_negative_rate() {
        let of = series(&["pgfault"], &[(0, &[100]), (1, &[40]), (2, &[60])]);
        assert_eq!(quantity(Kind::Rate, "pgfault").points(&of), [(1.0, 0.0), (2.0, 20.0)]);
    }

    proptest! {
        /// However many readings there are, a line is short, and the rates add up to what was counted between its ends.
        #[test]
        fn long_series_are_thinned_without_losing_counts(growth in prop::collection::vec(0_u64..1000, 2..3000)) {
            let mut of = Series::new(vec!["pgfault".to_owned()]);
            let mut counted = 0;
            for (second, more) in growth.iter().enumerate() {
                counted += more;
                of.push(Nanos::secs(second as u64), vec![counted]);
            }
            let points = quantity(Kind::Rate, "pgfault").points(&of);
            prop_assert!(points.len() <= POINTS);
            let step = growth.len().div_ceil(POINTS);
            let last = (growth.len() - 1) / step * step;
            let between: u64 = growth[1..=last].iter().sum();
            let drawn: f64 = points.iter().map(|(_, rate)| rate * step as f64).sum();
            prop_assert!((drawn - between as f64).abs() < 1e-6 * (1.0 + drawn), "{drawn} {between}");
        }
    }
}
