//! What `validate` answers: for each group of repetitions and each counter, how far the twin is off.

use std::collections::BTreeMap;

use compare::{Accuracy, Class, Nearness, accuracy, mean, overlap, percentile};
use indexmap::IndexMap;
use serde::Serialize;

use crate::number::format_number;
use crate::table::list_table;

/// Effects whose sizes differ by at most this factor are near each other.
const NEAR: f64 = 1.5;
/// Part of a counter by which runs that are one draw may differ: some microseconds of a second.
const SAME: f64 = 1e-4;

/// So many runs tell how sharp a counter is, fewer do not: the standard deviation of three may be a sixth of what it is (95 % interval).
const TELLING: usize = 12;
/// The trait that says what ran.
const WORKLOAD: &str = "workload";

/// A counter that is compared.
#[derive(Clone, PartialEq, Debug)]
pub struct Compared {
    /// Its name.
    pub name: String,
    /// What is below it is as good as nothing; above 0.
    pub floor: f64,
    /// Whether the effects of settings on it are told.
    pub effect: bool,
}

/// What one run counted, by name.
pub type Counted = IndexMap<String, f64>;

/// The runs of one group: repetitions of the same inputs.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct GroupRuns {
    /// Name of the group.
    pub group: String,
    /// What groups can be told apart by, and its value.
    pub traits: IndexMap<String, String>,
    /// The real runs.
    pub real: Vec<Counted>,
    /// The twin's.
    pub twin: Vec<Counted>,
    /// Seconds that the real workload took on its own clock, and the twin's.
    pub elapsed_s: (Vec<f64>, Vec<f64>),
}

/// A counter of a group.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CounterReport {
    /// Its name.
    pub name: String,
    /// Both worlds.
    #[serde(flatten)]
    pub accuracy: Accuracy,
}

/// A group.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct GroupReport {
    /// Its name.
    pub group: String,
    /// Real runs.
    pub n_real: usize,
    /// How many of them differ in what they counted.
    pub n_distinct: usize,
    /// The twin's runs.
    pub n_twin: usize,
    /// Seconds of the workload on the clock of its own world, mean: real and twin.
    pub elapsed_s: [Option<f64>; 2],
    /// The counters that count and that are not next to nothing in both worlds.
    pub counters: Vec<CounterReport>,
    /// Median of the absolute errors of counters of all classes but C, in percent.
    pub median_error_pct: Option<f64>,
    /// 90th percentile of them.
    pub p90_error_pct: Option<f64>,
}

/// Errors of one class over all groups.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct ClassSummary {
    /// Counters.
    pub n: usize,
    /// Median of the absolute errors, in percent.
    pub median_error_pct: Option<f64>,
    /// 90th percentile of them.
    pub p90_error_pct: Option<f64>,
    /// Counters of which the ranges of the real runs and of the twin's overlap.
    pub n_overlap: usize,
}

/// What changing one setting did to a counter.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct EffectReport {
    /// The setting, from what to what.
    pub change: String,
    /// The groups' common part.
    pub group: String,
    /// The counter.
    pub counter: String,
    /// Median after by median before, real; what is below the floor counts as the floor.
    pub real_ratio: f64,
    /// The least and the largest ratio of two runs.
    pub real_range: [f64; 2],
    /// The median ratio of the twin.
    pub twin_ratio: f64,
    /// The least and the largest one of two of its runs.
    pub twin_range: [f64; 2],
    /// `agrees` or `disagrees`.
    pub direction: &'static str,
    /// The larger of the two ratios by the smaller one.
    pub factor: f64,
    /// What is to be said of the twin's size.
    pub size: EffectSize,
}

/// How near the size of an effect is to the real one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EffectSize {
    /// The median ratios are within a factor of 1.5.
    Near,
    /// They are not, but the ranges of the ratios overlap: it may be chance.
    Overlaps,
    /// Neither.
    Off,
}

/// A group that is not compared.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Waiting {
    /// Its name.
    pub group: String,
    /// Its runs.
    pub n_real: usize,
    /// What the twin lacks.
    pub why: String,
}

/// The whole answer.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ValidationReport {
    /// mmtwin's version.
    pub version: String,
    /// Groups that were compared.
    pub groups: Vec<GroupReport>,
    /// Groups that were not.
    pub waiting: Vec<Waiting>,
    /// Errors by class.
    pub summary: IndexMap<Class, ClassSummary>,
    /// Effects of settings.
    pub effects: Vec<EffectReport>,
}

