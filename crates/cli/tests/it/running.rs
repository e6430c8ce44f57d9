//! `run` and `compare`.

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use predicates::str::contains;

use crate::{json, mmtwin, stdout, write_inputs};

/// A short run in `dir`.
fn run(dir: &Path, args: &[&str]) -> Command {
    let mut command = mmtwin();
    command.current_dir(dir).args(["run", "thpfioscale", "-m", "tiny.toml", "-p", "fio-jobs=2"]);
    command.args(args);
    command
}

fn inputs() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    write_inputs(dir.path());
    dir
}

#[test]
fn one_run_is_one_document() {
    let dir = inputs();
    let args = ["--json", "--set", "vm.swappiness=10", "--seed", "7"];
    let document = json(&mut run(dir.path(), &args));
    let manifest = &document["manifest"];
    assert_eq!((&manifest["seed"], &manifest["iteration"]), (&7.into(), &0.into()));
    assert_eq!(manifest["workload"]["params"]["fio-jobs"], "2");
    assert_eq!(manifest["sysctls"], serde_json::json!({ "vm.swappiness": "10" }));
    assert_eq!(manifest["machine"]["toml"], crate::TINY);
    assert!(document["run_dir"].is_null());
    assert_eq!(document["frames"], 64 << 8);
    assert!(document["bytes_per_frame"].as_f64().unwrap() > 1.0);
    let metric =
        |name: &str| document["metrics"].as_array().unwrap().iter().find(|m| m["name"] == name).cloned().unwrap();
    assert!(metric("elapsed_s")["mean"].as_f64().unwrap() > metric("elapsed_s/write")["mean"].as_f64().unwrap());
    assert!(metric("elapsed_s/write")["mean"].as_f64().unwrap() > 0.0);
    let events = |name: &str| metric(name)["mean"].as_f64().unwrap();
    let kinds = ["unmovable", "movable", "reclaimable"].map(|kind| events(&format!("extfrag_events/{kind}")));
    assert_eq!(events("extfrag_events"), kinds.iter().sum::<f64>());
}

#[test]
fn the_same_seed_is_the_same_run_whatever_the_threads() {
    let dir = inputs();
    let args = |jobs: &'static str| ["--json", "--iterations", "2", "-k", "4.20-rc3", "-k", "6.12", "--jobs", jobs];
    let first = stdout(&mut run(dir.path(), &args("1")));
    assert_eq!(first, stdout(&mut run(dir.path(), &args("1"))));
    assert_eq!(first, stdout(&mut run(dir.path(), &args("2"))));
    let document: serde_json::Value = serde_json::from_str(&first).unwrap();
    assert_eq!(document.as_array().unwrap().len(), 4);
}

#[test]
fn the_same_seed_leaves_the_same_run_directory() {
    let dir = inputs();
    for out in ["a", "b"] {
        run(dir.path(), &["--out", out, "--events", "kmem,vmscan,compaction"]).assert().success();
    }
    let diff = Command::new("diff").current_dir(&dir).args(["-r", "a", "b"]).assert();
    diff.success().stdout("");
}

#[test]
fn a_compaction_ends_in_the_mode_that_it_began_in() {
    let dir = inputs();
    let args =
        ["run", "thpfio3", "-m", "guest-160m", "-k", "6.12", "--set", "lru_gen.enabled=n", "--events", "compaction"];
    mmtwin().current_dir(dir.path()).args(args).args(["--set", "thp.enabled=always", "--out", "a"]).assert().success();
    let events = fs::read_to_string(dir.path().join("a/thpfio3-guest-160m/6.12/iter-0/events.txt")).unwrap();
    let mut modes = std::collections::BTreeMap::new();
    let mut seen = std::collections::BTreeSet::new();
    for line in events.lines().filter(|line| line.contains("mm_compaction_")) {
        let task = line.split_whitespace().next().unwrap();
        let Some(mode) = line.split_once("mode=").map(|(_, mode)| mode.split_whitespace().next().unwrap()) else {
            continue;
        };
        if line.contains("mm_compaction_begin") {
            modes.insert(task, mode);
            seen.insert(mode);
        } else {
            assert_eq!(modes.remove(task), Some(mode), "{line}");
        }
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), ["async", "sync"]);
}

