//! Watermarks: how much memory stays free, and for whom.
//!
//! Rule: `min_free_kbytes` = sqrt(16 x lowmem in KiB), raised for THP to eleven pageblocks a zone but not above 5 % of
//! lowmem; each zone's min is its share. low, high and promo follow at distances of a quarter of min, or
//! `watermark_scale_factor` / 10000 of the zone if that is more. A zone also keeps 1/256 (Normal: 1/32) of the memory
//! in higher zones of its node from requests that could use those.
//! An order-0 request passes if more than mark + reserve is free; one of higher order also needs a free block, or enough
//! free pages in blocks of each order below (`WatermarkCheck`).
//! Source: `calculate_min_free_kbytes()`, `__setup_per_zone_wmarks()`, `setup_per_zone_lowmem_reserve()`,
//! `__zone_watermark_ok()`, `zone_watermark_fast()` (mm/page_alloc.c, 4.20 and 6.12);
//! `set_recommended_min_free_kbytes()` (mm/khugepaged.c).
//! Since/until: `MinFreeLimit`, `AllocReserves`, `HighAtomicReserve`, `QuickCheck` and `BoostGuards` tell 4.20 and 6.12 apart. The
//! `mm` of ZONE_MOVABLE is treated as since 6.6 (its min is capped, it is no lowmem).
//! Abstracted: no per-CPU drift of the free count. A value set in `min_free_kbytes` stands as it is; THP does not
//! raise it (the kernel writes the sysctl after THP has raised it at boot).
//! Omitted: CMA.

use rules::{
    AllocReserves, BoostGuards, HighAtomicReserve, MinFreeLimit, QuickCheck, ThpEnabled, WatermarkCheck,
    WatermarkDistance,
};
use units::{Order, PAGEBLOCK_PAGES, ZoneId};

use crate::{MigrateType, Mm, ZoneKind};

use super::boost::mult_frac;
use super::{AllocFlags, Watermarks, Wmark, Zone};

/// `sysctl_lowmem_reserve_ratio`: share of higher zones' memory kept in a zone of this kind; 0 keeps none.
const LOWMEM_RESERVE_RATIO: [u64; ZoneKind::COUNT] = [256, 256, 32, 0];

/// Pages beyond a zone's high watermark, of zones up to Normal (`nr_free_buffer_pages()`).
fn free_buffer_pages(zones: &[Zone]) -> u64 {
    let low = zones.iter().filter(|z| z.kind <= ZoneKind::Normal);
    low.map(|z| z.managed.saturating_sub(z.watermarks.high)).sum()
}

/// `min_free_kbytes` as computed at boot from the pages beyond the high watermarks, which are 0 by then.
fn computed_min_free_kib(lowmem_pages: u64, limit: MinFreeLimit) -> u64 {
    let most = match limit {
        MinFreeLimit::Mib64 => 65_536,
        MinFreeLimit::Mib256 => 262_144,
    };
    (lowmem_pages * 4 * 16).isqrt().clamp(128, most)
}

/// What THP raises it to (`set_recommended_min_free_kbytes()`): two free pageblocks a zone and one for each pair of
/// types, but no more than a twentieth of `buffer_pages`.
fn recommended_min_free_kib(nr_zones: u64, buffer_pages: u64) -> u64 {
    let types = MigrateType::PCP_COUNT as u64;
    let wanted = u64::from(PAGEBLOCK_PAGES) * nr_zones * (2 + types * types);
    wanted.min(buffer_pages / 20) * 4
}

/// Watermarks of a zone from `min_free_kbytes`, and from `watermark_scale_factor` where there is one.
fn watermarks(zone: &Zone, min_free_kib: u64, lowmem_pages: u64, scale_factor: Option<u64>) -> Watermarks {
    let share = (min_free_kib / 4 * zone.managed).checked_div(lowmem_pages).unwrap_or(0);
    let min = if zone.kind == ZoneKind::Movable { (zone.managed / 1024).clamp(32, 128) } else { share };
    let step = match scale_factor {
        None => share / 4,
        Some(factor) => (share / 4).max(mult_frac(zone.managed, factor, 10_000)),
    };
    Watermarks { min, low: min + step, high: min + 2 * step, promo: min + 3 * step }
}