impl ValidationReport {
    /// Compares all groups.
    pub fn of(version: &str, counters: &[Compared], groups: &[GroupRuns], waiting: Vec<Waiting>) -> ValidationReport {
        let told = told_classes(counters, groups);
        let reports: Vec<GroupReport> = groups.iter().map(|group| group_report(counters, group, &told)).collect();
        let of_class = |class: Class| {
            let all = reports.iter().flat_map(|group| &group.counters);
            summarised(all.filter(|counter| counter.accuracy.class == class))
        };
        let summary = [Class::S, Class::M, Class::C, Class::U].map(|class| (class, of_class(class)));
        ValidationReport {
            version: version.to_string(),
            summary: summary.into_iter().collect(),
            effects: effects(counters, groups),
            groups: reports,
            waiting,
        }
    }
}

fn column(runs: &[Counted], name: &str) -> Vec<f64> {
    runs.iter().filter_map(|run| run.get(name).copied()).collect()
}

/// Runs that differ in what they counted: equal ones are one draw of the kernel's, whose spread nobody knows.
fn distinct(runs: &[Counted]) -> usize {
    let seen = |at: usize| runs[..at].iter().any(|earlier| is_same_draw(earlier, &runs[at]));
    (0..runs.len()).filter(|at| !seen(*at)).count()
}

/// Whether two runs count the same, but for what a different seed does to times of stalls.
fn is_same_draw(one: &Counted, other: &Counted) -> bool {
    let equal = |a: f64, b: f64| (a - b).abs() <= SAME * a.abs().max(b.abs());
    one.len() == other.len() && one.iter().all(|(name, value)| other.get(name).is_some_and(|b| equal(*value, *b)))
}

/// How sharp counters of a workload are, by the groups of it that are large enough to tell: the least sharp class that any has.
type ToldClasses<'a> = BTreeMap<(&'a str, &'a str), Class>;

fn told_classes<'a>(counters: &'a [Compared], groups: &'a [GroupRuns]) -> ToldClasses<'a> {
    let mut told = ToldClasses::new();
    for group in groups.iter().filter(|group| group.real.len() >= TELLING) {
        let Some(workload) = group.traits.get(WORKLOAD) else { continue };
        for counter in counters {
            let real = column(&group.real, &counter.name);
            if real.len() >= TELLING {
                let class = Class::of(&real, counter.floor);
                told.entry((workload, &counter.name)).and_modify(|told| *told = class.max(*told)).or_insert(class);
            }
        }
    }
    told
}

/// The class of a counter of a group: its own, or that of larger groups if the group is too small to tell and they are less sharp.
fn class_in(group: &GroupRuns, counter: &str, own: Class, told: &ToldClasses<'_>) -> Class {
    let workload = group.traits.get(WORKLOAD).map_or("", String::as_str);
    match told.get(&(workload, counter)) {
        Some(told) if group.real.len() < TELLING => own.max(*told),
        _ => own,
    }
}

fn group_report(counters: &[Compared], group: &GroupRuns, told: &ToldClasses<'_>) -> GroupReport {
    let n_distinct = distinct(&group.real);
    let real = if n_distinct == 1 { &group.real[..1] } else { &group.real[..] };
    let counter = |counter: &Compared| {
        let (real, twin) = (column(real, &counter.name), column(&group.twin, &counter.name));
        let mut accuracy = accuracy(&real, &twin, counter.floor)?;
        accuracy.class = class_in(group, &counter.name, accuracy.class, told);
        let counts = accuracy.real_median.abs().max(accuracy.twin_median.abs()) >= counter.floor;
        counts.then(|| CounterReport { name: counter.name.clone(), accuracy })
    };
    let counters: Vec<CounterReport> = counters.iter().filter_map(counter).collect();
    let matter = summarised(counters.iter().filter(|counter| counter.accuracy.class != Class::C));
    GroupReport {
        group: group.group.clone(),
        n_real: group.real.len(),
        n_distinct,
        n_twin: group.twin.len(),
        elapsed_s: [mean(&group.elapsed_s.0), mean(&group.elapsed_s.1)],
        median_error_pct: matter.median_error_pct,
        p90_error_pct: matter.p90_error_pct,
        counters,
    }
}

