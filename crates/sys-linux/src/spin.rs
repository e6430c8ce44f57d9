//! Uses the CPU for a given time.
//!
//! Short computations are counted loops, calibrated once before the run: asking the clock takes longer than they do, and in a guest
//! that counts instructions the loop takes the same virtual time in every run. Longer ones ask the thread's CPU clock, so that
//! time spent preempted does not count.

use rustix::time::{ClockId, clock_gettime};
use units::Nanos;

use crate::shared::monotonic;

/// Turns of the loop that are timed.
const CALIBRATION_TURNS: u64 = 1 << 20;
/// Longest computation that is counted and not timed.
const COUNTED_MAX: Nanos = Nanos::micros(20);

/// Speed of the loop, in turns per 1024 ns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spinner {
    turns_per_1024ns: u64,
}

impl Spinner {
    /// Measures how fast this CPU turns the loop: the fastest of three times, since what disturbs only slows.
    pub(crate) fn calibrate() -> Spinner {
        let time = || {
            let start = monotonic();
            turn(CALIBRATION_TURNS);
            monotonic().since(start).0.max(1)
        };
        let best = (0..3).map(|_| time()).min().expect("three times");
        Spinner { turns_per_1024ns: (CALIBRATION_TURNS * 1024 / best).max(1) }
    }

    fn count(self, time: Nanos) {
        turn((time.0 * self.turns_per_1024ns).div_ceil(1024));
    }

    /// Uses the CPU for `time`.
    pub(crate) fn spin(self, time: Nanos) {
        if time <= COUNTED_MAX {
            return self.count(time);
        }
        let end = cpu_time() + time;
        while cpu_time() < end {
            self.count(Nanos::micros(5));
        }
    }
}

fn turn(turns: u64) {
    for i in 0..turns {
        std::hint::black_box(i);
    }
}

/// CPU time of the calling thread.
pub(crate) fn cpu_time() -> Nanos {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Nanos(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_computation_uses_at_least_the_cpu_time_asked_for() {
        let spinner = Spinner::calibrate();
        let before = cpu_time();
        spinner.spin(Nanos::millis(3));
        assert!(cpu_time().since(before) >= Nanos::millis(3));
    }
}
