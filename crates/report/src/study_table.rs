//! A study's published and twin figures beside each other, grouped by table and configuration.

use comfy_table::{Cell, ColumnConstraint, Table, Width};
use compare::{Direction, PUBLISHED_NOISE_PCT};

use crate::number::{NOTHING, format_effect, format_number};
use crate::table::{arrow, plain_table, right};
use crate::{CaseReport, Row, StudyReport};

/// Columns from which on there is room for whole words in the heads.
const WIDE: u16 = 112;

/// The study as text, `width` terminal columns wide at most: a table for each configuration, and what one must know to
/// read it.
pub fn study_table(report: &StudyReport, width: u16) -> String {
    let mut out = head(report);
    let labels = report.rows.iter().map(|row| label(row).chars().count());
    let label_width = if width < WIDE { 0 } else { labels.max().unwrap_or(0) as u16 };
    for case in &report.cases {
        let rows: Vec<&Row> = report.rows.iter().filter(|row| row.config == case.config).collect();
        if !rows.is_empty() {
            out.push_str(&format!("\n{}\n{}\n", case_head(case), case_table(&rows, width, label_width).trim_fmt()));
        }
    }
    let mut notes = foot(&report.rows);
    notes.extend(remarks(report));
    out + "\n" + &wrapped(&notes, width)
}

fn head(report: &StudyReport) -> String {
    let StudyReport { study, title, scale, seed, iterations, frames, bytes_per_frame, virtual_s, .. } = report;
    let times = if *iterations == 1 { "1 iteration".to_owned() } else { format!("{iterations} iterations") };
    let wall = report.wall_s.map_or(String::new(), |wall_s| format!(" in {wall_s:.1} s"));
    let mib = *frames as f64 * bytes_per_frame / f64::from(1 << 20);
    let title = if title.is_empty() { String::new() } else { format!(": {title}") };
    format!(
        "{study}{title}\n\
         {scale}; {times}, seed {seed}: {virtual_s:.0} s of virtual time{wall}\n\
         {frames} page frames at {bytes_per_frame:.1} B of host memory each, everything counted, at the peak: {mib:.0} MiB\n"
    )
}

fn case_head(case: &CaseReport) -> String {
    let (shift, unit) = if case.memory_bytes < 1 << 30 { (20, "MiB") } else { (30, "GiB") };
    let memory = format_number(Some(case.memory_bytes as f64 / f64::from(1 << shift)));
    format!("{}: {} CPUs, {memory} {unit} ({})", case.title, case.cpus, case.config)
}

fn case_table(rows: &[&Row], width: u16, label_width: u16) -> Table {
    let mut table = plain_table(width);
    let (published, baseline, interval) =
        if width < WIDE { ("publ.", "base", "") } else { ("published", "baseline", " [95 %]") };
    let heads = [
        format!("{published}\n{baseline}"),
        format!("{published}\nvariant"),
        format!("{published}\neffect"),
        format!("twin\n{baseline}"),
        "twin\nvariant".to_owned(),
        format!("twin\neffect{interval}"),
        "diff.\npoints".to_owned(),
        String::new(),
    ];
    table.set_header([Cell::new("metric")].into_iter().chain(heads.iter().map(|head| right(head))));
    let mut pair: Option<(&str, &str)> = None;
    for row in rows {
        let this_pair = (row.baseline.as_str(), row.variant.as_str());
        if pair.replace(this_pair) != Some(this_pair) {
            table.add_row([format!("{} → {}", row.baseline, row.variant)]);
        }
        table.add_row(cells(row));
    }
    // As wide in every table, so that one reads them as one; with a column of space on each side.
    let labels = table.column_mut(0).expect("the column of the metrics");
    labels.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(label_width + 2)));
    table
}

/// A metric with its unit and better-direction.
fn label(row: &Row) -> String {
    // "extfrag events" need no unit beside their name.
    let unit = if row.metric.contains(&row.unit) { String::new() } else { format!(" {}", row.unit) };
    format!("  {}{unit}{}", row.metric, arrow(row.better))
}

fn cells(row: &Row) -> Vec<Cell> {
    let figures = [
        format_number(row.published.baseline),
        format_number(row.published.variant),
        format_effect(row.published.effect_pct),
        format_number(row.twin.baseline),
        format_number(row.twin.variant),
        twin_effect(row),
        row.difference_points.map_or(NOTHING.to_owned(), |points| format!("{points:+.1}")),
        mark(row.direction).to_owned(),
    ];
    [Cell::new(label(row))].into_iter().chain(figures.iter().map(|figure| right(figure))).collect()
}

/// The twin's effect and its interval.
fn twin_effect(row: &Row) -> String {
    let effect = format_effect(row.twin.effect_pct);
    match row.twin.ci95_pct {
        Some(ci) => format!("{effect} [{:+.1}, {:+.1}]", ci.lo, ci.hi),
        None => effect,
    }
}

