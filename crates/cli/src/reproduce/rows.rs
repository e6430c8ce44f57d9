//! The rows of a study: what is published of an effect, and what the twin's runs say of it.

use compare::Direction;
use observe::Metric;
use profile::{Case, Comparison, MetricMap, Study, Take};
use report::{Effect, Row, TwinEffect};

/// A row for each case, comparison and metric of which both kernels have run and, if the metric has published names, of
/// which a figure is published. `runs` gives the metrics of each run of a case (by its number) under a kernel (by its number).
pub(super) fn rows<'a>(study: &Study, runs: impl Fn(usize, usize) -> Vec<&'a [Metric]>) -> Vec<Row> {
    let mut rows = Vec::new();
    for (number, case) in study.cases.iter().enumerate() {
        for comparison in &study.comparisons {
            let of_kernel = |name: &str| {
                let kernel = study.kernels.get_index_of(name).expect("checked when loaded");
                runs(number, kernel)
            };
            let (baseline, variant) =
                (of_kernel(comparison.baseline_kernel.get_ref()), of_kernel(comparison.variant_kernel.get_ref()));
            if baseline.is_empty() || variant.is_empty() {
                continue;
            }
            let [of_baseline, of_variant] = [&comparison.baseline_part, &comparison.variant_part].map(Option::as_deref);
            for metric in comparison.metrics(study) {
                let Some((mut row, significant)) = published(study, case, comparison, metric) else { continue };
                let baseline = values(metric, of_baseline, &baseline);
                row.set_twin(&baseline, &values(metric, of_variant, &variant), significant);
                rows.push(row);
            }
        }
    }
    rows
}

/// The row without the twin's figures, and whether the publication marked it; nothing if the metric has published names and
/// no figure of this.
fn published(study: &Study, case: &Case, comparison: &Comparison, metric: &MetricMap) -> Option<(Row, bool)> {
    let [baseline, variant] =
        [&comparison.baseline, &comparison.variant].map(|names| study.figure(case, names, metric));
    let expected = !study.published.is_empty() && !metric.published.is_empty();
    if baseline.or(variant).is_none() && expected {
        return None;
    }
    let [of_baseline, of_variant] = [baseline, variant].map(|figure| figure.and_then(|row| row.value_of(metric)));
    let row = Row {
        table: comparison.title.clone(),
        config: case.config.clone(),
        metric: metric.name.clone(),
        unit: metric.unit.clone(),
        better: metric.better,
        baseline: side(comparison.baseline_kernel.get_ref(), comparison.baseline_part.as_deref()),
        variant: side(comparison.variant_kernel.get_ref(), comparison.variant_part.as_deref()),
        published: Effect::of(of_baseline, of_variant),
        twin: TwinEffect::default(),
        difference_points: None,
        direction: Direction::None,
    };
    Some((row, variant.is_some_and(|figure| figure.is_significant())))
}

/// A kernel, and the part of its run.
fn side(kernel: &str, part: Option<&str>) -> String {
    part.map_or_else(|| kernel.to_owned(), |part| format!("{kernel} {part}"))
}

/// What is taken of the runs that have samples.
fn values(metric: &MetricMap, part: Option<&str>, runs: &[&[Metric]]) -> Vec<f64> {
    let name = metric.of_part(part);
    metric.across.of(runs.iter().filter_map(|metrics| value(metric, &name, metrics)).collect())
}

