//! Averages that decay.

use units::Nanos;

use super::group::NR_STALLS;
use super::{PERIOD, Stall};

/// `FIXED_1`.
const ONE: u64 = 1 << Stall::FRACTION_BITS;
/// What is left of an average after a period: exp(-2 s / 10 s), of 60 s, of 300 s (`EXP_10s`, `EXP_60s`, `EXP_300s`).
const DECAY: [u64; 3] = [1677, 1981, 2034];

/// The averages of a group's states.
#[derive(Debug)]
pub(super) struct Averages {
    averages: [[u64; 3]; NR_STALLS],
    /// Of the totals, what went into the averages.
    sampled: [u64; NR_STALLS],
    last: Nanos,
    next: Nanos,
}

impl Averages {
    pub(super) fn new(now: Nanos) -> Averages {
        Averages { averages: [[0; 3]; NR_STALLS], sampled: [0; NR_STALLS], last: now, next: now + PERIOD }
    }

    pub(super) fn of(&self, state: usize) -> [u64; 3] {
        self.averages[state]
    }

    pub(super) fn next_update(&self) -> Nanos {
        self.next
    }

    /// Takes in what was added to the totals, if a period is over (`update_averages()`).
    pub(super) fn update(&mut self, totals: &[u64; NR_STALLS], now: Nanos) {
        if now < self.next {
            return;
        }
        let missed = now.since(self.next).0 / PERIOD.0;
        let period = now.since(Nanos(self.last.0 + missed * PERIOD.0)).0;
        self.next = Nanos(self.next.0 + (1 + missed) * PERIOD.0);
        self.last = now;
        for (state, total) in totals.iter().enumerate() {
            // What is more than the period goes into the next.
            let sample = (total - self.sampled[state]).min(period);
            self.sampled[state] += sample;
            let percent = sample * 100 / period * ONE;
            for (average, decay) in self.averages[state].iter_mut().zip(DECAY) {
                *average = decayed(*average, power(decay, missed), 0);
                *average = decayed(*average, decay, percent);
            }
        }
    }
}

/// `calc_load()`: rounded towards the sample.
fn decayed(average: u64, decay: u64, sample: u64) -> u64 {
    let mut next = average * decay + sample * (ONE - decay);
    if sample >= average {
        next += ONE - 1;
    }
    next / ONE
}

/// `fixed_power_int()`: each product rounded to nearest.
fn power(mut base: u64, mut exponent: u64) -> u64 {
    let product = |a: u64, b: u64| (a * b + ONE / 2) / ONE;
    let mut result = ONE;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = product(result, base);
        }
        base = product(base, base);
        exponent >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn percent(average: u64) -> f64 {
        average as f64 / ONE as f64
    }

    /// The averages of the first state after periods with these shares of stall.
    fn after(shares: &[f64]) -> [f64; 3] {
        let (mut averages, mut totals) = (Averages::new(Nanos::ZERO), [0; NR_STALLS]);
        for (n, share) in shares.iter().enumerate() {
            totals[0] += (PERIOD.0 as f64 * share) as u64;
            averages.update(&totals, Nanos((n as u64 + 1) * PERIOD.0));
        }
        averages.of(0).map(percent)
    }

    #[test]
    fn averages_approach_a_steady_stall_as_exponentials_do() {
        for periods in [1, 5, 30, 150] {
            let seconds = 2.0 * periods as f64;
            for (average, window) in after(&vec![0.5; periods]).into_iter().zip([10.0, 60.0, 300.0]) {
                let expected = 50.0 * (1.0 - f64::exp(-seconds / window));
                // The decay in 2 s is rounded to 1/2048: 2034 stands for 292 s instead of 300.
                let close = (average - expected).abs() < 0.03 * expected + 0.1;
                assert!(close, "{average} instead of {expected} after {seconds} s of {window}");
            }
        }
    }

    #[test]
    fn periods_without_anything_count_as_idle_ones() {
        let mut totals = [0; NR_STALLS];
        totals[0] = PERIOD.0;
        let mut averages = Averages::new(Nanos::ZERO);
        averages.update(&totals, PERIOD);
        averages.update(&totals, Nanos(11 * PERIOD.0));
        let expected = after(&[[1.0].as_slice(), &[0.0; 10]].concat());
        for (average, expected) in averages.of(0).map(percent).into_iter().zip(expected) {
            assert!((average - expected).abs() < 0.1, "{average} instead of {expected}");
        }
    }

    #[test]
    fn a_sample_of_more_than_its_period_is_spread_over_the_next() {
        assert_eq!(after(&[2.0, 0.0]), after(&[1.0, 1.0]));
    }

    #[test]
    fn nothing_happens_before_a_period_is_over() {
        let mut averages = Averages::new(Nanos::ZERO);
        averages.update(&[1; NR_STALLS], Nanos(PERIOD.0 - 1));
        assert_eq!(averages.of(0), [0; 3]);
    }
}
