//! How many pages the per-CPU lists hold, and how many go at once.
//!
//! Rule: a batch follows from the zone's size. Until 5.12 it is fixed, and six of them are the most a CPU holds. Since then
//! that follows from the low watermark, batches that go back double while nothing is allocated, and while kswapd works four batches are
//! the most. Since 6.7 both follow the allocations, between limits.
//! Source: `zone_batchsize()` (mm/page_alloc.c, 4.20); `nr_pcp_free()`, `nr_pcp_high()`, `zone_highsize()`, `__rmqueue_pcplist()` (6.1);
//! `nr_pcp_alloc()`, `decay_pcp_high()` (6.12).
//! Since/until: [`PcpLists`], [`PcpBatch`]. The limit on doubling (`CONFIG_PCP_BATCH_SCALE_MAX`) is of 6.7 and stable releases of 6.1; here of all
//! since 5.13.
//! Abstracted: a CPU's share of the last cache is taken to be larger than three batches, so that a batch may stay when pages of high orders
//! come back in a row (`PCPF_FREE_HIGH_BATCH`).

use rules::{PcpBatch, PcpLists};
use units::{CpuId, Order, ZoneId};

use super::PcpLimits;
use super::pcp::Pcp;
use crate::Mm;

/// log2 of how often a batch may double (`CONFIG_PCP_BATCH_SCALE_MAX`).
const BATCH_SCALE_MAX: u8 = 5;
/// Share of the zone that all CPUs together may hold at most (`MIN_PERCPU_PAGELIST_HIGH_FRACTION`).
const HIGH_FRACTION: u64 = 8;

/// Pages moved at once, from the size of the zone (`zone_batchsize()`): a thousandth of it but no more than 1 MiB (or half of
/// that), of that a quarter, of one and a half times that the power of two below, less one.
fn batch_size(managed: u64, rule: PcpBatch) -> u32 {
    let most = match rule {
        PcpBatch::HalfMib => 128,
        PcpBatch::Mib => 256,
    };
    let quarter = ((managed / 1024).min(most) / 4).max(1) as u32;
    let scaled = quarter + quarter / 2;
    (1 << scaled.ilog2()) - 1
}

impl Mm {
    /// Sets batch and high of every zone's lists, from its size, and since 5.13 its watermarks.
    pub(crate) fn setup_pcp_limits(&mut self) {
        for zone in (0..self.zones.len() as u8).map(ZoneId) {
            self.set_pcp_batch(zone, batch_size(self.zones[zone.index()].managed, self.rules.pcp_batch));
        }
    }

    /// Sets the batch of a zone's lists, and high from that, the zone's size and since 5.13 its watermarks.
    pub(super) fn set_pcp_batch(&mut self, zone: ZoneId, batch: u32) {
        let sharers = self.pcp_sharers(zone);
        let zone = &mut self.zones[zone.index()];
        let least = batch.max(1);
        let share = |pages: u64| ((pages / sharers) as u32).max(least * 4);
        zone.pcp_limits = match self.rules.pcp_lists {
            PcpLists::OrderZero => PcpLimits { batch: least, high_min: 6 * batch, high_max: 6 * batch },
            PcpLists::HighOrder => {
                let high = share(zone.watermarks.low);
                PcpLimits { batch: least, high_min: high, high_max: high }
            }
            PcpLists::AutoTuned => PcpLimits {
                batch: least,
                high_min: share(zone.watermarks.low),
                high_max: share(zone.managed / HIGH_FRACTION),
            },
        };
        self.pcps.set_limits(zone.id, zone.pcp_limits);
    }

    /// CPUs that share what a zone's lists may hold: those of its node, and all if that has none.
    fn pcp_sharers(&self, zone: ZoneId) -> u64 {
        match self.pcps.cpus_of_nodes(self.nodes.len())[self.zones[zone.index()].node.index()] {
            0 => (self.pcps.nr_cpus() as u64).max(1),
            cpus => cpus,
        }
    }

    /// Blocks to refill with (`nr_pcp_alloc()`).
    pub(super) fn refill_size(&mut self, cpu: CpuId, zone: ZoneId, order: Order) -> u32 {
        let rule = self.rules.pcp_lists;
        let below_high = self.zones[zone.index()].below_high;
        let pcp = self.pcps.of(cpu, zone);
        let limits = pcp.limits;
        match rule {
            PcpLists::OrderZero => return limits.batch,
            PcpLists::HighOrder => return limits.blocks(limits.batch, order),
            PcpLists::AutoTuned => {}
        }
        pcp.high = limits.clamp(pcp.high);
        if pcp.high < limits.batch {
            return 1;
        }
        let mut batch = if order.0 > 0 { limits.batch } else { limits.batch << pcp.alloc_factor };
        if limits.high_min != limits.high_max && !below_high {
            pcp.high = (pcp.high + batch).min(limits.high_max);
        }
        if order.0 == 0 {
            let most = pcp.high.saturating_sub(pcp.count + limits.batch).max(limits.batch);
            if batch <= most && pcp.alloc_factor < BATCH_SCALE_MAX {
                pcp.alloc_factor += 1;
            }
            batch = batch.min(most);
        }
        limits.blocks(batch, order)
    }
}