fn value(metric: &MetricMap, name: &str, metrics: &[Metric]) -> Option<f64> {
    let samples = &metrics.iter().find(|m| m.name == name)?.samples;
    match metric.take {
        Take::Mean => compare::mean(samples),
        Take::Min => samples.iter().copied().reduce(f64::min),
        Take::Total => samples.iter().copied().reduce(|a, b| a + b),
        Take::Stddev => compare::sd(samples),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULT_THP: &str = "skylake1s/thpfioscale-xfs/default-thp";

    /// Two runs of each kernel; kernel 0 has 100 and 200 events, kernel 1 has 50 and 100, kernel 2 has 10 and 20.
    fn runs() -> Vec<Vec<Vec<Metric>>> {
        let run = |events: f64, huge: &[f64]| {
            let mut metrics = vec![Metric::new("extfrag_events", vec![events])];
            metrics.push(Metric::new("fault_base_us", vec![1.0, 2.0, 6.0]));
            if !huge.is_empty() {
                metrics.push(Metric::new("fault_huge_us", huge.to_vec()));
            }
            metrics
        };
        let kernel = |events: f64, huge: &[f64]| vec![run(events, huge), run(events * 2.0, huge)];
        vec![kernel(100.0, &[]), kernel(50.0, &[]), kernel(10.0, &[4.0, 8.0])]
    }

    fn table(available: impl Fn(usize, usize) -> bool) -> Vec<Row> {
        let (study, runs) = (Study::load("watermark-boost").unwrap(), runs());
        rows(&study, |case, kernel| {
            runs[kernel].iter().filter(|_| available(case, kernel)).map(Vec::as_slice).collect()
        })
    }

    fn find<'a>(rows: &'a [Row], variant: &str, baseline: &str, metric: &str) -> &'a Row {
        let wanted = |row: &&Row| {
            row.config == DEFAULT_THP && row.variant == variant && row.baseline == baseline && row.metric == metric
        };
        rows.iter().find(wanted).unwrap()
    }

    #[test]
    fn published_and_twin_stand_in_one_row() {
        let rows = table(|_, _| true);
        let row = find(&rows, "boost-v5r8", "4.20-rc3", "extfrag events");
        assert_eq!((row.published.baseline, row.published.variant), (Some(804_694.0), Some(18_421.0)));
        // Means 150 and 15: -90 %.
        assert_eq!((row.twin.baseline, row.twin.variant, row.twin.effect_pct), (Some(150.0), Some(15.0), Some(-90.0)));
        assert_eq!(row.direction, Direction::Agrees);
    }

    #[test]
    fn means_and_minima_are_taken_in_each_run() {
        let rows = table(|_, _| true);
        let mean = find(&rows, "boost-v5r8", "lowzone-v5r8", "Amean fault-base");
        assert_eq!((mean.twin.baseline, mean.published.baseline), (Some(3.0), Some(653.58)));
        let wanted = |row: &&Row| row.metric == "Min fault-base";
        let min = rows.iter().find(wanted).unwrap();
        assert_eq!((min.twin.baseline, min.published.variant), (Some(1.0), Some(905.0)));
    }

    #[test]
    fn faults_that_did_not_happen_are_null_on_both_sides() {
        let rows = table(|_, _| true);
        let row = find(&rows, "boost-v5r8", "lowzone-v5r8", "Amean fault-huge");
        assert_eq!((row.published.baseline, row.published.variant), (None, Some(178.93)));
        assert_eq!((row.twin.baseline, row.twin.variant), (None, Some(6.0)));
        assert_eq!(row.direction, Direction::None);
    }

    #[test]
    fn there_is_a_row_for_what_is_published_and_for_nothing_else() {
        let rows = table(|_, _| true);
        // Patch 1: extfrag events in 4 cases, by type in 1, base faults in 4, huge faults and the share in 3 each.
        // Patches 1-4: events in 4. Boost against lowzone: 2 minima in 1 case, 2 means and the share in 4.
        assert_eq!(rows.len(), (4 + 3 + 4 + 3 + 3) + 4 + (2 + 3 * 4));
        assert!(rows.iter().all(|row| row.published.baseline.or(row.published.variant).is_some()));
    }

    #[test]
    fn parts_of_runs_are_compared_and_extremes_taken_across_runs() {
        let study = Study::load("compaction-pivot").unwrap();
        // Two runs of each kernel; the first tries of run 1 succeed for 20 and 40 %, or 50 and 60 %.
        let run = |success: f64| vec![Metric::new("alloc_success_pct/run-1/phase-1", vec![success])];
        let runs = [vec![run(20.0), run(40.0)], vec![run(50.0), run(60.0)]];
        let rows = rows(&study, |_, kernel| runs[kernel].iter().map(Vec::as_slice).collect());
        let find = |metric: &str| rows.iter().find(|row| row.metric == metric).unwrap();
        let [min, mean, max] = ["Success 1 Min", "Success 1 Mean", "Success 1 Max"].map(find);
        assert_eq!((mean.baseline.as_str(), mean.variant.as_str()), ("3.19-rc4 run-1", "pivot run-1"));
        assert_eq!((mean.published.baseline, mean.published.variant), (Some(36.2), Some(51.0)));
        assert_eq!((min.twin.baseline, mean.twin.baseline, max.twin.baseline), (Some(20.0), Some(30.0), Some(40.0)));
        assert_eq!((min.twin.variant, mean.twin.variant, max.twin.variant), (Some(50.0), Some(55.0), Some(60.0)));
        // Three ages of all 58 rows, and two later ages of each kernel against its first for the 9 rates.
        assert_eq!(rows.len(), 3 * 58 + 4 * 9);
    }

    #[test]
    fn rows_of_kernels_that_did_not_run_are_left_out() {
        let rows = table(|case, kernel| case == 0 && kernel != 1);
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].config.as_str(), rows[0].table.as_str()), (DEFAULT_THP, "patches 1-4 against vanilla"));
        assert!(table(|_, _| false).is_empty());
    }
}
