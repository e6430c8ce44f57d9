//! The programs of the workload `conformance` on the twin and on the kernel of this machine as a plain user sees it, and any
//! sequence of operations on files: both worlds must answer alike.
//!
//! A program records what it saw as samples; the two lists must be equal, whatever they hold. Programs that need a cgroup, a
//! small disk or a certain kernel run in guests (`crates/cli/tests/it/real_kernels.rs`).

use std::collections::BTreeMap;
use std::future::Future;
use std::path::Path;

use profile::{Kernel, Machine};
use proptest::prelude::*;
use sys::{Fd, FileName, OpenMode, Result, Sys};
use sys_linux::{Config, Supervision, SyncScope, SysLinux, system_info};
use twin::{RunSpec, SysTwin};

use units::Bytes;
use workloads::Workload;
use workloads::conformance::{done, number, size};

/// A metric and its samples.
type Seen = (String, Vec<f64>);

/// A program of both worlds. (A closure cannot be generic.)
trait Program: Clone + 'static {
    fn run<S: Sys>(self, sys: S) -> impl Future<Output = Result<()>> + 'static;
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
        contents: None,
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

/// A program of the workload.
#[derive(Clone)]
struct Named(&'static str);

impl Program for Named {
    fn run<S: Sys>(self, sys: S) -> impl Future<Output = Result<()>> + 'static {
        let program = ("program".to_string(), self.0.to_string());
        let (workload, _) = Workload::new("conformance", &[program]).unwrap();
        workload.run(sys)
    }
}

macro_rules! programs {
    ($($name:ident),*) => {$(
        #[test]
        fn $name() {
            same(Named(stringify!($name)));
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
    a_directory_goes_when_it_is_empty,
    a_removed_directory_has_no_entries,
    threads_share_files_and_processes_do_not,
    threads_stop_when_asked_and_meet_at_barriers,
    who_is_stopped_is_stopped_with_all_that_it_spawned,
    what_is_written_to_a_pipe_is_read,
    a_full_pipe_takes_no_more,
    a_pipe_ends_with_its_last_writer,
    a_child_holds_no_end_that_it_was_not_given,
    who_writes_without_a_reader_is_told,
    a_process_has_the_ends_that_it_was_given,
    threads_share_the_ends_of_their_process
);

#[derive(Clone)]
struct FileOps(Vec<FileOp>);

impl Program for FileOps {
    fn run<S: Sys>(self, sys: S) -> impl Future<Output = Result<()>> + 'static {
        file_ops(sys, self.0)
    }
}

/// An operation on one of a few files, of which each has at most one open descriptor that is kept.
#[derive(Clone, Copy, Debug)]
enum FileOp {
    Open { file: u64, create: bool },
    Close { file: u64 },
    Write { file: u64, at: u64, length: u64 },
    Read { file: u64, at: u64, length: u64 },
    Truncate { file: u64, length: u64 },
    Stat { file: u64 },
    Unlink { file: u64 },
    Rmdir,
    Mkdir,
}

/// Carries out operations and records what each saw. An open file may have lost its name.
async fn file_ops<S: Sys>(sys: S, ops: Vec<FileOp>) -> Result<()> {
    let dir = sys.mkdir("d").await?;
    let mut open: BTreeMap<u64, Fd> = BTreeMap::new();
    // No process has so many files, so that this one is never open.
    let fd = |open: &BTreeMap<u64, Fd>, file| open.get(&file).copied().unwrap_or(Fd(999));
    for op in ops {
        let seen = match op {
            FileOp::Open { file, .. } if open.contains_key(&file) => 1.0,
            FileOp::Open { file, create } => {
                let mode = if create { OpenMode::Create } else { OpenMode::Existing };
                number(sys.open(FileName { dir, number: file }, mode).await, |fd| {
                    open.insert(file, fd);
                    0.0
                })
            }
            FileOp::Close { file } => {
                let closed = done(sys.close(fd(&open, file)).await);
                open.remove(&file);
                closed
            }
            FileOp::Write { file, at, length } => done(sys.write(fd(&open, file), Bytes(at), Bytes(length)).await),
            FileOp::Read { file, at, length } => size(sys.read(fd(&open, file), Bytes(at), Bytes(length)).await),
            FileOp::Truncate { file, length } => done(sys.truncate(fd(&open, file), Bytes(length)).await),
            FileOp::Stat { file } => size(sys.stat(FileName { dir, number: file }).await),
            FileOp::Unlink { file } => done(sys.unlink(FileName { dir, number: file }).await),
            FileOp::Rmdir => done(sys.rmdir(dir).await),
            FileOp::Mkdir => number(sys.mkdir("d").await, |again| f64::from(u8::from(again == dir))),
        };
        sys.sample("seen", seen);
    }
    Ok(())
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
        Just(FileOp::Rmdir),
        Just(FileOp::Mkdir),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any sequence of operations on three files and their directory sees the same sizes, lengths and errors.
    #[test]
    fn files_behave_alike(ops in prop::collection::vec(file_op(), 1..60)) {
        let program = FileOps(ops);
        prop_assert_eq!(on_twin(program.clone()), on_linux(program));
    }
}
