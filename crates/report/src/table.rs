//! Runs side by side, as mmtests' compare prints them: a row per metric, a column per kernel, the first the baseline.

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, TableComponent, presets};
use compare::{Better, Comparison, Summary, Verdict};
use indexmap::IndexMap;
use observe::Metric;

use crate::number::{NOTHING, format_effect, format_number};

/// One column: a kernel (or a run) with the metrics of all its iterations.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Column {
    /// What stands in its head.
    pub name: String,
    /// Its metrics; those of the same name (from several iterations) are taken together.
    pub metrics: Vec<Metric>,
}

/// What the cells of a comparison mean.
pub const LEGEND: &str = "mean ±95 % interval (change against the first column); * Welch p < 0.05";

/// A metric, as it stands in every column.
#[derive(Clone, PartialEq, Debug)]
pub struct ComparisonRow {
    /// Its name, unit and better-direction.
    pub label: String,
    /// One for each column, in their order.
    pub cells: Vec<ComparisonCell>,
}

/// What a column has of a metric.
#[derive(Clone, PartialEq, Debug)]
pub struct ComparisonCell {
    /// Mean and interval, and the change against the first column.
    pub text: String,
    /// What the change comes to.
    pub verdict: Verdict,
}

/// The metrics of `columns`, in the order in which they first appear, and the names of those that are 0 in every run.
pub fn comparison_rows(columns: &[Column]) -> (Vec<ComparisonRow>, Vec<String>) {
    let groups: Vec<IndexMap<&str, Group<'_>>> = columns.iter().map(group).collect();
    let mut names: IndexMap<&str, &Group<'_>> = IndexMap::new();
    for (name, group) in groups.iter().flatten() {
        names.entry(name).or_insert(group);
    }
    let is_zero = |name: &str| groups.iter().filter_map(|column| column.get(name)).all(Group::is_zero);
    let (zeros, names): (Vec<_>, Vec<_>) = names.into_iter().partition(|(name, _)| is_zero(name));
    let row = |(name, first): (&str, &Group<'_>)| {
        let baseline = groups.first().and_then(|column| column.get(name));
        let cell = |(index, column): (usize, &IndexMap<&str, Group<'_>>)| match column.get(name) {
            Some(group) if index > 0 => compared(baseline, group, first.better),
            Some(group) => unjudged(mean_and_interval(&Summary::of(&group.samples))),
            None => unjudged(NOTHING.to_owned()),
        };
        let label = format!("{name} {}{}", first.unit, arrow(first.better));
        ComparisonRow { label, cells: groups.iter().enumerate().map(cell).collect() }
    };
    (names.into_iter().map(row).collect(), zeros.into_iter().map(|(name, _)| name.to_owned()).collect())
}

/// The table of `columns`, `width` terminal columns wide at most, with a legend under it. Metrics that are 0 in every run
/// are only named.
pub fn comparison_table(columns: &[Column], width: u16) -> String {
    let (rows, zeros) = comparison_rows(columns);
    let mut table = plain_table(width);
    let heads = columns.iter().map(|column| right(&column.name));
    table.set_header([Cell::new("metric")].into_iter().chain(heads));
    for row in rows {
        let cells = row.cells.iter().map(|cell| right(&cell.text));
        table.add_row([Cell::new(&row.label)].into_iter().chain(cells));
    }
    let mut out = format!("{}\n{LEGEND}\n", table.trim_fmt());
    if !zeros.is_empty() {
        out.push_str(&textwrap::fill(&format!("0 in every run: {}", zeros.join(", ")), usize::from(width)));
        out.push('\n');
    }
    out
}

/// A list: a line of words for each of `rows` below `heads`, `width` terminal columns wide at most.
pub fn list_table(heads: &[&str], rows: &[Vec<String>], width: u16) -> String {
    let mut table = plain_table(width);
    table.set_header(heads);
    table.add_rows(rows);
    format!("{}\n", table.trim_fmt())
}

/// The samples of one metric of one column.
struct Group<'a> {
    unit: &'a str,
    better: Better,
    samples: Vec<f64>,
}

impl Group<'_> {
    fn is_zero(&self) -> bool {
        self.samples.iter().all(|sample| *sample == 0.0)
    }
}

fn group(column: &Column) -> IndexMap<&str, Group<'_>> {
    let mut groups: IndexMap<&str, Group<'_>> = IndexMap::new();
    for metric in &column.metrics {
        let group = groups.entry(metric.name.as_str()).or_insert_with(|| Group {
            unit: &metric.unit,
            better: metric.better,
            samples: Vec::new(),
        });
        group.samples.extend(&metric.samples);
    }
    groups
}

fn unjudged(text: String) -> ComparisonCell {
    ComparisonCell { text, verdict: Verdict::NoVerdict }
}

