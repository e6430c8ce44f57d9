//! From `gfp_t` to what the allocator may do.
//!
//! Rule: the fast path respects the low watermark; the slow path the min one, less a part of the reserve for
//! `__GFP_HIGH` and for requests that cannot reclaim; a reclaimer and an OOM victim use the reserves.
//! Source: `gfp_zone()`, `gfp_to_alloc_flags()`, `__gfp_pfmemalloc_flags()`, `alloc_flags_nofragment()`
//! (mm/page_alloc.c, 4.20 and 6.12; 6bb154504f8b for the last).
//! Since/until: `AllocReserves::Harder` (4.4 to 6.3) knows `__GFP_ATOMIC`; here that is `__GFP_HIGH` without
//! `__GFP_DIRECT_RECLAIM`, which is what `GFP_ATOMIC` stands for. Before, whoever may not wait was served so, since 3.17
//! only if it also wakes kswapd. `NonBlocking` (6.4) looks at the flags themselves.
//! Omitted: cpusets, real-time tasks, interrupts.

use rules::{AllocReserves, ZoneFairness, ZoneSpreading};
use units::{Gfp, ZoneId};

use crate::{AllocRequest, Env, MigrateType, Mm, ZoneKind};

use super::{AllocFlags, Wmark};

impl AllocFlags {
    /// Respects a watermark and may do nothing else.
    pub const fn only(wmark: Wmark) -> AllocFlags {
        AllocFlags {
            wmark: Some(wmark),
            harder: false,
            high: false,
            oom: false,
            highatomic: false,
            nofragment: false,
            kswapd: false,
            fair: false,
        }
    }

    /// Whether the memory below the watermark may be used in part (`ALLOC_RESERVES`).
    #[inline]
    pub(crate) fn reserves(self) -> bool {
        self.harder || self.high || self.oom
    }
}

/// Highest kind of zone that a request may use (`gfp_zone()`).
#[inline]
pub fn gfp_zone(gfp: Gfp) -> ZoneKind {
    if gfp.contains(Gfp(Gfp::MOVABLE.0 | Gfp::HIGHMEM.0)) {
        ZoneKind::Movable
    } else if gfp.contains(Gfp::DMA) {
        ZoneKind::Dma
    } else if gfp.contains(Gfp::DMA32) {
        ZoneKind::Dma32
    } else {
        ZoneKind::Normal
    }
}

/// What the zone and mobility modifiers of a request come to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GfpClass {
    /// Highest kind of zone.
    pub(crate) highest: ZoneKind,
    /// Migratetype; Unmovable if grouping is off.
    pub(crate) migratetype: MigrateType,
}

/// All modifiers that decide about zone and mobility.
const CLASS_MASK: u32 = Gfp::DMA.0 | Gfp::DMA32.0 | Gfp::HIGHMEM.0 | Gfp::MOVABLE.0 | Gfp::RECLAIMABLE.0;
/// Values that they can take together.
const CLASSES: usize = CLASS_MASK as usize + 1;
const _: () = assert!(CLASSES == 32, "the modifiers are the lowest five bits, so that they index a table");

/// The class of every combination of modifiers.
#[derive(Clone, Debug)]
pub(crate) struct GfpClasses([GfpClass; CLASSES]);

impl GfpClasses {
    pub(crate) fn new(grouping_disabled: bool) -> GfpClasses {
        GfpClasses(std::array::from_fn(|bits| {
            let gfp = Gfp(bits as u32);
            let migratetype = if grouping_disabled { MigrateType::Unmovable } else { MigrateType::of(gfp) };
            GfpClass { highest: gfp_zone(gfp), migratetype }
        }))
    }

    #[inline]
    pub(crate) fn of(&self, gfp: Gfp) -> GfpClass {
        self.0[(gfp.0 & CLASS_MASK) as usize]
    }
}

impl Mm {
    /// Migratetype that a request is for; Unmovable for all if grouping is off (`gfp_migratetype()`).
    #[inline]
    pub fn gfp_migratetype(&self, gfp: Gfp) -> MigrateType {
        self.blocks.class_of(gfp).migratetype
    }

