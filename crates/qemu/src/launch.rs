//! One guest from its preparation to its end.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use guest::{Job, Progress};
use rustix::process::{Pid, Signal};

use crate::command::{Files, GuestMachine, Mode, arguments};
use crate::error::{QemuError, io_error};
use crate::image::KernelImage;
use crate::outcome::{Outcome, cause_of_death, read_answer, tail};
use crate::release::release_of;
use crate::{disk, initramfs, modules};

const QEMU: &str = "qemu-system-x86_64";
/// Time between two looks at the guest.
const STEP: Duration = Duration::from_millis(50);

/// Everything that a guest's run depends on.
#[derive(Clone, Debug)]
pub struct GuestRun<'a> {
    /// The kernel.
    pub kernel: &'a KernelImage,
    /// The agent's program ([`find_agent`](crate::find_agent)).
    pub agent: &'a Path,
    /// The machine.
    pub machine: &'a GuestMachine,
    /// How it is emulated.
    pub mode: Mode,
    /// What it does. Modules, disks, file system and limits are filled in from the machine.
    pub job: Job,
    /// Longest time on the wall.
    pub wall_limit: Duration,
}

/// Says, knowing how far the guest is, whether to go on.
pub type Watch<'a> = &'a mut dyn FnMut(&Progress) -> bool;

/// Boots a guest and waits for its end. `go_on` is asked about twenty times a second, and for each phase; once it says no, the guest is killed.
///
/// # Errors
/// An input cannot be used, something is not installed, or the guest did not send its results.
pub fn run(run: &GuestRun<'_>, go_on: Watch<'_>) -> Result<Outcome, QemuError> {
    run.machine.check(run.mode)?;
    run.mode.check_host()?;
    let place = tempfile::Builder::new().prefix("mmtwin-guest-").tempdir();
    let place = place.map_err(io_error("make a directory in", &std::env::temp_dir()))?;
    let prepared = Prepared::new(run, place.path())?;
    let status = prepared.boot(run.wall_limit, go_on)?;
    prepared.collect(status)
}

/// A guest whose files are made.
struct Prepared {
    arguments: Vec<String>,
    agent_hash: String,
    console: PathBuf,
    answer: PathBuf,
    progress: PathBuf,
    complaints: PathBuf,
}

impl Prepared {
    fn new(run: &GuestRun<'_>, dir: &Path) -> Result<Prepared, QemuError> {
        let machine = run.machine;
        let release = release_of(&run.kernel.image);
        let modules = match &run.kernel.modules {
            Some(dir) => modules::load_order(dir, &machine.modules(run.mode), &machine.useful_modules(release))?,
            None => Vec::new(),
        };
        let job = Job {
            modules: modules.iter().map(|module| module.file.clone()).collect(),
            disks: GuestMachine::disks(run.mode),
            fs: machine.fs.name().to_string(),
            noatime: machine.noatime,
            swap: machine.swap.0 > 0,
            swap_priority: machine.swap_priority,
            zrams: machine.zrams.clone(),
            contents: machine.contents,
            // QEMU itself limits virtio disks.
            io_bytes_per_s: machine.io_bytes_per_s.filter(|_| run.mode == Mode::Icount),
            ..run.job.clone()
        };
        let initramfs = initramfs::build(run.agent, &modules, &job)?;
        // QEMU loads it below 4 GiB.
        initramfs.check_fits(machine.memory.min(machine.low))?;
        let initramfs_file = dir.join("initramfs");
        fs::write(&initramfs_file, &initramfs.bytes).map_err(io_error("write", &initramfs_file))?;
        let (memory, data, swap) = (dir.join("memory"), dir.join("data"), dir.join("swap"));
        disk::make(&data, machine.data, machine.fs, release)?;
        match run.mode {
            Mode::Icount => {
                disk::make_sparse(&memory, machine.total())?;
                disk::copy_at(&data, &memory, machine.disks_at())?;
            }
            Mode::Mttcg | Mode::Kvm => disk::make_sparse(&swap, machine.swap)?,
        }
        let (console, answer, progress) = (dir.join("console"), dir.join("answer"), dir.join("progress"));
        let files = Files {
            image: &run.kernel.image,
            initramfs: &initramfs_file,
            memory: &memory,
            disks: [&data, &swap],
            console: &console,
            answer: &answer,
            progress: &progress,
        };
        let seed = cpu_seed(run.job.seed, run.job.iteration);
        let arguments = arguments(machine, run.mode, seed, &files);
        let (agent_hash, complaints) = (initramfs.agent_hash, dir.join("qemu"));
        Ok(Prepared { arguments, agent_hash, console, answer, progress, complaints })
    }