#[test]
fn kswapd_that_ends_at_single_pages_has_kcompactd_make_the_blocks_that_were_wanted() {
    let dir = inputs();
    let run = ["run", "thpfio3", "-m", "guest-576m-xfs", "-k", "6.12", "--set", "lru_gen.enabled=n", "--out", "a"];
    let set =
        ["--set", "vm.watermark_boost_factor=0", "--set", "vm.min_free_kbytes=4096", "--set", "thp.enabled=never"];
    mmtwin().current_dir(dir.path()).args(run).args(set).args(["--events", "vmscan,compaction"]).assert().success();
    let path = dir.path().join("a/thpfio3-guest-576m-xfs/6.12/iter-0/events.txt");
    let events = fs::read_to_string(path).unwrap();
    let of_kswapd: Vec<&str> = events.lines().filter(|line| line.trim_start().starts_with("kswapd0-")).collect();
    // Readahead wants blocks of four pages; what kswapd was woken for last is what it wakes kcompactd for.
    let mut wanted = None;
    let mut woken = 0;
    for line in of_kswapd {
        if let Some((_, order)) = line.split_once("mm_vmscan_kswapd_wake: nid=0 order=") {
            wanted = Some(order.to_string());
        } else if let Some((_, woken_for)) = line.split_once("mm_compaction_wakeup_kcompactd: nid=0 order=") {
            assert_eq!(woken_for.split_whitespace().next(), wanted.as_deref().map(str::trim), "{line}");
            woken += 1;
        }
    }
    assert!(woken > 0);
}

#[test]
fn wall_time_is_told_if_asked_for() {
    let dir = inputs();
    let document = json(&mut run(dir.path(), &["--json", "--timings"]));
    assert!(document["wall_s"].as_f64().unwrap() > 0.0);
}

#[test]
fn a_changed_machine_runs_and_is_kept() {
    let dir = inputs();
    let document = json(&mut run(dir.path(), &["--json", "--memory", "96MiB", "--cpus", "4"]));
    assert_eq!(document["manifest"]["machine"]["name"], "tiny-96MiB-4cpus");
    let expected = crate::TINY
        .replace("\"tiny\"", "\"tiny-96MiB-4cpus\"")
        .replace("count = 2", "count = 4")
        .replace("memory = \"64MiB\"", "memory = \"96MiB\"");
    assert_eq!(document["manifest"]["machine"]["toml"], expected);
    assert_eq!(document["frames"], 96 << 8);
}

#[test]
fn several_kernels_are_compared() {
    let dir = inputs();
    let table = stdout(&mut run(dir.path(), &["-k", "4.20-rc3", "-k", "4.20-rc3-boost", "--iterations", "2"]));
    assert!(table.starts_with("thpfioscale on tiny (2 CPUs, 64MiB), seed 1\n16384 page frames at "), "{table}");
    let head = table.lines().nth(2).unwrap();
    assert!(head.contains("4.20-rc3") && head.contains("4.20-rc3-boost"), "{table}");
    assert!(table.contains("elapsed_s s ↓") && table.contains("extfrag_events/movable"), "{table}");
    assert!(table.contains("left out: psi"), "{table}");
}

