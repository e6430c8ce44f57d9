//! A transfer rate as fixed-point time per unit: no division per request and no rounding by floating point.

use crate::bio::SECTOR_SIZE;
use units::Nanos;

/// Fraction bits of the time per unit; a relative error below 1e-8 for every legal rate.
pub(crate) const FRACTION_BITS: u32 = 24;

/// Time per sector (or per operation) in 2^-24 ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Rate {
    per_unit: u64,
}

impl Rate {
    /// `n` bytes per second, as time per sector.
    pub(crate) fn bytes_per_s(n: u64) -> Rate {
        Rate::over(SECTOR_SIZE * 1_000_000_000, n)
    }

    /// `n` operations per second, as time per operation.
    pub(crate) fn per_s(n: u64) -> Rate {
        Rate::over(1_000_000_000, n)
    }

    fn over(ns: u64, n: u64) -> Rate {
        assert!(n > 0, "validated: a rate is positive");
        let per_unit = (u128::from(ns) << FRACTION_BITS) / u128::from(n);
        Rate { per_unit: u64::try_from(per_unit).expect("validated: at least 1 KB/s") }
    }

    /// Time for `units` sectors or operations, in 2^-24 ns.
    pub(crate) fn fine(self, units: u64) -> u128 {
        u128::from(units) * u128::from(self.per_unit)
    }

    /// Time for `units` sectors or operations, rounded down.
    pub(crate) fn time(self, units: u64) -> Nanos {
        Nanos((self.fine(units) >> FRACTION_BITS) as u64)
    }

    /// Whole units in `time`: the inverse of [`Rate::time`], rounded down.
    pub(crate) fn units(self, time: Nanos) -> u64 {
        ((u128::from(time.0) << FRACTION_BITS) / u128::from(self.per_unit)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_mib_at_100_mb_per_s_takes_10_486_ms() {
        // 2048 sectors x 512 B / 100e6 B/s = 10.48576 ms
        let rate = Rate::bytes_per_s(100_000_000);
        assert_eq!(rate.time(2048), Nanos(10_485_760));
        assert_eq!(rate.units(Nanos(10_485_760)), 2048);
    }
}