fn summarised<'a>(counters: impl Iterator<Item = &'a CounterReport>) -> ClassSummary {
    let counters: Vec<&Accuracy> = counters.map(|counter| &counter.accuracy).collect();
    let errors: Vec<f64> = counters.iter().map(|accuracy| accuracy.error_pct.abs()).collect();
    ClassSummary {
        n: errors.len(),
        median_error_pct: percentile(&errors, 50.0),
        p90_error_pct: percentile(&errors, 90.0),
        n_overlap: counters.iter().filter(|accuracy| accuracy.verdict == Nearness::WithinSpread).count(),
    }
}

/// The effects of settings: of two groups that differ in one trait, the later against the earlier.
fn effects(counters: &[Compared], groups: &[GroupRuns]) -> Vec<EffectReport> {
    let mut effects = Vec::new();
    for (at, from) in groups.iter().enumerate() {
        for to in &groups[at + 1..] {
            let names = from.traits.keys().chain(to.traits.keys().filter(|name| !from.traits.contains_key(*name)));
            let differ: Vec<&String> = names.filter(|name| from.traits.get(*name) != to.traits.get(*name)).collect();
            let [changed] = differ.as_slice() else { continue };
            let value = |group: &GroupRuns| group.traits.get(*changed).map_or("default", String::as_str).to_string();
            let change = format!("{changed} {} -> {}", value(from), value(to));
            let all = counters.iter().filter(|counter| counter.effect);
            effects.extend(all.filter_map(|counter| effect(counter, &change, from, to)));
        }
    }
    effects
}

/// The effect on one counter; none if the real one is smaller than chance (a tenth) or there is next to nothing of it.
fn effect(counter: &Compared, change: &str, from: &GroupRuns, to: &GroupRuns) -> Option<EffectReport> {
    let values = |runs: &[Counted]| -> Vec<f64> {
        column(runs, &counter.name).into_iter().map(|value| value.max(counter.floor)).collect()
    };
    let ratios = |before: &[Counted], after: &[Counted]| Ratios::of(&values(before), &values(after));
    let (real, twin) = (ratios(&from.real, &to.real)?, ratios(&from.twin, &to.twin)?);
    let worth_telling = !(1.0 / 1.1..=1.1).contains(&real.median);
    let agrees = (real.median > 1.0) == (twin.median > 1.0) && twin.median != 1.0;
    let factor = (real.median / twin.median).max(twin.median / real.median);
    worth_telling.then(|| EffectReport {
        change: change.to_string(),
        group: from.group.clone(),
        counter: counter.name.clone(),
        real_ratio: real.median,
        real_range: real.range,
        twin_ratio: twin.median,
        twin_range: twin.range,
        direction: if agrees { "agrees" } else { "disagrees" },
        factor,
        size: match factor {
            factor if factor <= NEAR => EffectSize::Near,
            _ if overlap(&real.range, &twin.range) => EffectSize::Overlaps,
            _ => EffectSize::Off,
        },
    })
}

/// What a counter was after a change by what it was before.
struct Ratios {
    median: f64,
    /// Of any two runs.
    range: [f64; 2],
}

impl Ratios {
    /// None without runs on both sides; all values are above 0. Medians, because some counters have two modes: the mean of
    /// runs of both is the value of none.
    fn of(before: &[f64], after: &[f64]) -> Option<Ratios> {
        let at = |samples: &[f64], pct| percentile(samples, pct);
        Some(Ratios {
            median: at(after, 50.0)? / at(before, 50.0)?,
            range: [at(after, 0.0)? / at(before, 100.0)?, at(after, 100.0)? / at(before, 0.0)?],
        })
    }
}

/// The answer as text, `width` terminal columns wide at most.
pub fn validation_text(report: &ValidationReport, width: u16) -> String {
    let mut out = String::new();
    for group in &report.groups {
        out.push_str(&group_text(group, width));
        out.push('\n');
    }
    if !report.effects.is_empty() {
        out.push_str("Effects, after : before (median; of any two runs)\n");
        out.push_str(&effects_text(&report.effects, width));
        let count = |of: &dyn Fn(&EffectReport) -> bool| report.effects.iter().filter(|effect| of(effect)).count();
        out.push_str(&format!(
            "{} effects: {} in the right direction; {} within a factor of {NEAR}, of {} more the ranges overlap\n\n",
            report.effects.len(),
            count(&|effect| effect.direction == "agrees"),
            count(&|effect| effect.size == EffectSize::Near),
            count(&|effect| effect.size == EffectSize::Overlaps),
        ));
    }
    for waiting in &report.waiting {
        out.push_str(&format!("waits: {} ({} runs): {}\n", waiting.group, waiting.n_real, waiting.why));
    }
    for (class, summary) in report.summary.iter().filter(|(_, summary)| summary.n > 0) {
        let (median, p90) = (format_number(summary.median_error_pct), format_number(summary.p90_error_pct));
        let class = match class {
            Class::U => "of one run".to_string(),
            class => format!("class {class:?}"),
        };
        out.push_str(&format!(
            "{class}: {} counters, median error {median} %, 90th percentile {p90} %; {} overlap\n",
            summary.n, summary.n_overlap
        ));
    }
    out
}