#[test]
fn runs_are_kept_and_compared_and_never_written_over() {
    let dir = inputs();
    let args = ["-k", "4.20-rc3", "-k", "6.12", "--iterations", "2", "--out", "runs", "--events", "kmem,vmscan"];
    run(dir.path(), &args).assert().success().stdout(contains("4 runs kept in runs\n"));
    for kernel in ["4.20-rc3", "6.12"] {
        for iteration in 0..2 {
            let run = dir.path().join(format!("runs/thpfioscale-tiny/{kernel}/iter-{iteration}"));
            let manifest = fs::read_to_string(run.join("manifest.json")).unwrap();
            assert!(manifest.contains("gfp_flags and gfp_mask are what the model goes by"), "{manifest}");
            assert!(run.join("before/vmstat").exists() && run.join("after/vmstat").exists());
        }
    }
    let table = stdout(mmtwin().current_dir(&dir).args(["compare", "runs"]));
    assert!(table.starts_with("thpfioscale on tiny: file-size=64KiB fio-jobs=2 "), "{table}");
    let kept = "runs/thpfioscale-tiny/4.20-rc3/iter-0: there is a run already, and nothing is written over\n";
    run(dir.path(), &args).assert().code(2).stdout("").stderr(format!("mmtwin: {kept}"));
    let apart = ["runs/thpfioscale-tiny/6.12", "runs/thpfioscale-tiny/4.20-rc3/iter-1"];
    let table = stdout(mmtwin().current_dir(&dir).arg("compare").args(apart));
    let head = table.lines().nth(1).unwrap();
    assert!(head.find("6.12").unwrap() < head.find("4.20-rc3").unwrap(), "{table}");
}

#[test]
fn progress_goes_to_standard_error_a_line_a_run() {
    let dir = inputs();
    let assert = run(dir.path(), &["--verify"]).assert().success();
    let told = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
    assert!(told.starts_with("mmtwin: [1/1] thpfioscale-tiny 6.12 iter-0: "), "{told}");
    assert!(told.contains(" s of virtual time in ") && told.ends_with(" s; about 00:00:00 left\n"), "{told}");
    assert_eq!(told.lines().count(), 1);
}

/// Means of a short memcached-fio on a small machine, by their metrics' names.
fn memcached_fio(kernel: &str, params: &[&str]) -> impl Fn(&str) -> f64 + use<> {
    let dir = inputs();
    let mut command = mmtwin();
    command.current_dir(dir.path()).args(["run", "memcached-fio", "-m", "tiny.toml", "-k", kernel, "--verify"]);
    let sizes = ["threads=2", "jobs=2", "file-mb=16", "warm-up-s=0", "measure-s=2", "window-s=1"];
    for param in sizes.iter().chain(params) {
        command.args(["-p", param]);
    }
    let document = json(command.arg("--json"));
    move |name| {
        let metric = document["metrics"].as_array().unwrap().iter().find(|m| m["name"] == name).cloned();
        metric.unwrap_or_else(|| panic!("no {name}"))["mean"].as_f64().unwrap()
    }
}

#[test]
fn two_groups_are_reclaimed_exactly_under_every_lru() {
    for kernel in ["5.19-rc1", "6.1-mglru-8", "6.1-mglru-9", "6.1-mglru-v7", "6.12"] {
        for clients in ["clients=apart", "clients=paired"] {
            let mean = memcached_fio(kernel, &["keys=14000", clients]);
            assert!(mean("iops") > 0.0 && mean("ops_per_s") > 0.0, "{kernel}, {clients}");
            assert!(mean("kswapd_reclaimed") + mean("direct_reclaimed") > 0.0, "{kernel} had to reclaim");
        }
    }
}

#[test]
fn a_client_in_a_process_of_its_own_takes_its_own_time() {
    let mean = memcached_fio("6.12", &["keys=100", "clients=apart"]);
    // 6 us for each request, and for each 8 of them two calls, a sleep and a wake-up, 2.8 us. Two threads start and end, too.
    let us = mean("task_cpu_s/memtier") * 1e6 / (mean("ops_per_s") * 2.0);
    assert!((6.0..6.0 + 2.8 / 8.0 + 0.1).contains(&us), "{us}");
}

