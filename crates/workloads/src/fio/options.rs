//! The options of fio that matter to memory.
//!
//! Source: HOWTO and options.c of fio 3.33. What an option does stands where [`FioJob`](super::FioJob) does it; here it is
//! read. An option is one of three: read, without effect on memory (which is told), or refused.

use units::{Bytes, Nanos, ScaleError, parse_scaled};

use super::ini::{Entry, JobFileError, wrong};
use super::job::{Engine, FileService};
use super::pick::{Direction, Order, Pattern};
use super::skew::Skew;

/// The direction that `rw` names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Rw {
    Read,
    Write,
    Mix,
}

/// A job's options.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Options {
    rw: Rw,
    random: bool,
    read_pct: u32,
    map: bool,
    skew: Option<Skew>,
    pub(super) block_size: Bytes,
    pub(super) size: Option<Bytes>,
    pub(super) io_size: Option<Bytes>,
    pub(super) file_size: Option<Bytes>,
    pub(super) nr_files: u32,
    pub(super) clones: u32,
    pub(super) filename: Option<String>,
    pub(super) directory: Option<String>,
    pub(super) service: FileService,
    pub(super) engine: Engine,
    pub(super) time_based: bool,
    pub(super) runtime: Option<Nanos>,
    pub(super) ramp: Nanos,
    pub(super) start_delay: Nanos,
    pub(super) think: Nanos,
    pub(super) think_blocks: u64,
    pub(super) rate: Option<Bytes>,
    pub(super) loops: u32,
    pub(super) fsync_every: u64,
    pub(super) end_fsync: bool,
    pub(super) create_fsync: bool,
    pub(super) create_on_open: bool,
    pub(super) overwrite: bool,
    pub(super) invalidate: bool,
    pub(super) hint: bool,
    pub(super) stonewall: bool,
    pub(super) threads: bool,
    pub(super) nice: i8,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            rw: Rw::Read,
            random: false,
            read_pct: 50,
            map: true,
            skew: None,
            block_size: Bytes::kib(4),
            size: None,
            io_size: None,
            file_size: None,
            nr_files: 1,
            clones: 1,
            filename: None,
            directory: None,
            service: FileService::RoundRobin(1),
            engine: Engine::Calls,
            time_based: false,
            runtime: None,
            ramp: Nanos::ZERO,
            start_delay: Nanos::ZERO,
            think: Nanos::ZERO,
            think_blocks: 1,
            rate: None,
            loops: 1,
            fsync_every: 0,
            end_fsync: false,
            create_fsync: true,
            create_on_open: false,
            overwrite: false,
            invalidate: true,
            hint: true,
            stonewall: false,
            threads: false,
            nice: 0,
        }
    }
}

/// Options that change nothing that memory sees.
const WITHOUT_EFFECT: &[&str] = &[
    "allrandrepeat",
    "bandwidth_log",
    "buffer_compress_chunk",
    "buffer_compress_percentage",
    "buffer_pattern",
    "bwavgtime",
    "clat_percentiles",
    "cpumask",
    "cpus_allowed",
    "cpus_allowed_policy",
    "create_serialize",
    "description",
    "disable_bw",
    "disable_clat",
    "disable_lat",
    "disable_slat",
    "disk_util",
    "eta",
    "exitall",
    "fallocate",
    "group_reporting",
    "gtod_reduce",
    "iodepth",
    "iodepth_batch",
    "iodepth_batch_complete",
    "iodepth_batch_submit",
    "iodepth_low",
    "iopsavgtime",
    "lat_percentiles",
    "log_avg_msec",
    "name",
    "new_group",
    "per_job_logs",
    "percentile_list",
    "randrepeat",
    "randseed",
    "refill_buffers",
    "scramble_buffers",
    "status_interval",
    "unified_rw_reporting",
    "unlink",
    "write_bw_log",
    "write_iops_log",
    "write_lat_log",
    "zero_buffers",
];
/// Options that exist and that the twin does not have.
const NOT_MODELLED: &[&str] = &[
    "blockalign",
    "bs_unaligned",
    "bsrange",
    "bssplit",
    "cgroup",
    "cmdprio",
    "do_verify",
    "file_append",
    "fill_device",
    "flow",
    "fdatasync",
    "fsync_on_close",
    "hugepage-size",
    "io_submit_mode",
    "iomem",
    "mem",
    "offset",
    "offset_increment",
    "openfiles",
    "opendir",
    "percentage_random",
    "rate_iops",
    "rate_min",
    "read_iolog",
    "size_range",
    "softrandommap",
    "steadystate",
    "sync",
    "sync_file_range",
    "thinktime_spin",
    "trim_backlog",
    "verify",
    "wait_for",
    "zonemode",
    "zonesize",
];

