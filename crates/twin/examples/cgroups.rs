//! What users of memory cgroups run into, each as a run of the twin that ends in one sentence with its evidence.
//!
//! `cargo run --release -p twin --example cgroups -- SCENARIO [KERNEL]`; a scenario is `high`, `noisy`, `low` or `oom`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is a program, and answers")]

use std::process::ExitCode;

use profile::{Kernel, Machine};
use sys::{Access, Cgroup, CgroupLimit, Fd, FileName, OpenMode, Result, SpawnOptions, Sys};
use twin::{RunOutcome, RunSpec, SysTwin};
use units::{Bytes, Nanos};

const MIB: Bytes = Bytes::mib(1);

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let kernel = args.get(1).map_or("6.12", String::as_str);
    let answer = match args.first().map(String::as_str) {
        Some("high") => run(kernel, high_without_swap).map(|run| about_high(&run)),
        Some("noisy") => run(kernel, |sys| neighbours(sys, None)).map(|run| about_noise(&run)),
        Some("low") => run(kernel, |sys| neighbours(sys, None))
            .and_then(|bare| Ok((bare, run(kernel, |sys| neighbours(sys, Some(WEB)))?)))
            .map(|(bare, covered)| about_low(&bare, &covered)),
        Some("oom") => run(kernel, container_oom).map(|run| about_oom(&run)),
        _ => Err("expected a scenario: high, noisy, low or oom".to_string()),
    };
    match answer {
        Ok(sentence) => {
            println!("{sentence}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("cgroups: {error}");
            ExitCode::from(2)
        }
    }
}

/// Runs a program on the small machine.
fn run<F, Fut>(kernel: &str, program: F) -> std::result::Result<RunOutcome, String>
where
    F: FnOnce(SysTwin) -> Fut,
    Fut: Future<Output = Result<()>> + 'static,
{
    let kernel = Kernel::load(kernel).map_err(|error| error.to_string())?;
    let machine = Machine::load("small").map_err(|error| error.to_string())?;
    let spec = RunSpec { verify: true, ..RunSpec::new(machine, kernel) };
    twin::run(&spec, program, &mut |_| true).map_err(|error| error.to_string())
}

/// The last sample of a name; 0 if there is none.
fn sample(run: &RunOutcome, name: &str) -> f64 {
    let found = run.log.samples.iter().find(|(known, _)| *known == name);
    found.and_then(|(_, values)| values.last().copied()).unwrap_or(0.0)
}

/// A number in a file of a group: the file itself, or the line that begins with a word.
async fn number(sys: &impl Sys, group: Cgroup, file: &str, word: &str) -> Result<f64> {
    let text = sys.cgroup_file(group, file).await?;
    let line =
        if word.is_empty() { text.trim() } else { text.lines().find_map(|l| l.strip_prefix(word)).unwrap_or("0") };
    Ok(line.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0.0))
}

/// Starts a process in a group.
fn spawn<S, F, Fut>(sys: &S, group: Cgroup, body: F) -> sys::Thread
where
    S: Sys,
    F: FnOnce(S) -> Fut + Send + 'static,
    Fut: Future<Output = Result<()>> + 'static,
{
    sys.spawn(SpawnOptions::process("app"), move |sys: S| async move {
        let entered = sys.cgroup_enter(group).await;
        let done = if entered.is_ok() { body(sys.clone()).await } else { entered };
        if let Err(error) = done {
            sys.fail(error);
        }
    })
}

/// Memory of the program above its `memory.high`, and the limit.
const HIGH: Bytes = Bytes::mib(256);
const ABOVE: u64 = 16;

/// A program that needs a little more than `memory.high`, in a group without swap.
async fn high_without_swap<S: Sys>(sys: S) -> Result<()> {
    let group = sys.cgroup("app").await?;
    sys.cgroup_set(group, CgroupLimit::High, Some(HIGH)).await?;
    sys.cgroup_set(group, CgroupLimit::SwapMax, Some(Bytes(0))).await?;
    let app = spawn(&sys, group, |sys: S| async move {
        let memory = sys.mmap(Bytes(HIGH.0 + ABOVE * MIB.0), MIB).await?;
        let started = sys.clock();
        sys.touch(memory, Bytes(0), HIGH, Access::Write).await?;
        let full = sys.clock();
        for mib in 0..ABOVE {
            sys.touch(memory, Bytes(HIGH.0 + mib * MIB.0), MIB, Access::Write).await?;
        }
        sys.sample("below_s", full.since(started).as_secs_f64());
        sys.sample("above_s", sys.clock().since(full).as_secs_f64());
        Ok(())
    });
    sys.join(app).await;
    // Kernels before 5.13 have no such file here.
    let stalled = number(&sys, group, "memory.pressure", "full avg10=").await.unwrap_or(0.0);
    sys.sample("stalled_pct", stalled);
    sys.sample("high", number(&sys, group, "memory.events", "high ").await?);
    sys.sample("steal", number(&sys, group, "memory.stat", "pgsteal ").await?);
    sys.sample("oom_kill", number(&sys, group, "memory.events", "oom_kill ").await?);
    Ok(())
}