fn group_text(group: &GroupReport, width: u16) -> String {
    let [real, twin] = group.elapsed_s.map(format_number);
    let equal = if group.n_distinct == 1 && group.n_real > 1 { " that are equal" } else { "" };
    let head = format!(
        "{}: {} real runs{equal} of {real} s, {} of the twin of {twin} s; median error {} %, 90th percentile {} %\n",
        group.group,
        group.n_real,
        group.n_twin,
        format_number(group.median_error_pct),
        format_number(group.p90_error_pct)
    );
    let pair = |mean: f64, sd: f64| format!("{} ±{}", format_number(Some(mean)), format_number(Some(sd)));
    let row = |counter: &CounterReport| {
        let a = &counter.accuracy;
        vec![
            counter.name.clone(),
            format!("{:?}", a.class),
            pair(a.real_median, a.real_sd),
            pair(a.twin_median, a.twin_sd),
            format!("{:+.1}%", a.error_pct),
            verdict(a.verdict).to_string(),
        ]
    };
    let rows: Vec<Vec<String>> = group.counters.iter().map(row).collect();
    head + &list_table(&["counter", "class", "real", "twin", "error", "verdict"], &rows, width)
}

fn effects_text(effects: &[EffectReport], width: u16) -> String {
    let range = |[least, most]: [f64; 2]| format!("{least:.2} to {most:.2}");
    let row = |effect: &EffectReport| {
        vec![
            effect.change.clone(),
            effect.counter.clone(),
            format!("x {:.2}", effect.real_ratio),
            range(effect.real_range),
            format!("x {:.2}", effect.twin_ratio),
            range(effect.twin_range),
            effect.direction.to_string(),
            format!("{:.2}", effect.factor),
            size(effect.size).to_string(),
        ]
    };
    let rows: Vec<Vec<String>> = effects.iter().map(row).collect();
    list_table(&["change", "counter", "real", "", "twin", "", "direction", "factor", "size"], &rows, width)
}

fn size(size: EffectSize) -> &'static str {
    match size {
        EffectSize::Near => "near",
        EffectSize::Overlaps => "ranges overlap",
        EffectSize::Off => "off",
    }
}