    /// Runs QEMU to its end.
    fn boot(&self, limit: Duration, go_on: Watch<'_>) -> Result<ExitStatus, QemuError> {
        let complaints = fs::File::create(&self.complaints).map_err(io_error("make", &self.complaints))?;
        let mut command = Command::new(QEMU);
        command.args(&self.arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(complaints);
        // A group of its own, so that Ctrl-C reaches this program only, which then ends the guest.
        command.process_group(0);
        die_with_parent(&mut command);
        let child = command.spawn().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => QemuError::Missing {
                what: QEMU.to_string(),
                remedy: "on Debian: `apt-get install qemu-system-x86`".to_string(),
            },
            _ => QemuError::Program { program: QEMU.to_string(), message: error.to_string() },
        })?;
        let mut guest = Guest(child);
        let started = now();
        let (mut progress, mut read) = (Progress::boot(), 0);
        loop {
            let ended = guest.0.try_wait().map_err(io_error("wait for", Path::new(QEMU)))?;
            let mut going_on = go_on(&progress);
            for news in Progress::news(&text_of(&self.progress), &mut read) {
                progress = news;
                going_on &= go_on(&progress);
            }
            if let Some(status) = ended {
                return Ok(status);
            }
            if !going_on {
                return Err(QemuError::Interrupted);
            }
            if let Some(failure) = kvm_failure(&self.complaint()) {
                return Err(self.guest_error(format!("QEMU stopped it: {failure}; --mode mttcg needs no KVM")));
            }
            if started.elapsed() >= limit {
                let (seconds, Progress { now, phase, .. }) = (limit.as_secs(), progress);
                let at = format!("at {:.0} s of its own, in phase `{phase}`", now.as_secs_f64());
                let what = format!("the guest was not finished after {seconds} s on the wall, {at}");
                return Err(self.guest_error(what));
            }
            sleep(STEP);
        }
    }

    fn console(&self) -> String {
        text_of(&self.console)
    }

    fn guest_error(&self, what: String) -> QemuError {
        QemuError::Guest { what, console: tail(&self.console()) }
    }

    /// What QEMU has said so far.
    fn complaint(&self) -> String {
        fs::read_to_string(&self.complaints).unwrap_or_default()
    }

    fn collect(self, status: ExitStatus) -> Result<Outcome, QemuError> {
        if !status.success() {
            let message = format!("{status}: {}", self.complaint().trim());
            return Err(QemuError::Program { program: QEMU.to_string(), message });
        }
        let answer = fs::read(&self.answer).map_err(io_error("read", &self.answer))?;
        match read_answer(&answer) {
            Some(Ok((results, mut files))) => {
                files.insert("guest/console".to_string(), self.console().into_bytes());
                Ok(Outcome { results, files, arguments: self.arguments, agent_hash: self.agent_hash })
            }
            Some(Err(complaint)) => Err(self.guest_error(complaint)),
            None => Err(self.guest_error(cause_of_death(&self.console()))),
        }
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "a guest that hangs is given up by the wall's clock, which changes no run"
)]
fn now() -> Instant {
    Instant::now()
}

/// Why QEMU has stopped a guest and waits for somebody who looks at it, which nobody does here.
fn kvm_failure(complaint: &str) -> Option<&str> {
    complaint.lines().find(|line| line.starts_with("KVM internal error") || line.contains("kvm run failed"))
}

/// What QEMU has written to a file so far.
fn text_of(path: &Path) -> String {
    fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

/// QEMU while it runs; it ends with this.
struct Guest(Child);

impl Drop for Guest {
    fn drop(&mut self) {
        if let Some(group) = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw) {
            // What has ended cannot be killed, which is what is wanted.
            let _ = rustix::process::kill_process_group(group, Signal::KILL);
        }
        let _ = self.0.wait();
    }
}

/// Ends QEMU even if this program is killed.
#[allow(unsafe_code)]
fn die_with_parent(command: &mut Command) {
    // SAFETY: between fork and exec only one system call is made.
    unsafe {
        command.pre_exec(|| Ok(rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?));
    }
}

/// Seed of QEMU's own draws: the CPU's random numbers.
fn cpu_seed(seed: u64, iteration: u32) -> u32 {
    let mixed = sys::workload_seed(seed, iteration);
    (mixed ^ mixed >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What QEMU 7.2 says before it pauses a guest (accel/kvm/kvm-all.c).
    #[test]
    fn a_guest_that_qemu_pauses_for_ever_is_told_from_one_that_runs() {
        let stopped =
            "KVM internal error. Suberror: 1\nextra data[0]: 0x0\nRAX=0000000000000000 RBX=0000000000000000\n";
        assert_eq!(kvm_failure(stopped), Some("KVM internal error. Suberror: 1"));
        let refused = "error: kvm run failed Bad address\n";
        assert_eq!(kvm_failure(refused), Some("error: kvm run failed Bad address"));
        assert_eq!(kvm_failure("qemu-system-x86_64: warning: host doesn't support requested feature\n"), None);
        assert_eq!(kvm_failure(""), None);
    }
}