fn about_high(run: &RunOutcome) -> String {
    let of = |name| sample(run, name);
    format!(
        "The first {} MiB take {:.2} s, the {ABOVE} MiB above memory.high {:.1} s: without swap nothing in the group can be \
         reclaimed (memory.stat: pgsteal {}), so that every charge sleeps up to 2 s instead (memory.events: high {}, oom_kill {}; \
         memory.pressure: full avg10={:.2}); raise memory.high, or give the group swap or a memory.max that ends it.",
        HIGH.0 / MIB.0,
        of("below_s"),
        of("above_s"),
        of("steal"),
        of("high"),
        of("oom_kill"),
        of("stalled_pct"),
    )
}

/// What the service reads again and again, and what its neighbour reads once.
const WEB: Bytes = Bytes::mib(512);
const BATCH: Bytes = Bytes::mib(6144);

/// Writes a file and reads it twice, so that it is cached and known to be in use.
async fn make_file<S: Sys>(sys: &S, name: FileName, size: Bytes) -> Result<Fd> {
    let fd = sys.open(name, OpenMode::Create).await?;
    for at in (0..size.0).step_by(MIB.0 as usize) {
        sys.write(fd, Bytes(at), MIB).await?;
    }
    sys.fsync(fd).await?;
    Ok(fd)
}

/// Reads a file from its start to its end.
async fn read_file<S: Sys>(sys: &S, fd: Fd, size: Bytes) -> Result<()> {
    for at in (0..size.0).step_by(MIB.0 as usize) {
        sys.read(fd, Bytes(at), MIB).await?;
    }
    Ok(())
}

/// A service that lives on its page cache, beside a batch job that reads far more than there is memory.
async fn neighbours<S: Sys>(sys: S, low: Option<Bytes>) -> Result<()> {
    let (web, batch) = (sys.cgroup("web").await?, sys.cgroup("batch").await?);
    if let Some(low) = low {
        // Some more than the file: the limit counts what CPUs have charged and not used, too.
        sys.cgroup_set(web, CgroupLimit::Low, Some(Bytes(low.0 + 16 * MIB.0))).await?;
    }
    let dir = sys.mkdir("neighbours").await?;
    let ready = sys.barrier(2);
    let service = spawn(&sys, web, move |sys: S| async move {
        let fd = make_file(&sys, FileName { dir, number: 0 }, WEB).await?;
        read_file(&sys, fd, WEB).await?;
        let alone = sys.clock();
        read_file(&sys, fd, WEB).await?;
        sys.sample("alone_ms", sys.clock().since(alone).as_secs_f64() * 1e3);
        sys.barrier_wait(ready).await;
        sys.barrier_wait(ready).await;
        let after = sys.clock();
        read_file(&sys, fd, WEB).await?;
        sys.sample("after_ms", sys.clock().since(after).as_secs_f64() * 1e3);
        sys.close(fd).await
    });
    let job = spawn(&sys, batch, move |sys: S| async move {
        sys.barrier_wait(ready).await;
        let fd = make_file(&sys, FileName { dir, number: 1 }, BATCH).await?;
        read_file(&sys, fd, BATCH).await?;
        sys.sleep(Nanos::secs(1)).await;
        sys.barrier_wait(ready).await;
        sys.close(fd).await
    });
    sys.join(service).await;
    sys.join(job).await;
    sys.sample("steal_web", number(&sys, web, "memory.stat", "pgsteal ").await?);
    sys.sample("steal_batch", number(&sys, batch, "memory.stat", "pgsteal ").await?);
    sys.sample("low", number(&sys, web, "memory.events", "low ").await?);
    Ok(())
}

