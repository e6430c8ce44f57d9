//! Watermark boost: reclaim a little when a pageblock was fragmented.
//!
//! Rule: each fallback that takes less than a pageblock raises the zone's boost by one pageblock, up to
//! `watermark_boost_factor` / 10000 of the high watermark but at least one pageblock. The boost is added to every
//! watermark. The allocation wakes kswapd once it has dropped the zone lock, in earlier kernels also if nothing was raised
//! ([`FragmentationWake`]); kswapd takes off what it has worked off.
//! Source: `boost_watermark()`, `rmqueue()` (mm/page_alloc.c, since 1c30844d2dfe, 5.0; 6.12).
//! Since/until: `BoostGuards::SmallZonesAndAtomic` leaves out zones of less than four pageblocks (5.7).
//! Omitted: kdump kernels.

use rules::{BoostGuards, FragmentationWake, WatermarkBoost};
use units::{PAGEBLOCK_PAGES, ZoneId};

use crate::Mm;

/// The boost after one more fragmentation event, in pages; `None` if it is not raised.
fn boosted(boost: u64, high: u64, managed: u64, factor: u64, guards: BoostGuards) -> Option<u64> {
    let block = u64::from(PAGEBLOCK_PAGES);
    let too_small = guards == BoostGuards::SmallZonesAndAtomic && managed < 4 * block;
    let share = mult_frac(high, factor, 10_000);
    // A share of 0 means that the boost is turned off, or that there are no watermarks yet.
    if too_small || share == 0 {
        return None;
    }
    Some((boost + block).min(share.max(block)))
}

/// `x * numerator / denominator` as the kernel's `mult_frac()` computes it, without overflow.
pub(crate) fn mult_frac(x: u64, numerator: u64, denominator: u64) -> u64 {
    let (quotient, remainder) = (x / denominator, x % denominator);
    quotient * numerator + remainder * numerator / denominator
}

impl Mm {
    /// Raises the boost of a zone after a fragmentation event; `kswapd` says whether the request may wake kswapd.
    pub(crate) fn boost_watermark(&mut self, zone: ZoneId, kswapd: bool) {
        if self.rules.watermark_boost == WatermarkBoost::Off {
            return;
        }
        let (factor, guards) = (self.tunables.watermark_boost_factor, self.rules.boost_guards);
        let zone = &mut self.zones[zone.index()];
        let raised = boosted(zone.boost, zone.watermarks.high, zone.managed, factor, guards);
        zone.boost = raised.unwrap_or(zone.boost);
        let wakes = raised.is_some() || self.rules.fragmentation_wake == FragmentationWake::Always;
        zone.boosted_flag |= kswapd && wakes;
    }
}

#[cfg(test)]
mod tests {
    use rules::Rules;

    use super::*;
    use crate::zone::testing::one_zone;

    const NONE: BoostGuards = BoostGuards::None;
    const GUARDED: BoostGuards = BoostGuards::SmallZonesAndAtomic;

    #[test]
    fn the_boost_grows_by_a_pageblock_up_to_the_share_of_the_high_watermark() {
        // high 1000, factor 15000: at most 1500 pages, so 512, 1024, 1500, 1500.
        let steps: Vec<u64> =
            std::iter::successors(Some(0), |&b| boosted(b, 1000, 1 << 20, 15_000, NONE)).take(5).collect();
        assert_eq!(steps, [0, 512, 1024, 1500, 1500]);
    }

    #[test]
    fn a_share_below_a_pageblock_still_allows_one() {
        // 100 x 1.5 = 150 < 512.
        assert_eq!(boosted(0, 100, 1 << 20, 15_000, NONE), Some(512));
        assert_eq!(boosted(512, 100, 1 << 20, 15_000, NONE), Some(512));
    }

    #[test]
    fn factor_zero_or_missing_watermarks_turn_it_off() {
        assert_eq!(boosted(0, 1000, 1 << 20, 0, NONE), None);
        assert_eq!(boosted(0, 0, 1 << 20, 15_000, NONE), None);
    }

    #[test]
    fn a_zone_needs_four_pageblocks_where_small_ones_are_left_out() {
        assert_eq!(boosted(0, 1000, 2047, 15_000, GUARDED), None);
        assert_eq!(boosted(0, 1000, 2048, 15_000, GUARDED), Some(512));
        assert_eq!(boosted(0, 1000, 2047, 15_000, NONE), Some(512));
    }

    #[test]
    fn mult_frac_multiplies_quotient_and_remainder_apart() {
        // 12345 / 10000 = 1 rest 2345; 1 x 15000 + 2345 x 15000 / 10000 = 18517.
        assert_eq!(mult_frac(12_345, 15_000, 10_000), 18_517);
    }

    #[test]
    fn with_a_factor_of_0_kswapd_is_woken_until_the_boost_must_be_raised() {
        for (wake, woken) in [(FragmentationWake::Always, true), (FragmentationWake::IfBoosted, false)] {
            let mut mm = one_zone(8, Rules { fragmentation_wake: wake, ..Rules::newest() });
            mm.set_tunable("vm.watermark_boost_factor", "0").expect("a tunable");
            mm.boost_watermark(ZoneId(0), true);
            assert_eq!((mm.zones[0].boost, mm.zones[0].boosted_flag), (0, woken));
            mm.zones[0].boosted_flag = false;
            mm.boost_watermark(ZoneId(0), false);
            assert!(!mm.zones[0].boosted_flag, "the request may wake nobody");
        }
    }
}
