//! Small programs that both worlds must answer alike: the twin, and the kernel of this machine as a plain user sees it.
//!
//! A program records what it saw as samples; the two lists must be equal, whatever they hold.

mod programs;

use std::future::Future;
use std::path::Path;

use profile::{Kernel, Machine};
use proptest::prelude::*;
use sys::Sys;
use sys_linux::{Config, Supervision, SyncScope, SysLinux, system_info};
use twin::{RunSpec, SysTwin};

use programs::{FileOp, Seen};

/// A program of both worlds. (A closure cannot be generic.)
trait Program: Clone + 'static {
    fn run<S: Sys>(self, sys: S) -> impl Future<Output = sys::Result<()>> + 'static;
}

/// What the program saw on the twin.
fn on_twin(program: impl Program) -> Vec<Seen> {
    let machine = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/tests/data/tiny.toml");
    let kernel = Kernel::load("6.12").unwrap();
    let machine = Machine::load(machine.to_str().unwrap()).unwrap();
    let spec = RunSpec { verify: true, ..RunSpec::new(machine, kernel) };
    let outcome = twin::run(&spec, |sys: SysTwin| program.run(sys), &mut |_| true);
    let outcome = outcome.unwrap_or_else(|error| panic!("the twin: {error}"));
    outcome.log.samples.iter().map(|(name, values)| (name.to_string(), values.clone())).collect()
}

/// What it saw here.
fn on_linux(program: impl Program) -> Vec<Seen> {
    let mount = tempfile::tempdir().unwrap();
    let config = Config {
        mount: mount.path().to_owned(),
        seed: sys::workload_seed(1, 0),
        info: system_info(None).unwrap(),
        sync: SyncScope::TestMount,
        cgroup: None,
        tell: None,
    };
    let supervision = Supervision { enter: &mut |_| Ok(()), limit_s: 60, series: None, watch: None };
    let done = sys_linux::run(config, supervision, |sys: SysLinux| program.run(sys));
    done.unwrap_or_else(|error| panic!("this kernel: {error}")).samples
}

fn same(program: impl Program) {
    let (twin, linux) = (on_twin(program.clone()), on_linux(program));
    assert!(!linux.is_empty(), "the program saw nothing");
    assert_eq!(twin, linux, "left: the twin; right: this kernel");
}

macro_rules! programs {
    ($($name:ident),*) => {$(
        #[test]
        fn $name() {
            #[derive(Clone)]
            struct This;
            impl Program for This {
                fn run<S: Sys>(self, sys: S) -> impl Future<Output = sys::Result<()>> + 'static {
                    programs::$name(sys)
                }
            }
            same(This);
        }
    )*};
}

programs!(
    memory_is_resident_once_touched,
    bad_mappings_and_ranges_are_invalid,
    a_mapped_file_is_the_file,
    reads_end_where_the_file_ends,
    truncation_cuts_and_extends,
    a_removed_file_lives_until_its_last_close,
    missing_files_have_no_entry,
    threads_share_files_and_processes_do_not,
    threads_stop_when_asked_and_meet_at_barriers,
    who_is_stopped_is_stopped_with_all_that_it_spawned
);

#[derive(Clone)]
struct FileOps(Vec<FileOp>);

impl Program for FileOps {
    fn run<S: Sys>(self, sys: S) -> impl Future<Output = sys::Result<()>> + 'static {
        programs::file_ops(sys, self.0)
    }
}

fn file_op() -> impl Strategy<Value = FileOp> {
    let (file, at) = (0..3u64, prop_oneof![0..3u64, 4090..4100u64, 0..20_000u64]);
    let length = prop_oneof![1..3u64, 4094..4099u64, 1..20_000u64];
    prop_oneof![
        (file.clone(), any::<bool>()).prop_map(|(file, create)| FileOp::Open { file, create }),
        file.clone().prop_map(|file| FileOp::Close { file }),
        (file.clone(), at.clone(), length.clone()).prop_map(|(file, at, length)| FileOp::Write { file, at, length }),
        (file.clone(), at.clone(), length).prop_map(|(file, at, length)| FileOp::Read { file, at, length }),
        (file.clone(), at).prop_map(|(file, length)| FileOp::Truncate { file, length }),
        file.clone().prop_map(|file| FileOp::Stat { file }),
        file.prop_map(|file| FileOp::Unlink { file }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any sequence of operations on three files sees the same sizes, lengths and errors.
    #[test]
    fn files_behave_alike(ops in prop::collection::vec(file_op(), 1..60)) {
        let program = FileOps(ops);
        prop_assert_eq!(on_twin(program.clone()), on_linux(program));
    }
}