#[test]
fn a_setting_that_is_given_several_times_is_compared() {
    let dir = inputs();
    let settings = ["--set", "vm.watermark_boost_factor=0", "--set", "vm.watermark_boost_factor=15000"];
    let table = stdout(run(dir.path(), &settings).args(["-k", "6.12", "--set", "vm.swappiness=10", "--out", "runs"]));
    assert!(table.contains("2 runs kept in runs"), "{table}");
    for value in ["0", "15000"] {
        let place = format!("runs/thpfioscale-tiny/6.12-vm.watermark_boost_factor={value}/iter-0/manifest.json");
        let manifest = fs::read_to_string(dir.path().join(place)).unwrap();
        let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
        let written = |name: &str| manifest["sysctls"][name].as_str().map(str::to_string);
        // 15000 is the kernel's own value, which is no difference from it.
        assert_eq!(written("vm.watermark_boost_factor"), (value == "0").then(|| value.to_string()));
        assert_eq!(written("vm.swappiness").as_deref(), Some("10"));
    }
}

#[test]
fn a_job_file_of_fio_runs_and_says_what_each_kind_of_job_achieved() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("mixed.fio"), include_str!("../data/mixed.fio")).unwrap();
    let mut command = mmtwin();
    command.current_dir(&dir).args(["run", "mixed.fio", "-m", "guest-384m", "--json", "--verify"]);
    let assert = command.assert().success().stderr(contains("mixed.fio:5: group_reporting: without effect on memory"));
    let document: serde_json::Value = serde_json::from_slice(&assert.get_output().stdout).unwrap();
    let samples = |name: &str| {
        let metrics = document["metrics"].as_array().unwrap();
        metrics.iter().find(|metric| metric["name"] == name).unwrap()["samples"].as_array().unwrap().clone()
    };
    // Two clones read at random, one reads a mapping; one streams, one writes a mapping.
    assert_eq!((samples("fio_read_iops").len(), samples("fio_write_iops").len()), (3, 2));
    // The mapped file is 24 MiB and was dropped from the page cache when it was opened: a fault with I/O for each of the
    // 2048 pages of io_size=8m, none of which is touched twice.
    assert_eq!(samples("major_faults"), [2048.0]);
    let seconds = samples("elapsed_s/random")[0].as_f64().unwrap();
    assert!((2.0..2.1).contains(&seconds), "runtime=2 took {seconds} s");
    assert!(document["manifest"]["workload"]["params"]["job"].as_str().unwrap().contains("[stream]"));
}

#[test]
fn scenarios_of_cgroups_end_in_one_sentence_and_keep_the_groups_files() {
    let dir = inputs();
    let scenario = |name: &str, args: &[&str]| {
        let mut command = mmtwin();
        command.current_dir(&dir).args(["run", name, "-m", "tiny.toml", "-k", "6.12", "--verify"]).args(args);
        command
    };
    for (name, words) in [
        ("cgroup-high", "MiB above memory.high"),
        ("cgroup-noisy", "Without memory.low, after the batch job the service reads its 7 MiB in"),
        ("cgroup-writers", "With a memory.max of 7 MiB the batch job "),
        ("cgroup-low", "With memory.low over all of it, after the batch job the service reads its 7 MiB in"),
    ] {
        scenario(name, &[]).assert().success().stdout(contains(words));
    }
    let document = json(&mut scenario("cgroup-oom", &["--json", "--out", "runs"]));
    let finding = document["finding"].as_str().unwrap();
    assert!(finding.starts_with("The container was killed at its own limit"), "{finding}");
    assert!(finding.contains("oom_kill 1)"), "{finding}");
    let group = Path::new(document["run_dir"].as_str().unwrap()).join("after/cgroup/container");
    let file = |name: &str| fs::read_to_string(dir.path().join(&group).join(name)).unwrap();
    assert!(file("memory.events").contains("oom_kill 1\n"), "{}", file("memory.events"));
    assert!(file("memory.stat").starts_with("anon 0\n"), "{}", file("memory.stat"));
    assert!(file("memory.pressure").starts_with("some avg10="), "{}", file("memory.pressure"));
    // What is written is read again.
    stdout(mmtwin().current_dir(&dir).args(["compare", "runs"]));
}