fn compared(baseline: Option<&Group<'_>>, group: &Group<'_>, better: Better) -> ComparisonCell {
    let baseline = baseline.map_or(&[][..], |baseline| &baseline.samples);
    let comparison = Comparison::of(baseline, &group.samples, better);
    let mark = if comparison.significant() { "*" } else { "" };
    let mean = mean_and_interval(&comparison.variant);
    let text = format!("{mean} ({}{mark})", format_effect(comparison.effect_pct));
    ComparisonCell { text, verdict: comparison.verdict }
}

fn mean_and_interval(summary: &Summary) -> String {
    let mean = format_number(summary.mean);
    match summary.ci95 {
        Some(interval) => format!("{mean} ±{}", format_number(Some(interval.half_width()))),
        None => mean,
    }
}

/// Which way is better, after a unit.
pub(crate) fn arrow(better: Better) -> &'static str {
    match better {
        Better::Higher => " ↑",
        Better::Lower => " ↓",
        Better::None => "",
    }
}

/// A cell whose text stands on the right.
pub(crate) fn right(text: &str) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

/// A table with lines only under its head, that wraps cells rather than exceed `width`.
pub(crate) fn plain_table(width: u16) -> Table {
    let mut table = Table::new();
    table
        .load_preset(presets::UTF8_HORIZONTAL_ONLY)
        .remove_style(TableComponent::HorizontalLines)
        .remove_style(TableComponent::MiddleIntersections)
        .remove_style(TableComponent::VerticalLines)
        .remove_style(TableComponent::MiddleHeaderIntersections)
        .remove_style(TableComponent::TopBorderIntersections)
        .remove_style(TableComponent::TopBorder)
        .remove_style(TableComponent::BottomBorder)
        .remove_style(TableComponent::BottomBorderIntersections)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(width)
        .force_no_tty();
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, samples: &[f64]) -> Column {
        let mut metrics: Vec<Metric> = samples.iter().map(|&x| Metric::new("files_per_s", vec![x])).collect();
        metrics.push(Metric::new("elapsed_s", vec![50.0]));
        Column { name: name.to_owned(), metrics }
    }

    fn rows(table: &str) -> Vec<Vec<&str>> {
        table.lines().map(|line| line.split_whitespace().collect()).collect()
    }

    #[test]
    fn cells_have_mean_interval_change_and_mark() {
        // 10, 11, 12: mean 11, sd 1, half width 4.302653/sqrt(3) = 2.484. 20, 21, 22: +10/11 = +90.9 %, p = 0.0003.
        let table = comparison_table(&[column("4.20", &[10.0, 11.0, 12.0]), column("boost", &[20.0, 21.0, 22.0])], 100);
        let rows = rows(&table);
        let files = rows.iter().find(|row| row.first() == Some(&"files_per_s")).unwrap();
        assert_eq!(files[1..], ["files/s", "↑", "11", "±2.48", "21", "±2.48", "(+90.9%*)"]);
        let elapsed = rows.iter().find(|row| row.first() == Some(&"elapsed_s")).unwrap();
        assert_eq!(elapsed[1..], ["s", "↓", "50", "50", "(+0.0%)"]);
        assert!(table.ends_with(&format!("{LEGEND}\n")));
    }

    #[test]
    fn a_metric_that_one_column_lacks_is_a_dash() {
        let mut variant = column("b", &[5.0]);
        variant.metrics.push(Metric::new("iops", vec![7.0]));
        let table = comparison_table(&[column("a", &[5.0]), variant], 100);
        let rows = rows(&table);
        let iops = rows.iter().find(|row| row.first() == Some(&"iops")).unwrap();
        assert_eq!(iops[1..], ["IOPS", "↑", "-", "7", "(-)"]);
    }

    #[test]
    fn metrics_that_are_zero_everywhere_are_only_named() {
        let (mut a, mut b) = (column("a", &[5.0]), column("b", &[5.0]));
        a.metrics.extend([Metric::new("iops", vec![0.0]), Metric::new("write_wait_ms", vec![0.0])]);
        b.metrics.extend([Metric::new("iops", vec![0.0]), Metric::new("write_wait_ms", vec![1.0])]);
        let table = comparison_table(&[a, b], 100);
        assert!(table.ends_with("\n0 in every run: iops\n"), "{table}");
        assert!(table.contains(" write_wait_ms ms"), "{table}");
    }

    #[test]
    fn a_list_has_a_line_a_row() {
        let rows = [vec!["6.12".to_owned(), "Linux 6.12".to_owned()]];
        let list = list_table(&["kernel", "description"], &rows, 80);
        let lines: Vec<&str> = list.lines().collect();
        assert_eq!(lines.len(), 3, "{list}");
        assert!(lines[0].contains("kernel") && lines[2].contains("Linux 6.12"));
    }

    #[test]
    fn it_keeps_to_its_width() {
        let columns: Vec<Column> = (0..4).map(|i| column(&format!("kernel-{i}"), &[1234.5, 1334.5])).collect();
        let table = comparison_table(&columns, 100);
        assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
        assert!(!table.contains('\u{1b}'));
    }
}
