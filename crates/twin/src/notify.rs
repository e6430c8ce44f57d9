//! Who watches `memory.events` is told of what happens in a group, but not each time.
//!
//! Rule: an event has a worker tell the watchers, unless it did so less than three ticks ago: then a timer has it done, which goes off with the
//! tick after these. Groups above are told of the same.
//! Source: `memcg_memory_event()` (include/linux/memcontrol.h), `cgroup_file_notify()`, `CGROUP_FILE_NOTIFY_MIN_INTV` (kernel/cgroup/cgroup.c,
//! since 4.18; 6.1), `calc_index()` (kernel/time/timer.c). In a traced guest of 6.12 with a group at its `memory.max` the worker comes
//! each 16 ms.
//! Abstracted: `memory.events` and `memory.events.local` are told of at once, and the groups above by the same work; before 4.18, when each
//! event was told of, it is as since.

use mm::JIFFY;
use units::{CpuId, MemcgId, Nanos};

/// Ticks for which watchers are not told again: a hundredth of a second.
const MIN_TICKS: u64 = 3;

/// What an event leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Told {
    /// The worker is to tell of it.
    Now,
    /// A timer is to be set that has it told at this time.
    At(Nanos),
    /// It is told with the next.
    WithNext,
}

/// What the watchers of a group have been told.
#[derive(Clone, Copy, Debug, Default)]
struct Watched {
    /// Tick at which the worker was last asked.
    last: Option<u64>,
    /// A timer is set.
    armed: bool,
}

/// Which groups' watchers were told of what, and who is to do it.
#[derive(Debug, Default)]
pub(crate) struct Notifier {
    groups: Vec<Watched>,
    /// By CPU: its worker is to tell.
    pending: Vec<bool>,
}

impl Notifier {
    fn group(&mut self, memcg: MemcgId) -> &mut Watched {
        let at = usize::from(memcg.0);
        if at >= self.groups.len() {
            self.groups.resize(at + 1, Watched::default());
        }
        &mut self.groups[at]
    }

    /// Something happened in a group.
    pub(crate) fn event(&mut self, memcg: MemcgId, now: Nanos) -> Told {
        let tick = now.0 / JIFFY.0;
        let group = self.group(memcg);
        match group.last {
            _ if group.armed => Told::WithNext,
            Some(last) if tick <= last + MIN_TICKS => {
                group.armed = true;
                Told::At(Nanos((last + MIN_TICKS + 1) * JIFFY.0))
            }
            _ => {
                group.last = Some(tick);
                Told::Now
            }
        }
    }

    /// The timer of a group goes off.
    pub(crate) fn goes_off(&mut self, memcg: MemcgId, now: Nanos) {
        *self.group(memcg) = Watched { last: Some(now.0 / JIFFY.0), armed: false };
    }

    /// The worker of a CPU is to tell.
    pub(crate) fn ask(&mut self, cpu: CpuId) {
        if self.pending.len() <= cpu.index() {
            self.pending.resize(cpu.index() + 1, false);
        }
        self.pending[cpu.index()] = true;
    }

    /// Whether the worker of a CPU is to tell, which it does now.
    pub(crate) fn take(&mut self, cpu: CpuId) -> bool {
        self.pending.get_mut(cpu.index()).is_some_and(std::mem::take)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUP: MemcgId = MemcgId(2);

    #[test]
    fn a_group_in_which_much_happens_is_told_of_each_16_ms() {
        let mut notifier = Notifier::default();
        assert_eq!(notifier.event(GROUP, Nanos::millis(9)), Told::Now);
        // Tick 2; ticks 3 to 5 are too near, and the timer of the fifth goes off with the sixth.
        assert_eq!(notifier.event(GROUP, Nanos::millis(9)), Told::At(Nanos::millis(24)));
        assert_eq!(notifier.event(GROUP, Nanos::millis(20)), Told::WithNext);
        notifier.goes_off(GROUP, Nanos::millis(24));
        assert_eq!(notifier.event(GROUP, Nanos::millis(25)), Told::At(Nanos::millis(40)));
    }

    #[test]
    fn what_happens_later_or_in_another_group_is_told_of_at_once() {
        let mut notifier = Notifier::default();
        assert_eq!(notifier.event(GROUP, Nanos::millis(8)), Told::Now);
        assert_eq!(notifier.event(MemcgId(3), Nanos::millis(8)), Told::Now);
        assert_eq!(notifier.event(GROUP, Nanos::millis(24)), Told::Now, "tick 6");
    }

    #[test]
    fn a_worker_tells_once_of_all_that_it_was_asked_for() {
        let mut notifier = Notifier::default();
        notifier.ask(CpuId(1));
        notifier.ask(CpuId(1));
        assert!(!notifier.take(CpuId(0)) && notifier.take(CpuId(1)) && !notifier.take(CpuId(1)));
    }
}
