//! How far the dirty pages are from where they should be, as a factor on a writer's rate.
//!
//! Rule: the factor is a cubic in the distance from the set point, which lies midway between freerun and the limit: 2
//! at freerun, 1 at the set point, 0 at the limit. A second, linear factor does the same for the device's own dirty
//! pages; it never goes below a quarter. A device with hardly any dirty pages gets up to 8 times as much.
//! Source: `pos_ratio_polynom()`, `wb_position_ratio()`, mm/page-writeback.c (4.20; 6.12 the same here).
//! Omitted: strict limits (`BDI_CAP_STRICTLIMIT`).

use super::limits::DirtyLimits;

/// The factor is in units of 1/1024 (`RATELIMIT_CALC_SHIFT`).
pub(super) const RATIO_SHIFT: u32 = 10;

/// What throttling looks at, in pages (`struct dirty_throttle_control`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct DirtyControl {
    /// Limits now.
    pub(super) limits: DirtyLimits,
    /// Dirty and under writeback, of the machine.
    pub(super) dirty: u64,
    /// Limit that follows `limits.dirty` down slowly (`dirty_limit`).
    pub(super) slow_limit: u64,
    /// The same of the device.
    pub(super) wb_dirty: u64,
    /// The device's share of the limit.
    pub(super) wb_thresh: u64,
}

impl DirtyControl {
    /// The limit that dirty pages must not pass (`hard_dirty_limit()`).
    pub(super) fn hard_limit(&self) -> u64 {
        self.limits.dirty.max(self.slow_limit)
    }

    /// The device has more than its share, and there is more than the limit.
    pub(super) fn exceeded(&self) -> bool {
        self.wb_dirty > self.wb_thresh && self.dirty > self.limits.dirty
    }

    /// Where dirty pages should be.
    pub(super) fn setpoint(&self) -> u64 {
        (self.limits.freerun() + self.hard_limit()) / 2
    }

    /// The factor on the rate, for a device that writes `write_bw` pages a second.
    pub(super) fn position_ratio(&self, write_bw: u64) -> u64 {
        let limit = self.hard_limit();
        if self.dirty >= limit {
            return 0;
        }
        let global = polynom(self.setpoint(), self.dirty, limit);
        self.device_ratio(global, limit, write_bw)
    }

    fn device_ratio(&self, mut ratio: u64, limit: u64, write_bw: u64) -> u64 {
        let thresh = self.limits.dirty;
        let wb_thresh = self.wb_thresh.min(thresh).max((limit - self.dirty) / 8);
        let scale = (wb_thresh << 16) / (thresh | 1);
        let setpoint = (self.setpoint() * scale) >> 16;
        // An idle device's floor may exceed the limit itself; the kernel's unsigned arithmetic wraps and so does this.
        let span = (thresh.wrapping_sub(wb_thresh).wrapping_add(8 * write_bw).wrapping_mul(scale)) >> 16;
        let intercept = setpoint + span;
        if self.wb_dirty < intercept - span / 4 {
            ratio = ratio * (intercept - self.wb_dirty) / ((intercept - setpoint) | 1);
        } else {
            ratio /= 4;
        }
        let reserve = wb_thresh / 2;
        if self.wb_dirty < reserve {
            if self.wb_dirty > reserve / 8 {
                ratio = ratio * reserve / self.wb_dirty;
            } else {
                ratio *= 8;
            }
        }
        ratio
    }
}

/// The cubic, from 0 to 2048.
fn polynom(setpoint: u64, dirty: u64, limit: u64) -> u64 {
    let distance = (setpoint as i64 - dirty as i64) << RATIO_SHIFT;
    let x = distance / ((limit - setpoint) as i64 | 1);
    let cube = ((x * x) >> RATIO_SHIFT).saturating_mul(x) >> RATIO_SHIFT;
    (cube + (1 << RATIO_SHIFT)).clamp(0, 2 << RATIO_SHIFT) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cubic_is_2_at_freerun_1_at_the_setpoint_0_at_the_limit() {
        // limit - setpoint = setpoint - freerun = 25001, odd so that `| 1` changes nothing.
        assert_eq!(polynom(150_001, 125_000, 175_002), 2048);
        assert_eq!(polynom(150_001, 150_001, 175_002), 1024);
        assert_eq!(polynom(150_001, 175_002, 175_002), 0);
        // Half way: 1 + (1/2)^3 = 1.125; and 1 - 1/8 on the other side, rounded towards minus infinity.
        assert_eq!(polynom(150_000, 137_500, 175_000), 1024 + 127);
        assert_eq!(polynom(150_000, 162_500, 175_000), 1024 - 128);
    }

    #[test]
    fn one_busy_device_at_its_setpoint_gets_the_global_factor() {
        // thresh 2000, background 1000: freerun 1500, set point 1750. The device has the whole limit.
        let limits = DirtyLimits { dirty: 2000, background: 1000 };
        let at = |dirty, wb_dirty| {
            DirtyControl { limits, dirty, slow_limit: 2000, wb_dirty, wb_thresh: 2000 }.position_ratio(25_600)
        };
        // scale = (2000 << 16) / 2001 = 65503, wb set point = 1750 * 65503 >> 16 = 1749,
        // span = 8 * 25600 * 65503 >> 16 = 204696: ratio = 1024 * (1749 + 204696 - 1750) / (204696 | 1) = 1023.
        assert_eq!(at(1750, 1750), 1023);
        assert_eq!(at(2000, 2000), 0);
        // x = -249 * 1024 / 251 = -1015; x * x / 1024 = 1006; times x / 1024 = -998 (rounded down): 1024 - 998 = 26;
        // 26 * (206445 - 1999) / 204697 = 25.
        assert_eq!(at(1999, 1999), 25);
    }

    #[test]
    fn a_device_with_few_dirty_pages_is_fed() {
        let limits = DirtyLimits { dirty: 2000, background: 1000 };
        let at = |wb_dirty| {
            DirtyControl { limits, dirty: 1750, slow_limit: 2000, wb_dirty, wb_thresh: 1000 }.position_ratio(1000)
        };
        // Its reserve is wb_thresh / 2 = 500: at an eighth of it (62) or less 8 times, above 500/dirty times as much.
        let line = |wb_dirty: u64| {
            let scale = (1000 << 16) / 2001;
            let setpoint = (1750 * scale) >> 16;
            let span = ((1000 + 8000) * scale) >> 16;
            1024 * (setpoint + span - wb_dirty) / (span | 1)
        };
        assert_eq!(at(62), line(62) * 8);
        assert_eq!(at(63), line(63) * 500 / 63);
        assert_eq!(at(500), line(500));
    }

    #[test]
    fn the_device_factor_stays_above_a_quarter() {
        let limits = DirtyLimits { dirty: 2000, background: 1000 };
        let control = DirtyControl { limits, dirty: 1750, slow_limit: 2000, wb_dirty: 1750, wb_thresh: 10 };
        assert_eq!(control.position_ratio(10), 1024 / 4);
    }
}
