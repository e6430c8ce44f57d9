//! The arithmetic of fair sharing: weights, virtual time, periods and shares.

use units::Nanos;

use crate::psi::MemoryFull;

/// Weight at nice 0 (`NICE_0_LOAD`).
pub(super) const WEIGHT_NICE_0: u32 = 1024;
/// More tasks than this and the period grows with their number (`sched_nr_latency`).
pub(super) const TASKS_PER_PERIOD: u64 = 8;
/// `CONFIG_HZ=250`, as Debian and SUSE build.
const TICK: Nanos = Nanos::millis(4);
/// CPUs beyond this do not lengthen the periods further (`get_update_sysctl_factor()`).
const CPUS_COUNTED_MAX: usize = 8;

/// Which runnable task a CPU picks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SchedPolicy {
    /// That of least virtual runtime (CFS, until 6.5).
    LeastRuntime,
    /// Of those that are owed time, that of the earliest deadline (EEVDF, since 6.6).
    EarliestDeadline,
}

/// The scheduler's tunables (`/proc/sys/kernel/sched_*_ns`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SchedParams {
    /// How a task is picked.
    pub policy: SchedPolicy,
    /// Period in which each task of a CPU runs once (`sched_latency_ns`).
    pub latency: Nanos,
    /// Least time between two preemptions by the tick (`sched_min_granularity_ns`); with deadlines, what a task asks for
    /// at a time (`sched_base_slice_ns`).
    pub min_granularity: Nanos,
    /// How far behind a woken task must be to preempt (`sched_wakeup_granularity_ns`); without meaning for deadlines.
    pub wakeup_granularity: Nanos,
    /// Time between two ticks (`1 / CONFIG_HZ`).
    pub tick: Nanos,
    /// How long the last tick is ago when the simulation starts.
    pub since_tick: Nanos,
    /// When memory counts as fully stalled (PSI).
    pub memory_full: MemoryFull,
}

impl SchedParams {
    /// The defaults of 4.20: 6, 0.75 and 1 ms times 1 + log2(CPUs), at most 8 CPUs counted
    /// (`sysctl_sched_latency` and others, SCHED_TUNABLESCALING_LOG).
    pub fn linux_4_20(nr_cpus: usize) -> SchedParams {
        let factor = SchedParams::factor(nr_cpus);
        SchedParams {
            policy: SchedPolicy::LeastRuntime,
            latency: Nanos(factor * 6_000_000),
            min_granularity: Nanos(factor * 750_000),
            wakeup_granularity: Nanos(factor * 1_000_000),
            tick: TICK,
            since_tick: Nanos::ZERO,
            memory_full: MemoryFull::OnCpu,
        }
    }

    /// The defaults of 6.12: a slice of 0.7 ms times the same factor (`sysctl_sched_base_slice`).
    pub fn linux_6_12(nr_cpus: usize) -> SchedParams {
        let slice = Nanos(SchedParams::factor(nr_cpus) * 700_000);
        SchedParams {
            policy: SchedPolicy::EarliestDeadline,
            latency: Nanos(TASKS_PER_PERIOD * slice.0),
            min_granularity: slice,
            ..SchedParams::linux_4_20(nr_cpus)
        }
    }

    /// By what the defaults grow with the CPUs.
    fn factor(nr_cpus: usize) -> u64 {
        1 + u64::from(nr_cpus.clamp(1, CPUS_COUNTED_MAX).ilog2())
    }

    /// Time in which each of so many tasks of a CPU runs once (`__sched_period()`).
    pub(super) fn period(&self, nr_running: usize) -> Nanos {
        let nr_running = nr_running as u64;
        Nanos(if nr_running > TASKS_PER_PERIOD { nr_running * self.min_granularity.0 } else { self.latency.0 })
    }
}

/// The part of a time that falls to this weight, of all that weigh `load`.
pub(super) fn part(whole: Nanos, weight: u32, load: u64) -> Nanos {
    Nanos(whole.0 * u64::from(weight) / load.max(u64::from(weight)))
}

/// Weight of a nice level: 1024 / 1.25^nice, rounded, in integers so that it is the same everywhere. The kernel's table
/// differs by less than 1 % (15 at nice 19 here and there; 1280 at -1 instead of 1277).
pub(super) fn weight(nice: i8) -> u32 {
    assert!((-20..=19).contains(&nice), "nice is -20 to 19, not {nice}");
    let level = u32::from(nice.unsigned_abs());
    let (more, less) = (5u64.pow(level), 4u64.pow(level));
    let base = u64::from(WEIGHT_NICE_0);
    let weight = if nice < 0 { (base * more + less / 2) / less } else { (base * less + more / 2) / more };
    weight as u32
}

/// Virtual nanoseconds of CPU time used at a weight (`calc_delta_fair()`).
#[inline]
pub(super) fn virtual_time(time: Nanos, weight: u32) -> i64 {
    if weight == WEIGHT_NICE_0 { time.0 as i64 } else { (time.0 * u64::from(WEIGHT_NICE_0) / u64::from(weight)) as i64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_within_a_percent_of_the_kernels() {
        // sched_prio_to_weight[], kernel/sched/core.c.
        for (nice, kernel) in
            [(-20, 88_761), (-10, 9_548), (-1, 1_277), (0, 1_024), (1, 820), (5, 335), (10, 110), (19, 15)]
        {
            let here = i64::from(weight(nice));
            assert!((here - kernel).abs() * 100 <= kernel, "{nice}: {here}");
        }
    }

    #[test]
    fn defaults_grow_with_the_logarithm_of_the_cpus_up_to_eight() {
        assert_eq!(SchedParams::linux_4_20(1).latency, Nanos::millis(6));
        assert_eq!(SchedParams::linux_4_20(7).latency, Nanos::millis(18));
        assert_eq!(SchedParams::linux_4_20(8).min_granularity, Nanos::millis(3));
        assert_eq!(SchedParams::linux_4_20(64), SchedParams::linux_4_20(8), "more than 8 do not count");
        assert_eq!(SchedParams::linux_6_12(4).min_granularity, Nanos::micros(2100));
    }

    #[test]
    fn a_share_is_the_weighted_part_of_a_period() {
        let params = SchedParams::linux_4_20(1);
        assert_eq!(part(params.period(2), 1024, 2048), Nanos::millis(3));
        assert_eq!(part(params.period(3), 1024, 4096), Nanos::micros(1500));
        // 16 tasks: the period is 16 x 0.75 ms, one granularity each.
        assert_eq!(part(params.period(16), 1024, 16 * 1024), Nanos::micros(750));
    }

    #[test]
    fn virtual_time_runs_slower_for_the_heavier() {
        assert_eq!(virtual_time(Nanos(1000), 1024), 1000);
        assert_eq!(virtual_time(Nanos(1000), 2048), 500);
    }
}