#[test]
fn generations_are_switched_in_the_midst_of_a_run() {
    let dir = inputs();
    let run = |changes: &[&str]| {
        let mut command = mmtwin();
        command.current_dir(&dir).args(["run", "squeeze", "-m", "tiny.toml", "-k", "6.12", "--verify", "--json"]);
        command.args(["-p", "seconds=3", "-p", "anon-percent=50", "-p", "file-percent=90"]);
        command.args(changes.iter().flat_map(|change| ["--change", change]));
        command
    };
    let document = json(&mut run(&["lru_gen.enabled=n@0.2", "lru_gen.enabled=y@2.5"]));
    assert_eq!(document["manifest"]["sysctls"]["lru_gen.enabled@0.2"], "n");
    // Generations never count so: it is the lists, which were in use in between.
    assert!(document["vmstat"]["pgdeactivate"].as_i64().unwrap() > 0, "{}", document["vmstat"]);
    for (change, told) in [
        ("lru_gen.enabled=n", "expected key=value@seconds"),
        ("lru_gen.enabled=n@soon", "expected key=value@seconds"),
        ("lru_gen.enabled=perhaps@1", "lru_gen.enabled: `perhaps` is not"),
    ] {
        run(&[change]).assert().code(2).stderr(contains(told));
    }
}

#[test]
fn a_kswapd_that_takes_page_cache_in_use_is_told_so_and_one_with_room_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let table = |changes: &[&str]| {
        let mut command = mmtwin();
        command.current_dir(&dir).args(["run", "kswapd-cache", "-m", "node-noswap", "--memory", "128MiB"]);
        command.args(["-k", "6.12", "-p", "seconds=2"]).args(changes);
        stdout(&mut command)
    };
    let squeezed = table(&[]);
    assert!(squeezed.contains("kswapd used") && squeezed.contains("it takes page cache that is in use"), "{squeezed}");
    assert!(squeezed.contains("there is no swap"), "{squeezed}");
    let roomy = table(&["-p", "anon-percent=20"]);
    assert!(!roomy.contains("kswapd used"), "{roomy}");
}

/// A short run of a scenario of kswapd.
fn scenario_run(dir: &Path, args: &[&str]) -> Command {
    let mut command = mmtwin();
    command.current_dir(dir).args(["run", "-p", "seconds=1", "--memory", "256MiB"]).args(args);
    command
}

/// What a metric is in such a run.
fn mean_in(dir: &Path, args: &[&str], name: &str) -> f64 {
    let document = json(scenario_run(dir, args).arg("--json"));
    let metrics = document["metrics"].as_array().unwrap();
    metrics.iter().find(|metric| metric["name"] == name).unwrap()["mean"].as_f64().unwrap()
}

/// A machine's file without what its boot holds, which takes more memory than the test has.
fn unbooted(dir: &Path, machine: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../machines/{machine}.toml"));
    let text = std::fs::read_to_string(file).unwrap();
    let (before, booted) = text.split_once("[booted]\n").expect("it is booted");
    let (_, after) = booted.split_once("\n[[").expect("disks follow");
    let path = dir.join(format!("{machine}.toml"));
    std::fs::write(&path, format!("{before}[[{after}")).unwrap();
    path.into_os_string().into_string().unwrap()
}

/// What kswapd's share of a CPU is in a scenario, and what the command says of it.
fn kswapd_in(args: &[&str]) -> (f64, String) {
    let dir = tempfile::tempdir().unwrap();
    (mean_in(dir.path(), args, "kswapd_cpu_pct"), stdout(&mut scenario_run(dir.path(), args)))
}

#[test]
fn what_kswapd_does_for_blocks_of_a_higher_order_is_timed_by_itself() {
    let dir = tempfile::tempdir().unwrap();
    let machine = unbooted(dir.path(), "server-2g");
    let args = ["kswapd-order", "-m", &machine, "-k", "2.6.39-rc7-fixprematurely"];
    let time = |name, more: &[&str]| mean_in(dir.path(), &[&args[..], more].concat(), name);
    let all = time("kswapd_cpu_s", &[]);
    let for_blocks = time("kswapd_cpu_s/high-order", &[]);
    assert!(for_blocks > 0.5 * all && for_blocks <= all, "{for_blocks} of {all}");
    assert_eq!(time("kswapd_cpu_s/high-order", &["-p", "order=0", "-p", "held=9"]), 0.0, "nobody asks for blocks");
}