impl Mm {
    /// Sets watermarks and the sizes of per-CPU lists from the tunables; resets every boost. To be called
    /// again when `min_free_kbytes`, `watermark_scale_factor` or `thp.enabled` changes.
    pub fn setup_watermarks(&mut self) {
        for zone in &mut self.zones {
            zone.watermarks = Watermarks::default();
        }
        let configured = self.tunables.min_free_kbytes;
        if configured > 0 {
            self.setup_zone_watermarks(configured);
        } else {
            let base = computed_min_free_kib(free_buffer_pages(&self.zones), self.rules.min_free_limit);
            self.setup_zone_watermarks(base);
            if self.tunables.thp_enabled != ThpEnabled::Never {
                let nr_zones = self.zones.iter().filter(|z| z.kind <= ZoneKind::Normal).count() as u64;
                let raised = recommended_min_free_kib(nr_zones, free_buffer_pages(&self.zones));
                if raised > base {
                    self.setup_zone_watermarks(raised);
                }
            }
        }
        for zone in (0..self.zones.len() as u8).map(ZoneId) {
            self.setup_migrate_reserve(zone);
        }
        self.setup_pcp_limits();
    }

    fn setup_zone_watermarks(&mut self, min_free_kib: u64) {
        self.min_free_kib = min_free_kib;
        let lowmem = self.zones.iter().filter(|z| z.kind <= ZoneKind::Normal).map(|z| z.managed).sum();
        let scaled = self.rules.watermark_distance == WatermarkDistance::ScaleFactor;
        let scale_factor = scaled.then_some(self.tunables.watermark_scale_factor);
        for zone in &mut self.zones {
            zone.watermarks = watermarks(zone, min_free_kib, lowmem, scale_factor);
            zone.boost = 0;
            zone.boosted_flag = false;
            zone.reset_batch();
        }
    }

    /// `setup_per_zone_lowmem_reserve()`, which runs once, at boot: a later write to `min_free_kbytes` leaves the reserves as they are.
    pub(crate) fn setup_lowmem_reserve(&mut self) {
        for node in &self.nodes {
            for &id in &node.zones {
                let kind = self.zones[id.index()].kind;
                let ratio = LOWMEM_RESERVE_RATIO[kind as usize];
                let above: [u64; ZoneKind::COUNT] = std::array::from_fn(|upper| {
                    let between = |z: &&Zone| z.kind > kind && z.kind as usize <= upper;
                    let pages: u64 =
                        node.zones.iter().map(|z| &self.zones[z.index()]).filter(between).map(|z| z.managed).sum();
                    pages.checked_div(ratio).unwrap_or(0)
                });
                let zone = &mut self.zones[id.index()];
                zone.lowmem_reserve = if zone.managed == 0 { [0; ZoneKind::COUNT] } else { above };
            }
        }
    }

    /// A watermark of a zone with its boost, in pages.
    #[inline]
    pub fn wmark(&self, zone: ZoneId, mark: Wmark) -> u64 {
        self.zones[zone.index()].wmark(mark)
    }

    /// Whether a request passes a watermark (`zone_watermark_ok()`).
    #[inline]
    pub fn zone_watermark_ok(
        &self,
        zone: ZoneId,
        order: Order,
        mark: u64,
        highest: ZoneKind,
        flags: AllocFlags,
    ) -> bool {
        let free = self.zones[zone.index()].free_pages;
        self.watermark_ok_with(zone, order, mark, highest, flags, free)
    }

    /// The same if `free` pages were free (`__zone_watermark_ok()`).
    pub fn watermark_ok_with(
        &self,
        zone: ZoneId,
        order: Order,
        mark: u64,
        highest: ZoneKind,
        flags: AllocFlags,
        free: u64,
    ) -> bool {
        let zone = &self.zones[zone.index()];
        let unusable = i64::from(order.pages()) - 1 + self.held_back(zone, flags) as i64;
        let min = reserve_of(mark, flags, self.rules.alloc_reserves);
        if free as i64 - unusable <= (min + zone.lowmem_reserve[highest as usize]) as i64 {
            return false;
        }
        order.0 == 0
            || match self.rules.watermark_check {
                WatermarkCheck::FreeBlock => zone.has_block(order, flags.highatomic || flags.oom),
                WatermarkCheck::EveryOrder => zone.leaves_enough(order, min, free as i64 - unusable),
            }
    }

    /// The check of the allocation path: a quick one for order 0 first, and one without boost for `__GFP_HIGH` at the
    /// min watermark (`zone_watermark_fast()`).
    #[inline]
    pub(crate) fn zone_watermark_fast(
        &self,
        zone: ZoneId,
        order: Order,
        mark: Wmark,
        highest: ZoneKind,
        flags: AllocFlags,
    ) -> bool {
        let state = &self.zones[zone.index()];
        let level = state.wmark(mark);
        if order.0 == 0 {
            let usable = state.free_pages.saturating_sub(self.quick_held_back(state, flags));
            if usable > level + state.lowmem_reserve[highest as usize] {
                return true;
            }
        }
        self.watermark_slow(zone, order, mark, highest, flags)
    }

