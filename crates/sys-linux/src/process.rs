//! A process of the workload, and the settings of a run.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use rustix::process::Pid;
use sys::SystemInfo;
use units::Contents;

use crate::contents::PageFill;
use crate::memory::Mapped;
use crate::pipes::Pipes;
use crate::shared::{Shared, Told};
use crate::spin::Spinner;

/// What `sync` writes, and with it whose the machine is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SyncScope {
    /// All file systems (`sync`): in a guest, where all are the run's, and so are sysctls.
    Machine,
    /// The file system of the test mount (`syncfs`): on a host that others use too.
    TestMount,
}

/// Who wants to know how far the workload is.
pub type Tell = fn(&Told<'_>);

/// Settings of a run.
#[derive(Clone, Debug)]
pub struct Config {
    /// The test mount: an empty directory below which the workload's files are made.
    pub mount: PathBuf,
    /// What [`Sys::seed`](sys::Sys::seed) answers.
    pub seed: u64,
    /// What [`Sys::info`](sys::Sys::info) answers.
    pub info: SystemInfo,
    /// What `sync` writes.
    pub sync: SyncScope,
    /// The memory cgroup of version 2 that the workload's first process is put into, below which it may make its own; none
    /// where there is none.
    pub cgroup: Option<PathBuf>,
    /// Told how far the workload is: at each new phase, at each hundredth of the whole, and with each row of the series. It
    /// runs in processes of the run, and must not allocate.
    pub tell: Option<Tell>,
    /// What anonymous pages that the workload stores to hold, as far as compressing them goes; without it one byte over and over
    /// where it stores.
    pub contents: Option<Contents>,
}

/// Open files by number.
#[derive(Default)]
pub(crate) struct Files {
    pub(crate) table: Vec<Option<Arc<OwnedFd>>>,
    pub(crate) free: Vec<u32>,
}

/// A process that this one has forked.
#[derive(Clone, Copy)]
pub(crate) struct Child {
    /// Its number among the threads of the run.
    pub(crate) number: u32,
    pub(crate) pid: Pid,
    /// Whether the run goes on if it is killed.
    pub(crate) may_be_killed: bool,
}

/// What the threads of a process share.
pub(crate) struct Process {
    pub(crate) shared: &'static Shared,
    pub(crate) config: Arc<Config>,
    pub(crate) spinner: Spinner,
    /// Fills anonymous pages, if their contents matter.
    pub(crate) fill: Option<Arc<PageFill>>,
    pub(crate) mappings: Mutex<Vec<Option<Mapped>>>,
    pub(crate) files: Mutex<Files>,
    pub(crate) pipes: Mutex<Pipes>,
    pub(crate) threads: Mutex<Vec<(u32, JoinHandle<()>)>>,
    pub(crate) children: Mutex<Vec<Child>>,
}

impl Process {
    /// Tells how far the workload is.
    pub(crate) fn tell(&self) {
        if let Some(tell) = self.config.tell {
            self.shared.tell(tell);
        }
    }

    pub(crate) fn new(shared: &'static Shared, config: Arc<Config>, spinner: Spinner) -> Process {
        let fill = config.contents.map(|contents| Arc::new(PageFill::new(contents)));
        Process {
            shared,
            config,
            spinner,
            fill,
            mappings: Mutex::default(),
            files: Mutex::default(),
            pipes: Mutex::default(),
            threads: Mutex::default(),
            children: Mutex::default(),
        }
    }
}

/// Locks; no code that can panic half-way through a change runs under these locks.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
