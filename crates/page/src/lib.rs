//! Kept runs as one self-contained page of HTML: what ran, how the runs compare, and counters over time.
//!
//! Nothing is fetched when the page is opened: style and charts (SVG) stand in it, and it has no scripts. It says the same of
//! the same runs, byte for byte.

mod chart;
mod distribution;
mod quantity;

use compare::Verdict;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use observe::{Metric, RunDir, Series};
use report::{Column, LEGEND, comparison_rows, finding};

use chart::{Chart, Line, css_colour};
use quantity::quantities;

/// A run that was kept.
#[derive(Clone, Debug)]
pub struct PageRun<'a> {
    /// What its directory holds.
    pub run: &'a RunDir,
    /// What each part of its zones held over time, drawn in letters, if it has that.
    pub zones: Option<String>,
    /// Why kswapd was busy, in one sentence, if it was.
    pub why_kswapd_is_busy: Option<String>,
}

/// The runs of one configuration: a column of the comparison, and a colour of the charts.
#[derive(Clone, Debug)]
pub struct PageColumn<'a> {
    /// Its name and metrics.
    pub column: Column,
    /// Its iterations, at least one.
    pub runs: Vec<PageRun<'a>>,
}

/// What is compared with each other.
#[derive(Clone, Debug)]
pub struct PageCase<'a> {
    /// Its headline.
    pub title: String,
    /// The first is the baseline.
    pub columns: Vec<PageColumn<'a>>,
}

const STYLE: &str = include_str!("page.css");

/// The page.
pub fn page(cases: &[PageCase<'_>]) -> String {
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                title { "mmtwin: " (headline(cases)) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { (headline(cases)) }
                @for case in cases { (section(case)) }
            }
        }
    };
    markup.into_string()
}

fn headline(cases: &[PageCase<'_>]) -> String {
    let runs = cases.iter().flat_map(|case| &case.columns).map(|column| column.runs.len()).sum::<usize>();
    if runs == 1 { "1 run".to_owned() } else { format!("{runs} runs") }
}

fn section(case: &PageCase<'_>) -> Markup {
    html! {
        h2 { (case.title) }
        @for (index, column) in case.columns.iter().enumerate() { (legend(index, column)) }
        @for column in &case.columns { (findings(column)) }
        h3 { "Comparison" }
        (comparison(case))
        h3 { "Over time" }
        (charts(&over_time(case), "No run of these kept counters over time."))
        h3 { "Distributions" }
        (charts(&distribution::charts(&metrics_of(case)), "No metric has enough samples."))
        @for column in &case.columns { (zones(column)) (inputs(column)) }
    }
}

fn legend(index: usize, column: &PageColumn<'_>) -> Markup {
    let manifest = &column.runs[0].run.manifest;
    html! {
        div {
            span.swatch style={ "background:" (css_colour(index)) } {}
            b { (column.column.name) } " "
            small {
                (manifest.workload.name) " on " (manifest.machine.name) ", kernel " (manifest.kernel.name) ", world " (manifest.world)
                ", seed " (manifest.seed) ", runs " (column.runs.len())
            }
        }
    }
}

/// Why kswapd was busy in runs, and what scenarios came to, a sentence for each.
fn findings(column: &PageColumn<'_>) -> Markup {
    let of_kswapd = column.runs.iter().filter_map(|kept| kept.why_kswapd_is_busy.clone());
    let of_scenarios = column.runs.iter().filter_map(|kept| finding(kept.run));
    html! {
        @for sentence in of_kswapd.chain(of_scenarios) {
            p { b { (column.column.name) ":" } " " (sentence) }
        }
    }
}

fn comparison(case: &PageCase<'_>) -> Markup {
    let columns: Vec<Column> = case.columns.iter().map(|column| column.column.clone()).collect();
    let (rows, zeros) = comparison_rows(&columns);
    html! {
        div.wide {
            table {
                thead { tr { th { "metric" } @for column in &columns { th { (column.name) } } } }
                tbody {
                    @for row in &rows {
                        tr {
                            td { (row.label) }
                            @for cell in &row.cells { td class=[class(cell.verdict)] { (cell.text) } }
                        }
                    }
                }
            }
        }
        p { small { (LEGEND) "; bold: better or worse by that" } }
        @if !zeros.is_empty() { p { small { "0 in every run: " (zeros.join(", ")) } } }
    }
}

fn class(verdict: Verdict) -> Option<&'static str> {
    match verdict {
        Verdict::Better => Some("better"),
        Verdict::Worse => Some("worse"),
        Verdict::NoVerdict => None,
    }
}

fn charts(charts: &[Chart], otherwise: &str) -> Markup {
    html! {
        @if charts.is_empty() { p { (otherwise) } }
        div.charts { @for chart in charts { (PreEscaped(chart.svg())) } }
    }
}

/// The runs of a case with their columns.
fn runs_of<'a>(case: &'a PageCase<'a>) -> impl Iterator<Item = (usize, &'a RunDir)> {
    case.columns.iter().enumerate().flat_map(|(index, column)| column.runs.iter().map(move |kept| (index, kept.run)))
}

fn metrics_of<'a>(case: &'a PageCase<'a>) -> Vec<(usize, &'a [Metric])> {
    runs_of(case).map(|(index, run)| (index, run.metrics.as_slice())).collect()
}

/// A chart for each quantity that is not 0 all the time in all runs.
fn over_time(case: &PageCase<'_>) -> Vec<Chart> {
    let series: Vec<(usize, &Series)> =
        runs_of(case).filter_map(|(index, run)| run.series.as_ref().map(|series| (index, series))).collect();
    let of = |quantity: quantity::Quantity| {
        let line = |(column, series): &(usize, &Series)| Line { column: *column, points: quantity.points(series) };
        let lines = series.iter().map(line).collect();
        Chart { y_unit: quantity.unit().to_owned(), x_unit: "seconds", lines, title: quantity.title }
    };
    let all = quantities(series.iter().map(|(_, series)| *series)).into_iter().map(of);
    all.filter(|chart| !chart.is_empty()).collect()
}

fn zones(column: &PageColumn<'_>) -> Markup {
    let drawn = column.runs.iter().filter_map(|kept| Some((kept.run.manifest.iteration, kept.zones.as_deref()?)));
    html! {
        @for (iteration, zones) in drawn {
            details {
                summary { "Zones over time, " (column.column.name) @if column.runs.len() > 1 { ", iter-" (iteration) } }
                div.wide { pre { (zones) } }
            }
        }
    }
}

fn inputs(column: &PageColumn<'_>) -> Markup {
    let manifest = &column.runs[0].run.manifest;
    let params = manifest.workload.params.iter().map(|(name, value)| format!("{name} = {value}\n"));
    let sysctls = manifest.sysctls.iter().map(|(name, value)| format!("{name} = {value}\n"));
    html! {
        details {
            summary { "Inputs, " (column.column.name) }
            pre {
                "# " (manifest.workload.name) "\n" (params.collect::<String>()) (sysctls.collect::<String>())
                "\n# machine\n" (manifest.machine.toml) "\n# kernel\n" (manifest.kernel.toml)
            }
            @for omitted in &manifest.omitted { p { small { "Left out: " (omitted) } } }
        }
    }
}

#[cfg(test)]
mod tests;
