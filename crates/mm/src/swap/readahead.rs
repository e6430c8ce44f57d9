//! How many slots are read at once.
//!
//! Rule: where readahead goes by slots, an aligned window of slots around the wanted one, at most `1 << page_cluster`. Its size is the hits on pages
//! read ahead since the last window plus two, rounded up to a power of two; without hits two slots if the fault is next
//! to the last one and one otherwise; never less than half the last window. Until 3.3 it is always the largest window, up to the first free slot on
//! either side of the wanted one.
//! Source: `valid_swaphandles()` (mm/swapfile.c, 3.1); `__swapin_nr_pages()`, `swapin_nr_pages()`, `swap_cluster_readahead()` (mm/swap_state.c, 4.20 and 6.12).
//! Since/until: [`SwapReadahead`]; for that by address see `anon::swap_readahead`.
//! Abstracted: from 3.4 to 3.13 the largest window skips free slots.

use rules::SwapReadahead;

use super::{Swap, SwapEntry};

/// Size of a window, a power of two, of at most `max`: by the hits since the last one, whether the fault is beside the last one, and
/// the size of the last one (`__swapin_nr_pages()`).
pub(crate) fn readahead_size(hits: u32, beside: bool, max: u32, last: u32) -> u32 {
    let wanted = match hits {
        0 if beside => 2,
        0 => 1,
        hits => (hits + 2).next_power_of_two().max(4),
    };
    wanted.min(max).max(last / 2)
}

/// What earlier windows say of the next one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct ReadaheadState {
    /// Pages read ahead that were used since the last window (`swapin_readahead_hits`).
    hits: u32,
    /// Slot of the last window that had no hits to go by.
    prev: u32,
    /// Size of the last window.
    last_pages: u32,
}

impl ReadaheadState {
    /// Size of the next window, a power of two.
    fn next_size(&mut self, offset: u32, page_cluster: u32) -> u32 {
        let max_pages = 1 << page_cluster;
        if max_pages <= 1 {
            return 1;
        }
        let hits = std::mem::take(&mut self.hits);
        let beside = offset == self.prev.wrapping_add(1) || offset == self.prev.wrapping_sub(1);
        let pages = readahead_size(hits, beside, max_pages, self.last_pages);
        if hits == 0 {
            self.prev = offset;
        }
        self.last_pages = pages;
        pages
    }
}

impl Swap {
    /// Pages read ahead were used.
    pub(crate) fn readahead_hits(&mut self, pages: u32) {
        self.readahead.hits += pages;
    }

    /// First and last slot of the aligned window of `size` around one.
    fn window(&self, entry: SwapEntry, size: u32) -> (u32, u32) {
        let (device, offset) = self.locate(entry);
        let device = &self.devices[device];
        let first = (offset & !(size - 1)).max(1);
        let last = (offset | (size - 1)).min(device.slots() - 1);
        (device.base + first, device.base + last)
    }

    /// What of a window around a slot lies between the free ones that are nearest to it.
    fn up_to_holes(&self, SwapEntry(wanted): SwapEntry, (first, last): (u32, u32)) -> (u32, u32) {
        let is_taken = |slot: &u32| self.is_taken(SwapEntry(*slot));
        let first = (first..wanted).rev().take_while(is_taken).last().unwrap_or(wanted);
        let last = (wanted + 1..=last).take_while(is_taken).last().unwrap_or(wanted);
        (first, last)
    }
}

impl crate::Mm {
    /// Whether readahead goes by the addresses of pages and not by their slots (`swap_use_vma_readahead()`).
    pub(crate) fn swap_reads_by_address(&self) -> bool {
        let seeks = || self.swap.devices.iter().any(|device| device.is_rotational());
        self.rules.swap_readahead == SwapReadahead::ByAddress && !seeks()
    }

    /// First and last slot to read for a fault.
    pub(crate) fn swap_readahead_window(&mut self, entry: SwapEntry) -> (u32, u32) {
        let page_cluster = self.tunables.page_cluster as u32;
        if self.rules.swap_readahead == SwapReadahead::Cluster {
            return self.swap.up_to_holes(entry, self.swap.window(entry, 1 << page_cluster));
        }
        let (_, offset) = self.swap.locate(entry);
        let size = self.swap.readahead.next_size(offset, page_cluster);
        if size == 1 { (entry.0, entry.0) } else { self.swap.window(entry, size) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(hits: u32, prev: u32, last_pages: u32) -> ReadaheadState {
        ReadaheadState { hits, prev, last_pages }
    }

    #[test]
    fn the_window_follows_hits_and_neighbourhood() {
        // No hits: 1, or 2 beside the last fault; half of the last window at least.
        assert_eq!(state(0, 10, 0).next_size(50, 3), 1);
        assert_eq!(state(0, 10, 0).next_size(11, 3), 2);
        assert_eq!(state(0, 10, 0).next_size(9, 3), 2);
        assert_eq!(state(0, 10, 8).next_size(50, 3), 4);
        // Hits: hits + 2, rounded up to 4, 8, ...; capped at 1 << page_cluster.
        assert_eq!(state(1, 10, 0).next_size(50, 3), 4);
        assert_eq!(state(2, 10, 0).next_size(50, 3), 4);
        assert_eq!(state(3, 10, 0).next_size(50, 3), 8);
        assert_eq!(state(7, 10, 0).next_size(50, 3), 8);
        assert_eq!(state(7, 10, 0).next_size(50, 5), 16);
        assert_eq!(state(7, 10, 0).next_size(50, 0), 1);
    }
}
