//! How long the arm takes.
//!
//! **Rule.** Short seeks accelerate all the way, so their time grows with the square root of the distance: a +
//! b sqrt(d); long ones coast at full speed: c + e d. The curve passes through the track-to-track seek and the
//! full stroke, its pieces meet at a third of the stroke, and its mean over random pairs is the data sheet's average.
//! **Source.** Ruemmler & Wilkes, "An introduction to disk drive modeling", IEEE Computer 27(3), 1994.
//! **Abstracted.** Settling is part of the curve, but for what a write needs more. **Omitted.** Direction; recalibration.

use super::spec::HddSpec;
use units::Nanos;

/// Where the square root gives way to the line, as a share of the stroke.
const KNEE: f64 = 1.0 / 3.0;

/// Seek time by distance.
#[derive(Clone, Debug)]
pub(super) struct SeekCurve {
    stroke: f64,
    track_ns: f64,
    knee_ns: f64,
    full_ns: f64,
}

impl SeekCurve {
    /// `cylinders` is at least 2.
    ///
    /// The mean over random pairs has the density 2 (1 - x) for a distance of the share x. Integrating the curve,
    /// mean = track / 5 + knee * 88 / 135 + full * 4 / 27, which is solved for the knee.
    pub(super) fn new(spec: &HddSpec, cylinders: u64) -> SeekCurve {
        let ns = |us: u64| us as f64 * 1e3;
        let (track_ns, full_ns) = (ns(spec.seek_track_us), ns(spec.seek_full_us));
        let rest = ns(spec.seek_average_us) - track_ns / 5.0 - full_ns * 4.0 / 27.0;
        SeekCurve { stroke: (cylinders - 1) as f64, track_ns, knee_ns: rest * 135.0 / 88.0, full_ns }
    }

    /// Whether a longer seek never takes less time.
    pub(super) fn is_monotone(&self) -> bool {
        self.track_ns <= self.knee_ns && self.knee_ns <= self.full_ns
    }

    /// Time to move by `cylinders`.
    pub(super) fn time(&self, cylinders: u64) -> Nanos {
        if cylinders == 0 {
            return Nanos::ZERO;
        }
        let share = cylinders as f64 / self.stroke;
        let ns = if share < KNEE {
            self.track_ns + (self.knee_ns - self.track_ns) * (share / KNEE).sqrt()
        } else {
            self.knee_ns + (self.full_ns - self.knee_ns) * (share - KNEE) / (1.0 - KNEE)
        };
        Nanos(ns.round() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_over_random_pairs_is_the_average_of_the_data_sheet() {
        let cylinders = 100_000;
        let curve = SeekCurve::new(&HddSpec::seven_two_k_2010s(), cylinders);
        // Sum over distances d of 2 (C - d) / C^2 * time(d)
        let c = cylinders as f64;
        let mean: f64 = (1..cylinders).map(|d| 2.0 * (c - d as f64) / (c * c) * curve.time(d).0 as f64).sum();
        assert!((mean - 8.5e6).abs() < 8.5e3, "{mean}"); // 0.1 %
    }

    #[test]
    fn it_meets_the_full_stroke_and_nearly_the_track_seek() {
        let curve = SeekCurve::new(&HddSpec::seven_two_k_2010s(), 100_001);
        assert_eq!(curve.time(100_000), Nanos::millis(18));
        // 0.8 ms + (8.70 - 0.8) ms * sqrt(3 / 100000) = 0.843 ms
        assert!((800_000..850_000).contains(&curve.time(1).0));
        assert_eq!(curve.time(0), Nanos::ZERO);
    }
}