    #[cold]
    fn watermark_slow(&self, zone: ZoneId, order: Order, mark: Wmark, highest: ZoneKind, flags: AllocFlags) -> bool {
        let state = &self.zones[zone.index()];
        if self.zone_watermark_ok(zone, order, state.wmark(mark), highest, flags) {
            return true;
        }
        let exempt = self.rules.boost_guards == BoostGuards::SmallZonesAndAtomic
            && order.0 == 0
            && flags.high
            && state.boost > 0
            && mark == Wmark::Min;
        exempt && self.zone_watermark_ok(zone, order, state.watermarks.min, highest, flags)
    }

    /// Free pages that the request may not use: those kept for high-order atomic allocations.
    #[inline]
    fn held_back(&self, zone: &Zone, flags: AllocFlags) -> u64 {
        if zone.highatomic_reserved == 0 {
            return 0;
        }
        let exempt = match self.rules.alloc_reserves {
            AllocReserves::NonBlocking => flags.reserves(),
            _ => flags.harder || flags.oom,
        };
        if exempt {
            return 0;
        }
        match self.rules.highatomic_reserve {
            HighAtomicReserve::MigrateReserve => 0,
            HighAtomicReserve::OnePercentAndBlock => zone.highatomic_reserved,
            HighAtomicReserve::OnePercent => zone.free_highatomic(),
        }
    }

    /// What the quick check of order 0 holds back.
    #[inline]
    fn quick_held_back(&self, zone: &Zone, flags: AllocFlags) -> u64 {
        match self.rules.quick_check {
            QuickCheck::AllFree => 0,
            QuickCheck::HoldsBack => self.held_back(zone, flags),
        }
    }

    /// Whether order 0 passes the high watermark for any request.
    pub(crate) fn high_watermark_met(&self, zone: ZoneId) -> bool {
        let high = self.wmark(zone, Wmark::High);
        self.zone_watermark_ok(zone, Order(0), high, ZoneKind::Movable, AllocFlags::only(Wmark::High))
    }
}

/// What must stay free of `mark`, given the request's access to the reserve.
#[inline]
fn reserve_of(mark: u64, flags: AllocFlags, rule: AllocReserves) -> u64 {
    let mut min = mark;
    if flags.high {
        min -= min / 2;
    }
    match rule {
        AllocReserves::NonBlocking => {
            if flags.high && flags.harder {
                min -= min / 4;
            }
            if flags.oom {
                min -= min / 2;
            }
        }
        _ if flags.oom => min -= min / 2,
        _ if flags.harder => min -= min / 4,
        _ => {}
    }
    min
}

impl Zone {
    /// A watermark with the boost, in pages.
    #[inline]
    pub fn wmark(&self, mark: Wmark) -> u64 {
        let marks = &self.watermarks;
        let base = match mark {
            Wmark::Min => marks.min,
            Wmark::Low => marks.low,
            Wmark::High => marks.high,
            Wmark::Promo => marks.promo,
        };
        base + self.boost
    }

    /// Whether a free block of at least `order` is on a list that an ordinary request can use.
    pub(crate) fn has_block(&self, order: Order, highatomic: bool) -> bool {
        let usable = if highatomic { MigrateType::PCP_COUNT + 1 } else { MigrateType::PCP_COUNT };
        debug_assert!(MigrateType::HighAtomic as usize == MigrateType::PCP_COUNT);
        self.free_area[order.index()..].iter().any(|area| area.lists[..usable].iter().any(|list| !list.is_empty()))
    }

    /// Whether of `free` pages enough are in blocks of each order up to that of the request: what is in smaller blocks
    /// does not count, and half as much need be left from one order to the next (`__zone_watermark_ok()`, until 4.3).
    fn leaves_enough(&self, order: Order, min: u64, free: i64) -> bool {
        let (mut min, mut free) = (min as i64, free);
        for (at, area) in self.free_area[..order.index()].iter().enumerate() {
            let blocks: u64 = area.lists.iter().map(|list| u64::from(list.len())).sum();
            free -= (blocks << at) as i64;
            min >>= 1;
            if free <= min {
                return false;
            }
        }
        true
    }

    /// Free pages on the HighAtomic lists.
    pub(crate) fn free_highatomic(&self) -> u64 {
        let len = |area: &super::FreeArea| u64::from(area.lists[MigrateType::HighAtomic as usize].len());
        self.free_area.iter().enumerate().map(|(order, area)| len(area) << order).sum()
    }
}