/// What a run did to the service.
struct Service {
    alone_ms: f64,
    after_ms: f64,
    /// Pages reclaimed from it, and from the batch job.
    lost: f64,
    batch_lost: f64,
    /// How often reclaim broke its protection.
    low: f64,
}

impl Service {
    fn of(run: &RunOutcome) -> Service {
        let of = |name| sample(run, name);
        Service {
            alone_ms: of("alone_ms"),
            after_ms: of("after_ms"),
            lost: of("steal_web"),
            batch_lost: of("steal_batch"),
            low: of("low"),
        }
    }

    /// It takes twice as long as alone.
    fn suffers(&self) -> bool {
        self.after_ms > 2.0 * self.alone_ms
    }

    fn times(&self) -> String {
        let size = WEB.0 / MIB.0;
        let Service { alone_ms, after_ms, .. } = self;
        format!("after the batch job the service reads its {size} MiB in {after_ms:.0} ms, before it in {alone_ms:.0}")
    }
}

fn about_noise(run: &RunOutcome) -> String {
    let service = Service::of(run);
    let pages = WEB.pages_up().0 as f64;
    let why = match (service.suffers(), service.lost > pages / 2.0) {
        (true, true) => "because nothing protects its page cache",
        (true, false) => "though most of its page cache is still there",
        (false, true) => "although most of its page cache was taken",
        (false, false) => "because this kernel's reclaim tells what is read again from what is read once",
    };
    format!(
        "Without memory.low, {}, {why}: reclaim took {} pages of the service and {} of the batch job (memory.stat: pgsteal).",
        service.times(),
        service.lost,
        service.batch_lost,
    )
}

/// What `memory.low` is worth follows from the same run without it.
fn about_low(bare: &RunOutcome, covered: &RunOutcome) -> String {
    let (bare, covered) = (Service::of(bare), Service::of(covered));
    let verdict = match (bare.suffers(), covered.suffers()) {
        (true, false) => "memory.low makes the difference",
        (true, true) => "memory.low does not help",
        (false, false) => "memory.low is not needed here",
        (false, true) => "memory.low makes it worse",
    };
    let broken = match covered.low {
        0.0 => "was never broken".to_string(),
        times => format!("was broken {times} times"),
    };
    format!(
        "With memory.low over all of it, {}; {verdict}: reclaim took {} pages of the service and {} of the batch job, without it {} \
         and {}, and the second reading took {:.0} ms (memory.stat: pgsteal); the protection {broken} (memory.events: low).",
        covered.times(),
        covered.lost,
        covered.batch_lost,
        bare.lost,
        bare.batch_lost,
        bare.after_ms,
    )
}

/// Limit of the container, and what it needs.
const LIMIT: Bytes = Bytes::mib(128);
const NEED: Bytes = Bytes::mib(192);

/// A container that needs more than its `memory.max`, on a machine with much free memory.
async fn container_oom<S: Sys>(sys: S) -> Result<()> {
    let group = sys.cgroup("container").await?;
    sys.cgroup_set(group, CgroupLimit::Max, Some(LIMIT)).await?;
    sys.cgroup_set(group, CgroupLimit::SwapMax, Some(Bytes(0))).await?;
    let app = spawn(&sys, group, |sys: S| async move {
        let memory = sys.mmap(NEED, MIB).await?;
        sys.touch(memory, Bytes(0), NEED, Access::Write).await
    });
    sys.join(app).await;
    for word in ["max ", "oom ", "oom_kill "] {
        let name = match word {
            "max " => "max",
            "oom " => "oom",
            _ => "oom_kill",
        };
        sys.sample(name, number(&sys, group, "memory.events", word).await?);
    }
    sys.sample("peak_mib", number(&sys, group, "memory.peak", "").await? / MIB.0 as f64);
    Ok(())
}

fn about_oom(run: &RunOutcome) -> String {
    let of = |name| sample(run, name);
    let free = run.after.meminfo.as_ref().and_then(|meminfo| meminfo.get("MemFree")).unwrap_or(0) / 1024;
    format!(
        "The container was killed at its own limit, not for lack of memory: memory.peak is {:.0} MiB of a memory.max of {} while \
         {free} MiB of the machine are free, and the limit was met {} times before (memory.events: max {}, oom {}, oom_kill {}).",
        of("peak_mib"),
        LIMIT.0 / MIB.0,
        of("max"),
        of("max"),
        of("oom"),
        of("oom_kill"),
    )
}
