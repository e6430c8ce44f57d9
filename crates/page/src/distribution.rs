//! Metrics of which a run has many samples, as latencies are: their percentiles.

use compare::percentile;
use observe::Metric;

use crate::chart::{Chart, Line};

/// Samples from which on a run's percentiles say something.
const SAMPLES_MIN: usize = 20;

/// Charts of the metrics that have enough samples in some run, in the order in which they first appear; `runs` are the metrics
/// of each run with its column.
pub(crate) fn charts(runs: &[(usize, &[Metric])]) -> Vec<Chart> {
    let mut charts: Vec<Chart> = Vec::new();
    for (column, metrics) in runs {
        for metric in metrics.iter().filter(|metric| metric.samples.len() >= SAMPLES_MIN) {
            let line = Line { column: *column, points: percentiles(&metric.samples) };
            match charts.iter_mut().find(|chart| chart.title == metric.name) {
                Some(chart) => chart.lines.push(line),
                None => charts.push(Chart {
                    title: metric.name.clone(),
                    x_unit: "percent of the samples that are no larger",
                    y_unit: metric.unit.clone(),
                    lines: vec![line],
                }),
            }
        }
    }
    charts
}

fn percentiles(samples: &[f64]) -> Vec<(f64, f64)> {
    // Each percentile sorts, which is quick for what is sorted.
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    (0..=100).map(f64::from).filter_map(|pct| Some((pct, percentile(&sorted, pct)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_metrics_with_many_samples_are_drawn_a_line_for_each_run() {
        let many = Metric::new("fault_base_us", (1..=101).map(f64::from).collect());
        let few = Metric::new("elapsed_s", vec![1.0]);
        let metrics = [few, many];
        let charts = charts(&[(0, &metrics), (1, &metrics[..1]), (1, &metrics)]);
        assert_eq!(charts.len(), 1);
        assert_eq!((charts[0].title.as_str(), charts[0].y_unit.as_str()), ("fault_base_us", "us"));
        assert_eq!(charts[0].lines.iter().map(|line| line.column).collect::<Vec<_>>(), [0, 1]);
        // Of 1 to 101 the median is 51, and each percent one more.
        assert_eq!(charts[0].lines[0].points[50], (50.0, 51.0));
        assert_eq!(charts[0].lines[0].points[100], (100.0, 101.0));
    }
}
