//! Threads and processes.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};
use sys::{SpawnOptions, SysError, Thread};

use crate::process::{Child, Process, lock};
use crate::shared::{wait_until, wake};
use crate::{SysLinux, block_on};

/// Exit status of a process whose workload panicked.
const PANICKED: i32 = 101;

impl SysLinux {
    pub(crate) fn spawn_thread<F, Fut>(&self, options: &SpawnOptions, body: F) -> Thread
    where
        F: FnOnce(SysLinux) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + 'static,
    {
        let number = self.process.shared.new_thread(Some(self.thread));
        self.process.shared.thread(number).pid.store(rustix::process::getpid().as_raw_pid(), Ordering::Release);
        let process = Arc::clone(&self.process);
        let (name, nice) = (options.name.clone(), options.nice);
        let main = move || {
            let sys = SysLinux::new(process, number);
            set_identity(&sys, &name, nice);
            run_body(&sys, body);
        };
        match std::thread::Builder::new().spawn(main) {
            Ok(handle) => lock(&self.process.threads).push((number, handle)),
            Err(_) => self.fail_run(SysError::NoMemory),
        }
        Thread(number)
    }

    /// Forks. The child keeps of its parent's only what all processes of the run share.
    pub(crate) fn spawn_process<F, Fut>(&self, options: &SpawnOptions, body: F) -> Thread
    where
        F: FnOnce(SysLinux) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + 'static,
    {
        let shared = self.process.shared;
        let number = shared.new_thread(Some(self.thread));
        // Held across the fork, so that the child finds the tables whole whatever other threads do.
        let mut files = lock(&self.process.files);
        let mut pipes = lock(&self.process.pipes);
        if !pipes.hold(options) {
            self.fail_run(SysError::BadFd);
            return Thread(number);
        }
        match fork() {
            Ok(None) => {
                // Its own table of open files starts empty.
                files.table.clear();
                let process = Process::new(shared, Arc::clone(&self.process.config), self.process.spinner);
                *lock(&process.pipes) = pipes.inherited(options);
                exit_after(shared, number, || {
                    let sys = SysLinux::new(Arc::new(process), number);
                    set_identity(&sys, &options.name, options.nice);
                    run_body(&sys, body);
                    sys.end_process();
                })
            }
            Ok(Some(pid)) => {
                shared.thread(number).pid.store(pid.as_raw_pid(), Ordering::Release);
                lock(&self.process.children).push(Child { number, pid, may_be_killed: options.may_be_killed });
            }
            Err(_) => self.fail_run(SysError::NoMemory),
        }
        Thread(number)
    }

    /// Waits for a thread or a child of this process.
    pub(crate) fn join_thread(&self, thread: Thread) {
        let child = lock(&self.process.children).iter().position(|child| child.number == thread.0);
        if let Some(index) = child {
            let child = lock(&self.process.children).remove(index);
            return self.reap(child);
        }
        let slot = self.process.shared.thread(thread.0);
        wait_until(&slot.done, |done| done != 0);
        let mut threads = lock(&self.process.threads);
        let handle = threads.iter().position(|(number, _)| *number == thread.0).map(|index| threads.swap_remove(index));
        drop(threads);
        if let Some((_, handle)) = handle {
            // Its panic, if it had one, was told by `run_body`.
            let _ = handle.join();
        }
    }

    /// Waits for a child; one that did not end by itself fails the run.
    fn reap(&self, child: Child) {
        let waited = rustix::io::retry_on_intr(|| rustix::process::waitpid(Some(child.pid), WaitOptions::empty()));
        if let Ok(Some((_, status))) = waited
            && !ended_well(status)
            && !(child.may_be_killed && status.terminating_signal() == Some(Signal::KILL.as_raw()))
        {
            self.fail_run(SysError::Killed);
        }
    }

    /// Waits for all threads and children that nobody has waited for.
    pub(crate) fn end_process(&self) {
        loop {
            let thread = lock(&self.process.threads).first().map(|(number, _)| *number);
            let child = lock(&self.process.children).first().map(|child| child.number);
            let Some(number) = thread.or(child) else { return };
            self.join_thread(Thread(number));
        }
    }

    /// Keeps the failure and ends the workload: the process that waits for its first process sees to the rest.
    pub(crate) fn fail_run(&self, error: SysError) {
        self.process.shared.fail(error);
        if let Some(main) = Pid::from_raw(self.process.shared.main_pid.load(Ordering::Acquire)) {
            // If it is gone, the run has ended.
            let _ = rustix::process::kill_process(main, Signal::KILL);
        }
    }
}

/// Runs a thread's program; a panic in it fails the run.
fn run_body<F, Fut>(sys: &SysLinux, body: F)
where
    F: FnOnce(SysLinux) -> Fut,
    Fut: Future<Output = ()>,
{
    if catch_unwind(AssertUnwindSafe(|| block_on(body(sys.clone())))).is_err() {
        sys.fail_run(SysError::Killed);
    }
    let slot = sys.process.shared.thread(sys.thread);
    slot.done.store(1, Ordering::Release);
    wake(&slot.done);
}

/// Runs `body` and ends this process, which was forked from one that goes on, without its parent's clean-up.
pub(crate) fn exit_after(shared: &crate::shared::Shared, thread: u32, body: impl FnOnce()) -> ! {
    shared.thread(thread).pid.store(rustix::process::getpid().as_raw_pid(), Ordering::Release);
    let status = if catch_unwind(AssertUnwindSafe(body)).is_ok() { 0 } else { PANICKED };
    exit_now(status)
}

fn set_identity(sys: &SysLinux, name: &str, nice: i8) {
    let comm: Vec<u8> = name.bytes().filter(|b| *b != 0).take(15).collect();
    if let Ok(comm) = std::ffi::CString::new(comm) {
        // A name is for whoever looks; the run does not depend on it.
        let _ = rustix::thread::set_name(&comm);
    }
    if nice != 0 && rustix::process::setpriority_process(None, i32::from(nice)).is_err() {
        sys.fail_run(SysError::Invalid);
    }
}

/// Whether a process ended by itself.
pub(crate) fn ended_well(status: WaitStatus) -> bool {
    status.exit_status() == Some(0)
}

/// Forks: the child's number in the parent, nothing in the child.
#[allow(unsafe_code)]
pub(crate) fn fork() -> std::io::Result<Option<Pid>> {
    // SAFETY: the C library lets a child allocate after a fork from a process with threads; the locks that the child
    // uses are either its own, new ones or held by the thread that forks.
    match unsafe { libc::fork() } {
        -1 => Err(std::io::Error::last_os_error()),
        pid => Ok(Pid::from_raw(pid)),
    }
}

#[allow(unsafe_code)]
fn exit_now(status: i32) -> ! {
    // SAFETY: ends the process; nothing runs after it.
    unsafe { libc::_exit(status) }
}

impl SysLinux {
    pub(crate) fn new(process: Arc<Process>, thread: u32) -> SysLinux {
        SysLinux { process, thread, buffer: Rc::default() }
    }
}
