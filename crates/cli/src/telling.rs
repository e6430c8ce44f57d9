//! What `run` prints of runs: where they ran, a table of them, and what there is to say of it.

use std::path::Path;

use observe::RunDir;
use profile::{Machine, Size};
use report::{Column, RunReport, comparison_table, finding};

use crate::args::{Common, RunArgs};
use crate::exec::{Answer, Done};
use crate::kept::column;
use crate::output;

/// A column of a table: its runs, as many of them as there are.
pub(crate) struct Entry<'a> {
    name: &'a str,
    done: Vec<&'a Done>,
}

/// The columns that are called `names`, each of which has as many of `answers` as there are iterations.
pub(crate) fn entries<'a>(names: &'a [String], answers: &'a [Answer], iterations: u32) -> Vec<Entry<'a>> {
    let of_columns = answers.chunks(iterations as usize);
    names.iter().zip(of_columns).map(|(name, answers)| Entry { name, done: done(answers) }).collect()
}

/// The runs that there are.
pub(crate) fn done(answers: &[Answer]) -> Vec<&Done> {
    answers.iter().flatten().flatten().collect()
}

/// The runs beside each other, and what is to be said of single ones: zones over time before the table, findings after it.
pub(crate) fn table(entries: &[Entry<'_>]) -> String {
    let columns: Vec<Column> = entries
        .iter()
        .map(|Entry { name, done }| column((*name).to_string(), &done.iter().map(|d| &d.run).collect::<Vec<&RunDir>>()))
        .collect();
    pictures(entries) + &comparison_table(&columns, output::width()) + &remarks(entries)
}

/// The zones over time of the first run of each column that has them.
fn pictures(entries: &[Entry<'_>]) -> String {
    let first = |done: &&&Done| done.run.manifest.iteration == 0;
    let zones = |entry: &Entry<'_>| Some((entry.name.to_string(), entry.done.iter().find(first)?.zones.clone()?));
    entries.iter().filter_map(zones).map(|(name, zones)| format!("{name}\n{zones}")).collect()
}

/// Why kswapd was busy, and what scenarios came to.
fn remarks(entries: &[Entry<'_>]) -> String {
    let told = |of_run: &dyn Fn(&Done) -> Option<String>| -> String {
        let runs = entries.iter().flat_map(|entry| entry.done.iter().map(|done| (entry.name, *done)));
        runs.filter_map(|(name, done)| Some(format!("{name}: {}\n", of_run(done)?))).collect()
    };
    told(&|done| done.why_kswapd_is_busy.clone()) + &told(&|done| finding(&done.run))
}

/// What ran where, and what that took.
pub(crate) fn head(args: &RunArgs, machine: Option<&Machine>, done: &[&Done], wall_s: f64) -> String {
    let Common { seed, sysctls, .. } = &args.common;
    let name = &done[0].run.manifest.machine.name;
    format!("{}\n{}\n", place(&args.workload, name, machine, *seed, sysctls), took(done, wall_s))
}

/// What runs where: a workload on the machine of this name, with `sysctls`. `machine` is the one that was described, if one
/// was.
pub(crate) fn place(
    workload: &str,
    name: &str,
    machine: Option<&Machine>,
    seed: u64,
    sysctls: &[(String, String)],
) -> String {
    let size = machine.map(|machine| format!(" ({} CPUs, {})", machine.cpus.count.get_ref(), Size(machine.memory())));
    let sysctls: Vec<String> = sysctls.iter().map(|(name, value)| format!(", {name}={value}")).collect();
    format!("{workload} on {name}{}, seed {seed}{}", size.unwrap_or_default(), sysctls.concat())
}

/// What runs took: host memory for a page frame at the peak, their own time, and `wall_s` seconds on the wall.
pub(crate) fn took(done: &[&Done], wall_s: f64) -> String {
    let seconds: f64 = done.iter().map(|done| done.run.manifest.virtual_s).sum();
    let hosts = done.iter().filter_map(|done| done.host);
    let what = match hosts.max_by(|a, b| a.bytes_per_frame().total_cmp(&b.bytes_per_frame())) {
        Some(host) => format!(
            "{} page frames at {:.1} B of host memory each at the peak; {seconds:.0} s of virtual time",
            host.frames,
            host.bytes_per_frame()
        ),
        None => format!("{seconds:.1} s of the workload"),
    };
    format!("{what} in {wall_s:.1} s")
}

/// What is left out of the models of the runs, and where they are kept.
pub(crate) fn foot(out: Option<&Path>, done: &[&Done]) -> String {
    let kept = out.map(|dir| format!("{} runs kept in {}\n", done.len(), dir.display()));
    left_out(done.iter().copied()) + &kept.unwrap_or_default()
}

/// A line for everything that some run's models leave out.
pub(crate) fn left_out<'a>(done: impl Iterator<Item = &'a Done>) -> String {
    omitted(done).iter().map(|line| format!("left out: {line}\n")).collect()
}

/// Everything that some run's models leave out, once.
pub(crate) fn omitted<'a>(done: impl Iterator<Item = &'a Done>) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in done.flat_map(|done| &done.run.manifest.omitted) {
        if !lines.contains(line) {
            lines.push(line.clone());
        }
    }
    lines
}

/// A run as a document; with its wall time if that was asked for.
pub(crate) fn report_of(common: &Common, done: &Done) -> RunReport {
    let wall_s = common.timings.then_some(done.wall_s);
    let dir = done.dir.as_ref().map(|dir| dir.to_string_lossy());
    let why_kswapd_is_busy = done.why_kswapd_is_busy.clone();
    RunReport { why_kswapd_is_busy, ..RunReport::of(&done.run, done.host, wall_s, dir.as_deref()) }
}
