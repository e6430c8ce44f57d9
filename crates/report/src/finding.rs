//! What a scenario of memory cgroups comes to: one sentence with its evidence.

use observe::RunDir;

/// A run's samples by what stands behind `memcg/`.
struct Evidence<'a>(&'a RunDir);

impl Evidence<'_> {
    /// The samples of a name, in their order.
    fn all(&self, name: &str) -> &[f64] {
        let named = |metric: &&observe::Metric| metric.name.strip_prefix("memcg/") == Some(name);
        self.0.metrics.iter().find(named).map_or(&[], |metric| &metric.samples)
    }

    fn of(&self, name: &str) -> f64 {
        self.all(name).last().copied().unwrap_or(0.0)
    }
}

/// The sentence of a run; none if its workload is no scenario.
pub fn finding(run: &RunDir) -> Option<String> {
    let seen = Evidence(run);
    match run.manifest.workload.name.as_str() {
        "cgroup-high" => Some(high(&seen)),
        "cgroup-noisy" => Some(noisy(&Service::of(&seen, 0)?)),
        "cgroup-low" => Some(low(&Service::of(&seen, 0)?, &Service::of(&seen, 1)?)),
        "cgroup-writers" => Some(match (Writers::of(&seen, 0)?, Writers::of(&seen, 1)) {
            (free, Some(limited)) => writers(seen.of("max_mib"), &free, &limited),
            (_, None) => writer_killed(seen.of("max_mib"), run),
        }),
        "cgroup-oom" => Some(oom(&seen)),
        _ => None,
    }
}

fn high(seen: &Evidence<'_>) -> String {
    let (below, above) = (seen.of("below_s"), seen.of("above_s"));
    let (high, more, times) = (seen.of("high_mib"), seen.of("above_mib"), seen.of("high"));
    let rate = |mib: f64, seconds: f64| mib / seconds.max(1e-9);
    if rate(high, below) < 10.0 * rate(more, above) {
        return format!(
            "The {more} MiB above memory.high take {above:.2} s, the {high} below it {below:.2} s: nobody is held up much \
             (memory.events: high {times})."
        );
    }
    let pressure = seen.0.after.groups.get("app").and_then(|group| group.pressure.get("memory.pressure"));
    let stalled = pressure
        .and_then(|pressure| pressure.full)
        .map_or(String::new(), |full| format!("; memory.pressure: full total={:.1} s", full.total_us as f64 / 1e6));
    format!(
        "The first {high} MiB take {below:.2} s, the {more} MiB above memory.high {above:.1} s: without swap nothing in the group \
         can be reclaimed (memory.stat: pgsteal {}), so that every charge sleeps up to 2 s instead (memory.events: high {times}, \
         oom_kill {}{stalled}); raise memory.high, or give the group swap or a memory.max that ends it.",
        seen.of("steal"),
        seen.of("oom_kill"),
    )
}

/// What a run did to the service.
struct Service {
    web_mib: f64,
    alone_ms: f64,
    after_ms: f64,
    /// Pages reclaimed from it, and from the batch job.
    lost: f64,
    batch_lost: f64,
    /// How often reclaim broke its protection.
    low: f64,
}

impl Service {
    /// The part of the run with this number.
    fn of(seen: &Evidence<'_>, part: usize) -> Option<Service> {
        let of = |name: &str| seen.all(name).get(part).copied();
        Some(Service {
            web_mib: of("web_mib")?,
            alone_ms: of("alone_ms")?,
            after_ms: of("after_ms")?,
            lost: of("steal_web")?,
            batch_lost: of("steal_batch")?,
            low: of("low")?,
        })
    }

    /// It takes twice as long as alone.
    fn suffers(&self) -> bool {
        self.after_ms > 2.0 * self.alone_ms
    }

    /// Most of its page cache was reclaimed.
    fn lost_most(&self) -> bool {
        self.lost > self.web_mib * 256.0 / 2.0
    }

    fn times(&self) -> String {
        let Service { web_mib, alone_ms, after_ms, .. } = self;
        format!(
            "after the batch job the service reads its {web_mib} MiB in {after_ms:.0} ms, before it in {alone_ms:.0}"
        )
    }
}

