//! A real kernel and the twin side by side: for each setting what both measured, and what a setting changes in both.

use compare::{Better, mean};
use indexmap::IndexMap;

use crate::number::{NOTHING, format_effect, format_number};
use crate::table::{Column, arrow, plain_table, right};

/// Runs of one setting in both worlds; the name of the setting is the real column's.
#[derive(Clone, PartialEq, Debug)]
pub struct Worlds {
    /// Of the real kernel.
    pub real: Column,
    /// Of the twin.
    pub twin: Column,
}

const LEGEND: &str = "means; (how far the twin is off); effects are against the first setting";

/// The table, `width` terminal columns wide at most, with a legend under it. Metrics that are 0 everywhere are left out,
/// and what no real run has is only named.
pub fn worlds_table(worlds: &[Worlds], width: u16) -> String {
    let mut table = plain_table(width);
    let heads = worlds.iter().flat_map(|world| ["real", "twin"].map(|side| format!("{side} {}", world.real.name)));
    let effects = worlds.iter().skip(1).flat_map(|_| ["real effect", "twin effect"].map(str::to_string));
    table.set_header(["metric".to_string()].into_iter().chain(heads).chain(effects).map(|head| right(head.trim())));
    let mut only_twin = Vec::new();
    for (name, (unit, better)) in names(worlds) {
        let means: Vec<[Option<f64>; 2]> =
            worlds.iter().map(|world| [&world.real, &world.twin].map(|side| mean_of(side, name))).collect();
        if means.iter().flatten().all(|mean| mean.is_none_or(|mean| mean == 0.0)) {
            continue;
        }
        if means.iter().all(|[real, _]| real.is_none()) {
            only_twin.push(name);
            continue;
        }
        let pairs = means.iter().flat_map(|[real, twin]| [format_number(*real), beside(*real, *twin)]);
        let effects = means
            .iter()
            .skip(1)
            .flat_map(|sides| [0, 1].map(|side| format_effect(change(means[0][side], sides[side]))));
        let label = format!("{name} {unit}{}", arrow(better));
        let cells = pairs.chain(effects).map(|text| right(&text));
        table.add_row([comfy_table::Cell::new(label)].into_iter().chain(cells));
    }
    let mut out = format!("{}\n{LEGEND}\n", table.trim_fmt());
    if !only_twin.is_empty() {
        let told = format!("what only the twin tells: {}", only_twin.join(", "));
        out.push_str(&format!("{}\n", textwrap::fill(&told, usize::from(width))));
    }
    out
}

/// Every metric with its unit, in the order of the real runs.
fn names(worlds: &[Worlds]) -> IndexMap<&str, (&str, Better)> {
    let sides = worlds.iter().map(|world| &world.real).chain(worlds.iter().map(|world| &world.twin));
    let mut names = IndexMap::new();
    for metric in sides.flat_map(|side| &side.metrics) {
        names.entry(metric.name.as_str()).or_insert((metric.unit.as_str(), metric.better));
    }
    names
}

fn mean_of(column: &Column, name: &str) -> Option<f64> {
    let of_name = column.metrics.iter().filter(|metric| metric.name == name);
    mean(&of_name.flat_map(|metric| metric.samples.iter().copied()).collect::<Vec<_>>())
}

fn change(from: Option<f64>, to: Option<f64>) -> Option<f64> {
    from.zip(to).and_then(|(from, to)| compare::effect_pct(from, to))
}

/// The twin's mean, and how far it is from the real one.
fn beside(real: Option<f64>, twin: Option<f64>) -> String {
    match twin {
        Some(_) => format!("{} ({})", format_number(twin), format_effect(change(real, twin))),
        None => NOTHING.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use observe::Metric;

    use super::*;

    fn column(name: &str, events: &[f64]) -> Column {
        let metrics = events.iter().map(|events| Metric::new("extfrag_events", vec![*events]));
        let zero = Metric::new("iops", vec![0.0]);
        Column { name: name.to_string(), metrics: metrics.chain([zero]).collect() }
    }

    #[test]
    fn both_worlds_stand_beside_each_other_with_their_effects() {
        let off = Worlds { real: column("x=0", &[90.0, 110.0]), twin: column("x=0", &[50.0]) };
        let on = Worlds { real: column("x=1", &[25.0]), twin: column("x=1", &[40.0]) };
        let table = worlds_table(&[off, on], 140);
        let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[0].join(" "), "metric real x=0 twin x=0 real x=1 twin x=1 real effect twin effect");
        let values = ["100", "50", "(-50.0%)", "25", "40", "(+60.0%)", "-75.0%", "-20.0%"];
        assert_eq!(rows[2], [&["extfrag_events", "events", "↓"][..], &values].concat());
        assert_eq!(rows.len(), 4, "what is 0 everywhere is left out: {table}");
    }

    #[test]
    fn what_one_world_lacks_is_a_dash() {
        let lacking = Column { name: "k".to_string(), metrics: vec![Metric::new("user_s", vec![1.0])] };
        let table = worlds_table(&[Worlds { real: column("k", &[5.0]), twin: lacking }], 100);
        assert!(table.ends_with("\nwhat only the twin tells: user_s\n"), "{table}");
        assert!(
            table.lines().any(|line| line.split_whitespace().eq(["extfrag_events", "events", "↓", "5", "-"])),
            "{table}"
        );
    }
}