fn verdict(verdict: Nearness) -> &'static str {
    match verdict {
        Nearness::WithinSpread => "within the kernel's spread",
        Nearness::Within10 => "within 10 %",
        Nearness::Within25 => "within 25 %",
        Nearness::Off => "off",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(value: f64) -> Counted {
        [("a".to_string(), value)].into_iter().collect()
    }

    fn group(name: &str, setting: &str, real: f64, twin: f64) -> GroupRuns {
        GroupRuns {
            group: name.to_string(),
            traits: [("vm.x".to_string(), setting.to_string())].into_iter().collect(),
            real: vec![counted(real - 1.0), counted(real + 1.0)],
            twin: vec![counted(twin)],
            elapsed_s: (vec![1.0, 3.0], vec![]),
        }
    }

    #[test]
    fn errors_are_summed_up_by_class_and_effects_told_as_ratios() {
        let counters = [Compared { name: "a".into(), floor: 10.0, effect: true }];
        let groups = [group("one", "1", 100.0, 110.0), group("two", "2", 50.0, 22.0)];
        let report = ValidationReport::of("0", &counters, &groups, Vec::new());
        let errors: Vec<f64> = report.groups.iter().map(|g| g.counters[0].accuracy.error_pct.round()).collect();
        assert_eq!(errors, [10.0, -56.0]);
        assert_eq!((report.summary[&Class::S].n, report.summary[&Class::S].n_overlap), (2, 0));
        assert_eq!(report.groups[0].elapsed_s, [Some(2.0), None]);
        let effect = &report.effects[0];
        assert_eq!((effect.real_ratio, effect.twin_ratio, effect.direction), (0.5, 0.2, "agrees"));
        assert!((effect.factor - 2.5).abs() < 1e-9);
        assert_eq!((effect.real_range, effect.size), ([49.0 / 101.0, 51.0 / 99.0], EffectSize::Off));
        assert_eq!(effect.change, "vm.x 1 -> 2");
    }

    #[test]
    fn an_effect_that_chance_explains_is_told_from_one_that_it_does_not() {
        let counter = Compared { name: "a".into(), floor: 1.0, effect: true };
        let group = |real: &[f64], twin: &[f64]| GroupRuns {
            real: real.iter().map(|value| counted(*value)).collect(),
            twin: twin.iter().map(|value| counted(*value)).collect(),
            ..GroupRuns::default()
        };
        let before = group(&[10.0, 10.0], &[10.0, 10.0, 10.0]);
        let of = |after: &GroupRuns| effect(&counter, "", &before, after).map(|effect| (effect.size, effect.direction));
        assert_eq!(of(&group(&[40.0, 40.0], &[30.0, 30.0, 900.0])), Some((EffectSize::Near, "agrees")), "by medians");
        assert_eq!(of(&group(&[40.0, 40.0], &[9.0, 9.0, 90.0])), Some((EffectSize::Overlaps, "disagrees")));
        assert_eq!(of(&group(&[40.0, 40.0], &[11.0, 12.0, 13.0])), Some((EffectSize::Off, "agrees")));
        assert_eq!(of(&group(&[10.5, 10.5], &[90.0, 90.0, 90.0])), None, "no effect");
    }

    #[test]
    fn a_small_group_is_as_sharp_as_larger_ones_of_its_workload_say() {
        let counters = [Compared { name: "a".into(), floor: 1.0, effect: false }];
        let of = |workload: &str, real: &[f64]| GroupRuns {
            traits: [(WORKLOAD.to_string(), workload.to_string())].into_iter().collect(),
            real: real.iter().map(|value| counted(*value)).collect(),
            twin: vec![counted(100.0)],
            ..GroupRuns::default()
        };
        // Around 100, by 6 % and by 60.
        let [even, uneven] = [6.0, 60.0].map(|off| [100.0 - off, 100.0 + off].repeat(TELLING / 2));
        let classes = |groups: &[GroupRuns]| -> Vec<Class> {
            let report = ValidationReport::of("0", &counters, groups, Vec::new());
            report.groups.iter().map(|group| group.counters[0].accuracy.class).collect()
        };
        let [close, apart] = [[99.0, 100.0, 101.0], [40.0, 100.0, 160.0]];
        assert_eq!(classes(&[of("w", &close), of("w", &uneven)]), [Class::C, Class::C]);
        assert_eq!(classes(&[of("w", &close), of("w", &even)]), [Class::M, Class::M]);
        assert_eq!(classes(&[of("w", &even), of("w", &uneven)]), [Class::M, Class::C], "it can tell");
        assert_eq!(classes(&[of("w", &apart), of("w", &even)]), [Class::C, Class::M], "its own is less sharp");
        assert_eq!(classes(&[of("w", &close), of("v", &uneven)]), [Class::S, Class::C], "another workload");
        assert_eq!(classes(&[of("w", &close), of("w", &apart)]), [Class::S, Class::C], "neither can tell");
    }

    #[test]
    fn equal_runs_are_one_draw() {
        let counters = [Compared { name: "a".into(), floor: 10.0, effect: false }];
        let mut once = group("one", "1", 100.0, 110.0);
        once.real = vec![counted(100.0), counted(100.009), counted(100.0)];
        let report = ValidationReport::of("0", &counters, &[once], Vec::new());
        let group = &report.groups[0];
        assert_eq!((group.n_real, group.n_distinct, group.counters[0].accuracy.class), (3, 1, Class::U));
        assert_eq!(
            (report.summary[&Class::S].n, report.summary[&Class::U].n, group.median_error_pct),
            (0, 1, Some(10.0))
        );
    }

    #[test]
    fn what_is_next_to_nothing_in_both_worlds_is_left_out_and_in_one_of_them_not() {
        let counters = [Compared { name: "a".into(), floor: 10.0, effect: false }];
        let listed = |real, twin| {
            let groups = [group("one", "1", real, twin)];
            ValidationReport::of("0", &counters, &groups, Vec::new()).groups[0].counters.len()
        };
        assert_eq!([listed(9.0, 9.0), listed(10.0, 0.0), listed(0.0, 10.0)], [0, 1, 1]);
    }
}
