//! How long it takes until other CPUs answer an interrupt.
//!
//! Rule: who has other CPUs flush their TLBs waits until the last of them has answered. One that waits for an LRU lock or holds it, or that adds
//! up the memory cgroups' statistics, has interrupts off and answers when it is done. How often CPUs had interrupts off in the last millisecond for
//! a lock, and for how long, says how likely one that is asked has, and how much of that is left; when a flush of statistics ends is known.
//! Source: `spin_lock_irq()` and its kin on `lruvec->lru_lock` (mm/vmscan.c, mm/swap.c); `cgroup_rstat_flush_irqsafe()`
//! (kernel/cgroup/rstat.c) under `stats_flush_lock` (mm/memcontrol.c), 5.19; `smp_call_function_many_cond()` (kernel/smp.c).
//! Abstracted: with locks, each time lasts as long as the mean of all CPUs that are asked, is met at any of its points, and CPUs are independent.
//! Omitted: the LRU lock while compaction isolates, and all other code that turns interrupts off, which is short; that a CPU answers all who asked
//! meanwhile in one interrupt.

use smallvec::SmallVec;
use units::{CpuId, Nanos};

use crate::Mm;
use crate::contention::ONCE;

/// Over how long times with interrupts off are counted, in ns.
const WINDOW: u64 = 1_000_000;

/// CPUs that are asked.
pub type Asked = SmallVec<[CpuId; 64]>;

/// Times in which a CPU had interrupts off for a lock.
#[derive(Clone, Copy, Default, Debug)]
struct Times {
    /// In parts of [`ONCE`].
    count: u64,
    ns: u64,
}

/// What CPUs did with interrupts off.
#[derive(Debug, Default)]
pub(crate) struct IrqsOff {
    /// When the present window began, in ns.
    since: u64,
    /// Length of the last one, in ns.
    last: u64,
    /// In the present window, and in the last one.
    by_cpu: [Vec<Times>; 2],
}

/// Mean of the longest of what is left on so many CPUs, each of which has interrupts off for this share of time (above 0), so
/// long each time.
fn longest(cpus: usize, share: f64, length: f64) -> f64 {
    let draws = cpus as f64 + 1.0;
    length * (1.0 - (1.0 - (1.0 - share).powf(draws)) / (share * draws))
}

impl IrqsOff {
    /// Host bytes of what is known of CPUs.
    pub(crate) fn host_bytes(&self) -> usize {
        self.by_cpu.iter().map(|cpus| cpus.capacity() * size_of::<Times>()).sum()
    }

    fn roll(&mut self, now: u64) {
        if now.saturating_sub(self.since) >= WINDOW {
            (self.last, self.since) = (now - self.since, now);
            self.by_cpu.swap(0, 1);
            self.by_cpu[0].clear();
        }
    }

    /// A CPU has interrupts off for a lock: so many times, in parts of [`ONCE`], and for so long in all, in ns.
    #[inline]
    pub(crate) fn locked(&mut self, now: u64, cpu: CpuId, count: u64, ns: u64) {
        self.roll(now);
        let (cpus, cpu) = (&mut self.by_cpu[0], cpu.index());
        if cpus.len() <= cpu {
            cpus.resize(cpu + 1, Times::default());
        }
        cpus[cpu].count += count;
        cpus[cpu].ns += ns;
    }

    /// How long it takes until all of these CPUs are done with locks, in ns.
    fn wait(&mut self, now: u64, asked: &[CpuId]) -> u64 {
        self.roll(now);
        let times = asked.iter().filter_map(|cpu| self.by_cpu[1].get(cpu.index()));
        let (count, ns) = times.fold((0, 0), |(count, ns), times| (count + times.count, ns + times.ns));
        if ns == 0 {
            return 0;
        }
        let share = (ns as f64 / (self.last * asked.len() as u64) as f64).min(1.0);
        let length = ns as f64 * ONCE as f64 / count as f64;
        longest(asked.len(), share, length) as u64
    }
}

impl Mm {
    /// How long who interrupts these CPUs now waits because they have interrupts off, in ns.
    pub fn irqs_off_wait(&mut self, now: Nanos, asked: &[CpuId]) -> u64 {
        let flush = self.stat_flush_left(now, asked);
        flush.max(self.contention.irqs_off.wait(now.0, asked))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CPUs that each had interrupts off for `ns` in the last window, in times of `length`.
    fn window(cpus: u16, ns: u64, length: u64) -> (IrqsOff, Vec<CpuId>) {
        let mut irqs = IrqsOff::default();
        for cpu in 0..cpus {
            irqs.locked(0, CpuId(cpu), ns / length * ONCE, ns);
        }
        (irqs, (0..cpus).map(CpuId).collect())
    }

    #[test]
    fn one_cpu_is_waited_for_half_of_its_time_as_often_as_it_has_interrupts_off() {
        assert!((longest(1, 0.2, 1000.0) - 0.2 * 500.0).abs() < 1e-9);
        // Always off: the longest of n draws from 0 to 1 is n / (n + 1) in the mean.
        assert!((longest(9, 1.0, 1000.0) - 900.0).abs() < 1e-9);
        // Next to never: one of the nine at most.
        assert!((longest(9, 1e-6, 1000.0) - 9.0 * 1e-6 * 500.0).abs() < 1e-6);
    }

    #[test]
    fn what_counts_is_what_those_that_are_asked_did_in_the_last_window() {
        let (mut irqs, cpus) = window(4, 200_000, 10_000);
        assert_eq!(irqs.wait(WINDOW - 1, &cpus), 0, "it is not over");
        let wait = irqs.wait(WINDOW, &cpus);
        assert_eq!(wait, longest(4, 0.2, 10_000.0) as u64);
        assert_eq!(irqs.wait(WINDOW, &[CpuId(7)]), 0, "that one did nothing");
        assert!(irqs.wait(WINDOW, &cpus[..1]) < wait);
        assert_eq!(irqs.wait(2 * WINDOW, &cpus), 0, "nobody did anything in the window since");
    }
}