fn noisy(service: &Service) -> String {
    let why = match (service.suffers(), service.lost_most()) {
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

/// What `memory.low` is worth follows from the same without it.
fn low(bare: &Service, covered: &Service) -> String {
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
        "With memory.low over all of it, {}; {verdict}: reclaim took {} pages of the service and {} of the batch job, without it \
         {} and {}, and the second reading took {:.0} ms (memory.stat: pgsteal); the protection {broken} (memory.events: low).",
        covered.times(),
        covered.lost,
        covered.batch_lost,
        bare.lost,
        bare.batch_lost,
        bare.after_ms,
    )
}

/// What a service and a batch job have when both write.
struct Writers {
    /// What a record of the service takes on the average, and at most.
    mean_ms: f64,
    worst_ms: f64,
    /// Most that the job had dirty, and what it wrote in a second.
    dirty_mib: f64,
    batch_mib_s: f64,
}

impl Writers {
    /// The part of the run with this number.
    fn of(seen: &Evidence<'_>, part: usize) -> Option<Writers> {
        let of = |name: &str| seen.all(name).get(part).copied();
        Some(Writers {
            mean_ms: of("web_mean_ms")?,
            worst_ms: of("web_worst_ms")?,
            dirty_mib: of("batch_dirty_mib")?,
            batch_mib_s: of("batch_mib_s")?,
        })
    }
}

/// By what factor a record's time has to change to be told: runs of guests differ by 1.28 (49 and 63 ms, validation/README.md).
const TOLD: f64 = 1.3;

/// What a `memory.max` over the job is worth follows from the same without it.
fn writers(max_mib: f64, free: &Writers, limited: &Writers) -> String {
    let gain = free.mean_ms / limited.mean_ms;
    let verdict = if gain >= TOLD {
        "memory.max helps the service"
    } else if gain > 1.0 / TOLD {
        "memory.max makes no difference to the service"
    } else {
        "memory.max holds the service up"
    };
    format!(
        "With a memory.max of {max_mib} MiB the batch job has at most {:.0} MiB dirty, without it {:.0} (memory.stat: file_dirty), and writes \
         {:.0} MiB/s ({:.0}); a record of the service's log is on disk after {:.1} ms, {:.0} at most ({:.1}, {:.0}): {verdict}.",
        limited.dirty_mib,
        free.dirty_mib,
        limited.batch_mib_s,
        free.batch_mib_s,
        limited.mean_ms,
        limited.worst_ms,
        free.mean_ms,
        free.worst_ms,
    )
}

/// Reclaim for a limit that frees nothing does not wait for others' progress (`consider_reclaim_throttle()`), so that a limit that is small
/// beside what is written at once ends in a kill.
fn writer_killed(max_mib: f64, run: &RunDir) -> String {
    let kills = |at: &observe::Snapshot| at.vmstat.as_ref().and_then(|vmstat| vmstat.get("oom_kill")).unwrap_or(0);
    format!(
        "With a memory.max of {max_mib} MiB the batch job was killed: reclaim for the limit found nothing to free (vmstat: oom_kill {}); \
         raise memory.max.",
        kills(&run.after) - kills(&run.before),
    )
}

fn oom(seen: &Evidence<'_>) -> String {
    let free = seen.0.after.meminfo.as_ref().and_then(|meminfo| meminfo.get("MemFree")).unwrap_or(0) / 1024;
    let [max, events, oom, kills] = ["max_mib", "max", "oom", "oom_kill"].map(|name| seen.of(name));
    if kills == 0.0 {
        return format!("The container was not killed (memory.events: max {events}, oom {oom}, oom_kill 0).");
    }
    format!(
        "The container was killed at its own limit, not for lack of memory: memory.peak is {:.0} MiB of a memory.max of {max} while \
         {free} MiB of the machine are free (memory.events: max {events}, oom {oom}, oom_kill {kills}).",
        seen.of("peak_mib"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVICE: Service =
        Service { web_mib: 512.0, alone_ms: 100.0, after_ms: 200.0, lost: 65_536.0, batch_lost: 9.0, low: 0.0 };

    #[test]
    fn a_service_suffers_above_twice_its_time() {
        assert!(noisy(&SERVICE).contains("tells what is read again"));
        assert!(
            noisy(&Service { after_ms: 201.0, ..SERVICE }).contains("though most of its page cache is still there")
        );
        let poor = Service { after_ms: 201.0, lost: 65_537.0, ..SERVICE };
        assert!(
            noisy(&poor).contains("nothing protects its page cache: reclaim took 65537 pages of the service and 9")
        );
    }

    #[test]
    fn a_limit_is_worth_what_the_service_waits_less() {
        let free = Writers { mean_ms: 52.0, worst_ms: 300.0, dirty_mib: 60.0, batch_mib_s: 100.0 };
        let limited = Writers { mean_ms: 40.0, worst_ms: 99.6, dirty_mib: 5.4, batch_mib_s: 90.0 };
        let told = writers(48.0, &free, &limited);
        assert!(told.contains("memory.max of 48 MiB the batch job has at most 5 MiB dirty, without it 60"), "{told}");
        assert!(told.contains("after 40.0 ms, 100 at most (52.0, 300): memory.max helps"), "{told}");
        assert!(writers(48.0, &free, &Writers { mean_ms: 40.1, ..limited }).contains("makes no difference"));
        assert!(writers(48.0, &Writers { mean_ms: 39.9, ..limited }, &free).contains("holds the service up"));
    }

    #[test]
    fn what_protection_is_worth_follows_from_both_parts() {
        let poor = Service { after_ms: 201.0, ..SERVICE };
        assert!(low(&poor, &SERVICE).contains("makes the difference"));
        assert!(low(&poor, &poor).contains("does not help"));
        assert!(low(&SERVICE, &SERVICE).contains("is not needed here"));
        assert!(low(&SERVICE, &Service { low: 3.0, ..SERVICE }).contains("was broken 3 times (memory.events: low)"));
    }
}
