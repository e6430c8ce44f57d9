//! The steps of a guest's life.

use std::ffi::CString;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use rustix::process::{Resource, Rlimit};
use rustix::system::{RebootCommand, reboot};
use sys_linux::collect::{Histograms, Recording, TRIGGERS};
use sys_linux::{Config, Supervision, SyncScope, system_info};
use units::Nanos;
use workloads::Workload;

use crate::answer::{ERROR_FILE, EVENTS_FILE, RESULT_FILE, Results, write_tar};
use crate::job::{JOB_FILE, Job, MODULES_DIR};
use crate::port::{DebugPort, RESULTS_PORT};
use crate::{disks, fio, mounts, progress};

/// Open files that a workload may have: a thousand per reader are usual, millions are not.
const OPEN_FILES: u64 = 1 << 20;
/// What a run directory keeps of the guest as it is.
const FACTS: &[(&str, &str)] = &[
    ("/proc/version", "version"),
    ("/proc/cmdline", "cmdline"),
    ("/sys/devices/system/clocksource/clocksource0/current_clocksource", "clocksource"),
    ("/sys/kernel/mm/lru_gen/enabled", "lru_gen_enabled"),
    ("/sys/kernel/mm/transparent_hugepage/enabled", "thp_enabled"),
    ("/sys/kernel/mm/transparent_hugepage/defrag", "thp_defrag"),
    ("/cg/workload/io.max", "io.max"),
    ("/sys/block/zram0/mm_stat", "zram0.mm_stat"),
    ("/cg/blkio.throttle.write_bps_device", "blkio.throttle.write_bps_device"),
    ("/cg/workload/memory.stat", "memory.stat"),
    ("/cg/workload/memory.events", "memory.events"),
];

type Files = Vec<(String, Vec<u8>)>;

/// The program of the agent. It is for a guest: started as anything but its first process it says so and does nothing.
pub fn main() -> ExitCode {
    if std::process::id() != 1 {
        let _ = writeln!(io::stderr(), "mmtwin-guest: started by hand; it is the first process of a guest of mmtwin");
        return ExitCode::from(2);
    }
    let files = run().unwrap_or_else(|error| {
        say(&format!("mmtwin: {error}"));
        vec![(ERROR_FILE.to_string(), error.into_bytes())]
    });
    let sent = DebugPort::open(RESULTS_PORT).and_then(|port| write_tar(&files, io::BufWriter::new(port)));
    if let Err(error) = sent {
        say(&format!("mmtwin: the results cannot be sent: {error}"));
    }
    rustix::fs::sync();
    let error = reboot(RebootCommand::PowerOff);
    say(&format!("mmtwin: power off: {error:?}"));
    ExitCode::FAILURE
}

/// A line for the console. Without a console nobody reads it.
fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

fn run() -> Result<Files, String> {
    let cgroups = mounts::mount_kernel()?;
    progress::step("set-up");
    let text = fs::read_to_string(JOB_FILE).map_err(|error| format!("{JOB_FILE}: {error}"))?;
    let job: Job = serde_json::from_str(&text).map_err(|error| format!("{JOB_FILE}: {error}"))?;
    let (workload, _) = Workload::new(&job.workload, &job.params).map_err(|error| error.to_string())?;
    let disks = disks::prepare(&job)?;
    for (path, value) in &job.settings {
        write(path, value)?;
    }
    let group = disks::limit(&disks, job.io_bytes_per_s, cgroups)?;
    let limit = Rlimit { current: Some(OPEN_FILES), maximum: Some(OPEN_FILES) };
    rustix::process::setrlimit(Resource::Nofile, limit).map_err(|error| format!("limit of open files: {error}"))?;
    if let Workload::FioFile(file) = &workload {
        fio::prepare(&job.params, &file.directories())?;
    }
    settle(job.settle_turns)?;
    measure(&job, workload, group)
}

/// Time after which what the boot frees by itself, the unpacked initramfs above all, is free.
const BOOT_FREES: Duration = Duration::from_secs(1);

/// Writes what is dirty, drops caches, waits for what the boot still frees, and shifts the run against the kernel's timers.
fn settle(turns: u64) -> Result<(), String> {
    for turn in 0..turns {
        std::hint::black_box(turn);
    }
    rustix::fs::sync();
    write("/proc/sys/vm/drop_caches", "3")?;
    std::thread::sleep(BOOT_FREES);
    Ok(())
}

