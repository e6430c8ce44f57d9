//! The account of one group: times of its states on each CPU, and what they come to.

use units::{CpuId, Nanos};

use super::averages::Averages;
use super::{MemoryFull, PERIOD, PsiGroup, Resource, Rule, Stall, TICK, task};

/// States of a CPU; the first [`NR_STALLS`] are reported (`enum psi_states`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    IoSome,
    IoFull,
    MemSome,
    MemFull,
    CpuSome,
    CpuFull,
    NonIdle,
}

/// States that are reported.
pub(super) const NR_STALLS: usize = 6;
const NR_STATES: usize = NR_STALLS + 1;
const COUNTED: [u8; 4] = [task::IOWAIT, task::MEMSTALL, task::RUNNING, task::MEMSTALL_RUNNING];

/// What changes for a task on a CPU.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    pub(super) clear: u8,
    pub(super) set: u8,
    /// What the task is then.
    pub(super) flags: u8,
}

/// A group's tasks on one CPU (`struct psi_group_cpu`).
#[derive(Clone, Copy, Debug, Default)]
struct OnCpu {
    /// By [`COUNTED`].
    tasks: [u32; COUNTED.len()],
    /// A task of the group has the CPU, and stalls for memory meanwhile.
    busy: bool,
    reclaims: bool,
    /// States that hold, as bits, since when.
    mask: u8,
    since: Nanos,
    /// Time in each state, and how much of it has been collected.
    times: [u64; NR_STATES],
    collected: [u64; NR_STATES],
}

/// The states that follow from the counts (`test_states()`).
fn states(rule: MemoryFull, tasks: [u32; 4], busy: bool, reclaims: bool) -> u8 {
    let [iowait, memstall, running, memstall_running] = tasks;
    let mut mask = 0;
    let mut hold = |state: State, holds: bool| mask |= u8::from(holds) << state as u8;
    hold(State::IoSome, iowait > 0);
    hold(State::IoFull, iowait > 0 && running == 0);
    hold(State::MemSome, memstall > 0);
    let full = match rule {
        MemoryFull::AtTicks => memstall > 0 && running == 0,
        MemoryFull::OnCpu => memstall > 0 && running == memstall_running || busy && reclaims,
    };
    hold(State::MemFull, full);
    hold(State::CpuSome, running > u32::from(busy));
    hold(State::CpuFull, running > 0 && !busy);
    hold(State::NonIdle, iowait > 0 || memstall > 0 || running > 0);
    mask
}

impl OnCpu {
    fn apply(&mut self, change: Change) {
        for (count, bit) in self.tasks.iter_mut().zip(COUNTED) {
            *count += u32::from(change.set & bit != 0);
            *count = count.checked_sub(u32::from(change.clear & bit != 0)).expect("it was counted");
        }
        if change.clear & task::ON_CPU != 0 {
            (self.busy, self.reclaims) = (false, false);
        } else if change.flags & task::ON_CPU != 0 {
            (self.busy, self.reclaims) = (true, change.flags & task::MEMSTALL != 0);
        }
    }

    fn holds(&self, state: State) -> bool {
        self.mask >> state as u8 & 1 == 1
    }

    /// The present states' time is over (`record_times()`).
    fn record(&mut self, rule: Rule, now: Nanos) {
        let elapsed = now.since(self.since).0;
        if rule.memory_full == MemoryFull::AtTicks && self.reclaims && !self.holds(State::MemFull) {
            // The ticks take it apart, and each adds what was before it.
            let after = (now + rule.since_tick).0 % TICK.0;
            self.times[State::MemFull as usize] += elapsed.saturating_sub(after);
        }
        self.since = now;
        for (state, time) in self.times.iter_mut().enumerate() {
            *time += elapsed * u64::from(self.mask >> state & 1);
        }
    }

    /// Time in each state since the last collection.
    fn take(&mut self, rule: Rule, now: Nanos) -> [u64; NR_STATES] {
        self.record(rule, now);
        let before = std::mem::replace(&mut self.collected, self.times);
        std::array::from_fn(|state| self.times[state] - before[state])
    }
}

/// One group (`struct psi_group`).
#[derive(Debug)]
pub(super) struct Group {
    parent: Option<PsiGroup>,
    rule: Rule,
    cpus: Vec<OnCpu>,
    /// Time in each state, averaged over the CPUs.
    total: [u64; NR_STALLS],
    averages: Averages,
    /// When the averages' worker comes; never, while nothing happens.
    due: Nanos,
}

impl Group {
    pub(super) fn new(rule: Rule, parent: Option<PsiGroup>, nr_cpus: usize, now: Nanos) -> Group {
        let cpus = vec![OnCpu { since: now, ..OnCpu::default() }; nr_cpus];
        Group { parent, rule, cpus, total: [0; NR_STALLS], averages: Averages::new(now), due: Nanos::MAX }
    }

    pub(super) fn parent(&self) -> Option<PsiGroup> {
        self.parent
    }

    pub(super) fn due(&self) -> Nanos {
        self.due
    }

    #[inline]
    pub(super) fn change(&mut self, cpu: CpuId, change: Change, now: Nanos) {
        let on = &mut self.cpus[cpu.index()];
        on.record(self.rule, now);
        on.apply(change);
        on.mask = states(self.rule.memory_full, on.tasks, on.busy, on.reclaims);
    }

    /// Something happens: the worker is to come, if it is not waited for already. Returns when it comes.
    #[inline]
    pub(super) fn wake_clock(&mut self, now: Nanos) -> Nanos {
        if self.due == Nanos::MAX {
            self.due = Nanos((now.0 / TICK.0) * TICK.0) + PERIOD;
        }
        self.due
    }

    /// The averages' worker: at the end of a period it brings the averages up to date, and it goes on while a CPU is busy.
    pub(super) fn work(&mut self, now: Nanos) {
        if self.due > now {
            return;
        }
        let busy = self.collect(now);
        self.averages.update(&self.total, now);
        self.due = Nanos::MAX;
        if busy {
            let ticks = self.averages.next_update().since(now).0 / TICK.0 + 1;
            self.due = Nanos((now.0 / TICK.0 + ticks) * TICK.0);
        }
    }

    pub(super) fn read(&mut self, resource: Resource, now: Nanos) -> [Stall; 2] {
        self.collect(now);
        self.averages.update(&self.total, now);
        let first = match resource {
            Resource::Io => State::IoSome,
            Resource::Memory => State::MemSome,
            Resource::Cpu => State::CpuSome,
        };
        [first as usize, first as usize + 1]
            .map(|state| Stall { averages: self.averages.of(state), total: Nanos(self.total[state]) })
    }

    /// Adds what the CPUs noted to the total, each weighted by the ticks in which it was not idle; whether any was busy.
    fn collect(&mut self, now: Nanos) -> bool {
        let mut sums = [0_u128; NR_STALLS];
        let (mut weights, mut busy) = (0, false);
        for cpu in &mut self.cpus {
            let times = cpu.take(self.rule, now);
            busy |= times[State::NonIdle as usize] > 0;
            let weight = times[State::NonIdle as usize] / TICK.0;
            weights += weight;
            for (sum, time) in sums.iter_mut().zip(times) {
                *sum += u128::from(time) * u128::from(weight);
            }
        }
        for (total, sum) in self.total.iter_mut().zip(sums) {
            *total += (sum / u128::from(weights.max(1))) as u64;
        }
        busy
    }
}