fn mark(direction: Direction) -> &'static str {
    match direction {
        Direction::Agrees => "✓",
        Direction::Disagrees => "✗",
        Direction::None => "·",
    }
}

/// How to read the tables, and how often the directions agree.
fn foot(rows: &[Row]) -> Vec<String> {
    let count = |wanted| rows.iter().filter(|row| row.direction == wanted).count();
    let [agree, disagree, none] = [Direction::Agrees, Direction::Disagrees, Direction::None].map(count);
    let legend = "effect: (variant - baseline) / baseline; diff.: the twin's effect minus the published one, in percentage \
                  points; ↓ ↑: which way is better; -: nothing measured, or the baseline is 0.";
    let verdict = format!(
        "direction of the effect: {agree} ✓ agree, {disagree} ✗ disagree, {none} · have none to compare (published below \
         {PUBLISHED_NOISE_PCT} % and not marked significant, or not there)."
    );
    vec![legend.to_owned(), verdict]
}

/// What the reader must know beside the figures.
fn remarks(report: &StudyReport) -> Vec<String> {
    let mut out = Vec::new();
    if report.runs_missing > 0 {
        out.push(format!("INCOMPLETE: {} runs are missing from these figures.", report.runs_missing));
    }
    for (head, lines) in [
        ("Notes", &report.notes),
        ("How much the results depend on what is not published", &report.sensitivity),
        ("Left out of the model", &report.omitted),
    ] {
        if !lines.is_empty() {
            out.push(format!("{head}:"));
        }
        out.extend(lines.iter().map(|line| format!("  - {line}")));
    }
    out
}

/// Lines broken at `width`; those of a list go on under their text.
fn wrapped(lines: &[String], width: u16) -> String {
    let wrap = |line: &String| {
        let indent = if line.starts_with("  - ") { "    " } else { "" };
        textwrap::fill(line, textwrap::Options::new(width.into()).subsequent_indent(indent)) + "\n"
    };
    lines.iter().map(wrap).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::tests::{report, row};

    #[test]
    fn both_sides_stand_in_one_line() {
        let text = study_table(&report(vec![row()]), 120);
        let line = text.lines().find(|line| line.contains("extfrag events")).unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        let expected =
            ["extfrag", "events", "↓", "200", "50", "-75.0%", "100", "20", "-80.0%", "[-80.0,", "-80.0]", "-5.0", "✓"];
        assert_eq!(words, expected);
        assert!(text.contains("4.20-rc3 → boost"), "{text}");
        assert!(text.contains("1 ✓ agree, 0 ✗ disagree, 0 · have none"), "{text}");
    }

    #[test]
    fn there_is_a_table_for_each_configuration_that_has_rows() {
        let (mut other, mut missing) = (row(), row());
        other.config = "haswell2s".into();
        missing.metric = "fault-huge".into();
        missing.set_twin(&[], &[], false);
        let text = study_table(&report(vec![row(), other, missing.clone()]), 120);
        let (first, second) = text.split_once("Haswell: 8 CPUs, 4 GiB (haswell2s)\n").unwrap();
        assert!(first.contains("\nSkylake: 8 CPUs, 4 GiB (skylake1s default-thp)\n"), "{text}");
        assert!(first.contains("fault-huge events") && !second.contains("fault-huge"), "{text}");
        assert!(!study_table(&report(vec![missing]), 120).contains("Haswell"));
    }

    #[test]
    fn its_head_says_how_it_ran() {
        let mut report = report(vec![row()]);
        report.wall_s = Some(1.25);
        let expected = "watermark-boost: A title\nquick; 2 iterations, seed 1: 60 s of virtual time in 1.2 s\n\
                        1024 page frames at 24.0 B of host memory each";
        assert!(study_table(&report, 120).starts_with(expected), "{}", study_table(&report, 120));
        report.title = String::new();
        let untitled = expected.replace(": A title", "");
        assert!(study_table(&report, 120).starts_with(&untitled), "{}", study_table(&report, 120));
    }

    #[test]
    fn remarks_stand_below_and_only_if_there_are_any() {
        let mut report = report(vec![row()]);
        assert!(study_table(&report, 120).ends_with("or not there).\n"));
        report.runs_missing = 2;
        report.omitted = vec!["psi".into()];
        report.sensitivity = vec!["RAM".into()];
        let expected = "INCOMPLETE: 2 runs are missing from these figures.\n\
                        How much the results depend on what is not published:\n  - RAM\nLeft out of the model:\n  - psi\n";
        assert!(study_table(&report, 120).ends_with(expected));
    }

    #[test]
    fn it_keeps_to_its_width() {
        let mut report = report(vec![row()]);
        report.notes = vec!["word ".repeat(50)];
        for width in [80, 100] {
            let text = study_table(&report, width);
            let (_, below) = text.split_once("default-thp)\n").unwrap();
            assert!(below.lines().all(|line| line.chars().count() <= usize::from(width)), "{text}");
        }
    }
}
