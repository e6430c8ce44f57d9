//! Reference runs, whose workloads are named by the commands that they ran.

use std::fs;
use std::path::Path;

use observe::{Counters, EXTFRAG_HIST, ReferenceRun, Snapshot, TraceHist, extfrag_events, parse_settings};
use profile::{Machine, ZoneDef};

use super::{Counted, LRU_GEN, RealRun, is_off};
use crate::capturing::{Captured, huge_page_settings};
use crate::failure::Failure;

/// The program whose commands a job consists of.
const PROGRAM: &str = "twl";
/// What their sampler saw: "@T seconds", then "@F file" and its text for each.
const SERIES: &str = "series";

/// Parameters of our workloads by the options of the commands that stand for them: workload, command, option, parameter,
/// unit.
const OPTIONS: &[(&str, &str, &str, &str, &str)] = &[
    ("wbstrm", "swrite", "mb", "write-mb", ""),
    ("wbstrm", "strm", "anon_mb", "anon-mb", ""),
    ("wbstrm", "strm", "file_mb", "file-mb", ""),
    ("wbstrm", "strm", "passes", "passes", ""),
    ("untar2", "mkfiles", "nd", "dirs", ""),
    ("untar2", "mkfiles", "nf", "files", ""),
    ("untar2", "mkfiles", "size", "file-size", ""),
    ("thpfio3", "fw", "nt", "threads", ""),
    ("thpfio3", "fw", "nf", "files", ""),
    ("thpfio3", "fw", "kb", "file-size", "KiB"),
    ("thpfio3", "fw", "open", "open", ""),
    ("thpfio3", "fr", "ops", "reads", ""),
    ("thpfio3", "thpfault", "mb", "thp-mb", ""),
    ("thpfio3", "thpfault", "threads", "thp-threads", ""),
];

pub(super) fn read(path: &Path) -> Result<RealRun, Failure> {
    let run = ReferenceRun::read(path).map_err(Failure::bad_input)?;
    let refused = |what: String| Failure::bad_input(format!("{}: {what}", path.join(observe::REFERENCE).display()));
    if !run.ok {
        return Err(refused("ok: false: expected a run that came to its end".to_string()));
    }
    let before = Snapshot::read(&path.join("before")).map_err(Failure::bad_input)?;
    let after = Snapshot::read(&path.join("after")).map_err(Failure::bad_input)?;
    let captured_sysctls = settings(path, &run)?;
    let captured = Captured {
        name: run.id.clone(),
        description: format!("The guest of {} as the workload started.", path.display()),
        snapshot: &before,
        uptime_s: run.uptime_s(),
        // Their harness starts every workload in one.
        workload_group: true,
        // Nor has it udev or a CPU with RDRAND.
        bare_boot: true,
        sysctls: captured_sysctls.clone(),
    };
    let base = Machine::load(&format!("guest-{}m", run.mem_mb)).map_err(|error| refused(format!("mem_mb: {error}")))?;
    let mut state = captured.machine()?;
    if let (Some(before), Some(sampled)) = (&before.vmstat, first_sample(path)?) {
        lock_sampler(&mut state.zones, before, &sampled);
    }
    let machine = base.started_from(&state)?;
    let text = fs::read_to_string(path.join(EXTFRAG_HIST)).ok();
    let histogram = text.map(|text| TraceHist::parse(EXTFRAG_HIST, &text)).transpose().map_err(Failure::bad_input)?;
    let extfrag = histogram.and_then(|histogram| extfrag_events(&histogram));
    let mglru = captured_sysctls.iter().any(|(name, value)| name == LRU_GEN && !is_off(value));
    Ok(RealRun {
        group: run.group().to_string(),
        kernel: run.kernel.clone(),
        workload: run.workload.clone(),
        params: params(&run).map_err(refused)?,
        traits: super::traits("reference", &run.kernel, &run.workload, mglru, written(&run)),
        seed: run.seed,
        iteration: run.rep,
        elapsed_s: run.elapsed_s(),
        counted: Counted { before, after, extfrag: extfrag.map(|e| e.iter().sum()) },
        machine,
    })
}

