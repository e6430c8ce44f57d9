//! `run --events`: what the tracepoints say adds up to what the counters say.

use observe::{Counters, RunDir, TraceEvent, VmscanEvent};

use crate::{mmtwin, write_inputs};

/// vmscan's events of a short run of a kernel, and what its counters gained.
struct Traced {
    events: Vec<VmscanEvent>,
    before: Counters,
    after: Counters,
}

impl Traced {
    fn run(kernel: &str) -> Traced {
        let dir = tempfile::tempdir().unwrap();
        write_inputs(dir.path());
        let args = ["run", "thpfioscale", "-m", "tiny.toml", "-p", "fio-jobs=2", "--out", "runs", "--events", "vmscan"];
        mmtwin().current_dir(&dir).args(args).args(["-k", kernel]).assert().success();
        let place = dir.path().join(format!("runs/thpfioscale-tiny/{kernel}/iter-0"));
        let (run, records) = (RunDir::read(&place).unwrap(), RunDir::read_events(&place).unwrap());
        let vmscan = |event: TraceEvent| match event {
            TraceEvent::Vmscan(event) => event,
            other => panic!("{} was not asked for", other.name()),
        };
        let events = records.into_iter().map(|record| vmscan(record.event)).collect();
        Traced { events, before: run.before.vmstat.unwrap(), after: run.after.vmstat.unwrap() }
    }

    /// What the counters gained whose names begin so, zones and all.
    fn gained(&self, prefixes: &[&str]) -> i64 {
        let counts = |name: &str| prefixes.iter().any(|prefix| name.starts_with(prefix)) && !name.contains("throttle");
        let sum = |counters: &Counters| -> i64 {
            counters.iter().filter(|(name, _)| counts(name)).map(|(_, value)| value as i64).sum()
        };
        sum(&self.after) - sum(&self.before)
    }

    fn of<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a VmscanEvent> {
        self.events.iter().filter(move |event| event.name() == name)
    }

    /// The sum of a field over a tracepoint.
    fn sum(&self, name: &str, field: &str) -> i64 {
        self.of(name).map(|event| event.number(field).unwrap_or_else(|| panic!("{name} without {field}"))).sum()
    }

    fn count(&self, name: &str) -> i64 {
        self.of(name).count() as i64
    }
}

const INACTIVE: &str = "mm_vmscan_lru_shrink_inactive";
const ISOLATE: &str = "mm_vmscan_lru_isolate";
const ACTIVE: &str = "mm_vmscan_lru_shrink_active";
const SCANNED: [&str; 2] = ["pgscan_kswapd", "pgscan_direct"];
const STOLEN: [&str; 2] = ["pgsteal_kswapd", "pgsteal_direct"];

#[test]
fn batches_and_shrinkers_add_up_to_the_counters_of_every_kernel() {
    for kernel in ["3.1", "3.19-rc4", "4.4", "4.18", "4.20-rc3", "5.0", "5.2", "6.1", "6.12"] {
        let run = Traced::run(kernel);
        assert!(run.gained(&STOLEN) > 1000, "{kernel} reclaims");
        assert_eq!(run.sum(INACTIVE, "nr_reclaimed"), run.gained(&STOLEN), "{kernel}");
        let scanned = match kernel {
            // Generations are looked at, sorted, and what is isolated of them is scanned.
            "6.12" => run.sum(ISOLATE, "nr_taken"),
            _ => run.sum(INACTIVE, "nr_scanned"),
        };
        assert_eq!(scanned, run.gained(&SCANNED), "{kernel}");
        let slabs = run.sum("mm_shrink_slab_start", "total_scan") - run.sum("mm_shrink_slab_end", "total_scan");
        assert!(run.count("mm_shrink_slab_start") > 0);
        assert_eq!(slabs, run.gained(&["slabs_scanned"]), "{kernel}");
    }
}

#[test]
fn active_lists_add_up_where_the_kernel_traces_them() {
    for (kernel, traces) in [("4.4", false), ("4.20-rc3", true), ("6.1", true), ("6.12", false)] {
        let run = Traced::run(kernel);
        assert_eq!(run.count(ACTIVE) > 0, traces, "{kernel}");
        if traces {
            assert_eq!(run.sum(ACTIVE, "nr_deactivated"), run.gained(&["pgdeactivate"]), "{kernel}");
        }
        // 6.12 runs generations, which have no active lists.
        assert_eq!(run.gained(&["pgdeactivate"]) > 0, kernel != "6.12", "{kernel}");
    }
}

#[test]
fn kswapd_wakes_as_often_as_it_runs() {
    for kernel in ["3.19-rc4", "4.4", "5.0", "6.12"] {
        let run = Traced::run(kernel);
        assert!(run.gained(&["pageoutrun"]) > 0, "{kernel}");
        assert_eq!(run.count("mm_vmscan_kswapd_wake"), run.gained(&["pageoutrun"]), "{kernel}");
    }
    // Until 3.10 a run goes round and round, and each round counts.
    let run = Traced::run("3.1");
    let wakes = run.count("mm_vmscan_kswapd_wake");
    assert!((1..run.gained(&["pageoutrun"])).contains(&wakes), "{wakes}");
}

#[test]
fn each_kernel_has_its_own_fields() {
    let first = |run: &Traced, name: &str| run.of(name).next().expect(name).clone();
    let old = Traced::run("4.4");
    let batch = first(&old, INACTIVE);
    assert!(batch.number("zid").is_some() && batch.field("nr_dirty").is_none());
    assert!(first(&old, ISOLATE).field("file").is_some());
    assert!(first(&old, "mm_shrink_slab_start").number("pgs_scanned").is_some());
    let new = Traced::run("6.12");
    let batch = first(&new, INACTIVE);
    assert!(batch.field("zid").is_none() && batch.number("nr_activate_file").is_some());
    assert!(first(&new, ISOLATE).field("isolate_mode").is_none());
    assert!(first(&new, "mm_shrink_slab_start").number("priority").is_some());
    for (kernel, by_kind) in [("5.0", false), ("5.2", true), ("6.1", true)] {
        let run = Traced::run(kernel);
        let (batch, wake) = (first(&run, INACTIVE), first(&run, "mm_vmscan_kswapd_wake"));
        assert_eq!(batch.number("nr_activate_anon").is_some(), by_kind, "{kernel}");
        assert_eq!(batch.number("nr_activate").is_none(), by_kind, "{kernel}");
        assert_eq!(wake.number("zid").is_none(), by_kind, "{kernel}");
        assert!(first(&run, ISOLATE).number("isolate_mode").is_some(), "{kernel}");
    }
    // Nobody but the shrinkers of 2.6.39 is silent.
    let oldest = Traced::run("2.6.39-rc7");
    assert_eq!(oldest.count("mm_shrink_slab_start"), 0);
    assert!(first(&oldest, ISOLATE).number("contig_taken").is_some());
}
