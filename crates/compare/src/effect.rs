//! The size of an effect in percent of the baseline, and its 95 % interval.
//!
//! The interval is Fieller's for a ratio of two independent means (E. C. Fieller, JRSS B 16, 1954), with each group's own
//! variance and Satterthwaite's degrees of freedom at the estimated ratio. It was taken over a bootstrap because runs come
//! in threes to tens, where resampling knows too few different samples and covers too little, and because it needs no
//! seed. Where the baseline's mean is itself not different from zero the interval is unbounded, and `None` here.

use crate::summary::{Interval, mean, t_critical, variance};
use crate::welch::satterthwaite_df;

/// (variant - baseline) / baseline * 100; `None` where the baseline is 0 or a figure is not finite.
pub fn effect_pct(baseline: f64, variant: f64) -> Option<f64> {
    if baseline == 0.0 {
        return None;
    }
    let effect = (variant - baseline) / baseline * 100.0;
    effect.is_finite().then_some(effect)
}

/// 95 % interval, in percent, of the effect of `variant` against `baseline`; needs two samples in each.
pub fn effect_ci95_pct(baseline: &[f64], variant: &[f64]) -> Option<Interval> {
    let (mean_b, mean_v) = (mean(baseline)?, mean(variant)?);
    if mean_b == 0.0 {
        return None;
    }
    let se2_b = variance(baseline)? / baseline.len() as f64;
    let se2_v = variance(variant)? / variant.len() as f64;
    let ratio = mean_v / mean_b;
    let spread = se2_v + ratio * ratio * se2_b;
    if spread == 0.0 {
        return Some(ratio_interval(ratio, ratio));
    }
    let df = satterthwaite_df((se2_v, variant.len()), (ratio * ratio * se2_b, baseline.len()));
    let t = t_critical(df)?;
    let g = t * t * se2_b / (mean_b * mean_b);
    if g >= 1.0 {
        return None;
    }
    let half = t / mean_b.abs() * (spread - g * se2_v).sqrt();
    Some(ratio_interval((ratio - half) / (1.0 - g), (ratio + half) / (1.0 - g)))
}

/// Ratios of variant to baseline as percent of change.
fn ratio_interval(lo: f64, hi: f64) -> Interval {
    Interval { lo: (lo - 1.0) * 100.0, hi: (hi - 1.0) * 100.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::mean_ci95;

    #[test]
    fn effects_are_relative_to_the_baseline() {
        // Study 0: 804694 -> 18421 events: (18421 - 804694)/804694 = -97.7108 %.
        let effect = effect_pct(804_694.0, 18_421.0).unwrap();
        assert!((effect + 97.710_806).abs() < 1e-4, "{effect}");
        assert_eq!(effect_pct(0.0, 5.0), None);
        assert_eq!(effect_pct(5.0, f64::NAN), None);
    }

    #[test]
    fn with_a_baseline_that_does_not_vary_it_is_the_interval_of_the_variants_mean() {
        let variant = [90.0, 100.0, 110.0];
        let ci = effect_ci95_pct(&[200.0, 200.0], &variant).unwrap();
        let mean_ci = mean_ci95(&variant).unwrap();
        assert!((ci.lo - (mean_ci.lo / 200.0 - 1.0) * 100.0).abs() < 1e-9);
        assert!((ci.hi - (mean_ci.hi / 200.0 - 1.0) * 100.0).abs() < 1e-9);
    }

    #[test]
    fn each_end_is_a_ratio_that_the_test_just_rejects() {
        // Definition of Fieller's ends: (m_v - r m_b)^2 = t^2 (se2_v + r^2 se2_b).
        // 10, 12, 14: mean 12, se2 4/3. 22, 24, 29: mean 25, variance 13, se2 13/3.
        let (baseline, variant) = ([10.0, 12.0, 14.0], [22.0, 24.0, 29.0]);
        let ratio: f64 = 25.0 / 12.0;
        let scaled = ratio * ratio * 4.0 / 3.0;
        let t = t_critical(satterthwaite_df((13.0 / 3.0, 3), (scaled, 3))).unwrap();
        let ci = effect_ci95_pct(&baseline, &variant).unwrap();
        for end in [ci.lo, ci.hi] {
            let r = 1.0 + end / 100.0;
            let left = (25.0 - r * 12.0).powi(2);
            let right = t * t * (13.0 / 3.0 + r * r * 4.0 / 3.0);
            assert!((left - right).abs() < 1e-6 * right, "{left} {right}");
        }
        assert!(ci.lo < 108.34 && 108.33 < ci.hi);
    }

    #[test]
    fn a_baseline_near_zero_gives_no_interval() {
        assert_eq!(effect_ci95_pct(&[-1.0, 0.0, 1.5], &[5.0, 6.0]), None);
        assert_eq!(effect_ci95_pct(&[0.0, 0.0], &[5.0, 6.0]), None);
    }

    #[test]
    fn constant_groups_give_a_point() {
        let ci = effect_ci95_pct(&[4.0, 4.0], &[3.0, 3.0]).unwrap();
        assert_eq!((ci.lo, ci.hi), (-25.0, -25.0));
    }
}