#[test]
fn a_test_for_sleeping_that_is_the_wrong_way_round_keeps_kswapd_on_its_cpu() {
    let dir = tempfile::tempdir().unwrap();
    let machine = unbooted(dir.path(), "server-2g");
    let scenario = ["kswapd-order", "-m", &machine, "-k"];
    let (wrong, told) = kswapd_in(&[&scenario[..], &["2.6.39-rc7"]].concat());
    assert!(wrong > 90.0 && told.contains("its test for sleeping is the wrong way round"), "{wrong} {told}");
    // It sleeps between the requests then, each of which is in vain all the same.
    let (right, told) = kswapd_in(&[&scenario[..], &["2.6.39-rc7-fixprematurely"]].concat());
    assert!(
        right < 0.9 * wrong && told.contains("blocks of a higher order that reclaim cannot make"),
        "{right} {told}"
    );
    // As many blocks of order 0, of which there are enough.
    let (idle, told) = kswapd_in(&[&scenario[..], &["2.6.39-rc7", "-p", "order=0", "-p", "held=9"]].concat());
    assert!(idle < 1.0 && !told.contains("kswapd used"), "{idle} {told}");
}

#[test]
fn boosted_reclaim_that_may_not_write_frees_nothing_of_generations() {
    let scenario = ["kswapd-boost", "-m", "node-noswap", "-k", "6.12"];
    let (busy, told) = kswapd_in(&scenario);
    // The other causes take 90 % and more; this run takes a second, of which it makes containers first.
    assert!(busy > 80.0 && told.contains("only worked off a boost of the watermarks"), "{busy} {told}");
    assert!(told.contains("revived it, and gave a node up"), "{told}");
    assert!(told.contains("past 1000 memory cgroups each"), "{told}");
    // Nearly all of its runs are of that kind: "N of M runs only worked off".
    let (of_runs, _) = told.split_once(" runs only worked off").expect("it was just found");
    let counts: Vec<f64> = of_runs.rsplit(' ').filter_map(|word| word.parse().ok()).take(2).collect();
    assert!(counts[1] > 0.9 * counts[0], "{told}");
    // Where nothing else reclaims, it gives up for good after 16 runs.
    let (alone, told) = kswapd_in(&[&scenario[..], &["-p", "readers=0"]].concat());
    assert!(alone < 1.0 && told.contains("gave a node up once") && told.contains("16 of 16 runs"), "{alone} {told}");
    let (unboosted, told) = kswapd_in(&[&scenario[..], &["--set", "vm.watermark_boost_factor=0"]].concat());
    assert!(unboosted < 10.0 && !told.contains("only worked off a boost"), "{unboosted} {told}");
    let (_, told) = kswapd_in(&[&scenario[..], &["--set", "lru_gen.enabled=n"]].concat());
    assert!(!told.contains("the multi-gen LRU then frees none"), "{told}");
}

#[test]
fn a_worker_copies_what_a_limit_held_back() {
    let dir = inputs();
    let mut command = mmtwin();
    let sizes = ["-p", "write-mb=64", "-p", "anon-mb=1", "-p", "file-mb=1", "-p", "passes=1"];
    command.current_dir(dir.path()).args(["run", "wbstrm", "-m", "guest-384m", "-k", "6.12", "--json"]).args(sizes);
    let document = json(&mut command);
    let metrics = document["metrics"].as_array().unwrap();
    let mean = |name: &str| metrics.iter().find(|m| m["name"] == name).map(|m| m["mean"].as_f64().unwrap());
    let worker = mean("task_cpu_s/kworker/throttle").expect("the limit is 100 MiB/s");
    // Each page takes 1,692 ns, each bio 400 and what the driver takes, 2,000: at most all pages, each a bio.
    assert!(worker > 0.0 && worker <= f64::from(64 << 8) * 4.092e-6, "{worker}");
}

