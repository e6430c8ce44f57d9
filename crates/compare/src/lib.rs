//! Statistics and verdicts: pure functions over samples; knows nothing of runs, kernels or files.
//!
//! Two-sided level 0.05 and 95 % intervals throughout. A figure that cannot be computed
//! (no samples, a zero baseline, samples that are not finite) is `None`, never NaN.

mod accuracy;
mod direction;
mod effect;
mod summary;
mod verdict;
mod welch;

pub use accuracy::{Accuracy, Class, Nearness, accuracy, overlap};
pub use direction::{Direction, PUBLISHED_NOISE_PCT, Published, TWIN_EFFECT_PCT_MIN, direction};
pub use effect::{effect_ci95_pct, effect_pct};
pub use summary::{Interval, Summary, mean, mean_ci95, percentile, sd};
pub use verdict::{Better, Comparison, Verdict};
pub use welch::{Welch, welch};

/// The two-sided level below which a difference counts (`p < 0.05`).
pub const SIGNIFICANCE: f64 = 0.05;
