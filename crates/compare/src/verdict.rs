//! Whether a variant is better, worse, or not told apart from its baseline.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::SIGNIFICANCE;
use crate::effect::{effect_ci95_pct, effect_pct};
use crate::summary::{Interval, Summary};
use crate::welch::welch;

/// Which way a metric improves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// More is better: files per second, success rates.
    Higher,
    /// Less is better: latencies, stalls.
    Lower,
    /// Neither: a figure that only describes.
    #[default]
    None,
}

/// The answer of a comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Different (p < 0.05), in the metric's better direction.
    Better,
    /// Different (p < 0.05), in the other direction.
    Worse,
    /// Not told apart from noise, too few samples to tell, or a metric without a direction.
    NoVerdict,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::NoVerdict => "no verdict",
        })
    }
}

/// A variant against a baseline, for one metric.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Comparison {
    /// The baseline's samples.
    pub baseline: Summary,
    /// The variant's samples.
    pub variant: Summary,
    /// Change of the mean in percent of the baseline's mean.
    pub effect_pct: Option<f64>,
    /// 95 % interval of `effect_pct` (Fieller).
    pub effect_ci95_pct: Option<Interval>,
    /// Two-sided p of Welch's test; `None` with fewer than two samples on a side.
    pub p: Option<f64>,
    /// The answer.
    pub verdict: Verdict,
}

impl Comparison {
    /// Compares the samples of one metric.
    pub fn of(baseline: &[f64], variant: &[f64], better: Better) -> Comparison {
        let (base, var) = (Summary::of(baseline), Summary::of(variant));
        let p = welch(baseline, variant).map(|test| test.p);
        let means = base.mean.zip(var.mean);
        Comparison {
            baseline: base,
            variant: var,
            effect_pct: means.and_then(|(b, v)| effect_pct(b, v)),
            effect_ci95_pct: effect_ci95_pct(baseline, variant),
            p,
            verdict: means.map_or(Verdict::NoVerdict, |(b, v)| decide(v - b, p, better)),
        }
    }

    /// Whether the means differ (p < 0.05), whatever the direction.
    pub fn significant(&self) -> bool {
        self.p.is_some_and(|p| p < SIGNIFICANCE)
    }
}

/// The verdict for a difference of means with its p.
fn decide(difference: f64, p: Option<f64>, better: Better) -> Verdict {
    if p.is_none_or(|p| p >= SIGNIFICANCE) {
        return Verdict::NoVerdict;
    }
    match (better, difference > 0.0) {
        (Better::None, _) => Verdict::NoVerdict,
        (Better::Higher, true) | (Better::Lower, false) => Verdict::Better,
        (Better::Higher, false) | (Better::Lower, true) => Verdict::Worse,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOW: [f64; 3] = [10.0, 11.0, 12.0];
    const HIGH: [f64; 3] = [20.0, 21.0, 22.0];

    #[test]
    fn the_direction_decides_between_better_and_worse() {
        // Means 11 and 21, se2 = 1/3 + 1/3, t = 10/0.8165 = 12.25 with df 4: far below 0.05.
        let verdict = |baseline, variant, better| Comparison::of(baseline, variant, better).verdict;
        assert_eq!(verdict(&LOW, &HIGH, Better::Higher), Verdict::Better);
        assert_eq!(verdict(&LOW, &HIGH, Better::Lower), Verdict::Worse);
        assert_eq!(verdict(&HIGH, &LOW, Better::Lower), Verdict::Better);
        assert_eq!(verdict(&HIGH, &LOW, Better::Higher), Verdict::Worse);
        assert_eq!(verdict(&LOW, &HIGH, Better::None), Verdict::NoVerdict);
    }

    #[test]
    fn overlapping_samples_get_no_verdict() {
        let c = Comparison::of(&[10.0, 20.0, 30.0], &[12.0, 22.0, 32.0], Better::Higher);
        assert_eq!(c.verdict, Verdict::NoVerdict);
        assert!(!c.significant());
        assert_eq!(c.effect_pct, Some(10.0));
    }

    #[test]
    fn one_sample_has_an_effect_but_no_verdict() {
        let c = Comparison::of(&[10.0], &[20.0], Better::Higher);
        assert_eq!((c.effect_pct, c.p, c.verdict), (Some(100.0), None, Verdict::NoVerdict));
    }

    #[test]
    fn names_in_json_are_as_documented() {
        let text = serde_json::to_string(&[Better::Higher, Better::Lower, Better::None]).unwrap();
        assert_eq!(text, r#"["higher","lower","none"]"#);
    }
}
