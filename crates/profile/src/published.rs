//! Published figures, and which of them a comparison of a study wants.

use serde::Deserialize;

use crate::{Case, MetricMap, Study};

/// A published table.
#[derive(Clone, Debug, Deserialize)]
pub struct Published {
    /// Where it was published.
    pub source: String,
    /// Its figures.
    pub rows: Vec<PublishedRow>,
}

/// One published figure; in JSON an array of these fields.
#[derive(Clone, Debug, Deserialize)]
pub struct PublishedRow {
    /// Metric, with the number of threads after a hyphen in some tables.
    pub metric: String,
    /// Kernel, as the publication calls it.
    pub variant: String,
    /// Machine, benchmark and settings.
    pub config: String,
    /// The figure.
    pub value: Option<f64>,
    /// Its unit.
    pub unit: String,
    /// The difference as printed, in the publication's own convention.
    pub delta_pct: Option<f64>,
    /// The mark of significance (`*`), if it was printed.
    pub delta_signif: Option<String>,
}

impl Study {
    /// The published figure of `metric` in `case` for a kernel with one of these published names.
    pub fn figure(&self, case: &Case, names: &[String], metric: &MetricMap) -> Option<&PublishedRow> {
        let wanted = |row: &&PublishedRow| {
            names.contains(&row.variant)
                && metric.published.iter().any(|name| is_metric(&row.metric, name))
                && is_config(&row.config, &case.config)
        };
        self.published.iter().flat_map(|table| &table.rows).find(wanted)
    }
}

impl PublishedRow {
    /// The figure; none where the publication has a 0 that says that nothing was measured.
    pub fn value_of(&self, metric: &MetricMap) -> Option<f64> {
        self.value.filter(|value| *value != 0.0 || !metric.zero_is_nothing)
    }

    /// Whether the publication marked its difference as significant.
    pub fn is_significant(&self) -> bool {
        self.delta_signif.as_deref() == Some("*")
    }
}

/// Whether `published` is `name`, with or without a number of threads.
fn is_metric(published: &str, name: &str) -> bool {
    let threads = |rest: &str| rest.strip_prefix('-').is_some_and(|n| n.parse::<u32>().is_ok());
    published.strip_prefix(name).is_some_and(|rest| rest.is_empty() || threads(rest))
}

/// Whether `published` is `config`, with or without words after it.
fn is_config(published: &str, config: &str) -> bool {
    published.strip_prefix(config).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_threads_is_no_part_of_the_metric() {
        assert!(is_metric("Amean fault-base-5", "Amean fault-base"));
        assert!(is_metric("Amean fault-base", "Amean fault-base"));
        assert!(!is_metric("Amean fault-base-odd", "Amean fault-base"));
        assert!(!is_metric("extfrag events, fallback order < 9", "extfrag events"));
    }

    #[test]
    fn words_may_follow_a_configuration() {
        assert!(is_config("skylake1s/default-thp (4 threads)", "skylake1s/default-thp"));
        assert!(!is_config("skylake1s/default-thp-2", "skylake1s/default-thp"));
    }
}