/// `/proc/vmstat` as their sampler saw it first.
fn first_sample(path: &Path) -> Result<Option<Counters>, Failure> {
    let Ok(series) = fs::read_to_string(path.join(SERIES)) else { return Ok(None) };
    let mut parts = series.split('@').map(|part| part.split_once('\n').unwrap_or_default());
    let vmstat = parts.find(|(head, _)| head.ends_with("/proc/vmstat"));
    vmstat.map(|(_, text)| Counters::parse(SERIES, text)).transpose().map_err(Failure::bad_input)
}

/// Their sampler fills its memory and locks it while the snapshot before the run is taken: some of it is still free there, or
/// on the lists of anonymous memory. Its first sample has it all.
fn lock_sampler(zones: &mut [ZoneDef], before: &Counters, sampled: &Counters) {
    let less = |name: &str| before.get(name).zip(sampled.get(name)).map_or(0, |(was, is)| was.saturating_sub(is));
    let Some(zone) = zones.iter_mut().max_by_key(|zone| zone.anon.iter().sum::<u64>()) else { return };
    zone.locked = less("nr_free_pages");
    for (pages, list) in zone.anon.iter_mut().zip(["nr_inactive_anon", "nr_active_anon"]) {
        *pages = pages.saturating_sub(less(list));
    }
    zone.mapped = zone.mapped.min(zone.anon.iter().sum());
}

fn written(run: &ReferenceRun) -> impl Iterator<Item = (String, String)> + '_ {
    run.sysctls.iter().map(|(name, value)| (name.clone(), value.to_string().trim_matches('"').to_string()))
}

fn settings(path: &Path, run: &ReferenceRun) -> Result<Vec<(String, String)>, Failure> {
    let read = |name: &str| {
        let path = path.join(name);
        fs::read_to_string(&path).map_err(|error| Failure::bad_input(format!("{}: {error}", path.display())))
    };
    let mut settings: Vec<(String, String)> = parse_settings(&read("sysctl.txt")?).into_iter().collect();
    let thp = read("thp")?;
    let mut lines = thp.lines();
    settings.extend(huge_page_settings([(); 2].map(|()| lines.next().unwrap_or_default().to_string())));
    settings.push((LRU_GEN.to_string(), read("lru_gen")?.trim().to_string()));
    settings.extend(written(run));
    Ok(settings)
}

/// The parameters that the job's commands amount to. A command whose options no workload has is refused.
fn params(run: &ReferenceRun) -> Result<Vec<(String, String)>, String> {
    let known: Vec<_> = OPTIONS.iter().filter(|(workload, ..)| *workload == run.workload).collect();
    if known.is_empty() {
        return Err(format!("workload: `{}`: expected wbstrm, untar2 or thpfio3", run.workload));
    }
    let mut params: Vec<(String, String)> = Vec::new();
    for line in run.job.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some(at) = words.iter().rposition(|word| *word == PROGRAM) else { continue };
        let command = words.get(at + 1).copied().unwrap_or("");
        for option in words[at + 1..].iter().filter_map(|word| word.split_once('=')) {
            let (key, value) = option;
            let Some((.., param, unit)) = known.iter().find(|(_, c, k, ..)| (*c, *k) == (command, key)) else {
                continue;
            };
            let param = (param.to_string(), format!("{value}{unit}"));
            match params.iter().find(|(name, _)| *name == param.0) {
                Some(same) if *same != param => return Err(format!("job: {}={} and {}", same.0, same.1, param.1)),
                Some(_) => {}
                None => params.push(param),
            }
        }
    }
    Ok(params)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_sampler_locks_is_neither_free_nor_anonymous() {
        let counters = |values: [u64; 3]| {
            let mut counters = Counters::default();
            ["nr_free_pages", "nr_inactive_anon", "nr_active_anon"]
                .iter()
                .zip(values)
                .for_each(|(n, v)| counters.set(n, v));
            counters
        };
        let dma = ZoneDef { anon: [0, 3], ..ZoneDef::default() };
        let mut zones = [dma.clone(), ZoneDef { anon: [900, 50], mapped: 500, ..ZoneDef::default() }];
        lock_sampler(&mut zones, &counters([5000, 900, 53]), &counters([4200, 350, 60]));
        assert_eq!(zones[0], dma);
        assert_eq!((zones[1].locked, zones[1].anon), (800, [350, 50]), "a list that grew stays as it was");
        assert_eq!(zones[1].mapped, 400, "no more are mapped than there are");
    }
}
