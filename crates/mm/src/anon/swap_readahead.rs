//! Readahead from swap by address.
//!
//! Rule: a fault on a page that the swap cache does not have reads what is on swap of the pages around it, within its area and
//! its page table: those behind it if the last fault of the area was on the page before it, those before it if it was on
//! the page after it, else both. How many they are follows as for slots, from what the area remembers.
//! Source: `swap_ra_info()`, `swap_vma_readahead()`, `lookup_swap_cache()` (mm/swap_state.c); 4.20, 6.1 and 6.12.
//! Since/until: [`rules::SwapReadahead::ByAddress`], while no swap device seeks.

use std::ops::Range;

use super::REGION_PAGES;
use crate::swap::readahead_size;

/// Most pages that are read for a fault, as a power of two (`SWAP_RA_ORDER_CEILING`).
const ORDER_CEILING: u32 = 5;
/// Most hits that an area remembers (`SWAP_RA_HITS_MAX`).
const HITS_MAX: u8 = 63;
/// Hits that an area begins with (`GET_SWAP_RA_VAL()`).
const HITS_AT_FIRST: u8 = 4;

/// What an area remembers of its faults (`vma->swap_readahead_info`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AddressReadahead {
    /// Page of the last fault that swap had to do with.
    vpn: u32,
    /// Size of the last window.
    window: u8,
    /// Pages read ahead that were used since.
    hits: u8,
}

impl Default for AddressReadahead {
    fn default() -> AddressReadahead {
        AddressReadahead { vpn: 0, window: 0, hits: HITS_AT_FIRST }
    }
}

impl AddressReadahead {
    /// A fault on page `vpn` was served by the swap cache, from a page that had been read ahead or not.
    pub(super) fn found(&mut self, vpn: u32, read_ahead: bool) {
        self.vpn = vpn;
        self.hits = (self.hits + u8::from(read_ahead)).min(HITS_MAX);
    }

    /// The pages to read for a fault on page `vpn` of `area`.
    pub(super) fn begin(&mut self, vpn: u32, area: Range<u32>, page_cluster: u32) -> Range<u32> {
        let max = 1 << page_cluster.min(ORDER_CEILING);
        if max == 1 {
            return vpn..vpn + 1;
        }
        let (after, before) = (vpn == self.vpn.wrapping_add(1), self.vpn == vpn + 1);
        let size = readahead_size(self.hits.into(), after || before, max, self.window.into());
        *self = AddressReadahead { vpn, window: size as u8, hits: 0 };
        let start = match (after, before) {
            (true, _) => vpn,
            (_, true) => vpn.saturating_sub(size - 1),
            _ => vpn.saturating_sub((size - 1) / 2),
        };
        let table = vpn & !(REGION_PAGES - 1);
        let end = start + size;
        start.max(area.start).max(table)..end.min(area.end).min(table.saturating_add(REGION_PAGES))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AREA: Range<u32> = 1000..5000;

    fn after(vpn: u32, window: u8, hits: u8) -> AddressReadahead {
        AddressReadahead { vpn, window, hits }
    }

    #[test]
    fn the_first_window_is_the_largest_and_later_ones_shrink_by_half() {
        let mut state = AddressReadahead::default();
        // Four hits to begin with: 4 + 2, rounded up to 8; 3 pages before the fault, 4 behind it.
        assert_eq!(state.begin(2000, AREA, 3), 1997..2005);
        assert_eq!(state.begin(3000, AREA, 3), 2999..3003, "half of it");
        assert_eq!(state.begin(2000, AREA, 3), 2000..2002);
        assert_eq!(state.begin(3000, AREA, 3), 3000..3001);
        assert_eq!(state.begin(2000, AREA, 3), 2000..2001);
    }

    #[test]
    fn the_window_lies_on_the_side_where_faults_go_to() {
        assert_eq!(after(2000, 1, 0).begin(2001, AREA, 3), 2001..2003, "two beside the last one");
        assert_eq!(after(2001, 1, 0).begin(2000, AREA, 3), 1999..2001);
        assert_eq!(after(2000, 8, 3).begin(2001, AREA, 3), 2001..2009);
        assert_eq!(after(2001, 8, 3).begin(2000, AREA, 3), 1993..2001);
    }

    #[test]
    fn it_ends_with_the_area_the_page_table_and_what_the_tunable_allows() {
        assert_eq!(after(0, 8, 7).begin(1001, AREA, 3), 1000..1006);
        assert_eq!(after(0, 8, 7).begin(4998, AREA, 3), 4995..5000);
        assert_eq!(after(0, 8, 7).begin(1535, AREA, 3), 1532..1536, "a page table ends at 1536");
        assert_eq!(after(0, 8, 7).begin(1536, AREA, 3), 1536..1541);
        assert_eq!(after(0, 8, 7).begin(2000, AREA, 0), 2000..2001);
        assert_eq!(after(0, 32, 40).begin(2000, AREA, 9), 1985..2017, "32 at most");
    }

    #[test]
    fn hits_are_counted_up_to_what_there_is_room_for() {
        let mut state = after(2000, 8, 62);
        state.found(2100, true);
        state.found(2200, true);
        state.found(2300, false);
        assert_eq!(state, after(2300, 8, 63));
    }
}
