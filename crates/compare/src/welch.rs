//! Welch's t-test: two means, variances not assumed equal.
//!
//! Source: B. L. Welch, Biometrika 34 (1947), with Satterthwaite's degrees of freedom. It is what mmtests' `*` stands for.

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::SIGNIFICANCE;
use crate::summary::{mean, variance};

/// Outcome of Welch's test.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Welch {
    /// (mean of the second group - mean of the first) / standard error; infinite if neither group varies.
    pub t: f64,
    /// Satterthwaite's degrees of freedom.
    pub df: f64,
    /// Two-sided p.
    pub p: f64,
}

impl Welch {
    /// Whether the difference counts (`p < 0.05`).
    pub fn significant(self) -> bool {
        self.p < SIGNIFICANCE
    }
}

/// Tests whether two groups have different means; needs two finite samples in each.
///
/// Where no sample of either group varies (a deterministic twin whose seeds do not matter for this metric) there is
/// no noise to hide a difference: p is 1 for equal means and 0 for different ones.
pub fn welch(first: &[f64], second: &[f64]) -> Option<Welch> {
    let se2_first = variance(first)? / first.len() as f64;
    let se2_second = variance(second)? / second.len() as f64;
    let difference = mean(second)? - mean(first)?;
    let se2 = se2_first + se2_second;
    if se2 == 0.0 {
        let df = (first.len() + second.len() - 2) as f64;
        let same = difference == 0.0;
        let (t, p) = if same { (0.0, 1.0) } else { (f64::INFINITY.copysign(difference), 0.0) };
        return Some(Welch { t, df, p });
    }
    let df = satterthwaite_df((se2_first, first.len()), (se2_second, second.len()));
    let t = difference / se2.sqrt();
    let distribution = StudentsT::new(0.0, 1.0, df).ok()?;
    Some(Welch { t, df, p: (2.0 * distribution.sf(t.abs())).min(1.0) })
}

/// Degrees of freedom of a sum of two squared standard errors, each given with its number of samples.
pub(crate) fn satterthwaite_df((a, n_a): (f64, usize), (b, n_b): (f64, usize)) -> f64 {
    (a + b) * (a + b) / (a * a / (n_a - 1) as f64 + b * b / (n_b - 1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_degrees_of_freedom_have_a_closed_form() {
        // {0, 2} and {4, 6}: means 1 and 5, variances 2 and 2, se2 = 1 + 1, t = 4/sqrt(2) = 2.828427,
        // df = 2^2/(1/1 + 1/1) = 2. For df = 2: p = 1 - t/sqrt(2 + t^2) = 1 - 2.828427/sqrt(10) = 0.105573.
        let w = welch(&[0.0, 2.0], &[4.0, 6.0]).unwrap();
        assert!((w.t - 8f64.sqrt()).abs() < 1e-12);
        assert!((w.df - 2.0).abs() < 1e-12);
        assert!((w.p - (1.0 - (8.0f64 / 10.0).sqrt())).abs() < 1e-9);
        assert!(!w.significant());
    }

    /// p by Simpson's rule over the density of t, as a second way to the same number.
    fn p_by_integration(t: f64, df: f64) -> f64 {
        let density = |x: f64| (1.0 + x * x / df).powf(-(df + 1.0) / 2.0);
        let simpson = |from: f64, to: f64| {
            let steps = 20_000;
            let h = (to - from) / f64::from(steps);
            let inner: f64 = (1..steps).map(|i| f64::from(2 + 2 * (i % 2)) * density(from + f64::from(i) * h)).sum();
            (density(from) + inner + density(to)) * h / 3.0
        };
        simpson(t, 400.0) / simpson(0.0, 400.0)
    }

    #[test]
    fn unequal_variances_by_hand() {
        // 1..5 and 2, 4, .., 10: means 3 and 6, variances 2.5 and 10, se2 = 0.5 + 2 = 2.5,
        // t = 3/sqrt(2.5) = 1.897367, df = 2.5^2/(0.25/4 + 4/4) = 6.25/1.0625 = 5.882353.
        let first = [1.0, 2.0, 3.0, 4.0, 5.0];
        let second = [2.0, 4.0, 6.0, 8.0, 10.0];
        let w = welch(&first, &second).unwrap();
        assert!((w.t - 3.0 / 2.5f64.sqrt()).abs() < 1e-12);
        assert!((w.df - 6.25 / 1.0625).abs() < 1e-12);
        assert!((w.p - p_by_integration(w.t, w.df)).abs() < 1e-6, "{}", w.p);
        let swapped = welch(&second, &first).unwrap();
        assert_eq!((swapped.t, swapped.p), (-w.t, w.p));
    }

    #[test]
    fn groups_that_do_not_vary() {
        assert_eq!(welch(&[3.0, 3.0], &[3.0, 3.0]).unwrap().p, 1.0);
        assert_eq!(welch(&[3.0, 3.0], &[2.0, 2.0]).unwrap().p, 0.0);
        assert_eq!(welch(&[3.0], &[2.0, 2.0]), None);
        assert_eq!(welch(&[3.0, f64::INFINITY], &[2.0, 2.0]), None);
    }
}