impl PcpLimits {
    /// The kernel's `clamp()`: of a small zone with high watermarks the least may be above the most, which then wins.
    fn clamp(self, high: u32) -> u32 {
        if high >= self.high_max { self.high_max } else { high.max(self.high_min) }
    }

    /// Blocks of an order that a batch of pages comes to.
    fn blocks(self, batch: u32, order: Order) -> u32 {
        if batch > 1 { (batch >> order.0).max(2) } else { batch }
    }

    /// Pages that go back of a wish, so that a batch stays below `high`.
    fn batch_back(self, wish: u32, high: u32) -> u32 {
        if high < self.batch {
            return 1;
        }
        // clamp_t() with a lower bound above the upper one yields the upper one.
        wish.max(self.batch).min(high - self.batch).max(1)
    }
}

impl Pcp {
    /// Lets high go down by an eighth, but not so far that many pages would go back at once; says how many must
    /// (`decay_pcp_high()`).
    pub(crate) fn decay_high(&mut self) -> u32 {
        let PcpLimits { batch, high_min, .. } = self.limits;
        if self.high > high_min {
            let by_count = self.count.saturating_sub(batch << BATCH_SCALE_MAX);
            self.high = by_count.max(self.high - (self.high >> 3)).max(high_min);
        }
        self.count.saturating_sub(self.high)
    }

    /// Notes a free; whether pages of high orders come back so fast that all should go on (`free_unref_page_commit()`).
    pub(super) fn note_free(&mut self, order: Order) -> bool {
        self.alloc_factor >>= 1;
        let costly_free = order.0 > 0 && order <= Order::COSTLY;
        let previous = std::mem::replace(&mut self.previous_free_high_order, costly_free);
        let free_high =
            costly_free && previous && self.free_count >= self.limits.batch && self.count >= self.limits.batch;
        if self.free_count < self.limits.batch << BATCH_SCALE_MAX {
            self.free_count += order.pages();
        }
        free_high
    }

    /// Pages to give back under [`PcpLists::AutoTuned`] (`nr_pcp_free()`); 0 if there are not too many.
    pub(super) fn tuned_surplus(&mut self, free_high: bool, reclaim_active: bool, below_high: bool) -> u32 {
        let high = self.tuned_high(free_high, reclaim_active, below_high);
        let limits = self.limits;
        if self.count < high {
            0
        } else if free_high {
            self.count.min(limits.batch << BATCH_SCALE_MAX)
        } else {
            limits.batch_back(self.free_count, high)
        }
    }

    /// The same under [`PcpLists::HighOrder`]: a batch that doubles with each that goes back.
    pub(super) fn doubling_surplus(&mut self, free_high: bool, reclaim_active: bool) -> u32 {
        let limits = self.limits;
        let high = if reclaim_active { limits.high_max.min(limits.batch << 2) } else { limits.high_max };
        if free_high {
            return self.count;
        }
        if self.count < high {
            return 0;
        }
        let batch = limits.batch << self.free_factor;
        if batch < high.saturating_sub(limits.batch) && self.free_factor < BATCH_SCALE_MAX {
            self.free_factor += 1;
        }
        limits.batch_back(batch, high)
    }

    /// Pages at which some go back now (`nr_pcp_high()`).
    fn tuned_high(&mut self, free_high: bool, reclaim_active: bool, below_high: bool) -> u32 {
        let limits = self.limits;
        let (least, most) = (limits.high_min, limits.high_max);
        self.high = limits.clamp(self.high);
        let high = self.high;
        if free_high {
            self.high = high.saturating_sub(limits.batch << BATCH_SCALE_MAX).max(least);
            return 0;
        }
        let run = self.free_count.max(limits.batch);
        if reclaim_active {
            self.high = high.saturating_sub(run).max(least);
            return (limits.batch << 2).min(self.high);
        }
        if least == most {
            return high;
        }
        if below_high {
            self.high = high.saturating_sub(run).max(least);
            return self.count.max(least);
        }
        if self.count >= high {
            let needed = self.free_count + limits.batch;
            if self.high < needed {
                self.high = limits.clamp(needed);
            }
        }
        high
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_of_half_a_gibibyte_has_the_largest_batch_of_before_and_one_of_a_gibibyte_that_of_now() {
        let sizes =
            |rule| [(512 << 8) - 4096, 512 << 8, (1024 << 8) - 4096, 1024 << 8].map(|pages| batch_size(pages, rule));
        // 124, 128, 252 and 256 pages of which a quarter, and half of that more: 46, 48, 94 and 96.
        assert_eq!(sizes(PcpBatch::Mib), [31, 31, 63, 63]);
        assert_eq!(sizes(PcpBatch::HalfMib), [31, 31, 31, 31]);
    }

    #[test]
    fn a_batch_stays_when_pages_of_high_orders_come_back_in_a_row() {
        let limits = PcpLimits { batch: 31, high_min: 124, high_max: 1000 };
        let goes_on = |count| {
            let mut pcp = Pcp { limits, count, free_count: 31, previous_free_high_order: true, ..Pcp::default() };
            pcp.note_free(Order(2))
        };
        assert_eq!([30, 31].map(goes_on), [false, true]);
    }
}