#[test]
fn swap_may_be_compressed_memory_or_have_a_compressed_cache_before_it() {
    let dir = inputs();
    let vmstat = |args: &[&str]| -> Box<dyn Fn(&str) -> u64> {
        let mut command = mmtwin();
        command.current_dir(dir.path()).args([
            "run",
            "wbstrm",
            "-m",
            "tiny.toml",
            "-p",
            "write-mb=16",
            "-p",
            "anon-mb=80",
            "-p",
            "file-mb=16",
        ]);
        let document = json(command.args(["--verify", "--json"]).args(args));
        Box::new(move |name| document["vmstat"][name].as_u64().unwrap_or(0))
    };
    let zram = vmstat(&["--zram", "64MiB"]);
    assert!(zram("pswpout") > 1000 && zram("pswpin") > 0 && zram("zswpout") == 0);
    // The pages that the pool refuses while it shrinks, and those that it gives up, are all that the disk gets.
    let zswap = vmstat(&["--set", "zswap.enabled=y"]);
    assert!(zswap("zswpout") > 1000 && zswap("zswpin") > 0 && zswap("zswpwb") > 0);
    assert!(zswap("pswpout") >= zswap("zswpwb") && zswap("pswpout") < zswap("nr_vmscan_write") + zswap("zswpwb"));
    mmtwin().args(["run", "wbstrm", "--zram", "lots"]).assert().code(2).stderr(contains("`lots` is not a size"));
    mmtwin().args(["run", "wbstrm", "--set", "zswap.enabled=maybe"]).assert().code(2).stderr(contains("one of N, Y"));
    mmtwin().args(["reproduce", "--fs", "btrfs"]).assert().code(2).stderr(contains("expected xfs or ext4"));
}

/// A run of the three benchmarks of writeback on 64 MiB under the baseline of their study: by how much counters grew.
fn writeback_of_64_mib(args: &[&str]) -> impl Fn(&str) -> u64 + use<> {
    let dir = tempfile::tempdir().unwrap();
    let machine = unbooted(dir.path(), "amd-4core");
    let common =
        ["run", "reclaim-writeback", "-m", &machine, "--memory", "64MiB", "-k", "3.1-rc", "--verify", "--json"];
    let sizes = ["-p", "memory=64", "-p", "strm-passes=0", "-p", "resident=1MiB"];
    let document = json(mmtwin().args(common).args(sizes).args(args));
    move |counter| document["vmstat"][counter].as_u64().unwrap_or(0)
}

#[test]
fn files_of_fs_mark_stay_until_all_loops_are_done() {
    let loops = ["-p", "threads=2", "-p", "fsmark-loops=3", "-p", "fsmark-files=64", "-p", "file-size=1MiB"];
    let vmstat = writeback_of_64_mib(&[&loops[..], &["-p", "wb-iterations=0"]].concat());
    let zones = ["dma", "dma32"]
        .map(|zone| vmstat(&format!("pgsteal_kswapd_{zone}")) + vmstat(&format!("pgsteal_direct_{zone}")));
    // 192 MiB were written, of which 64 at most are still there.
    assert!(zones.iter().sum::<u64>() >= 128 << 8, "{zones:?}");
}

#[test]
fn the_buffers_of_dd_are_memory_that_reclaim_takes() {
    let dd = ["-p", "wb-factor-min=4", "-p", "wb-factor-max=4", "-p", "wb-iterations=1"];
    let vmstat = writeback_of_64_mib(&[&["-p", "fsmark-loops=0", "-p", "resident-written=0"], &dd[..]].concat());
    // What is resident is written to once, so that its 256 pages go to swap once; sixteen dd have 512 each.
    assert!(vmstat("pswpout") > 256, "{}", vmstat("pswpout"));
}

