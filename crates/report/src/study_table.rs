//! A study's published and twin figures beside each other, grouped by table and configuration.

use comfy_table::{Cell, Table};
use compare::Direction;
use indexmap::IndexMap;

use crate::number::{NOTHING, format_effect, format_number};
use crate::table::{arrow, plain_table, right};
use crate::{Row, StudyReport};

/// The study as text, `width` terminal columns wide at most.
pub fn study_table(report: &StudyReport, width: u16) -> String {
    let mut groups: IndexMap<(&str, &str), Vec<&Row>> = IndexMap::new();
    for row in &report.rows {
        groups.entry((&row.table, &row.config)).or_default().push(row);
    }
    let mut out = head(report);
    for ((table, config), rows) in groups {
        out.push_str(&format!("\n{table}: {config}\n{}\n", group_table(&rows, width).trim_fmt()));
    }
    out + "\n" + &foot(&report.rows)
}

fn head(report: &StudyReport) -> String {
    let StudyReport { study, quick, iterations, frames, bytes_per_frame, .. } = report;
    let scale = if *quick { "reduced scale" } else { "full scale" };
    let (virtual_s, wall_s) = (report.virtual_s, report.wall_s);
    format!(
        "{study}, {scale}: {iterations} iterations, {frames} frames at {bytes_per_frame:.1} B, \
         {virtual_s:.0} s of virtual time in {wall_s:.1} s\n"
    )
}

fn group_table(rows: &[&Row], width: u16) -> Table {
    let mut table = plain_table(width);
    let heads = [
        "published\nbaseline",
        "published\nvariant",
        "published\neffect",
        "twin\nbaseline",
        "twin\nvariant",
        "twin effect\n[95 %]",
        "diff.\npoints",
        "dir.",
    ];
    table.set_header([Cell::new("metric")].into_iter().chain(heads.map(right)));
    let mut pair: Option<(&str, &str)> = None;
    for row in rows {
        let this_pair = (row.baseline.as_str(), row.variant.as_str());
        if pair.replace(this_pair) != Some(this_pair) {
            table.add_row([format!("{} → {}", row.baseline, row.variant)]);
        }
        table.add_row(cells(row));
    }
    table
}

fn cells(row: &Row) -> Vec<Cell> {
    let metric = format!("{} {}{}", row.metric, row.unit, arrow(row.better));
    let figures = [
        format_number(row.published.baseline),
        format_number(row.published.variant),
        format_effect(row.published.effect_pct),
        format_number(row.twin.baseline),
        format_number(row.twin.variant),
        twin_effect(row),
        row.difference_points().map_or(NOTHING.to_owned(), |points| format!("{points:+.1}")),
        mark(row.direction).to_owned(),
    ];
    [Cell::new(metric)].into_iter().chain(figures.iter().map(|figure| right(figure))).collect()
}

/// The twin's effect, with its interval below it.
fn twin_effect(row: &Row) -> String {
    let effect = format_effect(row.twin.effect_pct);
    match row.twin.ci95_pct {
        Some(ci) => format!("{effect}\n[{:+.1}, {:+.1}]", ci.lo, ci.hi),
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

fn foot(rows: &[Row]) -> String {
    let count = |wanted| rows.iter().filter(|row| row.direction == wanted).count();
    format!(
        "direction: {} ✓ agree, {} ✗ disagree, {} · nothing to compare. Effects are (variant - baseline) / baseline.\n",
        count(Direction::Agrees),
        count(Direction::Disagrees),
        count(Direction::None),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::tests::row;

    fn report(rows: Vec<Row>) -> StudyReport {
        StudyReport {
            study: "watermark-boost".into(),
            quick: true,
            wall_s: 1.5,
            virtual_s: 60.0,
            iterations: 2,
            frames: 1024,
            bytes_per_frame: 24.0,
            rows,
        }
    }

    #[test]
    fn both_sides_stand_in_one_line() {
        let text = study_table(&report(vec![row()]), 120);
        let line = text.lines().find(|line| line.contains("extfrag events")).unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        let expected = ["200", "50", "-75.0%", "100", "20", "-80.0%", "-5.0", "✓"];
        assert_eq!(words[4..], expected);
        assert!(text.contains("[-80.0, -80.0]"), "{text}");
        assert!(text.contains("4.20-rc3 → boost"), "{text}");
        assert!(text.contains("1 ✓ agree, 0 ✗ disagree, 0 · nothing"), "{text}");
    }

    #[test]
    fn rows_are_grouped_by_table_and_configuration() {
        let (mut other, mut missing) = (row(), row());
        other.config = "haswell2s".into();
        missing.metric = "fault-huge".into();
        missing.set_twin(&[], &[], false);
        let text = study_table(&report(vec![row(), other, missing]), 120);
        assert_eq!(text.matches("extfrag: skylake1s default-thp").count(), 1);
        assert_eq!(text.matches("extfrag: haswell2s").count(), 1);
        let (first, second) = text.split_once("extfrag: haswell2s").unwrap();
        assert!(first.contains("fault-huge") && !second.contains("fault-huge"), "{text}");
        assert!(first.lines().any(|line| line.contains("fault-huge") && line.contains('·')));
    }

    #[test]
    fn it_keeps_to_its_width() {
        let text = study_table(&report(vec![row()]), 100);
        let table = text.split_once("default-thp\n").unwrap().1.split_once("\n\n").unwrap().0;
        assert!(table.lines().all(|line| line.chars().count() <= 100), "{text}");
    }
}
