//! Swarm tests: random machines under random kernels run random programs with every invariant on.
//!
//! A case is data, drawn by proptest from a seed of its own, so that a failing one shrinks and is drawn again by
//! `MMTWIN_SWARM_SEED=N MMTWIN_SWARM_CASES=1 cargo test --release -p twin swarm`. `MMTWIN_SWARM_CASES` asks for more cases.

mod case;
mod check;
mod draw;
mod machine;
mod program;
mod quiet;

use std::cell::RefCell;
use std::collections::BTreeMap;

use observe::Counters;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

use case::Case;

/// Cases of a usual run of the tests.
const CASES: u64 = 120;
/// Of so many cases one is run twice.
const TWICE: u64 = 4;
/// Cases tried while a failing one shrinks.
const SHRINK_ITERS: u32 = 600;

fn number_from(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text}: a number")))
}

/// A generator of cases that draws the same ones for the same seed.
fn runner(seed: u64) -> TestRunner {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let config = Config { cases: 1, failure_persistence: None, max_shrink_iters: SHRINK_ITERS, ..Config::default() };
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes))
}

/// Draws the case of a seed, runs it, and shrinks it if it fails; its counters.
fn try_seed(seed: u64) -> Result<Counters, String> {
    let counters = RefCell::default();
    let outcome = runner(seed).run(&draw::case(), |case| {
        let ran = quiet::catch(|| check::run(&case, seed.is_multiple_of(TWICE))).map_err(TestCaseError::fail)?;
        counters.replace(ran.vmstat);
        Ok(())
    });
    match outcome {
        Ok(()) => Ok(counters.into_inner()),
        Err(TestError::Fail(reason, case)) => Err(format!("{reason}\n{}", describe(&case))),
        Err(TestError::Abort(reason)) => Err(format!("no case was drawn: {reason}")),
    }
}

fn describe(case: &Case) -> String {
    format!("the smallest case that fails:\n{case:#?}")
}

/// Counters that the cases of a usual run must move, or they would not test what they are for.
const REACHED: &[&str] = &[
    "pswpin",
    "pswpout",
    "pgmajfault",
    "pgsteal_kswapd",
    "pgsteal_direct",
    "slabs_scanned",
    "kswapd_inodesteal",
    "oom_kill",
    "pgmigrate_success",
    "compact_success",
    "thp_fault_alloc",
    "thp_fault_fallback",
    "thp_split_page",
    "nr_vmscan_write",
    "nr_written",
    "workingset_refault",
    "workingset_refault_file",
];

#[test]
fn random_programs_on_random_machines_keep_every_invariant() {
    let first = number_from("MMTWIN_SWARM_SEED", 1);
    let cases = number_from("MMTWIN_SWARM_CASES", CASES);
    let mut moved: BTreeMap<&str, u64> = REACHED.iter().map(|name| (*name, 0)).collect();
    for seed in first..first + cases {
        let counters = try_seed(seed)
            .unwrap_or_else(|report| panic!("{report}\nreplay: MMTWIN_SWARM_SEED={seed} MMTWIN_SWARM_CASES=1"));
        for (name, runs) in &mut moved {
            *runs += u64::from(counters.get(name).is_some_and(|count| count > 0));
        }
    }
    eprintln!("{moved:?}");
    let still: Vec<&str> = moved.into_iter().filter(|(_, runs)| *runs == 0).map(|(name, _)| name).collect();
    assert!(cases < CASES || still.is_empty(), "no case moved {still:?}");
}
