//! No scheduler: requests in order of arrival.
//!
//! **Rule.** First come, first served; a bio may join one of the last eight requests.
//! **Source.** `blk_bio_list_merge()`, block/blk-merge.c, 6.12. **Abstracted.** The plug list and the software
//! queue are one list. **Omitted.** Joining two requests (a list without an elevator does not).

use super::{Request, Side};
use crate::slab::Slab;
use std::collections::VecDeque;

/// How many of the youngest requests are tried for a merge.
const MERGE_CANDIDATES_MAX: usize = 8;

/// Slots of the queued requests, oldest first.
#[derive(Clone, Debug)]
pub(super) struct Fifo {
    slots: VecDeque<u32>,
}

impl Fifo {
    pub(super) fn new() -> Fifo {
        Fifo { slots: VecDeque::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    pub(super) fn insert(&mut self, slot: u32) {
        self.slots.push_back(slot);
    }

    pub(super) fn pop(&mut self) -> Option<u32> {
        self.slots.pop_front()
    }

    pub(super) fn find_merge(&self, requests: &Slab<Request>, part: &Request, sectors_max: u32) -> Option<(u32, Side)> {
        let candidates = self.slots.iter().rev().take(MERGE_CANDIDATES_MAX);
        candidates.copied().find_map(|slot| {
            let request = &requests[slot];
            let fits = request.sectors + part.sectors <= sectors_max;
            request.touches(part).filter(|_| fits).map(|side| (slot, side))
        })
    }
}