impl Options {
    /// Reads one option; what is worth telling about it, if anything is.
    pub(super) fn read(&mut self, entry: &Entry) -> Result<Option<String>, JobFileError> {
        let mut note = None;
        match entry.name.as_str() {
            "rw" | "readwrite" => self.read_pattern(entry)?,
            "rwmixread" => self.read_pct = number(entry, 0, 100)? as u32,
            "rwmixwrite" => self.read_pct = 100 - number(entry, 0, 100)? as u32,
            "norandommap" => self.map = !flag(entry)?,
            "random_distribution" => self.skew = skew(entry)?,
            "bs" | "blocksize" => self.block_size = size(entry, 512)?,
            "size" => self.size = Some(size(entry, 512)?),
            "io_size" | "io_limit" => self.io_size = Some(size(entry, 512)?),
            "filesize" => self.file_size = Some(size(entry, 512)?),
            "nrfiles" | "nr_files" => self.nr_files = number(entry, 1, 1 << 24)? as u32,
            "numjobs" => self.clones = number(entry, 1, 1024)? as u32,
            "filename" => self.filename = Some(name(entry)?),
            "directory" => self.directory = Some(name(entry)?),
            "file_service_type" => self.service = service(entry)?,
            "ioengine" => (self.engine, note) = engine(entry)?,
            "direct" => must_be(entry, flag(entry)?, false)?,
            "buffered" => must_be(entry, flag(entry)?, true)?,
            "time_based" => self.time_based = flag(entry)?,
            "runtime" | "timeout" => {
                self.runtime = Some(time(entry, Nanos::secs(1))?).filter(|time| *time > Nanos::ZERO)
            }
            "ramp_time" => self.ramp = time(entry, Nanos::secs(1))?,
            "startdelay" => self.start_delay = time(entry, Nanos::secs(1))?,
            "thinktime" => self.think = time(entry, Nanos::micros(1))?,
            "thinktime_blocks" => self.think_blocks = number(entry, 1, u64::MAX)?,
            "rate" => self.rate = Some(size(entry, 1)?),
            "loops" => self.loops = number(entry, 1, 1 << 20)? as u32,
            "fsync" => self.fsync_every = number(entry, 0, u64::MAX)?,
            "end_fsync" => self.end_fsync = flag(entry)?,
            "create_fsync" => self.create_fsync = flag(entry)?,
            "create_on_open" => self.create_on_open = flag(entry)?,
            "overwrite" => self.overwrite = flag(entry)?,
            "invalidate" => self.invalidate = flag(entry)?,
            "fadvise_hint" => self.hint = flag(entry)?,
            "stonewall" | "wait_for_previous" => self.stonewall = flag(entry)?,
            "thread" => self.threads = flag(entry)?,
            "nice" => self.nice = nice(entry)?,
            known if WITHOUT_EFFECT.contains(&known) => note = Some(format!("{known}: without effect on memory")),
            known if NOT_MODELLED.contains(&known) => return wrong(entry.line, format!("{known}: not modelled")),
            other => return wrong(entry.line, format!("{other}: expected an option of fio, found none of this name")),
        }
        Ok(note)
    }

    fn read_pattern(&mut self, entry: &Entry) -> Result<(), JobFileError> {
        let words = [
            ("read", (Rw::Read, false)),
            ("write", (Rw::Write, false)),
            ("randread", (Rw::Read, true)),
            ("randwrite", (Rw::Write, true)),
            ("rw", (Rw::Mix, false)),
            ("readwrite", (Rw::Mix, false)),
            ("randrw", (Rw::Mix, true)),
        ];
        (self.rw, self.random) = one_of(entry, &words)?;
        Ok(())
    }

    /// What is read and written, and in which order.
    pub(super) fn pattern(&self) -> Pattern {
        let direction = match self.rw {
            Rw::Read => Direction::Read,
            Rw::Write => Direction::Write,
            Rw::Mix => Direction::Mix { read_pct: self.read_pct },
        };
        let order = match (self.random, self.skew, self.map) {
            (false, ..) => Order::Sequential,
            (true, Some(skew), _) => Order::Skewed(skew),
            (true, None, true) => Order::Random,
            (true, None, false) => Order::RandomAnew,
        };
        Pattern { direction, order }
    }
}

fn text(entry: &Entry) -> &str {
    entry.value.as_deref().unwrap_or_default()
}

fn expected<T>(entry: &Entry, what: &str) -> Result<T, JobFileError> {
    wrong(entry.line, format!("{}={}: expected {what}", entry.name, text(entry)))
}

fn name(entry: &Entry) -> Result<String, JobFileError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
    let name = text(entry).trim_matches('/');
    if name.is_empty() || !name.chars().all(plain) || name.split('/').any(|part| part == "..") {
        return expected(entry, "one name of letters, digits, `.`, `_`, `-` and `/`");
    }
    Ok(name.to_string())
}

/// How blocks are chosen, if they are not all alike.
fn skew(entry: &Entry) -> Result<Option<Skew>, JobFileError> {
    match (text(entry), Skew::parse(text(entry))) {
        ("random", _) => Ok(None),
        (_, Some(skew)) => Ok(Some(skew)),
        _ => expected(entry, "random, zipf:THETA (above 0, not 1) or pareto:POWER (between 0 and 1)"),
    }
}

