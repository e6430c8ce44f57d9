//! Whether the twin's effect points the same way as the published one.
//!
//! Rule: there is no direction to compare where either effect does not exist, where the published one is exactly 0, or
//! where it is noise: below [`PUBLISHED_NOISE_PCT`] in size, unless the publication marked it significant. A larger effect
//! counts even if the publication marks others and not this one, so that no disagreement is hidden by a missing mark.
//! Otherwise the signs decide; a twin effect that tables print as 0.0 % ([`TWIN_EFFECT_PCT_MIN`]) is none, and disagrees.

use serde::{Deserialize, Serialize};

/// Published effects smaller than this (percent of the baseline) count as noise unless marked significant.
pub const PUBLISHED_NOISE_PCT: f64 = 2.0;
/// Twin effects smaller than this (percent of the baseline) are none: one decimal shows them as 0.0.
pub const TWIN_EFFECT_PCT_MIN: f64 = 0.05;

/// Answer for one row of a study.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Same sign.
    Agrees,
    /// Other sign, or no effect in the twin.
    Disagrees,
    /// Nothing to compare.
    None,
}

/// A published effect.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Published {
    /// (variant - baseline) / baseline * 100, whatever convention was printed.
    pub effect_pct: Option<f64>,
    /// Whether the publication marked it significant.
    pub significant: bool,
}

impl Published {
    /// The effect if it stands out of the noise.
    fn effect_beyond_noise(self) -> Option<f64> {
        let effect = self.effect_pct.filter(|e| e.is_finite() && *e != 0.0)?;
        (self.significant || effect.abs() >= PUBLISHED_NOISE_PCT).then_some(effect)
    }
}

/// Compares the signs of a published effect and of the twin's, both in percent of their baselines.
pub fn direction(published: Published, twin_effect_pct: Option<f64>) -> Direction {
    let Some((published, twin)) = published.effect_beyond_noise().zip(twin_effect_pct) else {
        return Direction::None;
    };
    let agrees = published * twin > 0.0 && twin.abs() >= TWIN_EFFECT_PCT_MIN;
    if agrees { Direction::Agrees } else { Direction::Disagrees }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(effect_pct: Option<f64>, significant: bool, twin: Option<f64>) -> Direction {
        direction(Published { effect_pct, significant }, twin)
    }

    #[test]
    fn signs_decide() {
        assert_eq!(judge(Some(-98.0), false, Some(-40.0)), Direction::Agrees);
        assert_eq!(judge(Some(12.0), false, Some(3.0)), Direction::Agrees);
        assert_eq!(judge(Some(12.0), false, Some(-3.0)), Direction::Disagrees);
        assert_eq!(judge(Some(12.0), false, Some(0.0)), Direction::Disagrees);
    }

    #[test]
    fn nothing_to_compare() {
        assert_eq!(judge(None, false, Some(5.0)), Direction::None);
        assert_eq!(judge(Some(5.0), false, None), Direction::None);
        assert_eq!(judge(Some(0.0), true, Some(5.0)), Direction::None);
    }

    #[test]
    fn noise_ends_at_two_percent_unless_marked() {
        assert_eq!(judge(Some(1.99), false, Some(5.0)), Direction::None);
        assert_eq!(judge(Some(-2.0), false, Some(-5.0)), Direction::Agrees);
        assert_eq!(judge(Some(1.41), true, Some(5.0)), Direction::Agrees);
    }

    #[test]
    fn a_twin_effect_that_prints_as_zero_is_none() {
        for (twin, direction) in [(0.05, Direction::Agrees), (0.049, Direction::Disagrees)] {
            assert_eq!(format!("{twin:.1}") == "0.0", direction == Direction::Disagrees);
            assert_eq!(judge(Some(12.0), false, Some(twin)), direction);
            assert_eq!(judge(Some(-12.0), false, Some(-twin)), direction);
            assert_eq!(judge(Some(12.0), false, Some(-twin)), Direction::Disagrees, "the other sign");
        }
        assert_eq!(judge(Some(1.99), false, Some(0.049)), Direction::None, "what is published is noise");
    }
}