    /// Flags of the slow path (`gfp_to_alloc_flags()`), before [`Mm::reserve_alloc_flags`].
    pub fn gfp_to_alloc_flags(&self, _env: &Env, req: AllocRequest) -> AllocFlags {
        let gfp = req.gfp;
        let (high, blocking) = (gfp.contains(Gfp::HIGH), gfp.contains(Gfp::DIRECT_RECLAIM));
        let may_use = !gfp.contains(Gfp::NOMEMALLOC) && !blocking;
        let (harder, highatomic) = match self.rules.alloc_reserves {
            AllocReserves::HarderWithoutWaiting => (may_use, false),
            AllocReserves::HarderIfWaking => (may_use && gfp.contains(Gfp::KSWAPD_RECLAIM), false),
            AllocReserves::Harder => (may_use && high, may_use && high),
            AllocReserves::NonBlocking => (may_use, may_use && high && req.order.0 > 0),
        };
        let kswapd = gfp.contains(Gfp::KSWAPD_RECLAIM);
        AllocFlags { harder, high, highatomic, kswapd, ..AllocFlags::only(Wmark::Min) }
    }

    /// Flags of a task that may use the reserves: one that reclaims or was chosen by the OOM killer; `None` for others
    /// (`__gfp_pfmemalloc_flags()`). They take the place of [`Mm::gfp_to_alloc_flags`].
    pub fn reserve_alloc_flags(&self, env: &Env, gfp: Gfp) -> Option<AllocFlags> {
        if gfp.contains(Gfp::NOMEMALLOC) {
            return None;
        }
        let kswapd = self.rules.alloc_reserves == AllocReserves::NonBlocking && gfp.contains(Gfp::KSWAPD_RECLAIM);
        let base = AllocFlags { kswapd, ..AllocFlags::only(Wmark::Min) };
        if gfp.contains(Gfp::MEMALLOC) || env.task.memalloc {
            return Some(AllocFlags { wmark: None, ..base });
        }
        env.task.oom_victim.then_some(AllocFlags { oom: true, ..base })
    }

    /// What the fast path adds: whether kswapd may be woken, whether other local zones are tried before a pageblock is
    /// fragmented (`alloc_flags_nofragment()`), and whether the zones take turns. `preferred` is the first zone of the walk.
    #[inline]
    pub fn alloc_flags_nofragment(&self, preferred: ZoneId, gfp: Gfp) -> AllocFlags {
        let kswapd = gfp.contains(Gfp::KSWAPD_RECLAIM);
        let nofragment = self.rules.zone_spreading == ZoneSpreading::FastPath && self.spreads(preferred);
        let fair = self.rules.zone_fairness == ZoneFairness::Batches;
        AllocFlags { kswapd, nofragment, fair, ..AllocFlags::only(Wmark::Low) }
    }

    /// Whether a zone is Normal and has a DMA32 zone beside it; on one node that is taken for granted.
    #[inline]
    fn spreads(&self, preferred: ZoneId) -> bool {
        let zone = &self.zones[preferred.index()];
        if zone.kind != ZoneKind::Normal {
            return false;
        }
        if self.nodes.len() == 1 {
            return true;
        }
        let zones = &self.nodes[zone.node.index()].zones;
        zones.iter().any(|z| self.zones[z.index()].kind == ZoneKind::Dma32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_zone_follows_the_zone_modifiers() {
        assert_eq!(gfp_zone(Gfp::KERNEL), ZoneKind::Normal);
        assert_eq!(gfp_zone(Gfp::HIGHUSER_MOVABLE), ZoneKind::Movable);
        // Movable counts only together with highmem.
        assert_eq!(gfp_zone(Gfp::KERNEL.with(Gfp::MOVABLE)), ZoneKind::Normal);
        assert_eq!(gfp_zone(Gfp::KERNEL.with(Gfp::DMA32)), ZoneKind::Dma32);
        assert_eq!(gfp_zone(Gfp::KERNEL.with(Gfp::DMA)), ZoneKind::Dma);
    }
}