fn flag(entry: &Entry) -> Result<bool, JobFileError> {
    match entry.value.as_deref() {
        None | Some("1") => Ok(true),
        Some("0") => Ok(false),
        Some(_) => expected(entry, "0 or 1"),
    }
}

fn must_be(entry: &Entry, found: bool, wanted: bool) -> Result<(), JobFileError> {
    if found == wanted { Ok(()) } else { expected(entry, "I/O through the page cache; direct I/O is not modelled") }
}

fn one_of<T: Copy>(entry: &Entry, words: &[(&str, T)]) -> Result<T, JobFileError> {
    let names = || words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
    let found = words.iter().find(|(word, _)| *word == text(entry)).map(|(_, value)| *value);
    found.map_or_else(|| expected(entry, &format!("one of {}", names())), Ok)
}

fn number(entry: &Entry, lo: u64, hi: u64) -> Result<u64, JobFileError> {
    match parse_scaled(text(entry).trim(), &[("", 1), ("k", 1 << 10), ("m", 1 << 20), ("g", 1 << 30)]) {
        Ok(number) if (lo..=hi).contains(&number) => Ok(number),
        Err(ScaleError::TooLarge) if hi == u64::MAX => expected(entry, "a whole number below 2^64"),
        _ if hi == u64::MAX => expected(entry, &format!("a whole number from {lo}")),
        _ => expected(entry, &format!("a whole number from {lo} to {hi}")),
    }
}

/// A size; with `kb_base=1024`, as is the default, every kilo is 1024.
fn size(entry: &Entry, lo: u64) -> Result<Bytes, JobFileError> {
    let mut suffixes = vec![("", 1), ("b", 1)];
    let kilos: [(&[&str], u32); 4] = [
        (&["k", "kb", "kib", "ki"], 10),
        (&["m", "mb", "mib", "mi"], 20),
        (&["g", "gb", "gib", "gi"], 30),
        (&["t", "tb", "tib", "ti"], 40),
    ];
    for (names, shift) in kilos {
        suffixes.extend(names.iter().map(|name| (*name, 1u64 << shift)));
    }
    match parse_scaled(text(entry).trim(), &suffixes) {
        Ok(bytes) if bytes >= lo => Ok(Bytes(bytes)),
        Err(ScaleError::TooLarge) => expected(entry, "one size of less than 2^64 bytes, such as 64k"),
        _ => expected(entry, &format!("one size of at least {lo} bytes, such as 64k")),
    }
}

/// A time; `unit` is what a bare number counts.
fn time(entry: &Entry, unit: Nanos) -> Result<Nanos, JobFileError> {
    let (us, ms, s) = (1_000, 1_000_000, 1_000_000_000);
    let units = [
        ("", unit.0),
        ("us", us),
        ("usec", us),
        ("ms", ms),
        ("msec", ms),
        ("s", s),
        ("sec", s),
        ("m", 60 * s),
        ("h", 3600 * s),
        ("d", 86_400 * s),
    ];
    parse_scaled(text(entry).trim(), &units).map_or_else(|_| expected(entry, "a time, such as 30s"), |ns| Ok(Nanos(ns)))
}

fn nice(entry: &Entry) -> Result<i8, JobFileError> {
    match text(entry).parse() {
        Ok(nice) if (-20..=19).contains(&nice) => Ok(nice),
        _ => expected(entry, "a whole number from -20 to 19"),
    }
}

fn service(entry: &Entry) -> Result<FileService, JobFileError> {
    let (word, count) = match text(entry).split_once(':') {
        Some((word, count)) => (word, count.parse::<u32>().ok().filter(|n| *n > 0)),
        None => (text(entry), Some(1)),
    };
    match (word, count) {
        ("roundrobin", Some(n)) => Ok(FileService::RoundRobin(n)),
        ("random", Some(n)) => Ok(FileService::Random(n)),
        ("sequential", _) => Ok(FileService::Sequential),
        _ => expected(entry, "roundrobin, random or sequential, with a number of I/Os after a colon"),
    }
}

fn engine(entry: &Entry) -> Result<(Engine, Option<String>), JobFileError> {
    let one_by_one = "buffered I/O is served one after another, as if iodepth were 1";
    match text(entry) {
        "sync" | "psync" | "vsync" | "pvsync" | "pvsync2" => Ok((Engine::Calls, None)),
        "mmap" => Ok((Engine::Mmap, None)),
        "libaio" | "io_uring" | "posixaio" => {
            Ok((Engine::Calls, Some(format!("ioengine={}: {one_by_one}", text(entry)))))
        }
        _ => expected(entry, "sync, psync, vsync, pvsync, pvsync2, mmap, libaio, io_uring or posixaio"),
    }
}
