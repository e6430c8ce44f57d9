//! The dirty limit of a machine that has just booted.
//!
//! Rule: the limit that follows slowly when memory to be dirtied becomes less ([`super::bandwidth`]) starts as that of the memory that is there when the page
//! cache is set up. Where struct pages are initialised late, this is all of a node's memory but what its last zone has beyond the first
//! section or two. Nothing is reserved then. Whoever sets the limits sets it anew. Until 3.1 it is 0 until a writer is held back for the first time, so that flushers write 4 MiB of a file
//! at a time till then. The period by whose pages shares of what is written fade there is of the limit at boot, or when it was set.
//! Source: `page_writeback_init()`, `writeback_set_ratelimit()`, `dirty_ratio_handler()`, mm/page-writeback.c, `defer_init()`, mm/mm_init.c (6.12).
//! Since/until: [`BootPages`]; [`DirtyThrottle::WriterWrites`]: `page_writeback_init()`, `calc_period_shift()` (3.1).
//! Abstracted: what the kernel holds of the memory lies in the part that is initialised early.

use rules::{BootPages, DirtyThrottle, Tunables};

use super::DirtyLimits;
use super::proportion::page_period;
use crate::Mm;
use crate::zone::Zone;

/// Pages of a section (`PAGES_PER_SECTION`): 128 MiB.
const SECTION: u64 = 1 << 15;

/// Pages of the last zone of a node that the allocator has before the others are initialised.
fn early_pages(zone: &Zone) -> u64 {
    let start = u64::from(zone.start.0);
    let deferred_from = (start + SECTION).next_multiple_of(SECTION);
    zone.managed.saturating_sub((start + zone.spanned).saturating_sub(deferred_from))
}

impl Mm {
    /// Sets what depends on the dirty limits at boot.
    pub fn setup_writeback(&mut self) {
        let limits = if self.has_default_limits() {
            DirtyLimits::new(self.pages_at_boot(), &self.tunables)
        } else {
            self.global_dirty_limits()
        };
        self.begin_from_limit(limits.dirty);
        let nr_cpus = self.pcps.nr_cpus().max(1) as u64;
        self.writeback.stat_error = nr_cpus * 8 * (1 + u64::from(nr_cpus.ilog2()));
    }

    /// The limits were set.
    pub(crate) fn dirty_limits_set(&mut self) {
        self.begin_from_limit(self.global_dirty_limits().dirty);
    }

    fn begin_from_limit(&mut self, limit: u64) {
        self.writeback.completion_period = page_period(limit);
        if self.rules.dirty_throttle == DirtyThrottle::Rate {
            let nr_cpus = self.pcps.nr_cpus().max(1) as u64;
            self.writeback.dirty_limit = limit;
            self.writeback.ratelimit_pages = (limit / (nr_cpus * 32)).max(16);
        }
    }

    fn has_default_limits(&self) -> bool {
        let limits = |tunables: &Tunables| (tunables.dirty_bytes, tunables.dirty_ratio);
        limits(&self.tunables) == limits(&Tunables::default())
    }

    /// Pages that the allocator has when the page cache is set up.
    fn pages_at_boot(&self) -> u64 {
        let node_ends_with = |zone: &Zone| {
            !self.zones.iter().any(|other| other.node == zone.node && other.start > zone.start && other.managed > 0)
        };
        let pages = |zone: &Zone| match self.rules.boot_pages {
            BootPages::FirstSection if node_ends_with(zone) => early_pages(zone),
            BootPages::FirstSection | BootPages::All => zone.managed,
        };
        self.zones.iter().map(pages).sum()
    }
}

#[cfg(test)]
mod tests {
    use rules::Rules;
    use units::NodeId;

    use super::*;
    use crate::zone::testing::span;
    use crate::{Costs, MemoryLayout, NodeSpec, ZoneKind};

    #[test]
    fn the_first_limit_is_that_of_the_first_section_if_others_are_initialised_late() {
        // 384 MiB: the last zone begins at 16 MiB, and the second section behind that ends at 256 MiB.
        for (boot_pages, pages) in [(BootPages::All, 98_304), (BootPages::FirstSection, 65_536)] {
            let zones = vec![span(ZoneKind::Dma, 0, 8), span(ZoneKind::Dma32, 8, 184)];
            let node = NodeSpec { zones, distance: vec![10] };
            let layout = MemoryLayout { nodes: vec![node], cpu_nodes: vec![NodeId(0)] };
            let rules = Rules { boot_pages, ..Rules::newest() };
            let mm = Mm::new(&layout, rules, Tunables::default(), Costs::default());
            assert_eq!(mm.pages_at_boot(), pages);
            assert_eq!(mm.writeback.dirty_limit, 819 * pages / 4096);
        }
    }

    #[test]
    fn until_3_1_there_is_none_before_a_writer_was_held_back() {
        let node = NodeSpec { zones: vec![span(ZoneKind::Dma32, 0, 64)], distance: vec![10] };
        let layout = MemoryLayout { nodes: vec![node], cpu_nodes: vec![NodeId(0)] };
        let rules =
            Rules { dirty_throttle: DirtyThrottle::WriterWrites, boot_pages: BootPages::All, ..Rules::newest() };
        let mm = Mm::new(&layout, rules, Tunables::default(), Costs::default());
        // 819 / 4096 of 32,768 pages are 6552; 2 + ilog2(6551) is 14, and half a period counts: 1 << 13.
        assert_eq!((mm.writeback.dirty_limit, mm.writeback.completion_period), (0, 8192));
    }

    #[test]
    fn who_sets_the_ratio_sets_the_limit_since_3_2_and_the_period_before() {
        for dirty_throttle in [DirtyThrottle::Rate, DirtyThrottle::WriterWrites] {
            let node = NodeSpec { zones: vec![span(ZoneKind::Dma32, 0, 64)], distance: vec![10] };
            let layout = MemoryLayout { nodes: vec![node], cpu_nodes: vec![NodeId(0)] };
            let rules = Rules { dirty_throttle, boot_pages: BootPages::All, ..Rules::newest() };
            let mut mm = Mm::new(&layout, rules, Tunables::default(), Costs::default());
            mm.set_tunable("vm.dirty_ratio", "60").expect("a ratio");
            let limit = mm.global_dirty_limits().dirty;
            let follows = dirty_throttle == DirtyThrottle::Rate;
            assert_eq!(mm.writeback.dirty_limit, if follows { limit } else { 0 });
            // Three fifths of at most 32,768 pages lie between 1 << 14 and 1 << 15: 1 + 14.
            assert_eq!(mm.writeback.completion_period, 1 << 15);
        }
    }
}