fn measure(job: &Job, workload: Workload, group: Option<String>) -> Result<Files, String> {
    let config = Config {
        mount: mounts::DATA.into(),
        seed: sys::workload_seed(job.seed, job.iteration),
        info: system_info(None).map_err(|error| error.to_string())?,
        sync: SyncScope::Machine,
        cgroup: group.as_ref().map(Into::into),
        tell: Some(progress::tell),
        contents: job.contents,
    };
    let (histograms, refused) = Histograms::start(Path::new(mounts::TRACEFS), TRIGGERS);
    let recording = Recording::begin(Path::new(mounts::TRACEFS), &job.events);
    let procs = group.as_ref().map(|group| format!("{group}/cgroup.procs"));
    let supervision = Supervision {
        enter: &mut |pid| procs.as_ref().map_or(Ok(()), |procs| fs::write(procs, pid.to_string())),
        limit_s: job.limit_s,
        series: (job.series_ms > 0).then(|| Nanos::millis(job.series_ms)),
        watch: None,
    };
    let done = match workload {
        Workload::FioFile(_) => sys_linux::run(config, supervision, fio::run),
        workload => sys_linux::run(config, supervision, |sys| workload.run(sys)),
    };
    let done = done.map_err(|error| error.to_string())?;
    let mut missing: Vec<String> =
        refused.iter().map(|(trigger, error)| format!("tracepoint {}: {error}", trigger.event)).collect();
    if group.is_none() {
        missing.push("cgroups: this kernel has none of version 2; the disks are limited for all".to_string());
    }
    let events = Recording::end(recording, &mut missing);
    let counted = histograms.read().map_err(|error| format!("tracepoint histograms: {error}"))?;
    let (results, mut files) = Results::of(done, missing);
    files.extend(counted.into_iter().map(|(name, content)| (format!("hist/{name}"), content)));
    files.extend(events.map(|text| (EVENTS_FILE.to_string(), text)));
    files.extend(facts());
    files.push((RESULT_FILE.to_string(), serde_json::to_vec(&results).map_err(|error| error.to_string())?));
    Ok(files)
}

/// The guest as it was: its settings and its log.
fn facts() -> Files {
    let read = |(path, name): &(&str, &str)| Some((format!("guest/{name}"), fs::read(path).ok()?));
    let mut files: Files = FACTS.iter().filter_map(read).collect();
    files.push(("guest/sysctl".to_string(), vm_sysctls().into_bytes()));
    files.push(("guest/dmesg".to_string(), kernel_log()));
    files
}

/// `vm.name value` of every sysctl of `vm` that can be read.
fn vm_sysctls() -> String {
    let Ok(entries) = fs::read_dir("/proc/sys/vm") else { return String::new() };
    let read = |path: std::path::PathBuf| {
        let value = fs::read_to_string(&path).ok()?;
        Some(format!("vm.{} {}\n", path.file_name()?.to_str()?, value.trim_end()))
    };
    let mut lines: Vec<String> = entries.filter_map(|entry| read(entry.ok()?.path())).collect();
    lines.sort();
    lines.concat()
}

/// The kernel's log.
#[allow(unsafe_code)]
fn kernel_log() -> Vec<u8> {
    const READ_ALL: i32 = 3;
    const SIZE_BUFFER: i32 = 10;
    // SAFETY: asks for a size; then the kernel writes at most so many bytes into a buffer of that size.
    unsafe {
        let size = libc::klogctl(SIZE_BUFFER, std::ptr::null_mut(), 0).max(0);
        let mut log = vec![0u8; size as usize];
        let read = libc::klogctl(READ_ALL, log.as_mut_ptr().cast(), size).max(0);
        log.truncate(read as usize);
        log
    }
}

/// Loads a module of the initramfs with its parameters.
pub(crate) fn load_module(name: &str, parameters: &str) -> Result<(), String> {
    let path = format!("{MODULES_DIR}/{name}");
    let file = fs::File::open(&path).map_err(|error| format!("{path}: {error}"))?;
    let parameters = CString::new(parameters).map_err(|error| format!("module {name}: {error}"))?;
    match rustix::system::finit_module(file, &parameters, 0) {
        // What is built in or loaded already serves as well.
        Ok(()) | Err(rustix::io::Errno::EXIST) => Ok(()),
        Err(error) => Err(format!("module {name}: {}", io::Error::from(error))),
    }
}

/// Writes a setting.
pub(crate) fn write(path: &str, value: &str) -> Result<(), String> {
    // Some files take one write only, and none takes a new file in its place.
    let opened = fs::OpenOptions::new().write(true).open(path);
    opened.and_then(|mut file| file.write_all(value.as_bytes())).map_err(|error| format!("{path}: `{value}`: {error}"))
}
