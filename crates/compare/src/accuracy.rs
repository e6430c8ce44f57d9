//! How far a model is off: one counter in repetitions of a real run and in runs of the model.

use serde::Serialize;

use crate::{mean, percentile, sd};

/// Below this coefficient of variation, in percent, a counter of the real kernel is sharp.
const SHARP_CV_PCT: f64 = 5.0;
/// Above this one it is chaotic, and only distributions can be compared.
const CHAOTIC_CV_PCT: f64 = 25.0;
/// How sharp a counter of the real kernel is over repetitions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
pub enum Class {
    /// Coefficient of variation below 5 %.
    S,
    /// Up to 25 %.
    M,
    /// Above that.
    C,
    /// Unknown: there is one run.
    U,
}

impl Class {
    /// How sharp a counter is of which these were counted; what is below `floor` is as good as nothing.
    pub fn of(real: &[f64], floor: f64) -> Class {
        let (Some(mean), Some(sd)) = (mean(real), sd(real)) else { return Class::U };
        match sd / mean.abs().max(floor) * 100.0 {
            cv_pct if cv_pct < SHARP_CV_PCT => Class::S,
            cv_pct if cv_pct <= CHAOTIC_CV_PCT => Class::M,
            _ => Class::C,
        }
    }
}

/// What is to be said of the model's median.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Nearness {
    /// Within the real kernel's own spread: the ranges of the samples overlap.
    WithinSpread,
    /// At most 10 % off.
    Within10,
    /// At most 25 % off.
    Within25,
    /// Farther.
    Off,
}

/// A counter in both worlds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Accuracy {
    /// How sharp it is.
    pub class: Class,
    /// Median of the real runs.
    pub real_median: f64,
    /// Their standard deviation; 0 of a single run.
    pub real_sd: f64,
    /// Median of the model's runs.
    pub twin_median: f64,
    /// Their standard deviation; 0 of a single run.
    pub twin_sd: f64,
    /// Difference of the medians in percent of the real one, or of the floor if that is larger: a few real runs tell nothing of what one
    /// draw in fifty does.
    pub error_pct: f64,
    /// What is to be said of it.
    pub verdict: Nearness,
}

/// Compares one counter. What is below `floor` (above 0) in both worlds is as good as nothing: differences are taken in
/// proportion to the real median or the floor, whichever is larger. None without samples on both sides.
pub fn accuracy(real: &[f64], twin: &[f64], floor: f64) -> Option<Accuracy> {
    let [real_median, twin_median] = [percentile(real, 50.0)?, percentile(twin, 50.0)?];
    let (real_sd, twin_sd) = (sd(real).unwrap_or(0.0), sd(twin).unwrap_or(0.0));
    let scale = real_median.abs().max(floor);
    let class = Class::of(real, floor);
    let difference = twin_median - real_median;
    let error_pct = difference / scale * 100.0;
    let verdict = match error_pct.abs() {
        _ if overlap(real, twin) => Nearness::WithinSpread,
        error if error <= 10.0 => Nearness::Within10,
        error if error <= 25.0 => Nearness::Within25,
        _ => Nearness::Off,
    };
    Some(Accuracy { class, real_median, real_sd, twin_median, twin_sd, error_pct, verdict })
}

/// Whether the ranges of two sets of samples have a point in common.
pub fn overlap(a: &[f64], b: &[f64]) -> bool {
    let least = |samples: &[f64]| samples.iter().copied().fold(f64::INFINITY, f64::min);
    let most = |samples: &[f64]| samples.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    least(a) <= most(b) && least(b) <= most(a)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_begin_where_they_say() {
        // Of two samples m - d and m + d, the standard deviation is d * sqrt(2).
        let class = |cv_pct: f64| {
            let d = cv_pct / 2.0_f64.sqrt();
            accuracy(&[100.0 - d, 100.0 + d], &[100.0], 1.0).unwrap().class
        };
        assert_eq!([4.99, 5.01, 24.99, 25.01].map(class), [Class::S, Class::M, Class::M, Class::C]);
        assert_eq!(accuracy(&[100.0], &[100.0], 1.0).unwrap().class, Class::U, "one run has no spread");
    }

    #[test]
    fn verdicts_go_by_the_spread_first_and_then_by_the_error() {
        let verdict = |twin: f64| accuracy(&[99.0, 101.0], &[twin], 1.0).unwrap().verdict;
        assert_eq!(
            [101.0, 101.1, 110.0].map(verdict),
            [Nearness::WithinSpread, Nearness::Within10, Nearness::Within10]
        );
        assert_eq!([110.1, 75.0, 74.9].map(verdict), [Nearness::Within25, Nearness::Within25, Nearness::Off]);
    }

    #[test]
    fn one_draw_that_takes_another_turn_says_nothing_of_the_others() {
        let compared = accuracy(&[100.0, 103.0, 101.0], &[102.0, 100.0, 5000.0, 101.0, 103.0], 1.0).unwrap();
        // 101 and 102 in the middle.
        assert_eq!((compared.real_median, compared.twin_median), (101.0, 102.0));
        assert!((compared.error_pct - 100.0 / 101.0).abs() < 1e-9);
    }

    #[test]
    fn errors_are_in_proportion_to_the_floor_where_there_is_next_to_nothing() {
        let error = |real, twin| accuracy(&[real], &[twin], 1000.0).unwrap().error_pct;
        assert_eq!((error(0.0, 50.0), error(2000.0, 1000.0)), (5.0, -50.0));
        assert_eq!(accuracy(&[], &[1.0], 1.0), None);
    }
}
