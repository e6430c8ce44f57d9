//! `run --events`: what the tracepoints say adds up to what the counters say.

use observe::{Counters, KernelEvent, RunDir, TraceEvent};

use crate::{events, mmtwin, write_inputs};

/// The events of a group of a short run of a kernel, and what its counters gained.
struct Traced {
    events: Vec<KernelEvent>,
    before: Counters,
    after: Counters,
}

impl Traced {
    fn vmscan(kernel: &str) -> Traced {
        Traced::run(kernel, "vmscan")
    }

    fn run(kernel: &str, group: &str) -> Traced {
        Traced::run_with(kernel, group, &[])
    }

    /// The same, with more on the command line.
    fn run_with(kernel: &str, group: &str, more: &[&str]) -> Traced {
        let dir = tempfile::tempdir().unwrap();
        write_inputs(dir.path());
        let args = ["run", "thpfioscale", "-m", "tiny.toml", "-p", "fio-jobs=2", "--out", "runs", "--events", group];
        mmtwin().current_dir(&dir).args(args).args(["-k", kernel]).args(more).assert().success();
        let place = dir.path().join(format!("runs/thpfioscale-tiny/{kernel}/iter-0"));
        let run = RunDir::read(&place).unwrap();
        let records = events(&place);
        let of_kernel = |event: TraceEvent| match event {
            TraceEvent::OfKernel(event) => event,
            other => panic!("{} was not asked for", other.name()),
        };
        let events = records.into_iter().map(|record| of_kernel(record.event)).collect();
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

    fn of<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a KernelEvent> {
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
        let run = Traced::vmscan(kernel);
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
        let run = Traced::vmscan(kernel);
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
        let run = Traced::vmscan(kernel);
        assert!(run.gained(&["pageoutrun"]) > 0, "{kernel}");
        assert_eq!(run.count("mm_vmscan_kswapd_wake"), run.gained(&["pageoutrun"]), "{kernel}");
    }
    // Until 3.10 a run goes round and round, and each round counts.
    let run = Traced::vmscan("3.1");
    let wakes = run.count("mm_vmscan_kswapd_wake");
    assert!((1..run.gained(&["pageoutrun"])).contains(&wakes), "{wakes}");
}

#[test]
fn each_kernel_has_its_own_fields() {
    let first = |run: &Traced, name: &str| run.of(name).next().expect(name).clone();
    let old = Traced::vmscan("4.4");
    let batch = first(&old, INACTIVE);
    assert!(batch.number("zid").is_some() && batch.field("nr_dirty").is_none());
    assert!(first(&old, ISOLATE).field("file").is_some());
    assert!(first(&old, "mm_shrink_slab_start").number("pgs_scanned").is_some());
    let new = Traced::vmscan("6.12");
    let batch = first(&new, INACTIVE);
    assert!(batch.field("zid").is_none() && batch.number("nr_activate_file").is_some());
    assert!(first(&new, ISOLATE).field("isolate_mode").is_none());
    assert!(first(&new, "mm_shrink_slab_start").number("priority").is_some());
    for (kernel, by_kind) in [("5.0", false), ("5.2", true), ("6.1", true)] {
        let run = Traced::vmscan(kernel);
        let (batch, wake) = (first(&run, INACTIVE), first(&run, "mm_vmscan_kswapd_wake"));
        assert_eq!(batch.number("nr_activate_anon").is_some(), by_kind, "{kernel}");
        assert_eq!(batch.number("nr_activate").is_none(), by_kind, "{kernel}");
        assert_eq!(wake.number("zid").is_none(), by_kind, "{kernel}");
        assert!(first(&run, ISOLATE).number("isolate_mode").is_some(), "{kernel}");
    }
    // Nobody but the shrinkers of 2.6.39 is silent.
    let oldest = Traced::vmscan("2.6.39-rc7");
    assert_eq!(oldest.count("mm_shrink_slab_start"), 0);
    assert!(first(&oldest, ISOLATE).number("contig_taken").is_some());
}

#[test]
fn scanners_add_up_to_the_counters_of_every_kernel() {
    for kernel in ["3.1", "3.19-rc4", "4.4", "4.18", "4.20-rc3", "5.0", "5.2", "6.1", "6.12"] {
        let run = Traced::run(kernel, "compaction");
        let sum = |name: &str, field: &str| run.sum(&format!("mm_compaction_{name}"), field);
        let moved = run.gained(&["pgmigrate_success"]);
        assert!(moved > 0 || kernel == "3.1", "{kernel} compacts");
        assert_eq!(sum("migratepages", "nr_migrated"), moved, "{kernel}");
        let sums = |field: &str| {
            ["isolate_migratepages", "isolate_freepages", "fast_isolate_freepages"].map(|n| sum(n, field))
        };
        let (taken, [migrate, free, free_lists]) = (sums("nr_taken"), sums("nr_scanned"));
        // No tracepoint tells of the search of the free lists for a source, nor before 6.12 of that for targets.
        let searches = ["5.2", "6.1", "6.12"].contains(&kernel);
        if !searches {
            assert_eq!(migrate, run.gained(&["compact_migrate_scanned"]), "{kernel}");
        }
        if !searches || kernel == "6.12" {
            assert_eq!(free + free_lists, run.gained(&["compact_free_scanned"]), "{kernel}");
            assert_eq!(taken.iter().sum::<i64>(), run.gained(&["compact_isolated"]), "{kernel}");
        }
    }
}

#[test]
fn a_kernel_tells_its_decisions_since_4_0() {
    for (kernel, runs, decisions) in
        [("3.1", false, false), ("3.19-rc4", true, false), ("4.4", true, true), ("6.12", true, true)]
    {
        // Proactive compaction asks no zone whether it suits; faults that may compact make it certain that some does.
        let only_for_an_order = ["vm.compaction_proactiveness=0", "lru_gen.enabled=n", "thp.defrag=always"];
        let set: Vec<&str> = only_for_an_order.iter().flat_map(|value| ["--set", value]).collect();
        let run = Traced::run_with(kernel, "compaction", if kernel == "6.12" { &set } else { &[] });
        let count = |name: &str| run.count(&format!("mm_compaction_{name}"));
        assert_eq!(count("begin") > 0, runs, "{kernel}");
        assert_eq!(count("begin"), count("end"), "{kernel}");
        for name in ["suitable", "finished", "try_to_compact_pages"] {
            assert_eq!(count(name) > 0, decisions, "{kernel}: {name}");
        }
        // A run that has begun found the zone suitable, and ends when it is told to be finished, or gives up.
        if decisions {
            let rets =
                |name: &'static str| run.of(name).filter_map(|event| event.field("ret")).map(|ret| ret.to_string());
            let going_on = ["continue", "no_suitable_page"];
            let finished = rets("mm_compaction_finished").filter(|ret| !going_on.contains(&ret.as_str())).count();
            assert!(finished as i64 <= count("begin"), "{kernel}");
            assert!(
                rets("mm_compaction_suitable").filter(|ret| ret == "continue").count() as i64 >= count("begin"),
                "{kernel}"
            );
        }
    }
}