#[test]
fn programs_that_are_launched_beside_take_their_cpu_time_at_least() {
    let dir = tempfile::tempdir().unwrap();
    let machine = unbooted(dir.path(), "laptop-usb");
    let common = ["run", "reclaim-writeback", "-m", &machine, "--memory", "64MiB", "-k", "3.1-rc", "--json"];
    let params = ["memory=64", "fsmark-loops=0", "wb-factor-max=1", "wb-iterations=1", "strm-passes=0", "launches=yes"];
    let document = json(mmtwin().args(common).args(params.iter().flat_map(|param| ["-p", param])));
    let metrics = document["metrics"].as_array().unwrap();
    // Firefox computes for 3 s in parts of a 120th, gnome-terminal for 0.8 s in hundredths.
    for (name, seconds) in [("firefox", 3.0), ("gnome-terminal", 0.8)] {
        let metric = metrics.iter().find(|m| m["name"] == format!("app_launch_s/{name}")).unwrap();
        assert!((seconds..4.0 * seconds).contains(&metric["mean"].as_f64().unwrap()), "{metric}");
    }
}

#[test]
fn tar_works_while_bzip2_writes_into_its_pipe() {
    let dir = tempfile::tempdir().unwrap();
    let machine = unbooted(dir.path(), "server-2g");
    let common =
        ["run", "largecopytar", "-m", &machine, "--memory", "256MiB", "-k", "2.6.39-rc7", "--verify", "--json"];
    let params = ["percent=10", "launches=no", "session-mb=10"];
    let document = json(mmtwin().args(common).args(params.iter().flat_map(|param| ["-p", param])));
    let metrics = document["metrics"].as_array().unwrap();
    let mean = |name: &str| metrics.iter().find(|m| m["name"] == name).unwrap()["mean"].as_f64().unwrap();
    let (bzip2, tar) = (mean("task_cpu_s/bzip2"), mean("task_cpu_s/tar"));
    let unpack = mean("elapsed_s/test/unpack");
    // The time of the one that takes longer, which is not kept waiting; the other one works after it for the last bytes only.
    assert!(unpack > bzip2 && unpack < bzip2 + 0.2 * tar, "{unpack} {bzip2} {tar}");
}

#[test]
fn other_benchmarks_come_before_stress_highalloc_and_do_not_count_as_its_run() {
    let small =
        ["kernels=1", "files=64", "units=14", "cc1-pages=64", "unit-ms=10", "warmup-s=0", "wait-s=0", "percent=2"];
    let user_s = |before: &[&str]| {
        let params = small.iter().chain(before).flat_map(|param| ["-p", param]);
        let machine = ["run", "stress-highalloc", "-m", "desktop-4g", "--memory", "1GiB", "-k", "3.19-rc4", "--json"];
        let document = json(mmtwin().args(machine).args(["-p", "runs=1"]).args(params));
        let metrics = document["metrics"].as_array().unwrap().clone();
        let mean = move |name: &str| metrics.iter().find(|m| m["name"] == name).map(|m| m["mean"].as_f64().unwrap());
        (mean("user_s/before-1"), mean("user_s/run-1").unwrap())
    };
    let (none, alone) = user_s(&[]);
    assert_eq!(none, None);
    let (kernbench, run) = user_s(&["kernbench=2"]);
    // 17 units of 10 ms for configuring, and twice 14 units of 0.87, 2 archives of 0.8 and the image's 14 times 0.006.
    let builds = 0.01 * (17.0 + 2.0 * (14.0 * 0.87 + 2.0 * 0.8 + 14.0 * 0.006));
    let kernbench = kernbench.expect("it has a part of its own");
    assert!(kernbench > builds && kernbench < 2.0 * builds, "{kernbench} {builds}");
    assert!((run / alone - 1.0).abs() < 0.1, "{run} {alone}");
    let (stream, run) = user_s(&["stream=1"]);
    // Four times each power of two from 2 to 256 MiB, and 512 MiB once; 33 bytes are moved for each, at 10 GB/s.
    let moved = 33.0 * (4.0 * (512.0 - 2.0) + 512.0) * f64::from(1 << 20) / 1e10;
    let stream = stream.expect("it has a part of its own");
    assert!(stream > moved && stream < 1.1 * moved, "{stream} {moved}");
    assert!((run / alone - 1.0).abs() < 0.1, "{run} {alone}");
}
