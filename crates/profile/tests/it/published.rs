//! Published figures: each is found by the comparison that wants it, and by no other.

use profile::{PublishedRow, Study};

/// Variants that no comparison of the study wants: patch 5 was dropped before mainline.
const UNWANTED: &str = "patches 1-5 (stall; v5 of the series, dropped before mainline)";

/// How many times the comparisons of the study find each published row.
fn uses(study: &Study) -> Vec<(&PublishedRow, usize)> {
    let rows = study.published.iter().flat_map(|table| &table.rows);
    let mut uses: Vec<(&PublishedRow, usize)> = rows.map(|row| (row, 0)).collect();
    for comparison in &study.comparisons {
        for case in &study.cases {
            for metric in comparison.metrics.iter().map(|name| study.metric(name.get_ref()).unwrap()) {
                for names in [&comparison.baseline, &comparison.variant] {
                    let Some(found) = study.figure(case, names, metric) else { continue };
                    uses.iter_mut().find(|(row, _)| std::ptr::eq(*row, found)).unwrap().1 += 1;
                }
            }
        }
    }
    uses
}

#[test]
fn every_published_row_of_watermark_boost_is_found() {
    let study = Study::load("watermark-boost").unwrap();
    let uses = uses(&study);
    for (row, count) in uses {
        // Vanilla's extfrag events are the baseline of patch 1 and of patches 1 to 4.
        let expected = match (row.variant.as_str(), row.metric.as_str()) {
            (UNWANTED, _) => 0,
            ("4.20-rc3", "extfrag events, fallback order < 9") => 2,
            _ => 1,
        };
        assert_eq!(count, expected, "{row:?}");
    }
}

#[test]
fn a_latency_of_zero_says_that_there_was_no_such_fault() {
    let study = Study::load("watermark-boost").unwrap();
    let figure = |metric: &str| {
        let metric = study.metric(metric).unwrap();
        let names = ["lowzone-v5r8 (patches 1-3)".to_string()];
        let row = study.figure(&study.cases[0], &names, metric).unwrap();
        (row.value, row.value_of(metric))
    };
    assert_eq!(figure("Amean fault-huge"), (Some(0.0), None));
    assert_eq!(figure("Percentage huge"), (Some(0.0), Some(0.0)));
}

#[test]
fn significance_is_what_the_publication_marked() {
    let study = Study::load("watermark-boost").unwrap();
    let metric = study.metric("Amean fault-huge").unwrap();
    let names = ["boost-v5r8 (patches 1-4)".to_string()];
    let marks: Vec<bool> =
        study.cases.iter().map(|case| study.figure(case, &names, metric).unwrap().is_significant()).collect();
    assert_eq!(marks, [true, true, false, false]);
}
