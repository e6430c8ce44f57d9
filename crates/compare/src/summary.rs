//! Means, spreads, percentiles and the 95 % interval of a mean.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::SIGNIFICANCE;

/// A closed interval; in JSON it is `[lo, hi]`.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(into = "[f64; 2]", from = "[f64; 2]")]
pub struct Interval {
    /// Lower end, in the unit of the samples (or percent, for an effect).
    pub lo: f64,
    /// Upper end, in the same unit.
    pub hi: f64,
}

impl From<Interval> for [f64; 2] {
    fn from(interval: Interval) -> Self {
        [interval.lo, interval.hi]
    }
}

impl From<[f64; 2]> for Interval {
    fn from([lo, hi]: [f64; 2]) -> Self {
        Interval { lo, hi }
    }
}

impl Interval {
    /// Half of the width: what a table prints after `±`.
    pub fn half_width(self) -> f64 {
        (self.hi - self.lo) / 2.0
    }
}

/// What a table shows of one group of samples.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Summary {
    /// Number of samples.
    pub n: usize,
    /// Arithmetic mean.
    pub mean: Option<f64>,
    /// Sample standard deviation (divisor n - 1); needs two samples.
    pub sd: Option<f64>,
    /// 95 % interval of the mean; needs two samples.
    pub ci95: Option<Interval>,
}

impl Summary {
    /// Summarises `samples`.
    pub fn of(samples: &[f64]) -> Summary {
        Summary { n: samples.len(), mean: mean(samples), sd: sd(samples), ci95: mean_ci95(samples) }
    }
}

/// Arithmetic mean (mmtests: Amean); `None` without samples or if one is not finite.
pub fn mean(samples: &[f64]) -> Option<f64> {
    if samples.is_empty() {
        return None;
    }
    let mean = samples.iter().sum::<f64>() / samples.len() as f64;
    mean.is_finite().then_some(mean)
}

/// Sample variance (divisor n - 1); needs two samples.
pub(crate) fn variance(samples: &[f64]) -> Option<f64> {
    if samples.len() < 2 {
        return None;
    }
    let m = mean(samples)?;
    let squares: f64 = samples.iter().map(|x| (x - m) * (x - m)).sum();
    Some(squares / (samples.len() - 1) as f64)
}

/// Sample standard deviation (divisor n - 1); needs two samples.
pub fn sd(samples: &[f64]) -> Option<f64> {
    variance(samples).map(f64::sqrt)
}

/// 95 % interval of the mean: mean ± t(0.975, n - 1) * sd / sqrt(n); needs two samples.
pub fn mean_ci95(samples: &[f64]) -> Option<Interval> {
    let m = mean(samples)?;
    let n = samples.len() as f64;
    let half = t_critical(n - 1.0)? * sd(samples)? / n.sqrt();
    Some(Interval { lo: m - half, hi: m + half })
}

/// The percentile at `pct` (0 to 100), linear between the closest ranks (R's type 7, numpy's default).
pub fn percentile(samples: &[f64], pct: f64) -> Option<f64> {
    if samples.is_empty() || !(0.0..=100.0).contains(&pct) || samples.iter().any(|x| x.is_nan()) {
        return None;
    }
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = pct / 100.0 * (sorted.len() - 1) as f64;
    let below = rank.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    Some(sorted[below] + (rank - below as f64) * (sorted[above] - sorted[below]))
}

/// The two-sided critical value of Student's t at [`SIGNIFICANCE`] for `df` degrees of freedom.
pub(crate) fn t_critical(df: f64) -> Option<f64> {
    let t = StudentsT::new(0.0, 1.0, df).ok()?;
    Some(t.inverse_cdf(1.0 - SIGNIFICANCE / 2.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(actual: f64, expected: f64) {
        assert!((actual - expected).abs() < 1e-6 * expected.abs().max(1.0), "{actual} != {expected}");
    }

    #[test]
    fn mean_and_sd_by_hand() {
        // 2, 4, 4, 4, 5, 5, 7, 9: sum 40, mean 5; squares 9+1+1+1+0+0+4+16 = 32; 32/7.
        let x = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
        close(mean(&x).unwrap(), 5.0);
        close(sd(&x).unwrap(), (32.0f64 / 7.0).sqrt());
    }

    #[test]
    fn interval_of_three_samples_uses_the_closed_form_for_two_degrees_of_freedom() {
        // For df = 2 the quantile is (2p-1)/sqrt(2p(1-p)); p = 0.975: 0.95/sqrt(0.04875) = 4.302653.
        // Samples 1, 2, 3: mean 2, sd 1; half width 4.302653/sqrt(3) = 2.484138.
        let t = 0.95 / 0.04875f64.sqrt();
        let ci = mean_ci95(&[1.0, 2.0, 3.0]).unwrap();
        close(ci.lo, 2.0 - t / 3f64.sqrt());
        close(ci.hi, 2.0 + t / 3f64.sqrt());
        close(ci.half_width(), 2.484138);
    }

    #[test]
    fn critical_values_match_the_printed_t_table() {
        // Two-sided 5 % column of any t table.
        for (df, t) in [(4.0, 2.776445), (9.0, 2.262157), (30.0, 2.042272)] {
            close(t_critical(df).unwrap(), t);
        }
    }

    #[test]
    fn too_few_or_not_finite_is_none() {
        assert_eq!(mean(&[]), None);
        assert_eq!(mean(&[1.0, f64::NAN]), None);
        assert_eq!(sd(&[1.0]), None);
        assert_eq!(mean_ci95(&[1.0]), None);
        assert_eq!(percentile(&[], 50.0), None);
    }

    #[test]
    fn percentiles_interpolate() {
        // Ranks 0..3; 50 % is rank 1.5, 90 % is rank 2.7.
        let x = [40.0, 10.0, 20.0, 30.0];
        close(percentile(&x, 0.0).unwrap(), 10.0);
        close(percentile(&x, 50.0).unwrap(), 25.0);
        close(percentile(&x, 90.0).unwrap(), 37.0);
        close(percentile(&x, 100.0).unwrap(), 40.0);
    }

    #[test]
    fn an_interval_is_a_pair_in_json() {
        let text = serde_json::to_string(&Interval { lo: -1.5, hi: 2.0 }).unwrap();
        assert_eq!(text, "[-1.5,2.0]");
    }
}
